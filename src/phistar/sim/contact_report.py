# SPDX-License-Identifier: BSD-3-Clause
"""Forces, gaps and slip of the pairs that may touch, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phistar.arrays import Array
from phistar.errors import UnknownNameError
from phistar.sim.contact_pairs import Pair


@dataclass(frozen=True)
class Contacts:
    """Pairs that may touch, at the state of a simulator.

    ``contacts["FL_FOOT"]`` are the pairs of one shape, frame, link or surface.

    Attributes:
        names, links, surfaces, surface_links: Of each pair: what touches, the link that carries
            it, what is touched, the link that carries that ("" of the world).
        gap: (batch, pairs) distances [m], negative for penetrations.
        force: (batch, pairs, 3) forces on what touches [N], in the world, mean of the last step;
            what is touched feels the opposite.
        normal: (batch, pairs, 3) unit normals, out of what is touched.
        position: (batch, pairs, 3) places [m] in the world.
        slip: (batch, pairs) tangential speeds [m/s].
        rate: (batch, pairs) rates of the gaps [m/s].
        friction: (pairs,) coefficients.
    """

    names: tuple[str, ...]
    links: tuple[str, ...]
    surfaces: tuple[str, ...]
    surface_links: tuple[str, ...]
    gap: Array
    force: Array
    normal: Array
    position: Array
    slip: Array
    rate: Array
    friction: Array

    @property
    def normal_force(self) -> Array:
        """(batch, pairs) [N]."""
        return np.asarray((self.force * self.normal).sum(axis=-1))

    @property
    def tangential_force(self) -> Array:
        """(batch, pairs) [N], not negative."""
        along = self.force - self.normal_force[..., None] * self.normal
        return np.asarray(np.linalg.norm(along, axis=-1))

    @property
    def touching(self) -> Array:
        """(batch, pairs) booleans: pairs that carry a force."""
        return np.asarray(self.normal_force > 0.0)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Contacts:
        owners = zip(self.names, self.links, self.surfaces, self.surface_links, strict=True)
        own = [i for i, names in enumerate(owners) if name in names]
        if not own or not name:
            known = dict.fromkeys((*self.names, *self.links, *self.surfaces))
            raise UnknownNameError("contact", name, known)
        arrays = ("gap", "force", "normal", "position", "slip", "rate")
        return replace(
            self,
            names=tuple(self.names[i] for i in own),
            links=tuple(self.links[i] for i in own),
            surfaces=tuple(self.surfaces[i] for i in own),
            surface_links=tuple(self.surface_links[i] for i in own),
            friction=self.friction[own],
            **{key: getattr(self, key)[:, own] for key in arrays},
        )

    def on(self, name: str) -> Array:
        """(batch, 3) the sum of forces [N] on a shape, frame or link: as what touches, and the
        opposite ones as what is touched; 0 between parts of its own."""
        pairs = self[name]
        owners = zip(pairs.names, pairs.links, pairs.surfaces, pairs.surface_links, strict=True)
        signs = [float(name in both[:2]) - float(name in both[2:]) for both in owners]
        return np.asarray(np.einsum("bpi,p->bi", pairs.force, signs))

    def __repr__(self) -> str:
        touching = int(self.touching.any(axis=0).sum())
        return f"Contacts({len(self)} pairs, {touching} of them touching, batch {len(self.gap)})"


def contacts_of(
    pairs: Sequence[Pair], impulses: Array, dt: float, found: dict[str, Array]
) -> Contacts:
    """What the program of contact points and the impulses (batch, pairs, 3) of a step say."""
    axes = found["axes"].reshape(*impulses.shape, 3)
    rates = found["rates"].reshape(impulses.shape)
    return Contacts(
        tuple(pair.name for pair in pairs),
        tuple(pair.link for pair in pairs),
        tuple(pair.surface for pair in pairs),
        tuple(pair.surface_link for pair in pairs),
        found["gap"].reshape(impulses.shape[:-1]),
        np.einsum("bpi,bpij->bpj", impulses / dt, axes),
        axes[..., 0, :],
        found["position"].reshape(impulses.shape),
        np.linalg.norm(rates[..., 1:], axis=-1),
        rates[..., 0],
        np.array([pair.row.friction for pair in pairs]),
    )

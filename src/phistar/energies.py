# SPDX-License-Identifier: BSD-3-Clause
"""Energy and momentum of a model for a user's arrays, rotors and mimic joints included.

Machine code answers as it does for kinematics, see ``motion``; the passes of named programs give
the rest: other dtypes, the first samples, long robots, other backends. ``Energies`` is the part of
``Robot`` that asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.arguments import refuse_nan, shaped
from phistar.compile import joint_map, kernel
from phistar.model.configuration import Coordinates
from phistar.model.kinematics import body_poses, center_of_mass
from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.motion import Key, Lean, answer
from phistar.spatial import force_transform

Array = NDArray[Any]


def momentum(model: Model, q: Coordinates, v: Coordinates) -> Array:
    """Spatial momentum (..., 6) [angular; linear] of the moving links about the world's origin."""
    arrays = shaped(model, q=q, v=v)
    found = answer(model, ("momentum",), *arrays.values())
    return momentum_by_passes(model, **arrays) if found is None else found


def kinetic_energy(model: Model, q: Coordinates, v: Coordinates) -> Array:
    """Kinetic energy (...) [J], that of the rotors included."""
    arrays = shaped(model, q=q, v=v)
    found = answer(model, ("kinetic_energy",), *arrays.values())
    return kinetic_energy_by_passes(model, **arrays) if found is None else found[..., 0]


def potential_energy(model: Model, q: Coordinates) -> Array:
    """Potential energy (...) [J] of the moving links in gravity; zero at the world's origin."""
    arrays = shaped(model, q=q)
    found = answer(model, ("potential_energy",), *arrays.values())
    return potential_energy_by_poses(model, **arrays) if found is None else found[..., 0]


def momentum_by_passes(model: Model, q: Array, v: Array) -> Array:
    """The momentum that each tree collects at its root, moved to the world."""
    _refuse_nan(q=q, v=v)
    collected = kernel("total_momentum")(model, q, {"v": joint_map(model).spread(v)})["h"]
    poses = body_poses(model, q)
    roots = [body.index for body in model.bodies if body.parent == GROUND]
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    total = np.zeros((*batch, 6), np.result_type(q, v))
    for k in roots:
        total += (force_transform(poses[..., k, :, :]) @ collected[..., k, :, None])[..., 0]
    return total


def kinetic_energy_by_passes(model: Model, q: Array, v: Array) -> Array:
    """Half the sum of V* M V over the links and of armature times v² over the joints."""
    _refuse_nan(q=q, v=v)
    joints = joint_map(model).spread(v)
    velocities = kernel("link_velocities")(model, q, {"v": joints})["V"]
    momenta = kernel("momenta")(model, q, {"v": joints})["h"]
    armature = [x for body in model.bodies for x in body.armature]
    rotors = (np.array(armature, np.finfo(v.dtype).dtype) * joints**2).sum(axis=-1)
    return np.asarray(((velocities * momenta).sum(axis=(-2, -1)) + rotors) / 2)


def potential_energy_by_poses(model: Model, q: Array) -> Array:
    """Weight of the moving links times the height of their centre of mass."""
    _refuse_nan(q=q)
    mass = float(model.inertias[:, 0].sum())
    if mass == 0.0:
        return np.zeros(q.shape[:-1], q.dtype)
    weight = (-mass * model.gravity).astype(np.finfo(q.dtype).dtype)
    return np.asarray(center_of_mass(model, q, fixed=False) @ weight)


def _refuse_nan(**arrays: Array) -> None:
    for name, array in arrays.items():
        refuse_nan(name, array)


class Energies:
    """Energy and momentum of a robot."""

    model: Model
    _lean_motion: dict[Key, Lean]

    def momentum(self, q: Coordinates, v: Coordinates) -> Array:
        """Spatial momentum (..., 6) [angular; linear] about the world's origin, world axes."""
        lean = self._lean_motion.get(("momentum",))
        if lean is not None and lean(q, v, result := np.empty(6)):
            return result
        return momentum(self.model, q, v)

    def kinetic_energy(self, q: Coordinates, v: Coordinates) -> Array:
        """Kinetic energy (...) [J], that of the rotors included."""
        lean = self._lean_motion.get(("kinetic_energy",))
        if lean is not None and lean(q, v, result := np.empty(1)):
            return result.reshape(())
        return kinetic_energy(self.model, q, v)

    def potential_energy(self, q: Coordinates) -> Array:
        """Potential energy (...) [J] of the moving links; zero with them at the world's origin."""
        lean = self._lean_motion.get(("potential_energy",))
        if lean is not None and lean(q, result := np.empty(1)):
            return result.reshape(())
        return potential_energy(self.model, q)

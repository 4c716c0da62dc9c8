# SPDX-License-Identifier: BSD-3-Clause
"""The embedded tree as a user's object: the operators of trees, on nodes and minimal rates.

Links that loops or mimic joints tie together are one node (``model.nodes``). With 𝓜 for X*𝓜X and
the other letters for operators of nodes, what holds for trees holds again: 𝓜 = N D N*,
N = I + HφK, N⁻¹ = I - HψK, K = Eφ G, and so on (``algebra.loop_identities.AGGREGATED``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from phistar import dynamics
from phistar.arguments import checked_state
from phistar.arrays import Array, as_vectors
from phistar.diagonal.roots import ROOTS
from phistar.errors import ArgumentError, pluralize
from phistar.linear import LinearOperator, VectorMap
from phistar.loops.minimal import MinimalCoordinates
from phistar.loops.node_rates import Embedding, embedding
from phistar.loops.system import rows_at
from phistar.model.components import GROUND
from phistar.model.configuration import Coordinates
from phistar.model.node_tree import NodeTree
from phistar.model.numpy_kinematics import jacobian
from phistar.spatial import motion_transform, pose_inverse

_NAMES = "M, N, D, R, eta, X, J(frame), phi, psi, E_phi, H, P, G, K, Upsilon"


class EmbeddedOperators:
    """The operators of a robot on its nodes at configurations on its loops.

    They act on vectors over the n minimal rates (..., n), in the order of ``independent``, and
    over the links (..., bodies * 6), [angular; linear] in link axes; each is applied by sweeps over
    the nodes, ``.T``, ``.inv`` and ``.dense()`` as of ``robot.operators(q)``.

    Attributes:
        q: (..., nq).
        minimal: The minimal coordinates that they belong to.
    """

    def __init__(self, minimal: MinimalCoordinates, q: Coordinates) -> None:
        self.minimal = minimal
        self.model = minimal.model
        (self.q,) = checked_state(self.model, q=q)

    @cached_property
    def _embedding(self) -> Embedding:
        if not self.model.loops:
            nothing = np.zeros((0, self.model.nv))
            return embedding(self.model, nothing, np.zeros(0, dtype=int))
        return embedding(self.model, rows_at(self.model, self.q).L, self.minimal.dependent)

    @cached_property
    def _tree(self) -> NodeTree:
        return self._embedding.tree(self.model, self.q)

    @property
    def independent(self) -> tuple[str, ...]:
        """Names of the minimal rates."""
        return self.minimal.independent

    @property
    def nodes(self) -> tuple[tuple[str, ...], ...]:
        """Names of the links of each node, carriers first; bodies go by their first link."""
        bodies = self.model.bodies
        return tuple(tuple(bodies[k].link for k in p.node.bodies) for p in self._embedding.parts)

    def __repr__(self) -> str:
        size, count = len(self.independent), len(self._embedding.parts)
        return (
            f"<operators of '{self.model.name}' on {pluralize(count, 'node')} at q {self.q.shape}: "
            f"{pluralize(size, 'rate')}; {_NAMES}>"
        )

    def __str__(self) -> str:
        bodies, names = self.model.bodies, self.independent
        parts = self._embedding.parts
        lines = [
            f"'{self.model.name}' as a tree of {pluralize(len(parts), 'node')}, "
            f"{pluralize(len(names), 'rate')}:"
        ]
        for part in parts:
            carrier = part.node.carrier
            on = "the ground" if carrier == GROUND else bodies[carrier].link
            links = ", ".join(bodies[k].link for k in part.node.bodies)
            rates = ", ".join(names[i] for i in sorted(part.rates.tolist())) or "none"
            lines.append(f"  {links}  on {on}; rates: {rates}")
        return "\n".join(lines)

    # -- in minimal rates

    def _made(
        self,
        name: str,
        shape: tuple[int, int],
        apply: VectorMap,
        adjoint: VectorMap,
        inverse: Callable[[], LinearOperator] | None = None,
    ) -> LinearOperator:
        title = f"{name} of nodes of '{self.model.name}'"
        batch, dtype = self.q.shape[:-1], self.q.dtype
        return LinearOperator(title, shape, apply, adjoint, inverse, batch, dtype)

    @property
    def _square(self) -> tuple[int, int]:
        return len(self.independent), len(self.independent)

    @property
    def X(self) -> LinearOperator:
        """Minimal rates to v."""
        size = (self.model.nv, len(self.independent))
        return self._made("X", size, self._embedding.expand, self._embedding.reduce)

    @property
    def M(self) -> LinearOperator:
        """X*𝓜X: O(n) to multiply, O(n) to solve where nodes are small."""
        tree, q, own = self.model.without_loops(), self.q, self._embedding

        def times(y: Array) -> Array:
            return own.reduce(dynamics.mass_matrix_times(tree, q, own.expand(y)))

        solve = self._tree.solve
        inverse = self._made("𝓜", self._square, solve, solve)
        return self._made("𝓜", self._square, times, times, lambda: inverse)

    @property
    def N(self) -> LinearOperator:
        """The innovations factor I + HφK: X*𝓜X = N D N*; ``N.inv @ tau`` are innovations."""
        tree = self._tree
        inverse = self._made("N", self._square, tree.factor_solve, tree.factor_adjoint_solve)
        return self._made("N", self._square, tree.factor, tree.factor_adjoint, lambda: inverse)

    @property
    def D(self) -> LinearOperator:
        """The inertia at each node when those beyond it are free, a block per node."""
        tree = self._tree
        inverse = self._made("D", self._square, tree.D_solve, tree.D_solve)
        return self._made("D", self._square, tree.D, tree.D, lambda: inverse)

    @cached_property
    def _roots(self) -> tuple[Sequence[Array], Sequence[Array]]:
        """Of D, and their inverses, by node."""
        found = [ROOTS["cholesky"].of(own.D) for own in self._tree.factors]
        return found, [np.linalg.inv(root) for root in found]

    @property
    def R(self) -> LinearOperator:
        """Cholesky's root of D, R R* = D, a block per node."""
        (roots, inverses), by_node = self._roots, self._tree.by_node
        back, across = ([_adjoint(x) for x in blocks] for blocks in self._roots)
        inverse = self._made(
            "R", self._square, lambda y: by_node(y, inverses), lambda y: by_node(y, across)
        )
        return self._made(
            "R", self._square, lambda y: by_node(y, roots), lambda y: by_node(y, back),
            lambda: inverse,
        )  # fmt: skip

    @property
    def eta(self) -> LinearOperator:
        """R*N*: minimal rates to normalised ones η [√J], in which the kinetic energy is half the
        sum of η²; ``eta.inv.T`` takes forces on the rates to ε, and ``eta.inv`` η back."""
        found: LinearOperator = self.R.T @ self.N.T
        return found

    # -- over links

    @property
    def _links(self) -> int:
        return 6 * len(self.model.bodies)

    def _over_links(self, name: str, apply: VectorMap, adjoint: VectorMap) -> LinearOperator:
        """From links to links."""
        size = (self._links, self._links)
        return self._made(name, size, _flat(_unflat(apply)), _flat(_unflat(adjoint)))

    @property
    def phi(self) -> LinearOperator:
        """φ: collects the forces on each link and on all nodes that it carries."""
        return self._over_links("φ", self._tree.phi, self._tree.phi_adjoint)

    @property
    def psi(self) -> LinearOperator:
        """ψ: the same through nodes that are free to move."""
        return self._over_links("ψ", self._tree.psi, self._tree.psi_adjoint)

    @property
    def E_phi(self) -> LinearOperator:
        """Eφ: the forces on the links of each node, at the link that carries it."""
        return self._over_links("Eφ", self._tree.E, self._tree.E_adjoint)

    @property
    def P(self) -> LinearOperator:
        """P: articulated inertias of links with the nodes that they carry."""
        return self._over_links("P", self._tree.P, self._tree.P)

    @property
    def Upsilon(self) -> LinearOperator:
        """Υ: accelerations of the links of each node per unit of force on them."""
        times = self._tree.compliance_times
        return self._over_links("Υ", times, times)

    @property
    def H(self) -> LinearOperator:
        """H: forces on the links to forces on the rates; ``H.T`` rates to motions in nodes."""
        tree, size = self._tree, (len(self.independent), self._links)
        return self._made("H", size, _unflat(tree.H), _flat(tree.H_adjoint))

    @property
    def G(self) -> LinearOperator:
        """G = P H* D⁻¹: the Kalman gain."""
        tree, size = self._tree, (self._links, len(self.independent))
        return self._made("G", size, _flat(tree.G), _unflat(tree.G_adjoint))

    @property
    def K(self) -> LinearOperator:
        """K = Eφ G: the gain, shifted to the links that carry the nodes."""
        tree, size = self._tree, (self._links, len(self.independent))
        return self._made("K", size, _flat(tree.K), _unflat(tree.K_adjoint))

    def J(self, frame: str, reference: str = "world_aligned") -> LinearOperator:
        """The Jacobian of a frame in minimal rates, 6 rows; see ``Robot.jacobian``."""
        own, rows = self._embedding, jacobian(self.model, self.q, frame, reference)
        columns = np.swapaxes(rows, -1, -2)
        return self._made(
            f"J of {frame!r}",
            (6, len(self.independent)),
            lambda y: np.asarray((rows @ own.expand(y)[..., None])[..., 0]),
            lambda f: own.reduce(np.asarray((columns @ f[..., None])[..., 0])),
        )

    def compliance(self, frame: str) -> Array:
        """J(X*𝓜X)⁻¹J* (..., 6, 6) of a frame, in its own axes, from Υ of its link.

        Its inverse is the operational inertia of the closed robot.
        """
        target = self.model.frame(frame)
        if target.body == GROUND:
            raise ArgumentError(f"frame '{frame}' is fixed to the ground: nothing moves it")
        turn = motion_transform(pose_inverse(target.body_pose))
        return np.asarray(turn @ self._tree.compliances[..., target.body, :, :] @ turn.T)


def _adjoint(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


def _unflat(apply: VectorMap) -> VectorMap:
    """Takes (..., bodies * 6)."""
    return lambda x: apply(x.reshape(*x.shape[:-1], x.shape[-1] // 6, 6))


def _flat(apply: VectorMap) -> VectorMap:
    """Gives (..., bodies * 6)."""

    return lambda x: as_vectors(apply(x))

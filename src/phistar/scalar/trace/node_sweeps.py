# SPDX-License-Identifier: BSD-3-Clause
"""(X*𝓜X)⁻¹ of a robot whose mimic joints are reduced, by sweeps over nodes, as straight lines.

Links that move together are one node (``model.nodes``), rigid but for its own few rates y. Inside a
node inertias and forces are collected as through locked joints; each rate has a column F of forces
that it needs. Across the node all of them yield at once:

    F_y(k) = Σ φ F_y(child) + P(k) H*X_y      inward, inside the node
    D = X*H F + A,  G = F D⁻¹                 at its root, or at its carrier if it has several
    P⁺ = P - G F*                             inertia that the carrier feels
    ε = τ - X*Hz,  z⁺ = z + Gε                forces, inward
    ẏ = D⁻¹ε - G*α                            accelerations, outward

which is the articulated-body algorithm where every node is a single link.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.nodes import JointRate, LinkNode, is_plain, joint_rates, mimic_nodes
from phistar.model.singular import PIVOT_TOLERANCE
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.inertias import Inertia, ZeroInertia, add_inertias, articulated_downdate
from phistar.scalar.linear.vectors import (
    Matrix,
    Vector,
    dot,
    plus,
    scaled,
    times,
    transposed,
    zeros,
)
from phistar.scalar.trace.link_operations import (
    LdlFactor,
    PlacedLink,
    add_term,
    as_vector,
    gain,
    gain_adjoint_parts,
    joint_block,
    joint_inertia,
)
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.thresholds import POLICY


class NodeSweeps:
    """The factors of X*𝓜X in the graph of a robot's links.

    Args:
        model: The robot.
        robot: Its links in a graph.
    """

    def __init__(self, model: Model, robot: TracedLinks) -> None:
        self.model = model
        self.robot = robot
        self._yields: list[_Yield] = []
        self._carried: dict[int, Inertia] = {}
        if len(model.bodies) <= POLICY.max_links_factored_first:
            for _ in self._inward():
                pass

    def _inward(self) -> Iterator[_Yield]:
        """Nodes, tips first; made on the first walk, beside the forces that go inward with it."""
        for number, node in enumerate(reversed(mimic_nodes(self.model))):
            if number == len(self._yields):
                self._yields.append(self._made(node))
            yield self._yields[number]

    def _made(self, node: LinkNode) -> _Yield:
        kind = _LinkYield if is_plain(self.model, node) else _NodeYield
        found = kind(node, self.robot, joint_rates(self.model), self._carried)
        if node.carrier != GROUND:
            known = self._carried.get(node.carrier, ZeroInertia())
            self._carried[node.carrier] = add_inertias(known, found.inertia_at_carrier())
        return found

    def solve(self, tau: Sequence[Scalar], links: Mapping[int, Vector] | None = None) -> Vector:
        """(X*𝓜X)⁻¹ (τ - X*Hφf) of a vector (nv,) and forces on links, in their axes."""
        return self.accelerations(self.working_forces(tau, links or {}))

    def working_forces(self, tau: Sequence[Scalar], links: Mapping[int, Vector]) -> list[Vector]:
        """D⁻¹ε of each node, inward."""
        forces = dict(links)
        found = []
        for each in self._inward():
            own, handed = each.inward(tau, forces)
            found.append(own)
            if each.node.carrier != GROUND:
                known = forces.get(each.node.carrier)
                forces[each.node.carrier] = handed if known is None else plus(known, handed)
        return found

    def accelerations(self, working: Sequence[Vector]) -> Vector:
        """Entries of v̇, outward."""
        result = zeros(self.model.nv)
        motions: dict[int, Vector] = {}
        for each, own in zip(reversed(self._yields), reversed(working), strict=True):
            each.outward(own, motions, result)
        return result

    def inverse(self) -> Matrix:
        """(X*𝓜X)⁻¹, column by column; of each pair of entries one is computed."""
        size = self.model.nv
        rows: Matrix = [zeros(size) for _ in range(size)]
        for j in range(size):
            column = self.solve([1.0 if i == j else 0.0 for i in range(size)])
            for i in range(j + 1):
                rows[i][j] = rows[j][i] = column[i]
        return rows

    def inverse_pivots(self) -> Vector:
        """Of the factors of all D: their product is 1 / det X*𝓜X."""
        return [x for each in self._inward() for x in each.factor.inverse_pivots]


class _Yield(ABC):
    """A node whose rates are free."""

    factor: LdlFactor
    inertia: Inertia

    def __init__(
        self,
        node: LinkNode,
        robot: TracedLinks,
        rates: Sequence[Sequence[JointRate]],
        carried: dict[int, Inertia],
    ) -> None:
        self.node = node
        self.robot = robot
        self.rates = rates

    @abstractmethod
    def inertia_at_carrier(self) -> Inertia:
        """What the carrier feels."""

    @abstractmethod
    def inward(self, tau: Sequence[Scalar], forces: dict[int, Vector]) -> tuple[Vector, Vector]:
        """D⁻¹ε, and the force on the carrier."""

    @abstractmethod
    def outward(self, working: Vector, motions: dict[int, Vector], result: Vector) -> None:
        """Put accelerations of the rates into the result, and those of links where they belong."""


class _LinkYield(_Yield):
    """A link whose joint has coordinates of its own: as in the articulated-body algorithm."""

    def __init__(
        self,
        node: LinkNode,
        robot: TracedLinks,
        rates: Sequence[Sequence[JointRate]],
        carried: dict[int, Inertia],
    ) -> None:
        super().__init__(node, robot, rates, carried)
        (self.body,) = node.bodies
        self.place: PlacedLink = robot.placed_links[self.body]
        self.entries = [rate.entry for rate in rates[self.body]]
        # As the derived sweeps do: the link's own inertia after what it carries.
        inertia = add_inertias(carried.get(self.body, ZeroInertia()), self.place.inertia)
        block = joint_block(self.place, inertia)
        self.factor = joint_inertia(self.place, block)
        self.gain = gain(self.place, block, self.factor)
        self.remainder = articulated_downdate(inertia, self.gain, block)

    def inertia_at_carrier(self) -> Inertia:
        """See ``_Yield``."""
        return self.remainder.in_parent(self.place.rotation, self.place.offset)

    def inward(self, tau: Sequence[Scalar], forces: dict[int, Vector]) -> tuple[Vector, Vector]:
        """See ``_Yield``."""
        z = forces.get(self.body, zeros())
        felt = self.place.apply_H(z)
        innovation = [tau[i] - x for i, x in zip(self.entries, felt, strict=True)]
        handed = self.place.shift_in(plus(z, times(self.gain, innovation)))
        return self.factor.solve(innovation), handed

    def outward(self, working: Vector, motions: dict[int, Vector], result: Vector) -> None:
        """See ``_Yield``."""
        motion, own = zeros(), working
        if self.node.carrier != GROUND:
            motion = self.place.shift_out(motions[self.node.carrier])
            parts = gain_adjoint_parts(self.gain, motion)
            own = [(x - rest) - plain for x, (rest, plain) in zip(working, parts, strict=True)]
        for i, x in zip(self.entries, own, strict=True):
            result[i] = x
        motions[self.body] = plus(motion, self.place.apply_H_adjoint(own))


class _NodeYield(_Yield):
    """Links that move together."""

    def __init__(
        self,
        node: LinkNode,
        robot: TracedLinks,
        rates: Sequence[Sequence[JointRate]],
        carried: dict[int, Inertia],
    ) -> None:
        super().__init__(node, robot, rates, carried)
        self.number = {entry: i for i, entry in enumerate(node.entries)}
        self.own = set(node.bodies)
        size = len(node.entries)
        inertias: dict[int, Inertia] = {k: carried.get(k, ZeroInertia()) for k in node.bodies}
        columns: dict[int, list[Vector]] = {k: [zeros() for _ in range(size)] for k in node.bodies}
        D: Matrix = [zeros(size) for _ in range(size)]
        least: list[list[float]] = [[] for _ in range(size)]
        for k in reversed(node.bodies):
            place = robot.placed_links[k]
            inertias[k] = add_inertias(inertias[k], place.inertia)
            self._add_joint(k, inertias[k], columns[k], D, least)
            parent = robot.links[k].parent
            if parent in self.own:
                moved = inertias[k].in_parent(place.rotation, place.offset)
                inertias[parent] = add_inertias(inertias[parent], moved)
                columns[parent] = [
                    plus(x, place.shift_in(y))
                    for x, y in zip(columns[parent], columns[k], strict=True)
                ]
        self.factor = LdlFactor(D, _least_pivots(D, least))
        self.single = node.roots[0] if len(node.roots) == 1 else None
        self.columns, self.inertia = self._collected(columns, inertias)
        rows = transposed(self.columns) if size else [[] for _ in range(6)]
        self.gain = [self.factor.solve(row) for row in rows]
        self.remainder = articulated_downdate(self.inertia, self.gain, rows)

    def _add_joint(
        self, k: int, inertia: Inertia, columns: list[Vector], D: Matrix, least: list[list[float]]
    ) -> None:
        """The forces that a joint's rates need, and what the joint feels of all forces so far."""
        place = self.robot.placed_links[k]
        block = transposed(joint_block(place, inertia)) if place.link.columns else []
        felt = [place.apply_H(column) for column in columns]
        for rate in self.rates[k]:
            i = self.number[rate.entry]
            for j, row in enumerate(felt):
                value = rate.scale * row[rate.axis]
                D[i][j] = D[i][j] + value
                D[j][i] = D[j][i] + value
            for other in self.rates[k]:
                j = self.number[other.entry]
                own = place.apply_H(block[other.axis])[rate.axis]
                if rate.axis == other.axis:
                    own = own + place.link.armature[rate.axis]
                    own = own + place.added[rate.axis] if place.added else own
                D[i][j] = D[i][j] + (rate.scale * other.scale) * own
            pivot = place.link.min_pivots[rate.axis]
            assert isinstance(pivot, float)
            least[i].append(rate.scale**2 * pivot)
        for rate in self.rates[k]:
            i = self.number[rate.entry]
            columns[i] = plus(columns[i], scaled(rate.scale, block[rate.axis]))

    def _collected(
        self, columns: dict[int, list[Vector]], inertias: dict[int, Inertia]
    ) -> tuple[list[Vector], Inertia]:
        """Columns and inertia at the only root, or at the carrier."""
        if self.single is not None:
            return columns[self.single], inertias[self.single]
        if self.node.carrier == GROUND:
            return [zeros() for _ in self.node.entries], ZeroInertia()
        total = [zeros() for _ in self.node.entries]
        inertia: Inertia = ZeroInertia()
        for k in self.node.roots:
            place = self.robot.placed_links[k]
            total = [plus(x, place.shift_in(y)) for x, y in zip(total, columns[k], strict=True)]
            inertia = add_inertias(inertia, inertias[k].in_parent(place.rotation, place.offset))
        return total, inertia

    def inertia_at_carrier(self) -> Inertia:
        """See ``_Yield``."""
        if self.single is None:
            return self.remainder
        place = self.robot.placed_links[self.single]
        return self.remainder.in_parent(place.rotation, place.offset)

    def inward(self, tau: Sequence[Scalar], forces: dict[int, Vector]) -> tuple[Vector, Vector]:
        """See ``_Yield``."""
        innovation = [tau[entry] for entry in self.node.entries]
        z = {k: forces.get(k, zeros()) for k in self.node.bodies}
        at_carrier = zeros()
        for k in reversed(self.node.bodies):
            place = self.robot.placed_links[k]
            felt = place.apply_H(z[k])
            for rate in self.rates[k]:
                i = self.number[rate.entry]
                innovation[i] = innovation[i] - rate.scale * felt[rate.axis]
            parent = self.robot.links[k].parent
            if parent in self.own:
                z[parent] = plus(z[parent], place.shift_in(z[k]))
            elif self.single is None:
                at_carrier = plus(at_carrier, place.shift_in(z[k]))
        working = self.factor.solve(innovation)
        held = zeros()
        for x, column in zip(working, self.columns, strict=True):
            held = as_vector(add_term(held, Fraction(1), scaled(x, column)))
        if self.single is None:
            return working, plus(at_carrier, held)
        root = self.robot.placed_links[self.single]
        return working, root.shift_in(plus(z[self.single], held))

    def outward(self, working: Vector, motions: dict[int, Vector], result: Vector) -> None:
        """See ``_Yield``."""
        at = motions.get(self.node.carrier, zeros())
        moved = self.node.carrier != GROUND
        if moved and self.single is not None:
            at = self.robot.placed_links[self.single].shift_out(at)
        rates = list(working)
        if moved:
            rates = [x - dot(column, at) for x, column in zip(rates, self._gains(), strict=True)]
        for entry, x in zip(self.node.entries, rates, strict=True):
            result[entry] = x
        for k in self.node.bodies:
            place = self.robot.placed_links[k]
            if k == self.single:
                motion = at
            else:
                parent = self.robot.links[k].parent
                motion = zeros() if parent == GROUND else place.shift_out(motions[parent])
            turned = zeros(len(place.link.columns))
            for rate in self.rates[k]:
                turned[rate.axis] = rate.scale * rates[self.number[rate.entry]]
            motions[k] = plus(motion, place.apply_H_adjoint(turned))

    def _gains(self) -> list[Vector]:
        return transposed(self.gain) if self.node.entries else []


def _least_pivots(D: Matrix, least: Sequence[Sequence[float]]) -> Vector:
    """Pivots that are not above these are rounding.

    The first of a joint is that of the joint alone, see ``pivot_thresholds``; others are what
    elimination leaves of an entry of D, and compared with it.
    """
    found: Vector = [min(x, default=0.0) for x in least]
    for j in range(1, len(D)):
        if any(x != 0.0 for x in D[j][:j]):
            found[j] = PIVOT_TOLERANCE * D[j][j]
    return found

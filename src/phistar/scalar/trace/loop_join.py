# SPDX-License-Identifier: BSD-3-Clause
"""𝓜x = f + L*λ with Lx = c by sweeps over the links, each loop closed where its chain ends.

The articulated-body sweep takes the rows of L along as forces with unknown multipliers. Below a
link, with its own acceleration α, a row i has moved by

    Σ Λ(i, j) λ(j) + w(i) - y(i)*α

where E(i) = L(i) - Hy(i) are its forces at a joint, Λ and w the sums of E*D⁻¹E and E*D⁻¹ε over the
joints passed, and y(i) what its forces weigh on the link. At the link on which a row no longer
depends, outermost first, rows of that link are solved for their λ. What is left is a link with more
inertia, P + yΛ⁻¹y*, and the sweep goes on as in a tree: loops that lie apart never meet. Rows of
loops with the ground end there, all of them in one matrix Λ = L𝓜⁻¹L*, unless they are solved early:
at a link from which the joints passed could move the loop's end in all directions of its rows, so
that its own block of Λ has an inverse. The trunk of a robot on its feet is such a link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from phistar.model.components import GROUND
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.inertias import (
    Inertia,
    SymmetricInertia,
    add_inertias,
    articulated_downdate,
)
from phistar.scalar.linear.symmetric_factor import SymmetricFactor, is_zero
from phistar.scalar.linear.vectors import Matrix, Vector, dot, minus, plus, scaled, times, zeros
from phistar.scalar.trace.link_operations import (
    LdlFactor,
    PlacedLink,
    gain,
    gain_adjoint_parts,
    joint_block,
    joint_inertia,
)
from phistar.scalar.trace.loop_tracer import LinkForce
from phistar.scalar.trace.traced_links import TracedLinks


@dataclass
class _Inboard:
    """What a link feels: inertia, force, and forces y of open rows."""

    inertia: Inertia
    force: Vector
    rows: dict[int, Vector] = field(default_factory=dict)

    def add(self, inertia: Inertia, force: Vector, rows: dict[int, Vector]) -> None:
        """What a child hands on."""
        self.inertia = add_inertias(self.inertia, inertia)
        self.force = plus(self.force, force)
        for i, y in rows.items():
            self.rows[i] = plus(self.rows[i], y) if i in self.rows else y


@dataclass(frozen=True)
class _PassedJoint:
    """What the inward sweep leaves at a joint: D, G, C⁻¹ε, and C⁻¹E of open rows."""

    D: LdlFactor
    gain: Matrix
    force: Vector
    rows: dict[int, Vector]


@dataclass(frozen=True)
class _SolvedRows:
    """Rows that were solved at a link, with Λ = C E C*.

    Attributes:
        rows: Their numbers.
        factor: Of Λ.
        wanted: C⁻¹(c - w).
        felt: C⁻¹y*, for each component of the link's acceleration.
        others: C⁻¹Λ of rows that are still open.
    """

    rows: Sequence[int]
    factor: SymmetricFactor
    wanted: Vector
    felt: Matrix
    others: dict[int, Vector]


class LoopJoin:
    """Sweeps of one robot for given rows.

    Args:
        robot: Its links.
        L: Rows in body order.
        least: Pivots of rows below these are none; None: all count.
        forces: Rows that are forces on links rather than entries of L; they end on the ground.
        early: Of these, the ones that are solved further out: each one's link.
    """

    def __init__(
        self,
        robot: TracedLinks,
        L: Matrix,
        least: Sequence[float] | None,
        forces: Mapping[int, LinkForce] | None = None,
        early: Mapping[int, int] | None = None,
    ) -> None:
        self._robot = robot
        self._L = L
        self._least = least
        self._forces = forces or {}
        self._closing: dict[int, list[int]] = {}
        ends = early or {}
        for i, row in enumerate(L):
            end = ends.get(i, GROUND) if i in self._forces else end_of_row(robot, row)
            self._closing.setdefault(end, []).append(i)

    def solve(self, force: Vector, wanted: Vector) -> tuple[Vector, Vector]:
        """x in body order, of f in body order and c, and λ."""
        sweep = JoinSweep(self._robot, self._L, wanted, self._least)
        for i, row in self._forces.items():
            sweep.links[row.link].rows[i] = scaled(-1.0, row.force)
        for k in reversed(range(len(self._robot.links))):
            sweep.close(k, self._closing.get(k, ()))
            sweep.pass_joint(k, force)
        sweep.close(GROUND, self._closing.get(GROUND, ()))
        return sweep.outward()


def end_of_row(robot: TracedLinks, row: Vector) -> int:
    """The outermost link on whose acceleration, and those further in, a row does not depend."""
    moved = [
        link.index
        for link, place in zip(robot.links, robot.placed_links, strict=True)
        if any(not is_zero(x) for x in row[link.v : link.v + len(place.link.columns)])
    ]
    paths = [robot.path(k)[:-1] for k in moved]
    shared = [steps[0] for steps in zip(*paths, strict=False) if len(set(steps)) == 1]
    return shared[-1] if shared else GROUND


class JoinSweep:
    """The sweep inward, joint by joint, and the one outward.

    Args:
        robot: Its links.
        L: Rows in body order.
        wanted: c of the rows that are to be solved.
        least: Pivots of rows below these are none; None: all count.
    """

    def __init__(
        self, robot: TracedLinks, L: Matrix, wanted: Vector, least: Sequence[float] | None
    ) -> None:
        self.robot = robot
        self.L = L
        self.wanted = wanted
        self.least = least
        self.links = {
            link.index: _Inboard(place.inertia, zeros())
            for link, place in zip(robot.links, robot.placed_links, strict=True)
        }
        self.joints: dict[int, _PassedJoint] = {}
        self.closed: dict[int, _SolvedRows] = {}
        self.moved: Vector = zeros(len(L))  # w
        self.mobility: dict[tuple[int, int], Scalar] = {}  # Λ, row not below column

    def _add(self, i: int, j: int, x: Scalar) -> None:
        key = (max(i, j), min(i, j))
        self.mobility[key] = self.mobility.get(key, 0.0) + x

    def between(self, i: int, j: int) -> Scalar:
        """Λ of two rows."""
        return self.mobility.get((max(i, j), min(i, j)), 0.0)

    def pass_joint(self, k: int, force: Vector) -> None:
        """Hand a link's inertia and forces to its parent."""
        link, place, own = self.robot.links[k], self.robot.placed_links[k], self.links[k]
        columns = slice(link.v, link.v + len(place.link.columns))
        U = joint_block(place, own.inertia)
        D = joint_inertia(place, U)
        G = gain(place, U, D)
        pushed = minus(force[columns], place.apply_H(own.force))
        rows = self._row_forces(place, own, columns)
        halves = {i: D.forward(E) for i, E in rows.items()}
        started = D.forward(pushed)
        weighted = {i: D.divided(x) for i, x in halves.items()}
        for i, x in halves.items():
            self.moved[i] = self.moved[i] + dot(weighted[i], started)
            for j in halves:
                if j <= i:
                    self._add(i, j, dot(x, weighted[j]))
        self.joints[k] = _PassedJoint(D, G, started, halves)
        if link.parent == GROUND:
            return
        inertia = articulated_downdate(own.inertia, G, U).in_parent(place.rotation, place.offset)
        handed = {
            i: place.shift_in(plus(own.rows.get(i, zeros()), times(G, E))) for i, E in rows.items()
        }
        reaction = place.shift_in(plus(own.force, times(G, pushed)))
        self.links[link.parent].add(inertia, reaction, handed)

    def _row_forces(self, place: PlacedLink, own: _Inboard, columns: slice) -> dict[int, Vector]:
        """E of the rows that are open at a joint."""
        found = {}
        for i, row in enumerate(self.L):
            entries = row[columns]
            if i in own.rows:
                found[i] = minus(entries, place.apply_H(own.rows[i]))
            elif any(not is_zero(x) for x in entries):
                found[i] = list(entries)
        return found

    def close(self, k: int, rows: Sequence[int]) -> None:
        """Solve rows at a link."""
        if not rows:
            return
        least = None if self.least is None else [self.least[i] for i in rows]
        factor = SymmetricFactor([[self.between(i, j) for j in rows] for i in rows], least)
        wanted = factor.forward([self.wanted[i] - self.moved[i] for i in rows])
        loads = {i: self._load(k, i) for i in rows}
        felt = [factor.forward([loads[i][component] for i in rows]) for component in range(6)]
        others = {j: factor.forward([self.between(i, j) for i in rows]) for j in self._met_by(rows)}
        self.closed[k] = _SolvedRows(rows, factor, wanted, felt, others)
        self._hand_on(k, self.closed[k])

    def _met_by(self, rows: Sequence[int]) -> list[int]:
        """Other rows that are open and that some rows meet in a part of the tree."""
        return [
            j
            for j in range(len(self.L))
            if j not in rows
            and any((max(i, j), min(i, j)) in self.mobility for i in rows)
            and not self._is_closed(j)
        ]

    def _is_closed(self, row: int) -> bool:
        return any(row in closed.rows for closed in self.closed.values())

    def _load(self, k: int, row: int) -> Vector:
        return zeros() if k == GROUND else self.links[k].rows.pop(row)

    def _hand_on(self, k: int, closed: _SolvedRows) -> None:
        """What solved rows leave at a link and in rows that are still open."""
        factor, felt = closed.factor, closed.felt
        solved = factor.divided(closed.wanted)
        open_rows = {j: factor.divided(x) for j, x in closed.others.items()}
        for j, x in open_rows.items():
            self.moved[j] = self.moved[j] + dot(x, closed.wanted)
            for other in open_rows:
                if other <= j:
                    self._add(j, other, -dot(x, closed.others[other]))
        if k == GROUND:
            return
        link = self.links[k]
        for j, x in open_rows.items():
            link.rows[j] = minus(link.rows.get(j, zeros()), [dot(row, x) for row in felt])
        link.force = plus(link.force, [dot(row, solved) for row in felt])
        weighted = [factor.divided(row) for row in felt]
        link.inertia = add_inertias(link.inertia, _gram(felt, weighted))

    def paths(self, count: int) -> tuple[list[dict[int, Scalar]], list[dict[int, Scalar]]]:
        """Z = N⁻¹L* and D⁻¹Z of the first rows, by entries in body order that are not zero."""
        found: list[dict[int, Scalar]] = [{} for _ in range(count)]
        weighted: list[dict[int, Scalar]] = [{} for _ in range(count)]
        for link in self.robot.links:
            joint = self.joints[link.index]
            for i, row in joint.rows.items():
                divided = joint.D.divided(row)
                for k, (x, y) in enumerate(zip(row, divided, strict=True)):
                    if not is_zero(x):
                        found[i][link.v + k], weighted[i][link.v + k] = x, y
        return found, weighted

    def outward(
        self, given: Vector | None = None, moved: Vector | None = None
    ) -> tuple[Vector, Vector]:
        """x, link by link, and λ; of rows that were left open it is given, or D⁻¹Zλ instead."""
        result = zeros(sum(len(place.link.columns) for place in self.robot.placed_links))
        multipliers: Vector = zeros(len(self.L)) if given is None else list(given)
        self._multiply(GROUND, zeros(), multipliers)
        accelerations: dict[int, Vector] = {GROUND: zeros()}
        for link, place in zip(self.robot.links, self.robot.placed_links, strict=True):
            joint = self.joints[link.index]
            started = joint.force
            for i, row in joint.rows.items() if moved is None else ():
                started = plus(started, scaled(multipliers[i], row))
            inner = place.shift_out(accelerations[link.parent])
            divided = joint.D.divided(started)
            if moved is not None:
                divided = plus(divided, moved[link.v : link.v + len(divided)])
            own = joint.D.backward(divided)
            parts = gain_adjoint_parts(joint.gain, inner)
            # What the joint's own axis gives comes last and cancels in the sum below.
            own = [(x - rest) - plain for x, (rest, plain) in zip(own, parts, strict=True)]
            accelerations[link.index] = plus(inner, place.apply_H_adjoint(own))
            self._multiply(link.index, accelerations[link.index], multipliers)
            result[link.v : link.v + len(own)] = own
        return result, multipliers

    def _multiply(self, k: int, acceleration: Vector, multipliers: Vector) -> None:
        """λ of rows that were solved at a link."""
        closed = self.closed.get(k)
        if closed is None:
            return
        right = list(closed.wanted)
        for x, row in zip(acceleration, closed.felt, strict=True):
            right = plus(right, scaled(x, row))
        for j, row in closed.others.items():
            right = minus(right, scaled(multipliers[j], row))
        found = closed.factor.backward(closed.factor.divided(right))
        for i, x in zip(closed.rows, found, strict=True):
            multipliers[i] = x


def _gram(left: Iterable[Vector], right: Sequence[Vector]) -> SymmetricInertia:
    """The products of vectors of six components."""
    full = [[dot(x, y) for y in right] for x in left]
    corner = [full[i][j] for i in range(3) for j in range(i, 3)]
    far = [full[i][j] for i in range(3, 6) for j in range(i, 6)]
    return SymmetricInertia(corner, [row[3:] for row in full[:3]], far)

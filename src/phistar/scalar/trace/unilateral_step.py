# SPDX-License-Identifier: BSD-3-Clause
"""A step of time with joints that rub and stop and points that touch, as a program for one robot.

With v⁻ before the step of length h, and impulses λ of the rows L,

    v⁺ = v⁻ + 𝓜ₕ⁻¹(h(τ - 𝒞 - passive forces) + L*λ)        q⁺ = q ⊕ h v⁺
    σ = L v⁺ + ... = Δλ + g,    Δ = L𝓜ₕ⁻¹L*

in which 𝓜ₕ has h·damping + h²·stiffness added to the joints' own inertia A: springs and damping act
at the end of the step. Δ and Lv⁺ without λ come from the tree's sweep inward, rows as forces on
links (Γ, see ``loop_join``); λ from sweeps of projected Gauss-Seidel that begin with the impulses
of the step before; v⁺ from the sweep outward. Bodies that float are seen from the axes that they
have at the beginning of the step, see ``model.floating_roots``.

Closed loops are rows of the same sweep that are solved on the way, G(v⁺ - v⁻) = -hĠv⁻. What is left
of Δ and of the free rates is that of motions which keep the loops, and all else is the same; q⁺ and
v⁺ leave the loops by what the step is long, and are projected onto them by who calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from phistar.model.components import GROUND
from phistar.model.floating_roots import floating_roots
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.graph import Scalar, Value, select
from phistar.scalar.linear.elementary import larger
from phistar.scalar.linear.vectors import Matrix, Vector, dot, plus, scaled, zeros
from phistar.scalar.lower import LoweringOptions, link_number_choices, quaternion_entries
from phistar.scalar.program import Signature, Store, Unrolled, count_arithmetic
from phistar.scalar.robot.joint_transforms import GRAPH_OPS
from phistar.scalar.robot.link_numbers import LinkNumbers
from phistar.scalar.trace.configuration_programs import integrated
from phistar.scalar.trace.contact_geometry import PLANES, ContactFrames, TouchingPoint
from phistar.scalar.trace.iterated_line import ChangingSlots, IterationStage, iterated_line
from phistar.scalar.trace.loop_join import JoinSweep, end_of_row
from phistar.scalar.trace.loop_tracer import LoopTracer
from phistar.scalar.trace.passive_programs import stretch
from phistar.scalar.trace.projected_gauss_seidel import (
    JointGroup,
    RowGroup,
    start_scale,
    stay_at_stops,
    sweep,
)
from phistar.scalar.trace.row_laws import RowLaws, RowState
from phistar.scalar.trace.row_systems import PairSystem, PathSystem, RowSystem, prefers_paths
from phistar.scalar.trace.traced_bias import traced_bias
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unilateral_rows import JointRow, StepRows
from phistar.sweeps.schedule import Schedule


@dataclass(frozen=True)
class TreeBias:
    """The sweeps of 𝒞, and inputs that they are not given."""

    schedule: Schedule
    absent: Set[str]


def unilateral_step(
    model: Model,
    rows: StepRows,
    bias: TreeBias,
    loops: LoopTracer | None = None,
    least: Sequence[float] = (),
) -> Unrolled:
    """q, v, tau, dt, impulses, planes -> ``q_next``, ``v_next``, ``impulses_next``.

    Impulses [N s] or [N m s]: of joints that rub or stop, then normal and two tangential ones of
    each contact. Planes, if any are given: normal and offset of each. The solver works in pairs of
    rows or along their paths, whichever takes fewer products; with loops in pairs.

    Args:
        model: The robot.
        rows: Its joints and pairs.
        bias: Sweeps of 𝒞.
        loops: Its closed loops, whose rows have to be independent.
        least: Of joints that rub or stop, mobilities below which loops hold them; none: never.
    """
    options = LoweringOptions(regroup=True)
    found = [
        _StepTrace(model, links, rows, bias, loops, least).program()
        for links in link_number_choices(model, frozenset(), options, flat=True)
    ]
    return min(found, key=lambda program: count_arithmetic(program.count()))


class _StepTrace:
    def __init__(
        self,
        model: Model,
        links: Sequence[LinkNumbers],
        rows: StepRows,
        bias: TreeBias,
        loops: LoopTracer | None,
        least: Sequence[float],
    ) -> None:
        self.model = model
        self.rows = rows
        self.robot = TracedLinks(links)
        self.graph = self.robot.graph
        self.order = joint_map(model).v_indices.tolist()
        self.h = self.graph.load("dt", 0)
        self.v: Vector = [self.graph.load("v", i) for i in self.order]
        self._bias = bias
        self.loops = loops
        self.least = least
        self.frames = ContactFrames(model, self.robot, self.v)
        self.carried = self._carried()

    def _carried(self) -> Vector:
        """What turning axes had taken from the velocities of bodies that float, in body order."""
        found = zeros(self.model.nv)
        for root in floating_roots(self.model):
            own = [self.order.index(root.v + i) for i in range(6)]
            parts = root.carried([self.v[i] for i in own], self.h, GRAPH_OPS)
            for i, x in zip(own, parts, strict=True):
                found[i] = x
        return found

    def q(self, i: int) -> Scalar:
        """An entry of the configuration."""
        return self.graph.load("q", i)

    def force(self) -> Vector:
        """h(τ - 𝒞 - passive forces), in body order."""
        bias = traced_bias(self.model, self._bias.schedule, self._bias.absent, self.robot)
        tau = [self.graph.load("tau", i) for i in self.order]
        force = [x - y for x, y in zip(tau, bias, strict=True)]
        for row in self.rows.joints:
            i = self.order.index(row.v)
            if row.damping:
                force[i] = force[i] - row.damping * self.v[i]
            if row.stiffness:
                ahead = self._stretch(row) + self.h * self.v[i]
                force[i] = force[i] - row.stiffness * ahead
        return scaled(self.h, force)

    def _stretch(self, row: JointRow) -> Scalar:
        """How far a spring is from where it rests."""
        if row.q >= 0:
            return self.q(row.q) - row.rest
        return stretch(self.model, [self.q(i) for i in range(self.model.nq)])[row.v]

    def stiffen(self) -> None:
        """Add h·damping + h²·stiffness to the joints' own inertia."""
        added: dict[int, Scalar] = {
            row.v: self.h * (row.damping + row.stiffness * self.h)
            for row in self.rows.joints
            if row.damping or row.stiffness
        }
        if not added:
            return
        for k, (link, place) in enumerate(
            zip(self.robot.links, self.robot.placed_links, strict=True)
        ):
            own = [added.get(self.order[link.v + i], 0.0) for i in range(len(place.link.columns))]
            heavier = replace(place.link, armature=plus(place.link.armature, own))
            self.robot.placed_links[k] = replace(place, link=heavier)

    def program(self) -> Unrolled:
        """The program."""
        rows = self.rows
        force = self.force()
        self.stiffen()
        points = [self.frames.touching(row) for row in rows.contacts]
        inward = self._inward(force, points)
        offset = self._velocities(points)
        offset = plus(offset, inward.moved[: rows.count])
        delta = [[inward.between(i, j) for j in range(rows.count)] for i in range(rows.count)]
        groups, offset = self._laws(points).groups(delta, offset)
        solver = _RowSolver(self, inward, delta, offset, groups)
        return solver.program()

    def _laws(self, points: Sequence[TouchingPoint]) -> RowLaws:
        """What joints and pairs may do in this step."""
        v = dict(zip(self.order, self.v, strict=True))
        joints = [RowState(self.q(max(row.q, 0)), v[row.v]) for row in self.rows.bounded]
        contacts = [RowState(point.gap, point.rates[0]) for point in points]
        return RowLaws(self.model, self.rows, self.h, joints, contacts, self.least)

    def stores(self, change: Vector, impulses: Vector) -> list[Store]:
        """The state after the step, of the change of v in body order."""
        model = self.model
        ahead = zeros(model.nv)
        for i, x, y in zip(self.order, plus(self.v, self.carried), change, strict=True):
            ahead[i] = x + y
        q: Vector = [self.q(i) for i in range(model.nq)]
        moved = integrated(model, q, scaled(self.h, ahead))
        for root in floating_roots(model):
            at, own = slice(root.q, root.q + 7), slice(root.v, root.v + 6)
            moved[at], ahead[own] = root.settled(q[at], ahead[own], self.h, GRAPH_OPS)
        results = {
            "q_next": moved,
            "v_next": ahead,
            "impulses_next": impulses,
        }
        return [Store(n, i, "", x) for n, values in results.items() for i, x in enumerate(values)]

    def signature(self) -> Signature:
        model, rows, count = self.model, self.rows, max(self.rows.count, 1)
        inputs = {"q": model.nq, "v": model.nv, "tau": model.nv, "dt": 1, "impulses": count}
        if rows.given_planes:
            inputs[PLANES] = 4 * rows.given_planes
        outputs = {"q_next": model.nq, "v_next": model.nv, "impulses_next": count}
        return Signature(inputs, outputs, quaternion_entries(model))

    def _inward(self, force: Vector, points: Sequence[TouchingPoint]) -> JoinSweep:
        """The sweep inward with all rows; those of loops come last and are solved in it."""
        L: Matrix = [zeros(self.model.nv) for _ in range(self.rows.count)]
        for i, row in enumerate(self.rows.bounded):
            L[i][self.order.index(row.v)] = 1.0
        loops, wanted = self._loop_rows()
        closing: dict[int, list[int]] = {}
        for i, own in enumerate(loops, len(L)):
            closing.setdefault(end_of_row(self.robot, own), []).append(i)
        inward = JoinSweep(self.robot, [*L, *loops], [*zeros(len(L)), *wanted], None)
        first = len(self.rows.bounded)
        for k, point in enumerate(points):
            for body, columns in point.forces.items():
                for i, column in enumerate(columns):
                    inward.links[body].rows[first + 3 * k + i] = scaled(-1.0, column)
        for k in reversed(range(len(self.robot.links))):
            inward.close(k, closing.get(k, ()))
            inward.pass_joint(k, force)
        inward.close(GROUND, closing.get(GROUND, ()))
        return inward

    def _loop_rows(self) -> tuple[Matrix, Vector]:
        """Rows G of loops in body order, and G(v⁺ - v⁻)."""
        if self.loops is None:
            return [], []
        q: Vector = [self.q(i) for i in range(self.model.nq)]
        v: Vector = [self.graph.load("v", i) for i in range(self.model.nv)]
        found = self.loops.rows(q, v)
        return [self.loops.in_body_order(row) for row in found.L], scaled(-self.h, found.bias)

    def _velocities(self, points: Sequence[TouchingPoint]) -> Vector:
        """L v⁻, bodies that float being seen from axes that stand still."""
        places = [self.order.index(row.v) for row in self.rows.bounded]
        found = [self.v[i] + self.carried[i] for i in places]
        carried = ContactFrames(self.model, self.robot, self.carried)
        for point in points:
            parts = zeros(3)
            for body, columns in point.forces.items():
                moved = carried.velocity(body)
                parts = plus(parts, [dot(column, moved) for column in columns])
            found += plus(point.rates, parts)
        return found


class _RowSolver:
    """The iteration of a step.

    Stops that nothing holds are idle rows in most steps. They are left out at first; where the step
    violates one, or one was active in the step before, all rows are solved together: a stage that
    is skipped where no lane needs it, and that no other lane feels.
    """

    def __init__(
        self,
        step: _StepTrace,
        inward: JoinSweep,
        delta: Matrix,
        offset: Vector,
        groups: Sequence[RowGroup],
    ) -> None:
        self.step = step
        self.inward = inward
        self.delta = delta
        self.offset = offset
        self.groups = groups
        self.graph = step.graph
        self.slots = ChangingSlots(step.graph)
        self.count = len(offset)
        self.loop_count = len(inward.L) - self.count
        self.is_tree = step.loops is None
        if self.is_tree:
            self.paths, self.weighted = inward.paths(self.count)
        self.stops = [group for group in groups if isinstance(group, JointGroup) and group.is_stop]

    def program(self) -> Unrolled:
        """The program of the step."""
        step = self.step
        given: Vector = [self.graph.load("impulses", i) for i in range(max(self.count, 1))]
        if not self.stops:
            start, stages, change = self._iteration(given, self.groups)
            state = self.slots.load(range(len(given)))
            stores = step.stores(change, state)
            return self._line({**dict(enumerate(given)), **start}, stages, stores)
        idle = {group.first for group in self.stops}
        main = [group for group in self.groups if group.first not in idle]
        begun: Vector = [0.0 if i in idle else x for i, x in enumerate(given)]
        start, first, change = self._iteration(begun, main)
        found = self._multipliers(begun, min(start, default=0))
        results, flag = self.slots.take(len(change) + self.count), self.slots.take(1)[0]
        needed = self._needed(given, change)
        left = dict(zip(results, [*change, *found], strict=True))
        stages = first if main else []
        stages.append(IterationStage({**left, flag: needed}))
        again, whole, change = self._iteration(given, self.groups)
        found = self._multipliers(given, min(again))
        kept, chosen = self.slots.load(results), self.slots.load([flag])[0]
        final = [select(chosen, 0.0, x, y) for x, y in zip([*change, *found], kept, strict=True)]
        stages += [
            IterationStage(again, condition=flag),
            *(replace(stage, condition=flag) for stage in whole),
            IterationStage(dict(zip(results, final, strict=True)), condition=flag),
        ]
        nv = len(change)
        return self._line(start, stages, step.stores(kept[:nv], kept[nv:]))

    def _line(
        self, start: Mapping[int, Scalar], stages: Sequence[IterationStage], stores: list[Store]
    ) -> Unrolled:
        signature = self.step.signature()
        return iterated_line(signature, self.graph, self.slots.count, start, stages, stores)

    def _iteration(
        self, given: Vector, groups: Sequence[RowGroup]
    ) -> tuple[dict[int, Scalar], list[IterationStage], Vector]:
        """What changing slots begin with, sweeps over some rows, and the change of v after all.

        Rows whose multipliers are given as zero are not there.
        """
        rows = [i for i, x in enumerate(given) if isinstance(x, Value)]
        there = [i for i in rows if i < self.count]
        own = self.slots.take(len(rows))
        state: Vector = zeros(len(given))
        for i, x in zip(rows, self.slots.load(own), strict=True):
            state[i] = x
        block = [[self.delta[i][j] for j in there] for i in there]
        by_paths = self.is_tree and prefers_paths(block, [self.paths[i] for i in there])
        weight, sums = self._weight(there, given)
        scale = start_scale(groups, given, self.offset, weight)
        given, sums = scaled(scale, given), scaled(scale, sums)
        begun: dict[int, Scalar] = dict(zip(own, (given[i] for i in rows), strict=True))
        if by_paths:
            more = self.slots.take(len(sums))
            begun |= dict(zip(more, sums, strict=True))
            moved = self.slots.load(more)
            system: RowSystem = PathSystem(
                self.delta, self.offset, [*state[: self.count], *moved], self.paths, self.weighted
            )
            change, _ = self.inward.outward(moved=moved)
            own = range(own.start, more.stop)
            places = [*there, *range(self.count, self.count + len(moved))]
        else:
            system = PairSystem(self.delta, self.offset, state)
            change, _ = self.inward.outward([*state[: self.count], *zeros(self.loop_count)])
            places = rows

        def stage(following: Vector, rounds: int) -> IterationStage:
            updates = {slot: following[i] for slot, i in zip(own, places, strict=True)}
            return IterationStage(updates, rounds)

        stages = [stage(sweep(groups, system), self.step.rows.sweeps)]
        if not self.is_tree:
            last = stay_at_stops(groups, PairSystem(self.delta, self.offset, state))
            stages += [] if last is None else [stage(last, 1)]
        return begun, stages, change

    def _weight(self, rows: Sequence[int], given: Vector) -> tuple[Scalar, Vector]:
        """λ*Δλ of some rows, and of a tree D⁻¹Zλ, by which it is found."""
        total: Scalar = 0.0
        if not self.is_tree:
            for i in rows:
                total = total + given[i] * dot(
                    [self.delta[i][j] for j in rows], [given[j] for j in rows]
                )
            return total, []
        sums = zeros(self.step.model.nv)
        for i in rows:
            for k, x in self.weighted[i].items():
                sums[k] = sums[k] + x * given[i]
        for i in rows:
            for k, z in self.paths[i].items():
                total = total + z * sums[k] * given[i]
        return total, sums

    def _multipliers(self, given: Vector, first: int) -> Vector:
        """Of all rows, after an iteration whose slots begin there."""
        rows = [i for i, x in enumerate(given[: self.count]) if isinstance(x, Value)]
        found = zeros(self.count)
        for i, x in zip(rows, self.slots.load(range(first, first + len(rows))), strict=True):
            found[i] = x
        return found

    def _needed(self, given: Vector, change: Vector) -> Scalar:
        """Above zero where a stop is violated after a step without stops, or was active before."""
        total: Scalar = 0.0
        for group in self.stops:
            impulse = given[group.first]
            row = self.step.rows.bounded[group.first]
            k = self.step.order.index(row.v)
            total = total + larger(impulse, -impulse) + group.violation(self.step.v[k] + change[k])
        return total

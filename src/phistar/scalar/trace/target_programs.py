# SPDX-License-Identifier: BSD-3-Clause
"""One step towards targets of inverse kinematics as an unrolled program for one robot.

Errors e of all targets, their exact Jacobians A (e changes by -A δ along a tangent δ), a damped
least-squares step of each priority in what the ones before it leave free, and the configuration
it leads to, inside the limits:

    δ = A*(A A* + λ)⁻¹ e        λ = μ ‖e‖²/2 + floor       next rows B: B - B A*(A A* + floor)⁻¹ A

A joint that stands at a limit and would go beyond is held, and the step is taken again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from phistar.model.follower_limits import limits_with_followers
from phistar.model.model import Model
from phistar.model.target_rows import TargetRows
from phistar.scalar.graph import Graph, Scalar, select, sqrt
from phistar.scalar.linear.elementary import SQUARED_ANGLE_FLOOR, HalfAngle, arctan_ratio
from phistar.scalar.linear.symmetric_factor import SymmetricFactor, is_zero
from phistar.scalar.linear.vectors import (
    Matrix,
    Vector,
    cross,
    dot,
    minus,
    plus,
    scaled,
    times,
    transposed,
    zeros,
)
from phistar.scalar.lower import DEFAULT_OPTIONS, link_number_choices, quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled, count_arithmetic
from phistar.scalar.robot.joint_transforms import GRAPH_OPS
from phistar.scalar.trace.configuration_programs import integrated
from phistar.scalar.trace.kinematics_programs import PathSteps, rotations_to_reference
from phistar.scalar.trace.momentum_programs import linear_momentum_and_center

DAMPING_FLOOR = 1e-11
"""Least damping λ, without units: errors are of order one, and so are the rows of A."""


@dataclass(frozen=True)
class TargetKind:
    """A kind of target.

    Attributes:
        goal: Robot -> how many numbers a goal has.
        rows: Robot -> how many errors there are for each weight.
        trace: Steps, target, goal -> errors and rows of A.
    """

    goal: Callable[[Model], int]
    rows: Callable[[Model], tuple[int, ...]]
    trace: Callable[[PathSteps, TargetRows, Vector], tuple[Vector, Matrix]]


def target_step(
    model: Model, targets: Sequence[TargetRows], fixed: Sequence[str], limited: bool
) -> Unrolled:
    """A step: q, goals, scales, mu -> next q, errors, squared residuals, merit and step length.

    Args:
        model: The robot.
        targets: What is wanted; goals follow each other in the input ``goals``, square roots of
            weights in ``scales``.
        fixed: Names of joints that do not move.
        limited: Whether limits of joints are kept.
    """
    found = []
    for links in link_number_choices(model, frozenset(), DEFAULT_OPTIONS):
        steps = PathSteps(model, links)
        outputs = _traced_step(steps, targets, _held_entries(model, fixed), limited)
        stores = [Store(k, i, "", x) for k, row in outputs.items() for i, x in enumerate(row)]
        sizes = {k: len(row) for k, row in outputs.items()}
        signature = Signature(input_sizes(model, targets), sizes, quaternion_entries(model))
        found.append(Unrolled(signature, BasicBlock(steps.graph, stores)))
    return min(found, key=lambda program: count_arithmetic(program.count()))


def input_sizes(model: Model, targets: Sequence[TargetRows]) -> dict[str, int]:
    """Of a step, by name."""
    kinds = [TARGET_KINDS[target.kind] for target in targets]
    goals = sum(kind.goal(model) for kind in kinds)
    scales = sum(len(kind.rows(model)) for kind in kinds)
    return {"q": model.nq, "goals": goals, "scales": scales, "mu": 1}


def row_counts(model: Model, targets: Sequence[TargetRows]) -> list[int]:
    """Number of errors of each target."""
    return [sum(TARGET_KINDS[target.kind].rows(model)) for target in targets]


def goal_slices(model: Model, targets: Sequence[TargetRows]) -> tuple[list[slice], list[slice]]:
    """Where the numbers of each target stand in ``goals`` and in ``scales``."""
    kinds = [TARGET_KINDS[target.kind] for target in targets]
    columns = list(accumulate((kind.goal(model) for kind in kinds), initial=0))
    groups = list(accumulate((len(kind.rows(model)) for kind in kinds), initial=0))
    return [slice(*pair) for pair in pairwise(columns)], [slice(*pair) for pair in pairwise(groups)]


def _held_entries(model: Model, fixed: Sequence[str]) -> frozenset[int]:
    slices = [model.joints[name].v_slice for name in fixed]
    return frozenset(i for each in slices for i in range(each.start, each.stop))


def _traced_step(
    steps: PathSteps, targets: Sequence[TargetRows], held: frozenset[int], limited: bool
) -> dict[str, Vector]:
    model, g = steps.model, steps.graph
    q: Vector = [g.load("q", i) for i in range(model.nq)]
    columns, groups = goal_slices(model, targets)
    levels: dict[int, tuple[Vector, Matrix]] = {}
    errors: list[Vector] = []
    for target, column, group in zip(targets, columns, groups, strict=True):
        kind = TARGET_KINDS[target.kind]
        e, rows = kind.trace(steps, target, _loads(g, "goals", column))
        errors.append(e)
        level_e, level_rows = levels.setdefault(target.priority, ([], []))
        scales = _loads(g, "scales", group)
        factors = [x for x, n in zip(scales, kind.rows(model), strict=True) for _ in range(n)]
        for factor, error, row in zip(factors, e, rows, strict=True):
            level_e.append(factor * error)
            kept = [0.0 if i in held else x for i, x in enumerate(row)]
            level_rows.append(scaled(factor, kept))
    ordered = [levels[key] for key in sorted(levels)]
    step = _step_inside_limits(model, g, q, ordered, limited)
    reached = integrated(model, q, step)
    return {
        "q_next": _clamped(model, reached) if limited else reached,
        "errors": [x for e in errors for x in e],
        "squares": [dot(e, e) for e in errors],
        "merit": [0.5 * dot(e, e) for e, _ in ordered],
        "length": [sqrt(dot(step, step))],
    }


def _loads(g: Graph, name: str, entries: slice) -> Vector:
    return [g.load(name, i) for i in range(entries.start, entries.stop)]


def _step_inside_limits(
    model: Model, g: Graph, q: Vector, levels: Sequence[tuple[Vector, Matrix]], limited: bool
) -> Vector:
    """The step with joints held that stand at a limit and would go beyond."""
    mu = g.load("mu", 0)
    free: Vector = [1.0] * model.nv
    step = _priority_step(levels, mu)
    bounds = _bounds(model) if limited else ()
    if not bounds:
        return step
    for i, at, low, high in bounds:
        if low > -math.inf:
            free[i] = select(q[at], low, free[i], select(0.0, step[i], 0.0, free[i]))
        if high < math.inf:
            free[i] = select(high, q[at], free[i], select(step[i], 0.0, 0.0, free[i]))
    masked = [
        (e, [[x * f for x, f in zip(row, free, strict=True)] for row in rows]) for e, rows in levels
    ]
    return _priority_step(masked, mu)


def _bounds(model: Model) -> list[tuple[int, int, float, float]]:
    """Velocity, coordinate and limits of the joints whose steps are sums."""
    lower, upper = limits_with_followers(model)
    found = []
    for joint in (model.joints[name] for name in model.joint_names):
        if joint.joint_kind.is_euclidean:
            for i in range(joint.nv):
                at = joint.q_slice.start + i
                if lower[at] > -math.inf or upper[at] < math.inf:
                    found.append((joint.v_slice.start + i, at, lower[at], upper[at]))
    return found


def _clamped(model: Model, q: Vector) -> Vector:
    lower, upper = limits_with_followers(model)
    result = list(q)
    for i, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if low > -math.inf:
            result[i] = select(low, result[i], low, result[i])
        if high < math.inf:
            result[i] = select(result[i], high, high, result[i])
    return result


def _priority_step(levels: Sequence[tuple[Vector, Matrix]], mu: Scalar) -> Vector:
    """Damped least squares, each priority in the null space of those before it."""
    total = zeros(len(levels[0][1][0]))
    before: list[tuple[Matrix, SymmetricFactor]] = []
    for number, (e, rows) in enumerate(levels):
        damping = mu * (0.5 * dot(e, e)) + DAMPING_FLOOR
        left = minus(e, times(rows, total))
        diagonal = _diagonal(rows)
        if diagonal is not None:
            step = _diagonal_step(diagonal, left, before, damping)
        else:
            step = _damped_step([_projected(row, before) for row in rows], left, damping)
        total = plus(total, step)
        if number + 1 < len(levels):
            own = [_projected(row, before) for row in rows]
            before.append((own, _gram(own, DAMPING_FLOOR)))
    return total


def _diagonal(rows: Matrix) -> Vector | None:
    """The diagonal of a square matrix that has nothing else: the rows of a posture."""
    if len(rows) != len(rows[0]):
        return None
    apart = (x for i, row in enumerate(rows) for j, x in enumerate(row) if i != j)
    return None if any(not is_zero(x) for x in apart) else [row[i] for i, row in enumerate(rows)]


def _diagonal_step(
    diagonal: Vector, e: Vector, before: Sequence[tuple[Matrix, SymmetricFactor]], damping: Scalar
) -> Vector:
    """What a posture moves, joint by joint, of that what leaves A v = 0."""
    alone = [d * x / (d * d + damping) for d, x in zip(diagonal, e, strict=True)]
    return _projected(alone, before)


def _damped_step(rows: Matrix, e: Vector, damping: Scalar) -> Vector:
    """A*(A A* + λ)⁻¹ e, or (A*A + λ)⁻¹ A*e where that is smaller."""
    columns = transposed(rows)
    if len(rows) <= len(columns):
        return times(columns, _gram(rows, damping).solve(e))
    return _gram(columns, damping).solve(times(columns, e))


def _gram(rows: Matrix, damping: Scalar) -> SymmetricFactor:
    """A A* + λ, factored."""
    size = len(rows)
    entries: Matrix = [zeros(size) for _ in rows]
    for i in range(size):
        for j in range(i + 1):
            entries[i][j] = entries[j][i] = dot(rows[i], rows[j]) + (damping if i == j else 0.0)
    return SymmetricFactor(entries)


def _projected(row: Vector, before: Sequence[tuple[Matrix, SymmetricFactor]]) -> Vector:
    """The part of a row that keeps all priorities before: b - A*(A A* + floor)⁻¹ A b."""
    for basis, factor in before:
        row = minus(row, times(transposed(basis), factor.solve(times(basis, row))))
    return row


# -- errors and their rows


def _path_rows(
    steps: PathSteps, frame: str, point: Sequence[float]
) -> tuple[Matrix, Vector, Matrix, Matrix]:
    """Axes (3, 3) of a frame, place of a point of it, and its rows [angular], [linear] (3, nv)."""
    path = steps.path(frame)
    rotations = rotations_to_reference(path, "world_aligned")
    angular = [zeros(steps.model.nv) for _ in range(3)]
    linear = [zeros(steps.model.nv) for _ in range(3)]
    r: Vector = list(point)
    for step, R in zip(reversed(path), reversed(rotations), strict=True):
        for entry, axis in step.axes:
            turned = times(R, axis[:3])
            moved = times(R, plus(axis[3:], cross(axis[:3], r)))
            for i in range(3):
                angular[i][entry] = angular[i][entry] + turned[i]
                linear[i][entry] = linear[i][entry] + moved[i]
        r = step.point_inward(r)
    return rotations[-1], r, angular, linear


def _rotation_error(R: Matrix, goal: Matrix, angular: Matrix) -> tuple[Vector, Matrix]:
    """log(R° R*) in world axes, and J_r⁻¹ of it times the angular rows."""
    E = [[dot(a, b) for b in R] for a in goal]
    sines = scaled(0.5, [E[2][1] - E[1][2], E[0][2] - E[2][0], E[1][0] - E[0][1]])
    cosine = 0.5 * (E[0][0] + E[1][1] + E[2][2]) - 0.5
    sine = sqrt(dot(sines, sines) + SQUARED_ANGLE_FLOOR)
    ahead = arctan_ratio(sine, select(cosine, 0.0, cosine, -cosine))
    # Beyond a right angle: θ = π - arctan2(s, -c).
    ratio = select(cosine, 0.0, ahead, math.pi / sine - ahead)
    e = scaled(ratio, sines)
    square = dot(e, e)
    defect = HalfAngle(square).cotangent_defect
    columns = []
    for column in transposed(angular):
        across = cross(e, column)
        change = plus(scaled(0.5, across), scaled(defect, cross(e, across)))
        columns.append(plus(column, change))
    return e, transposed(columns)


def _pose(steps: PathSteps, target: TargetRows, goal: Vector) -> tuple[Vector, Matrix]:
    R, place, angular, linear = _path_rows(steps, target.frame, target.vector)
    rows = [goal[0:3], goal[4:7], goal[8:11]]
    turn, turning = _rotation_error(R, rows, angular)
    return [*turn, *minus([goal[3], goal[7], goal[11]], place)], [*turning, *linear]


def _position(steps: PathSteps, target: TargetRows, goal: Vector) -> tuple[Vector, Matrix]:
    _, place, _, linear = _path_rows(steps, target.frame, target.vector)
    return minus(goal, place), linear


def _orientation(steps: PathSteps, target: TargetRows, goal: Vector) -> tuple[Vector, Matrix]:
    R, _, angular, _ = _path_rows(steps, target.frame, target.vector)
    return _rotation_error(R, [goal[0:3], goal[3:6], goal[6:9]], angular)


def _axis(steps: PathSteps, target: TargetRows, goal: Vector) -> tuple[Vector, Matrix]:
    """The difference of two unit vectors: the axis moves by ω × a."""
    R, _, angular, _ = _path_rows(steps, target.frame, (0.0, 0.0, 0.0))
    axis = times(R, list(target.vector))
    rows = transposed([cross(column, axis) for column in transposed(angular)])
    return minus(goal, axis), rows


def _center_of_mass(steps: PathSteps, target: TargetRows, goal: Vector) -> tuple[Vector, Matrix]:
    center, rows = linear_momentum_and_center(steps)
    return minus(goal, center), rows


def _posture(steps: PathSteps, target: TargetRows, goal: Vector) -> tuple[Vector, Matrix]:
    """The step that leads there, joint by joint."""
    model = steps.model
    q: Vector = [steps.graph.load("q", i) for i in range(model.nq)]
    e = zeros(model.nv)
    for joint in (model.joints[name] for name in model.joint_names):
        ahead = joint.joint_kind.step_between(q[joint.q_slice], goal[joint.q_slice], GRAPH_OPS)
        e[joint.v_slice] = ahead
    return e, [[float(i == j) for j in range(model.nv)] for i in range(model.nv)]


TARGET_KINDS: dict[str, TargetKind] = {
    "pose": TargetKind(lambda model: 12, lambda model: (3, 3), _pose),
    "position": TargetKind(lambda model: 3, lambda model: (3,), _position),
    "orientation": TargetKind(lambda model: 9, lambda model: (3,), _orientation),
    "axis": TargetKind(lambda model: 3, lambda model: (3,), _axis),
    "center_of_mass": TargetKind(lambda model: 3, lambda model: (3,), _center_of_mass),
    "posture": TargetKind(lambda model: model.nq, lambda model: (model.nv,), _posture),
}
"""Kinds of targets; an own one is a row."""

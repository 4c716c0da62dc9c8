# SPDX-License-Identifier: BSD-3-Clause
"""Accelerations and loop wrenches for a user's arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from phistar import dynamics
from phistar.arguments import check_out, check_shapes, checked_state
from phistar.arrays import Array, DType
from phistar.compile import run_traced_results, traced_executable
from phistar.errors import (
    LoopVelocityError,
    RedundantWrenchWarning,
    SingularConfigurationWarning,
    SingularHingeError,
    UnknownNameError,
    first_index,
    sample_text,
    warn,
)
from phistar.loops.apart import ApartError, each_its_way, is_reported
from phistar.loops.assembly import open_loop_error, usual_rank
from phistar.loops.held import NOT_HELD as NOT_HELD
from phistar.loops.held import Held as Held
from phistar.loops.rank import (
    shortest_multipliers,
    singular_values,
)
from phistar.loops.routes import NEEDS_TREE_INERTIA, LoopProblem, accelerations
from phistar.loops.system import (
    LoopMotion,
    LoopSystem,
    RowsAtStates,
    loop_system,
    loop_wrenches,
    motion_at,
    refuse_complex,
    rows_at,
)
from phistar.loops.traced_rows import (
    OPEN_TOLERANCE,
    PRECISIONS,
    RATE_TOLERANCE,
    REST,
    dynamics_key,
    linearization_key,
    multipliers_key,
)
from phistar.loops.traced_rows import slack as within
from phistar.loops.uniqueness import COMPONENTS, UniqueComponents, uniqueness
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.singular import singular_hinges
from phistar.model.wrenches import Wrenches, check_batch, check_numbers
from phistar.reprs import one_line_repr

SINGULAR_TOLERANCE = 1e-6
"""σ_r/σ₁ below which a configuration is reported as singular."""
LOST_TOLERANCE = 1e-12
"""σ_r/σ₁ below which a row is nothing but rounding: results count it as missing."""


class LoopWrenches(dict[str, Array]):
    """Wrenches (..., 6) by loop; asking for one that is not determined warns.

    Attributes:
        components: For each loop which components of its wrench are determined.
    """

    def __init__(
        self,
        found: Mapping[str, Array] | None = None,
        components: Mapping[str, UniqueComponents] | None = None,
    ) -> None:
        super().__init__(found or {})
        self.components = dict(components or {})

    @property
    def unique(self) -> dict[str, Array]:
        """For each loop whether its whole wrench is determined, (...) booleans."""
        return {loop: np.all(x.values, axis=-1) for loop, x in self.components.items()}

    def __getitem__(self, loop: str) -> Array:
        if loop in self and (free := self.components[loop].undetermined):
            which = "" if len(free) == len(COMPONENTS) else f" in {', '.join(free)}"
            warn(
                f"the wrench of loop '{loop}' is not determined{which}: loops hold each other in "
                "tension that does not move the robot; this is the one of the shortest "
                "multipliers, and unique_components tells them apart",
                RedundantWrenchWarning,
            )
        if loop not in self:
            raise UnknownNameError("active loop joint", loop, self)
        return super().__getitem__(loop)


@one_line_repr
@dataclass(frozen=True)
class ConstrainedDynamics:
    """Accelerations and what the loops do: 𝓜v̇ + 𝒞 = τ + L*λ.

    Attributes:
        vdot: (..., nv) joint accelerations.
        wrenches: For each loop joint (..., 6) [moment; force] on the successor, at its frame, in
            its axes; one that is not determined is of least norm, and asking for it warns.
        joint_forces: (..., nv) L*λ, the loops' joint forces; always determined.
        multipliers: (..., rows), in the order of ``robot.loop_jacobian``'s rows; the shortest ones
            where they are not determined.
        unique: For each loop whether its multipliers are determined, (...) booleans.
        rank: Number of independent rows.
        unique_components: For each loop joint which components of its wrench are determined,
            (..., 6) booleans; ``["pin"]["fx"]``, ``["pin"].moment``.
    """

    vdot: Array
    wrenches: Mapping[str, Array] = field(repr=False)
    joint_forces: Array = field(repr=False)
    multipliers: Array = field(repr=False)
    unique: Mapping[str, Array] = field(repr=False)
    rank: int
    unique_components: Mapping[str, UniqueComponents] = field(default_factory=dict, repr=False)


@each_its_way
def forward_dynamics(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    wrenches: Wrenches | None = None,
    method: str = "auto",
    out: Array | None = None,
    held: Held = NOT_HELD,
) -> Array:
    """Joint accelerations (..., nv) on the loops."""
    result = None
    if method == "auto":
        by_code = results_by_code("forward_dynamics", model, q, v, tau, wrenches, held)
        result = None if by_code is None else by_code[1]["vdot"]
    if result is None:
        problem, dtype = posed(model, q, v, tau, wrenches, "forward_dynamics", method, held)
        result = _solved(problem, method).astype(dtype)
    if out is None:
        return result
    check_out(out, result.shape, result.dtype)
    np.copyto(out, result)
    return out


def results_by_code(
    purpose: str,
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    wrenches: Wrenches | None,
    held: Held,
) -> tuple[dict[str, Array], dict[str, Array]] | None:
    """Checked arrays, and results by machine code; None if that is not at hand, or some state is
    not on the loops.

    Args:
        purpose: Of ``_CODE``.
        model, q, v, tau, wrenches, held: As of the call.
    """
    if held.drives:
        return None
    arrays = check_shapes(model, q=q, v=v, tau=tau)
    precision = PRECISIONS.get(np.result_type(*arrays.values()).name)
    if precision is None:
        return None
    key = _CODE[purpose](precision, held.loops)
    pushed = arrays["tau"]
    if wrenches is not None:
        if traced_executable(model, key) is None:
            return None
        pushed = pushed + pushing(model, arrays["q"], wrenches)
    found = run_traced_results(model, key, arrays["q"], arrays["v"], pushed)
    return None if found is None else (arrays, found)


def pushing(model: Model, q: Array, wrenches: Wrenches) -> Array:
    """Joint forces (..., nv) of wrenches on frames of a robot's tree."""
    check_numbers(model, {"q": q}, wrenches)
    return dynamics.generalised_force(loop_system(model).tree, q, wrenches)


@each_its_way
def constrained_dynamics(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    wrenches: Wrenches | None = None,
    method: str = "auto",
    held: Held = NOT_HELD,
) -> ConstrainedDynamics:
    """Accelerations, loop wrenches and multipliers."""
    if method == "auto":
        by_code = results_by_code("constrained_dynamics", model, q, v, tau, wrenches, held)
        if by_code is not None:
            arrays, results = by_code
            vdot, system = results["vdot"], loop_system(model)
            states = np.broadcast_to(arrays["q"], (*vdot.shape[:-1], model.nq)).astype(float)
            at = rows_at(model, states)
            return _reactions(system, at, vdot, results["multipliers"], usual_rank(model))
        found = _accelerated(model, q, v, tau, wrenches, held)
        if found is not None:
            return found
    problem, dtype = posed(model, q, v, tau, wrenches, "constrained_dynamics", method, held)
    vdot = _solved(problem, method)
    system, rows = problem.system, problem.rows
    net = dynamics.inverse_dynamics(system.tree, problem.q, problem.v, vdot, wrenches) - problem.tau
    multipliers = shortest_multipliers(rows.L, problem.rank, net)
    return _reactions(system, rows, vdot.astype(dtype), multipliers, problem.rank)


def _accelerated(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    wrenches: Wrenches | None,
    held: Held,
) -> ConstrainedDynamics | None:
    """With accelerations by machine code, where rows depend on each other: the shortest of all
    multipliers that go with them are looked for here. None as of ``results_by_code``."""
    if not _takes_accelerations(model, held):
        return None
    by_code = results_by_code("forward_dynamics", model, q, v, tau, wrenches, held)
    if by_code is None:
        return None
    arrays, vdot = by_code[0], by_code[1]["vdot"]
    states, rates, pushed = (arrays[name].astype(float) for name in ("q", "v", "tau"))
    system, rank = loop_system(model), usual_rank(model)
    at = rows_at(model, np.broadcast_to(states, (*vdot.shape[:-1], model.nq)))
    net = dynamics.inverse_dynamics(system.tree, states, rates, vdot, wrenches) - pushed
    return _reactions(system, at, vdot, shortest_multipliers(at.L, rank, net), rank)


def _reactions(
    system: LoopSystem, rows: RowsAtStates, vdot: Array, multipliers: Array, rank: int
) -> ConstrainedDynamics:
    """What accelerations and multipliers mean, in the precision of the accelerations."""
    joint_forces = (np.swapaxes(rows.L, -1, -2) @ multipliers[..., None])[..., 0]
    found = loop_wrenches(system, rows.relative, multipliers)
    unique = uniqueness(system, rows.L, rows.relative, rank)
    dtype = vdot.dtype
    return ConstrainedDynamics(
        vdot,
        LoopWrenches({name: x.astype(dtype) for name, x in found.items()}, unique.components),
        joint_forces.astype(dtype),
        multipliers.astype(dtype),
        unique.loops,
        rank,
        unique.components,
    )


def posed(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    wrenches: Wrenches | None,
    purpose: str,
    method: str = "auto",
    held: Held = NOT_HELD,
) -> tuple[LoopProblem, DType]:
    """The problem of checked arguments, and the precision of its results.

    Args:
        model, q, v, tau, wrenches, method: As of the call.
        purpose: Its name.
        held: Loops that hold or drive frames wherever they are, so that they are never open.

    Raises:
        LoopOpenError, LoopVelocityError: A state is not on the loops.
    """
    arrays = checked_state(model, q=q, v=v, tau=tau)
    named = dict(zip(("q", "v", "tau"), arrays, strict=True))
    check_batch(model, named, wrenches)
    check_numbers(model, named, wrenches)
    refuse_complex(*arrays)
    dtype = np.result_type(*arrays, np.float32)
    precision = max(np.finfo(x.dtype).eps for x in arrays[:2])
    q, v, tau = (np.asarray(x, dtype=float) for x in arrays)
    rows = held.driven(model, motion_at(model, q, v))
    # First: samples that are named are those of the whole batch, before it is taken apart.
    require_on_loops(model, rows, v, purpose, precision, told=bool(held.drives))
    rank = present_rank(model, rows.L, purpose, held.rank)
    _refuse_singular_tree(model, method)
    if purpose in _CODE and method == "auto" and not held.drives and dtype.name in PRECISIONS:
        key = _CODE[purpose](PRECISIONS[dtype.name], held.loops)
        if purpose == "constrained_dynamics" and _takes_accelerations(model, held):
            key = dynamics_key(PRECISIONS[dtype.name], held.loops)
        _keep_code_apart(model, key, arrays[0], arrays[1], arrays[2], wrenches)
    problem = LoopProblem(model, q, v, tau, wrenches, rows, rank, -rows.bias)
    return problem, dtype


_Key = tuple[str, *tuple[object, ...]]
_CODE: Mapping[str, Callable[[str, Iterable[str]], _Key]] = {
    "forward_dynamics": dynamics_key,
    "constrained_dynamics": multipliers_key,
    "linearize": linearization_key,
}
"""Keys of the programs that may have been tried, by purpose."""


def _takes_accelerations(model: Model, held: Held) -> bool:
    """Whether there is no program of multipliers, so that accelerations come from machine code."""
    return not held.loops and traced_executable(model, multipliers_key("double")) is None


def _keep_code_apart(
    model: Model,
    key: _Key,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches | None,
) -> None:
    """Take a batch apart of which machine code has some samples: the others need another way."""
    code = traced_executable(model, key)
    if code is None:
        return
    push = tau if wrenches is None else tau + pushing(model, q, wrenches)
    found = code.try_run({"q": q, "v": v, "tau": push})
    if found is None:
        return
    # Where one result of a sample is not a number, all are.
    lost = np.asarray(~np.isfinite(found[0]["vdot"]).all(axis=-1))
    if lost.any() and not lost.all():
        raise ApartError(lost)


def _solved(problem: LoopProblem, method: str) -> Array:
    try:
        found = accelerations(problem, method)
    except np.linalg.LinAlgError:
        found = np.full(1, np.nan)
    if not np.isfinite(found).all():
        raise SingularHingeError(
            [
                f"robot '{problem.model.name}': a motion that keeps its loops moves no inertia; "
                "give its links mass"
            ]
        )
    return found


def _refuse_singular_tree(model: Model, method: str) -> None:
    """Ways that need the tree's inertias say so where one vanishes."""
    known = isinstance(method, str) and method in NEEDS_TREE_INERTIA
    if known and (hinges := singular_hinges(model)):
        raise SingularHingeError([*hinges, f"method {method!r} needs it; 'kkt' does not"])


def present_rank(model: Model, rows: Array, purpose: str, rank: int | None = None) -> int:
    """The rank with which L is used at states, warning where a configuration is singular."""
    rank = usual_rank(model) if rank is None else rank
    if not rank:
        return 0
    values, near = warn_where_singular(model, rows, purpose, rank)
    if near.any():
        first = np.maximum(values[..., 0], np.finfo(float).tiny)
        kept = (values > LOST_TOLERANCE * first[..., None]).sum(axis=-1)
        ranks = np.minimum(rank, np.where(near, kept, rank))
        if (ranks != ranks.flat[0]).any():
            raise ApartError(ranks)
        rank = int(ranks.flat[0])
    return rank


def warn_where_singular(model: Model, rows: Array, purpose: str, rank: int) -> tuple[Array, Array]:
    """Singular values of L without units, and where one that counts is small; said of the first.

    Args:
        model: The robot.
        rows: L (..., rows, nv).
        purpose: What is asked for.
        rank: Number of independent rows elsewhere, one or more.
    """
    system = loop_system(model)
    values = singular_values(system, rows)
    first = np.maximum(values[..., 0], np.finfo(float).tiny)
    ratio = values[..., rank - 1] / first
    near = np.asarray(ratio < SINGULAR_TOLERANCE)
    if near.any() and not is_reported():
        sample = first_index(near)
        motion = singular_motion(model, system, rows[sample], rank)
        warn(
            f"{purpose} of robot '{model.name}'{sample_text(sample)}: the configuration is "
            f"singular (σ_r/σ₁ = {ratio[sample]:.1e}): its loops also allow {motion}; results are "
            "accurate to about 1e-16 of the inverse of that ratio",
            SingularConfigurationWarning,
        )
    return values, near


def singular_motion(model: Model, system: LoopSystem, rows: Array, rank: int) -> str:
    """The motion that rows of one sample barely prevent, largest joints first."""
    V = np.linalg.svd(system.scaled(rows))[2]
    return describe_motion(model, V[rank - 1] * system.column_scale)


def describe_motion(model: Model, velocity: Array, limit: int = 4) -> str:
    """``joint 0.7, other -0.7`` of the largest entries of a velocity (nv,)."""
    names = coordinate_names(model)
    order = np.argsort(-np.abs(velocity))
    top = np.abs(velocity).max(initial=0.0)
    large = [k for k in order if abs(velocity[k]) > 0.05 * top][:limit]
    return "the motion " + ", ".join(f"{names[k]} {velocity[k]:+.2g}" for k in large)


def coordinate_names(model: Model) -> tuple[str, ...]:
    """A name per entry of v: the joint's, with a number where it has several."""
    found = []
    for name in model.joint_names:
        count = model.joints[name].joint_kind.nv
        found += [name] if count == 1 else [f"{name}[{i}]" for i in range(count)]
    return tuple(found)


def require_closed(model: Model, rows: RowsAtStates, purpose: str, precision: float) -> None:
    """Raise where a configuration is not on the loops.

    Args:
        model: The robot.
        rows: There.
        purpose: What is asked for.
        precision: Of the configuration.
    """
    system = loop_system(model)
    gap = np.abs(system.row_scale * rows.error).max(axis=-1, initial=0.0)
    if (bad := ~(gap <= within(OPEN_TOLERANCE, precision))).any():
        cure = "close it first: q = robot.assemble(q)"
        raise open_loop_error(model, rows.error, np.asarray(bad), purpose, cure)


def require_on_loops(
    model: Model,
    rows: LoopMotion,
    v: Array,
    purpose: str,
    precision: float,
    *,
    told: bool = False,
) -> None:
    """Raise where a state is not on the loops.

    Args:
        model: The robot.
        rows: At the states, relative to what is held or prescribed.
        v: (..., nv).
        purpose: What is asked for.
        precision: Of the states.
        told: Whether a motion is prescribed, for the cure.
    """
    system = loop_system(model)
    if not system.count:
        return
    slack = within(OPEN_TOLERANCE, precision)
    scaled = system.row_scale * rows.error
    gap = np.sqrt((scaled * scaled).sum(axis=-1))
    project = "robot.project(q, v, constraints=[...])" if told else "robot.project(q, v)"
    if (bad := ~(gap <= slack)).any():
        cure = f"close it first: q = robot.assemble(q), or {project}"
        raise open_loop_error(model, rows.error, np.asarray(bad), purpose, cure)
    rate = system.row_scale * rows.rate
    speeds = v / system.column_scale
    size = system.count * (speeds * speeds).sum(axis=-1)
    slack = within(RATE_TOLERANCE, precision)
    if (bad := ~((rate * rate).sum(axis=-1) <= slack**2 * size + REST**2)).any():
        sample = first_index(bad)
        row = int(np.argmax(np.abs(rate[sample])))
        raise LoopVelocityError(
            model.name,
            purpose,
            system.label(row),
            "velocities",
            float(np.abs(rows.rate[sample]).max()),
            np.asarray(bad),
            f"q, v = {project} gives the nearest state on the loops",
        )

# SPDX-License-Identifier: BSD-3-Clause
"""Steps of a robot with loops: rates on the loops, the state projected onto them after each step.

The number of independent rows is that of regular configurations, never decided anew at stages,
where loops are a little open; see ``loops.rank``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from phistar.arguments import number_rows
from phistar.arrays import Array
from phistar.backends.policy import LoopWork
from phistar.compile import (
    TRACED,
    RequestKey,
    Traced,
    add_traced,
    joint_map,
    run_traced,
    run_traced_results,
    traced_executable,
)
from phistar.errors import LoopOpenError, LoopVelocityError
from phistar.joint_physics.implicit import SMOOTH_PARTS, implicit_numbers
from phistar.loops.assembly import on_loops_inputs, projection_step, usual_rank
from phistar.loops.constrained_dynamics import pushing, require_on_loops
from phistar.loops.held import NOT_HELD, Drives, Held
from phistar.loops.routes import LoopProblem, accelerations
from phistar.loops.system import motion_at
from phistar.loops.traced_rows import (
    ANYWHERE,
    GAP_AFTER_WHICH_CLOSED,
    LARGEST_GAP_TO_CLOSE,
    PROJECTION_ITERATIONS,
    PROJECTIONS_IN_STEP,
    anywhere_dynamics,
    dynamics_key,
    loop_work,
)
from phistar.model.model import Model
from phistar.model.model_cache import entries
from phistar.sim.divergence import parking_configuration
from phistar.sim.loop_rollout import LoopLevels, make_loop_rollouts, rates_key
from phistar.sim.numpy_stepper import NumpyStepper
from phistar.sim.schemes import SCHEMES, EvaluateRates, Scheme
from phistar.sim.stepper import Stepper, SteppingOptions
from phistar.sim.variables import RatePrograms, Velocity
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled

_ABOVE_ZERO = sys.float_info.min


@dataclass(frozen=True)
class LoopVelocity(Velocity):
    """x = v on the loops.

    Attributes:
        drives: Motion that is prescribed in time.
        implicit_dt: Length of the step [s], or (..., 1), where springs and dampers push as they do
            at its end; None: as they do at each stage.
    """

    drives: Drives | None = None
    implicit_dt: float | Array | None = None

    @property
    def differs(self) -> bool:
        """See ``Variable``; drives tell of all samples."""
        return super().differs or self.drives is not None

    def held_at(self, t: float | Array) -> Held:
        """Motion that is told at a time."""
        return NOT_HELD if self.drives is None else self.drives.at(t)

    def of_samples(self, chosen: Array) -> Self:
        """See ``Variable``."""
        part = super().of_samples(chosen)
        return part if self.drives is None else replace(part, drives=self.drives.of_samples(chosen))

    @property
    def is_free(self) -> bool:
        """Whether nothing but joint forces and the loops act on it."""
        return self.wrenches is None and self.drives is None

    @property
    def program(self) -> RatePrograms | None:
        """None: its rates are no single program."""
        return None

    def rate(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array]:
        """v and forward dynamics on the loops."""
        return self.rate_at(q, x, tau, 0.0)

    def rate_at(self, q: Array, x: Array, tau: Array, t: float) -> tuple[Array, Array]:
        """The same, moving as it is told at time t."""
        held = self.held_at(t)
        dt = self.implicit_dt
        if self.wrenches is not None:
            tau = tau + pushing(self.model, q, self.wrenches)
        if dt is not None and self.drives is None:
            key = ("loop_implicit_dynamics", self.smooth)
            found = run_traced(self.model, key, q, x, tau, np.atleast_1d(dt))
            if found is not None:
                return x, found
        total = self.total_force(q, x, tau)
        if dt is None:
            return x, loop_accelerations(self.model, q, x, total, held)
        added, K = implicit_numbers(self.model, self.smooth, dt)
        total = total - (dt * K) * x
        return x, loop_accelerations(self.model, q, x, total, held, added)

    @property
    def settles(self) -> bool:
        """Steps leave the loops a little open."""
        return True

    def settle(self, q: Array, x: Array, t: float | Array) -> tuple[Array, Array]:
        """The nearest state on the loops; NaN where none is found, or the state is not finite."""
        held = self.held_at(t)
        fine = np.asarray(np.isfinite(q).all(axis=-1) & np.isfinite(x).all(axis=-1))
        if fine.all():
            return onto_loops(self.model, q, x, held)
        chosen = fine[..., None]
        if self.drives is not None:  # which tell of all samples
            q = np.where(chosen, q, parking_configuration(self.model))
            q, x = onto_loops(self.model, q, np.where(chosen, x, 0.0), held)
            return np.where(chosen, q, np.nan), np.where(chosen, x, np.nan)
        q, x = (np.where(chosen, each, np.nan) for each in (q, x))
        if fine.any():
            q[fine], x[fine] = onto_loops(self.model, q[fine], x[fine])
        return q, x


def loop_accelerations(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    held: Held = NOT_HELD,
    added: Array | None = None,
) -> Array:
    """v̇ (..., nv) at states that may be a little off the loops.

    ``added``: more inertia of joints (..., nv).
    """
    if not held.drives and added is None:
        key = dynamics_key(ANYWHERE)
        entry = entries(model).get(key)
        found = None if entry is None else entry(q, v, tau)
        if found is None:
            found = run_traced(model, key, q, v, tau)
        if found is not None:
            return found
    rows = held.driven(model, motion_at(model, q, v))
    rank = usual_rank(model) if held.rank is None else held.rank
    return accelerations(LoopProblem(model, q, v, tau, None, rows, rank, -rows.bias, added))


def accelerates_on_loops(model: Model, q: Array, v: Array, tau: Array) -> bool:
    """Whether machine code finds all states, in double precision, on the loops; quick."""
    key = dynamics_key("double")
    entry = entries(model).get(key)
    if entry is not None and entry(q, v, tau) is not None:
        return True
    return run_traced(model, key, q, v, tau) is not None


def samples_off_loops(
    model: Model,
    q: Array,
    v: Array,
    precision: float,
    chosen: Array | None = None,
    held: Held = NOT_HELD,
) -> Array:
    """Which samples (batch,) are not on the loops, or not as they are told.

    Args:
        model: The robot.
        q, v: (batch, nq), (batch, nv).
        precision: Of their numbers.
        chosen: Those to look at, finite, by number; None: all.
        held: Motion that is told, of all samples.
    """
    bad = np.zeros(len(q), dtype=bool)
    left = np.arange(len(q)) if chosen is None else chosen
    while left.size:
        q_left, v_left = q[left], v[left]
        rows = held.at_knots(left).driven(model, motion_at(model, q_left, v_left))
        try:
            require_on_loops(model, rows, v_left, "simulate", precision)
        except (LoopOpenError, LoopVelocityError) as error:
            bad[left] = error.bad
            left = left[~bad[left]]
        else:
            break
    return bad


def onto_loops(model: Model, q: Array, v: Array, held: Held = NOT_HELD) -> tuple[Array, Array]:
    """The nearest state (..., nq), (..., nv) on the loops, from nearby; NaN where none is found.

    By machine code or, in the same steps and where a motion is prescribed, by NumPy.
    """
    rank = usual_rank(model) if held.rank is None else held.rank
    closed: Array = np.zeros(np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), dtype=bool)
    for _ in range(PROJECTION_ITERATIONS):
        found = None if held.drives else run_traced_results(model, ("loop_projection",), q, v)
        if found is not None:
            ahead = found["q_next"], found["v_next"]
            gap = found["gap"][..., 0]
        else:
            q_next, v_next, gap = projection_step(model, q, v, rank, held)
            ahead = q_next, v_next
        # What is closed stays, however many steps the others need.
        q, v = (np.where(closed[..., None], *x) for x in zip((q, v), ahead, strict=True))
        closed = closed | (gap < GAP_AFTER_WHICH_CLOSED**2)
        if closed.all():
            return q, v
    lost = ~closed & ~(gap < LARGEST_GAP_TO_CLOSE**2)
    return np.where(lost[..., None], np.nan, q), np.where(lost[..., None], np.nan, v)


class LoopStepper(NumpyStepper):
    """Steps of a scheme, each followed by a projection: in one program where that is compiled.

    Args:
        model, variable, options: As of ``NumpyStepper``.
    """

    def __init__(self, model: Model, variable: LoopVelocity, options: SteppingOptions) -> None:
        super().__init__(model, variable, options)
        self.cost_ns = 2e5
        self._has_program = variable.is_free
        if variable.drives is not None:
            self.failure_text = "cannot move as prescribed, or diverges: no state"

    def step(self, q: Array, x: Array, tau: Array, dt: float, t: float) -> tuple[Array, Array]:
        """One step; samples that diverge in it are NaN after it."""
        if self._has_program:
            rows = number_rows(dt, len(q))
            smooth = self.variable.smooth
            ahead = step_by_program(self.model, self.scheme, q, x, tau, rows, smooth)
            if ahead is not None:
                return ahead
        return self.variable.settle(*super().step(q, x, tau, dt, t), t + dt)


def make_loop_stepper(model: Model, variable: LoopVelocity, options: SteppingOptions) -> Stepper:
    """What takes steps on the loops; much work waits for machine code, and goes that way."""
    numpy = LoopStepper(model, variable, options)
    if options.work < POLICY.min_loop_steps_to_wait or not variable.is_free:
        return numpy
    scheme, smooth = options.scheme, variable.smooth
    if rollouts := make_loop_rollouts(model, scheme, options.threads, smooth):
        return LoopLevels(rollouts, numpy)
    _wait_for_code(model, scheme, smooth)
    return numpy


def step_key(scheme: Scheme, smooth: tuple[str, ...]) -> RequestKey:
    """Key of the program of a step that tells how far open the loops were."""
    key: RequestKey = ("loop_step", scheme.name, False)
    return (*key, smooth) if smooth else key


def step_by_program(
    model: Model,
    scheme: Scheme,
    q: Array,
    v: Array,
    tau: Array,
    dt: Array,
    smooth: tuple[str, ...] = (),
) -> tuple[Array, Array] | None:
    """A step and its projection by machine code, if that is at hand; NaN where loops stay open.

    Args:
        model: The robot.
        scheme: Of the step.
        q, v, tau: (..., nq), (..., nv), (..., nv) in double precision, on the loops.
        dt: (..., 1) [s].
        smooth: Springs and dampers that push.
    """
    key = step_key(scheme, smooth)
    entry = entries(model).get(key)
    found: Mapping[str, Array] | None = None if entry is None else entry(q, v, tau, dt)  # type: ignore[assignment]
    if found is None:
        found = run_traced_results(model, key, q, v, tau, dt)
    if found is None:
        return None
    q, v = found["q_next"], found["v_next"]
    wide = np.asarray(~(found["gap"][..., 0] < GAP_AFTER_WHICH_CLOSED**2))
    if wide.any():
        q[wide], v[wide] = onto_loops(model, q[wide], v[wide])
    return q, v


def _wait_for_code(model: Model, scheme: Scheme, smooth: tuple[str, ...]) -> None:
    """Have what takes the steps compiled."""
    whole = traced_executable(model, step_key(scheme, smooth))
    dynamics = traced_executable(model, rates_key(scheme, smooth))
    parts = [whole] if whole else [dynamics, traced_executable(model, ("loop_projection",))]
    for code in parts:
        if code is not None:
            _ = code.scalars  # of the final shape, which is waited for


def _trace(model: Model, scheme: str, guarded: bool, parts: tuple[str, ...] = ()) -> Unrolled:
    from phistar.scalar.graph import Graph, guard
    from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
    from phistar.scalar.trace.inline import inline
    from phistar.sim.step_program import step_program

    heavier = parts if SCHEMES[scheme].implicit else ()
    step = step_program(model, SCHEMES[scheme], anywhere_dynamics(model, heavier), parts)
    projection = TRACED["loop_projection"].trace(model)
    g = Graph()
    inputs = step.signature.inputs
    given = {name: [g.load(name, i) for i in range(size)] for name, size in inputs.items()}
    found = inline(step, given)
    q, v = found["q_next"], found["v_next"]
    for _ in range(PROJECTIONS_IN_STEP):
        ahead = inline(projection, {"q": q, "v": v})
        q, v = ahead["q_next"], ahead["v_next"]
    results = {"q_next": q, "v_next": v, "gap": ahead["gap"]}
    if guarded:
        # Zero, or not a number if the last projection began too far away.
        slack = LARGEST_GAP_TO_CLOSE**2 - ahead["gap"][0]
        closed = guard(slack, _ABOVE_ZERO) - slack
        results = {"q_next": [x + closed for x in q], "v_next": [x + closed for x in v]}
    stores = [Store(name, i, "", x) for name, row in results.items() for i, x in enumerate(row)]
    outputs = {name: len(row) for name, row in results.items()}
    signature = Signature(dict(inputs), outputs, step.signature.quaternions)
    return Unrolled(signature, BasicBlock(g, stores))


def _implicit_dynamics(model: Model, parts: tuple[str, ...]) -> Unrolled:
    from phistar.scalar.trace.implicit_programs import implicit_dynamics

    return implicit_dynamics(model, parts, anywhere_dynamics(model, parts))


def _implicit_work(model: Model, parts: tuple[str, ...]) -> LoopWork | None:
    """None with mimic joints, whose programs are in other coordinates."""
    return loop_work(model) if joint_map(model).is_identity else None


def _shapes(
    model: Model, scheme: str, guarded: bool, parts: tuple[str, ...] = ()
) -> dict[str, tuple[int, ...]]:
    state: dict[str, tuple[int, ...]] = {"q_next": (model.nq,), "v_next": (model.nv,)}
    return state if guarded else {**state, "gap": (1,)}


def _work(model: Model, scheme: str, guarded: bool, parts: tuple[str, ...] = ()) -> LoopWork | None:
    """Dynamics at the stages and projections, each with all rows; None as for dynamics."""
    found = loop_work(model)
    if found is None or not joint_map(model).is_identity:
        return None
    told = SCHEMES[scheme].instructions
    stages = sum(isinstance(p, EvaluateRates) and not p.velocity_only for p in told)
    rows = found.rows * (stages + 2 * PROJECTIONS_IN_STEP)
    short = len(model.bodies) * rows <= POLICY.max_step_link_loop_rows
    return LoopWork(rows) if short else None


def _on_loops_inputs(model: Model, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs on the loops, with steps of up to 2 ms."""
    share = 1.0 / (1.0 + np.abs(inputs["dt"]))
    return {**on_loops_inputs(model, inputs), "dt": 2e-3 * share}


add_traced(
    Traced(
        "loop_step",
        ("q", "v", "tau", "dt"),
        _shapes,
        _trace,
        _work,
        choices={"scheme": "semi_implicit", "guarded": True, "parts": ()},
        admit=_on_loops_inputs,
        defined="a step of time on the loops: stages of a scheme, then q and v projected",
    )
)
add_traced(
    Traced(
        "loop_implicit_dynamics",
        ("q", "v", "tau", "dt"),
        lambda model, parts: {"vdot": (model.nv,)},
        _implicit_dynamics,
        _implicit_work,
        choices={"parts": SMOOTH_PARTS},
        admit=_on_loops_inputs,
        defined="(𝓜 + dt B + dt² K)v̇ = τ - K e - B v - dt K v - 𝒞 + L*λ, Lv̇ = -L̇v",
    )
)

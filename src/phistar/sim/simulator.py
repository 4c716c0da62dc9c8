# SPDX-License-Identifier: BSD-3-Clause
"""Many robots at once, step by step: ground, joint physics, sensors, resets."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import checked_state, refuse_singular, require_count, require_real
from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.memory_limits import refuse_large
from phistar.model.configuration import Coordinates, integrate
from phistar.model.floating_roots import floating_roots
from phistar.model.joint_physics import passive_parts
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.scalar.trace.unilateral_rows import StepRows
from phistar.sim.batch_state import BatchState
from phistar.sim.contact_pairs import Pair, contact_pairs
from phistar.sim.contact_points import ContactPoints
from phistar.sim.contact_report import Contacts, contacts_of
from phistar.sim.contact_stepper import make_contact_stepper
from phistar.sim.divergence import diverged_samples, refuse_lost_samples
from phistar.sim.joint_rows import used_parts
from phistar.sim.law_calls import Controller
from phistar.sim.live_view import ShownLive
from phistar.sim.loop_stepper import LoopVelocity
from phistar.sim.sample_choice import chosen_samples, random_rows, rows_for_samples
from phistar.sim.schemes import SCHEMES, SEMI_IMPLICIT
from phistar.sim.sensors import HasSensors
from phistar.sim.simulator_laws import SimulatorLaw
from phistar.sim.simulator_options import (
    SimulatorOptions,
    SimulatorState,
)
from phistar.sim.simulator_starts import off_loops, warn_of_penetrations
from phistar.sim.smooth_stepper import make_smooth_stepper
from phistar.sim.step_forces import StepForces
from phistar.sim.step_linearization import StepLinearization, linearize_step
from phistar.sim.stepper import Stepper, SteppingOptions, StepSpan
from phistar.sim.unilateral_row import impulse_count, joint_rows, refuse_many
from phistar.sim.variables import Velocity
from phistar.thresholds import POLICY

Policy = Callable[[Array, Array, Array], ArrayLike]
"""Configurations (batch, nq), velocities (batch, nv), times (batch,) -> joint forces."""


_CARRIED = ("_state", "_time", "_frozen", "_resets", "_begun", "_before", "_elapsed")


class Simulator(StepForces, HasSensors, ShownLive):
    """A batch of one robot in time; made by ``robot.simulator(...)``.

    Attributes:
        batch: Number of robots.
        dt: Length of a step [s].
        unused_shapes: Collision shapes that touch nothing, and why.
    """

    def __init__(self, robot: Any, batch: int, options: SimulatorOptions) -> None:
        options.check()
        self.batch = require_count("batch", batch, "the number of robots, 1 or more")
        self._robot = robot
        self._model: Model = robot.model
        self._options = options
        self.dt = float(options.dt)
        refuse_singular(self._model)
        found = contact_pairs(
            self._model,
            options.ground,
            options.points,
            options.friction,
            options.restitution,
            options.self_contact,
        )
        self._pairs: tuple[Pair, ...] = found.pairs
        self.unused_shapes = found.unused
        rows = self._step_rows(found.pairs)
        self._smooth, _ = used_parts(self._model, options.passive)
        self._points = ContactPoints(self._model, rows, found.pairs)
        floats = options.has_row_step and bool(floating_roots(self._model))
        self._has_rows = bool(rows.contacts or rows.joints) or floats
        self._stepper = self._make_stepper(rows)
        self._bounded = rows.bounded
        self._joint_count = len(rows.bounded)
        model, n, count = self._model, self.batch, impulse_count(rows)
        refuse_large(
            f"states of {n:,} robots '{model.name}' in a simulator",
            8 * n * (model.nq + model.nv + count),
            "take fewer at a time",
        )
        impulses = np.zeros((n, count))
        self._state = BatchState(np.empty((n, model.nq)), np.zeros((n, model.nv)), impulses)
        self._time, self._frozen = np.zeros(n), np.zeros(n, dtype=bool)
        self._resets = np.zeros(n, dtype=int)
        self._begun = np.zeros(n, dtype=bool)
        self._before, self._elapsed = self._state.v, self.dt
        self._law: SimulatorLaw | None = None
        self.reset()

    def __reduce__(self) -> tuple[Callable[..., Simulator], tuple[object, ...]]:
        """What it is made of and the state it is in; programs are made again where it arrives."""
        own = {name: copy.deepcopy(getattr(self, name)) for name in _CARRIED}
        return _as_it_was, (self._robot, self.batch, self._options, own)

    def _step_rows(self, pairs: Sequence[Pair]) -> StepRows:
        joints = joint_rows(self._model, passive_parts(self._options.passive))
        sweeps = self._options.sweeps or POLICY.contact_sweeps
        return StepRows(joints, tuple(pair.row for pair in pairs), sweeps)

    def _make_stepper(self, rows: StepRows) -> Stepper:
        """What takes the steps.

        Raises:
            ArgumentError: There are too many rows, or another scheme.
        """
        model, options = self._model, self._options
        scheme = SEMI_IMPLICIT if options.has_row_step else SCHEMES[options.scheme]
        stepping = SteppingOptions(
            scheme,
            POLICY.simulator_steps * self.batch,
            options.threads,
            keep_going=options.on_error == "freeze",
        )
        if not self._has_rows:
            closed = bool(active_loops(model.loops))
            variable = LoopVelocity(model) if closed else Velocity(model)
            return make_smooth_stepper(model, variable, stepping)
        options.require_scheme(rows)
        refuse_many(model, len(rows.contacts), len(rows.bounded))
        return make_contact_stepper(self._points, self._smooth, stepping)

    @property
    def engine(self) -> str:
        """What takes the steps: ``"machine code"``, or ``"numpy loop"``."""
        return self._stepper.engine

    @property
    def state(self) -> SimulatorState:
        """A copy of the state."""
        state = self._state
        return SimulatorState(
            state.q.copy(), state.v.copy(), self._time.copy(), self._frozen.copy()
        )

    @property
    def q(self) -> Array:
        """(batch, nq), a copy."""
        return self._state.q.copy()

    @property
    def v(self) -> Array:
        """(batch, nv), a copy."""
        return self._state.v.copy()

    def reset(
        self,
        mask: ArrayLike | None = None,
        q: Coordinates | None = None,
        v: Coordinates | None = None,
        *,
        spread: float = 0.0,
    ) -> SimulatorState:
        """Put samples into a state; impulses, times and ``frozen`` of these begin anew.

        Args:
            mask: (batch,) booleans, or numbers of samples; None: all.
            q: (nq,), (samples, nq) or (batch, nq); None: the robot's home, its loops closed.
            v: The same of velocities; None: at rest.
            spread: Standard deviation of a random step of q and v [rad, m; per s]. What a sample
                gets depends on ``seed``, its number and how often it was reset, on nothing else.
                Robots with loops are then put into the nearest state on them.

        Raises:
            ShapeError: A shape fits neither the samples nor the batch.
            NotFiniteError, QuaternionError: A number is not finite, a quaternion not unit.
            LoopOpenError: Loops cannot be closed near a random state.
        """
        chosen = chosen_samples(mask, self.batch, self._owner)
        model, state = self._model, self._state
        given_q = self._home if q is None else q
        given_v = np.zeros(model.nv) if v is None else v
        checked = dict(zip("qv", checked_state(model, q=given_q, v=given_v), strict=True))
        require_real(**checked)
        new_q, new_v = (
            rows_for_samples(name, given, chosen, self.batch, self._owner)
            for name, given in checked.items()
        )
        self._resets[chosen] += 1
        if spread:
            rows = spread * random_rows(self._options.seed, chosen, self._resets, model.nv)
            new_q, new_v = integrate(model, new_q, rows[:, 0]), new_v + rows[:, 1]
            if active_loops(model.loops):
                new_q, new_v = self._robot.project(new_q, new_v)
        for array, values in ((state.q, new_q), (state.v, new_v), (state.impulses, 0.0)):
            array[chosen] = values
        self._time[chosen], self._frozen[chosen] = 0.0, False
        self._before = np.array(self._before)
        self._before[chosen] = state.v[chosen]
        self._begun[chosen] = True
        self._tell_viewers()
        return self.state

    @cached_property
    def _home(self) -> Array:
        """The robot's home, on its loops."""
        home: Array = self._robot.home
        return self._robot.assemble(home) if active_loops(self._model.loops) else home

    def _look_at_starts(self) -> None:
        """Look at the samples that were reset since the last step."""
        chosen = np.flatnonzero(self._begun & ~self._frozen)
        self._begun[:] = False
        if not chosen.size:
            return
        model, q, v = self._model, self._state.q[chosen], self._state.v[chosen]
        if active_loops(model.loops):
            self._frozen[chosen] = off_loops(model, q, v, self._options.on_error == "freeze")
        if self._pairs:
            warn_of_penetrations(self._points.at(q, v)["gap"], self._pairs, chosen)

    def step(
        self,
        tau: Coordinates | Controller | None = None,
        *,
        ctrl: ArrayLike | None = None,
        substeps: int = 1,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
    ) -> SimulatorState:
        """Take the batch through time.

        Args:
            tau: (nv,) or (batch, nv) joint forces [N m, N], held; none by default. Or a law,
                regulator or feedback of ``phistar.control``, whose forces are found afresh in each
                step, by one call for the whole batch, in machine code where it has a program
                (``law_engine`` tells); the goals of one that follows a motion are counted from the
                last reset of each sample.
            ctrl: (nu,) or (batch, nu) signals of the robot's actuators, whose forces (clamped, see
                ``robot.actuators``) are found afresh in each step and added.
            substeps: Steps of ``dt``.
            forces: External wrenches (..., 6) on named frames; what they are as joint forces at
                the beginning is held.
            reference: Axes and point of those wrenches.

        Returns:
            The state after it.

        Raises:
            DivergenceError: A sample is no longer finite, unless ``on_error="freeze"``.
            NotFiniteError: A joint force is not finite, unless ``on_error="freeze"``.
        """
        count = require_count("substeps", substeps)
        if self._begun.any():
            self._look_at_starts()
        law = tau if isinstance(tau, Controller) else None
        held = self._forces(None if isinstance(tau, Controller) else tau, forces, reference)
        if law is None and ctrl is None:
            self._take(held, count)
        else:
            for _ in range(count):
                total = held if law is None else held + self._law_forces(law)
                self._take(total if ctrl is None else total + self._actuated(ctrl), 1)
        self._tell_viewers()
        return self.state

    def run(self, policy: Policy | Controller, steps: int, *, substeps: int = 1) -> SimulatorState:
        """Steps under a policy, which is called once a step for the whole batch.

        Args:
            policy: q (batch, nq), v (batch, nv), time (batch,) -> tau (nv,) or (batch, nv); or a
                law, regulator or feedback, as in ``step``.
            steps: Calls of the policy.
            substeps: Steps of ``dt`` under what a call gives.
        """
        for _ in range(steps):
            if isinstance(policy, Controller):
                tau: ArrayLike = self._law_forces(policy)
            else:
                tau = policy(self.q, self.v, self._time.copy())
            self.step(np.asarray(tau), substeps=substeps)
        return self.state

    def linearize(self, tau: Coordinates | None = None) -> StepLinearization:
        """The next step of ``dt`` and its derivatives, without taking it: A and B of the batch.

        Contacts, friction and stops act as they do in that step: sticking ones as equations on
        velocities, sliding ones by Coulomb's law. ``found.sets`` says which, ``found.smooth`` is
        false for samples where another set is near. Derivatives are those of the exact solution, so
        the solver has to come near it (``sweeps=``).

        Args:
            tau: (nv,) or (batch, nv) joint forces [N m, N]; none by default.

        Raises:
            ArgumentError: The robot has closed loops, or steps by another scheme.
            DivergenceError: A sample is not finite after the step.
        """
        if active_loops(self._model.loops):
            raise ArgumentError(
                f"robot '{self._model.name}' has closed loops, for which there are no derivatives "
                "of steps with contacts and joint physics; use robot.discretize"
            )
        if not self._options.has_row_step:
            raise ArgumentError(
                f"linearize is for scheme '{SEMI_IMPLICIT.name}', not '{self._options.scheme}'; "
                "use that"
            )
        total = self._forces(tau, None, "world_aligned")
        ahead = self._ahead(total, 1)
        lost = diverged_samples(ahead.q, ahead.v, ahead.impulses)
        refuse_lost_samples(lost, self._time + self.dt, 1)
        joints = tuple(self._joint_name(row.v) for row in self._bounded)
        names = (*joints, *(f"{pair.name} on {pair.surface}" for pair in self._pairs))
        return linearize_step(self._points, self.dt, self._smooth, self._state, total, ahead, names)

    def _ahead(self, tau: Array, steps: int) -> BatchState:
        """The state after some steps under joint forces that are held."""
        state = self._state
        arrays = [state.q, state.v, *([state.impulses] if self._has_rows else [])]
        results = tuple(np.empty((1, *each.shape)) for each in arrays)
        span = StepSpan.of_batch((state.q, state.v), tau, self.dt, steps, steps, results)
        self._stepper.run(replace(span, impulses=state.impulses if self._has_rows else None))
        q, v, *impulses = (each[0] for each in results)
        return BatchState(q, v, impulses[0] if impulses else state.impulses.copy())

    def _take(self, tau: Array, substeps: int) -> None:
        before, moving = self._state, ~self._frozen
        ahead = self._ahead(tau, substeps)
        lost = diverged_samples(ahead.q, ahead.v, ahead.impulses) & moving
        if self._options.on_error == "raise":
            refuse_lost_samples(lost, self._time + substeps * self.dt, substeps)
        stays = lost | self._frozen
        if stays.any():
            ahead.q[stays], ahead.v[stays] = before.q[stays], before.v[stays]
            ahead.impulses[stays] = 0.0
            self._frozen = stays
        self._before, self._elapsed = before.v, substeps * self.dt
        self._state = ahead
        self._time = np.where(stays, self._time, self._time + substeps * self.dt)

    @property
    def contacts(self) -> Contacts:
        """Forces, gaps and slip of all pairs that may touch, by name.

        Raises:
            ArgumentError: Nothing may touch.
        """
        if not self._pairs:
            unused = f"; not used: {', '.join(self.unused_shapes)}" if self.unused_shapes else ""
            raise ArgumentError(
                f"robot '{self._model.name}' touches nothing here: ground is "
                f"{self._options.ground!r}, and none of its shapes touches the world or another "
                f"tree{unused}. Give ground=, or name frames as points=."
            )
        return self._contacts_at(self._state)

    def _contacts_at(self, state: BatchState) -> Contacts:
        """What touches at states of some samples, and forces of the step that led there."""
        impulses = state.impulses[:, self._joint_count :]
        impulses = impulses.reshape(len(impulses), len(self._pairs), 3)
        found = self._points.at(state.q, state.v)
        return contacts_of(self._pairs, impulses, self.dt, found)

    def __repr__(self) -> str:
        pairs = f"{len(self._pairs)} pairs that may touch"
        return (
            f"<Simulator: {self.batch} x '{self._model.name}', dt {self.dt:g} s, {pairs}, "
            f"{self._joint_count} joints that rub or stop, {self.engine}>"
        )


def _as_it_was(
    robot: object, batch: int, options: SimulatorOptions, own: dict[str, object]
) -> Simulator:
    """A simulator that came from elsewhere, ready for its next step."""
    sim = Simulator(robot, batch, options)
    vars(sim).update(own)
    return sim

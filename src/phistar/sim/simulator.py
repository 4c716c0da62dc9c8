# SPDX-License-Identifier: BSD-3-Clause
"""Many robots at once, step by step: ground, joint physics, sensors, resets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phistar import dynamics
from phistar.arguments import checked_state, refuse_singular
from phistar.arrays import Array
from phistar.errors import (
    ArgumentError,
    DivergenceError,
    PenetrationWarning,
    ShapeError,
    UnknownNameError,
    warn,
)
from phistar.joint_physics.actuator_forces import Actuators
from phistar.model.configuration import Coordinates, integrate, read_coordinates, require_finite
from phistar.model.joint_physics import Passive, passive_parts
from phistar.model.model import Model
from phistar.model.wrenches import check_wrenches
from phistar.reprs import one_line_repr
from phistar.scalar.trace.unilateral_rows import StepRows
from phistar.sim.contact_pairs import Ground, Pair, contact_pairs
from phistar.sim.contact_report import Contacts, contacts_of
from phistar.sim.contact_stepper import BatchState, ContactStepper
from phistar.sim.divergence import diverged_samples
from phistar.sim.schemes import SCHEMES
from phistar.sim.sensors import HasSensors
from phistar.sim.step import step as plain_step
from phistar.sim.unilateral_row import impulse_count, joint_rows
from phistar.thresholds import POLICY

ON_ERROR = ("raise", "freeze")
CONTACT_SCHEME = "semi_implicit"

Policy = Callable[[Array, Array, Array], ArrayLike]
"""Configurations (batch, nq), velocities (batch, nv), times (batch,) -> joint forces."""


@one_line_repr
@dataclass(frozen=True)
class SimulatorState:
    """The state of a batch.

    Attributes:
        q: (batch, nq).
        v: (batch, nv).
        time: (batch,) since the last reset [s].
        frozen: (batch,) booleans: samples that diverged and wait for a reset.
    """

    q: Array
    v: Array
    time: Array
    frozen: Array


@dataclass(frozen=True)
class SimulatorOptions:
    """What a simulator is made of; see ``Robot.simulator``."""

    dt: float
    scheme: str = CONTACT_SCHEME
    ground: Ground = True
    passive: Passive = True
    points: Sequence[str] | Mapping[str, float] = ()
    friction: float | None = None
    restitution: float | None = None
    sweeps: int | None = None
    seed: int = 0
    on_error: str = "raise"
    threads: int | None = None


class Simulator(HasSensors):
    """A batch of one robot in time; made by ``robot.simulator(...)``.

    Attributes:
        batch: Number of robots.
        dt: Length of a step [s].
        unused_shapes: Collision shapes that touch nothing, and why.
    """

    def __init__(self, robot: Any, batch: int, options: SimulatorOptions) -> None:
        self._check(batch, options)
        self._robot = robot
        self._model: Model = robot.model
        self._options = options
        self.batch = int(batch)
        self.dt = float(options.dt)
        refuse_singular(self._model)
        found = contact_pairs(
            self._model, options.ground, options.points, options.friction, options.restitution
        )
        self._pairs: tuple[Pair, ...] = found.pairs
        self.unused_shapes = found.unused
        rows = self._step_rows(found.pairs)
        self._stepper: ContactStepper | None = None
        if rows.contacts or rows.joints:
            self._require_scheme(rows)
            self._stepper = ContactStepper(self._model, rows, found.pairs, self.dt, options.threads)
        self._bounded = rows.bounded
        self._joint_count = len(rows.bounded)
        model, n = self._model, self.batch
        impulses = np.zeros((n, impulse_count(rows)))
        self._state = BatchState(np.empty((n, model.nq)), np.zeros((n, model.nv)), impulses)
        self._time, self._frozen = np.zeros(n), np.zeros(n, dtype=bool)
        self._resets = np.zeros(n, dtype=int)
        self._begun = np.zeros(n, dtype=bool)
        self._before, self._elapsed = self._state.v, self.dt
        self.reset()

    @staticmethod
    def _check(batch: int, options: SimulatorOptions) -> None:
        if not isinstance(batch, (int, np.integer)) or batch < 1:
            raise ArgumentError(f"batch is {batch!r}, expected the number of robots, 1 or more")
        if not 0.0 < options.dt < np.inf:
            raise ArgumentError(f"dt is {options.dt!r}, expected a time above 0 [s]")
        if options.scheme not in SCHEMES:
            raise UnknownNameError("scheme", options.scheme, SCHEMES)
        if options.on_error not in ON_ERROR:
            known = " or ".join(map(repr, ON_ERROR))
            raise ArgumentError(f"on_error is {options.on_error!r}, expected {known}")
        if options.sweeps is not None and options.sweeps < 1:
            raise ArgumentError(f"sweeps is {options.sweeps}, expected 1 or more")

    def _step_rows(self, pairs: Sequence[Pair]) -> StepRows:
        joints = joint_rows(self._model, passive_parts(self._options.passive))
        sweeps = self._options.sweeps or POLICY.contact_sweeps
        return StepRows(joints, tuple(pair.row for pair in pairs), sweeps)

    def _require_scheme(self, rows: StepRows) -> None:
        if self._options.scheme != CONTACT_SCHEME:
            raise ArgumentError(
                f"scheme '{self._options.scheme}' with {len(rows.contacts)} pairs that may touch "
                f"and {len(rows.joints)} joints with springs, damping, friction or limits: impacts "
                f"and friction are solved at the end of a step, by '{CONTACT_SCHEME}' alone. Use "
                "that, or ground=False and passive=False."
            )

    @property
    def _owner(self) -> str:
        return f"a simulator of {self.batch} x '{self._model.name}'"

    @property
    def engine(self) -> str:
        """What takes the steps: ``"machine code"``, ``"NumPy"``, or ``"step"`` without rows."""
        return "step" if self._stepper is None else self._stepper.engine

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
            q: (nq,), (samples, nq) or (batch, nq); None: the robot's home.
            v: The same of velocities; None: at rest.
            spread: Standard deviation of a random step of q and v [rad, m; per s]. What a sample
                gets depends on ``seed``, its number and how often it was reset, on nothing else.

        Raises:
            ShapeError: A shape fits neither the samples nor the batch.
            NotFiniteError, QuaternionError: A number is not finite, a quaternion not unit.
        """
        chosen = self._chosen(mask)
        model, state = self._model, self._state
        given_q = self._robot.home if q is None else q
        given_v = np.zeros(model.nv) if v is None else v
        new_q, new_v = checked_state(model, q=given_q, v=given_v)
        new_q, new_v = self._rows_for("q", new_q, chosen), self._rows_for("v", new_v, chosen)
        self._resets[chosen] += 1
        if spread:
            moved, faster = self._random(chosen, spread)
            new_q, new_v = integrate(model, new_q, moved), new_v + faster
        for array, values in ((state.q, new_q), (state.v, new_v), (state.impulses, 0.0)):
            array[chosen] = values
        self._time[chosen], self._frozen[chosen] = 0.0, False
        self._before = np.array(self._before)
        self._before[chosen] = state.v[chosen]
        self._begun[chosen] = True
        return self.state

    def _chosen(self, mask: ArrayLike | None) -> Array:
        if mask is None:
            return np.arange(self.batch)
        given = np.asarray(mask)
        if given.dtype == bool:
            if given.shape != (self.batch,):
                raise ShapeError("mask", given.shape, f"({self.batch},)", self._owner)
            return np.flatnonzero(given)
        numbers = np.atleast_1d(given)
        if numbers.dtype.kind not in "iu" or ((numbers < 0) | (numbers >= self.batch)).any():
            raise ArgumentError(
                f"mask is {mask!r}, expected booleans (batch,) or numbers of samples below "
                f"{self.batch}"
            )
        return np.asarray(numbers)

    def _rows_for(self, name: str, given: Array, chosen: Array) -> Array:
        """One state for all, one for each sample that is reset, or one for each of the batch."""
        size = given.shape[-1]
        if given.ndim == 1 or given.shape == (len(chosen), size):
            return np.array(np.broadcast_to(given, (len(chosen), size)), float)
        if given.shape == (self.batch, size):
            return np.array(given[chosen], float)
        rows = f"({size},), ({len(chosen)}, {size}) for the samples that are reset, or"
        raise ShapeError(name, given.shape, f"{rows} ({self.batch}, {size})", self._owner)

    def _random(self, chosen: Array, spread: float) -> tuple[Array, Array]:
        nv = self._model.nv
        found = np.empty((len(chosen), 2, nv))
        for row, sample in zip(found, chosen.tolist(), strict=True):
            source = np.random.default_rng((self._options.seed, sample, self._resets[sample]))
            row[...] = spread * source.normal(size=(2, nv))
        return found[:, 0], found[:, 1]

    def _warn_of_penetrations(self) -> None:
        """Say that something was put into the ground since the last step."""
        chosen = np.flatnonzero(self._begun)
        self._begun[:] = False
        if not self._pairs or not len(chosen):
            return
        gap = self._points(chosen)["gap"]
        sample, pair = np.unravel_index(int(np.argmin(gap)), gap.shape)
        depth = -float(gap[sample, pair])
        if depth > POLICY.deep_penetration:
            worst = self._pairs[int(pair)]
            warn(
                f"'{worst.name}' of sample {int(chosen[sample])} is {depth:.3g} m inside "
                f"'{worst.surface}'. It is pushed out at no more than "
                f"{POLICY.max_correction_speed:g} m/s; reset to a configuration above the ground.",
                PenetrationWarning,
            )

    def step(
        self,
        tau: Coordinates | None = None,
        *,
        ctrl: ArrayLike | None = None,
        substeps: int = 1,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
    ) -> SimulatorState:
        """Take the batch through time.

        Args:
            tau: (nv,) or (batch, nv) joint forces [N m, N], held; none by default.
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
        if (
            isinstance(substeps, bool)
            or not isinstance(substeps, (int, np.integer))
            or substeps < 1
        ):
            raise ArgumentError(f"substeps is {substeps!r}, expected 1 or more")
        if self._begun.any():
            self._warn_of_penetrations()
        total = self._forces(tau, forces, reference)
        if ctrl is None:
            self._take(total, int(substeps))
            return self.state
        for _ in range(int(substeps)):
            self._take(total + self._actuated(ctrl), 1)
        return self.state

    def _actuated(self, ctrl: ArrayLike) -> Array:
        """Joint forces (batch, nv) of the actuators; none of samples that are not finite."""
        state = self._state
        good = np.isfinite(state.q).all(axis=-1) & np.isfinite(state.v).all(axis=-1)
        signals = np.asarray(ctrl)
        if signals.ndim == 2 and signals.shape[0] == self.batch:
            signals = signals[good]
        result = np.zeros((self.batch, self._model.nv))
        result[good] = self._actuators.force(signals, state.q[good], state.v[good])
        return result

    @cached_property
    def _actuators(self) -> Actuators:
        return Actuators(self._model)

    def run(self, policy: Policy, steps: int, *, substeps: int = 1) -> SimulatorState:
        """Steps under a policy, which is called once a step for the whole batch.

        Args:
            policy: q (batch, nq), v (batch, nv), time (batch,) -> tau (nv,) or (batch, nv).
            steps: Calls of the policy.
            substeps: Steps of ``dt`` under what a call gives.
        """
        for _ in range(steps):
            self.step(policy(self.q, self.v, self._time.copy()), substeps=substeps)
        return self.state

    def _forces(
        self, tau: Coordinates | None, forces: Mapping[str, ArrayLike] | None, reference: str
    ) -> Array:
        model, shape = self._model, (self.batch, self._model.nv)
        if tau is None:
            total = np.zeros(shape)
        else:
            given = read_coordinates(model, tau, "v", "tau")
            if given.shape not in (shape, shape[1:]):
                raise ShapeError("tau", given.shape, f"{shape[1:]} or {shape}", self._owner)
            if self._options.on_error == "raise":
                require_finite("tau", given)
            total = np.array(np.broadcast_to(given, shape), float)
        wrenches = check_wrenches(model, self._state.q, forces, reference)
        if wrenches is not None:
            total = total + dynamics.generalised_force(model, self._state.q, wrenches)
        return np.ascontiguousarray(total)

    def _take(self, tau: Array, substeps: int) -> None:
        before, moving = self._state, ~self._frozen
        ahead = self._ahead(tau, substeps)
        lost = diverged_samples(ahead.q, ahead.v, ahead.impulses) & moving
        if lost.any() and self._options.on_error == "raise":
            sample = int(np.flatnonzero(lost)[0])
            time = float(self._time[sample]) + substeps * self.dt
            raise DivergenceError(
                f"sample {sample} diverges: not finite at {time:.6g} s; take a shorter dt or "
                'smaller forces, or on_error="freeze"',
                (sample,),
                substeps,
                time,
            )
        stays = lost | self._frozen
        if stays.any():
            ahead.q[stays], ahead.v[stays] = before.q[stays], before.v[stays]
            ahead.impulses[stays] = 0.0
            self._frozen = stays
        self._before, self._elapsed = before.v, substeps * self.dt
        self._state = ahead
        self._time = np.where(stays, self._time, self._time + substeps * self.dt)

    def _ahead(self, tau: Array, substeps: int) -> BatchState:
        if self._stepper is not None:
            return self._stepper.run(self._state, tau, substeps)
        q, v = self._state.q, self._state.v
        fine = np.isfinite(tau).all(axis=-1)
        for _ in range(substeps):
            new_q, new_v = plain_step(
                self._model, q[fine], v[fine], tau[fine], self.dt, self._options.scheme
            )
            q, v = np.full_like(q, np.nan), np.full_like(v, np.nan)
            q[fine], v[fine] = new_q, new_v
        return BatchState(q, v, self._state.impulses.copy())

    def _points(self, chosen: Array | slice = slice(None)) -> dict[str, Array]:
        assert self._stepper is not None
        return self._stepper.points(self._state.q[chosen], self._state.v[chosen])

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
                f"{self._options.ground!r} and it has no sphere, capsule or box that may{unused}. "
                "Name frames as points=."
            )
        impulses = self._state.impulses[:, self._joint_count :]
        impulses = impulses.reshape(self.batch, len(self._pairs), 3)
        return contacts_of(self._pairs, impulses, self.dt, self._points())

    def __repr__(self) -> str:
        pairs = f"{len(self._pairs)} pairs that may touch"
        return (
            f"<Simulator: {self.batch} x '{self._model.name}', dt {self.dt:g} s, {pairs}, "
            f"{self._joint_count} joints that rub or stop, {self.engine}>"
        )

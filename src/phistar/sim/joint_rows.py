# SPDX-License-Identifier: BSD-3-Clause
"""Dry friction and limits of joints over a step of time: forces that are held during it.

With v' = v + h v̇ the velocity that the step of length h leads to, and φ the way to a limit,

    |λ| <= F,       λ v' <= 0, λ = -F sign(v') where v' is not zero         dry friction
    0 <= λ  ⊥  φ / h ∓ v' >= 0                                              limits

for the joint forces λ. A joint at rest stays at rest as long as friction can hold it, and none goes
beyond its limit; one that begins outside may come back and goes no farther. There are at most two
kinds of joints: those that move freely under known forces, and those whose v' is known: 0 or what
leads to the limit. A set of them is guessed and corrected until it fits (an active-set method, or
Newton's on the projection y = prox(y - λ/ρ)); each guess is one linear system. On closed loops
projected Gauss-Seidel finds them. The forces are then held during the step of any scheme, which so
keeps its order between events.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from phistar import dynamics
from phistar.arrays import Array, as_vectors
from phistar.compile import traced_results
from phistar.errors import ArgumentError
from phistar.joint_physics.implicit import SMOOTH_PARTS, implicit_numbers
from phistar.joint_physics.passive_forces import passive_force_unchecked
from phistar.loops.held import NOT_HELD, Held
from phistar.model.joint_physics import Passive, passive_numbers, passive_parts
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.scalar.trace.unilateral_rows import StepRows
from phistar.sim.force_to_motion import free_rates
from phistar.sim.unilateral_row import joint_rows, least_mobilities
from phistar.sim.variables import Variable
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.sim.simulation import Simulation

MAX_GUESSES = 30
"""Sets of joints that are tried; a few are enough unless sets repeat."""

SLOWEST_DRAG = 1e-9
"""Of the fastest joint: one that is held and moves less stands still, but for rounding."""

Step = Callable[[Array, Array, Array, Array], tuple[Array, Array]]
"""q, v, tau, dt -> q and v at the end of a smooth step."""


def used_parts(model: Model, passive: Passive) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a robot has of the chosen joint physics: smooth forces, and rows (friction, limits)."""
    given = passive_numbers(model).given(passive_parts(passive))
    smooth = tuple(part for part in given if part in SMOOTH_PARTS)
    return smooth, tuple(part for part in given if part not in SMOOTH_PARTS)


def refuse_scheme(model: Model, scheme: str, smooth: tuple[str, ...], variables: str = "v") -> None:
    """Raise for what the implicit scheme cannot do.

    Raises:
        ArgumentError: With what to use instead.
    """
    if scheme != "implicit":
        return
    if variables != "v":
        raise ArgumentError(
            f"variables is {variables!r}, but 'implicit' steps v only; leave it out"
        )


def rows_error(model: Model, scheme: str, rows: tuple[str, ...]) -> ArgumentError:
    """For schemes that have no fixed steps over which friction and limits could be found."""
    told = " and ".join(rows)
    return ArgumentError(
        f"{scheme} has no {told}, which robot '{model.name}' has: use a scheme with fixed steps "
        "('implicit', 'semi_implicit', 'rk4'), or leave them out by "
        "passive={'springs', 'damping'}"
    )


def require_inside(sim: Simulation) -> Simulation:
    """A smooth motion whose knots are within the limits, or no farther out than its start.

    Raises:
        ArgumentError: A joint goes beyond a limit; with its name, the time, and what to do.
    """
    numbers = passive_numbers(sim.model)
    place = np.maximum(numbers.coordinates, 0)
    q = sim.q[..., place]
    low, high = np.minimum(numbers.lower, q[0]), np.maximum(numbers.upper, q[0])
    with np.errstate(invalid="ignore"):
        beyond = (q < low) | (q > high)
    if beyond.any():
        knot = int(np.argmax(beyond.reshape(len(q), -1).any(axis=-1)))
        entry = int(np.argmax(beyond[knot].reshape(-1, sim.model.nv).any(axis=0)))
        joints = (sim.model.joints[name] for name in sim.model.joint_names)
        joint = next(j.name for j in joints if j.v_slice.start <= entry < j.v_slice.stop)
        raise ArgumentError(
            f"joint '{joint}' of robot '{sim.model.name}' goes beyond its limit before "
            f"{sim.t[knot]:.6g} s, and {sim.scheme} has no limits: use a scheme with fixed steps "
            "('implicit', 'semi_implicit', 'rk4'), or leave them out by "
            "passive={'springs', 'damping'}"
        )
    return replace(sim, passive=(*sim.passive, "limits"))


def passive_used(variable: Variable, rows: JointRows | None) -> tuple[str, ...]:
    """The parts of the joint physics that a simulation used."""
    return variable.smooth + (() if rows is None else rows.parts)


@dataclass(frozen=True)
class _Guess:
    """Which joints move freely, under which forces, and what the others do.

    Attributes:
        free: (B, nv).
        force: (B, nv) of friction on the free ones.
        velocity: (B, nv) v' of the others.
    """

    free: Array
    force: Array
    velocity: Array


class JointRows:
    """Dry friction and limits of a robot's joints."""

    def __init__(self, variable: Variable, parts: tuple[str, ...], implicit: bool) -> None:
        """Args:
        variable: The robot and what pushes it.
        parts: ``"friction"``, ``"limits"`` or both.
        implicit: Whether springs and dampers push as they do at the end of the step.
        """
        model, numbers = variable.model, passive_numbers(variable.model)
        self.model, self.parts = model, parts
        self._variable, self.implicit = variable, implicit and bool(variable.smooth)
        infinite = np.full(model.nv, np.inf)
        limited = "limits" in parts
        self.friction = numbers.friction if "friction" in parts else np.zeros(model.nv)
        self.lower = numbers.lower if limited else -infinite
        self.upper = numbers.upper if limited else infinite
        self._places = np.maximum(numbers.coordinates, 0)
        self._bounded = np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper))
        self._closed = bool(active_loops(model.loops))

    def of_samples(self, chosen: Array) -> JointRows:
        """The same for some samples of a batch, by number."""
        part = copy.copy(self)
        part._variable = self._variable.of_samples(chosen)
        return part

    # -- a step

    def step(
        self,
        start: tuple[Array, Array, Array],
        dt: Array,
        smooth: Step,
        batch: tuple[int, ...],
    ) -> tuple[Array, Array]:
        """q and v after a step, samples (..., n).

        Args:
            start: q, v and tau, checked.
            dt: (..., 1) [s].
            smooth: What takes steps without friction and limits.
            batch: Of the result; wrenches of samples are given along one axis.
        """
        dtype = np.result_type(*start)
        q, v, tau, h = (
            np.ascontiguousarray(np.broadcast_to(x, (*batch, x.shape[-1])), dtype).reshape(
                -1, x.shape[-1]
            )
            for x in (*start, dt)
        )
        ahead, velocity = self.advanced(q, v, tau, h, smooth)
        return ahead.reshape(*batch, q.shape[-1]), velocity.reshape(*batch, v.shape[-1])

    def advanced(
        self,
        q: Array,
        x: Array,
        tau: Array,
        dt: Array,
        smooth: Step,
        velocity: Callable[[Array, Array], Array] = lambda q, x: x,
        t: float = 0.0,
    ) -> tuple[Array, Array]:
        """The same for samples (B, n) of q and a variable x for the velocity, from time t on.

        Without friction a smooth step that ends inside the limits is the step.
        """
        held = self._variable.held_at(t)
        if self.friction.any():
            _refuse_complex(q, x, tau)
            force = self.forces(q, velocity(q, x), tau, dt, held)
            ahead, later = smooth(q, x, tau + force, dt)
            return self._inside(q, ahead), later
        ahead, later = smooth(q, x, tau, dt)
        beyond = self.beyond(q, ahead)
        if beyond.any():
            _refuse_complex(ahead)
            ahead, later = np.array(ahead), np.array(later)
            # What acts on samples stays with them: then all take the step again.
            again = np.ones_like(beyond) if self._variable.differs else beyond
            start, some, push, h = q[again], x[again], tau[again], dt[again]
            here = beyond[again]
            force = self.forces(start, velocity(start, some), push, h, held)
            stopped, slower = smooth(start, some, push + np.where(here[:, None], force, 0.0), h)
            ahead[beyond] = self._inside(start, stopped)[here]
            later[beyond] = slower[here]
        return ahead, later

    def _inside(self, before: Array, after: Array) -> Array:
        """A configuration clamped to the limits, unless that would open loops."""
        return after if self._closed else self.clamped(before, after)

    def beyond(self, before: Array, after: Array) -> Array:
        """Which steps (...) lead beyond a limit, from q before to q after (..., nq)."""
        there = after.real
        return np.asarray((self.clamped(before.real, there) > there).any(axis=-1)) | np.asarray(
            (self.clamped(before.real, there) < there).any(axis=-1)
        )

    def clamped(self, before: Array, after: Array) -> Array:
        """A configuration after a step, on the limits where it is beyond: of order h too far.

        Joints that began outside are no farther out.
        """
        if not self._bounded.size:
            return after
        place = self._places[self._bounded]
        low = np.minimum(self.lower[self._bounded], before[..., place]).astype(after.dtype)
        high = np.maximum(self.upper[self._bounded], before[..., place]).astype(after.dtype)
        result = np.array(after)
        result[..., place] = np.clip(after[..., place], low, high)
        return result

    # -- forces

    def forces(
        self, q: Array, v: Array, tau: Array, dt: Array | float, held: Held = NOT_HELD
    ) -> Array:
        """Joint forces λ (B, nv) that friction and limits hold during a step.

        Args:
            q, v, tau: (B, n) at its start.
            dt: (B, 1) or a number [s].
            held: Motion that is told.
        """
        h = np.broadcast_to(np.asarray(dt, float), (len(q), 1))
        q, v, tau = (x.astype(float) for x in (q, v, tau))
        return self._by_sweeps(q, v, tau, h, held) if self._closed else self._solved(q, v, tau, h)

    def _by_sweeps(self, q: Array, v: Array, tau: Array, h: Array, held: Held) -> Array:
        """λ (B, nv) on closed loops, whose joints depend on each other: by Gauss-Seidel.

        Sets that fit are hard to find there, and forces are not unique.
        """
        mass, total = self._equation(q, v, tau, h)
        rate, W = free_rates(self.model, q, v, mass, total, held)
        joints = joint_rows(self.model, (*self._variable.smooth, *self.parts), implicit=False)
        rows = StepRows(joints, sweeps=POLICY.joint_row_sweeps, correction=0.0)
        entries = [row.v for row in rows.bounded]
        delta = as_vectors(W[:, entries][:, :, entries])
        free = (v + h * rate)[:, entries]
        places = q[:, [max(row.q, 0) for row in rows.bounded]]
        given = (delta, places, v[:, entries], free, h, np.zeros_like(free))
        found = traced_results(self.model, ("row_solver", rows), *given)["impulses_next"]
        force = np.zeros_like(v)
        force[:, entries] = found / h
        if held.drives:
            force += self._dragged(v + h * rate, W, rows)
        return force

    def _dragged(self, ahead: Array, W: Array, rows: StepRows) -> Array:
        """Friction (B, nv) of joints that nothing but a drive moves, at velocities v'.

        It moves nothing, so that their rows do without; the drive has to overcome it.
        """
        entries = [row.v for row in rows.bounded]
        least = np.zeros(self.model.nv)
        least[entries] = least_mobilities(self.model, rows)
        stiff = np.diagonal(W, axis1=-2, axis2=-1) < least
        moves = np.abs(ahead) > SLOWEST_DRAG * np.abs(ahead).max(axis=-1, keepdims=True)
        return np.where(stiff & moves, -np.sign(ahead) * self.friction, 0.0)

    def _bounds(self, q: Array, h: Array) -> tuple[Array, Array]:
        """Least and largest v' (B, nv)."""
        here = q[:, self._places]
        low = np.minimum(self.lower - here, 0.0) / h
        return low, np.maximum(self.upper - here, 0.0) / h

    def _solved(self, q: Array, v: Array, tau: Array, h: Array) -> Array:
        """λ (B, nv)."""
        low, high = self._bounds(q, h)
        system = _System(*self._equation(q, v, tau, h))
        scale = system.diagonal / h
        guess = self._guessed(v, scale, low, high)
        for _ in range(MAX_GUESSES):
            rate, force = system.solved(v, h, guess)
            before, guess = guess, self._guessed(v + h * rate - force / scale, scale, low, high)
            same = (before.free == guess.free).all() and (before.force == guess.force).all()
            if same and (before.velocity == guess.velocity).all():
                break
        # Whatever set the guesses ended with: friction is never larger than it can be, limits push.
        stopped = guess.velocity != 0.0
        return np.where(
            stopped,
            force,
            np.clip(force, -self._largest(low, high, 0), self._largest(low, high, 1)),
        )

    def _largest(self, low: Array, high: Array, side: int) -> Array:
        """Largest force at v' = 0 against (0) or along (1) the coordinate."""
        at_limit = (high <= 0.0) if side == 0 else (low >= 0.0)
        return np.where(at_limit, np.inf, self.friction)

    def _guessed(self, w: Array, scale: Array, low: Array, high: Array) -> _Guess:
        """What v' = prox(w) says of the joints."""
        slack = self.friction / scale
        soft = np.sign(w) * np.maximum(np.abs(w) - slack, 0.0)
        velocity = np.clip(soft, low, high)
        stopped = (velocity != soft) | ((soft == 0.0) & (self.friction > 0.0))
        force = np.where(stopped, 0.0, -self.friction * np.sign(w))
        return _Guess(~stopped, force, np.where(stopped, velocity, 0.0))

    def _equation(self, q: Array, v: Array, tau: Array, h: Array) -> tuple[Array, Array]:
        """𝓜 (B, nv, nv) and forces (B, nv) without friction and limits."""
        model, variable = self.model, self._variable
        total = tau + (
            passive_force_unchecked(model, q, v, variable.smooth) if variable.smooth else 0
        )
        mass = dynamics.mass_matrix(model, q)
        if self.implicit:
            added, K = implicit_numbers(model, variable.smooth, h)
            mass = mass + added[..., None] * np.eye(model.nv)
            total = total - h * K * v
        return mass, total - dynamics.bias_force(model, q, v, variable.wrenches)


def _refuse_complex(*arrays: Array) -> None:
    """Raise for complex numbers: friction and limits have no derivatives along them."""
    if any(np.iscomplexobj(x) for x in arrays):
        raise ArgumentError(
            "friction and limits are not defined for complex numbers; leave them out by "
            "passive={'springs', 'damping'}"
        )


@dataclass(frozen=True)
class _System:
    """𝓜 v̇ = total + λ."""

    mass: Array
    total: Array

    @property
    def diagonal(self) -> Array:
        """(B, nv) inertia that joints feel with the others at rest."""
        return np.asarray(np.diagonal(self.mass, axis1=-2, axis2=-1))

    def solved(self, v: Array, h: Array, guess: _Guess) -> tuple[Array, Array]:
        """v̇ and λ (B, nv) of a guess."""
        known = np.where(guess.free, 0.0, (guess.velocity - v) / h)
        left = self.total + guess.force - (self.mass @ known[..., None])[..., 0]
        both = guess.free[..., :, None] & guess.free[..., None, :]
        eye = np.eye(v.shape[-1])
        masked = np.where(both, self.mass, eye)
        rate = known + dynamics.solve(masked, np.where(guess.free, left, 0.0))
        force = (self.mass @ rate[..., None])[..., 0] - self.total
        return rate, np.where(guess.free, guess.force, force)

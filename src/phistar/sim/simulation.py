# SPDX-License-Identifier: BSD-3-Clause
"""The result of a simulation: states at knots and in between, conserved quantities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, InterpolationError, UnknownNameError, pluralize
from phistar.joint_physics.implicit import SMOOTH_PARTS
from phistar.joint_physics.passive_forces import passive_force_unchecked
from phistar.loops.assembly import assemble
from phistar.loops.constrained_dynamics import ConstrainedDynamics, constrained_dynamics
from phistar.loops.held import NOT_HELD, Held
from phistar.loops.mobility import LoopEvent, singular_passages
from phistar.loops.system import loop_system, rows_at
from phistar.model.bad_samples import with_nan
from phistar.model.components import Joint, LoopJoint
from phistar.model.configuration import difference, integrate, limits, neutral
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import HasModel, Model
from phistar.model.wrenches import Wrenches
from phistar.sim import monitors
from phistar.sim import sensitivity as sensitivities
from phistar.sim.divergence import not_finite, parking_configuration
from phistar.sim.joint_rows import JointRows
from phistar.sim.manifold import coordinate_rate, velocity_of
from phistar.sim.monitors import Drift
from phistar.sim.schemes import SCHEMES
from phistar.sim.variables import Velocity

if TYPE_CHECKING:
    from phistar.drawing.figures import Figure
    from phistar.sim.sensitivity import CostGradient, MotionCost, Sensitivity
    from phistar.viewer.viewer import Viewer

DenseOutput = Callable[[Array], tuple[Array, Array]]
"""q and v at times (n,) inside the simulated interval."""


@dataclass(frozen=True)
class Simulation:
    """A motion in time; time is the first axis, batch axes follow, as in a ``Trajectory``.

    Attributes:
        t: (N + 1,) times [s].
        q: (N + 1, ..., nq) configurations.
        v: (N + 1, ..., nv) velocities.
        tau: (N, ..., nv) joint forces, each held from its knot to the next.
        model: The robot.
        scheme: Name of the scheme.
        variables: The variable that was stepped: ``"v"``, ``"zeta"`` or ``"eta"``.
        engine: What took the steps: ``"machine code"`` or ``"numpy loop"``.
        steps: Number of steps.
        rejected: Number of rejected steps, of schemes that choose their steps.
        external: Whether wrenches acted on frames.
        passive: What of the joints' physics acted: of ``"springs"``, ``"damping"``,
            ``"friction"`` and ``"limits"`` those that were chosen and that the robot has.
        pushed: The wrenches on frames; None if none acted, or a file did not keep them.
        told: Motion that is prescribed, at each knot; None if none is.
        diverged: (...) the first knot at which a sample is not finite, NaN from there on; -1 if all
            are finite. None if divergence raises.
    """

    t: Array
    q: Array
    v: Array
    tau: Array
    model: Model = field(repr=False)
    scheme: str
    variables: str
    engine: str
    steps: int
    rejected: int = 0
    dense: DenseOutput | None = field(default=None, repr=False)
    external: bool = False
    diverged: Array | None = None
    told: Held | None = field(default=None, repr=False)
    passive: tuple[str, ...] = ()
    pushed: Wrenches | None = field(default=None, repr=False)

    @property
    def ok(self) -> Array:
        """(...) of booleans: which samples are finite to the end."""
        if self.diverged is None:
            return np.ones(self.q.shape[1:-1], dtype=bool)
        return np.asarray(self.diverged < 0)

    def __repr__(self) -> str:
        batch = self.q.shape[1:-1]
        details = f", batch {batch}" if batch else ""
        if not self.ok.all():
            details += f", {self.ok.size - self.ok.sum()} of {self.ok.size} diverged"
        return (
            f"<Simulation of '{self.model.name}': {self.t[-1] - self.t[0]:.6g} s in "
            f"{pluralize(self.steps, 'step')} of {self.scheme} in (q, {self.variables}), "
            f"{pluralize(len(self.t), 'knot')}{details}, {self.engine}>"
        )

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from phistar.drawing.drawing_mixin import pictures
        from phistar.drawing.notebook_cards import motion_card

        return motion_card(repr(self)[1:-1], self.model, *pictures(self))

    def __call__(self, t: ArrayLike) -> tuple[Array, Array]:
        """q (n, ..., nq) and v (n, ..., nv) at times (n,), or without that axis at one time [s].

        Schemes that choose their steps interpolate to their tolerance. For others it is the cubic
        through the states and velocities of two knots, whose error is of the fourth order in the
        distance of knots for q, of the third for v. At the knots these are exactly ``sim.q`` and
        ``sim.v``.

        Raises:
            ArgumentError: A time lies outside the simulation.
            InterpolationError: A ball, free or planar joint rotates by more than half a turn
                between two knots.
        """
        times = np.asarray(t, dtype=float)
        flat = np.atleast_1d(times)
        first, last = self.t[0], self.t[-1]
        margin = 1e-12 * max(abs(first), abs(last))
        if flat.ndim > 1 or not ((flat >= first - margin) & (flat <= last + margin)).all():
            raise ArgumentError(
                f"t is {np.array2string(flat, threshold=5)}, expected times (n,) from "
                f"{first:.6g} to {last:.6g} s"
            )
        flat = np.clip(flat, first, last)
        left = np.clip(np.searchsorted(self.t, flat, side="right") - 1, 0, len(self.t) - 2)
        nearest = np.where(flat == self.t[left + 1], left + 1, left)
        q, v = self.q[nearest], self.v[nearest]
        inside = np.flatnonzero(flat != self.t[nearest])
        if inside.size and self.dense is not None:
            q[inside], v[inside] = self.dense(flat[inside])
        elif inside.size:
            q[inside], v[inside] = self._between(flat[inside], left[inside])
        return (q, v) if times.ndim else (q[0], v[0])

    def _between(self, times: Array, left: Array) -> tuple[Array, Array]:
        """q and v at times (n,) that lie inside the intervals after knots ``left`` (n,)."""
        model = self.model
        states = [x[k].astype(float) for k in (left, left + 1) for x in (self.q, self.v)]
        lost = ~np.all([np.isfinite(x).all(axis=-1) for x in states], axis=0)
        if lost.any():
            park = 2 * (parking_configuration(model), np.zeros(model.nv))
            states = [np.where(lost[..., None], p, x) for p, x in zip(park, states, strict=True)]
        q0, v0, q1, v1 = states
        column = (-1, *(1,) * (self.q.ndim - 1))
        h = (self.t[left + 1] - self.t[left]).reshape(column)
        s = (times - self.t[left]).reshape(column) / h
        step = difference(model, q0, q1)
        self._reject_large_rotations(left, step, (q0, q1), h * (v0 + v1) / 2)
        begin = h * v0
        end = h * coordinate_rate(model, step, v1)
        u = s * s * (3 - 2 * s) * step + s * (1 - s) * ((1 - s) * begin - s * end)
        rate = (6 * s * (1 - s) * step + (1 - s) * (1 - 3 * s) * begin - s * (2 - 3 * s) * end) / h
        q, v = integrate(model, q0, u), velocity_of(model, u, rate)
        q[lost], v[lost] = np.nan, np.nan
        return q, v

    def _reject_large_rotations(
        self, left: Array, step: Array, ends: tuple[Array, Array], expected: Array
    ) -> None:
        """Raise where the shortest step between two knots cannot be the actual one.

        Args:
            left: (n,) the knots where the steps begin.
            step: (n, ..., nv) the shortest tangent steps.
            ends: Configurations (n, ..., nq) at both knots.
            expected: (n, ..., nv) the tangent steps at the mean of the velocities at both knots.
        """
        for name in self.model.joint_names:
            joint = self.model.joints[name]
            if joint.joint_kind.is_euclidean:
                continue
            angle = _unseen_rotation(joint, step, ends, expected)
            if not angle.any():
                continue
            at, *sample = (int(i) for i in np.argwhere(angle)[0])
            interval = float(self.t[left[at]]), float(self.t[left[at] + 1])
            where = f" of sample {sample}" if sample else ""
            interval_limit = (interval[1] - interval[0]) * np.pi / 2 / angle[at, *sample]
            raise InterpolationError(
                f"{joint.kind} joint '{name}'{where} rotates by about {angle[at, *sample]:.3g} rad "
                f"between {interval[0]:.6g} and {interval[1]:.6g} s, and states in between are "
                f"known up to half a turn; keep states at most {interval_limit:.2g} s apart "
                "(smaller every= or dt=)",
                name,
                interval,
            )

    def loop_error(self) -> Array:
        """How far open the loops are at each knot, (N + 1, ..., rows) [rad, m]."""
        flat = self._flat(self.q).astype(float)
        rows = rows_at(self.model, flat)
        error = rows.error if self.told is None else self.told.placed(self.model, rows).error
        return error.reshape(*self.q.shape[:-1], error.shape[-1])

    def _flat(self, array: Array) -> Array:
        """(knots, ..., n) with one axis for the batch, (knots, B, n)."""
        return array.reshape(len(array), math.prod(array.shape[1:-1]), array.shape[-1])

    def wrenches(self, loop: str) -> Array:
        """Wrench (N, ..., 6) [moment; force] of a loop joint on its successor at the first N knots,
        at the successor frame in its axes, under the joint forces held from there on; of least norm
        where it is not determined, which ``unique_components`` of ``constrained_dynamics`` tell.

        Wrenches on frames act as they did; forces of dry friction and limits are those that are
        held during the step that begins at the knot.

        Raises:
            ArgumentError: The motion is from a file, and wrenches acted on frames.
        """
        names = [x.name for x in active_loops(self.model.loops) if isinstance(x, LoopJoint)]
        if loop not in names:
            if loop in {x.name for x in active_loops(self.model.loops)}:
                raise ArgumentError(
                    f"'{loop}' couples joints and has no wrench; its multiplier is in "
                    "robot.constrained_dynamics(sim.q[k], sim.v[k], sim.tau[k]).multipliers"
                )
            raise UnknownNameError("active loop joint", loop, names, self.model.name)
        wrench = dict(self._constrained().wrenches)[loop]
        return wrench.reshape(*self.q[:-1].shape[:-1], 6)

    def drive_force(self, what: str) -> Array:
        """Force of a prescribed motion at the first N knots, beyond the joint forces ``tau``.

        Args:
            what: The joint or frame of its ``Prescribed``, or the name of that.

        Returns:
            (N, ...) [N m, N] of a joint; (N, ..., 6) [moment; force] on a frame at its origin, in
            its axes.
        """
        driven = {} if self.told is None else self.told.drives
        name = what if what in driven else f"drive of {what}"
        if name not in driven:
            raise UnknownNameError("prescribed motion", what, driven, self.model.name)
        found = loop_system(self.model).by_loop(self._constrained().multipliers)[name]
        batch, size = self.q[:-1].shape[:-1], found.shape[-1]
        return found.reshape(batch if size == 1 else (*batch, size))

    def _constrained(self) -> ConstrainedDynamics:
        """Dynamics at the first N knots, with one axis for the batch; NaN of lost samples."""
        if self.external and self.pushed is None:
            raise ArgumentError(
                "wrenches acted on frames, which files do not keep; "
                "robot.constrained_dynamics(sim.q[k], sim.v[k], sim.tau[k], forces=...) takes them"
            )
        held = NOT_HELD if self.told is None else self.told.at_knots(slice(None, -1))
        pushed = self.pushed
        q, v, tau = (self._flat(x) for x in (self.q[:-1], self.v[:-1], self.tau))
        lost = not_finite(q, v)
        if lost.all():
            q = np.broadcast_to(assemble(self.model, neutral(self.model)), q.shape)
            v, held, pushed = np.zeros_like(v), Held(held.loops, rank=held.rank), None
        elif lost.any():  # what is lost moves like a sample that is not
            batch, lost = lost.shape, lost.ravel()
            chosen = np.where(lost, np.flatnonzero(~lost)[0], np.arange(lost.size))
            q, v, tau = (np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1])[chosen]
                         for x in (q, v, tau))  # fmt: skip
            held = held.of_batch(batch).at_knots(chosen)
            pushed = pushed and pushed.with_batch(batch).of_samples(chosen)
        smooth = tuple(part for part in self.passive if part in SMOOTH_PARTS)
        if len(self.passive) > len(smooth):
            tau = tau + self._row_forces((q, v, tau), smooth, held, pushed)
        if smooth:
            tau = tau + passive_force_unchecked(self.model, q, v, smooth)
        found = constrained_dynamics(self.model, q, v, tau, pushed, held=held)
        return with_nan(found, lost) if lost.any() else found

    def _row_forces(
        self,
        state: tuple[Array, Array, Array],
        smooth: tuple[str, ...],
        held: Held,
        pushed: Wrenches | None,
    ) -> Array:
        """Forces (N, B, nv) of friction and limits, held during the steps that begin at knots."""
        scheme, (q, v, tau) = SCHEMES.get(self.scheme), state
        if scheme is None or not q.size:
            return np.zeros_like(v)  # schemes that choose their steps end inside the limits
        rows = tuple(part for part in self.passive if part not in smooth)
        batch = v.shape[:-1]
        pushed = pushed and pushed.with_batch(batch)
        joints = JointRows(Velocity(self.model, pushed, smooth), rows, scheme.implicit)
        dt = float(self.t[-1] - self.t[0]) / self.steps
        q, v, tau = (x.reshape(-1, x.shape[-1]) for x in (q, v, np.broadcast_to(tau, v.shape)))
        return joints.forces(q, v, tau, dt, held.of_batch(batch)).reshape(*batch, v.shape[-1])

    def _refuse_unknown_forces(self) -> None:
        """Raise if forces acted that derivatives of the motion do not know."""
        if self.external:
            raise ArgumentError("wrenches acted on frames, which derivatives do not know")
        if self._touched_limits():
            raise ArgumentError(
                "limits of joints acted, whose forces the simulation does not keep; leave them "
                "out by passive={'springs', 'damping'}"
            )

    def _touched_limits(self) -> bool:
        """Whether a joint was at a limit at some knot."""
        if "limits" not in self.passive:
            return False
        lower, upper = limits(self.model)
        return bool(((self.q <= lower) | (self.q >= upper)).any())

    @cached_property
    def events(self) -> tuple[LoopEvent, ...]:
        """Passages near singular configurations of the loops, at knots."""
        rank = None if self.told is None else self.told.rank
        return singular_passages(self.model, self.t, self.q, rank)

    def save(self, path: str | Path) -> Path:
        """Write the motion to a file and return its path.

        ``.npz`` keeps all of it, batches as well; ``.csv`` is a table and ``.mcap`` a log, both of
        one sample. No file keeps the dense output of ``"dopri5"``, wrenches on frames or what was
        prescribed; a loaded motion knows that something acted.

        Raises:
            ArgumentError: An unknown suffix, or a batch in a table or log.
            MissingExtraError: A log without the package ``mcap``.
        """
        from phistar.sim.files import save

        return save(self, path)

    @staticmethod
    def load(path: str | Path, robot: HasModel | Model) -> Simulation:
        """The motion of a robot in a file that ``save`` wrote.

        Args:
            path: ``.npz``, ``.csv`` or ``.mcap``.
            robot: The robot that moved; its joints are compared with those of the file.

        Raises:
            ArgumentError: The file holds no motion, or one of another robot.
        """
        from phistar.sim.files import load

        return load(path, robot)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Joint coordinates, speed and energy over time, as matplotlib's figure.

        Args:
            path: Picture to write, e.g. ``"motion.png"``.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from phistar.drawing.figures import motion_figure

        page = motion_figure(self)
        if path is not None:
            page.savefig(path)
        return page

    def view(self, port: int | None = None, mesh_folders: Sequence[str | Path] = ()) -> Viewer:
        """Play the motion in a browser: open ``viewer.url``; see ``Robot.view``.

        Args:
            port: The port, 8571 by default; the next free one is taken if it is in use.
            mesh_folders: Folders in which meshes are looked for; ``robot.view(motion=sim)`` also
                looks where the robot's file is.

        Raises:
            MissingExtraError: viser is not installed (the extra ``viewer``).
        """
        from phistar.drawing.scene import scene
        from phistar.viewer.viewer import Viewer

        start = self._flat(self.q)[0, 0].astype(float)
        return Viewer(scene(self.model, mesh_folders=mesh_folders), start, port, self)

    def sensitivity(self, parameters: Sequence[str] | str = ()) -> Sensitivity:
        """How the motion follows its start and parameters of the robot, exactly for these steps.

        Args:
            parameters: Names such as ``"m.link"``, ``"Ixx.link"``, ``"viscous.joint"``,
                ``"spring.joint"``, ``"rotor.joint"``, ``"offset.joint"`` (a constant joint force
                against the motion), ``"coulomb.joint"`` (dry friction, held during each step), or
                whole groups: ``"inertia"``, ``"viscous"``, ``"spring"``, ``"rotor"``, ``"offset"``,
                ``"coulomb"``.

        Raises:
            ArgumentError: Wrenches or limits of joints acted, steps were not kept, or the scheme
                chose its own.
        """
        self._refuse_unknown_forces()
        return sensitivities.sensitivity(self, parameters)

    def gradient(self, cost: MotionCost, parameters: Sequence[str] | str = ()) -> CostGradient:
        """A cost of the motion, and its derivatives by one sweep back in time.

        Args:
            cost: Such as ``control.QuadraticCost``, or your own ``control.Cost``.
            parameters: As for ``sensitivity``.
        """
        self._refuse_unknown_forces()
        return sensitivities.gradient(self, cost, parameters)

    def energy(self) -> Array:
        """Kinetic energy, that of the rotors included, potential energy in gravity, and that of
        springs if they acted (``"springs" in sim.passive``), (N + 1, ...) [J].
        """
        return monitors.energy(self.model, self.q, self.v, "springs" in self.passive)

    def momentum(self) -> Array:
        """Spatial momentum (N + 1, ..., 6) [angular; linear] about the world's origin."""
        return monitors.momentum(self.model, self.q, self.v)

    def drift(self) -> Drift:
        """Deviation of energy and momentum from their first values; ``print`` it.

        ``relative`` has what this motion should conserve: no momentum with a fixed base or external
        forces, no energy where forces do work.
        """
        acted = self.external or self.told is not None
        worked = bool(set(self.passive) - {"limits"}) or self._touched_limits()
        conserved = monitors.conserved_quantities(self.model, self.tau, acted, worked)
        radius = monitors.radius_of_gyration(self.model, self.q[0])
        return monitors.drift(self.t, self.energy(), self.momentum(), conserved, radius)


def _unseen_rotation(
    joint: Joint, step: Array, ends: tuple[Array, Array], expected: Array
) -> Array:
    """(n, ...) rotation of a joint [rad], about, where it is not the shortest one; else zero.

    A planar joint has its angle in q. For others it follows from the velocities at both ends.
    """
    units = joint.joint_kind.q_units
    if "rad" in units:
        index = joint.q_slice.start + units.index("rad")
        angle = np.abs(ends[1][..., index] - ends[0][..., index])
        return np.where(angle > np.pi, angle, 0.0)
    angular = joint.v_slice.start + np.flatnonzero(np.array(joint.joint_kind.v_units) == "rad/s")
    error = np.linalg.norm((expected - step)[..., angular], axis=-1)
    angle = np.linalg.norm(expected[..., angular], axis=-1)
    return np.where(error > np.pi, angle, 0.0)

# SPDX-License-Identifier: BSD-3-Clause
"""Simulation; a mixin of ``Robot``."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import number_rows
from phistar.arrays import Array
from phistar.compile import RequestKey
from phistar.derivatives.discrete import Discretization
from phistar.joint_physics.passive_forces import force_parts
from phistar.model.bad_samples import RAISE, nan_where_bad
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.model.model import Model
from phistar.model.model_cache import Entry
from phistar.model.wrenches import check_wrenches
from phistar.sim import run, step
from phistar.sim.contact_pairs import Ground, SelfContact
from phistar.sim.joint_rows import used_parts
from phistar.sim.scheme_choice import AUTO, scheme_of_step
from phistar.sim.schemes import SCHEMES
from phistar.sim.simulation import Simulation
from phistar.sim.simulator import Simulator
from phistar.sim.simulator_options import SimulatorOptions
from phistar.sim.step_tangents import discretize_in_stages

if TYPE_CHECKING:
    from phistar.constraints import Constraint, Prescribed


class Simulates:
    """Motion of a robot in time."""

    model: Model
    _entries: dict[Hashable, Entry | None]

    if TYPE_CHECKING:

        def _for_simulation(
            self, constraints: Sequence[Constraint], q: Coordinates
        ) -> tuple[Any, dict[str, Prescribed | None]]: ...

    def step(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        dt: float | ArrayLike,
        scheme: str = "auto",
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        passive: Passive = True,
        on_error: str = "raise",
    ) -> tuple[Array, Array]:
        """The state after one step of time: (q, v), as of one step of ``simulate``.

        Springs, damping, dry friction and limits of the joints act by default, as far as the robot
        has them; ``passive=False`` is the rigid-body step.

        Small and middling robots have all stages of a step in one program of machine code; others
        go from stage to stage by compiled forward dynamics and ``integrate``.

        Args:
            q: (..., nq).
            v: (..., nv).
            tau: (..., nv) joint forces [N m, N], held during the step.
            dt: Its length [s], a number or (...), one for each sample.
            scheme: ``"semi_implicit"``, ``"implicit"``, ``"euler"``, ``"midpoint"`` or ``"rk4"``;
                ``"auto"`` is semi-implicit, and implicit where joints have springs or damping.
            forces: External wrenches (..., 6) on named frames, as in ``forward_dynamics``, held
                during the step; it is taken stage by stage then.
            reference: Axes and point of those wrenches.
            passive: True, False, or some of ``{"springs", "damping", "friction", "limits"}``; as
                in ``simulate``.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.

        Returns:
            Configuration (..., nq) and velocity (..., nv) at the end of the step.

        Raises:
            NotFiniteError: A number is not finite, or becomes so.
            SingularHingeError: A joint moves no inertia.
        """
        if (
            forces is None
            and reference == "world_aligned"
            and on_error is RAISE
            and type(scheme) is str
            and type(q) is np.ndarray
            and 0 < q.ndim < 3
            and isinstance(dt, float)
            and dt > 0.0
            and (passive is True or passive is False)
        ):
            # No scheme, no key; no entry has it.
            entry: Any = self._entries.get(self._step_keys[passive].get(scheme))
            rows = number_rows(dt, len(q) if q.ndim == 2 else None)
            if entry is not None and (found := entry(q, v, tau, rows)) is not None:
                return found["q_next"], found["v_next"]
        if on_error != "raise":
            call = partial(self.step, dt=dt, scheme=scheme, reference=reference, passive=passive)
            return nan_where_bad(self.model, on_error, call, {"q": q, "v": v, "tau": tau}, forces)
        return step.step(self.model, q, v, tau, dt, scheme, forces, reference, passive)

    def _discretize_in_stages(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        dt: float,
        method: str,
        forces: Mapping[str, ArrayLike] | None,
        reference: str,
        passive: Passive,
        on_error: str,
    ) -> Discretization:
        """``discretize`` by a scheme with several stages."""
        if on_error != "raise":
            call = partial(
                self._discretize_in_stages, dt=dt, method=method, reference=reference,
                passive=passive, on_error="raise",
            )  # fmt: skip
            return nan_where_bad(self.model, on_error, call, {"q": q, "v": v, "tau": tau}, forces)
        wrenches = check_wrenches(self.model, q, forces, reference)
        parts = force_parts(self.model, passive)
        return discretize_in_stages(self.model, SCHEMES[method], q, v, tau, dt, wrenches, parts)

    @cached_property
    def _step_keys(self) -> tuple[dict[str, RequestKey], dict[str, RequestKey]]:
        """Keys of the entries for steps by scheme, without and with the joints' physics.

        None where that has friction. With limits they give results that are inside.
        """
        smooth, rows = used_parts(self.model, True)
        parts = (*smooth, *rows)
        schemes = {name: name for name in SCHEMES}
        plain = schemes | {AUTO: scheme_of_step(self.model, AUTO, ())}
        given = schemes | {AUTO: scheme_of_step(self.model, AUTO, smooth)}
        rigid = {name: step.step_key(scheme, ()) for name, scheme in plain.items()}
        if "friction" in rows:
            return rigid, {}
        return rigid, {name: step.step_key(scheme, parts) for name, scheme in given.items()}

    def simulator(
        self,
        batch: int = 1,
        *,
        dt: float,
        scheme: str = AUTO,
        ground: Ground = True,
        passive: Passive = True,
        points: Sequence[str] | Mapping[str, float] = (),
        friction: float | None = None,
        restitution: float | None = None,
        sweeps: int | None = None,
        seed: int = 0,
        on_error: str = "raise",
        threads: int | None = None,
        self_contact: SelfContact = False,
    ) -> Simulator:
        """Many of this robot at once, step by step, on the ground, with joint physics and sensors.

        Contacts are rigid, with Coulomb friction: v⁺ and impulses of a step of semi-implicit Euler
        satisfy them together, by projected Gauss-Seidel; see docs/contacts.md. All of a step is
        one program of machine code; ``sim.engine`` tells where it is not.

        Args:
            batch: Number of robots.
            dt: Length of a step [s].
            scheme: ``"auto"``: semi-implicit Euler with springs and damping at the end of the step,
                which ``"semi_implicit"`` and ``"implicit"`` name, too; without ground and joint
                physics any of ``step``.
            ground: True: planes and boxes of the file's world, or the plane z = 0; False: none; or
                ``Plane``, ``Box``, ``HeightField`` of ``phistar.sim``, one or several.
            passive: Springs, damping, dry friction and limits of joints: all, none, or some of
                ``{"springs", "damping", "friction", "limits"}``.
            points: Frames whose origins touch the ground besides collision shapes; a mapping gives
                radii [m].
            friction, restitution: Of all contacts, in place of what file and surfaces say.
            sweeps: Of the solver in a step; more for stacks and long chains of contacts.
            seed: Of random states, see ``Simulator.reset``.
            on_error: ``"raise"``, or ``"freeze"``: samples that diverge keep their last state and
                wait for a reset, the others go on.
            threads: Number of threads; default: by the work. Results do not depend on it.
            self_contact: Whether links of one tree touch each other: True by MuJoCo's rule (not
                those that a joint connects, nor what ``<exclude>``, contype and conaffinity of
                the file forbid), or pairs of names of links or shapes.

        Raises:
            ArgumentError: Another scheme and contacts or joint physics, or too many pairs that may
                touch.
        """
        options = SimulatorOptions(
            dt,
            scheme,
            ground,
            passive,
            points,
            friction,
            restitution,
            sweeps,
            seed,
            on_error,
            threads,
            self_contact,
        )
        return Simulator(self, batch, options)

    def simulate(
        self,
        q: Coordinates,
        v: Coordinates,
        *,
        dt: float | None = None,
        steps: int | None = None,
        duration: float | None = None,
        tau: Coordinates | None = None,
        tau_steps: ArrayLike | None = None,
        scheme: str = "auto",
        variables: str | None = None,
        every: int = 1,
        tolerance: float = 1e-8,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        progress: bool | None = None,
        threads: int | None = None,
        passive: Passive = True,
        on_error: str = "raise",
        constraints: Sequence[Constraint] | None = None,
    ) -> Simulation:
        """The motion from a state: ``sim.t .q .v``, ``sim.energy()``, ``sim(t)`` in between.

        Springs, damping, dry friction and limits of the joints act by default, as far as the robot
        has them (``robot.limits``, ``sim.passive``); ``passive=False`` is rigid-body dynamics.

        Explicit schemes with a fixed step in v or ζ are one call of machine code for all steps of
        all samples; otherwise NumPy takes the same steps between calls of compiled dynamics.
        ``sim.engine`` tells which.

        Args:
            q: (..., nq) initial configuration.
            v: (..., nv) initial velocity.
            dt: Length of a step [s].
            steps: Number of steps; or
            duration: [s], a whole number of steps.
            tau: (..., nv) constant joint forces; none by default.
            tau_steps: (steps, ..., nv) joint forces, each held during its step.
            scheme: With a fixed step: ``"rk4"``, ``"midpoint"``, ``"semi_implicit"``, ``"euler"``;
                ``"implicit"``, which is semi-implicit with springs and damping at the end of the
                step, so that stiff joints stay stable; ``"auto"`` is rk4, or implicit where that
                would overshoot the joints' springs or damping (``sim.scheme`` tells);
                ``"implicit_midpoint"``, which conserves energy; ``"dopri5"``, which chooses its
                steps, common to the batch, and interpolates between them. With ``dt`` its knots are
                at this interval, without it they are its steps.
            variables: What is stepped beside q: ``"v"``, ``"zeta"`` or ``"eta"`` (see
                ``diagonalize``); by default v, for ``"implicit_midpoint"`` η.
            every: Store one state in so many steps.
            tolerance: For ``"dopri5"``: of the error of a step, against 1 rad and 1 m for q, and
                against the size of v, or 1 if that is smaller.
            forces: External wrenches (..., 6) on named frames, as in ``forward_dynamics``, one for
                all samples or for each, constant in time; NumPy takes the steps then.
            reference: Axes and point of those wrenches.
            progress: Whether to show a bar; default: on a terminal, if it takes long.
            threads: Number of threads; default: by the work. Results do not depend on it.
            passive: What joints do by themselves: True (all that the robot has), False, or some of
                ``{"springs", "damping", "friction", "limits"}``. Friction and limits are found at
                the start of each step and held during it; ``"dopri5"`` and
                ``"implicit_midpoint"`` refuse friction, and motions that reach a limit.
            on_error: ``"raise"``, or ``"nan"``: samples that are or become not finite are NaN from
                there on and the others continue; see ``sim.ok`` (...) and ``sim.diverged`` (...),
                the first knot that is not finite or -1.
            constraints: More constraints, for this call: frames are held where they are at ``q``,
                ``Prescribed`` joints and frames move as they are told, and ``sim.drive_force``
                gives what that takes.

        Returns:
            The motion; time is the first axis. float32 states and joint forces give float32
            results: machine code steps in float32, NumPy in double precision.

        Raises:
            DivergenceError: The motion is no longer finite.
            TooLargeError: The stored states do not fit into the memory; see ``every``.
            ArgumentError: Numbers of steps do not fit, or something is not finite.
            SingularHingeError: A joint moves no inertia.
        """
        model, prescribed = self.model, None
        if constraints is not None:
            robot, prescribed = self._for_simulation(constraints, q)
            model = robot.model
        return run.simulate(
            model,
            q,
            v,
            dt=dt,
            steps=steps,
            duration=duration,
            tau=tau,
            tau_steps=tau_steps,
            scheme=scheme,
            variables=variables,
            every=every,
            tolerance=tolerance,
            forces=forces,
            reference=reference,
            progress=progress,
            threads=threads,
            on_error=on_error,
            prescribed=prescribed,
            passive=passive,
        )

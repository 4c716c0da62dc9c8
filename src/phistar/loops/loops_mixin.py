# SPDX-License-Identifier: BSD-3-Clause
"""Loops as parts of ``Robot``: what every robot can be asked, and what changes with active ones.

``Constrained`` is a part of every robot. ``ClosesLoops`` is in front of the others on robots with
active loops: everything about motion respects them, and what cannot yet says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from phistar.arguments import checked_state, number_rows
from phistar.arrays import Array
from phistar.compile import quantity_on
from phistar.derivatives import parameters
from phistar.derivatives.discrete import Discretization
from phistar.derivatives.hybrid import HybridLinearization
from phistar.derivatives.partial_results import linearize_part, part_choice
from phistar.derivatives.passive_terms import discretized_with_passive, linearized_with_passive
from phistar.diagonal.forward import TotalRates, diagonal_forward_dynamics
from phistar.diagonal.state import diagonalize
from phistar.errors import SampleError, UnknownNameError
from phistar.joint_physics.passive_forces import force_parts, with_passive_force
from phistar.kernels import RobotKernel
from phistar.loops import (
    assembly,
    constrained_dynamics,
    driven_joints,
    inverse,
    linearization,
    operational,
    second_derivatives,
)
from phistar.loops import minimal as minimal_coordinates
from phistar.loops import mobility as mobilities
from phistar.loops.constrained_dynamics import ConstrainedDynamics, Held
from phistar.loops.inverse import ConstrainedInverse
from phistar.loops.linearization import LoopLinearization
from phistar.loops.minimal import MinimalCoordinates
from phistar.loops.mobility import Mobility
from phistar.loops.second_derivatives import LoopForwardSecond
from phistar.loops.system import loop_system, rows_at
from phistar.loops.traced_rows import dynamics_key
from phistar.model.bad_samples import RAISE, nan_where_bad, with_nan
from phistar.model.configuration import Coordinates, batch_shape, neutral, read_coordinates
from phistar.model.joint_physics import Passive
from phistar.model.model import Model
from phistar.model.model_cache import Entry, entries, front_key, try_other_frames
from phistar.model.wrenches import check_wrenches
from phistar.reprs import one_line_repr

if TYPE_CHECKING:
    from phistar.constraints import Constraint

T = TypeVar("T")

PUSHING = "generalised_force"
"""The program of joint forces of wrenches."""
_PUSHING_FRONT = front_key(PUSHING)


@one_line_repr
@dataclass(frozen=True)
class NamedRows:
    """An array with rows of loops: ``rows["pin"]`` are those of one loop; NumPy takes it whole.

    Attributes:
        values: (..., rows), or (..., rows, nv).
        names: Of each row.
        slices: Rows of each loop.
        tail: How many axes a row has.
    """

    values: Array
    names: tuple[str, ...]
    slices: Mapping[str, slice]
    tail: int = 0

    def __getitem__(self, loop: str) -> Array:
        if loop not in self.slices:
            raise UnknownNameError("active loop", loop, self.slices)
        rows = self.slices[loop]
        return self.values[..., rows, :] if self.tail else self.values[..., rows]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the whole array."""
        return self.values.shape


def _named(model: Model, values: Array, tail: int = 0) -> NamedRows:
    system = loop_system(model)
    slices = {loop.name: rows for loop, rows in zip(system.loops, system.slices, strict=True)}
    return NamedRows(values, system.row_names, slices, tail)


class Constrained:
    """Loops and other constraints of a robot; a robot without any has no rows."""

    model: Model
    _held_anywhere: frozenset[str] = frozenset()
    _drives: Mapping[str, tuple[Array, Array]] = MappingProxyType({})
    _places: Mapping[str, Array] = MappingProxyType({})

    @property
    def _held(self) -> Held:
        """What constraints of one call hold and drive."""
        return Held(self._held_anywhere, self._drives, self._places)

    if TYPE_CHECKING:

        def with_loops(
            self,
            *constraints: Constraint,
            off: Sequence[str] = (),
            q: Coordinates | None = None,
        ) -> Any:
            """See ``Robot``."""

        def _for_call(self, constraints: Sequence[Constraint]) -> Any: ...

    def loop_error(self, q: Coordinates) -> NamedRows:
        """How far open each active loop is, (..., rows) [rad, m] by loop: zero on the loops.

        Of a loop joint N* log of what is left when its nearest free motion is taken off, in the
        axes of the successor frame.
        """
        (at,) = checked_state(self.model, q=q)
        return _named(self.model, rows_at(self.model, at).error)

    def loop_jacobian(self, q: Coordinates) -> NamedRows:
        """L (..., rows, nv) of all active loops: L v = 0 for velocities that keep them."""
        (at,) = checked_state(self.model, q=q)
        return _named(self.model, rows_at(self.model, at).L, 1)

    def assemble(
        self, q: Coordinates, *, fixed: Sequence[str] = (), on_error: str = "raise"
    ) -> Array:
        """A configuration (..., nq) on the loops, near the given one.

        Args:
            q: (..., nq).
            fixed: Names of joints that stay where they are.
            on_error: ``"raise"``, or ``"nan"``: samples that cannot be closed become NaN.

        Raises:
            LoopOpenError: Loops of a sample cannot be closed from there.
        """
        if on_error != "raise":
            return self._nan_where_bad(on_error, partial(self.assemble, fixed=fixed), {"q": q})
        return assembly.assemble(self.model, q, fixed)

    def project(
        self,
        q: Coordinates,
        v: Coordinates | None = None,
        *,
        constraints: Sequence[Constraint] | None = None,
        on_error: str = "raise",
    ) -> Any:
        """The state (q, v) on the loops nearest to the given one in the mass metric.

        Without ``v`` the configuration alone. For configurations that are nearly closed; from afar
        ``assemble`` is the better way.

        Args:
            q: (..., nq).
            v: (..., nv).
            constraints: More constraints, for this call: ``Prescribed`` gives the state the
                velocity, and the position if it has one, with which a simulation starts.
            on_error: ``"raise"``, or ``"nan"``: samples that cannot be closed become NaN.

        Raises:
            LoopOpenError: Loops of a sample cannot be closed from there.
        """
        if constraints is not None:
            return self._for_call(constraints).project(q, v, on_error=on_error)
        if on_error != "raise":
            given = {"q": q} if v is None else {"q": q, "v": v}
            return self._nan_where_bad(on_error, self.project, given)
        return assembly.project(self.model, q, v, self._held)

    def mobility(self, q: Coordinates) -> Mobility:
        """How the robot can move at a configuration (nq,) on its loops; ``print`` it."""
        return mobilities.mobility(self.model, q)

    def minimal(self, q: Coordinates) -> MinimalCoordinates:
        """Independent coordinates at a configuration (nq,) on the loops.

        ``m.independent`` are their names; v = ``m.X`` v_R; ``m.bias(q, v)`` the rest of v̇;
        ``m.coordinates(q)`` and ``m.expand(q_R, v_R)`` go there and back; ``m.operators(q)`` are
        those of the embedded tree, on nodes of links that move together.
        """
        return minimal_coordinates.minimal(self.model, q)

    def constrained_dynamics(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        method: str = "auto",
        passive: Passive = False,
        on_error: str = "raise",
        constraints: Sequence[Constraint] | None = None,
    ) -> ConstrainedDynamics:
        """Accelerations on the loops and what the loops do: ``.vdot .wrenches .multipliers``.

        Args:
            q: (..., nq), on the loops.
            v: (..., nv), on the loops.
            tau: (..., nv).
            forces, reference: External wrenches, as in ``forward_dynamics``.
            method: ``"auto"``, ``"kkt"``, ``"range"``, ``"null"``, ``"embedding"``, ``"proximal"``
                or ``"join"``; they agree.
            passive: As in ``forward_dynamics``.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
            constraints: More constraints, for this call.

        Raises:
            LoopOpenError, LoopVelocityError: A state is not on the loops.
        """
        if passive is not False and (parts := force_parts(self.model, passive)):
            tau = with_passive_force(self.model, q, v, tau, parts)
        if constraints is not None:
            robot = self._for_call(constraints)
            return robot.constrained_dynamics(  # type: ignore[no-any-return]
                q, v, tau, forces=forces, reference=reference, method=method, on_error=on_error
            )
        if on_error != "raise":
            return self._nan_where_bad(
                on_error,
                partial(self.constrained_dynamics, reference=reference, method=method),
                {"q": q, "v": v, "tau": tau},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        held = self._held
        return constrained_dynamics.constrained_dynamics(
            self.model, q, v, tau, wrenches, method, held
        )

    def constrained_inverse_dynamics(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        *,
        actuated: Sequence[str] | None = None,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        constraints: Sequence[Constraint] | None = None,
        allow_residual: bool = False,
        passive: Passive = False,
        on_error: str = "raise",
    ) -> ConstrainedInverse:
        """Efforts of actuators that give the accelerations ``vdot`` on the loops.

        ``.effort`` is the least-norm solution, ``.tau`` the same as joint forces, ``.wrenches``
        what the loops carry, ``.internal`` the efforts that squeeze without moving.

        Args:
            q: (..., nq), on the loops.
            v, vdot: (..., nv), on the loops.
            actuated: Names of actuated joints; default: ``robot.actuated``, those to which the file
                gives motors, and all joints where it says nothing of motors. The result's
                ``.actuated`` has the coordinates that were taken.
            forces, reference: As in ``inverse_dynamics``.
            constraints: More constraints, for this call.
            allow_residual: Give the nearest efforts if the actuators cannot drive the motion.
            passive: As in ``inverse_dynamics``: forces of the joints themselves that the efforts
                make up for.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.

        Raises:
            UnderactuatedError: The actuators cannot give this acceleration; it names the motion.
            LoopOpenError, LoopVelocityError: The motion is not on the loops.
        """
        if constraints is not None:
            return self._for_call(constraints).constrained_inverse_dynamics(  # type: ignore[no-any-return]
                q, v, vdot, actuated=actuated, forces=forces, reference=reference,
                allow_residual=allow_residual, passive=passive, on_error=on_error,
            )  # fmt: skip
        if on_error != "raise":
            call = partial(
                self.constrained_inverse_dynamics, actuated=actuated, reference=reference,
                allow_residual=allow_residual, passive=passive,
            )  # fmt: skip
            return self._nan_where_bad(on_error, call, {"q": q, "v": v, "vdot": vdot}, forces)
        wrenches = check_wrenches(self.model, q, forces, reference)
        return inverse.constrained_inverse_dynamics(
            self.model,
            q,
            v,
            vdot,
            actuated,
            wrenches,
            allow_residual=allow_residual,
            held=self._held,
            passive=passive,
        )

    def _nan_where_bad(
        self,
        on_error: str,
        call: Callable[..., T],
        arguments: Mapping[str, Coordinates],
        forces: Mapping[str, ArrayLike] | None = None,
    ) -> T:
        """As ``nan_where_bad``; where no sample is good, the shapes come from a state at rest."""
        try:
            return nan_where_bad(self.model, on_error, call, arguments, forces)
        except SampleError as error:
            arrays = {
                name: read_coordinates(self.model, x, "q" if name == "q" else "v", name)
                for name, x in arguments.items()
            }
            batch = batch_shape(self.model, arrays)
            if not np.broadcast_to(error.bad, batch).all():
                raise
            rest = self.assemble(neutral(self.model))
            given = {
                name: np.broadcast_to(rest if name == "q" else 0.0, (*batch, x.shape[-1]))
                for name, x in arrays.items()
            }
            found: T = with_nan(call(**given), np.ones(batch, dtype=bool))
            return found


class ClosesLoops(Constrained):
    """What a robot with active loops does in its own way."""

    _entries: dict[Hashable, Entry | None]

    @cached_property
    def _dynamics_key(self) -> Hashable:
        """Of the entry for plain arrays; motions that are prescribed have none."""
        return None if self._drives else dynamics_key("double", self._held_anywhere)

    if TYPE_CHECKING:
        name: str

    def forward_dynamics(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        method: str = "auto",
        passive: Passive = False,
        out: Array | None = None,
        on_error: str = "raise",
        constraints: Sequence[Constraint] | None = None,
    ) -> Array:
        """Joint accelerations (..., nv) on the loops under the joint forces ``tau``.

        Args:
            q: (..., nq), on the loops.
            v: (..., nv), on the loops.
            tau: (..., nv).
            forces, reference: As in ``inverse_dynamics``.
            method: As in ``constrained_dynamics``.
            passive: As of a tree.
            out: Where to put the result; an array of its shape and dtype.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
            constraints: More constraints, for this call.

        Raises:
            LoopOpenError, LoopVelocityError: A state is not on the loops.
        """
        if passive is not False and (parts := force_parts(self.model, passive)):
            tau = with_passive_force(self.model, q, v, tau, parts)
        if constraints is not None:
            robot = self._for_call(constraints)
            return robot.forward_dynamics(  # type: ignore[no-any-return]
                q, v, tau, forces=forces, reference=reference, method=method, out=out,
                on_error=on_error,
            )  # fmt: skip
        if forces is None and method == "auto" and reference == "world_aligned":
            entry = self._entries.get(self._dynamics_key)
            if (
                entry is not None
                and on_error is RAISE
                and (result := entry(q, v, tau, out)) is not None
            ):
                return result
        elif forces is not None and method == "auto" and on_error is RAISE:
            result = self._pushed_by_entry(q, v, tau, forces, reference, out)
            if result is not None:
                return result
        if on_error != "raise":
            return self._nan_where_bad(
                on_error,
                partial(self.forward_dynamics, reference=reference, method=method, out=out),
                {"q": q, "v": v, "tau": tau},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        held = self._held
        return constrained_dynamics.forward_dynamics(
            self.model, q, v, tau, wrenches, method, out, held
        )

    aba = forward_dynamics

    def _pushed_by_entry(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        forces: Mapping[str, ArrayLike],
        reference: str,
        out: Array | None,
    ) -> Array | None:
        """Accelerations under wrenches for plain arrays by two entries, if these are at hand: the
        joint forces of the wrenches, and dynamics."""
        entry = self._entries.get(self._dynamics_key)
        if entry is None or type(tau) is not np.ndarray:
            return None
        table = entries(loop_system(self.model).tree)
        front = table.get(_PUSHING_FRONT)
        if front is None:
            return None
        given = (q, forces, reference)
        push = front(*given)
        if push is None:
            push = try_other_frames(table, PUSHING, given)
        found: Array | None = None if push is None else entry(q, v, tau + push, out)
        return found

    def linearize(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        method: str = "auto",
        passive: Passive = False,
        wrt: Sequence[str] | None = None,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        on_error: str = "raise",
        constraints: Sequence[Constraint] | None = None,
    ) -> LoopLinearization:
        """Accelerations on the loops and their derivatives; ``.reduced()`` in minimal coordinates.

        Besides ``vdot_q vdot_v vdot_tau`` there are ``multipliers_q``, ``wrench_q[loop]`` and so
        on. The full ``A`` has two zero eigenvalues per independent row: steps off the loops. Where
        rows depend on each other, derivatives exist along the loops only (``.tangential``).

        Args:
            q, v, tau, forces, reference: As of a tree's ``linearize``; states on the loops.
            method: As in ``constrained_dynamics``.
            passive: As of a tree.
            wrt, rows, columns: As of a tree: a part of the result, which is worked out whole.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
            constraints: More constraints, for this call.
        """
        if constraints is not None:
            return self._for_call(constraints).linearize(  # type: ignore[no-any-return]
                q, v, tau, forces=forces, reference=reference, method=method, passive=passive,
                wrt=wrt, rows=rows, columns=columns, on_error=on_error,
            )  # fmt: skip
        if not (wrt is None and rows is None and columns is None):
            whole = partial(
                self.linearize, q, v, tau, forces=forces, reference=reference, method=method,
                passive=passive, on_error=on_error,
            )  # fmt: skip
            choice = part_choice(self.model, "linearize", wrt, rows, columns)
            return linearize_part(self.model, choice, q, v, tau, whole)  # type: ignore[return-value]
        if passive is not False and (parts := force_parts(self.model, passive)):
            total = with_passive_force(self.model, q, v, tau, parts)
            at = self.linearize(
                q, v, total, forces=forces, reference=reference, method=method, on_error=on_error
            )
            return linearized_with_passive(at, self.model, q, v, parts)
        if on_error != "raise":
            return self._nan_where_bad(
                on_error,
                partial(self.linearize, reference=reference, method=method),
                {"q": q, "v": v, "tau": tau},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        held = self._held
        return linearization.linearize(self.model, q, v, tau, wrenches, method, held)

    def discretize(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        dt: float,
        *,
        method: str = "semi_implicit",
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        passive: Passive = False,
        on_error: str = "raise",
    ) -> Discretization:
        """A step of time ``dt`` [s] that keeps the loops, and its exact derivatives.

        𝓜(v' - v) = dt (τ - 𝒞) + L*Λ with Lv' = 0 and q' = q ⊕ dt v'; loops open by O(dt²), which
        ``step`` and ``simulate`` take back by projecting. With ``passive`` springs and damping are
        as at the start of the step.
        """
        if passive is not False and (parts := force_parts(self.model, passive)):
            total = with_passive_force(self.model, q, v, tau, parts)
            step = self.discretize(
                q, v, total, dt, method=method, forces=forces, reference=reference,
                on_error=on_error,
            )  # fmt: skip
            return discretized_with_passive(step, self.model, q, v, parts)
        if forces is None and reference == "world_aligned" and isinstance(dt, float) and dt > 0.0:
            entry: Any = self._entries.get(("discretize", method)) if type(method) is str else None
            if entry is not None and on_error is RAISE and type(q) is np.ndarray and 0 < q.ndim < 3:
                rows = number_rows(dt, len(q) if q.ndim == 2 else None)
                if (found := entry(q, v, tau, rows)) is not None:
                    return Discretization(**found)
        if on_error != "raise":
            return self._nan_where_bad(
                on_error,
                partial(self.discretize, dt=dt, method=method, reference=reference),
                {"q": q, "v": v, "tau": tau},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return linearization.discretize(self.model, q, v, tau, dt, method, wrenches)

    def jvp(
        self,
        function: str,
        q: Coordinates,
        v: Coordinates,
        x: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        method: str = "rigid",
        on_error: str = "raise",
        **changes: Coordinates,
    ) -> Array:
        """The change (..., nv) of a result along changes of the arguments; see a tree's ``jvp``."""
        if function != "forward_dynamics":
            return super().jvp(  # type: ignore[misc,no-any-return]
                function, q, v, x, forces=forces, reference=reference, method=method,
                on_error=on_error, **changes,
            )  # fmt: skip
        _check_changes(changes)
        at = self.linearize(q, v, x, forces=forces, reference=reference, on_error=on_error)
        total = np.zeros_like(at.vdot)
        for name, matrix in zip(_CHANGES, (at.vdot_q, at.vdot_v, at.vdot_tau), strict=True):
            if name in changes:
                (step,) = checked_state(self.model, v=changes[name])
                total = total + (matrix @ step[..., None])[..., 0]
        return total

    def vjp(
        self,
        function: str,
        q: Coordinates,
        v: Coordinates,
        x: Coordinates,
        weights: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        on_error: str = "raise",
    ) -> dict[str, Array]:
        """The gradient of ``weights · result``, (..., nv) by name; see a tree's ``vjp``."""
        if function != "forward_dynamics":
            return super().vjp(  # type: ignore[misc,no-any-return]
                function, q, v, x, weights, forces=forces, reference=reference, on_error=on_error
            )
        at = self.linearize(q, v, x, forces=forces, reference=reference, on_error=on_error)
        (w,) = checked_state(self.model, v=weights)
        matrices = {"q": at.vdot_q, "v": at.vdot_v, "tau": at.vdot_tau}
        return {
            name: (np.swapaxes(matrix, -1, -2) @ w[..., None])[..., 0]
            for name, matrix in matrices.items()
        }

    def hybrid_dynamics(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        vdot: Coordinates,
        prescribed: Sequence[str],
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        on_error: str = "raise",
    ) -> tuple[Array, Array]:
        """Dynamics on the loops with the motion of some joints prescribed; as of a tree.

        The forces of prescribed joints are those that their drives give; the others keep theirs.

        Raises:
            ArgumentError: The loops do not allow the prescribed accelerations.
        """
        if on_error != "raise":
            return self._nan_where_bad(
                on_error,
                partial(self.hybrid_dynamics, prescribed=prescribed, reference=reference),
                {"q": q, "v": v, "tau": tau, "vdot": vdot},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return driven_joints.hybrid_dynamics(self.model, q, v, tau, vdot, prescribed, wrenches)

    def compile(self, wanted: Any, **options: Any) -> RobotKernel:
        """As of a tree; quantities about motion are those on the loops.

        ``"forward_dynamics"`` is ``"loop_dynamics"`` and ``"step"`` is ``"loop_step"``; states that
        are not on the loops are a ``LoopOpenError`` or ``LoopVelocityError``; velocities of a step
        are projected with its end.

        Raises:
            LoopError: The quantity is about motion and has no program on the loops.
        """
        if isinstance(wanted, str):
            wanted = quantity_on(self.model, wanted, f"compile({wanted!r})")
        return super().compile(wanted, **options)  # type: ignore[misc,no-any-return]

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
        """The state after one step of time, on the loops: (q, v); see a tree's ``step``.

        Raises:
            LoopOpenError: The state is not on the loops, or the step tears them open.
        """
        if on_error != "raise":
            return self._nan_where_bad(
                on_error,
                partial(self.step, dt=dt, scheme=scheme, reference=reference, passive=passive),
                {"q": q, "v": v, "tau": tau},
                forces,
            )
        return super().step(  # type: ignore[misc,no-any-return]
            q, v, tau, dt, scheme, forces=forces, reference=reference, passive=passive
        )

    def linearize_hybrid(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        vdot: Coordinates,
        prescribed: Sequence[str],
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        on_error: str = "raise",
    ) -> HybridLinearization:
        """``hybrid_dynamics`` on the loops and its derivatives; as of a tree.

        Where rows of loops depend on each other, derivatives with respect to q exist along the
        loops only, as those of ``linearize``.

        Raises:
            ArgumentError: The loops tie prescribed joints to each other.
        """
        if on_error != "raise":
            return self._nan_where_bad(
                on_error,
                partial(self.linearize_hybrid, prescribed=prescribed, reference=reference),
                {"q": q, "v": v, "tau": tau, "vdot": vdot},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return driven_joints.linearize_hybrid(self.model, q, v, tau, vdot, prescribed, wrenches)

    def forward_dynamics_second(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        on_error: str = "raise",
    ) -> LoopForwardSecond:
        """Second derivatives of joint accelerations on the loops; as of a tree.

        Rows that depend on others are left out (``.rows`` has those that are kept), and ``.vdot_q
        .vdot_v .vdot_tau`` are the first derivatives that go with the second ones: along the loops
        both are those of the robot.

        Args:
            q, v, tau, forces, reference: As of a tree; states on the loops.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        if on_error != "raise":
            return self._nan_where_bad(
                on_error,
                partial(self.forward_dynamics_second, reference=reference),
                {"q": q, "v": v, "tau": tau},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return second_derivatives.forward_second(self.model, q, v, tau, wrenches)

    def vdot_parameters(
        self, q: Coordinates, v: Coordinates, tau: Coordinates, *, on_error: str = "raise"
    ) -> Array:
        """∂v̇/∂π (..., nv, 10 bodies) on the loops: how accelerations follow inertial parameters.

        -(∂v̇/∂τ)Y, Y the tree's regressor: what a parameter asks for acts like a joint force.

        Args:
            q, v, tau: (..., nq), (..., nv), (..., nv), on the loops.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        if on_error != "raise":
            return self._nan_where_bad(on_error, self.vdot_parameters, {"q": q, "v": v, "tau": tau})
        at = self.linearize(q, v, tau)
        asked = parameters.regressor(loop_system(self.model).tree, q, v, at.vdot)
        return np.asarray(-(at.vdot_tau @ asked))

    def diagonal_forward_dynamics(
        self,
        q: Coordinates,
        zeta: Coordinates,
        tau: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
    ) -> TotalRates:
        """Rates of the state (q, ζ) on the loops, ζ = L*v the tree's total joint rates.

        Dζ̇ + C_ζ + κ_g = L⁻¹(τ + joint forces of the loops): the loops couple what is decoupled in
        the tree. Rates that decouple the robot with its loops are fewer, those of the embedded
        tree: ``robot.minimal(q).operators().eta``.

        Raises:
            LoopOpenError, LoopVelocityError: q, or the velocity of ζ, is not on the loops.
            ArgumentError: Mimic joints were reduced, so that 𝓜 has no such factors.
        """
        wrenches = check_wrenches(self.model, q, forces, reference)
        v = diagonalize(self.model, q).from_zeta(zeta)
        at = constrained_dynamics.constrained_dynamics(self.model, q, v, tau, wrenches)
        (push,) = checked_state(self.model, v=tau)
        tree = loop_system(self.model).tree
        return diagonal_forward_dynamics(tree, q, zeta, push + at.joint_forces, wrenches)

    def operational_inertia(
        self,
        q: Coordinates,
        frames: Sequence[str],
        *,
        reference: str = "local",
        damping: float = 0.0,
        on_error: str = "raise",
    ) -> Array:
        """Inertia (..., 6m, 6m) that m frames show to forces on them while the loops hold.

        The inverse of JX(X*𝓜X)⁻¹X*J*, X the motions on the loops; arguments as of a tree.

        Raises:
            LoopOpenError: A configuration is not on the loops.
            SingularPoseError: The frames cannot move in every direction there.
            ArgumentError: They cannot anywhere: the loops leave them too few ways to move.
        """
        if on_error != "raise":
            call = partial(
                self.operational_inertia, frames=frames, reference=reference, damping=damping
            )
            return self._nan_where_bad(on_error, call, {"q": q})
        return operational.operational_inertia(self.model, q, frames, reference, damping)

    def hvp(
        self,
        function: str,
        q: Coordinates,
        v: Coordinates,
        x: Coordinates,
        weights: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        on_error: str = "raise",
        **changes: Coordinates,
    ) -> dict[str, Array]:
        """Second derivatives of ``weights · result`` times a direction; see a tree's ``hvp``.

        Of forward dynamics they are those of ``forward_dynamics_second``.
        """
        if function != "forward_dynamics":
            return super().hvp(  # type: ignore[misc,no-any-return]
                function, q, v, x, weights, forces=forces, reference=reference,
                on_error=on_error, **changes,
            )  # fmt: skip
        _check_changes(changes)
        moves = {name: changes.get(name, np.zeros(self.model.nv, np.float32)) for name in _CHANGES}
        if on_error != "raise":
            return self._nan_where_bad(
                on_error,
                partial(self.hvp, function, reference=reference),
                {"q": q, "v": v, "x": x, "weights": weights, **moves},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return second_derivatives.hvp(self.model, q, v, x, weights, **moves, wrenches=wrenches)


_CHANGES = ("dq", "dv", "dtau")
"""Changes of the arguments of forward dynamics."""


def _check_changes(changes: Mapping[str, object]) -> None:
    for name in changes:
        if name not in _CHANGES:
            raise UnknownNameError("change", name, _CHANGES, "forward_dynamics")

# SPDX-License-Identifier: BSD-3-Clause
"""What a user can ask a robot about derivatives; a part of ``Robot``."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from phistar.arguments import number_rows
from phistar.arrays import Array
from phistar.derivatives import (
    discrete,
    first,
    hybrid,
    kinematic_rates,
    parameters,
    second,
    trajectories,
)
from phistar.derivatives.discrete import STAGED_METHODS, Discretization
from phistar.derivatives.first import InverseLinearization, Linearization, linearize_key
from phistar.derivatives.hybrid import HybridLinearization
from phistar.derivatives.partial_results import (
    PartChoice,
    SparseInverseLinearization,
    is_sparse,
    linearize_inverse_part,
    linearize_inverse_sparse,
    linearize_part,
    part_choice,
)
from phistar.derivatives.passive_terms import (
    discretized_with_passive,
    inverse_with_passive,
    linearized_with_passive,
)
from phistar.derivatives.second import ForwardSecond, InverseSecond
from phistar.derivatives.trajectories import TrajectoryLike
from phistar.errors import ArgumentError
from phistar.joint_physics.passive_forces import force_parts, with_passive_force
from phistar.model.bad_samples import RAISE, nan_where_bad
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.model.model import Model
from phistar.model.model_cache import ON_FRAMES, Entry, front_key, try_other_frames
from phistar.model.wrenches import check_wrenches
from phistar.result_buffers import ResultBuffers

new = object.__new__
"""Makes results of which all is known without their constructors, which take longer."""
set_linearization = vars(Linearization)["__dict__"].__set__
set_inverse_linearization = vars(InverseLinearization)["__dict__"].__set__
"""Gives them their attributes; to copy these takes longer, too."""

_ON_FRAMES = front_key("linearize")
_INVERSE_ON_FRAMES = front_key("linearize_inverse")


_Part = tuple[Sequence[str] | None, Sequence[str] | None, Sequence[str] | None]
"""What is wanted of derivatives: ``wrt``, ``rows`` and ``columns``, each None for all."""


def _is_whole(part: _Part) -> bool:
    """Whether all is wanted."""
    return all(each is None for each in part)


def _is_usual(
    forces: Mapping[str, ArrayLike] | None, reference: str, on_error: str, method: str = "auto"
) -> bool:
    """Whether a call chooses nothing: what its programs give then needs no more work."""
    chosen = forces is None and reference == "world_aligned"
    return chosen and on_error == "raise" and method == "auto"


if TYPE_CHECKING:
    from phistar.constraints import Constraint


class Differentiates:
    """Derivatives of a robot's dynamics and kinematics.

    Derivatives with respect to q are along tangent steps (..., nv): entry k says what changes as
    the robot moves to ``integrate(q, ε e_k)``. For joints with one axis these are partial
    derivatives; rotations and free joints step in the axes of the moving link, as v does.
    """

    model: Model
    _entries: dict[Hashable, Entry | None]

    if TYPE_CHECKING:

        def _for_call(self, constraints: Sequence[Constraint]) -> Any: ...

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
        ) -> Discretization: ...

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
    ) -> Linearization:
        """Joint accelerations and their derivatives: ``.vdot_q .vdot_v .vdot_tau .A .B``.

        Args:
            q: (..., nq).
            v, tau: (..., nv).
            forces: External wrenches (..., 6) on named frames, as in ``forward_dynamics``; they
                stay as they are in the axes of ``reference`` while the robot moves.
            reference: Axes and point of those wrenches.
            method: The results are the same. ``"auto"``: ``"product"`` or, for long chains of more
                than 12 joints, ``"split"``; from some 90 joints on (350 for a single sample)
                ``"columns"``. ``"product"``
                (or ``"4"``, after the algorithms of Jain and Rodriguez): the inverse mass matrix
                times the derivatives of inverse dynamics. ``"columns"``: column by column in
                O(n²), no mass matrix, by the rigid inertias of links. ``"split"`` (``"6"``): by
                single walks along the branches, in O(n²), too.
            passive: As in ``forward_dynamics``: springs and damping enter the derivatives, too.
            wrt: Derivatives that are wanted, some of ``"q"``, ``"v"`` and ``"tau"``; the others are
                neither computed nor stored, and not there. Default: all.
            rows, columns: Names of joints whose rows and columns of the derivatives are wanted, in
                this order; default: all. ``vdot`` is that of all joints in any case.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
            constraints: Of ``phistar.constraints``, for this call; see ``constrained_dynamics``.

        Raises:
            SingularHingeError: A joint moves no inertia.
        """
        if (
            passive is False
            and type(method) is str
            and on_error is RAISE
            and wrt is None
            and rows is None
            and columns is None
            and constraints is None
        ):
            if forces is None:
                key = "linearize" if method == "auto" else ("linearize", method)
                entry: Any = self._entries.get(key) if reference == "world_aligned" else None
                found = None if entry is None else entry(q, v, tau)
            else:
                front = _ON_FRAMES if method == "auto" else (("linearize", method), ON_FRAMES)
                entry = self._entries.get(front)
                found = None if entry is None else entry(q, v, tau, forces, reference)
            if found is not None:
                # As below; a call more would take 40 ns.
                found["model"], found["v"] = self.model, v.copy()  # type: ignore[union-attr]
                result = new(Linearization)
                set_linearization(result, found)
                return result
        options: dict[str, Any] = {
            "forces": forces, "reference": reference, "method": method, "on_error": on_error,
        }  # fmt: skip
        part = (wrt, rows, columns)
        return self._linearize_otherwise(q, v, tau, part, passive, constraints, options)

    def _linearize_otherwise(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        part: _Part,
        passive: Passive,
        constraints: Sequence[Constraint] | None,
        options: dict[str, Any],
    ) -> Linearization:
        """``linearize`` without the entry that was used last."""
        wrt, rows, columns = part
        if constraints is not None:
            constrained: Linearization = self._for_call(constraints).linearize(
                q, v, tau, passive=passive, wrt=wrt, rows=rows, columns=columns, **options
            )
            return constrained
        if _is_whole(part):
            return self._linearize_whole(q, v, tau, passive, **options)
        choice = part_choice(self.model, "linearize", wrt, rows, columns)
        whole = partial(self.linearize, q, v, tau, passive=passive, **options)
        usual = passive is False and _is_usual(**options)
        return linearize_part(self.model, choice, q, v, tau, None if usual else whole)

    def _linearize_whole(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        passive: Passive,
        forces: Mapping[str, ArrayLike] | None,
        reference: str,
        method: str,
        on_error: str,
    ) -> Linearization:
        """``linearize`` of all joints, with all derivatives."""
        if passive is not False:
            parts = force_parts(self.model, passive)
            total = with_passive_force(self.model, q, v, tau, parts) if parts else tau
            at = self.linearize(
                q, v, total, forces=forces, reference=reference, method=method, on_error=on_error
            )
            return linearized_with_passive(at, self.model, q, v, parts) if parts else at
        if on_error != "raise":
            whole = partial(self.linearize, reference=reference, method=method)
            arrays = {"q": q, "v": v, "tau": tau}
            return nan_where_bad(self.model, on_error, whole, arrays, forces)
        if on_error is RAISE and type(method) is str:
            given = (q, v, tau, forces, reference)
            found = try_other_frames(self._entries, linearize_key(method), given)
            if found is not None:
                found["model"], found["v"] = self.model, v.copy()  # type: ignore[union-attr]
                result = new(Linearization)
                set_linearization(result, found)
                return result
        wrenches = check_wrenches(self.model, q, forces, reference)
        return first.linearize(self.model, q, v, tau, wrenches, method)

    def linearize_along(
        self,
        trajectory: TrajectoryLike | Coordinates,
        v: Coordinates | None = None,
        tau: Coordinates | None = None,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        method: str = "auto",
        passive: Passive = False,
    ) -> Linearization:
        """``linearize`` at every knot of a motion, in one batched call.

        Args:
            trajectory: Something with arrays ``q``, ``v`` and ``tau``, as a
                ``phistar.control.Trajectory``; or q (N, ..., nq) itself.
            v, tau: With q: (N, ..., nv). The first axis is time. Without joint forces at the last
                knot, (N - 1, ..., nv), that knot is left out.
            forces, reference, method, passive: As in ``linearize``.

        Returns:
            A linearization whose arrays have time as their first axis.
        """
        knots = trajectories.knots(self.model, trajectory, v, tau)
        return self.linearize(
            *knots, forces=forces, reference=reference, method=method, passive=passive
        )

    @overload
    def linearize_inverse(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        *,
        form: Literal["sparse"],
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        passive: Passive = False,
        on_error: str = "raise",
    ) -> SparseInverseLinearization: ...
    @overload
    def linearize_inverse(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        *,
        form: Literal["dense"] = "dense",
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        passive: Passive = False,
        wrt: Sequence[str] | None = None,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        out: ResultBuffers | None = None,
        on_error: str = "raise",
    ) -> InverseLinearization: ...
    def linearize_inverse(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        *,
        form: str = "dense",
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        passive: Passive = False,
        wrt: Sequence[str] | None = None,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        out: ResultBuffers | None = None,
        on_error: str = "raise",
    ) -> InverseLinearization | SparseInverseLinearization:
        """Joint forces and their derivatives: ``.tau .tau_q .tau_v .tau_vdot``.

        Args:
            q: (..., nq).
            v, vdot: (..., nv).
            form: ``"dense"``, or ``"sparse"``: matrices without the entries that are zero for every
                state, because their joints are on different branches. Where the others stand is
                told once, values for each sample (``SparseMatrix``).
            forces, reference, passive: As in ``linearize``.
            wrt, rows, columns: As in ``linearize``, of ``"q"``, ``"v"`` and ``"vdot"``.
            out: Where to put the results, so that zeros are not written each time:
                ``result_buffers("linearize_inverse", batch)``. Without the arguments from ``form``
                on.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        if (
            passive is False
            and form == "dense"
            and on_error is RAISE
            and wrt is None
            and rows is None
            and columns is None
            and out is None
        ):
            if forces is None:
                usual = reference == "world_aligned"
                entry: Any = self._entries.get("linearize_inverse") if usual else None
                found = None if entry is None else entry(q, v, vdot)
            else:
                entry = self._entries.get(_INVERSE_ON_FRAMES)
                found = None if entry is None else entry(q, v, vdot, forces, reference)
            if found is not None:
                result = new(InverseLinearization)
                set_inverse_linearization(result, found)
                return result
        options: dict[str, Any] = {
            "forces": forces, "reference": reference, "on_error": on_error,
        }  # fmt: skip
        part = (wrt, rows, columns)
        if out is not None:
            return self._linearize_inverse_into(out, q, v, vdot, form, part, passive, options)
        if form == "dense" and _is_whole(part):
            return self._linearize_inverse_whole(q, v, vdot, passive, **options)
        choice = part_choice(self.model, "linearize_inverse", wrt, rows, columns)
        return self._linearize_inverse_part(q, v, vdot, form, choice, passive, options)

    def _linearize_inverse_into(
        self,
        out: ResultBuffers,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        form: str,
        part: _Part,
        passive: Passive,
        options: dict[str, Any],
    ) -> InverseLinearization:
        """``linearize_inverse`` into memory that keeps its zeros."""
        whole = form == "dense" and _is_whole(part) and passive is False
        if not whole or options["forces"] is not None or options["on_error"] != "raise":
            raise ArgumentError(
                "out of linearize_inverse is for all matrices, dense, without forces= and "
                "passive=, and on_error='raise'; leave out or these arguments away"
            )
        return first.linearize_inverse_into(out, self.model, q, v, vdot)

    def _linearize_inverse_whole(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        passive: Passive,
        forces: Mapping[str, ArrayLike] | None,
        reference: str,
        on_error: str,
    ) -> InverseLinearization:
        """``linearize_inverse`` of all joints, with all derivatives."""
        if passive is not False:
            parts = force_parts(self.model, passive)
            at: InverseLinearization = self.linearize_inverse(
                q, v, vdot, forces=forces, reference=reference, on_error=on_error
            )
            return inverse_with_passive(at, self.model, q, v, parts) if parts else at
        if on_error != "raise":
            whole = partial(self.linearize_inverse, reference=reference)
            arrays = {"q": q, "v": v, "vdot": vdot}
            found = nan_where_bad(self.model, on_error, whole, arrays, forces)
            return cast(InverseLinearization, found)
        if on_error is RAISE:
            given = (q, v, vdot, forces, reference)
            found = try_other_frames(self._entries, "linearize_inverse", given)
            if found is not None:
                result = new(InverseLinearization)
                set_inverse_linearization(result, found)
                return result
        wrenches = check_wrenches(self.model, q, forces, reference)
        return first.linearize_inverse(self.model, q, v, vdot, wrenches)

    def _linearize_inverse_part(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        form: str,
        part: PartChoice,
        passive: Passive,
        options: dict[str, Any],
    ) -> InverseLinearization | SparseInverseLinearization:
        """``linearize_inverse`` where parts, or another form, are chosen."""

        def whole() -> InverseLinearization:
            found: InverseLinearization = self.linearize_inverse(
                q, v, vdot, passive=passive, **options
            )
            return found

        otherwise = None if passive is False and _is_usual(**options) else whole
        if is_sparse(form, part):
            return linearize_inverse_sparse(self.model, q, v, vdot, otherwise)
        return linearize_inverse_part(part, self.model, q, v, vdot, otherwise)

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
        """``hybrid_dynamics`` and its derivatives: the motion of some joints is prescribed.

        With the free joint of the base prescribed it is the linearization of a robot on a moving
        base. Results are ``.vdot .tau`` and the derivatives of both with respect to q, v, the
        forces of the free joints and the accelerations of the prescribed ones, ``.vdot_q`` to
        ``.tau_vdot``.

        Args:
            q: (..., nq).
            v: (..., nv).
            tau: (..., nv); read for the free joints.
            vdot: (..., nv); read for the prescribed joints.
            prescribed: Names of the joints whose acceleration is given.
            forces, reference: As in ``linearize``.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        if on_error != "raise":
            return nan_where_bad(
                self.model,
                on_error,
                partial(self.linearize_hybrid, prescribed=prescribed, reference=reference),
                {"q": q, "v": v, "tau": tau, "vdot": vdot},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return hybrid.linearize_hybrid(self.model, q, v, tau, vdot, prescribed, wrenches)

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
        """A step of time ``dt`` [s] and its exact derivatives: ``.q .v .A .B``.

        Args:
            q: (..., nq).
            v, tau: (..., nv); tau is held during the step.
            dt: Its length [s].
            method: ``"semi_implicit"``: v first, then q with the new v; ``"euler"``: both with the
                old ones; ``"implicit"``: as ``"semi_implicit"``, with springs and damping of the
                joints at the end of the step, as of ``step(scheme="implicit")``; ``"midpoint"``,
                ``"rk4"``: the steps of ``simulate``, a linearization at each stage.
            forces, reference, passive: As in ``linearize``; friction and limits of joints at rest
                are left out.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        if (
            passive is False
            and forces is None
            and reference == "world_aligned"
            and on_error is RAISE
            and type(method) is str
            and type(q) is ndarray
            and 0 < q.ndim < 3
            and isinstance(dt, float)
            and dt > 0.0
        ):
            usual = "semi_implicit" if method == "implicit" else method
            entry: Any = self._entries.get(("discretize", usual))
            rows = number_rows(dt, len(q) if q.ndim == 2 else None)
            if entry is not None and (found := entry(q, v, tau, rows)) is not None:
                result = new(Discretization)
                result.__dict__.update(found)
                return result
        options: dict[str, Any] = {
            "forces": forces, "reference": reference, "on_error": on_error,
        }  # fmt: skip
        if method in STAGED_METHODS:
            return self._discretize_in_stages(q, v, tau, dt, method, passive=passive, **options)
        if passive is not False:
            return self._discretize_passive(q, v, tau, dt, method, passive, **options)
        return self._discretize_otherwise(q, v, tau, dt, method, **options)

    def _discretize_otherwise(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        dt: float,
        method: str,
        **options: Any,
    ) -> Discretization:
        """``discretize`` without its entry, by one of its own methods."""
        forces, reference, on_error = (options[k] for k in ("forces", "reference", "on_error"))
        method = "semi_implicit" if method == "implicit" else method
        if on_error != "raise":
            call = partial(self.discretize, dt=dt, method=method, reference=reference)
            return nan_where_bad(self.model, on_error, call, {"q": q, "v": v, "tau": tau}, forces)
        wrenches = check_wrenches(self.model, q, forces, reference)
        return discrete.discretize(self.model, q, v, tau, dt, method, wrenches)

    def _discretize_passive(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        dt: float,
        method: str,
        passive: Passive,
        **options: Any,
    ) -> Discretization:
        """``discretize`` with springs and damping, at the end of the step by ``"implicit"``."""
        parts = force_parts(self.model, passive)
        if method != "implicit" or not parts:
            total = with_passive_force(self.model, q, v, tau, parts) if parts else tau
            step = self.discretize(q, v, total, dt, method=method, **options)
            return discretized_with_passive(step, self.model, q, v, parts) if parts else step
        forces, reference, on_error = (options[k] for k in ("forces", "reference", "on_error"))
        if on_error != "raise":
            call = partial(
                self.discretize, dt=dt, method="implicit", reference=reference, passive=parts
            )
            return nan_where_bad(self.model, on_error, call, {"q": q, "v": v, "tau": tau}, forces)
        wrenches = check_wrenches(self.model, q, forces, reference)
        return discrete.discretize_implicitly(self.model, q, v, tau, dt, wrenches, parts)

    def difference_q(self, q0: Coordinates, q1: Coordinates, *, on_error: str = "raise") -> Array:
        """How ``difference(q0, q1)`` follows tangent steps of q1: (..., nv, nv).

        The identity for joints with one axis. Rotations by half a turn have no derivative.
        """
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.difference_q, {"q0": q0, "q1": q1})
        return trajectories.difference_q(self.model, q0, q1)

    def difference_bias(self, q0: Coordinates, q1: Coordinates, v: Coordinates) -> Array:
        """How ``difference(q0, q1)`` accelerates (..., nv) while q1 moves with a constant v.

        Its second rate is ``difference_q(q0, q1) @ vdot + difference_bias(q0, q1, v)``; the last
        is zero for joints with one axis.
        """
        return trajectories.difference_bias(self.model, q0, q1, v)

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
        """The change (..., nv) of a result along changes of the arguments, in O(n).

        ``robot.jvp("forward_dynamics", q, v, tau, dq=dq, dv=dv, dtau=dtau)`` is
        ``vdot_q dq + vdot_v dv + vdot_tau dtau`` without the matrices.

        Args:
            function: ``"inverse_dynamics"`` or ``"forward_dynamics"``.
            q: (..., nq).
            v: (..., nv).
            x: (..., nv), ``vdot`` for inverse, ``tau`` for forward dynamics.
            forces, reference: As in ``linearize``.
            method: For forward dynamics: ``"rigid"`` works with the inertias of the links,
                ``"articulated"`` (or ``"5"``) with articulated ones, ``"split"`` in the single
                sweeps of Algorithm 6; ``"conventional"`` (``"3"``) solves with the mass matrix, in
                O(n³).
            changes: ``dq``, ``dv`` and ``dvdot`` or ``dtau``, each (..., nv); zero if left out.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        third = "dtau" if function == "forward_dynamics" else "dvdot"
        if type(v) is np.ndarray and type(function) is type(method) is str:
            zero = None if len(changes) == 3 else np.zeros(v.shape)
            dq, dv, dx = changes.get("dq", zero), changes.get("dv", zero), changes.get(third, zero)
            known = ("dq" in changes) + ("dv" in changes) + (third in changes)
            key, result = ("jvp", function, method), None
            if known != len(changes) or on_error is not RAISE:
                pass
            elif forces is None and reference == "world_aligned":
                entry = self._entries.get(key)
                result = None if entry is None else entry(q, v, x, dq, dv, dx)
            elif forces is not None:
                given = (q, v, x, dq, dv, dx, forces, reference)
                entry = self._entries.get((key, ON_FRAMES))
                result = None if entry is None else entry(*given)
                if result is None:
                    result = try_other_frames(self._entries, key, given)
            if result is not None:
                return result
        if on_error != "raise":
            return nan_where_bad(
                self.model,
                on_error,
                partial(self.jvp, function, reference=reference, method=method),
                {"q": q, "v": v, "x": x, **changes},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return first.jvp(self.model, function, (q, v, x), changes, wrenches, method)

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
        """The gradient of ``weights · result`` in O(n): (..., nv) by name of the argument.

        Args:
            function, q, v, x: As in ``jvp``.
            weights: (..., nv).
            forces, reference: As in ``linearize``.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.

        Returns:
            ``{"q": ..., "v": ..., "vdot": ...}``, or ``"tau"`` for forward dynamics.
        """
        found: dict[str, Array] | None = None
        if type(function) is not str or on_error is not RAISE:
            pass
        elif forces is None and reference == "world_aligned":
            entry: Any = self._entries.get(("vjp", function))
            found = None if entry is None else entry(q, v, x, weights)
        elif forces is not None:
            key, given = ("vjp", function), (q, v, x, weights, forces, reference)
            entry = self._entries.get((key, ON_FRAMES))
            found = None if entry is None else entry(*given)
            if found is None:
                found = try_other_frames(self._entries, key, given)
        if found is not None:
            return found
        if on_error != "raise":
            return nan_where_bad(
                self.model,
                on_error,
                partial(self.vjp, function, reference=reference),
                {"q": q, "v": v, "x": x, "weights": weights},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return first.vjp(self.model, function, (q, v, x), weights, wrenches)

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
        """Second derivatives of ``weights · result`` times a direction, in O(n).

        The change of ``vjp`` along ``dq``, ``dv`` and ``dvdot`` or ``dtau``; arguments and results
        as there.
        """
        if on_error != "raise":
            return nan_where_bad(
                self.model,
                on_error,
                partial(self.hvp, function, reference=reference),
                {"q": q, "v": v, "x": x, "weights": weights, **changes},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return second.hvp(self.model, function, (q, v, x), weights, changes, wrenches)

    def inverse_dynamics_second(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        on_error: str = "raise",
    ) -> InverseSecond:
        """Second derivatives of joint forces: ``.qq .qv .vv .q_vdot``, each (..., nv, nv, nv).

        Entry [i, j, k]: entry i of the first derivative in direction j, differentiated along k. For
        joints with several axes ``.qq`` is not symmetric in (j, k), see ``derivatives.second``.

        Args:
            q: (..., nq).
            v, vdot: (..., nv).
            forces, reference: As in ``linearize``.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        if on_error != "raise":
            return nan_where_bad(
                self.model,
                on_error,
                partial(self.inverse_dynamics_second, reference=reference),
                {"q": q, "v": v, "vdot": vdot},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return second.inverse_second(self.model, q, v, vdot, wrenches)

    def forward_dynamics_second(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        on_error: str = "raise",
    ) -> ForwardSecond:
        """Second derivatives of joint accelerations: ``.qq .qv .vv .q_tau``, (..., nv, nv, nv).

        Args:
            q: (..., nq).
            v, tau: (..., nv).
            forces, reference: As in ``linearize``.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        if on_error != "raise":
            return nan_where_bad(
                self.model,
                on_error,
                partial(self.forward_dynamics_second, reference=reference),
                {"q": q, "v": v, "tau": tau},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return second.forward_second(self.model, q, v, tau, wrenches)

    def mass_matrix_q(self, q: Coordinates, *, on_error: str = "raise") -> Array:
        """∂𝓜/∂q (..., nv, nv, nv): [i, j, k] is the change of 𝓜_ij along the step e_k."""
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.mass_matrix_q, {"q": q})
        return second.mass_matrix_q(self.model, q)

    def mass_matrix_qq(self, q: Coordinates, *, on_error: str = "raise") -> Array:
        """∂²𝓜/∂q² (..., nv, nv, nv, nv): [i, j, k, l] is that of 𝓜_ij along e_k, then along e_l.

        Symmetric in (i, j); in (k, l) if the joints have one axis each, see ``derivatives.second``.
        """
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.mass_matrix_qq, {"q": q})
        return second.mass_matrix_qq(self.model, q)

    def gravity_force_q(self, q: Coordinates, *, on_error: str = "raise") -> Array:
        """∂/∂q (..., nv, nv) of ``gravity_force``: the stiffness that gravity gives the robot."""
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.gravity_force_q, {"q": q})
        return kinematic_rates.gravity_force_q(self.model, q)

    def kinetic_energy_q(self, q: Coordinates, v: Coordinates, *, on_error: str = "raise") -> Array:
        """∂/∂q (..., nv) of the kinetic energy, v held (in the axes of the moving links)."""
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.kinetic_energy_q, {"q": q, "v": v})
        return kinematic_rates.kinetic_energy_q(self.model, q, v)

    def jacobian_rate(
        self,
        q: Coordinates,
        v: Coordinates,
        frame: str,
        reference: str = "world_aligned",
        *,
        on_error: str = "raise",
    ) -> Array:
        """Time derivative (..., 6, nv) of ``jacobian`` as the robot moves with v."""
        key = ("jacobian_rate", frame, reference)
        entry = self._entries.get(key) if type(frame) is type(reference) is str else None
        if entry is not None and on_error is RAISE and (result := entry(q, v)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(
                self.model,
                on_error,
                partial(self.jacobian_rate, frame=frame, reference=reference),
                {"q": q, "v": v},
            )
        return kinematic_rates.jacobian_rate(self.model, q, v, frame, reference)

    def frame_acceleration(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        frame: str,
        reference: str = "world_aligned",
        *,
        on_error: str = "raise",
    ) -> Array:
        """Time derivative (..., 6) of ``frame_velocity`` [rad/s^2, m/s^2], without gravity.

        With ``"world_aligned"`` its linear part is the acceleration of the frame's origin.
        """
        key = ("frame_acceleration", frame, reference)
        entry = self._entries.get(key) if type(frame) is type(reference) is str else None
        if entry is not None and on_error is RAISE and (result := entry(q, v, vdot)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(
                self.model,
                on_error,
                partial(self.frame_acceleration, frame=frame, reference=reference),
                {"q": q, "v": v, "vdot": vdot},
            )
        return kinematic_rates.frame_acceleration(self.model, q, v, vdot, frame, reference)

    def regressor(
        self, q: Coordinates, v: Coordinates, vdot: Coordinates, *, on_error: str = "raise"
    ) -> Array:
        """Y (..., nv, 10 bodies): joint forces per unit of inertial parameters.

        ``inverse_dynamics(q, v, vdot)`` is ``Y @ robot.parameters`` plus rotor inertia times vdot,
        and what rotors of joints with several axes ask for as they turn (``turning_rotors``).
        Parameters of a body, in the order of ``phistar.spatial.PARAMETER_NAMES``: mass, first
        moments, inertia about the origin of the body's frame.
        """
        entry = self._entries.get(("regressor",))
        if entry is not None and on_error is RAISE and (result := entry(q, v, vdot)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(
                self.model, on_error, self.regressor, {"q": q, "v": v, "vdot": vdot}
            )
        return parameters.regressor(self.model, q, v, vdot)

    def vdot_parameters(
        self, q: Coordinates, v: Coordinates, tau: Coordinates, *, on_error: str = "raise"
    ) -> Array:
        """∂v̇/∂π (..., nv, 10 bodies): how accelerations follow the inertial parameters."""
        if on_error != "raise":
            return nan_where_bad(
                self.model, on_error, self.vdot_parameters, {"q": q, "v": v, "tau": tau}
            )
        return parameters.vdot_parameters(self.model, q, v, tau)

    @property
    def parameters(self) -> Array:
        """Inertial parameters (10 bodies,) of the moving bodies, in the order of ``regressor``."""
        return parameters.parameters(self.model)

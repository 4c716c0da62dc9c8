# SPDX-License-Identifier: BSD-3-Clause
"""The user's object: a robot that answers by name, for any array-like and any batch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from phistar import dynamics, settings
from phistar.algebra.ir import Expr
from phistar.arguments import check_shapes, number_rows
from phistar.arrays import Array
from phistar.compile import entry_pattern
from phistar.constraints import Constraint, Prescribed, holds_its_place, require_constraints
from phistar.derivatives.derivatives_mixin import Differentiates
from phistar.diagonal.diagonal_mixin import Diagonalized
from phistar.drawing.drawing_mixin import Drawn
from phistar.energies import Energies
from phistar.errors import (
    ArgumentError,
    RobotNotFoundError,
    UnknownNameError,
    close_matches,
    kind_of,
    pluralize,
)
from phistar.functions import Function, operational_inertia
from phistar.geometry.curvature_mixin import Geometry
from phistar.inverse_kinematics.inverse_kinematics_mixin import SolvesInverseKinematics
from phistar.joint_physics.joint_physics_mixin import HasJointPhysics
from phistar.joint_physics.passive_forces import (
    force_parts,
    passive_force_unchecked,
    with_passive_force,
)
from phistar.kernels import RobotKernel
from phistar.kinematics import Kinematics
from phistar.loaders import LoadReport, Source, bundled, load_model
from phistar.loaders.urdf.urdf_writer import export_urdf
from phistar.loops.loop_kernel import LoopKernel
from phistar.loops.loop_operators import LoopOperators
from phistar.loops.loops_mixin import ClosesLoops, Constrained
from phistar.loops.routes import LOOP_METHODS
from phistar.model.bad_samples import RAISE, nan_where_bad
from phistar.model.builder import MimicMode
from phistar.model.components import Loop
from phistar.model.configuration import Coordinates
from phistar.model.description_mixin import Described
from phistar.model.editing.editing_mixin import Edited
from phistar.model.editing.parts import Edit
from phistar.model.joint_physics import Passive
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.model.model_cache import entries, front_key, try_other_frames
from phistar.model.singular import singular_problems
from phistar.model.wrenches import check_wrenches
from phistar.packed import PackedMatrix
from phistar.result_buffers import ResultBuffers
from phistar.sim.simulation_mixin import Simulates
from phistar.thresholds import POLICY
from phistar.viewer.view_mixin import Viewable
from phistar.whole_body import WholeBody
from phistar.whole_system.whole_system_mixin import HasWholeSystem

_INVERSE_DYNAMICS_ON_FRAMES = front_key("inverse_dynamics")
_FORWARD_DYNAMICS_ON_FRAMES = front_key("forward_dynamics")
"""Keys of entries."""
MAX_CONSTRAINED_ROBOTS = 16
"""Sets of constraints for single calls whose robots are kept."""


class Robot(
    Described,
    Edited,
    Kinematics,
    Energies,
    Differentiates,
    Diagonalized,
    Geometry,
    WholeBody,
    SolvesInverseKinematics,
    Simulates,
    HasWholeSystem,
    Drawn,
    Viewable,
    HasJointPhysics,
    Constrained,
):
    """A robot: pure functions of q and v, no hidden state.

    Every method takes array-likes with any leading batch axes, shaped ``(..., nq)`` or
    ``(..., nv)``, or a dict from joint names to values, and returns arrays with the same leading
    axes. Spatial vectors are [angular; linear], quaternions xyzw, units SI and radians.
    """

    _kernel_class: ClassVar[type[RobotKernel]] = RobotKernel
    """Of what ``compile`` gives."""

    def __new__(cls, model: Model | None = None, load_report: LoadReport | None = None) -> Robot:
        """A robot; one with active loops closes them."""
        closes = cls is Robot and model is not None and active_loops(model.loops)
        return object.__new__(LoopedRobot if closes else cls)

    def __init__(self, model: Model, load_report: LoadReport | None = None) -> None:
        settings.check()
        self.model = model
        self.load_report = _report_of(model) if load_report is None else load_report
        self._find_tables()

    def _find_tables(self) -> None:
        """Entries to machine code, see ``model_cache.entries``."""
        self._entries = entries(self.model)
        self._nv = self.model.nv

    def __getstate__(self) -> dict[str, object]:
        """Its data; machine code is made, or found on disk, where it is needed."""
        return {name: value for name, value in vars(self).items() if name != "_entries"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._find_tables()

    def __repr__(self) -> str:
        return (
            f"<Robot '{self.name}': {pluralize(len(self.link_names), 'link')}, "
            f"{pluralize(len(self.joint_names), 'joint')}, nq={self.nq}, nv={self.nv}, "
            f"{self.total_mass:.4g} kg>"
        )

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from phistar.drawing.notebook_cards import robot_card

        return robot_card(repr(self)[1:-1], self.model, self.load_report.folder, self.home)

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The same robot in another gravity field (3,) [m/s^2]."""
        return Robot(self.model.with_gravity(gravity), self.load_report)

    def _edited(self, edit: Edit) -> Self:
        """The robot of an edit; new doubts about it are warned of once."""
        report = self.load_report.extended(edit)
        robot = cast("Self", Robot(edit.model, report))
        report.issue_new_warnings(self.load_report, edit.expected)
        return robot

    @property
    def tree(self) -> Robot:
        """The same robot without its loops: same names, q and v. Without loops the robot itself."""
        return self._tree if self.model.loops else self

    @cached_property
    def _tree(self) -> Robot:
        model = self.model.without_loops()
        return Robot(model, replace(self.load_report, loops=()))

    def with_loops(
        self,
        *constraints: Constraint | Loop,
        off: Sequence[str] = (),
        q: Coordinates | None = None,
    ) -> Robot:
        """The same robot with more constraints, or with some of its loops switched off.

        Args:
            constraints: Of ``phistar.constraints``, or loops of another robot.
            off: Names of loops that are left open.
            q: (nq,) where frames are held whose constraint does not say.

        Raises:
            UnknownNameError: No such frame, joint or loop.
            ArgumentError: Two loops have one name, or a configuration is needed.
        """
        at = None if q is None else self.configuration(q)
        if at is not None and at.ndim != 1:
            raise ArgumentError(f"with_loops holds frames at one configuration, got {at.shape}")
        known = [loop.name for loop in self.model.loops]
        for name in off:
            if name not in known:
                raise UnknownNameError("loop", name, known, self.name)
        kept = [replace(x, active=x.active and x.name not in off) for x in self.model.loops]
        for given in constraints:
            if not isinstance(given, Constraint | Loop):
                raise ArgumentError(
                    f"with_loops got {kind_of(given)}, expected constraints one by one, "
                    'such as with_loops(phistar.constraints.Point("foot"), off=["pin"])'
                )
        added = [x.on(self.model, at) if isinstance(x, Constraint) else x for x in constraints]
        return Robot(self.model.with_loops((*kept, *added)), self.load_report)

    def _for_call(self, constraints: Sequence[Constraint]) -> Robot:
        """The robot with constraints for one call; those that do not say hold frames anywhere."""
        require_constraints(constraints)
        told = [x if isinstance(x, Prescribed) else None for x in constraints]
        kept = tuple(x.at_rest() if isinstance(x, Prescribed) else x for x in constraints)
        robot, names = self._at_rest_under(kept)
        drives = [None if x is None else x.drive(self.model) for x in told]
        places = [None if x is None else x.place(self.model) for x in told]
        moved = {name: x for name, x in zip(names, drives, strict=True) if x is not None}
        if not moved:
            return robot
        driven = copy(robot)
        vars(driven).pop("_dynamics_key", None)
        driven._drives = {**self._drives, **moved}
        put = {name: x for name, x in zip(names, places, strict=True) if x is not None}
        driven._places = {**self._places, **put}
        return driven

    def _for_simulation(
        self, constraints: Sequence[Constraint], q: Coordinates
    ) -> tuple[Robot, dict[str, Prescribed | None]]:
        """The robot with constraints that hold frames where they are at q, and what is driven; None
        is what each sample of a batch holds where it is at its start."""
        require_constraints(constraints)
        held = any(not isinstance(x, Prescribed) for x in constraints)
        start = self.configuration(q) if held else self.neutral()
        made: list[Constraint | Loop] = []
        told: list[tuple[bool, Prescribed | None]] = []
        for each in constraints:
            if isinstance(each, Prescribed):
                told.append((True, each))
            else:
                told.append((start.ndim > 1 and holds_its_place(each, self.model), None))
            made.append(each.anywhere(self.model)[0] if told[-1][0] else each)
        robot = self.with_loops(*made, q=start if start.ndim == 1 else None)
        names = [loop.name for loop in robot.loops[len(self.loops) :]]
        return robot, {name: x for name, (moves, x) in zip(names, told, strict=True) if moves}

    @cached_property
    def _constrained(self) -> dict[tuple[Constraint, ...], tuple[Robot, tuple[str, ...]]]:
        """Robots with constraints for a call, and the names of those."""
        return {}

    def _at_rest_under(self, constraints: tuple[Constraint, ...]) -> tuple[Robot, tuple[str, ...]]:
        """The robot with constraints for calls, and their names; known ones are kept."""
        try:
            return self._constrained[constraints]
        except TypeError:  # arrays among them
            return self._with_held(constraints)
        except KeyError:
            if len(self._constrained) >= MAX_CONSTRAINED_ROBOTS:
                self._constrained.clear()
            made = self._constrained[constraints] = self._with_held(constraints)
            return made

    def _with_held(self, constraints: Sequence[Constraint]) -> tuple[Robot, tuple[str, ...]]:
        made = [x.anywhere(self.model) for x in constraints]
        robot = self.with_loops(*(loop for loop, _ in made))
        held = frozenset(loop.name for loop, free in made if free)
        robot._held_anywhere = self._held_anywhere | held
        return robot, tuple(loop.name for loop, _ in made)

    def reorder(self, names: Sequence[str]) -> Robot:
        """The same robot with its coordinates in the order of ``names`` (every joint once)."""
        return Robot(self.model.reorder(names), self.load_report)

    # Called by keyword from ``forces`` on; arguments that have to be would take 8 ns each.
    def inverse_dynamics(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        method: str = "sequential",
        passive: Passive = False,
        out: Array | None = None,
        on_error: str = "raise",
    ) -> Array:
        """Joint forces (..., nv) [N m, N] that give the joint accelerations ``vdot``.

        Args:
            q: (..., nq).
            v, vdot: (..., nv).
            forces: External wrenches (..., 6) [moment; force] on named frames, at the frame's
                origin unless ``reference`` is ``"world"``.
            reference: Axes and point of those wrenches, as in ``jacobian``.
            method: ``"sequential"``, link after link, or ``"parallel"``, as in
                ``forward_dynamics``.
            passive: Whether joints also push by themselves: True, or some of ``"springs"``,
                ``"damping"``, ``"friction"``; see ``passive_force``. By default they do not.
            out: Where to put the result; an array of its shape and dtype.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        if passive is False and method == "sequential" and on_error is RAISE:
            if forces is None:
                usual = reference == "world_aligned"
                entry = self._entries.get("inverse_dynamics") if usual else None
                result = None if entry is None else entry(q, v, vdot, out)
            else:
                entry = self._entries.get(_INVERSE_DYNAMICS_ON_FRAMES)
                result = entry and entry(q, v, vdot, forces, reference, out=out)
            if result is not None:
                return result
        options: dict[str, Any] = {
            "forces": forces, "reference": reference, "out": out, "on_error": on_error,
        }  # fmt: skip
        return self._inverse_dynamics_otherwise(q, v, vdot, method, passive, options)

    def _inverse_dynamics_otherwise(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        method: str,
        passive: Passive,
        options: dict[str, Any],
    ) -> Array:
        """``inverse_dynamics`` without the entry that was used last."""
        if passive is not False:
            parts = force_parts(self.model, passive)
            total = self.inverse_dynamics(q, v, vdot, method=method, **options)
            if parts:
                arrays = check_shapes(self.model, q=q, v=v)
                total -= passive_force_unchecked(self.model, arrays["q"], arrays["v"], parts)
            return total
        forces, reference, out = options["forces"], options["reference"], options["out"]
        on_error = options["on_error"]
        if method == "sequential" and on_error is RAISE and forces is not None:
            given = (q, v, vdot, forces, reference)
            result = try_other_frames(self._entries, "inverse_dynamics", given, out=out)
            if result is not None:
                return cast(Array, result)
        if on_error != "raise":
            call = partial(self.inverse_dynamics, reference=reference, method=method, out=out)
            given_arrays = {"q": q, "v": v, "vdot": vdot}
            return nan_where_bad(self.model, on_error, call, given_arrays, forces)
        wrenches = check_wrenches(self.model, q, forces, reference)
        return dynamics.inverse_dynamics(self.model, q, v, vdot, wrenches, out, method)

    def forward_dynamics(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        method: str = "articulated",
        passive: Passive = False,
        out: Array | None = None,
        on_error: str = "raise",
        constraints: Sequence[Constraint] | None = None,
    ) -> Array:
        """Joint accelerations (..., nv) [rad/s^2, m/s^2] under the joint forces ``tau``.

        Args:
            q: (..., nq).
            v, tau: (..., nv).
            forces, reference: As in ``inverse_dynamics``.
            method: ``"articulated"``, the cheapest, ``"1"`` to ``"4"``, the algorithms of
                Rodriguez and Kreutz-Delgado 1992, or ``"parallel"``: in O(log N) rounds over all
                links, by NumPy; for long chains and few samples. All give the same result. Names of
                ways with loops (``"auto"``, ``"kkt"``, ...) are ``"articulated"`` where there are
                none.
            passive: Whether joints also push by themselves: True, or some of ``"springs"``,
                ``"damping"``, ``"friction"``; see ``passive_force``. By default they do not.
            out: Where to put the result; an array of its shape and dtype.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
            constraints: Of ``phistar.constraints``, for this call; see ``constrained_dynamics``.

        Raises:
            SingularHingeError: A joint moves no inertia.
        """
        if (
            passive is False
            and constraints is None
            and method == "articulated"
            and on_error is RAISE
        ):
            if forces is None:
                usual = reference == "world_aligned"
                entry = self._entries.get("forward_dynamics") if usual else None
                result = None if entry is None else entry(q, v, tau, out)
            else:
                entry = self._entries.get(_FORWARD_DYNAMICS_ON_FRAMES)
                result = entry and entry(q, v, tau, forces, reference, out=out)
            if result is not None:
                return result
        options: dict[str, Any] = {
            "forces": forces, "reference": reference, "out": out, "on_error": on_error,
        }  # fmt: skip
        return self._forward_dynamics_otherwise(q, v, tau, method, passive, constraints, options)

    def _forward_dynamics_otherwise(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        method: str,
        passive: Passive,
        constraints: Sequence[Constraint] | None,
        options: dict[str, Any],
    ) -> Array:
        """``forward_dynamics`` without the entry that was used last."""
        if passive is not False and (parts := force_parts(self.model, passive)):
            tau = with_passive_force(self.model, q, v, tau, parts)
        if constraints is not None:
            method = "auto" if method == "articulated" else method
            there = self._for_call(constraints)
            return there.forward_dynamics(q, v, tau, method=method, **options)
        one = "articulated" if method in LOOP_METHODS and method != "parallel" else method
        if passive is not False or one != method:
            return self.forward_dynamics(q, v, tau, method=one, **options)
        forces, reference, out = options["forces"], options["reference"], options["out"]
        on_error = options["on_error"]
        if method == "articulated" and on_error is RAISE:
            given = (q, v, tau, forces, reference)
            result = try_other_frames(self._entries, "forward_dynamics", given, out=out)
            if result is not None:
                return cast(Array, result)
        if on_error != "raise":
            call = partial(self.forward_dynamics, reference=reference, method=method, out=out)
            return nan_where_bad(self.model, on_error, call, {"q": q, "v": v, "tau": tau}, forces)
        wrenches = check_wrenches(self.model, q, forces, reference)
        return dynamics.forward_dynamics(self.model, q, v, tau, wrenches, method, out)

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
        """Dynamics with the motion of some joints prescribed and the forces of the others given.

        Args:
            q: (..., nq).
            v: (..., nv).
            tau: (..., nv); read for the free joints.
            vdot: (..., nv); read for the prescribed joints.
            prescribed: Names of the joints whose acceleration is given.
            forces, reference: As in ``inverse_dynamics``.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.

        Returns:
            (vdot, tau), each (..., nv) and complete, in O(n).
        """
        if on_error != "raise":
            return nan_where_bad(
                self.model,
                on_error,
                partial(self.hybrid_dynamics, prescribed=prescribed, reference=reference),
                {"q": q, "v": v, "tau": tau, "vdot": vdot},
                forces,
            )
        wrenches = check_wrenches(self.model, q, forces, reference)
        return dynamics.hybrid_dynamics(self.model, q, v, tau, vdot, prescribed, wrenches)

    @overload
    def mass_matrix(
        self, q: Coordinates, form: Literal["packed"], *, on_error: str = "raise"
    ) -> PackedMatrix: ...
    @overload
    def mass_matrix(
        self,
        q: Coordinates,
        form: Literal["dense"] = "dense",
        *,
        out: Array | ResultBuffers | None = None,
        on_error: str = "raise",
    ) -> Array: ...
    def mass_matrix(
        self,
        q: Coordinates,
        form: str = "dense",
        *,
        out: Array | ResultBuffers | None = None,
        on_error: str = "raise",
    ) -> Array | PackedMatrix:
        """Joint-space inertia (..., nv, nv), rotor inertia included.

        Args:
            q: (..., nq).
            form: ``"dense"``, or ``"packed"``: the lower triangle without the zeros that branches
                of the robot leave there, 458 numbers rather than 1681 on the humanoid. A
                ``PackedMatrix`` has ``values``, ``@``, ``solve`` and ``to_dense``.
            out: Where to put the result: an array of its shape and dtype, or, so that zeros are not
                written each time, ``result_buffers("mass_matrix", batch)``. Of dense matrices.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        if form != "dense" or out is not None:
            if out is not None:
                return self._mass_matrix_into(out, q, form, on_error)
            return self._packed_mass_matrix(q, form, on_error)
        entry = self._entries.get("mass_matrix")
        if entry is not None and on_error is RAISE and (result := entry(q)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.mass_matrix, {"q": q})
        return dynamics.mass_matrix(self.model, q)

    def _packed_mass_matrix(self, q: Coordinates, form: str, on_error: str) -> PackedMatrix:
        if form != "packed":
            raise UnknownNameError("form", form, ("dense", "packed"), "mass_matrix")
        entry: Any = self._entries.get(("mass_matrix_packed",))
        if entry is not None and on_error is RAISE and (values := entry(q)) is not None:
            return PackedMatrix(entry_pattern(self.model, "packed"), values)
        if on_error != "raise":
            pattern = entry_pattern(self.model, "packed")
            whole = self.mass_matrix(q, on_error=on_error)
            return PackedMatrix(pattern, whole[..., pattern.rows, pattern.columns])
        return dynamics.packed_mass_matrix(self.model, q)

    def _mass_matrix_into(
        self, out: Array | ResultBuffers, q: Coordinates, form: str, on_error: str
    ) -> Array:
        if form != "dense" or on_error != "raise":
            raise ArgumentError(
                f"out is for form='dense' and on_error='raise', got {form!r} and {on_error!r}; "
                "leave out away"
            )
        if not isinstance(out, ResultBuffers):
            return dynamics.mass_matrix(self.model, q, out)

        def otherwise(q: Array) -> dict[str, Array]:
            return {"mass_matrix": dynamics.mass_matrix(self.model, q)}

        return out.filled(self.model, "mass_matrix", otherwise, q=q)["mass_matrix"]

    def result_buffers(
        self, quantity: str, batch: int | tuple[int, ...] = (), dtype: DTypeLike = np.float64
    ) -> ResultBuffers:
        """Arrays for results that are wanted again and again, whose zeros are written once.

        Half of the entries of matrices of robots with branches are zero for every state. These
        arrays are filled with zeros when they are made, and code for ``out=`` passes over what is
        zero in any case: a quarter of the humanoid's mass matrices, which take as much less time
        in large batches. ``robot.compile(quantity).decision`` says whether a robot has such code;
        if not, everything is written, with the same results.

        In return you promise not to write into places that are zero for every state. What you write
        there stays there (``buffers.clear()`` makes all zero again); nothing else is affected.

            buffers = body.result_buffers("linearize_inverse", 4096)
            at = body.linearize_inverse(q, v, vdot, out=buffers)  # at.tau_q is the same array again

        Args:
            quantity: ``"mass_matrix"`` or ``"linearize_inverse"``.
            batch: Samples, or axes of a batch; () for a single sample.
            dtype: float64 or, for arguments in single precision, float32.

        Returns:
            What ``out=`` takes; ``buffers.arrays`` has the arrays by name.
        """
        return ResultBuffers(self.model, quantity, batch, dtype)

    def mass_matrix_inverse(self, q: Coordinates, *, on_error: str = "raise") -> Array:
        """Inverse of the mass matrix (..., nv, nv), from its factors."""
        entry = self._entries.get("mass_matrix_inverse")
        if entry is not None and on_error is RAISE and (result := entry(q)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.mass_matrix_inverse, {"q": q})
        return dynamics.mass_matrix_inverse(self.model, q)

    def bias_force(
        self, q: Coordinates, v: Coordinates, *, out: Array | None = None, on_error: str = "raise"
    ) -> Array:
        """Joint forces (..., nv) at zero acceleration: Coriolis, centrifugal and gravity."""
        entry = self._entries.get("bias_force")
        if entry is not None and on_error is RAISE and (result := entry(q, v, out)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(
                self.model, on_error, partial(self.bias_force, out=out), {"q": q, "v": v}
            )
        return dynamics.bias_force(self.model, q, v, out=out)

    def gravity_force(
        self, q: Coordinates, *, out: Array | None = None, on_error: str = "raise"
    ) -> Array:
        """Joint forces (..., nv) that hold the robot at rest against gravity."""
        entry = self._entries.get("gravity_force")
        if entry is not None and on_error is RAISE and (result := entry(q, out)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(
                self.model, on_error, partial(self.gravity_force, out=out), {"q": q}
            )
        return dynamics.gravity_force(self.model, q, out=out)

    def coriolis_matrix(self, q: Coordinates, v: Coordinates, *, on_error: str = "raise") -> Array:
        """Christoffel-consistent C (..., nv, nv): C v is the bias force without gravity.

        C + C* is the rate of the mass matrix, so dM/dt - 2C is skew.
        """
        entry = self._entries.get("coriolis_matrix")
        if entry is not None and on_error is RAISE and (result := entry(q, v)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.coriolis_matrix, {"q": q, "v": v})
        return dynamics.coriolis_matrix(self.model, q, v)

    def log_determinant(self, q: Coordinates, *, on_error: str = "raise") -> Array:
        """log det of the mass matrix (...), from its factors."""
        entry = self._entries.get(("log_determinant",))
        if entry is not None and on_error is RAISE and (result := entry(q)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.log_determinant, {"q": q})
        return dynamics.log_determinant(self.model, q)

    def operational_inertia(
        self,
        q: Coordinates,
        frames: Sequence[str],
        *,
        reference: str = "local",
        damping: float = 0.0,
        on_error: str = "raise",
    ) -> Array:
        """Inertia (..., 6m, 6m) that m frames show to forces on them.

        The inverse of B*ψ*H*D⁻¹HψB = J𝓜⁻¹J*, whose blocks come from one sweep and the paths between
        the frames; it exists where the frames can move in every direction.

        Args:
            q: (..., nq).
            frames: Names of links or frames, each once.
            reference: Axes and point of each frame's velocity, as in ``jacobian``; by default its
                own axes.
            damping: Added to the diagonal of J𝓜⁻¹J* before it is inverted, so that there is a
                result at singular poses, too.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.

        Raises:
            SingularPoseError: The frames cannot move in every direction there.
            ArgumentError: They cannot anywhere: too many, on the ground, or one named twice.
        """
        if type(frames) in (list, tuple) and type(damping) is float and type(reference) is str:
            names, more = tuple(frames), tuple[Array, ...]()
            if damping > 0.0 and type(q) is np.ndarray and 0 < q.ndim < 3:
                entry = self._entries.get(("damped_operational_inertia", names, reference))
                more = (number_rows(damping, len(q) if q.ndim == 2 else None),)
            else:
                key = ("operational_inertia", names, reference, POLICY.singular_roundings)
                entry = self._entries.get(key) if damping == 0.0 else None
            if entry is not None and on_error is RAISE and (result := entry(q, *more)) is not None:
                return result
        call = partial(
            operational_inertia, self.model, frames=frames, reference=reference, damping=damping
        )
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, call, {"q": q})
        return call(q=q)

    def operators(self, q: Coordinates, v: Coordinates | None = None) -> LoopOperators:
        """𝓜, C, Jacobians, φ, ψ and your own operators at a state: applied in O(n), never formed.

        ``op = robot.operators(q, v)``; ``op.M @ x``, ``op.M.solve(f)``, ``op.J("hand") @ v``,
        ``op.J(["left", "right"]).T @ f``, ``op.C @ v`` (needs ``v``), ``op.H @ op.phi`` (composed),
        ``op.operator(expr, frames=...)``; ``.dense()`` gives the matrix. ``op.L`` are the rows of
        the active loops, ``op.Delta`` = L𝓜⁻¹L*; all others are those of the tree.
        """
        return LoopOperators(self.model, q, v)

    def function(self, expr: Expr, *, frames: Sequence[str] = ()) -> Function:
        """Your own operator expression, compiled for this robot.

        Args:
            expr: Written with the symbols of ``phistar.algebra.symbols``, e.g.
                ``B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B``.
            frames: The frames that ``B`` picks off, in order.

        Returns:
            A function: ``f(q)`` its matrix, ``f(q, x)`` applied, ``f(q, tau=...)`` for vectors;
            ``f.diagonal(q)``, ``f.block(q, row, column)``, ``f.row(q, name)`` and
            ``f.column(q, name)`` are parts of the matrix, without the rest.
        """
        return Function(self.model, expr, frames)

    def compile(
        self,
        wanted: str | Expr | Mapping[str, Expr],
        *,
        backend: str | None = None,
        frames: Sequence[str] = (),
        snap: float | None = None,
        shape: str = "auto",
        schedule: str = "sequential",
        **choices: Any,
    ) -> RobotKernel:
        """A quantity compiled for this robot: a function that can also be looked at.

        ``k = robot.compile("forward_dynamics")``; ``k(q, v=v, tau=tau)``; ``k.sweeps``,
        ``k.scalars``, ``k.cost``, ``k.source()``, ``k.passes``, ``k.decision``.

        Args:
            wanted: Name of a quantity (``phistar.compile.REQUESTS`` has all of them: vectors,
                matrices, linearizations, kinematics, energies, steps), a vector expression, or
                several by name.
            backend: ``"llvm"`` (machine code), ``"numpy"`` (generated Python), ``"sweeps"`` (the
                interpreter) or ``"jax"`` (with ``k.function``, a pure function of JAX arrays; extra
                ``phistar[jax]``). Default: what the environment variable PHISTAR_BACKEND says, else
                ``"llvm"``.
            frames: The frames that ``B`` selects, in order, or that the quantity is about.
            snap: For machine code: rotations closer than this to right angles, and lengths [m] and
                inertias (relative to the link's) below it, become exactly right or zero, so that
                they cost nothing; 1e-10 removes what rounded angles in a file leave. It changes the
                robot: ``k.snapped`` tells how. Default: nothing but rounding.
            shape: For machine code: ``"straight"``, ``"rolled"`` (loops over the links) or
                ``"auto"``.
            schedule: ``"sequential"``, link after link, or ``"parallel"``: in O(log N) rounds over
                all links, by the backend ``"numpy"`` unless another one that can is named. For
                programs whose results are vectors; ``k.cost.span`` counts the longest path.
            choices: What else the method of the robot lets one choose: ``reference=`` of a
                Jacobian, ``scheme=`` of a step.

        Raises:
            UnknownNameError: No such quantity, backend, schedule, frame or choice.
            LoweringError: A recursion of it has no parallel schedule.
            SingularHingeError: It divides by the inertia of a joint that moves none.
            ArgumentError: It needs a coordinate for every joint and mimic joints are reduced.
        """
        return self._kernel_class(
            self.model, wanted, backend, frames, snap, shape, choices, schedule
        )

    rnea = inverse_dynamics
    aba = forward_dynamics
    crba = mass_matrix

    def to_urdf(self) -> str:
        """The robot as URDF text that reads back as the same model."""
        return export_urdf(self.model)


class LoopedRobot(ClosesLoops, Robot):
    """A robot with active loops: everything about its motion respects them.

    ``robot.tree`` is the same robot without them. Quantities of single configurations and of the
    coordinates (poses, mass matrix, inverse dynamics, energies) are those of the tree.
    """

    _kernel_class = LoopKernel


def load(
    description: str | os.PathLike[str] | bytes | Model,
    *,
    floating_base: bool | None = None,
    mimic: MimicMode = "reduce",
    gravity: ArrayLike | None = None,
    joint_order: Sequence[str] | None = None,
    trust_xacro: bool = False,
    xacro_arguments: Mapping[str, str] | None = None,
    roots: Sequence[str | os.PathLike[str]] = (),
) -> Robot:
    """Load a robot.

    Args:
        description: Name of a bundled robot (``phistar.robots.names()``), path of a URDF, MJCF or
            xacro file, the bytes of a URDF or MJCF document, or a ``Model`` made in Python (then
            only ``gravity`` and ``joint_order`` apply).
        floating_base: Put a free joint named ``root_joint`` under the root link. Default: as the
            bundled robot is meant, else False.
        mimic: ``"reduce"`` (mimic joints share the coordinates of their leader, exactly) or
            ``"independent"`` (they keep coordinates of their own).
        gravity: (3,) [m/s^2]; default: the file's, else (0, 0, -9.81).
        joint_order: Every independent joint in the wanted order of coordinates.
        trust_xacro: Allow a xacro file, which may read other files and environment variables.
        xacro_arguments: Arguments of the xacro file.
        roots: Folders outside the file's own from which MJCF may include files and meshes.

    Returns:
        The robot; ``robot.load_report`` says what became of everything in the file.

    Raises:
        ModelError: The description is not a robot; lists every problem.
        RobotFileError: The file cannot be read (``RobotNotFoundError``: there is none).

    Warns:
        PhistarWarning: A subclass per kind of doubt; nothing is mended in silence.
    """
    if isinstance(description, Model):
        return _from_model(description, gravity, joint_order)
    source, floats = _find(description)
    model, report = load_model(
        source,
        floating_base=floats if floating_base is None else floating_base,
        mimic=mimic,
        gravity=gravity,
        trust_xacro=trust_xacro,
        xacro_arguments=xacro_arguments,
        roots=roots,
    )
    report.issue_warnings()
    if joint_order is not None:
        model = replace(model.reorder(joint_order), problems=model.problems)
    return Robot(model, report)


def _report_of(model: Model) -> LoadReport:
    """The report of a robot that was built in Python."""
    report = LoadReport(model.name, "builder", problems=list(model.problems))
    report.describes(model)
    return report


def _from_model(
    model: Model, gravity: ArrayLike | None, joint_order: Sequence[str] | None
) -> Robot:
    found = dict.fromkeys((*model.problems, *singular_problems(model)))
    report = LoadReport(model.name, "builder", problems=list(found))
    report.describes(model)
    report.issue_warnings()
    model = model if gravity is None else model.with_gravity(gravity)
    return Robot(model if joint_order is None else model.reorder(joint_order), report)


def _find(
    description: str | os.PathLike[str] | bytes,
) -> tuple[str | os.PathLike[str] | bytes | Source, bool]:
    """The description, with a bundled name replaced by its file, and its default base."""
    if not isinstance(description, str):
        return description, False
    if description in bundled.names():
        return bundled.path(description), bundled.floats(description)
    if "<" in description and not os.path.lexists(description):
        raise ArgumentError(
            f"the description is a str of {pluralize(len(description), 'character')} that holds "
            "the robot itself; pass it as bytes, text.encode(), or pass the path of a file"
        )
    if not Path(description).suffix and not os.path.lexists(description):
        close = close_matches(description, bundled.names())
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        known = ", ".join(bundled.names())
        raise RobotNotFoundError(description, f"no such file or bundled robot; {hint}have: {known}")
    return description, False

# SPDX-License-Identifier: BSD-3-Clause
"""The user's object: a robot that answers by name, for any array-like and any batch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar import dynamics, motion
from phistar.algebra.ir import Expr
from phistar.algorithms.operational_space import compliance
from phistar.derivatives.methods import Derivatives
from phistar.diagonal.methods import Diagonalized
from phistar.errors import RobotNotFoundError, UnknownNameError, close_matches
from phistar.functions import Function
from phistar.geometry.methods import Geometry
from phistar.kernels import RobotKernel
from phistar.loaders import LoadReport, Source, bundled, load_model
from phistar.loaders.urdf.export import export_urdf
from phistar.model import configuration as space
from phistar.model.builder import MimicMode
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.parts import Frame, Joint, Link, Loop
from phistar.model.singular import SingularHinge, singular_hinges, singular_problems
from phistar.operators import Operators
from phistar.sim.methods import Motions

Array = NDArray[Any]


class Robot(Derivatives, Diagonalized, Geometry, Motions):
    """A robot: pure functions of q and v, no hidden state.

    Every method takes array-likes with any leading batch axes, shaped ``(..., nq)`` or
    ``(..., nv)``, or a dict from joint names to values, and returns arrays with the same leading
    axes. Spatial vectors are [angular; linear], quaternions xyzw, units SI and radians.
    """

    def __init__(self, model: Model, load_report: LoadReport | None = None) -> None:
        self.model = model
        self.load_report = load_report or LoadReport(model.name, "builder")
        self._quick_dynamics = dynamics.quick_table(model)
        self._lean_motion = motion.lean_table(model)
        self._nv = model.nv

    def __repr__(self) -> str:
        return (
            f"<Robot '{self.name}': {len(self.link_names)} links, "
            f"{len(self.joint_names)} joints, nq={self.nq}, nv={self.nv}, "
            f"{self.total_mass:.4g} kg>"
        )

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.model.name

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return self.model.nv

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The independent moving joints in the order of their coordinates."""
        return self.model.joint_names

    @property
    def link_names(self) -> tuple[str, ...]:
        """Every link of the file in file order, those merged by fixed joints included."""
        return self.model.link_names

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Every frame that can be named: links first, then extra frames."""
        return self.model.frame_names

    @property
    def joints(self) -> Mapping[str, Joint]:
        """Every joint by name, fixed and mimic ones included, depth first."""
        return _Named("joint", self.model.joints, self.name)

    @property
    def links(self) -> Mapping[str, Link]:
        """Every link by name, in file order."""
        return _Named("link", self.model.link_table, self.name)

    @property
    def frames(self) -> Mapping[str, Frame]:
        """Every frame by name."""
        return _Named("frame", self.model.frames, self.name)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Loop joints and couplings of the file; kept, not yet part of the dynamics."""
        return self.model.loops

    @property
    def gravity(self) -> Array:
        """(3,) gravity in world axes [m/s^2]."""
        return self.model.gravity

    @property
    def total_mass(self) -> float:
        """Mass of all links [kg]."""
        return self.model.total_mass

    @property
    def configurations(self) -> Mapping[str, Array]:
        """Named configurations (nq,), e.g. a file's keyframes."""
        return _Named("configuration", self.model.configurations, self.name)

    @property
    def home(self) -> Array:
        """The file's reference configuration (nq,), or the neutral one."""
        named = self.model.configurations
        return np.array(named["home"]) if "home" in named else self.neutral()

    @property
    def lower_limits(self) -> Array:
        """(nq,) lower configuration limits [rad, m], -inf where there is none."""
        return space.limits(self.model)[0]

    @property
    def upper_limits(self) -> Array:
        """(nq,) upper configuration limits [rad, m], inf where there is none."""
        return space.limits(self.model)[1]

    @cached_property
    def singular_hinges(self) -> tuple[SingularHinge, ...]:
        """Joint directions that move no inertia; forward dynamics is not defined on them."""
        return singular_hinges(self.model)

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The same robot in another gravity field (3,) [m/s^2]."""
        return Robot(self.model.with_gravity(gravity), self.load_report)

    def reorder(self, names: Sequence[str]) -> Robot:
        """The same robot with its coordinates in the order of ``names`` (every joint once)."""
        return Robot(self.model.reorder(names), self.load_report)

    def neutral(self) -> Array:
        """Zero coordinates and identity quaternions, (nq,)."""
        return space.neutral(self.model)

    def random_configuration(
        self,
        rng: np.random.Generator | int | None = None,
        shape: int | tuple[int, ...] = (),
    ) -> Array:
        """Random configurations (*shape, nq) inside the limits.

        Args:
            rng: A generator or a seed.
            shape: Batch shape.
        """
        return space.random_configuration(self.model, np.random.default_rng(rng), shape)

    def integrate(self, q: Coordinates, dv: Coordinates) -> Array:
        """The configuration (..., nq) reached from q along the tangent step dv (..., nv).

        Each joint moves to X_J(q) exp(H* dv): addition for angles and lengths, the exponential
        for rotations and rigid motions.
        """
        return space.integrate(self.model, q, dv)

    def difference(self, q0: Coordinates, q1: Coordinates) -> Array:
        """The tangent step (..., nv) from q0 to q1: integrate(q0, difference(q0, q1)) is q1."""
        return space.difference(self.model, q0, q1)

    def normalize(self, q: Coordinates) -> Array:
        """q with its quaternions scaled to length one."""
        return space.normalize(self.model, q)

    def configuration(self, q: Coordinates) -> Array:
        """q as an array (..., nq): arrays are checked, dicts filled up with neutral values."""
        return space.configuration(self.model, q)

    def tangent(self, v: Coordinates) -> Array:
        """v, vdot or tau as an array (..., nv): arrays are checked, dicts filled with zeros."""
        return space.tangent(self.model, v)

    def configuration_dict(self, q: Coordinates) -> dict[str, Array]:
        """q by joint name."""
        return space.to_mapping(self.model, q, "q")

    def tangent_dict(self, v: Coordinates) -> dict[str, Array]:
        """v, vdot or tau by joint name."""
        return space.to_mapping(self.model, v, "v")

    def frame_pose(self, q: Coordinates, frame: str) -> Array:
        """World pose (..., 4, 4) of a link or frame."""
        lean = self._quick("frame_pose", frame)
        if lean is not None and lean(q, result := np.empty(16)):
            return result.reshape(4, 4)
        return motion.frame_pose(self.model, q, frame)

    def link_poses(self, q: Coordinates) -> dict[str, Array]:
        """World pose (..., 4, 4) of every link, by name."""
        lean, names = self._quick("link_poses"), self.model.link_names
        if lean is not None and lean(q, result := np.empty(16 * len(names))):
            return dict(zip(names, result.reshape(-1, 4, 4), strict=True))
        return motion.link_poses(self.model, q)

    def jacobian(self, q: Coordinates, frame: str, reference: str = "world_aligned") -> Array:
        """Jacobian (..., 6, nv) of a frame, rows [angular; linear]: J @ v is its velocity.

        Args:
            q: (..., nq).
            frame: Name of a link or frame.
            reference: ``"local"``: frame's axes, its origin; ``"world"``: world axes, the point of
                the extended link at the world's origin; ``"world_aligned"``: world axes, the
                frame's origin.
        """
        lean = self._quick("jacobian", frame, reference)
        if lean is not None and lean(q, result := np.empty(6 * self._nv)):
            return result.reshape(6, self._nv)
        return motion.jacobian(self.model, q, frame, reference)

    def frame_velocity(
        self, q: Coordinates, v: Coordinates, frame: str, reference: str = "world_aligned"
    ) -> Array:
        """Velocity (..., 6) [angular; linear] of a frame [rad/s, m/s]; see ``jacobian``."""
        lean = self._quick("frame_velocity", frame, reference)
        if lean is not None and lean(q, v, result := np.empty(6)):
            return result
        return motion.frame_velocity(self.model, q, v, frame, reference)

    def center_of_mass(self, q: Coordinates, *, fixed: bool = True) -> Array:
        """Centre of mass (..., 3), world axes [m].

        Args:
            q: (..., nq).
            fixed: Count the links that are welded to the ground too (MuJoCo does, Pinocchio
                does not).
        """
        lean = self._quick("center_of_mass", fixed)
        if lean is not None and lean(q, result := np.empty(3)):
            return result
        return motion.center_of_mass(self.model, q, fixed=fixed)

    def _quick(self, *key: object) -> motion.Lean | None:
        """The quick way for a single sample, where there is one."""
        try:
            return self._lean_motion.get(key)
        except TypeError:
            return None

    def inverse_dynamics(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        out: Array | None = None,
    ) -> Array:
        """Joint forces (..., nv) [N m, N] that give the joint accelerations ``vdot``.

        Args:
            q: (..., nq).
            v, vdot: (..., nv).
            forces: External wrenches (..., 6) [moment; force] on named frames, at the frame's
                origin unless ``reference`` is ``"world"``.
            reference: Axes and point of those wrenches, as in ``jacobian``.
            out: Where to put the result; an array of its shape and dtype.
        """
        if forces is None:
            quick = self._quick_dynamics.get("inverse_dynamics")
            if quick is not None and (result := quick(q, v, vdot, out=out)) is not None:
                return result
        return dynamics.inverse_dynamics(self.model, q, v, vdot, forces, reference, out)

    def forward_dynamics(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        method: str = "articulated",
        out: Array | None = None,
    ) -> Array:
        """Joint accelerations (..., nv) [rad/s^2, m/s^2] under the joint forces ``tau``.

        Args:
            q: (..., nq).
            v, tau: (..., nv).
            forces, reference: As in ``inverse_dynamics``.
            method: ``"articulated"``, the cheapest, or ``"1"`` to ``"4"``: the algorithms of
                Rodriguez and Kreutz-Delgado 1992. All give the same result.
            out: Where to put the result; an array of its shape and dtype.

        Raises:
            SingularHingeError: A joint moves no inertia.
        """
        if forces is None and method == "articulated":
            quick = self._quick_dynamics.get("forward_dynamics_3")
            if quick is not None and (result := quick(q, v, tau, out=out)) is not None:
                return result
        return dynamics.forward_dynamics(self.model, q, v, tau, forces, reference, method, out)

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
    ) -> tuple[Array, Array]:
        """Dynamics with the motion of some joints prescribed and the forces of the others given.

        Args:
            q: (..., nq).
            v: (..., nv).
            tau: (..., nv); read for the free joints.
            vdot: (..., nv); read for the prescribed joints.
            prescribed: Names of the joints whose acceleration is given.
            forces, reference: As in ``inverse_dynamics``.

        Returns:
            (vdot, tau), each (..., nv) and complete, in O(n).
        """
        return dynamics.hybrid_dynamics(self.model, q, v, tau, vdot, prescribed, forces, reference)

    def mass_matrix(self, q: Coordinates) -> Array:
        """Joint-space inertia (..., nv, nv), rotor inertia included."""
        quick = self._quick_dynamics.get("mass_matrix")
        if quick is not None and (result := quick(q)) is not None:
            return result
        return dynamics.mass_matrix(self.model, q)

    def mass_matrix_inverse(self, q: Coordinates) -> Array:
        """Inverse of the mass matrix (..., nv, nv), from its factors."""
        quick = self._quick_dynamics.get("mass_matrix_inverse")
        if quick is not None and (result := quick(q)) is not None:
            return result
        return dynamics.mass_matrix_inverse(self.model, q)

    def bias_force(self, q: Coordinates, v: Coordinates, *, out: Array | None = None) -> Array:
        """Joint forces (..., nv) at zero acceleration: Coriolis, centrifugal and gravity."""
        quick = self._quick_dynamics.get("bias_force")
        if quick is not None and (result := quick(q, v, out=out)) is not None:
            return result
        return dynamics.bias_force(self.model, q, v, out=out)

    def gravity_force(self, q: Coordinates, *, out: Array | None = None) -> Array:
        """Joint forces (..., nv) that hold the robot at rest against gravity."""
        quick = self._quick_dynamics.get("gravity_force")
        if quick is not None and (result := quick(q, out=out)) is not None:
            return result
        return dynamics.gravity_force(self.model, q, out=out)

    def coriolis_matrix(self, q: Coordinates, v: Coordinates) -> Array:
        """Christoffel-consistent C (..., nv, nv): C v is the bias force without gravity.

        C + C* is the rate of the mass matrix, so dM/dt - 2C is skew.
        """
        return dynamics.coriolis_matrix(self.model, q, v)

    def log_determinant(self, q: Coordinates) -> Array:
        """log det of the mass matrix (...), from its factors."""
        return dynamics.log_determinant(self.model, q)

    def operational_inertia(self, q: Coordinates, frames: Sequence[str]) -> Array:
        """Inertia (..., 6m, 6m) that m frames show to forces on them, each in its own axes.

        The inverse of B*ψ*H*D⁻¹HψB, whose blocks come from one sweep and the paths between the
        frames; it exists where the frames can move in every direction.
        """
        return np.asarray(np.linalg.inv(self.function(compliance, frames=frames)(q)))

    def momentum(self, q: Coordinates, v: Coordinates) -> Array:
        """Spatial momentum (..., 6) [angular; linear] about the world's origin, world axes."""
        return dynamics.momentum(self.model, q, v)

    def kinetic_energy(self, q: Coordinates, v: Coordinates) -> Array:
        """Kinetic energy (...) [J], that of the rotors included."""
        return dynamics.kinetic_energy(self.model, q, v)

    def potential_energy(self, q: Coordinates) -> Array:
        """Potential energy (...) [J] of the moving links; zero with them at the world's origin."""
        return dynamics.potential_energy(self.model, q)

    def operators(self, q: Coordinates, v: Coordinates | None = None) -> Operators:
        """𝓜, C, Jacobians, φ, ψ and your own operators at a state: applied in O(n), never formed.

        ``op = robot.operators(q, v)``; ``op.M @ x``, ``op.M.solve(f)``, ``op.J("hand") @ v``,
        ``op.J(["left", "right"]).T @ f``, ``op.C @ v`` (needs ``v``), ``op.H @ op.phi`` (composed),
        ``op.operator(expr, frames=...)``; ``.dense()`` gives the matrix.
        """
        return Operators(self.model, q, v)

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
    ) -> RobotKernel:
        """A program compiled for this robot: a function that can also be looked at.

        ``k = robot.compile("forward_dynamics")``; ``k(q, v=v, tau=tau)``; ``k.sweeps``, ``k.cost``,
        ``k.source()``, ``k.passes``.

        Args:
            wanted: Name of a program (``phistar explain`` lists them), a vector expression, or
                several by name.
            backend: ``"llvm"`` (machine code), ``"numpy"`` (generated Python) or ``"sweeps"`` (the
                interpreter). Default: what the environment variable PHISTAR_BACKEND says, else
                ``"llvm"``.
            frames: The frames that ``B`` speaks of, in order.
            snap: For machine code: rotations closer than this to right angles, and lengths [m] and
                inertias (relative to the link's) below it, become exactly right or zero, so that
                they cost nothing; 1e-10 removes what rounded angles in a file leave. It changes the
                robot: ``k.snapped`` tells how. Default: nothing but rounding.
            shape: For machine code: ``"straight"``, ``"rolled"`` (loops over the links) or
                ``"auto"``.

        Raises:
            UnknownNameError: No such program, backend or frame.
            SingularHingeError: It divides by the inertia of a joint that moves none.
            ArgumentError: It needs a coordinate for every joint and mimic joints are reduced.
        """
        return RobotKernel(self.model, wanted, backend, frames, snap, shape)

    rnea = inverse_dynamics
    aba = forward_dynamics
    crba = mass_matrix

    def to_urdf(self) -> str:
        """The robot as URDF text that reads back as the same model."""
        return export_urdf(self.model)


class _Named(Mapping[str, Any]):
    """A read-only mapping whose KeyError names the robot and close matches."""

    def __init__(self, kind: str, table: Mapping[str, Any], owner: str) -> None:
        self._kind = kind
        self._table = table
        self._owner = owner

    def __getitem__(self, name: str) -> Any:
        if name not in self._table:
            raise UnknownNameError(self._kind, name, self._table, f"'{self._owner}'")
        return self._table[name]

    def __iter__(self) -> Any:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"<{len(self)} {self._kind}s: {', '.join(self._table)}>"


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


def _from_model(
    model: Model, gravity: ArrayLike | None, joint_order: Sequence[str] | None
) -> Robot:
    report = LoadReport(
        model.name, "builder", problems=[*model.problems, *singular_problems(model)]
    )
    report.issue_warnings(stacklevel=4)
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
    if not Path(description).suffix and not os.path.lexists(description):
        close = close_matches(description, bundled.names())
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        known = ", ".join(bundled.names())
        raise RobotNotFoundError(description, f"no such file or bundled robot; {hint}have: {known}")
    return description, False

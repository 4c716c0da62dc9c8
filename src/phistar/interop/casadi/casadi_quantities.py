# SPDX-License-Identifier: BSD-3-Clause
"""What becomes functions of CasADi: values, first derivatives, products with weights, second ones.

Derivatives are along tangent steps (see ``interop.tangent_maps`` for what CasADi is told). Arrays
have one leading axis, samples. With w weights of the result, g_i = w · y_i is the gradient along
argument i, and the second derivatives are H_ij, that of g_i along argument j.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, LoopError, UnknownNameError
from phistar.interop.casadi.patterns import branches_of_ground, on_one_path
from phistar.model.configuration import quaternion_starts
from phistar.model.kinematic_loops import active_loops
from phistar.robot import Robot

Pair = tuple[str, str]


class CasadiQuantity(ABC):
    """A quantity of one robot.

    Attributes:
        robot: Whose it is.
        inputs: Names of the arguments, q first; all others have the size of v.
        output: Name of the result.
        shape: Of the result for one sample; entries are columnwise, as CasADi has them.
    """

    name: str
    inputs: tuple[str, ...]
    output: str

    def __init__(self, robot: Robot) -> None:
        self.robot = robot

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the result of one sample."""

    @property
    def size(self) -> int:
        """Entries of the result of one sample."""
        return self.shape[0] * self.shape[1]

    @abstractmethod
    def value(self, given: Sequence[Array]) -> Array:
        """(samples, size)."""

    @abstractmethod
    def first(self, given: Sequence[Array]) -> Mapping[str, Array]:
        """By argument: (samples, size, nv)."""

    @abstractmethod
    def products(self, given: Sequence[Array], weights: Array) -> Mapping[str, Array]:
        """By argument: weights (samples, size) times ``first``, (samples, nv)."""

    @abstractmethod
    def second(self, given: Sequence[Array], weights: Array) -> Mapping[Pair, Array]:
        """By pairs of arguments: (samples, nv, nv); pairs that are left out are zero."""

    @property
    @abstractmethod
    def first_patterns(self) -> Mapping[str, Array]:
        """By argument: which entries (size, nv) may differ from zero."""

    @property
    @abstractmethod
    def second_patterns(self) -> Mapping[Pair, Array]:
        """By pairs of arguments: which entries (nv, nv) may; pairs that are left out are zero."""


def _directions(nv: int) -> tuple[Array, Array]:
    """Unit steps of q, then of v: (2 nv, nv) each."""
    unit, none = np.eye(nv), np.zeros((nv, nv))
    return np.concatenate([unit, none]), np.concatenate([none, unit])


class _Dynamics(CasadiQuantity):
    """Inverse and forward dynamics."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.robot.nv, 1

    def value(self, given: Sequence[Array]) -> Array:
        found: Array = getattr(self.robot, self.name)(*given, on_error="nan")
        return found

    def products(self, given: Sequence[Array], weights: Array) -> Mapping[str, Array]:
        q, v, third = given
        return self.robot.vjp(self.name, q, v, third, weights, on_error="nan")

    def _inverse_second(
        self, q: Array, v: Array, vdot: Array, weights: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Of weights · inverse dynamics: H_qq, H_vq, H_vv and that of 𝓜 weights along q."""
        nv = self.robot.nv
        dq, dv = _directions(nv)
        apart = (x[:, None, :] for x in (q, v, vdot, weights))
        found = self.robot.hvp("inverse_dynamics", *apart, dq=dq, dv=dv, on_error="nan")
        columns = {name: np.swapaxes(x, -1, -2) for name, x in found.items()}
        along_q, along_v = columns["v"][..., :nv], columns["v"][..., nv:]
        return columns["q"][..., :nv], along_q, along_v, columns["vdot"][..., :nv]


class InverseDynamics(_Dynamics):
    """τ of q, v and v̇."""

    name = "inverse_dynamics"
    inputs = ("q", "v", "vdot")
    output = "tau"

    def first(self, given: Sequence[Array]) -> Mapping[str, Array]:
        at = self.robot.linearize_inverse(*given, on_error="nan")
        return {"q": at.tau_q, "v": at.tau_v, "vdot": at.tau_vdot}

    def second(self, given: Sequence[Array], weights: Array) -> Mapping[Pair, Array]:
        q, v, vdot = given
        qq, vq, vv, mass_q = self._inverse_second(q, v, vdot, weights)
        back, mass_back = np.swapaxes(vq, -1, -2), np.swapaxes(mass_q, -1, -2)
        return {
            ("q", "q"): qq, ("q", "v"): back, ("v", "q"): vq, ("v", "v"): vv,
            ("q", "vdot"): mass_back, ("vdot", "q"): mass_q,
        }  # fmt: skip

    @cached_property
    def first_patterns(self) -> Mapping[str, Array]:
        return dict.fromkeys(self.inputs, on_one_path(self.robot.model))

    @cached_property
    def second_patterns(self) -> Mapping[Pair, Array]:
        pairs = [("q", "q"), ("q", "v"), ("v", "q"), ("v", "v"), ("q", "vdot"), ("vdot", "q")]
        return dict.fromkeys(pairs, on_one_path(self.robot.model))


class ForwardDynamics(_Dynamics):
    """v̇ of q, v and τ."""

    name = "forward_dynamics"
    inputs = ("q", "v", "tau")
    output = "vdot"

    def first(self, given: Sequence[Array]) -> Mapping[str, Array]:
        at = self.robot.linearize(*given, on_error="nan")
        return {"q": at.vdot_q, "v": at.vdot_v, "tau": at.vdot_tau}

    def second(self, given: Sequence[Array], weights: Array) -> Mapping[Pair, Array]:
        """𝓜v̇ + C = τ differentiated twice, times 𝓜⁻¹ weights."""
        q, v, _ = given
        at = self.robot.linearize(*given, on_error="nan")
        # vdot_tau is the inverse of the mass matrix, and symmetric.
        u = (at.vdot_tau @ weights[..., None])[..., 0]
        qq, vq, vv, mass_q = self._inverse_second(q, v, at.vdot, u)
        mass_back = np.swapaxes(mass_q, -1, -2)
        bent = mass_back @ at.vdot_q
        mixed = vq + np.swapaxes(at.vdot_v, -1, -2) @ mass_q
        solved = at.vdot_tau @ mass_q
        return {
            ("q", "q"): -(qq + bent + np.swapaxes(bent, -1, -2)),
            ("q", "v"): -np.swapaxes(mixed, -1, -2), ("v", "q"): -mixed, ("v", "v"): -vv,
            ("q", "tau"): -np.swapaxes(solved, -1, -2), ("tau", "q"): -solved,
        }  # fmt: skip

    @cached_property
    def first_patterns(self) -> Mapping[str, Array]:
        return dict.fromkeys(self.inputs, branches_of_ground(self.robot.model))

    @cached_property
    def second_patterns(self) -> Mapping[Pair, Array]:
        pairs = [("q", "q"), ("q", "v"), ("v", "q"), ("v", "v"), ("q", "tau"), ("tau", "q")]
        return dict.fromkeys(pairs, branches_of_ground(self.robot.model))


class _OfConfiguration(CasadiQuantity):
    """What depends on q alone: products and second derivatives from a dense Jacobian."""

    inputs = ("q",)

    def products(self, given: Sequence[Array], weights: Array) -> Mapping[str, Array]:
        return {"q": (weights[:, None, :] @ self.first(given)["q"])[:, 0]}

    @cached_property
    def second_patterns(self) -> Mapping[Pair, Array]:
        moving = self.first_patterns["q"].any(axis=0)
        return {("q", "q"): np.outer(moving, moving)}


class FramePose(_OfConfiguration):
    """The pose (4, 4) of a frame in the world."""

    name = "frame_pose"
    output = "pose"

    def __init__(self, robot: Robot, frame: str) -> None:
        super().__init__(robot)
        robot.model.frame(frame)
        self.frame = frame

    @property
    def shape(self) -> tuple[int, int]:
        return 4, 4

    def value(self, given: Sequence[Array]) -> Array:
        pose: Array = self.robot.frame_pose(given[0], self.frame, on_error="nan")
        return np.swapaxes(pose, -1, -2).reshape(len(pose), 16)

    def first(self, given: Sequence[Array]) -> Mapping[str, Array]:
        (q,) = given
        pose = self.robot.frame_pose(q, self.frame, on_error="nan")
        rows = self.robot.jacobian(q, self.frame, on_error="nan")
        # Columns of the rotation turn, the last column moves.
        changes = np.zeros((len(q), 4, 4, self.robot.nv))
        turning = np.swapaxes(rows[:, :3], -1, -2)
        for k in range(3):
            moved = np.cross(turning, pose[:, None, :3, k])
            changes[:, k, :3] = np.swapaxes(moved, -1, -2)
        changes[:, 3, :3] = rows[:, 3:]
        return {"q": changes.reshape(len(q), 16, -1)}

    def second(self, given: Sequence[Array], weights: Array) -> Mapping[Pair, Array]:
        (q,) = given
        nv = self.robot.nv
        pose = self.robot.frame_pose(q, self.frame, on_error="nan")
        rows = self.robot.jacobian(q, self.frame, on_error="nan")
        rates = self.robot.jacobian_rate(q[:, None], np.eye(nv), self.frame, on_error="nan")
        columns = weights.reshape(len(q), 4, 4)[..., :3]
        turning = np.swapaxes(rows[:, :3], -1, -2)
        found = np.einsum("sjik,si->skj", rates[:, :, 3:], columns[:, 3])
        for k in range(3):
            axis = pose[:, :3, k]
            # w · (∂ω_k/∂q_j × r + ω_k × (ω_j × r))
            moment = np.cross(axis, columns[:, k])
            found += np.einsum("sjik,si->skj", rates[:, :, :3], moment)
            moved = np.cross(turning, axis[:, None])
            held = np.cross(columns[:, k][:, None], turning)
            found += held @ np.swapaxes(moved, -1, -2)
        return {("q", "q"): found}

    @cached_property
    def first_patterns(self) -> Mapping[str, Array]:
        model = self.robot.model
        body = model.frame(self.frame).body
        moving = np.zeros(self.robot.nv, dtype=bool)
        while body >= 0:
            moving[model.bodies[body].v_slice] = True
            body = model.bodies[body].parent
        entries = np.tile([True, True, True, False], 4)
        return {"q": np.outer(entries, moving)}


class CasadiCenterOfMass(_OfConfiguration):
    """The centre of mass (3,) in the world."""

    name = "center_of_mass"
    output = "center"

    @property
    def shape(self) -> tuple[int, int]:
        return 3, 1

    def value(self, given: Sequence[Array]) -> Array:
        found: Array = self.robot.center_of_mass(given[0], on_error="nan")
        return found

    def first(self, given: Sequence[Array]) -> Mapping[str, Array]:
        return {"q": self.robot.center_of_mass_jacobian(given[0], on_error="nan")}

    def second(self, given: Sequence[Array], weights: Array) -> Mapping[Pair, Array]:
        units = np.eye(self.robot.nv)
        q = given[0][:, None]
        rates = self.robot.center_of_mass_jacobian_rate(q, units, on_error="nan")
        return {("q", "q"): np.einsum("sjik,si->skj", rates, weights)}

    @cached_property
    def first_patterns(self) -> Mapping[str, Array]:
        return {"q": np.ones((3, self.robot.nv), dtype=bool)}


class PotentialEnergy(_OfConfiguration):
    """The potential energy (1,)."""

    name = "potential_energy"
    output = "energy"

    @property
    def shape(self) -> tuple[int, int]:
        return 1, 1

    def value(self, given: Sequence[Array]) -> Array:
        found: Array = self.robot.potential_energy(given[0], on_error="nan")
        return found[:, None]

    def first(self, given: Sequence[Array]) -> Mapping[str, Array]:
        return {"q": self.robot.gravity_force(given[0], on_error="nan")[:, None, :]}

    def second(self, given: Sequence[Array], weights: Array) -> Mapping[Pair, Array]:
        stiffness = self.robot.gravity_force_q(given[0], on_error="nan")
        return {("q", "q"): weights[..., None] * stiffness}

    @cached_property
    def first_patterns(self) -> Mapping[str, Array]:
        return {"q": np.ones((1, self.robot.nv), dtype=bool)}

    @cached_property
    def second_patterns(self) -> Mapping[Pair, Array]:
        return {("q", "q"): on_one_path(self.robot.model)}


QUANTITIES: Mapping[str, type[CasadiQuantity]] = {
    row.name: row
    for row in (ForwardDynamics, InverseDynamics, FramePose, CasadiCenterOfMass, PotentialEnergy)
}
"""Quantities by name; those of frames take one."""


def quantity_of(robot: Robot, name: str, frame: str | None) -> CasadiQuantity:
    """A quantity of a robot.

    Raises:
        UnknownNameError: There is no such quantity or frame.
        ArgumentError: A frame is missing, or given without need.
        LoopError: The robot closes loops.
    """
    if name not in QUANTITIES:
        raise UnknownNameError("quantity for CasADi", name, QUANTITIES)
    if loops := active_loops(robot.model.loops):
        raise LoopError(
            robot.name,
            f"{name} as a function of CasADi",
            loops,
            "an optimiser leaves the loops, where it is not defined: take robot.tree and add the "
            "loops as constraints of your problem",
        )
    if (frame is not None) != (QUANTITIES[name] is FramePose):
        asked = "needs a frame: frame='...'" if frame is None else f"has no frame, got {frame!r}"
        raise ArgumentError(f"{name} {asked}")
    return QUANTITIES[name](robot) if frame is None else FramePose(robot, frame)


def unit_rows(robot: Robot, q: Array) -> Array:
    """(samples, nq) with quaternions made unit; those without length become NaN."""
    starts = quaternion_starts(robot.model)
    if not starts:
        return q
    result = np.array(q)
    with np.errstate(invalid="ignore", divide="ignore"):
        for _, start in starts:
            part = result[:, start : start + 4]
            part /= np.linalg.norm(part, axis=-1, keepdims=True)
    return result

# SPDX-License-Identifier: BSD-3-Clause
"""Control laws as calls of machine code at the beginning of a step: state -> joint forces.

A law is a few calls of kernels: quantities of the robot (inverse dynamics, gravity, Jacobians),
which other calls of the package share, and short programs of ``feedback_programs`` between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from phistar.arrays import Array, DType
from phistar.compile import RequestKey, joint_map, traced_executable
from phistar.errors import ShapeError
from phistar.joint_physics.passive_forces import force_parts
from phistar.model.joint_physics import Passive
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.scalar.trace.law_numbers import LawNumbers
from phistar.sim.divergence import MAX_FINITE
from phistar.sim.step_kernels import quantity_kernel, small_kernel
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.llvm.run.machine_kernel import MachineKernel
    from phistar.backends.llvm.run.step_loop import StepCall

GAINS = ("stiffness", "damping")
_STATE = {"q": "q0", "v": "x0"}
"""Buffers of the state."""
GAIN = "gain"
"""Parts of a gain matrix are called so, with a number."""


class NoLawCodeError(Exception):
    """There is no machine code of a law; the text says why."""


@runtime_checkable
class Controller(Protocol):
    """What gives joint forces in a state, for machine code and for Python."""

    def program(self) -> LawProgram | None:
        """Its numbers for the programs of its kind; None if there are none."""

    def at_step(self, k: int, q: Array, v: Array) -> Array:
        """Joint forces (..., nv) at step k in states (..., nq), (..., nv)."""


@dataclass(frozen=True, eq=False)
class LawProgram:
    """A law, as numbers for the programs of its kind.

    Attributes:
        kind: One of ``LAW_KINDS``.
        numbers: Gains and goals by name, (..., size); matrices by ``gain_parts``.
        moving: Those that change in time, (N, ..., size): row k is of step k.
        gravity: Whether it holds the robot against gravity.
        frame: The frame that it moves.
        columns: The entries of tau of its motors.
        passive: Forces of the joints themselves that motors make up for.
    """

    kind: str
    numbers: Mapping[str, Array]
    moving: Set[str] = frozenset()
    gravity: bool = True
    frame: str = ""
    columns: tuple[int, ...] = ()
    passive: Passive = False

    @cached_property
    def fixed(self) -> dict[str, Array]:
        """Those that are the same for all samples and steps, (size,); of equal gains one."""
        still = {k: x for k, x in self.numbers.items() if x.ndim == 1 and k not in self.moving}
        return {k: x[:1] if k in GAINS and (x == x[0]).all() else x for k, x in still.items()}

    @cached_property
    def varying(self) -> dict[str, Array]:
        """The others, time first: (N or 1, ..., size)."""
        others = {k: x for k, x in self.numbers.items() if k not in self.fixed}
        found = {k: x if k in self.moving else x[None] for k, x in others.items()}
        return dict(sorted(found.items(), key=lambda item: item[0].startswith(GAIN)))

    @property
    def size(self) -> int:
        """Numbers of a row of what varies."""
        return sum(x.shape[-1] for x in self.varying.values())

    def buffers(self, rows: Array) -> dict[str, Array]:
        """What ``rows`` gives as buffers of the step: the reference, and parts of gains."""
        found: dict[str, Array] = {}
        place = 0
        for name, x in self.varying.items():
            end = place + x.shape[-1]
            if name.startswith(GAIN):
                found[f"law_{name}"] = rows[..., place:end]
            else:
                found["reference"] = rows[..., :end]
            place = end
        return found

    @property
    def steps(self) -> int | None:
        """For how many steps it has goals; None: for any number."""
        return min((len(self.numbers[name]) for name in self.moving), default=None)

    @property
    def batch(self) -> tuple[int, ...]:
        """Axes of its own samples."""
        return np.broadcast_shapes(*(x.shape[1:-1] for x in self.varying.values()))

    def constants(self, dtype: DType) -> dict[str, Array]:
        """The fixed numbers as buffers of the step."""
        most = min(MAX_FINITE, float(np.finfo(dtype).max))
        return {
            f"law_{name}": np.ascontiguousarray(np.clip(x, -most, most), dtype)
            for name, x in self.fixed.items()
        }

    def rows(self, batch: tuple[int, ...], dtype: DType) -> Array:
        """The reference (N, B, size), or (B, size) if nothing moves, for a batch of B samples."""
        size, count = self.size, math.prod(batch)
        steps = self.steps or 1
        lead = self.batch
        parts = [
            np.broadcast_to(_aligned(x, len(lead)), (steps, *lead, x.shape[-1]))
            for x in (each[:steps] for each in self.varying.values())
        ]
        found = np.concatenate(parts, axis=-1).astype(dtype) if parts else np.zeros((1, size))
        if math.prod(lead) == 1:
            # One row for all samples: it is not copied.
            wide = np.broadcast_to(found.reshape(steps, 1, size), (steps, count, size))
        else:
            wide = np.broadcast_to(_aligned(found, len(batch)), (steps, *batch, size))
            wide = wide.reshape(steps, count, size)
        return wide if self.steps else wide[0]

    def layout(self, model: Model, own: bool, shared: bool) -> LawNumbers:
        """Where its numbers stand."""
        passive = () if self.passive is False else force_parts(model, self.passive)
        fixed, varying = (
            tuple((k, x.shape[-1]) for k, x in part.items() if not k.startswith(GAIN))
            for part in (self.fixed, self.varying)
        )
        return LawNumbers(fixed, varying, own, passive, shared)


def _aligned(x: Array, axes: int) -> Array:
    """Time, ``axes`` axes of a batch, and the numbers."""
    return x.reshape(len(x), *(1,) * (axes + 2 - x.ndim), *x.shape[1:])


class _Calls:
    """The calls of a law, as they are added.

    Buffers of the step are those of the state, ``tau`` and ``reference``; all others begin with
    ``law_``.
    """

    def __init__(
        self,
        model: Model,
        law: LawProgram,
        real: str,
        patient: bool,
        own: bool,
        in_step: bool,
    ) -> None:
        self.model, self.law = model, law
        self._real, self._patient = real, patient
        self.shared = in_step and math.prod(law.batch) == 1
        self._layout = law.layout(model, own, self.shared)
        self._own = own
        self._same_order = joint_map(model).is_identity
        self.found: list[StepCall] = []

    @property
    def motors_do_as_asked(self) -> bool:
        """Whether forces of a quantity are those of the step: no limits, nothing to make up for."""
        free = not (self._layout.has("lower") or self._layout.passive)
        return free and (self._same_order or not self._own)

    def _add(self, kernel: MachineKernel, buffers: Mapping[str, str]) -> None:
        from phistar.backends.llvm.run.step_loop import StepCall

        signature = kernel.call.signature
        read, written = (
            tuple(buffers.get(name, f"law_{name}") for name in names)
            for names in (signature.inputs, signature.outputs)
        )
        self.found.append(StepCall(kernel, read, written))

    def short(self, name: str, *choices: object) -> None:
        """A program of ``feedback_programs``; its outputs have its own names."""
        code = f"feedback_programs.{name}"
        buffers = {**_STATE, "tau": "tau", "reference": "reference"}
        self._add(small_kernel(self.model, code, (self._layout, *choices), self._real), buffers)

    def plain(self, name: str, *choices: object, **buffers: str) -> None:
        """The same of a program that does not know the law's numbers."""
        code = f"feedback_programs.{name}"
        self._add(small_kernel(self.model, code, choices, self._real), buffers)

    def quantity(self, name: str, result: str, **given: str) -> None:
        """A vector of the catalogue, in body order."""
        buffers = {**_STATE, "v": self._velocity(own=False), "tau": f"law_{result}"} | given
        self._add(quantity_kernel(name, self.model, self._real, self._patient), buffers)

    def traced(self, key: RequestKey, result: str) -> None:
        """A row of traced quantities, in the robot's own coordinates."""
        from phistar.backends.to_llvm import MachineCode

        code = traced_executable(self.model, key)
        if not isinstance(code, MachineCode):
            raise NoLawCodeError(f"{key[0]} of robot '{self.model.name}' has no machine code")
        tiers = code.tiers((), self._real, None)
        waits = code.program.decision.eager or self._patient
        kernel = tiers.wait_for_final() if waits else tiers.kernel_if_ready
        if kernel is None:
            raise NoLawCodeError(f"{key[0]} of robot '{self.model.name}' is being compiled")
        (output,) = kernel.call.signature.outputs
        self._add(kernel, {**_STATE, "v": self._velocity(own=True), output: f"law_{result}"})

    def _velocity(self, own: bool) -> str:
        """The buffer of the velocity in some order."""
        if self._same_order or own == self._own:
            return _STATE["v"]
        if not any("law_v_other" in call.outputs for call in self.found):
            self.short("reordered_velocity")
        return "law_v_other"


def _pd(calls: _Calls) -> None:
    if calls.law.gravity:
        calls.quantity("gravity_force", "held")
    calls.short("pd_force", calls.law.gravity)


def _computed_torque(calls: _Calls) -> None:
    calls.short("wanted_acceleration")
    if calls.motors_do_as_asked:
        calls.quantity("inverse_dynamics", "asked", vdot="law_vdot", tau="tau")
        return
    calls.quantity("inverse_dynamics", "asked", vdot="law_vdot")
    calls.short("motor_force")


def gain_parts(K: Array) -> dict[str, Array]:
    """Gains (..., nu, 2 nv) as parts of some rows each, the last one filled up with zeros.

    One short program then does for all parts.
    """
    size = K.shape[-1]
    rows = max(1, min(K.shape[-2], POLICY.gain_products_per_call // size))
    count = -(-K.shape[-2] // rows)
    full = np.zeros((*K.shape[:-2], count, rows * size))
    full.reshape(*K.shape[:-2], count * rows, size)[..., : K.shape[-2], :] = K
    return {f"{GAIN}{k}": full[..., k, :] for k in range(count)}


def _linear(calls: _Calls) -> None:
    calls.short("state_error")
    gains = [x.shape[-1] for name, x in calls.law.numbers.items() if name.startswith(GAIN)]
    sizes = tuple(size // (2 * calls.model.nv) for size in gains)
    for k, rows in enumerate(sizes):
        shared = f"{GAIN}{k}" in calls.law.fixed or calls.shared
        calls.plain("gain_rows", rows, shared, gain=f"law_gain{k}", product=f"law_product{k}")
    calls.short("linear_force", calls.law.columns, sizes)


def _operational(calls: _Calls) -> None:
    frame, axes = calls.law.frame, "world_aligned"
    calls.short("damped_acceleration")
    calls.quantity("inverse_dynamics", "coasting", vdot="law_vdot")
    calls.traced(("frame_pose", frame), "pose")
    calls.traced(("jacobian", frame, axes), "jacobian")
    calls.traced(("frame_bias_acceleration", frame, axes), "drift")
    calls.traced(("operational_inertia", (frame,), axes, POLICY.singular_roundings), "inertia")
    calls.short("operational_force")


def _resting(calls: _Calls) -> None:
    """-c𝓜v, with gravity; and what gravity is where it is to be taken away."""
    calls.short("damped_acceleration")
    calls.quantity("inverse_dynamics", "asked", vdot="law_vdot", v="law_rest")
    if not calls.law.gravity:
        calls.quantity("gravity_force", "held")


def _rate(calls: _Calls) -> None:
    _resting(calls)
    calls.short("motor_force", calls.law.gravity)


def _pose(calls: _Calls) -> None:
    _resting(calls)
    calls.traced(("frame_pose", calls.law.frame), "pose")
    calls.traced(("jacobian", calls.law.frame, "world_aligned"), "jacobian")
    calls.short("pose_force", calls.law.gravity)


LAW_KINDS: dict[str, Callable[[_Calls], None]] = {
    "pd": _pd,
    "computed_torque": _computed_torque,
    "linear": _linear,
    "operational": _operational,
    "rate": _rate,
    "pose": _pose,
}
"""What adds the calls of each kind of law."""


def law_calls(
    model: Model,
    law: LawProgram,
    real: str,
    patient: bool,
    own: bool,
    in_step: bool = True,
) -> list[StepCall]:
    """The calls that make ``tau`` of the state and of ``LawProgram.buffers``.

    Args:
        model: The robot.
        law: The law.
        real: Precision.
        patient: Whether to wait for optimised code.
        own: Whether v and ``tau`` are in the robot's own coordinates, or in body order.
        in_step: Whether all samples are at the same step.

    Raises:
        NoLawCodeError: A program is not there.
    """
    calls = _Calls(model, law, real, patient, own, in_step)
    LAW_KINDS[law.kind](calls)
    return calls.found


def refuse_uncompiled(model: Model) -> None:
    """Raise for robots whose laws have no machine code.

    Raises:
        NoLawCodeError: With the reason.
    """
    joints = joint_map(model)
    if active_loops(model.loops):
        raise NoLawCodeError(f"robot '{model.name}' has closed loops")
    if not joints.one_to_one or (joints.scales != 1.0).any():
        raise NoLawCodeError(f"robot '{model.name}' has mimic joints")


def refuse_batch(model: Model, law: LawProgram, batch: tuple[int, ...]) -> None:
    """Raise for goals of more samples than there are states."""
    try:
        fits = np.broadcast_shapes(law.batch, batch) == batch
    except ValueError:
        fits = False
    if not fits:
        expected = f"axes that broadcast to those of the states, {batch}"
        raise ShapeError("the batch of the law", law.batch, expected, f"robot '{model.name}'")

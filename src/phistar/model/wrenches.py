# SPDX-License-Identifier: BSD-3-Clause
"""External wrenches on named frames: a user's ``forces=`` and ``reference=``, checked once.

Programs read them as forces on links, ``f_ext``. Machine code moves them there itself; everything
else, and other dtypes than float64 and float32, uses ``link_forces``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError, kind_of
from phistar.model.components import GROUND
from phistar.model.configuration import Coordinates, as_numbers, batch_shape, require_finite
from phistar.model.model import Model
from phistar.model.numpy_kinematics import Reference, body_poses, check_reference, reference_pose
from phistar.spatial import force_transform, pose_inverse

Forces = Mapping[str, ArrayLike]
"""Wrenches (..., 6) [moment; force] by name of a frame."""

_INPUT_PREFIX = "wrench "
"""No other vector that programs read has a space in its name."""


def is_wrench_input(name: str) -> bool:
    """Whether an input of a program is the wrench on a frame."""
    return name.startswith(_INPUT_PREFIX)


def wrench_number(name: str) -> int:
    """On which of the frames the wrench acts that an input of a program is."""
    return int(name.removeprefix(_INPUT_PREFIX))


@dataclass(frozen=True)
class HeldTerm:
    """What a program has more if wrenches do not turn with their links: ± K x or ± K* x.

    K = Σ J*SJ, see ``scalar.trace.wrench_programs``.

    Attributes:
        target: The joint vector to which it is added, an input or an output.
        vector: The joint vector x, an input or an output.
        sign: +1 or -1.
        adjoint: Whether it is K*.
    """

    target: str
    vector: str
    sign: float = 1.0
    adjoint: bool = False


@dataclass(frozen=True)
class WrenchFrames:
    """Where wrenches act and in which axes they are given: all that code for them depends on.

    Attributes:
        frames: Names of frames, each once, none on the ground, in the order of the alphabet.
        reference: Axes and point of the wrenches, as for Jacobians.
        held: Of a program that differentiates: what it has more as wrenches are held in the world.
            Without it forces are held in the axes of their links.
    """

    frames: tuple[str, ...]
    reference: Reference
    held: HeldTerm | None = None

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """What programs call the wrenches."""
        return tuple(f"{_INPUT_PREFIX}{i}" for i in range(len(self.frames)))

    @property
    def turn(self) -> bool:
        """Whether they change in the axes of their links as the robot moves."""
        return self.reference != "local"

    def holding(self, term: HeldTerm) -> WrenchFrames:
        """The same for a program that differentiates."""
        return replace(self, held=term) if self.turn else self

    @property
    def choices(self) -> tuple[object, ...]:
        """What code depends on besides the places of the frames."""
        return (self.reference, self.held)

    def bodies(self, model: Model) -> list[int]:
        """The bodies that carry the frames, each once, in order."""
        return sorted({model.frame(name).body for name in self.frames})


@dataclass(frozen=True)
class Wrenches:
    """Checked wrenches on frames that move.

    Attributes:
        at: Their frames and reference.
        arrays: (..., 6) each, in the order of ``at.frames``.
        given: Names of frames in the order in which the user gave them, the ground's among them.
    """

    at: WrenchFrames
    arrays: tuple[Array, ...]
    given: tuple[str, ...]

    @cached_property
    def inputs(self) -> dict[str, Array]:
        """The wrenches as inputs of programs."""
        return dict(zip(self.at.inputs, self.arrays, strict=True))

    @cached_property
    def by_argument(self) -> dict[str, Array]:
        """The wrenches by what messages call them."""
        return {_argument(n): x for n, x in zip(self.at.frames, self.arrays, strict=True)}

    @property
    def differ(self) -> bool:
        """Whether samples of a batch have wrenches of their own."""
        return any(x.size > 6 for x in self.arrays)

    def of_samples(self, chosen: Array) -> Wrenches:
        """Those of some samples, by number or booleans, of a batch with one axis."""
        return replace(self, arrays=tuple(x[chosen] if x.size > 6 else x for x in self.arrays))

    def with_batch(self, batch: tuple[int, ...]) -> Wrenches:
        """The same for a batch that has become one axis."""
        if not self.differ:
            return replace(self, arrays=tuple(x.reshape(x.shape[-1:]) for x in self.arrays))
        arrays = (np.broadcast_to(x, (*batch, 6)).reshape(-1, 6) for x in self.arrays)
        return replace(self, arrays=tuple(arrays))

    def require_finite(self) -> None:
        """Raise unless every number is finite; names the first that is not."""
        for argument, wrench in self.by_argument.items():
            require_finite(argument, wrench)

    @property
    def all_move(self) -> bool:
        """Whether no frame that the user named is on the ground."""
        return len(self.given) == len(self.at.frames)

    @property
    def by_frame(self) -> dict[str, Array]:
        """The wrenches by frame."""
        return dict(zip(self.at.frames, self.arrays, strict=True))

    def request(self, key: Hashable) -> Hashable:
        """The key of the entry that takes them, by that of the same call without forces."""
        return (key, *self.given, self.at.reference)

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes that they have in common."""
        return np.broadcast_shapes(*(x.shape[:-1] for x in self.arrays))

    def with_axis(self) -> Wrenches:
        """The same with one more batch axis, of length one, at the end."""
        return Wrenches(self.at, tuple(x[..., None, :] for x in self.arrays), self.given)


ProgramInputs = Mapping[str, ArrayLike | Wrenches]
"""Vectors that programs read, by name; ``f_ext`` may be wrenches on frames."""


def _argument(frame: str) -> str:
    return f"forces[{frame!r}]"


def require_wrenches_by_name(forces: object) -> None:
    """Raise unless something is a mapping, from names of frames to wrenches."""
    if not isinstance(forces, Mapping):
        raise ArgumentError(
            f"forces is {kind_of(forces)}, expected wrenches (..., 6) by name of a frame: "
            "forces={'hand': [moment; force]}"
        )


def check_wrenches(
    model: Model, q: Coordinates, forces: Forces | None, reference: str
) -> Wrenches | None:
    """A user's wrenches, or None if none acts on what moves.

    Numbers without a precision of their own, in lists, take that of ``q``. Whether those on frames
    that move are finite is left to machine code, or to ``Wrenches.require_finite``.

    Raises:
        ArgumentError: ``forces`` is no mapping, or ``reference`` is unknown.
        ShapeError: A wrench is not (..., 6).
        NotFiniteError: A number on the ground is infinite or NaN.
        UnknownNameError: There is no such frame.
    """
    kind = check_reference(reference)
    if forces is None:
        return None
    require_wrenches_by_name(forces)
    found: dict[str, Array] = {}
    for name, value in forces.items():
        wrench = as_numbers(value, _argument(name))
        if not isinstance(value, np.ndarray) and isinstance(q, np.ndarray) and q.dtype.kind in "fc":
            wrench = wrench.astype(np.finfo(q.dtype).dtype, copy=False)
        if wrench.ndim == 0 or wrench.shape[-1] != 6:
            raise ShapeError(_argument(name), wrench.shape, "(..., 6)", f"robot '{model.name}'")
        if model.frame(name).body == GROUND:
            require_finite(_argument(name), wrench)
        else:
            found[name] = wrench
    if not found:
        return None
    frames = tuple(sorted(found))
    arrays = tuple(found[name] for name in frames)
    return Wrenches(WrenchFrames(frames, kind), arrays, tuple(forces))


def check_batch(model: Model, arrays: Mapping[str, Array], wrenches: Wrenches | None) -> None:
    """Raise unless the batches of vectors (..., n) and wrenches broadcast."""
    if wrenches is not None:
        batch_shape(model, {**arrays, **wrenches.by_argument})


def check_numbers(model: Model, arrays: Mapping[str, Array], wrenches: Wrenches | None) -> None:
    """Raise unless wrenches are finite and their batches broadcast with those of vectors."""
    if wrenches is not None:
        wrenches.require_finite()
        check_batch(model, arrays, wrenches)


def link_forces(model: Model, q: Array, wrenches: Wrenches) -> Array:
    """Wrenches on frames as forces on the bodies, link axes (..., bodies, 6), by NumPy.

    Args:
        model: The robot.
        q: (..., nq), of any real or complex dtype.
        wrenches: Their batches broadcast with that of q.
    """
    poses = body_poses(model, q)
    batch = np.broadcast_shapes(q.shape[:-1], wrenches.batch)
    dtype = np.result_type(poses, *wrenches.arrays)
    total = np.zeros((*batch, len(model.bodies), 6), dtype)
    for name, wrench in zip(wrenches.at.frames, wrenches.arrays, strict=True):
        frame = model.frame(name)
        body = poses[..., frame.body, :, :]
        place = body @ frame.body_pose.astype(np.finfo(poses.dtype).dtype)
        seat = pose_inverse(body) @ reference_pose(place, wrenches.at.reference)
        total[..., frame.body, :] += (force_transform(seat) @ wrench[..., None])[..., 0]
    return total

# SPDX-License-Identifier: BSD-3-Clause
"""Memory for results that keeps their structural zeros from one call to the next.

Half of a humanoid's mass matrix is zero for every state, and to write these zeros takes as long as
to write numbers. Arrays that were filled with zeros once need that no more: machine code then
passes over lines of the caches in which nothing else stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from phistar import backends
from phistar.arguments import checked_state
from phistar.arrays import Array, DType
from phistar.backends.policy import CACHE_LINE_BYTES
from phistar.compile import KEPT_ZEROS, joint_map, kept_zeros, kernel
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.memory_limits import refuse_large
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.model_cache import Entry

if TYPE_CHECKING:
    from phistar.backends.to_llvm import MachineCode

_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "mass_matrix": ("q",),
    "linearize_inverse": ("q", "v", "vdot"),
}
_VECTORS: Mapping[str, tuple[str, ...]] = {"mass_matrix": (), "linearize_inverse": ("tau",)}
_REALS = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}


class ResultBuffers:
    """Arrays for the results of one quantity of a robot, made by ``robot.result_buffers``.

    A call with ``out=`` puts its results into them, and returns these arrays, the same ones each
    time. **Who makes them promises not to write into places that are zero for every state**: they
    are filled with zeros once, and code may leave them as they are. Whatever is written there all
    the same stays in later results, there and nowhere else; ``clear`` makes them zero again. All
    other places may be written at will.

    Attributes:
        model: The robot.
        quantity: ``"mass_matrix"`` or ``"linearize_inverse"``.
        batch: Axes before those of a sample.
        dtype: float64 or float32.
        arrays: The results by name, read-only as a mapping.
        keeps_zeros: Whether there is code that leaves lines of zeros as they are. If not, all is
            written.
        why: What was compared, as in ``robot.compile(quantity).decision``.
    """

    def __init__(
        self,
        model: Model,
        quantity: str,
        batch: int | tuple[int, ...] = (),
        dtype: object = np.float64,
    ) -> None:
        if quantity not in KEPT_ZEROS:
            raise UnknownNameError("quantity with result buffers", quantity, KEPT_ZEROS)
        self.model = model
        self.quantity = quantity
        self.batch = _batch_axes(batch)
        self.dtype = np.dtype(dtype)  # type: ignore[call-overload]
        if self.dtype not in _REALS:
            raise ArgumentError(f"dtype is {self.dtype}, expected float64 or float32")
        tails: dict[str, tuple[int, ...]] = dict.fromkeys(_VECTORS[quantity], (model.nv,))
        tails |= dict.fromkeys(KEPT_ZEROS[quantity], (model.nv, model.nv))
        shapes = {name: (*self.batch, *tail) for name, tail in tails.items()}
        needed = sum(map(math.prod, shapes.values())) * self.dtype.itemsize
        what = f"result buffers {self.batch} of robot '{model.name}'"
        refuse_large(what, needed, "take smaller batches")
        found = {name: _aligned_zeros(shape, self.dtype) for name, shape in shapes.items()}
        self.arrays: Mapping[str, Array] = MappingProxyType(found)
        self._entry: Entry | None = None

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in self.arrays.items())
        kept = "zeros stay" if self.keeps_zeros else "written in full"
        return f"<result buffers of '{self.model.name}': {shapes}, {self.dtype}, {kept}>"

    @property
    def keeps_zeros(self) -> bool:
        """See above."""
        return self._decision[0]

    @property
    def why(self) -> str:
        """See above."""
        return self._decision[1]

    def clear(self) -> None:
        """Fill all arrays with zeros, as they were when they were made."""
        for array in self.arrays.values():
            array.fill(0.0)

    def filled(
        self,
        model: Model,
        quantity: str,
        otherwise: Callable[..., Mapping[str, Array]],
        **given: Coordinates,
    ) -> Mapping[str, Array]:
        """The arrays with the results at states; zeros if it raises.

        Args:
            model, quantity: What is asked.
            otherwise: Gives results of checked arrays where there is no code that fills these, and
                says what is wrong with them if something is.
            given: Arguments by name, in the order of the quantity.

        Raises:
            ArgumentError, ShapeError: The buffers are those of another robot, quantity, batch or
                precision.
        """
        self._require(model, quantity)
        if self._fill_at_once(*given.values()):
            return self.arrays
        try:
            self._fill_checked(otherwise, checked_state(model, **given))
        except BaseException:
            # Code that was not through, loops for instance, may have left anything anywhere.
            self.clear()
            raise
        return self.arrays

    def _fill_at_once(self, *given: Coordinates) -> bool:
        """Whether machine code took plain arrays and found nothing wrong."""
        if self._entry is None and self._code is not None:
            order, real = _ARGUMENTS[self.quantity], _REALS[self.dtype]
            self._entry = self._code.entry(order, real=real)
        return self._entry is not None and self._entry(*given, out=self._rows) is not None

    def _fill_checked(
        self, otherwise: Callable[..., Mapping[str, Array]], given: tuple[Array, ...]
    ) -> None:
        """The same for arrays of any form, or from what fills arrays of its own."""
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in given))
        if batch != self.batch:
            raise ShapeError("out", self.batch, f"{batch} for the batch", "the arguments")
        dtype = np.result_type(*given)
        if dtype != self.dtype:
            raise ArgumentError(
                f"out holds {self.dtype}, and the result is {dtype}; take "
                f"robot.result_buffers({self.quantity!r}, {self.batch}, np.{dtype})"
            )
        code = self._code
        if code is not None:
            inputs = dict(zip(_ARGUMENTS[self.quantity], given, strict=True))
            here = dict(zip(code.program.sample_shapes, self.arrays.values(), strict=True))
            found = code.try_run(inputs, here)
            if found is not None and found[1]:
                return
        for name, x in otherwise(*given).items():
            np.copyto(self.arrays[name], x)

    def _require(self, model: Model, quantity: str) -> None:
        if quantity != self.quantity:
            raise ArgumentError(
                f"out is made for {self.quantity}, not for {quantity}; take "
                f"robot.result_buffers({quantity!r}, batch)"
            )
        if model is not self.model and model.fingerprint != self.model.fingerprint:
            raise ArgumentError(
                f"out is made by another robot, '{self.model.name}'; take those of this one, "
                f"'{model.name}'"
            )

    @cached_property
    def _decision(self) -> tuple[bool, str]:
        code = self._code_that(keeps_zeros=True)
        if code is None:
            return False, "results that keep zeros: there is no machine code"
        real = _REALS[self.dtype]
        return kept_zeros(code.program, self.quantity, real, math.prod(self.batch))

    def _code_that(self, keeps_zeros: bool) -> MachineCode | None:
        """The machine code of the quantity in some form; None where there is none."""
        if backends.default() != "llvm" or not joint_map(self.model).is_identity:
            return None
        from phistar.backends.to_llvm import MachineCode

        code = kernel(self.quantity, self.model).build(self.model, keeps_zeros=keeps_zeros)
        return code if isinstance(code, MachineCode) else None

    @cached_property
    def _code(self) -> MachineCode | None:
        return self._code_that(self.keeps_zeros)

    @cached_property
    def _rows(self) -> Array | tuple[Array, ...]:
        """The arrays as native entries take them: a row of numbers for each sample."""
        axes = len(self.batch)
        rows = tuple(
            x.reshape(*self.batch, math.prod(x.shape[axes:])) for x in self.arrays.values()
        )
        return rows if len(rows) > 1 else rows[0]


def _batch_axes(batch: int | tuple[int, ...]) -> tuple[int, ...]:
    """Axes of a batch; a number is one of them."""
    axes = (batch,) if isinstance(batch, int | np.integer) else batch
    if not isinstance(axes, tuple) or not all(isinstance(n, int | np.integer) for n in axes):
        raise ArgumentError(f"batch is {batch!r}, expected a number of samples, or a tuple of axes")
    if any(isinstance(n, bool) or n < 0 for n in axes):
        raise ArgumentError(f"batch is {batch!r}, expected 0 or more samples")
    return tuple(int(n) for n in axes)


def _aligned_zeros(shape: tuple[int, ...], dtype: DType) -> Array:
    """Zeros that begin with a line of the caches, and whose memory was touched."""
    size = math.prod(shape) * dtype.itemsize
    room = np.empty(size + CACHE_LINE_BYTES, np.uint8)
    start = -int(room.__array_interface__["data"][0]) % CACHE_LINE_BYTES
    found = room[start : start + size].view(dtype).reshape(shape)
    found.fill(0.0)
    return found

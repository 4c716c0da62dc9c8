# SPDX-License-Identifier: BSD-3-Clause
"""A quantity of a robot as work on rows, which travels to other processes.

What travels is the robot's model, a few kB, and names; a process keeps what arrived, and so
compiles once. Work runs on one thread and by final code from the first row on:
results are the same bits whatever the chunks, threads and processes are.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from hashlib import blake2b
from inspect import signature

import numpy as np

from phistar.arguments import require_robot
from phistar.arrays import Array, DType
from phistar.errors import ArgumentError, UnknownNameError
from phistar.kernels import RobotKernel
from phistar.robot import Robot
from phistar.scale.final_code import final_code
from phistar.scale.packages import StoredArray
from phistar.scale.travel import Travelling, travelling

Quantity = str | RobotKernel | Callable[..., object]

RESULT = "result"
"""Name of a result that is one array."""

_PROBES = (2, 3)
"""Rows of the two calls that show which axis of a result counts rows."""

_CONFIGURATIONS = ("q", "q0", "q1")
"""Arguments that are configurations."""


@dataclass(frozen=True)
class Output:
    """An array of a result.

    Attributes:
        name: Its attribute in the result, or ``RESULT``.
        shape: Its shape for one row, the axis of rows left out.
        axis: Which axis of the result counts rows.
        dtype: Its type.
        start: Where its numbers begin in a packed row.
    """

    name: str
    shape: tuple[int, ...]
    axis: int
    dtype: str
    start: int

    @property
    def size(self) -> int:
        """Numbers per row."""
        return int(np.prod(self.shape))

    @property
    def part(self) -> slice:
        """Its numbers in a packed row."""
        return slice(self.start, self.start + self.size)


class Work:
    """A quantity of a robot on blocks of rows.

    Attributes:
        robot: The robot.
        quantity: A method's name, a compiled kernel, or a function of robot and arrays.
        positional: How many arrays are given by position.
        keywords: Names of the arrays that are given by keyword, after those.
        options: Further arguments, the same for all rows.
    """

    def __init__(
        self,
        robot: Robot,
        quantity: Quantity,
        positional: int,
        keywords: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
    ) -> None:
        _require_quantity(robot, quantity)
        self.robot = robot
        self.quantity = quantity
        self.positional = positional
        self.keywords = tuple(keywords)
        if not isinstance(options, Mapping | None):
            raise ArgumentError(f"options is {options!r:.80}, expected a dict of arguments")
        self.options = dict(options or {})
        self._check_arguments()

    def __reduce__(self) -> Travelling:
        made_of = (self.robot, self.quantity, self.positional, self.keywords, self.options)
        return travelling(self.digest, Work, *made_of)

    def _check_arguments(self) -> None:
        """Raise for arguments that a method does not take, or misses."""
        if not isinstance(self.quantity, str):
            return
        named = dict.fromkeys((*self.keywords, *self.options))
        try:
            signature(getattr(self.robot, self.quantity)).bind(*[None] * self.positional, **named)
        except TypeError as error:
            raise ArgumentError(f"{self.quantity}: {error}") from None

    @property
    def name(self) -> str:
        """What messages call it."""
        if isinstance(self.quantity, str):
            return self.quantity
        if isinstance(self.quantity, RobotKernel):
            return "kernel of " + ", ".join(self.quantity.outputs)
        return getattr(self.quantity, "__name__", type(self.quantity).__name__)

    @property
    def digest(self) -> str:
        """Equal for equal work: robot, quantity and options."""
        told = blake2b(self.robot.model.fingerprint.encode(), digest_size=16)
        told.update(repr((self.name, self.positional, self.keywords)).encode())
        if not isinstance(self.quantity, str):
            told.update(pickle.dumps(self.quantity))
        for name, value in sorted(self.options.items()):
            told.update(name.encode() + pickle.dumps(value))
        return told.hexdigest()

    def call(self, blocks: Sequence[Array]) -> object:
        """The result for blocks (rows, ...), on this thread alone."""
        given = list(blocks[: self.positional])
        named = dict(zip(self.keywords, blocks[self.positional :], strict=True))
        with final_code():
            return self._function()(*given, **named, **self.options)

    def _function(self) -> Callable[..., object]:
        if isinstance(self.quantity, str):
            method: Callable[..., object] = getattr(self.robot, self.quantity)
            return method
        if isinstance(self.quantity, RobotKernel):
            return self.quantity
        return partial(self.quantity, self.robot)

    def packed(self, outputs: Sequence[Output], blocks: Sequence[Array]) -> Array:
        """(rows, numbers) of all outputs for blocks (rows, ...)."""
        arrays = result_arrays(self.call(blocks))
        rows = len(blocks[0])
        width = sum(output.size for output in outputs)
        packed = np.empty((rows, width), common_dtype(outputs))
        for output in outputs:
            found = np.moveaxis(arrays[output.name], output.axis, 0)
            if found.shape != (rows, *output.shape):
                raise ArgumentError(
                    f"{self.name} gave {output.name} of shape {found.shape} for {rows} rows, "
                    f"expected {(rows, *output.shape)} as for the first rows"
                )
            packed[:, output.part] = found.reshape(rows, output.size)
        return packed

    def outputs(self, blocks: Sequence[Array]) -> tuple[list[Output], dict[str, Array]]:
        """Arrays of the result that have a row for each row, and those that are the same for all.

        Args:
            blocks: A few rows of each array, see ``example_rows``.
        """
        few, more = (
            result_arrays(self.call([block[:rows] for block in blocks])) for rows in _PROBES
        )
        found: list[Output] = []
        constant: dict[str, Array] = {}
        start = 0
        for name, array in few.items():
            axes = [
                axis
                for axis, pair in enumerate(zip(array.shape, more[name].shape, strict=True))
                if pair == _PROBES
            ]
            if not axes:
                constant[name] = array
                continue
            shape = array.shape[: axes[0]] + array.shape[axes[0] + 1 :]
            output = Output(name, shape, axes[0], str(array.dtype), start)
            found.append(output)
            start += output.size
        if not found:
            raise ArgumentError(f"{self.name} gives no array that has a row for each row given")
        return found, constant

    @property
    def is_own(self) -> bool:
        """Whether it is a quantity of the robot and no function of a user."""
        return isinstance(self.quantity, str | RobotKernel)

    def example_rows(self, arrays: Sequence[StoredArray], axes: int | None = None) -> list[Array]:
        """A few rows of each array.

        For the robot's own quantities the neutral configuration and zeros, so that nothing is
        read; a user's function may need better ones and gets the first rows of the data.

        Args:
            arrays: The arrays.
            axes: How many first axes of each count rows; default: all but the last.
        """
        if not self.is_own:
            return [_first_rows(x, x.ndim - 1 if axes is None else axes) for x in arrays]
        found = []
        for name, x in zip(self._names(), arrays, strict=True):
            row = np.zeros(x.shape[x.ndim - 1 if axes is None else axes :], x.dtype)
            if name in _CONFIGURATIONS and row.shape[-1:] == (self.robot.nq,):
                row = row + np.asarray(self.robot.neutral(), x.dtype)
            found.append(np.tile(row, (max(_PROBES), *(1,) * row.ndim)))
        return found

    def _names(self) -> list[str]:
        """Of all arrays."""
        return [*argument_names(self.robot, self.quantity)[: self.positional], *self.keywords]


def _first_rows(x: StoredArray, axes: int) -> Array:
    """The first rows of an array, again and again if it has few; without axes of rows it is one."""
    rows = max(_PROBES)
    few = np.asarray(x)[None] if not axes else np.asarray(x[(slice(rows), *(0,) * (axes - 1))])
    if not len(few):
        raise ArgumentError("arrays have no rows, and a function must be tried on some")
    return np.resize(few, (rows, *few.shape[1:]))


def _require_quantity(robot: Robot, quantity: Quantity) -> None:
    """Raise unless a robot has such a method."""
    require_robot(robot)
    if isinstance(quantity, str) and not callable(getattr(robot, quantity, None)):
        every = [name for name in dir(type(robot)) if not name.startswith("_")]
        methods = [name for name in every if callable(getattr(type(robot), name))]
        raise UnknownNameError("quantity", quantity, methods)


def argument_names(robot: Robot, quantity: Quantity) -> list[str]:
    """Names of a quantity's arguments; none of a user's function."""
    _require_quantity(robot, quantity)
    if isinstance(quantity, str):
        return list(signature(getattr(robot, quantity)).parameters)
    if isinstance(quantity, RobotKernel):
        return ["q", *quantity.inputs]
    return []


def common_dtype(outputs: Sequence[Output]) -> DType:
    """The type that holds the numbers of all outputs."""
    return np.result_type(*(output.dtype for output in outputs))


def result_arrays(result: object) -> dict[str, Array]:
    """All arrays of a result, by the names of its attributes.

    Raises:
        ArgumentError: There is none.
    """
    if isinstance(result, np.ndarray | np.generic):
        return {RESULT: np.asarray(result)}
    if isinstance(result, tuple | list):
        named = {f"{RESULT}_{i}": each for i, each in enumerate(result)}
        fields_of = getattr(result, "_fields", None)
        if fields_of is not None:
            named = dict(zip(fields_of, result, strict=True))
    elif isinstance(result, Mapping):
        named = {str(name): value for name, value in result.items()}
    elif is_dataclass(result):
        named = {each.name: getattr(result, each.name) for each in fields(result)}
    else:
        named = {
            name: value
            for name, value in getattr(result, "__dict__", {}).items()
            if not name.startswith("_")
        }
    arrays = {name: np.asarray(x) for name, x in named.items() if isinstance(x, np.ndarray)}
    if not arrays:
        raise ArgumentError(
            f"the result is of type {type(result).__name__} and has no array; expected an array, a "
            "dict or tuple of arrays, or an object with arrays as attributes"
        )
    return arrays

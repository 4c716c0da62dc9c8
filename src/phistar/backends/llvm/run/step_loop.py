# SPDX-License-Identifier: BSD-3-Clause
"""Many steps of time for a batch in one call of machine code: kernels between named buffers."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

from phistar.arrays import Array
from phistar.backends.llvm.abi import data_address
from phistar.backends.llvm.emit.emitted_steps import (
    ARGUMENTS_OFFSET_BYTES,
    BUFFER_ROW_WORDS,
    HEADER_WORDS,
    stepper_module,
)
from phistar.backends.llvm.emit.skeleton import WORKSPACE_ALIGNMENT_BYTES
from phistar.backends.llvm.run.calls import code_of_process, run_threaded, thread_count
from phistar.backends.llvm.run.machine_kernel import MachineKernel
from phistar.thresholds import POLICY


@dataclass(frozen=True)
class StepCall:
    """A kernel with the buffers that it reads and fills, in the order of its signature.

    An output may be a buffer that the kernel reads, if the kernel is unrolled: it reads all numbers
    of a block of lanes before it writes any.
    """

    kernel: MachineKernel
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Rollout:
    """A list of calls that is one step of time.

    Attributes:
        cost_ns: Nanoseconds of a step of one sample, about.
    """

    def __init__(self, calls: Sequence[StepCall], constants: Sequence[str] = ()) -> None:
        """Args:
        calls: What is done in a step; all kernels are of one precision.
        constants: Buffers that hold the same numbers for all samples and steps.
        """
        self._calls = tuple(calls)
        self._constants = tuple(constants)
        self._lanes = calls[0].kernel.call.lanes
        self._dtype = calls[0].kernel.call.dtype
        assert all(call.kernel.call.dtype == self._dtype for call in calls)
        self._block = POLICY.vectors_per_block * self._lanes.width
        self._sizes: dict[str, int] = {}
        for call in calls:
            signature = call.kernel.call.signature
            names = (*call.inputs, *call.outputs)
            sizes = (*signature.inputs.values(), *signature.outputs.values())
            self._sizes |= dict(zip(names, sizes, strict=True))
        self.cost_ns = sum(call.kernel.call.cost_ns for call in calls)
        self._places, self._kernel_workspace_offset = self._place_buffers()

    def _place_buffers(self) -> tuple[dict[str, int], int]:
        """Where buffers begin in the workspace, and where the kernels' own one does."""
        entries = sum(2 * (len(c.inputs) + len(c.outputs)) + 1 for c in self._calls)
        end = _align(ARGUMENTS_OFFSET_BYTES + 8 * entries)
        places = {}
        for name, size in self._sizes.items():
            if name not in self._constants:
                places[name] = end
                end = _align(end + self._dtype.itemsize * size * self._block)
        return places, end

    def __call__(
        self,
        inputs: Mapping[str, Array],
        results: Mapping[str, Array],
        constants: Mapping[str, Array],
        steps: int,
        every: int = 1,
        threads: int | None = None,
    ) -> bool:
        """Fill the results.

        Args:
            inputs: What buffers hold before the first step, (batch, size) or, before each step,
                (steps, batch, size); of the kernels' dtype, numbers of a sample side by side, other
                strides free: zero over the batch for what all samples share, unless it is written.
            results: Buffers kept after each ``every`` steps, (steps / every, batch, size).
            constants: Of the buffers that are constants, (size,).
            steps: How many.
            every: Steps from one result to the next; divides ``steps``.
            threads: As for ``KernelCaller``.

        Returns:
            Whether all numbers that a kernel read were finite.
        """
        assert set(constants) == set(self._constants)
        assert steps % every == 0
        batch = next(iter(results.values())).shape[1]
        tables = self._argument_table(constants, self._common(inputs))
        calls: list[int] = []
        place = ARGUMENTS_OFFSET_BYTES
        for call in self._calls:
            calls += [call.kernel.call.address, place]
            place += 8 * (2 * (len(call.inputs) + len(call.outputs)) + 1)
        moves = [self._buffer_row(name, array, batch) for name, array in inputs.items()]
        saves = [self._buffer_row(name, array, batch) for name, array in results.items()]
        parts = [tables, calls, [*chain(*moves)], [*chain(*saves)]]
        widths = [2, 2, BUFFER_ROW_WORDS, BUFFER_ROW_WORDS]
        head = [steps, every, self._block]
        start = HEADER_WORDS
        for part, width in zip(parts, widths, strict=True):
            head += [len(part) // width, start]
            start += len(part)
        plan = array("q", [*head, self._kernel_workspace_offset, *chain(*parts)])
        workspace_bytes = self._kernel_workspace_offset + max(
            call.kernel.call.workspace_bytes for call in self._calls
        )
        count = thread_count(self.cost_ns * batch * steps, threads)
        held = (self, dict(inputs), dict(results), dict(constants))
        return run_threaded(
            code_of_process(stepper_module, self._lanes.real),
            workspace_bytes,
            plan,
            held,
            batch,
            self._lanes.width,
            count,
        )

    def _common(self, inputs: Mapping[str, Array]) -> Set[str]:
        """Inputs whose numbers are the same for all samples, of which a block has one row.

        Raises:
            AssertionError: A kernel would write rows of it.
        """
        found = {name for name, given in inputs.items() if given.strides[-2] == 0}
        assert not any(found & set(call.outputs) for call in self._calls)
        return found

    def _argument_table(self, constants: Mapping[str, Array], common: Set[str]) -> list[int]:
        """Pairs (value, whether it is a place in the workspace) of all kernels' arguments."""
        table: list[int] = []
        for call in self._calls:
            for name in (*call.inputs, *call.outputs):
                if name in constants:
                    table += [data_address(constants[name]), 0, 0, 0]
                else:
                    stride = 0 if name in common else self._sizes[name]
                    table += [self._places[name], 1, stride, 0]
            table += [0, 0]
        return table

    def _buffer_row(self, name: str, given: Array, batch: int) -> list[int]:
        """A row of the tables of inputs and results."""
        size = self._sizes[name]
        bytes_each = self._dtype.itemsize
        assert given.dtype == self._dtype
        assert given.shape[-2:] == (batch, size)
        assert size <= 1 or given.strides[-1] == bytes_each
        step = given.strides[0] // bytes_each if given.ndim == 3 else 0
        across = given.strides[-2] // bytes_each
        return [data_address(given), across, step, size, self._places[name]]


def _align(size: int) -> int:
    return size + -size % WORKSPACE_ALIGNMENT_BYTES

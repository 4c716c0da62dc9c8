# SPDX-License-Identifier: BSD-3-Clause
"""Runs a kernel on NumPy arrays: brings inputs into its form, cuts large batches for threads.

A kernel takes rows of numbers that stand side by side; how far apart the rows are is free. What has
that form is used where it is, everything else is copied. Samples do not depend on each other and
are cut between whole blocks of lanes, so results are the same bits whatever the number of threads.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from phistar import settings
from phistar.arrays import Array
from phistar.backends.llvm.abi import data_address
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.skeleton import (
    STORE_ALIGNED,
    STORE_ANYWHERE,
    STORE_STREAMING,
    WORKSPACE_ALIGNMENT_BYTES,
    staging_vectors,
    streamed_outputs,
)
from phistar.backends.llvm.run.jit import LoadedCode, fork_gate, load
from phistar.backends.llvm.run.machine_caches import min_streamed_bytes
from phistar.backends.policy import nanoseconds_per_sample, worthwhile_threads
from phistar.errors import ArgumentError, ShapeError, kind_of
from phistar.scalar.program import Signature
from phistar.settings import MAX_THREADS
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


KernelFunction = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


_codes_of_process: list[LoadedCode] = []
"""What ``code_of_process`` has loaded."""


@cache
def code_of_process(text: Callable[..., str], *given: str) -> Callable[[int, int, int, int], int]:
    """Machine code that belongs to no robot: loaded once, as long as the process lives.

    Args:
        text: Gives its module of LLVM.
        given: Arguments of ``text``.
    """
    code = load(text(*given))
    _codes_of_process.append(code)
    return KernelFunction(code.kernel)


class KernelCaller:
    """Runs a kernel.

    Attributes:
        signature: Its arrays.
        lanes: Samples side by side, and their precision.
        dtype: Of the arrays it works on.
        address: Of the machine code, as long as this object lives.
        workspace_bytes: Bytes of workspace that it needs.
        cost_ns: Nanoseconds of a sample, about.
    """

    def __init__(
        self,
        code: LoadedCode,
        signature: Signature,
        lanes: Lanes,
        workspace: int,
        operations: int = 0,
    ) -> None:
        """Args:
        code: Where the kernel is.
        signature: Its arrays.
        lanes: Its lanes.
        workspace: Vectors that it needs.
        operations: Of arithmetic on a sample, for the decision about threads; default: a guess
            from the sizes of the arrays.
        """
        self.signature = signature
        self.lanes = lanes
        self.dtype = np.dtype(np.float64 if lanes.real == "double" else np.float32)
        self._code = code
        self._function = KernelFunction(code.kernel)
        self.address = code.kernel
        self.workspace_bytes = max(workspace + staging_vectors(signature), 1) * lanes.bytes
        self._is_streamed = [name in streamed_outputs(signature) for name in signature.outputs]
        sizes = sum(signature.inputs.values()) + sum(signature.outputs.values())
        guess = POLICY.operations_per_array_number * sizes
        self.cost_ns = nanoseconds_per_sample(operations or guess, lanes.width)

    def __call__(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        threads: int | None = None,
        outputs_are_new: bool = False,
    ) -> bool:
        """Fill the outputs.

        Args:
            inputs: Arrays (batch, size) or (1, size) of any real dtype, byte order and strides, in
                the order of the signature. One row serves all samples, and so do rows that a
                broadcast repeats, without a copy.
            outputs: Arrays (batch, size) of the kernel's dtype, writeable, entries of a sample side
                by side. Where they share memory with an input, the input is copied first.
            threads: How many to use; default: as many as the work is worth, at most
                ``PHISTAR_THREADS`` or the processors at hand.
            outputs_are_new: The outputs were just made for this call, and need no look.

        Returns:
            Whether all inputs are finite. If not, samples with finite inputs are still right.

        Raises:
            ArgumentError, ShapeError: An array does not fit.
        """
        batch = self._batch(outputs)
        if not outputs_are_new:
            self._check_outputs(outputs, batch)
        held = list(outputs)
        rows = array("q")
        expected = self.signature.inputs
        if len(inputs) != len(expected):
            raise ArgumentError(f"the kernel needs {list(expected)}, got {len(inputs)} arrays")
        for (name, size), given in zip(expected.items(), inputs, strict=True):
            if not outputs_are_new and any(np.may_share_memory(given, out) for out in outputs):
                given = np.array(given)
            stride, one = self._rows(name, size, given, batch)
            held.append(one)
            rows.extend((data_address(one), stride))
        for out in outputs:
            rows.extend((data_address(out), out.strides[0] // out.itemsize))
        rows.append(self._store_kind(outputs, rows[-2 * len(outputs) :: 2]))
        return self._run(rows, held, batch, threads)

    def _store_kind(self, outputs: Sequence[Array], places: Sequence[int]) -> int:
        """How large outputs are written: to aligned places if samples have no gaps, and past the
        caches what does not fit there."""
        large = [
            (out, place)
            for out, place, is_large in zip(outputs, places, self._is_streamed, strict=True)
            if is_large
        ]
        if not all(
            out.flags.c_contiguous and place % WORKSPACE_ALIGNMENT_BYTES == 0
            for out, place in large
        ):
            return STORE_ANYWHERE
        fits = sum(out.nbytes for out, _ in large) < min_streamed_bytes()
        return STORE_ALIGNED if fits else STORE_STREAMING

    # -- arrays

    def _batch(self, outputs: Sequence[Array]) -> int:
        expected = self.signature.outputs
        if len(outputs) != len(expected):
            raise ArgumentError(f"the kernel fills {list(expected)}, got {len(outputs)} arrays")
        return len(outputs[0])

    def _rows(self, name: str, size: int, given: Array, batch: int) -> tuple[int, Array]:
        """The distance of rows in entries, and an array whose rows the kernel can read."""
        if given.ndim != 2 or given.shape[1] != size or given.shape[0] not in (1, batch):
            raise ShapeError(name, given.shape, f"({batch}, {size}) or (1, {size})", "the kernel")
        if given.strides[0] == 0 or len(given) == 1:
            given = given[:1]
        width = self.dtype.itemsize
        step, between = given.strides
        fits = given.dtype == self.dtype and given.flags.aligned and step % width == 0
        if not fits or (between != width and size > 1):
            if given.dtype.kind not in "biuf":
                raise ArgumentError(f"{name} is not an array of real numbers: dtype {given.dtype}")
            given = np.ascontiguousarray(given, self.dtype)
            step = given.strides[0]
        return (0 if len(given) == 1 else step // width), given

    def _check_outputs(self, outputs: Sequence[Array], batch: int) -> None:
        for (name, size), out in zip(self.signature.outputs.items(), outputs, strict=True):
            if not isinstance(out, np.ndarray):
                raise ArgumentError(f"out for {name} is {kind_of(out)}, expected an array")
            if out.shape != (batch, size):
                raise ShapeError(f"out for {name}", out.shape, f"({batch}, {size})", "the kernel")
            if out.dtype != self.dtype:
                raise ArgumentError(f"out for {name} has dtype {out.dtype}, expected {self.dtype}")
            if not out.flags.writeable:
                raise ArgumentError(f"out for {name} is read-only; pass a copy")
            self._check_strides(name, out)
        for one, other in itertools.combinations(outputs, 2):
            if np.may_share_memory(one, other):
                raise ArgumentError("two outputs share memory; pass arrays of their own")

    def _check_strides(self, name: str, out: Array) -> None:
        width = out.itemsize
        batch, size = out.shape
        step, between = out.strides
        side_by_side = size <= 1 or between == width
        apart = batch <= 1 or (step % width == 0 and abs(step) >= size * width)
        if not (side_by_side and apart and out.flags.aligned):
            raise ArgumentError(
                f"out for {name} has strides {out.strides}, expected the {size} numbers of a "
                "sample side by side, and samples apart; pass an array in C order"
            )

    # -- running

    def _run(self, rows: array[int], held: list[Array], batch: int, threads: int | None) -> bool:
        if self._code.closed:
            raise RuntimeError("the code of this kernel was freed")
        count = thread_count(batch * self.cost_ns, threads)
        kept = (self, held)
        return run_threaded(
            self._function, self.workspace_bytes, rows, kept, batch, self.lanes.width, count
        )


def thread_count(work: float, threads: int | None) -> int:
    """How many threads share some work.

    Args:
        work: Nanoseconds that one would take.
        threads: What the user wants; None: as many as it is worth.
    """
    if threads is not None:
        if not 1 <= threads <= MAX_THREADS:
            raise ArgumentError(f"threads is {threads}, expected 1 to {MAX_THREADS}")
        return threads
    worth = worthwhile_threads(work)
    return min(worth, usable_threads()) if worth > 1 else 1


def run_threaded(
    function: Callable[[int, int, int, int], int],
    workspace_bytes: int,
    rows: array[int],
    held: object,
    batch: int,
    width: int,
    threads: int,
) -> bool:
    """Run a kernel on a batch, cut between blocks of lanes for threads.

    Args:
        function: The kernel.
        workspace_bytes: Bytes of workspace that it needs.
        rows: Its arguments.
        held: What must live as long as it runs.
        batch: Number of samples.
        width: Samples of a block.
        threads: How many to use.

    Returns:
        Whether all that was read is finite.
    """
    start, _ = rows.buffer_info()
    blocks = -(-batch // width)
    count = min(threads, blocks)
    if count <= 1:
        return function(start, thread_workspace(workspace_bytes), 0, batch) == 0
    piece = -(-blocks // (count * POLICY.pieces_per_thread)) * width
    starts = iter(range(0, batch, piece))
    task = _PieceQueue(function, workspace_bytes, (rows, held), start, starts, piece, batch)
    others = [_thread_pool().submit(task.run) for _ in range(count - 1)]
    task.run()
    # All must be done with the arrays before an error of one may be raised.
    for other in others:
        other.exception()
    for other in others:
        other.result()
    return task.status == 0


class _PieceQueue:
    """Pieces of a batch, for whichever thread is free.

    It holds on to all arrays, so that they outlive a caller who is interrupted.
    """

    def __init__(
        self,
        function: Callable[[int, int, int, int], int],
        workspace_bytes: int,
        held: object,
        rows: int,
        starts: Iterator[int],
        piece: int,
        batch: int,
    ) -> None:
        self.function = function
        self.workspace_bytes = workspace_bytes
        self.held = held
        self.rows = rows
        self.starts = starts
        self.piece = piece
        self.batch = batch
        self.status = 0
        self._lock = threading.Lock()

    def run(self) -> None:
        """Do pieces until none is left."""
        work = thread_workspace(self.workspace_bytes)
        status = 0
        while (first := self._next()) is not None:
            status |= self.function(self.rows, work, first, min(first + self.piece, self.batch))
        with self._lock:
            self.status |= status

    def _next(self) -> int | None:
        with self._lock:
            return next(self.starts, None)


def usable_threads() -> int:
    """Threads that a large batch is cut for: ``PHISTAR_THREADS``, or the processors at hand."""
    given = settings.threads()
    if given is not None:
        return given
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, MAX_THREADS)


# -- what threads own

_thread_local = threading.local()


def thread_workspace(size: int) -> int:
    """The address of so many bytes that belong to this thread until it asks again."""
    if getattr(_thread_local, "size", 0) < size:
        _thread_local.buffer = np.empty(size + WORKSPACE_ALIGNMENT_BYTES, np.uint8)
        start = data_address(_thread_local.buffer)
        _thread_local.start = start + -start % WORKSPACE_ALIGNMENT_BYTES
        _thread_local.size = size
    found: int = _thread_local.start
    return found


class _LazyThreadPool:
    """The threads of this process, started when they are first needed."""

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Threads do not come along into the child of a fork."""
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def __call__(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                # Takes longer to import than a kernel to call, and most processes never need it. It
                # has handlers for forks; the gate lets none begin before all of them are there.
                with fork_gate:
                    from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="phistar")
            return self._pool


_thread_pool = _LazyThreadPool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_thread_pool.reset_after_fork)

# SPDX-License-Identifier: BSD-3-Clause
"""How far matrices are from what the machine can do: its peak, its stores, and each kernel.

Two small kernels measure the machine: multiply-adds on registers, and stores of whole lines to one
buffer of the size of a kernel's results, in the caches and past them. A kernel's floor is the
longer of its own arithmetic at the peak and its results at the better of the two rates.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from benchmarks import cases, counts, peers
from benchmarks.timing import Act, best_of
from phistar import Robot
from phistar.arrays import Array
from phistar.backends.llvm.abi import data_address
from phistar.backends.llvm.emit.ir_builder import FunctionBuilder
from phistar.backends.llvm.emit.skeleton import emit_fence, wrap_module
from phistar.backends.llvm.run import jit
from phistar.compile import TRACED
from phistar.errors import PhistarError
from phistar.scalar.program import count_arithmetic

ROBOTS = ("quadruped", "humanoid")
BATCHES = (64, 256, 4096)
CHAINS_OF_PRODUCTS = 12
"""Multiply-adds that do not wait for each other: enough for two units with four cycles each."""


@dataclass(frozen=True)
class Kernel:
    """Something to time.

    Attributes:
        title: For people.
        call: Robot and arrays -> results.
        arguments: The quantity of ``cases`` whose arrays it takes, and that a peer computes.
        key: The traced quantity that it is, if it is not that quantity itself.
    """

    title: str
    call: Callable[..., object]
    arguments: str
    key: tuple[object, ...] = ()


def _method(name: str) -> Kernel:
    def call(robot: Robot, *arrays: Array) -> object:
        return getattr(robot, name)(*arrays)

    return Kernel(name, call, name)


KERNELS = (
    *(_method(name) for name in cases.QUANTITIES if name not in cases.VECTORS),
    Kernel(
        "mass_matrix packed",
        lambda robot, q: robot.mass_matrix(q, form="packed"),
        "mass_matrix",
        ("mass_matrix_packed",),
    ),
    Kernel(
        "linearize by v",
        lambda robot, *arrays: robot.linearize(*arrays, wrt=("v",)),
        "linearize",
        ("linearize_part", ("v",), (), ()),
    ),
)


@dataclass(frozen=True)
class Dot:
    """A kernel on the roofline.

    Attributes:
        robot, kernel, batch: What it is.
        seconds: A sample.
        peer_seconds: Pinocchio's for all of the matrices, nan without it.
        operations: Additions and multiplications a sample.
        bytes: Of results a sample.
        peak: Operations a second that the machine can do.
        rate: Bytes a second that it stores at this size.
    """

    robot: str
    kernel: str
    batch: int
    seconds: float
    peer_seconds: float
    operations: int
    bytes: int
    peak: float
    rate: float

    @property
    def floor(self) -> float:
        """Seconds a sample."""
        return max(self.operations / self.peak, self.bytes / self.rate)

    @property
    def limit(self) -> str:
        """What the floor is made of."""
        stores = self.bytes / self.rate > self.operations / self.peak
        return "stores" if stores else "arithmetic"

    @property
    def distance(self) -> float:
        """Times the floor."""
        return self.seconds / self.floor


def measure(seconds: float = 0.3, batches: Sequence[int] = BATCHES) -> list[Dot]:
    """All kernels on all robots; each for about so long."""
    peak = peak_operations()
    found = []
    for name in ROBOTS:
        theirs = {each: _peer_seconds(name, each, seconds) for each in cases.QUANTITIES}
        for batch in batches:
            for kernel in KERNELS:
                found.append(_dot(name, kernel, batch, seconds, theirs[kernel.arguments], peak))
    return found


def _dot(name: str, kernel: Kernel, batch: int, seconds: float, theirs: float, peak: float) -> Dot:
    robot = cases.robot(name)
    arrays = cases.arguments(cases.Cell(name, kernel.arguments, batch))
    act = partial(kernel.call, robot, *arrays)
    best = _least_seconds(act, seconds)
    operations, size = _counted(name, kernel)
    rate = store_rate(batch * size)
    return Dot(name, kernel.title, batch, best / batch, theirs, operations, size, peak, rate)


def _least_seconds(act: Act, seconds: float) -> float:
    """Of runs for about so long: bursts of a few, because caches are cold after others ran."""
    best, end = best_of(act), time.perf_counter() + seconds
    while time.perf_counter() < end:
        best = min(best, best_of(act))
    return best


@cache
def _counted(name: str, kernel: Kernel) -> tuple[int, int]:
    """Operations and bytes of results of a sample."""
    robot = cases.robot(name)
    if kernel.key:
        program = TRACED[str(kernel.key[0])].trace(robot.model, *kernel.key[1:])
        numbers = sum(program.signature.outputs.values())
        return count_arithmetic(program.count()), 8 * numbers
    counted = counts.count(name, kernel.arguments).operations
    matrices = 3 if kernel.arguments in cases.DERIVATIVES else 1
    return counted or 0, 8 * matrices * robot.nv**2


def _peer_seconds(name: str, quantity: str, seconds: float, samples: int = 16) -> float:
    """Seconds a sample of Pinocchio in its fastest way; few samples a run are less disturbed."""
    if quantity in cases.VECTORS:
        return math.nan
    try:
        peer = peers.make("pinocchio", name)
    except (ImportError, PhistarError):
        return math.nan
    arrays = cases.arguments(cases.Cell(name, quantity, samples))
    ways = peer.ways(quantity, arrays, single=False).values()
    return min(_least_seconds(way, seconds) for way in ways) / samples


# -- the machine


@cache
def peak_operations() -> float:
    """Additions and multiplications a second of one core, by multiply-adds on registers."""
    lanes = jit.lanes_for(jit.host_cpu())
    w = FunctionBuilder(lanes)
    sums = [w.constant(float(i)) for i in range(CHAINS_OF_PRODUCTS)]
    with w.loop("%first", "%last", 1, sums, stem="round") as (_, carried):
        factor = w.load_slot(0)
        carried[:] = [w.multiply_add(x, factor, factor) for x in carried]
    for i, x in enumerate(carried):
        w.store_slot(i, x)
    rounds = 200_000
    seconds = _seconds(wrap_module(w, "0", ""), rounds, CHAINS_OF_PRODUCTS * lanes.bytes)
    return 2 * CHAINS_OF_PRODUCTS * lanes.width * rounds / seconds


@cache
def store_rate(size: int) -> float:
    """Bytes a second of stores to a buffer of so many bytes, again and again: the better way."""
    return max(_store_rate(size, past) for past in (False, True))


def _store_rate(size: int, past_the_caches: bool) -> float:
    lanes = jit.lanes_for(jit.host_cpu())
    w = FunctionBuilder(lanes)
    with w.loop("%first", "%last", 4, stem="line") as (i, _):
        for k in range(4):
            place = w.slot_address(w.add(i, k))
            value = w.constant(1.0)
            (w.stream_vector if past_the_caches else w.store_vector)(value, place)
    emit_fence(w)
    lines = max(4, size // lanes.bytes // 4 * 4)
    return lines * lanes.bytes / _seconds(wrap_module(w, "0", ""), lines, lines * lanes.bytes)


def _seconds(text: str, last: int, room: int) -> float:
    """Least seconds of a kernel with a workspace of so many bytes."""
    code = jit.load(text)
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )
    call = kind(code.kernel)
    work = np.zeros(room + 64, np.uint8)
    start = data_address(work)
    place = start + -start % 64
    return best_of(lambda: call(place, place, 0, last), 20)

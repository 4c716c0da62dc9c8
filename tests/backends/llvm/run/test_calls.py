# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of any kind go in and come out right, in any number of pieces."""

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from phistar.arrays import Array
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.unrolled_module import unrolled_module
from phistar.backends.llvm.run import calls, jit
from phistar.backends.llvm.run.calls import KernelCaller, thread_count
from phistar.errors import ArgumentError, ShapeError
from phistar.scalar.interpret import run
from phistar.scalar.program import Signature, Unrolled

WIDTH = 4

SPY = """
define i64 @kernel(ptr %args, ptr %work, i64 %first, i64 %last) nounwind {
  %out = load ptr, ptr %args
  %slot = getelementptr i64, ptr %args, i64 1
  %stride = load i64, ptr %slot
  %place = mul i64 %first, %stride
  %row = getelementptr double, ptr %out, i64 %place
  %at = ptrtoint ptr %work to i64
  %real = sitofp i64 %at to double
  store double %real, ptr %row
  ret i64 0
}
"""
"""Writes the address of its workspace into the first row of its part of the batch."""


@pytest.fixture(scope="module")
def caller(program: Unrolled) -> KernelCaller:
    """The small program, four samples side by side."""
    lanes = Lanes(WIDTH)
    return KernelCaller(jit.load(unrolled_module(program, lanes)), program.signature, lanes, 0)


def samples(batch: int, seed: int = 3) -> list[Array]:
    """Inputs q, v, x."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(batch, n)) for n in (3, 2, 9)]


def results(batch: int) -> list[Array]:
    """Outputs tau, w, filled with what must not stay."""
    return [np.full((batch, n), np.nan) for n in (6, 1)]


def expected(program: Unrolled, inputs: list[Array]) -> list[Array]:
    """By the interpreter of scalar programs."""
    given = [np.asarray(a, float) for a in inputs]
    return list(run(program, dict(zip(("q", "v", "x"), given, strict=True))).values())


def agree(got: list[Array], want: list[Array]) -> None:
    """To 1e-14 of the largest number."""
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14 * np.abs(b).max(initial=1.0))


@pytest.mark.parametrize("batch", [0, 1, WIDTH - 1, WIDTH, WIDTH + 1, 1_000_003])
def test_any_number_of_samples(program: Unrolled, caller: KernelCaller, batch: int) -> None:
    """All rows are right, and rows before and after them are not touched."""
    inputs = samples(batch)
    frames = [np.full((batch + 2, n), -7.0) for n in (6, 1)]
    outputs = [frame[1:-1] for frame in frames]
    assert caller(inputs, outputs)
    agree(outputs, expected(program, inputs))
    for frame in frames:
        assert (frame[[0, -1]] == -7.0).all()


def misaligned(a: Array) -> Array:
    """The same numbers one byte off."""
    room = np.empty(a.nbytes + 1, np.uint8)
    b = room[1:].view(a.dtype).reshape(a.shape)
    b[...] = a
    return b


def read_only(a: Array) -> Array:
    """The same numbers, not to be written."""
    b = a.copy()
    b.flags.writeable = False
    return b


def of_wider(a: Array) -> Array:
    """Columns of a larger array."""
    b = np.full((len(a), a.shape[1] + 3), np.nan)
    b[:, 1:-2] = a
    return b[:, 1:-2]


def every_other(a: Array) -> Array:
    """Every other number of each row of a larger array."""
    b = np.full((len(a), 2 * a.shape[1]), np.nan)
    b[:, ::2] = a
    return b[:, ::2]


KINDS: dict[str, Callable[[Array], Array]] = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "columns of a wider array": of_wider,
    "every other entry": every_other,
    "backwards samples": lambda a: a[::-1].copy()[::-1],
    "backwards entries": lambda a: a[:, ::-1].copy()[:, ::-1],
    "every other sample": lambda a: np.repeat(a, 2, axis=0)[::2],
    "read-only": read_only,
    "misaligned": misaligned,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "long double": lambda a: a.astype(np.longdouble),
    "int32": lambda a: (a * 3).astype(np.int32),
    "uint8": lambda a: np.abs(a * 3).astype(np.uint8),
    "bool": lambda a: a > 0,
    "one row": lambda a: a[:1],
    "one row repeated": lambda a: np.broadcast_to(a[:1], a.shape),
    "one float32 row repeated": lambda a: np.broadcast_to(a[:1].astype(np.float32), a.shape),
    "one backwards row repeated": lambda a: np.broadcast_to(a[:1, ::-1].copy()[:, ::-1], a.shape),
    "a subclass": lambda a: a.view(np.recarray),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", range(3))
def test_any_kind_of_input(program: Unrolled, caller: KernelCaller, kind: str, place: int) -> None:
    """The same result as for a plain array of the same numbers, and the input is left alone."""
    inputs = samples(11)
    inputs[place] = KINDS[kind](inputs[place])
    before = [a.copy() for a in inputs]
    plain = [np.broadcast_to(np.asarray(a, float), (11, a.shape[1])).copy() for a in inputs]
    outputs = results(11)
    assert caller(inputs, outputs)
    agree(outputs, expected(program, plain))
    for a, b in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "kind", ["C order", "columns of a wider array", "one row repeated", "backwards samples"]
)
def test_no_copy_where_none_is_needed(caller: KernelCaller, kind: str) -> None:
    """Rows of doubles that stand side by side are used where they are."""
    given = KINDS[kind](samples(11)[2])
    _, used = caller._rows("x", 9, given, 11)
    assert np.shares_memory(given, used)


def test_float32_kernel(program: Unrolled) -> None:
    """A kernel in single precision takes doubles too, within 1e-5 of the largest number."""
    lanes = Lanes(8, "float")
    single = KernelCaller(jit.load(unrolled_module(program, lanes)), program.signature, lanes, 0)
    inputs = samples(13)
    outputs = [out.astype(np.float32) for out in results(13)]
    assert single(inputs, outputs)
    for got, want in zip(outputs, expected(program, inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("dtype", [complex, object, "U3", "M8[s]"])
def test_what_is_no_real_number_is_refused(caller: KernelCaller, dtype: Any) -> None:
    """Complex numbers, objects, text and dates name the argument."""
    inputs = samples(3)
    inputs[1] = np.zeros((3, 2), dtype)
    with pytest.raises(ArgumentError, match="v is not an array of real numbers"):
        caller(inputs, results(3))


@pytest.mark.parametrize("shape", [(3,), (2, 2), (3, 3), (3, 2, 1), (0, 2)])
def test_wrong_shape_is_refused(caller: KernelCaller, shape: tuple[int, ...]) -> None:
    """Inputs have the batch's number of rows or one."""
    inputs = samples(3)
    inputs[1] = np.zeros(shape)
    with pytest.raises(ShapeError, match="v has shape"):
        caller(inputs, results(3))


def test_wrong_number_of_arrays_is_refused(caller: KernelCaller) -> None:
    """Inputs and outputs are those of the signature."""
    with pytest.raises(ArgumentError, match="needs"):
        caller(samples(3)[:2], results(3))
    with pytest.raises(ArgumentError, match="fills"):
        caller(samples(3), results(3)[:1])


# -- outputs

BAD_OUTPUTS: dict[str, tuple[Callable[[], Any], str]] = {
    "a list": (lambda: [[0.0] * 6] * 5, "expected an array"),
    "wrong size": (lambda: np.empty((5, 7)), "has shape"),
    "wrong dtype": (lambda: np.empty((5, 6), np.float32), "dtype float32"),
    "wrong byte order": (lambda: np.empty((5, 6), np.dtype(float).newbyteorder()), "dtype"),
    "read-only": (lambda: read_only(np.empty((5, 6))), "read-only"),
    "Fortran order": (lambda: np.empty((5, 6), order="F"), "strides"),
    "misaligned": (lambda: misaligned(np.empty((5, 6))), "strides"),
    "one row for all": (
        lambda: np.lib.stride_tricks.as_strided(np.empty((1, 6)), (5, 6), (0, 8)),
        "strides",
    ),
    "overlapping rows": (
        lambda: np.lib.stride_tricks.as_strided(np.empty(50), (5, 6), (8, 8)),
        "strides",
    ),
}


@pytest.mark.parametrize("kind", BAD_OUTPUTS)
def test_unfit_output_is_refused(caller: KernelCaller, kind: str) -> None:
    """An output is never copied: what the kernel cannot write to is an error."""
    make, message = BAD_OUTPUTS[kind]
    with pytest.raises((ArgumentError, ShapeError), match=message):
        caller(samples(5), [make(), np.empty((5, 1))])


def test_outputs_that_share_memory_are_refused(caller: KernelCaller) -> None:
    """Two results in one place cannot both be right."""
    room = np.empty((5, 7))
    assert caller(samples(5), [room[:, :6], np.empty((5, 1))])
    with pytest.raises(ArgumentError, match="share memory"):
        caller(samples(5), [room[:, :6], room[:, 5:6]])


def test_outputs_may_be_parts_and_backwards(program: Unrolled, caller: KernelCaller) -> None:
    """Rows may be apart and in any order."""
    inputs = samples(5)
    room = np.full((10, 9), -7.0)
    outputs = [room[::-2, 1:7], np.empty((5, 1))]
    caller(inputs, outputs)
    agree(outputs, expected(program, inputs))
    assert (room[:, [0, 7, 8]] == -7.0).all()
    assert (room[::2] == -7.0).all()


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_output_over_an_input(program: Unrolled, caller: KernelCaller, shift: int) -> None:
    """The result is that of separate arrays."""
    inputs = samples(37)
    want = expected(program, inputs)
    room = np.zeros((40, 9))
    room[:37] = inputs[2]
    inputs[2] = room[:37]
    outputs = [room[shift : 37 + shift, :6], np.empty((37, 1))]
    caller(inputs, outputs)
    agree(outputs, want)


# -- numbers that are not finite


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("threads", [1, 3])
def test_one_bad_sample(program: Unrolled, caller: KernelCaller, bad: float, threads: int) -> None:
    """It is reported, and all other samples are right to the bit."""
    inputs = samples(50)
    clean, outputs = results(50), results(50)
    assert caller(inputs, clean)
    for place, entry in ((0, 1), (1, 0), (2, 4)):
        spoilt = [a.copy() for a in inputs]
        spoilt[place][21, entry] = bad
        with np.errstate(invalid="ignore"):
            assert not caller(spoilt, outputs, threads)
        others = np.arange(50) != 21
        for got, want in zip(outputs, clean, strict=True):
            np.testing.assert_array_equal(got[others], want[others])


# -- threads


@pytest.mark.parametrize("batch", [1, 5, 64, 10_007])
def test_same_bits_with_any_number_of_threads(caller: KernelCaller, batch: int) -> None:
    """Pieces are cut between whole blocks."""
    inputs = samples(batch)
    inputs[0][:: 7 + batch // 100] *= 1e7
    want = results(batch)
    caller(inputs, want, threads=1)
    for threads in (2, 3, 7, 40):
        got = results(batch)
        assert caller(inputs, got, threads)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a.view(np.int64), b.view(np.int64))


def test_python_threads_share_a_kernel(program: Unrolled, caller: KernelCaller) -> None:
    """Calls from many threads do not disturb each other."""
    wrong: list[int] = []

    def work(seed: int) -> None:
        inputs = samples(300, seed)
        want = expected(program, inputs)
        for _ in range(20):
            outputs = results(300)
            caller(inputs, outputs, threads=1 + seed % 3)
            for got, right in zip(outputs, want, strict=True):
                if not np.abs(got - right).max() <= 1e-13 * np.abs(right).max():
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def spy(workspace: int) -> KernelCaller:
    """A kernel that tells where its workspace is."""
    return KernelCaller(jit.load(SPY), Signature({}, {"at": 1}), Lanes(WIDTH), workspace)


def test_workspaces_are_aligned_and_reused() -> None:
    """A thread's workspace starts at a multiple of 64 bytes and stays until a larger one is due."""
    small, large = spy(3), spy(100_000)
    at = np.zeros((1, 1))
    seen = []
    for caller in (large, small, large, small):
        caller([], [at])
        seen.append(int(at[0, 0]))
    assert seen[0] % 64 == 0
    assert len(set(seen)) == 1


@pytest.mark.parametrize("batch", [5, 64, 1001])
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_pieces_are_whole_blocks(batch: int, threads: int) -> None:
    """A batch is cut where a block of lanes begins, so that only its last block has idle lanes."""
    at = np.zeros((batch, 1))
    spy(1)([], [at], threads=threads)
    starts = np.flatnonzero(at)
    assert starts[0] == 0
    assert len(starts) >= min(threads, -(-batch // WIDTH))
    assert (starts % WIDTH == 0).all()


def test_threads_have_workspaces_of_their_own() -> None:
    """Threads that run at the same time write to different places."""
    caller = spy(1000)
    seen: dict[int, int] = {}
    barrier = threading.Barrier(4)

    def work(i: int) -> None:
        at = np.zeros((1, 1))
        caller([], [at])
        barrier.wait(timeout=60)
        seen[i] = int(at[0, 0])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    places = sorted(seen.values())
    assert all(b - a >= 1000 * WIDTH * 8 for a, b in itertools.pairwise(places))
    assert len(places) == 4


def test_threads_by_work(caller: KernelCaller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches take one thread, large ones those at hand, the environment sets a bound."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert thread_count(100 * caller.cost_ns, None) == 1
    assert thread_count(100_000_000 * caller.cost_ns, None) == 6
    monkeypatch.setenv("PHISTAR_THREADS", "2")
    assert thread_count(100_000_000 * caller.cost_ns, None) == 2
    assert thread_count(100 * caller.cost_ns, 5) == 5


@pytest.mark.parametrize("given", ["0", "-1", "many", "1.5", "100000"])
def test_bad_number_of_threads_is_refused(
    caller: KernelCaller, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the environment or as an argument."""
    monkeypatch.setenv("PHISTAR_THREADS", given)
    with pytest.raises(ArgumentError, match="PHISTAR_THREADS"):
        calls.usable_threads()
    with pytest.raises(ArgumentError, match="threads is"):
        caller(samples(3), results(3), threads=0)


def test_freed_code_is_not_run(program: Unrolled) -> None:
    """A call after ``close`` raises."""
    lanes = Lanes(WIDTH)
    code = jit.load(unrolled_module(program, lanes))
    caller = KernelCaller(code, program.signature, lanes, 0)
    code.close()
    with pytest.raises(RuntimeError, match="freed"):
        caller(samples(3), results(3))


FORK = """
import os
import time
import numpy as np
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.scalar.program import Signature

caller = KernelCaller(jit.load({spy!r}), Signature({}, {"at": 1}), Lanes(4), 10)

def run():
    at = np.zeros((64, 1))
    caller([], [at], threads=2)
    return np.count_nonzero(at)

# An idle thread of the parent must not be counted on in the child.
first = run()
time.sleep(0.2)
child = os.fork()
if child == 0:
    os._exit(0 if run() == first else 1)
print(first > 1, os.waitpid(child, 0)[1], run() == first)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_after_a_fork() -> None:
    """A child starts threads of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK.replace("{spy!r}", repr(SPY))],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "True 0 True\n"

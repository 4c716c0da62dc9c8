# SPDX-License-Identifier: BSD-3-Clause
"""Structured control flow does what the same statements do in Python."""

import ctypes
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from phistar.backends import llvm
from phistar.backends.llvm.emit.ir_builder import FunctionBuilder, Lanes
from phistar.backends.llvm.run import jit

PAIRS = [(0, 0), (0, 1), (3, 3), (2, 9), (9, 2), (-4, 5), (7, 20)]


def compiled(write: Callable[[FunctionBuilder], str]) -> Callable[[int, int], int]:
    """A function of ``%first`` and ``%last``, given by what writes its result."""
    w = FunctionBuilder(Lanes(1))
    w.emit(f"ret i64 {write(w)}")
    code = jit.load(w.function_text("i64 @kernel(ptr %args, ptr %work, i64 %first, i64 %last)"))
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )
    word = ctypes.c_int64()

    def call(first: int, last: int) -> int:
        return int(kind(code.kernel)(None, ctypes.addressof(word), first, last))

    return call


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("maybe_empty", [False, True])
def test_loop_carries_values(step: int, maybe_empty: bool) -> None:
    """The carried values after a loop are those of its last round, or those it began with."""

    def write(w: FunctionBuilder) -> str:
        numbers = w.loop("%first", "%last", step, ["7", "1"], "i64", maybe_empty)
        with numbers as (i, carried):
            carried[:] = w.add(w.mul(carried[0], 3), i), carried[0]
        return w.add(w.mul(carried[0], 1000), carried[1])

    function = compiled(write)
    for first, last in PAIRS:
        numbers = range(first, last, step)
        total, before = 7, 1
        for i in numbers if maybe_empty else numbers or [first]:
            total, before = 3 * total + i, total
        assert function(first, last) == 1000 * total + before


@pytest.mark.parametrize("step", [1, -1])
def test_count_includes_the_last_number(step: int) -> None:
    """Up and down, one loop within another."""

    def write(w: FunctionBuilder) -> str:
        w.emit("store i64 0, ptr %work")
        low, high = (0, "%last") if step > 0 else ("%last", 0)
        with w.count(low, high, step) as (i, _), w.count(0, i) as (j, _):
            before = w.load("i64", "%work", 8)
            w.store("i64", w.add(w.mul(before, 3), w.add(i, j)), "%work", 8)
        return w.load("i64", "%work", 8)

    function = compiled(write)
    for last in (0, 1, 5):
        total = 0
        for i in range(last + 1)[::step]:
            for j in range(i + 1):
                total = 3 * total + i + j
        assert function(0, last) == total


def test_repeat_with_a_step_of_its_own() -> None:
    """The first power of two times a number that is beyond another one."""

    def write(w: FunctionBuilder) -> str:
        def double(i: str) -> tuple[str, str]:
            return (twice := w.add(i, i)), w.compare("sle", twice, "%last")

        with w.repeat("%first", double, ["0"], "i64") as (_, carried):
            carried[0] = w.add(carried[0], 1)
        return carried[0]

    function = compiled(write)
    assert [function(1, last) for last in (0, 1, 2, 3, 4, 100)] == [1, 1, 2, 2, 3, 7]


def test_while_less() -> None:
    """No round at all if the test fails at once; a step that is found in the body."""

    def write(w: FunctionBuilder) -> str:
        w.emit("store i64 0, ptr %work")
        with w.while_less("%first", "%last") as (i, step):
            step[0] = w.select(w.compare("slt", i, 5), 1, 4)
            w.store("i64", w.add(w.load("i64", "%work", 8), w.mul(i, i)), "%work", 8)
            w.start_block()
        return w.load("i64", "%work", 8)

    function = compiled(write)
    for first, last in PAIRS:
        total, i = 0, first
        while i < last:
            total, i = total + i * i, i + (1 if i < 5 else 4)
        assert function(first, last) == total


@pytest.mark.parametrize("negated", [False, True])
def test_if_and_merge(negated: bool) -> None:
    """A value from a branch that holds a loop, or that from before it."""

    def write(w: FunctionBuilder) -> str:
        smaller = w.compare("slt", "%first", "%last")
        with w.if_(smaller, negated), w.loop(0, 4, carry=["%last"], kind="i64") as (i, carried):
            carried[0] = w.add(carried[0], i)
        return w.merge("%first", carried[0], kind="i64")

    function = compiled(write)
    for first, last in PAIRS:
        assert function(first, last) == (last + 6 if (first < last) != negated else first)


def test_if_else() -> None:
    """One of two pieces of code."""

    def write(w: FunctionBuilder) -> str:
        w.if_else(
            w.compare("slt", "%first", "%last"),
            lambda: w.store("i64", w.add("%first", 100), "%work", 8),
            lambda: w.store("i64", w.mul("%last", 10), "%work", 8),
        )
        return w.load("i64", "%work", 8)

    function = compiled(write)
    for first, last in PAIRS:
        assert function(first, last) == (first + 100 if first < last else 10 * last)


def test_switch_shares_cases() -> None:
    """Numbers of the same case run the same code, unknown numbers none."""
    one, other = ["one"], ["other"]
    written: list[list[str]] = []

    def write(w: FunctionBuilder) -> str:
        w.emit("store i64 -1, ptr %work")
        for case in w.switch("%first", {0: one, 2: other, 5: one}):
            written.append(case)
            with w.if_(w.compare("ne", "%last", 0)):
                w.store("i64", "10" if case is one else "20", "%work", 8)
        return w.load("i64", "%work", 8)

    function = compiled(write)
    assert [case is one for case in written] == [True, False]
    assert [function(n, 1) for n in range(6)] == [10, -1, 20, -1, -1, 10]
    assert function(0, 0) == -1


def test_region_is_left_early() -> None:
    """The value of its end comes first, then that of all early exits."""

    def write(w: FunctionBuilder) -> str:
        with w.region() as done:
            for least in (0, 3):
                w.leave_unless(w.compare("sge", "%first", least), done)
            w.leave_unless(w.compare("sge", "%last", 0), done)
            total = w.add("%first", "%last")
        return w.merge(total, -1, kind="i64")

    function = compiled(write)
    for first, last in PAIRS:
        assert function(first, last) == (first + last if first >= 3 and last >= 0 else -1)


def test_phis_are_written_in_one_file() -> None:
    """Emitters leave them to the builder."""
    instruction = re.compile(r"\bphi (i\d|ptr|double|float|<|\{)")
    sources = Path(llvm.__path__[0]).rglob("*.py")
    found = {path.name for path in sources if instruction.search(path.read_text("utf-8"))}
    assert found == {"ir_builder.py"}

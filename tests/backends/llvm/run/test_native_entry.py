# SPDX-License-Identifier: BSD-3-Clause
"""The built-in function takes plain arrays, refuses everything else, and leaks nothing."""

import gc
import pickle
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from phistar.arrays import Array
from phistar.backends.llvm import abi
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.unrolled_module import unrolled_module
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.native_entry import (
    ENTRY_SYMBOL,
    NativeEntry,
    load_native_entry,
    native_entry_text,
)
from phistar.scalar.graph import Graph
from phistar.scalar.interpret import run
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled

pytestmark = pytest.mark.skipif(
    not abi.is_supported(),
    reason="needs the array objects of NumPy in CPython, and its lock",
)


def made(program: Unrolled, lanes: Lanes, most: int = 9) -> NativeEntry:
    """The function of a program."""
    text = unrolled_module(program, lanes) + native_entry_text(program.signature, lanes, 0, most)
    function = load_native_entry(jit.load(text, symbols=(ENTRY_SYMBOL,)))
    assert function is not None
    return function


@pytest.fixture(scope="module")
def lean(program: Unrolled) -> NativeEntry:
    """That of the small program."""
    return made(program, Lanes(1))


def arrays(*batch: int, dtype: Any = float) -> list[Array]:
    """Inputs q, v, x and outputs tau, w."""
    rng = np.random.default_rng(4)
    inputs = [rng.normal(size=(*batch, n)).astype(dtype) for n in (3, 2, 9)]
    return [*inputs, *(np.full((*batch, n), np.nan, dtype) for n in (6, 1))]


def expected(program: Unrolled, given: list[Array]) -> list[Array]:
    """By the interpreter of scalar programs."""
    inputs = dict(zip(("q", "v", "x"), (np.atleast_2d(a) for a in given), strict=False))
    return [
        out.reshape(*given[0].shape[:-1], out.shape[-1]) for out in run(program, inputs).values()
    ]


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("width", [1, 4])
def test_one_sample(program: Unrolled, width: int, real: str) -> None:
    """The result of the interpreter, within 1e-14 or 1e-5."""
    lanes = Lanes(width, real)
    given = arrays(dtype=np.float64 if real == "double" else np.float32)
    assert made(program, lanes)(*given) is True
    for got, want in zip(given[3:], expected(program, given), strict=True):
        tolerance = 1e-14 if real == "double" else 1e-5
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_few_samples(program: Unrolled) -> None:
    """Arrays (batch, size) up to the number that was promised, all of the same batch."""
    lean = made(program, Lanes(4))
    for batch in (0, 1, 3, 4, 5, 9):
        given = arrays(batch)
        assert lean(*given) is True
        for got, want in zip(given[3:], expected(program, given), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-14)
    assert lean(*arrays(10)) is False
    assert lean(*arrays(2, 3)) is False
    assert lean(*arrays(5)[:4], np.empty((6, 1))) is False
    assert lean(*arrays(5)[:4], np.empty((1, 1))) is False


def test_shapes_of_results(program: Unrolled) -> None:
    """Outputs of a sample may have any shape with so many numbers; those of a batch are rows."""
    lean = made(program, Lanes(4))
    one, many = arrays(), arrays(5)
    want, wanted = expected(program, one), expected(program, many)
    for first, last in (((2, 3), ()), ((3, 2, 1), (1, 1)), ((6,), (1,))):
        given = [*one[:3], np.empty(first), np.empty(last)]
        assert lean(*given) is True
        for got, expect in zip(given[3:], want, strict=True):
            np.testing.assert_allclose(got.ravel(), expect, rtol=1e-14, atol=1e-14)
    assert lean(*many) is True
    for got, expect in zip(many[3:], wanted, strict=True):
        np.testing.assert_allclose(got, expect, rtol=1e-14, atol=1e-14)
    for wrong in ((2, 2), (7,), (1, 1, 1, 1, 6), (0, 6), ()):
        assert lean(*one[:3], np.empty(wrong), np.empty(1)) is False
    for wrong in ((5, 2, 3), (2, 3, 5), (30,), (5, 5), (6, 5)):
        assert lean(*many[:3], np.empty(wrong), np.empty((5, 1))) is False
    # A batch of one is none without that axis.
    for last in ((), (1,), (1, 1, 1)):
        assert lean(*arrays(1)[:4], np.empty(last)) is False


class Sub(np.ndarray[Any, Any]):
    """An array of another type."""


def misaligned(a: Array) -> Array:
    """The same shape one byte off."""
    return np.frombuffer(bytearray(a.nbytes + 1), a.dtype, a.size, 1)


def read_only(a: Array) -> Array:
    """The same numbers, not to be written."""
    b = a.copy()
    b.flags.writeable = False
    return b


ODD: dict[str, Callable[[Array], Any]] = {
    "a list": lambda a: a.tolist(),
    "a number": lambda a: 1.0,
    "nothing": lambda a: None,
    "a type": lambda a: np.ndarray,
    "a dtype": lambda a: a.dtype,
    "a subclass": lambda a: a.view(Sub),
    "no axes": lambda a: np.array(1.0),
    "two axes": lambda a: a[None],
    "a number more": lambda a: np.append(a, 1.0),
    "a number less": lambda a: a[1:].copy(),
    "gaps": lambda a: np.repeat(a, 2)[::2] if a.size > 1 else None,
    "backwards": lambda a: a[::-1] if a.size > 1 else None,
    "misaligned": misaligned,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "float32": lambda a: a.astype(np.float32),
    "int64": lambda a: np.ones(a.shape, np.int64),
    "complex": lambda a: a.astype(complex),
    "objects": lambda a: a.astype(object),
    "text": lambda a: a.astype("U8"),
    "dates": lambda a: np.ones(a.shape, np.int64).view("M8[s]"),
    "long double": lambda a: a.astype(np.longdouble),
    "records": lambda a: np.zeros(a.shape, [("x", "f8")]),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("place", range(5))
def test_anything_else_is_refused(lean: NativeEntry, kind: str, place: int) -> None:
    """The answer is no, whatever it is and wherever it stands, and no output is written."""
    given: list[Any] = arrays()
    outputs = given[3:]
    given[place] = ODD[kind](given[place])
    if place >= 3 and (kind == "two axes" or (kind == "no axes" and outputs[place - 3].size == 1)):
        # A result may have any shape.
        assert lean(*given) is True
        return
    assert lean(*given) is False
    assert all(np.isnan(out).all() for out in outputs)


def test_number_of_arguments(lean: NativeEntry) -> None:
    """Fewer or more are refused too."""
    given = arrays()
    assert lean() is False
    assert lean(*given[:4]) is False
    assert lean(*given, given[0]) is False


def test_read_only(lean: NativeEntry) -> None:
    """Inputs may be, outputs may not."""
    given = arrays()
    assert lean(*map(read_only, given[:3]), *given[3:]) is True
    for place in (3, 4):
        given = arrays()
        given[place] = read_only(given[place])
        assert lean(*given) is False


@pytest.mark.parametrize("remake", [lambda a: pickle.loads(pickle.dumps(a)), np.copy])
def test_arrays_from_elsewhere(lean: NativeEntry, remake: Callable[[Array], Array]) -> None:
    """Arrays that were pickled have a dtype object of their own and are taken all the same."""
    assert lean(*map(remake, arrays())) is True


def test_overlap_is_refused(lean: NativeEntry) -> None:
    """Outputs that touch inputs or each other; neighbours are fine."""
    given = arrays()
    room = np.ones(30)
    assert lean(room[:3], *given[1:3], room[3:9], room[9:10]) is True
    for start in (0, 2):
        assert lean(room[:3], *given[1:3], room[start : start + 6], given[4]) is False
    assert lean(*given[:2], room[5:14], room[:6], given[4]) is False
    assert lean(*given[:3], room[:6], room[5:6]) is False


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(lean: NativeEntry, bad: float) -> None:
    """A number that is not finite makes the answer no."""
    for place, entry in ((0, 2), (1, 1), (2, 8)):
        given = arrays()
        given[place][entry] = bad
        assert lean(*given) is False


def test_no_reference_is_lost(lean: NativeEntry) -> None:
    """Counts of arguments and answers stay as they were."""
    given = arrays()
    watched = [*given, True, False, np.ndarray, given[0].dtype]
    before = [sys.getrefcount(thing) for thing in watched]
    for _ in range(1000):
        lean(*given)
        lean(*given[:4])
        lean(*given[:4], None)
    after = [sys.getrefcount(thing) for thing in watched]
    assert all(abs(a - b) < 100 for a, b in zip(after, before, strict=True))


def test_function_keeps_the_code(program: Unrolled) -> None:
    """Code lives as long as a function that runs it, and no longer."""
    lanes = Lanes(1)
    text = unrolled_module(program, lanes) + native_entry_text(program.signature, lanes, 0)
    code = jit.load(text, symbols=(ENTRY_SYMBOL,))
    alive = weakref.ref(code)
    function = load_native_entry(code)
    assert function is not None
    del code
    gc.collect()
    assert function(*arrays()) is True
    del function
    gc.collect()
    assert alive() is None


def test_code_without_the_function(program: Unrolled) -> None:
    """There is none then."""
    assert load_native_entry(jit.load(unrolled_module(program, Lanes(1)))) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("DATA_OFFSET", 48),
        ("NDIM_OFFSET", 28),
        ("SHAPE_OFFSET", 40),
        ("DTYPE_OFFSET", 8),
        ("FLAGS_OFFSET", 24),
        ("TYPE_OFFSET", 0),
    ],
)
def test_unfamiliar_layout_is_noticed(
    field: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a field stood elsewhere, the function would not be used, and addresses still be right."""
    monkeypatch.setattr(abi, field, value)
    abi.is_supported.cache_clear()
    try:
        assert not abi.is_supported()
        array = np.zeros(3)
        assert abi.data_address(array) == array.ctypes.data
    finally:
        monkeypatch.undo()
        abi.is_supported.cache_clear()
    assert abi.is_supported()


class OddDict(dict[str, Any]):
    """A mapping of another type."""


class Unequal(str):
    """A name whose comparison fails; it looks like another one to a dict."""

    def __hash__(self) -> int:
        return hash("left")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")


# From Python 3.13 on, PyDict_GetItem tells of a key whose comparison fails, and goes on as before.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in PyDict_GetItem:pytest.PytestUnraisableExceptionWarning"
)
def test_wrenches_in_a_dict() -> None:
    """Items are found by name, in any order; other names, sizes and mappings are refused.

    No error is left behind, and no reference.
    """
    graph = Graph()
    first, second = ([graph.load(f"wrench {i}", k) for k in range(6)] for i in range(2))
    stores = [
        Store("tau", k, "", a - b) for k, (a, b) in enumerate(zip(first, second, strict=True))
    ]
    signature = Signature({"q": 2, "wrench 0": 6, "wrench 1": 6}, {"tau": 6})
    lean = made(Unrolled(signature, BasicBlock(graph, stores)), Lanes(4))
    rng = np.random.default_rng(3)
    for batch in ((), (5,)):
        q, left, right = (rng.normal(size=(*batch, n)) for n in (2, 6, 6))
        held = sys.getrefcount(left)
        for forces in ({"left": left, "right": right}, {"right": right, "left": left}):
            out = np.full((*batch, 6), np.nan)
            assert lean(q, forces, "left", "right", out) is True
            np.testing.assert_allclose(out, left - right, rtol=1e-15)
        good = {"left": left, "right": right}
        odd: list[Any] = [
            {"left": left},
            {**good, "third": left},
            {"left": left, "wrong": right},
            {"left": left, "right": right.tolist()},
            {"left": left, "right": np.full((*batch, 6), np.nan)},
            {"left": left, "right": right.astype(np.float32)},
            {"left": left, "right": np.zeros((*batch, 5))},
            {"left": left, "right": np.zeros((2, *batch, 6))},
            {Unequal("left"): left, "right": right},
            OddDict(good),
            None,
            left,
            [left, right],
        ]
        for forces in odd:
            assert lean(q, forces, "left", "right", np.empty((*batch, 6))) is False
        out = np.full((*batch, 6), np.nan)
        one = rng.normal(size=6)
        assert lean(q, {"left": one, "right": right}, "left", "right", out) is True
        np.testing.assert_allclose(out, one - right, rtol=1e-15)
        for shared in (out[..., :6].reshape(-1)[:6], out.reshape(-1)[-6:]):
            assert lean(q, {"left": shared, "right": right}, "left", "right", out) is False
        assert lean(q, good, "left", np.empty((*batch, 6))) is False
        assert lean(q, good, "left", "right", left) is False
        assert lean(q, good, "left", "left", np.empty((*batch, 6))) is True
        del forces, good, odd
        assert sys.getrefcount(left) == held

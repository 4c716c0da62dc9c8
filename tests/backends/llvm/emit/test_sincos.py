# SPDX-License-Identifier: BSD-3-Clause
"""Our sine and cosine: error bounds, far and undefined angles, and lanes that do not mix.

The witness is exact: scaled integers, π from Machin's formula with as many digits as it takes to
reduce an angle of any size.
"""

import math
import platform
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from phistar.arrays import Array
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.sincos import MAX_REDUCED_ANGLE_RAD
from phistar.backends.llvm.emit.unrolled_module import unrolled_module
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.scalar.graph import Graph, cos, sin
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled

HERE = "this machine"
DTYPES = {"double": np.float64, "float": np.float32}


@cache
def _machine(name: str) -> dict[str, str]:
    if name == HERE:
        return {}
    if platform.machine().lower() not in jit.X86_MACHINES:
        pytest.skip("the machine without FMA is a PC")
    return {"cpu": "x86-64", "features": ""}


@cache
def kernel(width: int, real: str, machine: str = HERE) -> KernelCaller:
    """Sine and cosine of one angle."""
    graph = Graph()
    x = graph.load("x", 0)
    body = BasicBlock(graph, [Store("s", 0, "", sin(x)), Store("c", 0, "", cos(x))])
    program = Unrolled(Signature({"x": 1}, {"s": 1, "c": 1}), body)
    lanes = Lanes(width, real)
    code = jit.load(unrolled_module(program, lanes), **_machine(machine))
    return KernelCaller(code, program.signature, lanes, 0)


def sincos(angles: Any, width: int = 4, real: str = "double", machine: str = HERE) -> Array:
    """(2, n): sines and cosines."""
    x = np.asarray(angles, DTYPES[real]).reshape(-1, 1)
    outputs = [np.empty_like(x) for _ in range(2)]
    with np.errstate(invalid="ignore"):
        kernel(width, real, machine)([x], outputs)
    return np.stack([y[:, 0] for y in outputs])


# -- the witness


@cache
def _pi(bits: int) -> int:
    """π 2^bits."""

    def arctangent(inverse: int) -> int:
        power = (1 << (bits + 64)) // inverse
        total, k = power, 1
        while power not in (0, -1):
            power //= -inverse * inverse
            total += power // (2 * k + 1)
            k += 1
        return total

    return (4 * (4 * arctangent(5) - arctangent(239))) >> 64


def _series(r: int, first: int, bits: int) -> int:
    """Sine (first = 1) or cosine (first = 0) of r 2^-bits."""
    square = -(r * r) >> bits
    term = r if first else 1 << bits
    total, k = 0, first
    while term not in (0, -1):
        total += term
        term = ((term * square) >> bits) // ((k + 1) * (k + 2))
        k += 2
    return total


def exact(x: float) -> tuple[Fraction, Fraction]:
    """Sine and cosine to 240 bits or more; tiny angles to 240 bits of their own size."""
    exponent = math.frexp(x)[1]
    # The error of π multiplies with the number of quarter turns.
    bits = 300 + abs(exponent) * (1 if exponent > 0 else 2)
    ratio = Fraction(x)
    scaled = (ratio.numerator << bits) // ratio.denominator
    pi = _pi(bits)
    n = (4 * scaled + pi) // (2 * pi)
    r = scaled - (n * pi) // 2
    s, c = (Fraction(_series(r, first, bits), 1 << bits) for first in (1, 0))
    return ((s, c), (c, -s), (-s, -c), (-c, s))[n % 4]


def ulps(got: float, wanted: Fraction, dtype: Any) -> float:
    """The distance in units of the last place of the exact value."""
    unit = Fraction(float(np.spacing(dtype(abs(float(wanted))))))
    return float(abs(Fraction(float(got)) - wanted) / unit)


def worst(angles: Array, real: str, machine: str = HERE, width: int = 4) -> float:
    """The largest error over some angles, in ulp."""
    dtype = DTYPES[real]
    angles = np.asarray(angles, dtype)
    got = sincos(angles, width, real, machine)
    return max(
        ulps(got[i, k], value, dtype)
        for k, x in enumerate(angles)
        for i, value in enumerate(exact(float(x)))
    )


def test_the_witness() -> None:
    """Known values: of one radian, and of a famous hard angle that is nearly a multiple of π/2."""
    s, c = exact(1.0)
    assert float(s) == pytest.approx(0.8414709848078965066525, rel=1e-16)
    assert float(c) == pytest.approx(0.5403023058681397174009, rel=1e-16)
    assert abs(s * s + c * c - 1) < Fraction(1, 1 << 240)
    # 6381956970095103 2^797, the double that comes nearest to one: 4.68e-19 away.
    s, c = exact(math.ldexp(6381956970095103.0, 797))
    assert float(c) == pytest.approx(-4.687165924254624e-19, rel=1e-12)
    assert float(s) == 1.0


def _near_quarter_turns(dtype: Any, count: int, largest: float) -> Array:
    """The numbers around multiples of π/2, all of the small ones and some of the large ones."""
    rng = np.random.default_rng(3)
    most = int(largest / (math.pi / 2))
    n = np.unique([*range(1, 60), *rng.integers(60, most, count), most])
    centre = np.array([float(Fraction(int(k) * _pi(300), 2 << 300)) for k in n]).astype(dtype)
    around = [centre, np.nextafter(centre, dtype(0)), np.nextafter(centre, dtype(2 * largest))]
    every = np.concatenate(around)
    every = every[np.abs(every) <= largest]
    return np.concatenate([every, -every])


@pytest.mark.parametrize("machine", [HERE, "without FMA"])
def test_double_is_good_to_two_ulp(machine: str) -> None:
    """On [-1e4, 1e4], uniform, logarithmic and next to multiples of π/2; also tiny angles."""
    rng = np.random.default_rng(1)
    uniform = rng.uniform(-MAX_REDUCED_ANGLE_RAD, MAX_REDUCED_ANGLE_RAD, 1500)
    small = rng.uniform(-4, 4, 1500)
    spread = rng.choice([-1.0, 1.0], 300) * 10 ** rng.uniform(-300, 4, 300)
    ends = [
        MAX_REDUCED_ANGLE_RAD,
        -MAX_REDUCED_ANGLE_RAD,
        np.nextafter(MAX_REDUCED_ANGLE_RAD, 0),
        np.pi / 4,
        np.nextafter(np.pi / 4, 1),
        5e-324,
    ]
    hard = _near_quarter_turns(np.float64, 150, MAX_REDUCED_ANGLE_RAD)
    angles = np.concatenate([uniform, small, spread, ends, hard])
    assert worst(angles, "double", machine) <= 2.0


@pytest.mark.parametrize("machine", [HERE, "without FMA"])
def test_single_is_good_to_two_ulp(machine: str) -> None:
    """The same in single precision; 1.6 holds, as a trial of every float up to 1e4 has shown."""
    rng = np.random.default_rng(2)
    # The worst of all, with and without FMA.
    known = [2287.8992, 2829.8154, 7100.8027, 379.35132]
    angles = np.concatenate(
        [
            rng.uniform(-MAX_REDUCED_ANGLE_RAD, MAX_REDUCED_ANGLE_RAD, 800),
            rng.uniform(-4, 4, 800),
            _near_quarter_turns(np.float32, 60, MAX_REDUCED_ANGLE_RAD),
            [1e-30, 1e-45, MAX_REDUCED_ANGLE_RAD, -MAX_REDUCED_ANGLE_RAD, *known],
        ]
    )
    assert worst(angles, "float", machine) <= 1.6


@pytest.mark.parametrize("machine", [HERE, "without FMA"])
def test_single_on_many_angles(machine: str) -> None:
    """Two million of them beside NumPy's double: 1.6 ulp, also next to 6000 multiples of π/2."""
    rng = np.random.default_rng(4)
    quarters = np.arange(1, 6366) * (np.pi / 2)
    hard = [np.nextafter(quarters.astype(np.float32), np.float32(to)) for to in (0, 2e4)]
    some = [
        rng.uniform(-MAX_REDUCED_ANGLE_RAD, MAX_REDUCED_ANGLE_RAD, 1_500_000),
        rng.uniform(-4, 4, 500_000),
        quarters,
        *hard,
    ]
    angles = np.concatenate(some).astype(np.float32)
    got = sincos(angles, 8, "float", machine)
    for ours, function in zip(got, (np.sin, np.cos), strict=True):
        known = function(angles.astype(np.float64))
        unit = np.spacing(np.abs(known).astype(np.float32)).astype(np.float64)
        assert (np.abs(ours - known) / unit).max() <= 1.6


def test_zero_and_signs() -> None:
    """Zero gives zero and one; sine is odd and cosine even, to the bit."""
    assert sincos([0.0]).ravel().tolist() == [0.0, 1.0]
    x = np.random.default_rng(5).uniform(-MAX_REDUCED_ANGLE_RAD, MAX_REDUCED_ANGLE_RAD, 1000)
    there, back = sincos(x), sincos(-x)
    np.testing.assert_array_equal(there, back * [[-1], [1]])


FAR = np.array([1.0000000001e4, 1e5, 1e6, 2.0**20 * 3, 1e10, 1e15, 1e22, 1e100, 1e300, 1.7e308])


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_far_angles_are_the_c_librarys(width: int) -> None:
    """Beyond the limit: what ``math.sin`` and ``math.cos`` say, of both signs."""
    angles = np.concatenate([FAR, -FAR])
    expected = [[f(x) for x in angles] for f in (math.sin, math.cos)]
    np.testing.assert_array_equal(sincos(angles, width), expected)


def test_far_angles_are_right() -> None:
    """And these are correct: one ulp of the exact value."""
    assert worst(np.concatenate([FAR, -FAR]), "double") <= 1.0
    single = FAR[(FAR < 1e38) & (FAR > 1.1e4)].astype(np.float32)
    assert worst(single, "float") <= 0.51


@pytest.mark.parametrize("real", DTYPES)
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_undefined_angles(width: int, real: str) -> None:
    """Infinite or no number: no number."""
    assert np.isnan(sincos([np.inf, -np.inf, np.nan], width, real)).all()


@pytest.mark.parametrize("real", DTYPES)
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_every_lane(width: int, real: str) -> None:
    """The same angle has the same bits in whichever lane it stands."""
    angles = np.random.default_rng(6).uniform(-50, 50, 3 * width + 1)
    want = sincos(angles, 1, real)
    for shift in range(width):
        got = sincos(np.roll(angles, shift), width, real)
        np.testing.assert_array_equal(np.roll(got, -shift, axis=1), want)


@pytest.mark.parametrize("real", DTYPES)
@pytest.mark.parametrize("width", [2, 4, 8])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3.0e7, -1e30])
def test_neighbours_keep_their_bits(bad: float, width: int, real: str) -> None:
    """An angle that must be mended, in each lane in turn, leaves the others as they are."""
    angles = np.random.default_rng(7).uniform(-1e4, 1e4, width)
    clean = sincos(angles, width, real)
    for lane in range(width):
        spoilt = angles.copy()
        spoilt[lane] = bad
        got = sincos(spoilt, width, real)
        others = np.arange(width) != lane
        np.testing.assert_array_equal(got[:, others], clean[:, others])
        if np.isfinite(bad):
            number = float(DTYPES[real](bad))
            expected = [DTYPES[real](f(number)) for f in (math.sin, math.cos)]
            np.testing.assert_array_equal(got[:, lane], expected)
        else:
            assert np.isnan(got[:, lane]).all()


@pytest.mark.parametrize(("real", "row_width"), [("double", 4), ("double", 8), ("float", 8)])
def test_angles_of_one_sample_side_by_side(real: str, row_width: int) -> None:
    """The bits of lanes that are samples: near, far and undefined angles in one register, and more
    angles than it holds."""
    count = 2 * row_width + 1
    graph = Graph()
    angles = [graph.load("x", i) for i in range(count)]
    stores = [Store("y", 2 * i + k, "", f(x)) for i, x in enumerate(angles) for k, f in PAIR]
    program = Unrolled(Signature({"x": count}, {"y": 2 * count}), BasicBlock(graph, stores))
    lanes = Lanes(1, real, row_width)
    call = KernelCaller(jit.load(unrolled_module(program, lanes)), program.signature, lanes, 0)
    rng = np.random.default_rng(row_width)
    for special in ((), (1e9, -3e4), (np.nan,), (np.inf, 0.5)):
        x = rng.normal(scale=3.0, size=(1, count)).astype(DTYPES[real])
        x[0, rng.choice(count, len(special), replace=False)] = special
        found = np.empty((1, 2 * count), x.dtype)
        with np.errstate(invalid="ignore"):
            call([x], [found])
        np.testing.assert_array_equal(found.reshape(-1, 2).T, sincos(x[0], 4, real))


PAIR = ((0, sin), (1, cos))

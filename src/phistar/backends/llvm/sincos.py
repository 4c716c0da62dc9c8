# SPDX-License-Identifier: BSD-3-Clause
"""Sine and cosine in all lanes: reduction by π/2 in several parts, then two polynomials.

Good to 2 units in the last place up to ``LIMIT``, in either precision; lanes beyond it, infinite or
not a number are recomputed by the C library, and only those. The polynomials are the minimax ones
of the Cephes library. The parts of π/2 but the last have exact products with any number of quarter
turns up to ``LIMIT``, and differences are exact where the angle is near to a multiple of π/2. In
single precision, what the others lose is found and put back with the last part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from phistar.backends.llvm.writer import Lanes, Writer

LIMIT = 1.0e4


@dataclass(frozen=True)
class _Numbers:
    """Of one precision.

    Attributes:
        parts: What π/2 is the sum of.
        plain: How many of them are subtracted without a look at what is lost.
        round: Adding it rounds to an integer that stands in the low bits.
        sine, cosine: Coefficients, the highest first.
    """

    parts: tuple[float, ...]
    plain: int
    round: float
    sine: tuple[float, ...]
    cosine: tuple[float, ...]


_NUMBERS = {
    "double": _Numbers(
        (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21),
        3,
        1.5 * 2.0**52,
        (
            1.58962301576546568060e-10,
            -2.50507477628578072866e-8,
            2.75573136213857245213e-6,
            -1.98412698295895385996e-4,
            8.33333333332211858878e-3,
            -1.66666666666666307295e-1,
        ),
        (
            -1.13585365213876817300e-11,
            2.08757008419747316778e-9,
            -2.75573141792967388112e-7,
            2.48015872888517045348e-5,
            -1.38888888888730564116e-3,
            4.16666666666665929218e-2,
        ),
    ),
    "float": _Numbers(
        # 11 bits each, so that 13 bits of quarter turns leave the products exact.
        (
            1.5703125,
            0.00048351287841796875,
            3.1385570764541626e-07,
            6.070877134334296e-11,
            6.223371969669989e-14,
        ),
        2,
        1.5 * 2.0**23,
        (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1),
        (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2),
    ),
}


def sincos(w: Writer, x: str) -> tuple[str, str]:
    """Sine and cosine of angles up to ``LIMIT``."""
    lanes, numbers = w.lanes, _NUMBERS[w.lanes.real]
    t, whole = lanes.type, f"<{lanes.width} x i{lanes.bits}>"
    turns = w.real("fmul", x, w.constant(2.0 / math.pi))
    # Not to be contracted or reassociated: the sum is there to round.
    shifted = w(f"fadd {t} {turns}, {w.constant(numbers.round)}")
    bits = w(f"bitcast {t} {shifted} to {whole}")
    n = w(f"fsub {t} {shifted}, {w.constant(numbers.round)}")
    r = _reduced(w, x, n, numbers)
    z = w.real("fmul", r, r)
    s = _polynomial(w, z, numbers.sine)
    s = w.real("fadd", r, w.real("fmul", w.real("fmul", s, z), r))
    c = _polynomial(w, z, numbers.cosine)
    base = w.real("fsub", w.constant(1.0), w.real("fmul", z, w.constant(0.5)))
    c = w.real("fadd", base, w.real("fmul", w.real("fmul", c, z), z))
    odd = w(f"trunc {whole} {bits} to <{lanes.width} x i1>")
    sine = w(f"select <{lanes.width} x i1> {odd}, {t} {c}, {t} {s}")
    cosine = w(f"select <{lanes.width} x i1> {odd}, {t} {s}, {t} {c}")
    after = w(f"add {whole} {bits}, {_integers(lanes, 1)}")
    return _signed(w, sine, bits), _signed(w, cosine, after)


def _reduced(w: Writer, x: str, n: str, numbers: _Numbers) -> str:
    """x - n π/2."""
    r, lost = x, None
    *parts, last = (w.real("fmul", n, w.constant(part)) for part in numbers.parts)
    for i, part in enumerate(parts):
        rest = w.real("fsub", r, part)
        if i >= numbers.plain:
            error = w.real("fsub", w.real("fsub", r, rest), part)
            lost = error if lost is None else w.real("fadd", lost, error)
        r = rest
    if lost is None:
        return w.real("fsub", r, last)
    return w.real("fadd", r, w.real("fsub", lost, last))


def _integers(lanes: Lanes, n: int) -> str:
    return "<" + ", ".join([f"i{lanes.bits} {n}"] * lanes.width) + ">"


def _signed(w: Writer, value: str, quarter: str) -> str:
    """The sign of every second half turn."""
    lanes = w.lanes
    t, whole = lanes.type, f"<{lanes.width} x i{lanes.bits}>"
    flip = w(f"shl {whole} {quarter}, {_integers(lanes, lanes.bits - 2)}")
    flip = w(f"and {whole} {flip}, {_integers(lanes, -(1 << (lanes.bits - 1)))}")
    bits = w(f"bitcast {t} {value} to {whole}")
    bits = w(f"xor {whole} {bits}, {flip}")
    return w(f"bitcast {whole} {bits} to {t}")


def _polynomial(w: Writer, z: str, coefficients: Sequence[float]) -> str:
    value = w.constant(coefficients[0])
    for c in coefficients[1:]:
        value = w.real("fadd", w.real("fmul", value, z), w.constant(c))
    return value


def all_sincos(w: Writer, angles: Sequence[str], here: str) -> tuple[list[tuple[str, str]], str]:
    """Sine and cosine of several vectors; far angles are mended after one common test.

    Args:
        w: The function.
        angles: Vectors.
        here: Label of the basic block that is being written.

    Returns:
        The pairs, and the label of the basic block that is being written afterwards.
    """
    lanes = w.lanes
    t, bools = lanes.type, f"<{lanes.width} x i1>"
    pairs = [sincos(w, x) for x in angles]
    near = None
    for x in angles:
        size = w.call("fabs", x)
        inside = w(f"fcmp ole {t} {size}, {w.constant(LIMIT)}")
        near = inside if near is None else w(f"and {bools} {near}, {inside}")
    every = w(f"call i1 @llvm.vector.reduce.and.v{lanes.width}i1({bools} {near})")
    mend, joined = w.label("far"), w.label("near")
    w.do(f"br i1 {every}, label %{joined}, label %{mend}")
    w.block(mend)
    mended = []
    for x, (s, c) in zip(angles, pairs, strict=True):
        both = f"{{{t}, {t}}}"
        result = w(f"call {both} @far_sincos({t} {x}, {t} {s}, {t} {c})")
        mended.append([w(f"extractvalue {both} {result}, {i}") for i in range(2)])
    w.do(f"br label %{joined}")
    w.block(joined)
    merged = [
        tuple(
            w(f"phi {t} [{old}, %{here}], [{new}, %{mend}]")
            for old, new in zip(pair, fixed, strict=True)
        )
        for pair, fixed in zip(pairs, mended, strict=True)
    ]
    return merged, joined  # type: ignore[return-value]


def far_sincos(lanes: Lanes) -> str:
    """The function that recomputes lanes beyond ``LIMIT`` by the C library."""
    w = Writer(lanes)
    t, real = lanes.type, lanes.real
    size = w.call("fabs", "%x")
    near = w(f"fcmp ole {t} {size}, {w.constant(LIMIT)}")
    results = []
    for name, known in (("sin", "%s"), ("cos", "%c")):
        value = known
        for i in range(lanes.width):
            one = w(f"extractelement {t} %x, i32 {i}")
            if real == "float":
                one = w(f"fpext float {one} to double")
            far = w(f"call double @{name}(double {one})")
            if real == "float":
                far = w(f"fptrunc double {far} to float")
            value = w(f"insertelement {t} {value}, {real} {far}, i32 {i}")
        results.append(w(f"select <{lanes.width} x i1> {near}, {t} {known}, {t} {value}"))
    both = f"{{{t}, {t}}}"
    pair = w(f"insertvalue {both} poison, {t} {results[0]}, 0")
    pair = w(f"insertvalue {both} {pair}, {t} {results[1]}, 1")
    head = f"define internal {both} @far_sincos({t} %x, {t} %s, {t} %c) noinline {{"
    return "\n".join([head, *w.lines, f"  ret {both} {pair}", "}"])


def declarations(lanes: Lanes) -> str:
    """What the functions above call."""
    t = lanes.type
    return "\n".join(
        [
            "declare double @sin(double)",
            "declare double @cos(double)",
            f"declare {t} @llvm.fabs.{lanes.suffix}({t})",
            f"declare {t} @llvm.sqrt.{lanes.suffix}({t})",
            f"declare i1 @llvm.vector.reduce.and.v{lanes.width}i1(<{lanes.width} x i1>)",
        ]
    )

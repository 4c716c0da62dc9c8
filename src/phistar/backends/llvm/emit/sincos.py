# SPDX-License-Identifier: BSD-3-Clause
"""Sine and cosine in all lanes: reduction by π/2 in several parts, then two polynomials.

Good to 2 units in the last place up to ``MAX_REDUCED_ANGLE_RAD``, in either precision; lanes beyond
it, infinite or not a number are recomputed by the C library, and only those. The polynomials are
the minimax ones of the Cephes library. The parts of π/2 but the last have exact products with any
number of quarter turns up to ``MAX_REDUCED_ANGLE_RAD``, and differences are exact where the angle
is near to a multiple of π/2. In single precision, what the others lose is found and put back with
the last part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from phistar.backends.llvm.emit.ir_builder import FunctionBuilder, Lanes

MAX_REDUCED_ANGLE_RAD = 1.0e4


@dataclass(frozen=True)
class _Coefficients:
    """Of one precision.

    Attributes:
        parts: What π/2 is the sum of.
        plain: How many of them are subtracted without a correction for what is lost.
        round: Adding it rounds to an integer that stands in the low bits.
        sine, cosine: Coefficients, the highest first.
    """

    parts: tuple[float, ...]
    plain: int
    round: float
    sine: tuple[float, ...]
    cosine: tuple[float, ...]


_COEFFICIENTS = {
    "double": _Coefficients(
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
    "float": _Coefficients(
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


def emit_sincos(w: FunctionBuilder, x: str) -> tuple[str, str]:
    """Sine and cosine of angles up to ``MAX_REDUCED_ANGLE_RAD``."""
    lanes, numbers = w.lanes, _COEFFICIENTS[w.lanes.real]
    t, whole = lanes.type, lanes.type_of(f"i{lanes.bits}")
    turns = w.binary("fmul", x, w.constant(2.0 / math.pi))
    # Not to be contracted or reassociated: the sum is there to round.
    shifted = w(f"fadd {t} {turns}, {w.constant(numbers.round)}")
    bits = w(f"bitcast {t} {shifted} to {whole}")
    n = w(f"fsub {t} {shifted}, {w.constant(numbers.round)}")
    r = _emit_reduction(w, x, n, numbers)
    z = w.binary("fmul", r, r)
    s = _emit_polynomial(w, z, numbers.sine)
    s = w.binary("fadd", r, w.binary("fmul", w.binary("fmul", s, z), r))
    c = _emit_polynomial(w, z, numbers.cosine)
    base = w.binary("fsub", w.constant(1.0), w.binary("fmul", z, w.constant(0.5)))
    c = w.binary("fadd", base, w.binary("fmul", w.binary("fmul", c, z), z))
    odd = w(f"trunc {whole} {bits} to {lanes.type_of('i1')}")
    sine, cosine = w.select_lanes(odd, c, s), w.select_lanes(odd, s, c)
    after = w(f"add {whole} {bits}, {_integer_vector(lanes, 1)}")
    return _emit_sign(w, sine, bits), _emit_sign(w, cosine, after)


def _emit_reduction(w: FunctionBuilder, x: str, n: str, numbers: _Coefficients) -> str:
    """x - n π/2."""
    r, lost = x, None
    *parts, last = (w.binary("fmul", n, w.constant(part)) for part in numbers.parts)
    for i, part in enumerate(parts):
        rest = w.binary("fsub", r, part)
        if i >= numbers.plain:
            error = w.binary("fsub", w.binary("fsub", r, rest), part)
            lost = error if lost is None else w.binary("fadd", lost, error)
        r = rest
    if lost is None:
        return w.binary("fsub", r, last)
    return w.binary("fadd", r, w.binary("fsub", lost, last))


def _integer_vector(lanes: Lanes, n: int) -> str:
    return lanes.repeated(f"i{lanes.bits}", n)


def _emit_sign(w: FunctionBuilder, value: str, quarter: str) -> str:
    """The sign of every second half turn."""
    lanes = w.lanes
    t, whole = lanes.type, lanes.type_of(f"i{lanes.bits}")
    flip = w(f"shl {whole} {quarter}, {_integer_vector(lanes, lanes.bits - 2)}")
    flip = w(f"and {whole} {flip}, {_integer_vector(lanes, -(1 << (lanes.bits - 1)))}")
    bits = w(f"bitcast {t} {value} to {whole}")
    bits = w(f"xor {whole} {bits}, {flip}")
    return w(f"bitcast {whole} {bits} to {t}")


def _emit_polynomial(w: FunctionBuilder, z: str, coefficients: Sequence[float]) -> str:
    value = w.constant(coefficients[0])
    for c in coefficients[1:]:
        value = w.binary("fadd", w.binary("fmul", value, z), w.constant(c))
    return value


def emit_sincos_any_angle(w: FunctionBuilder, angles: Sequence[str]) -> list[tuple[str, str]]:
    """Sine and cosine of several vectors; far angles are recomputed after one common test.

    Where one sample runs alone, the lanes of a register are its angles.
    """
    t = w.lanes.type
    if w.lanes.width == 1 < w.lanes.row_width and len(angles) > 1:
        pairs, near = _emit_side_by_side(w, angles)
    else:
        pairs, near = _emit_each(w, angles)
    recomputed = []
    with w.if_(near, negated=True, stem="far"):
        for x, (s, c) in zip(angles, pairs, strict=True):
            both = f"{{{t}, {t}}}"
            result = w(f"call {both} @far_sincos({t} {x}, {t} {s}, {t} {c})")
            recomputed.append([w(f"extractvalue {both} {result}, {i}") for i in range(2)])
    return [
        (w.merge(near_sine, sine), w.merge(near_cosine, cosine))
        for (near_sine, near_cosine), (sine, cosine) in zip(pairs, recomputed, strict=True)
    ]


def _emit_each(w: FunctionBuilder, angles: Sequence[str]) -> tuple[list[tuple[str, str]], str]:
    """Sines and cosines by reduction, and whether these are right for all."""
    near = ""
    for x in angles:
        size = w.intrinsic("fabs", x)
        inside = w.compare_lanes("ole", size, w.constant(MAX_REDUCED_ANGLE_RAD))
        near = w(f"and {w.lanes.type_of('i1')} {near}, {inside}") if near else inside
    return [emit_sincos(w, x) for x in angles], w.all_lanes(near)


def _emit_side_by_side(
    w: FunctionBuilder, angles: Sequence[str]
) -> tuple[list[tuple[str, str]], str]:
    """The same for single numbers, as many at a time as a register holds."""
    alone, wide = w.lanes, Lanes(w.lanes.row_width, w.lanes.real)
    pairs: list[tuple[str, str]] = []
    near = "true"
    for start in range(0, len(angles), wide.width):
        group = angles[start : start + wide.width]
        w.lanes = wide
        x = w.constant(0.0)
        for i, angle in enumerate(group):
            x = w.insert_lane(x, angle, i)
        sines, cosines = emit_sincos(w, x)
        pairs += [(w.extract_lane(sines, i), w.extract_lane(cosines, i)) for i in range(len(group))]
        for predicate, bound in (("ole", MAX_REDUCED_ANGLE_RAD), ("oge", -MAX_REDUCED_ANGLE_RAD)):
            inside = w.compare_lanes(predicate, x, w.constant(bound))
            word = w(f"bitcast {wide.type_of('i1')} {inside} to i{wide.width}")
            near = w(f"and i1 {near}, {w(f'icmp eq i{wide.width} {word}, -1')}")
        w.lanes = alone
    return pairs, near


def fallback_function(lanes: Lanes) -> str:
    """The function that recomputes lanes beyond ``MAX_REDUCED_ANGLE_RAD`` by the C library."""
    w = FunctionBuilder(lanes, entry="")
    t, real = lanes.type, lanes.real
    size = w.intrinsic("fabs", "%x")
    near = w.compare_lanes("ole", size, w.constant(MAX_REDUCED_ANGLE_RAD))
    results = []
    for name, known in (("sin", "%s"), ("cos", "%c")):
        value = known
        for i in range(lanes.width):
            one = w.extract_lane("%x", i)
            if real == "float":
                one = w(f"fpext float {one} to double")
            far = w(f"call double @{name}(double {one})")
            if real == "float":
                far = w(f"fptrunc double {far} to float")
            value = w.insert_lane(value, far, i)
        results.append(w.select_lanes(near, known, value))
    both = f"{{{t}, {t}}}"
    pair = w(f"insertvalue {both} poison, {t} {results[0]}, 0")
    pair = w(f"insertvalue {both} {pair}, {t} {results[1]}, 1")
    w.emit(f"ret {both} {pair}")
    return w.function_text(f"internal {both} @far_sincos({t} %x, {t} %s, {t} %c) noinline")


def math_declarations(lanes: Lanes) -> str:
    """What the functions above call."""
    t = lanes.type
    return "\n".join(
        [
            "declare double @sin(double)",
            "declare double @cos(double)",
            f"declare {t} @llvm.fabs.{lanes.suffix}({t})",
            f"declare {t} @llvm.sqrt.{lanes.suffix}({t})",
            f"declare {t} @llvm.fmuladd.{lanes.suffix}({t}, {t}, {t})",
            *(
                (f"declare i1 @llvm.vector.reduce.and.v{lanes.width}i1(<{lanes.width} x i1>)",)
                if lanes.width > 1
                else ()
            ),
        ]
    )

# SPDX-License-Identifier: BSD-3-Clause
"""The natural logarithm in all lanes: the exponent from the bits, and an odd polynomial.

x = 2^k m with m between √½ and √2; with s = (m - 1) / (m + 1), log m = 2 artanh s, which a
polynomial in s² gives to a rounding. Zero, negative and subnormal numbers have none: the result is
not a number.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

from phistar.backends.llvm.emit.ir_builder import FunctionBuilder

ARTANH_COEFFICIENTS = (
    0.07308292712444311,
    0.07665855309105386,
    0.09091444727837474,
    0.11111105565129939,
    0.14285714313001635,
    0.19999999999949722,
    0.3333333333333335,
)
"""Of (artanh(s)/s - 1) / s² in s², the highest first: interpolation at the Chebyshev nodes of
|s| <= (√2 - 1) / (√2 + 1), good to 5e-18."""


@dataclass(frozen=True)
class _Format:
    """Bits of a precision.

    Attributes:
        mantissa_bits: Stored bits of the mantissa.
        root_half_bits: √½ as an integer.
        smallest: The smallest normal number.
        ln2_parts: What log 2 is the sum of; products of the first with exponents are exact.
    """

    mantissa_bits: int
    root_half_bits: int
    smallest: float
    ln2_parts: tuple[float, float]


_FORMATS = {
    "double": _Format(
        52, 0x3FE6A09E667F3BCD, sys.float_info.min, (0.6931471803691238, 1.9082149292705877e-10)
    ),
    "float": _Format(
        23, 0x3F3504F3, float(np.finfo(np.float32).tiny), (0.693145751953125, 1.4286068203094172e-6)
    ),
}


def emit_log(w: FunctionBuilder, x: str) -> str:
    """The logarithm of positive normal numbers; not a number for others."""
    lanes, form = w.lanes, _FORMATS[w.lanes.real]
    t, whole = lanes.type, lanes.type_of(f"i{lanes.bits}")
    bits = w(f"bitcast {t} {x} to {whole}")
    above = w(f"sub {whole} {bits}, {_splat(w, form.root_half_bits)}")
    exponent = w(f"ashr {whole} {above}, {_splat(w, form.mantissa_bits)}")
    raised = w(f"shl {whole} {exponent}, {_splat(w, form.mantissa_bits)}")
    m = w(f"bitcast {whole} {w(f'sub {whole} {bits}, {raised}')} to {t}")
    if lanes.bits == 64:
        # Processors convert 32 bits in all lanes at once, few of them 64.
        exponent = w(f"trunc {whole} {exponent} to {lanes.type_of('i32')}")
    k = w(f"sitofp {lanes.type_of('i32')} {exponent} to {t}")
    one = w.constant(1.0)
    s = w.binary("fdiv", w.binary("fsub", m, one), w.binary("fadd", m, one))
    z = w.binary("fmul", s, s)
    value = w.constant(ARTANH_COEFFICIENTS[0])
    for c in ARTANH_COEFFICIENTS[1:]:
        value = w.binary("fadd", w.binary("fmul", value, z), w.constant(c))
    twice = w.binary("fadd", s, s)
    small = w.binary("fmul", w.binary("fmul", value, z), twice)
    first, last = (w.binary("fmul", k, w.constant(part)) for part in form.ln2_parts)
    small = w.binary("fadd", small, last)
    result = w.binary("fadd", first, w.binary("fadd", twice, small))
    normal = w(f"fcmp oge {t} {x}, {w.constant(form.smallest)}")
    other = w.constant(math.nan)
    return w.select_lanes(normal, result, other)


def _splat(w: FunctionBuilder, n: int) -> str:
    return w.lanes.repeated(f"i{w.lanes.bits}", n)

# SPDX-License-Identifier: BSD-3-Clause
"""Expressions as Unicode text and as LaTeX."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from phistar.algebra.ir import (
    Adjoint,
    Bracket,
    Expr,
    IdentityOperator,
    Inverse,
    Let,
    Product,
    Sum,
    Symbol,
)


@dataclass(frozen=True)
class _Style:
    """Notation of an expression."""

    adjoint: str
    inverse: str
    adjoint_inverse: str
    join: str
    identity: str
    latex: bool


GREEK = {"alpha": "α", "epsilon": "ε", "nu": "ν", "zeta": "ζ"}
"""Names of intermediate results that are written as one letter."""

_TEXT = _Style("*", "⁻¹", "⁻*", " ", "I", False)
_LATEX = _Style("^*", "^{-1}", "^{-*}", r"\,", "I", True)


def to_text(expr: Expr) -> str:
    """An expression in Unicode, e.g. ``H φ M φ* H*``."""
    return _print(expr, _TEXT, 0)


def to_latex(expr: Expr) -> str:
    r"""An expression in LaTeX, e.g. ``H\,\phi\,M\,\phi^*\,H^*``."""
    return _print(expr, _LATEX, 0)


def _print(expr: Expr, style: _Style, binding: int) -> str:
    """``binding``: 0 anywhere, 1 inside a product, 2 before a superscript."""
    if isinstance(expr, (Symbol, Let)):
        return _name(expr, style)
    if isinstance(expr, IdentityOperator):
        return style.identity
    if isinstance(expr, Adjoint):
        return _print(expr.of, style, 2) + style.adjoint
    if isinstance(expr, Inverse):
        inner = expr.of
        if isinstance(inner, Adjoint):
            return _print(inner.of, style, 2) + style.adjoint_inverse
        return _print(inner, style, 2) + style.inverse
    if isinstance(expr, Bracket):
        return f"{_bracket_name(expr.kind, style)}[{_print(expr.argument, style, 0)}]"
    if isinstance(expr, Product):
        text = style.join.join(_print(f, style, 1) for f in expr.factors)
        return f"({text})" if binding > 1 else text
    assert isinstance(expr, Sum)
    text = _sum(expr, style)
    return f"({text})" if binding and expr.terms else text


def _sum(expr: Sum, style: _Style) -> str:
    if not expr.terms:
        return "0"
    signed_terms = []
    for coefficient, term in expr.terms:
        sign = "-" if coefficient < 0 else "+"
        size = _coefficient(abs(coefficient), style)
        body = _print(term, style, 0)
        signed_terms.append((sign, size + body))
    first_sign, first = signed_terms[0]
    text = first if first_sign == "+" else f"-{first}"
    return text + "".join(f" {sign} {body}" for sign, body in signed_terms[1:])


def _coefficient(value: Fraction, style: _Style) -> str:
    if value == 1:
        return ""
    if value.denominator == 1:
        return f"{value.numerator} "
    top, bottom = value.numerator, value.denominator
    return rf"\tfrac{{{top}}}{{{bottom}}}" if style.latex else f"{top}/{bottom} "


def _name(expr: Symbol | Let, style: _Style) -> str:
    from phistar.algebra.symbols import SYMBOLS

    known = SYMBOLS.get(expr.name)
    if known is None:
        return _unknown_name(expr.name, style)
    return known.latex if style.latex else known.text


def _unknown_name(name: str, style: _Style) -> str:
    if name in GREEK:
        return rf"\{name}" if style.latex else GREEK[name]
    if not style.latex or len(name) == 1:
        return name
    escaped = name.replace("_", r"\_")
    return rf"\mathrm{{{escaped}}}"


def _bracket_name(kind: str, style: _Style) -> str:
    return rf"\mathrm{{{kind}}}" if style.latex else kind

# SPDX-License-Identifier: BSD-3-Clause
"""Words with variables: whether a word fits one, and what a word becomes when they are filled in.

A variable is a vector, so it stands last, in a word or in the argument of a bracket: it takes all
that is left there, at least one atom.
"""

from __future__ import annotations

from phistar.algebra.ir import Bracket, Expr, Product, Symbol, bracket
from phistar.algebra.rows import VARIABLES, Bindings
from phistar.algebra.spaces import ONE
from phistar.algebra.words import Word, word_expr


def is_schematic(word: Word) -> bool:
    """Whether a word holds variables."""
    return any(
        atom in VARIABLES or (isinstance(atom, Bracket) and is_schematic(argument(atom)))
        for atom in word
    )


def argument(atom: Bracket) -> Word:
    """The argument of a bracket as a word."""
    inner = atom.argument
    return inner.factors if isinstance(inner, Product) else (inner,)


def fit(pattern: Word, word: Word, start: int = 0) -> tuple[int, Bindings] | None:
    """Where an occurrence of a pattern that begins at ``start`` ends, and what its variables are.

    Returns:
        None if the word does not fit there.
    """
    found: dict[Symbol, Word] = {}
    stop = _fit(pattern, word, start, found)
    return None if stop is None else (stop, found)


def _fit(pattern: Word, word: Word, start: int, found: dict[Symbol, Word]) -> int | None:
    position = start
    for part in pattern:
        if position == len(word):
            return None
        if isinstance(part, Symbol) and part in VARIABLES:
            return len(word) if _bind(part, word[position:], found) else None
        if not _same(part, word[position], found):
            return None
        position += 1
    return position


def _bind(variable: Symbol, rest: Word, found: dict[Symbol, Word]) -> bool:
    fits = rest[-1].domain is ONE and rest[0].codomain is variable.codomain
    return fits and found.setdefault(variable, rest) == rest


def _same(part: Expr, atom: Expr, found: dict[Symbol, Word]) -> bool:
    if part is atom:
        return True
    if not (isinstance(part, Bracket) and isinstance(atom, Bracket)) or part.kind != atom.kind:
        return False
    inner = argument(atom)
    return _fit(argument(part), inner, 0, found) == len(inner)


def filled(pattern: Word, bindings: Bindings) -> Word:
    """A word with its variables replaced."""
    result: list[Expr] = []
    for part in pattern:
        if isinstance(part, Symbol) and part in bindings:
            result += bindings[part]
        elif isinstance(part, Bracket):
            result.append(bracket(part.kind, word_expr(filled(argument(part), bindings), ONE)))
        else:
            result.append(part)
    return tuple(result)

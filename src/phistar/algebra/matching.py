# SPDX-License-Identifier: BSD-3-Clause
"""Words with variables: matching and instantiation.

A variable is a vector, so it is last, in a word or in the argument of a bracket: it matches all
that remains there, at least one atom.
"""

from __future__ import annotations

from phistar.algebra.ir import Bracket, Expr, Product, Symbol, bracket
from phistar.algebra.rules import VARIABLES, Bindings
from phistar.algebra.spaces import ONE
from phistar.algebra.words import Word, word_expr


def is_schematic(word: Word) -> bool:
    """Whether a word holds variables."""
    return any(
        atom in VARIABLES or (isinstance(atom, Bracket) and is_schematic(bracket_argument(atom)))
        for atom in word
    )


def bracket_argument(atom: Bracket) -> Word:
    """The argument of a bracket as a word."""
    inner = atom.argument
    return inner.factors if isinstance(inner, Product) else (inner,)


def match_word(pattern: Word, word: Word, start: int = 0) -> tuple[int, Bindings] | None:
    """End of an occurrence of a pattern that begins at ``start``, and its bindings.

    Returns:
        None if the word does not fit there.
    """
    bindings: dict[Symbol, Word] = {}
    stop = _match_from(pattern, word, start, bindings)
    return None if stop is None else (stop, bindings)


def _match_from(pattern: Word, word: Word, start: int, bindings: dict[Symbol, Word]) -> int | None:
    position = start
    for atom in pattern:
        if position == len(word):
            return None
        if isinstance(atom, Symbol) and atom in VARIABLES:
            return len(word) if _bind(atom, word[position:], bindings) else None
        if not _match_atom(atom, word[position], bindings):
            return None
        position += 1
    return position


def _bind(variable: Symbol, tail: Word, bindings: dict[Symbol, Word]) -> bool:
    fits = tail[-1].domain is ONE and tail[0].codomain is variable.codomain
    return fits and bindings.setdefault(variable, tail) == tail


def _match_atom(node: Expr, atom: Expr, bindings: dict[Symbol, Word]) -> bool:
    if node is atom:
        return True
    if not (isinstance(node, Bracket) and isinstance(atom, Bracket)) or node.kind != atom.kind:
        return False
    inner = bracket_argument(atom)
    return _match_from(bracket_argument(node), inner, 0, bindings) == len(inner)


def instantiate(pattern: Word, bindings: Bindings) -> Word:
    """A word with its variables replaced."""
    result: list[Expr] = []
    for atom in pattern:
        if isinstance(atom, Symbol) and atom in bindings:
            result += bindings[atom]
        elif isinstance(atom, Bracket):
            result.append(
                bracket(atom.kind, word_expr(instantiate(bracket_argument(atom), bindings), ONE))
            )
        else:
            result.append(atom)
    return tuple(result)

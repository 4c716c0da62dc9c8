# SPDX-License-Identifier: BSD-3-Clause
"""Rows that cancel the inverses in a theorem.

They act before all phases, because later the inverted expression has been unfolded. An inverse of a
sum is cancelled against its longest word: (I - X)⁻¹ X = (I - X)⁻¹ - I. Whether the inverse exists
is checked when the theorem is compared as matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from phistar.algebra.identities import DEFINITIONS, Identity, with_adjoints
from phistar.algebra.ir import Expr, I, Inverse, add, identity, product
from phistar.algebra.rewrite import Rewriter
from phistar.algebra.symbols import D, D_root, E_phi, E_psi, phi, psi
from phistar.algebra.traverse import nodes, open_lets
from phistar.algebra.words import WordSum, to_words, word_expr

CLOSED_FORM_ROWS = (
    Identity("phi_inverse", phi.inv, I - E_phi, "φ = (I - Eφ)⁻¹"),
    Identity("psi_inverse", psi.inv, I - E_psi, "ψ = (I - Eψ)⁻¹"),
    Identity("phi_shift_inverse", (I - E_phi).inv, phi, "φ = (I - Eφ)⁻¹"),
    Identity("psi_shift_inverse", (I - E_psi).inv, psi, "ψ = (I - Eψ)⁻¹"),
)
"""Inverses that equal a symbol or a short sum."""

_INVERSES_WITH_ROWS = frozenset((D.inv, D_root.inv, D_root.T.inv))
"""Inverses with rows in the core and the roots of D."""


def cancellation_rows(
    exprs: Iterable[Expr], assumed: Iterable[Identity] = ()
) -> tuple[Identity, ...]:
    """Rows that cancel the inverses in expressions.

    Args:
        exprs: The expressions.
        assumed: Rows of hypotheses. Those by which a symbol vanishes are used to recognise an
            inverse: without rotors (HφMφ*H*)⁻¹ is 𝓜⁻¹.
    """
    vanishing = [row for row in assumed if not to_words(row.rhs).terms]
    plain = Rewriter(with_adjoints((*DEFINITIONS, *vanishing)))
    every_node = nodes(open_lets(expr) for expr in exprs)
    inverses = {node: None for node in every_node if isinstance(node, Inverse)}
    closed = {row.lhs: row for row in with_adjoints(CLOSED_FORM_ROWS)}
    rows = [closed[node] for node in inverses if node in closed]
    written_as: dict[WordSum, Expr] = {
        plain.normal_form(row.rhs): row.lhs.inv for row in DEFINITIONS
    }
    for node in sorted(inverses.keys() - closed.keys() - _INVERSES_WITH_ROWS, key=str):
        unfolded = plain.normal_form(node.of)
        first = written_as.setdefault(unfolded, node)
        if first is not node:
            rows.append(Identity(f"{node}_spelling", node, first, "the same, written differently"))
        of = dict.fromkeys((to_words(first.inv), to_words(node.of), unfolded))
        rows += [row for words in of for row in _cancellations(first, words)]
    return tuple({row.lhs: row for row in rows}.values())


def _cancellations(inverse: Expr, words: WordSum) -> Iterator[Identity]:
    """X⁻¹X = I and XX⁻¹ = I, solved for the longest word of X; none if there are two."""
    longest = max(words, key=len)
    if not longest or sum(len(word) == len(longest) for word in words) > 1:
        return
    of, factor = word_expr(longest, words.domain), words.terms[longest]
    others = add(
        ((c, word_expr(w, words.domain)) for w, c in words.terms.items() if w != longest),
        words.codomain,
        words.domain,
    )
    why, share = "an inverse cancels what it inverts", Fraction(1) / factor
    left = share * (identity(words.domain) - product((inverse, others), words.domain))
    right = share * (identity(words.codomain) - product((others, inverse), words.codomain))
    yield Identity(f"{inverse}_left", inverse @ of, left, why)
    yield Identity(f"{inverse}_right", of @ inverse, right, why)

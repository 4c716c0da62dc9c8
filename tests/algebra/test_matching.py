# SPDX-License-Identifier: BSD-3-Clause
"""Rules with variables: what fits, what replaces it, and rewriting inside brackets."""

import pytest

from phistar.algebra.identities import Identity
from phistar.algebra.ir import Q, crf, crm, zero
from phistar.algebra.matching import instantiate, is_schematic, match_word
from phistar.algebra.rewrite import Rewriter, Rule, apply_rule
from phistar.algebra.rules import d, f, with_adjoints, x, y
from phistar.algebra.spaces import MOTION, ONE
from phistar.algebra.symbols import E_phi, H, M, f_ext, gravity, phi, v, vdot
from phistar.algebra.words import Word, to_words
from phistar.errors import RewriteError


def _word(expr: object) -> Word:
    (word,) = to_words(expr)  # type: ignore[arg-type]
    return word


V = phi.T @ H.T @ v


def test_a_variable_takes_the_rest() -> None:
    """x in a bracket is the whole argument, y after it the whole tail."""
    stop, found = match_word(_word(crm(x) @ y), _word(crm(V) @ H.T @ vdot)) or (0, {})
    assert stop == 3
    assert found == {x: _word(V), y: _word(H.T @ vdot)}


def test_a_variable_after_a_prefix_takes_what_follows_it() -> None:
    """crm[φ*x] fits crm[φ*H*v], with x = H*v, and not crm[H*v] nor crm[φ*x] of nothing."""
    pattern = _word(crm(phi.T @ x))
    assert match_word(pattern, _word(crm(V))) == (1, {x: _word(H.T @ v)})
    assert match_word(pattern, _word(crm(H.T @ v))) is None
    assert match_word(_word(crm(H.T @ d)), _word(crm(H.T @ v))) == (1, {d: (v,)})


def test_a_variable_means_one_thing() -> None:
    """crm[x]x fits only where both are the same."""
    pattern = _word(crm(x) @ x)
    assert match_word(pattern, _word(crm(V) @ V)) is not None
    assert match_word(pattern, _word(crm(V) @ H.T @ v)) is None


def test_only_vectors_fit_a_variable() -> None:
    """A tail that is an operator, or a bracket of another kind, does not fit."""
    assert match_word(_word(crm(x) @ y), _word(crm(V) @ H.T)) is None
    assert match_word(_word(crm(x) @ y), (crm(V),)) is None
    assert match_word(_word(crf(x) @ f), _word(Q(f_ext) @ V)) is None


def test_brackets_in_brackets() -> None:
    """Q[crf[x]f] fits with both variables, and is filled back to the same word."""
    pattern, word = _word(Q(crf(x) @ f)), _word(Q(crf(V) @ M @ V))
    stop, found = match_word(pattern, word) or (0, {})
    assert stop == 1
    assert found == {x: _word(V), f: _word(M @ V)}
    assert instantiate(pattern, found) == word


def test_what_has_variables_is_known() -> None:
    """Also deep inside; gravity and v are none."""
    assert is_schematic(_word(Q(crf(x) @ M @ V)))
    assert not is_schematic(_word(Q(crf(V) @ M @ V) @ H.T))


def test_adjoints_of_rules_keep_a_plain_left_side() -> None:
    """crm[x]* = -crf[x]: the sign goes to the right; rows about vectors have no adjoint."""
    row = Identity("row", phi.T @ crm(x) @ phi.T, phi.T @ crm(phi.T @ x), "toy")
    assert row.adjoint.lhs is phi @ crf(x) @ phi
    assert row.adjoint.rhs is crf(phi.T @ x) @ phi
    swap = Identity("swap", crm(x) @ y, -crm(y) @ x, "toy")
    assert with_adjoints([swap]) == (swap,)
    one_way = Identity("one_way", phi @ E_phi, phi, "toy", one_way=True)
    assert with_adjoints([one_way]) == (one_way,)


def test_conditions_decide() -> None:
    """A rule with a condition acts only where it holds."""
    when = Identity(
        "when", crm(x) @ y, -crm(y) @ x, "toy", when=lambda found: found[y] == (gravity,)
    )
    rewriter = Rewriter([when])
    assert rewriter.normal_form(crm(V) @ gravity) == to_words(-crm(gravity) @ V)
    assert rewriter.normal_form(crm(V) @ V) == to_words(crm(V) @ V)
    with pytest.raises(RewriteError, match="when does not apply at atom 0"):
        apply_rule(Rule.of(when), to_words(crm(V) @ V), _word(crm(V) @ V), 0)


def test_rewriting_inside_brackets() -> None:
    """A deep rewriter changes arguments, distributes their sums, and can make them vanish."""
    shift = Identity("shift", E_phi.T @ phi.T, phi.T - E_phi.T.inv, "toy")
    rewriter = Rewriter([shift], deep=True)
    found = rewriter.normal_form(H @ crf(E_phi.T @ V))
    assert found == to_words(H @ crf(V) - H @ crf(E_phi.T.inv @ H.T @ v))
    assert Rewriter([shift]).normal_form(crf(E_phi.T @ V)) == to_words(crf(E_phi.T @ V))
    nothing = Identity("nothing", crm(x) @ x, zero(MOTION, ONE), "toy")
    deep = Rewriter([nothing], deep=True)
    assert not deep.normal_form(Q(M @ crm(V) @ V))
    trace = deep.trace(Q(M @ crm(V) @ V) + Q(M @ V))
    assert len(trace.steps) == 1
    assert trace.end == to_words(Q(M @ V))

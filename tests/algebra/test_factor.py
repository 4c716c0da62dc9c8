# SPDX-License-Identifier: BSD-3-Clause
"""Left Horner: the same words, one form whatever their order, each leading operator once."""

import random
from fractions import Fraction

import pytest

from phistar.algebra.factor import factor, name_intermediates
from phistar.algebra.identities import CORE, DEFINITIONS, with_adjoints
from phistar.algebra.ir import Expr, I, Product, Sum, Symbol, identity, let, symbol
from phistar.algebra.phases import row
from phistar.algebra.proof import open_lets
from phistar.algebra.rewrite import Rewriter
from phistar.algebra.spaces import JOINT, ONE, TASK_FORCE
from phistar.algebra.symbols import B, D, H, K, P, mass_matrix, phi, psi, tau, vector
from phistar.algebra.traverse import nodes
from phistar.algebra.words import Word, WordSum, to_words
from phistar.algorithms.innovations import mass_matrix_inverse
from phistar.algorithms.inverse_dynamics import a, b, bias_force

A1, A2, A3 = (symbol(f"A{k}", JOINT, JOINT) for k in (1, 2, 3))
u, w = (symbol(name, JOINT, ONE) for name in "uw")


def _random_words(rng: random.Random, leaves: tuple[Expr, ...]) -> WordSum:
    """Words over three operators; with no leaves, operators, the identity among them."""
    terms: dict[Word, Fraction] = {}
    for _ in range(rng.randint(1, 12)):
        word = tuple(rng.choice((A1, A2, A3)) for _ in range(rng.randint(0, 5)))
        word += (rng.choice(leaves),) if leaves else ()
        terms[word] = Fraction(rng.choice((-3, -2, -1, 1, 2, 3)), rng.randint(1, 3))
    return WordSum(JOINT, ONE if leaves else JOINT, terms)


def _head(term: Expr) -> Expr:
    return term.factors[0] if isinstance(term, Product) else term


def _size(expr: Expr) -> int:
    """Applications of operators, and sums: each tail of a product is a vector of its own."""
    applied = {
        node.factors[k:]
        for node in nodes((expr,))
        if isinstance(node, Product)
        for k in range(len(node.factors) - 1)
    }
    return len(applied) + sum(isinstance(node, Sum) for node in nodes((expr,)))


@pytest.mark.parametrize("leaves", [(u, w), ()], ids=["vectors", "operators"])
@pytest.mark.parametrize("seed", range(20))
def test_factoring_keeps_the_words(seed: int, leaves: tuple[Expr, ...]) -> None:
    """Multiplied out again, a factored sum is what it was, coefficients and all."""
    words = _random_words(random.Random(seed), leaves)
    assert to_words(factor(words)) == words


@pytest.mark.parametrize("seed", range(20))
def test_one_form_whatever_the_order(seed: int) -> None:
    """The same words in another order give the same object."""
    rng = random.Random(seed)
    words = _random_words(rng, (u, w))
    shuffled = list(words.terms.items())
    rng.shuffle(shuffled)
    assert factor(WordSum(JOINT, ONE, dict(shuffled))) is factor(words)


@pytest.mark.parametrize("seed", range(20))
def test_leading_operators_are_taken_out(seed: int) -> None:
    """No sum, at any depth, holds two terms that begin with the same operator."""
    for node in nodes((factor(_random_words(random.Random(seed), (u, w))),)):
        if isinstance(node, Sum):
            heads = [_head(term) for _, term in node.terms]
            assert len(set(heads)) == len(heads)


def test_rests_that_agree_up_to_a_factor_are_one() -> None:
    """A₁(2u - 2w) and A₂(w - u)/3 share u - w."""
    words = to_words(A1 @ (2 * u - 2 * w) + Fraction(1, 3) * (A2 @ (w - u)))
    assert factor(words) is 2 * (A1 @ (u - w)) - Fraction(1, 3) * (A2 @ (u - w))


def test_nothing_and_one_word() -> None:
    """Zero, the identity and a single word stay as they are."""
    for expr in (A1 @ u, identity(JOINT), A1 @ A2, u - u):
        assert factor(to_words(expr)) is expr


def test_products_of_sums_stay_small() -> None:
    """(I + A₁)(I + A₂)...u has 2ᵏ words; factored, an application and a sum for each operator."""
    expr: Expr = u
    for k in range(1, 8):
        expr = (I + symbol(f"A{k}", JOINT, JOINT)) @ expr
        words = to_words(expr)
        assert len(words) == 2**k
        assert _size(factor(words)) == 2 * k


def _forward_dynamics() -> WordSum:
    rows = (mass_matrix_inverse.rule, *DEFINITIONS, row("riccati_mixed"))
    core = (rule for rule in CORE if rule.name != "riccati")
    rewriter = Rewriter(with_adjoints((*rows, *core)))
    return rewriter.normal_form(mass_matrix.inv @ (tau - bias_force))


def test_innovations_come_out_shared() -> None:
    """Forward dynamics: 9 words become 8 applications and 4 sums, ε and ν among them, once each."""
    words = _forward_dynamics()
    z = psi @ (b + K @ tau + P @ a)
    nu = D.inv @ (tau - H @ z)
    assert len(words) == 9
    assert factor(words) is nu - K.T @ psi.T @ (a + H.T @ nu)
    assert _size(factor(words)) == 12


def test_names_of_the_papers() -> None:
    """z, ε, ν and α are named, and the names hide nothing."""
    plain = factor(_forward_dynamics())
    named = name_intermediates(plain)
    assert {node.name for node in nodes((named,)) if hasattr(node, "value")} == {
        "z",
        "epsilon",
        "nu",
        "alpha",
    }
    assert open_lets(named) is plain


def test_given_names_stay() -> None:
    """A let keeps its own name also where the papers have one."""
    given = let("mine", psi @ phi @ vector("f", phi.domain))
    assert name_intermediates(H @ given) is H @ given


def test_forces_on_frames_stay_apart() -> None:
    """Frames have no sweeps: B takes each force to the links by itself."""
    f1, f2 = (vector(f"f{k}", TASK_FORCE) for k in (1, 2))
    expr = H @ phi @ (B @ f1 + B @ f2)
    assert factor(to_words(expr)) is expr
    assert isinstance(f1, Symbol)

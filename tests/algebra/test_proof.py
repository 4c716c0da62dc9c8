# SPDX-License-Identifier: BSD-3-Clause
"""Proofs of users: false rules, rounding, singular inverses, hypotheses, evidence, limits."""

import re
import tracemalloc

import pytest

import phistar
from phistar.algebra import rewrite
from phistar.algebra.identities import CORE, DEFINITIONS, Identity
from phistar.algebra.inverses import CLOSED_FORM_ROWS, cancellation_rows
from phistar.algebra.ir import Expr, I
from phistar.algebra.numerical_check import compare
from phistar.algebra.proof import TESTED_THEOREMS, Outcome, Theorem, prove, sides_differ
from phistar.algebra.proof_text import outcome_text
from phistar.algebra.rewrite import Rewriter, critical_pairs
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE
from phistar.algebra.symbols import (
    RESERVED_VECTOR_SPACES,
    SYMBOLS,
    A,
    D,
    E_phi,
    E_psi,
    G,
    H,
    K,
    M,
    P,
    mass_matrix,
    phi,
    psi,
    v,
    vector,
)
from phistar.algorithms.catalogue import catalogue
from phistar.errors import ArgumentError, FalseRuleError, SpaceError
from tests.helpers import ROOT

ALGORITHMS = ROOT / "src" / "phistar" / "algorithms"

FALSE = Identity("my_false", psi @ K, phi @ K, "not true")
L = I + H @ phi @ K


def power(expr: Expr, times: int) -> Expr:
    """An operator applied again and again."""
    return expr if times == 1 else expr @ power(expr, times - 1)


def test_a_false_rule_proves_nothing() -> None:
    """A user's false rule is an error that names it and a robot on which it fails."""
    theorem = Theorem("t", H @ psi @ K, H @ phi @ K, "mine", rules=(FALSE,))
    with pytest.raises(FalseRuleError, match=r"my_false, ψ K = φ K, is false: .* differ by") as e:
        prove(theorem)
    assert e.value.rule is FALSE
    assert e.value.counterexample.difference > 0.1


def test_a_false_theorem_cannot_be_cited() -> None:
    """H G = I needs robots without rotors: as a rule it is refused, and says what it needs."""
    bad = Theorem("bad", H @ G, I, "")
    assert prove(bad).outcome is Outcome.REFUTED
    with pytest.raises(FalseRuleError, match=r"the rule bad, .* no rotor inertia.*'unmotored'"):
        prove(Theorem("u", H @ G @ D, D, "", rules=(bad.rule,)))
    good = Theorem("good", H @ G, I, "", needs=frozenset({"unmotored"}))
    cited = Theorem("u", H @ G @ D, D, "", rules=(good.rule,), needs=good.needs)
    assert prove(cited).outcome is Outcome.PROVED
    assert prove(cited).unproved == ()


def test_a_true_rule_without_proof_is_said() -> None:
    """A rule of a user that agrees as matrices may be used, and the outcome says so."""
    rule = Identity("mine", psi @ K @ H @ phi @ K, phi @ K - psi @ K, "resolvent")
    proof = prove(Theorem("t", rule.lhs, rule.rhs, "", rules=(rule,)))
    assert proof.outcome is Outcome.PROVED
    assert proof.unproved == (rule,)
    assert "rests on mine, which agrees as matrices and has no proof" in outcome_text(proof)


def test_the_catalogue_is_not_compared_again() -> None:
    """Theorems of the package are compared by its tests; proving them costs no matrices."""
    theorem = phistar.prove("forward_dynamics").theorem
    assert theorem in TESTED_THEOREMS
    proof = prove(theorem)
    assert proof.outcome is Outcome.PROVED
    assert "comparison" not in vars(proof)


INVERSES = {
    "mass matrix": mass_matrix.inv @ mass_matrix,
    "its adjoint way": mass_matrix @ mass_matrix.inv,
    "phi": phi.inv @ phi,
    "psi": psi @ psi.inv,
    "adjoint": phi.T.inv @ phi.T,
    "sum": (I - E_phi).inv @ (I - E_phi),
    "another sum": (I + H @ phi @ K) @ (I + H @ phi @ K).inv,
    "product": (H @ phi @ M @ phi.T @ H.T).inv @ H @ phi @ M @ phi.T @ H.T,
    "spelt out": (A + H @ (phi @ M @ phi.T) @ H.T).inv @ mass_matrix,
    "cubes": power(mass_matrix.inv, 3) @ power(mass_matrix, 3),
    "sixth powers": power(mass_matrix.inv, 6) @ power(mass_matrix, 6),
}


@pytest.mark.parametrize("name", INVERSES)
def test_an_inverse_undoes_what_it_inverts(name: str) -> None:
    """X⁻¹X = I is proved, however X is spelt and however badly conditioned it is."""
    assert prove(Theorem(name, INVERSES[name], I, "")).outcome is Outcome.PROVED


def test_without_rotors_the_product_is_the_mass_matrix() -> None:
    """(HφMφ*H*)⁻¹ is the mass matrix's inverse then, and said to be so only then."""
    product = (H @ phi @ M @ phi.T @ H.T).inv
    for left, right in [(product @ mass_matrix, I), (mass_matrix @ product, I)]:
        assert prove(Theorem("t", left, right, "")).outcome is Outcome.REFUTED
        proof = prove(Theorem("t", left, right, "", needs=frozenset({"unmotored"})))
        assert proof.outcome is Outcome.PROVED


@pytest.mark.parametrize("name", ["phi", "adjoint", "sum", "another sum", "product", "spelt out"])
def test_rows_of_inverses_hold_and_join(name: str) -> None:
    """The rows made for an inverse hold as matrices, shorten words, and all their overlaps join."""
    rows = cancellation_rows([INVERSES[name]])
    rewriter = Rewriter((*rows, *DEFINITIONS, *CORE))
    assert rows
    for row in rows:
        assert compare((row.lhs, row.rhs), frozenset()).agrees, row
    for pair in critical_pairs(Rewriter(rows).rules):
        assert rewriter.normal_form(pair.left) == rewriter.normal_form(pair.right), pair.word


def test_closed_inverses_hold() -> None:
    """φ⁻¹ = I - Eφ and the like; with a wrong sign they do not."""
    for row in CLOSED_FORM_ROWS:
        assert compare((row.lhs, row.rhs), frozenset()).agrees
        assert compare((row.lhs, -row.rhs), frozenset()).counterexample is not None


def test_rounding_refutes_nothing() -> None:
    """𝓜⁻³𝓜³ is I only up to cond³ ε; a true difference of 1e-6 beside it is seen."""
    inverse, square = power(mass_matrix.inv, 3), power(mass_matrix, 3)
    assert not sides_differ(Theorem("t", inverse @ square, I, ""))
    assert sides_differ(Theorem("t", 1.000001 * mass_matrix.inv @ mass_matrix, I, ""))


@pytest.mark.parametrize("operator", [P, M])
def test_what_has_no_inverse_is_said(operator: Expr) -> None:
    """P and M are singular where a link has no mass: open, with the hypothesis that helps."""
    proof = prove(Theorem("t", operator.inv @ operator, I, ""))
    assert proof.outcome is Outcome.OPEN
    text = outcome_text(proof)
    assert f"{operator} has no inverse on " in text
    assert "no massless links" in text
    assert "(needs={'massive'}): proved" in text


def test_what_never_has_an_inverse() -> None:
    """Eφ is nilpotent: no error of NumPy comes out, and no hypothesis is offered."""
    proof = prove(Theorem("t", E_phi.inv, E_psi, ""))
    assert proof.outcome is Outcome.OPEN
    assert "Eφ has no inverse on any robot" in outcome_text(proof)
    assert proof.under == ()


def test_a_refuted_statement_says_when_it_holds() -> None:
    """(I + φKH)Pφ*H* = φMφ*H* holds without rotors; the evidence is a robot and a size."""
    proof = prove(Theorem("t", (I + phi @ K @ H) @ P @ phi.T @ H.T, phi @ M @ phi.T @ H.T, ""))
    assert proof.outcome is Outcome.REFUTED
    assert proof.comparison.counterexample.model.nv > 0
    assert "differ by" in outcome_text(proof)
    assert "with rotors" in outcome_text(proof)
    assert "holds for no rotor inertia (needs={'unmotored'}): proved" in outcome_text(proof)
    assert [better.theorem.needs for better in proof.under] == [frozenset({"unmotored"})]


def test_the_identity_takes_its_space_from_the_other_side() -> None:
    """``I`` may be a side of a theorem or of a rule; alone it has no space."""
    assert prove(Theorem("t", phi @ (I - E_phi), I, "")).outcome is Outcome.PROVED
    assert prove(Theorem("t", I, phi @ (I - E_phi), "")).outcome is Outcome.PROVED
    assert Identity("t", phi @ phi.inv, I, "").rhs is (phi @ phi.inv - phi @ phi.inv + I)
    with pytest.raises(SpaceError, match=r"I alone has no space"):
        Theorem("t", I, I, "")
    with pytest.raises(SpaceError, match=r"cannot be equal: φ maps from link forces"):
        Theorem("t", phi, phi.T, "")
    with pytest.raises(ArgumentError, match="must be an operator expression, got a str"):
        Theorem("t", "phi", phi, "")  # type: ignore[arg-type]


def test_long_proofs_stop_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound on steps, one on atoms, one on the words of a side: open, never an endless run."""
    cube = Theorem("t", power(mass_matrix, 3), power(L @ D @ L.T, 3), "")
    assert prove(cube).outcome is Outcome.PROVED
    monkeypatch.setattr(rewrite, "MAX_STEPS", 100)
    proof = prove(cube)
    assert proof.outcome is Outcome.OPEN
    assert "stopped after 100 steps" in outcome_text(proof)
    monkeypatch.setattr(rewrite, "MAX_STEPS", 100_000)
    monkeypatch.setattr(rewrite, "MAX_ATOMS", 500)
    assert "stopped after" in outcome_text(prove(cube))
    huge = prove(Theorem("t", power(L, 20), power(L, 20) + L, ""))
    assert huge.outcome is Outcome.REFUTED
    assert "not begun: a side is 1048578 words" in outcome_text(huge)


def test_long_proofs_are_small() -> None:
    """𝓜⁴ = (LDL*)⁴ takes 5390 steps in less than 12 MB: a step keeps no sum (that took 150 MB)."""
    theorem = Theorem("t", power(mass_matrix, 4), power(L @ D @ L.T, 4), "")
    tracemalloc.start()
    try:
        proof = prove(theorem)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(proof.left) + len(proof.right) == 5390
    assert not proof.residual
    assert peak < 12e6


def test_proofs_print_for_people() -> None:
    """``print`` is the derivation, ``repr`` one line; a user's theorem and identity print, too."""
    proof = phistar.prove("forward_dynamics")
    assert repr(proof) == "<proof of forward_dynamics: proved, steps: 45>"
    for part in ("\nstatement\n", "\nderivation\n", "riccati", "\noutcome\n  proved in 45 steps"):
        assert part in str(proof)
    own = phistar.prove(Theorem("mine", phi @ (I - E_phi), I, "a shift"))
    assert str(own).startswith("mine: a shift\n\nstatement\n  φ (I - Eφ) = I\n")
    row = phistar.prove(Identity("row", phi @ E_phi, phi - I, "a row"))
    assert row.outcome is Outcome.PROVED
    with pytest.raises(ArgumentError, match="takes a theorem's name, a Theorem or an Identity"):
        phistar.prove(3)  # type: ignore[arg-type]


def test_numbers_of_a_user_are_exact() -> None:
    """½v*𝓜v may be written with / 2, and vectors of proofs get random values."""
    half = v.T @ mass_matrix @ v / 2
    assert prove(Theorem("t", half + half, v.T @ L @ D @ L.T @ v, "")).outcome is Outcome.PROVED


def test_a_name_belongs_to_one_symbol() -> None:
    """A second vector of a known name but of another space is refused."""
    assert vector("v", JOINT) is v
    with pytest.raises(SpaceError, match="symbol 'v' already: a vector of joint vectors"):
        vector("v", MOTION)
    with pytest.raises(SpaceError, match="symbol 'phi' already: maps link forces"):
        vector("phi", FORCE)


def test_names_of_the_algorithms_are_taken_before_they_are_imported() -> None:
    """Whatever has been imported, a name is free for a user or it is not."""
    catalogue()
    ours = {n: e.symbol for n, e in SYMBOLS.items() if e.symbol.domain is ONE}
    assert {name: ours[name].codomain for name in RESERVED_VECTOR_SPACES} == RESERVED_VECTOR_SPACES
    source = "".join(path.read_text("utf-8") for path in ALGORITHMS.glob("*.py"))
    assert set(re.findall(r'= vector\(\s*"(\w+)"', source)) == set(RESERVED_VECTOR_SPACES)

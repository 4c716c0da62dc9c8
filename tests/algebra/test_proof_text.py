# SPDX-License-Identifier: BSD-3-Clause
"""Proofs as text: hypotheses, shortened sums, all three outcomes."""

from phistar.algebra.identities import TRIANGULAR_SPLITS
from phistar.algebra.ir import let
from phistar.algebra.proof import Theorem, prove
from phistar.algebra.proof_text import hypotheses_text, outcome_text, statement_lines, steps_lines
from phistar.algebra.symbols import H, P, phi, psi, tau
from phistar.algorithms.catalogue import catalogue


def _compliance(with_rule: bool) -> Theorem:
    row = next(r for r in TRIANGULAR_SPLITS if r.name == "compliance_split")
    rules = (row,) if with_rule else ()
    return Theorem("split", row.lhs, row.rhs, "", rules=rules, needs=row.needs)


def test_statement_names_intermediate_results_after_their_users() -> None:
    """x uses y, so the line of y comes second, although it is met first."""
    y = let("y", psi @ P @ H.T @ tau)
    x = let("x", phi @ y)
    theorem = Theorem("t", H @ y + H @ x, H @ x + H @ y, "")
    lines = [line.strip() for line in statement_lines(theorem)]
    assert lines[1:] == ["x = φ y", "y = ψ P H* τ"]


def test_outcomes() -> None:
    """Proved with the rule, open without it, refuted where the sides differ."""
    assert outcome_text(prove(_compliance(True))).startswith("proved in ")
    assert outcome_text(prove(_compliance(False))).startswith("open: ")
    wrong = Theorem("wrong", H @ phi, H @ psi, "")
    assert outcome_text(prove(wrong)).endswith("H φ - H ψ")
    assert outcome_text(prove(wrong)).startswith("refuted: ")


def test_hypotheses() -> None:
    """A chain where a row needs one; D > 0 only where the proof divides by D."""
    assert "a serial chain" in hypotheses_text(prove(_compliance(True)))
    known = catalogue()
    assert "D > 0" in hypotheses_text(prove(known["forward_dynamics"]))
    assert "D > 0" not in hypotheses_text(prove(known["link_velocities"]))


def test_limit_says_what_it_hides() -> None:
    """Steps that are not shown are counted."""
    lines = steps_lines(prove(catalogue()["forward_dynamics"]), limit=5)
    assert sum(" word" in line and line.split()[0].isdigit() for line in lines) == 5
    assert any("... 40 more steps" in line for line in lines)

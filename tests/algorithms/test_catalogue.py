# SPDX-License-Identifier: BSD-3-Clause
"""Every theorem of the catalogue: proved by rewriting, and true as matrices."""

import ast
import dataclasses
from collections import Counter
from operator import attrgetter
from pathlib import Path

import pytest

from phistar.algebra.ir import Expr, I, let
from phistar.algebra.loop_symbols import loop_compliance
from phistar.algebra.phases import row
from phistar.algebra.proof import Outcome, Theorem, open_lets, prove, sides_differ
from phistar.algebra.symbols import (
    SYMBOLS,
    D,
    E_phi,
    G,
    H,
    K,
    M,
    P,
    P_hat,
    mass_matrix,
    phi,
    psi,
    tau,
)
from phistar.algebra.traverse import nodes
from phistar.algorithms.catalogue import THEOREM_MODULES, catalogue, where
from phistar.algorithms.diagonal import ell, m
from phistar.algorithms.inverse_dynamics import a, b
from phistar.errors import RewriteError, UnknownNameError
from phistar.refs import PAPERS

THEOREMS = tuple(catalogue().values())


@pytest.mark.parametrize("theorem", THEOREMS, ids=attrgetter("name"))
def test_theorem_is_proved(theorem: Theorem) -> None:
    """Definition and result have one normal form."""
    proof = prove(theorem)
    assert proof.outcome is Outcome.PROVED, proof.residual.expr()


@pytest.mark.parametrize("theorem", THEOREMS, ids=attrgetter("name"))
def test_theorem_holds_densely(theorem: Theorem) -> None:
    """Both sides are the same matrix on random robots; relative 1e-9."""
    assert not sides_differ(theorem, seeds=range(20, 24))


@pytest.mark.parametrize("theorem", THEOREMS, ids=attrgetter("name"))
def test_theorem_is_cited_and_found(theorem: Theorem) -> None:
    """Each theorem says what it means, where it comes from and where it stands."""
    assert theorem.doc
    assert theorem.ref is not None
    file, line = where(theorem.name)
    assert theorem.name in "".join(
        Path(file).read_text(encoding="utf-8").splitlines()[line - 1 : line + 30]
    )


@pytest.mark.parametrize(
    ("theorem", "need"),
    [(theorem, need) for theorem in THEOREMS for need in sorted(theorem.needs)],
    ids=lambda value: getattr(value, "name", value),
)
def test_hypotheses_are_needed(theorem: Theorem, need: str) -> None:
    """Without one of its hypotheses a theorem is refuted: some robot is a counterexample, or what
    it inverts has no inverse there."""
    rest = theorem.needs - {need}
    usable = tuple(rule for rule in theorem.rules if rule.needs <= rest)
    proof = prove(dataclasses.replace(theorem, needs=rest, rules=usable))
    inverts = loop_compliance.inv in set(nodes((theorem.definition, theorem.result)))
    if need == "independent" and inverts:
        assert proof.outcome is Outcome.OPEN
        assert proof.comparison.singular == (loop_compliance,)
        assert theorem.needs - rest in proof.theorem.sufficient()
    else:
        assert proof.outcome is Outcome.REFUTED


def test_serial_and_unmotored_theorems_exist() -> None:
    """The test above has something to test."""
    found = {need for theorem in THEOREMS for need in theorem.needs}
    assert found == {
        "serial",
        "unmotored",
        "one_dof",
        "subalgebra",
        "independent",
        "uncoupled",
    }


def test_unknown_hypotheses_are_refused() -> None:
    """A hypothesis is a name of the table."""
    with pytest.raises(UnknownNameError, match="serial"):
        Theorem("t", phi, phi, "", needs=frozenset({"seral"}))


def test_rules_bring_their_hypotheses() -> None:
    """A theorem cannot use a row that needs more than it says itself."""
    known = row("gain_compliance")
    with pytest.raises(RewriteError, match="gain_compliance, which needs unmotored"):
        Theorem("t", known.lhs, known.rhs, "", rules=(known,))


def test_a_false_statement_is_refuted() -> None:
    """The printed form of 004 (67) with ψ on all of Pa is wrong: a counterexample is found."""
    good = catalogue()["forward_dynamics"]
    nu = D.inv @ (tau - H @ psi @ (K @ tau + P @ a + b) + H @ P @ a)
    wrong = dataclasses.replace(good, result=nu - K.T @ psi.T @ (H.T @ nu + a))
    assert prove(wrong).outcome is Outcome.REFUTED


@pytest.mark.parametrize(
    ("good", "wrong"),
    [
        ("innovations_factorisation", (I + H @ psi @ K) @ D @ (I + H @ psi @ K).T),
        ("normalised_factorisation", m.T @ m),
        ("bias_gain", (E_phi @ P_hat @ H.T @ D.inv).T @ phi.T),
    ],
    ids=["RK92 I.B: Ψ for Φ", "JR95 3: m without its star", "JR93 (4.12): Ĝ without a transpose"],
)
def test_misprints_are_refuted(good: str, wrong: Expr) -> None:
    """Forms that the papers print by mistake have counterexamples."""
    theorem = catalogue()[good]
    assert prove(dataclasses.replace(theorem, result=wrong)).outcome is Outcome.REFUTED


def test_the_misprint_of_table_3_is_refuted() -> None:
    """Jain & Rodriguez 1995, Table 3: z⁺ = z + Gε without the root of D is no sweep for z."""
    good = catalogue()["normalised_forces"]
    wrong = dataclasses.replace(good, definition=E_phi @ (psi @ K + G @ ell))
    assert prove(wrong).outcome is Outcome.REFUTED


def test_a_true_statement_without_its_rule_is_open() -> None:
    """Without the theorem on the inverse, forward dynamics is open, and the residual is shown."""
    bare = dataclasses.replace(catalogue()["forward_dynamics"], rules=())
    proof = prove(bare)
    assert proof.outcome is Outcome.OPEN
    assert "𝓜⁻¹" in repr(proof.residual.expr())


def test_lets_are_opened() -> None:
    """A proof sees through names."""
    z = let("z", psi @ (K @ tau))
    assert open_lets(H @ z + H @ phi @ let("y", M @ phi.T @ a)) is (
        H @ psi @ K @ tau + H @ phi @ M @ phi.T @ a
    )


def test_a_theorem_can_be_a_rule() -> None:
    """The inverse of the mass matrix, once proved, rewrites 𝓜⁻¹ elsewhere."""
    rule = catalogue()["mass_matrix_inverse"].rule
    assert rule.lhs is mass_matrix.inv


@pytest.mark.parametrize("name", ["v", "vdot", "tau", "gravity", "f_ext", "a", "b"])
def test_vectors_are_cited(name: str) -> None:
    """Each vector of the equations of motion has its place in a paper and its LaTeX."""
    known = SYMBOLS[name]
    assert known.ref is not None
    assert known.latex.isascii()


def test_every_paper_is_cited() -> None:
    """Each paper stands behind several theorems."""
    cited = Counter(theorem.ref.paper.key for theorem in THEOREMS if theorem.ref)
    assert all(cited[key] >= 5 for key in PAPERS)


@pytest.mark.parametrize("name", THEOREM_MODULES)
def test_algorithm_files_hold_no_loops(name: str) -> None:
    """An algorithm is a definition and a result: no loop, no index, no array."""
    file = Path(where(next(iter(catalogue())))[0]).with_name(f"{name}.py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert not [n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.While, ast.Subscript))]

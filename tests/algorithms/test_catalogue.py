# SPDX-License-Identifier: BSD-3-Clause
"""Every theorem of the catalogue: proved by rewriting, and true as matrices."""

import ast
import dataclasses
from operator import attrgetter
from pathlib import Path

import pytest

from phistar.algebra.ir import let
from phistar.algebra.proof import Outcome, Theorem, differ, open_lets, prove
from phistar.algebra.symbols import D, H, K, M, P, mass_matrix, phi, psi, tau
from phistar.algorithms.catalogue import FILES, catalogue, where
from phistar.algorithms.inverse_dynamics import a, b

THEOREMS = tuple(catalogue().values())


@pytest.mark.parametrize("theorem", THEOREMS, ids=attrgetter("name"))
def test_theorem_is_proved(theorem: Theorem) -> None:
    """Definition and result have one normal form."""
    proof = prove(theorem)
    assert proof.outcome is Outcome.PROVED, proof.residual.expr()


@pytest.mark.parametrize("theorem", THEOREMS, ids=attrgetter("name"))
def test_theorem_holds_densely(theorem: Theorem) -> None:
    """Both sides are the same matrix on random robots; relative 1e-9."""
    assert not differ(theorem, seeds=range(20, 24))


@pytest.mark.parametrize("theorem", THEOREMS, ids=attrgetter("name"))
def test_theorem_is_cited_and_found(theorem: Theorem) -> None:
    """Each theorem says what it means, where it comes from and where it stands."""
    assert theorem.doc
    assert theorem.ref is not None
    file, line = where(theorem.name)
    assert theorem.name in "".join(
        Path(file).read_text(encoding="utf-8").splitlines()[line - 1 : line + 30]
    )


def test_a_false_statement_is_refuted() -> None:
    """The printed form of 004 (67) with ψ on all of Pa is wrong: a counterexample is found."""
    good = catalogue()["forward_dynamics"]
    nu = D.inv @ (tau - H @ psi @ (K @ tau + P @ a + b) + H @ P @ a)
    wrong = dataclasses.replace(good, result=nu - K.T @ psi.T @ (H.T @ nu + a))
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


@pytest.mark.parametrize("name", FILES)
def test_algorithm_files_hold_no_loops(name: str) -> None:
    """An algorithm is a definition and a result: no loop, no index, no array."""
    file = Path(where(next(iter(catalogue())))[0]).with_name(f"{name}.py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert not [n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.While, ast.Subscript))]

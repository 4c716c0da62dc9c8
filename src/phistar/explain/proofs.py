# SPDX-License-Identifier: BSD-3-Clause
"""Theorems of the catalogue, proved, and their proofs as text."""

from __future__ import annotations

from pathlib import Path

from phistar.algebra import derivation as text
from phistar.algebra.proof import Proof
from phistar.algebra.proof import prove as prove_theorem
from phistar.algorithms import catalogue as theorems
from phistar.errors import UnknownNameError
from phistar.explain.layout import section
from phistar.explain.places import file_of, stated


def prove(name: str) -> Proof:
    """Prove a theorem of the catalogue.

    Args:
        name: Name of the theorem, e.g. ``"forward_dynamics"``.

    Returns:
        The proof: its ``outcome``, the steps of both sides and the residual.

    Raises:
        UnknownNameError: No such theorem.
    """
    known = theorems.catalogue()
    if name not in known:
        raise UnknownNameError("theorem", name, known)
    return prove_theorem(known[name])


def theorem_names() -> tuple[str, ...]:
    """Every theorem, in the order of the files."""
    known = theorems.catalogue()
    return tuple(sorted(known, key=lambda name: theorems.FILES.index(Path(file_of(name)).stem)))


def derivation(
    proof: Proof, full: bool = False, limit: int | None = None, rules: bool = True
) -> str:
    """A proof step by step: statement, hypotheses, both sides, rules, outcome.

    Args:
        proof: What ``prove`` returned.
        full: Print the whole sum after every step; otherwise sums are shortened.
        limit: Steps to show of each side; default all.
        rules: Whether to list the rules with their equations.
    """
    theorem = proof.theorem
    used = text.rules_used(proof) if rules else []
    return "\n".join(
        [
            f"{theorem.name}: {theorem.doc}",
            f"{stated(theorem.name)}  {theorem.ref or ''}".rstrip(),
            *section("statement", text.statement(theorem)),
            *section("hypotheses", [text.hypotheses(proof)]),
            *section("derivation", text.derivation(proof, full, limit)),
            *(section("rules used", used) if used else ()),
            *section("outcome", [text.outcome(proof, full)]),
        ]
    )

# SPDX-License-Identifier: BSD-3-Clause
"""Theorems, proved, and their proofs as text; identities, compared as matrices."""

from __future__ import annotations

from pathlib import Path

from phistar.algebra.identities import HYPOTHESES, Identity
from phistar.algebra.numerical_check import compare
from phistar.algebra.phases import IDENTITIES, PHASES, row
from phistar.algebra.printing import to_text
from phistar.algebra.proof import Proof, Theorem
from phistar.algebra.proof import prove as prove_theorem
from phistar.algebra.proof_text import proof_text
from phistar.algorithms import catalogue as theorems
from phistar.errors import ArgumentError, UnknownNameError, kind_of, renamed_argument
from phistar.explain.source_locations import identity_location, theorem_file, theorem_location
from phistar.explain.text_layout import section


@renamed_argument("name", "what")
def prove(what: str | Theorem | Identity) -> Proof:
    """Prove a theorem of the catalogue, or your own theorem or identity.

    Args:
        what: Name of a theorem, e.g. ``"forward_dynamics"``; or a ``Theorem`` or ``Identity`` of
            ``phistar.algebra``. Rules of your theorem are compared as matrices on random robots
            before they are used, and so is the theorem before it is called proved.

    Returns:
        The proof: its ``outcome``, the steps of both sides and the residual. ``print`` shows it.

    Raises:
        UnknownNameError: No such theorem.
        FalseRuleError: A rule of the theorem does not hold.
    """
    if isinstance(what, Theorem):
        return prove_theorem(what)
    if isinstance(what, Identity):
        return prove_theorem(
            Theorem(what.name, what.lhs, what.rhs, what.why, what.ref, needs=what.needs)
        )
    known, name = theorems.catalogue(), _name(what)
    if name not in known:
        raise UnknownNameError("theorem", name, known)
    return prove_theorem(known[name])


def _name(what: object) -> str:
    if isinstance(what, str):
        return what
    given = f"got {kind_of(what)}: {what!r}"
    raise ArgumentError(f"prove takes a theorem's name, a Theorem or an Identity, {given}")


def is_identity(name: str) -> bool:
    """Whether a row of the package has this name: a rule, from which theorems are proved."""
    return name in {known.name for known in IDENTITIES}


def identity(name: str) -> str:
    """A row of the package as text: equation, reason, phases, and that it holds.

    Raises:
        UnknownNameError: No such row.
    """
    known = row(name)
    comparison = compare((known.lhs, known.rhs), known.needs)
    phases = [phase.name for phase in PHASES if known in phase.rows]
    lines = [
        f"identity {name}: {known.why}",
        f"{identity_location(known)}  {known.ref or ''}".rstrip(),
    ]
    lines += section("statement", [f"{to_text(known.lhs)} = {to_text(known.rhs)}"])
    if known.needs:
        lines += section("hypotheses", [HYPOTHESES[need].says for need in sorted(known.needs)])
    acts = ", ".join(phases) or "matrix requests"
    lines += section("acts in", [f"{acts}; read from left to right, and so is its adjoint"])
    says = "agree" if comparison.agrees else "DIFFER"
    lines += section(
        "outcome",
        [
            "a rule from which theorems are proved, no theorem itself",
            f"its sides {says} as matrices on {comparison.robots} random robots",
        ],
    )
    return "\n".join(lines)


def theorem_names() -> tuple[str, ...]:
    """Every theorem, in the order of the files."""
    known = theorems.catalogue()
    return tuple(
        sorted(
            known, key=lambda name: theorems.THEOREM_MODULES.index(Path(theorem_file(name)).stem)
        )
    )


def derivation(
    proof: Proof, full: bool = False, limit: int | None = None, rules: bool = True
) -> str:
    """A proof step by step: statement, hypotheses, both sides, rules, outcome.

    Args:
        proof: What ``prove`` returned.
        full: Print the full sum after every step; otherwise sums are shortened.
        limit: Steps to show of each side; default all.
        rules: Whether to list the rules with their equations.
    """
    name = proof.theorem.name
    location = theorem_location(name) if theorems.catalogue().get(name) == proof.theorem else ""
    return proof_text(proof, full, limit, rules, location)

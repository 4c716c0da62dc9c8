# SPDX-License-Identifier: BSD-3-Clause
"""``phistar prove``: a theorem, the steps that prove it, and what came of it."""

from __future__ import annotations

import argparse

from phistar.cli import EXIT_ERROR
from phistar.cli.names import asked_for
from phistar.cli.text import counted
from phistar.explain import derivation, prove, theorem_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("theorem", metavar="THEOREM", nargs="?", help="its name; default: list all")
    parser.add_argument("--all", action="store_true", help="the steps of every theorem")
    parser.add_argument("--full", action="store_true", help="the whole sum after every step")


def run(options: argparse.Namespace) -> int:
    """Print proofs; succeed only if all asked for are proved."""
    names = theorem_names() if options.theorem is None else (options.theorem,)
    with asked_for():
        proofs = [prove(name) for name in names]
    if options.theorem is None and not options.all:
        width = max(len(name) for name in names)
        for proof in proofs:
            steps = counted(len(proof.left) + len(proof.right), "step")
            name, doc = proof.theorem.name, proof.theorem.doc
            print(f"{name:<{width}}  {proof.outcome.value:<7}  {steps:>9}  {doc}")
    else:
        print("\n\n".join(derivation(proof, options.full) for proof in proofs))
    return 0 if all(proof.outcome.value == "proved" for proof in proofs) else EXIT_ERROR

# SPDX-License-Identifier: BSD-3-Clause
"""``phistar prove``: a theorem, its proof and outcome; or an identity."""

from __future__ import annotations

import argparse
import textwrap

from phistar.cli import EXIT_ERROR
from phistar.cli.terminal import text_width
from phistar.cli.usage_errors import usage_errors
from phistar.errors import pluralize
from phistar.explain import derivation, identity, is_identity, prove, theorem_names

EXAMPLE = "phistar prove forward_dynamics"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    text = "its name, or that of an identity; default: list all theorems"
    parser.add_argument("theorem", metavar="THEOREM", nargs="?", help=text)
    parser.add_argument("--all", action="store_true", help="the steps of every theorem")
    parser.add_argument("--full", action="store_true", help="the full sum after every step")


def run(options: argparse.Namespace) -> int:
    """Print proofs; succeed only if all requested are proved."""
    names = theorem_names() if options.theorem is None else (options.theorem,)
    if is_identity(names[0]) and names[0] not in theorem_names():
        print(identity(names[0]))
        return 0
    with usage_errors():
        proofs = [prove(name) for name in names]
    if options.theorem is None and not options.all:
        for proof in proofs:
            steps = pluralize(len(proof.left) + len(proof.right), "step")
            needs = ", ".join(sorted(proof.theorem.needs))
            under = f"  [{needs}]" if needs else ""
            print(f"{proof.theorem.name}  {proof.outcome.value}  {steps}{under}")
            for line in textwrap.wrap(proof.theorem.doc, max(20, text_width() - 4)):
                print(f"    {line}")
    else:
        print("\n\n".join(derivation(proof, options.full) for proof in proofs))
    return 0 if all(proof.outcome.value == "proved" for proof in proofs) else EXIT_ERROR

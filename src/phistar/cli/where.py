# SPDX-License-Identifier: BSD-3-Clause
"""``phistar where``: file, line and reference of a theorem, program, identity or symbol."""

from __future__ import annotations

import argparse

from phistar.cli.usage_errors import usage_errors
from phistar.explain import where

EXAMPLE = "phistar where forward_dynamics"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    text = "a theorem, program, identity or symbol, e.g. forward_dynamics, psi_resolvent, phi"
    parser.add_argument("name", metavar="NAME", help=text)


def run(options: argparse.Namespace) -> int:
    """Print the location."""
    with usage_errors():
        print(where(options.name))
    return 0

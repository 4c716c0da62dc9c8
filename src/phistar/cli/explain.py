# SPDX-License-Identifier: BSD-3-Clause
"""``phistar explain``: how a program comes about, from its expression to its operation counts."""

from __future__ import annotations

import argparse

from phistar.cli import UsageError
from phistar.cli.names import asked_for
from phistar.cli.options import add_loading, load_robot
from phistar.cli.text import printable
from phistar.errors import ArgumentError
from phistar.explain import LEVELS, explain, program_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("program", metavar="PROGRAM", nargs="?", help="its name; default: list all")
    text = "bundled name or path: show its joints, frames and operation counts too"
    parser.add_argument("robot", metavar="ROBOT", nargs="?", help=text)
    parser.add_argument("--level", choices=LEVELS, help="show this level only")
    add_loading(parser)


def run(options: argparse.Namespace) -> int:
    """Print the levels of a program."""
    if options.program is None:
        print("\n".join(program_names()))
        return 0
    with asked_for():
        explain(options.program, level=LEVELS[0])
    model = load_robot(options.robot, options).model if options.robot else None
    try:
        print(printable(explain(options.program, model, options.level)))
    except ArgumentError as error:
        raise UsageError(f"{error}") from error
    return 0

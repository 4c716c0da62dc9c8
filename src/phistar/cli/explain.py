# SPDX-License-Identifier: BSD-3-Clause
"""``phistar explain``: a program from its expression to its operation counts."""

from __future__ import annotations

import argparse

from phistar.cli import UsageError
from phistar.cli.options import add_loading, load_robot
from phistar.cli.terminal import printable
from phistar.cli.usage_errors import usage_errors
from phistar.compile import SCHEDULES
from phistar.errors import ArgumentError
from phistar.explain import LEVELS, explain, listing

EXAMPLE = "phistar explain forward_dynamics panda"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "program",
        metavar="PROGRAM",
        nargs="?",
        help="its name, or that of a matrix, a method or a theorem; default: list all",
    )
    text = "bundled name or path: show its joints, frames and operation counts too"
    parser.add_argument("robot", metavar="ROBOT", nargs="?", help=text)
    text = f"show this level only: {', '.join(LEVELS)}"
    parser.add_argument("--level", choices=LEVELS, metavar="LEVEL", help=text)
    text = "sequential, link after link (default), or parallel, in O(log N) rounds"
    parser.add_argument("--schedule", choices=SCHEDULES, default="sequential", help=text)
    add_loading(parser)


def run(options: argparse.Namespace) -> int:
    """Print the levels of a program."""
    if options.program is None:
        print(printable(listing()))
        return 0
    with usage_errors():
        explain(options.program, level=LEVELS[0])
    model = load_robot(options.robot, options).model if options.robot else None
    try:
        print(printable(explain(options.program, model, options.level, options.schedule)))
    except ArgumentError as error:
        raise UsageError(f"{error}") from error
    return 0

# SPDX-License-Identifier: BSD-3-Clause
"""``phistar export ROBOT PROGRAM ... --out DIR``: programs as C99 for one robot."""

from __future__ import annotations

import argparse

from phistar.cli.names import asked_for
from phistar.cli.options import add_loading, add_robot, load_robot
from phistar.cli.text import clean, counted
from phistar.compile import kernel
from phistar.export import SHAPES, export_c


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    text = "what to compute, e.g. forward_dynamics (phistar explain lists all)"
    parser.add_argument("programs", metavar="PROGRAM", nargs="+", help=text)
    parser.add_argument("--out", metavar="DIR", required=True, help="directory to write into")
    parser.add_argument("--float", action="store_true", help="single precision")
    parser.add_argument(
        "--shape",
        choices=SHAPES,
        default="auto",
        help="straight (fast), rolled (small, loops over links), or by size (default)",
    )
    text = "external forces on the links become an input f_ext (default: there are none)"
    parser.add_argument("--forces", action="store_true", help=text)
    text = "replace files that no export wrote, or that were changed since"
    parser.add_argument("--force", action="store_true", help=text)
    add_loading(parser)


def run(options: argparse.Namespace) -> int:
    """Write the files and say which."""
    with asked_for():
        for name in options.programs:
            kernel(name)
    robot = load_robot(options.robot, options)
    files = export_c(
        robot.model,
        options.programs,
        options.out,
        real="float" if options.float else "double",
        shape=options.shape,
        forces=options.forces,
        force=options.force,
    )
    for file in files:
        print(clean(str(file)))
    directory = clean(str(files[0].parent))
    print(f"wrote {counted(len(files), 'file')}; make -C {directory} test compiles and checks them")
    return 0

# SPDX-License-Identifier: BSD-3-Clause
"""``phistar export ROBOT WHAT ... --out DIR``: what a robot is asked for, as C99."""

from __future__ import annotations

import argparse

from phistar.c_export import CODE_SHAPES, check_names, export_c, needs_frame, quantity_names
from phistar.cli.options import add_loading, add_robot, add_tree, load_closing
from phistar.cli.terminal import clean
from phistar.cli.usage_errors import usage_errors
from phistar.compile import quantity_on
from phistar.errors import pluralize

EXAMPLE = "phistar export panda mass_matrix jacobian:panda_link8 --out c"
TREE_OPTION = "With --tree the robot moves without its loops."
_FRAME_QUANTITIES = ", ".join(name for name in quantity_names() if needs_frame(name))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    parser.add_argument(
        "programs",
        metavar="WHAT",
        nargs="+",
        help="what to compute: a program or matrix (forward_dynamics, mass_matrix; phistar explain "
        "lists all), linearize, linearize_inverse, link_poses, center_of_mass, momentum, "
        f"kinetic_energy, potential_energy, or with a frame behind a colon: {_FRAME_QUANTITIES} "
        "(jacobian:hand)",
    )
    parser.add_argument("-o", "--out", metavar="DIR", required=True, help="directory to write into")
    text = "frame of what names none itself, a function for each; may be repeated"
    parser.add_argument("--frame", metavar="FRAME", action="append", default=[], help=text)
    text = "of jacobian and frame_velocity: local, world or world_aligned (default)"
    parser.add_argument("--reference", metavar="REFERENCE", help=text)
    parser.add_argument("--float", action="store_true", help="single precision")
    parser.add_argument(
        "--shape",
        choices=CODE_SHAPES,
        default="auto",
        help="programs and matrices straight (fast), rolled (small, loops over links), or by size "
        "(default); all others are straight",
    )
    text = "external forces on the links become an input f_ext (default: there are none)"
    parser.add_argument("--forces", action="store_true", help=text)
    text = "replace files that no export wrote, or that were changed since"
    parser.add_argument("--force", action="store_true", help=text)
    add_loading(parser)
    add_tree(parser)


def run(options: argparse.Namespace) -> int:
    """Write the files and list them."""
    with usage_errors():
        check_names(options.programs)
    robot = load_closing(options.robot, options)
    for program in options.programs:
        quantity_on(robot.model, program.partition(":")[0], f"export of {program}", TREE_OPTION)
    with usage_errors():
        files = export_c(
            robot.model,
            options.programs,
            options.out,
            frames=options.frame,
            reference=options.reference,
            real="float" if options.float else "double",
            shape=options.shape,
            forces=options.forces,
            force=options.force,
        )
    for file in files:
        print(clean(str(file)))
    directory = clean(str(files[0].parent))
    print(
        f"wrote {pluralize(len(files), 'file')}; make -C {directory} test compiles and checks them"
    )
    return 0

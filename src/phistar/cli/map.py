# SPDX-License-Identifier: BSD-3-Clause
"""``phistar map ROBOT QUANTITY IN OUT``: a quantity for every row of a Zarr store."""

from __future__ import annotations

import argparse
import sys

from phistar.cli.options import add_loading, add_robot, add_tree, load_closing
from phistar.cli.terminal import clean

EXAMPLE = "phistar map panda inverse_dynamics log.zarr forces.zarr"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    parser.add_argument("quantity", help="a method of Robot, such as inverse_dynamics")
    text = "Zarr group with arrays named as the method's arguments: q, v, ..."
    parser.add_argument("inputs", metavar="IN", help=text)
    parser.add_argument("out", metavar="OUT", help="Zarr group to write, an array per result")
    text = "address of a Dask cluster, tcp://HOST:PORT (default: threads of this process)"
    parser.add_argument("--scheduler", metavar="ADDRESS", help=text)
    text = "threads without a scheduler (default: 2)"
    parser.add_argument("--threads", type=int, default=2, metavar="N", help=text)
    parser.add_argument("--rows", type=int, metavar="N", help="rows of a task (default: by cost)")
    text = "go on with OUT: only what is missing or damaged"
    parser.add_argument("--resume", action="store_true", help=text)
    parser.add_argument("--overwrite", action="store_true", help="replace OUT")
    add_loading(parser)
    add_tree(parser)


def run(options: argparse.Namespace) -> int:
    """Compute and write."""
    from phistar import scale

    robot = load_closing(options.robot, options)
    report = scale.run(
        robot,
        options.quantity,
        options.inputs,
        options.out,
        rows=options.rows,
        resume=options.resume,
        overwrite=options.overwrite,
        scheduler=options.scheduler,
        threads=options.threads,
        on_error="report",
        progress=sys.stderr.isatty(),
    )
    kept = f", {report.kept} kept" if report.kept else ""
    tasks = "1 task" if report.tasks == 1 else f"{report.tasks} tasks"
    print(f"{clean(report.path)}: {tasks}, {report.computed} computed{kept}")
    if report.unused:
        print(f"not taken by {options.quantity}: {clean(', '.join(report.unused))}")
    for task in report.failed:
        rows = f"rows {task.rows[0]} to {task.rows[1] - 1}, counted from 0 there"
        print(f"error: task {task.task}, {rows}: {clean(task.reason)}", file=sys.stderr)
    return 1 if report.failed else 0

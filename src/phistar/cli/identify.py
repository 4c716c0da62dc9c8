# SPDX-License-Identifier: BSD-3-Clause
"""``phistar identify ROBOT LOG``: inertia, friction and rotors of a robot from a log."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap

from phistar import ident
from phistar.cli import UsageError
from phistar.cli.options import add_loading, add_robot, load_robot
from phistar.cli.series import check_target
from phistar.cli.terminal import FALLBACK_WIDTH, clean
from phistar.errors import ModelMismatchWarning, pluralize
from phistar.ident.columns import FRICTION, JOINT_COLUMNS
from phistar.ident.identify_robot import METHODS
from phistar.ident.result import SIGNALS
from phistar.ident.robust import LOSSES
from phistar.progress import progress_bar
from phistar.whole_files import write_all

EXAMPLE = "phistar identify panda log.mcap --out identified.urdf --report page.html"
NAME_WIDTH = 19
"""Columns of a joint's name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    text = "log of positions and joint forces: .mcap, .bag, .csv, .parquet, .npz, .zarr"
    parser.add_argument("log", metavar="FILE", help=text)
    text = "URDF file to write the identified robot to"
    parser.add_argument("--out", metavar="FILE", help=text)
    text = "page with estimates, error bars and residuals (needs matplotlib)"
    parser.add_argument("--report", metavar="FILE", help=text)
    parser.add_argument("--degrees", action="store_true", help="angles of the log are degrees")
    text = "of joint states, if messages of several topics have them"
    parser.add_argument("--topic", help=text)
    text = "end of the band that is kept in differentiating (default: by the motion)"
    parser.add_argument("--cutoff", type=float, metavar="HZ", help=text)
    text = f"some of {','.join(FRICTION)}, or none (default: all)"
    parser.add_argument("--friction", metavar="KINDS", help=text)
    parser.add_argument("--no-rotors", action="store_true", help="leave inertia of rotors as it is")
    parser.add_argument("--springs", action="store_true", help="identify springs of joints too")
    text = "huber or tukey for logs with bad samples (default: squares)"
    parser.add_argument("--loss", choices=tuple(LOSSES), default="squares", help=text)
    text = "torque, momentum, energy, or output_error: positions alone (default: torque)"
    parser.add_argument("--method", choices=METHODS, default="torque", help=text)
    text = "overwrite files; write even if the log seems not to fit the robot"
    parser.add_argument("--force", action="store_true", help=text)
    add_loading(parser)


def run(options: argparse.Namespace) -> int:
    """Identify, print a table, write the files."""
    for option, path, suffix in _targets(options):
        check_target(option, str(path), (suffix,))
        if os.path.lexists(path) and not options.force:
            raise UsageError(f"'{path}' exists; --force overwrites it")
    friction = _friction(options.friction)
    robot = load_robot(options.robot, options)
    with progress_bar(sys.stderr.isatty(), f"identifying {clean(robot.name)}", 2) as advance:
        log = ident.read_log(options.log, robot, degrees=options.degrees, topic=options.topic)
        advance(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelMismatchWarning)
            found = ident.identify(
                robot,
                log,
                cutoff=options.cutoff,
                friction=friction,
                rotors=not options.no_rotors,
                springs=options.springs,
                loss=options.loss,
                method=options.method,
            )
        advance(1)
    _print_table(found)
    for note in found.notes:
        _say(f"note: {note}", sys.stdout)
    for doubt in found.doubts:
        _say(f"warning: {doubt}", sys.stderr)
    if found.doubts and not options.force:
        if options.out or options.report:
            _say("nothing is written; --force writes it all the same", sys.stderr)
        return 1
    _write(found, options)
    return 0


def _targets(options: argparse.Namespace) -> list[tuple[str, Path, str]]:
    """Options that name a file to write, the file, its suffix."""
    named = (("--out", options.out, ".urdf"), ("--report", options.report, ".html"))
    return [(option, Path(path), suffix) for option, path, suffix in named if path]


def _friction(given: str | None) -> tuple[str, ...] | bool:
    if given is None:
        return True
    kinds = tuple(word for word in given.split(",") if word)
    unknown = [kind for kind in kinds if kind not in FRICTION]
    if kinds == ("none",):
        return False
    if unknown or not kinds:
        raise UsageError(
            f"--friction is '{given}', expected none or some of {','.join(FRICTION)}, with commas"
        )
    return kinds


def _print_table(found: ident.Identification) -> None:
    """What was found of each joint, and how well its forces are predicted."""
    kinds = found.joint_values
    rows = pluralize(int(found.fit.rows.sum()), "row")
    robot = found.columns.robot
    print(
        f"{clean(robot.name)}: {found.fit.rank} of {len(found.base)} base parameters from {rows}, "
        f"condition {found.fit.condition:.3g}"
    )
    signal = SIGNALS[found.sample.signal][1]
    units = [JOINT_COLUMNS[kind].units for kind in kinds]
    noise = dict(zip(found.groups, found.fit.noise, strict=True))
    if found.groups == robot.joint_names:
        kinds, units = {"noise": noise, **kinds}, [signal, *units]
    else:
        print(f"noise of the {found.sample.signal} [{signal[0]}]: {found.fit.noise[0]:.3g}")
    _print_row("joint", kinds)
    slides = {name: "m" in robot.joints[name].joint_kind.q_units for name in robot.joint_names}
    for slide, words in enumerate(("  that turns [in]", "  that slides [in]")):
        if slide in slides.values():
            _print_row(words, [pair[slide] for pair in units])
    for name in slides:
        own = [values.get(name) for values in kinds.values()]
        _print_row(clean(name), ["" if x is None else f"{x:.3g}" for x in own])


def _print_row(name: str, cells: Iterable[str]) -> None:
    print(f"{_cut(name):{NAME_WIDTH}}{''.join(f'{cell:>10}' for cell in cells)}")


def _cut(name: str) -> str:
    """A name of at most ``NAME_WIDTH`` columns, a blank included."""
    return name if len(name) < NAME_WIDTH else f"{name[: NAME_WIDTH - 2]}~"


def _say(text: str, stream: object) -> None:
    for line in wrap(clean(text), FALLBACK_WIDTH - 1, subsequent_indent="  "):
        print(line, file=stream)  # type: ignore[call-overload]


def _write(found: ident.Identification, options: argparse.Namespace) -> None:
    """Make all files first, then write them: all or none."""
    texts = {}
    if options.out:
        texts[Path(options.out)] = found.robot.to_urdf()
    if options.report:
        texts[Path(options.report)] = found.page()
    write_all(texts)
    if options.out:
        print(f"{clean(options.out)}: {clean(found.robot.name)} as identified")
    if options.report:
        print(f"{clean(options.report)}: estimates, error bars, residuals")

# SPDX-License-Identifier: BSD-3-Clause
"""``phistar check FILE...``: every problem of robot files, one line each: where, what, suggested
fix."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from phistar import robots
from phistar.cli.loop_report import loop_notes
from phistar.cli.options import add_trust
from phistar.cli.terminal import SEVERITY_STYLES, clean, make_console, print_line, problem_text
from phistar.errors import (
    MissingExtraError,
    ModelError,
    PhistarError,
    Problem,
    RobotFileError,
    RobotNotFoundError,
    pluralize,
)
from phistar.loaders import LoadReport, Source, load_model, read_source
from phistar.loaders.advice import advice
from phistar.model import Model

EXAMPLE = "phistar check robot.urdf other.xml --strict"
_LINE = re.compile(r":(\d+)(?::\d+)?$")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="robot file, or bundled name")
    parser.add_argument("--strict", action="store_true", help="warnings count as errors")
    parser.add_argument("--report", action="store_true", help="also what was read, used, not used")
    parser.add_argument("--quiet", action="store_true", help="errors and warnings only, no notes")
    add_trust(parser)


def run(options: argparse.Namespace) -> int:
    """Check each file; 1 if one of them is at fault."""
    console = make_console()
    faulty = 0
    for file in options.files:
        report, model = examine(file, trust_xacro=options.trust_xacro)
        _print_file(console, file, report, model, options)
        faulty += bool(report.errors or (options.strict and report.warnings))
    if len(options.files) > 1:
        good = len(options.files) - faulty
        print_line(
            console, Text(f"{pluralize(len(options.files), 'file')}: {good} ok, {faulty} not")
        )
    return 1 if faulty else 0


def examine(file: str, *, trust_xacro: bool = False) -> tuple[LoadReport, Model | None]:
    """The report of a file, and the model if it has one; never raises."""
    report = LoadReport(file, "unknown")
    model = None
    try:
        source = _source(file)
        model, report = load_model(source, trust_xacro=trust_xacro, report=report)
        report.problems += advice(model) + loop_notes(model)
    except ModelError as error:
        known = set(map(str, report.problems))
        report.problems += [p for p in error.problems if str(p) not in known]
    except PhistarError as error:
        report.problems.append(_as_problem(file, error))
    report.problems.sort(key=_sort_key)
    return report, model


def _source(file: str) -> Source:
    """The file under the name it was given by, so that an editor can jump to ``file:line``."""
    if file in robots.names() and not os.path.lexists(file):
        return read_source(robots.path(file))
    return replace(read_source(file), name=file)


def _as_problem(file: str, error: PhistarError) -> Problem:
    if isinstance(error, RobotNotFoundError):
        return Problem("error", "not-found", file, f"{error.reason}.", "Check the path.")
    if isinstance(error, RobotFileError):
        return Problem("error", "unreadable", file, f"cannot read it: {error.reason}.", "")
    code = "missing-extra" if isinstance(error, MissingExtraError) else "refused"
    return Problem("error", code, file, str(error), "")


def _sort_key(problem: Problem) -> tuple[bool, int]:
    """Problems of the file first, then by line, notes last."""
    line = _LINE.search(problem.where)
    return problem.severity == "note", int(line.group(1)) if line else 0


def _print_file(
    console: Console,
    file: str,
    report: LoadReport,
    model: Model | None,
    options: argparse.Namespace,
) -> None:
    for problem in report.problems:
        if problem.severity != "note" or not options.quiet:
            print_line(console, problem_text(problem, file))
    print_line(console, _summary(file, report, model, options))
    if options.report:
        for line in _report_lines(report):
            print_line(console, Text(clean(line)))


def _summary(
    file: str, report: LoadReport, model: Model | None, options: argparse.Namespace
) -> Text:
    notes = sum(problem.severity == "note" for problem in report.problems)
    counts = {"error": len(report.errors), "warning": len(report.warnings), "note": notes}
    details = [pluralize(n, severity) for severity, n in counts.items() if n]
    line = Text(f"{clean(file)}: ")
    if report.errors:
        line.append("not ok", style=SEVERITY_STYLES["error"])
    elif options.strict and report.warnings:
        line.append("not ok (strict)", style=SEVERITY_STYLES["error"])
    else:
        line.append("ok", style="green")
    if model is not None:
        name, format_ = clean(model.name), report.format
        details.insert(
            0, f"{format_} '{name}', {pluralize(len(model.link_names), 'link')}, nv {model.nv}"
        )
    line.append(f": {', '.join(details)}")
    return line


def _report_lines(report: LoadReport) -> list[str]:
    """The load report without its problems, which are printed above."""
    lines = [f"  read: {report.counts() or 'nothing'}"]
    for title, entries in report.sections().items():
        lines.append(f"  {title}: {len(entries) or 'nothing'}")
        lines += [f"    {entry}" for entry in entries]
    return lines

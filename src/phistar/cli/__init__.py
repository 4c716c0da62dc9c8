# SPDX-License-Identifier: BSD-3-Clause
"""The command ``phistar``: imports the command's module, runs it, and reports errors in one line.

A command is a module of this package with ``EXAMPLE``, a command line for its help,
``add_arguments(parser)`` and ``run(options) -> int``, and a row in ``COMMANDS``. Only the chosen
one is imported, so that help is fast.

Exit codes: 0 done, 1 the robot or file is at fault, 2 the command line is, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from types import ModuleType
from typing import Any, NoReturn, TextIO

from phistar.cli.terminal import clean, did_you_mean
from phistar.errors import ModelError, PhistarError, RobotNotFoundError

COMMANDS = {
    "info": "show a robot: its tree, joints with units, masses, warnings",
    "check": "list every problem of robot files: where, what, suggested fix",
    "convert": "write a robot as URDF",
    "explain": "derivation of an algorithm, from operators to operation counts",
    "prove": "prove a theorem step by step, or list all theorems",
    "where": "file, line and reference of a theorem, program, identity or symbol",
    "cite": "the BibTeX entries of the papers behind it",
    "simulate": "let a robot move freely: energy, drift, states to a file, a plot",
    "view": "show a robot in a browser: sliders, motions, the algebra at work",
    "report": "write a robot and its motion as one page",
    "export": "write programs for a robot as C99, with a self-test",
    "control": "run a robot under a control law, draw its Lyapunov function",
    "identify": "inertia, friction and rotors of a robot from a log of its motion",
    "map": "a quantity for every row of a Zarr store, on one machine or many",
    "cache": "the compiled code kept on disk: show it, clear it",
    "robots": "list the bundled robots",
    "doctor": "check the installation: versions, processor, cache, a self-check",
    "completion": "print what makes bash, zsh or fish complete these commands",
    "demo": "a short tour, with the lines of Python that do it",
}
FIRST_STEPS = {
    "phistar demo": "a tour in a few seconds, each step in Python",
    "phistar robots": "the bundled robots",
    "phistar info panda": "a robot: its tree, joints with units, masses",
    "phistar view panda": "move it in a browser, see its algebra at work",
    "phistar check robot.urdf": "your own robot: every problem, and its cure",
}
"""What somebody new needs, shown where no command is given."""
HELP_WIDTH = 80
"""Columns of help, whatever the terminal has."""
EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPT, EXIT_PIPE = 1, 2, 130, 141


class UsageError(Exception):
    """The command line is not understood."""


class _Help(argparse.HelpFormatter):
    """Help of a fixed width; examples keep their lines."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=HELP_WIDTH - 1)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class CommandParser(argparse.ArgumentParser):
    """A parser that raises its errors instead of printing a page of usage.

    Args:
        prog: The words before the arguments.
        description: What the command does.
        example: A command line.
    """

    def __init__(self, prog: str, description: str, example: str) -> None:
        self.flags: list[str] = []
        super().__init__(
            prog=prog,
            description=description,
            epilog=f"example:\n  {example}",
            formatter_class=_Help,
            allow_abbrev=False,
            add_help=False,
        )
        self.color = False
        self.add_argument("-h", "--help", action="store_true", help="show this help")

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action:
        """As of argparse; names of options are kept."""
        self.flags += [name for name in names if name.startswith("--")]
        return super().add_argument(*names, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with the command line."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: Arguments without the program's name; default: those of the process.

    Returns:
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        # Do not stop at a name that the terminal cannot show.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _drop_output()
        return EXIT_PIPE
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPT)
    except (UsageError, RobotNotFoundError) as error:
        return _fail(str(error), EXIT_USAGE)
    except ModelError as error:
        more = len(error.problems) - 1
        others = f" (and {more} more; phistar check lists all)" if more else ""
        return _fail(f"{error.problems[0]}{others}", EXIT_ERROR)
    except PhistarError as error:
        return _fail(str(error), EXIT_ERROR)
    except OSError as error:
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
        location = f"{error.filename}: " if error.filename is not None else ""
        return _fail(f"{location}{error.strerror or error}", EXIT_ERROR)


def _run(argv: list[str]) -> int:
    if not argv:
        return _first_steps()
    if argv[0] in ("-h", "--help", "help"):
        return _help(argv[1:])
    if argv[0] in ("-V", "--version"):
        print(f"phistar {version('phistar')}")
        return 0
    name, arguments = argv[0], argv[1:]
    if name not in COMMANDS:
        kind = "option" if name.startswith("-") else "command"
        known = ["--help", "--version"] if kind == "option" else list(COMMANDS)
        raise UsageError(f"unknown {kind} '{name}'; {did_you_mean(name, known)}")
    command, parser = command_and_parser(name)
    if "-h" in arguments or "--help" in arguments:
        parser.print_help()
        return 0
    options, unknown = parser.parse_known_intermixed_args(arguments)
    if unknown:
        raise UsageError(_unexpected(parser, unknown[0]))
    return int(command.run(options))


def command_and_parser(name: str) -> tuple[ModuleType, CommandParser]:
    """The module of a command, imported now, and the parser of its arguments."""
    command = importlib.import_module(f"phistar.cli.{name}")
    summary = COMMANDS[name]
    text = f"{summary[0].upper()}{summary[1:]}."
    parser = CommandParser(f"phistar {name}", text, command.EXAMPLE)
    command.add_arguments(parser)
    return command, parser


def _first_steps() -> int:
    rows = "\n".join(f"  {line:<26}{what}" for line, what in FIRST_STEPS.items())
    print(
        f"Robot dynamics as algebra. To begin with:\n\n{rows}\n\n"
        f"phistar --help lists all {len(COMMANDS)} commands; phistar COMMAND --help says more."
    )
    return 0


def _help(arguments: list[str]) -> int:
    if arguments and arguments[0] in COMMANDS:
        return _run([arguments[0], "--help"])
    rows = "\n".join(f"  {name:<11}{summary}" for name, summary in COMMANDS.items())
    print(
        "usage: phistar COMMAND ...\n\n"
        "Robot dynamics as algebra.\n\n"
        f"commands:\n{rows}\n\n"
        "A ROBOT is a bundled name (phistar robots) or the path of a URDF, MJCF or xacro\n"
        "file.\n"
        "phistar COMMAND --help says more; phistar --version names the version."
    )
    return 0


def _unexpected(parser: CommandParser, word: str) -> str:
    if not word.startswith("-"):
        return f"unexpected argument '{word}' (see {parser.prog} --help)"
    return f"unknown option '{word}' of {parser.prog}; {did_you_mean(word, parser.flags)}"


def _fail(message: str, code: int) -> int:
    print(f"phistar: {clean(message)}", file=sys.stderr)
    return code


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Tell a warning in one line, with names as they are typed here."""
    text = clean(message).replace("mesh_folders=", "--meshes")
    print(f"phistar: warning: {text}", file=sys.stderr)


def _drop_output() -> None:
    """The output is closed or cannot be written: keep the interpreter from flushing at exit."""
    if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())

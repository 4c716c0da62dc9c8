# SPDX-License-Identifier: BSD-3-Clause
"""What may be typed after ``phistar``: commands, their options, and the names these take."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from phistar import robots
from phistar.c_export import quantity_names
from phistar.cli import COMMANDS, command_and_parser
from phistar.explain import theorem_names
from phistar.explain.levels import program_names
from phistar.sim.run import SCHEME_NAMES
from phistar.sim.variables import VARIABLES


@dataclass(frozen=True)
class WordPlace:
    """What may stand at a place of a command line.

    Attributes:
        words: Known names.
        paths: ``"files"``, ``"folders"`` or nothing: what of the disk may stand there too.
    """

    words: tuple[str, ...] = ()
    paths: str = ""

    def __add__(self, other: WordPlace) -> WordPlace:
        """Whatever may stand at one of two places."""
        words = dict.fromkeys((*self.words, *other.words))
        return WordPlace(tuple(words), self.paths or other.paths)


@dataclass(frozen=True)
class CommandWords:
    """What may follow a command.

    Attributes:
        name, summary: The command.
        flags: What each option says of itself.
        values: What follows options that take a value.
        names: What may stand elsewhere.
    """

    name: str
    summary: str
    flags: Mapping[str, str]
    values: Mapping[str, WordPlace]
    names: WordPlace


_ROBOT = ("robot", "source", "files")
_NAMES: Mapping[str, Callable[[], Sequence[str]]] = {
    **dict.fromkeys(_ROBOT, robots.names),
    "program": program_names,
    "programs": quantity_names,
    "theorem": theorem_names,
    "name": lambda: (*program_names(), *theorem_names()),
    "scheme": lambda: SCHEME_NAMES,
    "variables": lambda: tuple(VARIABLES),
}
"""Names that an argument takes, by where argparse puts it."""
_PATHS = {"FILE": "files", "IN": "files", "OUT": "files", "ROBOT": "files", "DIR": "folders"}
"""What of the disk an argument may be, by its name in the help."""


def command_words() -> Iterator[CommandWords]:
    """All commands; this imports them."""
    for name, summary in COMMANDS.items():
        _, parser = command_and_parser(name)
        flags: dict[str, str] = {}
        values: dict[str, WordPlace] = {}
        names = WordPlace()
        for action in parser._actions:
            if not action.option_strings:
                names += _place(action)
            for flag in action.option_strings:
                flags[flag] = (action.help or "").replace("%%", "%")
                if action.nargs != 0:
                    values[flag] = _place(action)
        yield CommandWords(name, summary, flags, values, names)


def _place(action: argparse.Action) -> WordPlace:
    words = _NAMES[action.dest]() if action.dest in _NAMES else action.choices or ()
    return WordPlace(tuple(words), _PATHS.get(str(action.metavar), ""))

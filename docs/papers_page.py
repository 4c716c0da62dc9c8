# SPDX-License-Identifier: BSD-3-Clause
"""The page of papers: names in its tables are checked, linked and located when it is built.

Names stand in backticks in the last column of ``papers.md``: symbols, identities, theorems and
programs as ``phistar.where`` knows them; else a path of Python from the package or from
``phistar.algorithms``, e.g. ``spatial.crm``, ``kinematics.J`` or ``Robot.mass_matrix``; or a call
of a method, e.g. ``Robot.linearize(method="4")``, which is made on a small robot. What is missing
is written ``not yet `NAME```, with the name it is to have: once that exists, the row is stale.
"""

import ast
import importlib.util
import inspect
import re
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from markup import spot, target

import phistar
from phistar.errors import UnknownNameError

PACKAGE = Path(phistar.__file__).parent
ROBOT = "_generated/reference/robot.html"
ABSENT = "not yet"
PLANNED = re.compile(rf"{ABSENT} ((?:`[^`]+`(?:, )?)+)")
VAGUE = re.compile(r"not planned|later|missing|to come|todo", re.IGNORECASE)
"""Ways to say that something is absent which nothing could check."""


def located(text: str) -> str:
    """The page with links from names, a column of places in every table, and classes for them.

    Raises:
        UnknownNameError: A name in the last column does not exist.
        ValueError: A row has no name, or says that something is missing which exists.
    """
    return "\n".join(_lines(text)) + "\n"


def _lines(text: str) -> Iterator[str]:
    in_table = False
    for line in text.splitlines():
        if line.startswith("|") and not in_table:
            yield "````{table}\n:class: wide papers\n"
        if in_table and not line.startswith("|"):
            yield "````"
        in_table = line.startswith("|")
        yield _located_line(line) if in_table else line
    if in_table:
        yield "````"


def _located_line(line: str) -> str:
    if line.startswith("|--"):
        return f"{line}---|"
    if line.startswith("| no. |"):
        return f"{line} where |"
    check(line)
    cell = last_cell(line)
    start = line.rindex(cell)
    return f"{line[:start]}{_linked(cell)} | {', '.join(_places(cell))} |"


def check(line: str) -> None:
    """Whether a row says something, and all it says is so.

    Raises:
        UnknownNameError: A name that the row gives does not exist.
        ValueError: It names nothing, or what it calls absent exists, or it cannot be checked.
    """
    cell = last_cell(line)
    if cell.count(ABSENT) != len(PLANNED.findall(cell)):
        raise ValueError(f"a row of papers.md says {ABSENT!r} without a name for it: {line}")
    if VAGUE.search(PLANNED.sub("", cell)):
        raise ValueError(f"a row of papers.md calls something absent without a name: {line}")
    if not names(cell) and not planned(cell):
        raise ValueError(f"a row of papers.md names nothing and does not say {ABSENT!r}: {line}")
    for name in planned(cell):
        if _exists(name):
            raise ValueError(f"{name} exists, but a row of papers.md says {ABSENT!r}: {line}")
    for name in names(cell):
        places(name)


def _exists(name: str) -> bool:
    try:
        places(name)
    except UnknownNameError:
        return False
    return True


def _places(cell: str) -> list[str]:
    found = dict.fromkeys(place for name in names(cell) for place in places(name))
    return [spot(place) for place in found]


def _linked(cell: str) -> str:
    """The cell with a link from each name that stands on a page of its own."""
    return re.sub(r"`([^`]+)`", lambda match: _link(match.group(1)), cell)


def _link(name: str) -> str:
    if name.startswith("Robot.") and _exists(name):
        method = name.partition("(")[0]
        return f'<a href="{ROBOT}#phistar.{method}"><code>{escape(name)}</code></a>'
    place = target(name)
    return f'<a href="_generated/{place}"><code>{name}</code></a>' if place else f"`{name}`"


def rows(text: str) -> list[str]:
    """The lines of all tables, heads left out."""
    return [s for s in text.splitlines() if s.startswith("| ") and not s.startswith("| no. |")]


def last_cell(line: str) -> str:
    """What a row says of phistar."""
    return line.strip().strip("|").split(" | ")[-1].strip()


def names(cell: str) -> list[str]:
    """Names in backticks of things that exist."""
    return re.findall(r"`([^`]+)`", PLANNED.sub("", cell))


def planned(cell: str) -> list[str]:
    """Names in backticks of things that do not exist yet."""
    return [name for part in PLANNED.findall(cell) for name in re.findall(r"`([^`]+)`", part)]


@cache
def places(name: str) -> list[str]:
    """``file:line`` of everything that has a name; files are relative to the package.

    Raises:
        UnknownNameError: Nothing has it, or a call of it is refused.
    """
    if "(" in name:
        _make_call(name)
        name = name.partition("(")[0]
    if "." in name:
        return [_python_place(name)]
    return [line.split()[0] for line in phistar.where(name).splitlines()]


@cache
def _make_call(text: str) -> None:
    """Call a method of a small robot; arguments that are not given are zero."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    robot = phistar.load("cartpole")
    method = ast.unparse(call.func).removeprefix("Robot.")
    if not hasattr(robot, method):
        raise UnknownNameError("method of Robot", method, dir(robot))
    given = [ast.literal_eval(value) for value in call.args]
    options = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    zeros: dict[str, Any] = {"q": robot.neutral(), "frame": robot.frame_names[-1]}
    parameters = list(inspect.signature(getattr(robot, method)).parameters.values())
    for parameter in parameters[len(given) :]:
        needed = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        if needed and parameter.default is parameter.empty and parameter.name not in options:
            given.append(zeros.get(parameter.name, np.zeros(robot.nv)))
    getattr(robot, method)(*given, **options)


def _python_place(name: str) -> str:
    owner, _, last = name.rpartition(".")
    found = _owner(owner)
    if not hasattr(found, last):
        raise UnknownNameError(f"name in {owner}", last, dir(found))
    value = inspect.unwrap(getattr(found, last))
    if inspect.isclass(value) or inspect.isfunction(value):
        file, line = inspect.getsourcefile(value), inspect.getsourcelines(value)[1]
    else:
        file = getattr(found, "__file__", None)
        line = _assignments(str(file))[last]
    return f"{Path(str(file)).relative_to(PACKAGE).as_posix()}:{line}"


def _owner(path: str) -> ModuleType | type:
    if path == "Robot":
        return phistar.Robot
    for prefix in ("phistar", "phistar.algorithms"):
        if importlib.util.find_spec(f"{prefix}.{path}"):
            return importlib.import_module(f"{prefix}.{path}")
    raise UnknownNameError("module", path, [file.stem for file in PACKAGE.glob("*")])


@cache
def _assignments(file: str) -> dict[str, int]:
    """Lines of the names that a module assigns."""
    body = ast.parse(Path(file).read_text(encoding="utf-8")).body
    targets = ((t, s.lineno) for s in body if isinstance(s, ast.Assign) for t in s.targets)
    return {target.id: line for target, line in targets if isinstance(target, ast.Name)}

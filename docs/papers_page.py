# SPDX-License-Identifier: BSD-3-Clause
"""The page of papers: file and line of each name in its tables, looked up when it is built.

Names stand in backticks in the last column of ``papers.md``: symbols, identities, theorems and
programs as ``phistar.where`` knows them, else a path of Python from the package or from
``phistar.algorithms``, e.g. ``spatial.crm``, ``kinematics.J`` or ``Robot.mass_matrix``.
"""

import ast
import importlib.util
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import phistar
from phistar.errors import UnknownNameError

PACKAGE = Path(phistar.__file__).parent
ABSENT = "not yet"


def located(text: str) -> str:
    """The page with a column of places added to every table.

    Raises:
        UnknownNameError: A name in the last column does not exist.
        ValueError: A row has no name and does not say "not yet".
    """
    return "".join(f"{_located_line(line)}\n" for line in text.splitlines())


def _located_line(line: str) -> str:
    if not line.startswith("|"):
        return line
    if line.startswith("|--"):
        return f"{line}---|"
    found = "where" if line.startswith("| no. |") else ", ".join(_places(line))
    return f"{line} {found} |"


def _places(line: str) -> Iterator[str]:
    held = last_cell(line)
    known = names(held)
    if not known and ABSENT not in held:
        raise ValueError(f"a row of papers.md names nothing and does not say {ABSENT!r}: {line}")
    seen: set[str] = set()
    for name in known:
        for place in places(name):
            if place not in seen:
                seen.add(place)
                yield f"`{place}`"


def rows(text: str) -> list[str]:
    """The lines of all tables, heads left out."""
    return [s for s in text.splitlines() if s.startswith("| ") and not s.startswith("| no. |")]


def last_cell(line: str) -> str:
    """What a row says of phistar."""
    return line.strip().strip("|").split(" | ")[-1]


def names(cell: str) -> list[str]:
    """Names in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def places(name: str) -> list[str]:
    """``file:line`` of everything that has a name; files are relative to the package.

    Raises:
        UnknownNameError: Nothing has it.
    """
    if "." in name:
        return [_python_place(name)]
    return [line.split()[0] for line in phistar.where(name).splitlines()]


def _python_place(name: str) -> str:
    owner, _, last = name.rpartition(".")
    found = _owner(owner)
    if not hasattr(found, last):
        raise UnknownNameError(f"name in {owner}", last, dir(found))
    value = getattr(found, last)
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

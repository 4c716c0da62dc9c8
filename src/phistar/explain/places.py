# SPDX-License-Identifier: BSD-3-Clause
"""Where something stands in the sources: file and line, relative to the package."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from phistar.algorithms import catalogue as theorems

PACKAGE = Path(__file__).parents[1]


def stated(theorem: str) -> str:
    """Place of a theorem, e.g. ``algorithms/innovations.py:43``."""
    return f"{file_of(theorem)}:{theorems.where(theorem)[1]}"


def file_of(theorem: str) -> str:
    """File of a theorem."""
    return Path(theorems.where(theorem)[0]).relative_to(PACKAGE).as_posix()


def has(file: str, name: str) -> bool:
    """Whether a registry has a row of this name."""
    return name in _rows(file)


def line(file: str, name: str) -> str:
    """Place of a row of a registry."""
    return f"{file}:{_rows(file)[name]}"


@cache
def _rows(file: str) -> dict[str, int]:
    """Lines of the rows of a registry: the first string of a call, or the key of a table."""
    lines: dict[str, int] = {}
    for node in ast.walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8"))):
        named: list[ast.expr | None] = []
        if isinstance(node, ast.Call):
            named = list(node.args[:1])
        elif isinstance(node, ast.Dict):
            named = list(node.keys)
        for key in named:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                lines.setdefault(key.value, key.lineno)
    return lines

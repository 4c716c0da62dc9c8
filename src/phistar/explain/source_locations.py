# SPDX-License-Identifier: BSD-3-Clause
"""Source locations: file and line, relative to the package."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from phistar.algebra.identities import DEFINITIONS, Identity
from phistar.algorithms import catalogue as theorems

PACKAGE_DIR = Path(__file__).parents[1]
_IDENTITY_FILES = (
    "algebra/identities.py",
    "algebra/outward_identities.py",
    "algebra/cross_product_rules.py",
    "algebra/loop_identities.py",
)
SYMBOL_FILES = ("algebra/symbols.py", "algebra/loop_symbols.py")


def theorem_location(theorem: str) -> str:
    """Location of a theorem, e.g. ``algorithms/innovations.py:43``."""
    return f"{theorem_file(theorem)}:{theorems.where(theorem)[1]}"


def theorem_file(theorem: str) -> str:
    """File of a theorem."""
    return Path(theorems.where(theorem)[0]).relative_to(PACKAGE_DIR).as_posix()


def has_row(file: str, name: str) -> bool:
    """Whether a registry has a row of this name."""
    return name in _rows(file)


def row_location(file: str, name: str) -> str:
    """Location of a row of a registry."""
    return f"{file}:{_rows(file)[name]}"


def identity_location(known: Identity) -> str:
    """Location of an identity; a definition that is used as a rule is at its symbol."""
    if known in DEFINITIONS:
        name = known.name.removesuffix("_definition")
        return row_location(next(file for file in SYMBOL_FILES if has_row(file, name)), name)
    return row_location(
        next(file for file in _IDENTITY_FILES if has_row(file, known.name)), known.name
    )


@cache
def _rows(file: str) -> dict[str, int]:
    """Lines of the rows of a registry: the first string of a call, or the key of a table."""
    lines: dict[str, int] = {}
    for node in ast.walk(ast.parse((PACKAGE_DIR / file).read_text(encoding="utf-8"))):
        named: list[ast.expr | None] = []
        if isinstance(node, ast.Call):
            named = list(node.args[:1])
        elif isinstance(node, ast.Dict):
            named = list(node.keys)
        for key in named:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                lines.setdefault(key.value, key.lineno)
    return lines

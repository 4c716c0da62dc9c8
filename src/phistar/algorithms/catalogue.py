# SPDX-License-Identifier: BSD-3-Clause
"""The registry of algorithms: each one a theorem of the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from phistar.algebra.proof import Theorem

FILES = (
    "kinematics",
    "inverse_dynamics",
    "innovations",
    "forward_dynamics",
    "operational_space",
)
"""Modules that hold theorems; importing them fills the catalogue."""

_CATALOGUE: dict[str, Theorem] = {}
_SOURCES: dict[str, Callable[[], Theorem]] = {}


def algorithm(make: Callable[[], Theorem]) -> Theorem:
    """Decorator: put the theorem that a function states into the catalogue."""
    theorem = make()
    _CATALOGUE[theorem.name] = theorem
    _SOURCES[theorem.name] = make
    return theorem


def catalogue() -> Mapping[str, Theorem]:
    """Every theorem by name, in the order of the files."""
    for name in FILES:
        import_module(f"phistar.algorithms.{name}")
    return MappingProxyType(_CATALOGUE)


def where(name: str) -> tuple[str, int]:
    """File and line of the function that states a theorem."""
    code = _SOURCES[catalogue()[name].name].__code__
    return code.co_filename, code.co_firstlineno

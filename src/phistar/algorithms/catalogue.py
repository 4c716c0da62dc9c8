# SPDX-License-Identifier: BSD-3-Clause
"""The registry of algorithms: each one a theorem of the papers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from phistar.algebra.proof import Theorem

FILES = (
    "kinematics",
    "inverse_dynamics",
    "composite_body",
    "innovations",
    "forward_dynamics",
    "articulated_body",
    "operational_space",
    "decompositions",
    "operator_identities",
    "diagonal",
    "linearized_inverse",
    "linearized_forward",
    "rates",
    "diagonal_rates",
    "second_order",
)
"""Modules that hold theorems; importing them fills the catalogue."""

_CATALOGUE: dict[str, Theorem] = {}
_PLACES: dict[str, tuple[str, int]] = {}


def algorithm(make: Callable[[], Theorem]) -> Theorem:
    """Decorator: put the theorem that a function states into the catalogue."""
    theorem = make()
    _enter(theorem, make.__code__.co_filename, make.__code__.co_firstlineno)
    return theorem


def state(theorem: Theorem) -> Theorem:
    """Put a theorem that needs no function of its own into the catalogue."""
    frame = sys._getframe(1)
    _enter(theorem, frame.f_code.co_filename, frame.f_lineno)
    return theorem


def _enter(theorem: Theorem, file: str, line: int) -> None:
    _CATALOGUE[theorem.name] = theorem
    _PLACES[theorem.name] = (file, line)


def catalogue() -> Mapping[str, Theorem]:
    """Every theorem by name, in the order of the files."""
    for name in FILES:
        import_module(f"phistar.algorithms.{name}")
    return MappingProxyType(_CATALOGUE)


def where(name: str) -> tuple[str, int]:
    """File and line where a theorem is stated."""
    return _PLACES[catalogue()[name].name]

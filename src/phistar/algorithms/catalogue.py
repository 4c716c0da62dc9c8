# SPDX-License-Identifier: BSD-3-Clause
"""The registry of algorithms: each one a theorem of the papers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from phistar.algebra.proof import TESTED_THEOREMS, Theorem

THEOREM_MODULES = (
    "link_kinematics",
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
    "operator_rates",
    "diagonal_rates",
    "second_order",
    "rotor_forces",
    "closed_loops",
    "constraint_embedding",
    "parallel_joins",
)
"""Modules with theorems; importing them fills the catalogue."""

_CATALOGUE: dict[str, Theorem] = {}
_LOCATIONS: dict[str, tuple[str, int]] = {}


def algorithm(make: Callable[[], Theorem]) -> Theorem:
    """Decorator: register the theorem that a function states."""
    theorem = make()
    _register(theorem, make.__code__.co_filename, make.__code__.co_firstlineno)
    return theorem


def register_theorem(theorem: Theorem) -> Theorem:
    """Register a theorem without a function of its own."""
    frame = sys._getframe(1)
    _register(theorem, frame.f_code.co_filename, frame.f_lineno)
    return theorem


def _register(theorem: Theorem, file: str, line: int) -> None:
    _CATALOGUE[theorem.name] = theorem
    if Path(file).parent == Path(__file__).parent:
        TESTED_THEOREMS.add(theorem)
    _LOCATIONS[theorem.name] = (file, line)


def catalogue() -> Mapping[str, Theorem]:
    """Every theorem by name, in the order of the files."""
    for name in THEOREM_MODULES:
        import_module(f"phistar.algorithms.{name}")
    return MappingProxyType(_CATALOGUE)


def where(name: str) -> tuple[str, int]:
    """File and line where a theorem is stated."""
    return _LOCATIONS[catalogue()[name].name]

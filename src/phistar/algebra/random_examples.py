# SPDX-License-Identifier: BSD-3-Clause
"""Random robots and values that meet hypotheses, for comparison as matrices."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from phistar.algebra.dense import BASE_SYMBOLS, Dense
from phistar.algebra.ir import Expr, Symbol
from phistar.algebra.spaces import ONE
from phistar.algebra.symbols import SYMBOLS, symbol_entry, unfold_definitions
from phistar.model.configuration import neutral
from phistar.model.joints import JOINT_KINDS, CompoundKind
from phistar.model.model import Model
from phistar.model.random import random_model


def random_model_with(rng: np.random.Generator, needs: Iterable[str], n: int = 7) -> Model:
    """A random robot that meets hypotheses and, if it can, no others."""
    hypotheses = frozenset(needs)
    return random_model(
        rng,
        n,
        topology="serial" if "serial" in hypotheses else rng.choice(["tree", "binary", "forest"]),
        armature=0.0 if "unmotored" in hypotheses else 0.5,
        massless=0.0 if "massive" in hypotheses else 0.2,
        kinds=joint_kinds(hypotheses),
    )


def joint_kinds(needs: Iterable[str]) -> list[str]:
    """Joint kinds that move and meet hypotheses.

    A compound, such as a universal joint, is several of one axis with massless links between them.
    """
    hypotheses = frozenset(needs)
    max_axes = 1 if "one_dof" in hypotheses else 6
    names = []
    for name, kind in JOINT_KINDS.items():
        compound = issubclass(kind, CompoundKind)
        if "massive" not in hypotheses if compound else 0 < kind.nv <= max_axes:
            names.append(name)
    return names


def random_axes(
    rng: np.random.Generator, model: Model, needs: Iterable[str]
) -> list[NDArray[np.float64]]:
    """Joint maps of the bodies; perturbed, unlike any real joint, unless hypotheses forbid it."""
    axes = [body.joint_kind.motion_map() for body in model.bodies]
    if {"subalgebra", "one_dof"}.intersection(needs):
        return axes
    return [a + 0.3 * rng.normal(size=a.shape) if 1 < a.shape[1] < 6 else a for a in axes]


def random_vectors(
    rng: np.random.Generator, model: Model, exprs: Iterable[Expr]
) -> dict[str, NDArray[np.float64]]:
    """Random values for the given symbols of expressions: vectors, and X, Y, Z block by block."""
    sizes = Dense(model, neutral(model)).dimensions
    blocks = np.kron(np.eye(len(model.bodies)), np.ones((6, 6)))
    values = {}
    for name in sorted(given_names(exprs)):
        node = SYMBOLS[name].symbol
        if node.domain is ONE:
            values[name] = rng.normal(size=sizes[node.codomain])
        else:
            values[name] = blocks * rng.normal(size=blocks.shape)
    return values


def given_names(exprs: Iterable[Expr]) -> set[str]:
    """Names of the symbols that a robot does not give and nothing defines, also in definitions."""
    symbols = (node for node in unfold_definitions(exprs) if isinstance(node, Symbol))
    return {s.name for s in symbols if symbol_entry(s).definition is None} - set(BASE_SYMBOLS)


def vector_names(exprs: Iterable[Expr]) -> set[str]:
    """Names of the vectors in expressions, their symbols unfolded, without gravity."""
    return {name for name in given_names(exprs) if SYMBOLS[name].symbol.domain is ONE}

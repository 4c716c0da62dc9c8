# SPDX-License-Identifier: BSD-3-Clause
"""Random robots and values that meet hypotheses, for comparison as matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from phistar.algebra.dense import BASE_SYMBOLS, Dense
from phistar.algebra.dense_loops import LoopRows
from phistar.algebra.ir import Expr, Symbol
from phistar.algebra.spaces import ONE
from phistar.algebra.symbols import SYMBOLS, symbol_entry, unfold_definitions
from phistar.model.components import GROUND
from phistar.model.configuration import random_configuration
from phistar.model.joints import JOINT_KINDS, CompoundKind
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.spatial import exp_so3, pose


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
    rng: np.random.Generator,
    model: Model,
    exprs: Iterable[Expr],
    loops: Sequence[LoopRows] = (),
) -> dict[str, NDArray[np.float64]]:
    """Random values for the given symbols of expressions: vectors, and X, Y, Z block by block."""
    anywhere = random_configuration(model, np.random.default_rng(0))
    dense = Dense(model, anywhere, loops=loops)
    blocks = np.kron(np.eye(len(model.bodies)), np.ones((6, 6)))
    values = {}
    for name in sorted(given_names(exprs)):
        node = SYMBOLS[name].symbol
        if node.domain is ONE:
            values[name] = rng.normal(size=dense.dimension(node.codomain))
        else:
            values[name] = blocks * rng.normal(size=blocks.shape)
            if node.symmetric:
                values[name] = values[name] @ values[name].T
    return values


def random_loops(
    rng: np.random.Generator, model: Model, needs: Iterable[str]
) -> tuple[LoopRows, ...]:
    """Rows of random loops that meet hypotheses: between two links or a link and the ground, and
    unless hypotheses forbid it a coupling of two joints and redundant rows across one joint.

    A robot of fewer than three joints has none.
    """
    hypotheses = frozenset(needs)
    rates = np.repeat(np.arange(len(model.bodies)), [b.joint_kind.nv for b in model.bodies])
    if len(model.bodies) < 3:
        return ()
    loops = [_random_loop(rng, model)]
    if "uncoupled" not in hypotheses:
        loops.append(_random_coupling(rng, model, rates))
    if "independent" not in hypotheses:
        body = int(rng.choice([b.index for b in model.bodies if b.joint_kind.nv < 6]))
        count = model.bodies[body].joint_kind.nv + 1
        row = np.where(rates == body, rng.normal(size=rates.shape), 0.0)
        joints = None if "uncoupled" in hypotheses else np.outer(rng.normal(size=count), row)
        forces = rng.normal(size=(6, count))
        loops.append(LoopRows(model.bodies[body].parent, body, forces, joints))
    return tuple(loops)


def _random_loop(rng: np.random.Generator, model: Model) -> LoopRows:
    """Two rows between links, or a link and the ground, with three rates or more between them."""
    ends = [(i, j) for i in range(GROUND, len(model.bodies)) for j in range(len(model.bodies))]
    for i, j in rng.permutation(ends).tolist():
        between = set(model.ancestors(i)) ^ set(model.ancestors(j))
        if sum(model.bodies[k].joint_kind.nv for k in between) >= 3:
            placed = pose(exp_so3(rng.normal(size=3)), rng.normal(size=3))
            return LoopRows(i, j, rng.normal(size=(6, 2)), successor_pose=placed)
    raise AssertionError("three bodies with joints have three rates between some of them")


def _random_coupling(rng: np.random.Generator, model: Model, rates: NDArray[np.int64]) -> LoopRows:
    """One row on a rate of a joint and on one of the joint next to it."""
    row = np.zeros((1, len(rates)))
    body = int(rng.integers(1, len(model.bodies)))
    for k in (body, max(model.bodies[body].parent, 0)):
        row[0, rng.choice(np.flatnonzero(rates == k))] = rng.normal() + 2.0
    return LoopRows(GROUND, GROUND, np.zeros((6, 1)), row)


def given_names(exprs: Iterable[Expr]) -> set[str]:
    """Names of the symbols that a robot does not give and nothing defines, also in definitions."""
    symbols = (node for node in unfold_definitions(exprs) if isinstance(node, Symbol))
    return {s.name for s in symbols if symbol_entry(s).definition is None} - set(BASE_SYMBOLS)


def vector_names(exprs: Iterable[Expr]) -> set[str]:
    """Names of the vectors in expressions, their symbols unfolded, without gravity."""
    return {name for name in given_names(exprs) if SYMBOLS[name].symbol.domain is ONE}

# SPDX-License-Identifier: BSD-3-Clause
"""Whole matrices over the joints: block recursions once, then walks along ancestor paths.

A word H φ S H* with a block-diagonal S holds a block for every link k and every ancestor j of k (k
itself included): H(j) φ(j,k) S(k) H*(k). It costs one S(k) H*(k) per link and one shift per
ancestor, O(n·depth) in all. Its adjoint H S φ* H* is the transpose, H S H* the diagonal.
Expressions that are sums of such words, after φ M φ* is split by the composite inertia, are
computed this way.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.algebra.identities import DECOMPOSITIONS, DEFINITIONS, with_adjoints
from phistar.algebra.ir import Expr
from phistar.algebra.rewrite import Rewriter
from phistar.algebra.spaces import JOINT
from phistar.algebra.symbols import A, H, M, P, composite, phi
from phistar.algebra.words import Word
from phistar.errors import LoweringError
from phistar.model.configuration import configuration
from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.sweeps.interpret import Machine
from phistar.sweeps.ir import Program
from phistar.sweeps.lower import start_block
from phistar.sweeps.schedule import Schedule, schedule

Array = NDArray[Any]

_SPLITS = tuple(row for row in DECOMPOSITIONS if row.name == "composite_split")
_INERTIAS = (M, P, composite)


@dataclass(frozen=True)
class Walk:
    """One word of the matrix.

    Attributes:
        coefficient: Its factor.
        start: Stream of S(k) H*(k), a block per link; None for the rotor inertias.
        part: ``"lower"`` (ancestor rows), ``"upper"`` (their transposes) or ``"diagonal"``.
    """

    coefficient: Fraction
    start: int | None
    part: str


@dataclass(frozen=True)
class MatrixProgram:
    """The recursions that a matrix needs, and its words."""

    schedule: Schedule
    walks: tuple[Walk, ...]


def lower_matrix(expr: Expr) -> MatrixProgram:
    """The program of a JOINT x JOINT operator.

    Raises:
        LoweringError: A word is not of the forms above; compute such a matrix column by column.
    """
    if expr.codomain is not JOINT or expr.domain is not JOINT:
        raise LoweringError(f"{expr} is not a matrix over the joints")
    words = Rewriter(with_adjoints((*_SPLITS, *DEFINITIONS))).normal_form(expr)
    program = Program()
    walks = tuple(_walk(program, word, factor) for word, factor in words.terms.items())
    program.outputs = {str(w.start): w.start for w in walks if w.start is not None}
    return MatrixProgram(schedule(program), walks)


def _walk(program: Program, word: Word, factor: Fraction) -> Walk:
    if word == (A,):
        return Walk(factor, None, "diagonal")
    for inertia in _INERTIAS:
        forms = {
            (H, phi, inertia, H.T): "lower",
            (H, inertia, phi.T, H.T): "upper",
            (H, inertia, H.T): "diagonal",
        }
        if word in forms:
            return Walk(factor, start_block(program, inertia), forms[word])
    shown = " ".join(repr(atom) for atom in word)
    raise LoweringError(f"the word {shown} has no form as walks along ancestor paths")


def run_matrix(program: MatrixProgram, model: Model, q: ArrayLike) -> Array:
    """The matrix (..., joints, joints), joints in body order.

    Args:
        program: What to compute.
        model: The robot.
        q: (..., nq).
    """
    q = configuration(model, q)
    machine = Machine(program.schedule, model, q, {})
    machine.run()
    size = machine.slices[-1].stop if machine.slices else 0
    result = np.zeros((*q.shape[:-1], size, size), dtype=q.dtype)
    for walk in program.walks:
        _add(result, walk, machine)
    return result


def _add(result: Array, walk: Walk, machine: Machine) -> None:
    factor = float(walk.coefficient)
    for k, columns in enumerate(machine.slices):
        if walk.start is None:
            result[..., columns, columns] += factor * np.diag(machine.armature(k))
            continue
        block = machine.value(walk.start, k)
        j = k
        while True:
            rows = machine.slices[j]
            entry = factor * (machine.H[j] @ block)
            if walk.part == "upper":
                result[..., columns, rows] += np.swapaxes(entry, -1, -2)
            else:
                result[..., rows, columns] += entry
            parent = machine.parents[j]
            if walk.part == "diagonal" or parent == GROUND:
                break
            block = machine.phi[j] @ block
            j = parent

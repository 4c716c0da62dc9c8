# SPDX-License-Identifier: BSD-3-Clause
"""A user's own operator expression, compiled for a robot: applied, or its matrix in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.algebra.ir import Expr
from phistar.algebra.proof import vector_names
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE, TASK_FORCE, TASK_MOTION, Space
from phistar.algebra.symbols import SYMBOLS, D, E_psi, G, K, P, Upsilon, psi
from phistar.algebra.traverse import nodes
from phistar.arguments import refuse_mimic, refuse_nan, refuse_singular
from phistar.compile import (
    ARGUMENTS,
    Block,
    Col,
    Diag,
    Full,
    Request,
    Row,
    compile_outputs,
    factored,
    joint_map,
    matrix,
    pick_off,
)
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model.configuration import Coordinates, batch_shape, configuration
from phistar.model.model import Model

Array = NDArray[Any]

_ARTICULATED = frozenset({P, D, G, K, E_psi, psi, Upsilon})
"""Symbols that exist only where every joint moves some inertia."""


class Function:
    """An operator or vector expression for one robot.

    A vector expression is called with its inputs by name, ``f(q, tau=..., v=...)``. An operator is
    applied, ``f(q, x)``, which costs O(n). Its matrix is given whole, ``f(q)``, in O(n·depth) or
    O(n²), or in parts: ``diagonal``, ``block``, ``row``, ``column``, mostly in O(n). Shapes of
    vectors: JOINT (..., nv), MOTION and FORCE (..., bodies * 6) in link axes, frames
    (..., frames * 6) in their own axes at their own origins; all [angular; linear].

    Rows and columns of blocks go by name: a joint's in JOINT, that of the joint that carries the
    body in MOTION and FORCE, a frame's where B stands.
    """

    def __init__(self, model: Model, expr: Expr, frames: Sequence[str] = ()) -> None:
        self.model = model
        self.expr = expr
        self.frames = tuple(frames)
        for name in frames:
            model.frame(name)
        self._joints = joint_map(model)
        if _ARTICULATED & set(nodes([factored(expr)])):
            refuse_singular(model)
        refuse_mimic(model)
        self.is_vector = expr.domain is ONE
        output = expr if self.is_vector else expr @ self._argument()
        self.kernel = compile_outputs("function", (("out", output),), simplify=True)
        self.inputs = tuple(sorted(vector_names([output]) - {self._argument_name()}))

    def _argument(self) -> Expr:
        if self.expr.domain not in ARGUMENTS:
            raise ArgumentError(
                f"{self.expr} takes {self.expr.domain.reads}, which is not supported"
            )
        return ARGUMENTS[self.expr.domain]

    def _argument_name(self) -> str:
        return "" if self.is_vector else ARGUMENTS[self.expr.domain].name

    def size(self, space: Space) -> int:
        """Length of the vectors of a space for this robot."""
        links, frames = 6 * len(self.model.bodies), 6 * len(self.frames)
        sizes = {JOINT: self.model.nv, MOTION: links, FORCE: links}
        return {**sizes, TASK_MOTION: frames, TASK_FORCE: frames}[space]

    def __call__(self, q: Coordinates, x: ArrayLike | None = None, **inputs: ArrayLike) -> Array:
        """Apply to ``x``, make dense (no ``x``), or evaluate with inputs by name.

        Args:
            q: (..., nq).
            x: (..., n) vector of the operator's domain.
            inputs: The vectors that the expression names.

        Returns:
            (..., m), or (..., m, n) for a dense operator.
        """
        if x is None and not self.is_vector:
            whole = self._matrix(Full(), q, inputs)
            return self._ordered(self._ordered(whole, self.expr.domain, -1), self.expr.codomain, -2)
        given = self._given(inputs)
        if x is not None and not self.is_vector:
            given = {**given, self._argument_name(): self._read("", x)}
        return self._run(self._configuration(q, given), given)

    def diagonal(self, q: Coordinates, **inputs: ArrayLike) -> Array:
        """The diagonal of an operator's matrix (..., n), number by number, in O(n) where possible.

        Args:
            q: (..., nq).
            inputs: The vectors that the expression names.
        """
        spaces = (self.expr.codomain, self.expr.codomain.dual)
        if not self.is_vector and self.expr.domain not in spaces:
            ways = f"{self.expr.domain.reads} to {self.expr.codomain.reads}"
            raise ArgumentError(f"{self.expr} maps {ways}, so it has no diagonal")
        blocks = self._matrix(Diag(), q, inputs)
        rows = [np.diagonal(block, axis1=-2, axis2=-1) for block in blocks]
        nothing = np.zeros((*configuration(self.model, q).shape[:-1], 0))
        joined = np.concatenate(rows, axis=-1) if rows else nothing
        return self._ordered(joined, self.expr.domain, -1)

    def block(self, q: Coordinates, row: str, column: str, **inputs: ArrayLike) -> Array:
        """A block of an operator's matrix (..., r, c), by names of joints or frames.

        Args:
            q: (..., nq).
            row, column: Which block; its sizes are degrees of freedom of joints, else 6.
            inputs: The vectors that the expression names.
        """
        rows, columns = self._find(row, self.expr.codomain), self._find(column, self.expr.domain)
        return np.asarray(self._matrix(Block(rows, columns), q, inputs))

    def row(self, q: Coordinates, name: str, **inputs: ArrayLike) -> Array:
        """A joint's or frame's rows of an operator's matrix (..., r, n), in O(n)."""
        found = self._matrix(Row(self._find(name, self.expr.codomain)), q, inputs)
        return self._ordered(found, self.expr.domain, -1)

    def column(self, q: Coordinates, name: str, **inputs: ArrayLike) -> Array:
        """A joint's or frame's columns of an operator's matrix (..., m, c), in O(n)."""
        found = self._matrix(Col(self._find(name, self.expr.domain)), q, inputs)
        return self._ordered(found, self.expr.codomain, -2)

    def _matrix(self, request: Request, q: Coordinates, inputs: Mapping[str, ArrayLike]) -> Any:
        self._refuse_vector()
        given = self._given(inputs)
        q = self._configuration(q, given)
        return matrix(self.expr, request, self.model, q, self._streams(given), self.frames)

    def _configuration(self, q: Coordinates, given: Mapping[str, Array]) -> Array:
        """q, finite, with batch axes that fit those of the vectors."""
        q = configuration(self.model, q)
        refuse_nan("q", q)
        own = self._argument_name()
        batch_shape(self.model, {"q": q, **{"x" if n == own else n: x for n, x in given.items()}})
        return q

    def _refuse_vector(self) -> None:
        if self.is_vector:
            raise ArgumentError(
                f"{self.expr} is a vector, which has no matrix; call the function with its inputs"
            )

    def _find(self, name: str, space: Space) -> tuple[int, ...]:
        """Numbers of the blocks that a name stands for; a compound joint has several."""
        self._refuse_vector()
        if space in (TASK_FORCE, TASK_MOTION):
            if name not in self.frames:
                raise UnknownNameError("frame", name, self.frames, "this function")
            return (self.frames.index(name),)
        found = tuple(body.index for body in self.model.bodies if body.joint == name)
        if not found:
            owner = f"'{self.model.name}'"
            raise UnknownNameError("moving joint", name, self.model.joint_names, owner)
        return found

    def _ordered(self, array: Array, space: Space, axis: int) -> Array:
        """An axis over the joints of bodies in the order of the robot's coordinates."""
        if space is not JOINT:
            return array
        return np.moveaxis(self._joints.gather(np.moveaxis(array, axis, -1)), -1, axis)

    def _given(self, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        given = {name: self._read(name, value) for name, value in inputs.items()}
        missing = [name for name in self.inputs if name not in given and name != "gravity"]
        if missing:
            raise ArgumentError(f"{self.expr} needs a value for {', '.join(missing)}")
        return given

    @property
    def sweeps(self) -> str:
        """The compiled passes as text."""
        return self.kernel.sweeps

    def _read(self, name: str, value: ArrayLike) -> Array:
        space = SYMBOLS[name].symbol.codomain if name in SYMBOLS else self.expr.domain
        array = np.asarray(value)
        size = self.size(space)
        if array.ndim == 0 or array.shape[-1] != size:
            owner = f"{space.reads} of robot '{self.model.name}'"
            raise ShapeError(name or "x", array.shape, f"(..., {size})", owner)
        refuse_nan(name or "x", array)
        return array

    def _streams(self, flat: Mapping[str, Array]) -> dict[str, Array]:
        """Flat vectors as the sweeps take them."""
        return {
            name: self._joints.spread(array)
            if SYMBOLS[name].symbol.codomain is JOINT
            else array.reshape(*array.shape[:-1], -1, 6)
            for name, array in flat.items()
        }

    def _run(self, q: Array, flat: Mapping[str, Array]) -> Array:
        result = self.kernel(self.model, q, self._streams(flat), self.frames)["out"]
        if self.expr.codomain is JOINT:
            result = self._joints.gather(result)
        else:
            if self.expr.codomain is TASK_MOTION:
                result = pick_off(self.model, self.frames, result)
            result = result.reshape(*result.shape[:-2], -1)
        # A vector that cancels is not read, but its batch counts all the same.
        batch = np.broadcast_shapes(q.shape[:-1], *(x.shape[:-1] for x in flat.values()))
        if result.shape[:-1] == batch:
            return result
        return np.broadcast_to(result, (*batch, result.shape[-1])).copy()

# SPDX-License-Identifier: BSD-3-Clause
"""A user's own operator expression, compiled for a robot: applied in O(n), or looked at densely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.algebra.ir import Expr
from phistar.algebra.proof import vector_names
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE, TASK_FORCE, TASK_MOTION, Space
from phistar.algebra.symbols import (
    SYMBOLS,
    D,
    E_psi,
    G,
    K,
    P,
    Upsilon,
    mass_matrix,
    psi,
    vector,
)
from phistar.algebra.traverse import nodes, substitute
from phistar.algorithms.innovations import mass_matrix_inverse
from phistar.compile import compile_outputs, joint_map
from phistar.errors import ArgumentError, ShapeError, SingularHingeError
from phistar.model.configuration import Coordinates, configuration
from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.model.singular import singular_hinges
from phistar.spatial import motion_transform, pose_inverse

Array = NDArray[Any]

_ARGUMENT = {
    space: vector(f"argument_{space.name.lower()}", space, "x", "what a user's operator acts on")
    for space in (JOINT, MOTION, FORCE, TASK_FORCE)
}

_ARTICULATED = frozenset({P, D, G, K, E_psi, psi, Upsilon})
"""Symbols that exist only where every joint moves some inertia."""


class Function:
    """An operator or vector expression for one robot.

    A vector expression is called with its inputs by name, ``f(q, tau=..., v=...)``. An operator is
    applied, ``f(q, x)``, which costs O(n), or made dense, ``f(q)``. Shapes of vectors: JOINT
    (..., nv), MOTION and FORCE (..., bodies * 6) in link axes, frames (..., frames * 6) in
    their own axes at their own origins; all [angular; linear].
    """

    def __init__(self, model: Model, expr: Expr, frames: Sequence[str] = ()) -> None:
        self.model = model
        self.expr = expr
        self.frames = tuple(frames)
        for name in frames:
            model.frame(name)
        self._joints = joint_map(model)
        factored = substitute(expr, {mass_matrix.inv: mass_matrix_inverse.result})
        if _ARTICULATED & set(nodes([factored])) and (hinges := singular_hinges(model)):
            raise SingularHingeError(hinges)
        self._refuse_mimic()
        self.is_vector = expr.domain is ONE
        output = factored if self.is_vector else factored @ self._argument()
        self.kernel = compile_outputs("function", (("out", output),))
        self.inputs = tuple(sorted(vector_names([output]) - {self._argument_name()}))

    def _refuse_mimic(self) -> None:
        if not self._joints.one_to_one:
            raise ArgumentError(
                f"robot '{self.model.name}' has reduced mimic joints, which operators over single "
                "joints do not know; load it with mimic='independent'"
            )

    def _argument(self) -> Expr:
        if self.expr.domain not in _ARGUMENT:
            raise ArgumentError(
                f"{self.expr} takes {self.expr.domain.reads}, which is not supported"
            )
        return _ARGUMENT[self.expr.domain]

    def _argument_name(self) -> str:
        return "" if self.is_vector else f"argument_{self.expr.domain.name.lower()}"

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
        q = configuration(self.model, q)
        given = {name: self._read(name, value) for name, value in inputs.items()}
        missing = [name for name in self.inputs if name not in given and name != "gravity"]
        if missing:
            raise ArgumentError(f"{self.expr} needs a value for {', '.join(missing)}")
        if self.is_vector:
            return self._run(q, given)
        if x is not None:
            return self._run(q, {**given, self._argument_name(): self._read("", x)})
        units = np.eye(self.size(self.expr.domain), dtype=q.dtype)
        batch = {name: value[..., None, :] for name, value in given.items()}
        columns = self._run(q[..., None, :], {**batch, self._argument_name(): units})
        return np.swapaxes(columns, -1, -2)

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
        if not np.isfinite(array).all():
            raise ArgumentError(f"{name or 'x'} is not finite")
        return array

    def _run(self, q: Array, flat: Mapping[str, Array]) -> Array:
        values = {}
        for name, array in flat.items():
            space = SYMBOLS[name].symbol.codomain
            values[name] = (
                self._joints.spread(array)
                if space is JOINT
                else array.reshape(*array.shape[:-1], -1, 6)
            )
        result = self.kernel(self.model, q, values, self.frames)["out"]
        if self.expr.codomain is JOINT:
            return self._joints.gather(result)
        if self.expr.codomain is TASK_MOTION:
            result = self._pick_off(result)
        return result.reshape(*result.shape[:-2], -1)

    def _pick_off(self, motions: Array) -> Array:
        """Motions of the frames, in their own axes, out of those of the links."""
        rows = []
        for name in self.frames:
            frame = self.model.frame(name)
            if frame.body == GROUND:
                rows.append(np.zeros_like(motions[..., 0, :]))
            else:
                carry = motion_transform(pose_inverse(frame.body_pose))
                rows.append((carry @ motions[..., frame.body, :, None])[..., 0])
        return np.stack(rows, axis=-2)

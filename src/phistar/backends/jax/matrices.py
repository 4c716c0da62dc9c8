# SPDX-License-Identifier: BSD-3-Clause
"""Matrices and bundles as pure functions: operators mapped over unit columns.

What does not depend on the column is computed once: JAX maps only what reads one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phistar.algebra.spaces import JOINT, TASK_FORCE, TASK_MOTION
from phistar.arrays import Array
from phistar.backends.jax.links import DepthTables
from phistar.backends.jax.package import jax
from phistar.backends.jax.streams import StreamFunction
from phistar.backends.robot_programs import BundleProgram
from phistar.model.frame_motions import frame_motions
from phistar.model.model import Model
from phistar.sweeps.column_support import BlockPartition
from phistar.sweeps.matrix_requests import MatrixForm


def columns_form(forms: Sequence[MatrixForm]) -> MatrixForm | None:
    """The form that is an operator applied to unit columns, if there is one."""
    found = [form for form in forms if form.name == "columns"]
    return min(found, key=lambda form: form.transposed, default=None)


class MatrixFunction:
    """All of an operator's matrix, joints in body order."""

    def __init__(self, form: MatrixForm, model: Model, frames: tuple[str, ...]) -> None:
        tables = DepthTables(model, frames, frozenset())
        self._apply = StreamFunction(form.schedule, tables)
        self._form, self._model, self._frames = form, model, frames
        size = sum(BlockPartition.of(form.domain, model, frames).sizes)
        count = len(frames) if form.domain is TASK_FORCE else len(model.bodies)
        shape = (size,) if form.domain is JOINT else (count, 6)
        self._units = np.eye(size).reshape(size, *shape)

    def __call__(self, q: Array, inputs: Mapping[str, Array]) -> Array:
        """(rows, columns), at one configuration."""
        units = jax().numpy.asarray(self._units.astype(q.dtype))
        columns = jax().vmap(lambda x: self._column(q, inputs, x))(units)
        found: Array = columns if self._form.transposed else columns.T
        return found

    def _column(self, q: Array, inputs: Mapping[str, Array], x: Array) -> Array:
        found = self._apply(q, {**inputs, self._form.argument: x})
        ((value,),) = (found.values(),)
        if self._form.codomain is TASK_MOTION:
            value = frame_motions(self._model, self._frames, value)
        return value.reshape(-1)


class BundleFunction:
    """Vectors and matrices of a bundle."""

    def __init__(self, program: BundleProgram) -> None:
        bundle, model = program.bundle, program.model
        self._vectors = StreamFunction(bundle.vectors, DepthTables(model, (), frozenset()))
        self._matrices = {}
        for name, forms in bundle.matrices.items():
            form = columns_form(forms)
            assert form is not None, name
            self._matrices[name] = MatrixFunction(form, model, ())
        self._bundle = bundle

    def __call__(self, q: Array, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """By name, at one configuration."""
        found = self._vectors(q, inputs)
        matrices = {name: each(q, inputs) for name, each in self._matrices.items()}
        for name, (left, right) in self._bundle.products.items():
            matrices[name] = -(matrices[left] @ matrices[right])
        return {**found, **{name: matrices[name] for name in self._bundle.outputs}}

# SPDX-License-Identifier: BSD-3-Clause
"""Parallel schedules in NumPy: each round is a few calls for all of its links and samples.

No loop goes over links: a chain of N links takes about log₂ N rounds, whatever N is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array, DType
from phistar.backends.base import SweptExecutable, inputs_read, require_inputs
from phistar.backends.batch_axes import as_inexact, cast_to_precision, real_dtype
from phistar.backends.numpy_links import LinkTables, link_transforms
from phistar.backends.robot_programs import VectorProgram
from phistar.errors import ArgumentError
from phistar.model.configuration import normalized_configuration
from phistar.model.model import Model
from phistar.sweeps.ir import Type
from phistar.sweeps.op_costs import OperationCount
from phistar.sweeps.parallel.array_ops import NUMPY_OPS
from phistar.sweeps.parallel.execute import run_stages
from phistar.sweeps.parallel.join_tree import JoinTree
from phistar.sweeps.parallel.link_fields import AllLinkNumbers, LinkFields
from phistar.sweeps.parallel.parallel_costs import count_parallel
from phistar.sweeps.parallel.printing import to_text
from phistar.sweeps.parallel.robot_tree import parallel_tree
from phistar.thresholds import POLICY


class NumpyRounds(SweptExecutable):
    """A parallel program for one robot: its segments and numbers, run by ``sweeps.parallel``.

    Attributes:
        rounds: The program.
        tree: The segments of the robot's links.
    """

    def __init__(self, vectors: VectorProgram, tree: JoinTree | None = None) -> None:
        super().__init__(vectors)
        self.tree = parallel_tree(vectors.model) if tree is None else tree
        assert vectors.parallel is not None
        self.rounds = vectors.parallel
        program = vectors.schedule.program
        nodes = (program.nodes[stream] for stream in program.live())
        self._leaves = {n.data: n for n in nodes if n.spec.is_input}
        self._output_types = {name: program.nodes[s].type for name, s in program.outputs.items()}
        given = (vectors.model, tuple(vectors.frames), vectors.locked)
        self._constants = lru_cache(maxsize=4)(partial(_constants_in_rounds, self.tree, *given))

    @property
    def source(self) -> str:
        """The program as text; its rounds are data."""
        return to_text(self.rounds)

    @property
    def cost(self) -> OperationCount:
        """See ``base.Executable``: with ``span``, the operations on the longest path."""
        return count_parallel(self.rounds, self.model, self.tree)

    def results(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """See ``SweptExecutable``."""
        require_inputs(inputs_read(self.schedule.program), inputs)
        names = [name for name in self._leaves if name in inputs]
        tails = [1, *(1 if self._leaves[name].type is Type.JOINT else 2 for name in names)]
        arrays = [
            normalized_configuration(self.model, q),
            *(as_inexact(inputs[name]) for name in names),
        ]
        real = real_dtype(arrays)
        if real == np.float16:
            raise ArgumentError(
                "parallel schedules join inertias of many links, which float16 does not hold: "
                "give float32 or float64"
            )
        shapes = [x.shape[: x.ndim - tail] for x, tail in zip(arrays, tails, strict=True)]
        shape = np.broadcast_shapes(*shapes)
        flat = [
            _samples_first(cast_to_precision(x, real), tail, shape)
            for x, tail in zip(arrays, tails, strict=True)
        ]
        count = math.prod(shape)
        step = max(1, POLICY.numpy_link_samples // max(1, len(self.model.bodies)))
        found: dict[str, list[Array]] = {}
        for start in range(0, max(count, 1), step):
            part = [x if len(x) == 1 else x[start : start + step] for x in flat]
            wanted = min(step, count - start)
            for name, value in self._run(real, names, part, wanted).items():
                found.setdefault(name, []).append(value)
        return {
            name: np.concatenate(parts).reshape(shape + parts[0].shape[1:])
            for name, parts in found.items()
        }

    def _run(
        self, real: DType, names: list[str], arrays: list[Array], count: int
    ) -> dict[str, Array]:
        """Results (samples, ...) of arrays (samples or 1, ...)."""
        tables, numbers = self._constants(real)
        R, p = link_transforms(tables, np.moveaxis(arrays[0], 0, -1))
        tree = self.tree
        R = np.ascontiguousarray(np.moveaxis(R[tree.order], 0, 2))
        p = np.ascontiguousarray(p[tree.order].swapaxes(0, 1))
        fields = LinkFields(NUMPY_OPS, numbers, R, p)
        given = {}
        for name, x in zip(names, arrays[1:], strict=True):
            inner = np.moveaxis(x, 0, -1)
            node = self._leaves[name]
            is_links = node.op != "scatter" and node.type is not Type.JOINT
            given[name] = np.ascontiguousarray(inner.swapaxes(0, 1) if is_links else inner)
        with np.errstate(all="ignore"):
            results = run_stages(self.rounds, tree, fields, given)
        return {name: self._outer(name, x, count) for name, x in results.items()}

    def _outer(self, name: str, x: Array, count: int) -> Array:
        """(components, links, samples) and the like -> (samples, ...)."""
        kind = self._output_types[name]
        first = np.moveaxis(x, -1, 0)
        if kind is Type.TOTAL:
            first = first[:, 0]
        elif kind.output_axes == 2:
            first = first.swapaxes(1, 2)
        return np.broadcast_to(first, (count, *first.shape[1:]))


def _constants_in_rounds(
    tree: JoinTree, model: Model, frames: tuple[str, ...], locked: Set[int], precision: DType
) -> tuple[LinkTables, AllLinkNumbers]:
    """What places the links, and their numbers in the order of their rounds."""
    numbers = AllLinkNumbers.of(model, frames, locked, precision).renumbered(tree.order)
    return LinkTables(model, frames, locked, precision), numbers


def _samples_first(x: Array, tail: int, shape: tuple[int, ...]) -> Array:
    """(*own batch, *tail) -> (samples, *tail), one sample if it does not vary."""
    own, rest = x.shape[: x.ndim - tail], x.shape[x.ndim - tail :]
    if math.prod(own) == 1 and math.prod(shape) != 0:
        return x.reshape(1, *rest)
    return np.broadcast_to(x, shape + rest).reshape(math.prod(shape), *rest)

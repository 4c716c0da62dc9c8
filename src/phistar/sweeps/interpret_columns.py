# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program on unit columns in NumPy: at each link only the columns that its support holds.

Columns are a batch axis before the last: a column stream is (..., columns, size), every other value
has one column there, so that the interpreter's operations serve both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.model.model import Model
from phistar.spatial import force_transform
from phistar.sweeps.column_support import BlockPartition, ColumnSupport, set_bits
from phistar.sweeps.interpret import Interpreter
from phistar.sweeps.ir import Direction, Node, Type
from phistar.sweeps.ops import Support

Index = Array | slice
"""What picks columns of an array."""


def as_index(positions: Array) -> Index:
    """Positions; those that follow one another as a slice, with which NumPy adds faster."""
    if not len(positions) or (positions[1:] - positions[:-1] != 1).any():
        return positions
    return slice(int(positions[0]), int(positions[-1]) + 1)


class ColumnInterpreter(Interpreter):
    """Values of all needed columns of all streams at all links."""

    def __init__(
        self,
        support: ColumnSupport,
        model: Model,
        q: Array,
        inputs: Mapping[str, ArrayLike],
        frames: Sequence[str],
        blocks: BlockPartition,
    ) -> None:
        """Set up.

        Args:
            support: What to compute.
            model: The robot.
            q: (..., nq).
            inputs: As for ``sweeps.interpret.run``; the unit columns are not among them.
            frames: Names of the frames that B selects.
            blocks: The blocks of columns.
        """
        nodes = support.program.nodes
        types = {n.data: n.type for n in nodes if n.spec.is_input}
        lifted = {
            name: np.expand_dims(np.asarray(value), -2 if types[name] is Type.JOINT else -3)
            for name, value in inputs.items()
            if name in types
        }
        super().__init__(support.schedule, model, q[..., None, :], lifted, frames)
        self.support = support
        self.blocks = blocks
        self._columns: dict[int, Array] = {}
        self._positions: dict[tuple[int, int], Index] = {}

    def run(self) -> None:
        """Walk all passes, where there is something to do."""
        needed = self.support.needed
        for stream, k in self.support.execution_order():
            if needed[stream][k]:
                self.execute(stream, k)

    def columns(self, chosen: int) -> Array:
        """The numbers of the columns of a set of blocks, in order."""
        if chosen not in self._columns:
            ends = np.cumsum([0, *self.blocks.sizes])
            parts = [np.arange(ends[b], ends[b + 1]) for b in set_bits(chosen)]
            self._columns[chosen] = np.concatenate([np.zeros(0, dtype=int), *parts])
        return self._columns[chosen]

    def column_positions(self, held: int, chosen: int) -> Index:
        """Where the columns of ``chosen`` are among those of ``held``."""
        key = (held, chosen)
        if key not in self._positions:
            found = np.searchsorted(self.columns(held), self.columns(chosen))
            self._positions[key] = as_index(found)
        return self._positions[key]

    def columns_at(self, stream: int, k: int, chosen: int) -> Array:
        """Some columns of a stream at a link."""
        value = self.value(stream, k)
        held = self.support.needed[stream][k]
        return value if held == chosen else value[..., self.column_positions(held, chosen), :]

    def execute(self, stream: int, k: int) -> None:
        """Compute the needed columns of a stream at a link."""
        if stream not in self.support.column_streams:
            super().execute(stream, k)
            return
        node = self.program.nodes[stream]
        chosen = self.support.needed[stream][k]
        if node.spec.is_input:
            value = self._unit(node, k, chosen)
        elif node.op == "rec":
            value = self.columns_at(self.program.definitions[stream], k, chosen)
        elif node.spec.support is Support.UNION:
            value = self._merge(self._terms(node, k, chosen), chosen)
        else:
            operands = [
                self.columns_at(o, k, chosen)
                if o in self.support.column_streams
                else self.value(o, k)
                for o in node.operands
            ]
            value = self.local(node, k, operands)
        self.values[stream, k] = value

    def _unit(self, node: Node, k: int, chosen: int) -> Array:
        if node.op == "leaf":
            return np.eye(len(self.links[k].H) if node.type is Type.JOINT else 6)
        frames = [self.frames[block] for block in set_bits(chosen)]
        return np.concatenate([force_transform(frame.body_pose).T for frame in frames])

    def _terms(self, node: Node, k: int, chosen: int) -> list[tuple[int, Array]]:
        """Columns that a statement adds up, each with its set."""
        present = self.support.present
        terms: list[tuple[int, Array]] = []
        for position, operand in enumerate(node.operands):
            for link in self.support.source_links(node, k):
                own = chosen & present[operand][link]
                if node.op == "select" and position == 1:
                    own &= ~present[node.operands[0]][k]
                if not own:
                    continue
                value = self.columns_at(operand, link, own)
                if node.spec.shift is not None:
                    child = link if node.spec.shift is Direction.INWARD else k
                    value = node.spec.evaluate(self.links[child], value)
                elif node.op == "sum":
                    value = float(node.data[position]) * value
                terms.append((own, value))
        return terms

    def _merge(self, terms: list[tuple[int, Array]], chosen: int) -> Array:
        """The sum of columns that belong to different sets."""
        if all(own == chosen for own, _ in terms):
            total = terms[0][1]
            for _, value in terms[1:]:
                total = total + value
            return total
        batch = np.broadcast_shapes(*(value.shape[:-2] for _, value in terms))
        shape = (*batch, len(self.columns(chosen)), terms[0][1].shape[-1])
        merged = np.zeros(shape, dtype=np.result_type(*(value for _, value in terms)))
        for own, value in terms:
            merged[..., self.column_positions(chosen, own), :] += value
        return merged

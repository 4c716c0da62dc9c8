# SPDX-License-Identifier: BSD-3-Clause
"""Streams: one value per link, each defined by one statement over other streams.

The operations are the rows of ``sweeps.ops``. A recursion is a cycle through a shift; nothing else
is special about it. A program is a table of hash-consed nodes: sharing is by construction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from phistar.sweeps.ops import OPS, Op
from phistar.sweeps.stream_types import Direction, Type


@dataclass(frozen=True)
class Node:
    """A statement: an operation on streams, given by their numbers.

    Attributes:
        op: Name of the operation.
        operands: Numbers of streams.
        type: What it holds.
        data: Name of a leaf or recursion, or the coefficients of a sum.
    """

    op: str
    operands: tuple[int, ...]
    type: Type
    data: Any = None

    @cached_property
    def spec(self) -> Op:
        """What is known of the operation."""
        return OPS[self.op]


@dataclass
class StreamProgram:
    """A table of streams and the outputs among them.

    Attributes:
        nodes: Every statement; streams are numbered by their place.
        definitions: For each ``rec``, the stream that defines it.
        names: Names of streams, for people.
        outputs: Wanted streams by name.
    """

    nodes: list[Node] = field(default_factory=list)
    definitions: dict[int, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    _table: dict[Node, int] = field(default_factory=dict, repr=False)

    def add(self, op: str, operands: tuple[int, ...], type: Type, data: object = None) -> int:
        """The stream of a statement; the same one for the same statement."""
        node = Node(op, operands, type, data)
        if node not in self._table:
            self._table[node] = len(self.nodes)
            self.nodes.append(node)
        return self._table[node]

    def apply(self, op: str, *operands: int, type: Type | None = None) -> int:
        """The stream of an operation; the type is needed where operands leave a choice."""
        types = tuple(self.nodes[each].type for each in operands)
        return self.add(op, operands, OPS[op].result(types) if type is None else type)

    def leaf(self, name: str, type: Type) -> int:
        """A stream given from outside."""
        stream = self.add("leaf", (), type, name)
        self.names.setdefault(stream, name)
        return stream

    def recursion(self, key: object, type: Type) -> int:
        """A stream to be defined by ``define``; one per key."""
        return self.add("rec", (), type, key)

    def define(self, recursion: int, stream: int) -> None:
        """Close a recursion."""
        self.definitions[recursion] = stream

    def sum(self, terms: list[tuple[Fraction, int]]) -> int:
        """A linear combination: flat, without zeros, equal linear heads collected."""
        flat = self._collect(self._flatten(terms))
        type = self.nodes[terms[0][1]].type
        if not flat:
            return self.add("zero", (), type)
        if len(flat) == 1 and flat[0][0] == 1:
            return flat[0][1]
        streams = tuple(stream for _, stream in flat)
        return self.add("sum", streams, type, tuple(factor for factor, _ in flat))

    def _flatten(self, terms: list[tuple[Fraction, int]]) -> dict[int, Fraction]:
        total: dict[int, Fraction] = {}
        for factor, stream in terms:
            node = self.nodes[stream]
            if node.op == "sum":
                inner = list(zip(node.data, node.operands, strict=True))
            else:
                inner = [(Fraction(1), stream)]
            for coefficient, part in inner:
                total[part] = total.get(part, Fraction(0)) + factor * coefficient
        return {stream: factor for stream, factor in total.items() if factor}

    def _collect(self, terms: dict[int, Fraction]) -> list[tuple[Fraction, int]]:
        """A x + A y -> A (x + y) for operations that are linear in their last operand."""
        heads: dict[tuple[str, tuple[int, ...], Type], list[tuple[Fraction, int]]] = {}
        for stream, factor in terms.items():
            node = self.nodes[stream]
            head = (node.op, node.operands[:-1]) if node.spec.linear else ("", (stream,))
            heads.setdefault((*head, node.type), []).append((factor, stream))
        result: list[tuple[Fraction, int]] = []
        for (op, operators, type), members in heads.items():
            if len(members) == 1:
                result += members
                continue
            inner = self.sum([(c, self.nodes[s].operands[-1]) for c, s in members])
            result.append((Fraction(1), self.add(op, (*operators, inner), type)))
        return result

    def operands(self, stream: int) -> tuple[int, ...]:
        """The streams a stream depends on, the definition of a recursion included."""
        node = self.nodes[stream]
        return (self.definitions[stream],) if node.op == "rec" else node.operands

    def live(self) -> Iterator[int]:
        """The streams that the outputs depend on, in the order of their numbers."""
        seen: set[int] = set()
        stack = list(self.outputs.values())
        while stack:
            stream = stack.pop()
            if stream not in seen:
                seen.add(stream)
                stack.extend(self.operands(stream))
        return iter(sorted(seen))

    @property
    def recursions(self) -> list[int]:
        """The recursions that the outputs depend on."""
        return [stream for stream in self.live() if self.nodes[stream].op == "rec"]


__all__ = ["Direction", "Node", "StreamProgram", "Type"]

# SPDX-License-Identifier: BSD-3-Clause
"""How the streams of a recursion depend on what crosses the joint: sums of words of operations.

In a recursion every stream is a function of the value that was shifted to the link, and of streams
that are known. Where that function is affine it is a sum of terms: a factor, a word of operations,
first one first, and the stream that they are applied to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from phistar.sweeps.ir import StreamProgram

Letter = tuple[str, tuple[int, ...]]
"""An operation and the streams that it takes besides the one that it is applied to."""
Word = tuple[Letter, ...]
Form = dict[tuple[Word, int], Fraction]
"""Factors of words applied to streams."""

LINEAR_IN_FIRST = ("project_across", "congruence_across")
"""Operations that are linear in their first operand, not the last."""


class NotAffineError(Exception):
    """A stream that is no affine function of what crosses the joint."""

    def __init__(self, stream: int) -> None:
        self.stream = stream
        super().__init__(stream)


@dataclass(frozen=True, eq=False)
class Cycle:
    """Streams that depend on each other across links, through one shift.

    Attributes:
        program: The program.
        members: All of them.
        shift: The one that crosses the joint.
        state: The one that it shifts.
    """

    program: StreamProgram
    members: frozenset[int]
    shift: int
    state: int

    def form(self, stream: int) -> Form:
        """A stream in terms of the shift and of known streams.

        Raises:
            NotAffineError: It is not affine.
        """
        return self._form(stream, {})

    def _form(self, stream: int, known: dict[int, Form]) -> Form:
        if stream == self.shift or stream not in self.members:
            return {((), stream): Fraction(1)}
        if stream not in known:
            known[stream] = self._expanded(stream, known)
        return known[stream]

    def _expanded(self, stream: int, known: dict[int, Form]) -> Form:
        program, node = self.program, self.program.nodes[stream]
        if node.op == "rec":
            return self._form(program.definitions[stream], known)
        if node.op == "sum":
            terms = zip(node.data, node.operands, strict=True)
            return combined((factor, self._form(each, known)) for factor, each in terms)
        place = 0 if node.op in LINEAR_IN_FIRST else len(node.operands) - 1
        others = node.operands[:place] + node.operands[place + 1 :]
        linear = node.spec.linear or node.op in LINEAR_IN_FIRST or node.op in ("crm", "crf")
        if node.spec.shift is not None or not linear or self.members.intersection(others):
            raise NotAffineError(stream)
        letter = (node.op, tuple(defining(program, each) for each in others))
        inner = self._form(node.operands[place], known)
        return {((*word, letter), source): factor for (word, source), factor in inner.items()}


def combined(terms: Iterable[tuple[Fraction, Form]]) -> Form:
    """A linear combination of forms."""
    total: Form = {}
    for factor, form in terms:
        for key, value in form.items():
            total[key] = total.get(key, Fraction(0)) + factor * value
    return {key: value for key, value in total.items() if value}


def flat(program: StreamProgram, form: dict[int, Fraction]) -> dict[int, Fraction]:
    """A combination of streams with sums among them written out."""
    total: dict[int, Fraction] = {}
    for stream, factor in form.items():
        node = program.nodes[stream]
        terms = [(Fraction(1), stream)]
        if node.op == "sum":
            terms = list(zip(node.data, node.operands, strict=True))
        for inner, each in terms:
            total[each] = total.get(each, Fraction(0)) + factor * inner
    return {stream: factor for stream, factor in total.items() if factor}


def defining(program: StreamProgram, stream: int) -> int:
    """The stream itself, of a recursion the one that defines it."""
    while program.nodes[stream].op == "rec":
        stream = program.definitions[stream]
    return stream

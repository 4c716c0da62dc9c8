# SPDX-License-Identifier: BSD-3-Clause
"""How a link stands to the link at which a column of a matrix begins, and what that decides.

    at      it is that link               before  on another branch, with a smaller number
    above   an ancestor of it             after   on another branch, with a larger number
    below   a descendant of it

What a unit column reaches is decided by this alone: inward sums go from ``at`` to ``above``,
outward ones from ``at`` to ``below``, and from ``above`` to everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phistar.sweeps.ir import Direction, StreamProgram
from phistar.sweeps.ops import Op, Support

AT, ABOVE, BELOW, BEFORE, AFTER = "at", "above", "below", "before", "after"

RELATIONS = (ABOVE, BELOW, BEFORE, AFTER, AT)

PARENT_RELATIONS: Mapping[str, tuple[str, ...]] = {
    AT: (ABOVE,),
    ABOVE: (ABOVE,),
    BELOW: (AT, BELOW),
    BEFORE: (ABOVE, BEFORE),
    AFTER: (ABOVE, BEFORE, AFTER),
}
"""What the parent of a link may be."""

CHILD_RELATIONS: Mapping[str, tuple[str, ...]] = {
    each: tuple(child for child in RELATIONS if each in PARENT_RELATIONS[child])
    for each in RELATIONS
}
"""What a child of a link may be."""

INVERSE_RELATION: Mapping[str, str] = {
    AT: AT,
    ABOVE: BELOW,
    BELOW: ABOVE,
    BEFORE: AFTER,
    AFTER: BEFORE,
}
"""What the column's link is to a link."""


class AncestorRelations:
    """The relations of all links of a tree.

    Attributes:
        enter, leave: A link's descendants are entered after it, and before it is left.
    """

    def __init__(self, parent: Sequence[int]) -> None:
        """Args:
        parent: Number of the parent of each link, smaller than its own; -1 is the ground.
        """
        size = [1] * len(parent)
        for k in reversed(range(len(parent))):
            if parent[k] >= 0:
                size[parent[k]] += size[k]
        free = 0
        next_child = [0] * len(parent)
        self.enter: list[int] = []
        for k, up in enumerate(parent):
            if up < 0:
                place, free = free, free + size[k]
            else:
                place, next_child[up] = next_child[up], next_child[up] + size[k]
            self.enter.append(place)
            next_child[k] = place + 1
        self.leave = [first + own for first, own in zip(self.enter, size, strict=True)]

    def __call__(self, k: int, c: int) -> str:
        """What link ``k`` is to link ``c``."""
        if k == c:
            return AT
        if self.enter[k] < self.enter[c] < self.leave[k]:
            return ABOVE
        if self.enter[c] < self.enter[k] < self.leave[c]:
            return BELOW
        return BEFORE if k < c else AFTER


def nonzero_relations(program: StreamProgram, argument: str) -> dict[int, frozenset[str]]:
    """Where the streams that a unit column reaches may be other than zero.

    Args:
        program: The streams.
        argument: Name of the leaf that holds the column.
    """
    live = list(program.live())
    found: dict[int, frozenset[str]] = {
        s: frozenset({AT})
        for s in live
        if program.nodes[s].op == "leaf" and program.nodes[s].data == argument
    }
    grown = True
    while grown:
        before = dict(found)
        for stream in live:
            inputs = [found[o] for o in program.operands(stream) if o in found]
            if inputs and program.nodes[stream].op != "leaf":
                found[stream] = _propagate_relations(program.nodes[stream].spec, inputs)
        grown = found != before
    return found


def _propagate_relations(op: Op, inputs: Sequence[frozenset[str]]) -> frozenset[str]:
    union = frozenset().union(*inputs)
    if op.shift is not None:
        near = CHILD_RELATIONS if op.shift is Direction.INWARD else PARENT_RELATIONS
        return frozenset(each for each in RELATIONS if union & set(near[each]))
    if op.support is Support.UNION:
        return union
    return frozenset.intersection(*inputs)

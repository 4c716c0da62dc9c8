# SPDX-License-Identifier: BSD-3-Clause
"""Streams -> passes: the fewest alternating inward and outward walks over the links.

Streams that depend on each other across links form a recursion and must share a pass whose
direction suits their shifts. A shift of a stream that an earlier pass has finished suits any
direction. Each recursion takes the earliest pass that its inputs allow, which is optimal; both
starts are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from phistar.errors import LoweringError
from phistar.sweeps.classical_accelerations import with_classical_accelerations
from phistar.sweeps.ir import Direction, StreamProgram

INPUT_LEVEL = -1
"""Level of streams that are known before the first pass."""


@dataclass(frozen=True)
class Sweep:
    """One walk over the links: at each link the streams are computed in order."""

    direction: Direction
    streams: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """A program with its passes."""

    program: StreamProgram
    sweeps: tuple[Sweep, ...]

    @property
    def directions(self) -> tuple[str, ...]:
        """``("outward", "inward")`` and so on."""
        return tuple(each.direction.value for each in self.sweeps)

    @cached_property
    def classical(self) -> Schedule:
        """The program with classical accelerations where no output can tell; else this one."""
        from phistar.sweeps.verify import verified

        program = with_classical_accelerations(self.program)
        return self if program is None else verified(schedule(program))


def schedule(program: StreamProgram) -> Schedule:
    """The passes of a program: as few as possible, outward first where it makes no difference."""
    components = strong_components(program)
    starts = (Direction.OUTWARD, Direction.INWARD)
    levels = min((_levels(program, components, start) for start in starts), key=_last)
    return Schedule(program, _sweeps(program, *levels))


def _last(candidate: tuple[dict[int, int], Direction]) -> int:
    return max(candidate[0].values())


def strong_components(program: StreamProgram) -> list[list[int]]:
    """Strongly connected streams, each group after those it depends on (Tarjan, iterative)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    found: list[list[int]] = []
    for root in program.live():
        if root in index:
            continue
        work = [(root, iter(program.operands(root)))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            stream, operands = work[-1]
            for operand in operands:
                if operand not in index:
                    index[operand] = low[operand] = len(index)
                    stack.append(operand)
                    on_stack.add(operand)
                    work.append((operand, iter(program.operands(operand))))
                    break
                if operand in on_stack:
                    low[stream] = min(low[stream], index[operand])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[stream])
                if low[stream] == index[stream]:
                    cut = stack.index(stream)
                    found.append(stack[cut:])
                    on_stack.difference_update(stack[cut:])
                    del stack[cut:]
    return found


def _levels(
    program: StreamProgram, components: Sequence[list[int]], start: Direction
) -> tuple[dict[int, int], Direction]:
    """The earliest pass of each stream if the first one walks in ``start`` direction."""
    level: dict[int, int] = {}
    for members in components:
        nodes = [program.nodes[stream] for stream in members]
        if all(node.spec.is_given for node in nodes):
            level.update(dict.fromkeys(members, INPUT_LEVEL))
            continue
        inside = set(members)
        inputs = [o for stream in members for o in program.operands(stream) if o not in inside]
        earliest = max((level[o] for o in inputs), default=0)
        for candidate in range(max(earliest, 0), max(earliest, 0) + 3):
            if _direction_fits(program, members, level, candidate, _direction(start, candidate)):
                level.update(dict.fromkeys(members, candidate))
                break
        else:
            raise LoweringError("a recursion needs both directions in one pass")
    return level, start


def _direction_fits(
    program: StreamProgram,
    members: list[int],
    level: dict[int, int],
    candidate: int,
    way: Direction,
) -> bool:
    """Whether every shift of a stream computed in this very pass goes the way of the pass."""
    inside = set(members)
    for stream in members:
        node = program.nodes[stream]
        if node.spec.shift in (None, way):
            continue
        if any(o in inside or level[o] == candidate for o in node.operands):
            return False
    return True


def _direction(start: Direction, level: int) -> Direction:
    if level % 2 == 0:
        return start
    return Direction.INWARD if start is Direction.OUTWARD else Direction.OUTWARD


def _sweeps(program: StreamProgram, level: dict[int, int], start: Direction) -> tuple[Sweep, ...]:
    groups: dict[int, list[int]] = {}
    for stream, number in level.items():
        if number != INPUT_LEVEL:
            groups.setdefault(number, []).append(stream)
    return tuple(
        Sweep(_direction(start, number), tuple(_local_order(program, groups[number])))
        for number in sorted(groups)
    )


def _local_order(program: StreamProgram, streams: list[int]) -> list[int]:
    """Streams of a pass so that operands at the same link come first."""
    inside = set(streams)
    done: dict[int, None] = {}
    for root in sorted(streams):
        stack = [(root, False)]
        while stack:
            stream, ready = stack.pop()
            if stream in done:
                continue
            if ready:
                done[stream] = None
                continue
            stack.append((stream, True))
            shifted = program.nodes[stream].spec.shift is not None
            operands = () if shifted else program.operands(stream)
            stack += [(o, False) for o in reversed(operands) if o in inside and o not in done]
    return list(done)

# SPDX-License-Identifier: BSD-3-Clause
"""Slots of loops: numbers share one when they never live at the same time, and only then.

That results stay right is what ``test_programs`` says of all programs.
"""

import pytest

import phistar
from phistar.compile import kernel, preferred
from phistar.scalar.lower import Options, to_rolled
from phistar.scalar.program import Body, Loop, Store
from phistar.scalar.slots import slots_of
from phistar.sweeps.ir import Direction

ABSENT = frozenset({"f_ext", "gravity"})
OUTWARD, INWARD = Direction.OUTWARD, Direction.INWARD


def _loop(
    way: Direction, reads: list[tuple[str, str]], writes: list[tuple[str, str]] | None = None
) -> Loop:
    """A loop whose links read and write (key, base)."""
    body = Body()
    total = body.graph.load("q", 0, "q")
    for key, base in reads:
        total = total + body.graph.load("work", key, base)  # type: ignore[assignment]
    body.stores = [Store("work", key, base, total) for key, base in writes or []]
    body.stores.append(Store("x", 0, "v", total))
    return Loop(way, {0: body})


def _shared(*loops: Loop, held: str = "") -> bool:
    slots = slots_of(loops, set(held))
    return slots["a"] == slots["b"]


def test_one_after_the_other() -> None:
    """A later loop's number takes the place of an earlier one's; an overlap forbids it."""
    first = _loop(OUTWARD, [], [("a", "link")])
    use = _loop(OUTWARD, [("a", "link")])
    second = _loop(OUTWARD, [], [("b", "link")])
    both = _loop(OUTWARD, [("a", "link"), ("b", "link")])
    assert _shared(first, use, second, _loop(OUTWARD, [("b", "link")]))
    assert not _shared(first, second, both)


@pytest.mark.parametrize("way", [OUTWARD, INWARD])
def test_within_a_visit(way: Direction) -> None:
    """A visit that reads a number for the last time may leave another one in its place."""
    first = _loop(OUTWARD, [], [("a", "link")])
    last = _loop(OUTWARD, [("b", "link")])
    assert _shared(first, _loop(way, [("a", "link")], [("b", "link")]), last)


def test_children_come_before_or_after() -> None:
    """Sums from children are complete at the visit inward; outward, children read afterwards."""
    last = _loop(OUTWARD, [("b", "link")])
    pushed = _loop(INWARD, [("a", "link")], [("a", "parent"), ("b", "link")])
    assert _shared(pushed, last)
    first = _loop(OUTWARD, [], [("a", "link")])
    assert not _shared(first, _loop(OUTWARD, [("a", "parent")], [("b", "link")]), last)
    read = _loop(OUTWARD, [("a", "link"), ("b", "parent")], [("b", "link")])
    assert _shared(first, read)
    assert not _shared(first, _loop(INWARD, [("a", "link"), ("b", "link")], [("b", "parent")]))


def test_columns_read_again() -> None:
    """What walks for columns touch shares no slot, except with what loops need no more."""
    first = _loop(OUTWARD, [], [("a", "link")])
    use = _loop(OUTWARD, [("a", "link")])
    second = _loop(OUTWARD, [], [("b", "link")])
    assert _shared(first, use, second, held="b")
    assert _shared(first, use, held="b")
    assert not _shared(first, use, second, held="a")
    assert not _shared(first, use, held="ab")
    assert not _shared(held="ab")


@pytest.mark.parametrize(
    ("robot", "counts"), [("panda", (17, 29)), ("humanoid", (17, 29)), ("chain", (11, 20))]
)
def test_numbers_kept_at_a_link(robot: str, counts: tuple[int, int]) -> None:
    """Of inverse and forward dynamics: what loops over long robots wait for."""
    model = (phistar.robots.chain(30) if robot == "chain" else phistar.load(robot)).model
    for quantity, slots in zip(("inverse_dynamics", "forward_dynamics"), counts, strict=True):
        schedule = kernel(preferred(quantity)).schedule
        assert to_rolled(schedule, model, ABSENT, options=Options(regroup=True)).slots == slots

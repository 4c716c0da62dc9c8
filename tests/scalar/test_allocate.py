# SPDX-License-Identifier: BSD-3-Clause
"""Slots of loops: numbers share one when they never live at the same time, and only then.

That results stay right is what ``test_programs`` says of all programs.
"""

import numpy as np
import pytest

import phistar
from phistar.compile import cheapest_equivalent, kernel
from phistar.scalar.allocate import accesses_by_sweep, allocate_forward_slots, allocate_link_slots
from phistar.scalar.graph import SlotKey
from phistar.scalar.lower import LoweringOptions, to_looped
from phistar.scalar.program import (
    BasicBlock,
    LinkSweep,
    Store,
    allocate_forward_places,
    keyed_store,
)
from phistar.sweeps.ir import Direction

ABSENT = frozenset({"f_ext", "gravity"})
OUTWARD, INWARD = Direction.OUTWARD, Direction.INWARD


def _loop(
    way: Direction, reads: list[tuple[str, str]], writes: list[tuple[str, str]] | None = None
) -> LinkSweep:
    """A loop whose links read and write (key, base)."""
    body = BasicBlock()
    total = body.graph.load("q", 0, "q")
    for key, base in reads:
        total = total + body.graph.load_key((key, 0), base)  # type: ignore[assignment]
    body.stores = [keyed_store((key, 0), base, total) for key, base in writes or []]
    body.stores.append(Store("x", 0, "v", total))
    return LinkSweep(way, {0: body})


def _shared(*loops: LinkSweep, held: str = "") -> bool:
    slots = allocate_link_slots(loops, accesses_by_sweep(loops), {(key, 0) for key in held})
    return slots["a", 0] == slots["b", 0]


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
    ("robot", "counts"),
    [
        ("panda", ((8, 9), (8, 21))),
        ("humanoid", ((8, 9), (14, 21))),
        ("chain", ((5, 6), (8, 15))),
    ],
)
def test_numbers_kept_at_a_link(robot: str, counts: tuple[tuple[int, int], ...]) -> None:
    """Of inverse and forward dynamics: what loops over long robots wait for, and what is handed."""
    model = (phistar.robots.chain(30) if robot == "chain" else phistar.load(robot)).model
    for quantity, count in zip(("inverse_dynamics", "forward_dynamics"), counts, strict=True):
        schedule = kernel(cheapest_equivalent(quantity)).schedule
        program = to_looped(schedule, model, ABSENT, options=LoweringOptions(regroup=True))
        assert (program.slots, program.forward_slots) == count


# -- handed on


def _handed(*loops: LinkSweep, held: str = "") -> dict[SlotKey, int]:
    return allocate_forward_slots(loops, accesses_by_sweep(loops), {(key, 0) for key in held})


def test_what_is_handed_on() -> None:
    """What children read outward, parents inward: in the loop that writes it, nowhere else."""
    down = _loop(OUTWARD, [("a", "parent"), ("b", "parent")], [("a", "link"), ("b", "link")])
    assert _handed(down) == {("a", 0): 0, ("b", 0): 1}
    assert _handed(down, held="a") == {("b", 0): 0}
    assert _handed(down, _loop(OUTWARD, [("a", "link")])) == {("b", 0): 0}
    assert _handed(_loop(INWARD, [("a", "parent")], [("a", "link")])) == {}
    up = _loop(INWARD, [("c", "link")], [("c", "parent")])
    assert _handed(up) == {("c", 0): 0}
    assert _handed(_loop(OUTWARD, [("c", "link")], [("c", "parent")])) == {}
    assert _handed(_loop(INWARD, [("c", "link")], [("c", "parent"), ("c", "link")])) == {}
    assert _handed(down, up) == {("a", 0): 0, ("b", 0): 1, ("c", 0): 0}
    both = [down, up]
    assert allocate_link_slots(both, accesses_by_sweep(both), handed=_handed(*both)) == {}


def _trees() -> list[list[int]]:
    rng = np.random.default_rng(5)
    drawn = [[int(rng.integers(-1, k)) for k in range(30)] for _ in range(20)]
    return [
        [],
        [-1],
        list(range(-1, 20)),
        [-1, *[0] * 12],
        [-1, 0, 0, 1, 1, 2, 2],
        [-1] * 4,
        *drawn,
    ]


@pytest.mark.parametrize("parents", _trees())
def test_places_outward(parents: list[int]) -> None:
    """Each link finds in its parent's place what the parent left there."""
    places = allocate_forward_places(parents, OUTWARD)
    held: dict[int, int] = {}
    for k, parent in enumerate(parents):
        if parent >= 0:
            assert held[places[parent]] == parent
        held[places[k]] = k


@pytest.mark.parametrize("parents", _trees())
def test_places_inward(parents: list[int]) -> None:
    """Each link finds in its own place what its children added up there, and no others."""
    places = allocate_forward_places(parents, INWARD)
    held: dict[int, tuple[int, int]] = {}
    for k in reversed(range(len(parents))):
        if k in parents:
            assert held[places[k]] == (k, parents.count(k))
        parent = parents[k]
        if parent >= 0:
            owner, count = held.get(places[parent], (-1, 0))
            held[places[parent]] = (parent, count + 1 if owner == parent else 1)


@pytest.mark.parametrize("way", [OUTWARD, INWARD])
def test_few_places(way: Direction) -> None:
    """A chain has one place; a tree as many as branches are begun at a time."""
    assert set(allocate_forward_places(list(range(-1, 50)), way)) == {0}
    legs = [-1, 0, 1, 2, 0, 4, 5, 0, 7, 8]
    assert max(allocate_forward_places(legs, way)) == 1

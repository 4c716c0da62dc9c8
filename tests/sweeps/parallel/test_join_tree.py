# SPDX-License-Identifier: BSD-3-Clause
"""Segments of trees: what they are made of, how many rounds they take."""

from collections.abc import Sequence

import numpy as np
import pytest

from phistar.sweeps.parallel.join_tree import NONE, JoinTree

RNG = np.random.default_rng(7)


def random_tree(count: int) -> list[int]:
    """Parents of links, each drawn from all before it."""
    return [NONE, *(int(RNG.integers(0, k)) for k in range(1, count))]


TREES: dict[str, Sequence[int]] = {
    "empty": [],
    "one": [NONE],
    "chain": list(range(-1, 36)),
    "star": [NONE, *([0] * 40)],
    "binary": [NONE, *((k - 1) // 2 for k in range(1, 63))],
    "forest": [NONE, 0, 1, NONE, 3, 3, NONE],
    "comb": [NONE, *range(4), *range(5)],
    "random": random_tree(150),
}


def links_of(tree: JoinTree, segment: int) -> list[int]:
    """The links of a segment, inboard first, as the tree numbers them."""
    if segment >= tree.count:
        at = segment - tree.count
        parts = int(tree.left[at]), int(tree.right[at])
        return [k for part in parts for k in links_of(tree, part)]
    found = [segment]
    while tree.next[found[-1]] != NONE:
        found.append(int(tree.next[found[-1]]))
    return found


@pytest.mark.parametrize("run", [None, 1, 3])
@pytest.mark.parametrize("name", TREES)
def test_paths_hold_each_link_once(name: str, run: int | None) -> None:
    """Paths part the links, each follows the tree, and closed segments end at their tips."""
    tree = JoinTree(TREES[name], run)
    paths = [links_of(tree, int(path)) for path in tree.paths]
    assert sorted(k for path in paths for k in path) == list(range(tree.count))
    for path in paths:
        assert [int(tree.parents[k]) for k in path[1:]] == path[:-1]
    ends = {path[-1] for path in paths}
    for segment in range(tree.size):
        assert tree.closed[segment] == (links_of(tree, segment)[-1] in ends)


@pytest.mark.parametrize("way", ["up", "up_alone", "down", "down_alone"])
@pytest.mark.parametrize("run", [None, 1, 4])
def test_rounds_find_what_they_need(run: int | None, way: str) -> None:
    """Every segment is in one round, after what it is made of (up) or is part of (down)."""
    tree = JoinTree(TREES["random"], run)
    when = np.zeros(tree.size, dtype=int)
    order = [(NONE, NONE)]
    for number, each in enumerate(getattr(tree, way), start=1):
        for links, _, last in each.links:
            when[links.index] += number
            assert (links.next == NONE).all() == last or not len(links.index)
            order += [(k, j) for k, j in zip(links.index, links.next, strict=True) if j != NONE]
            if "alone" not in way:
                order += zip(links.index[links.hung], links.children, strict=True)
        for joins, _ in each.joins:
            when[joins.index] += number
            order += zip(joins.index, joins.left, strict=True)
            order += zip(joins.index, joins.right, strict=True)
    assert (when > 0).all()
    before, after = np.array(order[1:]).T
    gaps = when[before] - when[after]
    assert (gaps > 0).all() if way.startswith("up") else (gaps < 0).all()


def test_chains_take_log_rounds() -> None:
    """A chain of N links in runs of r takes r + ⌈log₂ N/r⌉ rounds; a path of levels takes N."""
    for count in (1, 2, 7, 64, 1000):
        parents = list(range(-1, count - 1))
        assert len(JoinTree(parents).up) == count
        for run in (1, 4):
            tree = JoinTree(parents, run)
            runs = len(range(0, max(count - 1, 1), run)) if run == 1 else -(-count // run)
            assert len(tree.up) <= run + max(runs - 1, 0).bit_length() + 1
            assert len(tree.down) == len(tree.up)


def test_runs_end_only_where_they_may() -> None:
    """Links at which no run may end have the next link of their path in their run."""
    parents = list(range(-1, 40))
    may_end = [k % 5 == 0 for k in range(41)]
    tree = JoinTree(parents, 1, may_end)
    ends = [int(tree.order[k]) for k in range(tree.count) if tree.next[k] == NONE]
    assert sorted(ends) == [0, 5, 10, 15, 20, 25, 30, 35, 40]

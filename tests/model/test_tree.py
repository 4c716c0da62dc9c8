# SPDX-License-Identifier: BSD-3-Clause
"""What makes links and joints a forest, in which order it is walked, and how mimics resolve."""

from itertools import pairwise

import numpy as np
import pytest

from phistar.model.components import Joint, Link, Mimic
from phistar.model.joints import make_kind
from phistar.model.tree import (
    GROUND_NAME,
    depth_first,
    mimic_problems,
    resolve_mimics,
    structure_problems,
    zero_multiplier_problems,
)


def links(names: str) -> list[Link]:
    """Links named by the letters of a string; each stands on a line of its own."""
    return [Link(name, where=f"file:{k}") for k, name in enumerate(names, start=1)]


def joints(*edges: str) -> list[Joint]:
    """Revolute joints "ab" from a to b; "-b" hangs b on the ground."""
    ends = [(GROUND_NAME if edge[0] == "-" else edge[0], edge[1]) for edge in edges]
    return [
        Joint(f"{parent}{child}", make_kind("revolute"), parent, child, where=f"file:{k}")
        for k, (parent, child) in enumerate(ends, start=101)
    ]


def codes(names: str, *edges: str, single_root: bool = False) -> list[str]:
    """Kinds of the structure problems of a graph."""
    return [
        p.code for p in structure_problems(links(names), joints(*edges), single_root=single_root)
    ]


def follower(name: str, leader: str, multiplier: float = 1.0, offset: float = 0.0) -> Joint:
    """A joint that mimics another."""
    law = Mimic(leader, multiplier, offset)
    return Joint(name, make_kind("revolute"), "a", "b", mimic=law, where=f"file:{name}")


def leader(name: str, kind: str = "revolute") -> Joint:
    """A joint that mimics none."""
    return Joint(name, make_kind(kind), "a", "b")


def test_walk_is_depth_first_in_file_order() -> None:
    """Parents come first, a branch is finished before the next, siblings keep the joints' order."""
    walk = depth_first(links("abcdef"), joints("ac", "ab", "cd", "be", "cf"))
    assert [link for link, _ in walk] == ["a", "c", "d", "f", "b", "e"]
    assert [joint.name for _, joint in walk[1:] if joint] == ["ac", "cd", "cf", "ab", "be"]


def test_roots_come_in_the_order_of_links() -> None:
    """Trees of a forest start in link order, whether they rest or hang on the ground by a joint."""
    walk = depth_first(links("abcd"), joints("-c", "-a", "cd"))
    assert [link for link, _ in walk] == ["a", "b", "c", "d"]


def test_walk_of_a_long_chain_does_not_recurse() -> None:
    """A chain far deeper than Python's stack is walked to its end."""
    count = 20_000
    names = [Link(str(k)) for k in range(count)]
    kind = make_kind("revolute")
    row = [Joint(f"j{k}", kind, str(k), str(k + 1)) for k in range(count - 1)]
    assert [link for link, _ in depth_first(names, row[::-1])] == [str(k) for k in range(count)]
    assert structure_problems(names, row) == []


@pytest.mark.parametrize(
    ("names", "edges", "expected"),
    [
        ("", (), ["no-link"]),
        ("ab", ("ab",), []),
        ("abc", ("ab",), []),
        ("ab", ("-a", "ab"), []),
        ("aab", ("ab",), ["duplicate-link"]),
        ("abc", ("ab", "ab"), ["duplicate-joint"]),
        ("ab", ("ax",), ["unknown-link"]),
        ("ab", ("xb",), ["unknown-link"]),
        ("ab", ("xy",), ["unknown-link", "unknown-link"]),
        ("ab", ("a-",), ["unknown-link"]),
        ("ab", ("aa",), ["self-joint"]),
        ("abc", ("ac", "bc"), ["two-parents"]),
        ("ab", ("ab", "ba"), ["cycle"]),
        ("abcd", ("bc", "cd", "db"), ["cycle"]),
        ("abcde", ("bc", "cb", "de", "ed"), ["cycle", "cycle"]),
        ("abcd", ("bc", "cb", "cd"), ["cycle"]),
    ],
)
def test_structure_problems(names: str, edges: tuple[str, ...], expected: list[str]) -> None:
    """Each way of not being a forest is found, once, under its own name."""
    assert codes(names, *edges) == expected


@pytest.mark.parametrize("name", ["", GROUND_NAME])
def test_names_that_cannot_be_used(name: str) -> None:
    """A link without a name or with the ground's is refused."""
    assert [p.code for p in structure_problems([Link(name)], [])] == ["bad-name"]


def test_single_root_refuses_forests() -> None:
    """A file that must be one tree names its roots; hanging on the ground does not make two."""
    assert codes("abc", "ab", single_root=True) == ["two-roots"]
    assert codes("ab", "-a", "ab", single_root=True) == []


def test_messages_name_place_and_cure() -> None:
    """A problem says where it stands, what it is and what to do."""
    (problem,) = structure_problems(links("ab"), joints("aB"))
    assert problem.where == "file:101"
    assert '"B"' in problem.what
    assert "'b'" in problem.cure


def test_cycle_is_spelt_out() -> None:
    """The message about a cycle lists its links in the order of the joints, and only those."""
    (problem,) = structure_problems(links("abcde"), joints("bc", "cd", "db", "de"))
    around = problem.what.split("links ")[1].split(" form")[0].split(" - ")
    assert around[0] == around[-1]
    assert set(around) == {"b", "c", "d"}
    assert all(f"{p}{c}" in ("bc", "cd", "db") for p, c in pairwise(around))


def test_mimic_chain_resolves_to_one_law() -> None:
    """Laws compose: with b = 2a + 1 and c = -3b + 0.5, c = -6a - 2.5, whatever the file order."""
    row = [follower("c", "b", -3.0, 0.5), follower("b", "a", 2.0, 1.0), leader("a")]
    laws = resolve_mimics(row)
    assert laws == {"b": Mimic("a", 2.0, 1.0), "c": Mimic("a", -6.0, -2.5)}
    assert resolve_mimics(row[::-1]) == laws


def test_long_mimic_chain_does_not_recurse() -> None:
    """Ten thousand joints in a row that follow each other resolve to the first."""
    row = [leader("0"), *(follower(str(k), str(k - 1), 1.0, 1.0) for k in range(1, 10_000))]
    law = resolve_mimics(row[::-1])["9999"]
    assert law == Mimic("0", 1.0, 9999.0)
    assert mimic_problems(row) == []


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([leader("a"), follower("b", "a")], []),
        ([leader("a"), follower("b", "c")], ["unknown-mimic"]),
        ([follower("a", "a")], ["mimic-cycle"]),
        ([follower("a", "b"), follower("b", "a"), follower("c", "a")], ["mimic-cycle"]),
        ([leader("a", "spherical"), follower("b", "a")], ["mimic-size"]),
        ([leader("a", "fixed"), follower("b", "a")], ["mimic-size"]),
    ],
)
def test_mimic_problems(row: list[Joint], expected: list[str]) -> None:
    """Followers of nobody, of themselves and of joints of another size are found."""
    assert [p.code for p in mimic_problems(row)] == expected


def test_zero_multiplier_is_only_a_warning() -> None:
    """A follower that never moves is legal and pointed out."""
    (problem,) = zero_multiplier_problems([leader("a"), follower("b", "a", 0.0)])
    assert problem.severity == "warning"
    assert problem.where == "file:b"


def test_random_forests_are_walked_once() -> None:
    """On random forests every link comes once, after its parent, with its subtree contiguous."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        count = int(rng.integers(1, 40))
        parent_of = {k: int(rng.integers(-1, k)) for k in range(count)}
        order = rng.permutation(count)
        names = [Link(str(k)) for k in order]
        kind = make_kind("revolute")
        row = [Joint(f"j{k}", kind, str(parent_of[k]), str(k)) for k in order if parent_of[k] >= 0]
        walk = [int(link) for link, _ in depth_first(names, row)]
        assert sorted(walk) == list(range(count))
        place = {k: i for i, k in enumerate(walk)}
        for k in range(count):
            chain = [k]
            while parent_of[chain[-1]] >= 0:
                chain.append(parent_of[chain[-1]])
            for between in walk[place[chain[-1]] : place[k]]:
                above = between
                while parent_of[above] >= 0:
                    above = parent_of[above]
                assert above == chain[-1]

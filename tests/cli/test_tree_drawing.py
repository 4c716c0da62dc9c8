# SPDX-License-Identifier: BSD-3-Clause
"""The drawing of a robot's tree."""

import pytest

from phistar.cli.tree_drawing import MAX_INDENT, loop_text, mimic_text, tree_lines
from phistar.model import Coupling, LoopJoint, Mimic, ModelBuilder
from phistar.model.generators import chain


def forked() -> ModelBuilder:
    """A trunk with two branches, one of them fixed, and a twig."""
    builder = ModelBuilder("forked")
    for name in ("trunk", "left", "twig", "right"):
        builder.link(name, 1.0, inertia=(1.0, 1.0, 1.0))
    builder.joint("a", "revolute", "trunk", "left", axis=(0, 1, 0))
    builder.joint("b", "spherical", "left", "twig")
    builder.joint("c", "fixed", "trunk", "right")
    return builder


def test_tree_is_drawn_depth_first() -> None:
    """Guides show who carries whom; lines name joint, kind, axis and link."""
    assert [line.plain for line in tree_lines(forked().build())] == [
        "trunk",
        "├─ a revolute y → left",
        "│ └─ b spherical → twig",
        "└─ c fixed → right",
    ]


def test_tree_in_plain_letters() -> None:
    """The same drawing without box characters."""
    lines = [line.plain for line in tree_lines(forked().build(), ascii_only=True)]
    assert lines[1:3] == ["|- a revolute y -> left", "| `- b spherical -> twig"]


def test_floating_base_hangs_on_the_ground() -> None:
    """The free joint of a floating base is the first branch."""
    lines = [line.plain for line in tree_lines(forked().build(floating_base=True))]
    assert lines[:2] == ["(ground)", "└─ root_joint free → trunk"]
    assert len(lines) == 5


def test_every_tree_of_a_forest_is_drawn() -> None:
    """Several roots, several drawings."""
    builder = forked()
    builder.link("alone", 1.0, inertia=(1.0, 1.0, 1.0))
    assert [line.plain for line in tree_lines(builder.build())][-1] == "alone"


def test_ends_of_loops_are_marked() -> None:
    """By name, at links and at coupled joints; the first three of many."""
    builder = forked()
    for count in range(4):
        builder.loop(f"l{count}", "weld", "world", "twig")
    builder.loop("pin", "spherical", "trunk", "left")
    builder.loop("off", "spherical", "trunk", "right", active=False)
    builder.couple(Coupling("tie", "a", "", (0.0,)))
    assert [line.plain for line in tree_lines(builder.build())] == [
        "trunk  ↔ pin",
        "├─ a revolute y → left  ↔ tie, pin",
        "│ └─ b spherical → twig  ↔ l0, l1, l2 and 1 more",
        "└─ c fixed → right",
    ]
    assert next(tree_lines(builder.build(), ascii_only=True)).plain == "trunk  <-> pin"


def test_deep_chains_stay_narrow() -> None:
    """Links in a row beyond Python's recursion limit: bounded lines, so text grows linearly."""
    lines = [line.plain for line in tree_lines(chain(2_000))]
    assert len(lines) == 2_001
    assert max(map(len, lines)) < MAX_INDENT + 60
    assert "(depth 2000) joint2000" in lines[-1]


@pytest.mark.parametrize(
    ("law", "shown"),
    [
        (Mimic("j"), "= j"),
        (Mimic("j", -0.5), "= -0.5 * j"),
        (Mimic("j", 1.0, 0.1), "= j + 0.1"),
        (Mimic("j", 2.0, -0.1), "= 2 * j - 0.1"),
    ],
)
def test_mimic_law(law: Mimic, shown: str) -> None:
    """The law as one would write it."""
    assert mimic_text(law) == shown


@pytest.mark.parametrize(
    ("loop", "shown"),
    [
        (LoopJoint("l", "revolute", "a", "b", axis=(0, 1, 0)), "l: revolute y, a ↔ b"),
        (LoopJoint("l", "weld", "a", "b", active=False), "l: weld, a ↔ b (switched off)"),
        (Coupling("c", "y", "x", (0.0, 2.0)), "c: coupling, y = 2 x"),
        (Coupling("c", "y", "x", (1.0, 0.0, 3.0)), "c: coupling, y = 1 + 3 x^2"),
        (Coupling("c", "y", "x", (0.0, 1.0), (0.5, 0.2)), "c: coupling, y = 0.5 + 1 (x - 0.2)"),
        (Coupling("c", "y", "", (0.1,), (0.2, 0.0)), "c: coupling, y = 0.3"),
    ],
)
def test_loop_text(loop: LoopJoint | Coupling, shown: str) -> None:
    """Loop joints and couplings on one line."""
    assert loop_text(loop) == shown

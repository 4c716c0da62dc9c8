# SPDX-License-Identifier: BSD-3-Clause
"""What notebooks show of robots, motions, compiled programs and proofs."""

import html
import re

import numpy as np
import pytest
from lxml import etree

import phistar
from phistar import reprs
from phistar.drawing import notebook_cards
from phistar.model.builder import ModelBuilder


def _parsed(card: str) -> etree._Element:
    parser = etree.HTMLParser(recover=False)
    return etree.fromstring(card, parser)


def test_a_robot_shows_its_joints_and_itself() -> None:
    """A row for each joint, with its limits; a drawing that reaches nothing outside."""
    robot = phistar.load("panda")
    card = _parsed(robot._repr_html_())
    cells = [row.xpath("./td/text()") for row in card.xpath("//tbody/tr")]
    assert [row[0] for row in cells] == list(robot.joint_names)
    assert cells[0][-1] == "-2.897 … 2.897 rad"
    (frame,) = card.xpath("//iframe")
    assert frame.get("sandbox") == "allow-scripts"
    assert "const DATA" in frame.get("srcdoc")


def test_a_motion_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless its drawing is large; then what writes it is named."""
    robot = phistar.load("double_pendulum")
    sim = robot.simulate([0.3, 0.1], [0.0, 0.0], dt=1e-2, steps=10)
    card = sim._repr_html_()
    assert "10 steps of rk4" in card
    assert len(_parsed(card).xpath("//iframe")) == 1
    monkeypatch.setattr(notebook_cards, "MOST_CHARACTERS", 100)
    assert "save_html writes it" in sim._repr_html_()


def test_programs_and_proofs_are_folded_texts() -> None:
    """Sweeps, decision and passes of a program; the derivation of a proof."""
    kernel = phistar.load("double_pendulum").compile("inverse_dynamics")
    card = _parsed(kernel._repr_html_())
    assert card.xpath("//summary/text()") == ["sweeps", "decision", "passes"]
    assert str(kernel.sweeps) in card.xpath("//pre/text()")
    proof = phistar.prove("innovations_factorisation")
    (text,) = _parsed(proof._repr_html_()).xpath("//details[@open]/pre/text()")
    assert text == str(proof)


def test_long_texts_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """All passes of a large robot would be a megabyte: the rest is counted, nothing is lost."""
    kernel = phistar.load("double_pendulum").compile("inverse_dynamics")
    monkeypatch.setattr(reprs, "MAX_CHARACTERS_FOLDED", 1000)
    text = _parsed(kernel._repr_html_()).xpath("//pre/text()")[-1]
    shown, last = text.rsplit("\n", 1)
    whole = str(kernel.passes).splitlines()
    assert len(text) < 1100
    assert whole[: shown.count("\n") + 1] == shown.splitlines()
    assert last == f"... and {len(whole) - len(shown.splitlines())} more lines"


def test_names_are_text() -> None:
    """A name with markup in it stays a name."""
    builder = ModelBuilder("<b>")
    for name in ("a", "<script>x</script>"):
        builder.link(name, mass=1.0, inertia=np.eye(3))
    builder.joint("<i>", "revolute", "a", "<script>x</script>", axis=(0, 0, 1))
    card = phistar.Robot(builder.build())._repr_html_()
    outside = re.sub(r'srcdoc="[^"]*"', "", card)
    assert "<script>" not in outside
    assert html.escape("<i>") in outside


def test_figures_are_pictures() -> None:
    """IPython shows figures of matplotlib by themselves only where pyplot is imported."""
    pytest.importorskip("matplotlib")
    assert phistar.load("cartpole").plot()._repr_png_()[:4] == b"\x89PNG"

# SPDX-License-Identifier: BSD-3-Clause
"""``phistar demo``: the lines shown are the lines run, and the numbers are right."""

import re

import pytest

from phistar.cli import COMMANDS, demo, main
from phistar.compile import kernel
from tests.helpers import ROOT


@pytest.fixture(scope="module")
def story() -> str:
    """What the demo prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        patch.setenv("NO_COLOR", "1")
        from io import StringIO

        out = StringIO()
        patch.setattr("sys.stdout", out)
        assert main(["demo"]) == 0
    return out.getvalue()


def test_each_step_is_shown_with_its_code(story: str) -> None:
    """Titles in order, and each line of code behind a prompt."""
    at = 0
    for count, step in enumerate(demo.STEPS, 1):
        at = story.index(f"{count}. {step.title}", at)
        for line in step.code.splitlines():
            assert re.search(rf"^(>>>|\.\.\.) {re.escape(line)}$", story[at:], re.MULTILINE)


def test_numbers_are_small_where_they_must_be(story: str) -> None:
    """Jacobian against difference, step against manifold, closed loop: errors of rounding only."""
    patterns = {
        r"largest difference +(\S+) m/s": 1e-8,
        r"gives tau back within (\S+), relative": 1e-12,
        r"largest relative difference (\S+)": 1e-12,
        r"vdot_q next to a finite difference +(\S+), relative": 1e-8,
        r"t = 6 s +pole +(\S+) rad": 1e-3,
        r"total energy conserved within (\S+), relative": 1e-5,
        r"is the kinetic energy within (\S+),": 1e-12,
        r"do no work: (\S+) of": 1e-12,
        r"^reached; error \S+ to (\S+);": 1e-3,
        r"length of the quaternion - 1 = (\S+)": 1e-14,
        r"gives dv back within (\S+)": 1e-14,
        r"loop open by at most (\S+) m": 1e-11,
        r"energy kept within (\S+), relative": 1e-4,
    }
    for pattern, bound in patterns.items():
        match = re.search(pattern, story, re.MULTILINE)
        assert match is not None, pattern
        assert abs(float(match.group(1))) < bound, pattern


def test_forward_dynamics_is_derived(story: str) -> None:
    """Statement, steps, outcome and the sweeps that the compiler prints."""
    assert "𝓜⁻¹ (τ - H φ (M φ* a + b)) = ν - K* α" in story
    assert "proved in 45 steps" in story
    assert kernel("forward_dynamics").sweeps in story


def test_the_load_is_found_in_the_log(story: str) -> None:
    """The true mass is within the error that is told."""
    found = re.search(r"torques: (\S+) kg ± (\S+) kg, and it was (\S+) kg", story)
    assert found is not None
    mass, error, true = map(float, found.groups())
    assert 0.0 < error < 0.05
    assert abs(mass - true) < 2.0 * error


def test_what_to_do_next(story: str) -> None:
    """Commands and make targets exist, and the lines fit a terminal."""
    last = story[story.index("What to do next") :].splitlines()[1:]
    assert max(map(len, last)) <= 80
    for line in demo.NEXT:
        program, name, *_ = line.split()
        targets = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert name in COMMANDS if program == "phistar" else f"\n{name}: " in targets


def test_the_gripper_opens_both_fingers(story: str) -> None:
    """0.03 m at the leader is 0.06 m between the fingers."""
    assert "opens both: 0.0600 m between them" in story


def test_the_four_bar_is_assembled(story: str) -> None:
    """The crank stays where it was put, and the mobility is that of a crank-rocker."""
    assert re.search(r"^q = \( 0\.300000000, ", story, re.MULTILINE)
    assert "'four_bar' has 1 degree of freedom" in story


def test_the_broken_file_is_explained(story: str) -> None:
    """All four faults, each with its line and code."""
    faults = re.findall(r"^<bytes>:(\d+): error: ", story, re.MULTILINE)
    assert len(faults) == 4
    for code in ("not-finite", "zero-axis", "unknown-type", "unknown-link"):
        assert f"[{code}]" in story
    assert "Did you mean 'upper_arm'?" in story

# SPDX-License-Identifier: BSD-3-Clause
"""docs/walk.md: the functions that it names are called, in its order."""

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import phistar
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "walk.md").read_text(encoding="utf-8")
SOURCES = ROOT / "src" / "phistar"
ROW = re.compile(r"^\| `([\w/.]+)` \| `([\w.]+)` \| .+ \|$", re.MULTILINE)


def _rows(part: str) -> list[tuple[str, str]]:
    text = PAGE.split(f"<!-- {part} -->")[1].split("\n\n")[0]
    found = ROW.findall(text)
    assert len(found) == len(text.strip().splitlines()) - 2
    return found


def _called(act: Callable[[], Any]) -> list[tuple[str, str]]:
    """File and name of the functions of the package that a call runs, in order."""
    found = []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code.co_filename == "<entry to machine code>":
            found.append(("backends/llvm/run/entry.py", code.co_name))
        elif code.co_filename.startswith(str(SOURCES)):
            found.append((code.co_filename[len(str(SOURCES)) + 1 :], code.co_qualname))

    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(None)
    return found


def _in_order(wanted: list[tuple[str, str]], called: list[tuple[str, str]]) -> None:
    rest = iter(called)
    for each in wanted:
        assert any(each == other for other in rest), f"{each} is not called, or not in its place"


@pytest.fixture
def robot(monkeypatch: pytest.MonkeyPatch) -> phistar.Robot:
    """One that no other test has compiled; nothing is found on disk."""
    monkeypatch.setenv("PHISTAR_TIER", "auto")
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    other = phistar.load("double_pendulum")
    other.forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))
    return phistar.load("ur5", gravity=(0.3, 0.0, -9.1))


def test_first_and_warm_calls(robot: phistar.Robot) -> None:
    """A single sample the first time, then a batch by its entry."""
    q, v, tau = np.zeros((3, 6))
    _in_order(_rows("first"), _called(lambda: robot.forward_dynamics(q, v, tau)))
    many = np.zeros((3, 40, 6))
    robot.forward_dynamics(*many)
    called = _called(lambda: robot.forward_dynamics(*many))
    assert called == _rows("warm")


@pytest.mark.parametrize("row", [*_rows("first"), *_rows("warm")], ids=lambda row: row[1])
def test_files_exist(row: tuple[str, str]) -> None:
    """Every row names a file."""
    assert (SOURCES / row[0]).is_file()

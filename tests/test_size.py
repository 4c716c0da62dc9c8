# SPDX-License-Identifier: BSD-3-Clause
"""Loading and the first result of a robot take work in proportion to its links."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phistar
from benchmarks.size import chain


def _calls(work: Callable[[], Any], events: tuple[str, ...] = ("call", "c_call")) -> int:
    """How many functions are called, those written in C included."""
    count = 0

    def look(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in events

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("what", ["load", "first"])
def test_work_grows_with_the_links(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the links, at most 2.1 times the calls; and few for each link."""
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    counts = {}
    for links in (400, 800):
        source = chain(links)
        if what == "load":
            counts[links] = _calls(lambda source=source: phistar.load(source))  # type: ignore[misc]
        else:
            robot, rest = phistar.load(source), np.zeros(links)
            counts[links] = _calls(lambda r=robot, x=rest: r.inverse_dynamics(x, x, x))  # type: ignore[misc]
    assert counts[800] <= 2.1 * counts[400]
    assert counts[800] - counts[400] <= 220 * 400


def test_loading_a_panda_is_little_work() -> None:
    """Less than 2000 calls of functions in Python, whatever was loaded before."""
    phistar.load("ur5")
    for _ in range(2):
        assert _calls(lambda: phistar.load("panda"), events=("call",)) < 2000

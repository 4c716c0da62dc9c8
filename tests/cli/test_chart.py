# SPDX-License-Identifier: BSD-3-Clause
"""Charts in characters, and arrays over time as files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from phistar.cli import UsageError
from phistar.cli.chart import LEVELS, chart
from phistar.cli.series import check_target, write_series


def heights(lines: Sequence[str], wide: int) -> list[int]:
    """Heights of the bars, in eighths of a line."""
    bars = [line.split("|")[1] for line in lines if "|" in line]
    return [sum(LEVELS.index(bar.ljust(wide)[k]) for bar in bars) for k in range(wide)]


def test_bars_follow_the_numbers() -> None:
    """A straight line is a straight line, and an exponential one on logarithms."""
    t = np.linspace(0.0, 2.0, 33)
    line = chart("line", t, t, width=33, height=4)
    assert heights(line, 33) == list(range(33))
    assert line[0] == "line"
    assert line[1].startswith("2 |")
    assert line[-1].split() == ["0", "s", "2", "s"]
    fall = chart("fall", t, np.exp(-t), logarithmic=True, width=33, height=4)
    steps = heights(fall, 33)
    assert steps == sorted(steps, reverse=True)
    np.testing.assert_allclose(steps, np.linspace(32, 0, 33), atol=1)
    assert fall[0] == "fall, logarithmic"


def test_odd_numbers() -> None:
    """Constants, zeros, a fall to zero and few numbers are drawn, too."""
    t = np.arange(3.0)
    assert set(heights(chart("flat", t, np.ones(3)), 3)) == {64}
    assert set(heights(chart("none", t, np.zeros(3), logarithmic=True), 3)) == {64}
    ending = np.array([1.0, 1e-8, 0.0])
    assert heights(chart("end", t, ending, logarithmic=True), 3) == [64, 32, 0]


def test_files(tmp_path: Path) -> None:
    """Both formats give the numbers back bit by bit; names with commas are quoted."""
    t, q = np.array([0.0, 0.1]), np.array([[1 / 3, 2.0], [np.pi, -1e-300]])
    names = {"q": ["a", "b,c"]}
    write_series(str(tmp_path / "x.csv"), {"t": t, "q": q}, names)
    head, *rows = (tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()
    assert head == 't,q.a,"q.b,c"'
    np.testing.assert_array_equal(np.array([r.split(",") for r in rows], float)[:, 1:], q)
    write_series(str(tmp_path / "x.npz"), {"t": t, "q": q}, names)
    with np.load(tmp_path / "x.npz") as arrays:
        np.testing.assert_array_equal(arrays["q"], q)
    with pytest.raises(UsageError, match=r"'x\.txt'"):
        check_target("--out", "x.txt")

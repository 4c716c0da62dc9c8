# SPDX-License-Identifier: BSD-3-Clause
"""The page on control shows what runs."""

import re

import numpy as np
import pytest

from tests.helpers import ROOT

TEXT = (ROOT / "docs" / "control.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks run one after the other, and their results are what the text says."""
    assert len(BLOCKS) == 7
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, "control.md", "exec"), names)
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert [line.split(";")[0] for line in lines[1:4]] == [f"[{k}] reached" for k in range(3)]
    growth = float(lines[4])
    assert growth == pytest.approx(6.6, abs=0.05)
    closed, alone = (float(x) for x in re.findall(r"(?:feedback|alone) (\S+) rad", shown))
    assert alone > 50 * closed
    found = names["found"]
    assert found.converged.all()
    assert np.abs(found.trajectory.q[-1]).max() < 0.05
    assert np.abs(found.trajectory.tau).max() <= 10.0

# SPDX-License-Identifier: BSD-3-Clause
"""The page on curvature shows what runs."""

import re

import pytest

from tests.helpers import ROOT

TEXT = (ROOT / "docs" / "geometry.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Its block runs, and prints what its comments say."""
    (block,) = BLOCKS
    exec(compile(block, "geometry.md", "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    told = re.findall(r"\)  # (\w+: [^,]+), \.\.\.", block)
    assert [line.split(",")[0] for line in shown] == told

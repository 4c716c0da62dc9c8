# SPDX-License-Identifier: BSD-3-Clause
"""``phistar map`` says what it did, and what it could not do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr

from phistar import Robot
from phistar.arrays import Array
from phistar.cli import main


def test_map(
    panda: Robot,
    motions: dict[str, Array],
    store: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Compute, keep, report bad rows by exit code 1; a cluster that is not there is one line."""
    out = str(tmp_path / "out.zarr")
    command = ["map", "panda", "inverse_dynamics", store, out, "--rows", "500"]
    assert main(command) == 0
    assert capsys.readouterr().out == f"{out}: 3 tasks, 3 computed\n"
    found = zarr.open_group(out, mode="r")["result"][:]
    np.testing.assert_array_equal(found, panda.inverse_dynamics(*motions.values()))
    assert main([*command, "--resume"]) == 0
    assert capsys.readouterr().out == f"{out}: 3 tasks, 0 computed, 3 kept\n"
    zarr.open_group(store, mode="r+")["v"][600, 2] = np.inf
    assert main([*command, "--overwrite"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: task 1, rows 500 to 999, counted from 0 there: v is not finite")
    assert main(command) == 1
    assert "resume=True (--resume) goes on with it" in capsys.readouterr().err

# SPDX-License-Identifier: BSD-3-Clause
"""Matrices that do not fit into memory are refused before any work, with their size."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import memory_limits
from phistar.compile import evaluate as compiler
from phistar.errors import TooLargeError

LINKS = 20
REST = np.zeros(LINKS)
DENSE: dict[str, tuple[int, Callable[[phistar.Robot], Any]]] = {
    "mass_matrix": (1, lambda r: r.mass_matrix(REST)),
    "mass_matrix_inverse": (1, lambda r: r.mass_matrix_inverse(REST)),
    "coriolis_matrix": (1, lambda r: r.coriolis_matrix(REST, REST)),
    "linearize": (3, lambda r: r.linearize(REST, REST, REST)),
    "linearize_inverse": (3, lambda r: r.linearize_inverse(REST, REST, REST)),
    "mass_matrix_q": (LINKS, lambda r: r.mass_matrix_q(REST)),
    "mass_matrix_qq": (LINKS**2, lambda r: r.mass_matrix_qq(REST)),
    "batch": (5, lambda r: r.mass_matrix(np.zeros((5, LINKS)))),
}


@pytest.mark.parametrize("name", DENSE)
def test_large_matrices_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error states the bytes; what fits is computed, and vectors always."""
    robot = phistar.robots.chain(LINKS)
    count, call = DENSE[name]
    needed = 8 * count * LINKS**2
    for module in (memory_limits, compiler):
        monkeypatch.setattr(module, "UNCHECKED_BYTES", 16)
    monkeypatch.setattr(memory_limits, "available_bytes", lambda: 2 * needed - 1)
    with pytest.raises(TooLargeError, match=rf"{LINKS}, {LINKS}\) of robot") as error:
        call(robot)
    assert (error.value.needed, error.value.available) == (needed, 2 * needed - 1)
    assert f"take {memory_limits.format_bytes(needed)}" in str(error.value)
    robot.inverse_dynamics(REST, REST, REST)


def test_what_fits_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the matrix is enough."""
    for module in (memory_limits, compiler):
        monkeypatch.setattr(module, "UNCHECKED_BYTES", 16)
    monkeypatch.setattr(memory_limits, "available_bytes", lambda: 16 * 4)
    assert phistar.robots.chain(2).mass_matrix([0.1, 0.2]).shape == (2, 2)


def test_files_that_are_kept_in_memory_are_free(tmp_path: Path) -> None:
    """A container that has read many files is not full; without a limit there is nothing to say."""
    assert memory_limits.container_free_bytes(tmp_path) is None
    (tmp_path / "memory.current").write_text("990\n")
    (tmp_path / "memory.stat").write_text(
        "anon 100\nfile 850\nactive_file 300\ninactive_file 500\nslab_reclaimable 40\n"
    )
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_limits.container_free_bytes(tmp_path) is None
    (tmp_path / "memory.max").write_text("1000\n")
    assert memory_limits.container_free_bytes(tmp_path) == 1000 - 990 + 300 + 500 + 40

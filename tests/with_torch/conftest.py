# SPDX-License-Identifier: BSD-3-Clause
"""Tests that need PyTorch: collected by ``make test-torch`` alone, which installs it."""

import os
from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Elsewhere these tests are not collected: PyTorch is large."""
    return None if os.environ.get("PHISTAR_TEST_TORCH") else True

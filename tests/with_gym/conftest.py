# SPDX-License-Identifier: BSD-3-Clause
"""Tests that need Gymnasium: collected by ``make test-gym`` alone, which installs it."""

import os
from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Elsewhere they are not collected: Gymnasium is an extra."""
    return None if os.environ.get("PHISTAR_TEST_GYM") else True

# SPDX-License-Identifier: BSD-3-Clause
"""Tests that need CasADi: collected by ``make test-casadi`` alone, which installs it."""

import os
from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Elsewhere they are not collected: CasADi is an extra, and large."""
    return None if os.environ.get("PHISTAR_TEST_CASADI") else True

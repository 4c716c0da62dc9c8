# SPDX-License-Identifier: BSD-3-Clause
"""What tests in a browser need: without it they are skipped, and fail where CI is set."""

import importlib.util
import shutil

import pytest

from tests.helpers import require


@pytest.fixture(scope="session", autouse=True)
def everything_needed() -> None:
    """viser, playwright and chromium."""
    for package in ("viser", "playwright"):
        found = importlib.util.find_spec(package) is not None
        require(found, f"{package} is not installed: make test-viewer installs it")
    found = shutil.which("chromium") is not None
    require(found, "chromium is not installed: apt-get install chromium")

# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the whole test suite: how hypothesis searches, where compiled code is kept."""

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# The same examples every time, so that a red test means a changed program; no deadlines, because
# cores are shared.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make fuzz`: new examples every time.
settings.register_profile("fuzz", settings.get_profile("ci"), derandomize=False, max_examples=1000)
settings.load_profile("ci")

_CACHE = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """One cache for this run, shared by its processes and gone with it.

    Loops alone, unless a test or the environment says otherwise: straight lines of hundreds of
    robots would take most of the time. They have tests of their own.
    """
    os.environ.setdefault("PHISTAR_TIER", "rolled")
    if not hasattr(config, "workerinput"):
        config.stash[_CACHE] = folder = tempfile.TemporaryDirectory(prefix="phistar-test-")
        os.environ["PHISTAR_CACHE"] = folder.name


def pytest_unconfigure(config: pytest.Config) -> None:
    """Clear up."""
    folder = config.stash.get(_CACHE, None)
    if folder is not None:
        folder.cleanup()

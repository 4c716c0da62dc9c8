# SPDX-License-Identifier: BSD-3-Clause
"""Where the tests find things: the repository, and the reference robots kept beside it."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

SHARED = Path(os.environ.get("PHISTAR_SHARED", ROOT.parent / "shared"))
"""Reference material beside the repository; PHISTAR_SHARED names another place."""

needs_shared = pytest.mark.skipif(
    not (SHARED / "robots").is_dir(),
    reason="needs the reference robots in ../shared (or where PHISTAR_SHARED says)",
)

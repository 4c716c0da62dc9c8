# SPDX-License-Identifier: BSD-3-Clause
"""Where the tests find things: the repository, the reference robots beside it, robots."""

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from phistar.arrays import Array
from phistar.backends import (
    Executable,
    VectorExecutable,
    VectorProgram,
    build_vectors,
    running_names,
)
from phistar.sweeps.schedule import Schedule
from phistar.thresholds import POLICY

ROOT = Path(__file__).resolve().parent.parent

SHARED = Path(os.environ.get("PHISTAR_SHARED", ROOT.parent / "shared"))
"""Reference material beside the repository; PHISTAR_SHARED names another place."""

needs_shared = pytest.mark.skipif(
    not (SHARED / "robots").is_dir(),
    reason="needs the reference robots in ../shared (or where PHISTAR_SHARED says)",
)


def chosen_backends() -> tuple[str, ...]:
    """The backends that tests run on: those that PHISTAR_TEST_BACKENDS lists, else all but JAX.

    JAX is an extra of hundreds of megabytes; ``make test-jax`` installs it and names it here.
    """
    listed = os.environ.get("PHISTAR_TEST_BACKENDS")
    return tuple(listed.split(",")) if listed else tuple(n for n in running_names() if n != "jax")


def patch_policy(monkeypatch: pytest.MonkeyPatch, **values: float) -> None:
    """Other numbers in the table of thresholds, for this test."""
    for name, value in values.items():
        assert name in vars(POLICY), name
        monkeypatch.setitem(vars(POLICY), name, value)


def build(backend: str, schedule: Schedule, *robot: Any, **options: Any) -> VectorExecutable:
    """What a backend makes of sweeps; the other arguments are those of ``VectorProgram``."""
    return build_vectors(backend, VectorProgram(schedule, *robot, **options))


def numbers(code: Executable, q: Array, inputs: Mapping[str, Array]) -> Array:
    """The only output of code that runs a matrix; None if it cannot say it now."""
    found = code.try_run({"q": q, **inputs})
    if found is None:
        return None  # type: ignore[return-value]
    (result,) = found[0].values()
    return result


def docs_module(name: str) -> ModuleType:
    """A module of ``docs``, which is no package: Sphinx finds it by its folder."""
    folder = str(ROOT / "docs")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


def require(there: bool, line: str) -> None:
    """Skip a test that lacks something, saying what; where CI is set, fail instead."""
    if there:
        return
    if os.environ.get("CI"):
        pytest.fail(line)
    pytest.skip(line)

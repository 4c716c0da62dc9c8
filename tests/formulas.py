# SPDX-License-Identifier: BSD-3-Clause
"""For tests whose laws are about formulas: they run in NumPy, so that nothing is compiled.

A folder's ``conftest.py`` imports both fixtures. That machine code gives the same numbers is tested
program by program in ``tests/backends``, and in such a folder where a test asks for
``machine_code``.
"""

import pytest

from phistar.backends import base
from phistar.model import model_cache
from phistar.model.model_cache import entries
from phistar.robot import Robot


@pytest.fixture(autouse=True)
def numpy_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy is the default backend of every test that sees this fixture.

    Robots have other entries for the time of the test: they look them up instead of holding them.
    """
    monkeypatch.setattr(model_cache, "_ENTRIES", object())
    found = property(lambda robot: entries(robot.model), lambda robot, _: None)
    monkeypatch.setattr(Robot, "_entries", found, raising=False)
    monkeypatch.setattr(base, "_default_name", "numpy")


@pytest.fixture
def machine_code(numpy_backend: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend that users have."""
    monkeypatch.setattr(base, "_default_name", "llvm")

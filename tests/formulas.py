# SPDX-License-Identifier: BSD-3-Clause
"""For tests whose laws are about formulas: they run in NumPy, so that nothing is compiled.

A folder's ``conftest.py`` imports both fixtures. That machine code gives the same numbers is tested
program by program in ``tests/backends``, and in such a folder where a test asks for
``machine_code``.
"""

import pytest

from phistar.backends.base import VARIABLE
from phistar.derivatives.quick import ways


@pytest.fixture(autouse=True)
def numpy_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy is the default backend of every test that sees this fixture.

    Robots forget the machine code they had.
    """
    ways.clear()
    monkeypatch.setenv(VARIABLE, "numpy")


@pytest.fixture
def machine_code(numpy_backend: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend that users have."""
    monkeypatch.setenv(VARIABLE, "llvm")

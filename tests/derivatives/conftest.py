# SPDX-License-Identifier: BSD-3-Clause
"""The laws here are about formulas: they run in NumPy, so that nothing is compiled.

That machine code gives the same numbers is tested program by program in ``tests/backends``, and
here where a test asks for ``machine_code``.
"""

from collections.abc import Iterator

import pytest

from phistar.backends.base import VARIABLE


@pytest.fixture(scope="session", autouse=True)
def numpy_backend() -> Iterator[None]:
    """NumPy is the default backend of this folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "numpy")
        yield


@pytest.fixture
def machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend that users have."""
    monkeypatch.setenv(VARIABLE, "llvm")

# SPDX-License-Identifier: BSD-3-Clause
"""How tasks run: by final code, on their own thread, so that bits are the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from phistar import settings
from phistar.compile import finish_compilations
from phistar.scale.one_blas_thread import one_blas_thread


@contextmanager
def final_code() -> Iterator[None]:
    """A context in which this thread's batches run on it alone, and by final code.

    What is being compiled already, for a robot that was used a moment ago, is waited for.
    """
    finish_compilations()
    with settings.reproducible_on_one_thread(), one_blas_thread():
        yield

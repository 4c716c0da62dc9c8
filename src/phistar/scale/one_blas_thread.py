# SPDX-License-Identifier: BSD-3-Clause
"""Linear algebra of NumPy and SciPy on one thread: what they round depends on how many there are.

Several tasks may be inside at once; the last one that leaves restores what was set before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from phistar.scale.packages import ThreadLimits, thread_limits

_lock = threading.Lock()
_inside: list[ThreadLimits] = []
"""The limits in force, once for each task inside."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS and LAPACK of this process run on the thread that calls them."""
    with _lock:
        _inside.append(_inside[0] if _inside else thread_limits()(1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limits = _inside.pop()
            if not _inside:
                limits.restore_original_limits()

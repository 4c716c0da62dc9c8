# SPDX-License-Identifier: BSD-3-Clause
"""No garbage collection while this package is imported, robots are loaded and programs are traced.

All make very many objects and no cyclic garbage, but make Python traverse all objects of the
process again and again: in a large one that takes longer than the work itself. After a pause with
very many new objects they count as old ones at once, instead of being traversed to become that; so
do those of the import, which stay as long as the process: else a user's first call traverses them.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager

MANY_OBJECTS = 2_000_000
"""New objects of a pause that are not traversed after it, about a second: of robots with tens of
thousands of links. Garbage among them waits for a full collection, which Python does not hasten for
them, so that fewer would let memory grow from robot to robot."""
FEW_FROZEN = 1000
"""Frozen objects that are no user's doing: Python 3.12 starts with some 400, others with none."""


class _GcPause(ContextDecorator):
    """A context in which nothing is collected; any number of threads may be inside."""

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """No thread is inside: the state in the child of a fork."""
        self._lock = threading.Lock()
        self._depth = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._depth:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth = max(0, self._depth - 1)
            if not self._depth and self._was_enabled:
                if gc.get_count()[0] > MANY_OBJECTS:
                    _promote()
                gc.enable()

    @property
    def is_ours(self) -> bool:
        """Whether garbage is collected again after the pause."""
        return self._was_enabled

    def after_fork(self) -> None:
        """End the pause in the child, which has only the thread that forked."""
        if self._depth and self._was_enabled:
            gc.enable()
        self.reset_after_fork()


def _promote() -> None:
    """Move all objects to the oldest generation.

    Whoever has frozen objects keeps them frozen.
    """
    if gc.get_freeze_count() < FEW_FROZEN:
        gc.freeze()
        gc.unfreeze()


gc_paused = _GcPause()


@contextmanager
def importing() -> Iterator[None]:
    """A pause for objects that stay as long as the process; they count as old ones after it."""
    with gc_paused:
        yield
        if gc_paused.is_ours:
            _promote()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=gc_paused.after_fork)

# SPDX-License-Identifier: BSD-3-Clause
"""No garbage collection while robots are loaded and programs are traced.

Both make very many objects and no cyclic garbage, but make Python traverse all objects of the
process again and again: in a large one that takes longer than the work itself. After a pause with
very many new objects they count as old ones at once, instead of being traversed to become that.
"""

from __future__ import annotations

import gc
import os
import threading
from contextlib import ContextDecorator

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
                _promote_many()
                gc.enable()

    def after_fork(self) -> None:
        """End the pause in the child, which has only the thread that forked."""
        if self._depth and self._was_enabled:
            gc.enable()
        self.reset_after_fork()


def _promote_many() -> None:
    """Move all objects to the oldest generation if there are many young ones.

    Whoever has frozen objects keeps them frozen.
    """
    if gc.get_count()[0] > MANY_OBJECTS and gc.get_freeze_count() < FEW_FROZEN:
        gc.freeze()
        gc.unfreeze()


gc_paused = _GcPause()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=gc_paused.after_fork)

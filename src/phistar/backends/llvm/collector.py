# SPDX-License-Identifier: BSD-3-Clause
"""No collection of garbage while programs are traced.

Tracing makes very many objects and no garbage that would need collecting, but makes Python look
through all objects of the process again and again: in a large one that takes longer than tracing.
"""

from __future__ import annotations

import gc
import os
import threading


class _Paused:
    """A context in which nothing is collected; any number of threads may be inside."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Nobody is inside: so it is in the child of a fork."""
        self._lock = threading.Lock()
        self._inside = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._was_on = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside = max(0, self._inside - 1)
            if not self._inside and self._was_on:
                gc.enable()

    def after_fork(self) -> None:
        """The child has no thread that would end the pause but the one that forked."""
        if self._inside and self._was_on:
            gc.enable()
        self.renew()


paused = _Paused()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=paused.after_fork)

# SPDX-License-Identifier: BSD-3-Clause
"""An intern table: objects that exist once, and only as long as they are referenced.

As ``weakref.WeakValueDictionary``, but without callbacks: Python may raise the KeyboardInterrupt of
a Ctrl-C in a callback, where it is lost. Two threads that make the same object at the same time get
the same one.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V")

MIN_PURGE_ENTRIES = 1024
"""Entries up to which the table is not purged."""


class Interned(Generic[V]):
    """Objects by key, each once."""

    def __init__(self) -> None:
        self._references: dict[Hashable, weakref.ref[V]] = {}
        self._purge_limit = MIN_PURGE_ENTRIES
        self.reset_after_fork()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.reset_after_fork)

    def reset_after_fork(self) -> None:
        """In the child of a fork no other thread holds the lock."""
        self._lock = threading.RLock()

    def __len__(self) -> int:
        """Entries, dead ones included."""
        return len(self._references)

    def get(self, key: Hashable) -> V | None:
        """The object of a key, if it exists."""
        reference = self._references.get(key)
        return None if reference is None else reference()

    def add(self, key: Hashable, value: V) -> V:
        """The object of a key: ``value``, unless there is one already."""
        with self._lock:
            existing = self.get(key)
            if existing is not None:
                return existing
            self._references[key] = weakref.ref(value)
            if len(self._references) > self._purge_limit:
                self.purge()
            return value

    def purge(self) -> None:
        """Drop dead entries, until none are left: keys may hold the last reference to other
        objects."""
        with self._lock:
            while dead_keys := [key for key, ref in self._references.items() if ref() is None]:
                for key in dead_keys:
                    del self._references[key]
                del dead_keys
            self._purge_limit = max(MIN_PURGE_ENTRIES, 2 * len(self._references))

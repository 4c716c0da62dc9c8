# SPDX-License-Identifier: BSD-3-Clause
"""Tables that belong to a model and live as long as it does."""

from __future__ import annotations

import threading
import weakref
from typing import Generic, TypeVar

from phistar.model.model import Model

K = TypeVar("K")
V = TypeVar("V")


class Tables(Generic[K, V]):
    """A table for each model, always the same one.

    Robots hold on to their tables, so they must never be made anew while a model lives, however
    many others there are.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Forget all of them; robots that hold one keep it."""
        self._tables: weakref.WeakKeyDictionary[Model, dict[K, V]] = weakref.WeakKeyDictionary()

    def __call__(self, model: Model) -> dict[K, V]:
        """The table of a model, empty at first."""
        found = self._tables.get(model)
        if found is None:
            with self._lock:
                found = self._tables.setdefault(model, {})
        return found

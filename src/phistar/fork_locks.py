# SPDX-License-Identifier: BSD-3-Clause
"""Locks that a thread may hold while another one forks: in the child nobody would release them.

Before Python 3.12 a ``functools.cached_property`` has one lock for all objects of its class: the
child gets new ones. A module has a lock while it is imported, and much is imported when it is first
needed: a fork waits until no thread is in the middle of that.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from functools import cached_property

PACKAGE = __name__.partition(".")[0]
MAX_IMPORT_SECONDS = 10.0
"""How long a fork waits for imports of other threads."""
_POLL_SECONDS = 0.001


def renew_property_locks() -> None:
    """Give every lazy property of the package a new lock."""
    modules = [
        module
        for name, module in list(sys.modules.items())
        if module is not None and (name == PACKAGE or name.startswith(f"{PACKAGE}."))
    ]
    for module in modules:
        for each in list(vars(module).values()):
            if isinstance(each, type) and each.__module__ == module.__name__:
                _renew(each)


def _renew(owner: type) -> None:
    for value in vars(owner).values():
        if isinstance(value, cached_property):
            vars(value)["lock"] = threading.RLock()


def _has_locks() -> bool:
    return hasattr(cached_property(lambda _: None), "lock")


def wait_for_imports() -> None:
    """Return when no other thread is in the middle of an import, or after some seconds."""
    if threading.active_count() == 1:
        return
    end = time.monotonic() + MAX_IMPORT_SECONDS
    while _imports_elsewhere() and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)


def _imports_elsewhere() -> bool:
    """Whether another thread holds the lock of a module; Python keeps them while they are held."""
    table = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    own = threading.get_ident()
    locks = [reference() for reference in list(table.values())]
    return any(lock is not None and lock.owner not in (None, own) for lock in locks)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait_for_imports)
    if _has_locks():
        os.register_at_fork(after_in_child=renew_property_locks)

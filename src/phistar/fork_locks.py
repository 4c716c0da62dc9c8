# SPDX-License-Identifier: BSD-3-Clause
"""Locks of lazy properties in the child of a fork.

Before Python 3.12 a ``functools.cached_property`` has one lock for all objects of its class. A
thread may hold it while another one forks; in the child nobody would ever release it.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import cached_property

PACKAGE = __name__.partition(".")[0]


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


if hasattr(os, "register_at_fork") and _has_locks():
    os.register_at_fork(after_in_child=renew_property_locks)

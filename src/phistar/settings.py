# SPDX-License-Identifier: BSD-3-Clause
"""Environment variables: all are read here, wrong values are errors, unknown names are warned of.

Variables are read when they are needed, so a program may change them, all but the backend, which
``backends.default`` reads once; an empty one counts as none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from phistar.errors import SettingError, SettingWarning, close_matches, warn

TIERS = ("auto", "wait", "rolled", "straight")
"""When machine code is made, and in which shape; see ``backends.llvm.run.tiers``."""

VARIABLES = (
    "PHISTAR_BACKEND",
    "PHISTAR_TIER",
    "PHISTAR_THREADS",
    "PHISTAR_CACHE",
    "PHISTAR_CACHE_SIZE",
    "PHISTAR_SHARED",
)
"""What users may set."""

VARIABLES_OF_TESTS = ("PHISTAR_TEST_", "PHISTAR_FUZZ_", "PHISTAR_USERS_CODE")
"""How the names begin that phistar's own tests read."""

MAX_THREADS = 256

DEFAULT_CACHE_MEGABYTES = 256.0
"""Megabytes."""


_reproducible: ContextVar[bool] = ContextVar("reproducible", default=False)


@contextmanager
def reproducible_on_one_thread() -> Iterator[None]:
    """Inside, batches of this thread run on it alone, and by final code from the first one on."""
    token = _reproducible.set(True)
    try:
        yield
    finally:
        _reproducible.reset(token)


def backend() -> str:
    """PHISTAR_BACKEND: name of the backend that runs where none is named; empty: the default."""
    return _read_variable("PHISTAR_BACKEND")


def tier() -> str:
    """PHISTAR_TIER: one of ``TIERS``."""
    if _reproducible.get():
        return "wait"
    value = _read_variable("PHISTAR_TIER") or TIERS[0]
    if value not in TIERS:
        raise SettingError("PHISTAR_TIER", value, f"one of {', '.join(TIERS)}")
    return value


def threads() -> int | None:
    """PHISTAR_THREADS: threads for a large batch; None: the available processors."""
    if _reproducible.get():
        return 1
    value = _read_variable("PHISTAR_THREADS")
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= MAX_THREADS):
        raise SettingError("PHISTAR_THREADS", value, f"a whole number from 1 to {MAX_THREADS}")
    return int(value)


def cache_folder() -> Path | None:
    """PHISTAR_CACHE: the folder of compiled code; None: it is switched off."""
    value = os.environ.get("PHISTAR_CACHE", "")
    if value.strip().lower() == "off":
        return None
    if value:
        return _folder("PHISTAR_CACHE", value)
    from platformdirs import user_cache_path

    return user_cache_path("phistar", appauthor=False)


def _folder(name: str, value: str) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        raise SettingError(name, value, f"a folder, or off to keep nothing ({error})") from None


def cache_megabytes() -> float:
    """PHISTAR_CACHE_SIZE: largest size of the cache in megabytes."""
    value = _read_variable("PHISTAR_CACHE_SIZE")
    try:
        size = float(value) if value else DEFAULT_CACHE_MEGABYTES
    except ValueError:
        size = -1.0
    if not 0.0 <= size < float("inf"):
        raise SettingError("PHISTAR_CACHE_SIZE", value, "a number of megabytes such as 256")
    return size


def shared_folder(otherwise: Path) -> Path:
    """PHISTAR_SHARED: folder of the reference robots."""
    return Path(_read_variable("PHISTAR_SHARED") or otherwise)


def check() -> None:
    """Raise for wrong values now, not at first use; warn of names that nobody reads.

    Raises:
        SettingError: A variable has an invalid value.
    """
    tier()
    threads()
    cache_megabytes()
    if os.environ.get("PHISTAR_CACHE"):
        cache_folder()
    _check_names()


_variables_seen = 0
"""How many variables of any name there were when their names were last looked at."""


def _check_names() -> None:
    """Warn of misspelled variables; looking at all names again for each robot would be slow."""
    global _variables_seen
    if len(os.environ) == _variables_seen:
        return
    _variables_seen = len(os.environ)
    for name in os.environ:
        if name.upper().startswith("PHISTAR_") and not _is_known(name):
            close = close_matches(name, VARIABLES, count=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(VARIABLES)}"
            warn(
                f"{name} is set, but phistar reads no variable of that name: {hint}", SettingWarning
            )


def _is_known(name: str) -> bool:
    return name in VARIABLES or name.startswith(VARIABLES_OF_TESTS)


def _read_variable(name: str) -> str:
    return os.environ.get(name, "").strip()

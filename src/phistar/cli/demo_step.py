# SPDX-License-Identifier: BSD-3-Clause
"""A stop of ``phistar demo``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console

Names = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One stop of the tour: a title, the code to show and to run, and what to print of it.

    Attributes:
        needs: A package that may be absent; then the stop is left out and says so.
    """

    title: str
    code: str
    show: Callable[[Console, Names, float], None]
    needs: str = ""

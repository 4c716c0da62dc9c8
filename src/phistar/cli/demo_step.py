# SPDX-License-Identifier: BSD-3-Clause
"""A step of ``phistar demo``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console

Names = dict[str, Any]


@dataclass(frozen=True)
class DemoStep:
    """One step of the tour: a title, the code to show and to run, and the printer of its results.

    Attributes:
        needs: A package that may be absent; then the step is skipped with a message.
    """

    title: str
    code: str
    show: Callable[[Console, Names, float], None]
    needs: str = ""

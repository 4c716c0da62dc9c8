# SPDX-License-Identifier: BSD-3-Clause
"""A progress bar on the terminal's error stream, for loops whose length is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    shown: bool, description: str, total: int, unit: str = ""
) -> Iterator[Callable[[float], None]]:
    """A function of how much more is done, which moves the bar if it is shown."""
    if not shown:
        yield lambda more: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=total)
        yield lambda more: bar.update(task, advance=more)

# SPDX-License-Identifier: BSD-3-Clause
"""A chart of numbers over time, drawn in characters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phistar.arrays import Array
from phistar.cli.terminal import number

LEVELS = " ▁▂▃▄▅▆▇█"


def chart(
    title: str,
    t: Array,
    values: Array,
    *,
    logarithmic: bool = False,
    width: int = 72,
    height: int = 8,
) -> Sequence[str]:
    """Lines of text: a title, bars over time, and the times at the ends.

    Args:
        title: What is drawn.
        t: (N,) times [s].
        values: (N,); a column shows the last one of its interval.
        logarithmic: Draw logarithms; down to 1e-16 of the largest value.
        width: Number of columns.
        height: Number of lines of bars.
    """
    columns = min(width, len(t))
    picked = values[np.linspace(0, len(t) - 1, columns).round().astype(int)]
    top = float(np.max(picked, initial=0.0))
    low = float(np.min(picked, initial=top))
    if logarithmic and top > 0:
        low = max(low, 1e-16 * top)
        heights, span = np.log(np.maximum(picked, low) / low), float(np.log(top / low))
    else:
        heights, span = picked - low, top - low
    steps = np.ceil(8 * height * heights / span) if span > 0 else np.full(columns, 8 * height)
    labels = [number(top), *[""] * (height - 2), number(low)]
    wide = max(map(len, labels))
    lines = [f"{title}{', logarithmic' if logarithmic else ''}"]
    for row, label in enumerate(labels):
        filled = np.clip(steps - 8 * (height - 1 - row), 0, 8).astype(int)
        lines.append(f"{label:>{wide}} |{''.join(LEVELS[k] for k in filled)}".rstrip())
    first, last = f"{number(float(t[0]))} s", f"{number(float(t[-1]))} s"
    return [*lines, f"{'':>{wide}}  {first}{last:>{max(columns - len(first), len(last) + 1)}}"]

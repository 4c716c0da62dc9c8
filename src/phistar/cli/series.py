# SPDX-License-Identifier: BSD-3-Clause
"""Arrays over time as files: a table (CSV) or NumPy's own format (NPZ)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.cli import UsageError

SUFFIXES = (".csv", ".npz")


def check_suffix(path: str) -> None:
    """Refuse a file name that says neither."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise UsageError(f"--out is {path!r}, expected a name that ends in .csv or .npz")


def write_series(
    path: str, arrays: Mapping[str, NDArray[Any]], names: Mapping[str, Sequence[str]]
) -> None:
    """Write arrays (N,) or (N, k) over the same N times.

    Args:
        path: Where to; its suffix says in which format.
        arrays: By name.
        names: Names of the k columns of those that have several; in a table they are ``q.elbow``.
    """
    if Path(path).suffix.lower() == ".npz":
        np.savez(path, **dict(arrays))  # type: ignore[arg-type]
        return
    heads: list[str] = []
    for name, array in arrays.items():
        heads += [name] if array.ndim == 1 else [f"{name}.{part}" for part in names[name]]
    rows = np.column_stack([array.reshape(len(array), -1) for array in arrays.values()])
    quoted = [f'"{head}"' if set(head) & set(',"\n') else head for head in heads]
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(quoted) + "\n")
        np.savetxt(file, rows, fmt="%.17g", delimiter=",")

# SPDX-License-Identifier: BSD-3-Clause
"""Arrays over time as files: a table (CSV) or NumPy's own format (NPZ)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from phistar.arrays import Array
from phistar.cli import UsageError

SUFFIXES = (".csv", ".npz")


def check_target(option: str, path: str, suffixes: Sequence[str] = SUFFIXES) -> None:
    """Raise if a file cannot be written, before the work is done.

    Args:
        option: The option that names it.
        path: The file.
        suffixes: Suffixes of the formats.
    """
    file = Path(path)
    if file.suffix.lower() not in suffixes:
        known = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise UsageError(f"{option} is '{path}', expected a name that ends in {known}")
    if file.is_dir():
        raise UsageError(f"{option} is '{path}', which is a folder")
    if not file.parent.is_dir():
        raise UsageError(f"{option} is '{path}', and there is no folder '{file.parent}'")


def write_series(
    path: str, arrays: Mapping[str, Array], names: Mapping[str, Sequence[str]]
) -> None:
    """Write arrays (N,) or (N, k) over the same N times.

    Args:
        path: The file; its suffix determines the format.
        arrays: Arrays by name.
        names: Names of the k columns of those that have several; in a table they are ``q.elbow``.
    """
    if Path(path).suffix.lower() == ".npz":
        np.savez(path, **dict(arrays))  # type: ignore[arg-type]
        return
    heads: list[str] = []
    for name, array in arrays.items():
        heads += [name] if array.ndim == 1 else [f"{name}.{column}" for column in names[name]]
    rows = np.column_stack([array.reshape(len(array), -1) for array in arrays.values()])
    quoted = [f'"{head}"' if set(head) & set(',"\n') else head for head in heads]
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(quoted) + "\n")
        np.savetxt(file, rows, fmt="%.17g", delimiter=",")

# SPDX-License-Identifier: BSD-3-Clause
"""Text files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Replace a file in one step, so that nobody sees half of it."""
    write_all({path: text})


def _write(place: Path, path: Path, text: str) -> None:
    """Write a new file; a disk that is full names the one that is wanted."""
    try:
        with open(place, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        error.filename = str(path)
        raise


def write_all(texts: Mapping[Path, str]) -> None:
    """Replace several files, or none if one of them cannot be written."""
    temporary = {path: path.with_name(f".{path.name}.{os.getpid()}") for path in texts}
    try:
        for path, text in texts.items():
            _write(temporary[path], path, text)
        for path in texts:
            os.replace(temporary[path], path)
    except BaseException:
        for path in temporary.values():
            path.unlink(missing_ok=True)
        raise

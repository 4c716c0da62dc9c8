# SPDX-License-Identifier: BSD-3-Clause
"""Sources of robot descriptions: files, bytes or text, read safely."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from phistar.errors import Problem, RobotFileError, RobotNotFoundError, UnsafeFileError

MAX_BYTES = 128 * 1024 * 1024
"""Largest robot file that is read; a 100 000-link chain has about 25 MB."""


@dataclass(frozen=True)
class Source:
    """Bytes of a robot description with the name used in messages.

    Attributes:
        data: The bytes.
        name: File name for messages (``file:line``).
        path: The file, or None for bytes given directly.
    """

    data: bytes
    name: str
    path: Path | None = None

    def at(self, line: int | None) -> str:
        """``file:line`` in this source."""
        return f"{self.name}:{line}" if line else self.name


def read_source(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Source:
    """The bytes of a regular file.

    Raises:
        RobotNotFoundError: No such file, or a dangling link.
        RobotFileError: A directory, fifo, device, link loop, or no permission.
        UnsafeFileError: Larger than ``max_bytes``.
    """
    file = Path(path)
    try:
        # O_NONBLOCK: opening a fifo must not wait for a writer.
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        link = " (a link whose target is missing)" if file.is_symlink() else ""
        raise RobotNotFoundError(file, f"no such file{link}") from None
    except OSError as error:
        raise RobotFileError(file, error.strerror or str(error)) from None
    except ValueError as error:
        raise RobotFileError(file, str(error)) from None
    info = os.fstat(handle)
    if not stat.S_ISREG(info.st_mode):
        os.close(handle)
        raise RobotFileError(file, "not a regular file (a directory, pipe or device)")
    with os.fdopen(handle, "rb") as stream:
        check_size(info.st_size, file.name, max_bytes)
        return Source(stream.read(max_bytes + 1), file.name, file)


def check_size(size: int, name: str, max_bytes: int = MAX_BYTES) -> None:
    """Reject descriptions larger than ``max_bytes``."""
    if size > max_bytes:
        what = f"{size} bytes is more than the limit of {max_bytes} for a robot file."
        cure = "Remove embedded data or split the robot."
        raise UnsafeFileError([Problem("error", "too-big", name, what, cure)])

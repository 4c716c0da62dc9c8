# SPDX-License-Identifier: BSD-3-Clause
"""Mesh file names of robot files -> paths inside allowed folders. Nothing is downloaded.

Not used to load a robot, whose dynamics needs no mesh; only to draw it, with the file names of
``Shape.mesh`` as the robot file spells them.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from phistar.errors import Problem, RobotFileError, RobotNotFoundError, UnsafeFileError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def resolve_asset(
    uri: str,
    roots: Sequence[str | os.PathLike[str]],
    *,
    base: str | os.PathLike[str] | None = None,
) -> Path:
    """The file of a mesh name in a robot file.

    Args:
        uri: ``package://name/path``, ``file:///path`` or a path, relative to ``base``.
        roots: The folders that may be read. A package is a folder in one of them, or one of them
            itself, or a folder above ``base`` that is inside one.
        base: Folder of the robot file; default: the first root.

    Returns:
        An existing regular file, links resolved, inside one of the roots.

    Raises:
        UnsafeFileError: Another scheme, or a path that leaves the roots.
        RobotNotFoundError: No such file in any root.
        RobotFileError: Not a regular file.
    """
    allowed = [Path(root).resolve() for root in roots]
    if not allowed:
        raise _unsafe(uri, "no folder is allowed to be read", "Pass the folders in roots.")
    if not uri or "\0" in uri:
        raise _unsafe(uri, "it is no file name", "Name the mesh file.")
    start = Path(base).resolve() if base is not None else allowed[0]
    outside_path: Path | None = None
    for candidate in _candidates(uri, allowed, start):
        path, mode = _examine(candidate, uri)
        if not any(path.is_relative_to(root) for root in allowed):
            outside_path = path
        elif stat.S_ISREG(mode):
            return path
        elif mode:
            raise RobotFileError(path, "not a regular file (a directory, pipe or device)")
    if outside_path is not None:
        folders = ", ".join(str(root) for root in allowed)
        raise _unsafe(uri, f"it leads outside the allowed folders ({folders})", "Add its folder.")
    raise RobotNotFoundError(uri, f"not found in {', '.join(str(root) for root in allowed)}")


def _candidates(uri: str, roots: list[Path], base: Path) -> Iterator[Path]:
    """Candidate paths, allowed or not, the most likely first."""
    match = _SCHEME.match(uri)
    scheme = match.group(1).lower() if match else ""
    if scheme == "package":
        package, _, tail = uri[match.end() :].removeprefix("//").partition("/")  # type: ignore[union-attr]
        if package in ("", ".", ".."):
            raise _unsafe(uri, "it names no package", "Write package://name/path.")
        yield from (folder / tail for folder in (base, *base.parents) if folder.name == package)
        yield from (root / tail for root in roots if root.name == package)
        yield from (root / package / tail for root in roots)
    elif scheme == "file":
        url = urlsplit(uri)
        if url.netloc not in ("", "localhost"):
            raise _unsafe(uri, f"it is on another machine, '{url.netloc}'", "Copy it here.")
        yield base / unquote(url.path)
    elif scheme:
        cure = "Only package://, file:// and plain paths are read; nothing is downloaded."
        raise _unsafe(uri, f"its scheme is '{scheme}'", cure)
    else:
        yield base / uri


def _examine(path: Path, uri: str) -> tuple[Path, int]:
    """The path with its links resolved, and its mode; zero if there is no such file."""
    try:
        real = path.resolve()
        return real, real.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return path.resolve(), 0
    except (OSError, RuntimeError) as error:
        # A loop of links, a name that is too long, a folder that must not be entered.
        raise RobotFileError(uri, str(error)) from None


def _unsafe(uri: str, reason: str, cure: str) -> UnsafeFileError:
    what = f"the mesh '{uri}' is not read: {reason}."
    return UnsafeFileError([Problem("error", "asset", "", what, cure)])

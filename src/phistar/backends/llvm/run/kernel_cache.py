# SPDX-License-Identifier: BSD-3-Clause
"""Object code on disk, so that a robot is compiled once and not once a process.

One file a kernel, under a name made of everything that decides its content::

    magic   length of header   header (JSON)   SHA-256 of header and code   code

Environment:
    PHISTAR_CACHE: Folder to use instead of the user's cache folder; ``off`` keeps nothing.
    PHISTAR_CACHE_SIZE: Megabytes that may be kept, 256 by default; the code that was not used for
        the longest time goes first.

The code is run, so the folder must belong to the user and be closed to others, or it is not used.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from phistar import settings
from phistar.backends.llvm.run.jit import TargetCpu, host_cpu, llvm_versions
from phistar.errors import CacheWarning, warn
from phistar.thresholds import POLICY

FORMAT_VERSION = 1
"""Number of the file format and of what kernels expect from their callers; part of every key."""

MAGIC = b"phistar kernel\n"
SUFFIX = ".kernel"

STALE_FILE_SECONDS = 3600.0
"""Seconds after which an unfinished file is the remains of a process that died."""

_LENGTH_BYTES = 4
_DIGEST_BYTES = hashlib.sha256().digest_size

_warned_paths: set[Path] = set()

_seen_bytes: dict[Path, tuple[float, int]] = {}
"""By folder: bytes when this process last looked at all files, and bytes that it kept since."""


@dataclass(frozen=True)
class CachedKernel:
    """A kernel in the cache.

    Attributes:
        key: Its name.
        size: Bytes of the file.
        used: When it was last read or written, in seconds since 1970.
        meta: Its header; empty if the file is damaged.
    """

    key: str
    size: int
    used: float
    meta: dict[str, object]


def cache_key(fingerprint: str | bytes, processor: TargetCpu | None = None) -> str:
    """The name of a kernel.

    Args:
        fingerprint: What decides the code: LLVM text, or whatever text is made from.
        processor: What the code is made for; default: this machine.

    Returns:
        64 hexadecimal digits.
    """
    target = host_cpu() if processor is None else processor
    given = fingerprint.encode() if isinstance(fingerprint, str) else fingerprint
    digest = hashlib.sha256()
    for part in (f"{FORMAT_VERSION}", llvm_versions(), target.cpu, target.features):
        digest.update(f"{len(part)}:{part}".encode())
    digest.update(given)
    return digest.hexdigest()


def lookup(name: str, needed: Collection[str] = ()) -> tuple[bytes, dict[str, object]] | None:
    """The code of a kernel and what was written down with it; None if there is none.

    A damaged file counts as none, and is deleted.

    Args:
        name: What ``cache_key`` returned.
        needed: What must have been written down.
    """
    folder = _folder()
    if folder is None:
        return None
    path = folder / f"{name}{SUFFIX}"
    try:
        content = _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(path, f"cannot be read ({error.strerror}); its kernel is compiled again.")
        return None
    found = _unpack(content)
    if found is None or found[1].get("key") != name or not found[1].keys() >= set(needed):
        _ignore_os_errors(path.unlink)
        return None
    _ignore_os_errors(lambda: os.utime(path))
    return found


def save(name: str, code: bytes, meta: Mapping[str, object]) -> None:
    """Keep the code of a kernel; others may do the same at the same time.

    Args:
        name: What ``cache_key`` returned.
        code: Object code.
        meta: Whatever running it takes, and a ``name`` to show; anything that JSON can hold.
    """
    folder = _folder(make=True)
    if folder is None:
        return
    known = {"key": name, "created": time.time(), "versions": llvm_versions()}
    header = {"cpu": host_cpu().cpu, **meta, **known}
    content = _pack(code, header)
    most = limit_bytes()
    if len(content) > most:
        return
    try:
        handle, unfinished = tempfile.mkstemp(dir=folder, prefix=".", suffix=".unfinished")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(unfinished, folder / f"{name}{SUFFIX}")
        except BaseException:
            _ignore_os_errors(lambda: os.unlink(unfinished))
            raise
        _shrink_if_near(folder, most, len(content))
    except OSError as error:
        _warn(folder, f"cannot be written ({error.strerror}); kernels are compiled every time.")


def folder_path() -> Path | None:
    """The folder, whether it exists or not; None if the cache is switched off."""
    folder = settings.cache_folder()
    return None if folder is None else folder / "kernels"


def entries() -> list[CachedKernel]:
    """All kernels, the last used first."""
    folder = _folder()
    if folder is None:
        return []
    found = [
        CachedKernel(file.removesuffix(SUFFIX), size, used, _header(folder / file))
        for file, size, used in _files(folder)
        if file.endswith(SUFFIX)
    ]
    return sorted(found, key=lambda entry: entry.used, reverse=True)


def total_bytes() -> int:
    """Bytes of all kernels."""
    folder = _folder()
    return 0 if folder is None else sum(size for _, size, _ in _files(folder))


def clear() -> int:
    """Delete all kernels; how many there were."""
    folder = _folder()
    if folder is None:
        return 0
    names = [name for name, _, _ in _files(folder)]
    for name in names:
        _ignore_os_errors((folder / name).unlink)
    return sum(name.endswith(SUFFIX) for name in names)


def limit_bytes() -> float:
    """Bytes that may be kept."""
    return settings.cache_megabytes() * 1e6


# -- the folder


def _folder(make: bool = False) -> Path | None:
    """The folder if it exists and can be trusted; made if asked to."""
    folder = folder_path()
    if folder is None:
        return None
    try:
        if make:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        state = os.lstat(folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(folder, f"cannot be used ({error.strerror}); kernels are compiled every time.")
        return None
    doubt = _distrust_reason(state)
    if doubt:
        _warn(
            folder,
            f"{doubt}, so kernels in it could be anyone's and are not used. "
            "Remove it, or name another folder in PHISTAR_CACHE.",
        )
        return None
    return folder


def _distrust_reason(state: os.stat_result) -> str:
    """Why a folder cannot be trusted, if so."""
    if not stat.S_ISDIR(state.st_mode):
        return "is not a folder"
    if not hasattr(os, "getuid"):
        # Windows: folders below a user's profile are closed to others.
        return ""
    if state.st_uid != os.getuid():
        return "belongs to another user"
    if state.st_mode & 0o022:
        return "can be written by others"
    return ""


def _files(folder: Path) -> list[tuple[str, int, float]]:
    """Name, size and last use of each file of ours."""
    found = []
    with os.scandir(folder) as listing:
        for item in listing:
            if item.name.endswith((SUFFIX, ".unfinished")):
                try:
                    state = item.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                found.append((item.name, state.st_size, state.st_mtime))
    return found


def _shrink_if_near(folder: Path, most: float, added: int) -> None:
    """Delete what is too much, unless what was kept since the last look cannot be.

    To look at thousands of files takes longer than to write one. Other processes may keep as much
    meanwhile.
    """
    seen, kept = _seen_bytes.get(folder, (most, 0))
    kept += added
    if kept > POLICY.cache_share_unseen * (most - seen):
        seen, kept = _shrink(folder, most), 0
    _seen_bytes[folder] = seen, kept


def _shrink(folder: Path, most: float) -> float:
    """Delete what was not used for the longest time until the rest fits, and remains; its bytes."""
    files = sorted(_files(folder), key=lambda file: file[2])
    size = sum(file[1] for file in files)
    now = time.time()
    for name, part, used in files:
        abandoned = not name.endswith(SUFFIX) and now - used > STALE_FILE_SECONDS
        if abandoned or (size > most and name.endswith(SUFFIX)):
            _ignore_os_errors((folder / name).unlink)
            size -= part
    return size


# -- files


def _pack(code: bytes, header: dict[str, object]) -> bytes:
    told = json.dumps(header).encode()
    digest = hashlib.sha256(told + code).digest()
    return MAGIC + len(told).to_bytes(_LENGTH_BYTES, "little") + told + digest + code


def _unpack(content: bytes) -> tuple[bytes, dict[str, object]] | None:
    """Code and header; None if anything is not as it was written."""
    start = len(MAGIC) + _LENGTH_BYTES
    if not content.startswith(MAGIC) or len(content) < start:
        return None
    end = start + int.from_bytes(content[len(MAGIC) : start], "little")
    told, digest, code = (
        content[start:end],
        content[end : end + _DIGEST_BYTES],
        content[end + _DIGEST_BYTES :],
    )
    if hashlib.sha256(told + code).digest() != digest:
        return None
    try:
        header = json.loads(told)
    except ValueError:
        return None
    return (code, header) if isinstance(header, dict) else None


def _read(path: Path) -> bytes:
    """A file, unless it is a link, something else or not ours."""
    # Opening a pipe would wait for somebody to write into it.
    flags = [getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_BINARY", "O_NONBLOCK")]
    handle = os.open(path, os.O_RDONLY | sum(flags))
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            return b""
        if hasattr(os, "getuid") and (state.st_uid != os.getuid() or state.st_mode & 0o022):
            return b""
        return file.read()


def _header(path: Path) -> dict[str, object]:
    try:
        found = _unpack(_read(path))
    except OSError:
        return {}
    return {} if found is None else found[1]


def _ignore_os_errors(action: Callable[[], object]) -> None:
    """Tidy up; another process may have been faster, or the folder may be read-only."""
    try:
        action()
    except OSError:
        return


def _warn(place: Path, text: str) -> None:
    """Say what is wrong with a folder or file, once a process."""
    if place not in _warned_paths:
        _warned_paths.add(place)
        warn(f"{place} {text}", CacheWarning)

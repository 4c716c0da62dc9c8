# SPDX-License-Identifier: BSD-3-Clause
"""Logs as files: tables (CSV, Parquet), archives (NPZ, Zarr), messages (MCAP, ROS bags).

Every reader gives a ``Recording``; what its numbers mean for a robot is decided in ``logs``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, PhistarError
from phistar.file_packages import parquet, zarr
from phistar.ident.joint_states import read_bag, read_mcap
from phistar.ident.recording import FIELDS, TIMES, Recording, shown
from phistar.sim.files import csv_table

NAMES = ("names", "joints", "joint_names")
"""Where an archive may have the names of joints."""


def read_recording(
    path: str | Path, joint_names: tuple[str, ...] = (), topic: str | None = None
) -> Recording:
    """A log; its suffix says how it is read.

    Args:
        path: ``.csv``, ``.parquet``, ``.npz``, ``.zarr``, ``.mcap``, ``.bag``, or the folder of a
            ROS 2 bag.
        joint_names: Of arrays that come without names.
        topic: Of messages; default: the only one, or ``/joint_states``.

    Raises:
        ArgumentError: An unknown suffix, or the file is none of its kind.
        MissingExtraError: The package that reads it is not installed.
    """
    if not isinstance(path, str | Path):
        raise ArgumentError(f"path is {path!r:.80}, expected the path of a log")
    source = Path(path)
    if not source.exists():
        raise ArgumentError(f"there is no log '{source}'")
    suffix = source.suffix.lower()
    if source.is_dir() and suffix != ".zarr":
        suffix = ".bag"
    try:
        if suffix in MESSAGES:
            return MESSAGES[suffix](source, topic)
        if suffix in ARRAYS and topic is not None:
            raise ArgumentError(f"a {suffix} log has no topics, and '{topic}' is asked for")
        if suffix in ARRAYS:
            return ARRAYS[suffix](source, joint_names)
    except PhistarError:
        raise
    except Exception as error:  # packages raise what unpacks, decompresses and parses their parts
        said = " ".join(str(error).split()) or type(error).__name__
        raise ArgumentError(f"'{source}' cannot be read as a {suffix} log: {said}") from None
    known = ", ".join([*ARRAYS, *MESSAGES])
    raise ArgumentError(f"'{source.name}' ends in '{source.suffix}', expected one of {known}")


def _time_name(source: Path, names: Sequence[str]) -> str:
    """Where the times are."""
    for name in TIMES:
        if name in names:
            return name
    raise ArgumentError(f"'{source}' has no times: none of {', '.join(TIMES)} in {shown([*names])}")


def _seconds(source: Path, name: str, times: ArrayLike) -> Array:
    """(N,) numbers; dates are counted from the first."""
    found = np.asarray(times)
    if found.ndim != 1:
        raise ArgumentError(f"'{source}': {name} has shape {found.shape}, expected (N,)")
    if found.dtype.kind not in "iufmM":
        raise ArgumentError(f"'{source}': {name} has dtype {found.dtype}, expected times in s")
    if found.dtype.kind == "M":
        found = found - found[:1]
    if found.dtype.kind == "m":
        return np.asarray(found / np.timedelta64(1, "s"), dtype=float)
    return np.asarray(found, dtype=float)


def _from_table(
    source: Path, names: Sequence[str], column: Callable[[str], ArrayLike]
) -> Recording:
    """Columns ``t``, ``q.joint``, ``v.joint``, ``tau.joint`` in any order."""
    time = _time_name(source, names)
    found: dict[str, dict[str, str]] = {field: {} for field in FIELDS}
    unused = []
    for name in names:
        word, _, joint = name.partition(".")
        field = next((field for field, words in FIELDS.items() if word in words), None)
        if field is not None and joint:
            if joint in found[field]:
                both = f"{found[field][joint]} and {name}"
                raise ArgumentError(f"'{source}': {both} are both the {field} of '{joint}'")
            found[field][joint] = name
        elif name != time:
            unused.append(name)
    joints = tuple(dict.fromkeys(joint for each in found.values() for joint in each))
    if not joints:
        raise ArgumentError(f"'{source}' has no columns such as q.JOINT, v.JOINT and tau.JOINT")
    t = _seconds(source, time, column(time))
    arrays = [np.full((len(t), len(joints)), np.nan) for _ in FIELDS]
    for array, each in zip(arrays, found.values(), strict=True):
        for joint, name in each.items():
            array[:, joints.index(joint)] = np.asarray(column(name), dtype=float)
    notes = (f"columns that are not used: {shown(unused)}",) if unused else ()
    return Recording(str(source), t, joints, arrays[0], arrays[1], arrays[2], notes)


def _read_csv(source: Path, _: tuple[str, ...]) -> Recording:
    names, rows = csv_table(source)
    return _from_table(source, names, lambda name: rows[:, names.index(name)])


def _read_parquet(source: Path, _: tuple[str, ...]) -> Recording:
    file = parquet().ParquetFile(source, page_checksum_verification=True)
    names = file.schema_arrow.names
    return _from_table(source, names, lambda name: file.read(columns=[name]).column(0).to_numpy())


def _from_arrays(
    source: Path,
    arrays: Mapping[str, ArrayLike],
    named: Sequence[str] | None,
    other: tuple[str, ...],
) -> Recording:
    """Arrays ``t`` (N,), ``q``, ``v``, ``tau`` (N, joints) and the names of their columns."""
    time = _time_name(source, [*arrays])
    t = _seconds(source, time, arrays[time])
    notes = () if named else ("columns have no names: the robot's order of joints is taken",)
    joints = tuple(map(_text, named)) if named else other
    for joint in joints:
        if joints.count(joint) > 1:
            raise ArgumentError(f"'{source}': joint '{joint}' is there twice")
    found = []
    for field, words in FIELDS.items():
        values = np.full((len(t), len(joints)), np.nan)
        name = next((word for word in words if word in arrays), None)
        if name is not None:
            given = np.asarray(arrays[name])
            if given.dtype.kind not in "iuf":
                raise ArgumentError(
                    f"'{source}': {name} has dtype {given.dtype}, expected real numbers"
                )
            # A simulation has one row of forces less: they are held from one state to the next.
            rows = [len(t)] if field != "effort" else [len(t), len(t) - 1]
            if given.ndim != 2 or given.shape[1] != len(joints) or len(given) not in rows:
                raise ArgumentError(
                    f"'{source}': {name} has shape {given.shape}, expected ({len(t)}, "
                    f"{len(joints)}): times, and joints {shown(joints)}"
                )
            values[: len(given)] = given
        found.append(values)
    return Recording(str(source), t, joints, found[0], found[1], found[2], notes)


def _text(name: object) -> str:
    """A name, which other languages may have written as bytes."""
    return name.decode() if isinstance(name, bytes) else str(name)


def _read_npz(source: Path, other: tuple[str, ...]) -> Recording:
    with source.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    named = next((arrays[key].tolist() for key in NAMES if key in arrays), None)
    if named is None and "about" in arrays:
        told = json.loads(str(arrays["about"]))["names"]
        named = [name[2:] for name in told if name.startswith("v.")]
    return _from_arrays(source, arrays, named, other)


def _read_zarr(source: Path, other: tuple[str, ...]) -> Recording:
    group = zarr().open_group(str(source), mode="r")
    arrays: dict[str, ArrayLike] = {name: array[...] for name, array in group.arrays()}
    about = group.attrs.asdict()
    named = next((about[key] for key in NAMES if key in about), None)
    return _from_arrays(source, arrays, named, other)


ARRAYS: Mapping[str, Callable[[Path, tuple[str, ...]], Recording]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
    ".zarr": _read_zarr,
}
"""Readers of tables and archives by suffix."""
MESSAGES: Mapping[str, Callable[[Path, str | None], Recording]] = {
    ".mcap": read_mcap,
    ".bag": read_bag,
}
"""Readers of messages by suffix."""

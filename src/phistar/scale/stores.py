# SPDX-License-Identifier: BSD-3-Clause
"""Zarr stores that are read and written chunk by chunk.

A store of results is a Zarr group: an array for each output, its chunks those of the tasks, and an
array ``checksums``, a number per task that is written last. A task is done if its number is there
and its rows still have that checksum.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.file_packages import zarr
from phistar.scale.packages import StoredArray, is_zarr_array
from phistar.scale.work import Output

CHECKSUMS = "checksums"
"""Name of the array of checksums; 0: not done."""

IDENTITY = "phistar"
"""Attribute of a store that says what made it."""


def open_inputs(source: StoredArray, names: Sequence[str] | None = None) -> dict[str, StoredArray]:
    """Zarr arrays by name, of a group, its path, or a mapping from names to arrays or their paths.

    Args:
        source: Where they are.
        names: Those to take from a group, and all that a mapping has to have; default: all.
    """
    if isinstance(source, Mapping):
        if names is not None:
            _require_names(names, source)
            _require_names(source, names)
        return {name: _opened_array(name, each) for name, each in source.items()}
    found = dict(sorted(_opened_group(source).arrays()))
    if names is None:
        return found
    _require_names(names, found)
    return {name: found[name] for name in names}


def _require_names(names: Iterable[str], known: Collection[str]) -> None:
    """Raise if one is not known."""
    for name in names:
        if name not in known:
            raise UnknownNameError("array", name, known)


def _opened_group(source: StoredArray) -> StoredArray:
    """A Zarr group, or the one of a path."""
    group = source
    if isinstance(source, str | Path):
        package = zarr()
        try:
            group = package.open_group(str(source), mode="r")
        except Exception as error:
            # Zarr's errors for a path without a group differ from version to version.
            raise ArgumentError(f"cannot read a Zarr group from {str(source)!r}: {error}") from None
    if not hasattr(group, "arrays"):
        raise ArgumentError(
            f"inputs is {source!r}, expected a Zarr group, its path, or a mapping from names to "
            "Zarr arrays or paths"
        )
    return group


def _opened_array(name: str, source: StoredArray) -> StoredArray:
    if is_zarr_array(source):
        return source
    if isinstance(source, np.ndarray):
        raise ArgumentError(
            f"input '{name}' is a NumPy array, which would travel with every task; scale.map takes "
            "it, or write it to a store first: zarr.save_array(path, array)"
        )
    try:
        return zarr().open_array(str(source), mode="r")
    except Exception as error:
        raise ArgumentError(
            f"cannot read a Zarr array '{name}' from {str(source)!r}: {error}"
        ) from None


def read_rows(name: str, array: StoredArray, first: int, last: int) -> Array:
    """Some rows of an input.

    Raises:
        ArgumentError: A chunk of them is damaged.
    """
    try:
        return np.asarray(array[first:last])
    except Exception as error:
        # What a damaged chunk raises depends on its codec.
        said = " ".join(str(error).split())
        rows = f"rows {first} to {min(last, array.shape[0]) - 1}"
        raise ArgumentError(f"'{name}' cannot be read there, {rows}: {said}") from None


def row_count(arrays: Mapping[str, StoredArray]) -> int:
    """Rows of arrays that all have the same number of them."""
    for name, x in arrays.items():
        if not x.ndim:
            raise ArgumentError(f"{name} is one number, expected an array with a row for each task")
    lengths = {name: x.shape[0] for name, x in arrays.items()}
    if len(set(lengths.values())) != 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items()) or "no array"
        raise ArgumentError(f"arrays have different numbers of rows: {said}")
    return int(next(iter(lengths.values())))


class ResultStore:
    """The arrays of results of tasks, and which of them are done.

    Attributes:
        path: Where it is.
        rows: Rows in all.
        rows_per_task: Of each task; the last may have fewer.
    """

    def __init__(self, path: str, rows: int, rows_per_task: int, outputs: Sequence[Output]) -> None:
        self.path = path
        self.rows = rows
        self.rows_per_task = rows_per_task
        self.outputs = tuple(outputs)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return -(-self.rows // self.rows_per_task)

    def rows_of(self, task: int) -> slice:
        """The rows of a task."""
        start = task * self.rows_per_task
        return slice(start, min(start + self.rows_per_task, self.rows))

    def create(self, identity: Mapping[str, object], constant: Mapping[str, Array]) -> None:
        """Make the arrays, with no numbers in them; arrays that are the same for all rows too."""
        group = zarr().open_group(self.path, mode="w")
        for output in self.outputs:
            group.create_array(
                output.name,
                shape=(self.rows, *output.shape),
                chunks=(self.rows_per_task, *(max(1, n) for n in output.shape)),
                dtype=output.dtype,
                fill_value=np.nan if np.dtype(output.dtype).kind == "f" else 0,
            )
        done = {"shape": (self.tasks,), "chunks": (1,), "dtype": "uint64", "fill_value": 0}
        group.create_array(CHECKSUMS, **done)
        for name, array in constant.items():
            group.create_array(name, data=array)
        group.attrs[IDENTITY] = dict(identity)

    def check_identity(self, identity: Mapping[str, object]) -> None:
        """Refuse to go on with a store that other work made.

        Raises:
            ArgumentError: It is not there, or differs; the message says in what.
        """
        if not Path(self.path).exists():
            raise ArgumentError(
                f"there is no store of results at {self.path!r} to go on with; leave resume out"
            )
        found, damage = self._identity_and_damage()
        other = [name for name, value in identity.items() if found.get(name) != _as_json(value)]
        if other:
            said = ", ".join(
                f"{name} was {found.get(name)!r} and is {identity[name]!r}" for name in other
            )
            raise ArgumentError(
                f"the store {self.path!r} was made by other work: {said}; give another path, or "
                "overwrite=True"
            )
        if damage:
            raise self._unreadable(damage)

    def _identity_and_damage(self) -> tuple[dict[str, object], str]:
        """What made the store, and what is wrong with its arrays; nothing, if they are whole."""
        shapes = {each.name: (self.rows, *each.shape) for each in self.outputs}
        shapes[CHECKSUMS] = (self.tasks,)
        found: dict[str, object] = {}
        try:
            group = zarr().open_group(self.path, mode="r")
            found.update(group.attrs[IDENTITY])
            arrays = dict(group.arrays())
            wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
        except Exception as error:  # what damaged metadata raises depends on the version of Zarr
            said = f"{type(error).__name__}: {' '.join(str(error).split())}"
            if not found:
                raise self._unreadable(said) from None
            return found, said
        return found, f"{wrong[0]} has shape {arrays[wrong[0]].shape}" if wrong else ""

    def _unreadable(self, said: str) -> ArgumentError:
        return ArgumentError(
            f"{self.path!r} cannot be read as a store of results ({said}); give another path, or "
            "overwrite=True to compute all of it again"
        )

    def write(self, task: int, arrays: Mapping[str, Array]) -> None:
        """Write the rows of a task, then its checksum."""
        group = zarr().open_group(self.path, mode="r+")
        rows = self.rows_of(task)
        for output in self.outputs:
            group[output.name][rows] = arrays[output.name]
        group[CHECKSUMS][task] = checksum([arrays[output.name] for output in self.outputs])

    def is_done(self, task: int) -> bool:
        """Whether the rows of a task are there and have their checksum."""
        group = zarr().open_group(self.path, mode="r")
        rows = self.rows_of(task)
        try:
            wanted = int(group[CHECKSUMS][task])
            if wanted == 0:
                return False
            arrays = [np.asarray(group[output.name][rows]) for output in self.outputs]
        except Exception:
            return False  # a chunk that cannot be read any more is computed again
        return checksum(arrays) == wanted


def checksum(arrays: Sequence[Array]) -> int:
    """A number other than 0 of the bits of some arrays."""
    told = blake2b(digest_size=8)
    for array in arrays:
        told.update(np.ascontiguousarray(array).tobytes())
    return int.from_bytes(told.digest(), "little") or 1


def _as_json(value: object) -> object:
    return json.loads(json.dumps(value))

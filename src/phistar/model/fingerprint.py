# SPDX-License-Identifier: BSD-3-Clause
"""A hash of everything that defines a robot, taken column by column.

Values of one type are serialized together: all names, then all masses, then all placements, and so
on. So the work per link is a few look-ups, however many numbers it has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import fields, is_dataclass
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from phistar.arrays import Array
from phistar.model.joints import JointKind

_EXCLUDED_FIELDS = frozenset({"where", "problems"})
"""Fields with file positions, which do not define a robot."""
_FLOAT_TYPES = frozenset({int, float, np.float64})
"""Types that count as float."""


def fingerprint(value: object) -> str:
    """The SHA-256 of a value, bit for bit; -0 is 0, and no file positions count."""
    digest = hashlib.sha256()
    for piece in _column([value]):
        digest.update(b"%d:" % len(piece))
        digest.update(piece)
    return digest.hexdigest()


def _column(values: Sequence[object]) -> Iterator[bytes]:
    """Values serialized together, type by type."""
    kinds = {float if kind in _FLOAT_TYPES else kind for kind in set(map(type, values))}
    yield b"%d kinds of %d" % (len(kinds), len(values))
    if len(kinds) == 1:
        yield from _same_type(kinds.pop(), values)
    elif kinds:
        groups: dict[type, list[int]] = {kind: [] for kind in kinds}
        for index, value in enumerate(values):
            kind = type(value)
            groups[float if kind in _FLOAT_TYPES else kind].append(index)
        for kind, indices in sorted(groups.items(), key=lambda group: group[1][0]):
            yield np.array(indices, dtype=np.int64).tobytes()
            yield from _same_type(kind, [values[index] for index in indices])


def _same_type(kind: type, values: Sequence[Any]) -> Iterator[bytes]:
    """Values of one type."""
    yield kind.__qualname__.encode()
    if kind is float:
        yield (np.array(values, dtype=np.float64) + 0.0).tobytes()
    elif kind is str:
        yield from _texts(values)
    elif kind is np.ndarray:
        yield from _arrays(values)
    elif kind is slice:
        for end in ("start", "stop", "step"):
            yield from _column(list(map(attrgetter(end), values)))
    elif issubclass(kind, Mapping):
        yield _lengths(values)
        yield from _column(list(chain.from_iterable(values)))
        yield from _column(list(chain.from_iterable(value.values() for value in values)))
    elif issubclass(kind, (tuple, list)):
        yield _lengths(values)
        yield from _column(list(chain.from_iterable(values)))
    elif is_dataclass(kind):
        for each in fields(kind):
            if each.name not in _EXCLUDED_FIELDS:
                yield each.name.encode()
                yield from _column(list(map(attrgetter(each.name), values)))
        if issubclass(kind, JointKind) and (sampled := values[0].behaviour()):
            yield from (sampled, *(value.behaviour() for value in values[1:]))
    else:
        yield from _texts(list(map(repr, values)))


def _arrays(values: Sequence[Array]) -> Iterator[bytes]:
    """Arrays, all float64 as those of a model are."""
    shapes = [value.shape for value in values]
    yield repr(shapes[:1] if len(set(shapes)) == 1 else shapes).encode()
    yield (np.frombuffer(b"".join([value.tobytes() for value in values])) + 0.0).tobytes()


def _texts(values: Sequence[str]) -> Iterator[bytes]:
    yield _lengths(values)
    yield "".join(values).encode("utf-8", "surrogatepass")


def _lengths(values: Sequence[Sized]) -> bytes:
    return np.array(list(map(len, values)), dtype=np.int64).tobytes()

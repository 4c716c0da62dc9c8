# SPDX-License-Identifier: BSD-3-Clause
"""A user's arrays, checked where they come in: shapes, numbers, batches, joints that move mass."""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.errors import ArgumentError, ShapeError, SingularHingeError
from phistar.model.configuration import Coordinates, batch_shape, configuration, tangent
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.singular import singular_hinges

Array = NDArray[Any]

_singular_hinges = lru_cache(maxsize=64)(singular_hinges)


def state(model: Model, **arguments: Coordinates) -> tuple[Array, ...]:
    """Checked arrays: q is a configuration, everything else a tangent vector.

    Raises:
        ShapeError: A shape does not fit the robot, or batch axes do not broadcast.
        ArgumentError: Something is not a finite number.
    """
    arrays = shaped(model, **arguments)
    for name, array in arrays.items():
        refuse_nan(name, array)
    return tuple(arrays.values())


def shaped(model: Model, **arguments: Coordinates) -> dict[str, Array]:
    """As ``state``, but whether the numbers are finite is left to others.

    Raises:
        ShapeError: A shape does not fit the robot, or batch axes do not broadcast.
    """
    arrays: dict[str, Array] = {}
    for name, value in arguments.items():
        read = configuration if name == "q" else tangent
        arrays[name] = read(model, value, name)
    batch_shape(model, arrays)
    return arrays


def spatial_vectors(model: Model, name: str, value: ArrayLike, count: int) -> Array:
    """Checked spatial vectors (..., count, 6), one for each link or frame."""
    array = np.asarray(value)
    array = array.astype(float) if array.dtype.kind in "biu" else array
    if array.dtype.kind not in "fc":
        raise ArgumentError(f"{name} is not an array of numbers: dtype {array.dtype}")
    if array.shape[-2:] != (count, 6):
        raise ShapeError(name, array.shape, f"(..., {count}, 6)", f"robot '{model.name}'")
    refuse_nan(name, array)
    return array


def refuse_nan(name: str, array: Array) -> None:
    """Raise unless every number is finite; names the first that is not."""
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ArgumentError(f"{name} is not finite: {name}{list(place)} is {array[place]}")


def refuse_singular(model: Model, locked: Set[int] = frozenset()) -> None:
    """Raise if a joint moves no inertia, locked bodies aside."""
    held = {model.bodies[k].joint for k in locked}
    hinges = [hinge for hinge in _singular_hinges(model) if hinge.joint not in held]
    if hinges:
        raise SingularHingeError(hinges)


def refuse_mimic(model: Model) -> None:
    """Raise unless every joint has a coordinate of its own."""
    if not joint_map(model).one_to_one:
        raise ArgumentError(
            f"robot '{model.name}' has reduced mimic joints, which operators over single joints do "
            "not know; load it with mimic='independent'"
        )


def check_out(out: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise unless results of this shape and dtype can be written to ``out``."""
    if not isinstance(out, np.ndarray):
        raise ArgumentError(f"out is a {type(out).__name__}, expected an array")
    if out.shape != shape:
        raise ShapeError("out", out.shape, str(shape), "the result")
    if out.dtype != dtype:
        raise ArgumentError(f"out has dtype {out.dtype}, expected {dtype}")
    if not out.flags.writeable:
        raise ArgumentError("out is read-only; pass an array that may be written")

# SPDX-License-Identifier: BSD-3-Clause
"""A user's arrays, checked where they come in: shapes, numbers, batches, joints that move mass."""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array, DType
from phistar.errors import ArgumentError, ShapeError, SingularHingeError, kind_of
from phistar.model.configuration import (
    Coordinates,
    as_numbers,
    batch_shape,
    read_coordinates,
    require_finite,
    require_unit_quaternions,
)
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.model.singular import singular_hinges
from phistar.thresholds import POLICY

_singular_hinges = cached_on_model(singular_hinges)


def checked_state(model: Model, **arguments: Coordinates) -> tuple[Array, ...]:
    """Checked arrays: q is a configuration, everything else a tangent vector.

    Quaternions that are unit but for rounding or drift are made unit.

    Raises:
        ShapeError: A shape does not fit the robot, or batch axes do not broadcast.
        NotFiniteError, QuaternionError: A number is not finite, a quaternion not unit.
        ArgumentError: Something is not a number.
    """
    return checked_numbers(model, **check_shapes(model, **arguments))


def require_real(**arrays: Array) -> None:
    """Raise for complex numbers, of which a part would be cut off."""
    for name, array in arrays.items():
        if array.dtype.kind == "c":
            raise ArgumentError(f"{name} is complex, expected real numbers: {name}.real")


def require_count(name: str, given: object, what: str = "1 or more", least: int = 1) -> int:
    """A whole number of at least ``least``, or an error that names it."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < least:
        raise ArgumentError(f"{name} is {given!r:.80}, expected {what}")
    return int(given)


def require_number(name: str, given: object, what: str, *, zero: bool = True) -> float:
    """A finite number above zero, or zero where that is allowed; else an error that says ``what``
    it should be."""
    if isinstance(given, np.ndarray) and given.ndim == 0:
        given = given.item()
    known = isinstance(given, (int, float, np.integer, np.floating)) and 0.0 <= given < np.inf
    if not known or isinstance(given, bool) or not (zero or given):
        raise ArgumentError(f"{name} is {given!r:.80}, expected {what}")
    return float(given)  # type: ignore[arg-type]


def names_in(name: str, given: str | Iterable[str]) -> list[str]:
    """Names that were given, one by itself or several; an error where there are none."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable):
        raise ArgumentError(f"{name} is {given!r:.80}, expected a list of names")
    return list(given)


def require_time(name: str, given: object) -> float:
    """A time greater than zero [s], or an error that names it."""
    return require_number(name, given, "a time greater than zero [s]", zero=False)


def require_robot(robot: object) -> None:
    """Raise unless something has the model of a robot."""
    if not isinstance(getattr(robot, "model", None), Model):
        raise ArgumentError(
            f"robot is {robot!r:.80}, expected a phistar.Robot, such as phistar.load('panda')"
        )


def checked_numbers(model: Model, **arrays: Array) -> tuple[Array, ...]:
    """What ``check_shapes`` leaves to others: the same arrays, finite, quaternions unit.

    Raises:
        NotFiniteError, QuaternionError: A number is not finite, a quaternion not unit.
    """
    for name, array in arrays.items():
        require_finite(name, array)
    if "q" in arrays:
        arrays["q"] = require_unit_quaternions(model, arrays["q"])
    return tuple(arrays.values())


def check_shapes(model: Model, **arguments: Coordinates) -> dict[str, Array]:
    """As ``checked_state``, but whether numbers are finite and quaternions unit is left to others.

    Raises:
        ShapeError: A shape does not fit the robot, or batch axes do not broadcast.
    """
    arrays: dict[str, Array] = {}
    for name, value in arguments.items():
        arrays[name] = read_coordinates(model, value, "q" if name == "q" else "v", name)
    batch_shape(model, arrays)
    return arrays


@lru_cache(maxsize=64)
def number_rows(x: float, samples: int | None = None) -> Array:
    """A number as programs read it, one for all samples: (1,) or (samples, 1), read-only.

    More samples than entries take share one number in memory.
    """
    shape = (1,) if samples is None else (samples, 1)
    rows = np.broadcast_to(np.float64(x), shape)
    if samples is None or samples <= POLICY.max_fast_path_samples:
        rows = np.array(rows)
        rows.flags.writeable = False
    return rows


def step_lengths(dt: ArrayLike, argument: str = "dt") -> Array:
    """Lengths of steps [s] as an array (..., 1).

    Raises:
        ArgumentError: One is no time greater than zero.
    """
    lengths = as_numbers(dt, argument)
    if lengths.dtype.kind != "f" or not (np.isfinite(lengths) & (lengths > 0)).all():
        number = dt if lengths.ndim == 0 else np.array2string(lengths, threshold=5)
        raise ArgumentError(f"{argument} is {number}, expected a time greater than zero [s]")
    return lengths[..., None]


def spatial_vectors(model: Model, name: str, value: ArrayLike, count: int) -> Array:
    """Checked spatial vectors (..., count, 6), one for each link or frame."""
    array = as_numbers(value, name)
    if array.shape[-2:] != (count, 6):
        raise ShapeError(name, array.shape, f"(..., {count}, 6)", f"robot '{model.name}'")
    require_finite(name, array.reshape(*array.shape[:-2], 6 * count))
    return array


def require_valid_inputs(model: Model, **arrays: Array) -> None:
    """Raise unless all numbers are finite and the quaternions of ``q`` unit but for drift."""
    for name, array in arrays.items():
        require_finite(name, array)
    if "q" in arrays:
        require_unit_quaternions(model, arrays["q"])


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
            "not know; robot.minimal(q).operators() has them on nodes of links that move together, "
            "or load it with mimic='independent'"
        )


def check_out(out: object, shape: tuple[int, ...], dtype: DType) -> None:
    """Raise unless results of this shape and dtype can be written to ``out``."""
    if not isinstance(out, np.ndarray):
        raise ArgumentError(f"out is {kind_of(out)}, expected an array")
    if out.shape != shape:
        raise ShapeError("out", out.shape, str(shape), "the result")
    if out.dtype != dtype:
        raise ArgumentError(f"out has dtype {out.dtype}, expected {dtype}")
    if not out.flags.writeable:
        raise ArgumentError("out is read-only; pass an array that may be written")

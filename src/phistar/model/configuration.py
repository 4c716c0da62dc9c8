# SPDX-License-Identifier: BSD-3-Clause
"""The configuration space of a model: checked arrays, tangent steps, random configurations.

Every function takes arrays with any leading batch axes (which broadcast) or a dict from joint names
to values, and keeps the dtype, complex included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array, DType
from phistar.errors import (
    ArgumentError,
    NotFiniteError,
    QuaternionError,
    ShapeError,
    UnknownNameError,
    first_index,
)
from phistar.model.foreign_arrays import labelled_columns, refuse_foreign
from phistar.model.joints import JointKind
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model

Coordinates = ArrayLike | Mapping[str, ArrayLike]
Space = Literal["q", "v"]


QUATERNION_LENGTH_TOLERANCE = 1e-6
"""Deviation of a quaternion's length from one within which it is normalized."""
QUATERNION_TOLERANCE_EPS = 64
"""The same in roundings of the precision, where that is more: float32 has only seven digits."""
QUATERNION_EXACT_EPS = 8
"""Roundings within which a quaternion counts as unit and is not changed."""


def configuration(model: Model, q: Coordinates, argument: str = "q") -> Array:
    """``q`` as an array (..., nq); joints missing from a dict are at their neutral value.

    Quaternions whose length is one within 1e-6 (float32: 8e-6) are made unit.

    Raises:
        ShapeError: It has another shape.
        NotFiniteError: A number is infinite or NaN.
        QuaternionError: The length of a quaternion deviates more from one.
        ArgumentError: It is no array of numbers.
    """
    array = read_coordinates(model, q, "q", argument)
    require_finite(argument, array)
    return require_unit_quaternions(model, array, argument)


def tangent(model: Model, v: Coordinates, argument: str = "v") -> Array:
    """``v`` (velocity, acceleration, force) as an array (..., nv); missing joints are zero.

    Raises:
        ShapeError, NotFiniteError, ArgumentError: As for ``configuration``.
    """
    array = read_coordinates(model, v, "v", argument)
    require_finite(argument, array)
    return array


def read_coordinates(model: Model, x: Coordinates, space: Space, argument: str) -> Array:
    """Coordinates as an array of the right shape; values are not checked."""
    size = model.nq if space == "q" else model.nv
    if type(x) is not np.ndarray:
        if isinstance(x, Mapping):
            return _from_mapping(model, x, space, argument)
        columns = labelled_columns(x)
        if columns is not None:
            return _from_mapping(model, columns, space, argument)
    array = as_numbers(x, argument)
    if array.ndim == 0 or array.shape[-1] != size:
        names = ", ".join(model.joint_names[:12]) + (", ..." if len(model.joint_names) > 12 else "")
        expected = f"(..., {size})"
        raise ShapeError(argument, array.shape, expected, f"robot '{model.name}'", names)
    return array


def _lent(x: Any) -> Array:
    """The memory of another package's array, by DLPack."""
    return np.asarray(np.from_dlpack(x))


def as_numbers(x: ArrayLike, argument: str) -> Array:
    """``x`` as an array of float or complex numbers.

    Raises:
        ArgumentError: It is none, or of another package and would lose information.
    """
    if type(x) is not np.ndarray:
        refuse_foreign(x, argument)
    try:
        # Arrays of other packages may offer their memory and nothing else.
        lends = hasattr(x, "__dlpack__") and not hasattr(x, "__array__")
        array = _lent(x) if lends else np.asarray(x)
        if array.dtype.kind in "biu":
            array = array.astype(np.float64)
    except (BufferError, ValueError, TypeError, RuntimeError) as error:
        raise ArgumentError(f"{argument} is not an array of numbers: {error}") from None
    if array.dtype.kind not in "fc":
        raise ArgumentError(f"{argument} is not an array of numbers: dtype {array.dtype}")
    return array


def require_finite(name: str, array: Array) -> None:
    """Raise unless every number of (..., n) is finite; names the first that is not."""
    fine = np.isfinite(array)
    if not fine.all():
        index = tuple(int(i) for i in np.argwhere(~fine)[0])
        text = f"{name} is not finite: {name}{list(index)} is {array[index]}"
        raise NotFiniteError(text, np.asarray(~fine.all(axis=-1) if fine.ndim else ~fine))


@cached_on_model
def quaternion_starts(model: Model) -> tuple[tuple[str, int], ...]:
    """Joints with a quaternion, and the entry of q with which it begins."""
    joints = (model.joints[name] for name in model.joint_names)
    return tuple(
        (joint.name, joint.q_slice.start + joint.joint_kind.quaternion)
        for joint in joints
        if joint.joint_kind.quaternion is not None
    )


def quaternion_tolerances(dtype: DType) -> tuple[float, float]:
    """Deviations of a quaternion's squared length from one: to be left alone, to be normalized.

    Args:
        dtype: Precision of the quaternion.
    """
    rounding = float(np.finfo(dtype).eps)
    return QUATERNION_EXACT_EPS * rounding, 2 * max(
        QUATERNION_LENGTH_TOLERANCE, QUATERNION_TOLERANCE_EPS * rounding
    )


def require_unit_quaternions(model: Model, q: Array, argument: str = "q") -> Array:
    """Finite q, quaternions that are unit up to rounding or drift normalized.

    Raises:
        QuaternionError: One deviates more.
    """
    q, lengths = normalize_quaternions(model, q)
    for (joint, start), bad in lengths.items():
        raise_length_error(argument, joint, q[..., start : start + 4], bad)
    return q


def normalized_configuration(model: Model, q: Coordinates) -> Array:
    """``q`` as an array, drifted quaternions normalized; errors are left to the caller."""
    return normalize_quaternions(model, read_coordinates(model, q, "q", "q"))[0]


def normalize_quaternions(model: Model, q: Array) -> tuple[Array, dict[tuple[str, int], Array]]:
    """q with unit quaternions, and which samples (...) have one that is too long or too short.

    The latter are not changed; they are given by joint and first entry.
    """
    result, deviating = q, {}
    for joint, start in quaternion_starts(model):
        quaternion = q[..., start : start + 4]
        negligible, largest = quaternion_tolerances(q.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            # Imaginary parts are derivatives, along which the length does not change.
            square = np.einsum("...i,...i->...", quaternion.real, quaternion.real)
            size = np.abs(square - 1.0)
            if quaternion.dtype.kind == "c":
                # A finite imaginary step along the rotations keeps the sum of the squares.
                steps = np.abs(np.einsum("...i,...i->...", quaternion, quaternion) - 1.0) <= largest
                size = np.where(steps & ~(size <= largest), 0.0, size)
        if (size <= negligible).all():
            continue
        bad = ~(size <= largest)
        if bad.any():
            deviating[joint, start] = bad
        drifted = ~bad & (size > negligible)
        if drifted.any():
            result = np.array(q) if result is q else result
            scale = np.sqrt(np.where(drifted, square, 1.0))
            result[..., start : start + 4] = quaternion / scale[..., None]
    return result, deviating


def raise_length_error(argument: str, joint: str, quats: Array, bad: Array) -> None:
    """Raise: the quaternions (..., 4) of some samples do not have length one."""
    index = first_index(bad)
    values = quats[index].real.astype(float)
    largest = float(np.abs(values).max())
    length = largest * float(np.linalg.norm(values / largest)) if largest else 0.0
    where = f" at sample {list(index)}" if index else ""
    cure = (
        "a quaternion without length is no rotation: the neutral one is (0, 0, 0, 1), see "
        "robot.neutral()"
        if length == 0.0
        else f"expected 1 within {QUATERNION_LENGTH_TOLERANCE:g}; make it unit first: "
        "robot.normalize(q)"
    )
    text = f"{argument} of joint '{joint}'{where} is a quaternion of length {length:.9g}, {cure}"
    raise QuaternionError(text, bad, joint, length)


def _from_mapping(
    model: Model, values: Mapping[Any, ArrayLike], space: Space, argument: str
) -> Array:
    known = set(model.joint_names)
    parts: dict[str, Array] = {}
    for name, value in values.items():
        if name not in known:
            _refuse_dependent(model, name)
            owner = f"'{model.name}'"
            raise UnknownNameError("independent joint", name, model.joint_names, owner)
        size = _size(model, name, space)
        array = as_numbers(value, f"{argument}[{name!r}]")
        if size == 1 and (array.ndim == 0 or array.shape[-1] != 1):
            array = array[..., None]
        if array.ndim == 0 or array.shape[-1] != size:
            given, kind = np.shape(value), model.joints[name].kind
            expected = f"(..., {size})" if size > 1 else "a number per sample"
            owner = f"{kind} joint '{name}' of robot '{model.name}'"
            raise ShapeError(f"{argument}[{name!r}]", given, expected, owner)
        parts[name] = array
    batch = batch_shape(model, {f"{argument}[{name!r}]": array for name, array in parts.items()})
    dtype = np.result_type(np.float64, *parts.values())
    start = neutral(model) if space == "q" else np.zeros(model.nv)
    result = np.broadcast_to(start.astype(dtype), (*batch, start.size)).copy()
    for name, array in parts.items():
        result[..., _slice(model, name, space)] = array
    return result


def batch_shape(model: Model, arguments: Mapping[str, Array]) -> tuple[int, ...]:
    """The leading axes that arrays (..., n) have in common after broadcasting.

    Raises:
        ShapeError: They do not broadcast; names the first argument that does not fit.
    """
    common: tuple[int, ...] = ()
    for name, array in arguments.items():
        axes = array.shape[:-1]
        if axes == common or not axes:
            continue
        try:
            common = np.broadcast_shapes(common, axes) if common else axes
        except ValueError:
            expected = f"leading axes that broadcast with {common}"
            raise ShapeError(name, array.shape, expected, f"robot '{model.name}'") from None
    return common


def _refuse_dependent(model: Model, name: str) -> None:
    joint = model.joints.get(name)
    if joint is not None and joint.mimic is not None:
        raise ArgumentError(
            f"joint '{name}' of robot '{model.name}' follows '{joint.mimic.joint}' "
            f"(mimic) and has no coordinate of its own; set '{joint.mimic.joint}', or load with "
            "mimic='independent'"
        )
    if joint is not None:
        raise ArgumentError(f"joint '{name}' of robot '{model.name}' is fixed: no coordinate")


def _slice(model: Model, name: str, space: Space) -> slice:
    joint = model.joints[name]
    return joint.q_slice if space == "q" else joint.v_slice


def _size(model: Model, name: str, space: Space) -> int:
    joint = model.joints[name]
    return joint.nq if space == "q" else joint.nv


def to_mapping(model: Model, x: Coordinates, space: Space) -> dict[str, Array]:
    """Values by joint name: (...) for joints with one coordinate, (..., n) for others."""
    array = read_coordinates(model, x, space, space)
    result: dict[str, Array] = {}
    for name in model.joint_names:
        values = array[..., _slice(model, name, space)]
        result[name] = values[..., 0] if _size(model, name, space) == 1 else values
    return result


def neutral(model: Model) -> Array:
    """Zero coordinates and identity quaternions, (nq,)."""
    q = np.zeros(model.nq)
    for kind, q_slice, _ in manifold_joints(model):
        q[q_slice] = kind.neutral()
    return q


@cached_on_model
def manifold_joints(model: Model) -> tuple[tuple[JointKind, slice, slice], ...]:
    """The joints on which a step is not an addition."""
    joints = (model.joints[name] for name in model.joint_names)
    return tuple(
        (j.joint_kind, j.q_slice, j.v_slice) for j in joints if not j.joint_kind.is_euclidean
    )


@cached_on_model
def _euclidean_indices(model: Model) -> tuple[Array, Array]:
    """Indices into q and v of the coordinates on which a step is an addition."""
    q = np.ones(model.nq, dtype=bool)
    v = np.ones(model.nv, dtype=bool)
    for _, q_slice, v_slice in manifold_joints(model):
        q[q_slice] = False
        v[v_slice] = False
    return np.flatnonzero(q), np.flatnonzero(v)


def integrate(model: Model, q: Coordinates, dv: Coordinates) -> Array:
    """The configuration reached from ``q`` along ``dv``: each joint's X_J(q) exp(H* dv).

    Args:
        q: (..., nq).
        dv: (..., nv) tangent step, e.g. v * dt [rad, m].

    Returns:
        (..., nq).
    """
    return integrate_unchecked(model, configuration(model, q), tangent(model, dv, "dv"))


def integrate_unchecked(model: Model, start: Array, step: Array) -> Array:
    """``integrate`` without checks; what is not finite stays so."""
    batch = batch_shape(model, {"q": start, "dv": step})
    if not manifold_joints(model):
        return np.asarray(start + step)
    result = np.empty((*batch, model.nq), dtype=np.result_type(start, step))
    flat_q, flat_v = _euclidean_indices(model)
    result[..., flat_q] = start[..., flat_q] + step[..., flat_v]
    for kind, q_slice, v_slice in manifold_joints(model):
        result[..., q_slice] = kind.integrate(start[..., q_slice], step[..., v_slice])
    return result


def difference(model: Model, q0: Coordinates, q1: Coordinates) -> Array:
    """The tangent step from ``q0`` to ``q1``: integrate(q0, difference(q0, q1)) = q1.

    Revolute joints give the plain difference of their angles (with full turns); rotations of
    spherical, free and planar joints the shortest one.
    """
    start, end = configuration(model, q0, "q0"), configuration(model, q1, "q1")
    batch = batch_shape(model, {"q0": start, "q1": end})
    if not manifold_joints(model):
        return np.asarray(end - start)
    result = np.empty((*batch, model.nv), dtype=np.result_type(start, end))
    flat_q, flat_v = _euclidean_indices(model)
    result[..., flat_v] = end[..., flat_q] - start[..., flat_q]
    for kind, q_slice, v_slice in manifold_joints(model):
        result[..., v_slice] = kind.difference(start[..., q_slice], end[..., q_slice])
    return result


def normalize(model: Model, q: Coordinates) -> Array:
    """``q`` with its quaternions scaled to length one.

    Raises:
        QuaternionError: One has no length.
    """
    result = np.array(read_coordinates(model, q, "q", "q"))
    require_finite("q", result)
    for joint, start in quaternion_starts(model):
        quaternion = result[..., start : start + 4]
        largest = np.abs(quaternion).max(axis=-1, keepdims=True)
        if not largest.all():
            raise_length_error("q", joint, quaternion, largest[..., 0] == 0.0)
        # Squares of very large and small numbers would leave their range.
        quaternion /= largest
    for kind, q_slice, _ in manifold_joints(model):
        result[..., q_slice] = kind.normalize(result[..., q_slice])
    return result


def random_generator(rng: object, name: str = "rng") -> np.random.Generator:
    """A generator of random numbers, given as such, by a seed, or None for another one each time.

    Raises:
        ArgumentError: It is none of these.
    """
    try:
        return np.random.default_rng(rng)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{name} is {rng!r:.80}, expected a seed, a whole number from 0 on, or a "
            "numpy.random.Generator"
        ) from error


def random_configuration(
    model: Model, rng: np.random.Generator, shape: int | tuple[int, ...] = ()
) -> Array:
    """Random configurations (*shape, nq) inside the limits.

    Unlimited angles are drawn from [-pi, pi), unlimited lengths from [-1, 1) m, rotations
    uniformly.
    """
    batch = _batch_axes(shape)
    q = np.empty((*batch, model.nq))
    for name in model.joint_names:
        joint = model.joints[name]
        lower, upper = np.array(joint.limits.lower), np.array(joint.limits.upper)
        q[..., joint.q_slice] = joint.joint_kind.random(rng, lower, upper, batch)
    return q


def _batch_axes(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    axes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for axis in axes:
        if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)) or axis < 0:
            raise ArgumentError(f"shape is {shape!r:.80}, expected numbers of samples, e.g. (2, 3)")
    return axes


def limits(model: Model) -> tuple[Array, Array]:
    """Lower and upper configuration limits, each (nq,), infinite where there is none."""
    lower, upper = np.empty(model.nq), np.empty(model.nq)
    for name in model.joint_names:
        joint = model.joints[name]
        lower[joint.q_slice], upper[joint.q_slice] = joint.limits.lower, joint.limits.upper
    return lower, upper

# SPDX-License-Identifier: BSD-3-Clause
"""The configuration space of a model: arrays in and out, stepping, comparing, drawing.

Every function takes arrays with any leading batch axes (which broadcast) or a dict from joint names
to values, and keeps the dtype, complex included.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model.joints import JointKind
from phistar.model.model import Model

Array = NDArray[Any]
Coordinates = ArrayLike | Mapping[str, ArrayLike]
Space = Literal["q", "v"]


def configuration(model: Model, q: Coordinates, argument: str = "q") -> Array:
    """``q`` as an array (..., nq); joints missing from a dict are at their neutral value."""
    return _coordinates(model, q, "q", argument)


def tangent(model: Model, v: Coordinates, argument: str = "v") -> Array:
    """``v`` (velocity, acceleration, force) as an array (..., nv); missing joints are zero."""
    return _coordinates(model, v, "v", argument)


def _coordinates(model: Model, x: Coordinates, space: Space, argument: str) -> Array:
    size = model.nq if space == "q" else model.nv
    if isinstance(x, Mapping):
        return _from_mapping(model, x, space, argument)
    array = _numbers(x, argument)
    if array.ndim == 0 or array.shape[-1] != size:
        names = ", ".join(model.joint_names[:12]) + (", ..." if len(model.joint_names) > 12 else "")
        expected = f"(..., {size})"
        raise ShapeError(argument, array.shape, expected, f"robot '{model.name}'", names)
    return array


def _numbers(x: ArrayLike, argument: str) -> Array:
    try:
        array = np.asarray(x)
        if array.dtype.kind in "biu":
            array = array.astype(np.float64)
    except ValueError as error:
        raise ArgumentError(f"{argument} is not an array of numbers: {error}") from None
    if array.dtype.kind not in "fc":
        raise ArgumentError(f"{argument} is not an array of numbers: dtype {array.dtype}")
    return array


def _from_mapping(
    model: Model, values: Mapping[str, ArrayLike], space: Space, argument: str
) -> Array:
    known = set(model.joint_names)
    parts: dict[str, Array] = {}
    for name, value in values.items():
        if name not in known:
            _refuse_dependent(model, name)
            owner = f"'{model.name}'"
            raise UnknownNameError("independent joint", name, model.joint_names, owner)
        size = _size(model, name, space)
        part = _numbers(value, f"{argument}[{name!r}]")
        if size == 1 and (part.ndim == 0 or part.shape[-1] != 1):
            part = part[..., None]
        if part.ndim == 0 or part.shape[-1] != size:
            given, kind = np.shape(value), model.joints[name].kind
            expected = f"(..., {size})" if size > 1 else "a number per sample"
            owner = f"{kind} joint '{name}' of robot '{model.name}'"
            raise ShapeError(f"{argument}[{name!r}]", given, expected, owner)
        parts[name] = part
    batch = batch_shape(model, {f"{argument}[{name!r}]": part for name, part in parts.items()})
    dtype = np.result_type(np.float64, *parts.values())
    start = neutral(model) if space == "q" else np.zeros(model.nv)
    result = np.broadcast_to(start.astype(dtype), (*batch, start.size)).copy()
    for name, part in parts.items():
        result[..., _slice(model, name, space)] = part
    return result


def batch_shape(model: Model, arguments: Mapping[str, Array]) -> tuple[int, ...]:
    """The leading axes that arrays (..., n) have in common after broadcasting.

    Raises:
        ShapeError: They do not broadcast; names the first argument that does not fit.
    """
    common: tuple[int, ...] = ()
    for name, array in arguments.items():
        own = array.shape[:-1]
        if own == common or not own:
            continue
        try:
            common = np.broadcast_shapes(common, own) if common else own
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
    array = _coordinates(model, x, space, space)
    result: dict[str, Array] = {}
    for name in model.joint_names:
        part = array[..., _slice(model, name, space)]
        result[name] = part[..., 0] if _size(model, name, space) == 1 else part
    return result


def neutral(model: Model) -> Array:
    """Zero coordinates and identity quaternions, (nq,)."""
    q = np.zeros(model.nq)
    for kind, q_slice, _ in _curved(model):
        q[q_slice] = kind.neutral()
    return q


@lru_cache(maxsize=64)
def _curved(model: Model) -> tuple[tuple[JointKind, slice, slice], ...]:
    """The joints on which a step is more than an addition."""
    joints = (model.joints[name] for name in model.joint_names)
    return tuple((j.motion, j.q_slice, j.v_slice) for j in joints if not j.motion.is_euclidean)


@lru_cache(maxsize=64)
def _flat(model: Model) -> tuple[Array, Array]:
    """Indices into q and v of the coordinates on which a step is an addition."""
    q = np.ones(model.nq, dtype=bool)
    v = np.ones(model.nv, dtype=bool)
    for _, q_slice, v_slice in _curved(model):
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
    start, step = configuration(model, q), tangent(model, dv, "dv")
    batch = batch_shape(model, {"q": start, "dv": step})
    if not _curved(model):
        return np.asarray(start + step)
    result = np.empty((*batch, model.nq), dtype=np.result_type(start, step))
    flat_q, flat_v = _flat(model)
    result[..., flat_q] = start[..., flat_q] + step[..., flat_v]
    for kind, q_slice, v_slice in _curved(model):
        result[..., q_slice] = kind.integrate(start[..., q_slice], step[..., v_slice])
    return result


def difference(model: Model, q0: Coordinates, q1: Coordinates) -> Array:
    """The tangent step from ``q0`` to ``q1``: integrate(q0, difference(q0, q1)) = q1.

    Revolute joints give the plain difference of their angles (turns are kept); rotations of
    spherical, free and planar joints the shortest one.
    """
    start, end = configuration(model, q0, "q0"), configuration(model, q1, "q1")
    batch = batch_shape(model, {"q0": start, "q1": end})
    if not _curved(model):
        return np.asarray(end - start)
    result = np.empty((*batch, model.nv), dtype=np.result_type(start, end))
    flat_q, flat_v = _flat(model)
    result[..., flat_v] = end[..., flat_q] - start[..., flat_q]
    for kind, q_slice, v_slice in _curved(model):
        result[..., v_slice] = kind.difference(start[..., q_slice], end[..., q_slice])
    return result


def normalize(model: Model, q: Coordinates) -> Array:
    """``q`` with its quaternions scaled to length one."""
    result = np.array(configuration(model, q))
    for kind, q_slice, _ in _curved(model):
        result[..., q_slice] = kind.normalize(result[..., q_slice])
    return result


def random_configuration(
    model: Model, rng: np.random.Generator, shape: int | tuple[int, ...] = ()
) -> Array:
    """Random configurations (*shape, nq) inside the limits.

    Unlimited angles are drawn from [-pi, pi), unlimited lengths from [-1, 1) m, rotations
    uniformly.
    """
    batch = (shape,) if isinstance(shape, int) else tuple(shape)
    q = np.empty((*batch, model.nq))
    for name in model.joint_names:
        joint = model.joints[name]
        lower, upper = np.array(joint.limits.lower), np.array(joint.limits.upper)
        q[..., joint.q_slice] = joint.motion.random(rng, lower, upper, batch)
    return q


def limits(model: Model) -> tuple[Array, Array]:
    """Lower and upper configuration limits, each (nq,), infinite where there is none."""
    lower, upper = np.empty(model.nq), np.empty(model.nq)
    for name in model.joint_names:
        joint = model.joints[name]
        lower[joint.q_slice], upper[joint.q_slice] = joint.limits.lower, joint.limits.upper
    return lower, upper

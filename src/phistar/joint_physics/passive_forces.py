# SPDX-License-Identifier: BSD-3-Clause
"""Springs, dampers and sliding friction for a user's arrays, and their derivatives."""

from __future__ import annotations

import numpy as np

from phistar.arguments import check_shapes, checked_numbers
from phistar.arrays import Array
from phistar.compile import run_traced
from phistar.model import configuration as space
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import FORCE_PARTS, Passive, passive_numbers, passive_parts
from phistar.model.joints import JointKind
from phistar.model.joints.number_ops import ARRAY_OPS, join_entries, split_entries
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model


def passive_force(model: Model, q: Coordinates, v: Coordinates, parts: tuple[str, ...]) -> Array:
    """Joint forces (..., nv) of some of ``FORCE_PARTS``; those of a robot without any are zero."""
    arrays = check_shapes(model, q=q, v=v)
    found = run_traced(model, ("passive_force", parts), *arrays.values())
    if found is None:
        q, v = checked_numbers(model, **arrays)
        found = passive_force_by_numpy(model, q, v, parts)
    return found


def force_parts(model: Model, passive: Passive) -> tuple[str, ...]:
    """Those of ``FORCE_PARTS`` that a user chooses and a robot has."""
    chosen = passive_parts(passive)
    return tuple(part for part in force_parts_given(model) if part in chosen)


def with_passive_force(
    model: Model, q: Coordinates, v: Coordinates, tau: Coordinates, parts: tuple[str, ...]
) -> Array:
    """Joint forces with those of springs and so on; what is not finite stays so."""
    arrays = check_shapes(model, q=q, v=v, tau=tau)
    more = passive_force_unchecked(model, arrays["q"], arrays["v"], parts)
    return np.asarray(arrays["tau"] + more)


def passive_force_unchecked(model: Model, q: Array, v: Array, parts: tuple[str, ...]) -> Array:
    """``passive_force`` of arrays whose shapes fit; what is not finite stays so."""
    found = run_traced(model, ("passive_force", parts), q, v)
    return passive_force_by_numpy(model, q, v, parts) if found is None else found


def passive_force_by_numpy(model: Model, q: Array, v: Array, parts: tuple[str, ...]) -> Array:
    """The same of checked arrays of any dtype."""
    numbers = passive_numbers(model)
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    dtype = np.result_type(q, v)
    real = np.finfo(dtype).dtype
    result = np.zeros((*batch, model.nv), dtype)
    if "springs" in parts and numbers.has("springs"):
        result -= numbers.stiffness.astype(real) * stretch(model, q)
    if "damping" in parts:
        result -= numbers.damping.astype(real) * v
    if "friction" in parts:
        result -= numbers.friction.astype(real) * np.sign(v.real)
    return result


def stretch(model: Model, q: Array) -> Array:
    """How far springs are from where they rest, (..., nv); zero where there is none."""
    numbers = passive_numbers(model)
    result = np.zeros((*q.shape[:-1], model.nv), q.dtype)
    for joint in (model.joints[name] for name in model.joint_names):
        if numbers.stiffness[joint.v_slice].any():
            here = q[..., joint.q_slice]
            rest = np.broadcast_to(
                numbers.spring_reference[joint.q_slice].astype(np.finfo(q.dtype).dtype), here.shape
            )
            parts = joint.joint_kind.displacement(
                split_entries(rest), split_entries(here), ARRAY_OPS
            )
            result[..., joint.v_slice] = join_entries(parts, (rest, here))
    return result


def spring_energy(model: Model, q: Array) -> Array:
    """½ e*K e (...) [J] of the springs at checked configurations (..., nq)."""
    e = stretch(model, q)
    return np.asarray(0.5 * (passive_numbers(model).stiffness * e * e).sum(axis=-1))


def passive_derivatives(
    model: Model, q: Array, v: Array, parts: tuple[str, ...]
) -> tuple[Array, Array]:
    """How passive forces follow tangent steps of q, and v: (..., nv, nv) and (nv, nv).

    Sliding friction is constant but where it changes its sign.
    """
    numbers = passive_numbers(model)
    along_q = np.zeros((*q.shape[:-1], model.nv, model.nv), np.result_type(q, v))
    along_v = np.zeros((model.nv, model.nv))
    if "damping" in parts:
        along_v -= np.diag(numbers.damping)
    if "springs" in parts and numbers.has("springs"):
        diagonal = np.arange(model.nv)
        along_q[..., diagonal, diagonal] = -numbers.stiffness
        for kind, q_slice, v_slice in space.manifold_joints(model):
            k = numbers.stiffness[v_slice]
            if k.any():
                along_q[..., v_slice, v_slice] = -k[:, None] * _stretch_derivative(
                    kind, numbers.spring_reference[q_slice], q[..., q_slice]
                )
    return along_q, along_v


IMAGINARY_STEP = 1e-30
"""Imaginary step of derivatives: nothing cancels, so it may be as small as one likes."""


def _stretch_derivative(kind: JointKind, rest: Array, q: Array) -> Array:
    """(..., nv, nv): how the stretch of one joint follows tangent steps, by imaginary steps."""
    columns = []
    for unit in np.eye(kind.nv):
        moved = kind.integrate(q.astype(complex), 1j * IMAGINARY_STEP * unit)
        start = np.broadcast_to(rest.astype(complex), moved.shape)
        found = kind.displacement(split_entries(start), split_entries(moved), ARRAY_OPS)
        columns.append(join_entries(found, (start, moved)).imag / IMAGINARY_STEP)
    return np.stack(columns, axis=-1)


@cached_on_model
def force_parts_given(model: Model) -> tuple[str, ...]:
    """Those of ``FORCE_PARTS`` that a robot has."""
    return passive_numbers(model).given(FORCE_PARTS)

# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives with respect to the inertial parameters of the bodies: dynamics is linear in them.

A body has ten, in the order of ``phistar.spatial.PARAMETER_NAMES``: mass, first moments and inertia
about the origin of its frame. Links that fixed joints weld together are one body.

    τ = Y π + A v̇       Y = H φ (N[α] + V ×* N[V]),  N[x] π = M(π) x
    ∂v̇/∂π = -𝓜⁻¹ Y      at the accelerations that τ gives
"""

from __future__ import annotations

import numpy as np

from phistar import dynamics
from phistar.arguments import check_shapes, checked_numbers, checked_state, refuse_singular
from phistar.arrays import Array
from phistar.compile import Full, joint_map, kernel, matrix, run_traced
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.spatial import PARAMETER_NAMES, crf, inertia_matrix

PARAMETERS_PER_BODY = len(PARAMETER_NAMES)
_UNITS = inertia_matrix(np.eye(PARAMETERS_PER_BODY))
"""(10, 6, 6) the inertia of each parameter alone."""


def regressor(model: Model, q: Coordinates, v: Coordinates, vdot: Coordinates) -> Array:
    """Y (..., nv, 10 bodies): joint forces per unit of each body's parameters."""
    arrays = check_shapes(model, q=q, v=v, vdot=vdot)
    found = run_traced(model, ("regressor",), *arrays.values())
    return regressor_by_sweeps(model, **arrays) if found is None else found


def regressor_by_sweeps(model: Model, q: Array, v: Array, vdot: Array) -> Array:
    """Forces that units of the parameters take at each body, handed inward by the Jacobians."""
    q, v, vdot = checked_numbers(model, q=q, v=v, vdot=vdot)
    joints = joint_map(model)
    inputs = {"v": joints.spread(v), "vdot": joints.spread(vdot)}
    moving = kernel("falling_accelerations")(model, q, inputs)
    V, alpha = moving["V"], moving["alpha"]
    units = _UNITS.astype(np.finfo(V.dtype).dtype)
    momenta = np.einsum("pij,...kj->...kip", units, V)
    forces = np.einsum("pij,...kj->...kip", units, alpha) + crf(V) @ momenta
    collected = joints.gather(matrix("link_jacobians", Full(), model, q))
    bodies = len(model.bodies)
    ways = collected.reshape(*collected.shape[:-2], bodies, 6, model.nv)
    blocks = np.swapaxes(ways, -1, -2) @ forces
    merged = np.moveaxis(blocks, -3, -2)
    return np.ascontiguousarray(merged).reshape(*merged.shape[:-2], PARAMETERS_PER_BODY * bodies)


def vdot_parameters(model: Model, q: Coordinates, v: Coordinates, tau: Coordinates) -> Array:
    """∂v̇/∂π (..., nv, 10 bodies): how accelerations follow the parameters, forces held."""
    refuse_singular(model)
    q, v, tau = checked_state(model, q=q, v=v, tau=tau)
    vdot = dynamics.forward_dynamics(model, q, v, tau)
    return -(dynamics.mass_matrix_inverse(model, q) @ regressor(model, q, v, vdot))


def parameters(model: Model) -> Array:
    """π (10 bodies,), the robot's own."""
    return np.array([body.inertia for body in model.bodies]).reshape(-1)

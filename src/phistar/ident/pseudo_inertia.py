# SPDX-License-Identifier: BSD-3-Clause
"""Physically possible inertia: pseudo-inertia matrices and their logarithmic Cholesky parameters.

A body is possible if its mass is somewhere: if the pseudo-inertia

    J = [[Σ, h], [hᵀ, m]],  Σ = ∫ r rᵀ dm = ½ tr(I) 1 - I,

is positive definite (Wensing, Kim and Slotine 2018). J = U Uᵀ with

    U = e^α [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]

has ten numbers (α, d1, d2, d3, s12, s23, s13, t1, t2, t3) that may be any (Rucker and Wensing
2022), and every possible body has just one set of them.
"""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.ident.columns import PER_BODY

_SHAPE_ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
"""Entries of U / e^α that d1, d2, d3, s12, s23, s13, t1, t2, t3 are in."""
_I_ENTRIES = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
"""Entries of I in the order of the parameters."""

LEAST_EIGENVALUE = 1e-14
"""Of a pseudo-inertia with diagonal one; below it, whether it has an inverse is up to rounding."""


def _unit_pseudo_inertias() -> Array:
    """(10, 4, 4) the pseudo-inertia of each parameter alone: J is linear in them."""
    units = np.zeros((PER_BODY, 4, 4))
    units[0, 3, 3] = 1.0
    for k in range(3):
        units[1 + k, k, 3] = units[1 + k, 3, k] = 1.0
    for k, (i, j) in enumerate(_I_ENTRIES, 4):
        moment = np.zeros((3, 3))
        moment[i, j] = moment[j, i] = 1.0
        units[k, :3, :3] = 0.5 * np.trace(moment) * np.eye(3) - moment
    return units


UNITS = _unit_pseudo_inertias()
"""(10, 4, 4): J = Σ π_k UNITS[k]."""
_INVERSE = np.linalg.pinv(UNITS.reshape(PER_BODY, 16).T)
"""(10, 16) π of the entries of a symmetric J."""


def pseudo_inertia(parameters: Array) -> Array:
    """J (..., 4, 4) of inertial parameters (..., 10)."""
    return np.asarray(np.einsum("...k,kij->...ij", parameters, UNITS))


def parameters_of(J: Array) -> Array:
    """Inertial parameters (..., 10) of pseudo-inertias (..., 4, 4)."""
    return np.asarray(np.einsum("kn,...n->...k", _INVERSE, J.reshape(*J.shape[:-2], 16)))


def log_cholesky(parameters: Array) -> Array:
    """Logarithmic Cholesky parameters (..., 10) of possible bodies (..., 10).

    Raises:
        numpy.linalg.LinAlgError: A pseudo-inertia is not positive definite.
    """
    J = pseudo_inertia(parameters)
    # U Uᵀ with U upper triangular: L Lᵀ of the matrix turned by half a turn.
    U = np.linalg.cholesky(J[..., ::-1, ::-1])[..., ::-1, ::-1]
    scale = U[..., 3, 3]
    shape = np.stack([U[..., i, j] / scale for i, j in _SHAPE_ENTRIES], axis=-1)
    shape[..., :3] = np.log(shape[..., :3])
    return np.concatenate([np.log(scale)[..., None], shape], axis=-1)


def from_log_cholesky(phi: Array) -> tuple[Array, Array]:
    """Inertial parameters (..., 10) of any numbers (..., 10), and their derivative (..., 10, 10).

    Every result is a possible body. The derivative is analytic: dJ = dU Uᵀ + U dUᵀ.
    """
    scale = np.exp(phi[..., 0])[..., None, None]
    U = np.zeros((*phi.shape[:-1], 4, 4))
    U[..., 3, 3] = 1.0
    for k, (i, j) in enumerate(_SHAPE_ENTRIES, 1):
        U[..., i, j] = np.exp(phi[..., k]) if i == j else phi[..., k]
    U = scale * U
    dU = np.zeros((*phi.shape[:-1], PER_BODY, 4, 4))
    dU[..., 0, :, :] = U
    for k, (i, j) in enumerate(_SHAPE_ENTRIES, 1):
        dU[..., k, i, j] = U[..., i, j] if i == j else scale[..., 0, 0]
    half = dU @ np.swapaxes(U, -1, -2)[..., None, :, :]
    derivative = parameters_of(half + np.swapaxes(half, -1, -2))
    return parameters_of(U @ np.swapaxes(U, -1, -2)), np.swapaxes(derivative, -1, -2)


def is_possible(parameters: Array) -> Array:
    """Whether bodies (..., 10) have pseudo-inertias that are positive definite beyond rounding.

    In units in which the diagonal is one, so that the answer is the same in all units.
    """
    J = pseudo_inertia(parameters)
    sizes = np.diagonal(J, axis1=-2, axis2=-1)
    positive = np.asarray((sizes > 0.0).all(axis=-1))
    root = np.sqrt(np.where(positive[..., None], sizes, 1.0))
    least = np.linalg.eigvalsh(J / root[..., :, None] / root[..., None, :])[..., 0]
    return np.asarray(positive & (least > LEAST_EIGENVALUE))


def divergence(parameters: Array, prior: Array) -> tuple[Array, Array, Array]:
    """Entropic divergence of a body from another one, its gradient and Hessian.

    tr(J₀⁻¹J) - log det(J₀⁻¹J) - 4: that of two Gaussian distributions of mass, the same in all
    frames and units, infinite at the border of what is possible (Lee, Wensing and Park 2020).

    Args:
        parameters: (..., 10).
        prior: (..., 10).

    Returns:
        (...), (..., 10), (..., 10, 10), with respect to the parameters.
    """
    J, J0 = pseudo_inertia(parameters), pseudo_inertia(prior)
    ratio = np.linalg.solve(J0, J)
    value = np.trace(ratio, axis1=-2, axis2=-1) - np.linalg.slogdet(ratio)[1] - 4.0
    inverse = np.linalg.inv(J)
    gradient = np.einsum("...ij,kji->...k", np.linalg.inv(J0) - inverse, UNITS)
    turned = np.einsum("...ij,kjl->...kil", inverse, UNITS)
    return value, gradient, np.einsum("...kij,...lji->...kl", turned, turned)


def feasible(parameters: Array, radius: float) -> Array:
    """Bodies (..., 10) whose mass has a spread of at least ``radius`` [m] in all directions.

    Those that have it stay as they are; point masses, rods and impossible bodies are filled up.
    """
    result = np.array(parameters)
    for body in result.reshape(-1, PER_BODY):
        mass, com = body[0], body[1:4] / body[0]
        J = pseudo_inertia(body)
        central = J[:3, :3] - mass * np.outer(com, com)
        values, axes = np.linalg.eigh(central)
        least = mass * radius**2
        if values[0] < least:
            central = (axes * np.maximum(values, least)) @ axes.T
            J[:3, :3] = central + mass * np.outer(com, com)
            body[:] = parameters_of(J)
    return result

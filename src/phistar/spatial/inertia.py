# SPDX-License-Identifier: BSD-3-Clause
"""Rigid-body inertia as ten numbers about the frame origin, in the order of PARAMETER_NAMES.

With the first moment h = m c (c the centre of mass) and the inertia I about the *origin*, the
parameters of rigidly connected bodies in one frame add. Functions broadcast over leading axes, keep
the dtype and are analytic on complex data; inertia_problems checks one body.
"""

from typing import Literal, NamedTuple

import numpy as np

from phistar.arrays import Array
from phistar.errors import ShapeError
from phistar.spatial._arrays import (
    ArrayLike,
    as_array_with_tail,
    as_inexact,
    cross,
    dot,
    outer,
    require_tail,
    scaled_eye,
)
from phistar.spatial.reproducible_products import matvec, product
from phistar.spatial.rotation import skew, unskew

PARAMETER_NAMES = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")

_UPPER = ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])
_FULL = [4, 5, 6, 5, 7, 8, 6, 8, 9]

_MIN_RADIUS_SQUARED_M2 = 1e-6
"""Square of a millimetre [m²]: scale of moments below which they are rounding."""

InertiaProblemKind = Literal[
    "not finite",
    "negative mass",
    "not symmetric",
    "negative moment",
    "not positive definite",
    "triangle inequality",
    "inertia without mass",
    "mass without inertia",
]


class InertiaProblem(NamedTuple):
    """One reason why a mass and an inertia cannot belong to a solid body."""

    kind: InertiaProblemKind
    text: str


def inertia_parameters(mass: ArrayLike, com: ArrayLike, inertia_com: ArrayLike) -> Array:
    """The ten parameters of a body from its mass, centre of mass and central inertia.

    Args:
        mass: (...) [kg].
        com: (..., 3) centre of mass in the frame [m].
        inertia_com: (..., 3, 3) inertia about the centre of mass, frame axes [kg m²].

    Returns:
        (..., 10) parameters about the frame origin.
    """
    mass, com, inertia_com = as_inexact(mass, com, inertia_com)
    require_tail(com, (3,), "com", "inertia_parameters")
    require_tail(inertia_com, (3, 3), "inertia_com", "inertia_parameters")
    return _pack(mass, mass[..., None] * com, inertia_com + _point_inertia(mass, com))


def inertia_components(params: ArrayLike) -> tuple[Array, Array, Array]:
    """Mass, centre of mass and central inertia of ten parameters.

    Args:
        params: (..., 10) parameters.

    Returns:
        mass (...) [kg], com (..., 3) [m] (zero where the mass is zero) and inertia_com (..., 3, 3)
        [kg m²].
    """
    mass, h, inertia = _unpack(params, "inertia_components")
    massive = (mass != 0)[..., None]
    com = np.where(massive, h, 0) / np.where(massive, mass[..., None], 1)
    return mass, com, np.asarray(inertia - _point_inertia(mass, com))


def inertia_matrix(params: ArrayLike) -> Array:
    """The spatial inertia matrix [[I, h̃], [-h̃, m 1]].

    Args:
        params: (..., 10) parameters.

    Returns:
        (..., 6, 6) symmetric matrix from motion [angular; linear] to momentum.
    """
    mass, h, inertia = _unpack(params, "inertia_matrix")
    matrix = np.zeros((*mass.shape, 6, 6), dtype=mass.dtype)
    matrix[..., :3, :3] = inertia
    matrix[..., :3, 3:] = skew(h)
    matrix[..., 3:, :3] = -skew(h)
    matrix[..., 3:, 3:] = scaled_eye(mass, 3)
    return matrix


def inertia_from_matrix(M: ArrayLike) -> Array:
    """The ten parameters of a spatial inertia matrix, the inverse of inertia_matrix.

    Args:
        M: (..., 6, 6) rigid-body inertia [[I, h̃], [-h̃, m 1]]; what is not of this form is lost.

    Returns:
        (..., 10) parameters.
    """
    M = as_array_with_tail(M, (6, 6), "M", "inertia_from_matrix")
    mass = np.asarray(M[..., 3, 3] + M[..., 4, 4] + M[..., 5, 5]) / 3
    inertia = (M[..., :3, :3] + np.swapaxes(M[..., :3, :3], -1, -2)) / 2
    return _pack(mass, unskew((M[..., :3, 3:] - M[..., 3:, :3]) / 2), inertia)


def transform_inertia(T_AB: ArrayLike, params_B: ArrayLike) -> Array:
    """The parameters in frame A of a body given in frame B.

    Args:
        T_AB: (..., 4, 4) transform from B to A.
        params_B: (..., 10) parameters about the origin of B, in its axes.

    Returns:
        (..., 10) parameters about the origin of A, in its axes.
    """
    T, params = as_inexact(T_AB, params_B)
    require_tail(T, (4, 4), "T_AB", "transform_inertia")
    R, p = T[..., :3, :3], T[..., :3, 3]
    mass, h, inertia = _unpack(params, "transform_inertia")
    h = matvec(R, h)
    mixed = outer(h, p)
    shift = scaled_eye(2 * dot(h, p), 3) - mixed - np.swapaxes(mixed, -1, -2)
    rotated = product(product(R, inertia), np.swapaxes(R, -1, -2))
    return _pack(mass, h + mass[..., None] * p, rotated + shift + _point_inertia(mass, p))


def rotate_inertia(R_AB: ArrayLike, inertia_B: ArrayLike) -> Array:
    """Moments of inertia in the axes of A of a body given in those of B, R J Rᵀ.

    Args:
        R_AB: (..., 3, 3) rotation from B to A.
        inertia_B: (..., 3, 3) [kg m²].

    Returns:
        (..., 3, 3) symmetric [kg m²].
    """
    R, J = as_inexact(R_AB, inertia_B)
    require_tail(R, (3, 3), "R_AB", "rotate_inertia")
    require_tail(J, (3, 3), "inertia_B", "rotate_inertia")
    rotated = product(product(R, J), np.swapaxes(R, -1, -2))
    return np.asarray((rotated + np.swapaxes(rotated, -1, -2)) / 2)


def inertia_apply(params: ArrayLike, V: ArrayLike) -> Array:
    """The spatial inertia times a motion vector, without forming the matrix.

    Args:
        params: (..., 10) parameters.
        V: (..., 6) motion [angular; linear].

    Returns:
        (..., 6) momentum (for a velocity) or force (for an acceleration).
    """
    params, V = as_inexact(params, V)
    require_tail(V, (6,), "V", "inertia_apply")
    mass, h, inertia = _unpack(params, "inertia_apply")
    w, v = V[..., :3], V[..., 3:]
    angular = matvec(inertia, w) + cross(h, v)
    return np.concatenate([angular, mass[..., None] * v - cross(h, w)], axis=-1)


def box_inertia(mass: ArrayLike, size: ArrayLike) -> Array:
    """The central inertia of a solid box.

    Args:
        mass: (...) [kg].
        size: (..., 3) full edge lengths along x, y, z [m].

    Returns:
        (..., 3, 3) [kg m²].
    """
    mass, size = as_inexact(mass, size)
    require_tail(size, (3,), "size", "box_inertia")
    x, y, z = np.moveaxis(size * size, -1, 0)
    return _diagonal(mass / 12 * (y + z), mass / 12 * (x + z), mass / 12 * (x + y))


def cylinder_inertia(mass: ArrayLike, radius: ArrayLike, length: ArrayLike) -> Array:
    """The central inertia of a solid cylinder along z.

    Args:
        mass: (...) [kg].
        radius: (...) [m].
        length: (...) full length [m].

    Returns:
        (..., 3, 3) [kg m²].
    """
    mass, radius, length = as_inexact(mass, radius, length)
    side = mass * (3 * radius**2 + length**2) / 12
    return _diagonal(side, side, mass * radius**2 / 2)


def sphere_inertia(mass: ArrayLike, radius: ArrayLike) -> Array:
    """The central inertia of a solid sphere.

    Args:
        mass: (...) [kg].
        radius: (...) [m].

    Returns:
        (..., 3, 3) [kg m²].
    """
    mass, radius = as_inexact(mass, radius)
    moment = 2 * mass * radius**2 / 5
    return _diagonal(moment, moment, moment)


def capsule_inertia(mass: ArrayLike, radius: ArrayLike, length: ArrayLike) -> Array:
    """The central inertia of a solid capsule along z: a cylinder with two half spheres.

    Args:
        mass: (...) total mass [kg].
        radius: (...) [m].
        length: (...) of the cylindrical part, without the caps [m].

    Returns:
        (..., 3, 3) [kg m²].
    """
    mass, radius, length = as_inexact(mass, radius, length)
    total = length + 4 * radius / 3
    tube = mass * length / np.where(total == 0, 1, total)
    caps = mass - tube
    side = tube * (3 * radius**2 + length**2) / 12
    side = side + caps * (2 * radius**2 / 5 + length**2 / 4 + 3 * length * radius / 8)
    return _diagonal(side, side, tube * radius**2 / 2 + 2 * caps * radius**2 / 5)


def inertia_problems(
    mass: float, inertia_com: ArrayLike, tol: float = 1e-9
) -> list[InertiaProblem]:
    """Reasons why a mass and a central inertia cannot belong to a solid body.

    Args:
        mass: [kg].
        inertia_com: (3, 3) inertia about the centre of mass [kg m²].
        tol: Tolerance relative to the largest entry or principal moment, or to the moment of a
            body of this mass and a millimetre in size: what is smaller is rounding.

    Returns:
        The problems, most severe first; empty for a valid body and for none (zero mass and
        inertia).

    Raises:
        ShapeError: If the inertia is not a single 3x3 matrix.
    """
    inertia = np.asarray(inertia_com, dtype=float)
    if inertia.shape != (3, 3):
        raise ShapeError("inertia_com", inertia.shape, "(3, 3)", "inertia_problems")
    if not (np.isfinite(mass) and np.isfinite(inertia).all()):
        numbers = ", ".join(f"{x:g}" for x in inertia.ravel())
        return [InertiaProblem("not finite", f"mass {mass:g} or inertia [{numbers}] is not finite")]
    problems = []
    if mass < 0:
        problems.append(InertiaProblem("negative mass", f"mass {mass:g} kg is negative"))
    if not inertia.any():
        if mass > 0:
            text = f"mass {mass:g} kg has no rotational inertia: it is a point"
            problems.append(InertiaProblem("mass without inertia", text))
        return problems
    if mass == 0:
        text = "the mass is zero, the rotational inertia is not"
        problems.append(InertiaProblem("inertia without mass", text))
    if np.abs(inertia).max() <= tol * _MIN_RADIUS_SQUARED_M2 * mass:
        return problems
    return problems + _asymmetry(inertia, tol) + _principal_problems(inertia, tol)


def _asymmetry(inertia: Array, tol: float) -> list[InertiaProblem]:
    gap = np.abs(inertia - inertia.T)
    if gap.max() <= tol * np.abs(inertia).max():
        return []
    i, j = sorted(int(k) for k in np.unravel_index(np.argmax(gap), gap.shape))
    ij, ji = "xyz"[i] + "xyz"[j], "xyz"[j] + "xyz"[i]
    text = f"I{ij} = {inertia[i, j]:.6g} and I{ji} = {inertia[j, i]:.6g} kg m² differ"
    return [InertiaProblem("not symmetric", text)]


def _principal_problems(inertia: Array, tol: float) -> list[InertiaProblem]:
    scale = np.abs(inertia).max()
    # scaled first, so that moments of 1e300 or 1e-300 kg m² do not overflow or vanish
    unit = inertia / scale
    low, middle, high = (float(x) for x in np.linalg.eigvalsh((unit + unit.T) / 2))
    named = ", ".join(f"{x * scale:.6g}" for x in (low, middle, high))
    problems = []
    if low < -tol * max(abs(low), abs(high)):
        text = f"the principal moment {low * scale:.6g} kg m² is negative (all: {named})"
        problems.append(InertiaProblem("negative moment", text))
    elif low <= tol * high:
        zero = [0.0 if abs(x) <= tol * high else x for x in (low, middle, high)]
        named = ", ".join(f"{x * scale:.6g}" for x in zero)
        text = f"a principal moment is zero (all: {named} kg m²)"
        problems.append(InertiaProblem("not positive definite", text))
    if high > (low + middle) * (1 + tol) and low > 0:
        text = (
            f"the principal moment {high * scale:.6g} exceeds the sum of the others, "
            f"{low * scale:.6g} + {middle * scale:.6g} = {(low + middle) * scale:.6g} kg m²"
        )
        problems.append(InertiaProblem("triangle inequality", text))
    return problems


def _point_inertia(mass: Array, p: Array) -> Array:
    """Inertia about the origin of a point mass at p, m (p·p 1 - p pᵀ)."""
    return np.asarray(mass[..., None, None] * (scaled_eye(dot(p, p), 3) - outer(p, p)))


def _pack(mass: Array, h: Array, inertia: Array) -> Array:
    leading = np.broadcast_shapes(mass.shape, h.shape[:-1], inertia.shape[:-2])
    params = np.empty((*leading, 10), dtype=np.result_type(mass, h, inertia))
    params[..., 0] = mass
    params[..., 1:4] = h
    params[..., 4:] = inertia[..., *_UPPER]
    return params


def _unpack(params: ArrayLike, owner: str) -> tuple[Array, Array, Array]:
    params = as_array_with_tail(params, (10,), "params", owner)
    inertia = params[..., _FULL].reshape(*params.shape[:-1], 3, 3)
    return params[..., 0], params[..., 1:4], inertia


def _diagonal(x: Array, y: Array, z: Array) -> Array:
    x, y, z = np.broadcast_arrays(x, y, z)
    matrix = np.zeros((*x.shape, 3, 3), dtype=x.dtype)
    matrix[..., 0, 0], matrix[..., 1, 1], matrix[..., 2, 2] = x, y, z
    return matrix

# SPDX-License-Identifier: BSD-3-Clause
"""What a user can ask a robot about the geometry of its mass matrix; a part of ``Robot``.

The mass matrix is a metric: twice the kinetic energy is the square of the length of v. Where the
metric is flat there are coordinates in which it is constant and no Coriolis forces appear, and the
normalised quasi-velocities are their rates (Jain & Rodriguez 1995, Lemmas 2.1 and 2.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from phistar import dynamics
from phistar.arguments import refuse_singular, state
from phistar.derivatives import second as derivatives
from phistar.errors import ArgumentError
from phistar.geometry import tensors
from phistar.model.configuration import Coordinates, random_configuration
from phistar.model.model import Model

Array = NDArray[Any]


class Christoffel(NamedTuple):
    """Christoffel symbols of the mass metric, each (..., nv, nv, nv).

    Attributes:
        first: [ij,k] as [i, j, k]; ``einsum("ijk,i,j->k", first, v, v)`` is the Coriolis force.
        second: {ij,l} as [i, j, l]; geodesics, the free motions, have v̇_l = -{ij,l} v_i v_j.
    """

    first: Array
    second: Array


@dataclass(frozen=True)
class Curvature:
    """Curvature of the mass metric.

    Attributes:
        riemann: (..., nv, nv, nv, nv) symbols R_hijk; R_1212 is Gauss's curvature times det 𝓜.
        ricci: (..., nv, nv).
        scalar: (...) scalar curvature [1/(kg m²)], the sum of the sectional curvatures over all
            ordered pairs of axes that are orthogonal in the metric.
        size: (...) root of the sum of squares of the symbols in such axes [1/(kg m²)]. It does not
            depend on the coordinates, and is zero if and only if all symbols are.
        relative: (...) from 0 to 1: ``size`` over the sum of the sizes of the two parts of the
            symbols, which cancel where the metric is flat, and 1/I, with I the largest entry
            𝓜_kk of a coordinate that turns [kg m²]. No unit changes it; rounding leaves 1e-15 to
            1e-10 of it on flat robots. Zero where all joints slide, since 𝓜 is constant then.
    """

    riemann: Array
    ricci: Array
    scalar: Array
    size: Array
    relative: Array


@dataclass(frozen=True)
class Flatness:
    """Whether a robot is flat, with the evidence; true if it is.

    Curvature is an analytic function of the configuration: drawn at random, one configuration at
    which it vanishes proves that it vanishes everywhere, with probability one. What doubt there is
    comes from rounding, and ``relative`` against ``tolerance`` shows it.

    Attributes:
        flat: Whether ``relative`` is within the tolerance.
        largest: The largest Riemann symbol found, in size.
        relative: The largest relative curvature found, see ``Curvature``.
        tolerance: What counts as zero.
        configurations: How many were looked at.
    """

    flat: bool
    largest: float
    relative: float
    tolerance: float
    configurations: int

    def __bool__(self) -> bool:
        return self.flat

    def __str__(self) -> str:
        word, sign = ("flat", "within") if self.flat else ("curved", "above")
        places = f"{self.configurations} configuration{'s' if self.configurations != 1 else ''}"
        return (
            f"{word}: relative curvature {self.relative:.2g}, {sign} {self.tolerance:.2g}; "
            f"largest symbol {self.largest:.2g}; {places}"
        )


class Geometry:
    """Curvature of a robot's mass metric.

    All of it needs joints whose velocities are the rates of their coordinates. For spherical, free
    and planar joints they are not: no coordinates have them as rates.
    """

    model: Model

    def christoffel(self, q: Coordinates) -> Christoffel:
        """Christoffel symbols: ``.first`` [ij,k] and ``.second`` {ij,l}, (..., nv, nv, nv).

        Raises:
            ArgumentError: A joint's velocities are not the rates of its coordinates.
            SingularHingeError: A joint moves no inertia.
        """
        (q,) = _chart(self.model, q=q)
        return _christoffel(self.model, q)

    def riemann(self, q: Coordinates) -> Array:
        """Riemann symbols R_hijk (..., nv, nv, nv, nv) of the mass metric.

        Antisymmetric in (h, i) and in (j, k), symmetric under exchange of the pairs; the sum over
        the cyclic orders of (i, j, k) is zero. That leaves nv²(nv² - 1)/12 of them free. Raises as
        ``christoffel``.
        """
        (q,) = _chart(self.model, q=q)
        bent, curved = _parts(self.model, q)
        return np.asarray(bent + curved)

    def curvature(self, q: Coordinates) -> Curvature:
        """Curvature: ``.riemann .ricci .scalar .size .relative``. Raises as ``christoffel``."""
        (q,) = _chart(self.model, q=q)
        if np.iscomplexobj(q):
            raise ArgumentError("q is complex, and sizes of curvature are real; take riemann(q)")
        bent, curved = _parts(self.model, q)
        metric = dynamics.mass_matrix(self.model, q)
        # M = m m*: the rows of ℓ = m⁻¹ are axes that are orthonormal in the metric.
        axes = np.linalg.inv(np.linalg.cholesky(metric))
        inverse = np.swapaxes(axes, -1, -2) @ axes
        riemann = bent + curved
        narrow = tensors.ricci(riemann, inverse)
        seen = [tensors.in_frame(part, axes) for part in (bent, curved)]
        found, parts = tensors.size(seen[0] + seen[1]), sum(map(tensors.size, seen))
        turning = _turning(self.model)
        inertia = np.diagonal(metric, axis1=-2, axis2=-1)[..., turning].max(axis=-1, initial=0.0)
        scale = np.divide(1.0, inertia, out=np.full_like(inertia, np.inf), where=inertia > 0)
        scalar = np.einsum("...ik,...ik->...", inverse, narrow)
        return Curvature(riemann, narrow, scalar, found, np.asarray(found / (parts + scale)))

    def sectional_curvature(self, q: Coordinates, u: Coordinates, w: Coordinates) -> Array:
        """Curvature (...) [1/(kg m²)] of the surface of free motions that u and w (..., nv) span.

        Free motions that start together along that plane draw near each other where it is positive
        and part where it is negative. Raises as ``christoffel``.

        Args:
            q: (..., nq).
            u, w: (..., nv) velocities.

        Raises:
            ArgumentError: u and w are parallel, so that they span no plane.
        """
        q, u, w = _chart(self.model, q=q, u=u, w=w)
        bent, curved = _parts(self.model, q)
        metric = dynamics.mass_matrix(self.model, q)
        found = tensors.sectional(bent + curved, metric, u, w)
        if np.isnan(found).any():
            where = [int(k) for k in np.argwhere(np.isnan(found))[0]]
            at = f" at index {where}" if where else ""
            raise ArgumentError(f"u and w are parallel{at}; two directions must span a plane")
        return found

    def is_flat(
        self,
        q: Coordinates | None = None,
        *,
        tolerance: float = 1e-8,
        samples: int = 8,
        rng: np.random.Generator | int = 0,
    ) -> Flatness:
        """Whether some coordinates make the mass matrix constant; true or false, with evidence.

        Args:
            q: (..., nq) where to look; by default at random configurations inside the limits.
            tolerance: Relative curvature (see ``Curvature``) that counts as zero.
            samples: How many random configurations.
            rng: A generator or a seed for them.

        Raises:
            ArgumentError: A joint's velocities are not the rates of its coordinates.
        """
        if not (np.isfinite(tolerance) and tolerance > 0):
            raise ArgumentError(f"tolerance is {tolerance}, expected a number greater than zero")
        if samples < 1:
            raise ArgumentError(f"samples is {samples}, expected at least 1")
        if q is None:
            refuse_moving_axes(self.model)
            q = random_configuration(self.model, np.random.default_rng(rng), (samples,))
        found = self.curvature(q)
        relative = float(found.relative.max(initial=0.0))
        largest = float(np.abs(found.riemann).max(initial=0.0))
        return Flatness(relative <= tolerance, largest, relative, tolerance, found.scalar.size)


def refuse_moving_axes(model: Model) -> None:
    """Raise unless velocities are the rates of coordinates, at every joint."""
    for name in model.joint_names:
        joint = model.joints[name]
        if not joint.motion.is_euclidean:
            raise ArgumentError(
                f"joint '{name}' of robot '{model.name}' is {joint.kind}: its velocities are taken "
                "in axes that move, so they are not the rates of any coordinates, and Christoffel "
                "and Riemann symbols with respect to q do not exist; replace it by joints with one "
                "axis each, or weld it"
            )


def _chart(model: Model, **arguments: Coordinates) -> tuple[Array, ...]:
    refuse_moving_axes(model)
    refuse_singular(model)
    return state(model, **arguments)


def _christoffel(model: Model, q: Array) -> Christoffel:
    first = tensors.first_kind(derivatives.mass_matrix_q(model, q))
    return Christoffel(first, tensors.second_kind(first, dynamics.mass_matrix_inverse(model, q)))


def _parts(model: Model, q: Array) -> tuple[Array, Array]:
    bend = derivatives.mass_matrix_qq(model, q)
    return tensors.riemann_parts(bend, *_christoffel(model, q))


def _turning(model: Model) -> Array:
    """Which velocity coordinates are rates of angles; on a chart they are in the order of q."""
    units = [unit for name in model.joint_names for unit in model.joints[name].motion.v_units]
    return np.array([unit == "rad/s" for unit in units], dtype=bool)

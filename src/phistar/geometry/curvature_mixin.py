# SPDX-License-Identifier: BSD-3-Clause
"""Geometry of the mass matrix; a mixin of ``Robot``.

The mass matrix is a metric: twice the kinetic energy is the square of the length of v. Where the
metric is flat there are coordinates in which it is constant and no Coriolis forces appear, and the
normalised quasi-velocities are their rates (Jain & Rodriguez 1995, Lemmas 2.1 and 2.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from phistar import dynamics
from phistar.arguments import checked_state, refuse_singular, require_count, require_number
from phistar.arrays import Array
from phistar.derivatives import second as derivatives
from phistar.errors import ArgumentError
from phistar.geometry import tensors
from phistar.model.bad_samples import nan_where_bad
from phistar.model.configuration import Coordinates, random_configuration, random_generator
from phistar.model.model import Model
from phistar.reprs import brief, one_line_repr


class Christoffel(NamedTuple):
    """Christoffel symbols of the mass metric, each (..., nv, nv, nv).

    Attributes:
        first: [ij,k] as [i, j, k]; ``einsum("ijk,i,j->k", first, v, v)`` is the Coriolis force.
        second: {ij,l} as [i, j, l]; geodesics, the free motions, have v̇_l = -{ij,l} v_i v_j.
    """

    first: Array
    second: Array

    def __repr__(self) -> str:
        return f"<Christoffel: first {brief(self.first)}, second {brief(self.second)}>"


@one_line_repr
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
            symbols, which cancel where the metric is flat, and 1/I, with I the largest entry 𝓜_kk
            of an angle [kg m²]. It does not depend on units; rounding leaves 1e-15 to 1e-10 of it
            on flat robots. Zero if all joints are prismatic, since 𝓜 is constant then.
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
    which it vanishes proves that it vanishes everywhere, with probability one. The only uncertainty
    is rounding: compare ``relative`` with ``tolerance``.

    Attributes:
        flat: Whether ``relative`` is within the tolerance.
        largest: The largest magnitude of a Riemann symbol.
        relative: The largest relative curvature, see ``Curvature``.
        tolerance: What counts as zero.
        configurations: Number of configurations.
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
        count = f"{self.configurations} configuration{'s' if self.configurations != 1 else ''}"
        return (
            f"{word}: relative curvature {self.relative:.2g}, {sign} {self.tolerance:.2g}; "
            f"largest symbol {self.largest:.2g}; {count}"
        )


class Geometry:
    """Curvature of a robot's mass metric.

    All of it needs joints whose velocities are the rates of their coordinates. For spherical, free
    and planar joints they are not: no coordinates have them as rates.
    """

    model: Model

    def christoffel(self, q: Coordinates, *, on_error: str = "raise") -> Christoffel:
        """Christoffel symbols: ``.first`` [ij,k] and ``.second`` {ij,l}, (..., nv, nv, nv).

        Raises:
            ArgumentError: A joint's velocities are not the rates of its coordinates.
            SingularHingeError: A joint moves no inertia.
        """
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.christoffel, {"q": q})
        (q,) = _chart(self.model, q=q)
        return _christoffel(self.model, q)

    def riemann(self, q: Coordinates, *, on_error: str = "raise") -> Array:
        """Riemann symbols R_hijk (..., nv, nv, nv, nv) of the mass metric.

        Antisymmetric in (h, i) and in (j, k), symmetric under exchange of the pairs; the sum over
        the cyclic orders of (i, j, k) is zero. That leaves nv²(nv² - 1)/12 of them free. Raises as
        ``christoffel``.
        """
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.riemann, {"q": q})
        (q,) = _chart(self.model, q=q)
        linear, quadratic = _parts(self.model, q)
        return np.asarray(linear + quadratic)

    def curvature(self, q: Coordinates, *, on_error: str = "raise") -> Curvature:
        """Curvature: ``.riemann .ricci .scalar .size .relative``. Raises as ``christoffel``."""
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.curvature, {"q": q})
        (q,) = _chart(self.model, q=q)
        if np.iscomplexobj(q):
            raise ArgumentError("q is complex, and sizes of curvature are real; take riemann(q)")
        linear, quadratic = _parts(self.model, q)
        metric = dynamics.mass_matrix(self.model, q)
        # M = m m*: the rows of ℓ = m⁻¹ are axes that are orthonormal in the metric.
        axes = np.linalg.inv(np.linalg.cholesky(metric))
        inverse = np.swapaxes(axes, -1, -2) @ axes
        riemann = linear + quadratic
        narrow = tensors.ricci(riemann, inverse)
        in_axes = [tensors.in_frame(part, axes) for part in (linear, quadratic)]
        size, sizes = tensors.size(in_axes[0] + in_axes[1]), sum(map(tensors.size, in_axes))
        turning = _is_angle_rate(self.model)
        inertia = np.diagonal(metric, axis1=-2, axis2=-1)[..., turning].max(axis=-1, initial=0.0)
        scale = np.divide(1.0, inertia, out=np.full_like(inertia, np.inf), where=inertia > 0)
        scalar = np.einsum("...ik,...ik->...", inverse, narrow)
        return Curvature(riemann, narrow, scalar, size, np.asarray(size / (sizes + scale)))

    def sectional_curvature(
        self, q: Coordinates, u: Coordinates, w: Coordinates, *, on_error: str = "raise"
    ) -> Array:
        """Curvature (...) [1/(kg m²)] of the surface of free motions that u and w (..., nv) span.

        Free motions that start together along that plane converge where it is positive and diverge
        where it is negative. Raises as ``christoffel``.

        Args:
            q: (..., nq).
            u, w: (..., nv) velocities.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.

        Raises:
            ArgumentError: u and w are parallel, so that they span no plane.
        """
        if on_error != "raise":
            return nan_where_bad(
                self.model, on_error, self.sectional_curvature, {"q": q, "u": u, "w": w}
            )
        q, u, w = _chart(self.model, q=q, u=u, w=w)
        linear, quadratic = _parts(self.model, q)
        metric = dynamics.mass_matrix(self.model, q)
        values = tensors.sectional(linear + quadratic, metric, u, w)
        if np.isnan(values).any():
            where = [int(k) for k in np.argwhere(np.isnan(values))[0]]
            at = f" at index {where}" if where else ""
            raise ArgumentError(f"u and w are parallel{at}; two directions must span a plane")
        return values

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
            q: (..., nq) configurations; by default random ones inside the limits.
            tolerance: Relative curvature (see ``Curvature``) that counts as zero.
            samples: Number of random configurations.
            rng: A generator or a seed for them.

        Raises:
            ArgumentError: A joint's velocities are not the rates of its coordinates.
        """
        require_number("tolerance", tolerance, "a number greater than zero", zero=False)
        require_count("samples", samples, "at least 1")
        if q is None:
            refuse_moving_axes(self.model)
            q = random_configuration(self.model, random_generator(rng), (samples,))
        curvature = self.curvature(q)
        relative = float(curvature.relative.max(initial=0.0))
        largest = float(np.abs(curvature.riemann).max(initial=0.0))
        return Flatness(relative <= tolerance, largest, relative, tolerance, curvature.scalar.size)


def refuse_moving_axes(model: Model) -> None:
    """Raise unless velocities are the rates of coordinates, at every joint."""
    for name in model.joint_names:
        joint = model.joints[name]
        if not joint.joint_kind.is_euclidean:
            raise ArgumentError(
                f"joint '{name}' of robot '{model.name}' is {joint.kind}: its velocities are taken "
                "in axes that move, so they are not the rates of any coordinates, and Christoffel "
                "and Riemann symbols with respect to q do not exist; replace it by joints with one "
                "axis each, or weld it"
            )


def _chart(model: Model, **arguments: Coordinates) -> tuple[Array, ...]:
    refuse_moving_axes(model)
    refuse_singular(model)
    return checked_state(model, **arguments)


def _christoffel(model: Model, q: Array) -> Christoffel:
    first = tensors.first_kind(derivatives.mass_matrix_q(model, q))
    return Christoffel(first, tensors.second_kind(first, dynamics.mass_matrix_inverse(model, q)))


def _parts(model: Model, q: Array) -> tuple[Array, Array]:
    metric_qq = derivatives.mass_matrix_qq(model, q)
    return tensors.riemann_parts(metric_qq, *_christoffel(model, q))


def _is_angle_rate(model: Model) -> Array:
    """Which velocity coordinates are rates of angles; on a chart they are in the order of q."""
    units = [unit for name in model.joint_names for unit in model.joints[name].joint_kind.v_units]
    return np.array([unit == "rad/s" for unit in units], dtype=bool)

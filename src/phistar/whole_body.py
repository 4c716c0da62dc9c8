# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of the whole body: the centre of mass moves, momentum about it, biases of frames.

Machine code answers as it does for kinematics; the operators φ*H* and their rate along v give the
rest: other dtypes, the first samples, long robots, other backends. ``WholeBody`` is the part of
``Robot`` that asks.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np

from phistar.algebra.calculus import derivative
from phistar.algebra.symbols import H, phi
from phistar.algebra.symbols import v as velocity_symbol
from phistar.arguments import check_shapes, checked_numbers
from phistar.arrays import Array
from phistar.compile import Full, joint_map, matrix, run_traced
from phistar.derivatives.kinematic_rates import frame_acceleration
from phistar.errors import ArgumentError
from phistar.kinematics import require_finite_result
from phistar.model.bad_samples import RAISE, nan_where_bad
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.model_cache import Entry
from phistar.model.numpy_kinematics import body_poses, check_reference, ground_mass_point
from phistar.spatial import crf, force_transform, inertia_matrix, skew

LINK_JACOBIANS = phi.T @ H.T
"""φ*H*: velocities of all links, in their axes, per unit of v."""


def momentum_rows(model: Model, q: Array) -> Array:
    """A (..., 6, nv) about the world's origin: Σ X(k) M(k) J(k), by sweeps."""
    return _collected(model, q, inertia_matrix(model.inertias) @ _link_rows(model, q))


def momentum_row_rates(model: Model, q: Array, v: Array) -> Array:
    """Its rate: Σ X(k) (V(k) ×* M(k) J(k) + M(k) J̇(k))."""
    inertias = inertia_matrix(model.inertias)
    jacobians = _link_rows(model, q)
    V = (jacobians @ v[..., None, :, None])[..., 0]
    changes = crf(V) @ (inertias @ jacobians) + inertias @ _link_rows(model, q, v)
    return _collected(model, q, changes)


def _link_rows(model: Model, q: Array, v: Array | None = None) -> Array:
    """J(k) of all links (..., bodies, 6, nv), in their own axes, or the rates of these numbers."""
    joints = joint_map(model)
    if v is None:
        found = matrix(LINK_JACOBIANS, Full(), model, q)
    else:
        rate = derivative(LINK_JACOBIANS, {"q": velocity_symbol})
        found = matrix(rate, Full(), model, q, {"v": joints.spread(v)})
    rows = joints.gather(found)
    return rows.reshape(*rows.shape[:-2], len(model.bodies), 6, model.nv)


def _collected(model: Model, q: Array, rows: Array) -> Array:
    """Momenta (..., bodies, 6, nv) of the links about the world's origin, added up."""
    return np.asarray((force_transform(body_poses(model, q)) @ rows).sum(axis=-3))


def _moving_center(model: Model, q: Array, what: str) -> tuple[Array, float]:
    """First moments of the moving links by their mass, (..., 3), and that mass.

    Raises:
        ArgumentError: Nothing that moves has mass.
    """
    mass = float(model.inertias[:, 0].sum())
    if not mass > 0.0:
        raise ArgumentError(f"nothing that moves on robot '{model.name}' has mass: no {what}")
    poses = body_poses(model, q)
    masses, moments = model.inertias[:, 0], model.inertias[:, 1:4]
    places = (poses[..., :3, :3] @ moments[..., None])[..., 0] + masses[:, None] * poses[..., :3, 3]
    return places.sum(axis=-2) / mass, mass


def _about(point: Array, rows: Array) -> Array:
    """Momenta (..., 6, nv) about a point (..., 3) rather than the origin."""
    moved = rows[..., :3, :] - skew(point) @ rows[..., 3:, :]
    return np.concatenate([moved, rows[..., 3:, :]], axis=-2)


def centroidal_momentum_matrix(model: Model, q: Coordinates) -> Array:
    """A (..., 6, nv); see ``WholeBody``."""
    arrays = check_shapes(model, q=q)
    found = run_traced(model, ("centroidal_momentum_matrix",), *arrays.values())
    if found is not None:
        return found
    (at,) = checked_numbers(model, **arrays)
    center, _ = _moving_center(model, at, "centroidal momentum")
    return require_finite_result(
        model, "the centroidal momentum", at, _about(center, momentum_rows(model, at)), 2
    )


def centroidal_momentum_matrix_rate(model: Model, q: Coordinates, v: Coordinates) -> Array:
    """Ȧ (..., 6, nv); see ``WholeBody``."""
    arrays = check_shapes(model, q=q, v=v)
    found = run_traced(model, ("centroidal_momentum_matrix_rate",), *arrays.values())
    if found is not None:
        return found
    at, moving = checked_numbers(model, **arrays)
    center, mass = _moving_center(model, at, "centroidal momentum")
    rows = momentum_rows(model, at)
    speed = (rows[..., 3:, :] @ moving[..., None])[..., 0] / mass
    rates = _about(center, momentum_row_rates(model, at, moving))
    rates[..., :3, :] -= skew(speed) @ rows[..., 3:, :]
    return require_finite_result(model, "the rate of the centroidal momentum", at, rates, 2)


def center_of_mass_jacobian(model: Model, q: Coordinates, *, fixed: bool = True) -> Array:
    """(..., 3, nv); see ``WholeBody``."""
    arrays = check_shapes(model, q=q)
    found = run_traced(model, ("center_of_mass_jacobian", bool(fixed)), *arrays.values())
    if found is not None:
        return found
    (at,) = checked_numbers(model, **arrays)
    rows = momentum_rows(model, at)[..., 3:, :] / _counted_mass(model, fixed)
    return require_finite_result(model, "the Jacobian of the centre of mass", at, rows, 2)


def center_of_mass_jacobian_rate(
    model: Model, q: Coordinates, v: Coordinates, *, fixed: bool = True
) -> Array:
    """(..., 3, nv); see ``WholeBody``."""
    arrays = check_shapes(model, q=q, v=v)
    found = run_traced(model, ("center_of_mass_jacobian_rate", bool(fixed)), *arrays.values())
    if found is not None:
        return found
    at, moving = checked_numbers(model, **arrays)
    rows = momentum_row_rates(model, at, moving)[..., 3:, :] / _counted_mass(model, fixed)
    return require_finite_result(model, "the rate of that Jacobian", at, rows, 2)


def _counted_mass(model: Model, fixed: bool) -> float:
    """Of the links that a centre of mass counts [kg].

    Raises:
        ArgumentError: There is none.
    """
    mass = float(model.inertias[:, 0].sum()) + (
        float(ground_mass_point(model)[3]) if fixed else 0.0
    )
    if mass == 0.0:
        raise ArgumentError(f"robot '{model.name}' has no mass, so it has no centre of mass")
    return mass


def frame_bias_acceleration(
    model: Model, q: Coordinates, v: Coordinates, frame: str, reference: str
) -> Array:
    """(..., 6); see ``WholeBody``."""
    model.frame(frame)
    check_reference(reference)
    arrays = check_shapes(model, q=q, v=v)
    found = run_traced(model, ("frame_bias_acceleration", frame, reference), *arrays.values())
    if found is not None:
        return found
    nothing = np.zeros(model.nv, dtype=arrays["v"].dtype)
    return frame_acceleration(model, arrays["q"], arrays["v"], nothing, frame, reference)


class WholeBody:
    """Momentum about the centre of mass, how that centre moves, accelerations without v̇."""

    model: Model
    _entries: dict[Hashable, Entry | None]

    def center_of_mass_jacobian(
        self, q: Coordinates, *, fixed: bool = True, on_error: str = "raise"
    ) -> Array:
        """Jacobian (..., 3, nv) of ``center_of_mass``: J @ v is its velocity [m/s], world axes.

        Args:
            q: (..., nq).
            fixed: Count the links that are welded to the ground too, as ``center_of_mass`` does.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        entry = self._entries.get(("center_of_mass_jacobian", bool(fixed)))
        if entry is not None and on_error is RAISE and (result := entry(q)) is not None:
            return result
        if on_error != "raise":
            call = partial(self.center_of_mass_jacobian, fixed=fixed)
            return nan_where_bad(self.model, on_error, call, {"q": q})
        return center_of_mass_jacobian(self.model, q, fixed=fixed)

    def center_of_mass_jacobian_rate(
        self, q: Coordinates, v: Coordinates, *, fixed: bool = True, on_error: str = "raise"
    ) -> Array:
        """Time derivative (..., 3, nv) of ``center_of_mass_jacobian`` as the robot moves with v."""
        entry = self._entries.get(("center_of_mass_jacobian_rate", bool(fixed)))
        if entry is not None and on_error is RAISE and (result := entry(q, v)) is not None:
            return result
        if on_error != "raise":
            call = partial(self.center_of_mass_jacobian_rate, fixed=fixed)
            return nan_where_bad(self.model, on_error, call, {"q": q, "v": v})
        return center_of_mass_jacobian_rate(self.model, q, v, fixed=fixed)

    def centroidal_momentum_matrix(self, q: Coordinates, *, on_error: str = "raise") -> Array:
        """A (..., 6, nv): A @ v is the momentum [angular; linear] about the centre of mass.

        In world axes, of the links that move and about their centre of mass; rotors have no part
        in it, as in ``momentum``.
        """
        entry = self._entries.get(("centroidal_momentum_matrix",))
        if entry is not None and on_error is RAISE and (result := entry(q)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.centroidal_momentum_matrix, {"q": q})
        return centroidal_momentum_matrix(self.model, q)

    def centroidal_momentum_matrix_rate(
        self, q: Coordinates, v: Coordinates, *, on_error: str = "raise"
    ) -> Array:
        """Time derivative Ȧ (..., 6, nv) of ``centroidal_momentum_matrix`` along v.

        A v̇ + Ȧ v is what gravity and contacts give the robot: moments about the centre of mass,
        and forces.
        """
        entry = self._entries.get(("centroidal_momentum_matrix_rate",))
        if entry is not None and on_error is RAISE and (result := entry(q, v)) is not None:
            return result
        if on_error != "raise":
            call = self.centroidal_momentum_matrix_rate
            return nan_where_bad(self.model, on_error, call, {"q": q, "v": v})
        return centroidal_momentum_matrix_rate(self.model, q, v)

    def frame_bias_acceleration(
        self,
        q: Coordinates,
        v: Coordinates,
        frame: str,
        reference: str = "world_aligned",
        *,
        on_error: str = "raise",
    ) -> Array:
        """J̇ v (..., 6) [rad/s^2, m/s^2]: ``frame_acceleration`` without joint accelerations.

        ``frame_acceleration(q, v, vdot, ...)`` is ``jacobian(q, ...) @ vdot`` plus this.
        """
        key = ("frame_bias_acceleration", frame, reference)
        entry = self._entries.get(key) if type(frame) is type(reference) is str else None
        if entry is not None and on_error is RAISE and (result := entry(q, v)) is not None:
            return result
        if on_error != "raise":
            call = partial(self.frame_bias_acceleration, frame=frame, reference=reference)
            return nan_where_bad(self.model, on_error, call, {"q": q, "v": v})
        return frame_bias_acceleration(self.model, q, v, frame, reference)

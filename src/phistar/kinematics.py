# SPDX-License-Identifier: BSD-3-Clause
"""Kinematics of a model for a user's arrays: machine code for what is asked often.

The functions are those of ``model.numpy_kinematics`` and, for steps on the configuration space, of
``model.configuration``, which answer whatever has no machine code: other dtypes than float64 and
float32, numbers that are not finite, very long paths, other backends, and the first samples of each
program. All poses and the centre of mass of long robots come from loops. ``Kinematics`` is the part
of ``Robot`` that asks them. Momentum and energies are asked here too, see ``energies``.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np

from phistar.arrays import Array
from phistar.compile import run_loops, run_traced
from phistar.model import configuration as space
from phistar.model import numpy_kinematics
from phistar.model.bad_samples import RAISE, nan_where_bad
from phistar.model.configuration import Coordinates, batch_shape, read_coordinates
from phistar.model.model import Model
from phistar.model.model_cache import Entry
from phistar.model.numpy_kinematics import check_reference
from phistar.model.singular import require_finite_results


def frame_pose(model: Model, q: Coordinates, frame: str) -> Array:
    """World pose of a frame, (..., nq) -> (..., 4, 4)."""
    model.frame(frame)
    q = read_coordinates(model, q, "q", "q")
    found = run_traced(model, ("frame_pose", frame), q)
    if found is None:
        return require_finite_result(
            model, "the pose", q, numpy_kinematics.frame_pose(model, q, frame), 2
        )
    return found


def link_poses(model: Model, q: Coordinates) -> dict[str, Array]:
    """World pose (..., 4, 4) of every link, by name in file order."""
    q = read_coordinates(model, q, "q", "q")
    found = run_traced(model, ("link_poses",), q)
    if found is None:
        rows = run_loops(model, ("link_poses",), "link_poses", q)
        if rows is not None:
            return numpy_kinematics.link_poses_of_bodies(model, pose_of_rows(**rows))
        links = numpy_kinematics.link_poses(model, q)
        return {
            name: require_finite_result(model, f"the pose of '{name}'", q, x, 2)
            for name, x in links.items()
        }
    return dict(zip(model.link_names, np.moveaxis(found, -3, 0), strict=True))


def pose_of_rows(x: Array, y: Array, z: Array) -> Array:
    """Poses (..., 4, 4) of their first three rows (..., 4)."""
    last = np.broadcast_to(np.array([0.0, 0.0, 0.0, 1.0], x.dtype), x.shape)
    return np.stack([x, y, z, last], axis=-2)


def jacobian(model: Model, q: Coordinates, frame: str, reference: str = "world_aligned") -> Array:
    """Jacobian (..., 6, nv) of a frame; see ``model.numpy_kinematics.jacobian``."""
    check_reference(reference)
    model.frame(frame)
    q = read_coordinates(model, q, "q", "q")
    found = run_traced(model, ("jacobian", frame, reference), q)
    if found is None:
        return require_finite_result(
            model, "J", q, numpy_kinematics.jacobian(model, q, frame, reference), 2
        )
    return found


def frame_velocity(
    model: Model, q: Coordinates, v: Coordinates, frame: str, reference: str = "world_aligned"
) -> Array:
    """Velocity (..., 6) [angular; linear] of a frame; see ``model.numpy_kinematics``."""
    check_reference(reference)
    model.frame(frame)
    q, v = read_coordinates(model, q, "q", "q"), read_coordinates(model, v, "v", "v")
    batch_shape(model, {"q": q, "v": v})
    found = run_traced(model, ("frame_velocity", frame, reference), q, v)
    if found is None:
        velocity = numpy_kinematics.frame_velocity(model, q, v, frame, reference)
        return require_finite_result(model, "the velocity", q, velocity, 1)
    return found


def center_of_mass(model: Model, q: Coordinates, *, fixed: bool = True) -> Array:
    """Centre of mass (..., 3), world axes; see ``model.numpy_kinematics.center_of_mass``."""
    q = read_coordinates(model, q, "q", "q")
    key = ("center_of_mass", bool(fixed))
    found = run_traced(model, key, q)
    if found is None:
        loops = run_loops(model, key, "center_of_mass" if fixed else "moving_center_of_mass", q)
        if loops is not None:
            return loops["c"]
        return require_finite_result(
            model, "the centre", q, numpy_kinematics.center_of_mass(model, q, fixed=fixed), 1
        )
    return found


def integrate(model: Model, q: Coordinates, dv: Coordinates) -> Array:
    """The configuration (..., nq) along a tangent step; see ``model.configuration.integrate``."""
    q, dv = read_coordinates(model, q, "q", "q"), read_coordinates(model, dv, "v", "dv")
    batch_shape(model, {"q": q, "dv": dv})
    found = run_traced(model, ("integrate",), q, dv)
    return space.integrate(model, q, dv) if found is None else found


def integrate_unchecked(model: Model, start: Array, step: Array) -> Array:
    """``integrate`` of arrays whose shapes fit; what is not finite stays so."""
    found = run_traced(model, ("integrate",), start, step)
    return space.integrate_unchecked(model, start, step) if found is None else found


def difference(model: Model, q0: Coordinates, q1: Coordinates) -> Array:
    """The tangent step (..., nv) from q0 to q1; see ``model.configuration.difference``."""
    q0, q1 = read_coordinates(model, q0, "q", "q0"), read_coordinates(model, q1, "q", "q1")
    batch_shape(model, {"q0": q0, "q1": q1})
    found = run_traced(model, ("difference",), q0, q1)
    return space.difference(model, q0, q1) if found is None else found


def require_finite_result(model: Model, what: str, q: Array, found: Array, tail: int) -> Array:
    """A result (..., *tail) of NumPy if it is finite.

    Args:
        model: The robot.
        what: Its name.
        q: (..., nq).
        found: The result.
        tail: How many axes a sample of it has.

    Raises:
        NotFiniteError: It is not.
    """
    if not np.isfinite(found).all():
        require_finite_results(model, q, {what: found}, found.ndim - tail)
    return found


class Kinematics:
    """Poses, Jacobians and velocities of a robot's frames, and steps of its configuration."""

    model: Model
    _nv: int
    _entries: dict[Hashable, Entry | None]

    def integrate(self, q: Coordinates, dv: Coordinates, *, on_error: str = "raise") -> Array:
        """The configuration (..., nq) reached from q along the tangent step dv (..., nv).

        Each joint moves to X_J(q) exp(H* dv): addition for angles and lengths, the exponential
        for rotations and rigid motions.
        """
        entry = self._entries.get(("integrate",))
        if entry is not None and on_error is RAISE and (result := entry(q, dv)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.integrate, {"q": q, "dv": dv})
        return integrate(self.model, q, dv)

    def difference(self, q0: Coordinates, q1: Coordinates, *, on_error: str = "raise") -> Array:
        """The tangent step (..., nv) from q0 to q1: integrate(q0, difference(q0, q1)) is q1."""
        entry = self._entries.get(("difference",))
        if entry is not None and on_error is RAISE and (result := entry(q0, q1)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.difference, {"q0": q0, "q1": q1})
        return difference(self.model, q0, q1)

    def frame_pose(self, q: Coordinates, frame: str, *, on_error: str = "raise") -> Array:
        """World pose (..., 4, 4) of a link or frame."""
        entry = self._entries.get(("frame_pose", frame)) if type(frame) is str else None
        if entry is not None and on_error is RAISE and (result := entry(q)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(
                self.model, on_error, partial(self.frame_pose, frame=frame), {"q": q}
            )
        return frame_pose(self.model, q, frame)

    def link_poses(self, q: Coordinates, *, on_error: str = "raise") -> dict[str, Array]:
        """World pose (..., 4, 4) of every link, by name."""
        entry = self._entries.get(("link_poses",))
        if entry is not None and on_error is RAISE and (result := entry(q)) is not None:
            poses = result if result.ndim == 3 else result.transpose(1, 0, 2, 3)
            return dict(zip(self.model.link_names, poses, strict=True))
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.link_poses, {"q": q})
        return link_poses(self.model, q)

    def jacobian(
        self,
        q: Coordinates,
        frame: str,
        reference: str = "world_aligned",
        *,
        on_error: str = "raise",
    ) -> Array:
        """Jacobian (..., 6, nv) of a frame, rows [angular; linear]: J @ v is its velocity.

        Args:
            q: (..., nq).
            frame: Name of a link or frame.
            reference: ``"local"``: frame's axes, its origin; ``"world"``: world axes, the point of
                the extended link at the world's origin; ``"world_aligned"``: world axes, the
                frame's origin.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        try:
            entry = self._entries.get(("jacobian", frame, reference))
        except TypeError:  # no name: the general path says so
            entry = None
        if entry is not None and on_error is RAISE and (result := entry(q)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(
                self.model,
                on_error,
                partial(self.jacobian, frame=frame, reference=reference),
                {"q": q},
            )
        return jacobian(self.model, q, frame, reference)

    def frame_velocity(
        self,
        q: Coordinates,
        v: Coordinates,
        frame: str,
        reference: str = "world_aligned",
        *,
        on_error: str = "raise",
    ) -> Array:
        """Velocity (..., 6) [angular; linear] of a frame [rad/s, m/s]; see ``jacobian``."""
        try:
            entry = self._entries.get(("frame_velocity", frame, reference))
        except TypeError:  # no name: the general path says so
            entry = None
        if entry is not None and on_error is RAISE and (result := entry(q, v)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(
                self.model,
                on_error,
                partial(self.frame_velocity, frame=frame, reference=reference),
                {"q": q, "v": v},
            )
        return frame_velocity(self.model, q, v, frame, reference)

    def center_of_mass(
        self, q: Coordinates, *, fixed: bool = True, on_error: str = "raise"
    ) -> Array:
        """Centre of mass (..., 3), world axes [m].

        Args:
            q: (..., nq).
            fixed: Count the links that are welded to the ground too (MuJoCo does, Pinocchio
                does not).
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        entry = self._entries.get(("center_of_mass", bool(fixed)))
        if entry is not None and on_error is RAISE and (result := entry(q)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(
                self.model, on_error, partial(self.center_of_mass, fixed=fixed), {"q": q}
            )
        return center_of_mass(self.model, q, fixed=fixed)

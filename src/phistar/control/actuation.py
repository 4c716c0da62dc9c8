# SPDX-License-Identifier: BSD-3-Clause
"""Common parts of controllers: weights, driven joints, and the error of a state.

A state is x = (q, v). Its error against another is the tangent vector (2 nv,) that
``robot.difference`` gives for the configuration, then the difference of the velocities, so that
rotations and free bases need no special case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError
from phistar.model.configuration import Coordinates
from phistar.reprs import truncate_lines
from phistar.robot import Robot


@dataclass(frozen=True)
class Actuation:
    """The joints that a controller drives.

    Attributes:
        robot: The robot.
        names: The joints, in the robot's order.
        columns: (nu,) indices of their forces in tau.
    """

    robot: Robot
    names: tuple[str, ...]
    columns: Array

    def __repr__(self) -> str:
        names = (
            "all joints"
            if self.names == self.robot.joint_names
            else ", ".join(truncate_lines(list(self.names), 4))
        )
        return f"<Actuation of robot '{self.robot.name}': {names}>"

    @classmethod
    def of(cls, robot: Robot, names: Sequence[str] | None = None) -> Actuation:
        """The motors of a robot.

        Args:
            robot: The robot.
            names: Joints that have one; by default all.

        Raises:
            ArgumentError, UnknownNameError: A joint is fixed, follows another or does not exist.
        """
        if isinstance(names, str):
            raise ArgumentError(f"actuated is {names!r}, expected a list of joint names")
        requested = robot.joint_names if names is None else tuple(names)
        joints = {name: robot.joints[name] for name in requested}
        for name in requested:
            if name not in robot.joint_names:
                raise ArgumentError(
                    f"joint '{name}' of robot '{robot.name}' is fixed or follows another, so it "
                    f"cannot be actuated; independent joints: {', '.join(robot.joint_names)}"
                )
        chosen = tuple(name for name in robot.joint_names if name in joints)
        indices = [np.arange(robot.nv)[joints[name].v_slice] for name in chosen]
        if not indices:
            raise ArgumentError("actuated is empty; name at least one joint")
        return cls(robot, chosen, np.concatenate(indices))

    @property
    def size(self) -> int:
        """Number of forces that can be set, nu."""
        return len(self.columns)

    def pick(self, tau: Array) -> Array:
        """(..., nv) -> (..., nu)."""
        return tau[..., self.columns]

    def spread(self, u: Array) -> Array:
        """(..., nu) -> (..., nv), zero at the joints without a motor."""
        tau = np.zeros((*u.shape[:-1], self.robot.nv), dtype=u.dtype)
        tau[..., self.columns] = u
        return tau

    def bounds(self, limits: ArrayLike | str | None) -> tuple[Array | None, Array | None]:
        """Least and largest forces, each (nu,) or None for no bounds.

        Args:
            limits: A number or (nu,) for the same in both directions, (2, nu) for lower and upper,
                ``"robot"`` for those of the robot's file.
        """
        if limits is None:
            return None, None
        if isinstance(limits, str):
            upper = self._effort(limits)
            return -upper, upper
        array = np.asarray(limits, dtype=float)
        pair = array if array.shape == (2, self.size) else np.stack([-array, array])
        if array.shape not in ((), (self.size,), (2, self.size)):
            expected = f"a number, ({self.size},) or (2, {self.size})"
            raise ShapeError("limits", array.shape, expected, f"robot '{self.robot.name}'")
        lower, upper = (np.broadcast_to(x, (self.size,)).copy() for x in pair)
        if np.isnan(pair).any() or not (lower < upper).all():
            raise ArgumentError(f"limits leave no room: lower {lower}, upper {upper}")
        return lower, upper

    def _effort(self, word: str) -> Array:
        if word != "robot":
            raise ArgumentError(f"limits is {word!r}, expected numbers or 'robot'")
        efforts = [self.robot.joints[name].limits.effort for name in self.names]
        return np.concatenate([np.asarray(effort, dtype=float) for effort in efforts])


def positive_gains(robot: Robot, name: str, value: ArrayLike) -> Array:
    """Positive gains (nv,) from a number or one for each velocity coordinate."""
    array = np.asarray(value, dtype=float)
    if array.shape not in ((), (robot.nv,)):
        raise ShapeError(name, array.shape, f"a number or ({robot.nv},)", f"robot '{robot.name}'")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ArgumentError(f"{name} is {array}, expected positive numbers")
    return np.broadcast_to(array, (robot.nv,))


def require_positive(name: str, value: float) -> float:
    """A number that must be greater than zero."""
    if not (np.isfinite(value) and value > 0):
        raise ArgumentError(f"{name} is {value}, expected a number greater than zero")
    return float(value)


def weight_matrix(value: ArrayLike, size: int, name: str, *, definite: bool = False) -> Array:
    """A weight (size, size) from a number, a diagonal (size,) or a matrix.

    Args:
        value: The user's weight.
        size: Length of the weighted vector.
        name: For messages.
        definite: Whether it must be positive definite; otherwise semidefinite.
    """
    array = np.asarray(value, dtype=float)
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} is not finite")
    if array.ndim == 0:
        array = np.full(size, float(array))
    if array.shape == (size,):
        array = np.diag(array)
    if array.shape != (size, size):
        expected = f"a number, ({size},) or ({size}, {size})"
        raise ShapeError(name, array.shape, expected, "the weight")
    if np.abs(array - array.T).max() > 1e-12 * np.abs(array).max(initial=0.0):
        raise ArgumentError(f"{name} is not symmetric; pass ({name} + {name}.T) / 2")
    values = np.linalg.eigvalsh(array)
    least, scale = values[0], max(abs(values[0]), abs(values[-1]))
    if least < -1e-12 * scale or (definite and least <= 1e-14 * scale):
        expected = "positive definite" if definite else "positive semidefinite"
        raise ArgumentError(f"{name} is not {expected}: its smallest eigenvalue is {least:.3g}")
    return array


def state_error(robot: Robot, q0: Coordinates, v0: Array, q: Coordinates, v: Array) -> Array:
    """(..., 2 nv): the tangent step from the state (q0, v0) to (q, v)."""
    steps, rates = robot.difference(q0, q), np.asarray(v) - v0
    batch = np.broadcast_shapes(steps.shape[:-1], rates.shape[:-1])
    halves = (np.broadcast_to(x, (*batch, robot.nv)) for x in (steps, rates))
    return np.concatenate(list(halves), axis=-1)


def matvec(matrix: Array, vector: Array) -> Array:
    """Matrices (..., m, n) times vectors (..., n)."""
    return np.asarray((matrix @ vector[..., None])[..., 0])

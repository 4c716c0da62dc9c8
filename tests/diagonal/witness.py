# SPDX-License-Identifier: BSD-3-Clause
"""Robots, and a witness of their diagonal rates: dense operators along a complex step in time.

Nothing here differentiates or factors by our formulas: L and D are made from their definitions as
matrices, accelerations come from solving with the dense mass matrix, rates of anything are
Im f(q + ihv, v + ihv̇) / h, and the symmetric root is Newton's iteration.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.symbols import D, D_root, mass_matrix, v
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.innovations import L
from phistar.algorithms.inverse_dynamics import bias_force
from phistar.algorithms.rotor_forces import rotor_force
from phistar.model.joint_map import joint_map
from phistar.model.random import random_model

Array = np.ndarray
TINY = 1e-30

ROBOTS: dict[str, dict[str, Any]] = {
    "serial, one axis": {"topology": "serial", "kinds": ["revolute", "prismatic", "helical"]},
    "branched, one axis": {"topology": "binary", "kinds": ["revolute", "prismatic"]},
    "serial with rotors": {"topology": "serial", "armature": 0.5},
    "tree": {"topology": "tree", "fixed": 0.3, "massless": 0.2},
    "forest with rotors": {"topology": "forest", "armature": 0.5},
    "free base": {"topology": "binary", "floating_base": True},
}
"""The last four have joints of all kinds: spherical, planar, free, translation and others."""


@dataclass(frozen=True)
class Case:
    """A robot, two states and joint forces."""

    robot: phistar.Robot
    q: Array
    v: Array
    tau: Array

    def witness(self, row: int) -> "Witness":
        """Of one of the states."""
        return Witness(self.robot, self.q[row], self.v[row], self.tau[row])


def case(name: str, seed: int = 2, n: int = 6) -> Case:
    """A random robot in random states."""
    rng = np.random.default_rng(seed)
    robot = phistar.Robot(random_model(rng, n, gravity=(0.7, -1.1, -9.3), **ROBOTS[name]))
    return Case(robot, robot.random_configuration(rng, 2), *rng.normal(size=(2, 2, robot.nv)))


@dataclass(frozen=True)
class Witness:
    """One state, densely."""

    robot: phistar.Robot
    q: Array
    v: Array
    tau: Array

    def dense(self, q: Array, v: Array) -> Dense:
        """Matrices at a state, real or complex."""
        spread = joint_map(self.robot.model).spread
        links = np.zeros(6 * len(self.robot.model.bodies))
        vectors = {"v": spread(v), "f_ext": links, "vdot": spread(0 * v)}
        return Dense(self.robot.model, q, vectors=vectors)

    @cached_property
    def here(self) -> Dense:
        """Matrices at the state."""
        return self.dense(self.q, self.v)

    @cached_property
    def there(self) -> Dense:
        """Matrices a complex step ahead in time."""
        q = self.robot.integrate(self.q, 1j * TINY * self.v)
        return self.dense(q, self.v + 1j * TINY * self.vdot)

    @cached_property
    def vdot(self) -> Array:
        """Accelerations by solving with the dense mass matrix."""
        joints = joint_map(self.robot.model)
        left = joints.spread(self.tau) - self.here(in_motion(bias_force) + rotor_force)
        return joints.gather(np.linalg.solve(self.here(mass_matrix), left))

    @cached_property
    def gravity(self) -> Array:
        """Joint forces that hold the robot, in body order."""
        return self.dense(self.q, 0 * self.v)(in_motion(bias_force))

    def zeta(self, at: Dense) -> Array:
        """ζ = L*v."""
        return at(L).T @ at(v)

    def root(self, at: Dense, kind: str) -> Array:
        """R with D = R R*."""
        if kind == "cholesky":
            return at(D_root)
        blocks = [newton_root(at(D)[rows, rows]) for rows in at.joint_slices]
        return scipy.linalg.block_diag(*blocks)

    def eta(self, at: Dense, kind: str) -> Array:
        """η = R*L*v."""
        return self.root(at, kind).T @ self.zeta(at)

    def rate(self, value: Any) -> Array:
        """How something of a state changes in time."""
        return value(self.there).imag / TINY


def newton_root(matrix: Array) -> Array:
    """The symmetric root by the coupled Newton iteration, analytic in the entries."""
    root, inverse = matrix.copy(), np.eye(len(matrix), dtype=matrix.dtype)
    for _ in range(60):
        root, inverse = (
            (root + np.linalg.inv(inverse)) / 2,
            (inverse + np.linalg.inv(root)) / 2,
        )
    return root


def close(ours: Any, theirs: Any, tolerance: float = 1e-11) -> None:
    """The same shape, and the same numbers relative to the largest."""
    assert np.shape(ours) == np.shape(theirs)
    scale = np.abs(theirs).max(initial=0.0)
    assert np.abs(np.asarray(ours) - theirs).max(initial=0.0) <= tolerance * max(scale, 1e-2)

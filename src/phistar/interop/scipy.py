# SPDX-License-Identifier: BSD-3-Clause
"""Robots for SciPy: right-hand sides of ``solve_ivp`` with Jacobians, costs of ``optimize``.

``from phistar.interop import scipy as ps``. A state of ``solve_ivp`` is y = [q, v], nq + nv numbers
without an axis for samples, and ẏ = [G v, v̇]. Quaternions in q are numbers as any others: what
is computed is that of the unit quaternion, F(q) = f(normalize(q)), and Jacobians are partial
derivatives with respect to the numbers (``interop.tangent_maps``). Their length is kept by the flow
exactly, and by a solver within its tolerance; ``ode.state(y)`` makes them unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, LoopError, ShapeError
from phistar.interop.tangent_maps import adds_steps, rate_map, tangent_map
from phistar.model.configuration import Coordinates, normalize, read_coordinates
from phistar.model.joint_physics import Passive
from phistar.model.kinematic_loops import active_loops
from phistar.robot import Robot

Forces = Callable[[float, Array, Array], ArrayLike]
"""Time [s], q (nq,), v (nv,) -> joint forces (nv,)."""
_PROBE = 1e-6
"""Relative step of differences by which a law's own derivatives are found."""


class Ode:
    """The motion of a robot as ẏ = f(t, y); made by ``ode``.

    Call it as ``ode(t, y)``. With ``vectorized=True`` y may have columns, (nq + nv, k).

    Attributes:
        robot: The robot.
        size: nq + nv.
    """

    def __init__(
        self,
        robot: Robot,
        tau: Forces | Coordinates | None,
        tau_y: Callable[[float, Array], ArrayLike] | None,
        passive: Passive,
    ) -> None:
        self.robot = robot
        self.size = robot.nq + robot.nv
        self._flat = adds_steps(robot.model)
        self._passive = passive
        self._law: Forces | None = tau if callable(tau) else None
        held = np.zeros(robot.nv)
        if tau is not None and not callable(tau):
            held = read_coordinates(robot.model, tau, "v", "tau")
        if held.shape != (robot.nv,):
            expected = f"({robot.nv},), or a function of t, q and v"
            raise ShapeError("tau", held.shape, expected, f"robot '{robot.name}'")
        self._held = held
        self._law_y = tau_y

    def _parts(self, y: Array) -> tuple[Array, Array]:
        """q (..., nq), quaternions unit, and v (..., nv) of y (nq + nv, ...)."""
        array = np.asarray(y)
        if array.ndim not in (1, 2) or len(array) != self.size:
            expected = f"({self.size},) = (nq + nv,), or ({self.size}, k)"
            raise ShapeError("y", array.shape, expected, f"robot '{self.robot.name}'")
        rows = array.T
        q = rows[..., : self.robot.nq]
        return q if self._flat else normalize(self.robot.model, q), rows[..., self.robot.nq :]

    def _forces(self, t: float, q: Array, v: Array) -> Array:
        if self._law is None:
            return np.broadcast_to(self._held, v.shape)
        if v.ndim == 1:
            given = np.asarray(self._law(t, q, v), dtype=float)
            if given.shape != v.shape:
                raise ShapeError("tau(t, q, v)", given.shape, str(v.shape), "its result")
            return given
        return np.stack([self._forces(t, *each) for each in zip(q, v, strict=True)])

    def __call__(self, t: float, y: ArrayLike) -> Array:
        """ẏ at time t [s], of the shape of y."""
        given = np.asarray(y, dtype=float)
        q, v = self._parts(given)
        vdot = self.robot.forward_dynamics(q, v, self._forces(t, q, v), passive=self._passive)
        qdot = v if self._flat else (self._rates(given) @ v[..., None])[..., 0]
        return np.concatenate([qdot, vdot], axis=-1).T

    def _rates(self, y: Array) -> Array:
        return rate_map(self.robot.model, y.T[..., : self.robot.nq])

    def jac(self, t: float, y: ArrayLike) -> Array:
        """∂ẏ/∂y (nq + nv, nq + nv), for ``solve_ivp(..., jac=ode.jac)``.

        Those of forces that depend on the state are ``tau_y``, or central differences of ``tau``.
        """
        given = np.asarray(y, dtype=float)
        if given.ndim != 1:
            raise ShapeError("y", given.shape, f"({self.size},)", "jac")
        q, v = self._parts(given)
        nq, nv = self.robot.nq, self.robot.nv
        at = self.robot.linearize(q, v, self._forces(t, q, v), passive=self._passive)
        result = np.zeros((self.size, self.size))
        result[nq:, :nq] = at.vdot_q if self._flat else at.vdot_q @ self._tangents(given)
        result[nq:, nq:] = at.vdot_v
        if self._law is not None:
            result[nq:] += at.vdot_tau @ self._force_rows(t, given)
        if self._flat:
            result[:nq, nq:] = np.eye(nv)
        else:
            result[:nq, :nq] = _rate_rows(self.robot, given[:nq], v)
            result[:nq, nq:] = self._rates(given)
        return result

    def _tangents(self, y: Array) -> Array:
        return tangent_map(self.robot.model, y[: self.robot.nq])

    def _force_rows(self, t: float, y: Array) -> Array:
        """How the forces follow y: (nv, nq + nv)."""
        shape = (self.robot.nv, self.size)
        if self._law_y is not None:
            given = np.asarray(self._law_y(t, y), dtype=float)
            if given.shape != shape:
                raise ShapeError("tau_y(t, y)", given.shape, str(shape), "its result")
            return given
        result = np.zeros(shape)
        for k in range(self.size):
            step = np.zeros(self.size)
            step[k] = _PROBE * max(1.0, abs(y[k]))
            ahead, behind = (self._forces(t, *self._parts(y + s * step)) for s in (1.0, -1.0))
            result[:, k] = (ahead - behind) / (2.0 * step[k])
        return result

    def y0(self, q: Coordinates | None = None, v: Coordinates | None = None) -> Array:
        """A state y (nq + nv,); the robot's home at rest unless given."""
        robot = self.robot
        here = robot.home if q is None else robot.configuration(q)
        speed = np.zeros(robot.nv) if v is None else read_coordinates(robot.model, v, "v", "v")
        return np.concatenate([here, speed])

    def state(self, y: ArrayLike) -> tuple[Array, Array]:
        """q (..., nq), quaternions unit, and v (..., nv) of states (nq + nv, ...), as ``sol.y``."""
        return self._parts(np.asarray(y, dtype=float))

    def __repr__(self) -> str:
        return f"<Ode of '{self.robot.name}': {self.size} numbers>"


def _rate_rows(robot: Robot, q: Array, v: Array) -> Array:
    """∂(G v)/∂q (nq, nq): G is analytic, so an imaginary step gives all digits."""
    result = np.empty((robot.nq, robot.nq))
    for k in range(robot.nq):
        moved = q.astype(complex)
        moved[k] += 1e-30j
        result[:, k] = (rate_map(robot.model, moved) @ v).imag / 1e-30
    return result


def ode(
    robot: Robot,
    *,
    tau: Forces | Coordinates | None = None,
    tau_y: Callable[[float, Array], ArrayLike] | None = None,
    passive: Passive = False,
) -> Ode:
    """The motion of a robot for ``scipy.integrate.solve_ivp(ode, span, ode.y0(), jac=ode.jac)``.

    Args:
        robot: The robot; one without closed loops, whose motion is on them (``robot.simulate``).
        tau: Joint forces (nv,), held, or a function of time, q and v; none by default.
        tau_y: Time, y -> derivatives (nv, nq + nv) of ``tau`` as it follows the state.
        passive: Whether joints push by themselves, as in ``robot.forward_dynamics``.

    Raises:
        LoopError: The robot closes loops.
        ArgumentError: A joint's kind is not known, or ``tau_y`` is given without a law.
        ShapeError: Forces of another shape.
    """
    if loops := active_loops(robot.model.loops):
        cure = "solve_ivp would leave the loops: use robot.simulate, which stays on them"
        raise LoopError(robot.name, "a right-hand side", loops, cure)
    if tau_y is not None and not callable(tau):
        raise ArgumentError("tau_y is given, but tau is no function of t, q and v")
    rate_map(robot.model, robot.home)
    return Ode(robot, tau, tau_y, passive)


def cost(
    robot: Robot, function: Callable[[Array], tuple[SupportsFloat, ArrayLike]]
) -> Callable[[ArrayLike], tuple[float, Array]]:
    """A cost of q with its gradient, for ``scipy.optimize.minimize(..., jac=True)``.

    Args:
        robot: The robot.
        function: q (nq,), quaternions unit -> a number and its gradient (nv,) along tangent steps,
            as products with Jacobians of this package are.

    Returns:
        A function of the nq numbers of q that gives the number and its gradient (nq,).
    """

    def evaluated(x: ArrayLike) -> tuple[float, Array]:
        given = read_coordinates(robot.model, np.asarray(x, dtype=float), "q", "q")
        q = normalize(robot.model, given)
        value, gradient = function(q)
        along = np.asarray(gradient, dtype=float)
        if along.shape != (robot.nv,):
            raise ShapeError("gradient", along.shape, f"({robot.nv},)", "the result of function")
        return float(value), along @ tangent_map(robot.model, given)

    return evaluated

# SPDX-License-Identifier: BSD-3-Clause
"""Physically possible estimates: bodies with mass somewhere, friction and rotors not negative.

Of the parameters θ with the base parameters β = Bθ that the log asks for, those are taken that are
near the robot's own in the sense of the entropic divergence D:

    minimise  ½ ‖R (B θ - β̂)‖² + w Σ D(π_k | π_k0) + w Σ D(x_i | x_i0)

over the bodies π_k and the joint numbers x_i. D is convex and infinite at the border of what is
possible, so that there is one minimum, Newton's damped steps find it, and every step on the way is
possible. (Gauss-Newton steps in logarithmic Cholesky parameters, which are unconstrained, stop far
from it where a log is precise: the valley that precise data make is curved in them.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phistar.arguments import require_number
from phistar.arrays import Array
from phistar.errors import ConvergenceWarning, warn
from phistar.ident.base_parameters import BaseParameters
from phistar.ident.columns import PER_BODY, Columns
from phistar.ident.least_squares import LinearFit, least_squares_solution
from phistar.ident.pseudo_inertia import divergence, feasible, is_possible
from phistar.ident.triangles import times, triangle, triangle_inverse

STEPS = 300
"""Most steps."""
SETTLED = 1e-10
"""Expected decrease of the cost, in units of σ², at which they end."""
LEAST_RADIUS = 0.005
"""Spread of mass [m] that bodies of the robot are given where they have less."""
LEAST_SHARE = 1e-3
"""Joint numbers begin at what moves the joint's forces by this share of all their noise."""
ROTOR_SHARE = 0.1
"""Least of a joint's own inertia that a rotor is expected to have where the robot has none: forces
tell its sum with the inertia of bodies, and a rotor that is expected to be nothing would have the
bodies pay for it."""
NOTHING = 1e-9
"""Joint numbers [SI] that neither the robot has nor the log tells."""
HALVINGS = 60
"""Most times that a step is halved."""
PRIOR = (
    "a positive number: what forces do not tell is taken from the robot's own bodies; a small "
    "weight lets them go far"
)
"""What ``prior_weight`` is."""


@dataclass(frozen=True, eq=False)
class ConsistentFit:
    """A possible estimate.

    Attributes:
        theta: (columns,) parameters.
        beta: (b,) its base parameters.
        distance: ‖R (β - β̂)‖: how far it is from least squares, in standard deviations.
        divergence: (bodies,) how far each body is from the robot's own.
        filled: Names of links whose own inertia was impossible or without extent.
        steps: Steps taken.
    """

    theta: Array
    beta: Array
    distance: float
    divergence: Array
    filled: tuple[str, ...]
    steps: int


class PossibleProblem:
    """Cost ½ ‖Aθ - z‖² + w Σ D and its derivatives over θ: bodies first, then joint numbers.

    Args:
        A, wanted: Rows, in standard deviations, and what they should give.
        prior: (bodies, 10) possible bodies.
        joint: Joint numbers to begin with.
        positive: Indices into θ of joint numbers that are positive.
        own: What they are expected to be; where that is 0, what they begin with takes its place.
        weight: w.
    """

    def __init__(
        self,
        A: Array,
        wanted: Array,
        prior: Array,
        joint: Array,
        positive: Array,
        own: Array,
        weight: float,
    ) -> None:
        weight = require_number("prior_weight", weight, PRIOR, zero=False)
        self.A, self.wanted, self.prior, self.weight = A, wanted, prior, weight
        self.inertial, self.positive = prior.size, positive
        self.start = np.concatenate([prior.reshape(-1), joint])
        sizes = np.linalg.norm(A[:, positive], axis=0)
        least = np.where(sizes > 0.0, LEAST_SHARE / np.where(sizes > 0.0, sizes, 1.0), NOTHING)
        self.start[positive] = np.maximum(self.start[positive], least)
        self.pull = 1.0 / np.where(own > 0.0, own, self.start[positive])

    def bodies(self, theta: Array) -> Array:
        """(bodies, 10)."""
        return theta[: self.inertial].reshape(-1, PER_BODY)

    def cost(self, theta: Array) -> float:
        """The cost; infinite where something is not possible."""
        x = theta[self.positive]
        if not (x > 0.0).all() or not is_possible(self.bodies(theta)).all():
            return np.inf
        left = times(self.A, theta) - self.wanted
        entropy = divergence(self.bodies(theta), self.prior)[0].sum()
        entropy += np.sum(self.pull * x - np.log(x))
        return float(0.5 * np.sum(left**2) + self.weight * entropy)

    def step(self, theta: Array) -> tuple[Array, float]:
        """Newton's step, and the decrease of the cost that it promises.

        By least squares over rows of data and of the prior, which squares no condition number.
        """
        x = theta[self.positive]
        _, slopes, curves = divergence(self.bodies(theta), self.prior)
        rows = np.zeros((self.inertial + len(x), len(theta)))
        wanted = np.zeros(len(rows))
        for k, (slope, curve) in enumerate(zip(slopes, curves, strict=True)):
            own = slice(PER_BODY * k, PER_BODY * (k + 1))
            values, axes = np.linalg.eigh(curve)
            root = np.sqrt(np.maximum(values, np.finfo(float).tiny))
            rows[own, own] = root[:, None] * axes.T
            wanted[own] = -times(axes.T, slope) / root
        places = np.arange(self.inertial, len(rows))
        rows[places, self.positive] = 1.0 / x
        wanted[places] = 1.0 - self.pull * x
        root = np.sqrt(self.weight)
        whole = np.concatenate([self.A, root * rows])
        right = np.concatenate([self.wanted - times(self.A, theta), root * wanted])
        scale = np.linalg.norm(whole, axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        found = least_squares_solution(whole / scale, right) / scale
        return found, float(np.sum(times(whole, found) ** 2))


def prior_cost(columns: Columns, theta: Array, own: Array) -> float:
    """Σ D of bodies and positive joint numbers from what is expected of them (columns,)."""
    bodies = theta[: columns.inertial].reshape(-1, PER_BODY)
    prior = feasible(own[: columns.inertial].reshape(-1, PER_BODY), LEAST_RADIUS)
    positive = np.flatnonzero(columns.positive)
    x, usual = theta[positive], own[positive]
    told = (x > 0.0) & (usual > 0.0)
    ratio = x[told] / usual[told]
    return float(
        divergence(feasible(bodies, LEAST_RADIUS), prior)[0].sum()
        + np.sum(ratio - np.log(ratio) - 1.0)
    )


def consistent_fit(base: BaseParameters, fit: LinearFit, weight: float = 1.0) -> ConsistentFit:
    """The possible parameters that fit best.

    Args:
        base: The base parameters.
        fit: Their estimate.
        weight: Of the divergence from the robot's own bodies: 1 counts a divergence of ½ as one
            standard deviation.

    Raises:
        ArgumentError: The weight is not positive.
    """
    columns = base.columns
    own = columns.values[: columns.inertial].reshape(-1, PER_BODY)
    prior = feasible(own, LEAST_RADIUS)
    filled = tuple(
        columns.robot.model.bodies[k].link
        for k, a, b in zip(columns.bodies, own, prior, strict=True)
        if not np.array_equal(a, b)
    )
    positive = np.flatnonzero(columns.positive)
    problem = PossibleProblem(
        np.einsum("ij,jk->ik", fit.information, base.matrix),
        times(fit.information, fit.beta),
        prior,
        nearest(base, fit.beta)[columns.inertial :],
        positive,
        expected(base, fit.beta)[positive],
        weight,
    )
    theta, steps = minimum(problem)
    beta = times(base.matrix, theta)
    return ConsistentFit(
        theta=theta,
        beta=beta,
        distance=float(np.linalg.norm(times(fit.information, beta - fit.beta))),
        divergence=divergence(problem.bodies(theta), prior)[0],
        filled=filled,
        steps=steps,
    )


def minimum(problem: PossibleProblem) -> tuple[Array, int]:
    """θ of least cost, by Newton's damped steps, and how many they were."""
    theta = problem.start
    cost = problem.cost(theta)
    for steps in range(1, STEPS + 1):
        step, promised = problem.step(theta)
        if promised < SETTLED:
            return theta, steps
        theta, cost, moved = _along(problem, theta, step, cost, promised)
        if not moved:
            return theta, steps
    warn(f"the possible estimate still moves after {STEPS} steps", ConvergenceWarning)
    return theta, STEPS


def _along(
    problem: PossibleProblem, theta: Array, step: Array, cost: float, promised: float
) -> tuple[Array, float, bool]:
    """The first of halved steps that lowers the cost by its part; False if rounding decides."""
    length = 1.0
    for _ in range(HALVINGS):
        trial = theta + length * step
        lower = problem.cost(trial)
        if lower <= cost - 0.1 * length * promised:
            return trial, lower, True
        length /= 2.0
    return theta, cost, False


def expected(base: BaseParameters, beta: Array) -> Array:
    """(columns,) the robot's own parameters; rotors that it does not have as the log would have."""
    columns = base.columns
    found = np.array(columns.values)
    rotors = columns.of_kind("rotor")
    if not len(rotors):
        return found
    least = np.maximum(nearest(base, beta)[rotors], ROTOR_SHARE * _joint_inertia(columns))
    found[rotors] = np.where(found[rotors] > 0.0, found[rotors], least)
    return found


def _joint_inertia(columns: Columns) -> Array:
    """(joints,) inertia that joints with columns feel at the neutral configuration."""
    mass = columns.robot.mass_matrix(columns.robot.neutral())
    return np.asarray(np.diagonal(mass)[list(columns.joints)])


def nearest(base: BaseParameters, beta: Array) -> Array:
    """(columns,) the parameters with base parameters β that differ least from the robot's own."""
    columns = base.columns
    values = columns.values
    size = np.maximum(np.abs(values), 1e-3)
    rotors = columns.of_kind("rotor")
    if len(rotors):
        size[rotors] = np.maximum(size[rotors], _joint_inertia(columns))
    scaled = base.matrix * size  # its rows are independent: RᵀR is scaled scaledᵀ
    inverse = triangle_inverse(triangle(scaled.T))
    shares = times(inverse, times(inverse.T, beta - base.values))
    return np.asarray(values + size * times(scaled.T, shares))

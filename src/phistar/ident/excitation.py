# SPDX-License-Identifier: BSD-3-Clause
"""Motions to identify a robot by: Fourier series within its limits that tell most.

Many random series are tried at once; the best are improved together by Adam's steps along exact
gradients of the condition number of the base regressor, or of the volume of the information, with
a price on leaving the limits. At the end amplitudes are reduced until all limits are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arguments import require_count, require_robot, require_time
from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.ident.base_parameters import BaseParameters, base_parameters
from phistar.ident.columns import Columns
from phistar.ident.fourier import FourierSeries, fourier_matrices
from phistar.ident.regressor_slope import regressor_slope, shifts_of
from phistar.progress import progress_bar
from phistar.robot import Robot

CRITERIA = ("condition", "logdet")
"""What can be improved."""
WIDEST = np.pi
"""Largest way [rad, m] from the middle where a joint has no limit."""
FASTEST = 3.0
"""Largest speed [rad/s, m/s] where a joint has no limit."""
SHARPNESS = 4.0
"""Power of eigenvalues in the smooth form of the condition number."""
PRICE = 100.0
"""Of the mean square by which limits are exceeded, relative to them."""
CHECKED = 2000
"""Times at which limits are checked at the end."""
TRIES = 16
"""Random series for each start that is improved."""


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits that a motion keeps.

    Attributes:
        lower, upper, velocity, effort: (n,).
    """

    lower: Array
    upper: Array
    velocity: Array
    effort: Array

    @classmethod
    def of(cls, robot: Robot, margin: float) -> MotionLimits:
        """A share of the robot's own; joints without limits get ``WIDEST``, ``FASTEST``."""
        own = robot.limits
        lower = np.where(np.isfinite(own.lower), own.lower, -WIDEST)
        upper = np.where(np.isfinite(own.upper), own.upper, WIDEST)
        middle, half = (lower + upper) / 2.0, margin * (upper - lower) / 2.0
        velocity = margin * np.where(np.isfinite(own.velocity), own.velocity, FASTEST)
        return cls(middle - half, middle + half, velocity, margin * own.effort)


@dataclass(frozen=True, eq=False)
class Excitation:
    """A motion that excites a robot's parameters.

    Attributes:
        series: The motion; ``series.at(t)`` gives q, v, vdot.
        base: The base parameters that it is for.
        condition: Condition number of the base regressor over a period, joints weighted.
        first_condition: That of random motions within the same limits: the median.
        starts: (starts,) condition numbers of all that were improved.
    """

    series: FourierSeries
    base: BaseParameters
    condition: float
    first_condition: float
    starts: Array

    def __repr__(self) -> str:
        return (
            f"<Excitation of '{self.base.columns.robot.name}': {self.series.harmonics} harmonics, "
            f"{self.series.period:g} s, condition {self.condition:.4g}, random "
            f"{self.first_condition:.4g}>"
        )

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """q, v, vdot (N, n) at times (N,)."""
        return self.series.at(t)


def excitation(
    robot: Robot,
    *,
    period: float = 10.0,
    harmonics: int = 10,
    criterion: str = "condition",
    friction: Sequence[str] | bool = True,
    rotors: bool = True,
    noise: Array | None = None,
    starts: int = 4,
    steps: int = 100,
    samples: int = 80,
    margin: float = 0.95,
    seed: int = 0,
    progress: bool | None = None,
) -> Excitation:
    """A periodic motion within position, velocity and torque limits that tells the parameters.

    Args:
        robot: Its limits are kept; joints without any move within half a turn and at 3 rad/s.
        period: Of the motion [s].
        harmonics: Of the Fourier series.
        criterion: ``"condition"`` makes the condition number of the base regressor small,
            ``"logdet"`` the determinant of the information large.
        friction, rotors: What is identified, as in ``identify``.
        noise: (nv,) standard deviations of the joint forces; default: in proportion to the effort
            limits, or equal where there are none.
        starts: Motions that are improved together.
        steps: Of improvement.
        samples: Times in a period at which the regressor is formed.
        margin: Share of the limits that is used.
        seed: Of the random motions.
        progress: Whether to show a bar; default: on a terminal.

    Raises:
        UnknownNameError: No such criterion.
        ArgumentError: A joint has several axes, or no motion keeps the effort limits.
    """
    if criterion not in CRITERIA:
        raise UnknownNameError("criterion", criterion, CRITERIA)
    require_robot(robot)
    require_time("period", period)
    for name, given in (("harmonics", harmonics), ("starts", starts), ("samples", samples)):
        require_count(name, given)
    shifts_of(robot)
    search = _Search(robot, period, harmonics, criterion, friction, rotors, noise, samples, margin)
    rng = np.random.default_rng(seed)
    tries = np.stack([search.random(rng) for _ in range(TRIES * starts)])
    tries = np.stack([search.within_limits(each) for each in tries])
    conditions = np.exp(search.log_condition(tries))
    best = np.argsort(conditions, kind="stable")[:starts]
    shown = sys.stderr.isatty() if progress is None else progress
    with progress_bar(shown, f"exciting {robot.name}", steps, "steps") as advance:
        kept = search.improve(tries[best], steps, advance)
    found = np.exp(search.log_condition(kept))
    chosen = kept[int(np.argmin(search.value(kept)))]
    return Excitation(
        search.series(chosen),
        search.base,
        float(np.exp(search.log_condition(chosen[None]))[0]),
        float(np.median(conditions)),
        found,
    )


def random_series(
    robot: Robot, rng: np.random.Generator, harmonics: int, period: float, limits: MotionLimits
) -> FourierSeries:
    """A random motion as wide as position and velocity limits allow, joint by joint."""
    raw = FourierSeries(np.zeros(robot.nv), rng.normal(size=(robot.nv, 2 * harmonics)), period)
    q, v, _ = raw.at(np.linspace(0.0, period, CHECKED // 4))
    room = np.minimum(
        (limits.upper - limits.lower) / np.ptp(q, axis=0), limits.velocity / np.abs(v).max(axis=0)
    )
    middle = room * (q.max(axis=0) + q.min(axis=0)) / 2.0
    centre = (limits.lower + limits.upper) / 2.0 - middle
    return FourierSeries(centre, raw.coefficients * room[:, None], period)


class _Search:
    """Motions as rows (n, 1 + 2 harmonics): the centre, then coefficients."""

    def __init__(
        self,
        robot: Robot,
        period: float,
        harmonics: int,
        criterion: str,
        friction: Sequence[str] | bool,
        rotors: bool,
        noise: Array | None,
        samples: int,
        margin: float,
    ) -> None:
        self.robot, self.period, self.harmonics = robot, period, harmonics
        self.criterion = criterion
        self.limits = MotionLimits.of(robot, margin)
        self.base = base_parameters(Columns.of(robot, friction=friction, rotors=rotors))
        finite = np.isfinite(robot.limits.effort) & (robot.limits.effort > 0.0)
        usual = np.where(finite, robot.limits.effort, 1.0)
        self.weights = 1.0 / (usual if noise is None else np.asarray(noise, dtype=float))
        # Not commensurable with the harmonics, so that no frequency hides between the samples.
        self.t = period * (np.arange(samples) + 0.5) / samples
        matrices = fourier_matrices(self.t, harmonics, period)
        constant = np.zeros((samples, 1))
        self.matrices = [
            np.hstack([constant + float(k == 0), each]) for k, each in enumerate(matrices)
        ]

    def random(self, rng: np.random.Generator) -> Array:
        """A random motion within position and velocity limits."""
        series = random_series(self.robot, rng, self.harmonics, self.period, self.limits)
        return np.column_stack([series.centre, series.coefficients])

    def series(self, x: Array) -> FourierSeries:
        """The motion of numbers."""
        return FourierSeries(x[:, 0], x[:, 1:], self.period)

    def states(self, x: Array) -> tuple[Array, Array, Array]:
        """q, v, vdot (starts * samples, n) of motions (starts, n, 1 + 2 harmonics)."""
        q, v, a = (
            np.swapaxes(x @ each.T, -1, -2).reshape(-1, x.shape[1]) for each in self.matrices
        )
        return q, v, a

    def regressor(self, x: Array) -> Array:
        """(starts, samples, nv, b) weighted."""
        rows = self.base.columns.at(*self.states(x)).dense()[..., self.base.kept]
        rows = rows * self.weights[:, None]
        return rows.reshape(len(x), len(self.t), *rows.shape[1:])

    def log_condition(self, x: Array) -> Array:
        """(starts,) logarithms of condition numbers."""
        flat = self.regressor(x).reshape(len(x), -1, len(self.base))
        values = np.linalg.svd(flat, compute_uv=False)
        return np.asarray(np.log(values[:, 0]) - np.log(values[:, -1]))

    def gradient(self, x: Array) -> Array:
        """(starts, n, 1 + 2 harmonics) of the criterion and the price of limits."""
        A = self.regressor(x).reshape(len(x), -1, len(self.base))
        values, axes = np.linalg.eigh(np.swapaxes(A, -1, -2) @ A)
        values = np.maximum(values, np.finfo(float).eps * values[:, -1:])
        if self.criterion == "logdet":
            factors = -1.0 / values
        else:
            high = (values / values[:, -1:]) ** SHARPNESS
            low = (values[:, :1] / values) ** SHARPNESS
            factors = high / high.sum(axis=1, keepdims=True) - low / low.sum(axis=1, keepdims=True)
            factors = factors / values
        pull = ((A @ axes) * factors[:, None, :]) @ np.swapaxes(axes, -1, -2)
        pull = pull.reshape(-1, self.robot.nv, len(self.base)) * self.weights[:, None]
        weights = np.zeros((len(pull), self.robot.nv, len(self.base.columns)))
        weights[..., self.base.kept] = pull
        states = self.states(x)
        slopes = regressor_slope(self.base.columns, weights, *states)
        prices = self._prices(*states)
        result = np.zeros_like(x)
        for each, slope, price in zip(self.matrices, slopes, prices, strict=True):
            whole = (slope + PRICE / len(self.t) * price).reshape(len(x), len(self.t), -1)
            result += np.swapaxes(whole, -1, -2) @ each
        return result

    def _prices(self, q: Array, v: Array, vdot: Array) -> tuple[Array, Array, Array]:
        """Slopes of half the squares by which limits are exceeded, relative to them."""
        limits = self.limits
        half = (limits.upper - limits.lower) / 2.0
        beyond = np.maximum(q - limits.upper, 0.0) - np.maximum(limits.lower - q, 0.0)
        fast = np.sign(v) * np.maximum(np.abs(v) - limits.velocity, 0.0)
        prices = [beyond / half**2, fast / limits.velocity**2, np.zeros_like(vdot)]
        if np.isfinite(limits.effort).any():
            tau = self.robot.inverse_dynamics(q, v, vdot, passive=True)
            over = np.sign(tau) * np.maximum(np.abs(tau) - limits.effort, 0.0) / limits.effort**2
            if over.any():
                at = self.robot.linearize_inverse(q, v, vdot, passive=True)
                for k, each in enumerate((at.tau_q, at.tau_v, at.tau_vdot)):
                    prices[k] = prices[k] + np.einsum("ni,nij->nj", over, each)
        return prices[0], prices[1], prices[2]

    def value(self, x: Array) -> Array:
        """(starts,) the criterion, without the price of limits."""
        if self.criterion == "condition":
            return self.log_condition(x)
        flat = self.regressor(x).reshape(len(x), -1, len(self.base))
        return np.asarray(-np.log(np.linalg.svd(flat, compute_uv=False)).sum(axis=-1))

    def improve(self, x: Array, steps: int, advance: Callable[[float], None]) -> Array:
        """Motions within limits after Adam's steps, all at once; lengths in units of the limits.

        A motion that has not become better is given back as it was.
        """
        half = (self.limits.upper - self.limits.lower) / 2.0
        unit = np.concatenate(
            [half[:, None], np.repeat(self.limits.velocity[:, None], 2 * self.harmonics, axis=1)],
            axis=1,
        )
        start = x
        mean, square = np.zeros_like(x), np.zeros_like(x)
        for step in range(1, steps + 1):
            slope = self.gradient(x) * unit
            mean = 0.9 * mean + 0.1 * slope
            square = 0.999 * square + 0.001 * slope**2
            length = 0.05 * min(1.0, 2.0 * (1.0 - step / (steps + 1)))
            way = (mean / (1.0 - 0.9**step)) / (np.sqrt(square / (1.0 - 0.999**step)) + 1e-12)
            x = x - length * unit * way
            advance(1)
        x = np.stack([self.within_limits(each) for each in x])
        better = self.value(x) < self.value(start)
        return np.where(better[:, None, None], x, start)

    def within_limits(self, x: Array) -> Array:
        """The motion with amplitudes reduced until all limits are kept.

        Raises:
            ArgumentError: Holding the robot at the middle takes more than its effort limits.
        """
        t = np.linspace(0.0, self.period, CHECKED)
        limits = self.limits
        x = np.array(x)
        q, v, _ = self.series(x).at(t)
        width = limits.upper - limits.lower
        room = np.minimum(width / np.ptp(q, axis=0), limits.velocity / np.abs(v).max(axis=0))
        x[:, 1:] *= np.minimum(room, 1.0)[:, None]
        q = self.series(x).at(t)[0]
        x[:, 0] += np.maximum(limits.lower - q.min(axis=0), 0.0)
        x[:, 0] -= np.maximum(q.max(axis=0) - limits.upper, 0.0)
        for factor in np.linspace(1.0, 0.0, 21):
            trial = np.column_stack([x[:, :1], factor * x[:, 1:]])
            tau = self.robot.inverse_dynamics(*self.series(trial).at(t), passive=True)
            if (np.abs(tau) <= limits.effort).all():
                return trial
        raise ArgumentError(
            f"holding '{self.robot.name}' takes more than its effort limits; allow more by "
            "with_limits(effort=...)"
        )

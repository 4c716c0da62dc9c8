# SPDX-License-Identifier: BSD-3-Clause
"""Identification by simulation: parameters whose motion under the logged forces fits positions.

Nothing is differentiated. The log is cut into windows; each is simulated from a start of its own,
all of them together, and Gauss-Newton's steps along the derivatives of the simulation's own steps
(``sim.sensitivity``) lower

    ½ Σ ((q_simulated - q_logged) / σ)² + w Σ D

over the parameters and all starts: σ is the standard deviation of each joint's residuals, D the
divergence of bodies and joint numbers from the robot's own, see ``consistent``. Starts are
eliminated window by window, so that what is left is a triangle in the base parameters as in the
identification by forces. Every robot on the way is possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, ConvergenceWarning, PhistarError, warn
from phistar.ident.base_parameters import BaseParameters
from phistar.ident.consistent import ConsistentFit, consistent_fit, expected, prior_cost
from phistar.ident.correlation import samples_worth_one
from phistar.ident.least_squares import LinearFit, weighted_fit
from phistar.ident.result import Identification, ResidualSample
from phistar.ident.robot_of import offset_force, robot_of
from phistar.ident.triangles import RowTriangles, triangle
from phistar.sim import Simulation
from phistar.thresholds import POLICY

PASSIVE = frozenset({"springs", "damping", "friction"})
"""What joints do by themselves in the simulations; a log stays within its limits."""
STEPS = 40
"""Most steps."""
HALVINGS = 8
SETTLED = 1e-2
"""Decrease of the cost, in units of σ², at which steps end: no parameter moves by a visible part of
its standard deviation."""
SAME_NOISE = 1e-3
"""Relative change of σ at which it is found."""
LEAST_NOISE = 1e-9
"""Smallest σ, relative to how far a joint moves: that of rounding."""
START_SAMPLES = 12
"""Samples of a window whose cubic gives its first guess of position and velocity."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Parts of a log that are simulated.

    Attributes:
        q: (steps + 1, windows, nv) positions.
        tau: (steps, windows, nv) joint forces, each held until the next sample.
        first: (windows,) index of the first sample of each.
        dt: Time between samples [s].
    """

    q: Array
    tau: Array
    first: Array
    dt: float

    @classmethod
    def of(cls, runs: Sequence[tuple[int, Array, Array]], dt: float, length: float) -> Windows:
        """Windows of runs without gaps: the first sample's index, q (N, nv), tau (N, nv).

        Raises:
            ArgumentError: No run is as long as a window, or a window has too few samples.
        """
        steps = round(length / dt)
        if steps + 1 < START_SAMPLES:
            raise ArgumentError(
                f"window is {length:g} s, expected at least {START_SAMPLES} samples of {dt:g} s"
            )
        q, tau, first = [], [], []
        for start, positions, forces in runs:
            for k in range(0, len(positions) - steps, steps):
                q.append(positions[k : k + steps + 1])
                tau.append(forces[k : k + steps])
                first.append(start + k)
        if not q:
            longest = max(len(x) for _, x, _ in runs)
            raise ArgumentError(
                f"no part of the log has {steps + 1} samples without gap, a window of {length:g} s;"
                f" the longest has {longest}: give a shorter window"
            )
        return cls(np.stack(q, 1), np.stack(tau, 1), np.array(first), dt)

    def first_starts(self) -> Array:
        """(windows, 2 nv) positions and velocities from a cubic through the first samples."""
        t = self.dt * np.arange(START_SAMPLES)
        few = self.q[:START_SAMPLES].reshape(START_SAMPLES, -1)
        factors = np.linalg.lstsq(np.vander(t, 4, increasing=True), few, rcond=None)[0]
        return np.concatenate(factors[:2].reshape(2, *self.q.shape[1:]), axis=-1)


@dataclass(frozen=True, eq=False)
class _Point:
    """Parameters and starts, their simulation and cost.

    Attributes:
        theta: (columns,).
        starts: (windows, 2 nv).
        sim: The motion.
        residual: (steps + 1, windows, nv) q_simulated - q_logged.
    """

    theta: Array
    starts: Array
    sim: Simulation
    residual: Array


class _ErrorSearch:
    def __init__(self, base: BaseParameters, windows: Windows, weight: float) -> None:
        self.base, self.columns, self.windows, self.weight = base, base.columns, windows, weight
        self.names = [self.columns.names[i] for i in base.kept]
        self.least = LEAST_NOISE * np.maximum(np.ptp(windows.q, axis=(0, 1)), 1e-3)

    def at(self, theta: Array, starts: Array) -> _Point | None:
        """A point, or None if there is no such robot, or its motion is not finite."""
        windows, nv = self.windows, self.windows.q.shape[-1]
        try:
            robot = robot_of(self.columns, theta)
            sim = robot.simulate(
                starts[:, :nv], starts[:, nv:], dt=windows.dt, steps=len(windows.tau),
                tau_steps=windows.tau - offset_force(self.columns, theta), scheme="auto",
                passive=PASSIVE, on_error="nan", progress=False,
            )  # fmt: skip
        except PhistarError:
            return None
        residual = sim.q - windows.q
        return _Point(theta, starts, sim, residual) if np.isfinite(residual).all() else None

    def noise(self, point: _Point) -> Array:
        """(nv,) σ; starts and parameters have taken their share of the samples."""
        samples = point.residual.shape[0] * point.residual.shape[1]
        nv = point.residual.shape[2]
        left = samples - 2 * point.residual.shape[1] - len(self.base) / nv
        found = np.sqrt(np.sum(point.residual**2, axis=(0, 1)) / max(left, 1.0))
        return np.asarray(np.maximum(found, self.least))

    def cost(self, point: _Point, sigma: Array, own: Array) -> float:
        """In units of σ²."""
        data = 0.5 * float(np.sum((point.residual / sigma) ** 2))
        return data + self.weight * prior_cost(self.columns, point.theta, own)

    def triangles(self, point: _Point, sigma: Array) -> Array:
        """(windows, n, 2 nv + b + 1) R of [∂/∂start | ∂/∂β | -residual] / σ."""
        count, nv = self.windows.q.shape[1:]
        width = 2 * nv + len(self.base) + 1
        numbers = len(self.windows.q) * 2 * nv * (2 * nv + len(self.base))
        many = max(1, POLICY.step_tangent_numbers // numbers)
        found = []
        for k in range(0, count, many):
            own = slice(k, k + many)
            at = replace(
                point.sim, q=point.sim.q[:, own], v=point.sim.v[:, own], tau=point.sim.tau[:, own]
            ).sensitivity(self.names)
            parts = [at.q_start, at.q, -point.residual[:, own, :, None]]
            rows = np.moveaxis(np.concatenate(parts, axis=-1) / sigma[:, None], 1, 0)
            found.append(np.linalg.qr(rows.reshape(len(rows), -1, width), mode="r"))
        return np.concatenate(found)

    def linear(self, point: _Point, R: Array) -> LinearFit:
        """Base parameters of the linear problem; directions not excited stay as the robot's."""
        nv2 = 2 * self.windows.q.shape[-1]
        rows = np.array(R[:, nv2:, nv2:])
        rows[..., -1] += rows[..., :-1] @ (self.base.matrix @ point.theta)
        whole = triangle(rows.reshape(-1, rows.shape[-1]))
        count = point.residual.size - nv2 * len(R)
        every = [np.arange(len(self.base))]
        return weighted_fit(
            RowTriangles((whole,), np.array([count])), every, self.base.values, np.ones(1)
        )

    def moved(self, point: _Point, R: Array, theta: Array, length: float) -> _Point | None:
        """A part of the step towards parameters, starts with them."""
        nv2 = 2 * self.windows.q.shape[-1]
        change = self.base.matrix @ (theta - point.theta)
        right = R[:, :nv2, -1] - R[:, :nv2, nv2:-1] @ change
        starts = np.linalg.solve(R[:, :nv2, :nv2], right[..., None])[..., 0]
        return self.at(point.theta + length * (theta - point.theta), point.starts + length * starts)


def output_error(
    base: BaseParameters, windows: Windows, notes: Sequence[str], said: Sequence[str], weight: float
) -> Identification:
    """The identification of windows.

    Args:
        base: The base parameters.
        windows: Parts of the log.
        notes, said: What was done to the log, and what seems to be wrong with it.
        weight: Of the divergence, as ``prior_weight`` of ``identify``.

    Raises:
        ArgumentError: The robot's own motion is not finite within a window.
    """
    search = _ErrorSearch(base, windows, weight)
    point = search.at(base.columns.values, windows.first_starts())
    if point is None:
        raise ArgumentError(
            f"the motion of '{base.columns.robot.name}' as it is known is not finite within a "
            "window; give a shorter one, or identify by method='torque' first"
        )
    steps, settled = 0, False
    while steps < STEPS and not settled:
        steps += 1
        sigma = search.noise(point)
        R = search.triangles(point, sigma)
        fit = search.linear(point, R)
        possible = consistent_fit(base, fit, weight)
        point, settled = _step(search, point, R, fit, possible, sigma)
    if not settled:
        warn(f"the estimate from positions still moves after {STEPS} steps", ConvergenceWarning)
    return _result(search, point, fit, possible, [*notes, _note(windows, steps)], said)


def _step(
    search: _ErrorSearch,
    point: _Point,
    R: Array,
    fit: LinearFit,
    possible: ConsistentFit,
    sigma: Array,
) -> tuple[_Point, bool]:
    """The first of halved steps that lowers the cost, and whether there is nothing left to gain."""
    own = expected(search.base, fit.beta)
    before = search.cost(point, sigma, own)
    for k in range(HALVINGS):
        trial = search.moved(point, R, possible.theta, 0.5**k)
        if trial is None:
            continue
        gain = before - search.cost(trial, sigma, own)
        if gain >= -SETTLED:
            same = np.allclose(search.noise(trial), sigma, rtol=SAME_NOISE, atol=0.0)
            return trial, bool(gain < SETTLED and same)
    warn(
        "no step lowers the errors of simulated positions, so that they may not be the least; a "
        "shorter window, or result.robot of method='torque' to begin with, helps",
        ConvergenceWarning,
    )
    return point, True


def _note(windows: Windows, steps: int) -> str:
    count, length = windows.q.shape[1], windows.dt * len(windows.tau)
    return (
        f"positions alone: {count} windows of {length:.4g} s were simulated, each from a start of "
        f"its own, {steps} times; forces are held from sample to sample"
    )


def _result(
    search: _ErrorSearch,
    point: _Point,
    fit: LinearFit,
    possible: ConsistentFit,
    notes: Sequence[str],
    said: Sequence[str],
) -> Identification:
    windows = search.windows
    count, nv = windows.q.shape[1:]
    samples = np.concatenate([k + np.arange(len(windows.q)) for k in windows.first])
    every = np.ones((len(windows.q), nv), dtype=bool)
    sample = ResidualSample(
        samples,
        np.swapaxes(windows.q, 0, 1).reshape(-1, nv),
        np.swapaxes(point.residual, 0, 1).reshape(-1, nv),
        samples_worth_one([(point.residual[:, k], every) for k in range(count)]),
        "position",
    )
    known = replace(
        fit, noise=search.noise(point), rows=np.full(nv, len(windows.q) * count)
    )  # fmt: skip
    return Identification(
        search.columns, search.base, search.columns.robot.joint_names, known, None, possible,
        sample, tuple(notes), tuple(said),
    )  # fmt: skip

# SPDX-License-Identifier: BSD-3-Clause
"""What an identification gives: estimates with error bars, a robot, notes, doubts, a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.ident.base_parameters import BaseParameters
from phistar.ident.columns import Columns
from phistar.ident.consistent import ConsistentFit, nearest
from phistar.ident.least_squares import CrossValidation, LinearFit
from phistar.ident.robot_of import joint_values, offset_force, robot_of
from phistar.model.configuration import Coordinates, require_finite
from phistar.robot import Robot
from phistar.whole_files import write_whole

if TYPE_CHECKING:
    from phistar.drawing.figures import Figure

LEVEL = 0.95
"""Confidence of intervals, where none is asked for."""


SIGNALS: Mapping[str, tuple[str, tuple[str, str]]] = {
    "force": ("forces", ("N m", "N")),
    "momentum": ("momenta", ("N m s", "N s")),
    "energy": ("energies", ("J", "J")),
    "position": ("positions", ("rad", "m")),
}
"""What an estimate predicts: its plural, its units where joints turn and where they slide."""


@dataclass(frozen=True, eq=False)
class ResidualSample:
    """Residuals of some of the log's samples, for plots and their correlation in time.

    Attributes:
        samples: (n,) indices into the log.
        measured: (n, groups) forces less what is known, or another signal.
        residual: (n, groups) what the estimate predicts less what was measured.
        correlation: (groups,) 1 + 2 Σ ρ_k: how many samples are worth one that is independent.
        signal: ``"force"``, ``"momentum"``, ``"energy"`` or ``"position"``.
    """

    samples: Array
    measured: Array
    residual: Array
    correlation: Array
    signal: str = "force"


@dataclass(frozen=True, eq=False)
class Identification:
    """An identified robot.

    Attributes:
        columns: What was identified.
        base: Its base parameters, with names, units and how clear their number is.
        groups: Names of the groups of rows: joints.
        fit: Estimate of the base parameters by least squares: covariance, condition, noise.
        validation: Errors on parts of the log that were not used; None with one fold.
        consistent: The physically possible estimate; None if it was not wanted.
        sample: Residuals.
        notes: What was done to the log, in sentences.
        doubts: What seems to be wrong with the log or the model, in sentences.
    """

    columns: Columns
    base: BaseParameters
    groups: tuple[str, ...]
    fit: LinearFit
    validation: CrossValidation | None
    consistent: ConsistentFit | None
    sample: ResidualSample
    notes: tuple[str, ...]
    doubts: tuple[str, ...]

    def __repr__(self) -> str:
        doubted = f", {len(self.doubts)} doubts" if self.doubts else ""
        return (
            f"<Identification of '{self.columns.robot.name}': {self.fit.rank} of {len(self.base)} "
            f"base parameters from {int(self.fit.rows.sum())} rows, condition "
            f"{self.fit.condition:.3g}{doubted}>"
        )

    @property
    def group_units(self) -> tuple[str, ...]:
        """A unit for each group's noise, residuals and validation."""
        units = SIGNALS[self.sample.signal][1]
        model = self.columns.robot.model
        rates = [
            rate for name in model.joint_names for rate in model.joints[name].joint_kind.v_units
        ]
        if len(self.groups) != len(rates):
            return (units[0],) * len(self.groups)
        return tuple(units[int(rate == "m/s")] for rate in rates)

    @property
    def parameters(self) -> Array:
        """(columns,) parameters by column: possible ones, or those nearest to the robot's own."""
        if self.consistent is not None:
            return self.consistent.theta
        return nearest(self.base, self.fit.beta)

    @cached_property
    def robot(self) -> Robot:
        """The robot with what was identified; offsets are no part of a robot, see ``offsets``.

        Raises:
            ModelError, ArgumentError: Without ``consistent`` a body or a joint is impossible.
        """
        return robot_of(self.columns, self.parameters)

    @property
    def joint_values(self) -> dict[str, dict[str, float]]:
        """Joint numbers by kind (``"viscous"``, ``"coulomb"`` ...) and name of the joint."""
        return joint_values(self.columns, self.parameters)

    @property
    def offsets(self) -> dict[str, float]:
        """Constant forces by joint [N m, N] that were measured beside those of the robot."""
        return self.joint_values.get("offset", {})

    def predict(self, q: Coordinates, v: Coordinates, vdot: Coordinates) -> Array:
        """Joint forces (..., nv) of a motion: those of ``robot``, its friction and the offsets."""
        whole = self.robot.inverse_dynamics(q, v, vdot, passive=True)
        return np.asarray(whole + offset_force(self.columns, self.parameters))

    def interval(self, level: float = LEVEL) -> Array:
        """(b,) half widths of the confidence intervals of the base parameters.

        Args:
            level: Share of logs in whose intervals the true value would lie.
        """
        from scipy.special import ndtri

        return np.asarray(float(ndtri(0.5 + _share(level) / 2.0)) * self.fit.deviation)

    def contains(self, beta: Array, level: float = LEVEL) -> bool:
        """Whether base parameters (b,) are inside the joint confidence ellipsoid."""
        from scipy.special import chdtri

        beta = np.asarray(beta, dtype=float)
        if beta.shape != self.fit.beta.shape:
            wanted = f"({len(self.base)},)"
            raise ShapeError("beta", beta.shape, wanted, "an estimate of the base parameters")
        require_finite("beta", beta)
        far = self.fit.information @ (beta - self.fit.beta)
        return bool(far @ far <= chdtri(self.fit.rank, 1.0 - _share(level)))

    def table(self) -> str:
        """Base parameters with intervals and the robot's own values, as text."""
        width = self.interval()
        rows = []
        for k, name in enumerate(self.base.names):
            error = f"± {width[k]:.2g}" if np.isfinite(width[k]) else "not excited"
            rows.append(
                f"{self.fit.beta[k]: .5g} {error} {self.base.units[k]} "
                f"(was {self.base.values[k]:.5g})  {name}"
            )
        return "\n".join(rows)

    def plot(self, what: str = "samples") -> Figure:
        """A figure of matplotlib.

        Args:
            what: ``"samples"``: what was measured and what is left of it, joint by joint;
                ``"residuals"``: their distributions beside the normal one.

        Raises:
            UnknownNameError: No such plot.
            MissingExtraError: matplotlib is not installed.
        """
        from phistar.ident.report_page import PLOTS

        if what not in PLOTS:
            raise UnknownNameError("plot", what, PLOTS)
        return PLOTS[what](self)

    def page(self) -> str:
        """All of it as the text of one page that needs nothing else; matplotlib draws.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from phistar.ident.report_page import report_html

        return report_html(self)

    def report(self, path: str | Path) -> Path:
        """Write ``page`` to a file, whole or not at all.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        target = Path(path)
        write_whole(target, self.page())
        return target


def _share(level: object) -> float:
    """A confidence, checked."""
    if not (isinstance(level, int | float | np.number) and 0.0 < level < 1.0):
        raise ArgumentError(f"level is {level!r:.80}, expected a number between 0 and 1")
    return float(level)


def changed_numbers(result: Identification) -> list[tuple[str, float, float, str]]:
    """Joint numbers that were identified: name, the robot's own, the estimate, unit."""
    columns = result.columns
    start = columns.inertial
    rows = zip(
        columns.names[start:], columns.values[start:], result.parameters[start:],
        columns.units[start:], strict=True,
    )  # fmt: skip
    return [(name, float(old), float(new), unit) for name, old, new, unit in rows]

# SPDX-License-Identifier: BSD-3-Clause
"""A payload or tool from a log: mass, centre of mass and inertia of what a known robot carries.

Ten parameters of a load in its frame add to those of the body that carries it, so that its columns
are the body's, seen from the frame. The robot itself is taken to be known, friction included:
identify it first, or record the same motion without the load.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, ModelMismatchWarning, warn
from phistar.ident.base_parameters import base_parameters
from phistar.ident.columns import PER_BODY, Columns
from phistar.ident.consistent import PossibleProblem, minimum
from phistar.ident.equations import TorqueEquations, accumulate, merged
from phistar.ident.identify_robot import read_samples, step_of
from phistar.ident.least_squares import LinearFit, weighted_fit
from phistar.ident.logs import Log, log_samples
from phistar.model.components import GROUND
from phistar.model.configuration import Coordinates
from phistar.robot import Robot
from phistar.spatial import (
    inertia_components,
    inertia_parameters,
    sphere_inertia,
    transform_inertia,
)

USUAL_RADIUS = 0.05
"""Radius [m] of the ball that a load is taken for where forces do not tell its extent."""
CLEAR = 3.0
"""Standard deviations from which a mass is more than noise."""


@dataclass(frozen=True, eq=False)
class Payload:
    """What a robot carries.

    Attributes:
        carrier: The robot without it.
        frame: The frame that everything is in.
        parameters: (10,) inertial parameters about the frame's origin, physically possible.
        deviation: (10,) standard deviations of the least squares; infinite where the motion does
            not tell.
        fit: The least squares in the carrying body's base parameters.
        offsets: Constant forces by joint [N m, N], if they were identified along.
    """

    carrier: Robot
    frame: str
    parameters: Array
    deviation: Array
    fit: LinearFit
    offsets: dict[str, float]

    @property
    def mass(self) -> float:
        """[kg]."""
        return float(self.parameters[0])

    @property
    def com(self) -> Array:
        """(3,) centre of mass in the frame [m]."""
        return inertia_components(self.parameters)[1]

    @property
    def inertia(self) -> Array:
        """(3, 3) about the centre of mass in the frame's axes [kg m²]."""
        return inertia_components(self.parameters)[2]

    @cached_property
    def robot(self) -> Robot:
        """The robot with it, as a link of its own."""
        return self.carrier.with_payload(self.frame, self.mass, self.com, self.inertia)

    def __repr__(self) -> str:
        com = ", ".join(f"{x:.4g}" for x in self.com)
        return (
            f"<Payload on '{self.frame}': {self.mass:.4g} ± {2 * self.deviation[0]:.2g} kg at "
            f"({com}) m>"
        )


def payload(
    robot: Robot,
    frame: str,
    q: Coordinates | Log,
    v: Coordinates | None = None,
    vdot: Coordinates | None = None,
    tau: Coordinates | None = None,
    *,
    dt: float | None = None,
    cutoff: float | None = None,
    offsets: bool = False,
    prior_weight: float = 0.01,
) -> Payload:
    """The payload or tool on a frame of a robot that is known otherwise.

    Args:
        robot: Without the load; its springs, damping and friction count.
        frame: Name of the link or frame that carries it.
        q, v, vdot, tau, dt, cutoff: The log, as in ``identify``: arrays, or one of ``read_log``.
        offsets: Whether constant forces of the joints are identified along.
        prior_weight: How strongly the load is held at a ball of its mass, for what forces do not
            tell; as in ``identify``.

    Raises:
        UnknownNameError: No such frame.
        ArgumentError: The frame does not move, or there is no clear load in the log.
    """
    place = robot.model.frame(frame)
    if place.body == GROUND:
        raise ArgumentError(f"frame '{frame}' is fixed to the ground: a load there is not felt")
    link = robot.model.bodies[place.body].link
    columns = Columns.of(
        robot, friction=("offset",) if offsets else False, rotors=False, bodies=[link]
    )
    if isinstance(q, Log):
        step_of(robot, q, v, vdot, tau, dt)
        for text in q.doubts:
            warn(text, ModelMismatchWarning)
        samples = log_samples(q, cutoff)
    else:
        samples = read_samples(robot, q, v, vdot, tau, dt, cutoff)
    base = base_parameters(columns)
    rest = np.full(robot.nv, -1.0)
    equations = TorqueEquations(base, samples.q, samples.v, samples.vdot, samples.tau, rest)
    fit = weighted_fit(merged(accumulate(equations)), equations.support, base.values)
    # Parameters of the body are its own plus X times those of the load.
    X = np.eye(len(columns))
    X[:PER_BODY, :PER_BODY] = transform_inertia(place.body_pose, np.eye(PER_BODY)).T
    A = fit.information @ base.matrix @ X
    wanted = fit.information @ (fit.beta - base.values)
    plain, deviation = _least_squares(A, wanted)
    if not plain[0] > CLEAR * deviation[0]:
        raise ArgumentError(
            f"no load on '{frame}' is clear in this log: its mass would be {plain[0]:.3g} ± "
            f"{2 * deviation[0]:.2g} kg; move more, or check the robot's own friction and masses"
        )
    ball = sphere_inertia(plain[0], USUAL_RADIUS)
    prior = inertia_parameters(plain[0], plain[1:4] / plain[0], ball)
    joint = plain[PER_BODY:]
    empty = np.zeros(0, dtype=int)
    problem = PossibleProblem(A, wanted, prior[None], joint, empty, np.zeros(0), prior_weight)
    theta, _ = minimum(problem)
    names = [name.partition(".")[2] for name in columns.names[PER_BODY:]]
    return Payload(
        robot, frame, theta[:PER_BODY], deviation[:PER_BODY], fit,
        dict(zip(names, (float(x) for x in theta[PER_BODY:]), strict=True)),
    )  # fmt: skip


def _least_squares(A: Array, wanted: Array) -> tuple[Array, Array]:
    """The least solution of A x = wanted, and standard deviations; infinite where A is blind."""
    scale = np.linalg.norm(A, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    U, s, Vt = np.linalg.svd(A / scale, full_matrices=True)
    rank = int((s > s[0] * len(s) * np.finfo(float).eps).sum())
    way = Vt[:rank].T / s[:rank] / scale[:, None]
    blind = np.abs(Vt[rank:]).max(axis=0, initial=0.0) > np.sqrt(np.finfo(float).eps)
    deviation = np.where(blind, np.inf, np.linalg.norm(way, axis=1))
    return way @ (U[:, :rank].T @ wanted), deviation

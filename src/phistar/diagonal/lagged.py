# SPDX-License-Identifier: BSD-3-Clause
"""Forward dynamics in (q, ζ) as published: two sweeps per step, with velocities of the previous
step.

The inward sweep needs link velocities to find ζ̇; the outward sweep that gives them needs inertias,
which come from the inward one. So the velocities are those that the last step found, at its
configuration: an error of the order of the step, and a method of first order. Only for comparison
with the paper; ``robot.diagonal_forward_dynamics`` has no such lag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from phistar.algebra.ir import Expr
from phistar.algorithms.diagonal_dynamics import LAGGED_START, LAGGED_STEP
from phistar.algorithms.rotor_programs import rotor_lagged_step
from phistar.arguments import checked_state, refuse_mimic, refuse_singular, spatial_vectors
from phistar.arrays import Array
from phistar.compile import Kernel, compile_outputs, joint_map
from phistar.errors import ArgumentError
from phistar.model.configuration import Coordinates, integrate
from phistar.model.model import HasModel
from phistar.reprs import one_line_repr


@one_line_repr
@dataclass(frozen=True)
class LaggedState:
    """State passed from step to step.

    Attributes:
        q: (..., nq).
        zeta: (..., nv) total joint rates.
        v: (..., nv) joint velocities of ζ at the configuration before q.
        V: (..., bodies, 6) link velocities there, in link axes.
        lift: (..., bodies, 6) upward acceleration of the ground there, in link axes.
    """

    q: Array
    zeta: Array
    v: Array
    V: Array
    lift: Array


def _kernel(name: str, outputs: Mapping[str, Expr]) -> Kernel:
    return compile_outputs(name, tuple(outputs.items()))


def lagged_start(robot: HasModel, q: Coordinates, v: Coordinates) -> LaggedState:
    """The initial state, without lag.

    Args:
        robot: The robot.
        q: (..., nq).
        v: (..., nv).
    """
    model = robot.model
    refuse_mimic(model)
    refuse_singular(model)
    q, v = checked_state(model, q=q, v=v)
    out = _kernel("lagged_start", LAGGED_START)(model, q, {"v": joint_map(model).spread(v)})
    return LaggedState(q, joint_map(model).gather(out["zeta"]), v, out["V"], out["lift"])


def lagged_step(robot: HasModel, old: LaggedState, tau: Coordinates, dt: float) -> LaggedState:
    """One step of Algorithm 8.1 of Jain & Rodriguez 1995, with the D⁻¹ that (8.1) lacks.

    ζ' = ζ + dt ζ̇, with ζ̇ from the velocities of ``old``; then velocities for ζ' with the inertias
    at the old q, and q' = q + dt v'. First order in dt.

    Args:
        robot: The robot.
        old: The last step's state, from ``lagged_start`` at first.
        tau: (..., nv) joint forces, held during the step.
        dt: Its length [s].
    """
    if not dt > 0:
        raise ArgumentError(f"dt must be a positive time in seconds, got {dt}")
    model, joints = robot.model, joint_map(robot.model)
    q, zeta, v, tau = checked_state(model, q=old.q, zeta=old.zeta, v=old.v, tau=tau)
    count = len(model.bodies)
    inputs = {
        "zeta": joints.spread(zeta),
        "v_lag": joints.spread(v),
        "tau": joints.spread(tau),
        "V_lag": spatial_vectors(model, "V", old.V, count),
        "lift_lag": spatial_vectors(model, "lift", old.lift, count),
    }
    step = rotor_lagged_step() if model.turning_rotors else LAGGED_STEP
    new = _kernel("lagged_step", step)(model, q, inputs)
    v = joints.gather(new["v"] + dt * new["v_change"])
    rates = zeta + dt * joints.gather(new["zeta_dot"])
    links = new["V"] + dt * new["V_change"]
    return LaggedState(integrate(model, q, dt * v), rates, v, links, new["lift"])

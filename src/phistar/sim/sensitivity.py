# SPDX-License-Identifier: BSD-3-Clause
"""How a simulated motion follows its start, its forces and the robot's parameters.

Derivatives are those of the steps that were taken, so that they are exact for the simulation and
not only for the differential equation. Forward: S' = A S + G. Adjoint: λ = A*λ' + ∂cost/∂x, with
one sweep back for any number of parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from phistar.arrays import Array
from phistar.derivatives.parameter_columns import ParameterColumns
from phistar.errors import ArgumentError, kind_of
from phistar.joint_physics.implicit import SMOOTH_PARTS
from phistar.model.kinematic_loops import require_tree
from phistar.reprs import one_line_repr
from phistar.sim.friction_tangents import held_friction
from phistar.sim.schemes import SCHEMES
from phistar.sim.step_tangents import StepTangents, step_tangents
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.sim.simulation import Simulation


@one_line_repr
@dataclass(frozen=True)
class Sensitivity:
    """Derivatives of a motion; tangent steps of q stand for its changes.

    Attributes:
        names: Of the parameters.
        values: (parameters,) the robot's own.
        q, v: (N + 1, ..., nv, parameters) with respect to the parameters.
        q_start, v_start: (N + 1, ..., nv, 2 nv) with respect to (q, v) at the start.
    """

    names: tuple[str, ...]
    values: Array = field(repr=False)
    q: Array = field(repr=False)
    v: Array = field(repr=False)
    q_start: Array = field(repr=False)
    v_start: Array = field(repr=False)


@one_line_repr
@dataclass(frozen=True)
class CostGradient:
    """A cost of a motion and its derivatives.

    Attributes:
        value: (...).
        names: Of the parameters.
        parameters: (..., parameters).
        q, v: (..., nv) with respect to the start.
        tau: (N, ..., nv) with respect to the joint forces held in each step.
    """

    value: Array
    names: tuple[str, ...]
    parameters: Array = field(repr=False)
    q: Array = field(repr=False)
    v: Array = field(repr=False)
    tau: Array = field(repr=False)


class Driven(Protocol):
    """The joints that are driven."""

    def pick(self, tau: Array) -> Array:
        """Their forces (..., nu) of all (..., nv)."""

    def spread(self, u: Array) -> Array:
        """Back, zero elsewhere."""


class CostDerivatives(Protocol):
    """First derivatives of a cost."""

    x: Array
    u: Array


class MotionCost(Protocol):
    """A cost of motions, such as ``control.QuadraticCost``."""

    @property
    def actuation(self) -> Driven:
        """What is driven: ``pick`` takes its forces from tau, ``spread`` puts them back."""

    def value(self, q: Array, v: Array, u: Array, dt: float) -> Array:
        """(...) of motions q (N + 1, ..., nq), v (N + 1, ..., nv) under forces u (N, ..., nu)."""

    def expansion(self, q: Array, v: Array, u: Array, dt: float) -> CostDerivatives:
        """Its derivatives ``x`` (N + 1, ..., 2 nv) and ``u`` (N, ..., nu)."""


def sensitivity(sim: Simulation, wanted: Sequence[str] | str) -> Sensitivity:
    """Derivatives of a motion, forward in time."""
    columns = ParameterColumns(sim.model, wanted)
    nv, batch = sim.model.nv, sim.v.shape[1:-1]
    shape = (len(sim.t), *batch, 2 * nv)
    along = np.zeros((*shape, 2 * nv + len(columns)))
    along[0, ..., : 2 * nv] = np.eye(2 * nv)
    for k, at in _steps(sim, columns):
        np.matmul(at.A, along[k], out=along[k + 1])
        along[k + 1, ..., 2 * nv :] += at.G
    start, own = along[..., : 2 * nv], along[..., 2 * nv :]
    return Sensitivity(
        columns.names,
        columns.values,
        *(own[..., :nv, :], own[..., nv:, :]),
        *(start[..., :nv, :], start[..., nv:, :]),
    )


def gradient(sim: Simulation, cost: MotionCost, wanted: Sequence[str] | str) -> CostGradient:
    """Derivatives of a cost, backward in time."""
    if not all(hasattr(cost, name) for name in ("actuation", "value", "expansion")):
        raise ArgumentError(
            f"cost is {kind_of(cost)}, expected a control.QuadraticCost or your own "
            "subclass of control.Cost"
        )
    columns = ParameterColumns(sim.model, wanted)
    dt, nv = _step_length(sim), sim.model.nv
    u = cost.actuation.pick(sim.tau)
    grown = cost.expansion(sim.q, sim.v, u, dt)
    back = np.array(grown.x[-1])
    of_parameters = np.zeros((*back.shape[:-1], len(columns)))
    of_forces = np.array(cost.actuation.spread(grown.u))
    for k, at in _steps(sim, columns, backward=True):
        of_parameters += _transposed(at.G, back)
        of_forces[k] += _transposed(at.B, back)
        back = grown.x[k] + _transposed(at.A, back)
    value = np.asarray(cost.value(sim.q, sim.v, u, dt))
    return CostGradient(
        value, columns.names, of_parameters, back[..., :nv], back[..., nv:], of_forces
    )


def _transposed(matrix: Array, vector: Array) -> Array:
    return np.asarray((np.swapaxes(matrix, -1, -2) @ vector[..., None])[..., 0])


def _steps(
    sim: Simulation, columns: ParameterColumns, backward: bool = False
) -> Iterator[tuple[int, StepTangents]]:
    """Each step and its derivatives, computed for many steps at once."""
    _refuse(sim)
    dt, nv = _step_length(sim), sim.model.nv
    parts = tuple(part for part in sim.passive if part in SMOOTH_PARTS)
    samples = int(np.prod(sim.v.shape[1:-1]))
    numbers = samples * 3 * 2 * nv * (3 * nv + len(columns))
    many = max(1, POLICY.step_tangent_numbers // max(1, numbers))
    starts = range(0, sim.steps, many)
    for first in reversed(starts) if backward else starts:
        last = min(first + many, sim.steps)
        state = sim.q[first:last], sim.v[first:last], sim.tau[first:last]
        at = _tangents(sim, columns, state, dt, parts)
        steps = range(last - first)
        for k in reversed(steps) if backward else steps:
            yield first + k, StepTangents(at.A[k], at.B[k], at.G[k])


def _tangents(
    sim: Simulation,
    columns: ParameterColumns,
    state: tuple[Array, Array, Array],
    dt: float,
    parts: tuple[str, ...],
) -> StepTangents:
    """Derivatives of steps; dry friction is a joint force that is held and follows the rest."""
    scheme, acts = SCHEMES[sim.scheme], "friction" in sim.passive
    if not acts and not columns.entries("coulomb"):
        return step_tangents(columns, scheme, state, dt, parts)
    q, v, tau = state
    force, along = held_friction(columns, state, dt, parts, scheme.implicit, acts)
    at = step_tangents(columns, scheme, (q, v, tau + force), dt, parts)
    by_state, by_force, by_parameters = np.split(along, [2 * v.shape[-1], 3 * v.shape[-1]], axis=-1)
    return StepTangents(at.A + at.B @ by_state, at.B + at.B @ by_force, at.G + at.B @ by_parameters)


def _step_length(sim: Simulation) -> float:
    """The length of all steps [s]."""
    lengths = np.diff(sim.t)
    if sim.steps != len(lengths):
        raise ArgumentError(
            f"the simulation keeps {len(lengths)} of {sim.steps} steps, and derivatives need the "
            "state at each; simulate without every="
        )
    dt = float(sim.t[-1] - sim.t[0]) / max(1, sim.steps)
    if np.abs(lengths - dt).max(initial=0.0) > POLICY.equal_steps_tolerance * dt:
        raise ArgumentError("steps of the simulation are not equally long; give it a fixed dt")
    return dt


def _refuse(sim: Simulation) -> None:
    """Say what has no derivative here."""
    require_tree(sim.model, "sensitivity")
    if sim.scheme not in SCHEMES or sim.variables != "v":
        raise ArgumentError(
            f"the simulation was made by scheme '{sim.scheme}' with variable '{sim.variables}', "
            f"expected variable 'v' and one of the schemes {', '.join(SCHEMES)}"
        )
    if sim.told is not None:
        raise ArgumentError("motion was prescribed, which sensitivities do not know")
    if not np.isfinite(sim.v).all():
        raise ArgumentError("the simulation is not finite to the end; see sim.diverged")

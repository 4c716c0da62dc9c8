# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of operator expressions against complex steps of their matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from phistar.algebra import symbols
from phistar.algebra.calculus import derivative, gradient, rate
from phistar.algebra.dense import Dense
from phistar.algebra.ir import Expr, I, Q, crf, crm
from phistar.algebra.random_examples import random_vectors
from phistar.algebra.spaces import FORCE, MOTION
from phistar.algebra.symbols import (
    E_0,
    X_0,
    D,
    E_phi,
    G,
    H,
    K,
    M,
    M_hat,
    P,
    R_hat,
    dq,
    f_ext,
    gravity,
    mass_matrix,
    phi,
    psi,
    tau,
    v,
    vdot,
    vector,
)
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.forward_dynamics import forward_dynamics
from phistar.algorithms.inverse_dynamics import bias_force, inverse_dynamics
from phistar.algorithms.link_kinematics import J, V
from phistar.errors import LoweringError, SpaceError
from phistar.model.configuration import integrate, random_configuration
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.random import random_model

STEP = 1e-30
TOLERANCE = 1e-11
force = vector("test_force", FORCE)
motion = vector("test_motion", MOTION)

torques = in_motion(inverse_dynamics.result)
accelerations = in_motion(mass_matrix.inv @ (tau - bias_force))

VECTORS: dict[str, Expr] = {
    "velocities": V,
    "momenta": phi @ M @ V,
    "shifted": E_phi @ force,
    "carried": E_phi.T @ motion,
    "gravity": phi.T @ gravity,
    "ground": E_0 @ phi @ M @ V,
    "in the world": X_0 @ V,
    "gyroscopic": M_hat @ motion,
    "cross products": crm(V) @ H.T @ v + crm(motion) @ V,
    "force products": crf(V) @ M @ V + Q(phi @ force) @ V,
    "torques": torques,
    "accelerations": accelerations,
    "frames": J @ v,
}
OPERATORS: dict[str, Expr] = {
    "phi": phi,
    "shift": E_phi,
    "ground": E_0,
    "to the world": X_0,
    "from the ground": phi.T @ E_0.T,
    "mass matrix": mass_matrix,
    "articulated inertia": P,
    "hinge inertia": D,
    "gain": G,
    "shifted gain": K,
    "psi": psi,
    "inverse factor": I - H @ psi @ K,
    "its product": (I - H @ psi @ K).T @ D.inv @ (I - H @ psi @ K),
}


class _State:
    """A random robot in a random state, and what its matrices become along a step."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        topology = ("serial", "tree", "forest")[seed % 3]
        self.model: Model = random_model(rng, 6, topology=topology, armature=0.3)
        self.q = random_configuration(self.model, rng)
        named = (*VECTORS.values(), *OPERATORS.values(), dq, tau, vdot, f_ext)
        self.values = random_vectors(rng, self.model, named)

    def dense(self, q: NDArray[np.generic], **values: NDArray[np.generic]) -> Dense:
        return Dense(self.model, q, vectors={**self.values, **values}, tasks=("link3",))

    @property
    def here(self) -> Dense:
        return self.dense(self.q)

    def step(self, expr: Expr, direction: NDArray[np.float64]) -> NDArray[np.float64]:
        """The derivative of a matrix as the configuration moves, by a complex step."""
        moved = integrate(self.model, self.q, 1j * STEP * joint_map(self.model).gather(direction))
        return self.dense(moved).matrix(expr).imag / STEP


def _close(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> None:
    assert np.abs(ours - theirs).max() <= TOLERANCE * max(1.0, np.abs(theirs).max())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", VECTORS)
def test_gradient_of_a_vector_is_its_complex_step_in_every_direction(name: str, seed: int) -> None:
    """∂x/∂q, all columns."""
    state = _State(seed)
    ours = state.here.matrix(gradient(VECTORS[name], "q"))
    for column, direction in enumerate(np.eye(len(state.values["dq"]))):
        _close(ours[:, column], state.step(VECTORS[name], direction)[:, 0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [*VECTORS, *OPERATORS])
def test_derivative_along_a_direction_is_the_complex_step(name: str, seed: int) -> None:
    """δX along δ, for vectors, rigid and articulated operators."""
    state = _State(seed)
    expr = (VECTORS | OPERATORS)[name]
    ours = state.here.matrix(derivative(expr, {"q": dq}))
    _close(ours, state.step(expr, state.values["dq"]))


@pytest.mark.parametrize("variable", [v, vdot, tau, f_ext])
def test_gradient_in_a_vector_is_its_complex_step(variable: symbols.Symbol) -> None:
    """∂/∂v, ∂/∂v̇, ∂/∂τ and ∂/∂f of torques and accelerations."""
    state = _State(1)
    given = state.values[variable.name]
    for expr in (torques, accelerations, M_hat @ motion + M_hat.T @ V):
        ours = state.here.matrix(gradient(expr, variable))
        for column, direction in enumerate(np.eye(len(given))):
            moved = {variable.name: given + 1j * STEP * direction}
            _close(ours[:, column], state.dense(state.q, **moved)(expr).imag / STEP)


def test_forward_mode_is_the_gradient_times_a_direction() -> None:
    """``derivative`` and ``gradient`` agree to rounding."""
    state = _State(2)
    dense = state.here
    both = gradient(torques, "q") @ dq, derivative(torques, {"q": dq})
    _close(dense(both[0]), dense(both[1]))


def test_reverse_mode_is_the_adjoint() -> None:
    """<w, ∂τ δ> = <∂τ* w, δ>."""
    state = _State(1)
    dense, across = state.here, gradient(torques, "q")
    w, delta = state.values["tau"], state.values["dq"]
    assert w @ (dense.matrix(across) @ delta) == pytest.approx(
        (dense.matrix(across.T) @ w) @ delta, rel=1e-12
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_gradient_can_be_differentiated_again(seed: int) -> None:
    """∂/∂q of (∂τ/∂q δ) by a complex step of the first gradient."""
    state = _State(seed)
    first = gradient(torques, "q") @ dq
    ours = state.here.matrix(gradient(first, "q"))
    for column, direction in enumerate(np.eye(len(state.values["dq"]))):
        _close(ours[:, column], state.step(first, direction)[:, 0])


def test_rate_moves_configuration_and_velocity() -> None:
    """d(φ*H*v)/dt by a complex step along v and v̇ together."""
    state = _State(1)
    moved = integrate(
        state.model, state.q, 1j * STEP * joint_map(state.model).gather(state.values["v"])
    )
    later = state.values["v"] + 1j * STEP * state.values["vdot"]
    _close(state.here(rate(V)), state.dense(moved, v=later)(V).imag / STEP)


def test_forward_dynamics_differentiates_through_the_articulated_inertia() -> None:
    """The derivative of the articulated-body algorithm is that of 𝓜⁻¹(τ - C)."""
    state = _State(1)
    ours = state.here(derivative(in_motion(forward_dynamics.result), {"q": dq}))
    _close(ours, state.here(derivative(accelerations, {"q": dq})))


def test_what_has_no_gradient_says_so() -> None:
    """∂P/∂q is a tensor, an operator is no vector, a change must be of the right space."""
    with pytest.raises(LoweringError, match="mass matrix and its inverse"):
        gradient(in_motion(forward_dynamics.result), "q")
    with pytest.raises(LoweringError, match="only the articulated inertia"):
        derivative(P, {"q": vdot})
    with pytest.raises(LoweringError, match="recursion over v"):
        gradient(R_hat @ motion, v)
    with pytest.raises(SpaceError, match="only vectors"):
        gradient(phi, "q")
    with pytest.raises(SpaceError, match="joint"):
        derivative(V, {"q": motion})


INERTIAL: dict[str, Expr] = {
    "joint map": H,
    "inertia": M,
    "shift": E_phi,
    "ground": E_0,
    "to the world": X_0,
    "from the ground": phi.T @ E_0.T,
    "phi": phi,
    "gravity": gravity,
    "articulated inertia": P,
    "gain": G,
    "psi": psi,
    "mass matrix": mass_matrix,
    "velocities": V,
    "momenta": crf(V) @ M @ V,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", INERTIAL)
def test_inertial_derivative_is_the_complex_step_in_inertial_axes(name: str, seed: int) -> None:
    """δX in inertial axes, where Eφ, φ and γ stay and H and M turn."""
    state = _State(seed)
    expr, direction = INERTIAL[name], state.values["dq"]
    ours = Dense(state.model, state.q, "inertial", state.values)
    step = 1j * STEP * joint_map(state.model).gather(direction)
    moved = Dense(state.model, integrate(state.model, state.q, step), "inertial", state.values)
    theirs = moved.matrix(expr).imag / STEP
    _close(ours.matrix(derivative(expr, {"q": dq}, "inertial")), theirs)


def test_what_has_no_inertial_derivative_says_so() -> None:
    """Task frames, and streams that recursions define."""
    for node in (symbols.B, symbols.composite, symbols.R_hat):
        with pytest.raises(LoweringError, match="no derivative in inertial axes"):
            derivative(node, {"q": dq}, "inertial")


def test_symbols_change_with_the_vectors_they_hold() -> None:
    """M̂ holds v: its derivative along δv is a complex step, and R̂, a recursion, has none."""
    state = _State(1)
    along = vector("test_rate", symbols.JOINT)
    values = {"test_rate": state.values["tau"]}
    expr = symbols.M_hat @ V
    moved = state.dense(state.q, v=state.values["v"] + 1j * STEP * state.values["tau"])
    theirs = moved.matrix(expr).imag / STEP
    here = state.dense(state.q, **values)
    _close(here.matrix(derivative(expr, {v: along})), theirs)
    _close(here.matrix(gradient(expr, v) @ along), theirs)
    _close(here.matrix(derivative(symbols.R_hat, {vdot: along})), 0 * here.matrix(M))
    with pytest.raises(LoweringError, match="is a recursion over v"):
        derivative(symbols.R_hat, {v: along})

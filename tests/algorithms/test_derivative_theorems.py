# SPDX-License-Identifier: BSD-3-Clause
"""Theorems about derivatives: what they say is a derivative, and what is nearly so is refuted."""

import dataclasses
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from phistar.algebra.dense import Dense
from phistar.algebra.ir import Expr, crf, crm
from phistar.algebra.proof import Outcome, prove
from phistar.algebra.proof_text import hypotheses_text
from phistar.algebra.random_examples import random_vectors
from phistar.algebra.symbols import (
    D,
    D_root,
    E_phi,
    E_psi,
    H,
    J_hat,
    K,
    K_hat,
    M,
    M_hat,
    P,
    P_dot,
    P_hat,
    Upsilon,
    dq,
    phi,
    psi,
    tau,
    v,
)
from phistar.algorithms.catalogue import catalogue
from phistar.algorithms.decompositions import U
from phistar.algorithms.diagonal import ell, m
from phistar.algorithms.diagonal_dynamics import coriolis_of_zeta, zeta_rate
from phistar.algorithms.diagonal_rates import zeta
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.linearized import (
    B_D,
    Y_A,
    H_dot,
    Theta_ddot,
    Theta_dot,
    force_column,
    innovation_response,
    innovation_v,
)
from phistar.algorithms.linearized_forward import accelerations
from phistar.algorithms.linearized_inverse import A_D_one_axis, B_D_one_axis, torques
from phistar.algorithms.link_kinematics import V
from phistar.algorithms.operator_rates import Delta, delta, lambda_dot
from phistar.algorithms.second_order import dq_second
from phistar.errors import SpaceError
from phistar.model.configuration import integrate, random_configuration
from phistar.model.joint_map import joint_map
from phistar.model.random import random_model

_Y_A = 2 * (P_hat @ H.T + P @ H_dot)
_E_A = 2 * H_dot - Upsilon @ _Y_A + 2 * J_hat @ H.T

FALSE: dict[str, tuple[str, Expr]] = {
    "JR93 (3.3): M̂ once, by velocity": (
        "force_by_velocity",
        H @ phi @ (M_hat @ phi.T @ H.T + M @ phi.T @ (H_dot + Theta_dot)),
    ),
    "JR93 (3.3): M̂ once, by configuration": (
        "force_by_configuration",
        in_motion(B_D - H @ phi @ M_hat @ phi.T @ Theta_dot),
    ),
    "no F₀": ("force_by_configuration", in_motion(B_D + H @ force_column)),
    "A_D of one axis for several": ("force_by_velocity", A_D_one_axis),
    "B_D of one axis for several": (
        "force_by_configuration",
        in_motion(B_D_one_axis - H @ force_column),
    ),
    "the rate of the link for that of its parent": (
        "force_by_configuration",
        in_motion(
            H @ phi @ (force_column + 2 * M_hat @ phi.T @ H_dot + M @ phi.T @ Theta_ddot)
            - H @ force_column
        ),
    ),
    "JR93 (A.24): Ĵ twice": (
        "acceleration_by_velocity_chain",
        U @ psi @ _Y_A + K.T @ psi.T @ _E_A + 2 * (K_hat.T - 2 * K.T @ J_hat) @ phi.T @ H.T,
    ),
    "JR95 (6.16c) without I + φKH": (
        "energy_by_configuration_articulated",
        2 * H @ phi @ (crf(H.T @ v) @ P - crf(V) @ M) @ V,
    ),
    "JR95 Lemma 3.1: ν = mv": (
        "power_balance",
        dq.T @ m.T @ ell @ tau,
    ),
    "JR95 Lemma 3.1: v = ℓν": ("old_rates", ell @ m.T @ v),
    "JR95 (8.1): no D⁻¹": (
        "diagonal_forward_dynamics",
        D @ zeta_rate(zeta, dq, Delta, P_dot),
    ),
    "JR95 Lemma 7.3: the root without its rate": (
        "normalised_coriolis_of_any_joint",
        D_root.inv @ coriolis_of_zeta(dq, P_dot),
    ),
    "innovations with the velocities of links beyond: Ĝ once": (
        "innovation_by_velocity",
        H @ psi @ Y_A
        + H @ (P @ E_phi.T @ phi.T @ (H_dot + Theta_dot) + P_hat @ E_phi.T @ phi.T @ H.T),
    ),
    "innovations by φ in place of ψ": (
        "innovation_by_velocity",
        H @ phi @ Y_A
        + H @ (P @ E_phi.T @ phi.T @ (H_dot + Theta_dot) + 2 * P_hat @ E_phi.T @ phi.T @ H.T),
    ),
    "accelerations without D⁻¹": (
        "acceleration_by_velocity_innovations",
        innovation_response @ D @ innovation_v,
    ),
    "JR95 Identity 7.1: V ×* MV once": (
        "normalised_coriolis",
        Fraction(1, 2)
        * D_root.inv
        @ H
        @ psi
        @ (
            E_psi @ lambda_dot
            - lambda_dot @ E_psi.T
            - crf(delta) @ P
            - P @ crm(delta)
            + crf(Delta) @ M
        )
        @ Delta,
    ),
}

MISTYPED: dict[str, Callable[[], Expr]] = {
    "JR95 section 4: HφMφH*": lambda: H @ phi @ M @ phi @ H.T,
    "JR95 section 4: HφMφ*H": lambda: H @ phi @ M @ phi.T @ H,
    "JR95 (6.5): ψλ̇ψ": lambda: E_psi @ lambda_dot @ E_psi,
    "JR95 (6.16c): M behind P": lambda: H @ phi @ crf(delta) @ P @ M @ Delta,
}
"""Misprints between the wrong spaces: they cannot be written at all."""


@pytest.mark.parametrize("name", MISTYPED)
def test_misprints_between_the_wrong_spaces(name: str) -> None:
    """Motions and forces are kept apart, so that a missing star is an error at once."""
    with pytest.raises(SpaceError):
        MISTYPED[name]()


@pytest.mark.parametrize("name", FALSE)
def test_misprints_are_refuted(name: str) -> None:
    """Forms of the papers, and simplifications, that have counterexamples."""
    good, wrong = FALSE[name]
    theorem = dataclasses.replace(catalogue()[good], result=wrong)
    assert prove(theorem).outcome is Outcome.REFUTED


@pytest.mark.parametrize("name", ["rate_of_inertia_before_the_hinge", "diagonal_coriolis_closed"])
def test_closed_joints_are_needed(name: str) -> None:
    """Without joints that are closed under the cross product there is a counterexample."""
    theorem = catalogue()[name]
    bare = dataclasses.replace(theorem, needs=theorem.needs - {"subalgebra"})
    assert prove(bare).outcome is Outcome.REFUTED


def test_second_derivatives_of_several_axes_are_not_symmetric() -> None:
    """The symmetry that joints with one axis have is refuted for all others."""
    theorem = catalogue()["second_order_symmetry"]
    bare = dataclasses.replace(theorem, needs=frozenset({"subalgebra", "unmotored"}))
    assert prove(bare).outcome is Outcome.REFUTED


STEP = 1e-30
CASES = {
    "inverse": (torques, catalogue()["force_by_configuration"].result),
    "forward": (accelerations, catalogue()["acceleration_by_configuration"].result),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_results_are_complex_steps(name: str, seed: int) -> None:
    """∂τ/∂q and ∂v̇/∂q, every column, against a complex step of τ and v̇; relative 1e-11."""
    value, result = CASES[name]
    rng = np.random.default_rng(seed)
    model = random_model(rng, 6, topology=("serial", "tree", "forest")[seed], armature=0.3)
    q = random_configuration(model, rng)
    vectors = random_vectors(rng, model, (value, result))
    ours = Dense(model, q, vectors=vectors).matrix(result)
    for column, direction in enumerate(np.eye(ours.shape[1])):
        moved = integrate(model, q, 1j * STEP * joint_map(model).gather(direction))
        theirs = Dense(model, moved, vectors=vectors)(value).imag / STEP
        assert np.abs(ours[:, column] - theirs).max() <= 1e-11 * max(1.0, np.abs(theirs).max())


def test_torsion_is_the_asymmetry_of_complex_steps() -> None:
    """D_ε(B_D δ) - D_δ(B_D ε) by complex steps is what the theorem says, and it is not small."""
    theorem = catalogue()["second_order_torsion"]
    rng = np.random.default_rng(3)
    model = random_model(rng, 6, topology="tree")
    q = random_configuration(model, rng)
    vectors = random_vectors(rng, model, (theorem.definition, theorem.result))

    def along(operator: Expr, direction: str) -> NDArray[np.float64]:
        step = 1j * STEP * joint_map(model).gather(vectors[direction])
        return Dense(model, integrate(model, q, step), vectors=vectors)(operator).imag / STEP

    gradient = in_motion(B_D)
    asymmetry = along(gradient @ dq, "dq_second") - along(gradient @ dq_second, "dq")
    expected = Dense(model, q, vectors=vectors)(theorem.result)
    assert np.abs(asymmetry - expected).max() <= 1e-11 * np.abs(expected).max()
    assert np.abs(expected).max() > 0.1 * np.abs(along(gradient @ dq, "dq_second")).max()


def test_hypotheses_say_which_joints() -> None:
    """A proof tells the class of joints, or that any will do."""
    known = catalogue()
    assert "one axis each" in hypotheses_text(prove(known["force_by_velocity_one_axis"]))
    assert "any kind" not in hypotheses_text(prove(known["force_by_velocity_one_axis"]))
    assert "closed under the cross product" in hypotheses_text(prove(known["second_order_torsion"]))
    assert "joints of any kind" in hypotheses_text(prove(known["force_by_configuration"]))
    assert "D > 0" not in hypotheses_text(prove(known["force_by_configuration"]))

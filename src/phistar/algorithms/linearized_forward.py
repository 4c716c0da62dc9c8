# SPDX-License-Identifier: BSD-3-Clause
"""Linearized forward dynamics: the derivatives of joint accelerations, without the mass matrix.

    δv̇ = 𝓜⁻¹δτ - A_C δv - B_C δq          A_C = 𝓜⁻¹A_D, B_C = 𝓜⁻¹B_D

Three forms, each closer to sweeps: with P and K alone, with the one-sided sums P̂ of M̂, and split
into single sweeps by Υ and Ĵ. All hold with rotor inertia, on trees, for joints of any kind.
"""

from phistar.algebra.calculus import derivative, gradient
from phistar.algebra.identities import BIAS, row
from phistar.algebra.ir import Expr, let
from phistar.algebra.proof import Theorem
from phistar.algebra.schemas import CALCULUS, JACOBI, RIGID, ROOT, SWAPS
from phistar.algebra.symbols import (
    D,
    H,
    J_hat,
    K,
    K_hat,
    M_hat,
    P,
    P_hat,
    Upsilon,
    Xi,
    dq,
    mass_matrix,
    phi,
    psi,
    tau,
    v,
    vdot,
)
from phistar.algebra.traverse import substitute
from phistar.algorithms.catalogue import algorithm, state
from phistar.algorithms.decompositions import U
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.innovations import L_inv, mass_matrix_inverse
from phistar.algorithms.inverse_dynamics import bias_force
from phistar.algorithms.linearized import (
    A_D,
    B_D,
    H_dot,
    Theta_ddot,
    Theta_dot,
    dtau,
    dv,
    force_column,
)
from phistar.algorithms.linearized_inverse import H_ddot
from phistar.algorithms.operator_identities import W
from phistar.refs import JR93

accelerations = in_motion(mass_matrix.inv @ (tau - bias_force))
"""v̇ in v, τ, gravity and external forces."""


def moving(expr: Expr) -> Expr:
    """An expression in v, v̇, gravity and external forces, with the v̇ that the forces bring."""
    return substitute(in_motion(expr), {vdot: let("vdot", accelerations)})


A_C = mass_matrix.inv @ A_D
"""-∂v̇/∂v."""
B_C = mass_matrix.inv @ B_D
"""-∂v̇/∂q, with v̇ as a symbol."""

_two = H_dot + Theta_dot
_own = mass_matrix.inv @ H @ force_column
Y_A = 2 * P_hat @ H.T + P @ _two
"""Forces of articulated bodies per unit of joint velocity."""
Y_B = 2 * P_hat @ Theta_dot + P @ Theta_ddot + force_column
"""Forces of articulated bodies per unit of joint angle."""
E_A = _two - Upsilon @ Y_A + 2 * J_hat @ H.T
E_B = Theta_ddot - Upsilon @ Y_B + 2 * J_hat @ Theta_dot
Q_hat = 2 * (K_hat.T - K.T @ J_hat)
Y_A_one_axis = 2 * (P_hat @ H.T + P @ H_dot)
Y_B_one_axis = 2 * P_hat @ H_dot + P @ H_ddot + force_column
E_A_one_axis = 2 * H_dot - Upsilon @ Y_A_one_axis + 2 * J_hat @ H.T
E_B_one_axis = H_ddot - Upsilon @ Y_B_one_axis + 2 * J_hat @ H_dot
_PRINTED = frozenset({"serial", "one_dof"})
_siblings = K.T @ psi.T @ Xi @ psi

_zeta = in_motion(dtau + H @ force_column @ dq)
theta = let("theta", phi.T @ (H.T @ dv + Theta_dot @ dq))
z = let("z", psi @ (K @ _zeta + Y_A @ dv + in_motion(Y_B) @ dq))
nu = let("nu", D.inv @ (_zeta - H @ z) - 2 * K_hat.T @ theta)
pi = let("pi", psi.T @ (H.T @ nu + _two @ dv + in_motion(Theta_ddot) @ dq))
linearized_forward = nu - K.T @ pi
"""δv̇ in O(n), with v̇ as a symbol."""

_INVERSE = (mass_matrix_inverse.rule,)
_HATS = (*_INVERSE, *BIAS)
_SPLITS = (*_HATS, row("bias_transfer"), row("compliance_recursion"))

state(
    Theorem(
        "acceleration_by_velocity",
        gradient(accelerations, v),
        -A_C,
        "∂v̇/∂v = -𝓜⁻¹A_D",
        JR93.at("Lemma 4.1"),
        CALCULUS,
    )
)
state(
    Theorem(
        "acceleration_by_configuration",
        gradient(accelerations, "q"),
        moving(-B_C),
        "∂v̇/∂q = -𝓜⁻¹B_D, at the accelerations that the forces bring",
        JR93.at("Lemma 4.1"),
        CALCULUS,
    )
)
state(
    Theorem(
        "acceleration_by_velocity_articulated",
        A_C,
        W @ (2 * M_hat @ phi.T @ H.T + P @ _two) + K.T @ psi.T @ _two,
        "A_C by articulated bodies: no mass matrix, no inverse",
        JR93.at("Lemma 4.6"),
        _INVERSE,
    )
)
state(
    Theorem(
        "acceleration_by_configuration_articulated",
        in_motion(B_C),
        in_motion(
            W @ (force_column + 2 * M_hat @ phi.T @ Theta_dot + P @ Theta_ddot)
            + K.T @ psi.T @ Theta_ddot
            - _own
        ),
        "B_C by articulated bodies: no mass matrix, no inverse",
        JR93.at("Lemma 4.6"),
        _INVERSE,
    )
)
state(
    Theorem(
        "acceleration_by_velocity_sweeps",
        A_C,
        L_inv.T @ (D.inv @ H @ psi @ Y_A + 2 * K_hat.T @ phi.T @ H.T) + K.T @ psi.T @ _two,
        "A_C with M̂ summed beforehand: each term one sweep in, one out",
        JR93.at("Lemma 4.7"),
        _HATS,
    )
)
state(
    Theorem(
        "acceleration_by_configuration_sweeps",
        in_motion(B_C),
        in_motion(
            L_inv.T @ (D.inv @ H @ psi @ Y_B + 2 * K_hat.T @ phi.T @ Theta_dot)
            + K.T @ psi.T @ Theta_ddot
            - _own
        ),
        "B_C with M̂ summed beforehand: each term one sweep in, one out",
        JR93.at("Lemma 4.7"),
        _HATS,
    )
)
state(
    Theorem(
        "acceleration_by_velocity_split",
        A_C,
        U @ psi @ Y_A + K.T @ psi.T @ E_A + Q_hat @ phi.T @ H.T - _siblings @ Y_A,
        "A_C with single sweeps; the last term joins branches and is zero on a chain",
        JR93.at("Lemma 4.9"),
        _SPLITS,
    )
)
state(
    Theorem(
        "acceleration_by_configuration_split",
        in_motion(B_C),
        in_motion(
            U @ psi @ Y_B + K.T @ psi.T @ E_B + Q_hat @ phi.T @ Theta_dot - _siblings @ Y_B - _own
        ),
        "B_C with single sweeps; the term with Ξ joins branches and is zero on a chain",
        JR93.at("Lemma 4.9"),
        _SPLITS,
    )
)


@algorithm
def acceleration_along() -> Theorem:
    """Lemma 4.1 along a direction."""
    return Theorem(
        "acceleration_along",
        definition=derivative(accelerations, {"q": dq, v: dv, tau: dtau}),
        result=moving(mass_matrix.inv @ (dtau - A_D @ dv - B_D @ dq)),
        doc="joint accelerations change as linearized inverse dynamics solved for them says",
        ref=JR93.eq("1.4"),
        rules=CALCULUS,
    )


@algorithm
def linearized_forward_dynamics() -> Theorem:
    """Articulated bodies once more, with other forces: inward z, outward ϑ and π.

    z = ψ(K(δτ + F₀δq) + Y_A δv + Y_B δq)      inward
    ϑ = φ*(H*δv + Θ̇*δq)                        outward
    ν = D⁻¹(δτ + F₀δq - Hz) - 2K̂*ϑ
    π = ψ*(H*ν + (Ḣ* + Θ̇*)δv + Θ̈*δq)           outward
    δv̇ = ν - K*π
    """
    return Theorem(
        "linearized_forward_dynamics",
        definition=in_motion(mass_matrix.inv @ (dtau - A_D @ dv - B_D @ dq)),
        result=linearized_forward,
        doc="the change of joint accelerations along a direction in O(n)",
        ref=JR93.at("Algorithm 5"),
        rules=_HATS,
    )


state(
    Theorem(
        "acceleration_by_velocity_chain",
        A_C,
        U @ psi @ Y_A_one_axis + K.T @ psi.T @ E_A_one_axis + Q_hat @ phi.T @ H.T,
        "A_C as printed: a chain of joints with one axis",
        JR93.eq("4.21"),
        _SPLITS,
        _PRINTED,
    )
)
state(
    Theorem(
        "acceleration_by_configuration_chain",
        in_motion(B_C),
        in_motion(U @ psi @ Y_B_one_axis + K.T @ psi.T @ E_B_one_axis + Q_hat @ phi.T @ H_dot),
        "B_C as printed: a chain of joints with one axis",
        JR93.eq("4.21"),
        (*_SPLITS, *SWAPS, *RIGID, *ROOT, *JACOBI),
        _PRINTED,
    )
)

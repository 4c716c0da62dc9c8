# SPDX-License-Identifier: BSD-3-Clause
"""Forward dynamics in O(n): joint accelerations from joint forces, four algorithms.

All four are 𝓜⁻¹(τ - C) with the inverse in factored form; they differ in how far the bias force C
is moved through the factors before anything is computed.
"""

from phistar.algebra.ir import let
from phistar.algebra.phases import row
from phistar.algebra.proof import Theorem
from phistar.algebra.symbols import D, H, K, M, P, mass_matrix, phi, psi, tau
from phistar.algorithms.catalogue import algorithm
from phistar.algorithms.innovations import L_inv, mass_matrix_inverse
from phistar.algorithms.inverse_dynamics import a, b, bias_force
from phistar.refs import RK92

_DEFINITION = mass_matrix.inv @ (tau - bias_force)
_RULES = (mass_matrix_inverse.rule, row("riccati_mixed"))


@algorithm
def forward_dynamics_1() -> Theorem:
    """Bias forces first, then two sweeps through the factors.

    C = Hφ(Mφ*a + b)       outward, inward
    ε = L⁻¹(τ - C)         inward
    v̇ = L⁻* D⁻¹ ε          outward
    """
    epsilon = let("epsilon", L_inv @ (tau - bias_force))
    return Theorem(
        "forward_dynamics_1",
        definition=_DEFINITION,
        result=L_inv.T @ D.inv @ epsilon,
        doc="bias force by inverse dynamics, then the factored inverse",
        ref=RK92.eq("(47)-(54)"),
        rules=_RULES,
    )


@algorithm
def forward_dynamics_2() -> Theorem:
    """Link accelerations beside those of the joints: α = λ + ζ, λ = ψ*H*ν, ζ = φ*a."""
    nu = let("nu", D.inv @ L_inv @ (tau - bias_force))
    return Theorem(
        "forward_dynamics_2",
        definition=phi.T @ (H.T @ _DEFINITION + a),
        result=psi.T @ H.T @ nu + phi.T @ a,
        doc="the first algorithm also gives the accelerations of the links",
        ref=RK92.eq("(55)-(59)"),
        rules=_RULES,
    )


@algorithm
def forward_dynamics_3() -> Theorem:
    """The bias force goes through L⁻¹ before it is summed.

    ζ = Mφ*a + b           outward
    ε = τ - Hψ(Kτ + ζ)     inward
    v̇ = L⁻* D⁻¹ ε          outward
    """
    zeta = let("zeta", M @ phi.T @ a + b)
    epsilon = let("epsilon", tau - H @ psi @ (K @ tau + zeta))
    return Theorem(
        "forward_dynamics_3",
        definition=_DEFINITION,
        result=L_inv.T @ D.inv @ epsilon,
        doc="L⁻¹Hφ = Hψ removes the separate bias force",
        ref=RK92.eq("(60)-(65)"),
        rules=_RULES,
    )


@algorithm
def forward_dynamics() -> Theorem:
    """The articulated-body algorithm: no sweep for the bias force at all.

    z = ψ(Kτ + Pa + b)     inward     correction force
    ε = τ - Hz                        innovations
    ν = D⁻¹ε
    α = ψ*(H*ν + a)        outward    link accelerations
    v̇ = ν - K*α
    """
    z = let("z", psi @ (K @ tau + P @ a + b))
    epsilon = let("epsilon", tau - H @ z)
    nu = let("nu", D.inv @ epsilon)
    alpha = let("alpha", psi.T @ (H.T @ nu + a))
    return Theorem(
        "forward_dynamics",
        definition=_DEFINITION,
        result=nu - K.T @ alpha,
        doc="inertia and bias of the articulated bodies in one inward sweep",
        ref=RK92.eq("(66)-(73)"),
        rules=_RULES,
    )


@algorithm
def link_accelerations() -> Theorem:
    """The α of forward dynamics are the accelerations of the links."""
    z = let("z", psi @ (K @ tau + P @ a + b))
    nu = let("nu", D.inv @ (tau - H @ z))
    return Theorem(
        "link_accelerations",
        definition=phi.T @ (H.T @ _DEFINITION + a),
        result=psi.T @ (H.T @ nu + a),
        doc="link accelerations come free with forward dynamics",
        ref=RK92.eq("(66)-(73)"),
        rules=_RULES,
    )

# SPDX-License-Identifier: BSD-3-Clause
"""Rates of the operators as the joints move along δ: in link axes, and in inertial axes.

The articulated inertia changes by Ṗ, which has a recursion of its own; all others follow from it.
With v for δ these are rates in time.
"""

from phistar.algebra.calculus import derivative, gradient, inertial_commutator
from phistar.algebra.cross_product_rules import ARTICULATED_RATES, CALCULUS, RIGID_SHIFTS, SWAPS
from phistar.algebra.ir import Expr, I, Q, crf, crm
from phistar.algebra.proof import Theorem
from phistar.algebra.symbols import (
    D,
    E_phi,
    E_psi,
    G,
    H,
    K,
    M,
    P,
    P_dot,
    dq,
    f_ext,
    gravity,
    mass_matrix,
    phi,
    psi,
    tau,
    v,
)
from phistar.algorithms.articulated_body import P_plus
from phistar.algorithms.catalogue import register_theorem
from phistar.algorithms.diagonal_dynamics import coriolis_of_zeta
from phistar.algorithms.innovations import L, L_inv, mass_matrix_inverse
from phistar.algorithms.linearized import Theta_dot
from phistar.algorithms.link_kinematics import V, a
from phistar.algorithms.operator_identities import proj_bar
from phistar.refs import JR93, JR95

_ONE_DOF = frozenset({"one_dof"})
_CLOSED = frozenset({"subalgebra", "unmotored"})
delta = H.T @ dq
"""Motion of a link relative to its parent."""
Delta = phi.T @ delta
"""Motion relative to the ground."""
lambda_dot = P_dot + crf(delta) @ P - P @ crm(delta)
"""Rate of the articulated inertia in the axes of the parent, before the joint is crossed."""
_link_motion = phi.T @ H.T @ dq


def _change(expr: Expr) -> Expr:
    """δX, in link axes."""
    return derivative(expr, {"q": dq})


def _inertial_change(expr: Expr) -> Expr:
    """δX, in inertial axes."""
    return derivative(expr, {"q": dq}, "inertial")


def _inertial(name: str, expr: Expr, doc: str) -> Theorem:
    """δ_I X = δX + [rigid, X]."""
    local = _change(expr) + inertial_commutator(expr, dq)
    return Theorem(name, _inertial_change(expr), local, doc, JR95.at("Table 4"), CALCULUS)


register_theorem(_inertial("inertial_joint_map", H, "joint axes rotate with their links"))
register_theorem(_inertial("inertial_inertia", M, "inertias rotate with their links"))
register_theorem(
    _inertial("inertial_shift", E_phi, "in inertial axes rigid motion does not change")
)
register_theorem(_inertial("inertial_phi", phi, "nor does it over many links"))
register_theorem(_inertial("inertial_gravity", gravity, "nor does gravity"))
register_theorem(
    Theorem(
        "inertial_mass_matrix",
        _inertial_change(mass_matrix),
        _change(mass_matrix),
        "operators between joint vectors change alike in all axes",
        JR95.at("Table 4"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "inertial_gain",
        _inertial_change(G),
        _change(G) + crf(Delta) @ G,
        "the gain rotates with its link",
        JR95.at("Table 4"),
        ARTICULATED_RATES,
    )
)
register_theorem(
    Theorem(
        "axes_by_configuration",
        _inertial_change(H.T @ tau),
        -crm(H.T @ tau) @ _link_motion,
        "the motion of a joint rotates with the joints before it",
        JR93.eq("A.6"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "projection_by_configuration",
        _inertial_change(H @ f_ext),
        H @ Q(f_ext) @ _link_motion,
        "change of the joint force of a constant force",
        JR93.eq("A.7"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "projection_by_configuration_one_axis",
        _inertial_change(H @ f_ext),
        H @ Q(f_ext) @ (phi - I).T @ H.T @ dq,
        "a joint with one axis does not rotate its own force",
        JR93.eq("A.7"),
        CALCULUS,
        _ONE_DOF,
    )
)
register_theorem(
    Theorem(
        "momentum_by_configuration",
        _inertial_change(M @ a),
        -(Q(M @ a) - M @ crm(a)) @ _link_motion,
        "momenta of moving links as the links rotate",
        JR93.eq("A.8"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "velocity_by_configuration",
        _inertial_change(V),
        -crm(V) @ _link_motion + phi.T @ Theta_dot @ dq,
        "velocities of the links rotate with them, and joint axes with the parents",
        JR93.eq("A.9"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "momentum_of_motion_by_configuration",
        _inertial_change(M @ V),
        -Q(M @ V) @ _link_motion + M @ phi.T @ Theta_dot @ dq,
        "momenta of the links as they rotate",
        JR93.eq("A.9"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "rate_of_phi",
        _change(phi),
        phi @ crf(Delta) - crf(Delta) @ phi,
        "rigid motion changes by the velocities of the links alone",
        JR95.eq("6.7"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "rate_of_phi_one_axis",
        H @ _change(phi),
        H @ phi @ crf(delta) @ phi,
        "joints with one axis: no strict operator is needed",
        JR95.eq("6.8"),
        CALCULUS,
        _ONE_DOF,
    )
)
register_theorem(
    Theorem(
        "rate_of_inertia",
        _change(M + E_phi @ P_plus @ E_phi.T),
        P_dot,
        "the Riccati equation differentiated: Ṗ = Eψ Ṗ Eψ* and the rotation of the joints",
        JR95.eq("6.4"),
        ARTICULATED_RATES,
    )
)
register_theorem(
    Theorem(
        "rate_of_inertia_before_the_hinge",
        E_psi @ lambda_dot @ E_psi.T,
        P_dot,
        "Ṗ = Eψ λ̇ Eψ*, λ̇ = Ṗ + δ ×* P - P δ ×: the sum before the joint is crossed",
        JR95.at("Algorithm 6.1"),
        ARTICULATED_RATES,
        _CLOSED,
    )
)
register_theorem(
    Theorem(
        "rate_of_hinge_inertia",
        _change(H @ P @ H.T),
        H @ P_dot @ H.T,
        "D changes with the articulated inertia alone",
        JR95.at("Table 4"),
        ARTICULATED_RATES,
    )
)
register_theorem(
    Theorem(
        "rate_of_gain",
        _change(P @ H.T @ D.inv),
        proj_bar @ P_dot @ H.T @ D.inv,
        "the gain changes by what crosses the joint",
        JR95.at("Table 4"),
        ARTICULATED_RATES,
    )
)
register_theorem(
    Theorem(
        "rate_of_projection",
        _change(proj_bar),
        -proj_bar @ P_dot @ H.T @ D.inv @ H,
        "the projection changes with the gain",
        JR95.at("Table 4"),
        ARTICULATED_RATES,
    )
)
register_theorem(
    Theorem(
        "rate_of_articulated_shift",
        _change(E_psi),
        E_phi @ crf(delta) @ proj_bar - E_psi @ P_dot @ H.T @ D.inv @ H,
        "the step across a free joint: it rotates, and the gain changes",
        JR95.at("Table 4"),
        ARTICULATED_RATES,
    )
)
register_theorem(
    Theorem(
        "rate_of_articulated_shift_closed",
        _change(E_psi),
        E_psi @ (crf(delta) @ proj_bar - P_dot @ H.T @ D.inv @ H),
        "the same as printed, if a joint's motions are closed under the cross product",
        JR95.at("Table 4"),
        ARTICULATED_RATES,
        _CLOSED,
    )
)
register_theorem(
    Theorem(
        "rate_of_factorisation",
        _change(L @ D @ L.T),
        _change(mass_matrix),
        "the factors and the mass matrix change alike",
        JR95.at("Identity 6.1, proof"),
        ARTICULATED_RATES,
    )
)
register_theorem(
    Theorem(
        "rate_of_inverse",
        _change(mass_matrix_inverse.result),
        _change(mass_matrix.inv),
        "the factored inverse changes as an inverse does",
        JR95.at("Identity 6.1, proof"),
        (mass_matrix_inverse.rule, *ARTICULATED_RATES),
    )
)
register_theorem(
    Theorem(
        "rate_of_mass_matrix",
        _change(mass_matrix),
        H @ phi @ (crf(delta) @ phi @ M - M @ phi.T @ crm(delta)) @ phi.T @ H.T,
        "rate of the mass matrix as joints with one axis move",
        JR95.at("Identity 6.3"),
        CALCULUS,
        _ONE_DOF,
    )
)
_energy = gradient(mass_matrix @ v, "q").T @ v
_momentum = M @ V
register_theorem(
    Theorem(
        "energy_by_configuration",
        _energy,
        -2 * H @ crf(V) @ phi @ _momentum,
        "twice the gradient of the kinetic energy",
        JR95.eq("6.16a"),
        CALCULUS,
        _ONE_DOF,
    )
)
register_theorem(
    Theorem(
        "energy_by_configuration_sums",
        _energy,
        2 * H @ phi @ (crf(H.T @ v) @ phi - crf(V)) @ _momentum,
        "the same by sums over the links beyond",
        JR95.eq("6.16b"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "energy_by_configuration_articulated",
        2 * H @ phi @ (crf(H.T @ v) @ phi - crf(V)) @ _momentum,
        2 * H @ phi @ (crf(H.T @ v) @ (I + phi @ K @ H) @ P - crf(V) @ M) @ V,
        "the same by articulated bodies, P in place of a sum",
        JR95.eq("6.16c"),
        (),
        frozenset({"unmotored"}),
    )
)

_RIGID_RATES = (*ARTICULATED_RATES, *SWAPS, *RIGID_SHIFTS)
_V = Delta
_bias = H @ phi @ (M @ phi.T @ crm(_V) @ delta + crf(_V) @ M @ _V)
_unnormalised = L_inv @ _bias - D @ _change(L.T) @ dq
_zeta = L.T @ dq
_gyroscopic = crf(_V) @ M @ _V
register_theorem(
    Theorem(
        "diagonal_coriolis",
        _unnormalised,
        coriolis_of_zeta(dq, P_dot),
        "the Coriolis force in the rates ζ = L*δ, with Ṗ once and no condition on the joints",
        JR95.at("Lemma 7.3"),
        _RIGID_RATES,
    )
)
register_theorem(
    Theorem(
        "diagonal_coriolis_closed",
        _unnormalised,
        H @ psi @ (P_dot @ H.T @ _zeta - crf(delta) @ P_plus @ E_phi.T @ _V + _gyroscopic),
        "the same by what crosses the joints",
        JR95.eq("7.9"),
        _RIGID_RATES,
        _CLOSED,
    )
)
register_theorem(
    Theorem(
        "diagonal_coriolis_one_axis",
        _unnormalised,
        H @ psi @ (lambda_dot @ H.T @ _zeta - crf(delta) @ P @ _V + _gyroscopic),
        "the same as printed, for joints with one axis",
        JR95.eq("7.9"),
        _RIGID_RATES,
        _ONE_DOF,
    )
)

# SPDX-License-Identifier: BSD-3-Clause
"""The rate of m = L√D, Coriolis forces in the rates ν = m*v, and that they do no work.

In ν the equations of motion are ν̇ + C = ε with C = ℓ b - ṁ*v, b the Coriolis forces of the joints;
in ζ they are Dζ̇ + C_ζ = κ. The direction δ is v. Theorems for joints with one axis hold for these
alone; all others for joints of any kind, with rotors, on trees.
"""

from fractions import Fraction

from phistar.algebra.calculus import derivative, gradient
from phistar.algebra.cross_product_rules import (
    ARTICULATED_RATES,
    CALCULUS,
    ONE_DOF_SQUARE_ROOT_RATES,
    RIGID_SHIFTS,
    SQUARE_ROOT_RATES,
    SWAPS,
)
from phistar.algebra.identities import SQUARE_ROOTS
from phistar.algebra.ir import Expr, I, crf, crm, zero
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import ONE
from phistar.algebra.symbols import (
    D,
    D_root,
    D_root_dot,
    E_phi,
    E_psi,
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
from phistar.algebra.traverse import substitute
from phistar.algorithms.catalogue import register_theorem
from phistar.algorithms.diagonal import ell, m
from phistar.algorithms.diagonal_dynamics import coriolis_of_zeta, zeta_rate
from phistar.algorithms.innovations import L, L_inv, mass_matrix_inverse
from phistar.algorithms.operator_identities import proj_bar
from phistar.algorithms.operator_rates import Delta, delta, lambda_dot
from phistar.refs import JR95

_ONE_DOF = frozenset({"one_dof", "unmotored"})
_ROOTS = (*ARTICULATED_RATES, *SQUARE_ROOT_RATES, *SQUARE_ROOTS)
_ONE_AXIS = (*ARTICULATED_RATES, *ONE_DOF_SQUARE_ROOT_RATES, *SQUARE_ROOTS)
_MOVING = (*SWAPS, *RIGID_SHIFTS)
_half = Fraction(1, 2)


def _rate(expr: Expr) -> Expr:
    """Ẋ as the robot moves along δ."""
    return derivative(expr, {"q": dq})


bias = H @ phi @ (M @ phi.T @ crm(Delta) @ delta + crf(Delta) @ M @ Delta)
"""Coriolis and centrifugal forces of the joints."""
nu = m.T @ dq
"""Normalised rates."""
zeta = L.T @ dq
"""Total rates."""
coriolis_nu = ell @ bias - _rate(m.T) @ dq
"""C, as ν = m*v differentiated gives it: for joints of any kind."""
coriolis_zeta = L_inv @ bias - D @ _rate(L.T) @ dq
"""C_ζ likewise."""
_nothing = zero(ONE, ONE)

register_theorem(
    Theorem(
        "diagonal_equations_of_motion",
        _rate(m.T) @ dq + m.T @ ell.T @ ell @ (tau - bias),
        ell @ tau - coriolis_nu,
        "ν̇ = ε - C: every joint has unit inertia and no other's acceleration",
        JR95.at("Lemma 3.1"),
        _ROOTS,
    )
)
_gradient = substitute(gradient(mass_matrix @ v, "q").T @ v, {v: dq})
_lagrange = _rate(mass_matrix) @ dq - _half * _gradient
register_theorem(
    Theorem(
        "lagrange_bias",
        bias,
        _lagrange,
        "Coriolis forces by the rate of the mass matrix and the gradient of the kinetic energy",
        JR95.eq("2.1"),
        CALCULUS,
        frozenset({"one_dof"}),
    )
)
register_theorem(
    Theorem(
        "diagonal_coriolis_by_energy",
        _lagrange - m @ _rate(m.T) @ dq,
        _rate(m) @ nu - _half * _gradient,
        "mC with Lagrange's form of the Coriolis forces: ṁν is the rest of the rate of 𝓜 = mm*",
        JR95.eq("3.2"),
        _ROOTS,
    )
)
register_theorem(
    Theorem(
        "rate_of_root",
        _rate(m),
        H
        @ phi
        @ (crf(delta) @ (phi - I) @ P + _half * (I + proj_bar) @ lambda_dot)
        @ H.T
        @ D_root.T.inv,
        "the root of the mass matrix changes with rotating links and articulated inertias",
        JR95.at("Identity 6.1"),
        _ONE_AXIS,
        _ONE_DOF,
    )
)
_skew = E_psi @ lambda_dot - lambda_dot @ E_psi.T
register_theorem(
    Theorem(
        "rate_of_root_times_rates",
        _rate(m) @ nu,
        H
        @ phi
        @ (crf(delta) @ phi @ K @ H @ P + _half * (crf(delta) @ P - P @ crm(delta) + _skew))
        @ Delta,
        "the same times ν, by velocities of links",
        JR95.at("Identity 6.2"),
        (*_ONE_AXIS, *_MOVING),
        _ONE_DOF,
    )
)
_middle = _skew - crf(delta) @ P - P @ crm(delta) + 2 * crf(Delta) @ M
register_theorem(
    Theorem(
        "normalised_coriolis",
        coriolis_nu,
        _half * D_root.inv @ H @ psi @ _middle @ Delta,
        "the Coriolis force in the rates ν in closed form",
        JR95.at("Identity 7.1"),
        (*_ONE_AXIS, *_MOVING),
        frozenset({"one_dof"}),
    )
)
_X = crf(delta) @ P
_y = psi @ _middle @ Delta
register_theorem(
    Theorem(
        "normalised_coriolis_sweep",
        E_psi @ (_y + lambda_dot @ Delta)
        + (2 * crf(Delta) @ M - _X + _X.T) @ Delta
        - lambda_dot @ proj_bar.T @ E_phi.T @ Delta,
        _y,
        "the same by one inward sweep: y from the children's y and λ̇V, C = ½√D⁻¹Hy",
        JR95.at("Algorithm 7.1"),
        _MOVING,
    )
)
register_theorem(
    Theorem(
        "normalised_coriolis_of_any_joint",
        coriolis_nu,
        D_root.inv @ coriolis_of_zeta(dq, P_dot) - D_root_dot.T @ zeta,
        "C by that of the rates ζ and the rate of the root, for joints of any kind",
        JR95.at("Lemma 7.3"),
        (*_ROOTS, *_MOVING),
    )
)
register_theorem(
    Theorem(
        "diagonal_coriolis_from_normalised",
        D_root @ coriolis_nu + D_root @ D_root_dot.T @ zeta,
        coriolis_zeta,
        "C_ζ by C: the root is put back, and its rate with it",
        JR95.at("Lemma 7.3"),
        _ROOTS,
    )
)
register_theorem(
    Theorem(
        "coriolis_matrix_is_skew",
        Delta.T @ _middle @ Delta,
        _nothing,
        "the operator between the velocities in C is skew, up to V ×* MV, which does no work",
        JR95.eq("7.4"),
        SWAPS,
    )
)
register_theorem(
    Theorem(
        "coriolis_does_no_work",
        nu.T @ coriolis_nu,
        _nothing,
        "ν*C = 0, for joints of any kind",
        JR95.at("Lemma 7.1"),
        (*_ROOTS, *_MOVING),
    )
)
register_theorem(
    Theorem(
        "power_balance",
        nu.T @ (ell @ tau - coriolis_nu),
        dq.T @ tau,
        "ν*ν̇, the rate of the kinetic energy ½ν*ν, is the power of the joint forces",
        JR95.at("Lemma 7.2"),
        (*_ROOTS, *_MOVING),
    )
)
register_theorem(
    Theorem(
        "diagonal_coriolis_power",
        zeta.T @ coriolis_zeta,
        _half * zeta.T @ H @ P_dot @ H.T @ zeta,
        "in ζ the Coriolis forces do the work of the change of D: ζ*C_ζ = ½ζ*Ḋζ",
        JR95.at("Lemma 7.3"),
        (*ARTICULATED_RATES, *_MOVING),
    )
)
_loaded = bias + H @ phi @ (M @ phi.T @ gravity - f_ext)
register_theorem(
    Theorem(
        "diagonal_forward_dynamics",
        L.T @ mass_matrix_inverse.result @ (tau - _loaded) + _rate(L.T) @ dq,
        zeta_rate(zeta, dq, Delta, P_dot),
        "the rate of ζ = L*v by one sweep over forces, gravity and external forces among them",
        JR95.at("Algorithm 8.1"),
        (*ARTICULATED_RATES, *_MOVING),
    )
)

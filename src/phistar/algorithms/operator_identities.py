# SPDX-License-Identifier: BSD-3-Clause
"""The identities of the papers that follow from the core rules: each a theorem with its proof.

Those that are stated for joints without rotor inertia hold with A = 0 ("unmotored"); the
factorisation and the inverse of the mass matrix do not need that.
"""

from phistar.algebra.ir import I, identity, zero
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import FORCE, JOINT
from phistar.algebra.symbols import D, E_phi, E_psi, G, H, K, M, P, mass_matrix, phi, psi
from phistar.algorithms.articulated_body import P_plus
from phistar.algorithms.catalogue import register_theorem
from phistar.algorithms.decompositions import phi_tilde, psi_tilde
from phistar.algorithms.innovations import L, L_inv, mass_matrix_inverse
from phistar.refs import JR93, JR95, RK92

_UNMOTORED = frozenset({"unmotored"})

proj_bar = I - G @ H
"""τ̄: transmission from a link to its parent across a free joint."""
W = L_inv.T @ D.inv @ H @ psi

_RULES = (mass_matrix_inverse.rule,)

register_theorem(
    Theorem(
        "newton_euler_split",
        phi @ M @ phi.T,
        P + phi_tilde @ P + P @ phi_tilde.T + phi @ K @ D @ K.T @ phi.T,
        "φMφ* is diagonal, lower, upper, and the gain terms",
        RK92.eq("42"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "propagation_whitening",
        (I - psi @ K @ H) @ phi_tilde,
        psi @ E_phi,
        "the filter maps rigid propagation to articulated propagation",
        RK92.at("Identity 4"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "hinge_whitening",
        L_inv @ H @ phi,
        H @ psi,
        "L⁻¹Hφ = Hψ: bias forces pass the factor without extra work",
        JR95.eq("4.10a"),
        _RULES,
    )
)
register_theorem(
    Theorem("gain_whitening", phi @ K @ L_inv, psi @ K, "φKL⁻¹ = ψK", JR95.eq("4.10b"), _RULES)
)
register_theorem(
    Theorem(
        "momentum_split",
        phi @ M @ phi.T @ H.T,
        (I + phi @ K @ H) @ P @ phi.T @ H.T,
        "φMφ*H* = (I + φKH)Pφ*H*",
        JR95.eq("4.10c"),
        _RULES,
        _UNMOTORED,
    )
)
register_theorem(
    Theorem(
        "hinge_projection",
        H @ phi @ proj_bar,
        H @ phi @ E_psi,
        "nothing is transmitted along a link's own joint: Hτ̄ = 0",
        JR95.eq("4.10d"),
        _RULES,
        _UNMOTORED,
    )
)
register_theorem(
    Theorem(
        "riccati_articulated",
        M,
        P - E_psi @ P @ E_phi.T,
        "the Riccati equation with one articulated shift",
        JR95.eq("4.8"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "riccati_twice_articulated",
        M,
        P - E_psi @ P @ E_psi.T,
        "the Riccati equation with two articulated shifts",
        JR95.eq("4.8"),
        _RULES,
        _UNMOTORED,
    )
)
register_theorem(
    Theorem(
        "projection_is_idempotent",
        proj_bar @ proj_bar,
        proj_bar,
        "τ̄τ̄ = τ̄",
        JR95.eq("4.12"),
        _RULES,
        _UNMOTORED,
    )
)
register_theorem(
    Theorem(
        "inertia_across_the_hinge",
        proj_bar @ P @ proj_bar.T,
        P_plus,
        "τ̄Pτ̄* = P⁺",
        JR95.eq("4.12"),
        _RULES,
        _UNMOTORED,
    )
)
register_theorem(
    Theorem(
        "hinge_passes_nothing",
        proj_bar @ P @ H.T,
        zero(FORCE, JOINT),
        "τ̄PH* = 0: along its own joint a link has no inertia at its parent",
        JR95.eq("4.12"),
        _RULES,
        _UNMOTORED,
    )
)
register_theorem(
    Theorem(
        "shift_difference",
        E_phi - E_psi,
        K @ H,
        "the part of a force that a free joint removes",
        JR95.eq("4.11"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "bias_through_the_inverse",
        mass_matrix.inv @ H @ phi @ M @ phi.T,
        W @ P + K.T @ psi.T,
        "the inverse applied to the bias of the links, without the mass matrix",
        JR93.eq("4.9"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "gain_adjoint",
        L_inv.T @ D.inv @ H @ P @ phi_tilde.T,
        K.T @ psi.T,
        "L⁻*D⁻¹HPφ̃* = K*ψ*",
        JR93.eq("A.21"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "inverse_of_forces",
        mass_matrix.inv @ H @ phi,
        W,
        "joint accelerations per unit of force on the links",
        JR93.eq("4.8"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "operational_kernel",
        phi.T @ H.T @ mass_matrix.inv @ H @ phi,
        psi.T @ H.T @ D.inv @ H @ psi,
        "link accelerations per unit of force on the links",
        JR93.eq("4.20"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "factor_identity",
        L_inv @ L,
        identity(JOINT),
        "the factors are inverse to each other on the other side too",
        RK92.at("Identity 5"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "articulated_from_rigid",
        (I - E_psi) @ phi,
        I + K @ H @ phi,
        "ψ⁻¹φ = I + KHφ",
        JR93.eq("A.16"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "resolvent_difference",
        (I - E_psi) - (I - E_phi),
        K @ H,
        "ψ⁻¹ - φ⁻¹ = KH",
        JR95.eq("4.11"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "articulated_update",
        proj_bar @ P,
        P_plus,
        "τ̄P = P⁺, with rotor inertia too",
        JR95.eq("4.12"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "projection_annihilates",
        H @ proj_bar,
        zero(JOINT, FORCE),
        "Hτ̄ = 0: nothing along the joint axes is passed on",
        JR95.eq("4.12"),
        _RULES,
        _UNMOTORED,
    )
)
register_theorem(
    Theorem(
        "articulated_gain",
        psi @ G,
        G,
        "ψG = G: the force of the gain on a link goes no further",
        JR95.eq("4.12"),
        _RULES,
        _UNMOTORED,
    )
)
register_theorem(
    Theorem(
        "rigid_strict_gain",
        phi_tilde @ G,
        phi @ K,
        "ΦG = φK, between the two papers' operators",
        RK92.at("Identity 3"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "strict_gain",
        psi @ E_phi @ G,
        psi @ K,
        "ΨG = ψK, between the two papers' operators",
        RK92.eq("41"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "strict_projection",
        psi @ E_phi @ proj_bar,
        psi_tilde,
        "Ψ(I - GH) = ψ - I",
        RK92.eq("41"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "innovations_strict",
        (I + H @ phi_tilde @ G) @ (I - H @ psi @ E_phi @ G),
        identity(JOINT),
        "the factors are inverse to each other, with strict operators",
        RK92.eq("45"),
        _RULES,
    )
)
register_theorem(
    Theorem(
        "bias_before_the_hinge",
        L_inv.T @ D.inv @ H @ (psi @ P + P @ phi_tilde.T),
        W @ P + K.T @ psi.T,
        "the last step to the inverse applied to the bias of the links",
        JR93.eq("A.20"),
        _RULES,
    )
)

# SPDX-License-Identifier: BSD-3-Clause
"""Innovations factorisation of the mass matrix: 𝓜 = L D L*, L = I + HφK, L⁻¹ = I - HψK.

D has the inertia at each joint when the joints beyond it are free, so the factorisation is a Kalman
filter from the tips to the base: L⁻¹ whitens, L colours. Both cost one sweep.
"""

from phistar.algebra.identities import LINK_ROOTS
from phistar.algebra.ir import I, identity
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import JOINT
from phistar.algebra.symbols import A, D, H, K, M_root, mass_matrix, phi, psi
from phistar.algorithms.catalogue import algorithm
from phistar.refs import RK92

L = I + H @ phi @ K
L_inv = I - H @ psi @ K


@algorithm
def link_root_factorisation() -> Theorem:
    """𝓜 = 𝒫𝒫* with 𝒫 = Hφ√M, and the rotors."""
    return Theorem(
        "link_root_factorisation",
        definition=mass_matrix,
        result=(H @ phi @ M_root) @ (H @ phi @ M_root).T + A,
        doc="the mass matrix by the roots of the links' inertias: a factor that is not square",
        ref=RK92.at("section X.A"),
        rules=LINK_ROOTS,
    )


@algorithm
def innovations_factorisation() -> Theorem:
    """𝓜 = L D L*."""
    return Theorem(
        "innovations_factorisation",
        definition=mass_matrix,
        result=L @ D @ L.T,
        doc="the mass matrix is block lower times block diagonal times block upper triangular",
        ref=RK92.at("Identity 3"),
    )


@algorithm
def innovations_inverse() -> Theorem:
    """(I + HφK)(I - HψK) = I."""
    return Theorem(
        "innovations_inverse",
        definition=L @ L_inv,
        result=identity(JOINT),
        doc="the inverse of the innovations factor is known in closed form",
        ref=RK92.at("Identity 5"),
    )


@algorithm
def mass_matrix_inverse() -> Theorem:
    """𝓜⁻¹ = L⁻* D⁻¹ L⁻¹."""
    return Theorem(
        "mass_matrix_inverse",
        definition=mass_matrix.inv,
        result=L_inv.T @ D.inv @ L_inv,
        doc="the factors invert the mass matrix without forming it",
        ref=RK92.at("Identity 6"),
    )

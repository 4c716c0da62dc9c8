# SPDX-License-Identifier: BSD-3-Clause
"""Diagonalised dynamics: 𝓜 = mm* with m = L√D, ℓ = m⁻¹ = √D⁻¹L⁻¹.

New rates ν = m*v make the kinetic energy half a sum of squares; new forces are ε = ℓτ. Without the
root: ζ = L*v and κ = L⁻¹τ. Any root of D is possible; ours is lower triangular.
"""

from phistar.algebra.identities import SQUARE_ROOTS
from phistar.algebra.ir import I, identity, let
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import JOINT
from phistar.algebra.symbols import D_root, E_phi, G, H, K, mass_matrix, phi, psi, tau, v
from phistar.algorithms.catalogue import algorithm
from phistar.algorithms.innovations import L, L_inv, mass_matrix_inverse
from phistar.algorithms.link_kinematics import V
from phistar.refs import JR95

m = L @ D_root
"""Lower triangular square root of the mass matrix."""
ell = D_root.inv @ L_inv
"""Its inverse."""

zeta = L.T @ v
"""Un-normalised new rates."""

_UNMOTORED = frozenset({"unmotored"})


@algorithm
def normalised_factorisation() -> Theorem:
    """𝓜 = m m*."""
    return Theorem(
        "normalised_factorisation",
        definition=mass_matrix,
        result=m @ m.T,
        doc="a square root of the mass matrix in closed form",
        ref=JR95.eq("5.2"),
        rules=SQUARE_ROOTS,
    )


@algorithm
def normalised_inverse() -> Theorem:
    """𝓜⁻¹ = ℓ*ℓ."""
    return Theorem(
        "normalised_inverse",
        definition=mass_matrix_inverse.result,
        result=ell.T @ ell,
        doc="the inverse mass matrix by the inverse of its root",
        ref=JR95.eq("5.2"),
        rules=SQUARE_ROOTS,
    )


@algorithm
def normalised_factors() -> Theorem:
    """ℓ m = I."""
    return Theorem(
        "normalised_factors",
        definition=ell @ m,
        result=identity(JOINT),
        doc="ℓ is the inverse of m",
        ref=JR95.eq("5.1"),
        rules=SQUARE_ROOTS,
    )


@algorithm
def normalised_gain() -> Theorem:
    """m = HφG√D."""
    return Theorem(
        "normalised_gain",
        definition=m,
        result=H @ phi @ G @ D_root,
        doc="the root of the mass matrix collects the gains",
        ref=JR95.at("Identity 6.1, proof"),
        needs=_UNMOTORED,
    )


@algorithm
def new_rates() -> Theorem:
    """ζ = v + G*V⁺ with V⁺ = Eφ*V: outward, Table 2 left; ν = √D*ζ."""
    return Theorem(
        "new_rates",
        definition=zeta,
        result=v + G.T @ E_phi.T @ V,
        doc="a new rate is the joint's own plus the gain times the parent's motion",
        ref=JR95.eq("5.3"),
    )


@algorithm
def old_rates() -> Theorem:
    """v = ζ - G*V⁺ with V = ψ*H*ζ: outward, Table 2 right."""
    velocities = let("V", psi.T @ H.T @ zeta)
    return Theorem(
        "old_rates",
        definition=v,
        result=zeta - G.T @ E_phi.T @ velocities,
        doc="joint velocities from the new rates in one outward sweep",
        ref=JR95.at("Table 2"),
    )


@algorithm
def velocities_from_new_rates() -> Theorem:
    """V = ψ*H*ζ."""
    return Theorem(
        "velocities_from_new_rates",
        definition=V,
        result=psi.T @ H.T @ zeta,
        doc="link velocities from the new rates, without those of the joints",
        ref=JR95.at("Table 2"),
    )


@algorithm
def rates_are_projections() -> Theorem:
    """ζ = G*V."""
    return Theorem(
        "rates_are_projections",
        definition=zeta,
        result=G.T @ V,
        doc="the new rate of a joint is the gain times its link's velocity",
        ref=JR95.eq("5.3"),
        needs=_UNMOTORED,
    )


@algorithm
def normalised_rates() -> Theorem:
    """m* = √D*(I + K*φ*H*), and back by ℓ* = (I - K*ψ*H*)√D⁻*."""
    return Theorem(
        "normalised_rates",
        definition=(I - K.T @ psi.T @ H.T) @ D_root.T.inv @ m.T,
        result=identity(JOINT),
        doc="ν = m*v, and v = ℓ*ν: the two outward sweeps are inverses",
        ref=JR95.at("Table 2"),
        rules=SQUARE_ROOTS,
    )


@algorithm
def new_forces() -> Theorem:
    """κ = τ - Hz, z = Eφz⁺, z⁺ = z + Gκ: inward, Table 3 left; ε = √D⁻¹κ."""
    z = let("z", psi @ K @ tau)
    kappa = let("kappa", tau - H @ z)
    return Theorem(
        "new_forces",
        definition=E_phi @ (z + G @ kappa),
        result=z,
        doc="the effect of outboard forces on a link, by one inward sweep over the new forces",
        ref=JR95.at("Table 3"),
    )


@algorithm
def normalised_forces() -> Theorem:
    """ℓ = √D⁻¹(I - Hz) with z = Eφz⁺, z⁺ = z + G√Dℓ: Table 3 left with the √D that is missing."""
    z = psi @ K
    return Theorem(
        "normalised_forces",
        definition=E_phi @ (z + G @ D_root @ ell),
        result=z,
        doc="the inward sweep of the normalised forces needs √D beside the gain",
        ref=JR95.at("Table 3"),
        rules=SQUARE_ROOTS,
    )


@algorithm
def old_forces() -> Theorem:
    """m = √D + Hz with z = Eφz⁺, z⁺ = z + G√D: Table 3 right."""
    z = phi @ K @ D_root
    return Theorem(
        "old_forces",
        definition=D_root + H @ E_phi @ (z + G @ D_root),
        result=m,
        doc="a joint force is a working part plus a part that balances the outboard forces",
        ref=JR95.eq("5.4"),
        rules=SQUARE_ROOTS,
    )

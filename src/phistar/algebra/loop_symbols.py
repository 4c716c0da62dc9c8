# SPDX-License-Identifier: BSD-3-Clause
"""Operators of closed loops: rows of constraints, a partition of rates, links joined to nodes.

Γ, C_ℓ and Eᵢ are given by a robot's loops, 𝓧, 𝓡, 𝓢 and s by a partition of the rates into
independent and dependent ones (``algebra/dense_loops``); all others are defined by them. Names that
end in _a belong to the tree of nodes: links that share loops are one node, and what holds for
links, joints and rates holds for nodes and minimal rates (``loop_identities.AGGREGATED``).
"""

from __future__ import annotations

from phistar.algebra.ir import I, Sparsity, symbol
from phistar.algebra.spaces import FORCE, JOINT, LOOP, MINIMAL, MOTION
from phistar.algebra.symbols import (
    A,
    E_phi,
    H,
    M,
    NodeRiccati,
    _register,
    mass_matrix,
    phi,
    vector,
)
from phistar.refs import FO00

Gamma = _register(
    symbol("Gamma", FORCE, LOOP, Sparsity.DENSE),
    "Γ",
    r"\Gamma",
    "Forces on the links per unit of the loops' multipliers: on each successor, and the opposite "
    "force on its predecessor.",
    ref=FO00.eq("19"),
)
coupling = _register(
    symbol("coupling", LOOP, JOINT, Sparsity.DENSE),
    "C_ℓ",
    r"C_\ell",
    "Rows of gears and other couplings, which act on joint rates directly.",
    ref=FO00.eq("17"),
)
loop_jacobian = _register(
    symbol("loop_jacobian", LOOP, JOINT, Sparsity.DENSE),
    "L",
    "L",
    "Velocities across the loops per unit of joint rate: zero times every motion that keeps the "
    "loops closed.",
    Gamma.T @ phi.T @ H.T + coupling,
    FO00.eq("18"),
)
loop_compliance = _register(
    symbol("loop_compliance", LOOP, LOOP, Sparsity.DENSE, symmetric=True),
    "Δ",
    r"\Delta",
    "Accelerations across the loops per unit of their multipliers.",
    loop_jacobian @ mass_matrix.inv @ loop_jacobian.T,
    FO00.eq("21"),
)
embedding = _register(
    symbol("embedding", JOINT, MINIMAL, Sparsity.DENSE),
    "𝓧",
    r"\mathcal{X}",
    "Joint rates from independent ones: spans the motions that keep the loops closed.",
    ref=FO00.eq("22"),
)
independent_rates = _register(
    symbol("independent_rates", MINIMAL, JOINT, Sparsity.DENSE),
    "𝓡",
    r"\mathcal{R}",
    "Picks the independent ones of the joint rates.",
    ref=FO00.eq("22"),
)
particular_rates = _register(
    symbol("particular_rates", JOINT, LOOP, Sparsity.DENSE),
    "𝓢",
    r"\mathcal{S}",
    "Joint rates with given velocities across the loops, the independent ones at rest.",
    ref=FO00.eq("22"),
)
self_stress = vector(
    "self_stress",
    LOOP,
    "s",
    "Multipliers of redundant loops whose forces move no joint: L*s = 0.",
)
multipliers = vector(
    "multipliers", LOOP, "λ", "Multipliers: what the loops transmit.", r"\lambda", FO00.eq("19")
)
loop_acceleration = vector(
    "loop_acceleration",
    LOOP,
    "c",
    "What L v̇ has to be so that the loops stay closed.",
    "c",
    FO00.eq("18"),
)
E_inner = _register(
    symbol("E_inner", FORCE, FORCE, Sparsity.SHIFT),
    "Eᵢ",
    r"\mathcal{E}_i",
    "The part of Eφ between links of one node, those that share loops.",
)
phi_inner = _register(
    symbol("phi_inner", FORCE, FORCE, Sparsity.LOWER),
    "φᵢ",
    r"\phi_i",
    "Collects the forces on a link and its descendants in the same node, moved rigidly.",
    (I - E_inner).inv,
)
E_a = _register(
    symbol("E_a", FORCE, FORCE, Sparsity.SHIFT),
    "Eₐ",
    r"\mathcal{E}_a",
    "Takes the forces on the links of a node to the link that carries the node.",
    (E_phi - E_inner) @ phi_inner,
)
phi_a = _register(
    symbol("phi_a", FORCE, FORCE, Sparsity.LOWER),
    "φₐ",
    r"\phi_a",
    "Collects the forces on a link and on all nodes that it carries.",
    (I - E_a).inv,
)
H_a = _register(
    symbol("H_a", MINIMAL, FORCE, Sparsity.DENSE),
    "Hₐ",
    "H_a",
    "Projects the forces on the links of a node on the motions that its loops leave.",
    embedding.T @ H @ phi_inner,
)
A_a = _register(
    symbol("A_a", MINIMAL, MINIMAL, symmetric=True),
    "Aₐ",
    "A_a",
    "Rotor inertia of each node.",
    embedding.T @ A @ embedding,
)
P_a = _register(
    symbol("P_a", FORCE, MOTION, symmetric=True),
    "Pₐ",
    "P_a",
    "Articulated inertia of a link and of the nodes that it carries, whose loops stay closed.",
    NodeRiccati(),
)
D_a = _register(
    symbol("D_a", MINIMAL, MINIMAL, symmetric=True),
    "Dₐ",
    "D_a",
    "Inertia at a node when all nodes beyond it are free.",
    H_a @ P_a @ H_a.T + A_a,
)
G_a = _register(
    symbol("G_a", FORCE, MINIMAL),
    "Gₐ",
    "G_a",
    "Kalman gain of a node: forces on its links per unit of minimal force.",
    P_a @ H_a.T @ D_a.inv,
)
K_a = _register(
    symbol("K_a", FORCE, MINIMAL, Sparsity.SHIFT),
    "Kₐ",
    "K_a",
    "The gain of a node, shifted to the link that carries it.",
    E_a @ G_a,
)
E_psi_a = _register(
    symbol("E_psi_a", FORCE, FORCE, Sparsity.SHIFT),
    "Eψₐ",
    r"\mathcal{E}_{\psi a}",
    "Takes the forces on the links of a node inward while the node is free to move.",
    E_a - K_a @ H_a,
)
psi_a = _register(
    symbol("psi_a", FORCE, FORCE, Sparsity.LOWER),
    "ψₐ",
    r"\psi_a",
    "Collects forces inward through nodes that are free to move.",
    (I - E_psi_a).inv,
)
mass_matrix_a = _register(
    symbol("mass_matrix_a", MINIMAL, MINIMAL, Sparsity.DENSE, symmetric=True),
    "𝓜ₐ",
    r"\mathcal{M}_a",
    "Inertia of the closed robot in minimal rates.",
    H_a @ phi_a @ M @ phi_a.T @ H_a.T + A_a,
    FO00.eq("22"),
)

# SPDX-License-Identifier: BSD-3-Clause
"""Operational space: compliance of frames, without forming the mass matrix."""

from phistar.algebra.proof import Theorem
from phistar.algebra.symbols import B, D, H, mass_matrix, psi
from phistar.algorithms.catalogue import algorithm
from phistar.algorithms.innovations import mass_matrix_inverse
from phistar.algorithms.link_kinematics import J
from phistar.refs import JR95

Omega = psi.T @ H.T @ D.inv @ H @ psi
"""Link motions per unit of force on the links, joints free."""

compliance = B.T @ Omega @ B
"""Motions of chosen frames per unit of force on them."""


@algorithm
def operational_compliance() -> Theorem:
    """J 𝓜⁻¹ J* = B*ψ*H* D⁻¹ HψB."""
    return Theorem(
        "operational_compliance",
        definition=J @ mass_matrix.inv @ J.T,
        result=compliance,
        doc="the inverse of the operational-space inertia in O(n)",
        ref=JR95.eq("4.10"),
        rules=(mass_matrix_inverse.rule,),
    )

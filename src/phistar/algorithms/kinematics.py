# SPDX-License-Identifier: BSD-3-Clause
"""Link velocities and Jacobians: V = φ*H*v and J = B*φ*H*."""

from phistar.algebra.ir import let
from phistar.algebra.proof import Theorem
from phistar.algebra.symbols import B, E_phi, H, phi, v
from phistar.algorithms.catalogue import algorithm
from phistar.refs import RK92

V = let("V", phi.T @ H.T @ v)
"""Spatial velocities of the links: outward V(k) = φ*(p,k) V(p) + H* v."""

J = B.T @ phi.T @ H.T
"""Jacobian of the chosen frames."""


@algorithm
def link_velocities() -> Theorem:
    """A link moves with its parent and by its own joint."""
    return Theorem(
        "link_velocities",
        definition=E_phi.T @ phi.T @ H.T @ v + H.T @ v,
        result=V,
        doc="a link moves as its parent takes it along, and by its own joint: V = E*V + H*v",
        ref=RK92.eq("21"),
    )

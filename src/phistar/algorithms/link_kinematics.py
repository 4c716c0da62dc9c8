# SPDX-License-Identifier: BSD-3-Clause
"""Link velocities, link accelerations and Jacobians: V = φ*H*v, α = φ*(H*v̇ + a), J = B*φ*H*."""

from phistar.algebra.ir import let
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import MOTION
from phistar.algebra.symbols import B, E_phi, H, phi, v, vdot, vector, velocities
from phistar.algorithms.catalogue import algorithm
from phistar.refs import FO00, RK92

V = velocities

a = vector("a", MOTION, "a", "Coriolis and gravity acceleration of each link.", ref=RK92.eq("8"))

alpha = let("alpha", phi.T @ (H.T @ vdot + a))
"""Spatial accelerations of the links: outward α(k) = φ*(p,k) α(p) + H* v̇ + a."""

J = B.T @ phi.T @ H.T
"""Jacobian of the chosen frames."""


@algorithm
def link_velocities() -> Theorem:
    """A link moves with its parent and by its own joint."""
    return Theorem(
        "link_velocities",
        definition=E_phi.T @ phi.T @ H.T @ v + H.T @ v,
        result=V,
        doc="a link moves with its parent and by its own joint: V = E*V + H*v",
        ref=RK92.eq("21"),
    )


@algorithm
def acceleration_recursion() -> Theorem:
    """A link accelerates with its parent, by its own joint and by its bias."""
    return Theorem(
        "acceleration_recursion",
        definition=E_phi.T @ alpha + H.T @ vdot + a,
        result=alpha,
        doc="accelerations outward from each link to its children: α = E*α + H*v̇ + a",
        ref=FO00.eq("4"),
    )


@algorithm
def jacobian() -> Theorem:
    """J = B*φ*H*: a frame moves with its link, which moves with its parent and by its joint."""
    return Theorem(
        "jacobian",
        definition=B.T @ E_phi.T @ phi.T @ H.T + B.T @ H.T,
        result=J,
        doc="the Jacobian of frames, factored: it takes joint velocities to those of frames",
        ref=RK92.eq("20"),
    )

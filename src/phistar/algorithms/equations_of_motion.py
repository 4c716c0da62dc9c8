# SPDX-License-Identifier: BSD-3-Clause
"""The equations of motion of a robot: theorems with velocity, gravity and external forces.

Accelerations are spatial, in link axes: a = V × H*v + γ and b = V ×* MV - f, with the velocities
V = φ*H*v, gravity γ an upward acceleration of the ground and f the external forces on the links.
"""

from phistar.algebra.ir import Expr, crf, crm, let
from phistar.algebra.symbols import H, M, M_hat, f_ext, gravity, phi, v
from phistar.algebra.traverse import substitute
from phistar.algorithms.inverse_dynamics import a, b
from phistar.algorithms.link_kinematics import V

LINK_BIAS_ACCELERATION = let("a", crm(V) @ H.T @ v + gravity)
LINK_BIAS_FORCE = let("b", crf(V) @ M @ V - f_ext)


def in_motion(expr: Expr) -> Expr:
    """An expression in a and b as one in v, gravity and external forces."""
    return substitute(expr, {a: LINK_BIAS_ACCELERATION, b: LINK_BIAS_FORCE})


def at_rest(expr: Expr) -> Expr:
    """An expression in a and b for a robot that does not move: gravity alone."""
    return substitute(expr, {a: gravity, b: -f_ext})


coriolis = H @ phi @ (M_hat @ phi.T @ H.T + M @ phi.T @ crm(V) @ H.T)
"""The Christoffel-consistent Coriolis matrix: its product with v is the bias force without gravity,
and it adds up with its adjoint to the rate of the mass matrix."""

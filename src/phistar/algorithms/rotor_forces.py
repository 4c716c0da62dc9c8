# SPDX-License-Identifier: BSD-3-Clause
"""Rotor inertia of joints with several axes, which rotate: Lagrange's equations of ½ v*Av.

A is constant in the axes of v, but these rotate, so the momentum Av of rotors rotates with them:

    A v̇ + c        c = H(H*v ×* NAv)

It acts on the joint alone; there is no reaction on other links, as there is none of A v̇. It is
zero for joints with one axis, and for pure rotations with the same A about all axes. For a free
joint with the same armature a along all axes it is a(ω × v), so that A v̇ + c is a times the
acceleration in axes that do not rotate: MuJoCo's meaning of armature.
"""

from fractions import Fraction

from phistar.algebra.calculus import gradient
from phistar.algebra.cross_product_rules import CALCULUS
from phistar.algebra.ir import Expr, Q, crf, crm
from phistar.algebra.proof import Theorem
from phistar.algebra.symbols import A, H, N, tau, v
from phistar.algebra.traverse import substitute
from phistar.algorithms.catalogue import register_theorem
from phistar.algorithms.linearized import dtau, dv
from phistar.refs import JR93

_axis_rate = H @ crf(H.T @ v)
_momentum_rate = Q(N @ A @ v) @ H.T

rotor_force = _axis_rate @ N @ A @ v
"""c, the joint force of rotors as their axes rotate."""
rotor_force_v = _axis_rate @ N @ A - H @ _momentum_rate
"""∂c/∂v."""
rotor_coriolis = Fraction(1, 2) * (rotor_force_v + A @ N.T @ crm(H.T @ v) @ H.T)
"""Their part of the Coriolis matrix, like M̂ for links: its product with v is c, and it does no
work."""


def subtract_rotor_force(expr: Expr) -> Expr:
    """An expression in τ and δτ with the force of rotors subtracted, e.g. forward dynamics."""
    return substitute(expr, {tau: tau - rotor_force, dtau: dtau - rotor_force_v @ dv})


register_theorem(
    Theorem(
        "rotor_force_by_velocity",
        gradient(rotor_force, v),
        rotor_force_v,
        "derivative of the force of rotors by the velocities",
        JR93.eq("3.4"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "rotor_coriolis_force",
        rotor_coriolis @ v,
        rotor_force,
        "the Coriolis matrix of rotors gives their force",
        JR93.eq("3.4"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "rotor_coriolis_without_power",
        rotor_coriolis.T,
        -rotor_coriolis,
        "it is skew, so rotors neither take nor give power: A does not change",
        JR93.eq("3.4"),
        CALCULUS,
    )
)

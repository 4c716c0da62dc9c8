# SPDX-License-Identifier: BSD-3-Clause
"""Linearized inverse dynamics: the derivatives of joint forces, proved from Newton and Euler.

    δτ = 𝓜 δv̇ + A_D δv + B_D δq

Definitions are derivatives of the recursive equations, by the product rule; results are the forms
of ``linearized``. External forces are constant in the axes of their links, gravity in those of the
ground. Trees, and joints of any kind; the papers' own forms for joints with one axis follow.
"""

from phistar.algebra.calculus import derivative, gradient, rate
from phistar.algebra.cross_product_rules import BRACKET_PAIRS, CALCULUS, JACOBI
from phistar.algebra.ir import crf, crm
from phistar.algebra.phases import row
from phistar.algebra.proof import Theorem
from phistar.algebra.symbols import H, M, M_hat, dq, f_ext, mass_matrix, phi, v, vdot
from phistar.algorithms.catalogue import algorithm, register_theorem
from phistar.algorithms.equations_of_motion import at_rest, coriolis, in_motion
from phistar.algorithms.inverse_dynamics import bias_force, inverse_dynamics
from phistar.algorithms.linearized import (
    A_D,
    B_D,
    A_D_columns,
    B_D_columns,
    H_dot,
    dv,
    dvdot,
    force_column,
    inverse_change,
    inverse_weights,
    w,
)
from phistar.algorithms.link_kinematics import V, alpha
from phistar.refs import JR93

torques = in_motion(inverse_dynamics.result)
"""τ in v, v̇, gravity and external forces."""
H_ddot = crm(alpha) @ H.T + crm(V) @ H_dot
"""Second rate of the joint axes as the link moves."""
A_D_one_axis = 2 * H @ phi @ (M_hat @ phi.T @ H.T + M @ phi.T @ H_dot)
B_D_one_axis = H @ phi @ (force_column + 2 * M_hat @ phi.T @ H_dot + M @ phi.T @ H_ddot)
_by_q, _by_v, _by_vdot = inverse_weights.values()
_ONE_DOF = frozenset({"one_dof"})
_COMPOSITES = (row("composite_recursion"), row("gyroscopic_recursion"))

register_theorem(
    Theorem(
        "force_by_acceleration",
        gradient(torques, vdot),
        mass_matrix,
        "joint forces grow with accelerations by the mass matrix",
        JR93.eq("3.2"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "force_by_velocity",
        gradient(torques, v),
        A_D,
        "∂τ/∂v = A_D: twice the gyroscopic forces, and the rates of the joint axes",
        JR93.at("Lemma 3.1"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "force_by_configuration",
        gradient(torques, "q"),
        in_motion(B_D),
        "∂τ/∂q = B_D: the rotation of the links beyond",
        JR93.at("Lemma 3.1"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "force_by_configuration_inertial",
        derivative(torques, {"q": dq}, "inertial"),
        in_motion(B_D @ dq) + H @ phi @ crf(phi.T @ H.T @ dq) @ f_ext,
        "the same in inertial axes, in which external forces are now constant, as in the paper",
        JR93.eq("A.13"),
        (*CALCULUS, *BRACKET_PAIRS, *JACOBI),
    )
)


@algorithm
def linearized_inverse_dynamics() -> Theorem:
    """Two sweeps: π and ϑ outward, ρ inward."""
    return Theorem(
        "linearized_inverse_dynamics",
        definition=derivative(torques, {"q": dq, v: dv, vdot: dvdot}),
        result=in_motion(inverse_change),
        doc="the change of joint forces along a direction in O(n)",
        ref=JR93.at("Algorithm 1"),
        rules=CALCULUS,
    )


register_theorem(
    Theorem(
        "force_by_velocity_one_axis",
        A_D,
        A_D_one_axis,
        "A_D as published: a joint with one axis does not rotate it",
        JR93.eq("3.1"),
        CALCULUS,
        _ONE_DOF,
    )
)
register_theorem(
    Theorem(
        "force_by_configuration_one_axis",
        in_motion(B_D),
        in_motion(B_D_one_axis),
        "B_D as printed, but for the cross product with f, which acts on forces",
        JR93.eq("3.1"),
        (*CALCULUS, *JACOBI),
        _ONE_DOF,
    )
)
register_theorem(
    Theorem(
        "force_by_velocity_split",
        A_D,
        A_D_columns,
        "A_D by sums over composite bodies, with single sweeps",
        JR93.at("Lemma 3.2"),
        _COMPOSITES,
    )
)
register_theorem(
    Theorem(
        "force_by_configuration_split",
        in_motion(B_D),
        in_motion(B_D_columns),
        "B_D by sums over composite bodies, with single sweeps",
        JR93.at("Lemma 3.2"),
        _COMPOSITES,
    )
)
register_theorem(
    Theorem(
        "coriolis_force",
        coriolis @ v,
        in_motion(bias_force) - at_rest(bias_force),
        "the Coriolis matrix times v is the force of motion without gravity and external forces",
        JR93.eq("2.20"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "coriolis_symmetric_part",
        coriolis + coriolis.T,
        rate(mass_matrix),
        "the Coriolis matrix and its adjoint add up to the rate of the mass matrix",
        JR93.eq("2.7"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "coriolis_by_velocity",
        A_D,
        2 * coriolis,
        "∂τ/∂v is twice the Coriolis matrix if every joint has one axis",
        JR93.eq("3.1"),
        CALCULUS,
        _ONE_DOF,
    )
)
register_theorem(
    Theorem(
        "weights_by_configuration",
        gradient(torques, "q").T @ w,
        in_motion(_by_q),
        "B_D*w in one pass outward and one inward: the gradient of w*τ in the configuration",
        JR93.at("Algorithm 1"),
        (*CALCULUS, *JACOBI),
    )
)
register_theorem(
    Theorem(
        "weights_by_velocity",
        gradient(torques, v).T @ w,
        _by_v,
        "A_D*w by the same passes: the gradient of w*τ in the velocities",
        JR93.at("Algorithm 1"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "weights_by_acceleration",
        gradient(torques, vdot).T @ w,
        _by_vdot,
        "𝓜w by the same passes: the gradient of w*τ in the accelerations",
        JR93.at("Algorithm 1"),
        CALCULUS,
    )
)

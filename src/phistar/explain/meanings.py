# SPDX-License-Identifier: BSD-3-Clause
"""Programs, matrices and methods of a robot in one line each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROGRAM_MEANINGS: Mapping[str, str] = {
    "link_velocities": "velocities of the links",
    "link_accelerations": "accelerations of the links, without gravity",
    "falling_accelerations": "the same with gravity, v̇ = 0",
    "link_forces": "forces through the joints",
    "inverse_dynamics": "joint forces for accelerations",
    "bias_force": "joint forces that hold v̇ = 0",
    "gravity_force": "joint forces that hold the robot at rest",
    "mass_matrix_times": "𝓜 times a vector",
    "mass_matrix_solve": "𝓜⁻¹ times a vector",
    "forward_dynamics": "accelerations for joint forces",
    "forward_dynamics_1": "the same, bias through L⁻¹ only",
    "forward_dynamics_2": "the same, with link accelerations",
    "forward_dynamics_3": "the same, fewest operations as code",
    "hybrid_bias": "what a and b are when some v̇ are given",
    "hybrid_dynamics": "forces at some joints, v̇ at others",
    "coriolis_times": "the Coriolis matrix C times a vector",
    "coriolis_adjoint_times": "C* times a vector",
    "momenta": "momentum of each link",
    "total_momentum": "momentum of each link and all beyond it",
    "link_poses": "rows of the links' poses in the world",
    "world_velocities": "velocities of the links in the world",
    "momentum": "momentum about the world's origin",
    "kinetic_energy": "kinetic energy of links and rotors",
    "potential_energy": "potential energy of the links that move",
    "center_of_mass": "centre of mass in the world",
    "moving_center_of_mass": "that of the links that move",
    "hinge_inertias": "D times a vector",
    "generalised_force": "joint forces of forces on the links",
    "new_rates": "rates ζ that decouple the robot, from v",
    "old_rates": "v from ζ",
    "new_forces": "forces κ that go with ζ, from τ",
    "old_forces": "τ from κ",
    "diagonal_bias": "ζ and its Coriolis force",
    "diagonal_dynamics": "ζ̇ and v from ζ and κ",
    "inverse_dynamics_jvp": "change of τ along a direction",
    "inverse_dynamics_vjp": "gradient of a weighted sum of τ",
    "inverse_dynamics_hvp": "change of that gradient",
    "mass_matrix_change": "change of 𝓜 along a direction, times w",
    "forward_dynamics_jvp": "change of v̇ along a direction",
    "forward_dynamics_jvp_articulated": "the same, through Ṗ",
    "forward_dynamics_jvp_split": "the same, from split sums",
    "forward_dynamics_vjp": "gradient of a weighted sum of v̇",
}
"""Every program of the catalogue."""

MATRIX_MEANINGS: Mapping[str, str] = {
    "mass_matrix": "the joint-space inertia 𝓜",
    "mass_matrix_inverse": "𝓜⁻¹, factored",
    "coriolis_matrix": "C with Cv the Coriolis force",
    "hinge_inertia": "D, the inertia at each joint",
    "link_jacobians": "velocities of all links per unit of v",
    "jacobian_rate": "rate of the Jacobian of frames",
    "inverse_dynamics_q": "∂τ/∂q",
    "inverse_dynamics_v": "∂τ/∂v",
    "forward_dynamics_q": "∂v̇/∂q",
    "forward_dynamics_v": "∂v̇/∂v",
    "forward_dynamics_q_split": "the same, from split sums",
    "forward_dynamics_v_split": "the same, from split sums",
    "inverse_dynamics_qq": "∂²τ/∂q² for one direction dq",
    "inverse_dynamics_qv": "∂²τ/∂q∂v for one direction dq",
    "inverse_dynamics_vv": "∂²τ/∂v² for one direction dv",
    "mass_matrix_q": "∂(𝓜v̇)/∂q for one vector v̇",
    "mass_matrix_qq": "∂²(𝓜v̇)/∂q² for v̇ and one direction",
}
"""Every matrix of the catalogue: its operator is explained."""


@dataclass(frozen=True)
class Method:
    """A method of ``Robot`` that uses programs of other names.

    Attributes:
        meaning: What it does with them.
        programs: Programs and matrices.
    """

    meaning: str
    programs: tuple[str, ...]


METHOD_MEANINGS: Mapping[str, Method] = {
    "loop_error": Method("N* log of what keeps a loop's frames apart", ("loop_rows",)),
    "loop_jacobian": Method("L = Γ*φ*H* + C, a block of rows per loop", ("loop_rows",)),
    "inverse_kinematics": Method(
        "steps q ⊕ A*(A A* + λ)⁻¹ e until the errors e of targets are gone",
        ("inverse_kinematics_step",),
    ),
    "assemble": Method("steps (L*L + μ)⁻¹L*e until the loops are closed", ("loop_rows",)),
    "project": Method("q ⊖ 𝓜⁻¹L*Δ⁻¹e and v - 𝓜⁻¹L*Δ⁻¹Lv", ("loop_projection",)),
    "mobility": Method("rank and null spaces of L", ("loop_rows",)),
    "minimal": Method("v = X v_R with LX = 0", ("loop_motion",)),
    "constrained_dynamics": Method(
        "𝓜v̇ + 𝒞 = τ + L*λ and Lv̇ = -L̇v, solved for v̇ and λ", ("loop_motion", "mass_matrix")
    ),
    "constrained_inverse_dynamics": Method(
        "the shortest u with X*Bu = X*τ, τ of the tree's inverse dynamics",
        ("loop_motion", "inverse_dynamics"),
    ),
    "rnea": Method("another name of inverse_dynamics", ("inverse_dynamics",)),
    "aba": Method("another name of forward_dynamics", ("forward_dynamics",)),
    "crba": Method("another name of mass_matrix", ("mass_matrix",)),
    "jacobian": Method(
        "J = B* φ* H*: the rows of a frame's link, moved to the frame and the requested axes",
        ("link_jacobians",),
    ),
    "frame_pose": Method("the rows of the link's pose, moved to the frame", ("link_poses",)),
    "frame_velocity": Method("J v: the link's velocity, moved to the frame", ("link_velocities",)),
    "frame_acceleration": Method(
        "the link's acceleration, moved to the frame", ("link_accelerations",)
    ),
    "linearize": Method(
        "∂v̇/∂q, ∂v̇/∂v and ∂v̇/∂τ = 𝓜⁻¹ in one program",
        ("forward_dynamics_q", "forward_dynamics_v", "mass_matrix_inverse"),
    ),
    "linearize_inverse": Method(
        "∂τ/∂q, ∂τ/∂v and ∂τ/∂v̇ = 𝓜 in one program",
        ("inverse_dynamics_q", "inverse_dynamics_v", "mass_matrix"),
    ),
    "jvp": Method("products of derivatives with directions", ("forward_dynamics_jvp",)),
    "vjp": Method("products of weights with derivatives", ("forward_dynamics_vjp",)),
    "operational_inertia": Method(
        "(J 𝓜⁻¹ J*)⁻¹ = (B* ψ* H* D⁻¹ H ψ B)⁻¹ at frames; phistar.explain takes that expression",
        ("mass_matrix_inverse",),
    ),
    "reaction_forces": Method("forces through the joints, f = φ(Mα + b)", ("link_forces",)),
    "system": Method(
        "eq. (27) of Featherstone & Orin over all links; eliminated tips first it is",
        ("forward_dynamics",),
    ),
    "diagonalize": Method("rates and forces that decouple the robot", ("new_rates", "new_forces")),
    "simulator": Method(
        "steps of many robots with contacts and joint physics",
        ("unilateral_step", "terrain_step", "contact_points", "terrain_points", "row_solver"),
    ),
    "simulate": Method("a scheme of steps, each with accelerations from", ("forward_dynamics_3",)),
    "discretize": Method("a step of time, linearized: see linearize", ("forward_dynamics_q",)),
    "hvp": Method("the change of a gradient along a direction", ("inverse_dynamics_hvp",)),
    "inverse_dynamics_second": Method(
        "second derivatives of τ", ("inverse_dynamics_qq", "inverse_dynamics_qv", "mass_matrix_q")
    ),
    "forward_dynamics_second": Method(
        "second derivatives of v̇, from those of τ", ("inverse_dynamics_qq", "mass_matrix_inverse")
    ),
    "gravity_force_q": Method("∂τ/∂q at rest", ("inverse_dynamics_q",)),
    "kinetic_energy_q": Method("∂/∂q of ½ v* 𝓜 v", ("inverse_dynamics_vjp",)),
    "linearize_along": Method("∂v̇ along a trajectory", ("linearize",)),
    "linearize_hybrid": Method(
        "linearize with some v̇ given", ("inverse_dynamics_q", "mass_matrix")
    ),
    "vdot_parameters": Method("∂v̇/∂π = -𝓜⁻¹ Y", ("mass_matrix_inverse", "regressor")),
    "diagonal_forward_dynamics": Method("ζ̇ and v from ζ and τ", ("diagonal_dynamics",)),
    "christoffel": Method("half sums of derivatives of 𝓜", ("mass_matrix_q",)),
    "riemann": Method("curvature of 𝓜 as a metric", ("mass_matrix_q", "mass_matrix_qq")),
    "curvature": Method("Riemann, Ricci and scalar", ("mass_matrix_q", "mass_matrix_qq")),
    "sectional_curvature": Method("of a plane", ("mass_matrix_q", "mass_matrix_qq")),
    "is_flat": Method("whether all of it is zero", ("mass_matrix_q", "mass_matrix_qq")),
}
"""Methods that are not named like a program."""

# SPDX-License-Identifier: BSD-3-Clause
"""The catalogue: all quantities of a robot by name, as expressions to compile."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from phistar.algebra.calculus import derivative, gradient
from phistar.algebra.ir import Expr, crm
from phistar.algebra.symbols import (
    E_0,
    POSE_ROWS,
    X_0,
    A,
    D,
    E_pi_0,
    H,
    M,
    center,
    dq,
    f_ext,
    mass_matrix,
    moving_center,
    mu,
    mu_0,
    phi,
    pi,
    tau,
    v,
    vdot,
    weight,
)
from phistar.algorithms import diagonal_dynamics, linearized
from phistar.algorithms.equations_of_motion import (
    LINK_BIAS_ACCELERATION,
    LINK_BIAS_FORCE,
    at_rest,
    coriolis,
    in_motion,
)
from phistar.algorithms.forward_dynamics import (
    forward_dynamics,
    forward_dynamics_1,
    forward_dynamics_2,
    forward_dynamics_3,
)
from phistar.algorithms.innovations import L_inv, mass_matrix_inverse
from phistar.algorithms.inverse_dynamics import bias_force, f, inverse_dynamics
from phistar.algorithms.linearized import in_forward_motion
from phistar.algorithms.link_kinematics import J, V, alpha

T = TypeVar("T")


class LazyTable(Mapping[str, T]):
    """A mapping whose values are made on first access: most are never needed."""

    def __init__(self, rows: Mapping[str, Callable[[], T]]) -> None:
        self._rows = rows
        self._values: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._values:
            self._values[name] = self._rows[name]()
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


MATRICES: Mapping[str, Expr] = LazyTable(
    {
        "mass_matrix": lambda: mass_matrix,
        "mass_matrix_inverse": lambda: mass_matrix_inverse.result,
        "coriolis_matrix": lambda: coriolis,
        "hinge_inertia": lambda: D,
        "link_jacobians": lambda: phi.T @ H.T,
        "jacobian_rate": lambda: derivative(J, {"q": v}),
        "inverse_dynamics_q": lambda: in_motion(linearized.B_D_columns),
        "inverse_dynamics_v": lambda: in_motion(linearized.A_D_columns),
        "forward_dynamics_q": lambda: in_forward_motion(-linearized.B_C),
        "forward_dynamics_v": lambda: in_motion(-linearized.A_C),
        "forward_dynamics_q_split": lambda: in_forward_motion(-linearized.B_C_split),
        "forward_dynamics_v_split": lambda: in_motion(-linearized.A_C_split),
        "inverse_dynamics_qq": lambda: gradient(in_motion(linearized.B_D) @ dq, "q"),
        "inverse_dynamics_qv": lambda: gradient(in_motion(linearized.B_D) @ dq, v),
        "inverse_dynamics_vv": lambda: gradient(in_motion(linearized.A_D) @ linearized.dv, v),
        "mass_matrix_q": lambda: gradient(mass_matrix @ vdot, "q"),
        "mass_matrix_qq": lambda: gradient(derivative(mass_matrix @ vdot, {"q": dq}), "q"),
    }
)
"""Matrices of a robot. Those of second derivatives are slices of tensors: for one direction in the
first argument (dq, dv, vdot), over all directions in the second. mass_matrix_qq is a slice of one
of fourth order: for a column (vdot) and a direction (dq)."""

PROGRAMS: Mapping[str, Mapping[str, Expr]] = LazyTable(
    {
        "link_velocities": lambda: {"V": V},
        "link_accelerations": lambda: {"alpha": phi.T @ (H.T @ vdot + crm(V) @ H.T @ v)},
        "falling_accelerations": lambda: {"V": V, "alpha": in_motion(alpha)},
        "link_forces": lambda: {"f": in_motion(f)},
        "inverse_dynamics": lambda: {"tau": in_motion(inverse_dynamics.result)},
        "bias_force": lambda: {"tau": in_motion(bias_force)},
        "gravity_force": lambda: {"tau": at_rest(bias_force)},
        "mass_matrix_times": lambda: {"tau": mass_matrix @ vdot},
        "mass_matrix_solve": lambda: {"vdot": mass_matrix_inverse.result @ tau},
        "forward_dynamics": lambda: {"vdot": in_motion(forward_dynamics.result)},
        "forward_dynamics_1": lambda: {"vdot": in_motion(forward_dynamics_1.result)},
        "forward_dynamics_2": lambda: {
            "vdot": in_motion(forward_dynamics_1.result),
            "alpha": in_motion(forward_dynamics_2.result),
        },
        "forward_dynamics_3": lambda: {"vdot": in_motion(forward_dynamics_3.result)},
        "hybrid_bias": lambda: {"a": LINK_BIAS_ACCELERATION + H.T @ vdot, "b": LINK_BIAS_FORCE},
        "hybrid_dynamics": lambda: {"vdot": forward_dynamics.result},
        "coriolis_times": lambda: {"tau": coriolis @ vdot},
        "coriolis_adjoint_times": lambda: {"tau": coriolis.T @ vdot},
        "momenta": lambda: {"h": M @ V},
        "total_momentum": lambda: {"h": phi @ M @ V},
        "link_poses": lambda: POSE_ROWS,
        "world_velocities": lambda: {"V0": X_0 @ V},
        "momentum": lambda: {"h": E_0 @ phi @ M @ V},
        "kinetic_energy": lambda: {"energy": (V.T @ M @ V + v.T @ A @ v) / 2},
        "potential_energy": lambda: {"energy": weight @ E_pi_0 @ pi @ mu},
        "center_of_mass": lambda: {"c": center @ (E_pi_0 @ pi @ mu + mu_0)},
        "moving_center_of_mass": lambda: {"c": moving_center @ E_pi_0 @ pi @ mu},
        "hinge_inertias": lambda: {"d": D @ vdot},
        "generalised_force": lambda: {"tau": H @ phi @ f_ext},
        "new_rates": lambda: {"zeta": diagonal_dynamics.new_rates},
        "old_rates": lambda: {"v": diagonal_dynamics.old_rates},
        "new_forces": lambda: {"kappa": diagonal_dynamics.new_forces},
        "old_forces": lambda: {"tau": diagonal_dynamics.old_forces},
        "diagonal_bias": lambda: {
            "zeta": diagonal_dynamics.new_rates,
            "coriolis": diagonal_dynamics.coriolis_force,
        },
        "diagonal_dynamics": lambda: {
            "zeta_dot": diagonal_dynamics.zeta_dot,
            "v": diagonal_dynamics.old_rates,
        },
        "inverse_dynamics_jvp": lambda: {"dtau": in_motion(linearized.inverse_change)},
        "inverse_dynamics_vjp": lambda: {
            f"w_{name}": in_motion(expr) for name, expr in linearized.inverse_weights.items()
        },
        "inverse_dynamics_hvp": lambda: {
            f"w_{name}": linearized.directional_change(in_motion(expr))
            for name, expr in linearized.inverse_weights.items()
        },
        "mass_matrix_change": lambda: {"tau": derivative(mass_matrix @ linearized.w, {"q": dq})},
        "forward_dynamics_jvp": lambda: {"dvdot": in_forward_motion(linearized.forward_change)},
        "forward_dynamics_jvp_articulated": lambda: {
            "dvdot": in_forward_motion(linearized.forward_change_articulated)
        },
        "forward_dynamics_jvp_split": lambda: {
            "dvdot": in_forward_motion(linearized.forward_change_split)
        },
        "forward_dynamics_vjp": lambda: {
            f"w_{name}": in_forward_motion(expr)
            for name, expr in linearized.forward_weights.items()
        },
    }
)
"""Outputs of all programs, as expressions in v, vdot, tau and f_ext."""


@dataclass(frozen=True)
class OutputBundle:
    """Vectors and matrices that are requested together.

    Attributes:
        vectors: Name of a program.
        matrices: Expressions by name.
        products: Matrices that are minus the product of two others; the right ones are not outputs.
        split: Matrices from single sweeps: name of the inverse mass matrix, and the load, drift,
            spin and, if any, own part of the others (``sweeps.split_matrices``). An alternative for
            matrices of the same name.
        factors: L⁻¹ and D⁻¹, if the left matrix of all products is L⁻*D⁻¹L⁻¹: an alternative to it.
        innovations: L⁻*D⁻¹, and by name matrices of which minus its product with them is the matrix
            of that name: an alternative to the products and the left matrix.
    """

    vectors: str
    matrices: Mapping[str, Expr]
    products: Mapping[str, tuple[str, str]]
    split: tuple[str, Mapping[str, tuple[Expr, ...]]] | None = None
    factors: tuple[Expr, Expr] | None = None
    innovations: tuple[Expr, Mapping[str, Expr]] | None = None


FACTORS: Mapping[Expr, tuple[Expr, Expr]] = {mass_matrix_inverse.result: (L_inv, D.inv)}
"""Of matrices L*SL, L and S: each has few entries on robots with branches."""

BUNDLES: Mapping[str, OutputBundle] = LazyTable(
    {
        "linearize_inverse": lambda: OutputBundle(
            "inverse_dynamics",
            {
                "tau_q": MATRICES["inverse_dynamics_q"],
                "tau_v": MATRICES["inverse_dynamics_v"],
                "tau_vdot": mass_matrix,
            },
            {},
        ),
        "linearize": lambda: replace(
            BUNDLES["linearize_product"],
            split=BUNDLES["linearize_split"].split,
            factors=FACTORS[mass_matrix_inverse.result],
            innovations=(
                linearized.innovation_response,
                {
                    "vdot_tau": -L_inv,
                    "vdot_q": in_forward_motion(linearized.innovation_q),
                    "vdot_v": in_motion(linearized.innovation_v),
                },
            ),
        ),
        "linearize_product": lambda: OutputBundle(
            "forward_dynamics",
            {
                "vdot_tau": mass_matrix_inverse.result,
                "tau_q": in_forward_motion(linearized.B_D_columns),
                "tau_v": in_motion(linearized.A_D_columns),
            },
            {"vdot_q": ("vdot_tau", "tau_q"), "vdot_v": ("vdot_tau", "tau_v")},
        ),
        "linearize_split": lambda: OutputBundle(
            "forward_dynamics",
            {},
            {},
            (
                "vdot_tau",
                {
                    "vdot_q": tuple(map(in_forward_motion, linearized.split_terms_q)),
                    "vdot_v": tuple(map(in_motion, linearized.split_terms_v)),
                },
            ),
        ),
    }
)
"""Bundles by name, one fused kernel each where the backend has it."""

REGROUPABLE_PROGRAMS = frozenset(PROGRAMS) - {
    "hybrid_bias",
    "hybrid_dynamics",
    "link_forces",
    "momenta",
    "total_momentum",
    "potential_energy",
    "center_of_mass",
    "moving_center_of_mass",
}
"""Programs about the motion of the robot: inertia X without effect on a joint, XH* = 0, may be
moved to the parent link, M - X + Eφ X Eφ*. In others an output, a force on a link, or an input, an
acceleration of a link, would change, or what gets to the ground would be missed."""

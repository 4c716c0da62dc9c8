# SPDX-License-Identifier: BSD-3-Clause
"""Everything that a robot can be asked for, by name, as expressions ready to be compiled."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from phistar.algebra.calculus import derivative, gradient
from phistar.algebra.ir import Expr, crm
from phistar.algebra.symbols import D, H, M, dq, f_ext, mass_matrix, phi, tau, v, vdot
from phistar.algorithms import diagonal_motion, linearized
from phistar.algorithms.equations_of_motion import (
    ACCELERATION,
    FORCE,
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
from phistar.algorithms.innovations import mass_matrix_inverse
from phistar.algorithms.inverse_dynamics import bias_force, inverse_dynamics
from phistar.algorithms.kinematics import J, V, alpha
from phistar.algorithms.linearized import accelerated

T = TypeVar("T")


class Table(Mapping[str, T]):
    """A mapping whose values are made when they are first asked for: most are never needed."""

    def __init__(self, rows: Mapping[str, Callable[[], T]]) -> None:
        self._rows = rows
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            self._made[name] = self._rows[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


MATRICES: Mapping[str, Expr] = Table(
    {
        "mass_matrix": lambda: mass_matrix,
        "mass_matrix_inverse": lambda: mass_matrix_inverse.result,
        "coriolis_matrix": lambda: coriolis,
        "hinge_inertia": lambda: D,
        "link_jacobians": lambda: phi.T @ H.T,
        "jacobian_rate": lambda: derivative(J, {"q": v}),
        "inverse_dynamics_q": lambda: in_motion(linearized.B_D_columns),
        "inverse_dynamics_v": lambda: in_motion(linearized.A_D_columns),
        "forward_dynamics_q": lambda: accelerated(-linearized.B_C),
        "forward_dynamics_v": lambda: in_motion(-linearized.A_C),
        "forward_dynamics_q_split": lambda: accelerated(-linearized.B_C_split),
        "forward_dynamics_v_split": lambda: in_motion(-linearized.A_C_split),
        "inverse_dynamics_qq": lambda: gradient(in_motion(linearized.B_D) @ dq, "q"),
        "inverse_dynamics_qv": lambda: gradient(in_motion(linearized.B_D) @ dq, v),
        "inverse_dynamics_vv": lambda: gradient(in_motion(linearized.A_D) @ linearized.dv, v),
        "mass_matrix_q": lambda: gradient(mass_matrix @ vdot, "q"),
        "mass_matrix_qq": lambda: gradient(derivative(mass_matrix @ vdot, {"q": dq}), "q"),
    }
)
"""Matrices that a robot can be asked for. Those of second derivatives are slices of tensors: for
one direction in the first place (dq, dv, vdot), over all directions in the second. mass_matrix_qq
is a slice of one of fourth order: for a column (vdot) and a direction (dq)."""

PROGRAMS: Mapping[str, Mapping[str, Expr]] = Table(
    {
        "link_velocities": lambda: {"V": V},
        "link_accelerations": lambda: {"alpha": phi.T @ (H.T @ vdot + crm(V) @ H.T @ v)},
        "falling_accelerations": lambda: {"V": V, "alpha": in_motion(alpha)},
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
        "hybrid_bias": lambda: {"a": ACCELERATION + H.T @ vdot, "b": FORCE},
        "hybrid_dynamics": lambda: {"vdot": forward_dynamics.result},
        "coriolis_times": lambda: {"tau": coriolis @ vdot},
        "coriolis_adjoint_times": lambda: {"tau": coriolis.T @ vdot},
        "momenta": lambda: {"h": M @ V},
        "total_momentum": lambda: {"h": phi @ M @ V},
        "hinge_inertias": lambda: {"d": D @ vdot},
        "generalised_force": lambda: {"tau": H @ phi @ f_ext},
        "new_rates": lambda: {"zeta": diagonal_motion.new_rates},
        "old_rates": lambda: {"v": diagonal_motion.old_rates},
        "new_forces": lambda: {"kappa": diagonal_motion.new_forces},
        "old_forces": lambda: {"tau": diagonal_motion.old_forces},
        "diagonal_bias": lambda: {
            "zeta": diagonal_motion.new_rates,
            "coriolis": diagonal_motion.coriolis_force,
        },
        "diagonal_dynamics": lambda: {
            "zeta_dot": diagonal_motion.zeta_dot,
            "v": diagonal_motion.old_rates,
        },
        "inverse_dynamics_jvp": lambda: {"dtau": in_motion(linearized.inverse_change)},
        "inverse_dynamics_vjp": lambda: {
            f"w_{name}": in_motion(expr) for name, expr in linearized.inverse_weights.items()
        },
        "inverse_dynamics_hvp": lambda: {
            f"w_{name}": linearized.change(in_motion(expr))
            for name, expr in linearized.inverse_weights.items()
        },
        "mass_matrix_change": lambda: {"tau": derivative(mass_matrix @ linearized.w, {"q": dq})},
        "forward_dynamics_jvp": lambda: {"dvdot": accelerated(linearized.forward_change)},
        "forward_dynamics_jvp_articulated": lambda: {
            "dvdot": accelerated(linearized.forward_change_articulated)
        },
        "forward_dynamics_jvp_split": lambda: {
            "dvdot": accelerated(linearized.forward_change_split)
        },
        "forward_dynamics_vjp": lambda: {
            f"w_{name}": accelerated(expr) for name, expr in linearized.forward_weights.items()
        },
    }
)
"""Outputs of everything a robot can be asked for, as expressions in v, vdot, tau and f_ext."""


@dataclass(frozen=True)
class Assembly:
    """Vectors and matrices that are wanted together.

    Attributes:
        vectors: Name of a program.
        matrices: Expressions by name.
        products: Matrices that are minus the product of two others; the right ones are not wanted.
        split: Matrices that come from single walks: what the inverse of the mass matrix is called,
            and the load, drift, spin and, if any, own part of others (``sweeps.split``). If they
            are the same as the others, either way will do.
    """

    vectors: str
    matrices: Mapping[str, Expr]
    products: Mapping[str, tuple[str, str]]
    split: tuple[str, Mapping[str, tuple[Expr, ...]]] | None = None


ASSEMBLIES: Mapping[str, Assembly] = Table(
    {
        "linearize_inverse": lambda: Assembly(
            "inverse_dynamics",
            {
                "tau_q": MATRICES["inverse_dynamics_q"],
                "tau_v": MATRICES["inverse_dynamics_v"],
                "tau_vdot": mass_matrix,
            },
            {},
        ),
        "linearize": lambda: replace(
            ASSEMBLIES["linearize_product"], split=ASSEMBLIES["linearize_split"].split
        ),
        "linearize_product": lambda: Assembly(
            "forward_dynamics",
            {
                "vdot_tau": mass_matrix_inverse.result,
                "tau_q": accelerated(linearized.B_D_columns),
                "tau_v": in_motion(linearized.A_D_columns),
            },
            {"vdot_q": ("vdot_tau", "tau_q"), "vdot_v": ("vdot_tau", "tau_v")},
        ),
        "linearize_split": lambda: Assembly(
            "forward_dynamics",
            {},
            {},
            (
                "vdot_tau",
                {
                    "vdot_q": tuple(map(accelerated, linearized.split_q)),
                    "vdot_v": tuple(map(in_motion, linearized.split_v)),
                },
            ),
        ),
    }
)
"""What is computed in one go where a backend can."""

WHOLE = frozenset(PROGRAMS) - {"hybrid_bias", "hybrid_dynamics", "momenta", "total_momentum"}
"""Programs about the motion of the whole robot: inertia X that a joint cannot feel, XH* = 0, may be
given to the parent link, M - X + Eφ X Eφ*. In the others an output, a force on a link, or an input,
an acceleration of a link, would tell."""

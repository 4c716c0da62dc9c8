# SPDX-License-Identifier: BSD-3-Clause
"""Everything that a robot can be asked for, by name, as expressions ready to be compiled."""

from collections.abc import Mapping
from types import MappingProxyType

from phistar.algebra.calculus import derivative
from phistar.algebra.ir import Expr, crm
from phistar.algebra.symbols import D, H, M, f_ext, mass_matrix, phi, tau, v, vdot
from phistar.algorithms import linearized
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

MATRICES: Mapping[str, Expr] = MappingProxyType(
    {
        "mass_matrix": mass_matrix,
        "mass_matrix_inverse": mass_matrix_inverse.result,
        "coriolis_matrix": coriolis,
        "hinge_inertia": D,
        "link_jacobians": phi.T @ H.T,
        "jacobian_rate": derivative(J, {"q": v}),
        "inverse_dynamics_q": in_motion(linearized.B_D_columns),
        "inverse_dynamics_v": in_motion(linearized.A_D_columns),
        "forward_dynamics_q": accelerated(-linearized.B_C),
        "forward_dynamics_v": in_motion(-linearized.A_C),
        **{f"inverse_dynamics_{k}": expr for k, expr in linearized.inverse_seconds.items()},
    }
)
"""Matrices that a robot can be asked for; the Coriolis matrix in v."""

PROGRAMS: Mapping[str, Mapping[str, Expr]] = MappingProxyType(
    {
        "link_velocities": {"V": V},
        "link_accelerations": {"alpha": phi.T @ (H.T @ vdot + crm(V) @ H.T @ v)},
        "falling_accelerations": {"V": V, "alpha": in_motion(alpha)},
        "inverse_dynamics": {"tau": in_motion(inverse_dynamics.result)},
        "bias_force": {"tau": in_motion(bias_force)},
        "gravity_force": {"tau": at_rest(bias_force)},
        "mass_matrix_times": {"tau": mass_matrix @ vdot},
        "mass_matrix_solve": {"vdot": mass_matrix_inverse.result @ tau},
        "forward_dynamics": {"vdot": in_motion(forward_dynamics.result)},
        "forward_dynamics_1": {"vdot": in_motion(forward_dynamics_1.result)},
        "forward_dynamics_2": {
            "vdot": in_motion(forward_dynamics_1.result),
            "alpha": in_motion(forward_dynamics_2.result),
        },
        "forward_dynamics_3": {"vdot": in_motion(forward_dynamics_3.result)},
        "hybrid_bias": {"a": ACCELERATION + H.T @ vdot, "b": FORCE},
        "hybrid_dynamics": {"vdot": forward_dynamics.result},
        "coriolis_times": {"tau": coriolis @ vdot},
        "coriolis_adjoint_times": {"tau": coriolis.T @ vdot},
        "momenta": {"h": M @ V},
        "total_momentum": {"h": phi @ M @ V},
        "hinge_inertias": {"d": D @ vdot},
        "generalised_force": {"tau": H @ phi @ f_ext},
        "inverse_dynamics_jvp": {"dtau": in_motion(linearized.inverse_change)},
        "inverse_dynamics_vjp": {
            f"w_{name}": in_motion(expr) for name, expr in linearized.inverse_weights.items()
        },
        "inverse_dynamics_hvp": {
            f"w_{name}": expr for name, expr in linearized.inverse_weights_change.items()
        },
        "mass_matrix_change": {"tau": linearized.mass_change},
        "forward_dynamics_jvp": {"dvdot": accelerated(linearized.forward_change)},
        "forward_dynamics_jvp_articulated": {
            "dvdot": accelerated(linearized.forward_change_articulated)
        },
        "forward_dynamics_vjp": {
            f"w_{name}": accelerated(expr) for name, expr in linearized.forward_weights.items()
        },
    }
)
"""Outputs of everything a robot can be asked for, as expressions in v, vdot, tau and f_ext."""

WHOLE = frozenset(PROGRAMS) - {"hybrid_bias", "hybrid_dynamics", "momenta", "total_momentum"}
"""Programs about the motion of the whole robot: inertia X that a joint cannot feel, XH* = 0, may be
given to the parent link, M - X + Eφ X Eφ*. In the others an output, a force on a link, or an input,
an acceleration of a link, would tell."""

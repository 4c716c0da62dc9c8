# SPDX-License-Identifier: BSD-3-Clause
"""The equations of motion of a robot: velocity, gravity and external forces put into the theorems.

Accelerations are spatial, in link axes: a = V × H*v + γ and b = V ×* MV - f, with the velocities
V = φ*H*v, gravity γ an upward acceleration of the ground and f the external forces on the links.
"""

from collections.abc import Mapping
from types import MappingProxyType

from phistar.algebra.ir import Expr, crf, crm, let
from phistar.algebra.symbols import D, H, M, M_hat, f_ext, gravity, mass_matrix, phi, tau, v, vdot
from phistar.algebra.traverse import substitute
from phistar.algorithms.forward_dynamics import (
    forward_dynamics,
    forward_dynamics_1,
    forward_dynamics_2,
    forward_dynamics_3,
)
from phistar.algorithms.innovations import mass_matrix_inverse
from phistar.algorithms.inverse_dynamics import a, b, bias_force, inverse_dynamics
from phistar.algorithms.kinematics import V

_ACCELERATION = let("a", crm(V) @ H.T @ v + gravity)
_FORCE = let("b", crf(V) @ M @ V - f_ext)


def in_motion(expr: Expr) -> Expr:
    """An expression in a and b as one in v, gravity and external forces."""
    return substitute(expr, {a: _ACCELERATION, b: _FORCE})


def at_rest(expr: Expr) -> Expr:
    """An expression in a and b for a robot that does not move: gravity alone."""
    return substitute(expr, {a: gravity, b: -f_ext})


coriolis = H @ phi @ (M_hat @ phi.T @ H.T + M @ phi.T @ crm(V) @ H.T)
"""The Christoffel-consistent Coriolis matrix: its product with v is the bias force without gravity,
and it adds up with its adjoint to the rate of the mass matrix."""


MATRICES: Mapping[str, Expr] = MappingProxyType(
    {
        "mass_matrix": mass_matrix,
        "mass_matrix_inverse": mass_matrix_inverse.result,
        "coriolis_matrix": coriolis,
        "hinge_inertia": D,
    }
)
"""Matrices that a robot can be asked for; the Coriolis matrix in v."""

PROGRAMS: Mapping[str, Mapping[str, Expr]] = MappingProxyType(
    {
        "link_velocities": {"V": V},
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
        "hybrid_bias": {"a": _ACCELERATION + H.T @ vdot, "b": _FORCE},
        "hybrid_dynamics": {"vdot": forward_dynamics.result},
        "coriolis_times": {"tau": coriolis @ vdot},
        "coriolis_adjoint_times": {"tau": coriolis.T @ vdot},
        "momenta": {"h": M @ V},
        "total_momentum": {"h": phi @ M @ V},
        "hinge_inertias": {"d": D @ vdot},
        "generalised_force": {"tau": H @ phi @ f_ext},
    }
)
"""Outputs of everything a robot can be asked for, as expressions in v, vdot, tau and f_ext."""

WHOLE = frozenset(PROGRAMS) - {"hybrid_bias", "hybrid_dynamics", "momenta", "total_momentum"}
"""Programs about the motion of the whole robot: inertia X that a joint cannot feel, XH* = 0, may be
given to the parent link, M - X + Eφ X Eφ*. In the others an output, a force on a link, or an input,
an acceleration of a link, would tell."""

# SPDX-License-Identifier: BSD-3-Clause
"""Dynamics of robots whose mimic joints are reduced, as rows of traced quantities.

What divides by the mass matrix goes over nodes of links that move together
(``scalar.trace.node_programs``), in the robot's own coordinates. ``embedded_request`` says which
row is what a name means on such a robot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from phistar.algebra.symbols import M, phi
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.inverse_dynamics import a, b
from phistar.algorithms.rotor_forces import rotor_force
from phistar.backends.policy import BundleWork, MatrixWork, NodeWork
from phistar.backends.robot_programs import OPTIONAL_INPUTS
from phistar.compile.requests import Outputs, Shape, Traced
from phistar.errors import ArgumentError
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.nodes import mimic_nodes

if TYPE_CHECKING:
    from phistar.scalar.lower import LoweringOptions
    from phistar.scalar.program import Unrolled
    from phistar.sweeps.schedule import Schedule

PREFIX = "embedded_"
"""Of the names of rows over nodes."""


def node_loads(turning_rotors: bool) -> Schedule:
    """The force on each link that the motion takes at v̇ = 0, and the joint forces of rotors."""
    from phistar.compile.pipeline import compile_outputs

    outputs: Outputs = (("f", in_motion(M @ phi.T @ a + b)),)
    if turning_rotors:
        outputs = (*outputs, ("tau", rotor_force))
    return compile_outputs("node_loads", outputs, regroup_inertia=True).schedule


def _forward_dynamics(model: Model) -> Unrolled:
    from phistar.scalar.trace import node_programs

    return node_programs.forward_dynamics(model, node_loads(model.turning_rotors))


def _solve(model: Model) -> Unrolled:
    from phistar.scalar.trace import node_programs

    return node_programs.solve(model)


def _inverse(model: Model) -> Unrolled:
    from phistar.scalar.trace import node_programs

    return node_programs.inverse(model)


def _log_determinant(model: Model) -> Unrolled:
    from phistar.scalar.trace import node_programs

    return node_programs.log_determinant(model)


def _linearize(model: Model) -> Unrolled:
    from phistar.compile.pipeline import lowered_bundle
    from phistar.scalar.lower_fused import to_fused
    from phistar.scalar.trace import node_programs

    bundle = lowered_bundle("linearize_inverse", model.turning_rotors)

    def forces(options: LoweringOptions) -> Unrolled:
        return to_fused(bundle, model, frozenset(OPTIONAL_INPUTS), options)

    return node_programs.linearize(model, node_loads(model.turning_rotors), forces)


def _tree_program(name: str, model: Model) -> Callable[[LoweringOptions], Unrolled]:
    from phistar.compile.pipeline import kernel
    from phistar.scalar.lower import to_unrolled

    schedule = kernel(name, model).schedule
    absent = frozenset(OPTIONAL_INPUTS)
    return lambda options: to_unrolled(schedule, model, absent, options=options)


def _jvp(model: Model) -> Unrolled:
    from phistar.scalar.trace import node_programs

    forces = _tree_program("inverse_dynamics_jvp", model)
    return node_programs.forward_dynamics_jvp(model, node_loads(model.turning_rotors), forces)


def _vjp(model: Model) -> Unrolled:
    from phistar.scalar.trace import node_programs

    forces = _tree_program("inverse_dynamics_vjp", model)
    return node_programs.forward_dynamics_vjp(model, node_loads(model.turning_rotors), forces)


def _node_work(passes: int) -> Callable[[Model], NodeWork | None]:
    """Of sweeps that are repeated; None where every joint has coordinates of its own."""

    def work(model: Model) -> NodeWork | None:
        if joint_map(model).one_to_one:
            return None
        sizes = [(len(node.bodies), len(node.entries)) for node in mimic_nodes(model)]
        links = sum(bodies for bodies, _ in sizes)
        columns = sum(bodies * entries for bodies, entries in sizes if bodies > 1)
        return NodeWork(links, columns, passes)

    return work


def _matrix_work(model: Model) -> MatrixWork | None:
    return None if joint_map(model).one_to_one else MatrixWork(model.nv, model.nv**2)


def _linearize_work(model: Model) -> BundleWork | None:
    joints = joint_map(model)
    return None if joints.one_to_one else BundleWork(len(joints.v_indices))


def _linearization_shapes(model: Model) -> dict[str, Shape]:
    square = (model.nv, model.nv)
    matrices = dict.fromkeys(("vdot_q", "vdot_v", "vdot_tau"), square)
    return {"vdot": (model.nv,), **matrices}


NODE_ROWS = (
    Traced(
        f"{PREFIX}forward_dynamics",
        ("q", "v", "tau"),
        lambda model: {"vdot": (model.nv,)},
        _forward_dynamics,
        _node_work(1),
        defined="v̇ = (X*𝓜X)⁻¹(τ - X*𝒞), X*𝓜X = (I + HₐφₐKₐ)Dₐ(I + HₐφₐKₐ)* over nodes",
    ),
    Traced(
        f"{PREFIX}mass_matrix_solve",
        ("q", "tau"),
        lambda model: {"vdot": (model.nv,)},
        _solve,
        _node_work(1),
        defined="(X*𝓜X)⁻¹τ, X*𝓜X = (I + HₐφₐKₐ)Dₐ(I + HₐφₐKₐ)* over nodes",
    ),
    Traced(
        f"{PREFIX}mass_matrix_inverse",
        ("q",),
        lambda model: (model.nv, model.nv),
        _inverse,
        _matrix_work,
        defined="(X*𝓜X)⁻¹, column by column over nodes",
    ),
    Traced(
        f"{PREFIX}log_determinant",
        ("q",),
        lambda model: (),
        _log_determinant,
        _node_work(1),
        defined="Σ log det Dₐ over nodes",
    ),
    Traced(
        f"{PREFIX}linearize",
        ("q", "v", "tau"),
        _linearization_shapes,
        _linearize,
        _linearize_work,
        defined="v̇ and -(X*𝓜X)⁻¹X* ∂τ X, ∂τ of inverse dynamics at that v̇",
    ),
    Traced(
        f"{PREFIX}forward_dynamics_jvp",
        ("q", "v", "tau", "dq", "dv", "dtau"),
        lambda model: {"dvdot": (model.nv,)},
        _jvp,
        _node_work(3),
        defined="(X*𝓜X)⁻¹(δτ - X* ∂τ X δ), ∂τ of inverse dynamics",
    ),
    Traced(
        f"{PREFIX}forward_dynamics_vjp",
        ("q", "v", "tau", "w"),
        lambda model: dict.fromkeys(("w_q", "w_v", "w_tau"), (model.nv,)),
        _vjp,
        _node_work(3),
        defined="u = (X*𝓜X)⁻¹w, and -X* ∂τ* X u of inverse dynamics",
    ),
)
"""Rows of ``TRACED``."""

_NAMES = frozenset(row.name.removeprefix(PREFIX) for row in NODE_ROWS)
_INSTEAD = {
    **{f"forward_dynamics_{n}": "forward_dynamics" for n in (1, 2, 3)},
    **dict.fromkeys(
        ("forward_dynamics_jvp_articulated", "forward_dynamics_jvp_split"), "forward_dynamics_jvp"
    ),
    **dict.fromkeys(("linearize_product", "linearize_split"), "linearize"),
    **{f"forward_dynamics_{x}{kind}": "linearize" for x in "qv" for kind in ("", "_split")},
}
"""Algorithms over single joints, and the quantity that is the same over nodes."""


def embedded_request(name: str, model: Model) -> str:
    """The row that a quantity is on a robot; itself where every joint has its coordinates."""
    if joint_map(model).one_to_one or name not in _NAMES:
        return name
    return f"{PREFIX}{name}"


def is_embedded(name: str) -> bool:
    """Whether a row is one over nodes, all of which divide by inertias."""
    return name.startswith(PREFIX)


def mimic_in_rounds(model: Model, keyword: str) -> ArgumentError:
    """For forward dynamics in rounds that reduced mimic joints are asked for."""
    return ArgumentError(
        f"robot '{model.name}' has reduced mimic joints, whose links move together: "
        f"{keyword}='parallel' needs a coordinate for every joint; load it with "
        f"mimic='independent', or leave the {keyword} out"
    )


def refuse_on_nodes(name: str, model: Model) -> None:
    """Raise for a quantity over single joints on a robot with reduced mimic joints.

    Raises:
        ArgumentError: With what to use instead.
    """
    if joint_map(model).one_to_one:
        return
    cure = "robot.minimal(q).operators() has such operators over nodes of links that move together"
    if name in _INSTEAD:
        cure = f'robot.compile("{_INSTEAD[name]}") is the same over nodes of links'
    raise ArgumentError(
        f"{name} is about single joints, and robot '{model.name}' has reduced mimic joints, which "
        f"share coordinates: {cure}; or load it with mimic='independent'"
    )

# SPDX-License-Identifier: BSD-3-Clause
"""First derivatives of inverse and forward dynamics: matrices, and products with vectors in O(n).

Derivatives with respect to q are along tangent vectors (..., nv): entry k says what changes as the
robot moves to ``integrate(q, ε e_k)``. For joints with one axis these are partial derivatives; for
rotations and free joints the steps are in the axes of the moving link, as velocities are. Forces on
frames are held as their ``reference`` says: fixed in the frame, or fixed in the world.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from phistar import backends, dynamics
from phistar.arguments import checked_state, refuse_singular
from phistar.arrays import Array
from phistar.backends.policy import decide_linearization
from phistar.compile import (
    Full,
    embedded_request,
    evaluate_bundle,
    joint_map,
    kernel,
    matrix,
    run_traced_results,
)
from phistar.derivatives.held_wrenches import matvec, wrench_stiffness
from phistar.derivatives.lie_jacobians import expm_and_phi1, transport
from phistar.dynamics import to_robot_coordinates, with_wrenches
from phistar.errors import ArgumentError, UnknownNameError, kind_of
from phistar.jobs import interpreter_slot
from phistar.memory_limits import refuse_large
from phistar.model.configuration import Coordinates
from phistar.model.kinematic_loops import require_tree
from phistar.model.model import Model
from phistar.model.model_cache import Entry, entries, keep_entry_on_frames
from phistar.model.wrenches import HeldTerm, Wrenches, check_numbers
from phistar.reprs import one_line_repr
from phistar.result_buffers import ResultBuffers
from phistar.thresholds import POLICY

FUNCTIONS: Mapping[str, tuple[str, str, str]] = {
    "inverse_dynamics": ("q", "v", "vdot"),
    "forward_dynamics": ("q", "v", "tau"),
}
"""What can be differentiated, and its arguments."""

FORWARD_METHODS = {
    "auto": "auto",
    **{"product": "product", "4": "product", "columns": "columns"},
    **{"split": "split", "6": "split"},
}
"""Of matrices: what is likely to be fastest; 𝓜⁻¹ times those of inverse dynamics; column by column
without the mass matrix, by rigid inertias or, split into single sweeps, by Υ and Ĵ. The numbers are
those of the algorithms of Jain and Rodriguez."""
_FUSED_KERNELS = {"auto": "linearize", "product": "linearize_product", "split": "linearize_split"}
"""Methods that have everything in one kernel, and its name."""
JVP_METHODS = {
    **{"rigid": "rigid", "articulated": "articulated", "5": "articulated"},
    **{"conventional": "conventional", "3": "conventional", "split": "split"},
}
"""Of the change of accelerations: in O(n) by the inertias of links, by articulated ones, or split
into single sweeps by Υ and Ĵ; or by solving with the mass matrix."""
_JVP_PROGRAMS = {"articulated": "_articulated", "split": "_split"}

_HELD_CHANGES = {
    "inverse_dynamics": HeldTerm("dtau", "dq", -1.0),
    "forward_dynamics": HeldTerm("dtau", "dq"),
}
"""What ``jvp`` has more if wrenches are held in the world: dτ is its output, or an input."""
_HELD_GRADIENTS = {
    "inverse_dynamics": HeldTerm("w_q", "w", -1.0, adjoint=True),
    "forward_dynamics": HeldTerm("w_q", "w_tau", adjoint=True),
}
"""The same for ``vjp``."""


@one_line_repr
@dataclass(frozen=True)
class InverseLinearization:
    """Joint forces and their derivatives at states: δτ = tau_q δq + tau_v δv + tau_vdot δv̇.

    Attributes:
        tau: (..., nv).
        tau_q: (..., nv, nv), along tangent steps of q.
        tau_v: (..., nv, nv).
        tau_vdot: (..., nv, nv), the mass matrix.
    """

    tau: Array
    tau_q: Array
    tau_v: Array
    tau_vdot: Array


@one_line_repr
@dataclass(frozen=True)
class Linearization:
    """Joint accelerations and their derivatives: δv̇ = vdot_q δq + vdot_v δv + vdot_tau δτ.

    Attributes:
        vdot: (..., nv).
        vdot_q: (..., nv, nv), along tangent steps of q.
        vdot_v: (..., nv, nv).
        vdot_tau: (..., nv, nv), the inverse of the mass matrix.
        model, v: The robot and its velocities (..., nv).
    """

    vdot: Array
    vdot_q: Array
    vdot_v: Array
    vdot_tau: Array
    model: Model = field(repr=False)
    v: Array = field(repr=False)

    @cached_property
    def transport(self) -> Array:
        """(..., nv, nv), what a step δq of a moving robot turns into besides δv.

        d(δq)/dt = transport δq + δv; zero for joints with one axis.
        """
        return broadcast_copy(transport(self.model, self.v), self.vdot_q.shape)

    @property
    def A(self) -> Array:
        """(..., 2 nv, 2 nv): d/dt (δq, δv) = A (δq, δv) + B δτ."""
        one = np.eye(self.vdot_q.shape[-1], dtype=self.vdot_q.dtype)
        eye = np.broadcast_to(one, self.vdot_q.shape)
        return np.block([[self.transport, eye], [self.vdot_q, self.vdot_v]])

    @property
    def B(self) -> Array:
        """(..., 2 nv, nv)."""
        return np.concatenate([np.zeros_like(self.vdot_tau), self.vdot_tau], axis=-2)

    def held(self, dt: float) -> tuple[Array, Array]:
        """A and B of the linear system over a time ``dt`` [s] with δτ held: exp(A dt) and so on.

        The linearization is taken as constant meanwhile; ``discretize`` gives the derivatives of a
        step of the robot itself.
        """
        whole, mean = expm_and_phi1(self.A * dt)
        return whole, dt * mean @ self.B


def linearize_inverse(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    vdot: Coordinates,
    wrenches: Wrenches | None = None,
) -> InverseLinearization:
    """Derivatives of inverse dynamics."""
    q, v, vdot = checked_state(model, q=q, v=v, vdot=vdot)
    check_numbers(model, {"q": q, "v": v, "vdot": vdot}, wrenches)
    refuse_large_tensors(model, 2, *_all_arrays((q, v, vdot), wrenches), count=3)
    joints = joint_map(model)
    given = {"v": joints.spread(v), "vdot": joints.spread(vdot)}
    found = _run_fused("linearize_inverse", model, q, given, wrenches, "linearize_inverse")
    if found is not None:
        names = ("tau_q", "tau_v", "tau_vdot")
        matrices = (to_robot_coordinates(model, found[name]) for name in names)
        return InverseLinearization(joints.gather(found["tau"]), *matrices)
    with interpreter_slot(), _stand_in_for("linearize_inverse", model):
        # Somebody waits for all of these programs: what is compiled beside them begins after that.
        tau = dynamics.inverse_dynamics(model, q, v, vdot, wrenches)
        tau_q, tau_v = _inverse_matrices(model, q, v, vdot, wrenches)
        mass = dynamics.mass_matrix(model, q)
    shape = (*tau.shape, model.nv)
    return InverseLinearization(tau, *(broadcast_copy(x, shape) for x in (tau_q, tau_v, mass)))


def linearize_inverse_into(
    out: ResultBuffers, model: Model, q: Coordinates, v: Coordinates, vdot: Coordinates
) -> InverseLinearization:
    """The same, in arrays that keep their zeros."""
    if not isinstance(out, ResultBuffers):
        raise ArgumentError(
            f"out is {kind_of(out)}, expected robot.result_buffers('linearize_inverse', batch)"
        )

    def otherwise(q: Array, v: Array, vdot: Array) -> Mapping[str, Array]:
        return vars(linearize_inverse(model, q, v, vdot))

    found = out.filled(model, "linearize_inverse", otherwise, q=q, v=v, vdot=vdot)
    return InverseLinearization(**found)


def linearize(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    wrenches: Wrenches | None = None,
    method: str = "auto",
) -> Linearization:
    """Derivatives of forward dynamics."""
    if not isinstance(method, str) or method not in FORWARD_METHODS:
        raise UnknownNameError("linearization method", method, FORWARD_METHODS)
    require_tree(model, "linearize")
    refuse_singular(model)
    q, v, tau = checked_state(model, q=q, v=v, tau=tau)
    return linearize_checked(model, q, v, tau, wrenches, method)


def linearize_checked(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches | None = None,
    method: str = "auto",
) -> Linearization:
    """The same for arrays that are checked."""
    check_numbers(model, {"q": q, "v": v, "tau": tau}, wrenches)
    arrays = _all_arrays((q, v, tau), wrenches)
    refuse_large_tensors(model, 2, *arrays, count=3)
    v = np.array(v)
    request, method = method, FORWARD_METHODS[method]
    if method == "auto":
        samples = math.prod(np.broadcast_shapes(*(x.shape[:-1] for x in arrays)))
        method = "columns" if fastest_method(model, samples) == "columns" else method
    row = _FUSED_KERNELS.get(method, "")
    joints = joint_map(model)
    if row and joints.one_to_one:
        given = {"v": joints.spread(v), "tau": joints.spread(tau)}
        found = _run_fused(row, model, q, given, wrenches, linearize_key(request))
        if found is not None:
            vdot = joints.gather(found["vdot"])
            names = ("vdot_q", "vdot_v", "vdot_tau")
            by_q, by_v, by_tau = (to_robot_coordinates(model, found[name]) for name in names)
            return Linearization(vdot, by_q, by_v, by_tau, model, v)
    if row and wrenches is None and not joints.one_to_one:
        found = _run_on_nodes("linearize", model, linearize_key(request), q, v, tau)
        if found is not None:
            return Linearization(**found, model=model, v=v)
    return _linearize_by_parts(model, q, v, tau, wrenches, row, method)


def _linearize_by_parts(
    model: Model, q: Array, v: Array, tau: Array, wrenches: Wrenches | None, row: str, method: str
) -> Linearization:
    """The same by several programs, one for each of what the derivatives consist of."""
    with interpreter_slot(), _stand_in_for(row, model):
        # Somebody waits for all of these programs: what is compiled beside them begins after that.
        vdot = dynamics.forward_dynamics(model, q, v, tau, wrenches)
        inverse = dynamics.mass_matrix_inverse(model, q)
        if method in ("columns", "split") and joint_map(model).one_to_one:
            kind = "_split" if method == "split" else ""
            vdot_q, vdot_v = _forward_columns(kind, model, q, v, tau, wrenches, inverse)
        else:
            tau_q, tau_v = _inverse_matrices(model, q, v, vdot, wrenches)
            vdot_q, vdot_v = _minus_product(inverse, tau_q), _minus_product(inverse, tau_v)
    shape = (*vdot.shape, model.nv)
    by_q, by_v, by_tau = (broadcast_copy(x, shape) for x in (vdot_q, vdot_v, inverse))
    return Linearization(vdot, by_q, by_v, by_tau, model, v)


def linearize_key(method: str) -> Hashable:
    """Key of the entry to a method; that of the usual one is a string, which keeps its hash."""
    return "linearize" if method == "auto" else ("linearize", method)


def refuse_large_tensors(model: Model, order: int, *arrays: Array, count: int = 1) -> None:
    """Raise before any work if derivatives would not fit into memory.

    Args:
        model: The robot.
        order: How many axes over the joints they have.
        arrays: Joint vectors, for the batch.
        count: How many derivatives there are.
    """
    count *= math.prod(np.broadcast_shapes(*(x.shape[:-1] for x in arrays)))
    shape = (count, *(model.nv,) * order)
    what = f"derivatives {shape} of robot '{model.name}'"
    cure = "take smaller batches, or products with vectors (linearize_along, jvp, vjp)"
    refuse_large(what, math.prod(shape) * np.result_type(*arrays).itemsize, cure)


def fastest_method(model: Model, samples: int = POLICY.simd_samples) -> str:
    """The method that ``"auto"`` begins with on a robot: ``"product"`` or ``"columns"``.

    Small robots get a kernel for everything, in which branches take the place of products where
    that is quicker (``scalar.lower_fused``).
    """
    return decide_linearization(model.nv, len(model.bodies), samples).strategy


def _all_arrays(vectors: Sequence[Array], wrenches: Wrenches | None) -> tuple[Array, ...]:
    """Joint vectors, and wrenches if there are any."""
    return (*vectors, *(() if wrenches is None else wrenches.arrays))


def _stand_in_for(row: str, model: Model) -> AbstractContextManager[None]:
    """For programs that are run in place of one for all of a bundle; they are its stand-ins as long
    as that is being compiled."""
    is_compiled = bool(row) and joint_map(model).one_to_one and backends.default() == "llvm"
    if is_compiled and kernel(row, model).build(model) is not None:
        from phistar.backends.llvm.run.tiers import stand_in

        return stand_in()
    return nullcontext()


def _run_fused(
    name: str,
    model: Model,
    q: Array,
    given: Mapping[str, Array],
    wrenches: Wrenches | None,
    request: Hashable,
) -> dict[str, Array] | None:
    """What one kernel gives; later calls with plain arrays go straight to it.

    Args:
        name: The bundle.
        model, q, given: The robot, its configurations and the other inputs.
        wrenches: On frames.
        request: Key of the entry; that of wrenches is added.
    """
    found = evaluate_bundle(name, model, q, with_wrenches(given, wrenches))
    if found is not None and joint_map(model).is_identity:
        code = kernel(name, model).build(model)
        assert code is not None
        order = ("q", *given)
        make = partial(code.entry, order, wrenches=None if wrenches is None else wrenches.at)
        _keep_entry(model, request, wrenches, make)
    return found


def _keep_entry(
    model: Model, request: Hashable, wrenches: Wrenches | None, make: Callable[[], Entry | None]
) -> None:
    """Later calls with plain arrays go straight to the code, as soon as there is an entry."""
    table = entries(model)
    key = request if wrenches is None else wrenches.request(request)
    if key in table or not (wrenches is None or wrenches.all_move):
        return
    entry = make()
    if entry is None:
        return
    if wrenches is None:
        table[request] = entry
    else:
        keep_entry_on_frames(table, request, key, entry)


def broadcast_copy(x: Array, shape: tuple[int, ...]) -> Array:
    """An array of its own with this shape."""
    return x if x.shape == shape else np.array(np.broadcast_to(x, shape))


def _inverse_matrices(
    model: Model, q: Array, v: Array, vdot: Array, wrenches: Wrenches | None
) -> tuple[Array, Array]:
    joints = joint_map(model)
    inputs = {"v": joints.spread(v), "vdot": joints.spread(vdot)}
    pushed = with_wrenches(inputs, wrenches)
    by_q = matrix("inverse_dynamics_q", Full(), model, q, pushed)
    by_v = matrix("inverse_dynamics_v", Full(), model, q, {"v": inputs["v"]})
    turned = wrench_stiffness(model, q, wrenches)
    tau_q = to_robot_coordinates(model, by_q)
    return tau_q if turned is None else tau_q - turned, to_robot_coordinates(model, by_v)


def _forward_columns(
    kind: str,
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches | None,
    inverse: Array,
) -> tuple[Array, Array]:
    joints = joint_map(model)
    inputs = {"v": joints.spread(v), "tau": joints.spread(tau)}
    pushed = with_wrenches(inputs, wrenches)
    by_q = matrix(f"forward_dynamics_q{kind}", Full(), model, q, pushed)
    by_v = matrix(f"forward_dynamics_v{kind}", Full(), model, q, {"v": inputs["v"]})
    turned = wrench_stiffness(model, q, wrenches)
    vdot_q = to_robot_coordinates(model, by_q)
    held = vdot_q if turned is None else vdot_q + inverse @ turned
    return held, to_robot_coordinates(model, by_v)


def jvp(
    model: Model,
    function: str,
    arguments: tuple[Coordinates, Coordinates, Coordinates],
    changes: Mapping[str, Coordinates],
    wrenches: Wrenches | None = None,
    method: str = "rigid",
) -> Array:
    """The change (..., nv) of a function's result along changes of its arguments, in O(n)."""
    names, known = _names_of_changes(function, changes)
    if not isinstance(method, str) or method not in JVP_METHODS:
        raise UnknownNameError("method", method, JVP_METHODS)
    request, method = ("jvp", function, method), JVP_METHODS[method]
    forward = function == "forward_dynamics"
    program = f"{function}_jvp" + (_JVP_PROGRAMS.get(method, "") if forward else "")
    moves = {name: changes.get(name, zero_tangent(model)) for name in known}
    checked = checked_state(model, **dict(zip(names, arguments, strict=True)), **moves)
    q, v, x, dq, dv, dx = checked
    check_numbers(model, dict(zip((*names, *known), checked, strict=True)), wrenches)
    if forward:
        refuse_singular(model)
        if not joint_map(model).one_to_one:
            return _jvp_on_nodes(model, checked, wrenches, request)
        if method == "conventional":
            return _jvp_by_inverse(model, checked, wrenches)
    joints = joint_map(model)
    turned = wrench_stiffness(model, q, wrenches)
    if turned is not None and forward:
        dx = dx + matvec(turned, dq)
    vectors = zip((*names[1:], *known), (v, x, dq, dv, dx), strict=True)
    inputs = {name: joints.spread(vector) for name, vector in vectors}
    order, term = (*names, *known), _HELD_CHANGES[function]
    (change,) = _run_program(program, model, q, inputs, wrenches, order, request, term).values()
    found = joints.gather(change)
    return found if turned is None or forward else found - matvec(turned, dq)


def _names_of_changes(
    function: str, changes: Mapping[str, Coordinates]
) -> tuple[tuple[str, str, str], list[str]]:
    """Names of a function's arguments and of their changes; those that are given are among them."""
    names = _names(function)
    known = [f"d{name}" for name in names]
    for name in changes:
        if name not in known:
            raise UnknownNameError("change", name, known, function)
    return names, known


def _jvp_by_inverse(model: Model, arrays: tuple[Array, ...], wrenches: Wrenches | None) -> Array:
    """δv̇ = 𝓜⁻¹(δτ - the change of inverse dynamics along δq and δv)."""
    q, v, tau, dq, dv, dtau = arrays
    vdot = dynamics.forward_dynamics(model, q, v, tau, wrenches)
    bent = jvp(model, "inverse_dynamics", (q, v, vdot), {"dq": dq, "dv": dv}, wrenches)
    return dynamics.solve(dynamics.mass_matrix(model, q), dtau - bent)


def _jvp_on_nodes(
    model: Model, arrays: tuple[Array, ...], wrenches: Wrenches | None, request: Hashable
) -> Array:
    """The change of accelerations of a robot whose mimic joints are reduced."""
    if wrenches is None:
        found = _run_on_nodes("forward_dynamics_jvp", model, request, *arrays)
        if found is not None:
            return found["dvdot"]
    q, v, tau, dq, dv, dtau = arrays
    vdot = dynamics.forward_dynamics(model, q, v, tau, wrenches)
    bent = jvp(model, "inverse_dynamics", (q, v, vdot), {"dq": dq, "dv": dv}, wrenches)
    return dynamics.mass_matrix_solve(model, q, dtau - bent)


def _run_on_nodes(
    name: str, model: Model, request: Hashable | None, *arrays: Array
) -> dict[str, Array] | None:
    """What machine code over nodes gives on robots with reduced mimic joints, if it is at hand.

    Args:
        name: The quantity.
        model: The robot.
        request: Where later calls with plain arrays find the entry; None: nowhere.
        arrays: Checked inputs.
    """
    key = (embedded_request(name, model),)
    found = run_traced_results(model, key, *arrays)
    entry = entries(model).get(key)
    if request is not None and entry is not None:
        entries(model)[request] = entry
    return found


def vjp(
    model: Model,
    function: str,
    arguments: tuple[Coordinates, Coordinates, Coordinates],
    weights: Coordinates,
    wrenches: Wrenches | None = None,
) -> dict[str, Array]:
    """Gradients (..., nv) of weights · result with respect to every argument, in O(n)."""
    names = _names(function)
    checked = checked_state(model, **dict(zip(names, arguments, strict=True)), w=weights)
    q, v, x, w = checked
    check_numbers(model, dict(zip((*names, "w"), checked, strict=True)), wrenches)
    joints = joint_map(model)
    forward = function == "forward_dynamics"
    if forward and not joints.one_to_one:
        if wrenches is None:
            on_nodes = _run_on_nodes("forward_dynamics_vjp", model, None, q, v, x, w)
            if on_nodes is not None:
                return {name: on_nodes[f"w_{name}"] for name in names}
        vdot = dynamics.forward_dynamics(model, q, v, x, wrenches)
        u = dynamics.mass_matrix_solve(model, q, w)
        found = vjp(model, "inverse_dynamics", (q, v, vdot), u, wrenches)
        return {"q": -found["q"], "v": -found["v"], "tau": u}
    if forward:
        refuse_singular(model)
    inputs = {"v": joints.spread(v), names[2]: joints.spread(x), "w": joints.spread(w)}
    called = {f"w_{name}": name for name in names}
    order, request, term = (*names, "w"), ("vjp", function), _HELD_GRADIENTS[function]
    program = f"{function}_vjp"
    found = _run_program(program, model, q, inputs, wrenches, order, request, term, called)
    result = {name: joints.gather(found[f"w_{name}"]) for name in names}
    turned = wrench_stiffness(model, q, wrenches)
    if turned is not None:
        back = np.swapaxes(turned, -1, -2)
        result["q"] = result["q"] + matvec(back, result["tau"] if forward else -w)
    return result


def _run_program(
    program: str,
    model: Model,
    q: Array,
    inputs: Mapping[str, Array],
    wrenches: Wrenches | None,
    order: tuple[str, ...],
    request: Hashable,
    term: HeldTerm,
    called: Mapping[str, str] | None = None,
) -> dict[str, Array]:
    """The outputs of a program; later calls with plain arrays in this order go straight to it.

    Args:
        program, model, q, inputs: What runs on what.
        wrenches: On frames; the outputs are those for forces that are held in the axes of links.
        order: Names of the arguments of the entry.
        request: Its key; that of wrenches is added.
        term: What the entry has more as wrenches are held in the world.
        called: Names of its results, where they differ from those of the outputs.
    """
    code = kernel(program, model).executable(model)
    found = code(q, with_wrenches(inputs, wrenches))
    if joint_map(model).is_identity:
        at = None if wrenches is None else wrenches.at.holding(term)
        make = partial(code.entry, order, called, wrenches=at)
        _keep_entry(model, request, wrenches, make)
    return found


def zero_tangent(model: Model) -> Array:
    """A change that is zero, of the least precision: the others decide on that of the result."""
    return np.zeros(model.nv, dtype=np.float32)


def _names(function: str) -> tuple[str, str, str]:
    if function not in FUNCTIONS:
        raise UnknownNameError("function with derivatives", function, FUNCTIONS)
    return FUNCTIONS[function]


def _minus_product(left: Array, right: Array) -> Array:
    result = np.asarray(left @ right)
    np.negative(result, out=result)
    return result

# SPDX-License-Identifier: BSD-3-Clause
"""First derivatives of inverse and forward dynamics: matrices, and products with vectors in O(n).

Derivatives with respect to q are along tangent vectors (..., nv): entry k says what changes as the
robot moves to ``integrate(q, ε e_k)``. For joints with one axis these are partial derivatives; for
rotations and free joints the steps are in the axes of the moving link, as velocities are. Forces on
frames are held as their ``reference`` says: fixed in the frame, or fixed in the world.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar import dynamics
from phistar.arguments import refuse_singular, state
from phistar.compile import Full, joint_map, kernel, matrix, together, together_executable
from phistar.derivatives import wrenches
from phistar.derivatives.quick import filled, ways
from phistar.derivatives.tangent import exponential, transport
from phistar.derivatives.wrenches import times
from phistar.dynamics import Forces, over_joints
from phistar.errors import UnknownNameError
from phistar.model.configuration import Coordinates
from phistar.model.model import Model

Array = NDArray[Any]

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
_TOGETHER = {"auto": "linearize", "product": "linearize_product", "split": "linearize_split"}
"""Methods that have everything in one kernel, and its name."""
_ROWS = {name: _TOGETHER.get(method, "") for name, method in FORWARD_METHODS.items()}
BLAS = 3
"""Operations of a dense matrix product in the time of one operation on links."""
COLUMN = 118
"""Operations that a link and column take more without the mass matrix than for inverse dynamics."""
SAMPLES = 4
"""That loops over links take side by side; fewer take as long."""
JVP_METHODS = {
    **{"rigid": "rigid", "articulated": "articulated", "5": "articulated"},
    **{"conventional": "conventional", "3": "conventional", "split": "split"},
}
"""Of the change of accelerations: in O(n) by the inertias of links, by articulated ones, or split
into single sweeps by Υ and Ĵ; or by solving with the mass matrix."""
_JVP_PROGRAMS = {"articulated": "_articulated", "split": "_split"}


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
        return whole(transport(self.model, self.v), self.vdot_q.shape)

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
        whole, mean = exponential(self.A * dt)
        return whole, dt * mean @ self.B


def linearize_inverse(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    vdot: Coordinates,
    forces: Forces | None = None,
    reference: str = "world_aligned",
) -> InverseLinearization:
    """Derivatives of inverse dynamics."""
    way = None if forces else ways(model).get("linearize_inverse")
    if way is not None and (ready := way(q, v, vdot)) is not None:
        return filled(InverseLinearization, ready)
    q, v, vdot = state(model, q=q, v=v, vdot=vdot)
    joints = joint_map(model)
    if not forces:
        given = {"v": joints.spread(v), "vdot": joints.spread(vdot)}
        found = _together("linearize_inverse", model, q, given)
        if found is not None:
            matrices = (over_joints(model, found[n]) for n in ("tau_q", "tau_v", "tau_vdot"))
            return InverseLinearization(joints.gather(found["tau"]), *matrices)
    tau = dynamics.inverse_dynamics(model, q, v, vdot, forces, reference)
    tau_q, tau_v = _inverse_matrices(model, q, v, vdot, forces, reference)
    mass = dynamics.mass_matrix(model, q)
    shape = (*tau.shape, model.nv)
    return InverseLinearization(tau, *(whole(x, shape) for x in (tau_q, tau_v, mass)))


def linearize(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    forces: Forces | None = None,
    reference: str = "world_aligned",
    method: str = "auto",
) -> Linearization:
    """Derivatives of forward dynamics."""
    if method not in FORWARD_METHODS:
        raise UnknownNameError("linearization method", method, FORWARD_METHODS)
    way = None if forces else ways(model).get(_ROWS[method])
    if way is not None and (ready := way(q, v, tau)) is not None:
        return filled(Linearization, {**ready, "model": model, "v": v})
    refuse_singular(model)
    q, v, tau = state(model, q=q, v=v, tau=tau)
    method = FORWARD_METHODS[method]
    if method == "auto":
        samples = math.prod(np.broadcast_shapes(q.shape[:-1], v.shape[:-1], tau.shape[:-1]))
        method = "columns" if fastest(model, samples) == "columns" else method
    row = _TOGETHER.get(method, "")
    joints = joint_map(model)
    if row and joints.one_to_one and not forces:
        given = {"v": joints.spread(v), "tau": joints.spread(tau)}
        found = _together(row, model, q, given)
        if found is not None:
            vdot = joints.gather(found["vdot"])
            names = ("vdot_q", "vdot_v", "vdot_tau")
            by_q, by_v, by_tau = (over_joints(model, found[name]) for name in names)
            return Linearization(vdot, by_q, by_v, by_tau, model, v)
    vdot = dynamics.forward_dynamics(model, q, v, tau, forces, reference)
    inverse = dynamics.mass_matrix_inverse(model, q)
    if method in ("columns", "split") and joints.one_to_one:
        kind = "_split" if method == "split" else ""
        vdot_q, vdot_v = _forward_columns(kind, model, q, v, tau, forces, reference, inverse)
    else:
        tau_q, tau_v = _inverse_matrices(model, q, v, vdot, forces, reference)
        vdot_q, vdot_v = _minus_product(inverse, tau_q), _minus_product(inverse, tau_v)
    shape = (*vdot.shape, model.nv)
    by_q, by_v, by_tau = (whole(x, shape) for x in (vdot_q, vdot_v, inverse))
    return Linearization(vdot, by_q, by_v, by_tau, model, v)


def fastest(model: Model, samples: int = SAMPLES) -> str:
    """The method that ``"auto"`` begins with on a robot: ``"product"`` or ``"columns"``.

    Both have the matrices of O(n²) in common. Beyond them, products of matrices with n rows take
    two times 2n³ operations, but quick ones, and columns so many for each link and column. So
    columns win from some 90 joints on, for single samples from some 350 on. Small robots get a
    kernel for everything, in which walks take the place of products where that is quicker
    (``scalar.assembly``).
    """
    n, links = model.nv, len(model.bodies)
    idle = SAMPLES / min(max(samples, 1), SAMPLES)
    return "product" if 2 * 2 * n**3 <= BLAS * idle * COLUMN * links * n else "columns"


def _together(
    name: str, model: Model, q: Array, given: Mapping[str, Array]
) -> dict[str, Array] | None:
    """What one kernel gives; later calls go straight to it."""
    found = together(name, model, q, given)
    code = together_executable(name, model)
    if joint_map(model).same and code is not None and code.way is not None:
        ways(model)[name] = code.way
    return found


def whole(x: Array, shape: tuple[int, ...]) -> Array:
    """An array of its own with this shape."""
    return x if x.shape == shape else np.array(np.broadcast_to(x, shape))


def _inverse_matrices(
    model: Model, q: Array, v: Array, vdot: Array, forces: Forces | None, reference: str
) -> tuple[Array, Array]:
    joints = joint_map(model)
    inputs = {"v": joints.spread(v), "vdot": joints.spread(vdot)}
    inputs |= wrenches.on_links(model, q, forces, reference)
    by_q = matrix("inverse_dynamics_q", Full(), model, q, inputs)
    by_v = matrix("inverse_dynamics_v", Full(), model, q, {"v": inputs["v"]})
    turned = wrenches.turned(model, q, forces, reference)
    tau_q = over_joints(model, by_q)
    return tau_q if turned is None else tau_q - turned, over_joints(model, by_v)


def _forward_columns(
    kind: str,
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    forces: Forces | None,
    reference: str,
    inverse: Array,
) -> tuple[Array, Array]:
    joints = joint_map(model)
    inputs = {"v": joints.spread(v), "tau": joints.spread(tau)}
    inputs |= wrenches.on_links(model, q, forces, reference)
    by_q = matrix(f"forward_dynamics_q{kind}", Full(), model, q, inputs)
    by_v = matrix(f"forward_dynamics_v{kind}", Full(), model, q, {"v": inputs["v"]})
    turned = wrenches.turned(model, q, forces, reference)
    vdot_q = over_joints(model, by_q)
    held = vdot_q if turned is None else vdot_q + inverse @ turned
    return held, over_joints(model, by_v)


def jvp(
    model: Model,
    function: str,
    arguments: tuple[Coordinates, Coordinates, Coordinates],
    changes: Mapping[str, Coordinates],
    forces: Forces | None = None,
    reference: str = "world_aligned",
    method: str = "rigid",
) -> Array:
    """The change (..., nv) of a function's result along changes of its arguments, in O(n)."""
    names = _names(function)
    known = [f"d{name}" for name in names]
    for name in changes:
        if name not in known:
            raise UnknownNameError("change", name, known, function)
    if method not in JVP_METHODS:
        raise UnknownNameError("method", method, JVP_METHODS)
    method = JVP_METHODS[method]
    forward = function == "forward_dynamics"
    program = f"{function}_jvp" + (_JVP_PROGRAMS.get(method, "") if forward else "")
    way = None if forces or method == "conventional" else ways(model).get(program)
    if way is not None and isinstance(v := arguments[1], np.ndarray):
        given = (changes[name] if name in changes else np.zeros(v.shape) for name in known)
        if (ready := way(*arguments, *given)) is not None:
            return next(iter(ready.values()))
    moves = {name: changes.get(name, no_change(model)) for name in known}
    checked = state(model, **dict(zip(names, arguments, strict=True)), **moves)
    q, v, x, dq, dv, dx = checked
    if forward:
        refuse_singular(model)
    if forward and (method == "conventional" or not joint_map(model).one_to_one):
        vdot = dynamics.forward_dynamics(model, q, v, x, forces, reference)
        along = {"dq": dq, "dv": dv}
        bent = jvp(model, "inverse_dynamics", (q, v, vdot), along, forces, reference)
        return dynamics.solve(dynamics.mass_matrix(model, q), dx - bent)
    joints = joint_map(model)
    vectors = zip((*names[1:], *known), checked[1:], strict=True)
    inputs = {name: joints.spread(vector) for name, vector in vectors}
    inputs |= wrenches.on_links(model, q, forces, reference)
    (change,) = _ran(program, model, q, inputs, (*names, *known)).values()
    turned = wrenches.turned(model, q, forces, reference)
    if turned is None:
        return joints.gather(change)
    less = times(turned, dq)
    return joints.gather(change) + (
        dynamics.mass_matrix_solve(model, q, less) if forward else -less
    )


def vjp(
    model: Model,
    function: str,
    arguments: tuple[Coordinates, Coordinates, Coordinates],
    weights: Coordinates,
    forces: Forces | None = None,
    reference: str = "world_aligned",
) -> dict[str, Array]:
    """Gradients (..., nv) of weights · result with respect to every argument, in O(n)."""
    names = _names(function)
    way = None if forces else ways(model).get(f"{function}_vjp")
    if way is not None and (ready := way(*arguments, weights)) is not None:
        return {name: ready[f"w_{name}"] for name in names}
    q, v, x, w = state(model, **dict(zip(names, arguments, strict=True)), w=weights)
    joints = joint_map(model)
    forward = function == "forward_dynamics"
    if forward and not joints.one_to_one:
        vdot = dynamics.forward_dynamics(model, q, v, x, forces, reference)
        u = dynamics.mass_matrix_solve(model, q, w)
        found = vjp(model, "inverse_dynamics", (q, v, vdot), u, forces, reference)
        return {"q": -found["q"], "v": -found["v"], "tau": u}
    if forward:
        refuse_singular(model)
    inputs = {"v": joints.spread(v), names[2]: joints.spread(x), "w": joints.spread(w)}
    inputs |= wrenches.on_links(model, q, forces, reference)
    found = _ran(f"{function}_vjp", model, q, inputs, (*names, "w"))
    result = {name: joints.gather(found[f"w_{name}"]) for name in names}
    turned = wrenches.turned(model, q, forces, reference)
    if turned is not None:
        back = np.swapaxes(turned, -1, -2)
        result["q"] = result["q"] + times(back, result["tau"] if forward else -w)
    return result


def _ran(
    program: str, model: Model, q: Array, inputs: Mapping[str, Array], order: Sequence[str]
) -> dict[str, Array]:
    """The outputs of a program; later calls with plain arrays in this order go straight to it."""
    code = kernel(program).executable(model)
    found = code(q, inputs)
    table = ways(model)
    if joint_map(model).same and program not in table and "f_ext" not in inputs:
        table[program] = None
        code.ways(order, partial(table.__setitem__, program))
    return found


def no_change(model: Model) -> Array:
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

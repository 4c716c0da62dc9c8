# SPDX-License-Identifier: BSD-3-Clause
"""Second derivatives: tensors for batches, and products with two vectors in O(n).

Third-order tensors are indexed [result, first, second]: entry (i, j, k) is the derivative of column
j of a first derivative along the tangent step e_k. Steps of rotations do not commute, so for joints
with several axes the q-q part is not symmetric in (j, k): it differs by the torsion of the steps,
-B G*[H* e_j, H* e_k], with B the first derivative. That is no error, and is not removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phistar import dynamics
from phistar.arguments import checked_state, refuse_singular
from phistar.arrays import Array
from phistar.compile import Full, joint_map, kernel, matrix
from phistar.derivatives.first import (
    FUNCTIONS,
    broadcast_copy,
    jvp,
    linearize,
    refuse_large_tensors,
    vjp,
    zero_tangent,
)
from phistar.derivatives.held_wrenches import matvec, wrench_stiffness_change
from phistar.dynamics import to_robot_coordinates, with_wrenches
from phistar.errors import UnknownNameError
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.wrenches import Wrenches, check_numbers
from phistar.reprs import one_line_repr


@one_line_repr
@dataclass(frozen=True)
class InverseSecond:
    """Second derivatives of joint forces, each (..., nv, nv, nv) as [i, j, k].

    Attributes:
        qq: Of tau_q along steps of q.
        qv: Of tau_q with respect to v; of tau_v along steps of q it is the transpose in (j, k).
        vv: Of tau_v with respect to v; symmetric.
        q_vdot: Of tau_q with respect to vdot; as [i, k, j] that of the mass matrix along q.
    """

    qq: Array
    qv: Array
    vv: Array
    q_vdot: Array


@one_line_repr
@dataclass(frozen=True)
class ForwardSecond:
    """Second derivatives of joint accelerations, each (..., nv, nv, nv) as [i, j, k].

    Attributes:
        qq: Of vdot_q along steps of q.
        qv: Of vdot_q with respect to v.
        vv: Of vdot_v with respect to v; symmetric.
        q_tau: Of vdot_q with respect to tau.
    """

    qq: Array
    qv: Array
    vv: Array
    q_tau: Array


def mass_matrix_q(model: Model, q: Coordinates) -> Array:
    """∂𝓜/∂q (..., nv, nv, nv): entry (i, j, k) is the change of 𝓜_ij along the step e_k."""
    (q,) = checked_state(model, q=q)
    return _slices(model, "mass_matrix_q", q, {}, "vdot")


def mass_matrix_qq(model: Model, q: Coordinates) -> Array:
    """∂²𝓜/∂q² (..., nv, nv, nv, nv): [i, j, k, l] is the change of ∂𝓜_ij/∂q_k along e_l."""
    (q,) = checked_state(model, q=q)
    refuse_large_tensors(model, 4, q)
    units = joint_map(model).spread(np.eye(model.nv, dtype=q.dtype))
    inputs = {"vdot": units[:, None, :], "dq": units}
    found = matrix("mass_matrix_qq", Full(), model, q[..., None, None, :], inputs)
    return np.moveaxis(to_robot_coordinates(model, found), -2, -4)


def inverse_second(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    vdot: Coordinates,
    wrenches: Wrenches | None = None,
) -> InverseSecond:
    """Second derivatives of inverse dynamics."""
    q, v, vdot = checked_state(model, q=q, v=v, vdot=vdot)
    check_numbers(model, {"q": q, "v": v, "vdot": vdot}, wrenches)
    qq = _slices(model, "inverse_dynamics_qq", q, {"v": v, "vdot": vdot}, "dq", wrenches)
    turned = _wrench_tensor(model, q, wrenches)
    qq = qq if turned is None else qq + turned
    qv = _slices(model, "inverse_dynamics_qv", q, {"v": v}, "dq")
    vv = _slices(model, "inverse_dynamics_vv", q, {"v": v}, "dv")
    mass = np.swapaxes(mass_matrix_q(model, q), -1, -2)
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in (q, v, vdot)), qq.shape[:-3])
    return InverseSecond(*(broadcast_copy(x, (*batch, *x.shape[-3:])) for x in (qq, qv, vv, mass)))


def forward_second(
    model: Model, q: Coordinates, v: Coordinates, tau: Coordinates, wrenches: Wrenches | None = None
) -> ForwardSecond:
    """Second derivatives of forward dynamics: 𝓜v̇ + C = τ differentiated twice."""
    q, v, tau = checked_state(model, q=q, v=v, tau=tau)
    first = linearize(model, q, v, tau, wrenches)
    inner = inverse_second(model, q, v, first.vdot, wrenches)
    mass_q = inner.q_vdot
    inverse = first.vdot_tau

    def solved(tensor: Array) -> Array:
        return np.asarray(-np.einsum("...il,...ljk->...ijk", inverse, tensor))

    def felt(change: Array) -> Array:
        """What a change of the accelerations adds to column j of tau_q."""
        return np.asarray(np.einsum("...ijl,...lk->...ijk", mass_q, change))

    bent = felt(first.vdot_q)
    return ForwardSecond(
        solved(inner.qq + bent + np.swapaxes(bent, -1, -2)),
        solved(inner.qv + felt(first.vdot_v)),
        solved(inner.vv),
        solved(felt(inverse)),
    )


def _slices(
    model: Model,
    name: str,
    q: Array,
    vectors: Mapping[str, Array],
    direction: str,
    wrenches: Wrenches | None = None,
) -> Array:
    """A tensor from its slices: a matrix for each unit direction, all in one batch."""
    refuse_large_tensors(model, 3, q)
    joints = joint_map(model)
    inputs = {key: joints.spread(x[..., None, :]) for key, x in vectors.items()}
    inputs[direction] = joints.spread(np.eye(model.nv, dtype=q.dtype))
    given = with_wrenches(inputs, None if wrenches is None else wrenches.with_axis())
    found = to_robot_coordinates(model, matrix(name, Full(), model, q[..., None, :], given))
    return np.moveaxis(found, -3, -2)


def _wrench_tensor(model: Model, q: Array, wrenches: Wrenches | None) -> Array | None:
    """What the second derivatives of joint forces have more if forces are held in the world."""
    apart = None if wrenches is None else wrenches.with_axis()
    here, units = q[..., None, :], np.eye(model.nv, dtype=q.dtype)
    found = wrench_stiffness_change(model, here, units, apart)
    if found is None:
        return None
    less, moved = found
    bent = matrix("inverse_dynamics_q", Full(), model, here, _wrench_only_inputs(model, moved))
    return np.moveaxis(to_robot_coordinates(model, bent) - less, -3, -1)


def _wrench_only_inputs(model: Model, wrenches: Wrenches) -> dict[str, Array | Wrenches]:
    """Inputs of inverse dynamics at rest, without weight: what wrenches do by themselves."""
    none = np.zeros(len(joint_map(model).v_indices))
    weight = np.zeros((len(model.bodies), 6))
    return {"v": none, "vdot": none, "gravity": weight, "f_ext": wrenches}


def hvp(
    model: Model,
    function: str,
    arguments: tuple[Coordinates, Coordinates, Coordinates],
    weights: Coordinates,
    changes: Mapping[str, Coordinates],
    wrenches: Wrenches | None = None,
) -> dict[str, Array]:
    """The change of ``vjp`` along changes of the arguments, in O(n)."""
    if function not in FUNCTIONS:
        raise UnknownNameError("function with derivatives", function, FUNCTIONS)
    names = FUNCTIONS[function]
    known = [f"d{name}" for name in names]
    for name in changes:
        if name not in known:
            raise UnknownNameError("change", name, known, function)
    moves = {name: changes.get(name, zero_tangent(model)) for name in known}
    given = dict(zip(names, arguments, strict=True))
    q, v, x, w, dq, dv, dx = checked = checked_state(model, **given, w=weights, **moves)
    check_numbers(model, dict(zip((*names, "w", *known), checked, strict=True)), wrenches)
    if function == "inverse_dynamics":
        return inverse_hvp(model, q, v, x, w, (dq, dv, dx), wrenches)
    refuse_singular(model)
    vdot = dynamics.forward_dynamics(model, q, v, x, wrenches)
    moved = {"dq": dq, "dv": dv, "dtau": dx}
    dvdot = jvp(model, function, (q, v, x), moved, wrenches)
    u = dynamics.mass_matrix_solve(model, q, w)
    du = -dynamics.mass_matrix_solve(model, q, mass_change(model, q, dq, u))
    second = inverse_hvp(model, q, v, vdot, u, (dq, dv, dvdot), wrenches)
    first = vjp(model, "inverse_dynamics", (q, v, vdot), du, wrenches)
    return {"q": -second["q"] - first["q"], "v": -second["v"] - first["v"], "tau": du}


def inverse_hvp(
    model: Model,
    q: Array,
    v: Array,
    vdot: Array,
    w: Array,
    along: tuple[Array, Array, Array],
    wrenches: Wrenches | None,
) -> dict[str, Array]:
    """``hvp`` of inverse dynamics for checked arrays."""
    joints = joint_map(model)
    names = ("v", "vdot", "w", "dq", "dv", "dvdot")
    vectors = zip(names, (v, vdot, w, *along), strict=True)
    inputs = {name: joints.spread(x) for name, x in vectors}
    found = kernel("inverse_dynamics_hvp", model)(model, q, with_wrenches(inputs, wrenches))
    result = {name.removeprefix("w_"): joints.gather(x) for name, x in found.items()}
    held = wrench_stiffness_change(model, q, along[0], wrenches)
    if held is not None:
        less, moved = held
        alone = {"w": inputs["w"], **_wrench_only_inputs(model, moved)}
        bent = joints.gather(kernel("inverse_dynamics_vjp", model)(model, q, alone)["w_q"])
        result["q"] = result["q"] + bent - matvec(np.swapaxes(less, -1, -2), w)
    return result


def mass_change(model: Model, q: Array, dq: Array, w: Array) -> Array:
    """(d𝓜 along dq) w."""
    joints = joint_map(model)
    inputs = {"dq": joints.spread(dq), "w": joints.spread(w)}
    return joints.gather(kernel("mass_matrix_change")(model, q, inputs)["tau"])

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar import dynamics
from phistar.arguments import refuse_singular, state
from phistar.compile import Full, joint_map, kernel, matrix
from phistar.derivatives.first import FUNCTIONS, jvp, linearize, no_change, vjp, whole
from phistar.dynamics import over_joints
from phistar.errors import UnknownNameError
from phistar.model.configuration import Coordinates
from phistar.model.model import Model

Array = NDArray[Any]


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
    (q,) = state(model, q=q)
    return _slices(model, "mass_matrix_q", q, {}, "vdot")


def mass_matrix_qq(model: Model, q: Coordinates) -> Array:
    """∂²𝓜/∂q² (..., nv, nv, nv, nv): [i, j, k, l] is the change of ∂𝓜_ij/∂q_k along e_l."""
    (q,) = state(model, q=q)
    units = joint_map(model).spread(np.eye(model.nv, dtype=q.dtype))
    inputs = {"vdot": units[:, None, :], "dq": units}
    found = matrix("mass_matrix_qq", Full(), model, q[..., None, None, :], inputs)
    return np.moveaxis(over_joints(model, found), -2, -4)


def inverse_second(
    model: Model, q: Coordinates, v: Coordinates, vdot: Coordinates
) -> InverseSecond:
    """Second derivatives of inverse dynamics."""
    q, v, vdot = state(model, q=q, v=v, vdot=vdot)
    vectors = {"v": v, "vdot": vdot}
    qq = _slices(model, "inverse_dynamics_qq", q, vectors, "dq")
    qv = _slices(model, "inverse_dynamics_qv", q, {"v": v}, "dq")
    vv = _slices(model, "inverse_dynamics_vv", q, {"v": v}, "dv")
    mass = np.swapaxes(mass_matrix_q(model, q), -1, -2)
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in (q, v, vdot)))
    return InverseSecond(*(whole(x, (*batch, *x.shape[-3:])) for x in (qq, qv, vv, mass)))


def forward_second(model: Model, q: Coordinates, v: Coordinates, tau: Coordinates) -> ForwardSecond:
    """Second derivatives of forward dynamics: 𝓜v̇ + C = τ differentiated twice."""
    q, v, tau = state(model, q=q, v=v, tau=tau)
    first = linearize(model, q, v, tau)
    inner = inverse_second(model, q, v, first.vdot)
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
    model: Model, name: str, q: Array, vectors: Mapping[str, Array], direction: str
) -> Array:
    """A tensor from its slices: a matrix for each unit direction, all in one batch."""
    joints = joint_map(model)
    inputs = {key: joints.spread(x[..., None, :]) for key, x in vectors.items()}
    inputs[direction] = joints.spread(np.eye(model.nv, dtype=q.dtype))
    found = over_joints(model, matrix(name, Full(), model, q[..., None, :], inputs))
    return np.moveaxis(found, -3, -2)


def hvp(
    model: Model,
    function: str,
    arguments: tuple[Coordinates, Coordinates, Coordinates],
    weights: Coordinates,
    changes: Mapping[str, Coordinates],
) -> dict[str, Array]:
    """The change of ``vjp`` along changes of the arguments, in O(n)."""
    if function not in FUNCTIONS:
        raise UnknownNameError("function with derivatives", function, FUNCTIONS)
    names = FUNCTIONS[function]
    known = [f"d{name}" for name in names]
    for name in changes:
        if name not in known:
            raise UnknownNameError("change", name, known, function)
    moves = {name: changes.get(name, no_change(model)) for name in known}
    given = dict(zip(names, arguments, strict=True))
    q, v, x, w, dq, dv, dx = state(model, **given, w=weights, **moves)
    if function == "inverse_dynamics":
        return _inverse_hvp(model, q, v, x, w, (dq, dv, dx))
    refuse_singular(model)
    vdot = dynamics.forward_dynamics(model, q, v, x)
    dvdot = jvp(model, function, (q, v, x), {"dq": dq, "dv": dv, "dtau": dx})
    u = dynamics.mass_matrix_solve(model, q, w)
    du = -dynamics.mass_matrix_solve(model, q, _mass_change(model, q, dq, u))
    second = _inverse_hvp(model, q, v, vdot, u, (dq, dv, dvdot))
    first = vjp(model, "inverse_dynamics", (q, v, vdot), du)
    return {"q": -second["q"] - first["q"], "v": -second["v"] - first["v"], "tau": du}


def _inverse_hvp(
    model: Model, q: Array, v: Array, vdot: Array, w: Array, along: tuple[Array, Array, Array]
) -> dict[str, Array]:
    joints = joint_map(model)
    names = ("v", "vdot", "w", "dq", "dv", "dvdot")
    vectors = zip(names, (v, vdot, w, *along), strict=True)
    found = kernel("inverse_dynamics_hvp")(model, q, {n: joints.spread(x) for n, x in vectors})
    return {name.removeprefix("w_"): joints.gather(x) for name, x in found.items()}


def _mass_change(model: Model, q: Array, dq: Array, w: Array) -> Array:
    """(d𝓜 along dq) w."""
    joints = joint_map(model)
    inputs = {"dq": joints.spread(dq), "w": joints.spread(w)}
    return joints.gather(kernel("mass_matrix_change")(model, q, inputs)["tau"])

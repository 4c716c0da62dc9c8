# SPDX-License-Identifier: BSD-3-Clause
"""Dynamics of a model: compiled programs between a user's arrays and the bodies' streams.

All functions take arrays with leading batch axes or dicts by joint name, and refuse NaN. Mimic
joints are reduced exactly: forces of followers are summed into their leaders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.arguments import check_out, refuse_mimic, refuse_nan, refuse_singular, shaped, state
from phistar.compile import (
    Diag,
    Full,
    joint_map,
    kernel,
    matrix,
    matrix_executable,
    preferred,
)
from phistar.errors import ShapeError, UnknownNameError
from phistar.model.configuration import Coordinates, batch_shape
from phistar.model.kinematics import body_poses, check_reference, reference_pose
from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.model.tables import Tables
from phistar.spatial import force_transform, pose_inverse

Array = NDArray[Any]
Forces = Mapping[str, ArrayLike]
Quick = Callable[..., "Array | None"]

METHODS = {
    "articulated": "forward_dynamics",
    "1": "forward_dynamics_1",
    "2": "forward_dynamics_2",
    "3": "forward_dynamics_3",
    "4": "forward_dynamics",
}
"""Forward-dynamics algorithms by name; the numbers are those of Rodriguez & Kreutz-Delgado."""


quick_table: Tables[str, Quick | None] = Tables()
"""Quick ways of a model by name of the program or matrix, see ``backends.base.Executable.quick``.

They come here when it first runs.
"""


def inverse_dynamics(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    vdot: Coordinates,
    forces: Forces | None = None,
    reference: str = "world_aligned",
    out: Array | None = None,
) -> Array:
    """Joint forces (..., nv) that give the accelerations ``vdot``."""
    arrays = shaped(model, q=q, v=v, vdot=vdot)
    return _run(model, "inverse_dynamics", arrays, forces, reference, out=out)


def bias_force(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    forces: Forces | None = None,
    reference: str = "world_aligned",
    out: Array | None = None,
) -> Array:
    """Joint forces (..., nv) at zero acceleration: Coriolis, centrifugal and gravity."""
    return _run(model, "bias_force", shaped(model, q=q, v=v), forces, reference, out=out)


def gravity_force(model: Model, q: Coordinates, out: Array | None = None) -> Array:
    """Joint forces (..., nv) that hold the robot at rest against gravity."""
    return _run(model, "gravity_force", shaped(model, q=q), out=out)


def forward_dynamics(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    forces: Forces | None = None,
    reference: str = "world_aligned",
    method: str = "articulated",
    out: Array | None = None,
) -> Array:
    """Joint accelerations (..., nv) under the joint forces ``tau``."""
    if method not in METHODS:
        raise UnknownNameError("forward-dynamics method", method, METHODS)
    refuse_singular(model)
    arrays = shaped(model, q=q, v=v, tau=tau)
    if not joint_map(model).one_to_one:
        bias = bias_force(model, q, v, forces, reference)
        refuse_nan("tau", arrays["tau"])
        return _copied(solve(mass_matrix(model, q), arrays["tau"] - bias), out)
    name = preferred("forward_dynamics") if method == "articulated" else METHODS[method]
    return _run(model, name, arrays, forces, reference, "vdot", out)


def hybrid_dynamics(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    vdot: Coordinates,
    prescribed: Sequence[str],
    forces: Forces | None = None,
    reference: str = "world_aligned",
) -> tuple[Array, Array]:
    """Accelerations of the free joints and forces of the prescribed ones, each (..., nv).

    Forward dynamics with the hinge map of the free joints: what the prescribed joints do is one
    more acceleration of their links.
    """
    joints = joint_map(model)
    refuse_mimic(model)
    q, v, tau, vdot = state(model, q=q, v=v, tau=tau, vdot=vdot)
    held = np.zeros(model.nv, dtype=bool)
    for name in prescribed:
        if name not in model.joint_names:
            raise UnknownNameError("independent joint", name, model.joint_names, model.name)
        held[model.joints[name].v_slice] = True
    locked = frozenset(b.index for b in model.bodies if b.joint in set(prescribed))
    refuse_singular(model, locked)
    given = np.where(held, vdot, 0.0)
    inputs = {"v": joints.spread(v), "vdot": joints.spread(given)}
    if forces:
        inputs["f_ext"] = link_forces(model, q, forces, reference)
    bias = kernel("hybrid_bias")(model, q, inputs)
    free = ~held[joints.places]
    inputs = {"tau": joints.spread(tau)[..., free], **bias}
    solved = kernel("hybrid_dynamics")(model, q, inputs, locked=locked)["vdot"]
    batch = np.broadcast_shapes(given.shape[:-1], solved.shape[:-1])
    result = np.broadcast_to(given, (*batch, model.nv)).astype(np.result_type(given, solved))
    result[..., joints.places[free]] = solved
    return result, inverse_dynamics(model, q, v, result, forces, reference)


def mass_matrix_times(model: Model, q: Coordinates, vdot: Coordinates) -> Array:
    """𝓜 vdot (..., nv) in O(n), without the matrix."""
    return _run(model, "mass_matrix_times", shaped(model, q=q, vdot=vdot))


def mass_matrix_solve(model: Model, q: Coordinates, tau: Coordinates) -> Array:
    """𝓜⁻¹ tau (..., nv) in O(n) from the factors (by solving where mimic joints are reduced)."""
    refuse_singular(model)
    arrays = shaped(model, q=q, tau=tau)
    if not joint_map(model).one_to_one:
        refuse_nan("tau", arrays["tau"])
        return solve(mass_matrix(model, q), arrays["tau"])
    return _run(model, "mass_matrix_solve", arrays, output="vdot")


def generalised_force(model: Model, q: Coordinates, forces: Forces, reference: str) -> Array:
    """Joint forces (..., nv) that wrenches on frames amount to: J* f in O(n)."""
    return _run(model, "generalised_force", shaped(model, q=q), forces, reference)


def mass_matrix(model: Model, q: Coordinates) -> Array:
    """Joint-space inertia (..., nv, nv), rotor inertia included."""
    (q,) = state(model, q=q)
    return _matrix(model, "mass_matrix", q)


def mass_matrix_inverse(model: Model, q: Coordinates) -> Array:
    """Inverse of the joint-space inertia (..., nv, nv); it is not formed on the way."""
    refuse_singular(model)
    (q,) = state(model, q=q)
    if not joint_map(model).one_to_one:
        return np.asarray(np.linalg.inv(mass_matrix(model, q)))
    return _matrix(model, "mass_matrix_inverse", q)


def coriolis_times(
    model: Model, q: Coordinates, v: Coordinates, x: Coordinates, *, adjoint: bool = False
) -> Array:
    """C x, or C* x, (..., nv) in O(n), without the matrix."""
    arrays = shaped(model, q=q, v=v, x=x)
    arrays["vdot"] = arrays.pop("x")
    return _run(model, "coriolis_adjoint_times" if adjoint else "coriolis_times", arrays)


def coriolis_matrix(model: Model, q: Coordinates, v: Coordinates) -> Array:
    """C (..., nv, nv) with C v = bias force without gravity and C + C* = d𝓜/dt."""
    q, v = state(model, q=q, v=v)
    return _matrix(model, "coriolis_matrix", q, v=v)


def log_determinant(model: Model, q: Coordinates) -> Array:
    """log det 𝓜 (...), the sum over the joints of log det D."""
    refuse_singular(model)
    (q,) = state(model, q=q)
    if not joint_map(model).one_to_one:
        return np.asarray(np.linalg.slogdet(mass_matrix(model, q))[1])
    blocks = matrix("hinge_inertia", Diag(), model, q)
    total = np.zeros(q.shape[:-1], np.finfo(q.dtype).dtype)
    single = [block[..., 0] for block in blocks if block.shape[-1] == 1]
    if single:
        total += np.log(np.abs(np.concatenate(single, axis=-1))).sum(axis=-1)
    for block in blocks:
        if block.shape[-1] > 1:
            total += np.linalg.slogdet(block)[1]
    return total


def link_forces(model: Model, q: Array, forces: Forces, reference: str) -> Array:
    """Wrenches on named frames as forces on the bodies, link axes (..., bodies, 6)."""
    total = np.zeros((*q.shape[:-1], len(model.bodies), 6), dtype=np.finfo(q.dtype).dtype)
    kind = check_reference(reference)
    poses = body_poses(model, q)
    for name, value in forces.items():
        wrench = np.asarray(value)
        wrench = wrench if wrench.dtype.kind in "fc" else wrench.astype(float)
        if wrench.ndim == 0 or wrench.shape[-1] != 6:
            raise ShapeError(f"forces[{name!r}]", wrench.shape, "(..., 6)", f"robot '{model.name}'")
        refuse_nan(f"forces[{name!r}]", wrench)
        frame = model.frame(name)
        if frame.body == GROUND:
            continue
        body = poses[..., frame.body, :, :]
        seat = pose_inverse(body) @ reference_pose(body @ frame.body_pose, kind)
        batch = batch_shape(model, {"q": total[..., 0, :], f"forces[{name!r}]": wrench})
        total = np.broadcast_to(total, (*batch, *total.shape[-2:])).astype(
            np.result_type(total, wrench, seat)
        )
        total[..., frame.body, :] += (force_transform(seat) @ wrench[..., None])[..., 0]
    return total


def _run(
    model: Model,
    name: str,
    arrays: dict[str, Array],
    forces: Forces | None = None,
    reference: str = "world_aligned",
    output: str = "tau",
    out: Array | None = None,
) -> Array:
    """Run a program on joint vectors (..., nv); accelerations and forces come back the same way."""
    joints = joint_map(model)
    inputs = dict(arrays)
    q = inputs.pop("q")
    vectors = {key: joints.spread(x) for key, x in inputs.items()}
    if forces:
        refuse_nan("q", q)
        vectors["f_ext"] = link_forces(model, q, forces, reference)
        batch_shape(model, {"q": q, **inputs, "forces": vectors["f_ext"][..., 0, :]})
    here = None
    if out is not None and joints.same:
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays.values()))
        if "f_ext" in vectors:
            batch = np.broadcast_shapes(batch, vectors["f_ext"].shape[:-2])
        check_out(out, (*batch, model.nv), np.result_type(*arrays.values(), *vectors.values()))
        here = {output: out} if out.flags.c_contiguous else None
    executable = kernel(name).executable(model)
    results, finite = executable.run(q, vectors, here)
    table = quick_table(model)
    if joints.same and name not in table and len(results) == 1:
        table[name] = None
        executable.quick(tuple(arrays), partial(table.__setitem__, name))
    if not finite:
        for key, x in arrays.items():
            refuse_nan("x" if key == "vdot" and "coriolis" in name else key, x)
    # A follower's acceleration is its leader's, scaled: reading the leaders is enough, and programs
    # that give accelerations run only where every joint has a coordinate of its own.
    result = joints.gather(results[output])
    return _copied(result, out) if here is None else result


def _matrix(model: Model, name: str, q: Array, **vectors: Array) -> Array:
    """A matrix of the catalogue over the robot's coordinates, (..., nv, nv)."""
    joints = joint_map(model)
    inputs = {key: joints.spread(x) for key, x in vectors.items()}
    result = matrix(name, Full(), model, q, inputs)
    table = quick_table(model)
    if joints.same and name not in table and result.dtype == np.float64:
        code = matrix_executable(name, model)
        table[name] = None
        if code is not None:
            code.quick(("q", *vectors), partial(table.__setitem__, name))
    return over_joints(model, result)


def over_joints(model: Model, matrix: Array) -> Array:
    """A matrix over the joints of bodies as one over the robot's coordinates, (..., nv, nv)."""
    joints = joint_map(model)
    return np.swapaxes(joints.gather(np.swapaxes(joints.gather(matrix), -1, -2)), -1, -2)


def solve(matrix: Array, x: Array) -> Array:
    """The solution (..., n) of linear equations with matrices (..., n, n)."""
    return np.asarray(np.linalg.solve(matrix, x[..., None])[..., 0])


def _copied(result: Array, out: Array | None) -> Array:
    """A result, in the array that a user gave if there is one.

    Raises:
        ShapeError, ArgumentError: It does not fit.
    """
    if out is None:
        return result
    check_out(out, result.shape, result.dtype)
    np.copyto(out, result)
    return out

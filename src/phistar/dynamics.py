# SPDX-License-Identifier: BSD-3-Clause
"""Dynamics of a model: compiled programs between a user's arrays and the bodies' streams.

All functions take arrays with leading batch axes or dicts by joint name, and refuse NaN. Mimic
joints are reduced exactly: forces of followers are summed into their leaders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import (
    check_out,
    check_shapes,
    checked_state,
    refuse_mimic,
    refuse_singular,
    require_valid_inputs,
)
from phistar.arrays import Array
from phistar.compile import (
    Diag,
    Full,
    cheapest_equivalent,
    joint_map,
    kernel,
    matrix,
    matrix_executable,
    run_traced,
)
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.gc_pause import gc_paused
from phistar.model.components import GROUND
from phistar.model.configuration import (
    Coordinates,
    as_numbers,
    batch_shape,
    configuration,
    require_finite,
)
from phistar.model.model import Model
from phistar.model.model_cache import entries
from phistar.model.numpy_kinematics import body_poses, check_reference, reference_pose
from phistar.model.singular import require_finite_results, require_pivots
from phistar.spatial import force_transform, pose_inverse

Forces = Mapping[str, ArrayLike]

FORWARD_DYNAMICS_METHODS = {
    "articulated": "forward_dynamics",
    "1": "forward_dynamics_1",
    "2": "forward_dynamics_2",
    "3": "forward_dynamics_3",
    "4": "forward_dynamics",
}
"""Forward-dynamics algorithms by name; the numbers are those of Rodriguez & Kreutz-Delgado."""


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
    arrays = check_shapes(model, q=q, v=v, vdot=vdot)
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
    return _run(model, "bias_force", check_shapes(model, q=q, v=v), forces, reference, out=out)


def gravity_force(model: Model, q: Coordinates, out: Array | None = None) -> Array:
    """Joint forces (..., nv) that hold the robot at rest against gravity."""
    return _run(model, "gravity_force", check_shapes(model, q=q), out=out)


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
    if method not in FORWARD_DYNAMICS_METHODS:
        raise UnknownNameError("forward-dynamics method", method, FORWARD_DYNAMICS_METHODS)
    refuse_singular(model)
    arrays = check_shapes(model, q=q, v=v, tau=tau)
    if not joint_map(model).one_to_one:
        bias = bias_force(model, q, v, forces, reference)
        require_finite("tau", arrays["tau"])
        return _copy_to_out(solve(mass_matrix(model, q), arrays["tau"] - bias), out)
    if method == "articulated":
        name, request = cheapest_equivalent("forward_dynamics"), "forward_dynamics"
    else:
        name, request = FORWARD_DYNAMICS_METHODS[method], f"forward_dynamics {method}"
    return _run(model, name, arrays, forces, reference, "vdot", out, request)


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
    forces = check_forces(forces, reference)
    q, v, tau, vdot = checked_state(model, q=q, v=v, tau=tau, vdot=vdot)
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
    bias = kernel("hybrid_bias", model)(model, q, inputs)
    free = ~held[joints.v_indices]
    given_tau = joints.spread(tau) - bias.pop("tau", 0.0)
    inputs = {"tau": given_tau[..., free], **bias}
    solved = kernel("hybrid_dynamics")(model, q, inputs, locked=locked)["vdot"]
    batch = np.broadcast_shapes(given.shape[:-1], solved.shape[:-1])
    result = np.broadcast_to(given, (*batch, model.nv)).astype(np.result_type(given, solved))
    result[..., joints.v_indices[free]] = solved
    return result, inverse_dynamics(model, q, v, result, forces, reference)


def mass_matrix_times(model: Model, q: Coordinates, vdot: Coordinates) -> Array:
    """𝓜 vdot (..., nv) in O(n), without the matrix."""
    return _run(model, "mass_matrix_times", check_shapes(model, q=q, vdot=vdot))


def mass_matrix_solve(model: Model, q: Coordinates, tau: Coordinates) -> Array:
    """𝓜⁻¹ tau (..., nv) in O(n) from the factors (by solving where mimic joints are reduced)."""
    refuse_singular(model)
    arrays = check_shapes(model, q=q, tau=tau)
    if not joint_map(model).one_to_one:
        require_finite("tau", arrays["tau"])
        return solve(mass_matrix(model, q), arrays["tau"])
    return _run(model, "mass_matrix_solve", arrays, output="vdot")


def generalised_force(model: Model, q: Coordinates, forces: Forces, reference: str) -> Array:
    """Joint forces (..., nv) that wrenches on frames amount to: J* f in O(n)."""
    return _run(model, "generalised_force", check_shapes(model, q=q), forces, reference)


def mass_matrix(model: Model, q: Coordinates) -> Array:
    """Joint-space inertia (..., nv, nv), rotor inertia included."""
    (q,) = checked_state(model, q=q)
    return _matrix(model, "mass_matrix", q)


def mass_matrix_inverse(model: Model, q: Coordinates) -> Array:
    """Inverse of the joint-space inertia (..., nv, nv); it is not formed on the way."""
    refuse_singular(model)
    (q,) = checked_state(model, q=q)
    if not joint_map(model).one_to_one:
        return np.asarray(np.linalg.inv(mass_matrix(model, q)))
    return _matrix(model, "mass_matrix_inverse", q)


def coriolis_times(
    model: Model, q: Coordinates, v: Coordinates, x: Coordinates, *, adjoint: bool = False
) -> Array:
    """C x, or C* x, (..., nv) in O(n), without the matrix."""
    arrays = check_shapes(model, q=q, v=v, x=x)
    arrays["vdot"] = arrays.pop("x")
    return _run(model, "coriolis_adjoint_times" if adjoint else "coriolis_times", arrays)


def coriolis_matrix(model: Model, q: Coordinates, v: Coordinates) -> Array:
    """C (..., nv, nv) with C v = bias force without gravity and C + C* = d𝓜/dt."""
    q, v = checked_state(model, q=q, v=v)
    return _matrix(model, "coriolis_matrix", q, v=v)


def log_determinant(model: Model, q: Coordinates) -> Array:
    """log det 𝓜 (...), the sum over the joints of log det D."""
    refuse_singular(model)
    arrays = check_shapes(model, q=q)
    found = run_traced(model, ("log_determinant",), *arrays.values())
    return log_determinant_by_pivots(model, **arrays) if found is None else found


def log_determinant_by_pivots(model: Model, q: Array) -> Array:
    """The same by sweeps, or from the whole matrix where mimic joints are reduced."""
    (q,) = checked_state(model, q=q)
    if not joint_map(model).one_to_one:
        return np.asarray(np.linalg.slogdet(mass_matrix(model, q))[1])
    blocks = matrix("hinge_inertia", Diag(), model, q)
    require_pivots(model, q, blocks)
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
        wrench = as_numbers(value, f"forces[{name!r}]")
        if not isinstance(value, np.ndarray):
            # Numbers without a precision of their own take that of q.
            wrench = wrench.astype(total.dtype, copy=False)
        if wrench.ndim == 0 or wrench.shape[-1] != 6:
            raise ShapeError(f"forces[{name!r}]", wrench.shape, "(..., 6)", f"robot '{model.name}'")
        require_finite(f"forces[{name!r}]", wrench)
        frame = model.frame(name)
        if frame.body == GROUND:
            continue
        body = poses[..., frame.body, :, :]
        place = body @ frame.body_pose.astype(total.dtype)
        seat = pose_inverse(body) @ reference_pose(place, kind)
        batch = batch_shape(model, {"q": total[..., 0, :], f"forces[{name!r}]": wrench})
        total = np.broadcast_to(total, (*batch, *total.shape[-2:])).astype(
            np.result_type(total, wrench, body)
        )
        total[..., frame.body, :] += (force_transform(seat) @ wrench[..., None])[..., 0]
    return total


def check_forces(forces: Forces | None, reference: str) -> Forces | None:
    """Forces if there are any.

    Raises:
        ArgumentError: They are no mapping from names of frames, or ``reference`` is unknown.
    """
    check_reference(reference)
    if forces is None:
        return None
    if not isinstance(forces, Mapping):
        raise ArgumentError(
            f"forces is a {type(forces).__name__}, expected wrenches (..., 6) by name of a frame: "
            "forces={'hand': [moment; force]}"
        )
    return forces or None


def _run(
    model: Model,
    name: str,
    arrays: dict[str, Array],
    forces: Forces | None = None,
    reference: str = "world_aligned",
    output: str = "tau",
    out: Array | None = None,
    request: str | None = None,
) -> Array:
    """Run a program on joint vectors (..., nv); accelerations and forces come back the same way.

    Args:
        model, arrays, forces, reference: The robot and a user's arguments.
        name: The program.
        output: Which of its outputs is the result.
        out: Where to put the result.
        request: Key of the entry; default: the program's name.
    """
    request = name if request is None else request
    if request in entries(model):
        return _run_program(model, name, arrays, forces, reference, output, out, request)
    # The first time code is made, which is long work on a large robot.
    with gc_paused:
        return _run_program(model, name, arrays, forces, reference, output, out, request)


def _run_program(
    model: Model,
    name: str,
    arrays: dict[str, Array],
    forces: Forces | None,
    reference: str,
    output: str,
    out: Array | None,
    request: str,
) -> Array:
    joints = joint_map(model)
    forces = check_forces(forces, reference)
    inputs = dict(arrays)
    q = inputs.pop("q")
    vectors = {key: joints.spread(x) for key, x in inputs.items()}
    if forces:
        q = configuration(model, q)
        vectors["f_ext"] = link_forces(model, q, forces, reference)
        batch_shape(model, {"q": q, **inputs, "forces": vectors["f_ext"][..., 0, :]})
    here = None
    if out is not None and joints.is_identity:
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays.values()))
        if "f_ext" in vectors:
            batch = np.broadcast_shapes(batch, vectors["f_ext"].shape[:-2])
        check_out(out, (*batch, model.nv), np.result_type(*arrays.values(), *vectors.values()))
        here = {output: out} if out.flags.c_contiguous and out.flags.aligned else None
    executable = kernel(name, model).executable(model)
    results, finite = executable.run(q, vectors, here)
    table = entries(model)
    if joints.is_identity and request not in table and len(results) == 1:
        table[request] = executable.entry(tuple(arrays))
    if not finite:
        called = {"x" if k == "vdot" and "coriolis" in name else k: x for k, x in arrays.items()}
        require_valid_inputs(model, **called)
        require_finite_results(model, q, results, results[output].ndim - 1)
    # A follower's acceleration is its leader's, scaled: reading the leaders is enough, and programs
    # that give accelerations run only where every joint has a coordinate of its own.
    result = joints.gather(results[output])
    return _copy_to_out(result, out) if here is None else result


def _matrix(model: Model, name: str, q: Array, **vectors: Array) -> Array:
    """A matrix of the catalogue over the robot's coordinates, (..., nv, nv)."""
    joints = joint_map(model)
    inputs = {key: joints.spread(x) for key, x in vectors.items()}
    result = matrix(name, Full(), model, q, inputs)
    table = entries(model)
    if joints.is_identity and name not in table and result.dtype == np.float64:
        code = matrix_executable(name, model)
        table[name] = None if code is None else code.entry(("q", *vectors))
    return to_robot_coordinates(model, result)


def to_robot_coordinates(model: Model, matrix: Array) -> Array:
    """A matrix over the joints of bodies as one over the robot's coordinates, (..., nv, nv)."""
    joints = joint_map(model)
    return np.swapaxes(joints.gather(np.swapaxes(joints.gather(matrix), -1, -2)), -1, -2)


def solve(matrix: Array, x: Array) -> Array:
    """The solution (..., n) of linear equations with matrices (..., n, n)."""
    return np.asarray(np.linalg.solve(matrix, x[..., None])[..., 0])


def _copy_to_out(result: Array, out: Array | None) -> Array:
    """A result, in the array that a user gave if there is one.

    Raises:
        ShapeError, ArgumentError: It does not fit.
    """
    if out is None:
        return result
    check_out(out, result.shape, result.dtype)
    np.copyto(out, result)
    return out

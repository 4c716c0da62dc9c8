# SPDX-License-Identifier: BSD-3-Clause
"""Dynamics of a model: compiled programs between a user's arrays and the bodies' streams.

All functions take arrays with leading batch axes or dicts by joint name, and refuse NaN. Mimic
joints are reduced exactly: forces of followers are summed into their leaders, and what divides by
the mass matrix sweeps over nodes of links that move together (``model.nodes``), in O(n), too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from phistar.arguments import (
    check_out,
    check_shapes,
    checked_numbers,
    checked_state,
    names_in,
    refuse_singular,
    require_valid_inputs,
)
from phistar.arrays import Array, DType
from phistar.compile import (
    SCHEDULES,
    Diag,
    Executable,
    Full,
    cheapest_equivalent,
    embedded_request,
    entry_pattern,
    joint_map,
    kernel,
    matrix,
    matrix_executable,
    mimic_in_rounds,
    run_traced,
)
from phistar.errors import UnknownNameError
from phistar.gc_pause import gc_paused
from phistar.model.configuration import Coordinates, require_finite
from phistar.model.model import Model
from phistar.model.model_cache import entries, keep_entry_on_frames
from phistar.model.node_tree import NodeTree, mimic_node_rates
from phistar.model.singular import require_finite_results, require_pivots
from phistar.model.wrenches import Wrenches, check_batch, check_numbers
from phistar.packed import PackedMatrix
from phistar.thresholds import POLICY

FORWARD_DYNAMICS_METHODS = {
    "articulated": "forward_dynamics",
    "1": "forward_dynamics_1",
    "2": "forward_dynamics_2",
    "3": "forward_dynamics_3",
    "4": "forward_dynamics",
    "parallel": "forward_dynamics",
}
"""Forward-dynamics algorithms by name; the numbers are those of Rodriguez & Kreutz-Delgado."""

_SINGLE = "float32"
"""After the key of an entry that takes wrenches: that for single precision."""


def inverse_dynamics(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    vdot: Coordinates,
    wrenches: Wrenches | None = None,
    out: Array | None = None,
    method: str = "sequential",
) -> Array:
    """Joint forces (..., nv) that give the accelerations ``vdot``."""
    if method not in SCHEDULES:
        raise UnknownNameError("inverse-dynamics method", method, SCHEDULES)
    arrays = check_shapes(model, q=q, v=v, vdot=vdot)
    if method == "parallel":
        return _run_parallel(model, "inverse_dynamics", arrays, wrenches, "tau", out)
    return _run(model, "inverse_dynamics", arrays, wrenches, out=out)


def bias_force(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    wrenches: Wrenches | None = None,
    out: Array | None = None,
) -> Array:
    """Joint forces (..., nv) at zero acceleration: Coriolis, centrifugal and gravity."""
    return _run(model, "bias_force", check_shapes(model, q=q, v=v), wrenches, out=out)


def gravity_force(model: Model, q: Coordinates, out: Array | None = None) -> Array:
    """Joint forces (..., nv) that hold the robot at rest against gravity."""
    return _run(model, "gravity_force", check_shapes(model, q=q), out=out)


def forward_dynamics(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    wrenches: Wrenches | None = None,
    method: str = "articulated",
    out: Array | None = None,
) -> Array:
    """Joint accelerations (..., nv) under the joint forces ``tau``."""
    if not isinstance(method, str) or method not in FORWARD_DYNAMICS_METHODS:
        raise UnknownNameError("forward-dynamics method", method, FORWARD_DYNAMICS_METHODS)
    refuse_singular(model)
    arrays = check_shapes(model, q=q, v=v, tau=tau)
    if not joint_map(model).one_to_one:
        if method == "parallel":
            raise mimic_in_rounds(model, "method")
        return _copy_to_out(_forward_on_nodes(model, arrays, wrenches), out)
    if method == "parallel":
        return _run_parallel(model, "forward_dynamics", arrays, wrenches, "vdot", out)
    if method == "articulated":
        name, request = cheapest_equivalent("forward_dynamics"), "forward_dynamics"
    else:
        name, request = FORWARD_DYNAMICS_METHODS[method], f"forward_dynamics {method}"
    return _run(model, name, arrays, wrenches, "vdot", out, request)


def _forward_on_nodes(model: Model, arrays: dict[str, Array], wrenches: Wrenches | None) -> Array:
    """Joint accelerations of a robot whose mimic joints are reduced."""
    q, v, tau = arrays.values()
    if wrenches is None:
        found = run_traced(model, (embedded_request("forward_dynamics", model),), *arrays.values())
        if found is not None:
            _keep_alias(model, "forward_dynamics")
            return found
    require_finite("tau", tau)
    return _solve_on_nodes(model, q, tau - bias_force(model, q, v, wrenches))


def _hybrid_on_nodes(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    given: Array,
    held: Array,
    wrenches: Wrenches | None,
) -> Array:
    """Accelerations (..., nv) of a robot whose mimic joints are reduced.

    Args:
        model, q, v, tau, wrenches: As of ``hybrid_dynamics``, checked.
        given: (..., nv) accelerations of the prescribed joints, zero at the others.
        held: (nv,) which are prescribed.
    """
    moved = _run(model, "inverse_dynamics", {"q": q, "v": v, "vdot": given}, wrenches)
    free = np.flatnonzero(~held)
    left = (tau - moved)[..., free]
    solved = NodeTree(model, q, mimic_node_rates(model, free), len(free)).solve(left)
    require_finite_results(model, q, {"vdot": solved}, solved.ndim - 1)
    result = np.broadcast_to(given, (*solved.shape[:-1], model.nv))
    result = result.astype(np.result_type(given, left), copy=True)
    result[..., free] = solved
    return result


def _solve_on_nodes(model: Model, q: Array, tau: Array) -> Array:
    """𝓜⁻¹ tau of a robot whose mimic joints are reduced; tau is finite."""
    found = run_traced(model, (embedded_request("mass_matrix_solve", model),), q, tau)
    if found is not None:
        return found
    (q,) = checked_numbers(model, q=q)
    dtype = np.result_type(q, tau)
    vdot = None
    if model.nv <= POLICY.max_coordinates_of_dense_nodes and dtype.char in "fdFD":
        with suppress(np.linalg.LinAlgError):  # a sample of which the others know nothing
            vdot = solve(mass_matrix(model, q), tau)
    if vdot is None:
        vdot = NodeTree.of_mimics(model, q).solve(tau)
    require_finite_results(model, q, {"vdot": vdot}, vdot.ndim - 1)
    return vdot.astype(dtype, copy=False)


def _keep_alias(model: Model, name: str) -> None:
    """Later calls with plain arrays go straight to the code over nodes."""
    table = entries(model)
    entry = table.get((embedded_request(name, model),))
    if entry is not None:
        table[name] = entry


def hybrid_dynamics(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    vdot: Coordinates,
    prescribed: Sequence[str],
    wrenches: Wrenches | None = None,
) -> tuple[Array, Array]:
    """Accelerations of the free joints and forces of the prescribed ones, each (..., nv).

    Forward dynamics with the hinge map of the free joints: what the prescribed joints do is one
    more acceleration of their links.
    """
    joints = joint_map(model)
    q, v, tau, vdot = checked_state(model, q=q, v=v, tau=tau, vdot=vdot)
    check_numbers(model, {"q": q, "v": v, "tau": tau, "vdot": vdot}, wrenches)
    held = np.zeros(model.nv, dtype=bool)
    for name in names_in("prescribed", prescribed):
        if name not in model.joint_names:
            raise UnknownNameError("independent joint", name, model.joint_names, model.name)
        held[model.joints[name].v_slice] = True
    locked = frozenset(b.index for b in model.bodies if held[b.v_slice].any())
    refuse_singular(model, locked)
    given = np.where(held, vdot, 0.0)
    if not joints.one_to_one:
        result = _hybrid_on_nodes(model, q, v, tau, given, held, wrenches)
        return result, _run(model, "inverse_dynamics", {"q": q, "v": v, "vdot": result}, wrenches)
    inputs = {"v": joints.spread(v), "vdot": joints.spread(given)}
    bias = kernel("hybrid_bias", model)(model, q, with_wrenches(inputs, wrenches))
    free = ~held[joints.v_indices]
    given_tau = joints.spread(tau) - bias.pop("tau", 0.0)
    inputs = {"tau": given_tau[..., free], **bias}
    solved = kernel("hybrid_dynamics")(model, q, inputs, locked=locked)["vdot"]
    batch = np.broadcast_shapes(given.shape[:-1], solved.shape[:-1])
    result = np.broadcast_to(given, (*batch, model.nv)).astype(np.result_type(given, solved))
    result[..., joints.v_indices[free]] = solved
    return result, _run(model, "inverse_dynamics", {"q": q, "v": v, "vdot": result}, wrenches)


def mass_matrix_times(model: Model, q: Coordinates, vdot: Coordinates) -> Array:
    """𝓜 vdot (..., nv) in O(n), without the matrix."""
    return _run(model, "mass_matrix_times", check_shapes(model, q=q, vdot=vdot))


def mass_matrix_solve(
    model: Model, q: Coordinates, tau: Coordinates, method: str = "sequential"
) -> Array:
    """𝓜⁻¹ tau (..., nv) in O(n) from the factors, over nodes where mimic joints are reduced."""
    refuse_singular(model)
    arrays = check_shapes(model, q=q, tau=tau)
    if method == "parallel":
        return _run_parallel(model, "mass_matrix_solve", arrays, None, "vdot", None)
    if not joint_map(model).one_to_one:
        require_finite("tau", arrays["tau"])
        return _solve_on_nodes(model, *arrays.values())
    return _run(model, "mass_matrix_solve", arrays, output="vdot")


def generalised_force(model: Model, q: Coordinates, wrenches: Wrenches | None) -> Array:
    """Joint forces (..., nv) that wrenches on frames amount to: J* f in O(n)."""
    if wrenches is None:
        (q,) = checked_state(model, q=q)
        return np.zeros((*q.shape[:-1], model.nv), q.dtype)
    return _run(model, "generalised_force", check_shapes(model, q=q), wrenches)


def mass_matrix(model: Model, q: Coordinates, out: Array | None = None) -> Array:
    """Joint-space inertia (..., nv, nv), rotor inertia included."""
    (q,) = checked_state(model, q=q)
    if out is None:
        return _matrix(model, "mass_matrix", q)
    check_out(out, (*q.shape[:-1], model.nv, model.nv), q.dtype)
    plain = joint_map(model).is_identity and out.flags.c_contiguous and out.flags.aligned
    found = matrix("mass_matrix", Full(), model, q, out=out if plain else None)
    # What is not machine code gives arrays of its own.
    return out if found is out else _copy_to_out(to_robot_coordinates(model, found), out)


def packed_mass_matrix(model: Model, q: Coordinates) -> PackedMatrix:
    """The lower triangle of the joint-space inertia without the zeros that the tree has there."""
    (q,) = checked_state(model, q=q)
    pattern = entry_pattern(model, "packed")
    found = run_traced(model, ("mass_matrix_packed",), q)
    if found is None:
        found = _matrix(model, "mass_matrix", q)[..., pattern.rows, pattern.columns]
    return PackedMatrix(pattern, found)


def mass_matrix_inverse(model: Model, q: Coordinates) -> Array:
    """Inverse of the joint-space inertia (..., nv, nv); it is not formed on the way."""
    refuse_singular(model)
    (q,) = checked_state(model, q=q)
    if not joint_map(model).one_to_one:
        found = run_traced(model, (embedded_request("mass_matrix_inverse", model),), q)
        if found is not None:
            _keep_alias(model, "mass_matrix_inverse")
            return found
        inverse = _solve_on_nodes(model, q[..., None, :], np.eye(model.nv))
        return inverse.astype(q.dtype, copy=False)
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
    key = (embedded_request("log_determinant", model),)
    found = run_traced(model, key, *arrays.values())
    return log_determinant_by_pivots(model, **arrays) if found is None else found


def log_determinant_by_pivots(model: Model, q: Array) -> Array:
    """The same by sweeps, over nodes where mimic joints are reduced."""
    (q,) = checked_numbers(model, q=q)
    if not joint_map(model).one_to_one:
        return NodeTree.of_mimics(model, q).log_determinant()
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


def with_wrenches(
    inputs: Mapping[str, Array], wrenches: Wrenches | None
) -> dict[str, Array | Wrenches]:
    """Inputs of a program, wrenches on frames among them if there are any."""
    return {**inputs} if wrenches is None else {**inputs, "f_ext": wrenches}


def _run(
    model: Model,
    name: str,
    arrays: dict[str, Array],
    wrenches: Wrenches | None = None,
    output: str = "tau",
    out: Array | None = None,
    request: str | None = None,
) -> Array:
    """Run a program on joint vectors (..., nv); accelerations and forces come back the same way.

    Args:
        model, arrays: The robot and a user's arguments.
        name: The program.
        wrenches: On frames.
        output: Which of its outputs is the result.
        out: Where to put the result.
        request: Key of the entry; default: the program's name. That of wrenches is added.
    """
    request = name if request is None else request
    table = entries(model)
    key: Hashable = request if wrenches is None else wrenches.request(request)
    if key not in table and (key, _SINGLE) not in table:
        # The first time code is made, which is long work on a large robot.
        with gc_paused:
            return _run_program(model, name, arrays, wrenches, output, out, request)
    if wrenches is not None and out is None:
        # Who steps in time, or has single precision, comes here without looking for the entry.
        entry = table.get((key, _SINGLE) if arrays["q"].dtype == np.float32 else key)
        if entry is not None:
            result = entry(*arrays.values(), wrenches.by_frame, wrenches.at.reference)
            if result is not None:
                return result
    return _run_program(model, name, arrays, wrenches, output, out, request)


def _run_program(
    model: Model,
    name: str,
    arrays: dict[str, Array],
    wrenches: Wrenches | None,
    output: str,
    out: Array | None,
    request: str,
) -> Array:
    joints = joint_map(model)
    check_batch(model, arrays, wrenches)
    inputs = dict(arrays)
    q = inputs.pop("q")
    vectors = {key: joints.spread(x) for key, x in inputs.items()}
    loads = () if wrenches is None else wrenches.arrays
    here = None
    if out is not None and joints.is_identity:
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in (*arrays.values(), *loads)))
        check_out(out, (*batch, model.nv), np.result_type(*arrays.values(), *loads))
        here = {output: out} if out.flags.c_contiguous and out.flags.aligned else None
    executable = kernel(name, model).executable(model)
    results, finite = executable.run(q, with_wrenches(vectors, wrenches), here)
    if joints.is_identity and len(results) == 1:
        _keep_entry(model, request, executable, tuple(arrays), wrenches, results[output].dtype)
    _require_valid(model, name, arrays, wrenches, results, finite)
    # A follower's acceleration is its leader's, scaled: reading the leaders is enough, and programs
    # that give accelerations run only where every joint has a coordinate of its own.
    result = joints.gather(results[output])
    return _copy_to_out(result, out) if here is None else result


def _run_parallel(
    model: Model,
    name: str,
    arrays: dict[str, Array],
    wrenches: Wrenches | None,
    output: str,
    out: Array | None,
) -> Array:
    """The same in rounds over all links, by NumPy."""
    joints = joint_map(model)
    check_batch(model, arrays, wrenches)
    vectors = {key: joints.spread(x) for key, x in arrays.items() if key != "q"}
    executable = kernel(name, model, "parallel").executable(model, backend="numpy")
    results, finite = executable.run(arrays["q"], with_wrenches(vectors, wrenches))
    _require_valid(model, name, arrays, wrenches, results, finite)
    return _copy_to_out(joints.gather(results[output]), out)


def _require_valid(
    model: Model,
    name: str,
    arrays: dict[str, Array],
    wrenches: Wrenches | None,
    results: Mapping[str, Array],
    finite: bool,
) -> None:
    """Refuse results that are not finite, by what is wrong with the inputs or the robot."""
    if not finite:
        called = {"x" if k == "vdot" and "coriolis" in name else k: x for k, x in arrays.items()}
        require_valid_inputs(model, **called)
        if wrenches is not None:
            wrenches.require_finite()
        first = next(iter(results.values()))
        require_finite_results(model, arrays["q"], results, first.ndim - 1)


def _keep_entry(
    model: Model,
    request: str,
    executable: Executable,
    vectors: tuple[str, ...],
    wrenches: Wrenches | None,
    dtype: DType,
) -> None:
    """Later calls with plain arrays go straight to the code, as soon as it has its final shape."""
    table = entries(model)
    if wrenches is None:
        if request not in table:
            table[request] = executable.entry(vectors)
        return
    key = wrenches.request(request)
    if not wrenches.all_move:
        return
    if dtype == np.float32 and (key, _SINGLE) not in table:
        entry = executable.entry(vectors, wrenches=wrenches.at, real="float")
        if entry is not None:
            table[key, _SINGLE] = entry
    elif dtype == np.float64 and key not in table:
        entry = executable.entry(vectors, wrenches=wrenches.at)
        if entry is not None:
            keep_entry_on_frames(table, request, key, entry)


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

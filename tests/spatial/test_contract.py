# SPDX-License-Identifier: BSD-3-Clause
"""What every function of the spatial package promises: batches, dtypes, analyticity, shapes."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from phistar import spatial as sp
from phistar.errors import ShapeError

Function = Callable[..., Any]

# Kinds of arguments: how one is made, its own axes.
MAKERS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "scalar": lambda rng, shape: rng.uniform(0.5, 2, shape),
    "vector": lambda rng, shape: rng.uniform(0.2, 1.5, (*shape, 3)),
    "axis": lambda rng, shape: sp.quat_rotate(sp.random_quaternion(rng, shape), [0, 0, 1]),
    "quaternion": lambda rng, shape: sp.random_quaternion(rng, shape),
    "spatial": lambda rng, shape: rng.standard_normal((*shape, 6)),
    "params": lambda rng, shape: rng.uniform(0.5, 2, (*shape, 10)),
    "rotation": lambda rng, shape: sp.quat_to_rotation(sp.random_quaternion(rng, shape)),
    "matrix": lambda rng, shape: rng.standard_normal((*shape, 3, 3)),
    "six": lambda rng, shape: rng.standard_normal((*shape, 6, 6)),
    "pose": lambda rng, shape: sp.exp_se3(rng.standard_normal((*shape, 6))),
}

SIGNATURES: dict[Function, str] = {
    sp.skew: "vector",
    sp.unskew: "matrix",
    sp.rotation_about: "axis scalar",
    sp.rpy_to_rotation: "vector",
    sp.rotation_to_rpy: "rotation",
    sp.exp_so3: "vector",
    sp.log_so3: "rotation",
    sp.rotation_between: "vector axis",
    sp.quat_normalize: "quaternion",
    sp.quat_multiply: "quaternion quaternion",
    sp.quat_conjugate: "quaternion",
    sp.quat_rotate: "quaternion vector",
    sp.quat_to_rotation: "quaternion",
    sp.rotation_to_quat: "rotation",
    sp.quat_exp: "vector",
    sp.quat_log: "quaternion",
    sp.xyzw_to_wxyz: "quaternion",
    sp.wxyz_to_xyzw: "quaternion",
    sp.pose: "rotation vector",
    sp.pose_inverse: "pose",
    sp.pose_product: "pose pose",
    sp.pose_rotation: "pose",
    sp.pose_translation: "pose",
    sp.transform_point: "pose vector",
    sp.exp_se3: "spatial",
    sp.log_se3: "pose",
    sp.exp_se2: "vector",
    sp.log_se2: "vector",
    sp.motion_transform: "pose",
    sp.force_transform: "pose",
    sp.crm: "spatial",
    sp.crf: "spatial",
    sp.crm_apply: "spatial spatial",
    sp.crf_apply: "spatial spatial",
    sp.Q: "spatial",
    sp.inertia_parameters: "scalar vector matrix",
    sp.inertia_components: "params",
    sp.inertia_matrix: "params",
    sp.inertia_from_matrix: "six",
    sp.transform_inertia: "pose params",
    sp.rotate_inertia: "rotation matrix",
    sp.inertia_apply: "params spatial",
    sp.box_inertia: "scalar vector",
    sp.cylinder_inertia: "scalar scalar scalar",
    sp.sphere_inertia: "scalar scalar",
    sp.capsule_inertia: "scalar scalar scalar",
}
# They take no array, give truth values, or judge a single body.
OTHERS = {
    *(sp.quat_identity, sp.pose_identity, sp.random_quaternion),
    *(sp.is_rotation, sp.inertia_problems),
}

each_function = pytest.mark.parametrize(
    ("function", "kinds"),
    [(function, kinds.split()) for function, kinds in SIGNATURES.items()],
    ids=lambda value: getattr(value, "__name__", ""),
)


def arguments(kinds: list[str], shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """One array for each kind of argument, with its leading axes."""
    rng = np.random.default_rng(11)
    return [MAKERS[kind](rng, shape) for kind, shape in zip(kinds, shapes, strict=True)]


def flat(result: Any) -> list[np.ndarray]:
    """The results of a function that may give a tuple."""
    return list(result) if isinstance(result, tuple) else [result]


def test_every_public_function_is_under_contract() -> None:
    """A new public function has a row above, else this fails."""
    public = {getattr(sp, name) for name in sp.__all__}
    assert {f for f in public if inspect.isfunction(f)} == set(SIGNATURES) | OTHERS


@each_function
def test_batch_equals_loop(function: Function, kinds: list[str]) -> None:
    """A call on a batch gives what calls on its members give (relative 1e-14)."""
    batch = arguments(kinds, [(2, 3)] * len(kinds))
    results = flat(function(*batch))
    for index in np.ndindex(2, 3):
        for whole, one in zip(results, flat(function(*(a[index] for a in batch))), strict=True):
            np.testing.assert_allclose(whole[index], one, rtol=1e-14, atol=1e-14)


@each_function
def test_leading_axes_broadcast(function: Function, kinds: list[str]) -> None:
    """Arguments of leading shapes (2, 1), (3,) and () act as if all had (2, 3)."""
    leading: list[tuple[int, ...]] = [(2, 1), (3,), ()][: len(kinds)]
    mixed = arguments(kinds, leading)
    common = np.broadcast_shapes(*leading)
    full = [
        np.broadcast_to(a, common + a.shape[len(shape) :])
        for a, shape in zip(mixed, leading, strict=True)
    ]
    for got, expected in zip(flat(function(*mixed)), flat(function(*full)), strict=True):
        got, expected = np.broadcast_arrays(got, expected)
        np.testing.assert_allclose(got, expected, rtol=1e-14, atol=1e-14)


@each_function
def test_empty_batch(function: Function, kinds: list[str]) -> None:
    """A batch of nothing gives a result of nothing, not an error."""
    one = flat(function(*arguments(kinds, [()] * len(kinds))))
    none = flat(function(*arguments(kinds, [(0,)] * len(kinds))))
    assert [r.shape for r in none] == [(0, *r.shape) for r in one]


@each_function
@pytest.mark.parametrize("leading", [(), (4,)], ids=str)
def test_single_precision_stays(
    function: Function, kinds: list[str], leading: tuple[int, ...]
) -> None:
    """float32 in, float32 out, with the values of float64 to 2e-5."""
    double = arguments(kinds, [leading] * len(kinds))
    single = [np.float32(a) for a in double]
    for got, expected in zip(flat(function(*single)), flat(function(*double)), strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)


@each_function
def test_complex_step_is_the_derivative(function: Function, kinds: list[str]) -> None:
    """The imaginary part along a random direction is the central difference (relative 1e-7)."""
    rng = np.random.default_rng(5)
    base = arguments(kinds, [(4,)] * len(kinds))
    along = [rng.standard_normal(a.shape) for a in base]
    h, step = 1e-40, 1e-6
    stepped = flat(function(*(a + 1j * h * d for a, d in zip(base, along, strict=True))))
    ahead, behind = (
        flat(function(*(a + s * step * d for a, d in zip(base, along, strict=True))))
        for s in (1, -1)
    )
    for value, plus, minus in zip(stepped, ahead, behind, strict=True):
        assert value.dtype == np.complex128
        difference = (plus - minus) / (2 * step)
        np.testing.assert_allclose(value.imag / h, difference, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(value.real, (plus + minus) / 2, rtol=1e-9, atol=1e-9)


@each_function
def test_lists_are_welcome_and_inputs_untouched(function: Function, kinds: list[str]) -> None:
    """Nested lists give the same as arrays; no argument is written to."""
    given = arguments(kinds, [(2,)] * len(kinds))
    for array in map(np.asarray, given):
        array.setflags(write=False)
    results = flat(function(*given))
    for got, expected in zip(flat(function(*(a.tolist() for a in given))), results, strict=True):
        np.testing.assert_array_equal(got, expected)


@each_function
def test_wrong_shape_is_named(function: Function, kinds: list[str]) -> None:
    """Each array argument with a wrong last axis raises ShapeError naming function and shape."""
    good = arguments(kinds, [()] * len(kinds))
    for place, kind in enumerate(kinds):
        if kind == "scalar":
            continue
        bad = [np.ones((5, 2)) if i == place else a for i, a in enumerate(good)]
        with pytest.raises(ShapeError, match=r"has shape \(5, 2\)"):
            function(*bad)

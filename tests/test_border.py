# SPDX-License-Identifier: BSD-3-Clause
"""The border between a user's arrays and the numbers: what is mended, refused, or becomes NaN."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.backends import base
from phistar.errors import (
    ArgumentError,
    NotFiniteError,
    QuaternionError,
    SampleError,
    SingularConfigurationError,
    SingularPoseError,
)
from phistar.model.bad_samples import bad_samples

Call = Callable[..., Any]


@cache
def floating() -> phistar.Robot:
    """A free base with a ball joint and a hinge."""
    model = phistar.random_model(
        np.random.default_rng(3), 3, kinds=["spherical", "revolute"], floating_base=True
    )
    return phistar.Robot(model)


@cache
def wrist() -> phistar.Robot:
    """Hinges about z, y and z on massless links: singular wherever the second angle is zero."""
    names = ("base", "one", "two", "hand")
    mass = (
        "<inertial><origin xyz='0 0 0.1'/><mass value='1'/><inertia ixx='.1' iyy='.2' izz='.05'/>"
    )
    links = "".join(f"<link name='{name}'/>" for name in names[:3])
    axes = ("0 0 1", "0 1 0", "0 0 1")
    joints = "".join(
        f"<joint name='j{k + 1}' type='continuous'><parent link='{names[k]}'/>"
        f"<child link='{names[k + 1]}'/><axis xyz='{axis}'/></joint>"
        for k, axis in enumerate(axes)
    )
    text = f"<robot name='wrist'>{links}<link name='hand'>{mass}</inertial></link>{joints}</robot>"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", phistar.errors.PhistarWarning)
        return phistar.load(text.encode())


def state(robot: phistar.Robot, shape: int | tuple[int, ...] = ()) -> tuple[Any, Any, Any]:
    """A random q, v and a third vector."""
    rng = np.random.default_rng(1)
    q = robot.random_configuration(rng, shape)
    batch = (shape,) if isinstance(shape, int) else shape
    return q, rng.normal(size=(*batch, robot.nv)), rng.normal(size=(*batch, robot.nv))


def tip(robot: phistar.Robot) -> str:
    """The last link."""
    return robot.link_names[-1]


KINEMATIC: dict[str, Call] = {
    "frame_pose": lambda r, q, v, x, **k: r.frame_pose(q, tip(r), **k),
    "link_poses": lambda r, q, v, x, **k: r.link_poses(q, **k),
    "jacobian": lambda r, q, v, x, **k: r.jacobian(q, tip(r), **k),
    "frame_velocity": lambda r, q, v, x, **k: r.frame_velocity(q, v, tip(r), **k),
    "center_of_mass": lambda r, q, v, x, **k: r.center_of_mass(q, **k),
    "integrate": lambda r, q, v, x, **k: r.integrate(q, v, **k),
    "difference": lambda r, q, v, x, **k: r.difference(q, q, **k),
    "jacobian_rate": lambda r, q, v, x, **k: r.jacobian_rate(q, v, tip(r), **k),
    "frame_acceleration": lambda r, q, v, x, **k: r.frame_acceleration(q, v, x, tip(r), **k),
    "difference_q": lambda r, q, v, x, **k: r.difference_q(q, q, **k),
}
DYNAMIC: dict[str, Call] = {
    "inverse_dynamics": lambda r, q, v, x, **k: r.inverse_dynamics(q, v, x, **k),
    "forward_dynamics": lambda r, q, v, x, **k: r.forward_dynamics(q, v, x, **k),
    "forces": lambda r, q, v, x, **k: r.forward_dynamics(q, v, x, forces={tip(r): [1.0] * 6}, **k),
    "mass_matrix": lambda r, q, v, x, **k: r.mass_matrix(q, **k),
    "mass_matrix_inverse": lambda r, q, v, x, **k: r.mass_matrix_inverse(q, **k),
    "bias_force": lambda r, q, v, x, **k: r.bias_force(q, v, **k),
    "gravity_force": lambda r, q, v, x, **k: r.gravity_force(q, **k),
    "coriolis_matrix": lambda r, q, v, x, **k: r.coriolis_matrix(q, v, **k),
    "log_determinant": lambda r, q, v, x, **k: r.log_determinant(q, **k),
    "momentum": lambda r, q, v, x, **k: r.momentum(q, v, **k),
    "kinetic_energy": lambda r, q, v, x, **k: r.kinetic_energy(q, v, **k),
    "potential_energy": lambda r, q, v, x, **k: r.potential_energy(q, **k),
    "linearize": lambda r, q, v, x, **k: r.linearize(q, v, x, **k),
    "linearize_inverse": lambda r, q, v, x, **k: r.linearize_inverse(q, v, x, **k),
    "discretize": lambda r, q, v, x, **k: r.discretize(q, v, x, 1e-3, **k),
    "jvp": lambda r, q, v, x, **k: r.jvp("forward_dynamics", q, v, x, dq=v, **k),
    "vjp": lambda r, q, v, x, **k: r.vjp("forward_dynamics", q, v, x, v, **k),
    "regressor": lambda r, q, v, x, **k: r.regressor(q, v, x, **k),
}
CALLS = KINEMATIC | DYNAMIC
STATES: dict[str, Call] = {
    "operators": lambda r, q, v, x: r.operators(q).M @ v,
    "compile": lambda r, q, v, x: r.compile("bias_force")(q, v=v),
    "diagonalize": lambda r, q, v, x: r.diagonalize(q, v).zeta,
    "diagonal": lambda r, q, v, x: r.diagonal_forward_dynamics(q, v, x).v,
    "simulate": lambda r, q, v, x: r.simulate(q, v, dt=1e-3, steps=2, scheme="euler").v,
}
"""Methods without ``on_error``."""


def arrays_of(found: Any) -> list[np.ndarray]:
    """All arrays of a result, whatever it is kept in."""
    if isinstance(found, np.ndarray):
        return [found]
    if isinstance(found, dict):
        return [x for value in found.values() for x in arrays_of(value)]
    names = [n for n in getattr(found, "__dataclass_fields__", ()) if n != "model"]
    return [x for n in names for x in arrays_of(getattr(found, n))]


def same(ours: Any, theirs: Any, bound: float) -> None:
    """Two results agree to a share of the largest entry."""
    for one, other in zip(arrays_of(ours), arrays_of(theirs), strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        scale = max(np.abs(other).max(initial=0.0), 1.0)
        np.testing.assert_allclose(one, other, rtol=0, atol=bound * scale)


# -- quaternions


def quaternion_starts(robot: phistar.Robot) -> list[int]:
    """Known from the layout of joints, not from what is tested."""
    starts = {"free": 3, "spherical": 0}
    joints = (robot.joints[name] for name in robot.joint_names)
    return [j.q_slice.start + starts[j.kind] for j in joints if j.kind in starts]


def stretched(robot: phistar.Robot, q: np.ndarray, factor: float) -> np.ndarray:
    """q with all quaternions so much longer."""
    result = np.array(q)
    for start in quaternion_starts(robot):
        result[..., start : start + 4] *= factor
    return result


@pytest.mark.parametrize(
    ("name", "backend"),
    [*((name, "llvm") for name in [*CALLS, *STATES]), *((name, "numpy") for name in CALLS)],
)
def test_drifted_quaternions_are_made_unit(
    monkeypatch: pytest.MonkeyPatch, name: str, backend: str
) -> None:
    """Off by 5e-7 in length, results are those of the unit ones to 1e-12 of the largest entry."""
    monkeypatch.setattr(base, "_default_name", backend)
    robot = phistar.Robot(floating().model)
    q, v, x = state(robot, 3)
    call = {**CALLS, **STATES}[name]
    for factor in (1 + 5e-7, 1 - 9e-7):
        if name == "difference":
            # Steps between the same configurations are zero.
            same(robot.difference(q, stretched(robot, q[::-1], factor)),
                 robot.difference(q, q[::-1]), 1e-12)  # fmt: skip
        same(call(robot, stretched(robot, q, factor), v, x), call(robot, q, v, x), 1e-12)


def test_unit_quaternions_keep_their_bits() -> None:
    """Within a few roundings of length one nothing is scaled, also beside one that drifted."""
    robot = floating()
    q, v, x = state(robot, 9)
    known = robot.forward_dynamics(q, v, x)
    np.testing.assert_array_equal(robot.configuration(q), q)
    q[4] = stretched(robot, q[4], 1 + 1e-9)
    ours = robot.forward_dynamics(q, v, x)
    others = np.arange(9) != 4
    np.testing.assert_array_equal(ours[others], known[others])
    np.testing.assert_allclose(ours[4], known[4], rtol=0, atol=1e-12 * np.abs(known[4]).max())
    np.testing.assert_allclose(robot.forward_dynamics(q[4], v[4], x[4]), ours[4], rtol=1e-13)


@pytest.mark.parametrize("factor", [1.5, 1 + 2e-6, 0.0, 1e200])
@pytest.mark.parametrize("name", [*CALLS, *STATES])
def test_other_lengths_are_refused_by_name(name: str, factor: float) -> None:
    """Joint, sample, length and cure are named, in a batch and alone."""
    robot = floating()
    q, v, x = state(robot, 3)
    start = quaternion_starts(robot)[0]
    q[1, start : start + 4] *= factor
    call = {**CALLS, **STATES}[name]
    with pytest.raises(QuaternionError, match=r"joint 'root_joint' at sample \[1\]") as caught:
        call(robot, q, v, x)
    assert caught.value.sample == (1,)
    assert caught.value.joint == "root_joint"
    np.testing.assert_array_equal(caught.value.bad, [False, True, False])
    np.testing.assert_allclose(caught.value.length, factor, rtol=1e-9)
    assert ("robot.neutral()" if factor == 0.0 else "robot.normalize(q)") in str(caught.value)
    with pytest.raises(QuaternionError, match="of length"):
        call(robot, q[1], v[1], x[1])


def test_normalize_takes_any_length_but_zero() -> None:
    """Huge and tiny ones too, whose squares leave the range of numbers."""
    robot = floating()
    q, *_ = state(robot, 3)
    for factor in (1e200, 1e-200, 3.0):
        np.testing.assert_allclose(robot.normalize(stretched(robot, q, factor)), q, atol=1e-15)
    with pytest.raises(QuaternionError, match=r"sample \[2\].*neutral"):
        robot.normalize(np.where(np.arange(3)[:, None] == 2, 0.0, q))


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.longdouble])
def test_other_precisions_are_mended_and_refused(dtype: type) -> None:
    """float32 has its own tolerance; imaginary parts are derivatives and are not looked at."""
    robot = floating()
    q, v, x = (each.astype(dtype) for each in state(robot))
    drift = 4e-6 if dtype is np.float32 else 5e-7
    bound = 2e-4 if dtype is np.float32 else 1e-12
    same(robot.forward_dynamics(stretched(robot, q, 1 + drift), v, x),
         robot.forward_dynamics(q, v, x), bound)  # fmt: skip
    if dtype is np.complex128:
        robot.forward_dynamics(q + 1e-3j, v, x)
    with pytest.raises(QuaternionError):
        robot.forward_dynamics(stretched(robot, q, 1.001), v, x)


def test_loops_and_lines_mend_quaternions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code in loops does the same as straight lines, vectors and matrices."""
    model = floating().model
    for tier in ("rolled", "straight"):
        monkeypatch.setenv("PHISTAR_TIER", tier)
        robot = phistar.Robot(model.with_gravity((0.0, 0.0, -9.0 if tier == "rolled" else -9.5)))
        q, v, x = state(robot, 5)
        far = stretched(robot, q, 1 + 3e-7)
        same(robot.forward_dynamics(far, v, x), robot.forward_dynamics(q, v, x), 1e-12)
        same(robot.mass_matrix(far), robot.mass_matrix(q), 1e-12)
        far[2] = stretched(robot, far[2], 1.1)
        with pytest.raises(QuaternionError, match=r"sample \[2\]"):
            robot.forward_dynamics(far, v, x)


# -- numbers that are not finite


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", [*CALLS, *STATES])
def test_what_is_not_finite_is_refused(name: str, value: float) -> None:
    """The argument and its entry are named, in a batch and alone, also once there is code."""
    robot = floating()
    q, v, x = state(robot, 40)
    call = {**CALLS, **STATES}[name]
    call(robot, q, v, x)
    q[3, 0] = value
    with pytest.raises(NotFiniteError, match=r"q[01]? is not finite: q[01]?\[3, 0\]") as caught:
        call(robot, q, v, x)
    assert caught.value.sample == (3,)
    with pytest.raises(NotFiniteError, match=r"q[01]?\[0\] is (nan|inf)"):
        call(robot, q[3], v[3], x[3])
    with pytest.raises(NotFiniteError, match="dv"):
        robot.integrate(q[0], np.full(robot.nv, value))
    with pytest.raises(NotFiniteError, match="q"):
        robot.normalize(q)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_results_that_overflow_are_refused(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """Velocities of 1e200 are finite, their squares are not."""
    monkeypatch.setattr(base, "_default_name", backend)
    robot = phistar.Robot(floating().model)
    q, v, x = state(robot, 3)
    for call in ("forward_dynamics", "bias_force", "linearize", "jvp", "kinetic_energy"):
        CALLS[call](robot, q, v, x)
        far = v.copy()
        far[1] *= 1e200
        with np.errstate(all="ignore"), pytest.raises(NotFiniteError, match=r"sample \[1\]"):
            CALLS[call](robot, q, far, x)


# -- singular configurations and poses


SOLVING: dict[str, Call] = {
    **{name: DYNAMIC[name] for name in ("mass_matrix_inverse", "log_determinant", "linearize")},
    **{name: DYNAMIC[name] for name in ("jvp", "vjp", "discretize", "forces")},
    **{
        f"method {m}": lambda r, q, v, x, m=m, **k: r.forward_dynamics(q, v, x, method=m, **k)
        for m in ("articulated", "1", "2", "3", "4")
    },
    **{
        f"linearize {m}": lambda r, q, v, x, m=m, **k: r.linearize(q, v, x, method=m, **k)
        for m in ("product", "columns", "split")
    },
    "second": lambda r, q, v, x, **k: r.forward_dynamics_second(q, v, x, **k),
    "hvp": lambda r, q, v, x, **k: r.hvp("forward_dynamics", q, v, x, v, dq=v, **k),
    "christoffel": lambda r, q, v, x, **k: r.christoffel(q, **k),
    "float32": lambda r, q, v, x, **k: r.forward_dynamics(
        *(each.astype(np.float32) for each in (q, v, x)), **k
    ),
}


@pytest.mark.parametrize("angle", [0.0, 1e-9])
@pytest.mark.parametrize("name", SOLVING)
def test_singular_configurations_are_named(name: str, angle: float) -> None:
    """At the wrist's singular angle and so near it that D is rounding; others are not touched."""
    robot = wrist()
    q, v, x = state(robot, 3)
    q[:, 1] = 0.7
    known = SOLVING[name](robot, q, v, x)
    q[2, 1] = angle
    with pytest.raises(SingularConfigurationError, match=r"sample \[2\].*joint 'j1'") as caught:
        SOLVING[name](robot, q, v, x)
    assert caught.value.sample == (2,)
    assert caught.value.hinges[0].joint == "j1"
    with pytest.raises(SingularConfigurationError, match="joint 'j1'"):
        SOLVING[name](robot, q[2], v[2], x[2])
    for ours, theirs in zip(
        arrays_of(SOLVING[name](robot, q, v, x, on_error="nan")), arrays_of(known), strict=True
    ):
        assert np.isnan(ours[2]).all()
        np.testing.assert_allclose(ours[:2], theirs[:2], rtol=1e-12)


def test_singular_configurations_of_other_programs() -> None:
    """Complex numbers, η and operators are refused as well; inverse dynamics is defined."""
    robot = wrist()
    q, v, x = np.zeros(3), np.ones(3), np.ones(3)
    for call in (
        lambda: robot.forward_dynamics(q + 0j, v, x),
        lambda: robot.forward_dynamics(q + 1e-9, v + 0j, x),
        lambda: robot.diagonalize(q, v).eta,
        lambda: robot.operators(q).M.solve(v),
        lambda: robot.hybrid_dynamics(q, v, x, v, ["j2"]),
        lambda: robot.function(phistar.algebra.symbols.G)(q, v),
    ):
        with np.errstate(all="ignore"), pytest.raises(SingularConfigurationError, match="'j1'"):
            call()
    assert np.isfinite(robot.inverse_dynamics(q, v, x)).all()
    near = robot.forward_dynamics([0.3, 1e-3, 0.4], v, x)
    expected = np.linalg.solve(
        robot.mass_matrix([0.3, 1e-3, 0.4]), x - robot.bias_force([0.3, 1e-3, 0.4], v)
    )
    np.testing.assert_allclose(near, expected, rtol=1e-6)


def test_operational_inertia_at_singular_poses() -> None:
    """The stretched arm has none, and a damped one; elsewhere it is (J M⁻¹ J*)⁻¹ in every axes."""
    robot = phistar.load("ur5")
    q = robot.random_configuration(4, 3)
    q[1] = 0.0
    with pytest.raises(SingularPoseError, match=r"frame 'tool0'.* sample \[1\]") as caught:
        robot.operational_inertia(q, ["tool0"])
    assert caught.value.rank < 6
    assert caught.value.frames == ("tool0",)
    filled = robot.operational_inertia(q, ["tool0"], on_error="nan")
    assert np.isnan(filled[1]).all()
    assert np.isfinite(filled[[0, 2]]).all()
    damped = robot.operational_inertia(q, ["tool0"], damping=1e-3)
    assert np.linalg.eigvalsh(damped).min() > 0
    for reference in ("local", "world", "world_aligned"):
        J = robot.jacobian(q[[0, 2]], "tool0", reference)
        compliance = J @ np.linalg.solve(robot.mass_matrix(q[[0, 2]]), np.swapaxes(J, -1, -2))
        ours = robot.operational_inertia(q[[0, 2]], ["tool0"], reference=reference)
        np.testing.assert_allclose(ours @ compliance, [np.eye(6)] * 2, atol=1e-9)


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ("tool0", r"\['tool0'\]"),
        (["tool0", "tool0"], "each named once"),
        ([], "one frame or more"),
        (["base_link"], "fixed to the ground"),
        (["tool0", "forearm_link"], "12 directions.*6 degrees"),
    ],
)
def test_frames_without_operational_inertia(frames: Any, words: str) -> None:
    """A string, repeated, no, resting and too many frames are refused with the reason."""
    robot = phistar.load("ur5")
    with pytest.raises(ArgumentError, match=words):
        robot.operational_inertia(np.full(6, 0.5), frames)


# -- batches with bad samples


@pytest.mark.parametrize("name", CALLS)
def test_bad_samples_become_nan(name: str) -> None:
    """NaN for what is not finite or not unit, the numbers of before for all other samples."""
    robot = floating()
    q, v, x = state(robot, (2, 3))
    known = CALLS[name](robot, q, v, x)
    same(CALLS[name](robot, q, v, x, on_error="nan"), known, 1e-14)
    q[0, 1, 2] = np.nan
    start = quaternion_starts(robot)[0]
    q[1, 2, start : start + 4] *= 2.0
    bad = np.array([[False, True, False], [False, False, True]])
    np.testing.assert_array_equal(bad_samples(robot.model, q=q, v=v), bad)
    found = CALLS[name](robot, q, v, x, on_error="nan")
    for ours, theirs in zip(arrays_of(found), arrays_of(known), strict=True):
        assert ours.shape == theirs.shape
        assert np.isnan(ours[bad]).all()
        np.testing.assert_allclose(ours[~bad], theirs[~bad], rtol=1e-12, atol=1e-12)
    # Alone there is no good sample from which a shape could be had.
    alone = CALLS[name](robot, q[1, 2], v[1, 2], x[1, 2], on_error="nan")
    for ours, theirs in zip(arrays_of(alone), arrays_of(known), strict=True):
        assert ours.shape == theirs.shape[2:]
        assert np.isnan(ours).all()


def test_bad_velocities_forces_and_outputs() -> None:
    """Any argument can be the bad one; ``out=`` is filled, too, and shapes stay errors."""
    robot = floating()
    q, v, x = state(robot, 4)
    v[1, 0] = np.inf
    wrench = np.zeros((4, 6))
    wrench[2, 3] = np.nan
    out = np.empty((4, robot.nv))
    found = robot.forward_dynamics(q, v, x, on_error="nan", out=out)
    assert found is out
    np.testing.assert_array_equal(np.isnan(out).all(axis=1), [False, True, False, False])
    pushed = robot.forward_dynamics(q, v, x, forces={tip(robot): wrench}, on_error="nan")
    np.testing.assert_array_equal(np.isnan(pushed).all(axis=1), [False, True, True, False])
    np.testing.assert_allclose(pushed[0], out[0], rtol=1e-12)
    with pytest.raises(ArgumentError, match="on_error is 'skip'"):
        robot.inverse_dynamics(q, v, x, on_error="skip")
    with pytest.raises(phistar.errors.ShapeError):
        robot.forward_dynamics(q[:3], v, x, on_error="nan")


# -- values that are no arrays


def fake(module: str, name: str, **members: Any) -> Any:
    """An object of a class as another package has it, which is not installed here."""
    return type(name, (), {"__module__": module, **members})()


def _no_array(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    raise TypeError("this value has no __array__")


def array_like(module: str, name: str, dtype: Any, **members: Any) -> Any:
    """A concrete array of another package: NumPy can have its numbers."""
    numbers = np.full(2, 0.5, np.dtype(str(dtype).removeprefix("torch.")))
    return fake(
        module, name, dtype=dtype, __array__=lambda self, dtype=None, copy=None: numbers, **members
    )


FOREIGN = {
    "tracer": (
        fake("jax._src.interpreters.ad", "JVPTracer", __array__=_no_array),
        r"phistar\.interop\.jax\.wrap\(robot\)"),
    "jax float32": (array_like("jaxlib._jax", "ArrayImpl", "float32"), "float32.*np.asarray"),
    "grad": (
        fake("torch", "Tensor", requires_grad=True, dtype="torch.float64", __array__=_no_array),
        r"phistar\.interop\.torch\.wrap\(robot\).*detach\(\)\.numpy\(\)"),
    "torch float32": (
        array_like("torch", "Tensor", "torch.float32", requires_grad=False), "double"),
    "symbol": (
        fake("casadi.casadi", "SX", __array__=_no_array), r"CasADi SX.*phistar\.interop\.casadi"),
    "DM": (fake("casadi.casadi", "DM"), "full"),
    "masked": (np.ma.array([0.1, 0.2], mask=[True, False]), "1 entries masked"),
    "matrix": (np.ones((1, 2)).view(np.matrix), r"np\.matrix.*ravel"),
    "unit": (np.ones(2).view(type("Quantity", (np.ndarray,), {"unit": "deg"})), "unit 'deg'.*rad"),
    "words": (["a", "b"], "not an array of numbers"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FOREIGN)
def test_values_of_other_packages_are_refused(kind: str) -> None:
    """As q, v, tau, wrench or vector of a function, with what to use instead."""
    value, words = FOREIGN[kind]
    robot = phistar.load("double_pendulum")
    zero, link = np.zeros(2), robot.link_names[-1]
    for call in (
        lambda: robot.forward_dynamics(value, zero, zero),
        lambda: robot.forward_dynamics(zero, zero, value),
        lambda: robot.frame_velocity(zero, value, link),
        lambda: robot.inverse_dynamics(zero, zero, zero, forces={link: value}),
        lambda: robot.function(phistar.algebra.symbols.mass_matrix)(zero, value),
        lambda: robot.compile("bias_force")(zero, v=value),
    ):
        with pytest.raises(ArgumentError, match=words):
            call()
    if kind in ("tracer", "grad"):
        with pytest.raises(ArgumentError, match=words):
            robot.inverse_dynamics([value, value], zero, zero)


def test_values_of_other_packages_that_lose_nothing() -> None:
    """float64 arrays of JAX and torch, and masked arrays without a mask, are arrays."""
    robot = phistar.load("double_pendulum")
    half = np.full(2, 0.5)
    known = robot.bias_force(half, half)
    for value in (
        array_like("jaxlib._jax", "ArrayImpl", "float64"),
        array_like("torch", "Tensor", "torch.float64", requires_grad=False),
        np.ma.array(half),
    ):
        np.testing.assert_array_equal(robot.bias_force(value, value), known)


@pytest.mark.parametrize("forces", [np.zeros(6), [1], "tip", {"tip": ["a"] * 6}, {"tip": [1, 2]}])
def test_forces_that_are_none(forces: Any) -> None:
    """Arrays, lists, words and wrong wrenches are refused by name, everywhere."""
    robot = phistar.load("double_pendulum")
    link = robot.link_names[-1]
    if isinstance(forces, dict):
        forces = {link: forces["tip"]}
    z = np.zeros(2)
    for call in (
        lambda: robot.forward_dynamics(z, z, z, forces=forces),
        lambda: robot.inverse_dynamics(z, z, z, forces=forces),
        lambda: robot.linearize(z, z, z, forces=forces),
        lambda: robot.linearize_inverse(z, z, z, forces=forces),
        lambda: robot.jvp("inverse_dynamics", z, z, z, forces=forces),
        lambda: robot.vjp("forward_dynamics", z, z, z, z, forces=forces),
        lambda: robot.hybrid_dynamics(z, z, z, z, [robot.joint_names[0]], forces=forces),
    ):
        with pytest.raises(ArgumentError if not isinstance(forces, dict) or
                           isinstance(forces[link][0], str) else phistar.errors.ShapeError,
                           match="forces"):  # fmt: skip
            call()


def test_unknown_references_are_refused_without_forces() -> None:
    """Before and after there is a quick way."""
    robot = phistar.load("double_pendulum")
    z = np.zeros(2)
    for _ in range(2):
        for call in (robot.forward_dynamics, robot.inverse_dynamics, robot.linearize):
            call(z, z, z)
            with pytest.raises(ArgumentError, match="reference must be one of"):
                call(z, z, z, reference="x")
        for part in (robot.linearize, robot.linearize_inverse):
            with pytest.raises(ArgumentError, match="reference must be one of"):
                part(z, z, z, wrt=["q"], reference="x")


def test_outputs_need_no_alignment() -> None:
    """A misaligned ``out`` is filled like any other."""
    robot = phistar.load("double_pendulum")
    out = np.empty(2 * 8 + 1, np.uint8)[1:].view(float)
    assert not out.flags.aligned
    q, v, x = state(robot)
    for _ in range(2):
        assert robot.forward_dynamics(q, v, x, out=out) is out
        np.testing.assert_array_equal(out, robot.forward_dynamics(q, v, x))


# -- precision and copies


def test_single_precision_stays() -> None:
    """With forces (arrays or plain lists) and in the regressor; equal to double to 1e-4."""
    robot = phistar.load("double_pendulum")
    link = robot.link_names[-1]
    wide = state(robot, 3)
    q, v, x = (each.astype(np.float32) for each in wide)
    for forces in ({link: [0.1] * 6}, {link: np.full(6, 0.1, np.float32)}):
        for call in (robot.forward_dynamics, robot.inverse_dynamics):
            ours = call(q, v, x, forces=forces)
            assert ours.dtype == np.float32
            exact = call(*wide, forces={link: np.full(6, 0.1)})
            np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-4 * np.abs(exact).max())
    assert robot.forward_dynamics(q, v, x, forces={link: np.zeros(6)}).dtype == np.float64
    ours = robot.regressor(q, v, x)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, robot.regressor(*wide), rtol=0, atol=1e-4)


def test_linearizations_do_not_see_later_changes() -> None:
    """A belongs to the velocity that was given, whatever becomes of its array."""
    robot = floating()
    for _ in range(2):
        q, v, x = state(robot)
        known = robot.linearize(q, v.copy(), x).A
        found = robot.linearize(q, v, x)
        v[:] = 7.0
        np.testing.assert_array_equal(found.A, known)


def test_every_sample_error_is_an_argument_error() -> None:
    """So that one clause catches them all."""
    for kind in (NotFiniteError, QuaternionError, SingularConfigurationError, SingularPoseError):
        assert issubclass(kind, SampleError)
        assert issubclass(kind, ArgumentError)

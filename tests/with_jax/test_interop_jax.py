# SPDX-License-Identifier: BSD-3-Clause
"""A robot in JAX: values, both modes of derivatives, second ones, maps, scans, steps."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import phistar
from benchmarks import mechanisms
from phistar.errors import ArgumentError, ShapeError, SingularHingeError, UnknownNameError
from phistar.interop import jax as pj
from phistar.interop.quantities import QUANTITIES, calculation
from phistar.model.singular import singular_hinges
from tests import interop_cases as cases
from tests.helpers import SHARED, needs_shared
from tests.interop_cases import LOOPED, SHARED_ROBOTS, TREES, close

NAMES = [*TREES, "mixed", *(pytest.param(x, marks=needs_shared) for x in SHARED_ROBOTS)]
WARNED = "ignore::phistar.errors.PhistarWarning"


@pytest.fixture(autouse=True)
def x64():
    """JAX in float64, in all threads: Python is called back in others."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module")
def panda() -> phistar.Robot:
    """Seven hinges."""
    return phistar.load("panda")


def _jvp(wrapped, name, robot, arrays, choices, along):
    """Results and their changes, in one function of JAX that is compiled."""
    rates = [
        cases.coordinate_rates(robot, x, along[n]) if n in ("q", "q0", "q1") else along[n]
        for n, x in arrays.items()
    ]

    def call(*x):
        return wrapped.field.call(name, *x, **choices)

    run = jax.jit(lambda x, dx: jax.jvp(call, x, dx))
    return run(tuple(map(jnp.asarray, arrays.values())), tuple(map(jnp.asarray, rates)))


# -- every robot


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("name", NAMES)
def test_dynamics_of_every_robot(name: str) -> None:
    """Values as of the robot, both modes as its linearization, 1e-9 of the largest entry."""
    robot = cases.load(name)
    wrapped = pj.wrap(robot)
    assert wrapped.engine == "ffi"
    q, v, x = cases.state(robot, (3,), seed=4)
    rng = np.random.default_rng(5)
    dq, dv, dx, w = rng.normal(size=(4, 3, robot.nv))
    rates = cases.coordinate_rates(robot, q, dq)

    def both(function):
        def run(q, v, x, dq, dv, dx, w):
            result, change = jax.jvp(function, (q, v, x), (dq, dv, dx))
            _, back = jax.vjp(function, q, v, x)
            return result, change, back(w)

        return jax.jit(run)(q, v, x, rates, dv, dx, w)

    tau, dtau, inverse_back = both(wrapped.inverse_dynamics)
    at = robot.linearize_inverse(q, v, x)
    _dynamics_agree(robot, q, (tau, dtau, inverse_back), at.tau, _matrices(at, "tau", "vdot"),
                    (dq, dv, dx), w)  # fmt: skip
    try:
        on = robot.linearize(q, v, x)
    except SingularHingeError:
        with pytest.raises(SingularHingeError):
            wrapped.forward_dynamics(q, v, x)
        return
    vdot, dvdot, forward_back = both(wrapped.forward_dynamics)
    _dynamics_agree(robot, q, (vdot, dvdot, forward_back), on.vdot, _matrices(on, "vdot", "tau"),
                    (dq, dv, dx), w)  # fmt: skip


def _matrices(at, result, third):
    return [getattr(at, f"{result}_{x}") for x in ("q", "v", third)]


def _dynamics_agree(robot, q, found, value, matrices, along, w) -> None:
    result, change, back = found
    close(result, value, 1e-9)
    expected = sum((m @ d[..., None])[..., 0] for m, d in zip(matrices, along, strict=True))
    close(change, expected, 1e-9)
    # Gradients with respect to the numbers of q, seen along tangents.
    units = np.eye(robot.nv)
    seen = [cases.coordinate_rates(robot, q, np.tile(e, (len(q), 1))) for e in units]
    gradient = np.stack([(np.asarray(back[0]) * s).sum(-1) for s in seen], -1)
    for ours, matrix in zip((gradient, back[1], back[2]), matrices, strict=True):
        close(ours, (w[..., None, :] @ matrix)[..., 0, :], 1e-9)


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("name", LOOPED)
def test_dynamics_on_loops(name: str) -> None:
    """Forward dynamics and its derivatives are those of the robot, by machine code."""
    robot = phistar.load(name)
    wrapped = pj.wrap(robot)
    curve, w = cases.on_loops(robot, 2)
    q, v, tau = curve(0.0)
    run = jax.jit(wrapped.forward_dynamics)
    assert "phistar_kernel" in run.lower(q, v, tau).as_text()
    close(run(q, v, tau), robot.forward_dynamics(q, v, tau), 1e-9)
    _, back = jax.vjp(wrapped.forward_dynamics, q, v, tau)
    at = robot.linearize(q, v, tau)
    for ours, matrix in zip(back(w)[1:], (at.vdot_v, at.vdot_tau), strict=True):
        close(ours, (w[..., None, :] @ matrix)[..., 0, :], 1e-9)
    ahead = wrapped.step(q, v, tau, 1e-3)
    for ours, theirs in zip(ahead, robot.step(q, v, tau, 1e-3, passive=False), strict=True):
        close(ours, theirs, 1e-9)
    with pytest.raises(ArgumentError, match=r"robot.tree has it"):
        wrapped.mass_matrix_inverse(q)


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("name", ["four_bar", "delta"])
def test_second_derivatives_on_loops(name: str) -> None:
    """Gradients change along curves as by differences, 1e-7; tensors are the robot's."""
    robot = phistar.load(name)
    wrapped = pj.wrap(robot)
    curve, w = cases.on_loops(robot, 2)

    @jax.jit
    def gradient(q, v, tau):
        return jax.grad(lambda *x: (wrapped.forward_dynamics(*x) * w).sum(), (0, 1, 2))(q, v, tau)

    rates = cases.slope_at_zero(curve)
    _, found = jax.jit(lambda x, dx: jax.jvp(gradient, x, dx))(tuple(curve(0.0)), tuple(rates))
    by_steps = cases.slope_at_zero(lambda t: list(gradient(*curve(t))))
    for ours, theirs in zip(found, by_steps, strict=True):
        close(ours, theirs, 1e-7)
    second = robot.forward_dynamics_second(*curve(0.0))
    names = ("qq", "qv", "vv", "q_tau")
    for ours, each in zip(wrapped.forward_dynamics_second(*curve(0.0)), names, strict=True):
        close(ours, getattr(second, each), 1e-12)
    state = [x[0] for x in curve(0.0)]
    H = jax.hessian(lambda v: wrapped.forward_dynamics(state[0], v, state[2]) @ w[0])(state[1])
    close(H, np.einsum("i,ijk->jk", w[0], second.vv[0]), 1e-9)


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("name", ["delta", "bricard"])
def test_curves_on_loops_bend_as_values_do(name: str) -> None:
    """Twice along a curve on the loops, both modes: differences of accelerations alone, 1e-6.

    That takes first and second derivatives of the same rows, where some depend on others.
    """
    robot = cases.looped(name)
    wrapped = pj.wrap(robot)
    curve, w = cases.on_loops(robot, 2)
    start, speeds = curve(0.0), cases.slope_at_zero(curve)
    turns = [cases.bend_at_zero(lambda t, k=k: curve(t)[k]) for k in range(3)]

    def along(t):
        parts = zip(start, speeds, turns, strict=True)
        return (
            wrapped.forward_dynamics(*(a + t * b + 0.5 * t * t * c for a, b, c in parts)) * w
        ).sum()

    expected = cases.bend_at_zero(lambda t: (robot.forward_dynamics(*curve(t)) * w).sum())
    for twice in (jax.grad(jax.grad(along)), jax.jacfwd(jax.jacfwd(along))):
        close(jax.jit(twice)(0.0), expected, 1e-6)


@pytest.mark.filterwarnings(WARNED)
def test_states_where_loops_have_no_usual_result() -> None:
    """Off the loops: not a number. Where rows lose rank: what the robot has, by way of Python."""
    robot, q, turns = mechanisms.windows(2, 0.6)
    rng = np.random.default_rng(0)
    q = q + np.array([0.3, -0.7, np.pi / 2, 2.0])[:, None] * turns  # the third lies flat
    v, tau = np.zeros_like(q), rng.normal(size=q.shape)
    wrapped = pj.wrap(robot)
    run = jax.jit(wrapped.forward_dynamics)
    assert "phistar_kernel" in run.lower(q, v, tau).as_text()
    close(run(q, v, tau), robot.forward_dynamics(q, v, tau), 1e-9)
    q[1, 0] += 0.2
    found = np.asarray(run(q, v, tau))
    assert np.isnan(found).all(axis=-1).tolist() == [False, True, False, False]
    keep = [0, 2, 3]
    close(found[keep], robot.forward_dynamics(q[keep], v[keep], tau[keep]), 1e-9)


def test_steps_on_loops_have_no_derivative() -> None:
    """The error says where there is one; XLA has none either."""
    robot = phistar.load("four_bar")
    q, v, tau = (x[0] for x in cases.on_loops(robot, 1)[0](0.0))
    with pytest.raises(ArgumentError, match=r"step on closed loops.*robot\.discretize"):
        jax.grad(lambda tau: pj.wrap(robot).step(q, v, tau, 0.01)[1].sum())(tau)


@pytest.mark.parametrize("engine", ["ffi", "callback"])
def test_springs_push_in_steps_on_loops(engine: str) -> None:
    """``passive=True``: springs and damping, as of the robot's own step."""
    robot = phistar.load("four_bar").with_joint_physics(damping=0.5, stiffness=3.0)
    q, v, tau = (x[0] for x in cases.on_loops(robot, 1)[0](0.0))
    wrapped = pj.wrap(robot, engine=engine)
    for scheme in ("semi_implicit", "rk4"):
        ahead = jax.jit(lambda *x, s=scheme: wrapped.step(*x, 0.01, scheme=s, passive=True))
        expected = robot.step(q, v, tau, 0.01, scheme=scheme, passive=("springs", "damping"))
        for ours, theirs in zip(ahead(q, v, tau), expected, strict=True):
            close(ours, theirs, 1e-10)
        without = robot.step(q, v, tau, 0.01, scheme=scheme, passive=False)
        assert np.abs(without[1] - expected[1]).max() > 1e-2


# -- every quantity


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", ["panda_hand", "mixed"])
def test_every_quantity(name: str, quantity: str) -> None:
    """Values as of the robot (1e-10), changes as by differences of the robot (1e-7)."""
    robot = cases.load(name)
    arrays, choices = cases.arguments(robot, quantity, (2,))
    if name == "panda_hand" and quantity == "coriolis_matrix":
        with pytest.raises(ArgumentError, match="no derivative of coriolis_matrix"):
            _jvp(pj.wrap(robot), quantity, robot, arrays, choices, cases.directions(robot, arrays))
        return
    made = calculation(robot, quantity, **choices)
    along = cases.directions(robot, arrays)
    values, changes = _jvp(pj.wrap(robot), quantity, robot, arrays, choices, along)
    expected = made.run(*arrays.values())
    differences = cases.change(made.run, robot, arrays, along)
    for ours, theirs, slope, by_steps in zip(values, expected, changes, differences, strict=True):
        close(ours, theirs, 1e-10)
        close(slope, by_steps, 1e-7)


def test_methods_are_the_robots(panda) -> None:
    """The same names and numbers, by position and by keyword."""
    wrapped = pj.wrap(panda)
    q, v, tau = cases.state(panda, (4,))
    frame = "panda_link7"
    pairs = [
        (wrapped.mass_matrix(q), panda.mass_matrix(q)),
        (wrapped.crba(q), panda.mass_matrix(q)),
        (wrapped.jacobian(q, frame), panda.jacobian(q, frame)),
        (wrapped.jacobian(q, frame=frame, reference="local"), panda.jacobian(q, frame, "local")),
        (wrapped.frame_velocity(q, v, frame), panda.frame_velocity(q, v, frame)),
        (wrapped.link_poses(q)[frame], panda.link_poses(q)[frame]),
        (wrapped.linearize(q, v, tau).vdot_q, panda.linearize(q, v, tau).vdot_q),
        (wrapped.integrate(q, v), panda.integrate(q, v)),
        (wrapped.kinetic_energy(q, v), panda.kinetic_energy(q, v)),
        (wrapped.operational_inertia(q, [frame]), panda.operational_inertia(q, [frame])),
    ]
    for ours, theirs in pairs:
        close(ours, theirs, 1e-9)
    second, ours = panda.forward_dynamics_second(q, v, tau), wrapped.forward_dynamics_second
    for a, b in zip(ours(q, v, tau), (second.qq, second.qv, second.vv, second.q_tau), strict=True):
        close(a, b, 1e-9)


def test_wrenches_on_frames(panda) -> None:
    """``forces=`` is J* f, in the axes of the reference."""
    wrapped = pj.wrap(panda)
    q, v, tau = cases.state(panda, (2,))
    forces = {"panda_link7": np.random.default_rng(2).normal(size=(2, 6))}
    for reference in ("world_aligned", "local"):
        given = {"forces": forces, "reference": reference}
        close(wrapped.forward_dynamics(q, v, tau, **given),
              panda.forward_dynamics(q, v, tau, **given), 1e-9)  # fmt: skip
        close(wrapped.inverse_dynamics(q, v, tau, **given),
              panda.inverse_dynamics(q, v, tau, **given), 1e-9)  # fmt: skip


# -- JAX's own checks, second derivatives


@pytest.mark.parametrize("name", ["double_pendulum", "mixed"])
def test_jax_check_grads_twice(name: str) -> None:
    """Second derivatives in both modes against JAX's differences."""
    _check_grads(name, 2)


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("name", NAMES)
def test_jax_check_grads(name: str) -> None:
    """Both modes against JAX's differences; inverse dynamics alone where joints move no inertia."""
    _check_grads(name, 1)


def _check_grads(name: str, order: int) -> None:
    """q moves on its manifold; results are divided by their size, which is zero without mass."""
    robot = cases.load(name)
    wrapped = pj.wrap(robot)
    q, v, x = cases.state(robot, seed=3)
    quantities = [wrapped.inverse_dynamics]
    if not singular_hinges(robot.model):
        quantities.append(wrapped.forward_dynamics)
    start = jnp.full(robot.nv, 0.1)
    for quantity in quantities:
        size = float(jnp.abs(quantity(q, v, x)).max()) or 1.0

        def function(dq, v, x, quantity=quantity, size=size):
            return quantity(wrapped.integrate(q, dq), v, x) / size

        check_grads(jax.jit(function), (start, v, x), order, atol=2e-5, rtol=2e-5, eps=1e-4)


def test_the_hessian_is_our_second_derivative(panda) -> None:
    """``jax.hessian`` of w · result against the tensors of the robot, 1e-9."""
    wrapped = pj.wrap(panda)
    q, v, x = cases.state(panda)
    w = np.random.default_rng(1).normal(size=panda.nv)
    for function, second, third in (
        (wrapped.inverse_dynamics, panda.inverse_dynamics_second(q, v, x), "q_vdot"),
        (wrapped.forward_dynamics, panda.forward_dynamics_second(q, v, x), "q_tau"),
    ):
        H = jax.jit(jax.hessian(lambda *a, f=function: f(*a) @ w, (0, 1, 2)))(q, v, x)
        for ours, name in ((H[0][0], "qq"), (H[0][1], "qv"), (H[1][1], "vv"), (H[0][2], third)):
            close(ours, np.einsum("i,ijk->jk", w, getattr(second, name)), 1e-9)


def test_the_hessian_on_a_manifold() -> None:
    """Symmetric with respect to the numbers of q, zero along quaternions, right along curves."""
    robot = cases.mixed()
    wrapped = pj.wrap(robot)
    q, v, x = cases.state(robot, seed=6)

    def energy(q):
        return wrapped.forward_dynamics(q, v, x) @ v

    H = np.asarray(jax.jit(jax.hessian(energy))(q))
    close(H, H.T, 1e-9)
    dq = np.random.default_rng(7).normal(size=robot.nv)

    def along(t):
        return energy(wrapped.integrate(q, t * dq))

    slope = jax.jit(jax.grad(along))
    h = 1e-4
    steps = [float(slope(t * h)) for t in (1, -1, 2, -2)]
    by_steps = (8 * (steps[0] - steps[1]) - (steps[2] - steps[3])) / (12 * h)
    close(jax.jit(jax.grad(slope))(0.0), by_steps, 1e-7)
    gradient = np.asarray(jax.grad(energy)(jnp.asarray(q)))
    start = next(joint.q_slice.start for joint in robot.model.joints.values()
                 if joint.joint_kind.name == "free")  # fmt: skip
    own = slice(start + 3, start + 7)
    assert abs(gradient[own] @ q[own]) < 1e-9 * np.abs(gradient).max()


@pytest.mark.parametrize("quantity", ["frame_pose", "kinetic_energy", "mass_matrix", "step"])
def test_second_derivatives_of_other_quantities(quantity: str) -> None:
    """Differentiated again, against differences of the first derivative, 1e-7."""
    robot = cases.load("double_pendulum" if quantity == "step" else "mixed")
    wrapped = pj.wrap(robot)
    arrays, choices = cases.arguments(robot, quantity)
    choices |= {"scheme": "rk4"} if quantity == "step" else {}
    along = cases.directions(robot, arrays)
    names = list(arrays)

    @jax.jit
    def slope(t):
        def at(t):
            moved = [
                wrapped.integrate(x, t * along[n]) if n == "q" else x + t * along[n]
                for n, x in arrays.items()
            ]
            return wrapped.field.call(quantity, *moved, **choices)

        return jax.jvp(at, (t,), (1.0,))[1]

    assert names[0] == "q"
    h = 1e-4
    ahead, behind, far, back = (slope(t * h) for t in (1.0, -1.0, 2.0, -2.0))
    found = jax.jit(jax.jacfwd(slope))(0.0)
    for ours, a, b, c, d in zip(found, ahead, behind, far, back, strict=True):
        close(ours, (8 * (a - b) - (c - d)) / (12 * h), 1e-7)


def test_third_derivatives_are_refused(panda) -> None:
    """By name, and not by a wrong number."""
    wrapped = pj.wrap(panda)
    q, v, x = cases.state(panda)

    def energy(v):
        return wrapped.inverse_dynamics(q, v, x).sum()

    with pytest.raises(ArgumentError, match="no derivative of inverse_dynamics"):
        jax.jacfwd(jax.hessian(energy))(v)


# -- maps, scans, batches


def test_nested_maps_become_one_batch(panda) -> None:
    """vmap in vmap with arrays that are not mapped, in any axis; one call of machine code."""
    wrapped = pj.wrap(panda)
    q, v, tau = cases.state(panda, (3, 4))
    mapped = jax.jit(
        jax.vmap(jax.vmap(wrapped.forward_dynamics, (0, None, 1)), (0, None, None), out_axes=1)
    )
    found = mapped(q, v[0, 0], tau[0].T)
    close(found.swapaxes(0, 1), panda.forward_dynamics(q, v[0, 0], tau[0]), 1e-9)
    text = mapped.lower(q, v[0, 0], tau[0].T).as_text()
    assert text.count("stablehlo.custom_call @phistar_kernel") == 1
    assert "while" not in text


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 17, 4096])
def test_batches_of_any_size(panda, count: int) -> None:
    """Empty, below and above the lanes of a register, cut between threads."""
    wrapped = pj.wrap(panda)
    q, v, tau = cases.state(panda, (count,))
    found = jax.jit(wrapped.forward_dynamics)(q, v, tau)
    close(found, panda.forward_dynamics(q, v, tau), 1e-10)


def test_large_batches_are_cut_for_threads(panda, monkeypatch) -> None:
    """Pieces of a batch on XLA's threads, the same bits; a bad sample spoils no other."""
    monkeypatch.setitem(vars(phistar.thresholds.POLICY), "min_nanoseconds_per_thread", 2e4)
    monkeypatch.setenv("PHISTAR_THREADS", "4")
    wrapped = pj.wrap(panda.with_gravity((0.0, 0.0, -9.0)))
    q, v, tau = cases.state(panda, (5000,))
    q[1234, 2] = np.nan
    shared = jax.jit(wrapped.forward_dynamics)
    found = np.asarray(shared(q, v, tau))
    for _ in range(20):
        assert np.array_equal(np.asarray(shared(q, v, tau)), found, equal_nan=True)
    alone = np.asarray(wrapped.robot.forward_dynamics(q, v, tau, on_error="nan"))
    assert np.isnan(found[1234]).all()
    assert np.isnan(found).sum() == panda.nv
    close(np.delete(found, 1234, 0), np.delete(alone, 1234, 0), 1e-10)


def test_a_scan_of_steps_and_its_gradient(panda) -> None:
    """``lax.scan`` over ``r.step`` is ``robot.step`` repeated; its gradient against differences."""
    wrapped = pj.wrap(panda)
    q, v, tau = cases.state(panda, (2,))
    v, tau = 0.1 * v, 5.0 * tau

    def roll(q, v, tau):
        def body(x, _):
            return wrapped.step(*x, tau, 1e-3), None

        return jax.lax.scan(body, (q, v), None, length=20)[0]

    ahead = jax.jit(roll)(q, v, tau)
    q1, v1 = q, v
    for _ in range(20):
        q1, v1 = panda.step(q1, v1, tau, 1e-3, scheme="semi_implicit", passive=False)
    close(ahead[0], q1, 1e-11)
    close(ahead[1], v1, 1e-11)

    def cost(tau):
        return (roll(q, v, tau)[0] ** 2).sum()

    gradient = jax.jit(jax.grad(cost))(tau)
    d = np.random.default_rng(0).normal(size=tau.shape)
    run, h = jax.jit(cost), 1e-3
    by_steps = (run(tau + h * d) - run(tau - h * d)) / (2 * h)
    close((gradient * d).sum(), by_steps, 1e-6)


@pytest.mark.parametrize("scheme", ["semi_implicit", "euler", "rk4"])
def test_steps_on_a_manifold(scheme: str) -> None:
    """As of the robot, by every scheme; derivatives as by differences."""
    robot = cases.mixed()
    wrapped = pj.wrap(robot)
    q, v, tau = cases.state(robot)
    call = jax.jit(lambda q, v, tau: wrapped.step(q, v, tau, 0.01, scheme=scheme))
    theirs = robot.step(q, v, tau, 0.01, scheme=scheme, passive=False)
    for a, b in zip(call(q, v, tau), theirs, strict=True):
        close(a, b, 1e-10)
    arrays = {"q": q, "v": v, "tau": tau}
    along = cases.directions(robot, arrays)
    dq = cases.coordinate_rates(robot, q, along["q"])
    _, change = jax.jvp(call, (q, v, tau), (dq, along["v"], along["tau"]))

    def by_robot(*x):
        return robot.step(*x, 0.01, scheme=scheme, passive=False)

    for a, b in zip(change, cases.change(by_robot, robot, arrays, along), strict=True):
        close(a, b, 1e-8)


# -- precision


def test_single_precision_stays(panda) -> None:
    """float32 in, float32 out, by code for it; x64 may be on or off."""
    wrapped = pj.wrap(panda)
    state = [x.astype(np.float32) for x in cases.state(panda, (3,))]
    expected = panda.forward_dynamics(*(x.astype(float) for x in state))
    for double in (True, False):
        with jax.enable_x64(double):
            found = jax.jit(wrapped.forward_dynamics)(*map(jnp.asarray, state))
            assert found.dtype == jnp.float32
            close(found, expected, 1e-3)
            gradient = jax.grad(lambda *x: wrapped.forward_dynamics(*x).sum())(*state)
            assert gradient.dtype == jnp.float32


@pytest.mark.parametrize("double", [False, True])
def test_numbers_have_no_precision_of_their_own(panda, double: bool) -> None:
    """A length of time leaves float32 what it is, and lists are in the precision of JAX."""
    q, v, tau = (x.astype(np.float32) for x in cases.state(panda, (3,)))
    with jax.enable_x64(double):
        wrapped = pj.wrap(panda)
        for dt in (0.01, np.float64(0.01), jnp.asarray(0.01), 1):
            ends = jax.jit(wrapped.step)(q, v, tau, dt), wrapped.step(q, v, tau, dt=dt)
            assert {x.dtype for pair in ends for x in pair} == {jnp.dtype("float32")}
        listed = wrapped.mass_matrix([0.1] * 7)
        assert listed.dtype == jnp.result_type(float)
        np.testing.assert_allclose(listed, panda.mass_matrix([0.1] * 7), rtol=1e-4, atol=1e-5)
        if not double:
            with pytest.raises(ArgumentError, match="jax_enable_x64"):
                wrapped.mass_matrix([np.float64(0.1)] * 7)


def test_double_precision_where_x64_is_off(panda) -> None:
    """A NumPy array in float64 would lose half its digits: an error that names the setting."""
    q, v, tau = cases.state(panda)
    with jax.enable_x64(False), pytest.raises(ArgumentError, match="jax_enable_x64"):
        pj.wrap(panda).forward_dynamics(q, v, tau)


def test_wrong_arguments(panda) -> None:
    """One clear error each."""
    wrapped = pj.wrap(panda)
    q, v, tau = cases.state(panda)
    with pytest.raises(ArgumentError, match="float16"):
        wrapped.forward_dynamics(jnp.asarray(q, jnp.float16), v, tau)
    with pytest.raises(ArgumentError, match="complex128"):
        wrapped.forward_dynamics(q + 0j, v, tau)
    with pytest.raises(ShapeError, match="q has shape"):
        jax.jit(wrapped.forward_dynamics)(q[:-1], v, tau)
    with pytest.raises(ArgumentError, match="dict by joint name"):
        wrapped.gravity_force({"panda_joint1": 0.3})
    with pytest.raises(UnknownNameError, match="no frame 'hand'"):
        wrapped.frame_pose(q, "hand")
    with pytest.raises(ArgumentError, match="needs frame="):
        wrapped.frame_pose(q)
    with pytest.raises(UnknownNameError, match="engine"):
        pj.wrap(panda, engine="cuda")
    with pytest.raises(ArgumentError, match=r"takes a phistar.Robot"):
        pj.wrap(panda.model)
    cases.check_wrong_arguments(wrapped, q, v, tau)


def test_a_wrapped_robot_travels(panda) -> None:
    """Pickled and copied: made again from its robot, with its engine."""
    q, v, tau = cases.state(panda)
    for engine in pj.ENGINES:
        wrapped = pj.wrap(panda, engine=engine)
        for again in (pickle.loads(pickle.dumps(wrapped)), copy.deepcopy(wrapped)):
            assert again.engine == engine
            close(again.forward_dynamics(q, v, tau), panda.forward_dynamics(q, v, tau), 1e-9)


def test_buffers_that_are_changed(panda) -> None:
    """NumPy arrays may be written to as soon as a call is back, before it has been computed."""
    wrapped = pj.wrap(panda)
    q, v, tau = cases.state(panda, (20_000,))
    expected = panda.forward_dynamics(q, v, tau)
    for _ in range(5):
        given = [x.copy() for x in (q, v, tau)]
        found = wrapped.forward_dynamics(*given)
        for x in given:
            x[:] = 7.0
        close(found, expected, 1e-10)


def test_samples_without_result_are_nan() -> None:
    """Not finite, or a quaternion that is not unit: that sample, all of it, and no exception."""
    robot = phistar.load("quadruped")
    wrapped = pj.wrap(robot)
    q, v, tau = cases.state(robot, (11,))
    bad = q.copy()
    bad[3, 3:7] *= 1.1
    bad[5, 3:7] = 0.0
    found = np.asarray(jax.jit(wrapped.inverse_dynamics)(bad, v, tau))
    assert np.isnan(found).all(axis=-1).nonzero()[0].tolist() == [3, 5]
    assert np.isnan(found).sum() == 2 * robot.nv
    keep = [i for i in range(11) if i not in (3, 5)]
    close(found[keep], robot.inverse_dynamics(q, v, tau)[keep], 1e-10)


# -- export, engines


def test_export_is_refused_with_a_reason(panda) -> None:
    """Machine code cannot travel; the engine ``xla`` can."""
    q, v, tau = cases.state(panda)
    with pytest.raises(ArgumentError, match=r"cannot be exported.*engine='xla'"):
        jax.export.export(jax.jit(pj.wrap(panda).forward_dynamics))(q, v, tau)
    by_xla = pj.wrap(panda, engine="xla")
    kept = jax.export.export(jax.jit(by_xla.forward_dynamics))(q, v, tau)
    close(kept.call(q, v, tau), panda.forward_dynamics(q, v, tau), 1e-9)


def test_engines_agree(panda) -> None:
    """Machine code, XLA and Python called back: values and gradients."""
    q, v, tau = cases.state(panda)
    expected = panda.linearize(q, v, tau)
    for engine in ("ffi", "xla", "callback"):
        wrapped = pj.wrap(panda, engine=engine)
        assert wrapped.engine == engine
        close(jax.jit(wrapped.forward_dynamics)(q, v, tau), expected.vdot, 1e-9)
        close(jax.jit(jax.jacrev(wrapped.forward_dynamics))(q, v, tau), expected.vdot_q, 1e-9)
    by_xla = pj.wrap(panda, engine="xla")
    second = panda.inverse_dynamics_second(q, v, tau)
    for ours, name in zip(by_xla.inverse_dynamics_second(q, v, tau), ("qq", "qv", "vv"),
                          strict=False):  # fmt: skip
        close(ours, getattr(second, name), 1e-9)
    close(by_xla.center_of_mass(q), panda.center_of_mass(q), 1e-10)
    with pytest.raises(ArgumentError, match=r"frame_pose by the backend 'jax'.*has no sweeps"):
        by_xla.frame_pose(q, "panda_link8")
    ahead = pj.wrap(panda, engine="xla").step(q, v, tau, 1e-3)
    close(ahead[1], panda.step(q, v, tau, 1e-3, passive=False, scheme="semi_implicit")[1], 1e-10)


def test_shared_robots_are_there_in_ci() -> None:
    """The twelve files exist where the folder does."""
    if (SHARED / "robots").is_dir():
        assert all((SHARED / "robots" / name).exists() for name in SHARED_ROBOTS)

# SPDX-License-Identifier: BSD-3-Clause
"""Programs as pure functions of JAX: mapped and differentiated by it, in the user's precision.

What they compute is the matter of ``tests/backends/test_contract.py``, which runs on JAX here.
"""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import phistar
from phistar.algebra.spaces import TASK_FORCE
from phistar.algebra.symbols import B, D, H, psi, vector
from phistar.backends.jax.rounds import NOWHERE, round_groups
from phistar.backends.jax.streams import PassPlan
from phistar.compile import kernel
from phistar.errors import (
    ArgumentError,
    NotFiniteError,
    ShapeError,
    SingularConfigurationError,
    UnknownNameError,
)
from phistar.model.generators import chain
from phistar.model.random import random_model
from phistar.sweeps.parallel.robot_tree import tree_of_runs
from phistar.thresholds import POLICY


@pytest.fixture
def x64():
    """JAX in float64, as its users switch it on."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def robot() -> phistar.Robot:
    """A floating tree with joints of several kinds, one of them a screw."""
    kinds = ["revolute", "helical", "prismatic", "spherical"]
    rng = np.random.default_rng(3)
    return phistar.load(random_model(rng, 4, kinds=kinds, floating_base=True, armature=0.3))


@pytest.fixture(scope="module")
def forward(robot: phistar.Robot):
    """Its forward dynamics."""
    return robot.compile("forward_dynamics", backend="jax")


def _state(robot: phistar.Robot, shape: tuple[int, ...] = (), seed: int = 0):
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng, shape), *rng.normal(size=(2, *shape, robot.nv))


def _close(ours, theirs, bound: float = 1e-11) -> None:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() < bound * max(np.abs(theirs).max(), 1e-3)


def _tangents(robot: phistar.Robot, q: np.ndarray) -> np.ndarray:
    """(nq, nv): how q changes along each velocity, by complex steps of ``integrate``."""
    return np.stack([robot.integrate(q, 1e-30j * e).imag / 1e-30 for e in np.eye(robot.nv)], -1)


# -- derivatives


@pytest.mark.usefixtures("x64")
def test_jax_derivatives_of_forward_dynamics_are_ours(robot, forward) -> None:
    """Forward and reverse mode against ``linearize``, 1e-10; q moves on its manifold."""
    q, v, tau = _state(robot)
    ours = robot.linearize(q, v, tau)

    @jax.jit
    def both(q, v, tau):
        def run(*x):
            return forward.function(x[0], v=x[1], tau=x[2])

        return jax.jacfwd(run, (0, 1, 2))(q, v, tau), jax.jacrev(run, 0)(q, v, tau)

    (vdot_q, vdot_v, vdot_tau), reverse = both(q, v, tau)
    _close(vdot_q @ _tangents(robot, q), ours.vdot_q, 1e-10)
    _close(vdot_v, ours.vdot_v, 1e-10)
    _close(vdot_tau, ours.vdot_tau, 1e-10)
    _close(reverse, vdot_q, 1e-10)


@pytest.mark.usefixtures("x64")
def test_jax_derivatives_of_inverse_dynamics_are_ours(robot) -> None:
    """Against ``linearize_inverse``, 1e-10."""
    q, v, vdot = _state(robot, seed=1)
    inverse = robot.compile("inverse_dynamics", backend="jax").function
    derivative = jax.jit(jax.jacfwd(lambda *x: inverse(x[0], v=x[1], vdot=x[2]), (0, 1, 2)))
    tau_q, tau_v, tau_vdot = derivative(q, v, vdot)
    ours = robot.linearize_inverse(q, v, vdot)
    _close(tau_q @ _tangents(robot, q), ours.tau_q, 1e-10)
    _close(tau_v, ours.tau_v, 1e-10)
    _close(tau_vdot, ours.tau_vdot, 1e-10)


@pytest.mark.usefixtures("x64")
def test_the_gradient_of_potential_energy_is_the_gravity_force(robot) -> None:
    """A number of the whole robot, by ``jax.grad``; padding adds no NaN to the derivative."""
    q, _, _ = _state(robot, seed=2)
    energy = robot.compile("potential_energy", backend="jax").function
    gradient = jax.jit(jax.grad(energy))(jnp.asarray(q))
    _close(gradient @ _tangents(robot, q), robot.gravity_force(q), 1e-10)


# -- maps, batches, precision


@pytest.mark.usefixtures("x64")
def test_maps_and_batches(robot, forward) -> None:
    """vmap inside jit, and leading axes that broadcast, are the batches of our machine code."""
    q, v, tau = _state(robot, (2, 3))
    expected = robot.forward_dynamics(q, v, tau[0, 0])
    once = jax.jit(lambda q, v, tau: forward(q, v=v, tau=tau))
    _close(once(q, v, tau[0, 0]), expected)
    mapped = jax.jit(jax.vmap(jax.vmap(once, (0, 0, None)), (0, 0, None)))
    _close(mapped(q, v, tau[0, 0]), expected)


def test_numpy_in_numpy_out_in_double(robot, forward) -> None:
    """Whatever JAX is set to, and its setting stays."""
    assert not jax.config.jax_enable_x64
    q, v, tau = _state(robot, (3,))
    found = forward(q, v=v, tau=tau)
    assert type(found) is np.ndarray
    assert found.dtype == np.float64
    _close(found, robot.forward_dynamics(q, v, tau))
    assert not jax.config.jax_enable_x64
    assert forward(*(x.astype(np.float32) for x in (q,)), v=v[0] * 0, tau=tau).dtype == np.float64


def test_single_precision_stays_single(robot, forward) -> None:
    """Arrays of JAX give arrays of JAX, in their precision, also where float64 is on."""
    state = [x.astype(np.float32) for x in _state(robot, (3,))]
    expected = robot.forward_dynamics(*(x.astype(float) for x in state))
    for double in (False, True):
        with jax.enable_x64(double):
            q, v, tau = (jnp.asarray(x) for x in state)
            found = jax.jit(lambda q, v, tau: forward(q, v=v, tau=tau))(q, v, tau)
            assert isinstance(found, jax.Array)
            assert found.dtype == jnp.float32
            _close(found, expected, 1e-3)
    assert forward(state[0], v=state[1], tau=state[2]).dtype == np.float32


@pytest.mark.usefixtures("x64")
def test_integers_and_lists_are_numbers(robot, forward) -> None:
    """They take the precision of JAX."""
    q, v, _ = _state(robot)
    found = forward(jnp.asarray(q), v=v.tolist(), tau=np.zeros(robot.nv, dtype=int))
    assert found.dtype == jnp.float64
    _close(found, robot.forward_dynamics(q, v, np.zeros(robot.nv)))


# -- other programs


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["mass_matrix", "linearize"])
def test_matrices_and_bundles(name: str) -> None:
    """By unit columns; the same from arrays of NumPy and of JAX."""
    robot = phistar.load(random_model(np.random.default_rng(5), 4, kinds=["revolute", "helical"]))
    q, v, tau = _state(robot, (2,))
    code = robot.compile(name, backend="jax")
    inputs = {} if name == "mass_matrix" else {"v": v, "tau": tau}
    expected = robot.compile(name)(q, **inputs)
    traced = jax.jit(lambda q, inputs: code.function(q, **inputs))(q, inputs)
    for found in (code(q, **inputs), traced):
        jax.tree.map(lambda a, b: _close(a, b, 1e-10), found, expected)


@pytest.mark.usefixtures("x64")
def test_own_expressions_on_frames(robot) -> None:
    """B takes forces of frames in and motions of frames out; one frame may rest."""
    frames = (robot.frame_names[-1], robot.frame_names[0], robot.frame_names[3])
    compliance = B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B @ vector("wrench", TASK_FORCE)
    q, _, _ = _state(robot)
    wrench = np.random.default_rng(4).normal(size=(3, 6))
    one, other = (robot.compile(compliance, frames=frames, backend=b) for b in ("jax", "numpy"))
    _close(one(jnp.asarray(q), wrench=wrench), other(q, wrench=wrench))


@pytest.mark.usefixtures("x64")
def test_coordinates_are_the_robots() -> None:
    """Joints in another order, and mimic joints that share a coordinate."""
    kinds = ["revolute", "prismatic"]
    model = random_model(np.random.default_rng(23), 6, kinds=kinds, mimic=0.6, anchors=0.5)
    mimic = phistar.load(model)
    assert mimic.nv < len(model.bodies)
    turned = mimic.reorder(mimic.joint_names[::-1])
    for robot in (mimic, turned):
        q, v, vdot = _state(robot)
        found = robot.compile("inverse_dynamics", backend="jax")(jnp.asarray(q), v=v, vdot=vdot)
        _close(found, robot.inverse_dynamics(q, v, vdot))


def test_many_children_are_added_by_scattering() -> None:
    """A hub with more arms than are gathered side by side."""
    arms = POLICY.jax_gathered_children + 2
    model = phistar.model.generators.tree(2, arms)
    robot = phistar.load(model)
    q, v, tau = _state(robot)
    found = robot.compile("forward_dynamics", backend="jax")(q, v=v, tau=tau)
    _close(found, robot.forward_dynamics(q, v, tau))


def test_the_default_backend_may_be_jax() -> None:
    """PHISTAR_BACKEND=jax: methods of a robot go by it, what it has no program for by NumPy."""
    script = """
import sys, numpy as np, phistar
r = phistar.load("panda")
q, v = r.neutral() + 0.1, np.ones(7)
assert abs(r.inverse_dynamics(q, v, r.forward_dynamics(q, v, v)) - v).max() < 1e-9
vdot = r.forward_dynamics(q, v, v)
assert abs(r.mass_matrix(q) @ vdot + r.bias_force(q, v) - v).max() < 1e-9
assert r.jacobian(q, "panda_link7").shape == (6, 7) and "jax" in sys.modules
"""
    environment = {**os.environ, "PHISTAR_BACKEND": "jax"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


# -- parallel schedules


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
def test_rounds_are_sequential_dynamics(name: str) -> None:
    """A chain whose runs are joined in several rounds, against machine code; 1e-9."""
    robot = phistar.robots.chain(9 * POLICY.jax_run_links)
    q, v, x = _state(robot)
    q, v = 0.1 * q, 0.1 * v
    code = robot.compile(name, backend="jax", schedule="parallel")
    other = "tau" if name == "forward_dynamics" else "vdot"
    found = jax.jit(code.function)(q, v=v, **{other: x})
    _close(found, getattr(robot, name)(q, v, x), 1e-9)


@pytest.mark.usefixtures("x64")
def test_rounds_on_a_tree_and_their_derivative(robot) -> None:
    """All kinds of joints, batches, light branches; the derivative along v is ours."""
    q, v, tau = _state(robot, (2,))
    run = robot.compile("forward_dynamics", backend="jax", schedule="parallel").function
    jvp = jax.jit(lambda q, v, tau, dv: jax.jvp(lambda v: run(q, v=v, tau=tau), (v,), (dv,)))
    dv = np.ones_like(v)
    vdot, change = jvp(q, v, tau, dv)
    _close(vdot, robot.forward_dynamics(q, v, tau))
    expected = (robot.linearize(q, v, tau).vdot_v @ dv[..., None])[..., 0]
    _close(change, expected, 1e-10)


def test_groups_of_rounds_hold_every_link_and_join_once() -> None:
    """Whatever is filled up lies nowhere; there are no more groups than the policy allows."""
    tree = tree_of_runs(chain(1000), 4)
    for rounds in (tree.up, tree.down):
        groups = round_groups(rounds)
        assert len(groups) <= POLICY.jax_round_groups
        made = [
            x[x < NOWHERE] for each in groups for (_, part), x in each.items() if part == "index"
        ]
        assert sorted(np.concatenate(made)) == list(range(tree.size))


def test_rounds_compile_as_soon_on_long_chains() -> None:
    """The same equations for 300 links and for 3000."""
    texts = [
        phistar.robots.chain(n).compile("forward_dynamics", backend="jax", schedule="parallel")
        for n in (300, 3000)
    ]
    assert len({text.source().count(" = ") for text in texts}) == 1


# -- the size of the code


def test_code_does_not_grow_with_the_links() -> None:
    """The same equations for 5 links and for 500, on chains and on trees."""
    tree = phistar.model.generators.tree
    for small, large in ((chain(5), chain(500)), (tree(2, 2), tree(6, 2))):
        texts = [
            phistar.load(model).compile("forward_dynamics", backend="jax").source()
            for model in (small, large)
        ]
        assert len({text.count(" = ") for text in texts}) == 1
        assert "scan" in texts[0]


def test_only_recursions_go_from_depth_to_depth() -> None:
    """Of inverse dynamics two scans; joint forces are made of all links at once."""
    scheduled = kernel("inverse_dynamics").schedule
    plans = [PassPlan.of(scheduled.program, each) for each in scheduled.sweeps]
    ops = [{scheduled.program.nodes[s].op for s in plan.recursive} for plan in plans]
    assert [{"shift_out", "shift_in"} & each for each in ops] == [{"shift_out"}, {"shift_in"}]
    assert not any({"H", "inertia"} & each for each in ops)


# -- errors


def test_wrong_arguments_are_named(robot, forward) -> None:
    """Shapes, names, dicts and batches, before anything is traced."""
    q, v, tau = (jnp.asarray(x.astype(np.float32)) for x in _state(robot, (2,)))
    run = forward.function
    with pytest.raises(ShapeError, match=r"q has shape \(2, 3\), robot 'random' needs \(\.\.\., "):
        run(q[:, :3], v=v, tau=tau)
    with pytest.raises(ShapeError, match=r"tau has shape .* broadcast with"):
        run(q, v=v, tau=jnp.zeros((3, robot.nv), jnp.float32))
    with pytest.raises(ShapeError, match="f_ext"):
        run(q, v=v, tau=tau, f_ext=jnp.zeros(6, jnp.float32))
    with pytest.raises(ArgumentError, match="needs a value for tau"):
        run(q, v=v)
    with pytest.raises(UnknownNameError, match="torque"):
        run(q, v=v, torque=tau)
    with pytest.raises(ArgumentError, match=r"dict.*robot\.configuration"):
        run(q, v={}, tau=tau)


def test_precision_is_never_lost_in_silence(robot, forward) -> None:
    """float64 of NumPy where JAX is in float32, float16, bfloat16, and what is no number."""
    q, v, tau = (jnp.asarray(x.astype(np.float32)) for x in _state(robot))
    with pytest.raises(ArgumentError, match=r"v is .*float64.*jax_enable_x64.*astype"):
        forward(q, v=np.asarray(v, dtype=float), tau=tau)
    for half in (jnp.float16, jnp.bfloat16):
        with pytest.raises(ArgumentError, match=r"q has dtype b?float16.*float32"):
            forward(q.astype(half), v=v, tau=tau)
    with pytest.raises(ArgumentError, match="tau"):
        forward(q, v=v, tau="nothing")


def test_not_every_kernel_has_a_function(robot) -> None:
    """Other backends and quantities without sweeps say so, and what to do."""
    with pytest.raises(ArgumentError, match='backend="jax"'):
        _ = robot.compile("forward_dynamics").function
    frame = robot.frame_names[-1]
    with pytest.raises(ArgumentError, match="has no sweeps"):
        _ = robot.compile("jacobian", frames=[frame], backend="jax").function


@pytest.mark.usefixtures("x64")
def test_what_is_not_finite_comes_out(robot, forward) -> None:
    """A traced function cannot raise: NaN in, NaN out, other samples keep their numbers."""
    q, v, tau = _state(robot, (3,))
    expected = robot.forward_dynamics(q, v, tau)
    tau[1, 0] = np.nan
    found = np.asarray(forward(jnp.asarray(q), v=v, tau=tau))
    assert np.isnan(found[1]).any()
    _close(found[[0, 2]], expected[[0, 2]])
    with pytest.raises(NotFiniteError, match="tau"):
        forward(q, v=v, tau=tau)


@pytest.mark.usefixtures("x64")
def test_a_singular_hinge_is_not_a_number() -> None:
    """At the wrist's singular angle; the call on arrays of NumPy names the joint."""
    parts = []
    for k, axis in enumerate(("0 0 1", "0 1 0", "0 0 1")):
        parts.append(
            f"<link name='l{k}'/><joint name='j{k}' type='continuous'><parent link='l{k}'/>"
            f"<child link='l{k + 1}'/><axis xyz='{axis}'/></joint>"
        )
    moments = "ixx='.1' ixy='0' ixz='0' iyy='.1' iyz='0' izz='.05'"
    mass = f"<inertial><mass value='1'/><inertia {moments}/></inertial>"
    text = f"<robot name='wrist'>{''.join(parts)}<link name='l3'>{mass}</link></robot>"
    robot = phistar.load(text.encode())
    code = robot.compile("forward_dynamics", backend="jax")
    q, x = np.array([[0.1, 0.7, 0.2], [0.1, 0.0, 0.2]]), np.ones((2, 3))
    found = np.asarray(jax.jit(code.function)(q, v=x, tau=x))
    assert not np.isfinite(found[1]).any()
    _close(found[0], robot.forward_dynamics(q[0], x[0], x[0]))
    with pytest.raises(SingularConfigurationError, match=r"sample \[1\].*'j0'"):
        code(q, v=x, tau=x)

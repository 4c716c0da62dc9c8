# SPDX-License-Identifier: BSD-3-Clause
"""Motion in time on the loops: published problems, drift, events, single steps, machine code."""

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.compile import REQUESTS, traced_executable
from phistar.compile.traced import trace_quantity
from phistar.constraints import Point
from phistar.errors import ArgumentError, DivergenceError, UnknownNameError
from phistar.loops.assembly import usual_rank
from phistar.loops.program_size import link_rows
from phistar.loops.routes import ROUTES, LoopProblem
from phistar.loops.system import motion_at
from phistar.loops.traced_rows import ANYWHERE, dynamics_key
from phistar.model import ModelBuilder
from phistar.model.model_cache import entries
from phistar.robot import Robot
from phistar.scalar.program import count_arithmetic
from phistar.sim import loop_stepper, step
from phistar.sim.loop_stepper import loop_accelerations
from phistar.spatial import force_transform
from phistar.thresholds import POLICY
from tests.loops.mechanisms import (
    error,
    four_bar,
    four_bar_state,
    mechanism,
    needs_loops,
    windows,
)


def test_four_bar_for_ten_seconds() -> None:
    """The loop stays closed to 1e-12, the energy to 1e-8 of its range."""
    robot = four_bar()
    q, v, _ = four_bar_state()
    sim = robot.simulate(q, v, dt=5e-4, duration=10.0, every=200, passive=False)
    assert np.abs(sim.loop_error()).max() < 1e-12
    energy = sim.energy()
    assert np.ptp(energy) < 1e-8 * np.abs(energy).max()
    wrench = sim.wrenches("coupler_closure")
    assert wrench.shape == (100, 6)
    again = robot.constrained_dynamics(sim.q[7], sim.v[7], np.zeros(3))
    assert error(wrench[7], dict(again.wrenches)["coupler_closure"]) < 1e-9
    with pytest.raises(UnknownNameError):
        sim.wrenches("nothing")


def test_a_step_is_a_step_of_the_simulation() -> None:
    """For every scheme, single and in batches, and machine code as NumPy."""
    robot = four_bar()
    states = [four_bar_state(seed) for seed in range(3)]
    q, v, tau = (np.stack(x) for x in zip(*states, strict=True))
    for scheme in ("euler", "semi_implicit", "midpoint", "rk4"):
        sim = robot.simulate(q, v, tau=tau, dt=1e-2, steps=1, scheme=scheme, passive=False)
        ahead = robot.step(q, v, tau, 1e-2, scheme, passive=False)
        assert error(ahead[0], sim.q[-1]) < 1e-12
        assert error(ahead[1], sim.v[-1]) < 1e-11
        assert np.abs(np.asarray(robot.loop_error(ahead[0]))).max() < 1e-12


def test_a_step_is_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where machine code is at hand no stage is taken in NumPy; stages give the same to 1e-12."""
    robot = four_bar()
    states = [four_bar_state(seed) for seed in range(3)]
    q, v, tau = (np.stack(x) for x in zip(*states, strict=True))
    lengths = np.array([1e-2, 2e-3, 5e-3])
    for scheme in ("semi_implicit", "rk4"):
        monkeypatch.setattr(step, "step_by_program", lambda *_: None)
        expected = robot.step(q, v, tau, lengths, scheme, passive=False)
        monkeypatch.undo()
        code = traced_executable(robot.model, ("loop_step", scheme, False))
        assert code is not None
        assert code.scalars is not None  # waits for it
        monkeypatch.setattr(step, "_by_stages", None)
        found = robot.step(q, v, tau, lengths, scheme, passive=False)
        one = robot.step(q[1], v[1], tau[1], 2e-3, scheme, passive=False)
        single = robot.step(
            *(x.astype(np.float32) for x in (q, v, tau)), 1e-2, scheme, passive=False
        )
        monkeypatch.undo()
        assert error(found[0], expected[0]) < 1e-12
        assert error(found[1], expected[1]) < 1e-12
        assert error(one[0], expected[0][1]) < 1e-12
        assert single[0].dtype == np.float32
        assert error(single[0][:1], expected[0][:1]) < 1e-5
        sim = robot.simulate(q[1], v[1], tau=tau[1], dt=2e-3, steps=1, scheme=scheme, passive=False)
        assert error(one[0], sim.q[-1]) < 1e-12
        assert error(one[1], sim.v[-1]) < 1e-12


def test_adaptive_steps_and_what_is_refused() -> None:
    """dopri5 follows the same motion; schemes and variables that do not know loops say so."""
    robot = four_bar()
    q, v, _ = four_bar_state()
    fixed = robot.simulate(q, v, dt=1e-3, duration=0.5, every=500, passive=False)
    free = robot.simulate(q, v, duration=0.5, scheme="dopri5", tolerance=1e-10, passive=False)
    assert np.abs(free.q[-1] - fixed.q[-1]).max() < 1e-7
    with pytest.raises(ArgumentError, match="loops"):
        robot.simulate(q, v, dt=1e-3, steps=1, scheme="implicit_midpoint", passive=False)
    with pytest.raises(ArgumentError, match="loops"):
        robot.simulate(q, v, dt=1e-3, steps=1, variables="zeta", passive=False)


def test_adaptive_steps_end_on_the_loops() -> None:
    """Ten seconds of dopri5: closed to 1e-12 at its steps, at given knots and in between."""
    robot = four_bar()
    q, v, _ = four_bar_state()
    sim = robot.simulate(q, v, duration=10.0, scheme="dopri5", passive=False)
    assert np.abs(sim.loop_error()).max() < 1e-12
    assert sim.drift().relative_energy < 1e-6
    rates = np.asarray(robot.loop_jacobian(sim.q)) @ sim.v[..., None]
    assert np.abs(rates).max() < 1e-11
    between = sim(np.linspace(0.0, 10.0, 301))[0]
    assert np.abs(np.asarray(robot.loop_error(between))).max() < 1e-12
    knots = robot.simulate(q, v, dt=0.1, duration=10.0, scheme="dopri5", passive=False)
    assert np.abs(knots.loop_error()).max() < 1e-12
    lost = robot.simulate(
        np.stack([q, np.full(3, np.nan)]),
        v,
        duration=0.1,
        scheme="dopri5",
        on_error="nan",
        passive=False,
    )
    assert lost.ok.tolist() == [True, False]
    assert np.abs(lost.loop_error()[:, 0]).max() < 1e-12


def test_samples_that_diverge_leave_the_others_alone() -> None:
    """A NaN sample of a batch is NaN throughout; the other is what it is alone."""
    robot = four_bar()
    q, v, _ = four_bar_state()
    both = np.stack([q, np.full(3, np.nan)])
    sim = robot.simulate(both, np.stack([v, v]), dt=1e-3, steps=20, on_error="nan", passive=False)
    alone = robot.simulate(q, v, dt=1e-3, steps=20, passive=False)
    assert np.isnan(sim.q[:, 1]).all()
    assert np.abs(sim.q[:, 0] - alone.q).max() < 1e-12


def test_forces_on_frames_push_the_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    """A force that does work along the motion: energy gained is its work, to 1e-6. Stages of its
    steps are machine code, too."""
    robot = four_bar()
    q, v, _ = four_bar_state()
    link = "rocker"
    push = {link: np.array([0.0, 0.3, 0.0, 0.4, 0.0, 0.3])}
    dt = 1e-3
    sim = robot.simulate(q, v, dt=dt, steps=150, forces=push, passive=False)
    power = robot.frame_velocity(sim.q, sim.v, link) @ push[link]
    trapezoid = dt * (power.sum() - (power[0] + power[-1]) / 2)
    assert abs(trapezoid) > 1e-3
    gained = sim.energy()[-1] - sim.energy()[0]
    assert gained == pytest.approx(trapezoid, rel=1e-4)
    monkeypatch.setattr(loop_stepper, "accelerations", None)
    again = robot.simulate(q, v, dt=dt, steps=3, forces=push, passive=False)
    assert error(again.q, sim.q[:4]) < 1e-12


@pytest.mark.parametrize("part", ["friction", "limits"])
def test_wrenches_under_all_that_acts(part: str) -> None:
    """With the loop cut and its wrench on both links, what the tree needs for the steps are the
    forces of friction or of a limit, up to dt, and nothing else; lost samples are NaN."""
    robot = phistar.load("four_bar")
    rubs = 0.02
    if part == "friction":
        robot = robot.with_joint_physics(friction=np.full(3, rubs))
    else:
        robot = robot.with_limits(upper={"crank_joint": 1e-4})
    q, v = robot.project(robot.assemble(robot.neutral()), np.array([0.5, 0, 0]))
    push, dt = {"rocker": np.array([0.0, 0.1, 0.0, 0.3, 0.0, 0.2])}, 1e-5
    sim = robot.simulate(
        np.stack([q, np.full(3, np.nan)]), np.stack([v, v]), dt=dt, steps=40,
        scheme="semi_implicit", forces=push, on_error="nan",
    )  # fmt: skip
    assert part in sim.passive
    wrench = sim.wrenches("coupler_closure")
    assert np.isnan(wrench[:, 1]).all()
    (loop,), q, v = robot.loops, sim.q[:-1, 0], sim.v[:-1, 0]
    place = robot.frame_pose(q, loop.successor) @ loop.successor_pose
    on_successor = (force_transform(place) @ wrench[:, 0, :, None])[..., 0]
    ends = {loop.successor: on_successor, loop.predecessor: -on_successor}
    rate = np.diff(sim.v[:, 0], axis=0) / dt
    left = robot.tree.inverse_dynamics(q, v, rate, ends, "world")
    left = left + robot.tree.inverse_dynamics(q, 0 * v, 0 * v, push) - robot.gravity_force(q)
    weight = np.abs(robot.gravity_force(q)).max()
    scale = 1e-5 * max(weight, np.abs(left).max())
    if part == "friction":
        assert np.abs(left + rubs * np.sign(sim.v[1:, 0])).max() < scale
    else:
        assert left[:, 0].min() < -weight
        assert np.abs(left[:, 1:]).max() < scale
        assert left[:, 0].max() < scale


@needs_loops
@pytest.mark.parametrize("name", ["fourbar_hinge", "fivebar", "bricard", "gear_train", "two_arms"])
def test_machine_code_says_what_numpy_says(name: str) -> None:
    """The compiled programs against the dense routes: dynamics on and a little off the loops,
    projection."""
    case = mechanism(name)
    robot, model = case.robot, case.robot.model
    q, v, tau = case.state
    expected = robot.forward_dynamics(q, v, tau, method="null")
    for key in (dynamics_key("double"), dynamics_key(ANYWHERE)):
        code = traced_executable(model, key)
        assert code is not None
        assert code.scalars is not None  # waits for it
        found = code.try_run({"q": q, "v": v, "tau": tau})
        assert found is not None
        assert found[1]
        assert error(found[0]["vdot"], expected) < 1e-9
    robot.forward_dynamics(q, v, tau)
    robot.forward_dynamics(q, v, tau)
    assert entries(model).get(dynamics_key("double")) is not None
    # Off the loops and at inconsistent velocities the guarded program has no result.
    code = traced_executable(model, dynamics_key("double"))
    assert code is not None
    off = code.try_run({"q": q + 0.01, "v": v, "tau": tau})
    assert off is not None
    assert not off[1]
    projection = traced_executable(model, ("loop_projection",))
    assert projection is not None
    assert projection.scalars is not None
    near, fast = q + 1e-6 * np.sin(np.arange(q.size)).reshape(q.shape), v + 0.1
    ran = projection.try_run({"q": near, "v": fast})
    assert ran is not None
    wanted_q, wanted_v = robot.project(near, fast)
    assert np.abs(ran[0]["q_next"] - wanted_q).max() < 1e-10
    assert error(ran[0]["v_next"], wanted_v) < 1e-5


def test_rows_of_loops_are_requests() -> None:
    """Every program of loops can be looked at, from passes to source."""
    robot = four_bar()
    for name in ("loop_rows", "loop_motion", "loop_tangents", "loop_dynamics", "loop_projection",
                 "loop_step", "loop_linearization", "loop_multipliers"):  # fmt: skip
        assert name in REQUESTS
        compiled = robot.compile(name)
        assert compiled.cost.total > 0
        assert "trace" in str(compiled.passes)


@needs_loops
def test_operation_counts() -> None:
    """Operations of forward dynamics with loops, exact; they must not rise."""
    limits = {
        "four_bar": 200, "fourbar_hinge": 250, "fivebar": 364, "slider_crank": 216, "andrews": 823,
        "bricard": 1927, "gear_train": 129, "two_arms": 6661, "quadruped_stand": 6334,
        "humanoid_ankles": 13220,
    }  # fmt: skip
    for name, limit in limits.items():
        robot = four_bar() if name == "four_bar" else mechanism(name).robot
        program = trace_quantity(robot.model, *dynamics_key("double"))
        assert count_arithmetic(program.count()) <= limit, name


def test_off_the_loops_the_routes_still_agree() -> None:
    """At a stage of an integrator, a little open: with full rank all routes solve one problem."""
    robot = phistar.load("quadruped")
    q = robot.random_configuration(0)
    pinned = robot.with_loops(*(Point(f"{leg}_FOOT") for leg in ("FL", "FR", "HL", "HR")), q=q)
    rng = np.random.default_rng(0)
    q = pinned.integrate(q, 1e-4 * rng.normal(size=robot.nv))
    v, tau = rng.normal(size=(2, robot.nv))
    found = loop_accelerations(pinned.model, q, v, tau)
    rows = motion_at(pinned.model, q, v)
    problem = LoopProblem(pinned.model, q, v, tau, None, rows, usual_rank(pinned.model), -rows.bias)
    for name, route in ROUTES.items():
        assert error(route(problem), found) < 1e-8, name


def test_long_mechanisms_are_machine_code_where_their_rows_are_short() -> None:
    """What counts is along how many links rows are carried, and with how many others they meet.

    Twenty four-bar windows have 41 links and 100 rows, of which 60 are zero in the plane and none
    meets more than its neighbours: as many operations for each window as with two of them.
    """
    long, _, _ = windows(20)
    assert link_rows(long.model) < 150
    counts = [
        count_arithmetic(trace_quantity(windows(n)[0].model, *dynamics_key(ANYWHERE)).count())
        for n in (5, 10)
    ]
    assert counts[1] <= 2.1 * counts[0]
    # Feet of one body all meet: rows are carried over their legs, and eliminated densely.
    builder = ModelBuilder("many_legs")
    builder.link("body", 1.0, inertia=(1.0, 1.0, 1.0))
    for i in range(25):
        builder.link(f"leg{i}", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1))
        builder.joint(f"hip{i}", "spherical", "body", f"leg{i}", xyz=(i, 0, 0))
        builder.link(f"foot{i}")
        builder.joint(f"ankle{i}", "fixed", f"leg{i}", f"foot{i}", xyz=(0, 0, -1))
    legs = Robot(builder.build(floating_base=True))
    feet = [Point(f"foot{i}", at=(i, 0.0, -1.0)) for i in range(25)]
    assert link_rows(legs.with_loops(*feet).model) > POLICY.max_link_loop_rows_unrolled


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("four_bar", "rk4"), ("four_bar", "semi_implicit"), ("delta", "rk4"), ("quadruped", "rk4")],
)
def test_many_steps_at_once_are_steps_one_by_one(
    name: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All steps in one call of machine code, against a program for each; joints in any order.

    At 10 ms the semi-implicit scheme needs more Newton steps than the first program has.
    """
    robot = phistar.load(name)
    q = robot.random_configuration(0)
    if name == "quadruped":
        robot = robot.with_loops(Point("FL_FOOT"), Point("HR_FOOT"), q=q)
    else:
        q = robot.assemble(robot.neutral())
    rng = np.random.default_rng(0)
    q, v = robot.project(np.stack([q] * 9), rng.normal(size=(9, robot.nv)))
    tau = 0.1 * rng.normal(size=(40, 9, robot.nv))
    dt = 1e-3 if name == "quadruped" else 1e-2
    arguments = {"tau_steps": tau, "dt": dt, "steps": 40, "every": 4, "scheme": scheme}
    found = robot.simulate(q, v, **arguments, passive=False)
    assert found.engine == "machine code"
    assert np.abs(found.loop_error()).max() < 1e-12
    monkeypatch.setattr(loop_stepper, "make_loop_rollouts", lambda *_: ())
    slow = robot.simulate(q, v, **arguments, passive=False)
    assert slow.engine == "numpy loop"
    assert np.abs(robot.difference(slow.q, found.q)).max() < 1e-9
    assert error(found.v, slow.v) < 1e-9


def test_bits_of_a_sample_do_not_depend_on_its_batch() -> None:
    """Also where some samples of the batch need more Newton steps than others, now and then."""
    robot = four_bar()
    states = [four_bar_state(seed) for seed in range(12)]
    q, v, _ = (np.stack(x) for x in zip(*states, strict=True))
    v *= np.linspace(0.0, 8.0, 12)[:, None]
    options = {"dt": 2e-3, "steps": 600, "every": 3, "progress": False}
    together = robot.simulate(q, v, **options, passive=False)
    assert together.engine == "machine code"
    for i in (0, 7, 8, 11):
        alone = robot.simulate(q[i], v[i], **options, passive=False)
        assert np.array_equal(alone.q, together.q[:, i])
        assert np.array_equal(alone.v, together.v[:, i])


def test_samples_lost_on_the_way_leave_the_others_their_bits() -> None:
    """One sample NaN at the start, one torn apart by its forces: the others as if alone."""
    robot = four_bar()
    states = [four_bar_state(seed) for seed in range(6)]
    q, v, _ = (np.stack(x) for x in zip(*states, strict=True))
    arguments = {"dt": 1e-3, "steps": 100, "progress": False}
    fine = robot.simulate(q, v, **arguments, passive=False)
    tau = np.zeros_like(v)
    tau[2, 0] = 1e9
    broken = np.array(q)
    broken[4] = np.nan
    with pytest.raises(phistar.errors.PhistarError):
        robot.simulate(broken, v, tau=tau, **arguments, passive=False)
    with pytest.raises(DivergenceError, match=r"sample \[2\]"):
        robot.simulate(q, v, tau=tau, **arguments, passive=False)
    found = robot.simulate(broken, v, tau=tau, on_error="nan", **arguments, passive=False)
    assert found.engine == fine.engine == "machine code"
    others = [0, 1, 3, 5]
    assert np.array_equal(found.q[:, others], fine.q[:, others])
    assert np.array_equal(found.v[:, others], fine.v[:, others])
    assert np.isnan(found.q[:, 4]).all()
    assert np.isnan(found.q[-1, 2]).all()
    assert found.diverged is not None
    assert (found.diverged[others] == -1).all()
    assert (found.diverged[[2, 4]] >= 0).all()


def sprung(damping: float, stiffness: float) -> Robot:
    """A four-bar with a damper at each joint and a spring at the crank."""
    return four_bar().with_joint_physics(
        damping=[damping] * 3, stiffness=[stiffness, 0.0, 0.0], spring_reference=[0.2, 0.0, 0.0]
    )


@pytest.mark.parametrize("forces", [None, {"coupler": np.arange(6.0)}])
def test_springs_and_dampers_at_the_end_of_a_step(forces: dict[str, Array] | None) -> None:
    """A step is the saddle point of 𝓜 + hB + h²K, solved densely, then projected; 1e-7.

    The step projects in the metric of its start, ``project`` in that of the result.
    """
    B, K, h = 2.0, 300.0, 1e-3
    robot, tree = sprung(B, K), four_bar().tree
    q, v, tau = four_bar_state()
    found = robot.step(q, v, tau, h, forces=forces)  # implicit by itself
    k = np.array([K, 0.0, 0.0])
    rows = np.asarray(robot.loop_jacobian(q))
    later, before = (
        np.asarray(robot.loop_jacobian(robot.integrate(q, e * v))) for e in (1e-6, -1e-6)
    )
    zero = np.zeros(3)
    push = tau - tree.inverse_dynamics(q, v, zero, forces=forces)
    push = push - k * (q - [0.2, 0.0, 0.0]) - B * v - h * k * v
    mass = tree.mass_matrix(q) + np.diag(h * B + h * h * k)
    saddle = np.block([[mass, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    right = np.concatenate([push, -(later - before) @ v / 2e-6])
    vdot = np.linalg.lstsq(saddle, right, rcond=None)[0][:3]
    expected = robot.project(robot.integrate(q, h * (v + h * vdot)), v + h * vdot)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-7 * max(1.0, np.abs(y).max()))
    sim = robot.simulate(
        q, v, tau=tau, dt=h, steps=1, scheme="implicit", forces=forces, passive=True
    )
    assert error(sim.v[-1], found[1]) < 1e-12


def test_stiff_joints_of_linkages_stay_stable() -> None:
    """What no explicit scheme can step comes to rest, on the loops, as in the simulator."""
    robot = sprung(50.0, 1e5)
    q, v, _ = four_bar_state()
    with pytest.raises(DivergenceError, match="implicit"):
        robot.simulate(q, v, dt=1e-3, steps=100, scheme="rk4")
    sim = robot.simulate(np.tile(q, (3, 1)), np.tile(v, (3, 1)), dt=1e-3, steps=2000)
    assert sim.scheme == "implicit"
    assert sim.engine == "machine code"
    assert np.abs(sim.loop_error()).max() < 1e-12
    assert np.abs(sim.v[-1]).max() < 1e-6
    many = robot.simulator(1, dt=1e-3, ground=False)
    many.reset(q=q, v=v)
    assert error(many.step(substeps=50).q[0], sim.q[50, 0]) < 1e-9


@needs_loops
def test_dampers_at_the_end_where_rows_depend_on_each_other() -> None:
    """A Bricard linkage and mimic joints on loops have no program of it: by NumPy, as stable."""
    for name in ("bricard", "gripper_mimic"):
        robot = mechanism(name).robot
        robot = robot.with_joint_physics(damping=np.full(robot.nv, 1e5))
        q, v, _ = (x[1] for x in mechanism(name).state)
        sim = robot.simulate(q, v, dt=1e-3, steps=20)
        assert sim.scheme == "implicit"
        assert np.abs(sim.v[-1]).max() < 0.1 * np.abs(v).max()
        assert np.abs(sim.loop_error()).max() < 1e-12

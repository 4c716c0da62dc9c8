# SPDX-License-Identifier: BSD-3-Clause
"""Wrenches on frames: the same numbers by machine code, by NumPy, by Jacobians and by Pinocchio."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar.errors import NotFiniteError
from phistar.model import numpy_kinematics
from phistar.model.components import GROUND
from phistar.model.random import random_model
from phistar.thresholds import POLICY

Array = np.ndarray
REFERENCES = ("local", "world", "world_aligned")


def _random(seed: int, n: int = 5, **options: Any) -> phistar.Robot:
    rng = np.random.default_rng(seed)
    chosen = {"frames": 3, "fixed": 0.2, "armature": 0.3, **options}
    return phistar.Robot(random_model(rng, n, gravity=(0.4, -0.8, -9.5), **chosen))


ROBOTS: dict[str, Callable[[], phistar.Robot]] = {
    "quadruped": lambda: phistar.load("quadruped"),
    "all joint kinds": lambda: _random(2, topology="tree"),
    "free base": lambda: _random(3, topology="binary", floating_base=True),
    "mimic": lambda: _random(
        10, 8, kinds=["revolute", "prismatic", "free"], mimic=0.5, topology="tree"
    ),
}


@pytest.fixture(autouse=True)
def final_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled has its final shape, and so the first call makes the entry."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> phistar.Robot:
    """A robot for all tests, so that its programs are compiled once."""
    return ROBOTS[request.param]()


def frames_of(robot: phistar.Robot) -> list[str]:
    """Two frames of one moving body, one of another, and one of the ground if it has any."""
    by_body: dict[int, list[str]] = {}
    for name, frame in robot.model.frames.items():
        by_body.setdefault(frame.body, []).append(name)
    ground = by_body.pop(GROUND, [])[:1]
    pairs = [names for names in by_body.values() if len(names) > 1]
    two = pairs[-1][:2] if pairs else []
    others = [names[0] for names in by_body.values() if names[0] not in two]
    return [*two, *others[-2:], *ground]


def draw(robot: phistar.Robot, batch: tuple[int, ...] = (), seed: int = 4) -> tuple[Array, ...]:
    """q, v, and an acceleration or force."""
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng, batch), *rng.normal(size=(2, *batch, robot.nv))


def wrenches(names: list[str], batch: tuple[int, ...] = (), seed: int = 5) -> dict[str, Array]:
    """One for each frame."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(*batch, 6)) for name in names}


def pushed(robot: phistar.Robot, q: Array, forces: dict[str, Array], reference: str) -> Array:
    """The witness: Σ J* f with Jacobians by NumPy."""
    total = np.zeros(robot.nv)
    for name, wrench in forces.items():
        jacobian = numpy_kinematics.jacobian(robot.model, q, name, reference)
        total = total + np.einsum("...ij,...i->...j", jacobian, wrench)
    return total


def close(ours: Any, theirs: Any, tolerance: float = 1e-10) -> None:
    """The same shape, and the same numbers relative to the largest."""
    assert np.shape(ours) == np.shape(theirs)
    assert np.abs(ours - theirs).max() <= tolerance * max(np.abs(theirs).max(), 1e-3)


def test_frames_are_what_the_tests_need() -> None:
    """Some robot has two frames on one body, and some one on the ground."""
    made = [make() for make in ROBOTS.values()]
    seats = [[robot.model.frames[name].body for name in frames_of(robot)] for robot in made]
    assert any(len(set(bodies)) < len(bodies) for bodies in seats)
    assert any(GROUND in bodies for bodies in seats)
    kinds = {body.joint_kind.name for robot in made for body in robot.model.bodies}
    assert kinds >= {"spherical", "planar", "free", "revolute", "prismatic"}


@pytest.mark.parametrize("tier", ["straight", "rolled"])
@pytest.mark.parametrize("reference", REFERENCES)
def test_dynamics_against_jacobians(
    robot: phistar.Robot, reference: str, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrenches take J* f off the joint forces, in both shapes of code; relative 1e-10.

    Forward dynamics gives the accelerations back, 1e-7.
    """
    monkeypatch.setenv("PHISTAR_TIER", tier)
    gravity = {"straight": robot.model.gravity, "rolled": (0.2, 0.0, -9.0)}[tier]
    same = phistar.Robot(robot.model.with_gravity(gravity))
    for batch in ((), (3,), (2, 3)):
        q, v, vdot = draw(same, batch)
        forces = wrenches(frames_of(same), batch)
        expected = same.inverse_dynamics(q, v, vdot) - pushed(same, q, forces, reference)
        for _ in range(2):
            found = same.inverse_dynamics(q, v, vdot, forces=forces, reference=reference)
            close(found, expected)
            back = same.forward_dynamics(q, v, found, forces=forces, reference=reference)
            close(back, vdot, 1e-7)


@pytest.mark.parametrize("method", ["1", "2", "3", "4"])
@pytest.mark.parametrize("reference", REFERENCES)
def test_every_forward_method(robot: phistar.Robot, reference: str, method: str) -> None:
    """All algorithms give the accelerations that ask for the same forces; relative 1e-7."""
    q, v, vdot = draw(robot, (3,))
    held: dict[str, Any] = {"forces": wrenches(frames_of(robot), (3,)), "reference": reference}
    tau = robot.inverse_dynamics(q, v, vdot, **held)
    close(robot.forward_dynamics(q, v, tau, **held, method=method), vdot, 1e-7)


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("name", ["all joint kinds", "mimic"])
def test_derivatives_that_are_warm(name: str, reference: str) -> None:
    """Kernels that hold wrenches themselves agree with complex numbers in NumPy; 1e-9."""
    robot = ROBOTS[name]()
    q, v, x = draw(robot, (2,))
    dq, dv, dx, w = np.random.default_rng(6).normal(size=(4, 2, robot.nv))
    names = [name for name in frames_of(robot) if robot.model.frames[name].body != GROUND]
    held: dict[str, Any] = {"forces": wrenches(names, (2,)), "reference": reference}
    wide = {n: f.astype(complex) for n, f in held["forces"].items()}
    slow: dict[str, Any] = {"forces": wide, "reference": reference}
    calls: dict[str, Callable[..., dict[str, Array]]] = {
        "linearize": lambda q, **k: _arrays(robot.linearize(q, v, x, **k)),
        "linearize_inverse": lambda q, **k: _arrays(robot.linearize_inverse(q, v, x, **k)),
        **{
            f"jvp {name}": lambda q, n=name, t=third, **k: {
                "": robot.jvp(n, q, v, x, dq=dq, dv=dv, **{t: dx}, **k)
            }
            for name, third in (("inverse_dynamics", "dvdot"), ("forward_dynamics", "dtau"))
        },
        **{
            f"vjp {name}": lambda q, n=name, **k: robot.vjp(n, q, v, x, w, **k)
            for name in ("inverse_dynamics", "forward_dynamics")
        },
    }
    for call in calls.values():
        expected = call(q.astype(complex), **slow)
        for _ in range(3):
            found = call(q, **held)
            for name, array in found.items():
                close(array, expected[name].real, 1e-9)


def _arrays(found: Any) -> dict[str, Array]:
    return {name: x for name, x in vars(found).items() if isinstance(x, np.ndarray)}


@pytest.mark.parametrize("reference", REFERENCES)
def test_single_precision(robot: phistar.Robot, reference: str) -> None:
    """float32 in, float32 out, equal to double precision to 1e-4 of the largest number."""
    q, v, x = draw(robot, (4,))
    forces = wrenches(frames_of(robot), (4,))
    small = [y.astype(np.float32) for y in (q, v, x)]
    light = {name: f.astype(np.float32) for name, f in forces.items()}
    lists = {name: f[0].tolist() for name, f in forces.items()}
    for name in ("inverse_dynamics", "forward_dynamics"):
        call = getattr(robot, name)
        found = call(*small, forces=light, reference=reference)
        assert found.dtype == np.float32
        exact = call(*(y.astype(float) for y in small), forces=light, reference=reference)
        assert exact.dtype == np.float64
        close(found, exact, 1e-4)
        assert call(*small, forces=lists, reference=reference).dtype == np.float32


@pytest.mark.parametrize("reference", REFERENCES)
def test_batches_broadcast(robot: phistar.Robot, reference: str) -> None:
    """One state under many wrenches, many states under one, lists, and both; relative 1e-10."""
    names = frames_of(robot)
    many, one = wrenches(names, (5,)), wrenches(names)
    lists = {name: wrench.tolist() for name, wrench in one.items()}
    mixed = {name: (many if i % 2 else one)[name] for i, name in enumerate(names)}
    for batch, forces in (((), many), ((5,), one), ((5,), lists), ((5,), mixed), ((4, 1), many)):
        q, v, vdot = draw(robot, batch)
        arrays = {name: np.asarray(wrench) for name, wrench in forces.items()}
        expected = robot.inverse_dynamics(q, v, vdot) - pushed(robot, q, arrays, reference)
        for _ in range(2):
            found = robot.inverse_dynamics(q, v, vdot, forces=forces, reference=reference)
            close(found, expected)
        tau = robot.forward_dynamics(q, v, found, forces=forces, reference=reference)
        close(tau, np.broadcast_to(vdot, expected.shape), 1e-7)


def test_many_frames() -> None:
    """A dozen wrenches in one dict find their links, also as one sample for a batch; 1e-10."""
    robot = phistar.robots.chain(11)
    names = [*robot.link_names[1:], robot.link_names[1]]
    assert len(set(names)) > 10
    for batch in ((), (4,)):
        q, v, vdot = draw(robot, batch)
        forces = wrenches(names)
        free = robot.linearize_inverse(q, v, vdot)
        for reference in REFERENCES:
            push = pushed(robot, q, forces, reference)
            for _ in range(2):
                found = robot.linearize_inverse(q, v, vdot, forces=forces, reference=reference)
                close(found.tau, free.tau - push)
                close(
                    robot.inverse_dynamics(q, v, vdot, forces=forces, reference=reference),
                    free.tau - push,
                )


@pytest.mark.parametrize("reference", ["world", "world_aligned"])
def test_long_paths(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrenches go along paths that are too long to be unrolled in loops; relative 1e-10."""
    robot = phistar.robots.chain(9)
    names = [robot.link_names[-1], robot.link_names[5]]
    monkeypatch.setitem(vars(POLICY), "max_path_links_unrolled", 4)
    monkeypatch.setenv("PHISTAR_TIER", "rolled")
    for batch, own in (((), ()), ((3,), (3,)), ((3,), ()), ((), (3,))):
        q, v, vdot = draw(robot, batch)
        forces = wrenches(names, own)
        expected = robot.inverse_dynamics(q, v, vdot) - pushed(robot, q, forces, reference)
        found = robot.inverse_dynamics(q, v, vdot, forces=forces, reference=reference)
        close(found, expected)


def test_no_wrench_that_counts(robot: phistar.Robot) -> None:
    """An empty dict, None, and wrenches on the ground alone change no bit."""
    q, v, x = draw(robot)
    ground = [name for name, frame in robot.model.frames.items() if frame.body == GROUND]
    for call in (robot.inverse_dynamics, robot.forward_dynamics):
        free = call(q, v, x)
        for forces in ({}, None, wrenches(ground)):
            for reference in REFERENCES:
                assert np.array_equal(call(q, v, x, forces=forces, reference=reference), free)


def test_order_and_changing_frames(robot: phistar.Robot) -> None:
    """Warm calls whose frames, their order, references or kind of mapping change from call to call.

    Relative 1e-10.
    """
    q, v, vdot = draw(robot)
    names = [name for name in frames_of(robot) if robot.model.frames[name].body != GROUND]
    forces = wrenches(names)
    free = robot.inverse_dynamics(q, v, vdot)
    turned = dict(reversed(forces.items()))
    first = {names[0]: forces[names[0]]}
    for _ in range(3):
        for given in (forces, turned, first, OrderedDict(forces)):
            for reference in REFERENCES:
                found = robot.inverse_dynamics(q, v, vdot, forces=given, reference=reference)
                close(found, free - pushed(robot, q, given, reference))
    copied = "".join(["wor", "ld"])
    close(
        robot.inverse_dynamics(q, v, vdot, forces=forces, reference=copied),
        free - pushed(robot, q, forces, "world"),
    )


def test_bad_wrenches(robot: phistar.Robot) -> None:
    """NaN is named, before and after the code is warm; ``on_error="nan"`` keeps it to its sample.

    Other samples are what they are without it, to 1e-10.
    """
    q, v, x = draw(robot, (4,))
    names, reference = frames_of(robot), "world"
    for name in names[:2]:
        good = wrenches(names, (4,))
        bad = {**good, name: good[name].copy()}
        bad[name][2, 3] = np.nan
        calls: list[Callable[..., Any]] = [
            robot.inverse_dynamics,
            robot.forward_dynamics,
            lambda *a, **k: robot.jvp("inverse_dynamics", *a, dq=v, **k),
        ]
        for call in calls:
            for _ in range(2):
                with pytest.raises(NotFiniteError, match=rf"forces\['{name}'\]\[2, 3\] is nan"):
                    call(q, v, x, forces=bad, reference=reference)
                exact = call(q, v, x, forces=good, reference=reference)
            found = call(q, v, x, forces=bad, reference=reference, on_error="nan")
            assert np.isnan(found[2]).all()
            close(np.delete(found, 2, 0), np.delete(exact, 2, 0))


def test_out(robot: phistar.Robot) -> None:
    """The result is put where the user says, by the general path and by the entry."""
    q, v, x = draw(robot, (3,))
    forces = wrenches(frames_of(robot), (3,))
    for call in (robot.inverse_dynamics, robot.forward_dynamics):
        expected = call(q, v, x, forces=forces)
        for _ in range(2):
            out = np.full(expected.shape, np.nan)
            assert call(q, v, x, forces=forces, out=out) is out
            close(out, expected, 1e-12)


@pytest.mark.parametrize("reference", REFERENCES)
def test_pinocchio(reference: str) -> None:
    """rnea and aba with external forces on the joints; relative 1e-10 and 1e-8."""
    robot = phistar.load("quadruped")
    path = str(phistar.robots.path("quadruped"))
    peer = pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())
    data = peer.createData()
    convert = phistar.conventions.pinocchio(robot, peer)
    q, v, vdot = draw(robot)
    forces = wrenches(["HR_FOOT", "FL_FOOT", "base_link" if "base_link" in robot.model.frames else
                       robot.link_names[0]])  # fmt: skip
    q2, v2 = convert.q_to_peer(q), convert.v_to_peer(q, v)
    pin.framesForwardKinematics(peer, data, q2)
    acting = pin.StdVec_Force()
    for _ in range(peer.njoints):
        acting.append(pin.Force.Zero())
    for name, wrench in forces.items():
        number = peer.getFrameId(name)
        frame, place = peer.frames[number], data.oMf[number]
        axes = {
            "local": pin.SE3.Identity(),
            "world": place.inverse(),
            "world_aligned": pin.SE3(place.rotation.T, np.zeros(3)),
        }[reference]
        given = pin.Force(wrench[3:], wrench[:3])
        acting[frame.parentJoint] += frame.placement.act(axes.act(given))
    expected = pin.rnea(peer, data, q2, v2, convert.vdot_to_peer(q, v, vdot), acting)
    for _ in range(2):
        ours = robot.inverse_dynamics(q, v, vdot, forces=forces, reference=reference)
        close(convert.tau_to_peer(q, ours), expected)
    moved = pin.aba(peer, data, q2, v2, expected, acting)
    back = robot.forward_dynamics(q, v, ours, forces=forces, reference=reference)
    close(convert.vdot_to_peer(q, v, back), moved, 1e-8)


@pytest.mark.parametrize("reference", REFERENCES)
def test_other_users(robot: phistar.Robot, reference: str) -> None:
    """Hybrid dynamics and J* of operators; relative 1e-10 and 1e-7."""
    q, v, vdot = draw(robot, (2,))
    names = frames_of(robot)
    forces = wrenches(names, (2,))
    stacked = np.concatenate([forces[name] for name in names], axis=-1)
    found = robot.operators(q).J(names, reference).T @ stacked
    close(found, pushed(robot, q, forces, reference))
    if any(joint.mimic for joint in robot.model.joints.values()):
        return
    tau = robot.inverse_dynamics(q, v, vdot, forces=forces, reference=reference)
    held = [robot.joint_names[0], robot.joint_names[-1]]
    moved, asked = robot.hybrid_dynamics(q, v, tau, vdot, held, forces=forces, reference=reference)
    close(moved, vdot, 1e-7)
    close(asked, tau, 1e-7)

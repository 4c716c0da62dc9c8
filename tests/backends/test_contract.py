# SPDX-License-Identifier: BSD-3-Clause
"""What every backend must do: the interpreter's numbers, for any robot, batch and dtype.

A backend that writes source and runs nothing says so when it is called; what its source computes is
tested in its own folder.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from phistar.algebra.ir import Expr, crf, crm
from phistar.algebra.spaces import FORCE, JOINT, MOTION, TASK_FORCE
from phistar.algebra.symbols import (
    E_0,
    A,
    B,
    D,
    E_phi,
    E_psi,
    G,
    H,
    K,
    M,
    P,
    Upsilon,
    composite,
    phi,
    psi,
    v,
    vector,
)
from phistar.algorithms.programs import PROGRAMS
from phistar.backends import Tuning, VectorExecutable, get, names, running_names
from phistar.compile import compile_outputs, kernel
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model import Model
from phistar.model.builder import ModelBuilder
from phistar.model.components import GROUND
from phistar.model.configuration import random_configuration
from phistar.model.generators import chain
from phistar.model.joints import JOINT_KINDS
from phistar.model.random import random_model
from phistar.sweeps.interpret import run
from phistar.sweeps.ir import Type
from phistar.sweeps.ops import OPS
from phistar.sweeps.schedule import Schedule
from tests.helpers import build, chosen_backends

x = vector("x", JOINT)
y = vector("y", MOTION)
f = vector("f", FORCE)
w = vector("wrench", TASK_FORCE)

OWN: dict[str, dict[str, Expr]] = {
    "compliance": {"motion": B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B @ w},
    "tip forces": {"joint": H @ phi @ (B @ w + f), "link": phi @ B @ w},
    "shifts": {"out": phi @ E_psi @ f + E_phi @ P @ E_phi.T @ y + K @ K.T @ y + E_phi @ f},
    "gains": {"out": G @ (A @ x + D @ (G.T @ y)) + composite @ y - M @ y},
    "compliances": {"out": Upsilon @ f + phi.T @ Upsilon @ phi @ f},
    "brackets": {"out": crf(psi.T @ y) @ f + M @ crm(y) @ H.T @ x},
    "cancelled": {"out": D @ (H @ phi @ f - H @ phi @ f) + x + K.T @ (phi.T @ (y - y) + y)},
    "leaf and sum": {"same": x, "twice": 2 * x - A @ v, "half": Fraction(1, 2) * y},
    "power": {"watt": x.T @ H @ phi @ f - 2 * (y.T @ M @ y), "push": E_0 @ (f - phi @ M @ y)},
    "shared": {"inner": psi @ f, "outer": H @ psi @ f, "both": psi.T @ H.T @ D.inv @ H @ psi @ f},
}
SCHEDULES: dict[str, Schedule] = {
    **{name: kernel(name).schedule for name in PROGRAMS},
    **{
        name: compile_outputs(name, tuple(outputs.items())).schedule
        for name, outputs in OWN.items()
    },
}
DIVIDING = {
    name
    for name, s in SCHEDULES.items()
    if {"G", "Dsolve", "compliance_update"} & {s.program.nodes[k].op for k in s.program.live()}
}
MOVING = tuple(kind for kind in JOINT_KINDS if kind != "fixed")
SILENT = sorted({*names()} - {*running_names()})
"""Backends that write source and run nothing."""
TRIED_BY_XLA = ("hybrid_dynamics", "power")
"""What is tried in all precisions, and with joints locked, where XLA compiles each case."""
LONG = 60
"""Streams; longer programs are compiled for small robots."""


def _models() -> dict[str, Model]:
    models = {}
    for seed, kind in enumerate(MOVING):
        rng = np.random.default_rng(seed)
        models[kind] = random_model(rng, 3, kinds=[kind], armature=0.5, frames=2)
    models["mixed tree"] = random_model(
        np.random.default_rng(20), 6, armature=0.5, fixed=0.2, massless=0.2, frames=3
    )
    models["forest"] = random_model(
        np.random.default_rng(21), 5, topology="forest", armature=0.5, frames=3
    )
    models["floating"] = random_model(
        np.random.default_rng(22), 4, floating_base=True, anchors=0.5, frames=3
    )
    models["small"] = random_model(
        np.random.default_rng(24), 3, kinds=MOVING[0::3], topology="serial", armature=0.5, frames=3
    )
    kinds = ["revolute", "prismatic"]
    models["mimic"] = random_model(
        np.random.default_rng(23), 6, kinds=kinds, mimic=0.6, anchors=0.5, frames=3
    )
    return models


MODELS = _models()
FRAMES = 3


def _frames(model: Model) -> tuple[str, ...]:
    """A few frames: the last ones, two of them perhaps on one link, and one at rest if any."""
    resting = [name for name, frame in model.frames.items() if frame.body == GROUND]
    return (*model.frame_names[-FRAMES + 1 :], (resting or model.frame_names)[0])


def _inputs(
    schedule: Schedule,
    model: Model,
    rng: np.random.Generator,
    shape: tuple[int, ...],
    locked: frozenset[int] = frozenset(),
) -> dict[str, np.ndarray]:
    """A random value for everything a program reads but gravity."""
    bodies = model.bodies
    joints = sum(body.joint_kind.nv for body in bodies if body.index not in locked)
    values = {}
    for stream in schedule.program.live():
        node = schedule.program.nodes[stream]
        if node.op == "scatter":
            values[node.data] = rng.normal(size=(*shape, FRAMES, 6))
        elif node.op == "leaf" and node.data != "gravity":
            size = (joints,) if node.type is Type.JOINT else (len(bodies), 6)
            values[node.data] = rng.normal(size=(*shape, *size))
    return values


def _close(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray], bound: float) -> None:
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        assert ours[name].shape == expected.shape
        scale = max(np.abs(expected).max(initial=0.0), 1e-3)
        assert np.abs(ours[name] - expected).max(initial=0.0) < bound * scale


def _chosen(backend: str, program: str) -> list[Model]:
    """The robots on which a program is tried; where each has to be compiled, not all of them.

    Trees and free bases have all kinds of joints; each kind comes alone in some programs.
    """
    if backend not in ("llvm", "jax"):
        return list(MODELS.values())
    turn = list(SCHEDULES).index(program)
    alone = {MOVING[turn % len(MOVING)], MOVING[(turn + 5) % len(MOVING)]}
    if backend == "jax":
        many = len(list(SCHEDULES[program].program.live())) > LONG
        return [MODELS["mimic" if many else ("mixed tree", "forest", "floating")[turn % 3]]]
    if len(list(SCHEDULES[program].program.live())) > LONG:
        return [MODELS["small"], MODELS[min(alone)]]
    rest = "mimic" if turn % 3 == 0 else "forest"
    return [MODELS[name] for name in (*sorted(alone), "floating", rest)]


@pytest.mark.parametrize("program", SCHEDULES)
@pytest.mark.parametrize("backend", chosen_backends())
def test_agrees_with_the_interpreter(backend: str, program: str) -> None:
    """Every joint kind, trees, forests, free bases, mimic joints, rotors; relative 1e-12."""
    schedule = SCHEDULES[program]
    for number, model in enumerate(_chosen(backend, program)):
        rng = np.random.default_rng(number)
        q = random_configuration(model, rng, (3,))
        inputs, frames = _inputs(schedule, model, rng, (3,)), _frames(model)
        ours = build(backend, schedule, model, frames)(q, inputs)
        _close(ours, run(schedule, model, q, inputs, frames), 1e-12)


def test_models_have_every_joint_kind() -> None:
    """The robots above leave no kind out; a kind split into simple joints counts by its name."""
    kinds = {joint.kind for model in MODELS.values() for joint in model.joints.values()}
    assert kinds >= set(MOVING)
    assert any(joint.mimic for joint in MODELS["mimic"].joints.values())
    assert sum(body.parent == GROUND for body in MODELS["forest"].bodies) > 1


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (0,), (1, 1), (2, 0)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
@pytest.mark.parametrize("backend", chosen_backends())
def test_batches_and_dtypes(backend: str, dtype: type, shape: tuple[int, ...]) -> None:
    """Precision in is precision out. Relative errors: double 1e-12; single 1e-5, where a program
    divides by D 2e-4 (the condition of the mass matrix multiplies the rounding)."""
    single = np.finfo(dtype).dtype == np.float32
    for program in TRIED_BY_XLA if backend == "jax" else SCHEDULES:
        q, inputs, exact = _small_case(program, np.dtype(dtype), shape)
        ours = _on_the_small_robot(backend, program)(q, inputs)
        bound = (2e-4 if program in DIVIDING else 1e-5) if single else 1e-12
        _close(ours, exact, bound)
        assert {value.dtype for value in ours.values()} == {np.dtype(dtype)}


@cache
def _on_the_small_robot(backend: str, program: str) -> VectorExecutable:
    """One executable for batches of all shapes and numbers of all kinds."""
    model = MODELS["small"]
    return build(backend, SCHEDULES[program], model, _frames(model))


@cache
def _small_case(
    program: str, dtype: np.dtype, shape: tuple[int, ...]
) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """q, inputs, and what the interpreter makes of them in double precision."""
    model, schedule = MODELS["small"], SCHEDULES[program]
    rng = np.random.default_rng(7)
    q = random_configuration(model, rng, shape).astype(dtype)
    inputs = _inputs(schedule, model, rng, shape)
    inputs = {name: value.astype(dtype) for name, value in inputs.items()}
    if np.iscomplexobj(q):
        q = q + 1e-3j * rng.normal(size=q.shape).astype(q.real.dtype)
    wide = np.result_type(dtype, np.float64)
    known = {name: value.astype(wide) for name, value in inputs.items()}
    return q, inputs, run(schedule, model, q.astype(wide), known, _frames(model))


@pytest.mark.parametrize("backend", chosen_backends())
def test_mixed_batches_broadcast(backend: str) -> None:
    """Leading axes of q and of each input broadcast; every sample is what it is alone."""
    model = MODELS["floating"]
    schedule = SCHEDULES["forward_dynamics"]
    executable = build(backend, schedule, model)
    rng = np.random.default_rng(8)
    q = random_configuration(model, rng, (2, 1))
    one = _inputs(schedule, model, rng, ())
    inputs = {**one, "v": rng.normal(size=(3, *one["v"].shape)), "tau": one["tau"][None]}
    result = executable(q, inputs)["vdot"]
    assert result.shape == (2, 3, one["tau"].size)
    for i in range(2):
        for j in range(3):
            alone = executable(q[i, 0], {**one, "v": inputs["v"][j]})
            _close({"vdot": result[i, j]}, alone, 1e-12)


@pytest.mark.parametrize("backend", chosen_backends())
def test_large_batches_are_no_special_case(backend: str) -> None:
    """More samples than are worked on at once, also along a second axis."""
    model = chain(3, axes="xyz")
    schedule = SCHEDULES["forward_dynamics"]
    executable = build(backend, schedule, model)
    rng = np.random.default_rng(9)
    for shape, other in [((2500,), (2500,)), ((3, 700), (700,)), ((700, 3), (700, 1))]:
        q = random_configuration(model, rng, shape)
        inputs = {**_inputs(schedule, model, rng, shape), "v": rng.normal(size=(*other, 3))}
        _close(executable(q, inputs), run(schedule, model, q, inputs), 1e-12)


@pytest.mark.parametrize("model", ["mixed tree", "forest", "floating"])
@pytest.mark.parametrize("backend", chosen_backends())
def test_locked_joints(backend: str, model: str) -> None:
    """The hinge map has no rows for locked bodies, and joint vectors no entries."""
    robot = MODELS[model]
    for locked in [{0}, set(range(0, len(robot.bodies), 2)), set(range(len(robot.bodies)))]:
        programs = ("hybrid_dynamics", "inverse_dynamics", "compliance", "compliances")
        for program in TRIED_BY_XLA if backend == "jax" else programs:
            rng = np.random.default_rng(10)
            schedule, held = SCHEDULES[program], frozenset(locked)
            q = random_configuration(robot, rng, (2,))
            inputs = _inputs(schedule, robot, rng, (2,), held)
            ours = build(backend, schedule, robot, _frames(robot), held)(q, inputs)
            _close(ours, run(schedule, robot, q, inputs, _frames(robot), held), 1e-12)


@pytest.mark.parametrize("backend", chosen_backends())
def test_gravity_can_be_given(backend: str) -> None:
    """As a motion of the links it replaces that of the robot; zero gravity needs no force."""
    model = MODELS["mixed tree"]
    executable = build(backend, SCHEDULES["gravity_force"], model)
    q = random_configuration(model, np.random.default_rng(11))
    still = {"f_ext": np.zeros((len(model.bodies), 6))}
    assert np.abs(executable(q, still)["tau"]).max() > 1
    nothing = executable(q, {**still, "gravity": np.zeros((len(model.bodies), 6))})
    assert (nothing["tau"] == 0).all()


@pytest.mark.parametrize("backend", chosen_backends())
def test_complex_step(backend: str) -> None:
    """The imaginary part of a complex step is the derivative: central differences, 1e-6."""
    model = random_model(np.random.default_rng(12), 6, kinds=["revolute", "prismatic", "helical"])
    schedule = SCHEDULES["forward_dynamics"]
    executable = build(backend, schedule, model)
    rng = np.random.default_rng(13)
    q, direction = random_configuration(model, rng), rng.normal(size=model.nq)
    inputs = _inputs(schedule, model, rng, ())
    exact = executable(q + 1e-30j * direction, inputs)["vdot"].imag / 1e-30
    ahead, behind = (executable(q + h * direction, inputs)["vdot"] for h in (1e-6, -1e-6))
    difference = (ahead - behind) / 2e-6
    assert np.abs(exact - difference).max() < 1e-6 * np.abs(exact).max()


@pytest.mark.parametrize("backend", chosen_backends())
def test_a_long_chain(backend: str) -> None:
    """3000 links: held out horizontally, joint k carries m g l (n - k)²/2; hanging, it rests."""
    n = 3000
    model = chain(n)
    q, still = np.zeros(n), {"f_ext": np.zeros((n, 6))}
    hanging = build(backend, SCHEDULES["forward_dynamics"], model)
    rest = hanging(q, {**still, "v": np.zeros(n), "tau": np.zeros(n)})["vdot"]
    assert np.abs(rest).max() < 1e-9
    q[0] = np.pi / 2
    tau = build(backend, SCHEDULES["gravity_force"], model)(q, still)["tau"]
    expected = 9.81 * np.arange(n, 0, -1) ** 2 / 2
    assert np.abs(np.abs(tau) - expected).max() < 1e-9 * expected.max()


@pytest.mark.parametrize("backend", chosen_backends())
def test_a_robot_that_cannot_move(backend: str) -> None:
    """No bodies: empty results with the batch's axes."""
    builder = ModelBuilder("stone")
    builder.link("base")
    executable = build(backend, SCHEDULES["gravity_force"], builder.build())
    assert executable(np.zeros((4, 0)), {"f_ext": np.zeros((0, 6))})["tau"].shape == (4, 0)


@pytest.mark.parametrize("backend", chosen_backends())
def test_inputs_are_only_read(backend: str) -> None:
    """Running changes no input, and results are arrays of their own."""
    model = MODELS["mixed tree"]
    for program in ("forward_dynamics", "leaf and sum"):
        schedule = SCHEDULES[program]
        rng = np.random.default_rng(14)
        q = random_configuration(model, rng, (2,))
        inputs = _inputs(schedule, model, rng, (2,))
        before = {name: value.copy() for name, value in inputs.items()}
        results = build(backend, schedule, model)(q, inputs)
        for value in results.values():
            value[...] = 0
        assert all((inputs[name] == before[name]).all() for name in inputs)


@pytest.mark.parametrize("backend", chosen_backends())
def test_missing_inputs_are_named(backend: str) -> None:
    """What a program reads must be given; what it does not read is ignored."""
    model = chain(2)
    executable = build(backend, SCHEDULES["link_velocities"], model)
    with pytest.raises(ArgumentError, match="'v'"):
        executable(np.zeros(2), {"tau": np.zeros(2)})
    result = executable(np.zeros(2), {"v": np.zeros(2), "tau": np.zeros((9, 9))})
    assert result["V"].shape == (2, 6)


@pytest.mark.parametrize("backend", [*chosen_backends(), *SILENT])
def test_source_is_stable(backend: str) -> None:
    """The same program gives the same text, every time; it is not empty."""
    for name in (*OWN, "forward_dynamics", "inverse_dynamics_jvp", "diagonal_dynamics"):
        schedule = SCHEDULES[name]
        first, second = (build(backend, schedule, MODELS["forest"]).source for _ in range(2))
        assert first == second
        assert first.strip()


@pytest.mark.parametrize("backend", SILENT)
def test_backends_that_run_nothing_say_so(backend: str) -> None:
    """They name the command that writes files and the backends that run; their cost is known."""
    model, schedule = MODELS["small"], SCHEDULES["inverse_dynamics"]
    line = Tuning(shape="straight")
    written = build(backend, schedule, model, tuning=line)
    inputs = _inputs(schedule, model, np.random.default_rng(0), ())
    q = random_configuration(model, np.random.default_rng(0))
    for call in (written, written.run):
        with pytest.raises(ArgumentError, match=r"phistar export.*llvm, numpy, sweeps"):
            call(q, inputs)
    assert written.cost == build("llvm", schedule, model, tuning=line).cost


def test_every_operation_of_the_interpreter_is_tried() -> None:
    """The programs above use every operation, so that a new one cannot be forgotten here."""
    used = {s.program.nodes[k].op for s in SCHEDULES.values() for k in s.program.live()}
    lowered = {row.name for row in OPS.values() if not row.is_scalar_only}
    assert lowered <= used | {"zero", "rec", "select"}


def test_registry() -> None:
    """Backends are found by name; a wrong name suggests a right one."""
    assert names() == ("c", "jax", "llvm", "numpy", "sweeps")
    assert running_names() == ("jax", "llvm", "numpy", "sweeps")
    for name in names():
        assert get(name).name == name
    with pytest.raises(UnknownNameError, match="'numpy'"):
        get("numpi")

# SPDX-License-Identifier: BSD-3-Clause
"""REQUESTS: every quantity of a robot is a row, and goes through all passes on every robot."""

import inspect
import warnings

import numpy as np
import pytest

import phistar
from phistar.compile import PASSES, REQUESTS, Bundle, MatrixOf, Traced, Vectors
from phistar.errors import ArgumentError, UnknownNameError
from phistar.explain.meanings import METHOD_MEANINGS
from phistar.kernels import RobotKernel
from phistar.scalar.program import count_arithmetic
from phistar.sweeps.costs import OperationCount

NAMES = [each.name for each in PASSES]
BUNDLED = phistar.robots.names()

NOT_QUANTITIES = {
    *("compile", "function", "operators", "load_report", "model", "reorder", "to_urdf", "tree"),
    *(
        "with_gravity",
        "with_loops",
        "configuration_dict",
        "tangent_dict",
        "random_configuration",
        "neutral",
    ),
    *("plot", "save_html", "scene", "view"),
    *("with_payload", "with_frame", "with_parameters", "with_limits"),
    *("with_joint_physics", "result_buffers"),
    *("lock", "attach", "without", "scaled"),
    *("normalize", "configuration", "tangent", "difference_q", "difference_bias"),
}
"""Methods that give another robot, a compiled thing, a text, a picture, arrays or names."""


def _small(robot: phistar.Robot) -> bool:
    return len(robot.model.bodies) <= 8


def _compiled(robot: phistar.Robot, name: str) -> RobotKernel | None:
    """A row on a robot; None where the robot cannot have it, which is said in an error."""
    row = REQUESTS[name]
    frames = robot.link_names[-1:]
    about_frames = isinstance(row, Traced) and not {"frame", "frames"}.isdisjoint(row.choices)
    try:
        return robot.compile(name, backend="numpy", frames=frames if about_frames else ())
    except ArgumentError as error:
        if "mimic" in str(error) or "no program" in str(error):
            return None
        raise


@pytest.mark.parametrize("robot_name", BUNDLED)
def test_every_row_has_its_passes(robot_name: str) -> None:
    """Down to text, on every bundled robot; long programs are counted, not emitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = phistar.load(robot_name).tree
    found = 0
    for name in REQUESTS:
        k = _compiled(robot, name)
        if k is None:
            continue
        found += 1
        stages = k.passes
        assert [stage.name for stage in stages if stage.name != "trace"] == [
            each for each in NAMES if each != "trace"
        ], name
        assert all(stage.text.strip() for stage in stages), name
        assert k.sweeps, name
    assert found >= len(REQUESTS) // 2


@pytest.mark.parametrize("name", REQUESTS)
def test_every_row_as_machine_code_and_source(name: str) -> None:
    """All passes by name, scalars and their count, and source of three backends."""
    # Two joints move no frame in six directions, so there is no operational inertia.
    described = {"operational_inertia": "ur5"}.get(name, "double_pendulum")
    described = "panda_hand" if name.startswith("embedded_") else described
    robot = phistar.load("four_bar" if name.startswith("loop_") else described)
    frames = robot.link_names[-1:] if "frame" in str(getattr(REQUESTS[name], "choices", "")) else ()
    k = robot.compile(name, frames=frames)
    # Each of them traces the program again.
    stages, scalars, count = k.passes, k.scalars, k.scalar_program().count()
    assert [stage.name for stage in stages] == NAMES
    assert scalars == stages[NAMES.index("trace")].text
    assert k.cost == OperationCount.of_scalars(count)
    assert f"{count_arithmetic(count)} operations" in scalars
    for backend, part in (("llvm", "define"), ("c", "void "), ("numpy", "def run(")):
        assert part in k.source(backend), backend
    assert str(k.decision).startswith("shape")


@pytest.mark.parametrize("robot_name", ["four_bar", "delta"])
def test_rows_of_loops_have_their_passes(robot_name: str) -> None:
    """On robots with loops, all on a small one; the tree without them says that it has none."""
    robot = phistar.load(robot_name)
    found = {name: _compiled(robot, name) for name in REQUESTS if name.startswith("loop_")}
    assert found["loop_dynamics"] is not None
    assert None not in found.values() or not _small(robot)
    for name, k in found.items():
        assert k is None or all(stage.text.strip() for stage in k.passes), name
        assert _compiled(robot.tree, name) is None, name


@pytest.mark.parametrize("name", ["mass_matrix", "coriolis_matrix", "linearize", "jacobian"])
def test_rows_give_what_methods_give(name: str) -> None:
    """A row as a function is the method; relative 1e-12."""
    robot = phistar.load("ur5")
    rng = np.random.default_rng(2)
    q = robot.random_configuration(rng, (3,))
    v, tau = rng.normal(size=(2, 3, robot.nv))
    given = {"v": v, "tau": tau}
    frame = robot.link_names[-1]
    k = robot.compile(name, frames=[frame] if name == "jacobian" else ())
    ours = k(q, **{n: given[n] for n in k.inputs})
    theirs = {
        "mass_matrix": lambda: robot.mass_matrix(q),
        "coriolis_matrix": lambda: robot.coriolis_matrix(q, v),
        "linearize": lambda: vars(robot.linearize(q, v, tau)),
        "jacobian": lambda: robot.jacobian(q, frame),
    }[name]()
    if name != "linearize":
        ours, theirs = {name: ours}, {name: theirs}
    for key, value in ours.items():
        scale = np.abs(theirs[key]).max()
        assert np.abs(value - theirs[key]).max() <= 1e-12 * scale, key


def test_bundles_of_long_robots_come_one_by_one() -> None:
    """There is no fused program for 60 links, and the row still answers; relative 1e-9."""
    robot = phistar.robots.chain(60)
    rng = np.random.default_rng(3)
    q, v, tau = robot.random_configuration(rng), *rng.normal(size=(2, robot.nv))
    k = robot.compile("linearize")
    ours, theirs = k(q, v=v, tau=tau), robot.linearize(q, v, tau)
    for key in ("vdot", "vdot_q", "vdot_v", "vdot_tau"):
        known = getattr(theirs, key)
        assert np.abs(ours[key] - known).max() <= 1e-9 * np.abs(known).max(), key


def test_every_public_quantity_is_a_row() -> None:
    """A method of Robot is a row, or is made of rows, which ``explain`` names."""
    public = {
        name
        for name, value in inspect.getmembers(phistar.Robot)
        if not name.startswith("_") and inspect.isfunction(value)
    }
    made_of = {name: method.programs for name, method in METHOD_MEANINGS.items()}
    for name in public - NOT_QUANTITIES - set(REQUESTS):
        assert name in made_of, f"{name} is neither a row of REQUESTS nor of METHOD_MEANINGS"
        assert all(program in REQUESTS for program in made_of[name]), name


@pytest.mark.parametrize("name", [*REQUESTS, *METHOD_MEANINGS])
def test_every_row_is_explained(name: str) -> None:
    """``phistar explain NAME`` has a text that begins with the name and says more."""
    text = phistar.explain(name)
    assert text.startswith(name)
    assert len(text) > len(name) + 10


def test_kinds_of_rows() -> None:
    """The table holds all four kinds, and says so by type."""
    kinds = {
        name: type(REQUESTS[name]) for name in ("forward_dynamics", "mass_matrix", "linearize")
    }
    assert kinds == {"forward_dynamics": Vectors, "mass_matrix": MatrixOf, "linearize": Bundle}
    assert isinstance(REQUESTS["jacobian"], Traced)
    assert len(REQUESTS) == len(set(REQUESTS)) > 70


def test_choices() -> None:
    """Quantities of a frame need one; a reference can be chosen; other names are refused."""
    robot = phistar.load("ur5")
    frame = robot.link_names[-1]
    q = robot.random_configuration(np.random.default_rng(1))
    local = robot.compile("jacobian", frames=[frame], reference="local")
    np.testing.assert_allclose(local(q), robot.jacobian(q, frame, "local"), rtol=0, atol=1e-14)
    with pytest.raises(ArgumentError, match="about one frame"):
        robot.compile("jacobian")
    with pytest.raises(UnknownNameError, match="choice"):
        robot.compile("jacobian", frames=[frame], scheme="rk4")
    with pytest.raises(UnknownNameError, match="program"):
        robot.compile("jacobean")


def test_complex_steps_run_the_scalars_in_numpy() -> None:
    """Traced rows take complex numbers: the derivative of the energy is the momentum's product."""
    robot = phistar.load("ur5")
    rng = np.random.default_rng(4)
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    k = robot.compile("kinetic_energy")
    h = 1e-30
    slope = k(q, v=v + 1j * h * np.eye(robot.nv)).imag / h
    known = robot.mass_matrix(q) @ v
    assert np.abs(slope - known).max() <= 1e-13 * np.abs(known).max()

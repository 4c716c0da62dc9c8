# SPDX-License-Identifier: BSD-3-Clause
"""Everything that can be exported: numbers of NumPy code and of level 2, in C."""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phistar as ps
from phistar import energies
from phistar.algorithms.programs import BUNDLES, MATRICES
from phistar.backends import Tuning
from phistar.backends.to_c import lower_bundle, lower_matrix
from phistar.c_export import (
    ExportOptions,
    _exported,
    _wanted,
    export_c,
    needs_frame,
    quantity_names,
    source_c,
)
from phistar.compile import Full, joint_map, lowered_bundle, matrix_plan, with_closed_inverses
from phistar.dynamics import to_robot_coordinates
from phistar.errors import ArgumentError, LoweringError, SingularHingeError, UnknownNameError
from phistar.kernels import RobotKernel
from phistar.model import Model
from phistar.model import numpy_kinematics as kinematics
from phistar.model.builder import ModelBuilder
from phistar.model.random import random_model
from phistar.robot import Robot
from phistar.scalar.interpret import run
from phistar.scalar.program import ScalarProgram
from phistar.sweeps.matrix_plans import evaluate
from phistar.sweeps.matrix_requests import Diag, matrix_forms
from tests.helpers import patch_policy

State = Mapping[str, np.ndarray]

FRAMES = {"panda": "panda_link8", "quadruped": "HR_FOOT", "panda_hand": "panda_rightfinger"}
MATRIX_NAMES = ("mass_matrix", "mass_matrix_inverse", "coriolis_matrix", "inverse_dynamics_q")
LINEARIZED = {
    "linearize": ("forward_dynamics", "vdot_q", "vdot_v", "vdot_tau"),
    "linearize_inverse": ("inverse_dynamics", "tau_q", "tau_v", "tau_vdot"),
}
TRACED: Mapping[str, Callable[[Model, State, str], np.ndarray]] = {
    "frame_pose": lambda m, s, f: kinematics.frame_pose(m, s["q"], f),
    "link_poses": lambda m, s, f: np.stack([*kinematics.link_poses(m, s["q"]).values()], axis=1),
    "jacobian": lambda m, s, f: kinematics.jacobian(m, s["q"], f, "world_aligned"),
    "frame_velocity": lambda m, s, f: kinematics.frame_velocity(
        m, s["q"], s["v"], f, "world_aligned"
    ),
    "center_of_mass": lambda m, s, f: kinematics.center_of_mass(m, s["q"], fixed=True),
    "momentum": lambda m, s, f: energies.momentum_by_sweeps(m, s["q"], s["v"]),
    "kinetic_energy": lambda m, s, f: energies.kinetic_energy_by_sweeps(m, s["q"], s["v"]),
    "potential_energy": lambda m, s, f: energies.potential_energy_by_sweeps(m, s["q"]),
}
CASES = [
    *(("panda", name) for name in (*MATRIX_NAMES, *LINEARIZED, *TRACED, "jacobian_rate")),
    *(("quadruped", name) for name in ("mass_matrix", "linearize", *TRACED, "jacobian_rate")),
    *(("panda_hand", n) for n in ("mass_matrix", "coriolis_matrix", "jacobian", "kinetic_energy")),
    *(("panda_hand", n) for n in ("linearize_inverse", "jacobian_rate", "inverse_dynamics")),
    *((robot, "forward_dynamics") for robot in ("panda", "quadruped")),
]


def _program(model: Model, name: str, frame: str = "", **options: Any) -> ScalarProgram:
    chosen = ExportOptions(**options)
    (wanted,) = _wanted([f"{name}:{frame}" if needs_frame(name) else name], chosen)
    return _exported(model, wanted, chosen).program


def _state(model: Model, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    v, vdot, tau = rng.normal(size=(3, 2, model.nv))
    return {"q": Robot(model).random_configuration(rng, (2,)), "v": v, "vdot": vdot, "tau": tau}


def _level_2(model: Model, name: str, state: State, frames: Sequence[str] = ()) -> np.ndarray:
    """A matrix of the catalogue by its cheapest plan, in the robot's coordinates."""
    joints = joint_map(model)
    inputs = {n: joints.spread(state[n]) for n in ("v", "vdot", "tau")}
    plan = matrix_plan(MATRICES[name], Full(), model, tuple(frames))
    found = evaluate(plan, state["q"], inputs)
    return joints.gather(found) if frames else to_robot_coordinates(model, found)


def _expected(model: Model, name: str, state: State, frame: str) -> dict[str, np.ndarray]:
    """By NumPy code, or level 2 where that has no NumPy code."""
    if name in TRACED:
        return {name: TRACED[name](model, state, frame)}
    if name in MATRICES:
        return {name: _level_2(model, name, state, (frame,) if needs_frame(name) else ())}
    program, *derivatives = LINEARIZED.get(name, (name,))
    code = RobotKernel(model, program, backend="numpy")
    given = {n: state[n] for n in code.inputs if n != "f_ext"}
    found = {code.outputs[0]: code(state["q"], **given)}
    for each in derivatives:
        by = each.partition("_")[2]
        matrix = {"vdot": "mass_matrix", "tau": "mass_matrix_inverse"}.get(by, f"{program}_{by}")
        found[each] = _level_2(model, matrix, state)
    return found


@pytest.mark.parametrize(("robot", "name"), CASES)
def test_numbers(build: Callable[..., Any], robot: str, name: str) -> None:
    """An arm, a free base and mimic joints; relative 1e-12, quotients by joint inertias 1e-11."""
    model, frame = ps.load(robot).model, FRAMES[robot]
    program, state = _program(model, name, frame), _state(model)
    got = build(program, level="-O0")(state)
    want = _expected(model, name, state, frame)
    assert got.keys() == want.keys()
    divides = name in ("linearize", "forward_dynamics", "mass_matrix_inverse")
    for output, x in want.items():
        error = np.abs(got[output] - x.reshape(2, -1)).max()
        assert error < (1e-11 if divides else 1e-12) * np.abs(x).max()


@pytest.mark.parametrize("reference", ["local", "world", "world_aligned"])
def test_references(reference: str) -> None:
    """Jacobians and velocities of frames in the axes asked for; relative 1e-12."""
    model, frame = ps.load("quadruped").model, FRAMES["quadruped"]
    state = _state(model)
    for name, compute, given in (
        ("jacobian", kinematics.jacobian, ("q",)),
        ("frame_velocity", kinematics.frame_velocity, ("q", "v")),
    ):
        program = _program(model, name, frame, reference=reference)
        (got,) = run(program, state).values()
        want = compute(model, *(state[n] for n in given), frame, reference)
        assert np.abs(got - want.reshape(2, -1)).max() < 1e-12 * np.abs(want).max()


def test_every_quantity_exports(compiler: str, tmp_path: Path) -> None:
    """All names, in one folder, with strict warnings; every function checks itself."""
    model = ps.load("double_pendulum").model
    # Two joints move no frame in six directions.
    absent = ("operational_inertia", "loop_", "embedded_")
    names = [name for name in quantity_names() if not name.startswith(absent)]
    files = export_c(model, names, tmp_path, frames=model.frame_names[-1:])
    assert len(files) == len(names) + 4
    sources = [str(file) for file in files if file.suffix == ".c"]
    flags = ["-std=c99", "-O0", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    command = [compiler, *flags, "-o", "selftest", *sources, "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = subprocess.run(["./selftest"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout.count(": ok") == len(names)


@pytest.mark.parametrize(
    ("name", "innovations"),
    [
        ("linearize", False),
        ("linearize", True),
        ("linearize_split", False),
        ("forward_dynamics_q", False),
    ],
)
def test_matrices_of_reordered_robots(
    name: str, innovations: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products and loops over rows in another order of the joints; relative 1e-11."""
    patch_policy(monkeypatch, min_rows_innovations=1 if innovations else 1000)
    robot = Robot(random_model(np.random.default_rng(5), 6, floating_base=True))
    turned = robot.reorder(robot.joint_names[::-1]).model
    assert not joint_map(turned).is_identity
    program, state = _program(turned, name), _state(turned)
    if name == "forward_dynamics_q":
        want = {name: _level_2(turned, name, state)}
    else:
        assert getattr(program, "products" if name == "linearize" else "row_loops")
        assert any(product.bands for product in program.products) == innovations
        want = _expected(turned, "linearize", state, "")
    got = run(program, state)
    for output, x in want.items():
        assert np.abs(got[output] - x.reshape(2, -1)).max() < 1e-11 * np.abs(x).max()


def test_bundles_in_single_precision_avoid_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products lose fewer digits, also where walks would be quicker."""
    patch_policy(monkeypatch, max_branch_time_ratio=100.0)
    model = ps.robots.chain(13).model
    bundle = lowered_bundle("linearize")
    double, single = (lower_bundle(bundle, model, real=real) for real in ("double", "float"))
    assert double.program.row_loops
    assert single.program.products
    assert not single.program.row_loops


def test_shapes_of_matrices() -> None:
    """Long lines become loops; where walks meet there are none, and joints keep body order."""
    forms = matrix_forms(with_closed_inverses(MATRICES["mass_matrix"]), Full())
    long, short = (ps.robots.chain(n).model for n in (80, 4))
    assert "switch" in source_c(long, "mass_matrix")
    assert "switch" not in source_c(short, "mass_matrix")
    assert "switch" in source_c(short, "mass_matrix", shape="rolled")
    turned = Robot(short).reorder(Robot(short).joint_names[::-1]).model
    with pytest.raises(LoweringError, match="body order"):
        lower_matrix(forms, turned, tuning=Tuning(shape="rolled"))
    with pytest.raises(ArgumentError, match="one by one"):
        source_c(ps.robots.chain(60).model, "linearize")


def test_parts_of_matrices() -> None:
    """Blocks of the diagonal, one after the other."""
    model = ps.load("panda").model
    forms = matrix_forms(with_closed_inverses(MATRICES["mass_matrix"]), Diag())
    program = lower_matrix(forms, model, request=Diag()).program
    state = _state(model)
    want = np.diagonal(_level_2(model, "mass_matrix", state), axis1=1, axis2=2)
    assert np.abs(run(program, state)["matrix"] - want).max() < 1e-12 * np.abs(want).max()


def test_kernels_give_their_source() -> None:
    """Programs, own ones too; matrices and bundles through the backend."""
    arm = ps.load("panda")
    k = arm.compile("forward_dynamics")
    assert "void panda_vdot(" in k.source("c")
    assert re.search(r"phistar export", _refusal(arm.compile("forward_dynamics", backend="c")))
    assert k.source("c") == arm.compile("forward_dynamics", backend="c").source()
    assert "7 x 7 matrix" in arm.compile("mass_matrix").source("c")
    assert "double vdot_q[49]" in arm.compile("linearize").source("c")


def _refusal(k: RobotKernel) -> str:
    with pytest.raises(ArgumentError) as caught:
        k(np.zeros(7), v=np.zeros(7), tau=np.zeros(7))
    return str(caught.value)


# -- what cannot be exported


@pytest.mark.parametrize(
    ("names", "options", "word"),
    [
        (["jacobian"], {}, "jacobian:FRAME"),
        (["jacobian:"], {}, "jacobian:FRAME"),
        (["mass_matrix:panda_link8"], {}, "not about one"),
        (["mass_matrix"], {"frames": ["panda_link8"]}, "about a frame"),
        (["mass_matrix"], {"reference": "local"}, "has one"),
        (["jacobian:panda_link8"], {"reference": "lokal"}, "'local'"),
        (["mass_matrix"], {"shape": "round"}, "'rolled'"),
    ],
)
def test_mistakes(tmp_path: Path, names: list[str], options: Mapping[str, Any], word: str) -> None:
    """Frames that are missing or too many, references without a use: nothing is written."""
    with pytest.raises(ArgumentError, match=word):
        export_c(ps.load("panda").model, names, tmp_path, **options)
    assert not [*tmp_path.iterdir()]


def test_unknown_names(tmp_path: Path) -> None:
    """Quantities and frames suggest others."""
    model = ps.load("panda").model
    for name, word in (("mass_matric", "mass_matrix"), ("jacobian:panda_link9", "panda_link8")):
        with pytest.raises(UnknownNameError, match=word):
            export_c(model, [name], tmp_path)


def test_what_a_robot_cannot_be_asked_for(tmp_path: Path) -> None:
    """Mimic joints, joints that move no inertia, robots without mass."""
    for name in ("hinge_inertia", "linearize_split", "forward_dynamics_q"):
        with pytest.raises(ArgumentError, match="mimic"):
            export_c(ps.load("panda_hand").model, [name], tmp_path)
    builder = ModelBuilder("ghost")
    builder.link("base")
    builder.link("arm")
    builder.joint("hinge", "revolute", "base", "arm", axis=(0, 0, 1))
    ghost = builder.build()
    with pytest.raises(SingularHingeError):
        export_c(ghost, ["mass_matrix_inverse"], tmp_path)
    with pytest.raises(ArgumentError, match="no mass"):
        export_c(ghost, ["center_of_mass"], tmp_path)
    assert not [*tmp_path.iterdir()]


def test_comments_tell_shapes(tmp_path: Path) -> None:
    """Headers and READMEs say how matrices lie in their arrays, frames, references and axes."""
    names = ["mass_matrix", "linearize", "jacobian:HR_FOOT", "link_jacobians", "gravity_force"]
    export_c(ps.load("quadruped").model, names, tmp_path, reference="local")
    for file in (tmp_path / "quadruped.h", tmp_path / "README.md"):
        text = re.sub(r"\n \*\s+", " ", file.read_text(encoding="utf-8"))
        for part in (
            "18 x 18 matrix, row by row: entry (i, j) is at 18 * i + j",
            "6 x 18 matrix",
            "'HR_FOOT', the reference is local",
            "Six rows per link",
            "vdot_q = -vdot_tau tau_q",
            "Quaternions in q whose length is one within 1e-06",
            "There are no external forces",
        ):
            assert part in text
    assert "a vector over links" not in (tmp_path / "quadruped.h").read_text(encoding="utf-8")
    assert set(BUNDLES) <= set(quantity_names())

# SPDX-License-Identifier: BSD-3-Clause
"""What CONTRIBUTING says about additions must be so."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.algebra import identities
from phistar.algebra.identities import Identity
from phistar.algebra.phases import IDENTITIES, PHASES
from phistar.algebra.proof import Outcome, Theorem, prove, sides_differ
from phistar.algebra.rewrite import Rewriter, Rule, critical_pairs
from phistar.algorithms import catalogue
from phistar.algorithms.programs import REGROUPABLE_PROGRAMS
from phistar.backends.llvm.emit.looped_module import looped_workspace
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.backends.llvm.run.machine_kernel import llvm_text
from phistar.c_export import export_c
from phistar.compile import kernel
from phistar.conventions import Convention, PeerJoint
from phistar.derivatives import lie_jacobians
from phistar.model.builder import ModelBuilder
from phistar.model.joints import JOINT_KINDS, AxisKind, JointKind, Planar, Prismatic, Turn
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.lower import LoweringOptions, to_looped, to_unrolled
from phistar.scalar.program import Looped, ScalarProgram
from phistar.scalar.trace.step_jacobians import step_jacobians
from phistar.testing import check_derivatives
from tests.helpers import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROW, FILE, KIND = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_the_row_shown_is_an_identity() -> None:
    """The example row is a new rule, follows from the core, holds as matrices and joins."""
    names: dict[str, Any] = {}
    exec(compile(ROW, "CONTRIBUTING.md", "exec"), names)
    row = names["row"]
    assert isinstance(row, Identity)
    assert Rule.of(row).lhs not in {Rule.of(known).lhs for known in IDENTITIES}
    theorem = Theorem(row.name, row.lhs, row.rhs, row.why, row.ref)
    assert prove(theorem).outcome is Outcome.PROVED
    assert not sides_differ(theorem)
    core = next(phase for phase in PHASES if phase.name == "core")
    rewriter = Rewriter(identities.with_adjoints((*core.rows, row)))
    for pair in critical_pairs(rewriter.rules):
        assert rewriter.normal_form(pair.left) == rewriter.normal_form(pair.right)


def test_the_file_shown_is_an_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example file puts one new theorem into the catalogue, and it is proved."""
    catalogue.catalogue()
    known = dict(catalogue._CATALOGUE)
    monkeypatch.setattr(catalogue, "_CATALOGUE", added := {})
    monkeypatch.setattr(catalogue, "_LOCATIONS", {})
    names: dict[str, Any] = {}
    exec(compile(FILE, "CONTRIBUTING.md", "exec"), names)
    ((name, theorem),) = added.items()
    assert name not in known
    assert prove(theorem).outcome is Outcome.PROVED


# -- a joint kind

RADII = 0.4, 0.7
SHAPES: dict[str, Callable[..., ScalarProgram]] = {"looped": to_looped, "unrolled": to_unrolled}


@pytest.fixture(scope="module")
def kinds() -> Iterator[dict[str, type[JointKind]]]:
    """The kind shown, and one with an axis and steps of its own; other tests do not see them."""
    known = dict(JOINT_KINDS)
    names: dict[str, Any] = {}
    exec(compile(KIND, "CONTRIBUTING.md", "exec"), names)

    class Table(AxisKind):
        """Turning about an axis and sliding in all directions; q = (x, y, z, angle)."""

        name = "table"
        q_units = ("m", "m", "m", "rad")
        columns = lambda self: (((3, 1.0),), ((4, 1.0),), ((5, 1.0),), ((2, 1.0),))  # noqa: E731
        placement = lambda self, q, ops: ((Turn(2, q[3]),), q[:3])  # noqa: E731

        def step(self, q: Any, u: Any, ops: Any) -> Any:
            x, y, angle = Planar().step([q[0], q[1], q[3]], [u[0], u[1], u[3]], ops)
            return [x, y, q[2] + u[2], angle]

        def step_between(self, q0: Any, q1: Any, ops: Any) -> Any:
            ends = [[q[0], q[1], q[3]] for q in (q0, q1)]
            x, y, angle = Planar().step_between(*ends, ops)
            return [x, y, q1[2] - q0[2], angle]

    yield {name: kind for name, kind in JOINT_KINDS.items() if name not in known}
    for name in {*JOINT_KINDS} - {*known}:
        del JOINT_KINDS[name]


def links(builder: ModelBuilder, names: str) -> None:
    """Links with some mass each."""
    for k, name in enumerate(names):
        builder.link(name, mass=1.0 + 0.3 * k, com=(0.1, -0.2 * k, 0.3), inertia=(0.2, 0.3, 0.4))


AXIS = (0.6, 0.0, 0.8)
WHERE = {"xyz": (0.1, 0.2, -0.3), "rpy": (0.3, -0.4, 0.5)}


@pytest.fixture(scope="module")
def robot(kinds: dict[str, Any]) -> phistar.Robot:
    """A hinge, a swing, a table, a swing on it, and a slider beside that."""
    builder = ModelBuilder("fair")
    links(builder, "abcdef")
    builder.joint("hinge", "revolute", "a", "b", axis=(0, 1, 0), **WHERE)
    builder.joint("swing", kinds["swing"](RADII[0]), "b", "c", **WHERE, armature=0.1)
    builder.joint("table", kinds["table"](AXIS), "c", "d", **WHERE)
    builder.joint("other", kinds["swing"](RADII[1]), "d", "e", **WHERE)
    builder.joint("slider", "prismatic", "d", "f", **WHERE, axis=(1, 0, 0))
    return phistar.Robot(builder.build())


@pytest.fixture(scope="module")
def witness() -> phistar.Robot:
    """The same of the package's own kinds: hinges off the links, a planar joint and a slider."""
    builder = ModelBuilder("own")
    links(builder, "abcdef")
    builder.link("between")
    builder.joint("hinge", "revolute", "a", "b", axis=(0, 1, 0), **WHERE)
    for name, parent, child, radius, rotor in (
        ("swing", "b", "c", RADII[0], 0.1),
        ("other", "d", "e", RADII[1], 0.0),
    ):
        here = phistar.spatial.pose(phistar.spatial.rpy_to_rotation(WHERE["rpy"]), WHERE["xyz"])
        centre, arm = (phistar.spatial.pose(None, (x, 0, 0)) for x in (-radius, radius))
        builder.joint(
            name, "revolute", parent, child, origin=here @ centre, child_pose=arm,
            axis=(0, 0, 1), armature=rotor,
        )  # fmt: skip
    builder.joint("plane", "planar", "c", "between", axis=AXIS, **WHERE)
    builder.joint("height", "prismatic", "between", "d", axis=AXIS)
    builder.joint("slider", "prismatic", "d", "f", **WHERE, axis=(1, 0, 0))
    return phistar.Robot(builder.build())


def to_witness(robot: phistar.Robot, witness: phistar.Robot, x: np.ndarray) -> np.ndarray:
    """Coordinates, velocities or forces, as the witness orders them; nq is nv for both."""
    result = np.empty_like(x)
    for name in ("hinge", "swing", "other", "slider"):
        result[..., witness.joints[name].v_slice] = x[..., robot.joints[name].v_slice]
    own = x[..., robot.joints["table"].v_slice]
    result[..., witness.joints["plane"].v_slice] = own[..., [0, 1, 3]]
    result[..., witness.joints["height"].v_slice] = own[..., 2:3]
    return result


def state(robot: phistar.Robot, batch: tuple[int, ...] = (5,)) -> tuple[np.ndarray, ...]:
    """q, v and one more joint vector."""
    rng = np.random.default_rng(1)
    q = robot.random_configuration(rng, batch)
    return q, *(rng.normal(size=(*batch, robot.nv)) for _ in range(2))


def by_kernel(robot: phistar.Robot, name: str, given: Any, backend: str = "sweeps") -> Any:
    """The result of inverse or forward dynamics by a backend."""
    q, v, x = given
    last = "vdot" if name == "inverse_dynamics" else "tau"
    return robot.compile(name, backend=backend)(q, **{"v": v, last: x})


def close(x: Any, y: Any, tolerance: float = 1e-11) -> None:
    """Equal, relative to the largest entry."""
    np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * np.abs(y).max())


def test_the_class_shown_is_a_joint_kind(kinds: dict[str, type[JointKind]]) -> None:
    """X_J(integrate(q, u)) = X_J(q) exp(H* u); random robots have it by its name."""
    for name, cls in kinds.items():
        kind = cls.random_kind(np.random.default_rng(2))
        q, u = np.random.default_rng(3).normal(size=(2, kind.nq))
        twist = kind.motion_map() @ u
        expected = kind.transform(q) @ phistar.spatial.exp_se3(twist)
        np.testing.assert_allclose(kind.transform(kind.integrate(q, u)), expected, atol=1e-14)
        np.testing.assert_allclose(kind.difference(q, kind.integrate(q, u)), u, atol=1e-14)
        np.testing.assert_array_equal(kind.transform(kind.neutral()), np.eye(4))
        model = random_model(np.random.default_rng(4), 2, kinds=[name])
        assert {joint.kind for joint in model.joints.values()} == {name}


@pytest.mark.parametrize("backend", ["sweeps", "numpy", "llvm"])
def test_kinds_from_outside_move_like_ours(
    robot: phistar.Robot, witness: phistar.Robot, backend: str
) -> None:
    """Dynamics by every backend beside the same robot of the package's own kinds; 1e-11."""
    given = state(robot)
    theirs = [to_witness(robot, witness, x) for x in given]
    for name in ("inverse_dynamics", "forward_dynamics"):
        result = by_kernel(robot, name, given, backend)
        expected = by_kernel(witness, name, theirs)
        close(to_witness(robot, witness, result), expected)


def test_methods_agree(robot: phistar.Robot, witness: phistar.Robot) -> None:
    """Poses, energies, mass matrices and their inverses; a force, its acceleration, the force."""
    q, v, vdot = state(robot)
    theirs = [to_witness(robot, witness, x) for x in (q, v, vdot)]
    close(robot.frame_pose(q, "e"), witness.frame_pose(theirs[0], "e"))
    close(robot.kinetic_energy(q, v), witness.kinetic_energy(*theirs[:2]))
    close(robot.potential_energy(q), witness.potential_energy(theirs[0]))
    matrix = robot.mass_matrix(q)
    order = to_witness(robot, witness, np.arange(robot.nv)).astype(int)
    close(matrix[:, order][:, :, order], witness.mass_matrix(theirs[0]))
    close(robot.forward_dynamics(q, v, robot.inverse_dynamics(q, v, vdot)), vdot)
    speed = (robot.jacobian(q, "e") @ v[..., None])[..., 0]
    close(speed, robot.frame_velocity(q, v, "e"))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_scalar_programs_of_kinds_from_outside(
    robot: phistar.Robot, witness: phistar.Robot, shape: str, name: str
) -> None:
    """Loops and straight lines, by their interpreter and as machine code; 1e-11."""
    options = LoweringOptions(regroup=name in REGROUPABLE_PROGRAMS)
    schedule = kernel(name).schedule
    program = SHAPES[shape](schedule, robot.model, frozenset({"f_ext", "gravity"}), options=options)
    given = state(robot)
    expected = by_kernel(witness, name, [to_witness(robot, witness, x) for x in given])
    force = "vdot" if name == "inverse_dynamics" else "tau"
    inputs = {"q": given[0], "v": given[1], force: given[2]}
    (found,) = run(program, inputs).values()
    close(to_witness(robot, witness, found), expected)
    lanes = jit.lanes_for(jit.host_cpu(), "double")
    room = looped_workspace(program) if isinstance(program, Looped) else 0
    compiled = KernelCaller(jit.load(llvm_text(program, lanes)), program.signature, lanes, room)
    result = np.full_like(found, np.nan)
    assert compiled([inputs[each] for each in program.signature.inputs], [result])
    close(result, found)


def test_derivatives_of_kinds_from_outside(robot: phistar.Robot) -> None:
    """All derivatives beside complex steps, steps of configurations beside their own tangents."""
    assert check_derivatives(robot, states=1, second=False).passed
    q, _, u = state(robot, ())
    close(robot.difference(q, robot.integrate(q, u)), u)
    kind = robot.joints["table"].joint_kind
    own = u[robot.joints["table"].v_slice]
    known = lie_jacobians.step_adjoint, lie_jacobians.right_jacobian
    for ours, theirs in zip(step_jacobians(kind, own.tolist()), known, strict=True):
        block = robot.joints["table"].v_slice
        close(np.array(ours), theirs(robot.model, u)[block, block], 1e-13)


@pytest.mark.parametrize("scheme", ["rk4", "euler"])
def test_simulation_of_kinds_from_outside(
    robot: phistar.Robot, witness: phistar.Robot, scheme: str
) -> None:
    """Steps of time, compiled, lead where those of the witness lead; 1e-10."""
    q, v, _ = state(robot, ())
    theirs = [to_witness(robot, witness, x) for x in (q, v)]
    ours = robot.simulate(q, v, dt=1e-3, steps=40, scheme=scheme)
    expected = witness.simulate(*theirs, dt=1e-3, steps=40, scheme=scheme)
    close(to_witness(robot, witness, ours.q), expected.q, 1e-10)
    close(to_witness(robot, witness, ours.v), expected.v, 1e-10)


def test_c_code_of_kinds_from_outside(robot: phistar.Robot, tmp_path: Any) -> None:
    """The C export names the coordinates, and its self-test passes."""
    files = export_c(robot.model, ["forward_dynamics"], tmp_path)
    header = next(file for file in files if file.suffix == ".h").read_text()
    assert "swing, swing: angle [rad], v [rad/s], force [N m]" in header
    assert "table, table: coordinates [m, rad], v [m/s, rad/s; moving axes]" in header
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler on this machine")
    sources = [str(file) for file in files if file.suffix == ".c"]
    command = [compiler, "-std=c99", "-O1", "-o", str(tmp_path / "selftest"), *sources, "-lm"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    subprocess.run([tmp_path / "selftest"], check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("peer", ["pinocchio", "mujoco"])
def test_conventions_of_kinds_from_outside(robot: phistar.Robot, peer: str) -> None:
    """Their coordinates are those of the peer, in its order."""
    joints = [(robot.joints[name].v_slice, name) for name in robot.joint_names]
    places = [PeerJoint(name, own.start, own.start) for own, name in joints]
    convention = Convention(robot, peer, places, robot.nq, robot.nv)
    q, v, vdot = state(robot)
    assert np.array_equal(convention.q_from_peer(convention.q_to_peer(q)), q)
    assert np.array_equal(convention.v_to_peer(q, v), v)
    assert np.array_equal(convention.vdot_to_peer(q, v, vdot), vdot)


def test_a_class_that_changes_is_another_kind(robot: phistar.Robot, kinds: dict[str, Any]) -> None:
    """A class written again, as in a notebook, gets code of its own: it is another robot."""
    parameters = {"placement": kinds["swing"].placement, "__module__": "elsewhere"}
    bent = {**parameters, "columns": lambda self: (((2, 1.0), (4, 2.0 * self.radius)),)}
    same = {**parameters, "columns": kinds["swing"].columns}
    prints = []
    for body in (bent, same):
        kind = type("Swing", (kinds["swing"],), body)(RADII[0])
        builder = ModelBuilder("one")
        links(builder, "ab")
        builder.joint("j", kind, "a", "b")
        prints.append(builder.build().fingerprint)
    assert prints[0] != prints[1]
    assert Prismatic().behaviour() == b"" != kinds["swing"]().behaviour()

# SPDX-License-Identifier: BSD-3-Clause
"""C functions against the interpreter of scalar programs."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phistar
from phistar.algebra.spaces import FORCE
from phistar.algebra.symbols import Upsilon, vector
from phistar.algorithms.programs import MATRICES
from phistar.backends.c import Origin, RobotInfo, c_source, random_inputs
from phistar.backends.c import interface as signature_module
from phistar.backends.c.selftest import relative_error, with_unit_quaternions
from phistar.compile import compile_outputs
from phistar.errors import ArgumentError
from phistar.model.configuration import random_configuration
from phistar.model.joints import Revolute
from phistar.scalar.graph import Graph, Value, cos, log, select, sin, sqrt
from phistar.scalar.interpret import run
from phistar.scalar.lower import to_looped, to_unrolled
from phistar.scalar.lower_matrix import to_looped_matrix
from phistar.scalar.program import (
    BasicBlock,
    LinkSweep,
    LinkTable,
    Looped,
    MatrixProduct,
    ProductBand,
    RowLoop,
    ScalarProgram,
    Signature,
    Store,
    Unrolled,
)
from phistar.sweeps.ir import Direction
from phistar.sweeps.matrix_requests import Full, matrix_forms
from tests.helpers import patch_policy

CASES = [
    ("panda", "inverse_dynamics", "straight"),
    ("panda", "forward_dynamics", "straight"),
    ("panda", "forward_dynamics", "rolled"),
    ("panda_hand", "inverse_dynamics", "straight"),
    ("quadruped", "forward_dynamics", "straight"),
    ("quadruped", "inverse_dynamics", "rolled"),
    ("humanoid", "inverse_dynamics", "straight"),
    ("humanoid", "forward_dynamics", "rolled"),
    ("chain30", "inverse_dynamics", "rolled"),
    ("chain30", "forward_dynamics", "rolled"),
    ("every kind", "inverse_dynamics", "straight"),
    ("every kind", "forward_dynamics", "straight"),
    ("every kind", "forward_dynamics", "rolled"),
    ("every kind", "link_velocities", "rolled"),
    ("floating", "forward_dynamics", "straight"),
    ("floating", "link_velocities", "straight"),
]


def unit_run(program: ScalarProgram, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the interpreter gives for inputs whose quaternions are made unit."""
    return run(program, with_unit_quaternions(program.signature, inputs))


@pytest.mark.parametrize(("robot", "name", "shape"), CASES)
def test_agrees_with_the_interpreter(
    make: Callable[..., Any], build: Callable[..., Any], robot: str, name: str, shape: str
) -> None:
    """Straight lines and loops, every joint kind; relative 1e-12, nothing else is written."""
    model, program = make(robot, name, shape)
    inputs = random_inputs(model, program.signature)
    assert relative_error(build(program)(inputs), unit_run(program, inputs)) < 1e-12


@pytest.mark.parametrize("shape", [to_unrolled, to_looped])
def test_compliances(
    make: Callable[..., Any], build: Callable[..., Any], shape: Callable[..., Any]
) -> None:
    """An operator of a user's own with Υ, which goes outward as a matrix; relative 1e-12."""
    model, _ = make("every kind", "link_velocities", "rolled")
    outputs = (("out", Upsilon @ vector("f", FORCE)),)
    program = shape(compile_outputs("own", outputs).schedule, model)
    inputs = random_inputs(model, program.signature)
    assert relative_error(build(program)(inputs), unit_run(program, inputs)) < 1e-12


@pytest.mark.parametrize(
    ("robot", "name", "shape", "bound"),
    [
        ("panda", "inverse_dynamics", "straight", 2e-6),
        ("panda", "forward_dynamics", "straight", 1e-4),
        ("quadruped", "inverse_dynamics", "rolled", 2e-6),
        ("quadruped", "forward_dynamics", "rolled", 1e-4),
    ],
)
def test_single_precision(
    make: Callable[..., Any],
    build: Callable[..., Any],
    robot: str,
    name: str,
    shape: str,
    bound: float,
) -> None:
    """The same in float, within bounds that the conditioning of the mass matrix sets."""
    model, program = make(robot, name, shape)
    inputs = random_inputs(model, program.signature)
    given = {key: x.astype(np.float32).astype(float) for key, x in inputs.items()}
    error = relative_error(build(program, "float")(given), unit_run(program, given))
    assert 1e-9 < error < bound


def test_long_lines_are_cut(
    make: Callable[..., Any], build: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line in several functions gives the bits of the line in one."""
    model, program = make("quadruped", "forward_dynamics", "straight")
    inputs = random_inputs(model, program.signature)
    whole = build(program, name="whole")(inputs)
    patch_policy(monkeypatch, max_c_operations_one_function=100)
    for length in (97, 500):
        patch_policy(monkeypatch, c_operations_per_function=length)
        text = c_source(program, "cut")
        count = len(re.findall(r"^static void cut_part", text, re.MULTILINE))
        assert count == -(-_operations(program) // length)
        cut = build(program, name="cut")(inputs)
        assert all(np.array_equal(cut[name], whole[name]) for name in whole)


def _operations(program: Unrolled) -> int:
    nodes = program.block.graph.nodes
    return sum(nodes[number][0] not in ("const", "load") for number in program.block.live_nodes)


@pytest.mark.parametrize("shape", ["straight", "rolled"])
def test_large_workspace_is_an_argument(
    make: Callable[..., Any],
    build: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
) -> None:
    """Beyond the limit the caller gives it, its size has a name, and results are the same."""
    model, program = make("quadruped", "forward_dynamics", shape)
    patch_policy(monkeypatch, max_c_stack_bytes=100, max_c_operations_one_function=100)
    text = c_source(program, "f")
    assert re.search(r"^#define F_WORK \d+", text, re.MULTILINE)
    assert "double work[F_WORK])" in text
    inputs = random_inputs(model, program.signature)
    assert relative_error(build(program)(inputs), unit_run(program, inputs)) < 1e-12


def test_limit_of_the_stack(make: Callable[..., Any]) -> None:
    """Arrays on the stack have at most 16 KB: 100 links keep theirs there, 300 do not."""
    small, large = (make(f"chain{n}", "forward_dynamics", "rolled")[1] for n in (100, 300))
    assert "_WORK" not in c_source(small, "f")
    assert "_WORK" in c_source(large, "f")
    for text in (c_source(small, "f"), c_source(large, "f")):
        sizes = re.findall(r"^    double \w+\[(\d+)\];", text, re.MULTILINE)
        assert all(8 * int(size) <= 16 * 1024 for size in sizes)


@pytest.mark.parametrize("shape", ["straight", "rolled"])
def test_needs_nothing_but_math(make: Callable[..., Any], shape: str) -> None:
    """The text includes math.h alone, calls three functions, and all its data are constant."""
    _, program = make("quadruped", "forward_dynamics", shape)
    text = re.sub(r"/\*.*?\*/", "", c_source(program, "f"), flags=re.DOTALL)
    assert re.findall(r"#include.*", text) == ["#include <math.h>"]
    called = {*re.findall(r"(\w+)\s*\(", text)} - {"f", "f_unit", "for", "switch"}
    assert called <= {"sin", "cos", "sqrt"}
    outside = re.sub(r"^    .*|^[{}].*", "", text.partition("{")[0], flags=re.MULTILINE)
    assert "=" not in outside
    for declared in re.findall(r"^\s*(?:\w+ )+\w+\[([^\]]*)\] =", text, re.MULTILINE):
        assert declared.isdigit()
    assert "malloc" not in text
    assert "static" not in text.replace("static const", "").replace("static void f_unit(", "")


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm on this machine")
@pytest.mark.parametrize("shape", ["straight", "rolled"])
def test_object_has_no_state(
    make: Callable[..., Any], compiler: str, tmp_path: Path, shape: str
) -> None:
    """The object file has no writable data and needs nothing but sines, cosines and roots."""
    _, program = make("quadruped", "forward_dynamics", shape)
    (tmp_path / "f.c").write_text(c_source(program, "f"), encoding="utf-8")
    subprocess.run([compiler, "-std=c99", "-O2", "-c", "f.c"], cwd=tmp_path, check=True)
    done = subprocess.run(["nm", "f.o"], cwd=tmp_path, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert not [row for row in rows if row[-2] in "BbDdCGgSs"]
    needed = {row[-1].lstrip("_") for row in rows if row[-2] == "U"}
    assert needed <= {"sin", "cos", "sincos", "sqrt", "stack_chk_fail", "GLOBAL_OFFSET_TABLE_"}


# -- programs made by hand


def _line(*outputs: Any, inputs: int = 3, sizes: int = 0) -> Unrolled:
    graph = next(x.graph for x in outputs if isinstance(x, Value))
    stores = [Store("y", i, "", x) for i, x in enumerate(outputs)]
    return Unrolled(
        Signature({"x": inputs}, {"y": sizes or len(outputs)}), BasicBlock(graph, stores)
    )


def test_outputs_that_nothing_reaches_are_zero(build: Callable[..., Any]) -> None:
    """Constants, copies of inputs and entries without a value are written too."""
    graph = Graph()
    program = _line(graph.load("x", 1), 2.5, -graph.load("x", 0), sizes=5)
    inputs = {"x": np.array([[3.0, 4.0, 5.0]])}
    assert build(program)(inputs)["y"].tolist() == [[4.0, 2.5, -3.0, 0.0, 0.0]]


def test_choices_and_logarithms(build: Callable[..., Any]) -> None:
    """Comparisons choose as the interpreter does, equal numbers included; log is that of math.h."""
    graph = Graph()
    x = [graph.load("x", i) for i in range(3)]
    program = _line(
        select(x[0], x[1] - 1.0, -x[2], x[0] + x[2]),
        select(0.0, x[0], x[1], -1.0),
        log(x[2] * x[2]),
    )
    inputs = {"x": np.array([[1.0, 2.0, 4.0], [1.5, 2.0, -3.0], [-1.0, 2.0, 0.5]])}
    want = run(program, inputs)["y"]
    assert want[:, :2].tolist() == [[5.0, -1.0], [3.0, -1.0], [-0.5, 2.0]]
    np.testing.assert_allclose(build(program)(inputs)["y"], want, rtol=1e-15)


def test_added_outputs(build: Callable[..., Any]) -> None:
    """Stores that add count from zero, in their order."""
    graph = Graph()
    x = [graph.load("x", i) for i in range(3)]
    stores = [
        Store("y", 0, "", x[0], add=True),
        Store("y", 1, "", x[1]),
        Store("y", 0, "", x[2], add=True),
        Store("y", 1, "", 0.5, add=True),
        Store("y", 2, "", x[0]),
        Store("y", 2, "", x[1]),
    ]
    program = Unrolled(Signature({"x": 3}, {"y": 3}), BasicBlock(graph, stores))
    inputs = {"x": np.array([[1.0, 2.0, 4.0]])}
    want = run(program, inputs)["y"]
    assert want.tolist() == [[5.0, 2.5, 2.0]]
    assert np.array_equal(build(program)(inputs)["y"], want)


def test_added_outputs_of_loops(build: Callable[..., Any]) -> None:
    """Links that add to one entry start from zero, and so do entries that no link writes."""
    body = BasicBlock()
    value = body.graph.load("table", 0, "link") * body.graph.load("q", 0, "q")
    body.stores.append(Store("y", 0, "v", value, add=True))
    links = LinkTable([0, 0, 0], [-1, 0, 1], [0, 1, 2], [0, 1, 1], [[2.0], [3.0], [5.0]])
    loops = [LinkSweep(Direction.OUTWARD, {0: body})]
    program = Looped(Signature({"q": 3, "unread": 1}, {"y": 3}), links, loops, 0)
    inputs = {"q": np.array([[1.0, 10.0, 100.0]]), "unread": np.ones((1, 1))}
    want = run(program, inputs)["y"]
    assert want.tolist() == [[2.0, 530.0, 0.0]]
    assert np.array_equal(build(program)(inputs)["y"], want)


def test_nothing_to_compute(build: Callable[..., Any]) -> None:
    """A robot without joints has a function too."""
    program = Unrolled(Signature({"q": 0, "v": 0}, {"tau": 0}), BasicBlock())
    assert build(program)({"q": np.zeros((1, 0)), "v": np.zeros((1, 0))})["tau"].shape == (1, 0)


_OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "sub", "mul", "div", "neg", "sqrt", "sin", "cos"]),
        st.integers(0, 40),
        st.one_of(st.integers(0, 40), st.floats(-3.0, 3.0)),
    ),
    min_size=1,
    max_size=40,
)


@given(_OPERATIONS, st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_statements_keep_the_order_of_operations(
    operations: list[tuple[str, int, int | float]], kept: list[int], seed: int
) -> None:
    """Any program, read as Python (brackets bind alike), gives the bits of the interpreter."""
    graph = Graph()
    values: list[Any] = [graph.load("x", i) for i in range(3)]
    for op, i, other in operations:
        a: Any = values[i % len(values)]
        b: Any = values[other % len(values)] if isinstance(other, int) else other
        if op == "div" and not isinstance(b, Value) and b == 0.0:
            continue
        unary = {"neg": lambda x: -x, "sqrt": sqrt, "sin": sin, "cos": cos}
        if op in unary and not isinstance(a, Value):
            continue
        values.append(unary[op](a) if op in unary else _binary(op, a, b))
    outputs = [values[i % len(values)] for i in kept]
    if not any(isinstance(x, Value) for x in outputs) or not _finite(graph, outputs):
        return
    program = _line(*outputs)
    x = np.random.default_rng(seed).normal(size=(1, 3))
    with np.errstate(all="ignore"):
        want = run(program, {"x": x})["y"][0]
        got = _as_python(c_source(program, "f"), x[0], len(outputs))
    assert np.array_equal(got, want, equal_nan=True)


def _binary(op: str, a: Any, b: Any) -> Any:
    if op == "add":
        return a + b
    if op == "sub":
        return a - b
    return a * b if op == "mul" else a / b


def _finite(graph: Graph, outputs: list[Any]) -> bool:
    known = [x for x in outputs if not isinstance(x, Value)]
    known += [node[1] for node in graph.nodes if node[0] == "const"]
    return bool(np.isfinite(known).all())


def _as_python(text: str, x: np.ndarray, size: int) -> np.ndarray:
    """What the statements of a straight line give when Python reads them."""
    body = text.partition("\n{\n")[2].rpartition("}")[0]
    body = re.sub(r"\n {8}", " ", body).replace("const double ", "")
    lines = [line.strip().rstrip(";") for line in body.splitlines() if "(void)" not in line]
    y = np.full(size, np.nan)
    scope = {"x": x, "y": y, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt}
    exec("\n".join(lines), scope)
    return y


# -- what people read


HOSTILE = [
    "*/ int x; /*",
    "??/",
    "ends in a backslash \\",
    "two\nlines // *\r/",
    "\u202eright to left",
    "größe 机器人",
    "",
    "int",
    "9 lives",
    "a" * 400,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(compiler: str, tmp_path: Path, name: str) -> None:
    """Names of robots, arrays and joints may be any text."""
    graph = Graph()
    x, y = graph.load(name, 0), graph.load("t1", 1)
    stores = [Store(name, 0, "", (x + y) * (x - y)), Store("k", 0, "", sin(x))]
    program = Unrolled(
        Signature({name: 1, "t1": 2, "sin": 1}, {name: 1, "k": 1}), BasicBlock(graph, stores)
    )
    joint = signature_module.JointInfo(name, "revolute", *[slice(0, 1)] * 2, Revolute().labels)
    info = RobotInfo(name, 1, 1, [joint])
    text = c_source(program, name, Origin(name, name, name, [name], info))
    (tmp_path / "f.c").write_text(text, encoding="utf-8")
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-c", "f.c"]
    done = subprocess.run(
        [compiler, *flags], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_comment_says_what_it_is(make: Callable[..., Any]) -> None:
    """Robot, formula, reference, sizes, joints with units and version stand above the function."""
    model, program = make("quadruped", "forward_dynamics", "straight")
    origin = Origin(
        "forward_dynamics", "v̇ = ν - K* α", "Some Paper, (7)", robot=RobotInfo.of(model)
    )
    text = c_source(program, "quadruped_fd", origin)
    head = text.partition("#include")[0]
    for part in (model.name, "v̇ = ν - K* α", "Some Paper, (7)", "q[19]", "phistar ", "rad/s"):
        assert part in head
    assert all(name in head for name in model.joint_names)
    assert max(map(len, text.splitlines())) <= 100


def test_unknown_precision(make: Callable[..., Any]) -> None:
    """Only double and float are written."""
    _, program = make("panda", "inverse_dynamics", "straight")
    with pytest.raises(ArgumentError, match="'double' or 'float'"):
        c_source(program, "f", real="half")


# -- matrices


@pytest.mark.parametrize("robot", ["double_pendulum", "every kind"])
@pytest.mark.parametrize("name", ["mass_matrix", "coriolis_matrix", "link_jacobians"])
def test_matrices_in_loops(
    make: Callable[..., Any], build: Callable[..., Any], robot: str, name: str
) -> None:
    """Loops over columns, of symmetric matrices, of others and of vectors over links."""
    model, _ = make(robot, "link_velocities", "rolled")
    program = to_looped_matrix(matrix_forms(MATRICES[name], Full()), model)
    inputs = random_inputs(model, program.signature)
    assert relative_error(build(program)(inputs), unit_run(program, inputs)) < 1e-12


def test_matrices_of_frames_in_loops(make: Callable[..., Any], build: Callable[..., Any]) -> None:
    """Rows of frames, which stand behind the links in loops."""
    model, _ = make("floating", "link_velocities", "straight")
    frames = model.frame_names[-2:]
    program = to_looped_matrix(matrix_forms(MATRICES["jacobian_rate"], Full()), model, frames)
    inputs = random_inputs(model, program.signature)
    assert relative_error(build(program)(inputs), unit_run(program, inputs)) < 1e-12


def test_products_of_matrices(build: Callable[..., Any]) -> None:
    """-(1 2; 3 4) (x 0 0; 0 0 y): a column of zeros, entries that are not kept."""
    graph = Graph()
    x, y = graph.load("x", 0), graph.load("x", 1)
    stores = [Store("work", i, "", float(i + 1)) for i in range(4)]
    stores += [Store("work", 4, "", x), Store("work", 5, "", y), Store("z", 0, "", x * y)]
    product = MatrixProduct("y", 0, 2, [{0: 4}, {}, {1: 5}])
    line = BasicBlock(graph, stores)
    program = Unrolled(Signature({"x": 2}, {"y": 6, "z": 1}), line, (product,), 6)
    got = build(program)({"x": np.array([[10.0, 100.0]])})
    assert got["y"].tolist() == [[-10.0, 0.0, -200.0, -30.0, 0.0, -400.0]]
    assert got["z"].tolist() == [[1000.0]]


def test_products_of_bands(build: Callable[..., Any]) -> None:
    """-(1 0 0; 2 x 0; 3 0 4) (1 y 7; 0 1 0; 0 0 1), below the diagonal what is above it.

    The bands are row 0, and rows 1 and 2.
    """
    graph = Graph()
    x, y = graph.load("x", 0), graph.load("x", 1)
    kept = [1.0, 2.0, x, 0.0, 3.0, 0.0, 4.0, 1.0, y, 7.0, 1.0, 1.0]
    stores = [Store("work", i, "", value) for i, value in enumerate(kept)]
    bands = [ProductBand([0], [0], 0), ProductBand([1, 2], [0, 1, 2], 1)]
    columns = [{0: 7}, {0: 8, 1: 10}, {0: 9, 2: 11}]
    mirrored = {3: 1, 6: 2, 7: 5}
    product = MatrixProduct("y", 0, 3, columns, bands=bands, mirrored=mirrored)
    signature = Signature({"x": 2}, {"y": 9})
    program = Unrolled(signature, BasicBlock(graph, stores), (product,), 12)
    given = {"x": np.array([[10.0, 100.0]])}
    above = -np.array([[1.0, 100.0, 7.0], [0.0, 210.0, 14.0], [0.0, 0.0, 25.0]])
    expected = np.triu(above) + np.triu(above, 1).T
    assert run(program, given)["y"].tolist() == [expected.ravel().tolist()]
    assert build(program)(given)["y"].tolist() == [expected.ravel().tolist()]


def test_loops_over_rows(build: Callable[..., Any]) -> None:
    """Rows 1 and 2 are 3 x_row + x_0; each keeps it, and the next loop reads what was kept."""
    graph = Graph()
    stores = [Store("work", i, "", graph.load("x", i)) for i in range(3)]
    stores += [Store("y", i, "", 7.0) for i in range(2)]
    first, second = BasicBlock(), BasicBlock()
    shared, own = first.graph.load("work", 0), first.graph.load("work", 1, "row")
    value = 3.0 * own + shared
    first.stores = [Store("y", 0, "row", value), Store("work", 3, "row", value)]
    kept = second.graph.load("work", 3, "row") + second.graph.load("work", 4)
    second.stores = [Store("y", 1, "row", kept)]
    loops = (RowLoop(range(1, 3), 2, 1, first), RowLoop(range(1, 3), 2, 1, second))
    signature = Signature({"x": 3}, {"y": 6})
    program = Unrolled(signature, BasicBlock(graph, stores), (), 5, loops)
    got = build(program)({"x": np.array([[1.0, 10.0, 100.0]])})["y"]
    assert got.tolist() == [[7.0, 7.0, 31.0, 332.0, 301.0, 602.0]]


# -- quaternions


@pytest.mark.parametrize("shape", ["straight", "rolled"])
def test_drifted_quaternions(
    make: Callable[..., Any], build: Callable[..., Any], shape: str
) -> None:
    """Within 1e-6 of length one they count as unit, as on the other backends; beyond: no number."""
    model, program = make("quadruped", "gravity_force", shape)
    q = random_configuration(model, np.random.default_rng(0), (1,))
    function, exact = build(program), run(program, {"q": q})["tau"]
    for drift in (0.0, 1e-15, 1e-12, 9e-7, -9e-7):
        drifted = q.copy()
        drifted[:, 3:7] *= 1.0 + drift
        got = function({"q": drifted})["tau"]
        assert np.abs(got - exact).max() < 1e-12 * np.abs(exact).max()
        ours = phistar.Robot(model).gravity_force(drifted)
        assert np.abs(got - ours).max() < 1e-12 * np.abs(exact).max()
    assert not np.allclose(run(program, {"q": drifted})["tau"], exact, rtol=1e-9, atol=0)
    for scale in (1.0 + 2e-6, 1.0 - 2e-6, 0.0, np.nan):
        far = q.copy()
        far[:, 3:7] *= scale
        assert np.isnan(function({"q": far})["tau"]).any()


def test_quaternions_that_nothing_reads(make: Callable[..., Any]) -> None:
    """Link velocities of a free base do not depend on where it is: nothing is made unit."""
    _, program = make("quadruped", "link_velocities", "straight")
    assert program.signature.quaternions
    assert "f_unit" not in c_source(program, "f")

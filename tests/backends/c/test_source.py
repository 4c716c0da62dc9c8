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
from phistar.algebra.symbols import Upsilon, mass_matrix, vector
from phistar.backends.c import Origin, RobotInfo, random_inputs, source
from phistar.backends.c import parts as parts_module
from phistar.backends.c import signature as signature_module
from phistar.backends.c.selftest import relative_error
from phistar.backends.c.signature import _KINDS
from phistar.compile import compile_outputs
from phistar.errors import ArgumentError, LoweringError
from phistar.model.joints import JOINT_KINDS
from phistar.scalar.graph import Graph, Value, cos, sin, sqrt
from phistar.scalar.interpret import run
from phistar.scalar.lower import to_rolled, to_straight
from phistar.scalar.matrix import to_matrix, to_rolled_matrix
from phistar.scalar.program import Body, Links, Loop, Product, Rolled, Signature, Store, Straight
from phistar.sweeps.ir import Direction
from phistar.sweeps.requests import Full, forms

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


@pytest.mark.parametrize(("robot", "name", "shape"), CASES)
def test_agrees_with_the_interpreter(
    make: Callable[..., Any], build: Callable[..., Any], robot: str, name: str, shape: str
) -> None:
    """Straight lines and loops, every joint kind; relative 1e-12, nothing else is written."""
    model, program = make(robot, name, shape)
    inputs = random_inputs(model, program.signature)
    assert relative_error(build(program)(inputs), run(program, inputs)) < 1e-12


@pytest.mark.parametrize("shape", [to_straight, to_rolled])
def test_compliances(
    make: Callable[..., Any], build: Callable[..., Any], shape: Callable[..., Any]
) -> None:
    """An operator of a user's own with Υ, which goes outward as a matrix; relative 1e-12."""
    model, _ = make("every kind", "link_velocities", "rolled")
    outputs = (("out", Upsilon @ vector("f", FORCE)),)
    program = shape(compile_outputs("own", outputs).schedule, model)
    inputs = random_inputs(model, program.signature)
    assert relative_error(build(program)(inputs), run(program, inputs)) < 1e-12


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
    error = relative_error(build(program, "float")(given), run(program, given))
    assert 1e-9 < error < bound


def test_long_lines_are_cut(
    make: Callable[..., Any], build: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line in several functions gives the bits of the line in one."""
    model, program = make("quadruped", "forward_dynamics", "straight")
    inputs = random_inputs(model, program.signature)
    whole = build(program, name="whole")(inputs)
    monkeypatch.setattr(parts_module, "WHOLE", 100)
    for length in (97, 500):
        monkeypatch.setattr(parts_module, "LENGTH", length)
        text = source(program, "cut")
        count = len(re.findall(r"^static void cut_part", text, re.MULTILINE))
        assert count == -(-_operations(program) // length)
        cut = build(program, name="cut")(inputs)
        assert all(np.array_equal(cut[name], whole[name]) for name in whole)


def _operations(program: Straight) -> int:
    nodes = program.body.graph.nodes
    return sum(nodes[number][0] not in ("const", "load") for number in program.body.live)


@pytest.mark.parametrize("shape", ["straight", "rolled"])
def test_large_workspace_is_an_argument(
    make: Callable[..., Any],
    build: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
) -> None:
    """Beyond the limit the caller gives it, its size has a name, and results are the same."""
    model, program = make("quadruped", "forward_dynamics", shape)
    monkeypatch.setattr(signature_module, "STACK", 100)
    monkeypatch.setattr(parts_module, "WHOLE", 100)
    text = source(program, "f")
    assert re.search(r"^#define F_WORK \d+", text, re.MULTILINE)
    assert "double work[F_WORK])" in text
    inputs = random_inputs(model, program.signature)
    assert relative_error(build(program)(inputs), run(program, inputs)) < 1e-12


def test_limit_of_the_stack(make: Callable[..., Any]) -> None:
    """Arrays on the stack have at most 16 KB: 100 links keep theirs there, 300 do not."""
    small, large = (make(f"chain{n}", "forward_dynamics", "rolled")[1] for n in (100, 300))
    assert "_WORK" not in source(small, "f")
    assert "_WORK" in source(large, "f")
    for text in (source(small, "f"), source(large, "f")):
        sizes = re.findall(r"^    double \w+\[(\d+)\];", text, re.MULTILINE)
        assert all(8 * int(size) <= 16 * 1024 for size in sizes)


@pytest.mark.parametrize("shape", ["straight", "rolled"])
def test_needs_nothing_but_math(make: Callable[..., Any], shape: str) -> None:
    """The text includes math.h alone, calls three functions, and all its data are constant."""
    _, program = make("quadruped", "forward_dynamics", shape)
    text = re.sub(r"/\*.*?\*/", "", source(program, "f"), flags=re.DOTALL)
    assert re.findall(r"#include.*", text) == ["#include <math.h>"]
    called = {*re.findall(r"(\w+)\s*\(", text)} - {"f", "for", "switch"}
    assert called <= {"sin", "cos", "sqrt"}
    outside = re.sub(r"^    .*|^[{}].*", "", text.partition("{")[0], flags=re.MULTILINE)
    assert "=" not in outside
    for declared in re.findall(r"^\s*(?:\w+ )+\w+\[([^\]]*)\] =", text, re.MULTILINE):
        assert declared.isdigit()
    assert "malloc" not in text
    assert "static" not in text.replace("static const", "")


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm on this machine")
@pytest.mark.parametrize("shape", ["straight", "rolled"])
def test_object_has_no_state(
    make: Callable[..., Any], compiler: str, tmp_path: Path, shape: str
) -> None:
    """The object file has no writable data and needs nothing but sines, cosines and roots."""
    _, program = make("quadruped", "forward_dynamics", shape)
    (tmp_path / "f.c").write_text(source(program, "f"), encoding="utf-8")
    subprocess.run([compiler, "-std=c99", "-O2", "-c", "f.c"], cwd=tmp_path, check=True)
    done = subprocess.run(["nm", "f.o"], cwd=tmp_path, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert not [row for row in rows if row[-2] in "BbDdCGgSs"]
    needed = {row[-1].lstrip("_") for row in rows if row[-2] == "U"}
    assert needed <= {"sin", "cos", "sincos", "sqrt", "stack_chk_fail", "GLOBAL_OFFSET_TABLE_"}


# -- programs made by hand


def _line(*outputs: Any, inputs: int = 3, sizes: int = 0) -> Straight:
    graph = next(x.graph for x in outputs if isinstance(x, Value))
    stores = [Store("y", i, "", x) for i, x in enumerate(outputs)]
    return Straight(Signature({"x": inputs}, {"y": sizes or len(outputs)}), Body(graph, stores))


def test_outputs_that_nothing_reaches_are_zero(build: Callable[..., Any]) -> None:
    """Constants, copies of inputs and entries without a value are written too."""
    graph = Graph()
    program = _line(graph.load("x", 1), 2.5, -graph.load("x", 0), sizes=5)
    inputs = {"x": np.array([[3.0, 4.0, 5.0]])}
    assert build(program)(inputs)["y"].tolist() == [[4.0, 2.5, -3.0, 0.0, 0.0]]


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
    program = Straight(Signature({"x": 3}, {"y": 3}), Body(graph, stores))
    inputs = {"x": np.array([[1.0, 2.0, 4.0]])}
    want = run(program, inputs)["y"]
    assert want.tolist() == [[5.0, 2.5, 2.0]]
    assert np.array_equal(build(program)(inputs)["y"], want)


def test_added_outputs_of_loops(build: Callable[..., Any]) -> None:
    """Links that add to one entry start from zero, and so do entries that no link writes."""
    body = Body()
    value = body.graph.load("table", 0, "link") * body.graph.load("q", 0, "q")
    body.stores.append(Store("y", 0, "v", value, add=True))
    links = Links([0, 0, 0], [-1, 0, 1], [0, 1, 2], [0, 1, 1], [[2.0], [3.0], [5.0]])
    loops = [Loop(Direction.OUTWARD, {0: body})]
    program = Rolled(Signature({"q": 3, "unread": 1}, {"y": 3}), links, loops, 0)
    inputs = {"q": np.array([[1.0, 10.0, 100.0]]), "unread": np.ones((1, 1))}
    want = run(program, inputs)["y"]
    assert want.tolist() == [[2.0, 530.0, 0.0]]
    assert np.array_equal(build(program)(inputs)["y"], want)


def test_nothing_to_compute(build: Callable[..., Any]) -> None:
    """A robot without joints has a function too."""
    program = Straight(Signature({"q": 0, "v": 0}, {"tau": 0}), Body())
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
        got = _as_python(source(program, "f"), x[0], len(outputs))
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
    program = Straight(
        Signature({name: 1, "t1": 2, "sin": 1}, {name: 1, "k": 1}), Body(graph, stores)
    )
    info = RobotInfo(name, 1, 1, [signature_module.JointInfo(name, "revolute", *[slice(0, 1)] * 2)])
    text = source(program, name, Origin(name, name, name, [name], info))
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
    text = source(program, "quadruped_fd", origin)
    head = text.partition("#include")[0]
    for part in (model.name, "v̇ = ν - K* α", "Some Paper, (7)", "q[19]", "phistar ", "rad/s"):
        assert part in head
    assert all(name in head for name in model.joint_names)
    assert max(map(len, text.splitlines())) <= 100


def test_every_joint_kind_has_units() -> None:
    """No moving joint kind is without words."""
    assert {*_KINDS} >= {kind for kind in JOINT_KINDS if kind != "fixed"}


def test_unknown_precision(make: Callable[..., Any]) -> None:
    """Only double and float are written."""
    _, program = make("panda", "inverse_dynamics", "straight")
    with pytest.raises(ArgumentError, match="'double' or 'float'"):
        source(program, "f", real="half")


def test_matrices_in_loops_have_no_c_form() -> None:
    """Loops over the columns of a matrix are refused with the cure; the straight line is not."""
    model = phistar.load("double_pendulum").model
    wanted = forms(mass_matrix, Full())
    with pytest.raises(LoweringError, match="take the straight line instead"):
        source(to_rolled_matrix(wanted, model), "matrix")
    assert "void matrix(" in source(to_matrix(wanted, model), "matrix")


def test_matrices_together_have_no_c_form() -> None:
    """What follows a line is refused, not left out."""
    graph = Graph()
    line = Body(graph, [Store("work", 0, "", graph.load("x", 0))])
    product = Product("y", 0, 1, [{0: 0}])
    program = Straight(Signature({"x": 1}, {"y": 1}), line, (product,), 1)
    with pytest.raises(LoweringError, match="together"):
        source(program, "linearize")

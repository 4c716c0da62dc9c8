# SPDX-License-Identifier: BSD-3-Clause
"""Figures about the state of the source tree: size, types, caches, names, complexity, calls.

Printed before and after a refactoring, so that both can stand next to each other. All figures but
the last two come from the syntax trees of ``src/phistar``; the last two run the package:

- Python calls of ``phistar.load("panda")``;
- Python frames of a warm call of each method of ``Robot`` that has a kernel, on one sample and on a
  batch, and with forces on a frame.

Run: ``python -m tools.house [--static]``, with ``src`` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phistar import Robot

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "phistar"

CACHES = ("lru_cache", "cache", "cached_property", "shared")
"""Decorators that remember results."""

LEVEL_STEMS = ("__init__", "ir", "verify", "interpret", "printing", "lower")
"""File names that each level of the compiler may have."""

TUNED = (
    *("scalar", "backends", "sweeps", "sim", "derivatives", "compile", "derive", "dynamics"),
    *("kinematics", "energies", "kernels", "c_export"),
)
"""Packages and modules whose thresholds and weights belong into ``phistar.thresholds.Policy``."""

NOT_TUNING = {
    "layouts and indices": """
        HEADER_WORDS ARGUMENTS_OFFSET_BYTES BUFFER_ROW_WORDS
        _METH_FASTCALL FORMAT_VERSION _LENGTH_BYTES WORKSPACE_ALIGNMENT_BYTES CACHE_LINE_BYTES
        NUMBERS_PER_ROW UNIT_SET INPUT_LEVEL
        OPERAND_COUNTS RIGID_INERTIA_ENTRIES _MAX_AXIS_ROTATION_ENTRIES QUATERNION_SIZE
        _RELATION_CODES _RELATION_STRIDE _WIDTHS GROUND_COMPONENTS NONE NOWHERE FORMAT
        _NANOSECONDS _SIZES _UNITS TILE_VECTORS OLDEST _POINTS""",
    "matrices and series": """
        _CYCLIC_AXES _SYMMETRIC_INDEX _ZERO_OFFSET _ZERO_MOMENTS IDENTITY _IDENTITY _SIXTHS
        BERNOULLI _TERMS ARTANH_COEFFICIENTS ARCTAN_COEFFICIENTS PIVOTS_PER_LOGARITHM
        _FIXED_NORMAL _FIXED_TANGENT""",
    "tolerances of numerical methods": """
        _LEAST_ALIGNED
        FLOAT32_EPS_PER_FLOAT64_EPS DOUBLE_TOLERANCE MIN_FLOAT_TOLERANCE ROUNDING_TOLERANCE
        MAX_REDUCED_ANGLE_RAD _PARALLEL_SINE _MIN_SLIDE_COSINE SQUARED_ANGLE_FLOOR MIN_STEP_SHARE
        ITERATION_TOLERANCE STALL_TOLERANCE MAX_ITERATIONS SETTLING_ITERATIONS MIN_RELATIVE_SQUARE
        MAX_FINITE SERIES_TOLERANCE DAMPING_FLOOR MAX_GUESSES SLOWEST_DRAG ENERGY_ROUNDINGS
        FAR _END""",
    "what is written or shown": """
        TEST_SAMPLES MAX_LABEL_CHARACTERS MAX_LINE_CHARACTERS MAX_IDENTIFIER_CHARACTERS
        STALE_FILE_SECONDS PROGRESS_TICKS MIN_PROGRESS_NANOSECONDS""",
}
"""Numbers of these modules that do not choose how something is computed."""

FORMATS = ("backends/llvm/abi.py",)
"""Modules that say where others keep what, and compare it with them before anything relies on it.

None of their numbers can be chosen. They import nothing of ``phistar.thresholds``, and no name of
theirs excuses a number of another module.
"""

LISTED = 12
"""Functions that are listed by name, longest and most complex first."""


# -- what is read from the syntax trees


@dataclass(frozen=True)
class Module:
    """One source file."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text)

    @property
    def name(self) -> str:
        """Path below ``src/phistar``."""
        return self.path.relative_to(SOURCE).as_posix()

    @property
    def package(self) -> str:
        """First directory below ``src/phistar``, or ``"(top)"``."""
        first, _, rest = self.name.partition("/")
        return first if rest else "(top)"

    @property
    def lines(self) -> int:
        """Lines of text, blank ones and comments included."""
        return self.text.count("\n")

    @property
    def written(self) -> int:
        """Lines that are neither blank nor a comment; docstrings count."""
        stripped = map(str.strip, self.text.splitlines())
        return sum(bool(line) and not line.startswith("#") for line in stripped)


@dataclass(frozen=True)
class Function:
    """One function or method.

    Attributes:
        where: File, line and qualified name.
        lines: From its first line to its last, decorators excluded.
        complexity: Cyclomatic complexity, that of nested functions included.
    """

    where: str
    lines: int
    complexity: int


def modules(source: Path = SOURCE) -> list[Module]:
    """All Python files of the package."""
    files = sorted(source.rglob("*.py"))
    return [Module(path, path.read_text(encoding="utf-8")) for path in files]


def any_count(tree: ast.AST) -> int:
    """Uses of the type ``Any``; its imports do not count."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def caches(tree: ast.AST) -> Counter[str]:
    """Decorators of ``CACHES`` by name."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", ()):
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if name in CACHES:
                found[name] += 1
    return found


def complexity(function: ast.AST) -> int:
    """Cyclomatic complexity: one more than the number of decisions."""
    return 1 + sum(_decisions(node) for node in ast.walk(function))


def _decisions(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    if isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.Try):
        return int(not isinstance(node, ast.Try)) + bool(node.orelse)
    branches = (ast.If, ast.IfExp, ast.ExceptHandler, ast.Assert, ast.match_case)
    return int(isinstance(node, branches))


def functions(module: Module) -> Iterator[Function]:
    """All functions and methods of a file; nested functions belong to the enclosing one."""

    def walk(parent: ast.AST, prefix: str) -> Iterator[Function]:
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.ClassDef):
                yield from walk(node, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                where = f"{module.name}:{node.lineno} {prefix}{node.name}"
                yield Function(where, lines, complexity(node))
            elif isinstance(node, ast.If | ast.Try):
                yield from walk(node, prefix)

    return walk(module.tree, "")


def constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Name and value of numeric constants of a module, tables of numbers included."""
    for node in tree.body:
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = (node.target,)
        for target in targets:
            value = node.value  # type: ignore[attr-defined]
            name = target.id if isinstance(target, ast.Name) else ""
            if name and name == name.upper() and value is not None and _numeric(value):
                yield name, ast.unparse(value)


def _numeric(node: ast.expr) -> bool:
    """Whether an expression consists of numbers: one, arithmetic on some, or a table of them."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _numeric(node.operand)
    if isinstance(node, ast.BinOp):
        return _numeric(node.left) and _numeric(node.right)
    if isinstance(node, ast.Dict):
        return bool(node.values) and all(map(_numeric, node.values))
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(map(_numeric, node.elts))
    return False


def repeated(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Names that occur in several places, with the places."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, place in pairs:
        places[name].append(place)
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


# -- what is measured by running the package


ROBOT, OTHER, FRAME = "panda", "ur5", -1
WARM_UP = 80
"""Calls before frames are counted: kinematics compiles after some samples."""
BATCH = 64

METHODS: dict[str, str] = {
    "inverse_dynamics": "qva",
    "forward_dynamics": "qva",
    "bias_force": "qv",
    "gravity_force": "q",
    "mass_matrix": "q",
    "mass_matrix_inverse": "q",
    "log_determinant": "q",
    "coriolis_matrix": "qv",
    "linearize_inverse": "qva",
    "linearize": "qva",
    "discretize": "qvah",
    "regressor": "qva",
    "frame_pose": "qf",
    "link_poses": "q",
    "jacobian": "qf",
    "jacobian_rate": "qvf",
    "frame_velocity": "qvf",
    "frame_acceleration": "qvaf",
    "operational_inertia": "qF",
    "center_of_mass": "q",
    "momentum": "qv",
    "kinetic_energy": "qv",
    "potential_energy": "q",
    "integrate": "qv",
    "difference": "qp",
    "step": "qvah",
}
"""Methods and their arguments: configurations q and p, joint vectors v and a, frame(s), step h."""

PRODUCTS = ("jvp", "vjp")
FORCED = ("inverse_dynamics", "forward_dynamics", "linearize")
"""Also called with a force on a frame."""

Call = Callable[[], object]


def python_calls(act: Call) -> int:
    """Python functions that are entered while something runs; those written in C do not count."""
    count = 0

    def hook(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(hook)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def load_calls() -> tuple[int, int, int]:
    """Python calls of ``load``: first of this process, of another file, of the same file again.

    The first one also imports modules.
    """
    from functools import partial

    import phistar

    return (
        python_calls(partial(phistar.load, OTHER)),
        python_calls(partial(phistar.load, ROBOT)),
        python_calls(partial(phistar.load, ROBOT)),
    )


def warm_frames() -> dict[str, tuple[int | str, ...]]:
    """Python frames of warm calls: one sample, a batch, both again with forces where possible."""
    import phistar

    robot = phistar.load(ROBOT)
    found: dict[str, tuple[int | str, ...]] = {}
    for name in (*METHODS, *PRODUCTS):
        if not hasattr(robot, name):
            found[name] = ("no such method",)
            continue
        forced = (False, True) if name in FORCED else (False,)
        found[name] = tuple(
            _frames(_prepared(robot, name, shape, with_forces))
            for with_forces in forced
            for shape in ((), (BATCH,))
        )
    return found


def _prepared(robot: Robot, name: str, shape: tuple[int, ...], forces: bool) -> Call:
    """A call of a method with its arguments bound, without a frame of its own."""
    from functools import partial

    import numpy as np

    rng = np.random.default_rng(0)
    frame = robot.frame_names[FRAME]
    values: dict[str, Any] = {
        "q": robot.random_configuration(rng, shape),
        "p": robot.random_configuration(rng, shape),
        "v": rng.normal(size=(*shape, robot.nv)),
        "a": rng.normal(size=(*shape, robot.nv)),
        "f": frame,
        "F": [frame],
        "h": 1e-3,
    }
    method = getattr(robot, name)
    if name in PRODUCTS:
        q, v, a = (values[key] for key in "qva")
        if name == "vjp":
            return partial(method, "forward_dynamics", q, v, a, v)
        return partial(method, "forward_dynamics", q, v, a, dq=v, dv=v, dtau=v)
    given = {"forces": {frame: rng.normal(size=6)}} if forces else {}
    return partial(method, *(values[key] for key in METHODS[name]), **given)


def _frames(act: Call) -> int:
    for _ in range(WARM_UP):
        act()
    return python_calls(act)


# -- the report


def static_report(found: Sequence[Module]) -> Iterator[str]:
    """Lines about the source."""
    files, lines, written = Counter[str](), Counter[str](), Counter[str]()
    for module in found:
        files[module.package] += 1
        lines[module.package] += module.lines
        written[module.package] += module.written
    yield "## Size"
    yield f"{'package':16} {'files':>6} {'lines':>7} {'without blanks and comments':>28}"
    for package in sorted(files):
        yield f"{package:16} {files[package]:6} {lines[package]:7} {written[package]:28}"
    yield f"{'all':16} {files.total():6} {lines.total():7} {written.total():28}"

    yield "\n## Types and caches"
    types = Counter[str]()
    for module in found:
        types[module.package] += any_count(module.tree)
    yield f"Any: {types.total()} ({_counted(types)})"
    kept = sum((caches(m.tree) for m in found), Counter[str]())
    yield f"lru_cache and cache: {kept['lru_cache'] + kept['cache']} ({_counted(kept)})"

    yield "\n## Names"
    classes = repeated(
        (node.name, m.name)
        for m in found
        for node in ast.walk(m.tree)
        if isinstance(node, ast.ClassDef)
    )
    yield f"class names used more than once: {len(classes)}"
    yield from (f"  {name}: {', '.join(where)}" for name, where in classes.items())
    stems = repeated((m.path.stem, m.name) for m in found)
    others = {name: where for name, where in stems.items() if name not in LEVEL_STEMS}
    yield f"file stems used more than once: {len(stems)}, without the level pattern {len(others)}"
    yield from (f"  {name}: {', '.join(where)}" for name, where in others.items())

    yield "\n## Functions"
    each = [function for module in found for function in functions(module)]
    longest = sorted(each, key=lambda f: -f.lines)
    hardest = sorted(each, key=lambda f: -f.complexity)
    over = sum(f.complexity > 10 for f in each)
    yield f"functions: {len(each)}; complexity above 10: {over}"
    yield f"longest function: {longest[0].lines} lines, {longest[0].where}"
    yield from (f"  {f.lines:4} {f.where}" for f in longest[1:LISTED])
    yield f"highest complexity: {hardest[0].complexity}, {hardest[0].where}"
    yield from (f"  {f.complexity:4} {f.where}" for f in hardest[1:LISTED])

    yield "\n## Tuning constants"
    tuned = tuning_constants(found)
    yield f"numbers outside the table: {sum(map(len, tuned.values()))} in {len(tuned)} files"
    for name, values in tuned.items():
        yield f"  {name}: {', '.join(f'{key}={value}' for key, value in values)}"


def tuning_constants(found: Sequence[Module]) -> dict[str, list[tuple[str, str]]]:
    """Numbers of ``TUNED`` modules that should be in the table of thresholds, by file."""
    others = {name for names in NOT_TUNING.values() for name in names.split()}
    each = {
        m.name: [(name, value) for name, value in constants(m.tree) if name not in others]
        for m in found
        if m.name.split("/")[0].removesuffix(".py") in TUNED and m.name not in FORMATS
    }
    return {name: values for name, values in each.items() if values}


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common() if count)


def running_report() -> Iterator[str]:
    """Lines about calls; run in a fresh process that waits for final code."""
    first, new, again = load_calls()
    yield "\n## Python calls of phistar.load"
    yield f"{OTHER}, first load of the process, imports included: {first}"
    yield f"{ROBOT}, read for the first time: {new}; again: {again}"
    yield f"\n## Python frames of a warm call, {ROBOT}"
    yield f"{'method':24} {'single':>6} {'batch':>6} {'forces':>7} {'batch':>6}"
    for name, counts in warm_frames().items():
        yield f"{name:24} " + " ".join(f"{x:>6}" for x in counts)


def _in_new_process() -> str:
    """``running_report`` in a process with an empty cache and final code at once."""
    with tempfile.TemporaryDirectory(prefix="phistar-house-") as folder:
        settings = {"PHISTAR_CACHE": folder, "PHISTAR_TIER": "wait", "PHISTAR_THREADS": "1"}
        path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-m", "tools.house", "--running"],
            cwd=ROOT,
            env={**os.environ, **settings, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return done.stdout.rstrip()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="tools.house", description=__doc__.splitlines()[0])
    parser.add_argument("--static", action="store_true", help="do not run the package")
    parser.add_argument("--running", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.running:
        print("\n".join(running_report()))
        return
    print("\n".join(static_report(modules())))
    if not options.static:
        print(_in_new_process())


if __name__ == "__main__":
    main()

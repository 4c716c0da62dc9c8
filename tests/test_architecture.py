# SPDX-License-Identifier: BSD-3-Clause
"""The shape of the code base: who imports whom, what an import costs, what files must hold."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import phistar
from phistar.cli import COMMANDS
from tests.helpers import ROOT

SRC = ROOT / "src" / "phistar"
MODULES = sorted(SRC.rglob("*.py"))

BASE = "errors refs spatial model loaders conventions"
LEVELS = "algebra algorithms sweeps scalar backends"

# unit: (units of phistar it may import, packages from outside it may import). A row for a unit that
# does not exist yet is a promise. The import-linter contract in pyproject.toml says the same more
# coarsely: it forbids upward imports, this table also forbids reaching past a layer.
LAYERS: dict[str, tuple[str, str]] = {
    "arrays": ("", "numpy"),
    "thresholds": ("", ""),
    "errors": ("", ""),
    "refs": ("", ""),
    "jobs": ("", ""),
    "gc_pause": ("", ""),
    "fork_locks": ("", ""),
    "progress": ("", "rich"),
    "whole_files": ("", ""),
    "memory_limits": ("errors", ""),
    "file_packages": ("errors", "mcap pyarrow rosbags zarr"),
    "reprs": ("", "numpy"),
    "settings": ("errors", "platformdirs"),
    "spatial": ("errors", "numpy"),
    "model": ("errors spatial", "numpy"),
    "loaders": ("errors gc_pause spatial model", "numpy lxml mujoco xacro"),
    "conventions": ("errors spatial model", "numpy"),
    "arguments": ("errors model", "numpy"),
    "drawing": ("errors reprs spatial model loaders", "numpy matplotlib mpl_toolkits trimesh"),
    "algebra": ("errors refs reprs spatial model", "numpy"),
    "algorithms": ("refs algebra", ""),
    "sweeps": ("errors algebra spatial model", "numpy"),
    "scalar": ("errors jobs spatial model algebra sweeps", "numpy"),
    "backends": (
        "errors settings jobs gc_pause memory_limits whole_files spatial model algebra sweeps "
        "scalar",
        "numpy llvmlite jax jaxlib platformdirs filelock",
    ),
    "derive": ("errors model algebra algorithms sweeps", ""),
    "compile": (f"{BASE} {LEVELS} memory_limits packed derive", "numpy platformdirs filelock"),
    "explain": (f"errors refs spatial model {LEVELS} derive compile", "numpy"),
    "result_buffers": ("errors memory_limits model arguments backends compile", "numpy"),
    "functions": ("errors spatial model arguments algebra algorithms compile", "numpy"),
    "linear": ("errors", "numpy"),
    "packed": ("errors", "numpy"),
    "operators": ("errors model arguments algebra dynamics functions linear", "numpy"),
    "dynamics": ("errors gc_pause spatial model arguments packed compile", "numpy"),
    "derivatives": (
        "jobs errors memory_limits packed reprs spatial model arguments constraints backends "
        "compile dynamics kinematics joint_physics result_buffers",
        "numpy",
    ),
    "geometry": ("errors reprs model arguments dynamics derivatives", "numpy"),
    "diagonal": ("errors reprs model arguments algebra algorithms compile dynamics", "numpy"),
    "kinematics": ("errors model compile", "numpy"),
    "energies": ("spatial model arguments compile kinematics", "numpy"),
    "joint_physics": ("errors model arguments scalar backends compile dynamics", "numpy"),
    "kernels": (
        "errors reprs settings model arguments algebra algorithms sweeps scalar backends compile",
        "numpy",
    ),
    "whole_body": (
        "errors spatial model arguments algebra compile kinematics derivatives",
        "numpy",
    ),
    "inverse_kinematics": (
        "errors reprs spatial model arguments scalar backends compile",
        "numpy",
    ),
    "c_export": (f"errors model arguments {LEVELS} compile explain kernels", ""),
    "sim": (
        "errors file_packages memory_limits progress reprs spatial model arguments constraints "
        "scalar backends compile dynamics kinematics energies joint_physics derivatives diagonal "
        "loops drawing viewer",
        "numpy rich",
    ),
    "constraints": ("errors spatial model", "numpy"),
    "loops": (
        "errors reprs spatial model arguments constraints algebra algorithms scalar backends "
        "compile dynamics functions joint_physics derivatives diagonal linear operators kernels",
        "numpy",
    ),
    "whole_system": (
        "errors reprs spatial model arguments compile dynamics loops",
        "numpy scipy",
    ),
    "robot": (
        f"{BASE} arguments algebra algorithms compile dynamics kinematics energies derivatives "
        "joint_physics diagonal geometry kernels functions operators constraints loops sim "
        "settings packed whole_system whole_body inverse_kinematics drawing viewer result_buffers",
        "numpy",
    ),
    "robots": ("errors model loaders robot", "numpy"),
    "testing": (f"{BASE} {LEVELS} compile robot robots", "numpy"),
    "control": ("errors reprs spatial model derivatives loops robot sim", "numpy scipy rich"),
    "ident": (
        "errors file_packages whole_files progress reprs spatial model arguments backends "
        "joint_physics derivatives robot sim drawing",
        "numpy scipy",
    ),
    "scale": (
        "errors file_packages settings progress arguments compile kernels ident robot",
        "numpy dask distributed threadpoolctl",
    ),
    "interop": (
        "errors whole_files spatial model arguments scalar backends compile joint_physics loops "
        "c_export kernels sim robot",
        "numpy jax torch casadi",
    ),
    "envs": ("errors spatial model robot sim", "numpy gymnasium"),
    "viewer": (
        "errors spatial model sweeps dynamics derivatives diagonal energies explain drawing "
        "inverse_kinematics loops",
        "numpy viser",
    ),
    "report": ("errors reprs spatial model robots robot sim drawing", "numpy"),
    "cli": (
        f"{BASE} settings robot robots backends compile explain c_export sim control ident scale "
        "viewer report drawing progress whole_files phistar",
        "numpy rich platformdirs llvmlite",
    ),
    "__main__": ("cli", ""),
}

# Engines and where the one file that imports each of them lives.
ENGINES = {
    "casadi": "interop/casadi/casadi_package.py",
    "dask": "scale/packages.py",
    "distributed": "scale/packages.py",
    "gymnasium": "envs/environments.py",
    "jax": "backends/jax/package.py",
    "jaxlib": "backends/jax/package.py",
    "mcap": "file_packages.py",
    "mujoco": "loaders/mjcf/mjcf_reader.py",
    "pyarrow": "file_packages.py",
    "rosbags": "file_packages.py",
    "xacro": "loaders/xacro.py",
    "threadpoolctl": "scale/packages.py",
    "torch": "interop/torch_import.py",
    "zarr": "file_packages.py",
}


def module_id(path: Path) -> str:
    """A module's path inside the package."""
    return path.relative_to(SRC).as_posix()


def unit_of(path: Path) -> str:
    """The direct child of the package that a file belongs to."""
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@cache
def imported(source: str, package: tuple[str, ...]) -> tuple[str, ...]:
    """Dotted names that a module of ``package`` imports anywhere, also inside functions."""
    return tuple(_imported(ast.parse(source), package))


def _imported(tree: ast.Module, package: tuple[str, ...]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*start, *filter(None, [node.module])))
            yield from (f"{base}.{alias.name}" for alias in node.names)


def forbidden_imports(unit: str, source: str, package: tuple[str, ...]) -> list[str]:
    """Imports of one module that the table does not grant to its unit."""
    inside, outside = (set(names.split()) for names in LAYERS[unit])
    found = []
    for name in imported(source, package):
        top, _, rest = name.partition(".")
        if top == "phistar":
            target = rest.split(".")[0]
            target = target if target in LAYERS else "phistar"
            allowed = target in (unit, "arrays", "thresholds") or target in inside
        else:
            allowed = top in sys.stdlib_module_names or top in outside
        if not allowed:
            found.append(name)
    return found


def package_of(path: Path) -> tuple[str, ...]:
    """The package against which a file's relative imports are resolved."""
    return ("phistar", *path.relative_to(SRC).parts[:-1])


# The package's own __init__ may import everything; test_import_is_light watches it.
@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.parent != SRC or p.stem != "__init__"], ids=module_id
)
def test_imports_point_down(path: Path) -> None:
    """A module imports only what the table grants to the unit it belongs to."""
    unit = unit_of(path)
    assert unit in LAYERS, f"give {unit} a row in LAYERS and a place in pyproject.toml"
    assert forbidden_imports(unit, path.read_text(encoding="utf-8"), package_of(path)) == []


@pytest.mark.parametrize(
    ("unit", "source"),
    [
        ("spatial", "from phistar.model import Model"),
        ("spatial", "from ..model import Model"),
        ("model", "def f():\n    import phistar.loaders.urdf"),
        ("loaders", "from phistar import load"),
        ("errors", "import numpy"),
        ("robots", "from mujoco import MjSpec"),
        ("algorithms", "from phistar.backends import base"),
    ],
)
def test_layer_check_has_teeth(unit: str, source: str) -> None:
    """A planted import in the wrong direction is found, however it is spelt."""
    assert len(forbidden_imports(unit, source, ("phistar", unit))) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_is_imported_in_one_file(engine: str) -> None:
    """A heavy package enters through exactly one module, so that it can stay optional."""
    users = [
        module_id(path)
        for path in MODULES
        if any(
            name.split(".")[0] == engine
            for name in imported(path.read_text(encoding="utf-8"), package_of(path))
        )
    ]
    assert users == [ENGINES[engine]]


def test_both_layer_tables_know_the_same_units() -> None:
    """The import-linter contract and the table above place the same modules."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    assert set(re.findall(r"\w+", " ".join(layers))) == set(LAYERS)


def test_the_page_has_a_row_of_every_unit() -> None:
    """ARCHITECTURE.md, its table; and the row of the commands has all of them."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page[page.index("| unit | ") : page.index("\n## Rules of the structure")]
    rows = [line.split("|")[1:] for line in table.splitlines()[2:] if line.startswith("| ")]
    named = {unit for row in rows for unit in re.findall(r"`(\w+)/?`", row[0])}
    package = {p.stem for p in (ROOT / "src" / "phistar").iterdir() if p.name != "py.typed"}
    assert named == {unit for unit in package if not unit.startswith("__")}
    (commands,) = (row[1] for row in rows if row[0].strip() == "`cli/`")
    assert set(re.findall(r"`(\w+)`", commands)) == set(COMMANDS)


def test_the_page_has_every_file_of_the_machine_code_backend() -> None:
    """Its rooms have many files, which only their part in the whole explains."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page[page.index("### Files of the machine-code backend") :].split("\n## ")[0]
    rooms = (SRC / "backends" / "llvm" / room for room in ("emit", "run"))
    files = {f"{room.name}/{path.stem}" for room in rooms for path in room.glob("[!_]*.py")}
    assert set(re.findall(r"`((?:emit|run)/\w+)`", table)) == files


def test_files_that_the_page_names_exist() -> None:
    """Files of the package, each somewhere below it."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    known = [f"/{path.relative_to(ROOT).as_posix()}" for path in MODULES]
    named = re.findall(r"`([\w/]+\.py)`", page)
    lost = [x for x in named if not any(path.endswith(f"/{x}") for path in known)]
    assert [x for x in lost if not (ROOT / x).exists()] == []


def test_import_is_light() -> None:
    """``import phistar`` pulls in NumPy and lxml, and none of the heavy or optional packages."""
    script = "import sys, phistar; print(*{name.split('.')[0] for name in sys.modules})"
    out = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.split()
    heavy = (
        "mujoco xacro pinocchio jax torch casadi gymnasium dask zarr viser matplotlib scipy "
        "llvmlite rich yaml"
    )
    assert "numpy" in out
    assert set(out) & set(heavy.split()) == set()


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_module_has_licence_and_docstring(path: Path) -> None:
    """Every module names its licence on its first line and says what it is."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# SPDX-License-Identifier: BSD-3-Clause\n")
    assert ast.get_docstring(ast.parse(text))


def repository_files() -> list[Path]:
    """Text files that are, or would be, committed."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    files = [ROOT / name for name in names.split("\0") if name]
    binary = {".png", ".npz", ".npy", ".gz", ".zip", ".stl"}
    return [path for path in files if path.is_file() and path.suffix not in binary]


# Written so that no pattern matches its own text.
TRACE = re.compile(
    rb"/(?:work)/(?:main|shared)|/(?:root)/|/(?:home)/[a-z]|/(?:Users)/[A-Za-z]|/(?:tmp)/w\b"
    rb"|(?:files\.pythonhosted)\.org|(?:index)-url|(?:pypi)\.org/simple"
)


OBJECTS = {"robot", "sim", "series", "cost", "scipy", "torch", "jax"}
"""Names of modules, but in texts objects that users hold, ``robot.simulate``, or other packages."""


def stale_references(text: str, sources: dict[str, str]) -> list[str]:
    """Places ``module.name`` of a text where a file of that name has no such name."""
    found = re.findall(r"``([a-z_]+)\.([A-Za-z_]\w*)(?:\([^`]*\))?``", text)
    return [
        f"{module}.{name}"
        for module, name in found
        if module in sources
        and module not in OBJECTS
        and name not in sources
        and name != "py"
        and not re.search(rf"\b{name}\b", sources[module])
    ]


def test_docstrings_name_what_exists() -> None:
    """A module and what is in it, wherever a text of the package sends a reader."""
    texts = {path: path.read_text(encoding="utf-8") for path in MODULES}
    sources: dict[str, str] = {}
    for path, text in texts.items():
        stem = path.parent.name if path.stem == "__init__" else path.stem
        sources[stem] = sources.get(stem, "") + text
    stale = {path.stem: stale_references(text, sources) for path, text in texts.items()}
    assert {stem: names for stem, names in stale.items() if names} == {}
    assert stale_references("``policy.decide``, ``policy.dcide``", sources) == ["policy.dcide"]


def test_no_trace_of_a_machine() -> None:
    """No committed file names a directory of a developer's machine or a package registry host."""
    found = [
        f"{path.relative_to(ROOT)}: {match.group().decode()}"
        for path in repository_files()
        for match in [TRACE.search(path.read_bytes())]
        if match
    ]
    assert found == []


@pytest.mark.parametrize(
    "parts", [("", "work", "main"), ("see ", "root", "x"), ("--extra-index", "-url")]
)
def test_trace_check_has_teeth(parts: tuple[str, ...]) -> None:
    """Planted traces are found."""
    glue = "" if parts[-1].startswith("-") else "/"
    assert TRACE.search(glue.join(parts).encode())


def test_version_is_the_same_everywhere() -> None:
    """The citation file names the version that the package has, and pyproject.toml takes."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert config["tool"]["hatch"]["version"] == {"path": "src/phistar/__init__.py"}
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    match = re.search(r"^version: (\S+)$", citation, re.MULTILINE)
    assert match is not None
    assert match.group(1) == phistar.__version__

# SPDX-License-Identifier: BSD-3-Clause
"""The page of examples: each is run when the pages are built; what it prints and draws is shown.

Examples of large optional packages are run where these are installed; elsewhere the page says so.
"""

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "examples"

OPTIONAL = {"casadi": "casadi", "gymnasium": "gym", "torch": "torch"}
"""Packages that building the pages does not install, and the extras that do."""

TOGETHER = 2
"""Examples that run at a time, each in a process of its own."""


def write(folder: Path) -> None:
    """Run all examples in a folder and write the page ``examples.md`` beside it.

    Raises:
        RuntimeError: One of them fails; with what it wrote.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = sorted(FOLDER.glob("*.py"))
    with ThreadPoolExecutor(TOGETHER) as pool:
        printed = list(pool.map(lambda file: _run(file, folder / file.stem), files))
    lines = page(dict(zip(files, printed, strict=True)), folder)
    (folder.parent / "examples.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def lacking(file: Path) -> list[str]:
    """Optional packages that an example imports and that are not installed."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.split(".")[0])
    return [x for x in OPTIONAL if x in imported and importlib.util.find_spec(x) is None]


def _run(file: Path, folder: Path) -> str:
    if absent := lacking(file):
        return "\n".join(f'not run here: pip install "phistar[{OPTIONAL[x]}]"' for x in absent)
    command = [sys.executable, "-W", "error", str(file), "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"examples/{file.name} failed:\n{done.stderr}")
    return "".join(line for line in done.stdout.splitlines(True) if str(folder) not in line)


def page(printed: dict[Path, str], folder: Path) -> Iterator[str]:
    """The page: a section for each example, with what it printed and its pictures in the folder."""
    yield "# Examples\n\nPrograms of `examples/`, from start to end. They ran when this page was"
    yield "built, unless a package is named that they need; `make examples` runs most of them"
    yield "again and leaves the pictures in `plots`.\n"
    for file, output in printed.items():
        about = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        name = file.stem.replace("_", " ").capitalize()
        yield f"## {name}\n\n{about.splitlines()[0]}\n\n    python examples/{file.name}\n"
        yield f"```text\n{output.rstrip()}\n```\n"
        for picture in sorted((folder / file.stem).glob("*.png")):
            yield f"![{name}]({folder.name}/{file.stem}/{picture.name})\n"

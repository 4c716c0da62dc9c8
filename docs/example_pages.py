# SPDX-License-Identifier: BSD-3-Clause
"""The page of examples: each is run when the pages are built; what it prints and draws is shown."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "examples"

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


def _run(file: Path, folder: Path) -> str:
    command = [sys.executable, "-W", "error", str(file), "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"examples/{file.name} failed:\n{done.stderr}")
    return "".join(line for line in done.stdout.splitlines(True) if str(folder) not in line)


def page(printed: dict[Path, str], folder: Path) -> Iterator[str]:
    """The page: a section for each example, with what it printed and its pictures in the folder."""
    yield "# Examples\n\nPrograms of `examples/`, from start to end. They ran when this page was"
    yield "built; `make examples` runs them again and leaves the pictures in `plots`.\n"
    for file, output in printed.items():
        about = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        name = file.stem.replace("_", " ").capitalize()
        yield f"## {name}\n\n{about.splitlines()[0]}\n\n    python examples/{file.name}\n"
        yield f"```text\n{output.rstrip()}\n```\n"
        for picture in sorted((folder / file.stem).glob("*.png")):
            yield f"![{name}]({folder.name}/{file.stem}/{picture.name})\n"

# SPDX-License-Identifier: BSD-3-Clause
"""A page as a script: ``python docs/page_script.py docs/tutorials/7_loops.md``.

Blocks of Python run one after another, as on the page. What a block ends with is shown: figures,
also those of ``plt.show()``, are written to the folder ``plots`` (``--out``), anything else is
printed. ``--print`` writes the script itself. Comments that give the shape of what is assigned,
e.g. ``# (6, nv)``, are checked.
"""

import argparse
import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import phistar

BLOCK = re.compile(
    r"^```(?:python|\{code-cell\}[^\n]*)\n((?::[^\n]*\n)*)(.*?)^```", re.MULTILINE | re.DOTALL
)
"""A block of a plain page, or a cell that is executed when the pages are built, with options."""

PAGE_ONLY = "remove-input"
"""The tag of cells that show something on the page and belong to no script."""


SHAPE = re.compile(r"^(\w+) = .*# \(([\w, ]*)\)", re.MULTILINE)
"""An assignment at the start of a line, and the shape that its comment gives."""


def blocks(text: str) -> list[str]:
    """The blocks of a page that make up its script."""
    return [code for options, code in BLOCK.findall(text) if PAGE_ONLY not in options]


def run(page: Path, show: Callable[[object], None] | None = None) -> Iterator[dict[str, object]]:
    """Run a page block by block; after each one give the names that are defined.

    Args:
        page: The Markdown file.
        show: Called with the value of an expression that a block ends with, unless it is None.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    for code in blocks(page.read_text(encoding="utf-8")):
        tree = ast.parse(code, page.name)
        last = tree.body.pop() if show and tree.body and _is_value(tree.body[-1]) else None
        exec(compile(tree, page.name, "exec"), names)
        if last is not None and show is not None:
            value = eval(compile(ast.Expression(last.value), page.name, "eval"), names)
            if value is not None:
                show(value)
        check_shapes(code, names)
        yield names


def check_shapes(source: str, names: dict[str, object]) -> None:
    """See that what was assigned has the shapes that comments give; nq and nv are of any robot.

    Raises:
        ValueError: A shape is another one.
    """
    robots = [value for value in names.values() if isinstance(value, phistar.Robot)]
    for name, shape in SHAPE.findall(source):
        sizes = re.findall(r"\w+", shape)
        shapes = [
            tuple(getattr(robot, size) if size in ("nq", "nv") else int(size) for size in sizes)
            for robot in robots
        ]
        if np.shape(names[name]) not in shapes:
            raise ValueError(
                f"{name} has shape {np.shape(names[name])}, its comment says ({shape})"
            )


def run_all(page: Path) -> None:
    """Run a page from its first to its last block."""
    for _ in run(page):
        pass


def _is_value(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr)


class Shown:
    """Values as a script shows them: figures go to a folder, the rest is printed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.figures: list[Path] = []

    def __call__(self, value: object) -> None:
        """Show a value."""
        if hasattr(value, "savefig"):
            self._write(value)
        else:
            print(value)

    def open_figures(self) -> None:
        """In place of ``plt.show()``: write what pyplot has drawn."""
        for number in plt.get_fignums():
            self._write(plt.figure(number))
        plt.close("all")

    def _write(self, figure: Figure) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.name}_{len(self.figures) + 1}.png"
        figure.savefig(path)
        self.figures.append(path)
        print(f"figure in {path}")


def main(arguments: list[str] | None = None) -> int:
    """Run or print pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="+", type=Path, help="Markdown files")
    parser.add_argument("--out", type=Path, default=Path("plots"), help="folder of the figures")
    parser.add_argument("--print", action="store_true", help="print the script, run nothing")
    options = parser.parse_args(arguments)
    mpl.use("Agg")
    for page in options.pages:
        if options.print:
            print("\n".join(blocks(page.read_text(encoding="utf-8"))))
            continue
        print(f"== {page}", flush=True)
        shown = Shown(page.stem, options.out)
        with mock.patch.object(plt, "show", shown.open_figures):
            for _ in run(page, shown):
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

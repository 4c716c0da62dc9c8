# SPDX-License-Identifier: BSD-3-Clause
"""What the pages show must run as it is pasted, print what they say and ask nobody outside."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.cli import main
from tests.helpers import ROOT, chosen_backends, docs_module

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHAPE = re.compile(r"^(\w+) = .*# \(([\w, ]*)\)", re.MULTILINE)
COMMAND = re.compile(r"^ {4}(?:\$ )?phistar (.+)$", re.MULTILINE)
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")


def _fences(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(page.read_text(encoding="utf-8"))


WITH_CODE = [
    page
    for page in PAGES
    if any(kind == "python" for kind, _ in _fences(page))
    and (page.stem != "jax" or "jax" in chosen_backends())
]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_page_runs_as_pasted(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks run one after another; a block of text after one is the end of what it prints."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    for kind, source in _fences(page):
        if kind == "text":
            assert printed.rstrip().endswith(source.rstrip())
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(source, page.name, "exec"), names)
        printed = out.getvalue()
        _check_shapes(source, names)
    for picture in docs_module("pictures").names(page.read_text(encoding="utf-8")):
        assert (tmp_path / picture).stat().st_size > 10_000


def test_pictures_are_drawn_by_their_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks run in the folder of pictures; one that nobody draws is an error."""
    pictures = docs_module("pictures")
    monkeypatch.setattr(pictures, "HERE", tmp_path)
    page = tmp_path / "page.md"
    shown = "\n![a](_generated/pictures/a.png)\n"
    page.write_text('```python\nopen("a.png", "w").close()\n```\n' + shown, encoding="utf-8")
    (tmp_path / "other.md").write_text("```python\nraise ValueError\n```\n", encoding="utf-8")
    pictures.draw(tmp_path / "pictures")
    assert (tmp_path / "pictures" / "a.png").is_file()
    page.write_text(shown.replace("a.png", "b.png"), encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"page.md shows b.png"):
        pictures.draw(tmp_path / "pictures")


def _check_shapes(source: str, names: dict[str, object]) -> None:
    """A comment such as "(6, nv)" after an assignment is the shape of what was assigned."""
    robots = [value for value in names.values() if isinstance(value, phistar.Robot)]
    for name, shape in SHAPE.findall(source):
        sizes = re.findall(r"\w+", shape)
        shapes = [
            tuple(getattr(robot, size) if size in ("nq", "nv") else int(size) for size in sizes)
            for robot in robots
        ]
        assert np.shape(names[name]) in shapes, name


def _commands() -> list[str]:
    """Commands that pages show, those with a word in capitals to be filled in left out."""
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    found = [line.partition(" #")[0].strip() for page in pages for line in COMMAND.findall(page)]
    return [line for line in dict.fromkeys(found) if not PLACEHOLDER.search(line)]


@pytest.mark.parametrize("command", _commands())
def test_command_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """A command of the pages ends well; files that it reads are made first."""
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(phistar.load("double_pendulum").to_urdf(), encoding="utf-8")
    Path("in.xml").write_text(
        '<mujoco><worldbody><body name="rod"><joint name="hinge"/>'
        '<geom size="0.1" mass="1"/></body></worldbody></mujoco>',
        encoding="utf-8",
    )
    assert main(shlex.split(command)) == 0
    assert any(text.strip() for text in capsys.readouterr())


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        '<img src="http://example.org/a.png">',
        '<style>@import "https://example.org/a.css";</style>',
        '<p style="background: url(https://example.org/a.png)">',
        '<script>fetch("https://example.org/a.json")</script>',
        '<a href="no_such_page.html">there</a>',
        '<a href="#no_such_place">there</a>',
    ],
)
def test_requests_and_dead_links_are_found(html: str, tmp_path: Path) -> None:
    """The check behind ``make docs`` sees what would leave the page, and what leads nowhere."""
    (tmp_path / "index.html").write_text(html, encoding="utf-8")
    assert len(list(docs_module("offline").problems(tmp_path))) == 1


def test_links_that_a_reader_clicks_are_fine(tmp_path: Path) -> None:
    """Another site may be named, and a place on a page of ours."""
    html = '<p id="here"><a href="https://example.org">there</a><a href="index.html#here">up</a>'
    (tmp_path / "index.html").write_text(html, encoding="utf-8")
    assert list(docs_module("offline").problems(tmp_path)) == []


def test_reference_begins_with_the_robot() -> None:
    """The first page below the overview is Robot's; each of its public methods stands there."""
    pages = docs_module("reference_pages").pages()
    assert list(pages)[:2] == ["reference", "reference/robot"]
    text = "\n".join(pages["reference/robot"])
    public = [name for name in dir(phistar.Robot) if not name.startswith("_")]
    members = [name for name in public if f":: phistar.Robot.{name}\n" in text]
    assert members == public


def test_theorems_show_their_derivations() -> None:
    """Each theorem of a file with its outcome and its steps, whose rules are links."""
    text = "\n".join(docs_module("theorems").pages()["algorithms/innovations"])
    theorems = re.findall(r"^## (\w+)", text, re.MULTILINE)
    assert len(theorems) >= 2
    assert text.count("<summary><b>Proved</b>") == len(theorems)
    steps = re.findall(r'<p class="step">.*', text)
    assert len(steps) >= len(theorems)
    assert all("href=" in step for step in steps)

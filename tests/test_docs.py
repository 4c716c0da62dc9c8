# SPDX-License-Identifier: BSD-3-Clause
"""What the pages show must run as it is pasted, print what they say and ask nobody outside."""

import ast
import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.algebra.phases import IDENTITIES
from phistar.cli import main
from tests.helpers import ROOT, chosen_backends, docs_module

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *TUTORIALS]
FENCE = re.compile(r"^```(python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^ {4}(?:\$ )?phistar (.+)$", re.MULTILINE)
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")


def _fences(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(page.read_text(encoding="utf-8"))


WITH_CODE = [
    page
    for page in PAGES
    if any(kind == "python" for kind, _ in _fences(page))
    and (page.stem not in ("jax", "interop_jax") or "jax" in chosen_backends())
    and (page.stem != "torch" or os.environ.get("PHISTAR_TEST_TORCH"))
    and (page.stem != "scaling" or os.environ.get("PHISTAR_TEST_SCALE"))
    and (page.stem != "casadi" or os.environ.get("PHISTAR_TEST_CASADI"))
    and (page.stem != "gymnasium" or os.environ.get("PHISTAR_TEST_GYM"))
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
        docs_module("page_script").check_shapes(source, names)
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


CELLS = """
```{code-cell}
x = 1  # no figure
x + 1
```
```{code-cell}
:tags: [remove-input]
raise ValueError("for the page alone")
```
```python
from matplotlib.figure import Figure
Figure(figsize=(1, 1))
```
"""


def test_a_page_is_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Values are printed and figures written; cells that belong to the page alone are left out."""
    (tmp_path / "page.md").write_text(CELLS, encoding="utf-8")
    script = docs_module("page_script")
    assert script.main([str(tmp_path / "page.md"), "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "2"
    assert (tmp_path / "page_1.png").is_file()
    assert script.main([str(tmp_path / "page.md"), "--print"]) == 0
    printed = capsys.readouterr().out
    assert "x + 1\n\nfrom matplotlib" in printed


def test_wrong_shapes_are_found() -> None:
    """A comment that gives another shape than the array has."""
    names: dict[str, object] = {"q": np.zeros(3), "robot": phistar.load("cartpole")}
    check = docs_module("page_script").check_shapes
    check("q = f()  # (3,)", names)
    with pytest.raises(ValueError, match=r"q has shape \(3,\), its comment says \(nq,\)"):
        check("q = f()  # (nq,)", names)


def test_the_compiler_in_200_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Cells that define things have no more lines than that, and the result is phistar's."""
    page = ROOT / "docs" / "small_compiler.md"
    script = docs_module("page_script")
    defined = [x for x in script.blocks(page.read_text(encoding="utf-8")) if "print(" not in x]
    assert sum(map(_code_lines, defined)) <= 200
    script.run_all(page)
    shown = capsys.readouterr().out
    assert "25 steps: forward dynamics" in shown
    assert "below 1e-12: True" in shown


def _code_lines(source: str) -> int:
    """Lines without blank ones, comments and docstrings."""
    tree = ast.parse(source)
    texts = [n for n in ast.walk(tree) if isinstance(n, ast.Expr) and _is_text(n.value)]
    hidden = {line for n in texts for line in range(n.lineno, (n.end_lineno or n.lineno) + 1)}
    lines = enumerate(source.splitlines(), 1)
    return sum(bool(x.strip()) and x.strip()[0] != "#" and k not in hidden for k, x in lines)


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def test_cells_of_narrow_tables_have_titles() -> None:
    """Titles of columns stand in their cells; text around the table stays."""
    table = (
        "<thead><tr><th>a b</th><th></th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody>"
    )
    found = docs_module("narrow_tables").titled(f"before<table>{table}</table><p>after</p>")
    assert found.startswith("before<table>")
    assert '<td data-title="a b">1</td><td>2</td>' in found
    assert found.endswith("<p>after</p>")


def test_pictures_of_speed_are_the_table_of_the_readme() -> None:
    """All cells are read; a table that cannot be read stops the build."""
    plots = docs_module("speed_plots")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    batch, single, *_ = plots.tables(text)
    assert list(batch) == list(single)
    assert all(row.keys() >= {"inverse dynamics", "mass matrix"} for row in batch.values())
    ratios = [cell.ratio for row in batch.values() for cell in row.values()]
    shown = {float(x) for x in re.findall(r" \(([\d.]+)×\)", text)}
    assert len(ratios) > 10
    assert shown.issuperset(ratios)
    with pytest.raises(ValueError, match="no table of speed"):
        plots.tables("")
    peak, rates, rows = plots.floors((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"))
    assert peak > 0
    assert rates
    assert {row["robot"] for row in rows} == {"quadruped", "humanoid"}
    with pytest.raises(ValueError, match="no table of floors"):
        plots.floors("")
    broken = "<!-- speed: -->\n| | a |\n|---|---|\n| x, 1 | fast |\n<!-- end of speed -->"
    with pytest.raises(ValueError, match="'fast'"):
        plots.tables(broken)


def _commands() -> list[str]:
    """Commands that pages show, those with a word in capitals to be filled in left out."""
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    found = [line.partition(" #")[0].strip() for page in pages for line in COMMAND.findall(page)]
    return [line for line in dict.fromkeys(found) if not PLACEHOLDER.search(line)]


LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")


def _dead_links(page: Path) -> list[str]:
    """Files that a page leads to and that do not exist; what the build writes is left out."""
    links = LINK.findall(page.read_text(encoding="utf-8"))
    inside = [link for link in links if "://" not in link and "_generated/" not in link]
    return [f"{page.name}: {link}" for link in inside if not (page.parent / link).exists()]


def test_links_between_pages_lead_somewhere(tmp_path: Path) -> None:
    """Found here at once, and not minutes later when the pages are built."""
    assert [link for page in PAGES for link in _dead_links(page)] == []
    (tmp_path / "page.md").write_text("[a](b.md#c), [d](https://e.org/f), [g](page.md#h)")
    assert _dead_links(tmp_path / "page.md") == ["page.md: b.md"]


def test_every_page_is_in_the_table_of_contents() -> None:
    """Once: a page that is not, or is twice, makes the build fail, minutes later."""
    listed = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").splitlines()
    pages = [path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in PAGES[1:]]
    assert {page for page in pages if listed.count(page) != 1} <= {"index"}


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


def test_examples_of_absent_packages_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says what installs them; a package that is no option is an error of the example."""
    pages = docs_module("example_pages")
    monkeypatch.setattr(pages, "OPTIONAL", {"no_such_package": "extra"})
    file = tmp_path / "large.py"
    file.write_text("import no_such_package.part\n", encoding="utf-8")
    assert pages._run(file, tmp_path) == 'not run here: pip install "phistar[extra]"'
    monkeypatch.setattr(pages, "OPTIONAL", {})
    with pytest.raises(RuntimeError, match=r"large\.py failed"):
        pages._run(file, tmp_path)


def test_examples_are_shown_with_what_they_print(tmp_path: Path) -> None:
    """A section each: docstring, command, output, pictures."""
    (tmp_path / "drawn" / "small_example").mkdir(parents=True)
    (tmp_path / "drawn" / "small_example" / "a.png").touch()
    file = tmp_path / "small_example.py"
    file.write_text('"""What it is."""\n', encoding="utf-8")
    page = docs_module("example_pages").page({file: "said\n"}, tmp_path / "drawn")
    text = "\n".join(page)
    assert "## Small example\n\nWhat it is.\n\n    python examples/small_example.py\n" in text
    assert "```text\nsaid\n```" in text
    assert "](drawn/small_example/a.png)" in text


def _stars_lost(text: str) -> list[str]:
    """Stars of operators that Markdown takes for emphasis, with what stands between them."""
    code = r"```.*?```|`[^`]*`|(?m:^ {4}[^\n]*$)"
    plain = re.sub(code, "``", text, flags=re.DOTALL)
    pairs = re.findall(r"(?<![\\*])\*(?=[^\s*.,;:)\]])([^*\n|]{1,100}?)(?<![\s\\*])\*(?!\*)", plain)
    return [inner for inner in pairs if re.search("[Α-Ωα-ω𝓜⁻]", inner)]


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.stem
)
def test_operators_keep_their_stars(page: Path) -> None:
    """K\\*ψ\\*E is written so: K*ψ*E would be shown as KψE, and an erratum as the misprint."""
    assert _stars_lost(page.read_text(encoding="utf-8")) == []


def test_lost_stars_are_found() -> None:
    """Between letters, not in code, not where they are escaped or mean emphasis of words."""
    assert _stars_lost("W = K*ψ*E and m*θ̇ = ℓ*ν") == ["ψ", "θ̇ = ℓ"]
    assert _stars_lost("K\\*ψ\\*E, `K*ψ*E`, *see through*, (Eφ*, P Eφ*)") == []


def test_every_rule_stands_on_the_page_of_identities() -> None:
    """Pages link to rules by name; a group that the page leaves out would be a dead link."""
    page = "\n".join(docs_module("registry").identities_page())
    for row in IDENTITIES:
        assert f'id="rule-{row.name}"' in page, row.name

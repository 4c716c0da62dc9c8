# SPDX-License-Identifier: BSD-3-Clause
"""The page of papers: every equation leads to a line of code that exists, or says "not yet"."""

import importlib.util
import re
from types import ModuleType

import pytest

from phistar.algebra.phases import IDENTITIES
from phistar.algebra.symbols import SYMBOLS
from phistar.algorithms.catalogue import catalogue
from phistar.errors import UnknownNameError
from phistar.refs import PAPERS, Paper
from tests.helpers import ROOT


def _page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("papers_page", ROOT / "docs" / "papers_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = _page()
TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = PAGE.rows(TEXT)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split(" | ")[0].strip("| "))
def test_every_row_resolves_or_is_absent(row: str) -> None:
    """A row names things that stand at a line of a file, or says "not yet"."""
    cell = PAGE.last_cell(row)
    names = PAGE.names(cell)
    assert names or "not yet" in cell
    for name in names:
        for place in PAGE.places(name):
            file, line = place.split(":")
            text = (ROOT / "src" / "phistar" / file).read_text(encoding="utf-8").splitlines()
            wanted = name.rpartition(".")[2].removesuffix("_definition")
            assert wanted in " ".join(text[int(line) - 1 :][:3])


def test_every_paper_has_its_section() -> None:
    """All papers are gone through, each with dozens of rows."""
    for paper in PAPERS.values():
        section = TEXT.split(f"## {paper.short}\n")[1].split("\n## ")[0]
        assert len(PAGE.rows(section)) > 30


def _numbers(text: str) -> set[str]:
    """Equation numbers and named places in a text."""
    return set(re.findall(r"\([^)]*\)|(?:Table|Algorithm|Lemma|Identity) [\w.]*\w", text))


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_what_is_cited_is_not_called_absent(paper: Paper) -> None:
    """A row that names nothing is cited by no symbol, identity or theorem."""
    section = TEXT.split(f"## {paper.short}\n")[1].split("\n## ")[0]
    absent = [row for row in PAGE.rows(section) if not PAGE.names(PAGE.last_cell(row))]
    entries = (*SYMBOLS.values(), *IDENTITIES, *catalogue().values())
    refs = [entry.ref for entry in entries if entry.ref and entry.ref.paper is paper]
    cited = {number for ref in refs for number in _numbers(ref.place)}
    assert len(cited) >= 5
    assert [row for row in absent if _numbers(row.split(" | ")[0]) & cited] == []


def test_the_built_page_shows_places() -> None:
    """Each table gets a column; text around them stays."""
    table = "# Papers\n\n| no. | states | phistar |\n|---|---|---|\n| (1) | x | `phi` |\n"
    lines = PAGE.located(table).splitlines()
    assert lines[0] == "# Papers"
    assert lines[2:4] == ["| no. | states | phistar | where |", "|---|---|---|---|"]
    assert lines[4].startswith("| (1) | x | `phi` | `algebra/symbols.py:")


def test_a_wrong_name_stops_the_build() -> None:
    """A stale name, or a row that says nothing, is an error."""
    with pytest.raises(UnknownNameError):
        PAGE.located("| (1) | x | `no_such_theorem` |")
    with pytest.raises(UnknownNameError):
        PAGE.located("| (1) | x | `spatial.no_such_function` |")
    with pytest.raises(UnknownNameError):
        PAGE.located("| (1) | x | `no_module.name` |")
    with pytest.raises(ValueError, match="not yet"):
        PAGE.located("| (1) | x | somewhere |")

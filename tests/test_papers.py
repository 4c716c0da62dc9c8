# SPDX-License-Identifier: BSD-3-Clause
"""The page of papers: every equation leads to a line of code that exists, or says "not yet"."""

import re

import pytest

from phistar.algebra.phases import IDENTITIES
from phistar.algebra.symbols import SYMBOLS
from phistar.algorithms.catalogue import catalogue
from phistar.errors import UnknownNameError
from phistar.refs import PAPERS, Paper
from tests.helpers import ROOT, docs_module

PAGE = docs_module("papers_page")
TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = PAGE.rows(TEXT)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split(" | ")[0].strip("| "))
def test_every_row_is_so(row: str) -> None:
    """Names of a row stand at a line of a file, calls are accepted, what is "not yet" is not."""
    PAGE.check(row)
    for name in PAGE.names(PAGE.last_cell(row)):
        for place in PAGE.places(name):
            file, line = place.split(":")
            text = (ROOT / "src" / "phistar" / file).read_text(encoding="utf-8").splitlines()
            wanted = name.partition("(")[0].rpartition(".")[2].removesuffix("_definition")
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
    """Each table gets a class, a column and links; text around it stays."""
    table = "# Papers\n\n| no. | states | phistar |\n|---|---|---|\n| (1) | x | `phi` |\n\nend"
    text = PAGE.located(table)
    assert text.startswith("# Papers\n")
    assert ":class: wide papers\n" in text
    assert "| no. | states | phistar | where |\n|---|---|---|---|" in text
    assert '<a href="_generated/symbols.html#symbol-phi"><code>phi</code></a>' in text
    assert "| <code>algebra/<wbr>symbols.py:" in text
    assert text.endswith("````\n\nend\n")


@pytest.mark.parametrize(
    "cell",
    [
        "`no_such_theorem`",
        "`spatial.no_such_function`",
        "`no_module.name`",
        "`Robot.no_such_method`",
        '`Robot.linearize(method="7")`',
        "`Robot.no_such_method()`",
    ],
)
def test_a_wrong_name_stops_the_build(cell: str) -> None:
    """A stale name is an error, and so is a call that is refused."""
    with pytest.raises(UnknownNameError):
        PAGE.located(f"| (1) | x | {cell} |")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("somewhere", "names nothing"),
        ("not yet", "without a name"),
        ("`phi`; the rest not yet", "without a name"),
        ("`phi`; the rest is not planned", "without a name"),
        ("not yet `Robot.frame_acceleration`", "exists"),
        ("not yet `link_accelerations`", "exists"),
        ('not yet `Robot.linearize(method="4")`', "exists"),
        ("`phi`; not yet `Robot.no_such_method`, `Robot.linearize_inverse`", "exists"),
    ],
)
def test_what_exists_is_not_called_absent(cell: str, message: str) -> None:
    """A row that says "not yet" names what is to come, and that does not exist."""
    with pytest.raises(ValueError, match=message):
        PAGE.located(f"| (1) | x | {cell} |")


def test_what_is_planned_needs_no_place() -> None:
    """A name after "not yet" is no link and has no line."""
    text = PAGE.located("| (1) | x | `phi`; not yet `Robot.no_such_method` |")
    assert "`Robot.no_such_method` |" in text
    assert text.count("symbols.py:") == 1

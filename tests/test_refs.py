# SPDX-License-Identifier: BSD-3-Clause
"""References: short citations, places and BibTeX."""

import re

import pytest

from phistar.refs import FO00, JR95, PAPERS, RK92, Paper


def test_short_names_authors_and_year() -> None:
    """Family names in printed order, then the year; hyphens stay."""
    assert RK92.short == "Rodriguez & Kreutz-Delgado 1992"
    assert FO00.short == "Featherstone & Orin 2000"
    single = Paper("Solo", "Ada B. Smith", "Title", "Journal", 2001)
    assert single.short == "Smith 2001"


@pytest.mark.parametrize("number", ["4.6", "(4.6)"])
def test_equation(number: str) -> None:
    """An equation number gets its parentheses once."""
    assert str(JR95.eq(number)) == "Jain & Rodriguez 1995, (4.6)"


def test_other_places() -> None:
    """Ranges and named places are printed as given."""
    assert str(RK92.eq("(49)-(51)")) == "Rodriguez & Kreutz-Delgado 1992, (49)-(51)"
    assert str(JR95.at("section 4")) == "Jain & Rodriguez 1995, section 4"


def test_references_are_values() -> None:
    """Two references to one place are equal and hash alike."""
    assert RK92.eq("2") == RK92.eq("(2)")
    assert len({RK92.eq("2"), RK92.eq("(2)"), RK92.eq("3")}) == 2


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_bibtex_is_well_formed(paper: Paper) -> None:
    """An entry has its key, balanced braces, and each field once."""
    text = paper.bibtex()
    assert text.startswith(f"@{paper.kind}{{{paper.key},\n")
    assert text.count("{") == text.count("}")
    names = re.findall(r"^  (\w+) = \{.*\},?$", text, re.MULTILINE)
    assert len(names) == len(set(names)) == text.count("\n") - 1
    assert {"author", "title", "year", "pages"} <= set(names)
    assert ("journal" in names) == (paper.kind == "article")
    assert ("booktitle" in names) == (paper.kind == "inproceedings")


def test_bibtex_entry() -> None:
    """One entry in full."""
    paper = Paper("AB99", "A. A and B. B", "On A", "J. of B", 1999, (("volume", "3"),))
    assert paper.bibtex() == (
        "@article{AB99,\n  author = {A. A and B. B},\n  title = {{On A}},\n"
        "  journal = {J. of B},\n  year = {1999},\n  volume = {3}\n}"
    )


def test_keys_are_names() -> None:
    """Papers are found by their own key."""
    assert all(paper.key == key for key, paper in PAPERS.items())

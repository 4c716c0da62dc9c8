# SPDX-License-Identifier: BSD-3-Clause
"""The glossary has each term once, sorted, and names files and identifiers that exist."""

import re
from itertools import groupby

import pytest

from tests.helpers import ROOT

SOURCES = ROOT / "src" / "phistar"
TEXT = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
CODE = re.compile(r"`([^`]+)`")
CLASS_NAME = re.compile(r"[A-Z]\w*[a-z]\w*")


def _rows() -> list[tuple[str, str, str, str]]:
    """(level, term, meaning, where) of each row."""
    rows: list[tuple[str, str, str, str]] = []
    for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        level, _, body = section.partition("\n")
        table = [line.strip("| ") for line in body.splitlines() if line.startswith("| ")]
        rows += [(level, *line.split(" | ")) for line in table[1:]]  # type: ignore[misc]
    return rows


ROWS = _rows()


def _is_path(code: str) -> bool:
    return code.endswith((".py", "/"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_files_and_identifiers_exist(row: tuple[str, str, str, str]) -> None:
    """Each path exists; each identifier is defined in one of the files of its row."""
    _, _, meaning, where = row
    places = CODE.findall(where)
    paths = [SOURCES / code for code in places if _is_path(code)]
    assert paths
    assert all(path.exists() for path in paths)
    assert all((SOURCES / code).exists() for code in CODE.findall(meaning) if _is_path(code))
    names = [code for code in places if not _is_path(code)]
    names += [code for code in CODE.findall(meaning) if CLASS_NAME.fullmatch(code)]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())
    for name in names:
        assert re.search(rf"^\s*(class |def )?{name}\b", text, re.MULTILINE), name


def test_terms_are_unique_and_sorted() -> None:
    """One meaning per term; alphabetic order within a level."""
    terms = [term for _, term, _, _ in ROWS]
    assert len(terms) == len(set(terms)) > 150
    for _, rows in groupby(ROWS, key=lambda row: row[0]):
        level = [term.lower() for _, term, _, _ in rows]
        assert level == sorted(level)

# SPDX-License-Identifier: BSD-3-Clause
"""The documentation in a browser: tables fit, the dark is readable; ``make docs`` comes before."""

from pathlib import Path

import pytest

from tests.helpers import ROOT, docs_module

BUILT = ROOT / "docs" / "_build" / "html"


def test_pages_fit_and_can_be_read_in_the_dark() -> None:
    """At 1280 and 400 px nothing sticks out; text stands out from its background."""
    assert (BUILT / "index.html").is_file(), "make docs builds the pages"
    assert list(docs_module("page_check").problems(BUILT)) == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('<div style="width: 2000px">x</div>', "the page is 20"),
        ('<div class="table-wrapper" style="overflow-x: auto"><table><tr><td>'
         '<div style="width: 1500px">x</div></td></tr></table></div>', "a table of 15"),
        ('<p style="color: #333; background: #222">x</p>', "contrast 1."),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_found(body: str, told: str, tmp_path: Path) -> None:
    """Something wide, a wide table, dark letters on dark paper."""
    style = "body { background: white; color: black; margin: 0; }"
    page = f"<!doctype html><style>{style}</style><body>{body}</body>"
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    found = list(docs_module("page_check").problems(tmp_path))
    assert any(told in each for each in found), found

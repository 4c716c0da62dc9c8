# SPDX-License-Identifier: BSD-3-Clause
"""Tables on a narrow screen: every cell knows the title of its column.

``static/pages.css`` shows a row as a list of cells where there is no room for columns; the titles,
which are hidden then, are written in front of the cells from their attribute ``data-title``.
"""

from typing import Any

from lxml import html

TABLE = "<table"
"""How a table of a page begins."""


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("html-page-context", _titled_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _titled_page(_app: Any, _page: str, _template: str, context: Any, _tree: Any) -> None:
    if TABLE in context.get("body", ""):
        context["body"] = titled(context["body"])


def titled(body: str) -> str:
    """HTML in which the cells of tables with a head carry the titles of their columns."""
    root = html.fragment_fromstring(body, create_parent="div")
    for table in root.iter("table"):
        titles = [" ".join(cell.text_content().split()) for cell in table.xpath("./thead/tr/th")]
        for row in table.xpath("./tbody/tr"):
            for title, cell in zip(titles, row.xpath("./td"), strict=False):
                if title:
                    cell.set("data-title", title)
    inner = "".join(html.tostring(child, encoding="unicode") for child in root)
    return (root.text or "") + inner

# SPDX-License-Identifier: BSD-3-Clause
"""Results for people: one line with names, shapes and short values; cards in notebooks."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import fields
from string import Template
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

MAX_NUMBERS_SHOWN = 6
"""Largest number of array entries written out."""

MAX_CHARACTERS_FOLDED = 60_000
"""Of a text in a card: a notebook keeps all of them."""

MAX_CHARACTERS_SHOWN = 90
"""Largest number of characters of another value."""


def one_line_repr(cls: type[T]) -> type[T]:
    """A dataclass that prints in one line: ``<Step: q [0.1 0.2], A (4, 4)>``."""
    cls.__repr__ = _line  # type: ignore[method-assign]
    return cls


def _line(self: Any) -> str:
    values = ((each.name, getattr(self, each.name)) for each in fields(self) if each.repr)
    texts = (f"{name} {brief(value)}" for name, value in values if value is not None)
    return f"<{type(self).__name__}: {', '.join(texts)}>"


def brief(value: object) -> str:
    """A value in a few characters: a short array, or the shape of a long one."""
    if isinstance(value, np.ndarray):
        if value.size > MAX_NUMBERS_SHOWN or value.ndim > 1:
            return f"{value.shape}"
        return np.array2string(value, precision=4, max_line_width=1000)
    if isinstance(value, float):
        return f"{value:.6g}"
    text = " ".join(repr(value).split())
    return text if len(text) <= MAX_CHARACTERS_SHOWN else f"{text[: MAX_CHARACTERS_SHOWN - 3]}..."


def truncate_lines(lines: list[str], max_lines: int = 10) -> list[str]:
    """The first lines, and how many more there are."""
    if len(lines) <= max_lines:
        return lines
    return [*lines[:max_lines], f"... and {len(lines) - max_lines} more"]


_PAGE = Template("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;
 style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-src 'self'">
<title>$title</title><link rel="icon" href="data:,">
<style>
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
  body { max-width: 62rem; margin: 1.5rem auto; padding: 0 1rem; }
  table { border-collapse: collapse; display: block; overflow-x: auto; margin: 0.6rem 0; }
  td, th { border-bottom: 1px solid #8884; padding: 0.15rem 0.7rem 0.15rem 0; text-align: left; }
  pre { overflow-x: auto; font-size: 0.85rem; }
  .picture { overflow-x: auto; }
  .picture img { width: 100%; min-width: 40rem; max-width: 52rem; background: #fff; }
  @media (max-width: 40rem) {
    body { padding: 0 0.6rem; }
    table { font-size: 0.72rem; }
    td, th { padding-right: 0.35rem; }
    pre { white-space: pre-wrap; }
  }
</style></head>
<body><h1>$title</h1>$body</body></html>
""")


def html_document(title: str, body: str) -> str:
    """A whole page of a body in HTML: it needs no other file and asks nobody outside."""
    return _PAGE.substitute(title=html.escape(title), body=body)


def html_picture(svg: bytes, description: str) -> str:
    """A drawing as a part of a page."""
    data = base64.b64encode(svg).decode()
    picture = f'<img alt="{html.escape(description)}" src="data:image/svg+xml;base64,{data}">'
    return f'<div class="picture">{picture}</div>'


def html_card(title: str, *parts: str) -> str:
    """Something as notebooks show it: a line, and parts in HTML below it."""
    return f"<div><p><b>{html.escape(title)}</b></p>{''.join(parts)}</div>"


def html_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in HTML; cells are escaped."""
    top = "".join(f"<th>{html.escape(text)}</th>" for text in head)
    lines = (
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def html_folded(title: str, text: object, *, is_open: bool = False) -> str:
    """A text under a title that a click opens; of a long one the beginning."""
    opened = " open" if is_open else ""
    shown = str(text)
    if len(shown) > MAX_CHARACTERS_FOLDED:
        shown = shown[: shown.rfind("\n", 0, MAX_CHARACTERS_FOLDED) + 1]
        shown += f"... and {str(text).count(chr(10)) - shown.count(chr(10)) + 1} more lines"
    body = f"<pre>{html.escape(shown)}</pre>"
    return f"<details{opened}><summary>{html.escape(title)}</summary>{body}</details>"


def html_page_inside(page: str, height: int = 360) -> str:
    """A page as a part of another one, from which it can reach nothing."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" loading="lazy" '
        f'style="width:100%;height:{height}px;border:1px solid #8886"></iframe>'
    )

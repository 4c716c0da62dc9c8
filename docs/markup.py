# SPDX-License-Identifier: BSD-3-Clause
"""Markdown of the generated pages: tables, anchors, links, escapes."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from pathlib import Path

from phistar.algebra.identities import with_adjoints
from phistar.algebra.phases import IDENTITIES
from phistar.algebra.printing import to_text
from phistar.algebra.proof import SCALAR_ADJOINT
from phistar.algebra.symbols import SYMBOLS
from phistar.algorithms.catalogue import catalogue, where
from phistar.algorithms.programs import PROGRAMS
from phistar.refs import Ref


def table(kind: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table whose column widths are given for its kind in ``static/pages.css``."""
    titles = list(head)
    yield f"````{{table}}\n:class: wide {kind}\n"
    for cells in (titles, ["---"] * len(titles), *rows):
        yield f"| {' | '.join(cells)} |"
    yield "````"


def anchor(kind: str, name: str) -> str:
    """A place that ``target`` leads to."""
    return f'<span id="{kind}-{name}"></span>'


def target(name: str) -> str | None:
    """The place of a symbol, rule, theorem or program, from the folder of generated pages.

    The adjoint of a rule, whose name ends in a star, stands where the rule does.
    """
    name = name.removesuffix("*")
    if name in catalogue():
        return f"algorithms/{Path(where(name)[0]).stem}.html#theorem-{name}"
    if name in PROGRAMS:
        return f"programs.html#program-{name}"
    if name in SYMBOLS:
        return f"symbols.html#symbol-{name}"
    if name == SCALAR_ADJOINT.name or any(row.name == name for row in IDENTITIES):
        return f"identities.html#rule-{name}"
    return None


def link(name: str, root: str = "") -> str:
    """A name in code letters that leads to its place; ``root`` leads to the generated pages."""
    place = target(name)
    assert place, f"{name} stands on no page"
    says = f' title="{escape(_rules()[name])}"' if name in _rules() else ""
    return f'<a href="{root}{place}"{says}><code>{escape(name)}</code></a>'


@cache
def _rules() -> dict[str, str]:
    """What each rule says, its adjoint included, to be read where its name is."""
    rows = with_adjoints(IDENTITIES)
    return {row.name: f"{to_text(row.lhs)} → {to_text(row.rhs)}" for row in rows}


def spot(place: str) -> str:
    """``file:line`` in code letters that may break after a folder."""
    return f"<code>{place.replace('/', '/<wbr>')}</code>"


def cite(ref: Ref | None) -> str:
    """A place in a paper."""
    return plain(str(ref)) if ref else ""


def plain(text: str) -> str:
    """Text in which stars and underscores are themselves; ``code`` stays as it is."""
    parts = re.split(r"(``.*?``|`.*?`)", text)
    parts[::2] = [re.sub(r"[*_]", r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def sentence(text: str) -> str:
    """Text as a sentence; one that begins with a formula stays as it is."""
    word = text.split()[0].strip(",:;")
    starts = word == "a" or (len(word) > 1 and word.isascii() and word.isalpha())
    return f"{plain(text[0].upper() + text[1:] if starts else text)}."


def count(number: int, what: str) -> str:
    """For instance "1 step", "2 steps"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

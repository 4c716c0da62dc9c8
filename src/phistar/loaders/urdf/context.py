# SPDX-License-Identifier: BSD-3-Clause
"""Where a URDF reader stands and where its findings go: places, problems, what was ignored."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING
from xml.parsers import expat

from phistar.errors import ModelError, PhistarWarning, Severity, StructureWarning
from phistar.loaders.report import Entry, LoadReport
from phistar.loaders.source import Source
from phistar.loaders.urdf.dialect import DRAKE_NAMESPACE, NAMESPACE

if TYPE_CHECKING:
    from lxml.etree import _Element

XACRO_CURE = "Expand the file with xacro first, or load it with trust_xacro=True."

# libxml2 keeps line numbers in 16 bits.
_LAST_LINE = 65535
_LISTED_EACH = 500
_MAX_ERRORS = 10_000
_LONGEST_NAME = 1000


class Context:
    """What every part of the reader needs.

    Attributes:
        source: The document, for places.
        report: Everything found goes there.
        severity: What a bad value is: ``"error"``, or ``"warning"`` for things to draw.
        line: Line of the current top-level element, for places beyond line 65535.
        refused: How many values were bad so far.
        incomplete: Set once a joint had to be left out, so that the hole it leaves in the tree is
            not reported as well.
    """

    def __init__(self, source: Source, report: LoadReport) -> None:
        self.source = source
        self.report = report
        self.severity: Severity = "error"
        self.line = 0
        self.refused = 0
        self.incomplete = False
        self._errors = 0
        self._ignored: Counter[tuple[str, str]] = Counter()

    def where(self, element: _Element) -> str:
        """``file:line`` of an element."""
        line: int = element.sourceline  # type: ignore[assignment]
        if line >= _LAST_LINE:
            line = self.line or line
        return f"{self.source.name}:{line}"

    def error(self, code: str, element: _Element, what: str, cure: str) -> None:
        """Record something that keeps the robot from being built."""
        self.report.add_problem("error", code, self.where(element), what, cure)
        self._errors += 1
        if self._errors >= _MAX_ERRORS:
            what = f"reading stopped after {_MAX_ERRORS} errors."
            self.report.add_problem("error", "too-many", self.where(element), what, "")
            raise ModelError(self.report.errors)

    def warn(
        self,
        code: str,
        element: _Element,
        what: str,
        cure: str,
        category: type[PhistarWarning] = StructureWarning,
    ) -> None:
        """Record something the user should know of."""
        self.report.add_problem("warning", code, self.where(element), what, cure, category)

    def refuse(self, code: str, element: _Element, what: str, cure: str) -> None:
        """Record a bad value: an error, or a warning where only drawing is concerned."""
        self.refused += 1
        if self.severity == "error":
            self.error(code, element, what, cure)
        else:
            self.warn(code, element, what, f"The shape is not drawn. {cure}")

    def ignore(self, element: _Element, what: str, note: str) -> None:
        """List something the model does not hold; beyond a few hundred alike they are counted."""
        kind = (element.tag, note)
        self._ignored[kind] += 1
        if self._ignored[kind] <= _LISTED_EACH:
            self.report.ignored.append(Entry(self.where(element), what, note))

    def name(self, element: _Element) -> str | None:
        """The name of an element that must have one; None after an error."""
        name, tag = element.get("name"), readable(element.tag)
        if not name:
            self.error("no-name", element, f"a <{tag}> has no name.", "Give it a unique name.")
        elif len(name) > _LONGEST_NAME:
            what = f"the <{tag}> {shown(name)} has a name of {len(name)} characters."
            self.error("long-name", element, what, f"At most {_LONGEST_NAME} are allowed.")
            return None
        return name or None

    def default(self, element: _Element, what: str, note: str) -> None:
        """List something the file leaves open and the value taken."""
        self.report.defaulted.append(Entry(self.where(element), what, note))

    def close(self) -> None:
        """List how many entries ``ignore`` only counted."""
        for (tag, note), count in self._ignored.items():
            if count > _LISTED_EACH:
                what = f"{count - _LISTED_EACH} more like <{readable(tag)}>"
                self.report.ignored.append(Entry(self.source.name, what, note))


def shown(text: str, longest: int = 60) -> str:
    """``text`` in quotes, cut if long."""
    return f'"{text}"' if len(text) <= longest else f'"{text[:longest]}..."'


def is_xacro(namespace: str) -> bool:
    """Whether a namespace is one of the spellings of xacro's."""
    return namespace.rstrip("/").endswith("xacro")


@lru_cache(maxsize=1024)
def split_tag(tag: str) -> tuple[str, str]:
    """Namespace (empty if none) and local name of a tag or attribute as lxml spells it."""
    if not tag.startswith("{"):
        return "", tag
    namespace, _, local = tag[1:].partition("}")
    return namespace, local


@lru_cache(maxsize=1024)
def readable(tag: str) -> str:
    """A tag as a person writes it, with a prefix instead of the namespace."""
    namespace, local = split_tag(tag)
    if not namespace:
        return local
    known = {NAMESPACE: "phistar", DRAKE_NAMESPACE: "drake"}
    prefix = "xacro" if is_xacro(namespace) else re.split(r"[:/#]", namespace.rstrip("/"))[-1]
    return f"{known.get(namespace, prefix)}:{local}"


def top_level_lines(source: Source) -> list[int]:
    """Lines of the root's children, for documents longer than libxml2 can number; else empty."""
    if source.data.count(b"\n") < _LAST_LINE - 1:
        return []
    lines: list[int] = []
    depth = 0
    parser = expat.ParserCreate()

    def start(_name: str, _attributes: object) -> None:
        nonlocal depth
        if depth == 1:
            lines.append(parser.CurrentLineNumber)
        depth += 1

    def end(_name: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(source.data, True)
    except expat.ExpatError:
        # An encoding expat does not know: places beyond the last line stay approximate.
        return []
    return lines

# SPDX-License-Identifier: BSD-3-Clause
"""Context of a URDF reader: positions in the file, problems, ignored elements."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING
from xml.parsers import expat

from phistar.errors import ModelError, PhistarWarning, Severity, StructureWarning
from phistar.loaders.load_report import Entry, LoadReport
from phistar.loaders.robot_source import Source
from phistar.loaders.urdf.dialect import DRAKE_NAMESPACE, NAMESPACE

if TYPE_CHECKING:
    from lxml.etree import _Element

XACRO_CURE = "Expand the file with xacro first, or load it with trust_xacro=True."

# libxml2 keeps line numbers in 16 bits.
_MAX_LINE_NUMBER = 65535
_MAX_LISTED_PER_KIND = 500
_MAX_ERRORS = 10_000
MAX_NAME_CHARACTERS = 1000


class Context:
    """State shared by all parts of the reader.

    Attributes:
        source: The document, for positions.
        report: Receives all problems.
        severity: Of a bad value: ``"error"``, or ``"warning"`` for shapes.
        line: Line of the current top-level element, for positions beyond line 65535.
        rejected: Number of bad values so far.
        incomplete: Set once a joint had to be omitted, so that the gap in the tree is not reported
            too.
    """

    def __init__(self, source: Source, report: LoadReport) -> None:
        self.source = source
        self.report = report
        self.severity: Severity = "error"
        self.line = 0
        self.rejected = 0
        self.incomplete = False
        self._errors = 0
        self._ignored: Counter[tuple[str, str]] = Counter()

    def where(self, element: _Element) -> str:
        """``file:line`` of an element."""
        line: int = element.sourceline  # type: ignore[assignment]
        if line >= _MAX_LINE_NUMBER:
            line = self.line or line
        return f"{self.source.name}:{line}"

    def error(self, code: str, element: _Element, what: str, cure: str) -> None:
        """Record an error, which prevents a model."""
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
        """Record a warning."""
        self.report.add_problem("warning", code, self.where(element), what, cure, category)

    def reject(self, code: str, element: _Element, what: str, cure: str) -> None:
        """Record a bad value: an error, or a warning for shapes."""
        self.rejected += 1
        if self.severity == "error":
            self.error(code, element, what, cure)
        else:
            self.warn(code, element, what, f"The shape is not drawn. {cure}")

    def ignore(self, element: _Element, what: str, note: str) -> None:
        """List something that the model does not have; beyond a few hundred of a kind they are
        counted."""
        kind = (element.tag, note)
        self._ignored[kind] += 1
        if self._ignored[kind] <= _MAX_LISTED_PER_KIND:
            self.report.ignored.append(Entry(self.where(element), what, note))

    def name(self, element: _Element) -> str | None:
        """The name of an element that must have one; None after an error."""
        name, tag = element.get("name"), prefixed_tag(element.tag)
        if not name:
            self.error("no-name", element, f"a <{tag}> has no name.", "Give it a unique name.")
        elif len(name) > MAX_NAME_CHARACTERS:
            what = f"the <{tag}> {quote(name)} has a name of {len(name)} characters."
            self.error("long-name", element, what, f"At most {MAX_NAME_CHARACTERS} are allowed.")
            return None
        return name or None

    def default(self, element: _Element, what: str, note: str) -> None:
        """List a default of something that the file does not specify."""
        self.report.defaulted.append(Entry(self.where(element), what, note))

    def close(self) -> None:
        """List how many entries ``ignore`` only counted."""
        for (tag, note), count in self._ignored.items():
            if count > _MAX_LISTED_PER_KIND:
                what = f"{count - _MAX_LISTED_PER_KIND} more like <{prefixed_tag(tag)}>"
                self.report.ignored.append(Entry(self.source.name, what, note))


def quote(text: str, longest: int = 60) -> str:
    """``text`` in quotes, truncated if long."""
    return f'"{text}"' if len(text) <= longest else f'"{text[:longest]}..."'


def is_xacro(namespace: str) -> bool:
    """Whether a namespace is one of the spellings of xacro's."""
    return namespace.rstrip("/").endswith("xacro")


def split_tag(tag: str) -> tuple[str, str]:
    """Namespace (empty if none) and local name of a tag or attribute as lxml spells it."""
    if not tag.startswith("{"):
        return "", tag
    namespace, _, local = tag[1:].partition("}")
    return namespace, local


def prefixed_tag(tag: str) -> str:
    """A tag with a prefix instead of the namespace."""
    if tag[:1] != "{":
        return tag
    namespace, local = split_tag(tag)
    if not namespace:
        return local
    known = {NAMESPACE: "phistar", DRAKE_NAMESPACE: "drake"}
    prefix = "xacro" if is_xacro(namespace) else re.split(r"[:/#]", namespace.rstrip("/"))[-1]
    return f"{known.get(namespace, prefix)}:{local}"


def top_level_lines(source: Source) -> list[int]:
    """Lines of the root's children, for documents longer than libxml2 can number; else empty."""
    if source.data.count(b"\n") < _MAX_LINE_NUMBER - 1:
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
        # An encoding expat does not know: positions beyond the last line are approximate.
        return []
    return lines

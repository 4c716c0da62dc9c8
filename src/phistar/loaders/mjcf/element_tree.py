# SPDX-License-Identifier: BSD-3-Clause
"""An MJCF document as a light tree; every element has its file and line.

The tree is written out again for MuJoCo with one element per line, so that a line number in one of
MuJoCo's messages names exactly one element, whatever file it was included from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from phistar.loaders.load_report import LoadReport
from phistar.loaders.robot_source import Source
from phistar.loaders.xml import parse_xml

if TYPE_CHECKING:
    from lxml.etree import _Element


@dataclass(eq=False)
class Element:
    """One XML element; ``where`` is its ``file:line``."""

    tag: str
    attributes: dict[str, str]
    where: str
    parent: Element | None = field(default=None, repr=False)
    children: list[Element] = field(default_factory=list, repr=False)

    def get(self, name: str, default: str = "") -> str:
        """The text of an attribute."""
        return self.attributes.get(name, default)

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in document order."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))

    def enclosing(self, tag: str) -> Element | None:
        """This element or the nearest one around it that has ``tag``."""
        element: Element | None = self
        while element is not None and element.tag != tag:
            element = element.parent
        return element

    @property
    def label(self) -> str:
        """Its name in messages: ``joint "j"``, ``joint of body "a"`` or ``key in keyframe``."""
        name = self.get("name")
        if name:
            return f'{self.tag} "{name}"'
        around = self.parent.enclosing("body") if self.parent is not None else None
        if around is not None:
            owner = around.get("name")
            return f'{self.tag} of body "{owner}"' if owner else f"{self.tag} of an unnamed body"
        in_section = self.parent is not None and self.parent.parent is not None
        return f"{self.tag} in {self.parent.tag}" if in_section and self.parent else self.tag

    @property
    def start_tag(self) -> str:
        """The start tag, truncated if long."""
        text = f"<{' '.join([self.tag, *_attribute_texts(self)])}>"
        return text if len(text) <= 120 else f"{text[:117]}..."


def read_tree(source: Source, report: LoadReport | None = None) -> Element:
    """The root of a well-formed document without DOCTYPE; the report takes warnings.

    Raises:
        ModelError: Not well-formed XML.
        UnsafeFileError: A DOCTYPE, too large, or nested too deep.
    """
    origin = parse_xml(source, report)
    root = _element(origin, source)
    stack = [(origin, root)]
    while stack:
        old, new = stack.pop()
        for child in old:
            element = _element(child, source)
            element.parent = new
            new.children.append(element)
            stack.append((child, element))
    return root


def _element(node: _Element, source: Source) -> Element:
    attributes = {_plain(key): str(value) for key, value in node.attrib.items()}
    return Element(_plain(node.tag), attributes, f"{source.name}:{node.sourceline}")


def _plain(name: str | bytes) -> str:
    """A tag or attribute name without its namespace; MJCF has none."""
    return str(name).rpartition("}")[2]


def render(root: Element, first_line: int) -> tuple[str, dict[int, Element]]:
    """The document as text, one element per line.

    Args:
        root: Root of the document.
        first_line: Number of the line on which the text starts; blank lines come before it, so
            that the documents of one robot share no line number.

    Returns:
        The text and the element that starts on each line.
    """
    texts: list[str] = []
    lines: dict[int, Element] = {}
    stack: list[Element | str] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            texts[-1] += item
            continue
        lines[first_line + len(texts)] = item
        texts.append(f"<{' '.join([item.tag, *_attribute_texts(item)])}>")
        stack.append(f"</{item.tag}>")
        stack.extend(reversed(item.children))
    return "\n" * (first_line - 1) + "\n".join(texts), lines


def _attribute_texts(element: Element) -> list[str]:
    return [f"{name}={quoteattr(value)}" for name, value in element.attributes.items()]

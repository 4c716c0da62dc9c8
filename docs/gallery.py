# SPDX-License-Identifier: BSD-3-Clause
"""The gallery: ``{gallery}`` becomes a small copy of every picture of the pages, with its place.

Pictures are found in the pages as they were read, those that cells drew and those that Markdown
shows, so a new one is there by itself. Motions to play, which are pages inside of pages, are told
apart by their frames.
"""

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

FRAME = "<iframe"
"""How the HTML of a motion that can be played begins."""


class gallery(nodes.General, nodes.Element):  # noqa: N801
    """The place of the pictures, until all pages are read."""


class Gallery(SphinxDirective):
    """The directive: leaves its place."""

    def run(self) -> list[nodes.Node]:
        """Nothing is known yet."""
        return [gallery()]


def setup(app: Any) -> dict[str, bool]:
    """Make the directive known to Sphinx."""
    app.add_node(gallery)
    app.add_directive("gallery", Gallery)
    app.connect("doctree-resolved", _fill)
    # Pictures come and go on other pages.
    app.connect("env-get-outdated", lambda *_: ["gallery"])
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _fill(app: Any, tree: nodes.document, page: str) -> None:
    for place in list(tree.findall(gallery)):
        place.replace_self(list(_sections(app, page)))


def _sections(app: Any, page: str) -> Iterator[nodes.Node]:
    """Pages that show something, in the order of the table of contents."""
    env = app.env
    order = list(_reading_order(env, env.config.root_doc))
    for name in order:
        tiles = list(_tiles(app, name, page)) if name != page else []
        if tiles:
            yield nodes.rubric("", env.titles[name].astext())
            yield nodes.container("", *tiles, classes=["gallery"])


def _reading_order(env: Any, page: str) -> Iterator[str]:
    yield page
    for below in env.toctree_includes.get(page, ()):
        yield from _reading_order(env, below)


def _tiles(app: Any, name: str, page: str) -> Iterator[nodes.Node]:
    """A link with a small picture for each picture of a page, one in words for each motion."""
    tree = app.env.get_doctree(name)
    for node in tree.findall(lambda n: isinstance(n, (nodes.image, nodes.raw))):
        section = _section(node)
        address = app.builder.get_relative_uri(page, name)
        target = f"{address}#{section['ids'][0]}" if section is not None else address
        title = section.next_node(nodes.title).astext() if section is not None else name
        if isinstance(node, nodes.image):
            picture = node.deepcopy()
            picture["classes"] = [*picture.get("classes", ()), "thumbnail"]
            picture["alt"] = title
            shown: list[nodes.Node] = [picture, nodes.inline("", title)]
        elif FRAME in node.astext():
            shown = [nodes.inline("", "▶", classes=["play"]), nodes.inline("", title)]
        else:
            continue
        link = nodes.reference("", "", *shown, refuri=target, internal=True)
        yield nodes.paragraph("", "", link, classes=["tile"])


def _section(node: nodes.Node) -> nodes.section | None:
    while node is not None and not isinstance(node, nodes.section):
        node = node.parent
    return node

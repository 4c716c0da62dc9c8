# SPDX-License-Identifier: BSD-3-Clause
"""What was built must work without a network: ``python docs/offline.py docs/_build/html``.

No page may load anything from outside (scripts, styles, fonts, images), and every link within the
pages must lead to a place that exists. Links to other sites that a reader may click are fine.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "link": ("href",),
    "use": ("href", "xlink:href"),
    "image": ("href", "xlink:href"),
}
"""Attributes that make a browser ask for something at once."""

CSS_URL = re.compile(r"""(?:url\(\s*|@import\s+)["']?\s*((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
SCRIPT_URL = re.compile(r"""(?:fetch|import|importScripts)\(\s*["'`]((?:https?:)?//[^"'`]+)""")


class _Page(HTMLParser):
    """Requests, links and anchors of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value for name, value in attrs if value is not None}
        for attribute in LOADED.get(tag, ()):
            self.requests += [held[attribute]] if attribute in held else []
        self.anchors |= {held[name] for name in ("id", "name") if name in held}
        if tag == "a" and "href" in held:
            self.links.append(held["href"])
        if "style" in held:
            self.requests += CSS_URL.findall(held["style"])


@cache
def _page(path: Path) -> _Page:
    page = _Page()
    text = path.read_text(encoding="utf-8")
    page.feed(text)
    for style in re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL):
        page.requests += CSS_URL.findall(style)
    for script in re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL):
        page.requests += SCRIPT_URL.findall(script)
    return page


def problems(folder: Path) -> Iterator[str]:
    """A line for each request that would leave, and for each link within that leads nowhere."""
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder).as_posix()
        page = _page(path)
        outside = [url for url in page.requests if urlsplit(url).netloc]
        yield from (f"{name}: loads {url} from outside" for url in outside)
        yield from (f"{name}: no such place as {url}" for url in _dead(path, page))
    for pattern, files in ((CSS_URL, "*.css"), (SCRIPT_URL, "*.js")):
        for path in sorted(folder.rglob(files)):
            for url in pattern.findall(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(folder).as_posix()}: loads {url} from outside"


def _dead(path: Path, page: _Page) -> Iterator[str]:
    for url in dict.fromkeys((*page.links, *page.requests)):
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            continue
        target = path.parent / unquote(parts.path) if parts.path else path
        anchor = unquote(parts.fragment)
        anchored = anchor and target.suffix == ".html"
        if not target.exists() or (anchored and anchor not in _page(target.resolve()).anchors):
            yield url


def main(folder: Path) -> int:
    """Print every problem; the exit code says whether there was one."""
    pages = len(list(folder.rglob("*.html")))
    found = list(problems(folder.resolve()))
    for line in found:
        print(line, file=sys.stderr)
    if not pages:
        print(f"{folder} holds no pages", file=sys.stderr)
    return 1 if found or not pages else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))

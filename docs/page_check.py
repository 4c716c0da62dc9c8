# SPDX-License-Identifier: BSD-3-Clause
"""How pages look in a browser: ``python docs/page_check.py docs/_build/html [--pictures FOLDER]``.

On wide and narrow screens nothing may stick out, neither of the page nor of a table; what needs
room (code, formulas) scrolls in its own box. In the dark, text must stand out from what is behind
it. Needs playwright and Debian's chromium, as the tests of the viewer do.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WIDTHS = (1280, 400)
"""Screens [px]: a laptop, a telephone."""

LEAST_CONTRAST = 4.5
"""Of text on its background, by WCAG 2 (level AA) for text of normal size."""

LARGE_CONTRAST = 3.0
"""The same for large text: 24 px, or 18.66 px in bold."""

STICKING_OUT = """() => {
  const room = document.documentElement.clientWidth;
  const found = [];
  if (document.documentElement.scrollWidth > room + 1)
    found.push(`the page is ${document.documentElement.scrollWidth} px wide`);
  for (const box of document.querySelectorAll('.table-wrapper'))
    if (box.scrollWidth > box.clientWidth + 1)
      found.push(`a table of ${box.scrollWidth} px in ${box.clientWidth} px: ` +
        box.innerText.trim().replace(/\\s+/g, ' ').slice(0, 60));
  return found;
}"""

FAINT = """([least, large]) => {
  const numbers = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(x => x / 255)
    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const over = (top, below) => {
    const a = top.length > 3 ? top[3] : 1;
    return [0, 1, 2].map(i => a * top[i] + (1 - a) * below[i]);
  };
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const colour = numbers(getComputedStyle(e).backgroundColor);
      layers.push(colour);
      if (colour.length === 3 || colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const found = {};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    const seen = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    if (!text || !seen || element.closest('script, style, iframe, .visually-hidden')) continue;
    const style = getComputedStyle(element);
    const below = behind(element);
    const colour = over(numbers(style.color), below);
    const [a, b] = [light(colour), light(below)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? large : least;
    const place = element.className || element.tagName;
    if (contrast < needed && !(place in found))
      found[place] = `contrast ${contrast.toFixed(2)} of "${text.slice(0, 30)}" (${place})`;
  }
  return Object.values(found);
}"""


def problems(folder: Path, pictures: Path | None = None) -> Iterator[str]:
    """A line for each thing that sticks out or is faint.

    Args:
        folder: Pages as they were built.
        pictures: Folder in which screenshots are left, wide and narrow.

    Raises:
        RuntimeError: There is no chromium.
    """
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise RuntimeError("chromium is not installed: apt-get install chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(color_scheme="dark", offline=True)
        page = context.new_page()
        for path in _pages(folder):
            name = path.relative_to(folder).as_posix()
            page.set_viewport_size({"width": WIDTHS[0], "height": 900})
            page.goto(path.resolve().as_uri(), wait_until="load")
            yield from (f"{name} in the dark: {each}" for each in _faint(page))
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                yield from (f"{name} at {width} px: {x}" for x in page.evaluate(STICKING_OUT))
                if pictures is not None:
                    _photograph(page, pictures / f"{path.stem}_{width}.png")
        browser.close()


def _pages(folder: Path) -> list[Path]:
    """All pages with a text of ours; Sphinx's search and index are left out."""
    own = {"genindex.html", "search.html", "py-modindex.html"}
    return [path for path in sorted(folder.rglob("*.html")) if path.name not in own]


def _faint(page: Any) -> list[str]:
    return list(page.evaluate(FAINT, [LEAST_CONTRAST, LARGE_CONTRAST]))


def _photograph(page: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path)


def main(arguments: list[str] | None = None) -> int:
    """Print every problem; the exit code says whether there was one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the pages are")
    parser.add_argument("--pictures", type=Path, help="folder for screenshots")
    options = parser.parse_args(arguments)
    if not _pages(options.folder):
        print(f"{options.folder} holds no pages: make docs", file=sys.stderr)
        return 1
    found = list(problems(options.folder, options.pictures))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())

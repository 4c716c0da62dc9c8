# SPDX-License-Identifier: BSD-3-Clause
"""Formulas as MathML, which browsers draw by themselves: a page asks nobody for a script.

A renderer for Sphinx's ``html_math_renderer``: TeX becomes MathML when the page is built. Browsers
do not break MathML into lines, so a displayed formula is cut into one piece per term; pieces wrap.
"""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

_BREAK = re.compile(r" (?=[=+-] )|\\\\")
"""Before = + - with spaces around, as ``to_latex`` writes sums; and where TeX has a new line."""

_TOUCHES = (
    # Nothing here is tall; a bracket of a piece would stretch to its own piece alone.
    (re.compile('stretchy="true"'), 'stretchy="false"'),
    # The letter phi as the text beside it has it.
    (re.compile("&#x003D5;"), "&#x003C6;"),
    # Marks above a letter as text; as accents they overlap it where no math font is installed.
    (re.compile('<mover accent="true">'), "<mover>"),
    (re.compile("&#x0005E;(?=</mo></mover>)"), "&#x002C6;"),
    # A piece may begin with its sign, which still stands between two terms.
    (re.compile("^(<math[^>]*><mrow>)<mo>"), r'\1<mo form="infix">'),
)

_BRACES = {"{": 1, "}": -1}


def setup(app: Any) -> dict[str, bool]:
    """Make the renderer known to Sphinx by the name ``mathml``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mathml(tex: str) -> str:
    """One formula as a ``<math>`` element.

    Raises:
        ValueError: Part of the formula was not understood.
    """
    converted = convert(tex.strip())
    if left := re.search(r"<mi>\\[^<]*</mi>|<mtext>\\[^<]*</mtext>", converted):
        raise ValueError(f"no MathML for {left.group()} in the formula {tex!r}")
    for found, put in _TOUCHES:
        converted = found.sub(put, converted)
    return converted


def pieces(tex: str) -> list[str]:
    """A formula cut where it may wrap: before = + and -, outside of braces."""
    cuts = [match for match in _BREAK.finditer(tex) if _depth(tex[: match.start()]) == 0]
    starts = [0, *(match.end() for match in cuts)]
    ends = [*(match.start() for match in cuts), len(tex)]
    return [piece for a, b in zip(starts, ends, strict=True) if (piece := tex[a:b].strip())]


def _depth(tex: str) -> int:
    return sum(_BRACES.get(character, 0) for character in tex)


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(writer.starttag(node, "div", CLASS="formula"))
    writer.body.append("\n".join(mathml(piece) for piece in pieces(node.astext())))
    writer.body.append("</div>\n")
    raise nodes.SkipNode

# SPDX-License-Identifier: BSD-3-Clause
"""A robot's tree of links as lines of text. Iterative, and narrow: two columns per generation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich.text import Text

from phistar.cli.terminal import axis_text, clean, number
from phistar.model import GROUND_NAME, Joint, LoopJoint, Mimic, Model
from phistar.model.components import Coupling, Loop
from phistar.model.kinematic_loops import active_loops

MAX_INDENT = 40
"""Columns of guides; deeper links have their depth as a number."""

MAX_MARKS = 3
"""Loops that are named beside a link."""

_FANCY = ("├─", "└─", "│ ", "→", "↔")
_PLAIN = ("|-", "`-", "| ", "->", "<->")


class TreeLine(NamedTuple):
    """A line of the drawing: guides and text."""

    guides: str
    text: Text

    @property
    def plain(self) -> str:
        """The line without styles."""
        return f"{self.guides}{self.text.plain}"


def tree_lines(model: Model, ascii_only: bool = False) -> Iterator[TreeLine]:
    """One line per link, parents first: guides, joint, kind, link, and the loops that hold it."""
    fork, end, bar, arrow, tie = _PLAIN if ascii_only else _FANCY
    held, coupled = _held(model)
    children: dict[str, list[Joint]] = {}
    for joint in model.joints.values():
        children.setdefault(joint.parent, []).append(joint)
    carried = {joint.child for joint in model.joints.values()}
    roots = [link.name for link in model.links if link.name not in carried]
    if GROUND_NAME in children:
        roots.append(GROUND_NAME)
    for root in roots:
        top = Text(clean(root), style="bold")
        yield TreeLine("", top.append_text(_marks(held.get(root, []), tie)))
        stack = _entries(children.get(root, []), 1, "")
        while stack:
            joint, depth, guides, last = stack.pop()
            guide = guides + (end if last else fork)
            text = _text(joint, depth, len(guide) > MAX_INDENT, arrow)
            loops = coupled.get(joint.name, []) + held.get(joint.child, [])
            yield TreeLine(f"{guide} ", text.append_text(_marks(loops, tie)))
            child_guides = guides + ("  " if last else bar)
            stack += _entries(children.get(joint.child, []), depth + 1, child_guides[:MAX_INDENT])


def _held(model: Model) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Names of the active loops at each link, and of the couplings at each joint."""
    held: dict[str, list[str]] = {}
    coupled: dict[str, list[str]] = {}
    for loop in active_loops(model.loops):
        if isinstance(loop, LoopJoint):
            for link in (loop.predecessor, loop.successor):
                held.setdefault(link, []).append(loop.name)
        else:
            for joint in filter(None, (loop.joint, loop.source)):
                coupled.setdefault(joint, []).append(loop.name)
    return held, coupled


def _marks(loops: list[str], tie: str) -> Text:
    """The loops at a link, the first few by name."""
    if not loops:
        return Text()
    more = f" and {len(loops) - MAX_MARKS} more" if len(loops) > MAX_MARKS else ""
    shown = ", ".join(clean(name) for name in loops[:MAX_MARKS])
    return Text(f"  {tie} {shown}{more}", style="magenta")


_Entry = tuple[Joint, int, str, bool]


def _entries(joints: list[Joint], depth: int, guides: str) -> list[_Entry]:
    """Joints in the order of a stack, last first."""
    last = len(joints) - 1
    return [(joint, depth, guides, k == last) for k, joint in enumerate(joints)][::-1]


def _text(joint: Joint, depth: int, deep: bool, arrow: str) -> Text:
    line = Text(f"(depth {depth}) " if deep else "", style="dim" if joint.kind == "fixed" else "")
    line.append(clean(joint.name), style="cyan" if joint.joint_kind.nv else "")
    line.append(f" {kind_text(joint)} {arrow} ", style="dim")
    line.append(clean(joint.child))
    if joint.mimic:
        line.append(f"  {mimic_text(joint.mimic)}", style="magenta")
    return line


def kind_text(joint: Joint) -> str:
    """The kind and, where it has one, the axis."""
    axis = getattr(joint.joint_kind, "axis", None)
    return f"{joint.kind} {axis_text(axis)}" if axis else joint.kind


def mimic_text(law: Mimic) -> str:
    """The law of a mimic joint."""
    factor = "" if law.multiplier == 1.0 else f"{number(law.multiplier)} * "
    if not law.offset:
        return f"= {factor}{clean(law.joint)}"
    sign = "-" if law.offset < 0 else "+"
    return f"= {factor}{clean(law.joint)} {sign} {number(abs(law.offset))}"


def loop_text(loop: Loop, ascii_only: bool = False) -> str:
    """A loop joint or coupling on one line."""
    off = "" if loop.active else " (switched off)"
    if isinstance(loop, LoopJoint):
        tie = (_PLAIN if ascii_only else _FANCY)[4]
        axis = f" {axis_text(loop.axis)}" if loop.kind in _WITH_AXIS else ""
        ends = f"{loop.predecessor} {tie} {loop.successor}"
        return clean(f"{loop.name}: {loop.kind}{axis}, {ends}{off}")
    return clean(f"{loop.name}: coupling, {_law(loop)}{off}")


_WITH_AXIS = ("revolute", "prismatic", "cylindrical", "planar")


def _law(loop: Coupling) -> str:
    y0, x0 = loop.references
    if not loop.source:
        held = loop.coefficients[0] if loop.coefficients else 0.0
        return f"{loop.joint} = {number(y0 + held)}"
    shift = f"({loop.source} - {number(x0)})" if x0 else loop.source
    terms = [f"{number(y0)}"] if y0 else []
    for power, factor in enumerate(loop.coefficients):
        if factor:
            times = "" if power == 0 else f" {shift}" + (f"^{power}" if power > 1 else "")
            terms.append(f"{number(factor)}{times}")
    return f"{loop.joint} = {' + '.join(terms) or '0'}"

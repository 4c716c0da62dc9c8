# SPDX-License-Identifier: BSD-3-Clause
"""MuJoCo's error messages -> problems that name file, line, element and cure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from phistar.errors import Problem
from phistar.loaders.mjcf.element_tree import Element

_LINE = re.compile(r"\bline (\d+)")
_IDENTITY = re.compile(r"Element name '.*', id (\d+)")
_PREFIX = re.compile(r"^(?:XML )?(?:Error: )*")

# (MuJoCo's message, our message, suggested fix). {first}, {second} are the groups of the match,
# {role} the attribute that holds the first one, other names attributes; empty where there is none.
_MESSAGE_RULES = (
    (
        r"mass and inertia of moving bodies",
        "moving body without mass or inertia",
        "Give it an <inertial>, or geoms with mass.",
    ),
    (
        r"inertia must satisfy A \+ B >= C",
        "the principal moments of inertia violate the triangle inequality",
        'Recompute them, or set <compiler balanceinertia="true"/>.',
    ),
    (
        r"inertia must have positive eigenvalues",
        "fullinertia must be positive definite",
        "Check the order (xx yy zz xy xz yz) and the signs.",
    ),
    (
        r"range\[0\] should be smaller than range\[1\]",
        'range "{range}": range[0] must be < range[1]',
        "Swap or correct them.",
    ),
    (
        r"has `range` but not `limited`",
        'range "{range}" given but limited unspecified',
        'Add limited="true", or set <compiler autolimits="true"/>.',
    ),
    (
        r"unknown default class name '(.*)'",
        'unknown default class "{first}"',
        "Declare it in <default>, or correct the name.",
    ),
    (
        r"unknown default childclass",
        'unknown default childclass "{childclass}"',
        "Declare it in <default>, or correct the name.",
    ),
    (
        r"invalid qpos size, expected (\d+), got (\d+)",
        "keyframe qpos has {second} values, expected {first}",
        "Give one value per coordinate (7 for a free joint, 4 for a ball).",
    ),
    (
        r"World body cannot have joints",
        "a joint in the worldbody",
        "The world does not move: put the joint into a body.",
    ),
    (
        r"invalid keyword: '(.*)'",
        'unknown {role} "{first}"',
        "See MuJoCo's XML reference for the words allowed here.",
    ),
    (
        r"Schema violation: unrecognized attribute: '(.*)'",
        'unknown attribute "{first}"',
        "Remove it or correct its name.",
    ),
    (
        r"Schema violation: unrecognized element",
        "MJCF has no such element here",
        "Remove it, correct its name or move it.",
    ),
    (
        r"free joint can only be used on top level",
        "a free joint below another body",
        "Move the body into the worldbody.",
    ),
    (r"axis too small", 'axis "{axis}" is zero', "Give a direction."),
    (
        r"repeated name '(.*)' in (\w+)",
        'duplicate {second} name "{first}"',
        "Names must be unique.",
    ),
    (
        r"unknown element '(.*)' in equality",
        'equality refers to unknown {role} "{first}"',
        "Correct the name, or declare it.",
    ),
)


class LineIndex:
    """Finds the element of a message by the line of the text given to MuJoCo."""

    def __init__(self, elements: Mapping[int, Element], file: str) -> None:
        self.elements = elements
        self.file = file

    def element(self, message: str) -> Element | None:
        """The element that a message names, if any."""
        for number in _LINE.findall(message):
            if int(number) in self.elements:
                return self.elements[int(number)]
        identity = _IDENTITY.search(message)
        if identity and "keyframe" in message:
            keys = [e for e in self.elements.values() if e.tag == "key"]
            index = int(identity.group(1))
            return keys[index] if index < len(keys) else None
        return None

    def where(self, message: str) -> str:
        """``file:line`` of that element, or the file alone."""
        element = self.element(message)
        return self.file if element is None else element.where


def problem_of(message: str, lines: LineIndex) -> Problem:
    """The problem that an error message of MuJoCo states."""
    element = lines.element(message)
    where = lines.where(message)
    text = _PREFIX.sub("", message.strip().splitlines()[0])
    label = f"{element.label}: " if element is not None else ""
    shown = f": {element.start_tag}" if element is not None else ""
    attributes = element.attributes if element is not None else {}
    for pattern, template, cure in _MESSAGE_RULES:
        match = re.search(pattern, message)
        if match:
            what = template.format_map(_MessageFields(attributes, match.groups()))
            return Problem("error", "mujoco", where, f"{label}{what}{shown}.", cure)
    cure = "MuJoCo's XML reference says what is allowed here."
    return Problem("error", "mujoco", where, f"{label}MuJoCo rejects it: {text}{shown}.", cure)


class _MessageFields(dict[str, str]):
    """Values of the fields of a message template."""

    def __init__(self, attributes: Mapping[str, str], groups: tuple[str | None, ...]) -> None:
        super().__init__(attributes)
        self.update(zip(("first", "second"), (g or "" for g in groups), strict=False))
        holders = [name for name, text in attributes.items() if text == self["first"]]
        self["role"] = holders[-1].rstrip("0123456789") if holders else "word"

    def __missing__(self, key: str) -> str:
        return ""

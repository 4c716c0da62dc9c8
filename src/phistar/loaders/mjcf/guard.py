# SPDX-License-Identifier: BSD-3-Clause
"""Checks of an MJCF document before MuJoCo reads it: sizes, numbers, masses.

MuJoCo accepts NaN and <replicate> of any size, so both are checked here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from phistar.errors import Problem, UnitWarning, UnsafeFileError
from phistar.loaders.load_report import LoadReport
from phistar.loaders.mjcf.element_tree import Element
from phistar.loaders.mjcf.mjcf_files import ModelFiles

# MuJoCo's parser and compiler take time quadratic in the number of elements; at these limits they
# need about a second. Real robots have up to 3 000.
MAX_ELEMENTS = 10_000
"""Largest number of elements of a robot's documents."""
MAX_COPIES = 4_000
"""Largest number of elements that <replicate>, <attach> and the like may add."""
MAX_NUMBER = 1e100
"""Numbers beyond this are rejected: their products would overflow."""

# Attributes with names or words, in which "nan" and "inf" are just letters.
_TEXT_ATTRIBUTE_NAMES = (
    "name class childclass file fileright fileup fileleft filedown filefront fileback model prefix "
    "target body body1 body2 joint joint1 joint2 jointinparent geom geom1 geom2 site site1 site2 "
    "sidesite refsite cranksite slidersite tendon tendon1 tendon2 actuator mesh hfield material "
    "texture flex node objname refname objtype reftype plugin instance key value data content_type "
    "sep camera"
)
_TEXT_ATTRIBUTES = frozenset(_TEXT_ATTRIBUTE_NAMES.split())
# Largest value of attributes that make MuJoCo allocate or compute.
_MAX_VALUES = {
    ("numeric", "size"): 100_000,
    ("mesh", "params"): 300,
    ("hfield", "nrow"): 3_000,
    ("hfield", "ncol"): 3_000,
}
_MAX_SAMPLES = 1_000


def check_limits(files: ModelFiles, report: LoadReport) -> None:
    """Report the problems of a robot's documents.

    Args:
        files: The documents, includes in place.
        report: Receives a problem for every value that is not a number, every negative mass and
            every angle that looks like degrees.

    Raises:
        UnsafeFileError: The documents exceed the limits of this module.
    """
    _check_size(files)
    for root in files.documents:
        radians = _in_radians(root)
        for element in root.walk():
            report.problems += _number_problems(element)
            report.problems += _mass_problems(element)
            if radians:
                report.problems += _degree_hints(element)


def _check_size(files: ModelFiles) -> None:
    element_count = sum(1 for root in files.documents for _ in root.walk())
    if element_count > MAX_ELEMENTS:
        what = f"{element_count} elements are more than the limit of {MAX_ELEMENTS}."
        raise _too_big(files.main, what)
    models: dict[str, float] = {}
    # A sub-model is registered after those it uses, so that their sizes are known here.
    for name, root in files.models.items():
        models[name] = _expanded_count(root, _attached(root, models))
    copies = _expanded_count(files.main, _attached(files.main, models)) - element_count
    if copies > MAX_COPIES:
        cause = next((e for e in files.main.walk() if e.tag in _MULTIPLYING_TAGS), files.main)
        what = (
            f"{cause.start_tag} and the like would add about {copies:.3g} elements, "
            f"the limit is {MAX_COPIES}."
        )
        raise _too_big(cause, what)
    for root in files.documents:
        for element in root.walk():
            _check_requested_sizes(element)


_MULTIPLYING_TAGS = frozenset({"replicate", "attach", "flexcomp", "composite"})
_DEFAULT_COUNTS = {"flexcomp": "10 10 10", "composite": "1 1 1"}
# A vertex of a flexible part becomes a body with three joints.
_ELEMENTS_PER_VERTEX = 4


def _attached(root: Element, models: Mapping[str, float]) -> dict[str, float]:
    """Sizes of the sub-models by the name under which a document attaches them."""
    assets = [e for e in root.walk() if e.tag == "model" and e.get("file") in models]
    sizes = {e.get("name"): models[e.get("file")] for e in assets}
    # An unnamed asset has the name its own file gives it: count the largest.
    sizes[""] = max(sizes.values(), default=0.0)
    return sizes


def _expanded_count(element: Element, models: Mapping[str, float]) -> float:
    """Number of elements that this one and those in it become."""
    child_count = sum(_expanded_count(child, models) for child in element.children)
    if element.tag == "attach":
        return 1 + models.get(element.get("model"), models[""])
    if element.tag in _MULTIPLYING_TAGS:
        count = _product(element.get("count", _DEFAULT_COUNTS.get(element.tag, "1")))
        # An empty <replicate> still costs MuJoCo its iterations.
        each = max(child_count, 1) if element.tag == "replicate" else _ELEMENTS_PER_VERTEX
        return 1 + count * each
    return 1 + child_count


def _product(text: str) -> float:
    """Product of the numbers in an attribute; MuJoCo rejects other text."""
    return math.prod(max(1.0, abs(x)) for x in _numbers(text))


def _check_requested_sizes(element: Element) -> None:
    for name, text in element.attributes.items():
        default = _MAX_SAMPLES if name == "nsample" else math.inf
        limit = _MAX_VALUES.get((element.tag, name), default)
        if max(_numbers(text), default=0.0) > limit:
            what = f'{element.label}: {name} "{text}" is more than the limit of {limit:g}.'
            raise _too_big(element, what)
    if element.tag == "flexcomp" and "file" in element.attributes:
        what = f'{element.label}: flexible bodies made from a file ("{element.get("file")}").'
        cure = "They are not rigid links: remove the <flexcomp>."
        raise UnsafeFileError([Problem("error", "flex-file", element.where, what, cure)])


def _too_big(element: Element, what: str) -> UnsafeFileError:
    return UnsafeFileError([Problem("error", "too-big", element.where, what, "Make it smaller.")])


def _numbers(text: str) -> list[float]:
    """The numbers in an attribute; empty unless all words are numbers."""
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        return []


def _number_problems(element: Element) -> Iterator[Problem]:
    for name, text in element.attributes.items():
        if name in _TEXT_ATTRIBUTES:
            continue
        numbers = _numbers(text)
        unlimited = name.endswith("range") and not any(math.isnan(x) for x in numbers)
        if unlimited or all(abs(x) <= MAX_NUMBER for x in numbers):
            continue
        finite = all(math.isfinite(x) for x in numbers)
        reason = "is absurdly large" if finite else "is not finite"
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        what = f'{element.label}: {name} "{shown}" {reason}.'
        yield Problem("error", "not-finite", element.where, what, "Give finite numbers.")


def _mass_problems(element: Element) -> Iterator[Problem]:
    if element.tag not in ("inertial", "geom"):
        return
    for value in _numbers(element.get("mass")):
        if value < 0:
            body = element.enclosing("body")
            owner = body.label if body is not None and element.tag == "inertial" else element.label
            what = f"{owner}: negative mass {value:g} kg."
            yield Problem("error", "negative-mass", element.where, what, "It must be positive.")


def _in_radians(root: Element) -> bool:
    compilers = (e for e in root.walk() if e.tag == "compiler")
    return any(e.get("angle") == "radian" for e in compilers)


def _degree_hints(element: Element) -> Iterator[Problem]:
    angles = _numbers(element.get("euler"))
    if any(2 * math.pi < abs(x) <= MAX_NUMBER for x in angles):
        what = f'{element.label}: euler "{element.get("euler")}" with angle="radian" is over 2 pi.'
        cure = 'It looks like degrees: use <compiler angle="degree"/> or give radians.'
        yield Problem("warning", "degrees", element.where, what, cure, UnitWarning)

# SPDX-License-Identifier: BSD-3-Clause
"""Safe XML: no DTD, no entities, no network, bounded depth; errors name file and line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from phistar.errors import ModelError, Problem, StructureWarning, UnsafeFileError
from phistar.loaders.load_report import LoadReport
from phistar.loaders.robot_source import Source, check_size

if TYPE_CHECKING:
    from lxml.etree import XMLParser, _Element, _ListErrorLog

MAX_ELEMENTS = 1_250_000
MAX_ATTRIBUTES = 2_000_000
"""Largest numbers of elements and attributes of a document; a 100 000-link chain has 0.8 and 1.3
million."""

_PROLOGUE = rb"(?:\xef\xbb\xbf)?(?:\s++|<\?.*?\?>|<!--.*?-->)*+"
_DOCTYPE = re.compile(_PROLOGUE + rb"<!(?:DOCTYPE\s*(?P<name>[^\s>\[]*)|ENTITY)", re.DOTALL)
_ROOT = re.compile(_PROLOGUE + rb"<[^\s<>/!?]+", re.DOTALL)

_DECLARATION = re.compile(
    r"(?:\ufeff|\xef\xbb\xbf)?<\?xml\s+version\s*=\s*[\"'](?P<version>[^\"'<>?]*)[\"']"
)
_DECLARATION_BYTES = 400
_BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""Encodings whose declaration is not ASCII, by the byte-order mark."""

# libxml2 reports at most 100 errors of a document at a time.
_MAX_ATTEMPTS = 4
_UNBOUND = 201
_RESOURCE_LIMIT = 114
_PLAIN_WORDS = {
    4: "there is no root element",
    5: "there is junk after the root element",
    42: "duplicate attribute",
    76: "mismatched tag",
    81: "the text is not valid UTF-8 and no other encoding is declared",
}
"""Meanings of libxml2's most common error codes."""

_NAMESPACES = {
    "drake": "http://drake.mit.edu",
    "phistar": "urn:phistar:urdf",
    "xacro": "http://www.ros.org/wiki/xacro",
}
"""Namespaces of prefixes that files use without declaring them."""


def parse_xml(source: Source, report: LoadReport | None = None) -> _Element:
    """The root element of a well-formed document without DOCTYPE.

    An undeclared prefix gets its customary namespace, with a warning: they are common in robot
    files, and other readers accept them.

    Args:
        source: The document.
        report: Receives the warnings.

    Raises:
        ModelError: Not XML, or not well-formed; names file and line.
        UnsafeFileError: A DOCTYPE, too large, or nested too deep.
    """
    from lxml import etree

    check_size(len(source.data), source.name)
    _reject_non_xml(source)
    if match := _DOCTYPE.match(source.data):
        # Before parsing, so that an entity bomb is never even tokenised.
        raise _doctype_error(source, match)
    _reject_markup_flood(source)
    data = _with_known_version(source, report)
    for _ in range(_MAX_ATTEMPTS):
        parser = _careful_parser()
        try:
            return _without_doctype(source, etree.fromstring(data, parser))
        except etree.XMLSyntaxError as error:
            # The parser's own log: that of the exception has other documents' errors too.
            repaired = _declare_prefixes(source, data, parser.error_log, report)
            if repaired is None:
                raise _syntax_problem(source, error) from None
            data = repaired
    what = "too many prefixes are not declared."
    problem = Problem("error", "xml", source.name, what, "Declare them on the root element.")
    raise ModelError([problem])


def _with_known_version(source: Source, report: LoadReport | None) -> bytes:
    """The document, its declaration changed to version 1.0 if that is invalid."""
    data = source.data
    codec = next(
        (codec for mark, codec in _BYTE_ORDER_MARKS.items() if data.startswith(mark)), "latin-1"
    )
    head = data[:_DECLARATION_BYTES].decode(codec, "ignore")
    match = _DECLARATION.match(head)
    if match is None or match["version"].startswith("1."):
        return data
    if report is not None:
        what = f'the XML declaration says version="{match["version"]}".'
        cure = "There is no such version of XML: it is read as 1.0."
        where = source.at(1)
        report.add_problem("warning", "xml-version", where, what, cure, StructureWarning)
    begin, end = (len(head[:position].encode(codec)) for position in match.span("version"))
    return data[:begin] + "1.0".encode(codec) + data[end:]


def _careful_parser() -> XMLParser:
    from lxml import etree

    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


def _without_doctype(source: Source, root: _Element) -> _Element:
    information: Any = root.getroottree().docinfo
    if information.doctype:
        # Reached in encodings that the search for bytes above does not understand.
        raise _doctype_error(source, None)
    return root


def _reject_non_xml(source: Source) -> None:
    if source.data[:2] == b"\x1f\x8b":
        what = "not XML: the file is gzip-compressed."
        problem = Problem("error", "not-xml", source.name, what, "Decompress it first.")
        raise ModelError([problem])
    if not source.data.strip():
        problem = Problem("error", "empty", source.name, "the file is empty.", "Check the path.")
        raise ModelError([problem])


def _reject_markup_flood(source: Source) -> None:
    """Raise for a document of many tiny elements, which takes far more memory than its size."""
    data = source.data
    elements, attributes = data.count(b"<") - data.count(b"</"), data.count(b"=")
    if elements > MAX_ELEMENTS or attributes > MAX_ATTRIBUTES:
        what = (
            f"{elements} elements and {attributes} attributes are more than the limit of "
            f"{MAX_ELEMENTS} and {MAX_ATTRIBUTES}."
        )
        problem = Problem("error", "too-big", source.name, what, "Split the robot.")
        raise UnsafeFileError([problem])


def _doctype_error(source: Source, match: re.Match[bytes] | None) -> UnsafeFileError:
    end = match.end() if match else 0
    where = source.at(source.data.count(b"\n", 0, end) + 1)
    name = match.group("name").decode("ascii", "replace") if match and match["name"] else ""
    what = "DOCTYPE and entity declarations are not allowed in a robot file."
    if name.lower() == "html":
        what = f"the root element is <{name}>, expected <robot> or <mujoco>."
        cure = "A web page was saved in place of the robot; download the raw file."
        return UnsafeFileError([Problem("error", "wrong-root", where, what, cure)])
    return UnsafeFileError([Problem("error", "doctype", where, what, "Remove the DOCTYPE.")])


def _declare_prefixes(
    source: Source, data: bytes, log: _ListErrorLog, report: LoadReport | None
) -> bytes | None:
    """The document with its unbound prefixes declared on the root; None if there are none.

    Other errors show when it is parsed again.
    """
    root = _ROOT.match(data)
    lines: dict[str, int] = {}
    for entry in log:
        match = re.match(r"Namespace prefix (\S+) ", entry.message)
        if entry.type == _UNBOUND and match is not None:
            lines.setdefault(match.group(1), entry.line)
    if root is None or not lines:
        return None
    declared = ""
    for prefix, line in lines.items():
        namespace = _NAMESPACES.get(prefix, f"urn:unbound:{prefix}")
        declared += f' xmlns:{prefix}="{namespace}"'
        if report is not None:
            what = f"the prefix '{prefix}:' is not declared."
            cure = f'Add xmlns:{prefix}="..." to the root element.'
            where = source.at(line)
            report.add_problem("warning", "unbound-prefix", where, what, cure, StructureWarning)
    return data[: root.end()] + declared.encode() + data[root.end() :]


def _syntax_problem(source: Source, error: Any) -> ModelError:
    line, column = error.position
    text = (error.msg or "not well-formed").split(", line ")[0].strip()
    where = f"{source.name}:{line}:{column}" if line else source.name
    if error.code == _RESOURCE_LIMIT:
        text = text.split(", ")[0]
        what = f"a limit of the XML parser is exceeded: {text}."
        cure = "Elements nest too deep or a text is too long for a robot file."
        return UnsafeFileError([Problem("error", "too-deep", where, what, cure)])
    plain = _PLAIN_WORDS.get(error.code)
    what = f"not well-formed XML: {f'{plain} ({text})' if plain else text}."
    cure = "Correct the XML; xmllint or an editor shows the position."
    return ModelError([Problem("error", "xml", where, what, cure)])

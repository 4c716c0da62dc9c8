# SPDX-License-Identifier: BSD-3-Clause
"""Careful XML: what is refused before, while and after a document is parsed."""

import re

import pytest

from phistar.errors import ModelError, UnsafeFileError
from phistar.loaders.load_report import LoadReport
from phistar.loaders.robot_source import Source
from phistar.loaders.xml import parse_xml


def refusal(data: bytes) -> ModelError:
    """The error that a document causes."""
    with pytest.raises(ModelError) as caught:
        parse_xml(Source(data, "x.urdf"))
    return caught.value


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x.urdf: the file is empty."),
        (b" \n\t", "x.urdf: the file is empty."),
        (b"\x1f\x8b\x08\x00", "x.urdf: not XML: the file is gzip-compressed."),
        (b"hello", "x.urdf:1:1: not well-formed XML: there is no root element"),
        (b"<a>\n<b></a>", "x.urdf:2:8: not well-formed XML: mismatched tag"),
        (b"<a/>\n<b/>", "x.urdf:2:1: not well-formed XML: there is junk after the root element"),
        (b'<a b="1" b="2"/>', "duplicate attribute"),
        (b"<a>\xff</a>", "the text is not valid UTF-8"),
        (b"<a>&what;</a>", "'what' not defined"),
        (b"<a>\x00</a>", "x.urdf:1"),
    ],
)
def test_malformed_documents_are_refused(data: bytes, message: str) -> None:
    """What is not well-formed is refused with file, line and column."""
    assert message in str(refusal(data))


BOMB = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><r>&b;</r>'


@pytest.mark.parametrize(
    "data",
    [
        BOMB.encode(),
        b"\xef\xbb\xbf" + BOMB.encode(),
        b'<?xml version="1.0"?>\n<!-- <a> -->\n' + BOMB.encode(),
        f'<?xml version="1.0" encoding="utf-16"?>{BOMB}'.encode("utf-16"),
        b'<!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd"><r/>',
    ],
)
def test_doctypes_are_refused(data: bytes) -> None:
    """A DOCTYPE is refused in every encoding and wherever it hides."""
    error = refusal(data)
    assert isinstance(error, UnsafeFileError)
    assert "DOCTYPE" in str(error)


def test_a_comment_about_doctypes_is_no_doctype() -> None:
    """The word in a comment or a text does no harm."""
    root = parse_xml(Source(b"<!-- <!DOCTYPE x> --><a><!-- <!ENTITY y> --></a>", "x.urdf"))
    assert root.tag == "a"


def test_web_page_is_recognised() -> None:
    """A saved web page is named as such."""
    error = refusal(b"<!DOCTYPE html>\n<html><br></html>")
    assert "root element is <html>, expected <robot> or <mujoco>" in str(error)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<a>" * 300 + b"</a>" * 300, "Excessive depth in document: 256"),
        (b"<a>" + b"<b/>" * 1_300_000 + b"</a>", "1300001 elements"),
        (b"<a " + b'b="" ' * 2_100_000 + b"/>", "2100000 attributes"),
        (b'<a b="' + b"x" * 11_000_000 + b'"/>', "limit of the XML parser"),
    ],
)
def test_floods_are_refused(data: bytes, message: str) -> None:
    """Depth, numbers of elements and attributes and the length of a text are bounded."""
    error = refusal(data)
    assert isinstance(error, UnsafeFileError)
    assert message in str(error)


def test_undeclared_prefixes_get_their_usual_namespace() -> None:
    """An undeclared prefix is warned of once and bound to the namespace it usually has."""
    report = LoadReport("x.urdf", "urdf")
    root = parse_xml(Source(b"<r>\n<drake:a/><drake:b/></r>", "x.urdf"), report)
    assert [child.tag for child in root] == ["{http://drake.mit.edu}a", "{http://drake.mit.edu}b"]
    assert [str(problem) for problem in report.problems] == [
        "x.urdf:2: the prefix 'drake:' is not declared. "
        'Add xmlns:drake="..." to the root element.'
    ]


def test_too_many_prefixes_are_refused() -> None:
    """There is an end to mending."""
    data = b"<r>" + b"".join(b"<p%d:x/>" % k for k in range(1000)) + b"</r>"
    assert "too many prefixes" in str(refusal(data))


def test_errors_of_other_documents_are_forgotten() -> None:
    """A document is judged by its own errors, not by those of one that was parsed before."""
    refusal(b"<a><b></a>")
    assert parse_xml(Source(b"<r><x:y/></r>", "x.urdf")).tag == "r"
    assert re.search("mismatched", str(refusal(b"<r><x:y/><b></r>")))

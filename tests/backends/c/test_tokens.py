# SPDX-License-Identifier: BSD-3-Clause
"""Identifiers, comments and numbers of C."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phistar.backends.c.tokens import (
    DOUBLE,
    FLOAT,
    RESERVED_WORDS,
    IdentifierScope,
    comment,
    comment_safe,
    identifier,
)
from phistar.errors import ArgumentError


@given(st.text())
def test_identifiers_are_legal(name: str) -> None:
    """Any text gives an identifier of ASCII that begins with a letter."""
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,70}", identifier(name))


def test_identifiers_read_like_their_names() -> None:
    """Accents go, other signs become underscores, a first digit gets a word before it."""
    assert identifier("Panda arm-2") == "Panda_arm_2"
    assert identifier("Gelenk größe é") == "Gelenk_gro_e_e"
    assert identifier("7dof", "robot") == "robot_7dof"
    assert identifier("机器人", "robot") == "robot"


@given(st.lists(st.sampled_from(["int", "q", "t1", "sin", "q_2", "class"]), max_size=12))
def test_names_differ(wanted: list[str]) -> None:
    """A scope gives no name twice and none that C or C++ has."""
    names = IdentifierScope()
    taken = [names.unique_name(name) for name in wanted]
    assert len({*taken}) == len(taken)
    assert not {*taken} & RESERVED_WORDS


@given(st.text(alphabet=st.one_of(st.sampled_from("*/?\\\n\r\u202e "), st.characters())))
def test_comments_stay_closed(text: str) -> None:
    """Nothing in a name ends a comment, nests one, makes a trigraph or joins lines."""
    inside = comment_safe(text)
    for mark in ("*/", "/*", "??", "\\", "\n", "\r", "\u202e"):
        assert mark not in inside
    inside.encode("utf-8")
    whole = comment([inside, f"  {inside}"])
    assert whole.startswith("/*")
    assert whole.index("*/") == len(whole) - 2
    assert "/*" not in whole[1:]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(x: float) -> None:
    """A literal reads back as the same double, and is no integer."""
    text = DOUBLE.literal(x)
    assert float(text) == x
    assert math.copysign(1.0, float(text)) == math.copysign(1.0, x)
    assert set(text) & set(".e")


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_read_back(x: float) -> None:
    """A single literal has its suffix and reads back as the same number."""
    text = FLOAT.literal(x)
    assert text.endswith("f")
    assert set(text) & set(".e")
    assert np.float32(text[:-1]) == np.float32(x)


@pytest.mark.parametrize("x", [math.inf, -math.inf, math.nan])
def test_no_literal_for_what_is_no_number(x: float) -> None:
    """Infinite constants are refused in words."""
    with pytest.raises(ArgumentError, match="no literal"):
        DOUBLE.literal(x)


def test_too_large_for_single_precision() -> None:
    """A constant that single precision cannot hold is refused."""
    with pytest.raises(ArgumentError, match="as float"):
        FLOAT.literal(1e300)

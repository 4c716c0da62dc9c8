# SPDX-License-Identifier: BSD-3-Clause
"""Parts that are quick to make are frozen dataclasses all the same."""

from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from phistar.model.fast_init import fast_init, shared_default

PAIR = [1, 2]


@fast_init
@dataclass(frozen=True)
class Part:
    """Every sort of field."""

    name: str
    size: float = 2.0
    fresh: list[int] = field(default_factory=list)
    pair: list[int] = shared_default(PAIR)


def test_like_any_dataclass() -> None:
    """Arguments, defaults, equality, copies and being frozen."""
    part = Part("a")
    assert (part.name, part.size, part.fresh, part.pair) == ("a", 2.0, [], [1, 2])
    assert part.pair is PAIR
    assert part.fresh is not Part("b").fresh
    assert Part("a", 3.0, pair=[]) == replace(part, size=3.0, pair=[])
    assert repr(part) == "Part(name='a', size=2.0, fresh=[], pair=[1, 2])".replace(
        "Part", Part.__qualname__
    )
    with pytest.raises(FrozenInstanceError):
        part.name = "b"  # type: ignore[misc]
    with pytest.raises(TypeError, match="name"):
        Part()  # type: ignore[call-arg]


def test_no_check_is_lost() -> None:
    """A class that looks at its fields when it is made keeps its own way."""

    @dataclass(frozen=True)
    class Checked:
        size: float

        def __post_init__(self) -> None:
            raise ValueError(self.size)

    with pytest.raises(TypeError, match="__post_init__"):
        fast_init(Checked)

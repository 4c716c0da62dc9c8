# SPDX-License-Identifier: BSD-3-Clause
"""What code for several packages uses of their arrays and of their modules, and names for both.

Code for one package names that package's own types, which are known where it is installed.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Protocol, Self, TypeVar

from phistar.errors import ArgumentError


class Numbers(Protocol):
    """Numbers of some package: an array, traced or not, or a symbol."""

    # As in NumPy, where their arguments are said.
    # ruff: noqa: D102
    def __neg__(self) -> Self: ...
    def __add__(self, other: Self | float, /) -> Self: ...
    def __radd__(self, other: float, /) -> Self: ...
    def __sub__(self, other: Self | float, /) -> Self: ...
    def __rsub__(self, other: float, /) -> Self: ...
    def __mul__(self, other: Self | float, /) -> Self: ...
    def __rmul__(self, other: float, /) -> Self: ...
    def __truediv__(self, other: Self | float, /) -> Self: ...


class Values(Numbers, Protocol):
    """An array of some package, traced or not."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    def __getitem__(self, index: object, /) -> Self: ...
    def sum(self, axis: int | tuple[int, ...], /) -> Self: ...
    def reshape(self, shape: tuple[int, ...], /) -> Self: ...
    def swapaxes(self, first: int, second: int, /) -> Self: ...


N = TypeVar("N", bound=Numbers)
V = TypeVar("V", bound=Values)
"""The numbers and the arrays of one package."""


class NumberFunctions(Protocol[N]):
    """A package's functions of numbers."""

    def cos(self, x: N, /) -> N: ...
    def sin(self, x: N, /) -> N: ...
    def sqrt(self, x: N, /) -> N: ...
    def less(self, x: N, y: float, /) -> N: ...
    def where(self, condition: N, x: N, y: N, /) -> N: ...


class ArrayModule(NumberFunctions[V], Protocol[V]):
    """A package's functions of its arrays."""

    def stack(self, arrays: Sequence[V], axis: int, /) -> V: ...
    def einsum(self, text: str, /, *arrays: V) -> V: ...
    def moveaxis(self, x: V, source: int, target: int, /) -> V: ...
    def zeros_like(self, x: V, /) -> V: ...


Choice = bool | str | Sequence[str]
"""What a quantity is asked for besides arrays: the name of a frame, names of parts, and so on."""
Choices = Mapping[str, Choice]


def chosen_word(choices: Choices, name: str) -> str:
    """A choice that is one name.

    Raises:
        ArgumentError: It is something else.
    """
    found = choices[name]
    if not isinstance(found, str):
        raise ArgumentError(f"{name} is {found!r}, expected one name")
    return found


def chosen_words(choices: Choices, name: str) -> tuple[str, ...]:
    """A choice that is several names."""
    found = choices[name]
    assert not isinstance(found, bool | str)
    return tuple(found)


def added(terms: Iterable[V]) -> V:
    """The sum of some arrays, one or more."""
    return reduce(operator.add, terms)

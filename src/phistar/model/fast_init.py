# SPDX-License-Identifier: BSD-3-Clause
"""Frozen dataclasses with a fast constructor, for objects of which a robot has very many."""

from __future__ import annotations

from dataclasses import MISSING, field, fields
from types import FunctionType
from typing import TypeVar

T = TypeVar("T")
DataclassType = TypeVar("DataclassType", bound=type)


def shared_default(value: T, *, repr: bool = True) -> T:
    """A field with one shared default that is never changed, though it cannot be hashed."""
    return field(default_factory=lambda: value, repr=repr, metadata={"shared": value})


def fast_init(cls: DataclassType) -> DataclassType:
    """A frozen dataclass with an ``__init__`` that fills the object's dictionary itself.

    Arguments and defaults are those of ``dataclass``, whose ``__init__`` calls
    ``object.__setattr__`` for each field and takes three times as long.
    """
    if hasattr(cls, "__post_init__"):
        raise TypeError(f"{cls.__name__} has a __post_init__, which would not be called")
    scope: dict[str, object] = {"MISSING": MISSING}
    made: dict[str, FunctionType] = {}
    arguments, lines = ["self"], ["own = self.__dict__"]
    for each in fields(cls):
        name = value = each.name
        default = each.metadata.get("shared", each.default)
        if default is not MISSING:
            scope[f"default_{name}"] = default
            arguments.append(f"{name}=default_{name}")
        elif each.default_factory is not MISSING:
            scope[f"make_{name}"] = each.default_factory
            arguments.append(f"{name}=MISSING")
            value = f"make_{name}() if {name} is MISSING else {name}"
        else:
            arguments.append(name)
        lines.append(f"own[{name!r}] = {value}")
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines), scope, made)
    constructor = made["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    constructor.__module__ = cls.__module__
    constructor.__annotations__ = vars(cls)["__init__"].__annotations__
    type.__setattr__(cls, "__init__", constructor)
    return cls

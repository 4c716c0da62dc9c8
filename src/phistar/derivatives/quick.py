# SPDX-License-Identifier: BSD-3-Clause
"""Quick ways to derivatives of plain arrays: no checks but those that machine code does itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from numpy.typing import NDArray

from phistar.model.tables import Tables

Array = NDArray[Any]
T = TypeVar("T")
Way = Callable[..., "dict[str, Array] | None"]
"""Takes arrays, gives results by name, or None where anything is out of the ordinary."""


ways: Tables[str, Way | None] = Tables()
"""Ways of a model by name of the program; they come here when it first runs.

None: there is none, or none yet.
"""


def filled(kind: type[T], fields: Mapping[str, Any]) -> T:
    """A frozen dataclass with its fields set at once; one by one takes as long as small kernels."""
    result = object.__new__(kind)
    vars(result).update(fields)
    return result

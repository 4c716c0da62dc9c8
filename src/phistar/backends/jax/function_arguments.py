# SPDX-License-Identifier: BSD-3-Clause
"""What a user gives to a pure function: arrays of JAX, whose shapes and precision are checked.

Values cannot be: traced arrays have none. What is not a number goes in and comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from phistar.arrays import Array
from phistar.backends.jax.package import as_jax_array, varying_alike
from phistar.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from phistar.backends.jax.package import JaxArray


def read_arrays(
    given: Mapping[str, JaxArray], samples: Mapping[str, tuple[int, ...]], owner: str
) -> dict[str, Array]:
    """Values as arrays of JAX.

    Args:
        given: Values by name.
        samples: Shape of one sample, of each.
        owner: Whose they are, for messages.

    Raises:
        ShapeError: One has another shape.
        ArgumentError: One is no array, or its precision is not known or would be lost.
    """
    found = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            raise ArgumentError(
                f"{name} is a dict by joint name; functions of JAX take arrays: "
                "robot.configuration(q) makes one of such a dict"
            )
        array, sample = as_jax_array(value, name), samples[name]
        if array.shape[max(array.ndim - len(sample), 0) :] != sample:
            expected = f"(..., {', '.join(map(str, sample))})"
            raise ShapeError(name, array.shape, expected, owner)
        found[name] = array
    return dict(zip(found, varying_alike(list(found.values())), strict=True))

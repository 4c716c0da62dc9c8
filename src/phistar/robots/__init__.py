# SPDX-License-Identifier: BSD-3-Clause
"""Robots to start with: the bundled ones by name, and chains and trees of any size."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from phistar.loaders.bundled import floats, names, path
from phistar.model import generators
from phistar.model.model import Model
from phistar.robot import Robot

P = ParamSpec("P")


def _as_robot(make: Callable[P, Model]) -> Callable[P, Robot]:
    """The generator of a model as a generator of robots."""

    @wraps(make)
    def generate(*args: P.args, **kwargs: P.kwargs) -> Robot:
        return Robot(make(*args, **kwargs))

    generate.__annotations__["return"] = Robot
    return generate


chain = _as_robot(generators.chain)
tree = _as_robot(generators.tree)

__all__ = ["chain", "floats", "names", "path", "tree"]

# SPDX-License-Identifier: BSD-3-Clause
"""phistar: robot dynamics as algebra."""

from typing import Any

from phistar import control, conventions, errors, robots
from phistar.explain import cite, explain, prove, where
from phistar.loaders.report import LoadReport
from phistar.model.builder import ModelBuilder
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.robot import Robot, load

__all__ = [
    "LoadReport",
    "Model",
    "ModelBuilder",
    "Robot",
    "cite",
    "control",
    "conventions",
    "errors",
    "explain",
    "load",
    "prove",
    "random_model",
    "robots",
    "where",
]


def __getattr__(name: str) -> Any:
    """``__version__``, looked up when asked for: the metadata module is slow to import."""
    if name == "__version__":
        from importlib.metadata import version

        return version("phistar")
    raise AttributeError(f"module 'phistar' has no attribute {name!r}")

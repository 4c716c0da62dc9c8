# SPDX-License-Identifier: BSD-3-Clause
"""phistar: robot dynamics as algebra."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from phistar.gc_pause import importing

with importing():
    from phistar import conventions, errors, robots
    from phistar import fork_locks as fork_locks  # it registers itself with os.fork
    from phistar.explain import cite, explain, prove, where
    from phistar.loaders.dh import DHRow, from_dh
    from phistar.loaders.load_report import LoadReport
    from phistar.model.builder import ModelBuilder
    from phistar.model.model import Model
    from phistar.model.random import random_model
    from phistar.robot import Robot, load

if TYPE_CHECKING:
    from phistar import control, ident

__version__ = "0.1.0"

__all__ = [
    "DHRow",
    "LoadReport",
    "Model",
    "ModelBuilder",
    "Robot",
    "cite",
    "control",
    "conventions",
    "errors",
    "explain",
    "from_dh",
    "ident",
    "load",
    "prove",
    "random_model",
    "robots",
    "where",
]


def __getattr__(name: str) -> ModuleType:
    """Users of robots are imported when they are first used: loading a robot does not need them."""
    if name in ("control", "ident"):
        return import_module(f"phistar.{name}")
    raise AttributeError(f"module 'phistar' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

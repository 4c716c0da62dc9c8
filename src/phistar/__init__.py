# SPDX-License-Identifier: BSD-3-Clause
"""phistar: robot dynamics as algebra."""

from importlib.metadata import version as _version

from phistar import conventions, errors, robots
from phistar.loaders.report import LoadReport
from phistar.model.builder import ModelBuilder
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.robot import Robot, load

__version__ = _version("phistar")

__all__ = [
    "LoadReport",
    "Model",
    "ModelBuilder",
    "Robot",
    "conventions",
    "errors",
    "load",
    "random_model",
    "robots",
]

# SPDX-License-Identifier: BSD-3-Clause
"""Scalar programs -> dependency-free C99 for one robot: a function, or files with a self-test."""

from phistar.backends.c.package import Exported, contents, export
from phistar.backends.c.selftest import random_inputs
from phistar.backends.c.signature import Origin, RobotInfo
from phistar.backends.c.source import source

__all__ = ["Exported", "Origin", "RobotInfo", "contents", "export", "random_inputs", "source"]

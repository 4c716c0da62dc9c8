# SPDX-License-Identifier: BSD-3-Clause
"""Scalar programs -> dependency-free C99 for one robot: a function, or files with a self-test."""

from phistar.backends.c.interface import Origin, RobotInfo
from phistar.backends.c.selftest import random_inputs
from phistar.backends.c.source_package import ExportedProgram, package_files, write_package
from phistar.backends.c.translation_unit import c_source

__all__ = [
    "ExportedProgram",
    "Origin",
    "RobotInfo",
    "c_source",
    "package_files",
    "random_inputs",
    "write_package",
]

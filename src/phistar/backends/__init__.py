# SPDX-License-Identifier: BSD-3-Clause
"""Things that run: each ``to_<name>`` module turns a scheduled program and a robot into code."""

from phistar.backends.base import (
    Backend,
    Executable,
    PureExecutable,
    VectorExecutable,
    build_vectors,
    default,
    get,
    names,
    running_names,
    with_link_forces,
)
from phistar.backends.robot_programs import (
    DEFAULT_TUNING,
    OPTIONAL_INPUTS,
    BundleProgram,
    MatrixProgram,
    RobotProgram,
    TracedProgram,
    Tuning,
    VectorProgram,
)

__all__ = [
    "DEFAULT_TUNING",
    "OPTIONAL_INPUTS",
    "Backend",
    "BundleProgram",
    "Executable",
    "MatrixProgram",
    "PureExecutable",
    "RobotProgram",
    "TracedProgram",
    "Tuning",
    "VectorExecutable",
    "VectorProgram",
    "build_vectors",
    "default",
    "get",
    "names",
    "running_names",
    "with_link_forces",
]

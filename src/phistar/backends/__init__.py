# SPDX-License-Identifier: BSD-3-Clause
"""Things that run: each ``to_<name>`` module turns a scheduled program and a robot into code."""

from phistar.backends.base import (
    DEFAULT_TUNING,
    OPTIONAL_INPUTS,
    Backend,
    Executable,
    FusedExecutable,
    MatrixExecutable,
    Tuning,
    default,
    get,
    names,
    running_names,
    with_link_forces,
)

__all__ = [
    "DEFAULT_TUNING",
    "OPTIONAL_INPUTS",
    "Backend",
    "Executable",
    "FusedExecutable",
    "MatrixExecutable",
    "Tuning",
    "default",
    "get",
    "names",
    "running_names",
    "with_link_forces",
]

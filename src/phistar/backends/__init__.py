# SPDX-License-Identifier: BSD-3-Clause
"""Things that run: each ``to_<name>`` module turns a scheduled program and a robot into code."""

from phistar.backends.base import (
    OPTIONAL,
    PLAIN,
    Assembled,
    Backend,
    Executable,
    MatrixExecutable,
    Tuning,
    default,
    get,
    names,
)

__all__ = [
    "OPTIONAL",
    "PLAIN",
    "Assembled",
    "Backend",
    "Executable",
    "MatrixExecutable",
    "Tuning",
    "default",
    "get",
    "names",
]

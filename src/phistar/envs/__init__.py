# SPDX-License-Identifier: BSD-3-Clause
"""Robots as environments of Gymnasium: ``RobotEnv``, ``RobotVectorEnv``, tasks by name.

Importing ``phistar.envs`` registers its tasks, if Gymnasium is installed; a ``Task`` can be written
without it.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from phistar.envs.task import Bounds, Moment, Start, Task
from phistar.envs.tasks import TASKS

__all__ = ["TASKS", "Bounds", "Moment", "RobotEnv", "RobotVectorEnv", "Start", "Task"]


def __getattr__(name: str) -> Any:
    """Classes that need Gymnasium, when they are first asked for."""
    if name in ("RobotEnv", "RobotVectorEnv", "register"):
        from phistar.envs import environments

        return getattr(environments, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if importlib.util.find_spec("gymnasium") is not None:
    from phistar.envs.environments import register

    register()

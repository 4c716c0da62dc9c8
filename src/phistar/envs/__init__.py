# SPDX-License-Identifier: BSD-3-Clause
"""Robots as environments of Gymnasium: ``RobotEnv``, ``RobotVectorEnv``, tasks by name.

Importing ``phistar.envs`` registers its tasks, if Gymnasium is installed; a ``Task`` can be written
without it.
"""

from __future__ import annotations

from phistar.envs.task import Bounds, Moment, Start, Task
from phistar.envs.tasks import TASKS
from phistar.errors import MissingExtraError, PackageVersionError

__all__ = ["TASKS", "Bounds", "Moment", "RobotEnv", "RobotVectorEnv", "Start", "Task"]

try:
    from phistar.envs.environments import RobotEnv, RobotVectorEnv, register
except (MissingExtraError, PackageVersionError):

    def __getattr__(name: str) -> object:
        """Classes that need Gymnasium: asking for them says what is missing or too old."""
        if name in __all__:
            from phistar.envs import environments

            return getattr(environments, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

else:
    register()

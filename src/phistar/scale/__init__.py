# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of robots over data that is larger than memory, or than one machine.

``scale.map`` gives Dask arrays, ``scale.run`` reads a Zarr store and writes another one,
``scale.identify`` identifies a robot from a store. Needs the extra ``phistar[dask]``.
"""

from phistar.scale.executors import SchedulerLostError
from phistar.scale.identification import identify
from phistar.scale.mapping import map
from phistar.scale.running import FailedTask, RunReport, StoreFullError, TasksFailedError, run

__all__ = [
    "FailedTask",
    "RunReport",
    "SchedulerLostError",
    "StoreFullError",
    "TasksFailedError",
    "identify",
    "map",
    "run",
]

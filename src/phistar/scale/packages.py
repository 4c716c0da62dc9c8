# SPDX-License-Identifier: BSD-3-Clause
"""Dask and threadpoolctl: imported here and nowhere else, when they are first needed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

from phistar.errors import MissingExtraError
from phistar.file_packages import Package

EXTRA = "dask"

StoredArray = Any
"""An array of NumPy, Dask or Zarr, the types of which are known only where they are installed."""
Scheduler = Any
"""None, a name, an address, or a client of a Dask cluster."""


def dask_array() -> Package:
    """The module ``dask.array``."""
    try:
        import dask.array as found
    except ImportError:
        raise MissingExtraError("dask", EXTRA, "phistar.scale") from None
    return found


def distributed() -> Package:
    """The package ``distributed``."""
    try:
        import distributed as found
    except ImportError:
        raise MissingExtraError("distributed", EXTRA, "a cluster") from None
    return found


class ThreadLimits(Protocol):
    """What limits threads until it is told to stop."""

    def restore_original_limits(self) -> None:
        """Stop."""


def thread_limits() -> Callable[..., ThreadLimits]:
    """``threadpool_limits`` of ``threadpoolctl``."""
    try:
        import threadpoolctl
    except ImportError:
        raise MissingExtraError("threadpoolctl", EXTRA, "phistar.scale") from None
    made: Callable[..., ThreadLimits] = threadpoolctl.threadpool_limits
    return made


def is_dask_array(x: object) -> bool:
    """Whether a value is a Dask array; Dask is not imported to find out."""
    loaded = sys.modules.get("dask.array")
    return loaded is not None and isinstance(x, loaded.Array)


def is_zarr_array(x: object) -> bool:
    """Whether a value is a Zarr array; Zarr is not imported to find out."""
    loaded = sys.modules.get("zarr")
    return loaded is not None and isinstance(x, loaded.Array)


def is_client(x: object) -> bool:
    """Whether a value is a client of a Dask cluster; ``distributed`` is not imported for it."""
    loaded = sys.modules.get("distributed")
    return loaded is not None and isinstance(x, loaded.Client)

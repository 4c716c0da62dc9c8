# SPDX-License-Identifier: BSD-3-Clause
"""A Panda, motions of it, and a store of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import Robot, settings
from phistar.arrays import Array

ROWS = 1003


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Elsewhere than in ``make test-scale`` these tests are not collected: Dask is an extra."""
    return None if os.environ.get("PHISTAR_TEST_SCALE") else True


@pytest.fixture(scope="session")
def panda() -> Robot:
    """The robot."""
    return phistar.load("panda")


@pytest.fixture(scope="session")
def motions(panda: Robot) -> dict[str, Array]:
    """Arrays (ROWS, 7)."""
    rng = np.random.default_rng(0)
    return {
        "q": panda.random_configuration(rng, ROWS),
        "v": rng.normal(size=(ROWS, panda.nv)),
        "vdot": rng.normal(size=(ROWS, panda.nv)),
    }


@pytest.fixture(scope="session", autouse=True)
def _final_code() -> Iterator[None]:
    """What is expected comes from final code too, not from what runs until it is there."""
    with pytest.MonkeyPatch.context() as patch, settings.reproducible_on_one_thread():
        patch.setenv("PHISTAR_TIER", "auto")
        yield


@pytest.fixture
def store(tmp_path: Path, motions: dict[str, Array]) -> str:
    """Path of a Zarr group with these arrays."""
    import zarr

    path = str(tmp_path / "in.zarr")
    group = zarr.open_group(path, mode="w")
    for name, array in motions.items():
        group.create_array(name, data=array, chunks=(100, array.shape[1]))
    return path


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Two processes on this machine."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            host="127.0.0.1",
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
        ) as found,
        Client(found) as client,
    ):
        yield client

# SPDX-License-Identifier: BSD-3-Clause
"""Logs whose packages make test does not install: Parquet and Zarr."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import zarr

from phistar import Robot, ident
from phistar.arrays import Array
from phistar.errors import ArgumentError

DT = 2e-3


@pytest.fixture(scope="module")
def samples(panda: Robot, motions: dict[str, Array]) -> tuple[Array, Array, Array, Array]:
    """t, q, v and tau."""
    tau = panda.inverse_dynamics(*motions.values())
    return DT * np.arange(len(tau)), motions["q"], motions["v"], tau


def test_parquet(panda: Robot, samples: tuple[Array, ...], tmp_path: Path) -> None:
    """Columns in any order, a column of text beside them, dates as times."""
    t, q, v, tau = samples
    columns: dict[str, object] = {"mode": ["torque"] * len(t)}
    for kind, values in (("effort", tau), ("position", q), ("velocity", v)):
        columns |= {f"{kind}.{name}": values[:, k] for k, name in enumerate(panda.joint_names)}
    nanoseconds = np.round(t * 1e9).astype("timedelta64[ns]")
    columns["timestamp"] = np.datetime64("2026-11-18T08:00:00", "ns") + nanoseconds
    path = tmp_path / "log.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    log = ident.read_log(path, panda)
    for found, expected in ((log.q, q), (log.v, v), (log.tau, tau)):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(log.t, t, rtol=0.0, atol=1e-9)
    assert "columns that are not used: mode" in log.notes
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ArgumentError, match=r"cannot be read as a \.parquet log"):
        ident.read_log(path, panda)


def test_zarr(panda: Robot, samples: tuple[Array, ...], tmp_path: Path) -> None:
    """A group of arrays, with names of joints as an attribute, or without."""
    path = tmp_path / "log.zarr"
    group = zarr.open_group(str(path), mode="w")
    for name, values in zip(("t", "q", "v", "tau"), samples, strict=True):
        group.create_array(name, data=values)
    log = ident.read_log(path, panda)
    assert log.notes == ("columns have no names: the robot's order of joints is taken",)
    group.attrs["joints"] = list(panda.joint_names[::-1])
    turned = ident.read_log(path, panda)
    np.testing.assert_array_equal(turned.q, log.q[:, ::-1])
    np.testing.assert_array_equal(log.tau, samples[3])
    (path / "q" / "c" / "0" / "0").write_bytes(b"junk")
    with pytest.raises(ArgumentError, match=r"log\.zarr' cannot be read as a \.zarr log: "):
        ident.read_log(path, panda)
    empty = tmp_path / "empty.zarr"
    empty.mkdir()
    with pytest.raises(ArgumentError, match=r"cannot be read|no times"):
        ident.read_log(empty, panda)

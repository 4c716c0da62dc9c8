# SPDX-License-Identifier: BSD-3-Clause
"""A free-threaded build of Python has no native entry points, and the same results."""

import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.symbols import mass_matrix
from phistar.backends.llvm import abi
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.unrolled_module import unrolled_module
from phistar.backends.llvm.run import jit, machine_kernel, native_entry, result_pool
from phistar.scalar.program import Unrolled
from phistar.thresholds import POLICY

FREE = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.fixture(params=["flags", "configuration"])
def unlocked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Python that says so, true or not: by its flags or, where there are none, otherwise."""
    real = sysconfig.get_config_var

    def told(name: str) -> Any:
        return 1 if name == "Py_GIL_DISABLED" else real(name)

    if request.param == "flags":
        monkeypatch.setattr(sys, "abiflags", "t", raising=False)
    else:
        monkeypatch.delattr(sys, "abiflags", raising=False)
        monkeypatch.setattr(sysconfig, "get_config_var", told)
    abi.is_supported.cache_clear()
    yield
    monkeypatch.undo()
    abi.is_supported.cache_clear()


def test_the_configuration_decides() -> None:
    """Whether or not the lock is switched on again in a build that can do without."""
    assert abi.has_gil() is not FREE
    assert not (FREE and abi.is_supported())
    enabled = getattr(sys, "_is_gil_enabled", lambda: True)()
    assert enabled or not abi.has_gil()


@pytest.mark.usefixtures("unlocked")
def test_no_function_no_layout_no_memory_twice(program: Unrolled) -> None:
    """What looks into objects, or counts references, is off."""
    lanes = Lanes(1)
    text = unrolled_module(program, lanes) + native_entry.native_entry_text(
        program.signature, lanes, 0
    )
    assert (
        native_entry.load_native_entry(jit.load(text, symbols=(native_entry.ENTRY_SYMBOL,))) is None
    )
    assert not abi.is_supported()
    x = np.arange(3.0)
    assert abi.data_address(x) == x.ctypes.data
    pool = result_pool.ResultPool()
    pool.empty((POLICY.min_pooled_bytes,), np.dtype(float))
    assert not pool._blocks


@pytest.mark.usefixtures("unlocked")
def test_the_general_path_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single samples, batches and threads against the mass matrix of dense operators; 1e-12."""
    found = []

    def watched(code: jit.LoadedCode) -> native_entry.NativeEntry | None:
        found.append(native_entry.load_native_entry(code))
        return found[-1]

    monkeypatch.setattr(machine_kernel, "load_native_entry", watched)
    robot = phistar.robots.chain(2, mass=1.234)
    q, v, vdot = np.random.default_rng(0).normal(size=(3, 5, 2))
    still = 0.0 * v
    tau = robot.inverse_dynamics(q, v, vdot)
    inertial = tau - robot.inverse_dynamics(q, v, still)
    for each, force, acceleration in zip(q, inertial, vdot, strict=True):
        expected = Dense(robot.model, each)(mass_matrix) @ acceleration
        np.testing.assert_allclose(force, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert found == [None] * len(found) != []
    with ThreadPoolExecutor(4) as threads:
        rows = list(threads.map(robot.inverse_dynamics, q, v, vdot))
    np.testing.assert_array_equal(rows, tau)

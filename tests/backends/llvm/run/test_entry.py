# SPDX-License-Identifier: BSD-3-Clause
"""Entries: what they take, what they give, and which kernel they call."""

from typing import Any

import numpy as np
import pytest

import phistar
from phistar.backends.llvm.run import calls
from phistar.backends.llvm.run.calls import run_threaded
from phistar.backends.llvm.run.entry import make_entry
from phistar.backends.llvm.run.tiers import TieredKernel
from phistar.backends.to_llvm import MachineCode
from phistar.compile import kernel
from phistar.model.model_cache import Entry
from tests.helpers import patch_policy


def tiers_of(robot: phistar.Robot, program: str) -> tuple[MachineCode, TieredKernel]:
    """The machine code of a program, and its kernels in float64."""
    code = kernel(program, robot.model).executable(robot.model)
    assert isinstance(code, MachineCode)
    return code, code.tiers()


def called(entry: Entry) -> object:
    """The native entry that an entry calls."""
    closure = entry.__closure__
    assert closure is not None
    names = entry.__code__.co_freevars
    return closure[names.index("native")].cell_contents


def test_a_better_kernel_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looped code runs at first; the call after the unrolled code is ready runs that."""
    monkeypatch.setenv("PHISTAR_TIER", "auto")
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    # Unrolled code is compiled when it is waited for, and not before.
    patch_policy(monkeypatch, max_link_streams_at_once=0, background_delay_seconds=600.0)
    robot = phistar.robots.chain(3).with_gravity((0.0, 0.0, -2.5))
    code, tiers = tiers_of(robot, "inverse_dynamics")
    assert tiers.kernel.shape == "rolled"
    assert tiers.is_promoting
    entry = code.entry(("q", "v", "vdot"))
    assert entry is not None
    looped = called(entry)
    assert looped is tiers.kernel.native_entry
    q = np.array([0.1, -0.4, 0.7])
    first = entry(q, q, q)
    final = tiers.wait_for_final()
    assert final.shape == "straight"
    second = entry(q, q, q)
    assert called(entry) is final.native_entry is not looped
    np.testing.assert_allclose(second, first, rtol=1e-12)


def test_arguments_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """They reach the inputs that they are named after; other inputs have no entry."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = phistar.robots.chain(3)
    code, tiers = tiers_of(robot, "inverse_dynamics")
    q, v, vdot = np.random.default_rng(0).normal(size=(3, 3))
    expected = robot.inverse_dynamics(q, v, vdot)
    entry = code.entry(("vdot", "q", "v"))
    assert entry is not None
    np.testing.assert_array_equal(entry(vdot, q, v), expected)
    assert make_entry(tiers, ("q", "v"), {"tau": (3,)}) is None


@pytest.mark.parametrize(
    "given",
    [
        [0.1, 0.2, 0.3],
        np.zeros(3, np.float32),
        np.zeros((2, 2, 3)),
        np.zeros((0, 3)),
        np.zeros((3, 2))[:, 0],
        np.array([0.0, np.nan, 0.0]),
        np.zeros(4),
    ],
    ids=["list", "float32", "two batch axes", "no samples", "strides", "nan", "length"],
)
def test_what_an_entry_leaves_to_the_general_path(
    given: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says None, and raises nothing."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    code, _ = tiers_of(phistar.robots.chain(3), "gravity_force")
    entry = code.entry(("q",))
    assert entry is not None
    assert entry(given) is None
    assert entry(np.zeros(3)) is not None


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_that_are_worth_threads_get_them(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They leave the fast path, where there are several, and give the bits of single samples."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    monkeypatch.setenv("PHISTAR_THREADS", str(threads))
    robot = phistar.robots.chain(4).with_gravity((0.0, 0.0, -2.25))  # nobody else's entries
    _, tiers = tiers_of(robot, "inverse_dynamics")
    patch_policy(monkeypatch, min_nanoseconds_per_thread=100 * tiers.kernel.call.cost_ns)
    seen: list[int] = []

    def count(*given: Any) -> bool:
        seen.append(given[-1])
        return run_threaded(*given)

    monkeypatch.setattr(calls, "run_threaded", count)
    robot.inverse_dynamics(np.zeros((2, 4)), np.zeros((2, 4)), np.zeros((2, 4)))  # makes the entry
    seen.clear()
    for batch, worth in ((199, 1), (200, 2), (320, 3), (1000, 3)):
        q, v, vdot = np.random.default_rng(batch).normal(size=(3, batch, 4))
        wanted = min(worth, threads)
        assert calls.thread_count(batch * tiers.kernel.call.cost_ns, None) == wanted
        result = robot.inverse_dynamics(q, v, vdot)
        assert seen == ([] if wanted == 1 else [wanted])
        seen.clear()
        out = np.empty_like(result)
        robot.inverse_dynamics(q, v, vdot, out=out)
        assert seen == ([] if wanted == 1 else [wanted])
        seen.clear()
        single = [robot.inverse_dynamics(*x) for x in zip(q, v, vdot, strict=True)]
        np.testing.assert_array_equal(result, single)
        np.testing.assert_array_equal(out, single)

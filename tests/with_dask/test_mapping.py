# SPDX-License-Identifier: BSD-3-Clause
"""Quantities over Dask arrays are those of the robot, bit by bit, however they are cut."""

from __future__ import annotations

import contextvars
import pickle
from typing import Any

import dask.array as da
import numpy as np
import pytest

import phistar
from phistar import Robot, scale
from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.scale.chunking import rows_per_task
from phistar.scale.work import Work
from tests.with_dask import functions


@pytest.mark.parametrize("rows", [1, 7, 100, 1003])
def test_any_chunks_give_the_same_bits(panda: Robot, motions: dict[str, Array], rows: int) -> None:
    """Chunks of the first array rule; the others may be NumPy arrays."""
    import dask.array as da

    few = {name: x[: 40 * rows] for name, x in motions.items()}
    q = da.from_array(few["q"], chunks=(rows, 7))
    found = scale.map(panda, "inverse_dynamics", q, few["v"], few["vdot"])
    assert found.chunks[0] == q.chunks[0]
    expected = panda.inverse_dynamics(few["q"], few["v"], few["vdot"])
    np.testing.assert_array_equal(found.compute(scheduler="threads"), expected)


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_several_results_and_leading_axes(name: str) -> None:
    """``linearize`` of a free base: arrays by name, (a, b) rows, same bits."""
    import dask.array as da

    robot = phistar.load(name)
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng, 24).reshape(4, 6, -1)
    v, tau = rng.normal(size=(2, 4, 6, robot.nv))
    found = scale.map(robot, "linearize", da.from_array(q, chunks=(3, 2, -1)), v, tau)
    at = robot.linearize(q, v, tau)
    for part in ("vdot", "vdot_q", "vdot_v", "vdot_tau"):
        np.testing.assert_array_equal(found[part].compute(), getattr(at, part))


def test_code_that_is_being_compiled_is_waited_for() -> None:
    """A robot that was used a moment ago runs loops; results are those of its final code."""
    robot = phistar.robots.chain(30, name="compiled meanwhile")
    q, v, tau = np.random.default_rng(0).normal(size=(3, 100, robot.nv))
    context = contextvars.Context()  # Without the setting that tests here run under.
    early = context.run(robot.forward_dynamics, q, v, tau)
    found = context.run(scale.map(robot, "forward_dynamics", q, v, tau).compute)
    final = robot.compile("forward_dynamics")(q=q, v=v, tau=tau)
    assert np.array_equal(found, final)
    assert not np.array_equal(early, final)


def test_float32_stays(panda: Robot, motions: dict[str, Array]) -> None:
    """Single precision in, single precision out."""
    few = [x[:10].astype(np.float32) for x in motions.values()]
    found = scale.map(panda, "inverse_dynamics", *few)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.compute(), panda.inverse_dynamics(*few))


def test_simulations(panda: Robot, motions: dict[str, Array]) -> None:
    """Rollouts: rows first, then time; times are the same for all rows."""
    q, v = motions["q"][:5], 0.1 * motions["v"][:5]
    options: dict[str, Any] = {"dt": 1e-3, "steps": 20, "progress": False}
    found = scale.map(panda, "simulate", q, v, **options)
    sim = panda.simulate(q, v, **options)
    np.testing.assert_array_equal(found["t"], sim.t)
    np.testing.assert_array_equal(found["q"].compute(), np.moveaxis(sim.q, 0, 1))


def test_kernels_functions_and_vectors(panda: Robot, motions: dict[str, Array]) -> None:
    """A compiled kernel by keywords; a function with booleans; one vector for all rows."""
    q, v, vdot = (x[:50] for x in motions.values())
    kernel = panda.compile("inverse_dynamics")
    found = scale.map(panda, kernel, q, v=v, vdot=vdot)
    np.testing.assert_array_equal(found.compute(), kernel(q, v=v, vdot=vdot))
    both = scale.map(panda, functions.power, q, v, vdot)
    expected = functions.power(panda, q, v, vdot)
    np.testing.assert_array_equal(both["power"].compute(), expected["power"])
    assert both["drives"].dtype == bool
    np.testing.assert_array_equal(both["drives"].compute(), expected["drives"])
    rest = scale.map(panda, "inverse_dynamics", q, np.zeros(7), np.zeros(7)).compute()
    np.testing.assert_array_equal(rest, panda.inverse_dynamics(q, np.zeros(7), np.zeros(7)))


def test_parameter_study(panda: Robot) -> None:
    """A function of parameters: torques at rest are proportional to the masses."""
    factors = np.linspace(0.5, 2.0, 4)[:, None]
    found = scale.map(panda, functions.mass_scaled, factors).compute()
    np.testing.assert_allclose(found / found[0], factors[:, 0] / 0.5, rtol=1e-12)


def test_processes_get_little_and_compile_once(
    panda: Robot, motions: dict[str, Array], cluster: Any
) -> None:
    """The robot travels as a few kB; what arrives twice is the same object; same bits."""
    import dask.array as da

    work = Work(panda, "inverse_dynamics", 3)
    sent = pickle.dumps(work)
    assert len(sent) < 20_000
    assert pickle.loads(sent) is pickle.loads(sent)
    arrays = [da.from_array(x, chunks=(200, 7)) for x in motions.values()]
    found = cluster.compute(scale.map(panda, "inverse_dynamics", *arrays)).result()
    np.testing.assert_array_equal(found, panda.inverse_dynamics(*motions.values()))


def test_rows_of_a_task_follow_from_the_cost() -> None:
    """More operations or numbers, fewer rows; the same on every machine."""
    small, large = phistar.load("double_pendulum"), phistar.robots.chain(300)
    assert rows_per_task(Work(small, "inverse_dynamics", 3), 8) == 1_000_000
    heavy = rows_per_task(Work(large, "forward_dynamics", 3), 4 * large.nv)
    assert heavy == 128_000_000 // (4 * 300 * 8)


def test_what_does_not_fit(panda: Robot, motions: dict[str, Array]) -> None:
    """Unknown quantities, paths, arrays of different lengths."""
    q, v, vdot = motions.values()
    with pytest.raises(UnknownNameError, match="inverse_dynamics"):
        scale.map(panda, "inverse_dynamic", q, v, vdot)
    with pytest.raises(ArgumentError, match="same leading axes"):
        scale.map(panda, "inverse_dynamics", q, v[:5], vdot)
    with pytest.raises(ArgumentError, match="open it first"):
        scale.map(panda, "inverse_dynamics", "q.zarr", v, vdot)
    with pytest.raises(ArgumentError, match="one array at least"):
        scale.map(panda, "inverse_dynamics")
    with pytest.raises(ShapeError, match="q has shape"):
        scale.map(panda, "inverse_dynamics", q[:, :5], v, vdot)
    chosen = da.from_array(q, chunks=(100, 7))
    chosen = chosen[chosen[:, 0] > 0.0]
    with pytest.raises(ArgumentError, match=r"x\.compute_chunk_sizes\(\) counts them"):
        scale.map(panda, "mass_matrix", chosen)
    counted = scale.map(panda, "mass_matrix", chosen.compute_chunk_sizes())
    assert counted.shape == ((q[:, 0] > 0.0).sum(), 7, 7)

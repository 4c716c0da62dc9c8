# SPDX-License-Identifier: BSD-3-Clause
"""Simulations as files: they come back, bit by bit, and of the right robot only."""

from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.errors import ArgumentError
from phistar.sim import Simulation


@pytest.fixture(scope="module")
def robot() -> phistar.Robot:
    """A robot with a joint of several coordinates."""
    return phistar.load("quadruped")


@pytest.fixture(scope="module")
def motion(robot: phistar.Robot) -> Simulation:
    """A motion under random joint forces."""
    rng = np.random.default_rng(0)
    v, tau = rng.normal(size=robot.nv), rng.normal(size=(8, robot.nv))
    return robot.simulate(robot.home, v, dt=1e-3, steps=8, tau_steps=tau)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".mcap"])
def test_a_motion_comes_back(
    tmp_path: Path, robot: phistar.Robot, motion: Simulation, suffix: str
) -> None:
    """Times, states and joint forces have the same bits; energy follows from them."""
    path = motion.save(tmp_path / f"motion{suffix}")
    found = Simulation.load(path, robot)
    for name in ("t", "q", "v", "tau"):
        assert np.array_equal(getattr(found, name), getattr(motion, name)), name
    assert np.array_equal(found.energy(), motion.energy())
    assert motion.passive == ("limits",)
    if suffix == ".npz":
        assert (found.scheme, found.passive) == (motion.scheme, motion.passive)


def test_batches_come_back_from_archives_only(tmp_path: Path, robot: phistar.Robot) -> None:
    """Lost samples as well, in their precision."""
    q = np.tile(robot.home.astype(np.float32), (3, 1))
    v = np.zeros((3, robot.nv), dtype=np.float32)
    v[1, 0] = np.nan
    sim = robot.simulate(q, v, dt=1e-2, steps=2, on_error="nan")
    found = Simulation.load(sim.save(tmp_path / "batch.npz"), robot.model)
    assert found.q.dtype == np.float32
    assert np.array_equal(found.q, sim.q, equal_nan=True)
    assert np.array_equal(found.ok, [True, False, True])
    for suffix in (".csv", ".mcap"):
        with pytest.raises(ArgumentError, match=r"a batch \(3,\); save it as \.npz"):
            sim.save(tmp_path / f"batch{suffix}")


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".mcap"])
def test_motions_of_other_robots_are_refused(
    tmp_path: Path, motion: Simulation, suffix: str
) -> None:
    """By names of joints that the file has and the robot has not."""
    path = motion.save(tmp_path / f"motion{suffix}")
    with pytest.raises(ArgumentError, match=r"another robot than 'panda'.*it has \['q\.root_joint"):
        Simulation.load(path, phistar.load("panda"))


def test_files_that_are_no_motions(tmp_path: Path, robot: phistar.Robot) -> None:
    """One clear line each."""
    (tmp_path / "text.csv").write_text("a,b\n1,x\n")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    for name in ("text.csv", "empty.npz", "other.npz"):
        with pytest.raises(ArgumentError, match=f"{name}' is no simulation that phistar wrote"):
            Simulation.load(tmp_path / name, robot)
    with pytest.raises(
        ArgumentError, match=r"ends in '\.txt', expected one of \.npz, \.csv, \.mcap"
    ):
        Simulation.load(tmp_path / "motion.txt", robot)
    with pytest.raises(FileNotFoundError):
        Simulation.load(tmp_path / "absent.csv", robot)


def test_damaged_files(tmp_path: Path, robot: phistar.Robot, motion: Simulation) -> None:
    """Cut off, of other bytes, or with a bit that fell: one line that names the file."""
    for suffix in (".npz", ".csv", ".mcap"):
        whole = motion.save(tmp_path / f"whole{suffix}").read_bytes()
        middle = len(whole) // 2
        fallen = whole[:middle] + bytes(8) + whole[middle + 8 :]
        files = {"cut": whole[:middle], "other": b"nothing of the kind", "empty": b""}
        files["fallen"] = fallen
        for name, data in files.items():
            path = tmp_path / f"{name}{suffix}"
            path.write_bytes(data)
            with pytest.raises(ArgumentError, match=f"{name}{suffix}'") as said:
                Simulation.load(path, robot)
            assert "\n" not in str(said.value)
            assert "pickle" not in str(said.value)


def test_times_that_go_back_are_refused(
    tmp_path: Path, robot: phistar.Robot, motion: Simulation
) -> None:
    """Rows of a table in another order."""
    path = motion.save(tmp_path / "motion.csv")
    head, first, second, *rest = path.read_text().splitlines()
    path.write_text("\n".join([head, second, first, *rest]))
    with pytest.raises(ArgumentError, match="times must increase"):
        Simulation.load(path, robot)


def test_what_acted_is_known_to_have_acted(tmp_path: Path, robot: phistar.Robot) -> None:
    """Wrenches are not in the file, so what needs them refuses."""
    foot = robot.link_names[-1]
    push = {foot: [0.0, 0.0, 0.0, 0.0, 0.0, 10.0]}
    sim = robot.simulate(robot.home, np.zeros(robot.nv), dt=1e-3, steps=2, forces=push)
    found = Simulation.load(sim.save(tmp_path / "pushed.npz"), robot)
    assert found.external
    assert "energy" not in found.drift().relative

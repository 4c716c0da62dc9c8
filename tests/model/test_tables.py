# SPDX-License-Identifier: BSD-3-Clause
"""A model has the same table as long as it lives, and none afterwards."""

import gc
import weakref

import numpy as np
import pytest

import phistar
from phistar import dynamics, energies, motion
from phistar.model.tables import Tables


def _others(count: int = 100) -> list[phistar.Robot]:
    pendulum = phistar.load("double_pendulum")
    return [pendulum.with_gravity((0.0, 0.0, -float(g))) for g in range(count)]


class _Table(dict[str, int]):
    """One that can be watched."""


def test_one_table_a_model() -> None:
    """Always the same, however many models come after it."""
    tables: Tables[str, int] = Tables()
    models = [robot.model for robot in _others()]
    found = [tables(model) for model in models]
    found[0]["a"] = 1
    assert all(tables(model) is table for model, table in zip(models, found, strict=True))
    assert tables(models[1]) == {}
    tables.clear()
    assert tables(models[0]) == {}


def test_it_holds_on_to_no_model() -> None:
    """A model that nobody has any more is gone, and its table with it."""
    tables: Tables[str, object] = Tables()
    model = _others(1)[0].model
    kept = _Table()
    tables(model)["x"] = kept
    seen = weakref.ref(model), weakref.ref(kept)
    del model, kept
    gc.collect()
    assert [each() for each in seen] == [None, None]


def test_robots_stay_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A robot that was made before a hundred others still finds its quick ways."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = phistar.load("double_pendulum")
    others = _others()
    q, v = np.array([0.1, 0.2]), np.array([0.3, -0.4])

    def results() -> list[phistar.robot.Array]:
        return [
            robot.inverse_dynamics(q, v, v),
            robot.center_of_mass(q),
            robot.kinetic_energy(q, v),
            robot.linearize(q, v, v).vdot_q,
        ]

    first = results()

    def general(*_: object, **__: object) -> None:
        raise AssertionError("this was not quick")

    monkeypatch.setattr(dynamics, "_run", general)
    monkeypatch.setattr(motion, "answer", general)
    monkeypatch.setattr(energies, "answer", general)
    monkeypatch.setattr("phistar.derivatives.first.state", general)
    np.testing.assert_equal(results(), first)
    assert len(others) == 100

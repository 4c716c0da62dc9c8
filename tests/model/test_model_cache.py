# SPDX-License-Identifier: BSD-3-Clause
"""A model has the same table as long as it lives, and none afterwards."""

import ast
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import dynamics, energies, kinematics
from phistar.backends.llvm.run import jit
from phistar.model.model import Model
from phistar.model.model_cache import cached_for_equal_models, cached_on_model, entries


def _others(count: int = 100) -> list[phistar.Robot]:
    pendulum = phistar.load("double_pendulum")
    return [pendulum.with_gravity((0.0, 0.0, -float(g))) for g in range(count)]


def test_entries_of_each_model() -> None:
    """Always the same table, however many models come after it, and no other model's."""
    models = [robot.model for robot in _others()]
    found = [entries(model) for model in models]
    found[0]["a"] = None
    assert all(entries(model) is table for model, table in zip(models, found, strict=True))
    assert entries(models[1]) == {}


def test_kept() -> None:
    """A function of a model is worked out once for each of them."""
    asked = []

    @cached_on_model
    def name(model: Model) -> str:
        asked.append(model)
        return model.name

    one, other = (robot.model for robot in _others(2))
    assert [name(one), name(one), name(other)] == ["double_pendulum"] * 3
    assert asked == [one, other]


def test_shared() -> None:
    """Equal models share what is worked out for their twin, as long as one of them lives."""
    asked: list[tuple[Model, int]] = []

    @cached_for_equal_models(2)
    def value(model: Model, key: int) -> list[int]:
        asked.append((model, key))
        return [key]

    one, other = (phistar.load("double_pendulum").model for _ in range(2))
    first = value(one, 1)
    assert first == [1]
    assert value(other, 1) is first
    ((twin, _),) = asked
    assert twin == one
    assert twin is not one
    del one
    assert value(other, 1) is first
    value(other, 2)
    value(other, 1)
    value(other, 3)
    assert value(other, 1) is first
    assert [key for _, key in asked] == [1, 2, 3]
    assert value(other, 2) == [2]
    assert [key for _, key in asked] == [1, 2, 3, 2]


def test_errors_come_out() -> None:
    """Also a KeyError of the function itself; nothing is kept then."""

    @cached_for_equal_models(2)
    def value(model: Model, key: int) -> int:
        raise KeyError(key)

    model = phistar.load("double_pendulum").model
    for _ in range(2):
        with pytest.raises(KeyError):
            value(model, 1)


def test_a_dropped_robot_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models, executables and machine code go with the robot, without the collector's help."""
    codes: list[weakref.ref[jit.LoadedCode]] = []
    made = jit.LoadedCode.__init__

    def watched(self: jit.LoadedCode, *arguments: Any) -> None:
        made(self, *arguments)
        codes.append(weakref.ref(self))

    monkeypatch.setattr(jit.LoadedCode, "__init__", watched)
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = _others(1)[0].with_gravity((0.0, 0.5, -2.0))
    q = v = np.array([0.1, 0.2])
    robot.inverse_dynamics(q, v, robot.forward_dynamics(q, v, v))
    robot.inverse_dynamics(q.astype(np.float32), v, v)
    robot.center_of_mass(q)
    robot.frame_pose(q, robot.frame_names[-1])
    robot.kinetic_energy(q, v)
    robot.linearize(q, v, v)
    robot.linearize_inverse(q, v, v)
    robot.coriolis_matrix(q, v)
    robot.jvp("forward_dynamics", q, v, v, dq=v, dv=v, dtau=v)
    robot.vjp("forward_dynamics", q, v, v, v)
    robot.operators(q, v).M.dense()
    robot.compile("bias_force")(q, v=v)
    assert len(codes) > 8
    gc.collect()
    gc.disable()
    try:
        model = weakref.ref(robot.model)
        del robot
        assert model() is None
        assert [code() for code in codes if code() is not None] == []
    finally:
        gc.enable()


def test_entries_outlive_an_equal_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two equal robots one is dropped: the other has its own entries."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    one, other = (phistar.load("double_pendulum") for _ in range(2))
    q = v = np.array([0.1, 0.2])
    wanted = one.forward_dynamics(q, v, v)
    del one
    gc.collect()
    np.testing.assert_array_equal(other.forward_dynamics(q, v, v), wanted)
    assert entries(other.model) is other._entries
    monkeypatch.setattr(dynamics, "_run", None)
    np.testing.assert_array_equal(other.forward_dynamics(q, v, v), wanted)


CACHES = {"lru_cache", "cache"}


def _kept_for_ever(tree: ast.AST) -> Iterator[str]:
    """Functions of a model that a cache of functools decorates: it would keep the model alive."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            marks = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
            cached = any(getattr(mark, "id", "") in CACHES for mark in marks)
            if cached and any("Model" in ast.unparse(a) for a in node.args.args if a.annotation):
                yield node.name


def test_no_cache_keeps_models() -> None:
    """What is worked out for a model belongs to it: by ``cached_on_model`` or
    ``cached_for_equal_models``."""
    planted = "@lru_cache(maxsize=4)\ndef f(model: Model) -> int: ...\n@cache\ndef g(x: int): ..."
    assert list(_kept_for_ever(ast.parse(planted))) == ["f"]
    source = Path(phistar.__file__).parent
    found = {
        file.name: list(_kept_for_ever(ast.parse(file.read_text("utf-8"))))
        for file in source.rglob("*.py")
    }
    assert {name: functions for name, functions in found.items() if functions} == {}


def test_loading_takes_no_fingerprint() -> None:
    """Nobody needs it before the first result."""
    robot = phistar.load("double_pendulum")
    assert "fingerprint" not in vars(robot.model)


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
    monkeypatch.setattr(kinematics, "run_traced", general)
    monkeypatch.setattr(energies, "run_traced", general)
    monkeypatch.setattr("phistar.derivatives.first.checked_state", general)
    np.testing.assert_equal(results(), first)
    assert len(others) == 100

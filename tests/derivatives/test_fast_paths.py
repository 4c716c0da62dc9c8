# SPDX-License-Identifier: BSD-3-Clause
"""Plain arrays go straight to machine code, and everything else still gets there."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import Robot
from phistar.derivatives import first
from phistar.errors import ArgumentError, ShapeError, UnknownNameError

Call = Callable[[Robot, Any, Any, Any], Any]

CALLS: dict[str, Call] = {
    "linearize": lambda r, q, v, x: r.linearize(q, v, x),
    "linearize_product": lambda r, q, v, x: r.linearize(q, v, x, method="product"),
    "linearize_inverse": lambda r, q, v, x: r.linearize_inverse(q, v, x),
    "forward_jvp": lambda r, q, v, x: r.jvp("forward_dynamics", q, v, x, dq=v, dv=x, dtau=q),
    "forward_jvp_some": lambda r, q, v, x: r.jvp("forward_dynamics", q, v, x, dtau=v),
    "inverse_jvp": lambda r, q, v, x: r.jvp("inverse_dynamics", q, v, x, dq=v, dvdot=q),
    "forward_vjp": lambda r, q, v, x: r.vjp("forward_dynamics", q, v, x, v),
    "inverse_vjp": lambda r, q, v, x: r.vjp("inverse_dynamics", q, v, x, v),
}


@pytest.fixture(scope="module")
def robot() -> Robot:
    """One for all tests, so that little is compiled."""
    return phistar.robots.chain(3, axes="xyz")


@pytest.fixture(autouse=True)
def final_code(machine_code: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call makes what later ones use."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")


def numbers(found: Any) -> dict[str, np.ndarray]:
    """The arrays of a result by name."""
    if isinstance(found, np.ndarray):
        return {"": found}
    fields = found if isinstance(found, dict) else vars(found)
    return {name: x for name, x in fields.items() if name not in ("model", "v")}


@pytest.mark.parametrize("batch", [(), (5,)])
@pytest.mark.parametrize("name", CALLS)
def test_plain_arrays_pass_no_checks_of_ours(
    robot: Robot, name: str, batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a first call nothing in Python looks at the arrays; the numbers stay the same bits."""
    rng = np.random.default_rng(3)
    q, v, x = rng.normal(size=(3, *batch, robot.nv))
    call = CALLS[name]
    expected = numbers(call(robot, q.tolist(), v.tolist(), x.tolist()))
    with monkeypatch.context() as patch:
        patch.setattr(first, "checked_state", _refuse)
        found = numbers(call(robot, q, v, x))
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert np.array_equal(found[key], value), key
        assert found[key].flags.writeable


def _refuse(*given: object, **named: object) -> None:
    raise AssertionError("the checks of the general way ran")


@pytest.mark.parametrize("name", CALLS)
def test_unusual_arrays_take_the_general_way(robot: Robot, name: str) -> None:
    """Where the quick way is known, bad arrays are still refused by name, others still computed."""
    rng = np.random.default_rng(4)
    q, v, x = rng.normal(size=(3, robot.nv))
    call = CALLS[name]
    expected = numbers(call(robot, q, v, x))
    call(robot, q, v, x)
    with pytest.raises(ArgumentError, match=r"(x|tau|vdot) is not finite"):
        call(robot, q, v, np.full_like(x, np.nan))
    with pytest.raises(ShapeError):
        call(robot, q, v[:2], x)
    wide = np.repeat(v, 2)[::2]
    single = call(robot, *(a.astype(np.float32) for a in (q, v, x)))
    for key, value in numbers(call(robot, q, wide, x)).items():
        assert np.array_equal(value, expected[key])
        assert numbers(single)[key].dtype == np.float32


def test_unknown_names_are_refused_on_the_quick_way_too(robot: Robot) -> None:
    """A change that the function does not have is an error, also when code is ready."""
    q, v, x = np.random.default_rng(5).normal(size=(3, robot.nv))
    for _ in range(2):
        robot.jvp("forward_dynamics", q, v, x, dq=v)
    with pytest.raises(UnknownNameError, match="dvdot"):
        robot.jvp("forward_dynamics", q, v, x, dvdot=v)
    with pytest.raises(UnknownNameError, match="fast"):
        robot.linearize(q, v, x, method="fast")


def test_forces_are_not_left_out(robot: Robot) -> None:
    """With forces on a frame the quick way is not taken: results follow the forces."""
    q, v, x = np.random.default_rng(6).normal(size=(3, robot.nv))
    forces = {robot.link_names[-1]: np.arange(1.0, 7.0)}
    free = robot.linearize(q, v, x)
    loaded = robot.linearize(q, v, x, forces=forces)
    assert np.allclose(loaded.vdot, robot.forward_dynamics(q, v, x, forces=forces), rtol=1e-12)
    assert not np.allclose(loaded.vdot, free.vdot, rtol=1e-3)
    push = robot.jvp("forward_dynamics", q, v, x, dq=v, forces=forces)
    assert np.allclose(push, loaded.vdot_q @ v, rtol=1e-10)

# SPDX-License-Identifier: BSD-3-Clause
"""Results in arrays that keep their zeros are those of ordinary calls, and nothing is written that
may stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.run import jit
from phistar.backends.policy import decide_kept_zeros
from phistar.compile import finish_compilations
from phistar.errors import ArgumentError, NotFiniteError, ShapeError, UnknownNameError
from phistar.model.random import random_model
from phistar.result_buffers import ResultBuffers
from phistar.robot import Robot

NAMES = {
    "mass_matrix": ("mass_matrix",),
    "linearize_inverse": ("tau", "tau_q", "tau_v", "tau_vdot"),
}
TOLERANCE = {np.float64: 1e-13, np.float32: 2e-5}


def _star(seed: int = 0, joints: int = 10) -> Robot:
    """As many branches as joints: most of each matrix is zero."""
    kinds = ["revolute", "prismatic"]
    return Robot(random_model(np.random.default_rng(seed), joints, kinds=kinds, topology="star"))


def _states(robot: Robot, batch: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, batch)
    vectors = rng.normal(size=(2, *batch, robot.nv))
    return [x.astype(dtype) for x in (q, *vectors)]


def _run(robot: Robot, quantity: str, given: Any, **options: Any) -> list[np.ndarray]:
    if quantity == "mass_matrix":
        return [robot.mass_matrix(given[0], **options)]
    at = robot.linearize_inverse(*given, **options)
    return [getattr(at, name) for name in NAMES[quantity]]


def _compare(robot: Robot, buffers: ResultBuffers, given: Any) -> None:
    for found, name, expected in zip(
        _run(robot, buffers.quantity, given, out=buffers),
        NAMES[buffers.quantity],
        _run(robot, buffers.quantity, given),
        strict=True,
    ):
        assert found is buffers.arrays[name]
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        scale = np.abs(expected).max(initial=0.0)
        worst = np.abs(found - expected).max(initial=0.0)
        assert worst <= TOLERANCE[buffers.dtype.type] * scale, name


@pytest.fixture
def whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors are lines of the caches, whatever the processor; code is there at once."""
    monkeypatch.setattr(jit, "lanes_for", lambda cpu, real="double": LINES[real])
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    monkeypatch.setenv("PHISTAR_CACHE", "off")


LINES = {"double": Lanes(8, "double"), "float": Lanes(16, "float")}


@pytest.mark.users_code
@pytest.mark.parametrize(
    ("quantity", "dtype", "joints"),
    [
        ("mass_matrix", np.float64, 10),
        ("mass_matrix", np.float32, 34),
        ("linearize_inverse", np.float64, 10),
    ],
)
def test_batches(quantity: str, dtype: Any, joints: int, whole_lines: None) -> None:
    """Of any size and with several axes, call after call: zeros stay zero, the rest is new."""
    robot = _star(0, joints)
    for batch in ((), (1,), (35,), (2, 8), (0,)):
        buffers = robot.result_buffers(quantity, batch, dtype)
        assert buffers.keeps_zeros == (np.prod(batch) >= 16), buffers.why
        for seed in range(3):
            _compare(robot, buffers, _states(robot, batch, dtype, seed))


@pytest.mark.users_code
def test_lines_of_zeros_are_not_written(whole_lines: None) -> None:
    """What was written there against the promise stays, there and nowhere else, until cleared."""
    robot = _star(1)
    q, *_ = _states(robot, (32,))
    buffers = robot.result_buffers("mass_matrix", 32)
    ordinary = robot.mass_matrix(q)
    zeros = (ordinary == 0.0).all(axis=0)
    found = robot.mass_matrix(q, out=buffers)
    found.fill(7.0)
    for _ in range(2):
        assert robot.mass_matrix(q, out=buffers) is found
        poison = found == 7.0
        assert poison[:, zeros].any()
        assert not poison[:, ~zeros].any()
        np.testing.assert_allclose(found[~poison], ordinary[~poison], rtol=1e-12, atol=1e-13)
    buffers.clear()
    _compare(robot, buffers, [q])


@pytest.mark.parametrize("quantity", NAMES)
def test_errors_leave_zeros(quantity: str) -> None:
    """A sample that is not a number is named; afterwards all is zero, and the next call is right.
    Loops write everywhere, NaN times zero too."""
    robot = _star(2)
    given = _states(robot, (6,))
    buffers = robot.result_buffers(quantity, 6)
    _compare(robot, buffers, given)
    bad = [x.copy() for x in given]
    bad[0][4, 2] = np.nan
    with pytest.raises(NotFiniteError, match=r"q\[4"):
        _run(robot, quantity, bad, out=buffers)
    assert not any(x.any() for x in buffers.arrays.values())
    _compare(robot, buffers, given)


MISUSES: dict[str, tuple[Callable[[Robot, Any], Any], type[Exception], str]] = {
    "quantity": (
        lambda r, s: r.mass_matrix(s[0], out=r.result_buffers("linearize_inverse", 4)),
        ArgumentError,
        "out is made for linearize_inverse, not for mass_matrix",
    ),
    "robot": (
        lambda r, s: r.mass_matrix(s[0], out=_star(9).result_buffers("mass_matrix", 4)),
        ArgumentError,
        "out is made by another robot",
    ),
    "batch": (
        lambda r, s: r.mass_matrix(s[0], out=r.result_buffers("mass_matrix", 5)),
        ShapeError,
        r"out has shape \(5,\).*\(4,\)",
    ),
    "a sample for a batch of one": (
        lambda r, s: r.mass_matrix(s[0][0], out=r.result_buffers("mass_matrix", 1)),
        ShapeError,
        r"out has shape \(1,\)",
    ),
    "dtype": (
        lambda r, s: r.mass_matrix(s[0], out=r.result_buffers("mass_matrix", 4, np.float32)),
        ArgumentError,
        "out holds float32, and the result is float64",
    ),
    "packed": (
        lambda r, s: r.mass_matrix(s[0], "packed", out=r.result_buffers("mass_matrix", 4)),
        ArgumentError,
        "out is for form='dense'",
    ),
    "nan": (
        lambda r, s: r.mass_matrix(s[0], out=r.result_buffers("mass_matrix", 4), on_error="nan"),
        ArgumentError,
        "on_error='raise', got 'dense' and 'nan'",
    ),
    "parts": (
        lambda r, s: r.linearize_inverse(*s, wrt="v", out=r.result_buffers("linearize_inverse", 4)),
        ArgumentError,
        "leave out or these arguments away",
    ),
    "an array": (
        lambda r, s: r.linearize_inverse(*s, out=np.zeros((4, r.nv, r.nv))),
        ArgumentError,
        "expected robot.result_buffers",
    ),
    "no array": (
        lambda r, s: r.mass_matrix(s[0], out=[1.0]),
        ArgumentError,
        "out is a list, expected an array",
    ),
    "unknown": (
        lambda r, s: r.result_buffers("mass_matrx", 4),
        UnknownNameError,
        "mass_matrix",
    ),
    "precision": (
        lambda r, s: r.result_buffers("mass_matrix", 4, complex),
        ArgumentError,
        "dtype is complex128, expected float64 or float32",
    ),
    "negative": (
        lambda r, s: r.result_buffers("mass_matrix", -1),
        ArgumentError,
        "batch is -1, expected 0 or more",
    ),
    "axes": (
        lambda r, s: r.result_buffers("mass_matrix", 2.5),
        ArgumentError,
        "batch is 2.5, expected a number of samples",
    ),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse(misuse: str) -> None:
    """Errors name what was given, what was expected and the cure."""
    robot = phistar.load("double_pendulum")
    call, error, text = MISUSES[misuse]
    with pytest.raises(error, match=text):
        call(robot, _states(robot, (4,)))


def test_other_robots() -> None:
    """Joints that share coordinates, robots that do not move, and equal robots made anew."""
    rng = np.random.default_rng(3)
    for robot, quantity in (
        (Robot(random_model(rng, 4, mimic=0.5)), "linearize_inverse"),
        (Robot(random_model(rng, 4, mimic=0.5)), "mass_matrix"),
        (Robot(random_model(rng, 0)), "linearize_inverse"),
        (phistar.load("four_bar"), "mass_matrix"),
    ):
        _compare(robot, robot.result_buffers(quantity, 3), _states(robot, (3,)))
    buffers = _star(4).result_buffers("mass_matrix", 3)
    _compare(_star(4), buffers, _states(_star(4), (3,)))


def test_other_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without machine code everything is written."""
    monkeypatch.setattr("phistar.backends.default", lambda: "numpy")
    robot = _star(5)
    buffers = robot.result_buffers("linearize_inverse", 3)
    assert not buffers.keeps_zeros
    assert "no machine code" in buffers.why
    _compare(robot, buffers, _states(robot, (3,)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_plain_arrays(dtype: Any) -> None:
    """Of mass matrices: all is written, wherever they are; with gaps and unaligned, too."""
    robot = phistar.load("quadruped")
    q = _states(robot, (9,), dtype)[0]
    expected = robot.mass_matrix(q)
    n, width = robot.nv, expected.itemsize
    room = np.zeros(9 * n * n * width + 1, np.uint8)
    places = (
        np.full((9, n, n), 7.0, dtype),
        np.full((9, n, n + 3), 7.0, dtype)[:, :, 2 : n + 2],
        np.full((n, 9, n), 7.0, dtype).transpose(1, 0, 2),
        room[1:].view(dtype).reshape(9, n, n),
    )
    for out in places:
        assert robot.mass_matrix(q, out=out) is out
        np.testing.assert_array_equal(out, expected)
    finish_compilations()
    for wrong, text in ((out[:8], "shape"), (out.astype(np.longdouble), "dtype")):
        with pytest.raises((ShapeError, ArgumentError), match=text):
            robot.mass_matrix(q, out=wrong)


def test_what_is_decided() -> None:
    """By the share of lines; halves of lines are not passed over. Decisions of programs say so."""
    assert decide_kept_zeros(100, 25, 64) == (
        True,
        "results that keep zeros leave lines as they are: 25 % of the lines are zero, "
        "from 5 % on it pays",
    )
    assert not decide_kept_zeros(100, 4, 64)[0]
    pays, why = decide_kept_zeros(100, 90, 32)
    assert not pays
    assert "vectors have 32 bytes, lines of the caches 64" in why
    robot = phistar.load("quadruped")
    for quantity in NAMES:
        buffers = robot.result_buffers(quantity, 64)
        assert buffers.why in str(robot.compile(quantity).decision)
        assert repr(buffers).startswith("<result buffers of 'quadruped': ")
    assert "keep zeros" not in robot.compile("mass_matrix_inverse").decision.why

# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that are not NumPy's own: pandas by labels, memory by DLPack, subclasses of arrays."""

from typing import Any

import numpy as np
import pytest

import phistar
from phistar.errors import ArgumentError, UnknownNameError


def table(labels: list[Any], values: np.ndarray) -> Any:
    """What a pandas DataFrame (two axes) or Series (one) shows of itself."""
    columns = dict(zip(labels, np.moveaxis(values, -1, 0), strict=True))
    members = {
        "columns" if values.ndim == 2 else "index": labels,
        "__getitem__": lambda self, label: columns[label],
        "__array__": lambda self, dtype=None, copy=None: values,
    }
    kind = "DataFrame" if values.ndim == 2 else "Series"
    return type(kind, (), {"__module__": "pandas.core.frame", **members})()


class Lent:
    """Memory by DLPack, and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("shape", [(2,), (5, 2)])
def test_labels_of_pandas_are_joints(shape: tuple[int, ...]) -> None:
    """Columns are found by name, in whatever order; numbers as labels count positions."""
    robot = phistar.load("cartpole")
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=shape), rng.normal(size=shape)
    expected = robot.bias_force(q, v)
    turned = table(["hinge", "slider"], q[..., ::-1])
    np.testing.assert_array_equal(robot.bias_force(turned, table([0, 1], v)), expected)


def test_wrong_labels_are_refused() -> None:
    """By name, and never read by position."""
    robot = phistar.load("cartpole")
    with pytest.raises(UnknownNameError, match="no independent joint 'x'"):
        robot.bias_force(table(["x", "hinge"], np.zeros(2)), np.zeros(2))
    with pytest.raises(ArgumentError, match="not unique"):
        robot.bias_force(table(["hinge", "hinge"], np.zeros(2)), np.zeros(2))


def test_memory_by_dlpack() -> None:
    """Arguments may be lent, results can be: no copy is made of what they are."""
    robot = phistar.load("cartpole")
    q, v = np.array([0.1, 0.2]), np.array([0.3, 0.4])
    found = robot.bias_force(Lent(q), Lent(v))
    np.testing.assert_array_equal(found, robot.bias_force(q, v))
    shared = np.from_dlpack(Lent(found))
    found[0] = 7.0
    assert shared[0] == 7.0


def test_other_subclasses_are_arrays() -> None:
    """Results are plain arrays: what the class means is the user's."""

    class Own(np.ndarray):
        pass

    robot = phistar.load("cartpole")
    q = np.array([0.1, 0.2])
    found = robot.bias_force(q.view(Own), q)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, robot.bias_force(q, q))

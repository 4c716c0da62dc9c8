# SPDX-License-Identifier: BSD-3-Clause
"""Functions of rotation formulas on scalars, against those of ``spatial`` on arrays."""

from collections.abc import Callable

import numpy as np
import pytest

from phistar.scalar.graph import Graph, Scalar
from phistar.scalar.interpret import run
from phistar.scalar.linear.elementary import HalfAngle, arctan_ratio
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.spatial import _elementary as witness

ANGLES = np.concatenate([[0.0, 1e-160, 1e-30, 1e-18], 10.0 ** np.linspace(-12, 0.49, 400), [np.pi]])

RATIOS: dict[str, tuple[Callable[[HalfAngle], Scalar], Callable[[np.ndarray], np.ndarray]]] = {
    "sine": (lambda half: half.sine_ratio, witness.sine_ratio),
    "versine": (lambda half: half.versine_ratio, witness.versine_ratio),
    "sine defect": (lambda half: half.exact_sine_defect, witness.sine_defect),
    "cotangent defect": (
        lambda half: half.cotangent_defect * half.square,
        lambda t: t * witness.cotangent_defect(t),
    ),
    "half cosine": (lambda half: half.half_cosine, lambda t: witness.cosine(t / 4)),
    "coarse defect": (
        lambda half: half.sine_defect * half.square,
        lambda t: t * witness.sine_defect(t),
    ),
}


def value(formula: Callable[[Scalar], Scalar], x: np.ndarray) -> np.ndarray:
    """A formula of one number, in the precision of the given ones."""
    graph = Graph()
    body = BasicBlock(graph, [Store("y", 0, "", formula(graph.load("x", 0)))])
    return run(Unrolled(Signature({"x": 1}, {"y": 1}), body), {"x": x[:, None]})["y"][:, 0]


@pytest.mark.parametrize("name", RATIOS)
@pytest.mark.parametrize(("dtype", "bound"), [(np.float64, 5e-16), (np.float32, 3e-7)])
def test_ratios(name: str, dtype: type, bound: float) -> None:
    """At all angles up to half a turn, zero included, in both precisions."""
    ours, known = RATIOS[name]
    t = (ANGLES**2).astype(dtype)
    found = value(lambda x: ours(HalfAngle(x)), t)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, known(t.astype(float)), rtol=0, atol=bound)


@pytest.mark.parametrize(("dtype", "bound"), [(np.float64, 6e-16), (np.float32, 4e-7)])
def test_arctan_ratio(dtype: type, bound: float) -> None:
    """arctan2(s, c) / s relative to itself, from zero to a quarter turn."""
    angles = np.concatenate([[x for x in ANGLES if x < np.pi / 2], [np.pi / 8, np.pi / 2]])
    sine, cosine = np.sin(angles).astype(dtype), np.cos(angles).astype(dtype)
    graph = Graph()
    ratio = arctan_ratio(graph.load("s", 0), graph.load("c", 0))
    body = BasicBlock(graph, [Store("y", 0, "", ratio)])
    program = Unrolled(Signature({"s": 1, "c": 1}, {"y": 1}), body)
    found = run(program, {"s": sine[:, None], "c": cosine[:, None]})["y"][:, 0]
    exact = np.arctan2(sine.astype(float), cosine.astype(float))
    known = np.where(sine > 0, exact / np.where(sine > 0, sine, 1.0), 1.0)
    np.testing.assert_allclose(found, known, rtol=bound)

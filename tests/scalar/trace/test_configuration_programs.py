# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines of ``integrate`` and ``difference``, against ``model.configuration``."""

import numpy as np
import pytest

from phistar.derivatives import lie_jacobians
from phistar.model import Model
from phistar.model import configuration as witness
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.scalar.graph import Graph
from phistar.scalar.interpret import run
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.trace import configuration_programs as programs
from phistar.scalar.trace.kinematics_programs import RESULT_OUTPUT
from phistar.scalar.trace.step_jacobians import step_jacobians
from phistar.scalar.verify import verify

CASES = ["mixed tree", "forest", "free base", "panda_hand", "planar", "spherical", "universal"]
TURNING = ["spherical", "free", "planar"]


def integrate(model: Model, q: np.ndarray, dv: np.ndarray) -> np.ndarray:
    """By our program."""
    program = programs.integrate(model)
    verify(program)
    return run(program, {"q": q, "dv": dv})[RESULT_OUTPUT]


def difference(model: Model, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
    """By our program."""
    program = programs.difference(model)
    verify(program)
    return run(program, {"q0": q0, "q1": q1})[RESULT_OUTPUT]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [1.0, 1e-5, 1e-12, 0.0])
def test_every_robot(models: dict[str, Model], case: str, size: float) -> None:
    """In the robot's own coordinates, mimic joints included, at all sizes of steps."""
    model, rng = models[case], np.random.default_rng(3)
    q = random_configuration(model, rng, (5,))
    dv = size * rng.normal(size=(5, model.nv))
    ahead = witness.integrate(model, q, dv)
    scale = max(1.0, np.abs(q).max())
    np.testing.assert_allclose(integrate(model, q, dv), ahead, rtol=0, atol=2e-15 * scale)
    known = witness.difference(model, q, ahead)
    # Positions carry roundings of their own size.
    np.testing.assert_allclose(difference(model, q, ahead), known, rtol=0, atol=1e-14 * scale)


@pytest.mark.parametrize("kind", TURNING)
@pytest.mark.parametrize("gap", [0.0, 1e-9, 1e-3])
def test_near_half_a_turn(kind: str, gap: float) -> None:
    """Steps just short of half a turn and just beyond it lead back to where they came from."""
    rng = np.random.default_rng(4)
    model = random_model(rng, 1, kinds=[kind])
    q = random_configuration(model, rng, (20,))
    dv = rng.normal(size=(20, model.nv))
    turn = dv[:, :3] if kind != "planar" else dv[:, 2:]
    turn *= (np.pi + gap * rng.choice([-1.0, 1.0], (20, 1))) / np.linalg.norm(
        turn, axis=1, keepdims=True
    )
    ahead = witness.integrate(model, q, dv)
    back = difference(model, q, ahead)
    angle = np.linalg.norm(back[:, :3] if kind != "planar" else back[:, 2:], axis=1)
    assert angle.max() < np.pi + 4e-15
    again = witness.integrate(model, q, back)
    own = model.joints[model.joint_names[0]].joint_kind.transform
    np.testing.assert_allclose(own(again), own(ahead), rtol=0, atol=1e-14)
    known = witness.difference(model, q, ahead)
    inside = np.abs(np.pi - angle) > 1e-8
    np.testing.assert_allclose(back[inside], known[inside], rtol=0, atol=2e-14)


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_opposite_quaternions(kind: str) -> None:
    """q and -q are one rotation: no step; exact half turns point along the first positive axis."""
    model = random_model(np.random.default_rng(5), 1, kinds=[kind])
    q0 = np.tile(witness.neutral(model), (4, 1))
    q1 = q0.copy()
    q1[:, -4:] = [[0, 0, 0, -1], [0, -1, 0, 0], [0, 0, -1, 0], [-0.6, 0.8, 0, 0]]
    known = witness.difference(model, q0, q1)
    np.testing.assert_allclose(difference(model, q0, q1), known, rtol=0, atol=1e-15)
    assert not known[0].any()


@pytest.mark.parametrize("kind", TURNING)
def test_single_precision(kind: str) -> None:
    """float32 stays float32, with finite results for steps of zero."""
    rng = np.random.default_rng(6)
    model = random_model(rng, 2, kinds=[kind])
    q = random_configuration(model, rng, (6,)).astype(np.float32)
    dv = (rng.normal(size=(6, model.nv)) * [[1], [1e-4], [1e-12], [1e-25], [0], [2]]).astype(
        q.dtype
    )
    ahead = integrate(model, q, dv)
    assert ahead.dtype == np.float32
    np.testing.assert_allclose(
        ahead, witness.integrate(model, q.astype(float), dv.astype(float)), rtol=0, atol=2e-6
    )
    back = difference(model, q, q)
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, np.zeros_like(dv), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", TURNING)
@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-9, 0.0])
@pytest.mark.parametrize("name", ["step_adjoint", "right_jacobian"])
def test_jacobians_of_steps(kind: str, size: float, name: str) -> None:
    """Both matrices against the power series of ``lie_jacobians``."""
    rng = np.random.default_rng(7)
    model = random_model(rng, 1, kinds=[kind])
    u = size * rng.normal(size=(5, model.nv))
    graph = Graph()
    given: Vector = [graph.load("u", i) for i in range(model.nv)]
    joint_kind = model.joints[model.joint_names[0]].joint_kind
    adjoint, jacobian = step_jacobians(joint_kind, given)
    rows = adjoint if name == "step_adjoint" else jacobian
    stores = [Store("y", i, "", x) for i, x in enumerate(x for row in rows for x in row)]
    program = Unrolled(Signature({"u": model.nv}, {"y": len(stores)}), BasicBlock(graph, stores))
    found = run(program, {"u": u})["y"].reshape(5, model.nv, model.nv)
    known = getattr(lie_jacobians, name)(model, u)
    np.testing.assert_allclose(found, known, rtol=0, atol=3e-15)

# SPDX-License-Identifier: BSD-3-Clause
"""Robots of every joint kind, and scalar programs run beside the interpreter of sweeps."""

from collections.abc import Callable

import numpy as np
import pytest

import phistar
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.joints import JOINT_KINDS
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.program import ScalarProgram
from phistar.sweeps.interpret import run as run_sweeps
from phistar.sweeps.ir import Type
from phistar.sweeps.schedule import Schedule

MOVING = tuple(kind for kind in JOINT_KINDS if kind != "fixed")
SMALL = ("small tree", "small forest", "small base")
"""Robots of three or four joints that have every kind between them, for long programs: these cost
tens of times less to trace than the larger robots."""
Values = dict[str, np.ndarray]


def _models() -> dict[str, Model]:
    models = {
        kind: random_model(np.random.default_rng(i), 3, kinds=[kind], armature=0.5)
        for i, kind in enumerate(MOVING)
    }

    def add(name: str, seed: int, n: int, **options: object) -> None:
        models[name] = random_model(np.random.default_rng(seed), n, **options)  # type: ignore[arg-type]

    add("mixed tree", 20, 9, armature=0.5, fixed=0.2, massless=0.2)
    add("forest", 21, 8, topology="forest", armature=0.5)
    add("free base", 22, 6, floating_base=True, anchors=0.5)
    add("arms", 24, 9, topology="arms", kinds=["revolute", "prismatic"])
    options = {"armature": 0.5, "frames": 2}
    add("small tree", 25, 4, kinds=MOVING[0::3], topology="tree", massless=0.2, **options)
    add("small forest", 26, 4, kinds=MOVING[1::3], topology="forest", fixed=0.3, **options)
    add("small base", 27, 3, kinds=MOVING[2::3], floating_base=True, anchors=0.5, **options)
    models["panda_hand"] = phistar.load("panda_hand").model
    return models


@pytest.fixture(scope="session")
def models() -> dict[str, Model]:
    """Each joint kind alone, mixtures, a forest, a free base, a mimic joint, rotors."""
    return _models()


def sample(
    schedule: Schedule, model: Model, locked: frozenset[int] = frozenset(), seed: int = 0
) -> tuple[np.ndarray, Values]:
    """Two random configurations, and everything that a program reads but gravity."""
    rng = np.random.default_rng(seed)
    q = random_configuration(model, rng, (2,))
    joints = sum(body.joint_kind.nv for body in model.bodies if body.index not in locked)
    inputs = {}
    for stream in schedule.program.live():
        node = schedule.program.nodes[stream]
        if node.op == "leaf" and node.data != "gravity":
            shape = (2, joints) if node.type is Type.JOINT else (2, len(model.bodies), 6)
            inputs[node.data] = rng.normal(size=shape)
    return q, inputs


def outputs(program: ScalarProgram, q: np.ndarray, inputs: Values) -> Values:
    """A scalar program on inputs as sweeps take them."""
    given = {"q": q, **inputs}
    rows = {name: given[name].reshape(len(q), -1) for name in program.signature.inputs}
    return run(program, rows)


def witness(
    schedule: Schedule,
    model: Model,
    q: np.ndarray,
    inputs: Values,
    locked: frozenset[int] = frozenset(),
) -> Values:
    """The outputs by the interpreter of sweeps, as rows."""
    known = run_sweeps(schedule, model, q, inputs, (), locked)
    return {name: value.reshape(len(q), -1) for name, value in known.items()}


@pytest.fixture(scope="session")
def error() -> Callable[..., float]:
    """The largest error of a program relative to the largest number of each output."""

    def largest(
        program: ScalarProgram,
        schedule: Schedule,
        model: Model,
        locked: frozenset[int] = frozenset(),
        imaginary: float = 0.0,
    ) -> float:
        q, inputs = sample(schedule, model, locked)
        if imaginary:
            q = q + 1j * imaginary * np.random.default_rng(9).normal(size=q.shape)
        known = witness(schedule, model, q, inputs, locked)
        ours = outputs(program, q, inputs)
        assert ours.keys() == known.keys()
        worst = 0.0
        for name, value in known.items():
            assert ours[name].shape == value.shape
            scale = max(np.abs(value).max(initial=0.0), 1e-3)
            worst = max(worst, np.abs(ours[name] - value).max(initial=0.0) / scale)
        return worst

    return largest

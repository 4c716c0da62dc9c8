# SPDX-License-Identifier: BSD-3-Clause
"""Updates of a state as straight lines."""

import numpy as np
import pytest

from phistar.model.configuration import integrate, random_configuration
from phistar.model.joints import JOINT_KINDS
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.trace.state_update import StateUpdate, joint_offsets, to_state_update
from phistar.scalar.verify import verify


@pytest.mark.parametrize("kind", [name for name in JOINT_KINDS if name != "fixed"])
@pytest.mark.parametrize("size", [1.0, 1e-5, 1e-12, 0.0])
def test_steps_are_those_of_the_configuration_space(kind: str, size: float) -> None:
    """q ⊕ h v at all sizes of v is ``integrate``, to 1e-14 of what moves, for every joint kind."""
    rng = np.random.default_rng(0)
    model = random_model(rng, 2, kinds=[kind], topology="serial")
    program = to_state_update(
        joint_offsets(model), StateUpdate(velocity_weights=((0, 1.0),), rate_weights=((0, 2.0),))
    )
    verify(program)
    q = random_configuration(model, rng, (4,))
    v, x, a = (rng.normal(size=(4, model.nv)) for _ in range(3))
    v *= size
    found = run(program, {"q": q, "x": x, "h": np.full((4, 1), 0.7), "v0": v, "a0": a})
    expected = integrate(model, q, 0.7 * v)
    assert np.abs(found["q_new"] - expected).max() < 1e-14 * max(1.0, np.abs(expected).max())
    assert np.abs(found["x_new"] - (x + 1.4 * a)).max() < 1e-14 * np.abs(x).max() * 10


def test_brackets_need_turning_joints() -> None:
    """Robots of hinges have no bracket: the update with one is the update without."""
    model = random_model(np.random.default_rng(1), 3, kinds=["revolute", "prismatic"])
    plain = StateUpdate(velocity_weights=((0, 1.0),))
    turned = StateUpdate(velocity_weights=((0, 1.0),), bracket_weights=((0, 1, 0.5),))
    bills = [to_state_update(joint_offsets(model), each).count() for each in (plain, turned)]
    assert bills[0] == bills[1]

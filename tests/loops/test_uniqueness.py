# SPDX-License-Identifier: BSD-3-Clause
"""Which components of loop wrenches are determined: against the null space of L*."""

import warnings

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.constraints import Point
from phistar.errors import RedundantWrenchWarning, UnknownNameError
from phistar.model.components import LoopJoint
from phistar.model.loop_kinds import LOWER_PAIRS, wrench_columns
from phistar.robot import Robot
from tests.loops.mechanisms import (
    NAMES,
    four_bar,
    four_bar_state,
    mechanism,
    needs_loops,
)


def expected_components(robot: Robot, q: Array) -> dict[str, Array]:
    """By a null space of L* in the rows' own units: wrenches of all its stresses."""
    L = robot.loop_jacobian(q)
    U, S, _ = np.linalg.svd(L.values)
    stress = U[:, int((1e-9 * S[0] <= S).sum()) :]
    found = {}
    for loop in robot.loops:
        assert isinstance(loop, LoopJoint)
        assert loop.kind in LOWER_PAIRS  # N is constant
        wrench = wrench_columns(loop, np.eye(4)).T @ stress[L.slices[loop.name]]
        found[loop.name] = np.abs(wrench).max(axis=-1, initial=0.0) < 1e-8
    return found


def test_a_planar_linkage_has_forces_in_its_plane_alone() -> None:
    """The four-bar moves in the plane across y; the moment about the hinge is none: determined."""
    robot = four_bar()
    q, v, tau = four_bar_state()
    found = robot.constrained_dynamics(q, v, tau)
    pin = found.unique_components["coupler_closure"]
    assert pin.values.tolist() == [False, True, False, True, False, True]
    assert pin["fx"]
    assert not pin["fy"]
    assert pin.moment.tolist() == [False, True, False]
    assert pin.force.tolist() == [True, False, True]
    assert pin.undetermined == ("mx", "mz", "fy")
    assert np.asarray(pin).dtype == bool
    with pytest.raises(UnknownNameError, match="fx"):
        pin["f"]
    with pytest.warns(RedundantWrenchWarning, match="not determined in mx, mz, fy:"):
        found.wrenches["coupler_closure"]
    vdot = found.vdot
    again = robot.constrained_inverse_dynamics(q, v, vdot, actuated=["crank_joint"])
    assert np.array_equal(again.unique_components["coupler_closure"].values, pin.values)


@needs_loops
@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in ("gear_train", "gripper_mimic", "rolling")]
)
def test_components_are_those_that_no_self_stress_touches(name: str) -> None:
    """At all samples, in batches; where all are determined the loop is, and not otherwise."""
    case = mechanism(name)
    robot = case.robot
    if not all(isinstance(x, LoopJoint) and x.active for x in robot.loops):
        pytest.skip("has couplings, or loops that are switched off")
    q, v, tau = case.state
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = robot.constrained_dynamics(q, v, tau)
    for k in range(len(q)):
        expected = expected_components(robot, q[k])
        for loop, components in found.unique_components.items():
            assert components.values[k].tolist() == expected[loop].tolist(), (loop, k)
            assert found.unique[loop][k] == components.values[k].all()


def test_a_foot_that_is_held_twice() -> None:
    """Nothing is known of how two points at one place share their force; of one all is."""
    dog = phistar.load("quadruped")
    feet = [Point("FL_FOOT"), Point("FL_FOOT", name="again")]
    rest = np.zeros(dog.nv)
    found = dog.constrained_dynamics(dog.home, rest, rest, constraints=feet)
    for name in found.unique_components:
        assert found.unique_components[name].undetermined == ("fx", "fy", "fz")
    alone = dog.constrained_dynamics(dog.home, rest, rest, constraints=feet[:1])
    (components,) = alone.unique_components.values()
    assert components.values.all()

# SPDX-License-Identifier: BSD-3-Clause
"""The general path looks at each argument once: it is read, and its numbers are checked, one time.

The functions that look at arguments are counted, by the name of the argument, in the second call of
each method: float32 arrays, lists, batches that broadcast, and ``out=``, none of which the entries
to machine code take.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from phistar import Robot, random_model
from phistar.compile import REQUESTS
from phistar.model import configuration
from tests.helpers import patch_policy

WATCHED: dict[str, Callable[..., str]] = {
    "read_coordinates": lambda model, x, space, argument: argument,
    "as_numbers": lambda x, argument: argument,
    "require_finite": lambda name, array: name,
    "require_unit_quaternions": lambda model, q, argument="q": argument,
}
"""What looks at an argument, and how it is told which one."""

METHODS: dict[str, Callable[..., Any]] = {
    "inverse_dynamics": lambda r, q, v, x, w: r.inverse_dynamics(q, v, x),
    "inverse_dynamics, forces": lambda r, q, v, x, w: r.inverse_dynamics(q, v, x, forces=w),
    "forward_dynamics": lambda r, q, v, x, w: r.forward_dynamics(q, v, x),
    "forward_dynamics, forces": lambda r, q, v, x, w: r.forward_dynamics(q, v, x, forces=w),
    "mass_matrix": lambda r, q, v, x, w: r.mass_matrix(q),
    "mass_matrix_inverse": lambda r, q, v, x, w: r.mass_matrix_inverse(q),
    "bias_force": lambda r, q, v, x, w: r.bias_force(q, v),
    "gravity_force": lambda r, q, v, x, w: r.gravity_force(q),
    "coriolis_matrix": lambda r, q, v, x, w: r.coriolis_matrix(q, v),
    "log_determinant": lambda r, q, v, x, w: r.log_determinant(q),
    "operational_inertia": lambda r, q, v, x, w: r.operational_inertia(q, [r.link_names[-1]]),
    "linearize": lambda r, q, v, x, w: r.linearize(q, v, x),
    "linearize, forces": lambda r, q, v, x, w: r.linearize(q, v, x, forces=w),
    "linearize_inverse": lambda r, q, v, x, w: r.linearize_inverse(q, v, x),
    "discretize": lambda r, q, v, x, w: r.discretize(q, v, x, 1e-3),
    "step": lambda r, q, v, x, w: r.step(q, v, x, 1e-3, passive=False),
    "integrate": lambda r, q, v, x, w: r.integrate(q, v),
    "difference": lambda r, q, v, x, w: r.difference(q, q),
    "jvp": lambda r, q, v, x, w: r.jvp("forward_dynamics", q, v, x, dq=v, dv=v, dtau=x),
    "vjp": lambda r, q, v, x, w: r.vjp("forward_dynamics", q, v, x, x),
    "jacobian": lambda r, q, v, x, w: r.jacobian(q, r.link_names[-1]),
    "jacobian_rate": lambda r, q, v, x, w: r.jacobian_rate(q, v, r.link_names[-1]),
    "frame_pose": lambda r, q, v, x, w: r.frame_pose(q, r.link_names[-1]),
    "frame_velocity": lambda r, q, v, x, w: r.frame_velocity(q, v, r.link_names[-1]),
    "frame_acceleration": lambda r, q, v, x, w: r.frame_acceleration(q, v, x, r.link_names[-1]),
    "link_poses": lambda r, q, v, x, w: r.link_poses(q),
    "center_of_mass": lambda r, q, v, x, w: r.center_of_mass(q),
    "momentum": lambda r, q, v, x, w: r.momentum(q, v),
    "center_of_mass_jacobian": lambda r, q, v, x, w: r.center_of_mass_jacobian(q),
    "center_of_mass_jacobian_rate": lambda r, q, v, x, w: r.center_of_mass_jacobian_rate(q, v),
    "centroidal_momentum_matrix": lambda r, q, v, x, w: r.centroidal_momentum_matrix(q),
    "centroidal_momentum_matrix_rate": lambda r, q, v, x, w: r.centroidal_momentum_matrix_rate(
        q, v
    ),
    "frame_bias_acceleration": lambda r, q, v, x, w: r.frame_bias_acceleration(
        q, v, r.link_names[-1]
    ),
    "passive_force": lambda r, q, v, x, w: r.passive_force(q, v),
    "kinetic_energy": lambda r, q, v, x, w: r.kinetic_energy(q, v),
    "potential_energy": lambda r, q, v, x, w: r.potential_energy(q),
    "hybrid_dynamics": lambda r, q, v, x, w: r.hybrid_dynamics(q, v, x, x, r.joint_names[-1:]),
    "mass_matrix_q": lambda r, q, v, x, w: r.mass_matrix_q(q),
    "mass_matrix_qq": lambda r, q, v, x, w: r.mass_matrix_qq(q),
    "regressor": lambda r, q, v, x, w: r.regressor(q, v, x),
}
"""Methods that have a kernel."""


@pytest.fixture(scope="module")
def robot() -> Robot:
    """A small robot with a free joint."""
    rng = np.random.default_rng(3)
    return Robot(random_model(rng, 2, kinds=["revolute"], floating_base=True))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """How often each watched function looked at each argument."""
    # Everything is compiled for the first sample.
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    patch_policy(monkeypatch, samples_before_compile=0)
    found: Counter[tuple[str, str]] = Counter()

    def counting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def function(*given: Any, **more: Any) -> Any:
            found[name, WATCHED[name](*given, **more)] += 1
            return real(*given, **more)

        return function

    for name in WATCHED:
        real = getattr(configuration, name)
        watched = counting(name, real)
        for module in list(sys.modules.values()):
            own = getattr(module, "__name__", "").startswith("phistar")
            if own and vars(module).get(name) is real:
                monkeypatch.setattr(module, name, watched)
    return found


def states(robot: Robot, kind: str) -> tuple[Any, ...]:
    """q, v and x as somebody may give them, and wrenches."""
    rng = np.random.default_rng(0)
    batch = {"list": (), "float32": (3,), "broadcast": (2, 1)}[kind]
    q = robot.random_configuration(rng, batch)
    v, x = rng.normal(size=(2, *((3,) if kind == "broadcast" else batch), robot.nv))
    w = rng.normal(size=6)
    if kind == "list":
        return q.tolist(), v.tolist(), x.tolist(), {robot.link_names[-1]: w.tolist()}
    if kind == "float32":
        q, v, x, w = (y.astype(np.float32) for y in (q, v, x, w))
    return q, v, x, {robot.link_names[-1]: w}


@pytest.mark.parametrize("kind", ["list", "float32", "broadcast"])
@pytest.mark.parametrize("method", METHODS)
def test_each_argument_is_examined_once(
    method: str, kind: str, robot: Robot, seen: Counter[tuple[str, str]]
) -> None:
    """It is read once, and none of its numbers are looked at twice."""
    given = states(robot, kind)
    METHODS[method](robot, *given)
    seen.clear()
    METHODS[method](robot, *given)
    assert {key: count for key, count in seen.items() if count > 1} == {}
    # The second call took the general path: somebody looked at the configuration.
    assert any(argument in ("q", "q0") for _, argument in seen)


@pytest.mark.parametrize("method", ["inverse_dynamics", "forward_dynamics"])
def test_with_out(method: str, robot: Robot, seen: Counter[tuple[str, str]]) -> None:
    """A result of float32 goes to an array of the user, in the same way."""
    q, v, x, _ = states(robot, "float32")
    out = np.empty(v.shape, np.float32)
    for _ in range(2):
        seen.clear()
        getattr(robot, method)(q, v, x, out=out)
    assert max(seen.values()) == 1
    assert any(argument == "q" for _, argument in seen)


def test_all_methods_with_a_kernel_are_here() -> None:
    """What is a row of the table and a method of robots has its line above."""
    rows = {name for name in REQUESTS if hasattr(Robot, name)}
    missing = rows - {name.partition(",")[0] for name in METHODS}
    assert missing == set()

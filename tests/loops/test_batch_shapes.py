# SPDX-License-Identifier: BSD-3-Clause
"""Batches of every shape, none included, through everything that a robot with loops is asked."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from phistar.loops.routes import ROUTES
from phistar.model import Model
from tests.loops.mechanisms import four_bar

CALLS = {
    "forward_dynamics": lambda r, q, v, x: r.forward_dynamics(q, v, x),
    **{
        f"forward_dynamics {route}": lambda r, q, v, x, route=route: r.forward_dynamics(
            q, v, x, method=route
        )
        for route in sorted({*ROUTES} - {"auto"})
    },
    "passive": lambda r, q, v, x: r.forward_dynamics(q, v, x, passive=True),
    "forces": lambda r, q, v, x: r.forward_dynamics(
        q, v, x, forces={r.link_names[-1]: np.arange(6.0)}
    ),
    "constrained_dynamics": lambda r, q, v, x: r.constrained_dynamics(q, v, x),
    "constrained_inverse_dynamics": lambda r, q, v, x: r.constrained_inverse_dynamics(
        q, v, r.forward_dynamics(q, v, x)
    ),
    "linearize": lambda r, q, v, x: r.linearize(q, v, x),
    "reduced": lambda r, q, v, x: r.linearize(q, v, x).reduced(),
    "discretize": lambda r, q, v, x: r.discretize(q, v, x, 1e-3),
    "step": lambda r, q, v, x: r.step(q, v, x, 1e-3),
    "jvp": lambda r, q, v, x: r.jvp("forward_dynamics", q, v, x, dq=v),
    "vjp": lambda r, q, v, x: r.vjp("forward_dynamics", q, v, x, v),
    "hvp": lambda r, q, v, x: r.hvp("forward_dynamics", q, v, x, v, dq=v),
    "second": lambda r, q, v, x: r.forward_dynamics_second(q, v, x),
    "hybrid_dynamics": lambda r, q, v, x: r.hybrid_dynamics(
        q, v, x, r.forward_dynamics(q, v, x), [r.joint_names[0]]
    ),
    "linearize_hybrid": lambda r, q, v, x: r.linearize_hybrid(
        q, v, x, r.forward_dynamics(q, v, x), [r.joint_names[0]]
    ),
    "vdot_parameters": lambda r, q, v, x: r.vdot_parameters(q, v, x),
    "diagonal_forward_dynamics": lambda r, q, v, x: r.diagonal_forward_dynamics(
        q, r.diagonalize(q, v).zeta, x
    ),
    "reaction_forces": lambda r, q, v, x: r.reaction_forces(
        q, v, r.forward_dynamics(q, v, x), tau=x
    ),
    "loop_error": lambda r, q, v, x: np.asarray(r.loop_error(q)),
    "loop_jacobian": lambda r, q, v, x: np.asarray(r.loop_jacobian(q)),
    "assemble": lambda r, q, v, x: r.assemble(q),
    "project": lambda r, q, v, x: r.project(q, v),
}


def arrays_of(found: Any) -> Iterator[np.ndarray]:
    """Arrays of a result with an axis of samples in front."""
    if isinstance(found, np.ndarray):
        yield found
    elif isinstance(found, Mapping):
        for each in found.values():
            yield from arrays_of(each)
    elif isinstance(found, tuple):
        for each in found:
            if isinstance(each, np.ndarray):
                yield each
    elif is_dataclass(found) and not isinstance(found, Model):
        for field in fields(found):
            yield from arrays_of(getattr(found, field.name))


@pytest.mark.parametrize("call", sorted(CALLS))
def test_no_samples_give_no_results(call: str) -> None:
    """An empty batch is a batch: the shapes of three samples with nothing in them."""
    robot = four_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forces that are not determined
        rest = robot.assemble(np.full(robot.nq, 0.2))
        full = np.tile(rest, (3, 1)), np.zeros((3, robot.nv)), np.ones((3, robot.nv))
        three = list(arrays_of(CALLS[call](robot, *full)))
        none = list(arrays_of(CALLS[call](robot, *(x[:0] for x in full))))
    assert three
    for one, other in zip(three, none, strict=True):
        if one.shape[:1] == (3,):
            assert other.shape == (0, *one.shape[1:])
            assert other.dtype == one.dtype

# SPDX-License-Identifier: BSD-3-Clause
"""Loops over many links: classes share bodies, siblings share a sum that the first of them begins.

All results are compared with the interpreter of sweeps, which knows no classes.
"""

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from phistar.algebra.symbols import H, P, psi
from phistar.compile import kernel, with_closed_inverses
from phistar.model import Model
from phistar.model.builder import ModelBuilder
from phistar.model.generators import chain
from phistar.model.random import random_model
from phistar.scalar.lower import LoweringOptions, to_looped, to_unrolled
from phistar.scalar.program import Looped, first_visited_siblings
from phistar.scalar.verify import VerifyError, verify
from phistar.sweeps.ir import Direction
from phistar.sweeps.matrix_requests import Full, matrix_forms

Error = Callable[..., float]
GRAVITY = frozenset({"gravity"})
LINKS = 30


@pytest.fixture(scope="module")
def thicket() -> Model:
    """Branches everywhere, links with and without rotors."""
    rng = np.random.default_rng(31)
    return random_model(rng, LINKS, kinds=["revolute", "prismatic"], armature=0.5)


def _loops(model: Model, name: str) -> Looped:
    return to_looped(kernel(name).schedule, model, GRAVITY, options=LoweringOptions(regroup=True))


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics_3", "forward_dynamics_2"])
def test_sums_that_a_child_begins(name: str, thicket: Model, error: Error) -> None:
    """Siblings of one class store or add by their turn; inverse dynamics has no such sums."""
    program = _loops(thicket, name)
    verify(program)
    begun = [
        s
        for loop in program.sweeps
        for b in loop.blocks.values()
        for s in b.stores
        if s.first_child_stores
    ]
    assert bool(begun) == (name != "inverse_dynamics")
    assert error(program, kernel(name).schedule, thicket) <= 1e-10


def test_without_beginning_they_add_to_nothing(thicket: Model) -> None:
    """The verifier notices a child that adds to what nobody stored."""
    program = _loops(thicket, "forward_dynamics_3")
    body = next(
        b
        for loop in program.sweeps
        for b in loop.blocks.values()
        if any(s.first_child_stores for s in b.stores)
    )
    for store in body.stores:
        object.__setattr__(store, "first_child_stores", False)
    with pytest.raises(VerifyError, match="nothing to add to"):
        verify(program)


def test_classes_share_bodies(thicket: Model) -> None:
    """What is outward does not ask whether a link is a tip; sines are the same for all classes."""
    program = _loops(thicket, "forward_dynamics_3")
    sines, outward, inward, _ = program.sweeps
    distinct = [len({id(b) for b in loop.blocks.values()}) for loop in (sines, outward, inward)]
    assert distinct[0] == 1 < len(sines.blocks)
    assert distinct[1] < distinct[2] == len(inward.blocks)


def test_tips_with_a_simpler_inertia(error: Error) -> None:
    """Links that differ in the form of what an earlier pass left do not share a body."""
    model = chain(6)
    form = matrix_forms(with_closed_inverses(P @ psi.T @ H.T), Full())[0]
    program = to_looped(form.schedule, model, GRAVITY)
    verify(program)
    *_, inner, tip = program.links.class_of
    sines, _, outward = program.sweeps
    assert inner != tip
    assert sines.blocks[inner] is sines.blocks[tip]
    assert outward.blocks[inner] is not outward.blocks[tip]
    assert error(program, form.schedule, model) <= 1e-12


def test_the_first_sibling() -> None:
    """A walk inward meets the last one first; on the ground every link is one."""
    parents = [-1, 0, 0, 2, -1, 2]
    assert first_visited_siblings(parents, Direction.OUTWARD) == [
        True,
        True,
        False,
        True,
        True,
        False,
    ]
    assert first_visited_siblings(parents, Direction.INWARD) == [
        True,
        False,
        True,
        False,
        True,
        True,
    ]


def test_joints_that_move_nothing_compile() -> None:
    """Forward dynamics is refused for them, but its program can be made: D = 0 is known."""
    builder = ModelBuilder("light")
    builder.link("base")
    builder.link("arm", 1.0, (0.0, 0.0, 0.1), np.eye(3))
    builder.link("tip")
    builder.joint("first", "revolute", "base", "arm")
    builder.joint("second", "revolute", "arm", "tip")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = builder.build()
    for make in (to_looped, to_unrolled):
        assert make(kernel("forward_dynamics_3").schedule, model).count()

# SPDX-License-Identifier: BSD-3-Clause
"""Laws of the spaces and their pairing."""

import copy
import pickle

import pytest

from phistar.algebra.spaces import (
    CONSTRAINT,
    FORCE,
    JOINT,
    MOTION,
    ONE,
    TASK_FORCE,
    TASK_MOTION,
    Space,
)

SPACES = (ONE, JOINT, MOTION, FORCE, TASK_MOTION, TASK_FORCE, CONSTRAINT)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_dual_of_dual(space: Space) -> None:
    """The dual of the dual is the very same space."""
    assert space.dual.dual is space


@pytest.mark.parametrize(
    ("space", "dual"),
    [
        (ONE, ONE),
        (JOINT, JOINT),
        (MOTION, FORCE),
        (TASK_MOTION, TASK_FORCE),
        (CONSTRAINT, CONSTRAINT),
    ],
    ids=repr,
)
def test_pairs(space: Space, dual: Space) -> None:
    """Power pairs motions with forces and joint rates with joint forces."""
    assert space.dual is dual


def test_names_tell_spaces_apart() -> None:
    """No two spaces share a name or a reading, so messages are unambiguous."""
    assert len({space.name for space in SPACES}) == len(SPACES)
    assert len({space.reads for space in SPACES}) == len(SPACES)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_copies_are_the_same_space(space: Space) -> None:
    """A copied or unpickled space is the original, since spaces are compared by identity."""
    assert copy.deepcopy(space) is space
    assert pickle.loads(pickle.dumps(space)) is space

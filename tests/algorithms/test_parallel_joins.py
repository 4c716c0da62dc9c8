# SPDX-License-Identifier: BSD-3-Clause
"""Joins of parallel schedules have teeth: other joins are refuted."""

import dataclasses

import pytest

from phistar.algebra.ir import identity
from phistar.algebra.proof import Outcome, Theorem, prove
from phistar.algebra.spaces import MOTION
from phistar.algorithms import parallel_joins as joins

E = joins.E12
S1, S2 = joins.S1, joins.S2
WRONG = {
    "the offset of the wrong segment": (
        joins.affine_join,
        joins.MAPS[1] @ joins.MAPS[2] @ joins.ADDED_MOTIONS[0]
        + joins.MAPS[2] @ joins.ADDED_MOTIONS[1]
        + joins.ADDED_MOTIONS[2],
    ),
    "an inertia that is not moved": (
        joins.congruence_join,
        sum(joins.ADDED_INERTIAS[1:], joins.ADDED_INERTIAS[0]),
    ),
    "no inverse": (
        joins.star_associative_transfer,
        joins.S3.F @ S2.F @ S1.F,
    ),
    "Schur complements alone": (
        joins.star_associative_inertia,
        S1.J + S1.F.T @ joins.star(S2, joins.S3).J @ S1.F,
    ),
    "the sign of a compliance": (
        joins.star_split,
        (identity(MOTION) - S1.C @ S2.J).inv
        @ (S1.F @ joins.ADDED_MOTIONS[0] + S1.c - S1.C @ (S2.F.T @ joins.FORCES[2] + S2.d)),
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_joins_are_refuted(what: str) -> None:
    """A join with a fault differs as a matrix on some robot."""
    theorem, wrong = WRONG[what]
    assert isinstance(theorem, Theorem)
    assert prove(dataclasses.replace(theorem, result=wrong)).outcome is Outcome.REFUTED

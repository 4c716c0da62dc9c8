# SPDX-License-Identifier: BSD-3-Clause
"""Columns that reach ancestors only are taken side by side, and give what they give one by one."""

import numpy as np
import pytest

import phistar
from phistar.backends import base
from phistar.backends.llvm.emit import looped_module
from phistar.backends.llvm.emit.ancestor_columns import AncestorColumns
from phistar.backends.to_llvm import MachineCode
from phistar.compile import matrix_executable
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.robot import Robot
from phistar.scalar.program import Looped
from tests.helpers import numbers


@pytest.fixture(autouse=True)
def _loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHISTAR_TIER", "rolled")
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    monkeypatch.setattr(base, "_default_name", "llvm")


def _program(code: MachineCode) -> Looped:
    program = code.program.traced("rolled")
    assert isinstance(program, Looped)
    return program


def _code(operator: str, model: Model) -> MachineCode:
    code = matrix_executable(operator, model)
    assert isinstance(code, MachineCode)
    return code


@pytest.mark.users_code
@pytest.mark.parametrize(("joints", "seed"), [(1, 1), (9, 2), (14, 3)])
@pytest.mark.parametrize("real", [np.float64, np.float32])
def test_same_bits_one_by_one(
    joints: int, seed: int, real: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On trees of all joints, batches that fill no lanes."""
    model = random_model(np.random.default_rng(seed), joints)
    q = Robot(model).random_configuration(np.random.default_rng(seed), 11).astype(real)
    code = _code("mass_matrix", model)
    assert AncestorColumns.of(_program(code)) is not None
    beside = numbers(code, q, {})
    monkeypatch.setattr(looped_module, "AncestorColumns", _Never)
    single = numbers(_code("mass_matrix", model), q, {})
    assert beside.shape == (11, *2 * (sum(body.joint_kind.nv for body in model.bodies),))
    np.testing.assert_array_equal(beside, single)


class _Never:
    """No program has such columns."""

    @staticmethod
    def of(program: Looped) -> None:
        del program


def test_columns_of_a_tree() -> None:
    """Four legs on a base of six coordinates: own columns first, then those of the subtree."""
    model = phistar.load("quadruped").model
    found = AncestorColumns.of(_program(_code("mass_matrix", model)))
    assert found is not None
    assert found.count == model.nv
    assert (found.first[0], found.below[0], found.end[0]) == (0, 6, model.nv)
    for k, body in enumerate(model.bodies):
        assert found.below[k] - found.first[k] == body.joint_kind.nv


def test_other_matrices_are_left_alone() -> None:
    """The inverse goes outward, too; link by link, numbers are kept for that."""
    model = phistar.load("quadruped").model
    assert AncestorColumns.of(_program(_code("mass_matrix_inverse", model))) is None

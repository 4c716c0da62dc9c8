# SPDX-License-Identifier: BSD-3-Clause
"""The backend jax where JAX is not installed: one line says which extra."""

import sys

import pytest

import phistar
from phistar.errors import MissingExtraError


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling for it is refused; all else works, and other backends are not concerned."""
    monkeypatch.setitem(sys.modules, "jax", None)
    robot = phistar.robots.chain(2)
    with pytest.raises(MissingExtraError, match=r"backend 'jax' needs") as caught:
        robot.compile("forward_dynamics", backend="jax")
    assert str(caught.value).endswith('pip install "phistar[jax]"')
    assert "\n" not in str(caught.value)
    rest = robot.compile("forward_dynamics", backend="numpy")([0, 0], v=[0, 0], tau=[0, 0])
    assert not rest.any()

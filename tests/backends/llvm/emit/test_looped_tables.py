# SPDX-License-Identifier: BSD-3-Clause
"""Tables of loops are the same code as numbers and as bytes."""

import numpy as np
import pytest

from phistar.backends.llvm.emit import looped_module
from phistar.backends.llvm.emit.ir_builder import literal, literal_list
from phistar.backends.llvm.run import jit
from phistar.compile import kernel
from phistar.model.random import random_model
from phistar.scalar.lower import to_looped
from tests.helpers import patch_policy


@pytest.mark.parametrize("real", ["double", "float"])
def test_bytes_are_the_same_code(real: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same object file, byte for byte, from a shorter way through LLVM's reader.

    Tables of few links would be looked through by the optimizer.
    """
    model = random_model(np.random.default_rng(3), 40, kinds=("revolute",))
    program = to_looped(kernel("inverse_dynamics").schedule, model, frozenset({"f_ext"}))
    lanes = jit.lanes_for(jit.host_cpu(), real)
    codes = []
    for many in (10_000, 1):
        patch_policy(monkeypatch, min_links_packed=many)
        text = looped_module.looped_module(program, lanes)
        assert ('c"' in text) == (many == 1)
        codes.append(jit.compile_text(text))
    assert codes[0] == codes[1]


@pytest.mark.parametrize("real", ["double", "float"])
def test_lists_of_literals(real: str) -> None:
    """Many numbers at once are written as single ones are."""
    values = [*np.random.default_rng(0).normal(size=20).tolist(), 0.0, -0.0, 1.0]
    assert literal_list(values, real) == ", ".join(f"{real} {literal(x, real)}" for x in values)

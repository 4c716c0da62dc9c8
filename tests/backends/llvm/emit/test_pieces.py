# SPDX-License-Identifier: BSD-3-Clause
"""Lines of short-lived numbers, cut into functions: the interpreter's numbers, and refusals."""

import numpy as np
import pytest

from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.unrolled_module import needs_pieces
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.backends.llvm.run.machine_kernel import emit_module
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.trace.discretization_programs import discretization
from tests.helpers import patch_policy


@pytest.mark.parametrize("width", [1, 4])
def test_numbers_and_refusals(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every piece writes its own results, and one that meets no number says so."""
    patch_policy(monkeypatch, stores_per_piece=30, stores_per_piece_alone=30)
    rng, lanes = np.random.default_rng(0), Lanes(width)
    model = random_model(rng, 3, kinds=["revolute", "prismatic"], floating_base=True)
    program = discretization(model, "semi_implicit")
    assert needs_pieces(program)
    text, room = emit_module(program, lanes)
    assert text.count("noinline nounwind #0") > len(program.block.stores) // 30
    call = KernelCaller(jit.load(text), program.signature, lanes, room)
    given = {n: rng.normal(size=(5, size)) for n, size in program.signature.inputs.items()}
    given["q"] = random_configuration(model, rng, (5,))
    outputs = {n: np.full((5, m), np.nan) for n, m in program.signature.outputs.items()}
    assert call(list(given.values()), list(outputs.values()))
    for name, expected in run(program, given).items():
        np.testing.assert_allclose(outputs[name], expected, rtol=0, atol=1e-12)
    for name in ("vdot_q", "vdot_tau", "dt"):
        bad = {**given, name: given[name].copy()}
        bad[name][3, -1] = np.inf
        assert not call(list(bad.values()), list(outputs.values()))
    bad = {**given, "q": given["q"].copy()}
    bad["q"][2, 3:7] *= 1.1
    assert not call(list(bad.values()), list(outputs.values()))

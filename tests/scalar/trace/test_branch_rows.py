# SPDX-License-Identifier: BSD-3-Clause
"""Linearizations by single walks in common axes: against dense operators, as text, and damaged."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.symbols import mass_matrix
from phistar.algorithms.linearized import A_D, B_D
from phistar.algorithms.linearized_forward import with_forward_acceleration
from phistar.backends.llvm.emit.unrolled_module import needs_outlining
from phistar.backends.llvm.run import machine_kernel
from phistar.compile import lowered_bundle
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.lower import LoweringOptions
from phistar.scalar.lower_fused import to_fused
from phistar.scalar.printing import to_text
from phistar.scalar.program import Store, Unrolled, count_arithmetic
from phistar.scalar.verify import VerifyError, verify
from tests.helpers import patch_policy

ABSENT = frozenset({"f_ext", "gravity"})
ROBOTS: dict[str, dict[str, Any]] = {
    "serial": {"topology": "serial", "armature": 0.5},
    "tree": {"topology": "tree", "armature": 0.5},
    "forest": {"topology": "forest", "armature": 0.5},
    "free base": {"topology": "binary", "floating_base": True},
}
"""Each has every joint kind that moves."""


def _model(name: str, n: int = 11) -> Model:
    return random_model(np.random.default_rng(4), n, gravity=(0.7, -1.1, -9.3), **ROBOTS[name])


def _program(model: Model) -> Unrolled:
    return to_fused(lowered_bundle("linearize_split"), model, ABSENT, LoweringOptions(regroup=True))


def _inputs(model: Model, count: int = 2) -> dict[str, np.ndarray]:
    rng, robot = np.random.default_rng(5), phistar.Robot(model)
    v, tau = rng.normal(size=(2, count, robot.nv))
    return {"q": robot.random_configuration(rng, count), "v": v, "tau": tau}


@pytest.mark.parametrize("longest", [1, 2, 8])
@pytest.mark.parametrize("name", ROBOTS)
def test_dense(name: str, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """-𝓜⁻¹B_D, -𝓜⁻¹A_D and 𝓜⁻¹ of dense operators, whatever is repeated; relative 1e-9.

    The mass matrices have condition numbers up to some 1e4.
    """
    patch_policy(monkeypatch, max_segment_links=longest)
    model = _model(name)
    program = _program(model)
    verify(program)
    assert program.row_loops or longest == 8
    x = _inputs(model)
    found = run(program, x)
    for i in range(2):
        still = np.zeros(6 * len(model.bodies))
        given = {"v": x["v"][i], "tau": x["tau"][i], "f_ext": still}
        dense = Dense(model, x["q"][i], "inertial", given)
        inverse = np.linalg.inv(dense(mass_matrix))
        expected = {
            "vdot_q": -inverse @ dense(with_forward_acceleration(B_D)),
            "vdot_v": -inverse @ dense(with_forward_acceleration(A_D)),
            "vdot_tau": inverse,
        }
        for key, matrix in expected.items():
            error = np.abs(found[key][i].reshape(matrix.shape) - matrix).max()
            assert error <= 1e-9 * np.abs(matrix).max(), key


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("outlined", [False, True])
def test_machine_code(outlined: bool, alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops over pairs of rows give what the interpreter gives, odd numbers of rows included.

    Relative 1e-12, for a number of samples that does not fill the lanes, in one function and in
    parts whose results stay in the workspace.
    """
    patch_policy(monkeypatch, max_nodes_one_function=0 if outlined else 1 << 30)
    model = _model("free base", 9)
    program = _program(model)
    assert {len(repeat.rows) % 2 for repeat in program.row_loops} == {0, 1}
    assert needs_outlining(program) == outlined
    x = _inputs(model, 13)
    name = f"branches {outlined} {to_text(program)}"
    code = machine_kernel.compile_kernel(name, "double", "test", lambda: program, alone)
    results = [np.empty((13, size)) for size in program.signature.outputs.values()]
    code.call([x[name] for name in program.signature.inputs], results)
    for ours, theirs in zip(results, run(program, x).values(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.abs(theirs).max())


def test_the_quicker_way_is_taken() -> None:
    """Products for a robot with short legs, walks for a chain, where they take half the time."""
    legs, chain = phistar.load("quadruped").model, phistar.robots.chain(15).model
    found = {
        model.name: to_fused(lowered_bundle("linearize"), model, ABSENT) for model in (legs, chain)
    }
    assert found[legs.name].products
    assert not found[legs.name].row_loops
    assert found[chain.name].row_loops
    assert not found[chain.name].products
    product = to_fused(lowered_bundle("linearize_product"), chain, ABSENT)
    assert count_arithmetic(found[chain.name].count()) < 0.5 * count_arithmetic(product.count())


def test_counts() -> None:
    """A repeated line counts once for each row; a listing says so and shows the rows' numbers."""
    program = _program(_model("tree"))
    alone = replace(program, row_loops=()).count()
    total = sum((repeat.count() for repeat in program.row_loops), alone)
    assert total == program.count()
    first = program.row_loops[0]
    assert first.count()["mul"] == len(first.rows) * first.block.count()["mul"] > 0
    text = to_text(program)
    assert f"for rows {first.rows.start} to {first.rows.stop - 1}:" in text
    assert "keep{i}[" in text
    assert "vdot_q{i}[" in text


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda r: replace(r, stride=r.stride + 1000), "nothing is kept there"),
        (lambda r: replace(r, row_width=1), "no entry of the row"),
        (lambda r: replace(r, rows=range(r.rows.start, r.rows.stop + 1)), "kept|twice"),
    ],
)
def test_damage(change: Any, fault: str) -> None:
    """Rows that read what nobody kept, or write elsewhere, are found."""
    program = _program(_model("free base"))
    damaged = [change(repeat) for repeat in program.row_loops]
    with pytest.raises(VerifyError, match=fault):
        verify(replace(program, row_loops=damaged))


def test_damaged_stores() -> None:
    """Stores that are not about the row, or in no slot, are found."""
    program = _program(_model("free base"))
    first = program.row_loops[0]
    value = first.block.stores[0].value
    for store, fault in (
        (Store("vdot_q", 0, "", value), "not an entry of the row"),
        (Store("work", program.slots, "row", value), "no such slot"),
    ):
        body = replace(first.block, stores=[*first.block.stores, store])
        with pytest.raises(VerifyError, match=fault):
            verify(replace(program, row_loops=[replace(first, block=body)]))

# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of one lane for single samples: the bits of the kernels for batches."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import phistar
from phistar.backends.llvm import abi
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.one_sample import with_rows_of_products
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.backends.llvm.run.machine_kernel import emit_module
from phistar.backends.policy import BundleWork, decide
from phistar.backends.to_llvm import MachineCode
from phistar.compile import kernel, lowered_bundle
from phistar.model.configuration import random_configuration
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.scalar.graph import WORK
from phistar.scalar.interpret import run
from phistar.scalar.lower_fused import to_fused
from phistar.scalar.program import Unrolled
from tests.helpers import patch_policy

ABSENT = frozenset({"gravity", "f_ext"})
PRODUCTS = "linearize_product"
"""The bundle that knows no innovations."""


def caller(program: Unrolled, lanes: Lanes) -> KernelCaller:
    """A program as machine code."""
    text, room = emit_module(program, lanes)
    return KernelCaller(jit.load(text), program.signature, lanes, room)


def machine_code(model: Model) -> MachineCode:
    """A linearization that nobody has compiled."""
    code = kernel("linearize", model).build(model)
    assert isinstance(code, MachineCode)
    return MachineCode(code.program)


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("way", ["innovations", "products", "unrolled"])
@pytest.mark.parametrize("row_width", [1, 2, 8])
def test_bits(real: str, way: str, row_width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes side by side and one alone agree to the last bit, with loops for products or not."""
    sizes = {"max_product_rows_unrolled": 100 if way == "unrolled" else 0}
    patch_policy(monkeypatch, min_rows_innovations=1, **sizes)
    program, given = _case(way)
    assert bool(program.products) == (way != "unrolled")
    assert any(product.bands for product in program.products) == (way == "innovations")
    alone = _results(way, real, Lanes(1, real, row_width))
    for ours, batch in zip(
        alone, _results(way, real, jit.lanes_for(jit.host_cpu(), real)), strict=True
    ):
        np.testing.assert_array_equal(ours, batch)
    if real == "double":
        expected = run(program, given)
        for name, ours in zip(program.signature.outputs, alone, strict=True):
            np.testing.assert_allclose(ours, expected[name], rtol=1e-9, atol=1e-9)


@cache
def _case(way: str) -> tuple[Unrolled, dict[str, np.ndarray]]:
    """A linearization and three samples of its inputs; who asks has chosen the policy."""
    rng = np.random.default_rng(7)
    model = random_model(rng, 3, kinds=["revolute", "prismatic"], floating_base=True)
    bundle = replace(lowered_bundle("linearize" if way == "innovations" else PRODUCTS), split=None)
    program = to_fused(bundle, model, ABSENT)
    given = {n: rng.normal(size=(3, size)) for n, size in program.signature.inputs.items()}
    return program, {**given, "q": random_configuration(model, rng, (3,))}


@cache
def _results(way: str, real: str, lanes: Lanes) -> list[np.ndarray]:
    """What machine code with some lanes makes of it."""
    program, given = _case(way)
    dtype = np.dtype(np.float64 if real == "double" else np.float32)
    found = [np.full((3, n), np.nan, dtype) for n in program.signature.outputs.values()]
    assert caller(program, lanes)([x.astype(dtype) for x in given.values()], found)
    return found


@pytest.mark.parametrize("bundle", [PRODUCTS, "linearize"])
def test_results_that_are_not_finite_are_noticed(
    bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In vectors, matrices that are copied and products; in inputs too."""
    patch_policy(monkeypatch, max_product_rows_unrolled=0, min_rows_innovations=1)
    rng = np.random.default_rng(1)
    model = random_model(rng, 4, kinds=["revolute"])
    program = to_fused(replace(lowered_bundle(bundle), split=None), model, ABSENT)
    call = caller(program, Lanes(1, "double", 8))
    given = [rng.normal(size=(1, size)) for size in program.signature.inputs.values()]
    outputs = [np.empty((1, size)) for size in program.signature.outputs.values()]
    assert call(given, outputs)
    for i in range(len(given)):
        bad = [x.copy() for x in given]
        bad[i][0, -1] = np.nan
        assert not call(bad, outputs)
    # Finite numbers whose forces are not.
    fast = [given[0], np.full_like(given[1], 1e160), given[2]]
    assert not call(fast, outputs)


@pytest.mark.parametrize("bundle", [PRODUCTS, "linearize"])
@pytest.mark.parametrize("width", [2, 8])
def test_rows_of_products_say_the_same(
    width: int, bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right factors row by row, by the interpreter; what is loaded beside a number was stored."""
    patch_policy(monkeypatch, max_product_rows_unrolled=0, min_rows_innovations=1)
    rng = np.random.default_rng(2)
    model = random_model(rng, 4, floating_base=True)
    program = to_fused(replace(lowered_bundle(bundle), split=None), model, ABSENT)
    given = {n: rng.normal(size=(2, size)) for n, size in program.signature.inputs.items()}
    given["q"] = random_configuration(model, rng, (2,))
    by_rows = with_rows_of_products(program, width)
    same = run(by_rows, given)
    for name, expected in run(program, given).items():
        np.testing.assert_array_equal(same[name], expected)
    assert any(product.known for product in by_rows.products)
    stored = {store.index for store in by_rows.block.stores if store.space == WORK}
    for product in by_rows.products:
        for j, column in enumerate(product.right_slots):
            start = j - j % width
            if start + width <= len(product.right_slots):
                for slot in column.values():
                    assert stored.issuperset(range(slot - j + start, slot - j + start + width))


@pytest.mark.parametrize("tier", ["wait", "auto"])
def test_robots_use_it(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single samples of linearizations and of steps have the bits of batches, by another kernel."""
    monkeypatch.setenv("PHISTAR_TIER", tier)
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    patch_policy(monkeypatch, samples_before_compile=0, background_delay_seconds=0.0)
    robot = phistar.robots.chain(5).with_gravity((0.0, 0.1, -2.5))
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 4, 5))
    code = kernel("linearize", robot.model).build(robot.model)
    assert isinstance(code, MachineCode)
    for _ in range(2):
        robot.linearize(q, v, tau)
    # With "auto" there is code for single samples once there was one.
    robot.linearize(q[0], v[0], tau[0])
    final = code.tiers().wait_for_final()
    assert final.single_entry is not None
    assert final.single_entry is not final.native_entry
    assert (final.single_results is None) == (abi.new_array_address() is None)
    many, one = robot.linearize(q, v, tau), robot.linearize(q[2], v[2], tau[2])
    for name in ("vdot", "vdot_q", "vdot_v", "vdot_tau"):
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name)[2])
    steps, step = (
        robot.discretize(x, y, z, 1e-3) for x, y, z in ((q, v, tau), (q[1], v[1], tau[1]))
    )
    for name in ("q", "v", "A", "B"):
        np.testing.assert_array_equal(getattr(step, name), getattr(steps, name)[1])


def test_it_is_kept_on_disk(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process finds both kernels, and compiles none."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    monkeypatch.setenv("PHISTAR_CACHE", str(tmp_path))
    model = phistar.robots.chain(4).with_gravity((0.0, 0.2, -2.0)).model
    first = machine_code(model).tiers().kernel
    assert first.single_entry is not None
    monkeypatch.setattr(jit, "compile_text", None)
    again = machine_code(model).tiers().kernel
    assert again.single_entry is not None


def test_the_decision_says_so() -> None:
    """And small ones have none."""
    large, small = decide(BundleWork(7), 7), decide(BundleWork(2), 2)
    assert large.alone
    assert "a kernel for single samples: from 16 links x rows on" in str(large)
    assert "one lane" in str(large)
    assert not small.alone
    assert "one lane" not in str(small)

# SPDX-License-Identifier: BSD-3-Clause
"""Lines in parts, with products after them: the numbers of the interpreter, wherever they go."""

from __future__ import annotations

import numpy as np
import pytest

from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.outline_slots import plan_outline
from phistar.backends.llvm.emit.outlined import OutlinedModule
from phistar.backends.llvm.emit.unrolled_module import needs_outlining, unrolled_module
from phistar.backends.llvm.run import calls, jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.compile import lowered_bundle
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.scalar.graph import Graph, sin
from phistar.scalar.interpret import run
from phistar.scalar.lower_fused import to_fused
from phistar.scalar.program import BasicBlock, MatrixProduct, Signature, Store, Unrolled
from phistar.thresholds import POLICY
from tests.helpers import patch_policy

ABSENT = frozenset({"gravity", "f_ext"})
WIDE = jit.lanes_for(jit.host_cpu())


def small(across: int = 9) -> Unrolled:
    """Every kind of result: a vector, a matrix with constants and repeated numbers, a product."""
    graph = Graph()
    x = [graph.load("x", i) for i in range(5)]
    terms = [sin(x[0] * x[1]), *x]
    for i in range(60):
        terms.append(terms[-1] * x[i % 5] + terms[i] * 0.5 - 0.25)
    stores = [Store("y", i, "", terms[-1 - i]) for i in range(3)]
    size = across**2
    for i in range(size):
        row, column = sorted(divmod(i, across))
        constant = 2.0 if row == column else 0.0
        value = terms[(7 * row + column) % 60] if (row + column) % 3 else constant
        stores += [Store("m", i, "", value), Store("work", i, "", value)]
    right: list[dict[int, int]] = []
    for j in range(across):
        right.append({k: size + len(stores) + k for k in range(j % 4)})
        stores += [Store("work", slot, "", terms[slot % 60]) for slot in right[-1].values()]
    used = 1 + max(store.index for store in stores if store.space == "work")
    signature = Signature({"x": 5}, {"y": 3, "m": size, "p": size})
    return Unrolled(
        signature, BasicBlock(graph, stores), (MatrixProduct("p", 0, across, right),), used
    )


def compiled(program: Unrolled, lanes: Lanes) -> KernelCaller:
    """A program in parts."""
    line = OutlinedModule(program, lanes)
    return KernelCaller(jit.load(line.text()), program.signature, lanes, line.workspace_vectors)


def results(caller: KernelCaller, rows: np.ndarray, **options: int) -> list[np.ndarray]:
    """Outputs at aligned places."""
    found = []
    for size in caller.signature.outputs.values():
        room = np.full(len(rows) * size + 64, np.nan, caller.dtype)
        start = -room.ctypes.data % calls.WORKSPACE_ALIGNMENT_BYTES // room.itemsize
        found.append(room[start : start + len(rows) * size].reshape(len(rows), size))
    assert caller([rows], found, **options)
    return found


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("across", [9, 10])
def test_every_width(width: int, real: str, across: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative 1e-14 and 1e-6, for odd batches too, and the same bits past the caches.

    Rows of an odd number of entries begin at all places of a vector.
    """
    patch_policy(monkeypatch, nodes_per_function=25)
    program = small(across)
    assert across**2 >= POLICY.min_streamed_entries
    caller = compiled(program, Lanes(width, real))
    for batch in (1, width, 3 * width + 1):
        x = np.random.default_rng(batch).uniform(-1.0, 1.0, (batch, 5)).astype(caller.dtype)
        expected = run(program, {"x": x.astype(float)})
        patch_policy(monkeypatch, min_streamed_caches=1e9)
        usual = results(caller, x)
        for value, wanted in zip(usual, expected.values(), strict=True):
            bound = 1e-14 if real == "double" else 1e-6
            assert np.abs(value - wanted).max() <= bound * np.abs(wanted).max()
        patch_policy(monkeypatch, min_streamed_caches=0, min_streamed_victim_share=0)
        for one, other in zip(usual, results(caller, x), strict=True):
            assert (one == other).all()


def test_nothing_else_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples with gaps between them, and outputs at any place, are not overrun."""
    patch_policy(monkeypatch, min_streamed_caches=0, min_streamed_victim_share=0)
    caller = compiled(small(), WIDE)
    x = np.random.default_rng(3).uniform(-1.0, 1.0, (9, 5))
    expected = results(caller, x)
    for gap in (0, 7):
        for shift in (0, 1, 4):
            rooms = [np.full(9 * (out.shape[1] + gap) + 16, 7.0) for out in expected]
            views = []
            for room, out in zip(rooms, expected, strict=True):
                step = out.shape[1] + gap
                views.append(room[shift : shift + 9 * step].reshape(9, step)[:, : out.shape[1]])
            assert caller([x], views)
            for room, view, out in zip(rooms, views, expected, strict=True):
                assert (view == out).all()
                view[...] = 7.0
                assert (room == 7.0).all()


def test_threads_and_cuts_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits whatever the number of threads, and alone as in a batch."""
    patch_policy(monkeypatch, min_streamed_caches=0, min_streamed_victim_share=0)
    caller = compiled(small(), WIDE)
    x = np.random.default_rng(4).uniform(-1.0, 1.0, (101, 5))
    together = results(caller, x, threads=1)
    for one, other in zip(together, results(caller, x, threads=3), strict=True):
        assert (one == other).all()
    for one, other in zip(together, results(caller, x[50:51]), strict=True):
        assert (one[50:51] == other).all()


def test_not_finite() -> None:
    """What was read and is not finite is told; other samples are right."""
    caller = compiled(small(), WIDE)
    x = np.random.default_rng(5).uniform(-1.0, 1.0, (11, 5))
    right = results(caller, x)
    x[3, 2] = np.inf
    outs = [np.empty_like(out) for out in right]
    assert not caller([x], outs)
    fine = np.arange(11) != 3
    for one, other in zip(outs, right, strict=True):
        assert (one[fine] == other[fine]).all()


def test_slots_hold_what_is_read() -> None:
    """Walk through the parts: each read finds the node that was put there last."""
    program = small()
    found = plan_outline(program, 10)
    assert len(found.parts) > 5
    held: dict[int, int] = {}
    graph, done = program.block.graph, set()
    for part in found.parts:
        for node, slot in part.live_in.items():
            assert held[slot] == node
        for node in part.nodes:
            inside = [k for k in graph.nodes[node][1:] if isinstance(k, int)]
            known = (k in done or k in part.live_in or graph.nodes[k][0] == "const" for k in inside)
            assert graph.nodes[node][0] == "load" or all(known)
            done.add(node)
        done.clear()
        held |= {slot: node for node, slots in part.live_out.items() for slot in slots}
    assert max(held) < found.slots
    assert len(set(found.output_slots["m"].values())) < 81


def test_linearisation_of_a_robot() -> None:
    """Products and all, of a tree with 14 joints; relative 1e-11."""
    model = random_model(np.random.default_rng(6), 14, kinds=["revolute"] * 14)
    program = to_fused(lowered_bundle("linearize_product"), model, ABSENT)
    assert program.products
    assert needs_outlining(program)
    rng = np.random.default_rng(7)
    q = random_configuration(model, rng, (5,))
    given = {"q": q, "v": rng.normal(size=(5, 14)), "tau": rng.normal(size=(5, 14))}
    outs = [np.empty((5, size)) for size in program.signature.outputs.values()]
    assert compiled(program, WIDE)([given[name] for name in program.signature.inputs], outs)
    for value, wanted in zip(outs, run(program, given).values(), strict=True):
        assert np.abs(value - wanted).max() <= 1e-11 * np.abs(wanted).max()


def test_products_need_parts() -> None:
    """A line in one piece refuses products, by name."""
    with pytest.raises(ValueError, match="p: products"):
        unrolled_module(small(), WIDE)

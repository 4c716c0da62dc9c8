# SPDX-License-Identifier: BSD-3-Clause
"""Random scalar programs, straight and rolled, as machine code beside their interpreter.

A few seconds in the ordinary suite; PHISTAR_FUZZ_SECONDS gives it more, and new random numbers.
Half of the programs only add and multiply integers: nothing rounds, and the results must be the
same numbers. The others have every operation, and a bound that grows with the size of what
was added up on the way.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.looped_module import looped_module, looped_workspace
from phistar.backends.llvm.emit.unrolled_module import unrolled_module
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.scalar import interpret
from phistar.scalar.graph import Graph, Scalar, Value, cos, log, select, sin, sqrt
from phistar.scalar.program import (
    BasicBlock,
    LinkSweep,
    LinkTable,
    Looped,
    ScalarProgram,
    Signature,
    Store,
    Unrolled,
)
from phistar.scalar.verify import verify
from phistar.sweeps.ir import Direction

SECONDS = float(os.environ.get("PHISTAR_FUZZ_SECONDS", "0")) / 3
SEED = int(os.environ.get("PHISTAR_FUZZ_SEED", time.time_ns() % 2**32 if SECONDS > 10 else 11))
PROGRAMS = 20
"""Random programs in the ordinary suite, the same ones on every machine."""

MOST = 2.0**52
"""Of what exact programs add up: integers up to here do not round."""

Rng = np.random.Generator


class Formulas:
    """Random scalars made of given ones."""

    def __init__(self, rng: Rng, exact: bool) -> None:
        self.rng = rng
        self.exact = exact

    def constant(self) -> float:
        """Often one that folds."""
        if self.rng.random() < 0.5:
            return float(self.rng.choice([0.0, 1.0, -1.0, 2.0]))
        return float(self.rng.integers(-5, 6) if self.exact else self.rng.normal())

    def grow(self, leaves: Sequence[Scalar], steps: int) -> list[Scalar]:
        """Given scalars and new ones."""
        pool: list[Scalar] = [*leaves, self.constant()]
        self.given = len(leaves)
        for _ in range(steps):
            pool.append(self._step(pool))
        return pool

    def _step(self, pool: Sequence[Scalar]) -> Scalar:
        x, y = (pool[int(i)] for i in self.rng.integers(len(pool), size=2))
        kind = int(self.rng.integers(7 if self.exact else 12))
        if kind == 0:
            return -x
        if kind in (1, 2):
            return x + y if kind == 1 else x - y
        if kind == 3:
            return self.constant() * x
        if kind == 4:
            return x + self.constant()
        if kind == 5:
            return x * y
        if kind == 6:
            # What is compared does not round, so both ways choose alike.
            tested = pool[int(self.rng.integers(self.given))]
            limit = self.constant() if self.exact else float(self.rng.normal())
            return select(*((tested, limit) if self.rng.random() < 0.5 else (limit, tested)), x, y)
        if kind == 7:
            return cos(x)
        if kind == 8:
            return sqrt(1.0 + x * x)
        if kind == 9:
            return log(1.0 + x * x)
        if kind == 10:
            return sin(x)
        return x / (2.0 + sin(y))


def straight_program(rng: Rng, exact: bool) -> Unrolled:
    """A random straight line."""
    sizes = {name: int(n) for name, n in zip("qvx", rng.integers(1, 20, 3), strict=True)}
    outs = {name: int(n) for name, n in zip(("tau", "w"), rng.integers(1, 20, 2), strict=True)}
    graph = Graph()
    leaves = [graph.load(name, i) for name, n in sizes.items() for i in range(n)]
    pool = Formulas(rng, exact).grow(leaves, int(rng.integers(1, 60)))
    stores = [
        Store(name, i, "", pool[int(rng.integers(len(pool)))])
        for name, n in outs.items()
        for i in range(n)
    ]
    rng.shuffle(stores)  # type: ignore[arg-type]
    more = [stores[int(i)] for i in rng.integers(len(stores), size=int(rng.integers(3)))]
    stores += [Store(s.space, s.index, "", pool[-1], add=True) for s in more]
    return Unrolled(Signature(sizes, outs), BasicBlock(graph, stores))


class RolledMaker:
    """A random program of loops."""

    def __init__(self, rng: Rng, exact: bool) -> None:
        self.rng = rng
        self.formulas = Formulas(rng, exact)
        count = int(rng.integers(1, 9))
        self.parent = [-1, *(int(rng.integers(-1, k)) for k in range(1, count))]
        kinds = int(rng.integers(1, 4))
        # Links on the ground have classes of their own.
        self.class_of = [
            int(rng.integers(kinds)) + (kinds if parent < 0 else 0) for parent in self.parent
        ]
        self.classes = sorted(set(self.class_of))
        self.width = {c: int(rng.integers(1, 4)) for c in self.classes}
        self.row = {c: int(rng.integers(0, 4)) for c in self.classes}
        self.slots = int(rng.integers(1, 5))
        self.hands = int(rng.integers(0, 3))
        starts = np.cumsum([0, *(self.width[c] for c in self.class_of)])
        self.starts = [int(s) for s in starts[:-1]]
        self.joints = int(starts[-1])

    def make(self) -> Looped:
        """The program: slots are set, then walked over a few times, then the outputs come.

        The first loop also hands numbers on.
        """
        loops = [LinkSweep(Direction.OUTWARD, {c: self._first(c) for c in self.classes})]
        for _ in range(int(self.rng.integers(0, 4))):
            outward = bool(self.rng.random() < 0.5)
            direction = Direction.OUTWARD if outward else Direction.INWARD
            loops.append(LinkSweep(direction, {c: self._middle(c) for c in self._some()}))
        direction = Direction.INWARD if self.rng.random() < 0.5 else Direction.OUTWARD
        loops.append(LinkSweep(direction, {c: self._last(c) for c in self.classes}))
        table = [[self.formulas.constant() for _ in range(self.row[c])] for c in self.class_of]
        links = LinkTable(self.class_of, self.parent, self.starts, self.starts, table)
        signature = Signature(
            {"q": self.joints, "v": self.joints, "f": 6 * len(links)},
            {"tau": self.joints, "h": 6 * len(links)},
        )
        return Looped(signature, links, loops, self.slots, forward_slots=self.hands)

    def _some(self) -> list[int]:
        return [c for c in self.classes if self.rng.random() < 0.8]

    def _is_root(self, c: int) -> bool:
        return self.parent[self.class_of.index(c)] < 0

    def _pool(self, body: BasicBlock, c: int, kept: bool) -> list[Scalar]:
        graph, rng = body.graph, self.rng
        leaves = [graph.load(name, i, name) for name in "qv" for i in range(self.width[c])]
        leaves += [graph.load("f", int(i), "body") for i in rng.integers(6, size=2)]
        leaves += [graph.load("table", i, "link") for i in range(self.row[c])]
        if kept:
            places = ["link"] if self._is_root(c) else ["link", "parent"]
            leaves += [graph.load("work", i, at) for at in places for i in range(self.slots)]
        elif not self._is_root(c):
            leaves += [graph.load("forward", i, "parent") for i in range(self.hands)]
        return self.formulas.grow(leaves, int(rng.integers(1, 15)))

    def _pick(self, pool: Sequence[Scalar]) -> Scalar:
        return pool[int(self.rng.integers(len(pool)))]

    def _first(self, c: int) -> BasicBlock:
        body = BasicBlock()
        pool = self._pool(body, c, kept=False)
        body.stores = [Store("work", i, "link", self._pick(pool)) for i in range(self.slots)]
        body.stores += [Store("forward", i, "link", self._pick(pool)) for i in range(self.hands)]
        return body

    def _middle(self, c: int) -> BasicBlock:
        body = BasicBlock()
        pool = self._pool(body, c, kept=True)
        places = ["link"] if self._is_root(c) else ["link", "parent"]
        for _ in range(int(self.rng.integers(1, 4))):
            slot, place = int(self.rng.integers(self.slots)), str(self.rng.choice(places))
            value = self._pick(pool)
            body.stores.append(Store("work", slot, place, value, bool(self.rng.random() < 0.6)))
        return body

    def _last(self, c: int) -> BasicBlock:
        body = BasicBlock()
        pool = self._pool(body, c, kept=True)
        for name, base, size in (("tau", "v", self.width[c]), ("h", "body", 6)):
            body.stores += [Store(name, i, base, self._pick(pool)) for i in range(size)]
            body.stores += [Store(name, 0, base, self._pick(pool), add=True)]
        return body


# -- running


def machine_code(program: ScalarProgram, lanes: Lanes) -> KernelCaller:
    """A program, compiled."""
    if isinstance(program, Looped):
        text, room = looped_module(program, lanes), looped_workspace(program)
    else:
        text, room = unrolled_module(program, lanes), 0
    return KernelCaller(jit.load(text), program.signature, lanes, room)


_SIZES: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: abs(a) + abs(b),
    "sub": lambda a, b: abs(a) + abs(b),
    "mul": lambda a, b: abs(a) * abs(b),
    # Denominators are 2 + sin y, at least 1.
    "div": lambda a, b: abs(a) * abs(b),
    "neg": abs,
    # The sizes of what is compared may choose another way.
    "select": lambda a, b, x, y: abs(x) + abs(y),
    "log": lambda a: 1.0 + abs(a),
    "sqrt": lambda a: 1.0 + abs(a),
    "sin": lambda a: 1.0 + abs(a),
    "cos": lambda a: 1.0 + abs(a),
}
"""For each operation a number that its error is measured by, from those of its operands."""


def sizes(
    program: ScalarProgram, inputs: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> dict[str, np.ndarray]:
    """What the errors of the outputs are measured by."""
    with monkeypatch.context() as patch:
        patch.setattr(interpret, "_OPERATIONS", _SIZES)
        given = {name: np.abs(x) for name, x in inputs.items()}
        found = interpret.run(program, given)
    return {name: np.abs(x) for name, x in found.items()}


def compare(program: ScalarProgram, rng: Rng, exact: bool, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run a program both ways; False if its numbers became too large to tell."""
    verify(program)
    width = int(rng.choice([1, 2, 4, 8]))
    batch = int(rng.choice([1, 2, width, width + 1, 2 * width + 3]))
    inputs = {
        name: (
            rng.integers(-3, 4, (batch, n)).astype(float) if exact else rng.normal(size=(batch, n))
        )
        for name, n in program.signature.inputs.items()
    }
    bound = sizes(program, inputs, monkeypatch)
    largest = max(x.max() for x in bound.values())
    if not largest < (MOST if exact else 1e60):
        return False
    caller = machine_code(program, Lanes(width))
    outputs = {n: np.full((batch, m), np.nan) for n, m in program.signature.outputs.items()}
    assert caller(list(inputs.values()), list(outputs.values()))
    expected = interpret.run(program, inputs)
    for name, value in expected.items():
        if exact:
            np.testing.assert_array_equal(outputs[name], value)
        else:
            error = np.abs(outputs[name] - value)
            assert (error <= 1e-13 * (1.0 + bound[name])).all()
    return True


MAKERS: dict[str, Callable[[Rng, bool], ScalarProgram]] = {
    "straight": straight_program,
    "rolled": lambda rng, exact: RolledMaker(rng, exact).make(),
}


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "every operation"])
@pytest.mark.parametrize("shape", MAKERS)
def test_random_programs(shape: str, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code gives the interpreter's numbers; most programs stay small enough to tell."""
    end = time.monotonic() + SECONDS / 4
    tried = told = 0
    while time.monotonic() < end or tried < PROGRAMS:
        seed = (SEED, tried)
        rng = np.random.default_rng(seed)
        try:
            told += compare(MAKERS[shape](rng, exact), rng, exact, monkeypatch)
        except AssertionError as failure:
            failure.add_note(f"seed {seed}")
            raise
        tried += 1
    assert told >= tried / 3


def test_the_fuzzer_uses_everything() -> None:
    """The programs have every operation, both directions, parents, tables and sums."""
    seen: set[str] = set()
    for seed in range(40):
        program = RolledMaker(np.random.default_rng(seed), exact=False).make()
        for loop in program.sweeps:
            seen.add(loop.direction.value)
            for body in loop.blocks.values():
                seen.update(body.graph.nodes[n][0] for n in body.live_nodes)
                seen.update(
                    f"{node[1][0]} {node[1][2]}" for node in body.graph.nodes if node[0] == "load"
                )
                seen.update("+=" for store in body.stores if store.add)
                seen.update("float" for s in body.stores if not isinstance(s.value, Value))
    arithmetic = ["add", "sub", "mul", "div", "neg", "sqrt", "sin", "cos", "log", "select", "const"]
    places = ["work link", "work parent", "table link", "q q", "v v", "f body"]
    assert seen >= {*arithmetic, *places, "outward", "inward", "+=", "float"}

# SPDX-License-Identifier: BSD-3-Clause
"""The verifier: sound programs pass (``test_programs`` tries them all), damaged ones are named."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import phistar
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.run.machine_kernel import llvm_text
from phistar.compile import kernel
from phistar.scalar.graph import Graph, KeyedPlace, Value
from phistar.scalar.lower import to_looped, to_unrolled
from phistar.scalar.program import BasicBlock, LinkSweep, Looped, Signature, Store, Unrolled
from phistar.scalar.verify import OPERAND_COUNTS, VerifyError, verify
from phistar.sweeps.ir import Direction

ABSENT = frozenset({"f_ext", "gravity"})
KEPT = ("work", "forward")


@pytest.fixture
def straight() -> Unrolled:
    """A straight line of one's own to damage."""
    model = phistar.load("double_pendulum").model
    return to_unrolled(kernel("forward_dynamics").schedule, model, ABSENT)


@pytest.fixture
def rolled() -> Looped:
    """Loops of one's own to damage."""
    model = phistar.load("quadruped").model
    return to_looped(kernel("forward_dynamics").schedule, model, ABSENT)


@pytest.mark.parametrize("name", phistar.robots.names())
@pytest.mark.parametrize("make", [to_unrolled, to_looped])
def test_bundled_robots(name: str, make: Callable[..., Any]) -> None:
    """Sound programs pass."""
    model = phistar.load(name).model
    for program in ("inverse_dynamics", "forward_dynamics_2"):
        verify(make(kernel(program).schedule, model, ABSENT))


def first(body: BasicBlock, op: str) -> int:
    """The number of a live node."""
    return next(n for n in body.live_nodes if body.graph.nodes[n][0] == op)


def _unknown(body: BasicBlock) -> None:
    n = first(body, "mul")
    body.graph.nodes[n] = ("pow", *body.graph.nodes[n][1:])


def _too_few(body: BasicBlock) -> None:
    n = first(body, "mul")
    body.graph.nodes[n] = body.graph.nodes[n][:2]


def _later(body: BasicBlock) -> None:
    n = first(body, "add")
    body.graph.nodes[n] = ("add", n, body.graph.nodes[n][2])


def _no_float(body: BasicBlock) -> None:
    body.graph.nodes.append(("const", 1))


def _foreign(body: BasicBlock) -> None:
    other = Graph()
    body.stores[0] = replace(body.stores[0], value=other.load("q", 0))


def _no_number(body: BasicBlock) -> None:
    body.stores[0] = replace(body.stores[0], value=None)  # type: ignore[arg-type]


def _beyond(body: BasicBlock) -> None:
    n = first(body, "load")
    body.graph.nodes[n] = ("load", body.graph.nodes[n][1]._replace(entry=1000))


def _other_input(body: BasicBlock) -> None:
    n = first(body, "load")
    body.graph.nodes[n] = ("load", body.graph.nodes[n][1]._replace(space="nothing"))


def _no_slot(body: BasicBlock) -> None:
    n = first(body, "load")
    body.graph.nodes[n] = ("load", KeyedPlace(("cos", 0), "link"))


def _twice(body: BasicBlock) -> None:
    body.stores.append(next(s for s in body.stores if s.space not in KEPT and not s.add))


def _never(body: BasicBlock) -> None:
    body.stores.remove(next(s for s in body.stores if s.space not in KEPT))


def _other_output(body: BasicBlock) -> None:
    i = next(i for i, s in enumerate(body.stores) if s.space not in KEPT)
    body.stores[i] = replace(body.stores[i], space="nothing")


def _other_base(body: BasicBlock) -> None:
    i = next(i for i, s in enumerate(body.stores) if s.space not in KEPT)
    body.stores[i] = replace(body.stores[i], base="link")


def _added_first(body: BasicBlock) -> None:
    i = next(i for i, s in enumerate(body.stores) if s.space not in KEPT)
    body.stores[i] = replace(body.stores[i], add=True)


COMMON: dict[str, tuple[Callable[[BasicBlock], None], str]] = {
    "unknown operation": (_unknown, "unknown operation 'pow'"),
    "too few operands": (_too_few, "1 operands, expected 2"),
    "later operand": (_later, "does not come before"),
    "constant": (_no_float, "not one float"),
    "foreign value": (_foreign, "another graph"),
    "no number": (_no_number, "is no number"),
    "entry": (_beyond, "no such input|entry 10|numbers|slots"),
    "key": (_no_slot, "not one place"),
    "input": (_other_input, "no such input"),
    "stored twice": (_twice, "stored twice"),
    "never stored": (_never, "never stored"),
    "output": (_other_output, "no such output"),
    "base": (_other_base, "counts from the row|not counted from"),
    "added first": (_added_first, "not stored yet"),
}


@pytest.mark.parametrize("damage", COMMON)
def test_damaged_straight_line(damage: str, straight: Unrolled) -> None:
    """Each injury is found, and the message names it."""
    injure, message = COMMON[damage]
    injure(straight.block)
    with pytest.raises(VerifyError, match=message):
        verify(straight)


def _with_output(program: Looped) -> BasicBlock:
    return next(
        body
        for loop in program.sweeps
        for body in loop.blocks.values()
        if any(s.space not in KEPT for s in body.stores) and {"mul", "add"} <= _ops(body)
    )


def _ops(body: BasicBlock) -> set[str]:
    return {body.graph.nodes[n][0] for n in body.live_nodes}


@pytest.mark.parametrize("damage", COMMON)
def test_damaged_loop(damage: str, rolled: Looped) -> None:
    """The same in a loop."""
    injure, message = COMMON[damage]
    injure(_with_output(rolled))
    with pytest.raises(VerifyError, match=message):
        verify(rolled)


def _without_a_store(program: Looped) -> Looped:
    body = next(b for loop in program.sweeps for b in loop.blocks.values() if len(b.stores) > 1)
    del body.stores[0]
    return program


def _loops_swapped(program: Looped) -> Looped:
    return replace(program, sweeps=list(reversed(program.sweeps)))


def _walked_the_wrong_way(program: Looped) -> Looped:
    i, loop = next(
        (i, loop)
        for i, loop in enumerate(program.sweeps)
        if any(
            node[0] == "load" and node[1][0] == "forward" and node[1][2] == "parent"
            for body in loop.blocks.values()
            for node in body.graph.nodes
        )
        and loop.direction.value == "outward"
    )
    other = next(x.direction for x in program.sweeps if x.direction is not loop.direction)
    loops = list(program.sweeps)
    loops[i] = LinkSweep(other, loop.blocks)
    return replace(program, sweeps=loops)


def _fewer_slots(program: Looped) -> Looped:
    return replace(program, slots=program.slots - 1)


def _fewer_hands(program: Looped) -> Looped:
    return replace(program, forward_slots=program.forward_slots - 1)


def _links(change: Callable[[Any], dict[str, Any]]) -> Callable[[Looped], Looped]:
    return lambda program: replace(program, links=replace(program.links, **change(program.links)))


def _shorter_row(links: Any) -> dict[str, Any]:
    k = max(range(len(links)), key=lambda k: (links.class_of.count(links.class_of[k]), k))
    table = copy.deepcopy(list(links.table))
    table[k] = [*table[k], 1.0]
    return {"table": table}


def _fewer_constants(links: Any) -> dict[str, Any]:
    return {"table": [row[:1] for row in links.table]}


LOOPS: dict[str, tuple[Callable[[Looped], Looped], str]] = {
    "a store left out": (_without_a_store, "nothing was left|never stored|nothing to add"),
    "loops in another order": (_loops_swapped, "nothing was left|nothing to add"),
    "the wrong way": (_walked_the_wrong_way, "nothing was left"),
    "too few slots": (_fewer_slots, "slot"),
    "too few places": (_fewer_hands, "slot"),
    "rows of the table": (_links(_shorter_row), "not as long as others of class"),
    "constants": (_links(_fewer_constants), "the link's row has"),
    "lengths": (_links(lambda x: {"v": list(x.v)[:-1]}), "different lengths"),
    "parent": (_links(lambda x: {"parent": [0, *list(x.parent)[1:]]}), "does not come before"),
    "start": (_links(lambda x: {"v": [-1, *list(x.v)[1:]]}), "begin before"),
    "shifted": (_links(lambda x: {"v": [v + 1 for v in x.v]}), "entry"),
    "class": (
        _links(lambda x: {"class_of": [x.class_of[1], *list(x.class_of)[1:]]}),
        "ground and others|not as long",
    ),
}


@pytest.mark.parametrize("damage", LOOPS)
def test_damaged_loops(damage: str, rolled: Looped) -> None:
    """Injuries that only loops can have."""
    injure, message = LOOPS[damage]
    verify(rolled)
    with pytest.raises(VerifyError, match=message):
        verify(injure(rolled))


@pytest.mark.parametrize("quantity", ["inverse_dynamics", "hinge_inertias"])
def test_a_place_that_is_taken_too_early(quantity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Branches that hand on in the same place are found, outward and inward."""
    model = phistar.load("quadruped").model
    program = to_looped(kernel(quantity).schedule, model, ABSENT)
    verify(program)
    same = {way: [0] * len(program.links) for way in Direction}
    monkeypatch.setitem(vars(program.links), "forward_places", same)
    with pytest.raises(VerifyError, match=r"nothing was left there|nothing to add"):
        verify(program)


def test_parent_of_the_ground() -> None:
    """A root has no parent to read from or to push to."""
    model = phistar.load("double_pendulum").model
    program = to_looped(kernel("inverse_dynamics").schedule, model, ABSENT)
    body = next(b for loop in program.sweeps for c, b in loop.blocks.items() if c == 0 and b.stores)
    value = body.graph.load("work", 0, "parent")
    body.stores.append(Store("work", 0, "link", value))
    with pytest.raises(VerifyError, match="there is no 'parent'"):
        verify(program)
    body.stores[-1] = Store("work", 0, "parent", 1.0)
    with pytest.raises(VerifyError, match="no such slot"):
        verify(program)


def test_every_operation_is_known() -> None:
    """What a graph can make, the verifier knows, with the right number of operands."""
    graph = Graph()
    x, y = graph.load("x", 0), graph.load("x", 1)
    for op, count in OPERAND_COUNTS.items():
        if count:
            graph.intern(op, *(x.id, y.id, x.id, y.id)[:count])
    stores = [Store("y", i, "", Value(graph, i)) for i in range(len(graph.nodes))]
    verify(Unrolled(Signature({"x": 2}, {"y": len(stores)}), BasicBlock(graph, stores)))


def test_it_is_an_internal_error() -> None:
    """Not one for users: no PhistarError."""
    assert issubclass(VerifyError, AssertionError)
    assert not issubclass(VerifyError, phistar.errors.PhistarError)


def test_compilations_of_tests_are_verified(straight: Unrolled) -> None:
    """No code is made of a damaged program."""
    llvm_text(straight, Lanes(4))
    _later(straight.block)
    with pytest.raises(VerifyError, match="does not come before"):
        llvm_text(straight, Lanes(4))

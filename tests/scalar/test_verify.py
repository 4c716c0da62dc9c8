# SPDX-License-Identifier: BSD-3-Clause
"""The verifier: sound programs pass (``test_programs`` tries them all), damaged ones are named."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import phistar
from phistar.compile import kernel
from phistar.scalar.graph import Graph, Value
from phistar.scalar.lower import to_rolled, to_straight
from phistar.scalar.program import Body, Loop, Rolled, Signature, Store, Straight
from phistar.scalar.verify import OPERANDS, VerifyError, verify

ABSENT = frozenset({"f_ext", "gravity"})
KEPT = ("work", "hand")


@pytest.fixture
def straight() -> Straight:
    """A straight line of one's own to damage."""
    model = phistar.load("double_pendulum").model
    return to_straight(kernel("forward_dynamics").schedule, model, ABSENT)


@pytest.fixture
def rolled() -> Rolled:
    """Loops of one's own to damage."""
    model = phistar.load("quadruped").model
    return to_rolled(kernel("forward_dynamics").schedule, model, ABSENT)


@pytest.mark.parametrize("name", phistar.robots.names())
@pytest.mark.parametrize("make", [to_straight, to_rolled])
def test_bundled_robots(name: str, make: Callable[..., Any]) -> None:
    """Sound programs pass."""
    model = phistar.load(name).model
    for program in ("inverse_dynamics", "forward_dynamics_2"):
        verify(make(kernel(program).schedule, model, ABSENT))


def first(body: Body, op: str) -> int:
    """The number of a live node."""
    return next(n for n in body.live if body.graph.nodes[n][0] == op)


def _unknown(body: Body) -> None:
    n = first(body, "mul")
    body.graph.nodes[n] = ("pow", *body.graph.nodes[n][1:])


def _too_few(body: Body) -> None:
    n = first(body, "mul")
    body.graph.nodes[n] = body.graph.nodes[n][:2]


def _later(body: Body) -> None:
    n = first(body, "add")
    body.graph.nodes[n] = ("add", n, body.graph.nodes[n][2])


def _no_float(body: Body) -> None:
    body.graph.nodes.append(("const", 1))


def _foreign(body: Body) -> None:
    other = Graph()
    body.stores[0] = replace(body.stores[0], value=other.load("q", 0))


def _no_number(body: Body) -> None:
    body.stores[0] = replace(body.stores[0], value=None)  # type: ignore[arg-type]


def _beyond(body: Body) -> None:
    n = first(body, "load")
    (space, _, *base) = body.graph.nodes[n][1]
    body.graph.nodes[n] = ("load", (space, 1000, *base))


def _other_input(body: Body) -> None:
    n = first(body, "load")
    (_, entry, *base) = body.graph.nodes[n][1]
    body.graph.nodes[n] = ("load", ("nothing", entry, *base))


def _twice(body: Body) -> None:
    body.stores.append(next(s for s in body.stores if s.space not in KEPT and not s.add))


def _never(body: Body) -> None:
    body.stores.remove(next(s for s in body.stores if s.space not in KEPT))


def _other_output(body: Body) -> None:
    i = next(i for i, s in enumerate(body.stores) if s.space not in KEPT)
    body.stores[i] = replace(body.stores[i], space="nothing")


def _other_base(body: Body) -> None:
    i = next(i for i, s in enumerate(body.stores) if s.space not in KEPT)
    body.stores[i] = replace(body.stores[i], base="link")


def _added_first(body: Body) -> None:
    i = next(i for i, s in enumerate(body.stores) if s.space not in KEPT)
    body.stores[i] = replace(body.stores[i], add=True)


COMMON: dict[str, tuple[Callable[[Body], None], str]] = {
    "unknown operation": (_unknown, "unknown operation 'pow'"),
    "too few operands": (_too_few, "1 operands, expected 2"),
    "later operand": (_later, "does not come before"),
    "constant": (_no_float, "not one float"),
    "foreign value": (_foreign, "another graph"),
    "no number": (_no_number, "is no number"),
    "entry": (_beyond, "no such input|entry 10|numbers|slots"),
    "input": (_other_input, "no such input"),
    "stored twice": (_twice, "stored twice"),
    "never stored": (_never, "never stored"),
    "output": (_other_output, "no such output"),
    "base": (_other_base, "counts from the row|not counted from"),
    "added first": (_added_first, "not stored yet"),
}


@pytest.mark.parametrize("damage", COMMON)
def test_damaged_straight_line(damage: str, straight: Straight) -> None:
    """Each injury is found, and the message names it."""
    injure, message = COMMON[damage]
    injure(straight.body)
    with pytest.raises(VerifyError, match=message):
        verify(straight)


def _with_output(program: Rolled) -> Body:
    return next(
        body
        for loop in program.loops
        for body in loop.bodies.values()
        if any(s.space not in KEPT for s in body.stores) and {"mul", "add"} <= _ops(body)
    )


def _ops(body: Body) -> set[str]:
    return {body.graph.nodes[n][0] for n in body.live}


@pytest.mark.parametrize("damage", COMMON)
def test_damaged_loop(damage: str, rolled: Rolled) -> None:
    """The same in a loop."""
    injure, message = COMMON[damage]
    injure(_with_output(rolled))
    with pytest.raises(VerifyError, match=message):
        verify(rolled)


def _without_a_store(program: Rolled) -> Rolled:
    body = next(b for loop in program.loops for b in loop.bodies.values() if len(b.stores) > 1)
    del body.stores[0]
    return program


def _loops_swapped(program: Rolled) -> Rolled:
    return replace(program, loops=list(reversed(program.loops)))


def _walked_the_wrong_way(program: Rolled) -> Rolled:
    i, loop = next(
        (i, loop)
        for i, loop in enumerate(program.loops)
        if any(
            node[0] == "load" and node[1][0] == "hand" and node[1][2] == "parent"
            for body in loop.bodies.values()
            for node in body.graph.nodes
        )
        and loop.direction.value == "outward"
    )
    other = next(x.direction for x in program.loops if x.direction is not loop.direction)
    loops = list(program.loops)
    loops[i] = Loop(other, loop.bodies)
    return replace(program, loops=loops)


def _fewer_slots(program: Rolled) -> Rolled:
    return replace(program, slots=program.slots - 1)


def _fewer_hands(program: Rolled) -> Rolled:
    return replace(program, hands=program.hands - 1)


def _links(change: Callable[[Any], dict[str, Any]]) -> Callable[[Rolled], Rolled]:
    return lambda program: replace(program, links=replace(program.links, **change(program.links)))


def _shorter_row(links: Any) -> dict[str, Any]:
    k = max(range(len(links)), key=lambda k: (links.class_of.count(links.class_of[k]), k))
    table = copy.deepcopy(list(links.table))
    table[k] = [*table[k], 1.0]
    return {"table": table}


def _fewer_constants(links: Any) -> dict[str, Any]:
    return {"table": [row[:1] for row in links.table]}


LOOPS: dict[str, tuple[Callable[[Rolled], Rolled], str]] = {
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
def test_damaged_loops(damage: str, rolled: Rolled) -> None:
    """Injuries that only loops can have."""
    injure, message = LOOPS[damage]
    verify(rolled)
    with pytest.raises(VerifyError, match=message):
        verify(injure(rolled))


@pytest.mark.parametrize("quantity", ["inverse_dynamics", "hinge_inertias"])
def test_a_place_that_is_taken_too_early(quantity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Branches that hand on in the same place are found, outward and inward."""
    model = phistar.load("quadruped").model
    program = to_rolled(kernel(quantity).schedule, model, ABSENT)
    verify(program)
    monkeypatch.setattr("phistar.scalar.verify.hand_places", lambda parents, _: [0] * len(parents))
    with pytest.raises(VerifyError, match=r"nothing was left there|nothing to add"):
        verify(program)


def test_parent_of_the_ground() -> None:
    """A root has no parent to read from or to push to."""
    model = phistar.load("double_pendulum").model
    program = to_rolled(kernel("inverse_dynamics").schedule, model, ABSENT)
    body = next(b for loop in program.loops for c, b in loop.bodies.items() if c == 0 and b.stores)
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
    for op, count in OPERANDS.items():
        if count:
            graph.node(op, *(x.id, y.id)[:count])
    stores = [Store("y", i, "", Value(graph, i)) for i in range(len(graph.nodes))]
    verify(Straight(Signature({"x": 2}, {"y": len(stores)}), Body(graph, stores)))


def test_it_is_an_internal_error() -> None:
    """Not one for users: no PhistarError."""
    assert issubclass(VerifyError, AssertionError)
    assert not issubclass(VerifyError, phistar.errors.PhistarError)

# SPDX-License-Identifier: BSD-3-Clause
"""Listings: they say what runs, and running them gives the program's numbers."""

import re

import numpy as np
import pytest

import phistar
from phistar.algorithms.programs import PROGRAMS
from phistar.compile import kernel
from phistar.scalar.graph import Graph, log, select, sin, sqrt
from phistar.scalar.interpret import run
from phistar.scalar.lower import to_looped, to_unrolled
from phistar.scalar.printing import to_text
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled

ABSENT = frozenset({"f_ext", "gravity"})


def test_straight_line() -> None:
    """One line a node and a store."""
    graph = Graph()
    q, v = graph.load("q", 0), graph.load("v", 1)
    value = sin(q) * v - sqrt(v * -2.5 + 0.25)
    body = BasicBlock(graph, [Store("tau", 0, "", value), Store("tau", 1, "", 0.0)])
    text = to_text(Unrolled(Signature({"q": 1, "v": 2}, {"tau": 2}), body))
    assert text.splitlines() == [
        "q[1], v[2] -> tau[2]",
        "4 operations (add 1, mul 2, sin 1, sqrt 1, sub 1)",
        "",
        "n2 = sin(q[0])",
        "n3 = v[1] * n2",
        "n5 = v[1] * 2.5",
        "n6 = -n5",
        "n8 = n6 + 0.25",
        "n9 = sqrt(n8)",
        "n11 = n3 - n9",
        "tau[0] = n11",
        "tau[1] = 0.0",
    ]


def test_choices() -> None:
    """A selection is written as Python writes one."""
    graph = Graph()
    x, y = graph.load("x", 0), graph.load("x", 1)
    body = BasicBlock(graph, [Store("y", 0, "", log(select(x, y, y, 1.0)))])
    text = to_text(Unrolled(Signature({"x": 2}, {"y": 1}), body))
    assert text.splitlines()[3:] == [
        "n3 = x[1] if x[0] > x[1] else 1.0",
        "n4 = log(n3)",
        "y[0] = n4",
    ]


def test_loops() -> None:
    """Classes with their links, then each loop with a body a class."""
    model = phistar.load("double_pendulum").model
    text = to_text(to_looped(kernel("inverse_dynamics").schedule, model, ABSENT))
    assert text.startswith("q[2], v[2], vdot[2] -> tau[2]\n")
    assert "2 links, " in text
    assert "class 0: links 0; " in text
    assert re.search(r"^loop 0, outward:$", text, re.MULTILINE)
    assert re.search(r"^    keep\[\d+\] = ", text, re.MULTILINE)
    assert re.search(r"= .*keep\(p\)\[\d+\]", text) or "keep(p)[" in text
    assert re.search(r"^    tau\{k\}\[0\] = ", text, re.MULTILINE)
    assert "q{k}[0]" in text


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_a_listing(name: str) -> None:
    """Of both shapes, on a robot with a free base; as many lines as operations at least."""
    model = phistar.load("quadruped").model
    for make in (to_unrolled, to_looped):
        program = make(kernel(name).schedule, model)
        assert to_text(program).count(" = ") >= sum(program.signature.outputs.values()) / 6


def test_a_listing_is_the_program() -> None:
    """A straight line read as Python has the interpreter's results, to the bit."""
    model = phistar.load("panda").model
    program = to_unrolled(kernel("forward_dynamics").schedule, model, ABSENT)
    rng = np.random.default_rng(1)
    rows = {name: rng.normal(size=n) for name, n in program.signature.inputs.items()}
    names = {**rows, "vdot": np.zeros(7), "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt}
    body = to_text(program).split("\n\n", 1)[1]
    exec(compile(body, "listing", "exec"), names)
    expected = run(program, {name: x[None] for name, x in rows.items()})["vdot"][0]
    np.testing.assert_array_equal(names["vdot"], expected)

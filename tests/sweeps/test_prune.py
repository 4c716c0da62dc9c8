# SPDX-License-Identifier: BSD-3-Clause
"""Dead streams go: the outputs stay what they are."""

import numpy as np
import pytest

from phistar.algebra.random_examples import random_vectors
from phistar.algebra.spaces import FORCE, JOINT
from phistar.algebra.symbols import SYMBOLS, H, phi, psi, vector
from phistar.algorithms.programs import PROGRAMS
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.sweeps.interpret import run
from phistar.sweeps.ir import StreamProgram, Type
from phistar.sweeps.lower import lower
from phistar.sweeps.prune import program_listing, prune
from phistar.sweeps.schedule import schedule

f = vector("f", FORCE)


def test_unused_streams_go() -> None:
    """What no output depends on is not in the table any more; numbers close up."""
    program = StreamProgram()
    dead = program.leaf("dead", Type.MOTION)
    used = program.leaf("used", Type.FORCE)
    program.add("shift_out", (dead,), Type.MOTION)
    program.outputs["out"] = program.add("H", (used,), Type.JOINT)
    pruned = prune(program)
    assert [(node.op, node.operands, node.data) for node in pruned.nodes] == [
        ("leaf", (), "used"),
        ("H", (0,), None),
    ]
    assert pruned.outputs == {"out": 1}
    assert pruned.names == {0: "used"}
    assert program_listing(pruned).splitlines() == [
        "%0 = leaf used : force   used",
        "%1 = H %0 : joint   output out",
    ]
    assert len(program.nodes) == 4


def test_an_output_that_is_dropped_takes_its_streams_along() -> None:
    """Two recursions for two outputs, one for one; recursions keep their definitions."""
    program = lower({"kept": H @ phi @ f, "dropped": psi @ f})
    assert len(program.recursions) == 3
    del program.outputs["dropped"]
    pruned = prune(program)
    assert len(pruned.nodes) < len(program.nodes)
    assert {node.op for node in pruned.nodes} == {"leaf", "rec", "shift_in", "sum", "H"}
    assert set(pruned.definitions) == set(pruned.recursions)


@pytest.mark.parametrize("name", PROGRAMS)
def test_outputs_stay(name: str) -> None:
    """Everything left is needed, and the numbers are the same to the last bit."""
    program = lower(dict(PROGRAMS[name]))
    pruned = prune(program)
    assert len(pruned.nodes) == len(list(program.live())) == len(list(pruned.live()))
    rng = np.random.default_rng(0)
    model = random_model(rng, 4, kinds=["revolute", "prismatic"])
    q = random_configuration(model, rng)
    given = random_vectors(rng, model, PROGRAMS[name].values())
    joints = {n for n in given if SYMBOLS[n].symbol.codomain is JOINT}
    inputs = {n: x if n in joints else x.reshape(-1, 6) for n, x in given.items()}
    before, after = (run(schedule(p), model, q, inputs) for p in (program, pruned))
    assert all((before[key] == after[key]).all() for key in before)

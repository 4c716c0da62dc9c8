# SPDX-License-Identifier: BSD-3-Clause
"""Parallel schedules as users meet them: results, counts, text, and what is refused."""

import math

import numpy as np
import pytest

import phistar
from phistar import robots
from phistar.compile import kernel
from phistar.errors import (
    ArgumentError,
    LoopError,
    NotFiniteError,
    SingularHingeError,
    UnknownNameError,
)
from phistar.model import ModelBuilder
from phistar.model.random import random_model
from phistar.sweeps.costs import count_operations
from phistar.sweeps.op_costs import link_types
from phistar.sweeps.parallel.join_tree import JoinTree
from phistar.sweeps.parallel.parallel_costs import ParallelCount, count_parallel
from phistar.sweeps.parallel.robot_tree import parallel_tree
from tests.helpers import SHARED

SPAN_PER_DOUBLING = 4000
"""c: on a chain of N links forward dynamics takes at most c log₂ N operations in a row."""
WORK_RATIO = 8
"""At most so many times the operations of the sequential recursion."""
REFERENCE = ("panda", "anymal", "talos")


@pytest.fixture(scope="module")
def chain() -> phistar.Robot:
    """Long enough that links are joined."""
    return robots.chain(80)


@pytest.fixture(scope="module")
def state(chain: phistar.Robot) -> tuple[np.ndarray, ...]:
    """Two samples of q, v and a joint vector."""
    return tuple(np.random.default_rng(0).normal(size=(3, 2, chain.nv)) * 0.3)


def counted(robot: phistar.Robot) -> ParallelCount:
    """What forward dynamics costs."""
    cost = robot.compile("forward_dynamics", schedule="parallel").cost
    assert isinstance(cost, ParallelCount)
    return cost


def test_methods_agree(chain: phistar.Robot, state: tuple[np.ndarray, ...]) -> None:
    """Both dynamics, with wrenches, into an array; machine code is the witness; relative 1e-10."""
    q, v, x = state
    forces = {chain.link_names[40]: np.arange(6.0)}
    out = np.empty_like(v)
    for method in (chain.forward_dynamics, chain.inverse_dynamics):
        expected = method(q, v, x, forces=forces)
        found = method(q, v, x, forces=forces, method="parallel", out=out)
        assert found is out
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize(
    "name",
    [
        "link_velocities",
        "mass_matrix_times",
        "mass_matrix_solve",
        "inverse_dynamics_vjp",
        "forward_dynamics_jvp",
        "forward_dynamics_vjp",
        "momentum",
        "kinetic_energy",
        "potential_energy",
        "center_of_mass",
    ],
)
def test_compiled_programs_agree(
    chain: phistar.Robot, state: tuple[np.ndarray, ...], name: str
) -> None:
    """Products, solves, velocities, energies and linearized products; relative 1e-9."""
    program = chain.compile(name, schedule="parallel")
    names = [each for each in program.inputs if each != "f_ext"]
    given = {each: state[1] * (1 + number) for number, each in enumerate(names)}
    outputs = [
        x if isinstance(x, dict) else {"only": x}
        for x in (
            program(state[0], **given),
            chain.compile(name, backend="numpy")(state[0], **given),
        )
    ]
    for have, want in zip(outputs[0].values(), outputs[1].values(), strict=True):
        np.testing.assert_allclose(have, want, rtol=0, atol=1e-9 * np.abs(want).max())


def test_complex_steps_are_the_derivative(
    chain: phistar.Robot, state: tuple[np.ndarray, ...]
) -> None:
    """Rounds are analytic: a complex step is the product with the derivative; relative 1e-9."""
    q, v, tau = (x[0] for x in state)
    direction = state[1][1]
    rounds = kernel("forward_dynamics", schedule="parallel").executable(
        chain.model, backend="numpy"
    )
    step = rounds(q + 1e-30j * direction, {"v": v + 0j, "tau": tau + 0j})["vdot"].imag / 1e-30
    zeros = np.zeros_like(v)
    given = {"v": v, "tau": tau, "dq": direction, "dv": zeros, "dtau": zeros}
    product = chain.compile("forward_dynamics_jvp", schedule="parallel")
    found = product(q, **given)
    np.testing.assert_allclose(found, step, rtol=0, atol=1e-9 * np.abs(step).max())


def test_span_of_chains_is_logarithmic() -> None:
    """At most c log₂ N operations one after the other, and at most 8 times the work."""
    for count in (16, 64, 1024):
        robot = robots.chain(count)
        cost = counted(robot)
        assert cost.span <= SPAN_PER_DOUBLING * math.log2(count)
        sequential = robot.compile("forward_dynamics", backend="numpy").cost
        assert cost.work <= WORK_RATIO * sequential.total
        assert cost.work == cost.total
        assert sequential.span == sequential.work


def test_span_is_never_more_than_that_of_levels() -> None:
    """Stars, random trees and small robots: no deeper than visiting level by level."""
    models = [
        random_model(np.random.default_rng(3), 60),
        random_model(np.random.default_rng(4), 40, topology="star"),
        robots.chain(7).model,
        robots.chain(90).model,
    ]
    schedule = robots.chain(2).compile("forward_dynamics", schedule="parallel")._kernel.draft
    assert schedule.parallel is not None
    for model in models:
        levels = JoinTree([body.parent for body in model.bodies])
        chosen = count_parallel(schedule.parallel, model, parallel_tree(model))
        plain = count_parallel(schedule.parallel, model, levels)
        assert chosen.span <= plain.span
        depth = len(levels.up)
        dearest = max(each.total for each in count_operations(schedule.schedule, model).by_link)
        # A star of m children adds in pairs; a level costs what its dearest link does, and scans
        # move values across joints up to three times.
        most = max(place.children for place in link_types(model))
        assert plain.span <= depth * (3 * dearest + 27 * max(most, 1).bit_length())


def test_level_by_level_does_the_sequential_work() -> None:
    """On a short robot nothing is joined, and at most a third more is done."""
    robot = phistar.load("panda")
    work = counted(robot).work
    assert work <= 4 / 3 * robot.compile("forward_dynamics").sweep_cost.total.total


@pytest.mark.parametrize("folder", REFERENCE)
def test_reference_robots_agree(folder: str) -> None:
    """A few of ``python -m tools.parallel_table``, which compares all; 1e-9."""
    from tools.parallel_table import compare, robot_files

    files = [path for path in robot_files(SHARED / "robots") if folder in path.name]
    if not files:
        pytest.skip("no reference robots")
    outcome = compare(files[0])
    assert outcome.error <= 1e-9, outcome


def test_program_explains_itself(chain: phistar.Robot) -> None:
    """Sweeps, passes, source and cost are those of the rounds."""
    program = chain.compile("forward_dynamics", schedule="parallel")
    assert program.backend == "numpy"
    assert "star products" in program.sweeps
    assert "φ*(p,k) V(p)" in program.sweeps
    assert any("star products" in stage.text for stage in program.passes)
    assert program.source() == program.sweeps
    assert "longest path" in str(program.cost)
    text = phistar.explain("forward_dynamics", level="transition", schedule="parallel")
    assert "star products" in text


def test_other_samples_keep_their_bits(chain: phistar.Robot, state: tuple[np.ndarray, ...]) -> None:
    """One sample is not a number: it alone is bad."""
    q, v, tau = (x.copy() for x in state)
    good = chain.forward_dynamics(q, v, tau, method="parallel")
    tau[1, 3] = np.nan
    found = chain.forward_dynamics(q, v, tau, method="parallel", on_error="nan")
    assert np.isnan(found[1]).all()
    assert (found[0] == good[0]).all()
    with pytest.raises(NotFiniteError):
        chain.forward_dynamics(q, v, tau, method="parallel")


def test_precisions(chain: phistar.Robot, state: tuple[np.ndarray, ...]) -> None:
    """Single precision stays; half precision, whose products overflow, is refused."""
    program = chain.compile("inverse_dynamics", schedule="parallel")
    single = [x.astype(np.float32) for x in state]
    expected = program(state[0], v=state[1], vdot=state[2])
    found = chain.inverse_dynamics(*single, method="parallel")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * np.abs(expected).max())
    half = [x.astype(np.float16) for x in state]
    with pytest.raises(ArgumentError, match="float16"):
        chain.inverse_dynamics(*half, method="parallel")


def test_broadcast_and_empty_batches(chain: phistar.Robot, state: tuple[np.ndarray, ...]) -> None:
    """Batch axes broadcast; no sample gives none."""
    q, v, tau = state
    program = chain.compile("forward_dynamics", schedule="parallel")
    wide = program(q[:, None], v=v[None], tau=tau[0])
    assert wide.shape == (2, 2, chain.nv)
    one = program(q[1], v=v[0], tau=tau[0])
    np.testing.assert_allclose(wide[1, 0], one, rtol=0, atol=1e-11 * np.abs(one).max())
    assert program(q[:0], v=v[:0], tau=tau[:0]).shape == (0, chain.nv)
    builder = ModelBuilder("stone")
    builder.link("base", 1.0)
    stone = phistar.Robot(builder.build())
    empty = np.zeros((3, 0)), np.zeros(0), np.zeros(0)
    assert stone.forward_dynamics(*empty, method="parallel").shape == (3, 0)


def test_wrong_names_and_backends(chain: phistar.Robot) -> None:
    """One clear error each, with the close match or the cure."""
    with pytest.raises(UnknownNameError, match="Did you mean 'parallel'"):
        chain.compile("forward_dynamics", schedule="paralel")
    with pytest.raises(UnknownNameError, match="Did you mean 'parallel'"):
        chain.inverse_dynamics(*np.zeros((3, chain.nv)), method="paralel")
    with pytest.raises(ArgumentError, match=r"'llvm' runs link after link.*'numpy'"):
        chain.compile("forward_dynamics", schedule="parallel", backend="llvm")
    with pytest.raises(ArgumentError, match="mass_matrix is a matrix"):
        chain.compile("mass_matrix", schedule="parallel")


def test_loops_and_mimics_are_refused() -> None:
    """What moves together or is closed has no parallel schedule."""
    with pytest.raises(LoopError, match=r"robot\.tree"):
        phistar.load("four_bar").compile("forward_dynamics", schedule="parallel")
    mimic = phistar.Robot(random_model(np.random.default_rng(2), 9, mimic=0.8))
    zeros = mimic.neutral(), np.zeros(mimic.nv), np.zeros(mimic.nv)
    with pytest.raises(ArgumentError, match=r"mimic"):
        mimic.forward_dynamics(*zeros, method="parallel")
    with pytest.raises(ArgumentError, match=r"reduced mimic joints.*schedule='parallel'"):
        mimic.compile("forward_dynamics", schedule="parallel")


def test_singular_hinges_are_refused() -> None:
    """A joint that moves no inertia is named."""
    builder = ModelBuilder("light")
    builder.link("base")
    builder.link("arm")
    builder.joint("hinge", "revolute", "base", "arm", axis=(0, 0, 1))
    robot = phistar.Robot(builder.build())
    with pytest.raises(SingularHingeError, match="hinge"):
        robot.forward_dynamics([0.0], [0.0], [0.0], method="parallel")
    with pytest.raises(SingularHingeError, match="hinge"):
        robot.compile("forward_dynamics", schedule="parallel")

# SPDX-License-Identifier: BSD-3-Clause
"""Parallel schedules: the numbers of the sequential ones, whatever the segments are."""

from functools import cache

import numpy as np
import pytest

from phistar.algebra.spaces import FORCE, JOINT, MOTION
from phistar.algebra.symbols import H, composite, phi, psi, vector
from phistar.algorithms.programs import PROGRAMS
from phistar.arrays import Array
from phistar.backends.numpy_links import LinkTables, link_transforms
from phistar.compile import compile_outputs, kernel
from phistar.errors import LoweringError
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.generators import chain
from phistar.model.random import random_model
from phistar.sweeps.interpret import run
from phistar.sweeps.ir import Type
from phistar.sweeps.parallel.array_ops import NUMPY_OPS
from phistar.sweeps.parallel.execute import run_stages
from phistar.sweeps.parallel.join_tree import JoinTree
from phistar.sweeps.parallel.link_fields import AllLinkNumbers, LinkFields
from phistar.sweeps.parallel.parallel_schedule import (
    ParallelSchedule,
    RiccatiScan,
    Scan,
    StarPair,
    parallel_schedule,
)
from phistar.sweeps.parallel.robot_tree import may_end_runs
from phistar.sweeps.schedule import Schedule

TWO_SIDED = {"forward_dynamics_jvp_articulated", "forward_dynamics_jvp_split"}
"""Programs with recursions P̂ and Ĵ, which have other operators on their two sides."""
PAIRS = {
    "mass_matrix_solve": 1,
    "forward_dynamics": 1,
    "forward_dynamics_1": 1,
    "forward_dynamics_2": 1,
    "forward_dynamics_3": 1,
    "hybrid_dynamics": 1,
    "forward_dynamics_jvp": 2,
    "forward_dynamics_vjp": 2,
}
"""Programs whose Riccati recursion is there for pairs of recursions alone."""
SAMPLES = 2


@cache
def models() -> tuple[Model, ...]:
    """A forest of all joint kinds with rotors and massless links, a free base, a chain."""
    rng = np.random.default_rng(11)
    return (
        random_model(rng, 14, topology="forest", armature=0.3, massless=0.3),
        random_model(rng, 12, floating_base=True, armature=0.2),
        random_model(rng, 13, topology="serial", massless=0.4),
    )


def in_rounds(
    schedule: ParallelSchedule, model: Model, tree: JoinTree, q: Array, given: dict[str, Array]
) -> dict[str, Array]:
    """Outputs (samples, ...) by the rounds of a tree."""
    numbers = AllLinkNumbers.of(model, (), frozenset(), np.dtype(float)).renumbered(tree.order)
    tables = LinkTables(model, (), frozenset(), np.dtype(float))
    R, p = link_transforms(tables, q.T)
    fields = LinkFields(
        NUMPY_OPS, numbers, np.moveaxis(R[tree.order], 0, 2), p[tree.order].swapaxes(0, 1)
    )
    inner = {
        name: x.T if x.ndim == 2 else np.moveaxis(x, 0, -1).swapaxes(0, 1)
        for name, x in given.items()
    }
    found = run_stages(schedule, tree, fields, inner)
    return {
        name: np.moveaxis(x, -1, 0) if x.ndim == 2 else x.transpose(2, 1, 0)
        for name, x in found.items()
    }


def leaves(schedule: Schedule, model: Model, rng: np.random.Generator) -> dict[str, Array]:
    """Random inputs of a program."""
    nodes = [schedule.program.nodes[s] for s in schedule.program.live()]
    shapes = {Type.JOINT: (sum(b.joint_kind.nv for b in model.bodies),)}
    own = (len(model.bodies), 6)
    return {
        n.data: rng.normal(size=(SAMPLES, *shapes.get(n.type, own)))
        for n in nodes
        if n.op == "leaf" and n.data != "gravity"
    }


def agree(schedule: Schedule, model: Model, tree: JoinTree, tolerance: float = 1e-10) -> None:
    """The interpreter of sweeps is the witness."""
    rng = np.random.default_rng(5)
    q = np.stack([random_configuration(model, rng) for _ in range(SAMPLES)])
    given = leaves(schedule, model, rng)
    expected = run(schedule, model, q, given)
    found = in_rounds(parallel_schedule(schedule), model, tree, q, given)
    for name, want in expected.items():
        have = found[name][:, 0] if want.ndim == 1 else found[name]
        scale = np.abs(want).max(initial=1e-300)
        assert np.abs(have - want).max(initial=0.0) <= tolerance * scale, name


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in TWO_SIDED])
def test_programs_agree(name: str) -> None:
    """Every program of the catalogue, on trees joined link by link."""
    for number, model in enumerate(models()):
        parents = [body.parent for body in model.bodies]
        agree(kernel(name).schedule, model, JoinTree(parents, 1 + number, may_end_runs(model)))


@pytest.mark.parametrize("run_length", [None, 1, 2, 5])
def test_any_segments_agree(run_length: int | None) -> None:
    """Forward dynamics, by levels of the tree and by runs of any length."""
    for model in models():
        tree = JoinTree([b.parent for b in model.bodies], run_length, may_end_runs(model))
        agree(kernel("forward_dynamics").schedule, model, tree)
        agree(kernel("hinge_inertias").schedule, model, tree)


def test_own_expressions_are_classified() -> None:
    """Affine through free joints by matrices, composites as a congruence: derived, not named."""
    x, f, y = vector("x", JOINT), vector("f", FORCE), vector("y", MOTION)
    expressions = {
        "inward": H @ psi @ f,
        "outward": psi.T @ H.T @ x,
        "composite": composite @ y,
        "both": phi @ psi @ f,
    }
    for name, expr in expressions.items():
        scheduled = compile_outputs(name, ((name, expr),)).schedule
        for model in models():
            tree = JoinTree([b.parent for b in model.bodies], 1, may_end_runs(model))
            agree(scheduled, model, tree)
    stages = parallel_schedule(compile_outputs("c", (("c", composite @ y),)).schedule).stages
    (scan,) = [each for each in stages if isinstance(each, Scan)]
    assert scan.two_sided
    assert scan.by_poses


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_need_no_articulated_inertia(name: str) -> None:
    """A solve is one right-hand side of the star product; P, G and D are formed nowhere."""
    stages = parallel_schedule(kernel(name).schedule).stages
    assert sum(isinstance(each, StarPair) for each in stages) == PAIRS[name]
    assert not any(isinstance(each, RiccatiScan) for each in stages)


@pytest.mark.parametrize("name", sorted(TWO_SIDED))
def test_other_recursions_are_refused(name: str) -> None:
    """A recursion without a join is named, with the cure."""
    with pytest.raises(LoweringError, match=r"no class that has an associative join.*sequential"):
        parallel_schedule(kernel(name).schedule)


def test_long_chains_agree() -> None:
    """2000 links: as accurate as the recursion, condition of 𝓜 and all."""
    model = chain(2000)
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, SAMPLES, 2000)) * 0.3
    given = {"v": v, "tau": tau}
    schedule = kernel("forward_dynamics").schedule
    tree = JoinTree([b.parent for b in model.bodies], 4)
    found = in_rounds(parallel_schedule(schedule), model, tree, q, given)["vdot"]
    expected = kernel("forward_dynamics")(model, q, given, backend="llvm")["vdot"]
    assert np.abs(found - expected).max() <= 1e-9 * np.abs(expected).max()

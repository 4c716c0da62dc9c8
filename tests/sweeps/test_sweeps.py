# SPDX-License-Identifier: BSD-3-Clause
"""Expressions lowered to sweeps: the right numbers, the fewest passes, nothing computed twice."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest

from phistar.algebra.dense import Dense
from phistar.algebra.ir import Expr, Q, crf, crm, let
from phistar.algebra.random_examples import random_vectors
from phistar.algebra.spaces import FORCE, JOINT, LOOP, MINIMAL, MOTION, ONE
from phistar.algebra.symbols import (
    SYMBOLS,
    A,
    D,
    D_root,
    D_root_dot,
    E_phi,
    E_psi,
    G,
    H,
    K,
    M,
    P,
    composite,
    mass_matrix,
    phi,
    psi,
    vector,
)
from phistar.algebra.traverse import nodes
from phistar.algorithms.catalogue import catalogue
from phistar.algorithms.innovations import L, L_inv
from phistar.algorithms.operational_space import Omega
from phistar.algorithms.programs import PROGRAMS
from phistar.errors import ArgumentError, LoweringError
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.generators import chain
from phistar.model.random import random_model
from phistar.sweeps.interpret import run
from phistar.sweeps.ir import StreamProgram, Type
from phistar.sweeps.lower import lower
from phistar.sweeps.printing import to_text
from phistar.sweeps.schedule import schedule

x = vector("x", JOINT)
y = vector("y", MOTION)
f = vector("f", FORCE)

RESULTS = {name: t.result for name, t in catalogue().items() if t.result.domain is ONE}
SEGMENTS = {row.symbol for name, row in SYMBOLS.items() if name.startswith("segment_")}
UNSWEPT = {
    n: e
    for n, e in RESULTS.items()
    if {D_root, D_root_dot, mass_matrix.inv} & set(nodes((e,)))
    or not {LOOP, MINIMAL}.isdisjoint(node.codomain for node in nodes((e,)))
    or not SEGMENTS.isdisjoint(nodes((e,)))
}
"""About the root of D, the inverse before it is factored, rows of closed loops, or segments."""

VECTORS: dict[str, Expr] = {
    **{name: expr for name, expr in RESULTS.items() if name not in UNSWEPT},
    **{
        f"{name}.{output}": expr
        for name, program in PROGRAMS.items()
        for output, expr in program.items()
    },
    "M x": mass_matrix @ x,
    "M^-1 x": L_inv.T @ D.inv @ L_inv @ x,
    "L D L* x": L @ D @ L.T @ x,
    "compliance": Omega @ f,
    "shifts": phi @ E_psi @ f + E_phi @ P @ E_phi.T @ y + K @ K.T @ y,
    "gains": G @ (A @ x + D @ (G.T @ y)) + composite @ y,
    "cancelled": D @ (H @ phi @ f - H @ phi @ f) + x + K.T @ (phi.T @ (y - y) + y),
    "brackets": crf(psi.T @ y) @ f + Q(phi @ f) @ y + M @ crm(y) @ H.T @ x,
}


def _inputs(model: Model, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Dense vectors as the interpreter takes them."""
    count = len(model.bodies)
    joint = {n for n in values if SYMBOLS[n].symbol.codomain is JOINT}
    return {n: v if n in joint else v.reshape(count, 6) for n, v in values.items()}


def _relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-6))


@pytest.mark.parametrize("name", UNSWEPT)
def test_what_has_no_sweeps_says_so(name: str) -> None:
    """√D, 𝓜⁻¹ and vectors of loops are no streams."""
    with pytest.raises(LoweringError, match=r"has no sweep form|is no product of two vectors"):
        lower({"out": UNSWEPT[name]})


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("topology", ["serial", "tree", "forest"])
def test_sweeps_agree_with_dense_operators(name: str, topology: str) -> None:
    """Every program on random robots with every joint kind and rotor inertia; relative 1e-10."""
    expr = VECTORS[name]
    scheduled = schedule(lower({"out": expr}))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        model = random_model(rng, 8, topology=topology, armature=0.5, fixed=0.2, massless=0.2)
        q = random_configuration(model, rng)
        values = random_vectors(rng, model, [expr])
        expected = Dense(model, q, vectors=values)(expr)
        result = run(scheduled, model, q, _inputs(model, values))["out"].reshape(-1)
        assert _relative(result, expected) < 1e-10


@pytest.mark.parametrize(
    ("expr", "directions", "recursions"),
    [
        (PROGRAMS["inverse_dynamics"]["tau"], ("outward", "inward"), 3),
        (PROGRAMS["forward_dynamics"]["vdot"], ("outward", "inward", "outward"), 4),
        (PROGRAMS["forward_dynamics_1"]["vdot"], ("outward", "inward", "outward"), 6),
        (PROGRAMS["forward_dynamics_3"]["vdot"], ("outward", "inward", "outward"), 5),
        (catalogue()["forward_dynamics"].result, ("inward", "outward"), 3),
        (mass_matrix @ x, ("outward", "inward"), 2),
        (L_inv.T @ D.inv @ L_inv @ x, ("inward", "outward"), 3),
        (Omega @ f, ("inward", "outward"), 3),
        (L_inv @ H @ phi @ f, ("inward",), 3),
        (phi.T @ H.T @ x, ("outward",), 1),
        (E_phi.T @ y, ("outward",), 0),
    ],
    ids=["id", "fd", "fd1", "fd3", "fd(a,b)", "Mx", "M^-1 x", "Omega", "white", "V", "shift"],
)
def test_passes_are_the_fewest(expr: Expr, directions: tuple[str, ...], recursions: int) -> None:
    """Sweeps fuse: the numbers of passes and of recursions are pinned."""
    program = lower({"out": expr})
    assert schedule(program).directions == directions
    assert len(program.recursions) == recursions


def test_batches_and_complex_numbers() -> None:
    """A batch is a loop over samples; a complex step differentiates the program."""
    expr = PROGRAMS["inverse_dynamics"]["tau"]
    scheduled = schedule(lower({"out": expr}))
    rng = np.random.default_rng(3)
    model = random_model(rng, 5, kinds=["revolute", "prismatic"])
    q = random_configuration(model, rng, (4,))
    inputs = {
        "v": rng.normal(size=(4, 5)),
        "vdot": rng.normal(size=(4, 5)),
        "f_ext": rng.normal(size=(4, 5, 6)),
    }
    batch = run(scheduled, model, q, inputs)["out"]
    for k in range(4):
        one = run(scheduled, model, q[k], {n: v[k] for n, v in inputs.items()})["out"]
        assert np.allclose(batch[k], one, rtol=1e-13, atol=1e-13)
    direction = rng.normal(size=5)
    exact = run(scheduled, model, q + 1e-30j * direction, inputs)["out"].imag / 1e-30
    ahead, behind = (run(scheduled, model, q + h * direction, inputs)["out"] for h in (1e-6, -1e-6))
    assert _relative((ahead - behind) / 2e-6, exact) < 1e-7


def test_work_is_linear_in_the_number_of_links() -> None:
    """A program has as many statements for a long chain as for a short one; long ones run."""
    scheduled = schedule(lower({"out": PROGRAMS["inverse_dynamics"]["tau"]}))
    model = chain(2_000)
    rng = np.random.default_rng(4)
    count = len(model.bodies)
    inputs = {"v": np.zeros(count), "vdot": np.zeros(count), "f_ext": np.zeros((count, 6))}
    result = run(scheduled, model, rng.normal(size=count), inputs)["out"]
    assert result.shape == (count,)
    assert np.isfinite(result).all()


def test_forward_dynamics_reads_like_a_textbook() -> None:
    """The articulated-body algorithm as the compiler prints it."""
    scheduled = schedule(lower({"vdot": catalogue()["forward_dynamics"].result}))
    assert to_text(scheduled).splitlines() == [
        "inward   k, children j:",
        "    P = M + Σ φ(k,j) P⁺(j) φ*(k,j)",
        "    U = P H*",
        "    D = H U + A",
        "    G = U D⁻¹",
        "    P⁺ = P - G U*",
        "    z = Σ φ(k,j) x1(j) + P a + b",
        "    ε = τ - H z",
        "    x1 = G ε + z",
        "    ν = D⁻¹ ε",
        "outward  k, parent p:",
        "    x2 = φ*(p,k) α(p)",
        "    v̇ = ν - G* x2",
        "    α = H* v̇ + a + x2",
    ]


def test_statements_are_shared() -> None:
    """The same expression twice costs nothing; equal linear heads are collected."""
    program = lower({"one": mass_matrix @ x, "two": mass_matrix @ x + mass_matrix @ x})
    assert len(program.recursions) == 2
    table = StreamProgram()
    first, second = table.leaf("a", Type.FORCE), table.leaf("b", Type.FORCE)
    shifted = [table.add("shift_in", (s,), Type.FORCE) for s in (first, second)]
    total = table.sum([(Fraction(1), shifted[0]), (Fraction(-2), shifted[1])])
    assert table.nodes[total].op == "shift_in"
    inner = table.nodes[table.nodes[total].operands[0]]
    assert (inner.op, inner.data) == ("sum", (Fraction(1), Fraction(-2)))


def test_lets_name_streams() -> None:
    """A let gives its stream a name and is computed once."""
    z = let("z", psi @ f)
    program = lower({"out": H @ z + G.T @ y - H @ z})
    assert "z" not in [program.names.get(s) for s in program.live()]
    program = lower({"out": H @ z, "again": G.T @ crm(y) @ y + H @ z})
    assert [program.names.get(s) for s in program.live()].count("z") == 1


def test_what_cannot_be_lowered_says_so() -> None:
    """Operators as outputs, inverses without factors, missing inputs: each a clear error."""
    with pytest.raises(LoweringError, match="apply it to one"):
        lower({"out": phi})
    with pytest.raises(LoweringError, match="theorem"):
        lower({"out": mass_matrix.inv @ x})
    model = chain(2)
    with pytest.raises(ArgumentError, match="'x'"):
        run(schedule(lower({"out": mass_matrix @ x})), model, np.zeros(2), {})


def test_an_output_that_is_zero_is_zero() -> None:
    """What cancels exactly needs no pass, and comes in the shape of its space."""
    model = chain(3)
    scheduled = schedule(lower({"out": x - x, "links": phi.T @ (H.T @ x - H.T @ x)}))
    assert scheduled.sweeps == () or not scheduled.program.recursions
    result = run(scheduled, model, np.zeros((4, 3)), {"x": np.ones((4, 3))})
    np.testing.assert_array_equal(result["out"], np.zeros((4, 3)))
    assert not result["links"].any()
    assert result["links"].shape == (4, 3, 6)

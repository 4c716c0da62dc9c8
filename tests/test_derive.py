# SPDX-License-Identifier: BSD-3-Clause
"""Algorithms come out of definitions: equal, proved, and no dearer than those stated by hand."""

import random
from collections.abc import Mapping
from itertools import pairwise
from operator import attrgetter

import numpy as np
import pytest

from phistar import derive as module
from phistar import load
from phistar.algebra.dense import Dense
from phistar.algebra.factor import factor
from phistar.algebra.identities import Identity
from phistar.algebra.ir import Expr, I, crf, crm, let
from phistar.algebra.proof import Outcome, Theorem, open_lets, prove
from phistar.algebra.random_examples import random_vectors
from phistar.algebra.rewrite import Rewriter, apply_rule
from phistar.algebra.spaces import FORCE, JOINT, MOTION, TASK_FORCE
from phistar.algebra.symbols import (
    SYMBOLS,
    A,
    B,
    D,
    E_phi,
    E_psi,
    G,
    H,
    K,
    M,
    P,
    Upsilon,
    mass_matrix,
    phi,
    psi,
    tau,
    v,
    vector,
)
from phistar.algebra.traverse import nodes
from phistar.algebra.words import WordSum, to_words
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.innovations import L, L_inv
from phistar.algorithms.inverse_dynamics import a, bias_force
from phistar.algorithms.operational_space import compliance
from phistar.algorithms.programs import PROGRAMS
from phistar.derive import (
    AS_WRITTEN,
    INVERSE_THEOREMS,
    OWN_BIAS_FIRST_ROWS,
    STRATEGIES,
    Candidate,
    Strategy,
    derive,
)
from phistar.errors import LoweringError, RewriteError
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.sweeps.costs import count_operations
from phistar.sweeps.interpret import run
from phistar.sweeps.lower import lower
from phistar.sweeps.schedule import schedule

x = vector("x", JOINT)
y = vector("y", MOTION)
f = vector("f", FORCE)
F = vector("F", TASK_FORCE)

ACCELERATION = mass_matrix.inv @ (tau - bias_force)
LINKS = phi.T @ (H.T @ ACCELERATION + a)
JACOBIAN = B.T @ phi.T @ H.T
ARTICULATED = {P, D, G, K, E_psi, psi, Upsilon}

TABLE: list[tuple[str, Expr, tuple[str, ...], int]] = [
    ("M^-1 T", mass_matrix.inv @ x, ("inward", "outward"), 3),
    ("M x", mass_matrix @ x, ("outward", "inward"), 2),
    ("omega", phi.T @ H.T @ mass_matrix.inv @ H @ phi @ f, ("inward", "outward"), 3),
    ("M^-1 H phi", mass_matrix.inv @ H @ phi @ f, ("inward", "outward"), 3),
    ("whitening", (I - H @ psi @ K) @ H @ phi @ f, ("inward",), 2),
    ("n* n^-*", L.T @ L_inv.T @ x, (), 0),
    ("M^-1 M", mass_matrix.inv @ mass_matrix @ x, (), 0),
    ("M M^-1", mass_matrix @ mass_matrix.inv @ x, (), 0),
    ("id", PROGRAMS["inverse_dynamics"]["tau"], ("outward", "inward"), 3),
    ("fd", in_motion(ACCELERATION), ("outward", "inward", "outward"), 4),
    ("fd(a, b)", ACCELERATION, ("inward", "outward"), 3),
]


def _statements(form: Candidate) -> int:
    return len(list(form.schedule.program.live()))


@pytest.mark.parametrize(
    ("expr", "directions", "recursions"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_passes_and_recursions(expr: Expr, directions: tuple[str, ...], recursions: int) -> None:
    """What comes out of definitions has the fewest passes and recursions known."""
    chosen = derive({"out": expr}).chosen
    assert chosen.schedule.directions == directions
    assert chosen.recursions == recursions


@pytest.mark.parametrize("robot", ["panda", "humanoid"])
def test_forward_dynamics_comes_out(robot: str) -> None:
    """𝓜⁻¹(τ - C) becomes the articulated-body algorithm: not dearer than the one stated by hand."""
    model = load(robot).model
    by_hand = schedule(lower(PROGRAMS["forward_dynamics"]))
    stated = count_operations(by_hand, model).total
    derivation = derive({"vdot": in_motion(ACCELERATION)}, model)
    written, form = derivation.candidates[0], derivation.chosen
    print(f"{robot}: written {written.cost}, by hand {stated}, derived {form.cost}")
    assert written.name == AS_WRITTEN
    assert form.schedule.directions == by_hand.directions == ("outward", "inward", "outward")
    assert form.recursions <= len(by_hand.program.recursions)
    assert form.cost.total <= stated.total < written.cost.total


def test_the_articulated_body_algorithm_is_found() -> None:
    """The derived expression is the paper's: z, ε, ν, α, literally."""
    derivation = derive({"vdot": in_motion(ACCELERATION)})
    bias = {node.name: node for node in nodes(derivation.outputs.values()) if hasattr(node, "name")}
    z = let("z", psi @ (bias["b"] + K @ tau + P @ bias["a"]))
    nu = let("nu", D.inv @ let("epsilon", tau - H @ z))
    alpha = let("alpha", psi.T @ (bias["a"] + H.T @ nu))
    assert derivation.outputs["vdot"] is nu - K.T @ alpha


def test_link_accelerations_come_free() -> None:
    """v̇ and α together take not one statement more than v̇ alone."""
    alone = derive({"vdot": in_motion(ACCELERATION)}).chosen
    both = derive({"vdot": in_motion(ACCELERATION), "alpha": in_motion(LINKS)}).chosen
    assert both.recursions == alone.recursions == 4
    assert _statements(both) == _statements(alone)
    assert both.cost == alone.cost


def test_each_output_takes_its_own_form() -> None:
    """Inverse dynamics beside forward dynamics keeps its M: the sum of both is not exceeded."""
    forward = {"vdot": in_motion(ACCELERATION)}
    inverse = {"tau": PROGRAMS["inverse_dynamics"]["tau"]}
    both = derive({**forward, **inverse}).chosen
    assert both.cost.total <= sum(derive(each).chosen.cost.total for each in (forward, inverse))
    assert not ARTICULATED & set(nodes([both.outputs["tau"]]))


def test_powers_of_the_inverse_grow_linearly() -> None:
    """𝓜⁻ᵏτ has 4ᵏ words; every form of it adds the same statements for each power."""
    expr: Expr = tau
    sizes = []
    for _ in range(5):
        expr = mass_matrix.inv @ expr
        sizes.append({form.name: _statements(form) for form in derive({"out": expr}).candidates})
    for name in sizes[0]:
        growth = {after[name] - before[name] for before, after in pairwise(sizes)}
        assert len(growth) == 1, name


def test_own_expressions_are_derived() -> None:
    """J 𝓜⁻¹ J* of a user becomes B*ψ*H*D⁻¹HψB, also with the mass matrix spelt out."""
    spelt = let("mass", A + H @ phi @ M @ phi.T @ H.T)
    for inverse in (mass_matrix.inv, spelt.inv):
        derived = derive({"out": JACOBIAN @ inverse @ JACOBIAN.T @ F}).outputs["out"]
        assert open_lets(derived) is compliance @ F


@pytest.mark.parametrize("theorem", INVERSE_THEOREMS, ids=attrgetter("name"))
def test_inverses_are_proved(theorem: Theorem) -> None:
    """Each closed form times what it inverts is the identity, by the core."""
    assert prove(theorem).outcome is Outcome.PROVED


def test_own_row_follows_from_the_core() -> None:
    """ψP = P + ψEφ(P - GDG*)."""
    step = OWN_BIAS_FIRST_ROWS[0]
    theorem = Theorem(step.name, step.lhs, step.rhs, step.why)
    assert prove(theorem).outcome is Outcome.PROVED


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (phi.inv @ f, (I - E_phi) @ f),
        ((I - E_phi + K @ H).inv @ f, psi @ f),
        ((I - E_phi).T.inv @ y, phi.T @ y),
        ((I + K.T @ phi.T @ H.T).inv @ x, L_inv.T @ x),
        (psi.inv @ psi @ f, f),
    ],
    ids=["phi", "psi", "phi*", "L*", "cancels"],
)
def test_other_inverses(expr: Expr, expected: Expr) -> None:
    """Resolvents of shifts and innovations factors are known, however they are spelt."""
    assert derive({"out": expr}).outputs["out"] is expected


def test_unknown_inverse_is_refused() -> None:
    """An inverse without sweeps is an error, unless it cancels."""
    with pytest.raises(LoweringError, match="has no sweep form"):
        derive({"out": (mass_matrix + A).inv @ x})


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_need_nothing_new(name: str) -> None:
    """Articulated bodies enter only where asked for, so robots without inertia lose nothing; what
    was written stays if it is as cheap."""
    derivation = derive(PROGRAMS[name])
    written = set(nodes(PROGRAMS[name].values()))
    assert derivation.candidates[0].name == AS_WRITTEN
    assert derivation.chosen.rank <= derivation.candidates[0].rank
    if not ARTICULATED & written:
        for form in derivation.candidates:
            assert not ARTICULATED & set(nodes(form.outputs.values()))


def test_order_of_rules_does_not_matter() -> None:
    """v̇ and α rewritten in 40 random orders, a random rule at a random place, become one pair."""
    articulated = next(way for way in STRATEGIES if way.name == "articulated")
    (rewriter,) = articulated.phases
    found = set()
    for seed in range(40):
        rng = random.Random(seed)
        pair = (_at_random(rewriter, to_words(expr), rng) for expr in (ACCELERATION, LINKS))
        found.add(tuple(factor(words) for words in pair))
    assert len(found) == 1


def _at_random(rewriter: Rewriter, words: WordSum, rng: random.Random) -> WordSum:
    """A normal form, reached by random steps."""
    while matches := [
        (word, rule, place)
        for word in words
        for rule in rewriter.rules
        for place in range(len(word) - len(rule.lhs) + 1)
        if word[place : place + len(rule.lhs)] == rule.lhs
    ]:
        word, rule, place = rng.choice(matches)
        words = apply_rule(rule, words, word, place)
    return words


def test_wrong_rules_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A form that the core does not prove equal is an error, not a result."""
    wrong = Identity("wrong", psi @ P, P, "it is not")
    monkeypatch.setattr(module, "STRATEGIES", (Strategy("bad", (wrong,)),))
    with pytest.raises(RewriteError, match=r"the bad form .* is not proved equal"):
        derive({"out": H @ psi @ P @ y})


OPERATORS = [
    *(op for e in (H, M, phi, psi, E_phi, E_psi, K, G, P, D, A) for op in {e, e.T}),
    *(mass_matrix, mass_matrix, D.inv, L_inv, L_inv.T, L.T),
    *(mass_matrix.inv,) * 4,
]


def _random_vector(rng: random.Random, depth: int) -> Expr:
    """A random vector: operators that fit, and sums, down to a leaf."""
    leaves = (x, y, f)
    expr: Expr = rng.choice(leaves)
    for _ in range(depth):
        fitting = [op for op in OPERATORS if op.domain is expr.codomain]
        expr = rng.choice(fitting) @ expr
        same = [leaf for leaf in leaves if leaf.codomain is expr.codomain]
        if rng.random() < 0.3:
            expr = rng.choice((1, -1, 2)) * expr + rng.choice(same)
    return expr


def _dense(model: Model, rng: np.random.Generator, exprs: list[Expr]) -> Dense:
    values = random_vectors(rng, model, exprs)
    return Dense(model, random_configuration(model, rng), vectors=values)


def _relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-2))


@pytest.mark.parametrize("topology", ["serial", "tree", "forest"])
@pytest.mark.parametrize("seed", range(12))
def test_every_form_is_equal_densely(seed: int, topology: str) -> None:
    """All forms of random expressions on robots with every joint kind and rotors; relative 1e-9
    of the largest entry, or of 1e-2 where a product of shifts leaves nothing."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, 6, topology=topology, armature=0.5, fixed=0.2)
    draw = random.Random(seed)
    outputs = {name: _random_vector(draw, draw.randint(2, 7)) for name in ("one", "two")}
    dense = _dense(model, rng, list(outputs.values()))
    for form in derive(outputs, model).candidates:
        for name, expr in form.outputs.items():
            assert _relative(dense(expr), dense(outputs[name])) < 1e-9, form.name


NONLINEAR = {
    "vdot": in_motion(ACCELERATION),
    "alpha": in_motion(LINKS),
    "rate": crm(phi.T @ H.T @ v) @ H.T @ mass_matrix.inv @ x,
    "deep": H @ phi @ crf(phi.T @ H.T @ (mass_matrix.inv @ x)) @ M @ phi.T @ H.T @ v,
    "twice": mass_matrix.inv @ H @ phi @ M @ crm(y) @ phi.T @ H.T @ mass_matrix.inv @ x,
}


@pytest.mark.parametrize("names", [tuple(NONLINEAR), *((name,) for name in NONLINEAR)], ids=str)
def test_nonlinear_programs_run(names: tuple[str, ...]) -> None:
    """Brackets, lets and inverses inside them: the sweeps give the dense numbers; relative 1e-9."""
    outputs = {name: NONLINEAR[name] for name in names}
    derivation = derive(outputs)
    for seed, topology in enumerate(("tree", "forest")):
        rng = np.random.default_rng(seed)
        model = random_model(rng, 7, topology=topology, armature=0.5)
        dense = _dense(model, rng, list(outputs.values()))
        inputs = _inputs(model, {n: dense(SYMBOLS[n].symbol) for n in _given(outputs)})
        for form in derivation.candidates:
            result = run(form.schedule, model, dense.q, inputs)
            for name, expr in outputs.items():
                assert _relative(result[name].reshape(-1), dense(expr)) < 1e-9


def _given(outputs: Mapping[str, Expr]) -> set[str]:
    leaves = {node.name for node in nodes(outputs.values()) if node in (x, y, f, tau, v)}
    return leaves | ({"f_ext"} if outputs.keys() & {"vdot", "alpha"} else set())


def _inputs(model: Model, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    joint = {n for n in values if SYMBOLS[n].symbol.codomain is JOINT}
    return {n: a if n in joint else a.reshape(len(model.bodies), 6) for n, a in values.items()}


def test_two_inverses_around_a_source() -> None:
    """𝓜⁻¹HφXφ*H*𝓜⁻¹x: both inverses meet their φ, two passes each, five recursions in all."""
    chosen = derive({"out": NONLINEAR["twice"]}).chosen
    assert chosen.recursions == 5
    assert chosen.schedule.directions == ("inward", "outward", "inward", "outward")
    assert phi not in set(nodes(chosen.outputs.values()))

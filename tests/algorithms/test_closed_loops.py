# SPDX-License-Identifier: BSD-3-Clause
"""Closed loops as operators: real mechanisms, dense systems of equations, and false variants."""

import dataclasses
import json
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.dense_loops import LoopRows
from phistar.algebra.ir import Expr, I
from phistar.algebra.loop_identities import on_nodes
from phistar.algebra.loop_symbols import (
    D_a,
    E_a,
    Gamma,
    H_a,
    P_a,
    coupling,
    embedding,
    independent_rates,
    loop_compliance,
    loop_jacobian,
    mass_matrix_a,
    particular_rates,
    phi_a,
    self_stress,
)
from phistar.algebra.proof import Outcome, prove
from phistar.algebra.random_examples import (
    random_axes,
    random_loops,
    random_model_with,
    random_vectors,
)
from phistar.algebra.symbols import D, H, K, M, P, mass_matrix, phi, psi, tau, v
from phistar.algebra.traverse import open_lets
from phistar.algorithms.catalogue import catalogue
from phistar.algorithms.closed_loops import (
    U,
    Z,
    closed_acceleration,
    epsilon,
    loop_multipliers,
    projection,
)
from phistar.algorithms.constraint_embedding import (
    embedded_acceleration,
    embedded_inertia,
    loop_joint_forces,
    node_factor,
    node_factor_inverse,
    prescribed,
)
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.forward_dynamics import forward_dynamics
from phistar.algorithms.inverse_dynamics import bias_force
from phistar.algorithms.operational_space import Omega
from phistar.arrays import Array
from phistar.errors import SingularHingeWarning
from phistar.model.components import GROUND, Coupling, Frame, LoopJoint
from phistar.model.configuration import integrate_unchecked, random_configuration
from phistar.model.model import Model
from phistar.model.random import random_model
from tests.helpers import SHARED, needs_shared

LOOPS = SHARED / "loops"
MECHANISMS = sorted(path.stem for path in LOOPS.glob("*.json"))


def _transmitted(kind: str, axis: Sequence[float]) -> Array:
    """(6, m) wrenches that a loop joint transmits, [moment; force]."""
    along = np.array(axis)[:, None] / np.linalg.norm(axis)
    across = np.linalg.svd(along)[0][:, 1:]
    every, none = np.eye(3), np.zeros((3, 0))
    moment, force = {
        "weld": (every, every),
        "revolute": (across, every),
        "prismatic": (every, across),
        "cylindrical": (across, across),
        "spherical": (none, every),
        "planar": (across, along),
    }[kind]
    return np.block([[moment, np.zeros_like(force)], [np.zeros_like(moment), force]])


def _mimic_map(model: Model) -> Array:
    """(rates of all bodies, nv): dense operators have rates for joints that mimic others, too."""
    blocks = []
    for body in model.bodies:
        blocks.append(np.zeros((body.joint_kind.nv, model.nv)))
        blocks[-1][:, body.v_slice] = body.scale * np.eye(body.joint_kind.nv)
    return np.concatenate(blocks)


def _mimic_rows(model: Model) -> list[LoopRows]:
    """Joints that mimic others as couplings."""
    rates = _mimic_map(model)
    leaders = np.array([np.flatnonzero(np.abs(column))[0] for column in rates.T])
    rows = np.eye(len(rates)) - rates @ np.eye(len(rates))[leaders]
    followers = [k for k in range(len(rates)) if k not in leaders]
    nothing = np.zeros((6, 1))
    return [LoopRows(GROUND, GROUND, nothing, rows[k : k + 1]) for k in followers]


def _loop_rows(model: Model, q: Array) -> list[LoopRows]:
    """Rows of a model's mimic joints, and of its active loops and gears in file order."""
    rows = _mimic_rows(model)
    for loop in model.loops:
        if isinstance(loop, LoopJoint) and loop.active:
            ground = Frame("world", "world")
            ends = (loop.predecessor, loop.successor)
            predecessor, successor = (
                ground if name == "world" else model.frame(name) for name in ends
            )
            placed = successor.body_pose @ loop.successor_pose
            forces = _transmitted(loop.kind, loop.axis)
            rows.append(LoopRows(predecessor.body, successor.body, forces, successor_pose=placed))
        elif isinstance(loop, Coupling) and loop.active:
            row = np.zeros((1, model.nv), q.dtype)
            row[0, model.joint(loop.joint).v_slice] = 1.0
            source = model.joint(loop.source)
            slope = np.polyder(np.array(loop.coefficients[::-1]))
            row[0, source.v_slice] = -np.polyval(slope, q[source.q_slice] - loop.references[1])
            rows.append(LoopRows(GROUND, GROUND, np.zeros((6, 1)), row))
    return rows


@cache
def _case(name: str) -> tuple[Model, dict[str, Array], dict[str, Any]]:
    facts = json.loads((LOOPS / f"{name}.json").read_text("utf-8"))
    with np.load(LOOPS / f"{name}.npz") as file:
        goldens = {key: file[key] for key in file.files}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingularHingeWarning)
        return phistar.load(LOOPS / facts["file"]).model, goldens, facts


def _mechanism(name: str, sample: int) -> tuple[Dense, dict[str, Array]]:
    """Operators of a mechanism at a golden state; c = -L̇v by a complex step."""
    model, goldens, _ = _case(name)
    q, v, effort = (goldens[key][sample] for key in ("q", "v", "tau"))
    moved = integrate_unchecked(model, q.astype(complex), 1e-30j * v)
    rates = _mimic_map(model) @ v
    rate = Dense(model, moved, loops=_loop_rows(model, moved))(loop_jacobian).imag @ rates / 1e-30
    vectors = {
        "v": rates,
        "tau": np.linalg.pinv(_mimic_map(model)).T @ effort,
        "loop_acceleration": -rate,
        "f_ext": np.zeros(6 * len(model.bodies)),
    }
    dense = Dense(model, q, vectors=vectors, loops=_loop_rows(model, q))
    return dense, {key: value[sample] for key, value in goldens.items() if value.shape[:1] == (4,)}


def _distance(ours: Array, theirs: Array, floor: float = 1e-2) -> float:
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), floor))


@needs_shared
@pytest.mark.parametrize("name", MECHANISMS)
def test_projection_gives_the_motion_of_real_mechanisms(name: str) -> None:
    """v̇, joint forces of the loops and ∂v̇/∂τ against 512-bit goldens: relative 1e-8; redundant
    rows, mimic joints as couplings, and a massless coupler, whose tree has no inverse, too."""
    for sample in range(4):
        dense, golden = _mechanism(name, sample)
        rates = _mimic_map(dense.model)
        scale = max(1e-2, 1e-3 * np.abs(golden["tau_c"]).max())
        ours = dense(in_motion(embedded_acceleration))
        assert _distance(ours, rates @ golden["vdot"], scale) < 1e-8
        assert _distance(rates.T @ dense(in_motion(loop_joint_forces)), golden["tau_c"]) < 1e-8
        response = dense(embedding @ embedded_inertia.inv @ embedding.T)
        assert _distance(response, rates @ golden["vdot_tau"] @ rates.T) < 1e-8


@needs_shared
@pytest.mark.parametrize("name", MECHANISMS)
def test_multipliers_of_real_mechanisms_are_wrenches(name: str) -> None:
    """Nλ, λ = 𝓢* of the joint forces of the loops, is the wrench on the successor where that is
    unique, and λ of a gear its multiplier; relative 1e-7."""
    model, _, facts = _case(name)
    dense, golden = _mechanism(name, 1)
    values = dense(particular_rates.T @ in_motion(loop_joint_forces))
    ends = np.cumsum([rows.count for rows in dense.loops])
    parts = list(zip(dense.loops, np.split(values, ends[:-1]), strict=True))
    wrenches = np.array([rows.forces @ each for rows, each in parts if rows.joints is None])
    gears = [each for rows, each in parts if rows.joints is not None][len(_mimic_rows(model)) :]
    assert len(wrenches) == len(facts["wrench_unique"])
    assert len(gears) == len(facts["coupling_unique"])
    unique = np.flatnonzero(facts["wrench_unique"])
    if len(unique):
        assert _distance(wrenches[unique], golden["wrench"][unique]) < 1e-7
    if gears:
        assert all(facts["coupling_unique"])
        assert _distance(np.concatenate(gears), golden["coupling"]) < 1e-7


@needs_shared
@pytest.mark.parametrize("name", MECHANISMS)
def test_nodes_give_the_response_of_real_mechanisms(name: str) -> None:
    """∂v̇/∂τ by the recursion over nodes, 𝓜 not formed: relative 1e-8."""
    dense, golden = _mechanism(name, 1)
    rates = _mimic_map(dense.model)
    inverse = node_factor_inverse.T @ D_a.inv @ node_factor_inverse
    response = dense(embedding @ inverse @ embedding.T)
    assert _distance(response, rates @ golden["vdot_tau"] @ rates.T) < 1e-8


@needs_shared
@pytest.mark.parametrize("name", MECHANISMS)
def test_rank_of_real_mechanisms(name: str) -> None:
    """Rows, rank and mobility as the goldens say."""
    model, _, facts = _case(name)
    dense, _ = _mechanism(name, 1)
    sizes = dense(loop_jacobian).shape[0] - len(_mimic_rows(model)), dense(embedding).shape[1]
    assert sizes == (facts["rows"], facts["mobility"])


@needs_shared
@pytest.mark.parametrize("name", ["gear_train", "two_arms", "quadruped_stand", "delta_ball"])
def test_two_sweeps_give_the_motion_of_real_mechanisms(name: str) -> None:
    """Range space where rows are independent, by multipliers and by the articulated sweeps with
    loops: v̇ and L*λ, relative 1e-8."""
    dense, golden = _mechanism(name, 2)
    swept = catalogue()["closed_forward_dynamics"].result
    for expr in (closed_acceleration, swept):
        assert _distance(dense(in_motion(expr)), golden["vdot"]) < 1e-8
    assert _distance(dense(in_motion(loop_jacobian.T @ loop_multipliers)), golden["tau_c"]) < 1e-8


class _Example:
    """A random tree with loops."""

    def __init__(self, seed: int, *needs: str) -> None:
        rng = np.random.default_rng(seed)
        self.model = random_model_with(rng, needs, n=8)
        self.loops = random_loops(rng, self.model, needs)
        exprs = [theorem.result for theorem in catalogue().values()]
        vectors = random_vectors(rng, self.model, exprs, self.loops)
        q, axes = random_configuration(self.model, rng), random_axes(rng, self.model, needs)
        self.dense = Dense(self.model, q, vectors=vectors, axes=axes, loops=self.loops)

    def __call__(self, expr: Expr) -> Array:
        return self.dense(expr)


@pytest.mark.parametrize("seed", range(6))
def test_both_rows_of_the_system_at_once(seed: int) -> None:
    """v̇ and λ solve the symmetric indefinite system, by LU of the whole; relative 1e-8."""
    ours = _Example(seed, "independent")
    rows, inertia = ours(loop_jacobian), ours(mass_matrix)
    system = np.block([[inertia, rows.T], [rows, np.zeros((len(rows),) * 2)]])
    right = np.concatenate([ours(tau - bias_force), ours(SYMBOL_C)])
    solved = np.linalg.solve(system, right)
    assert _distance(ours(closed_acceleration), solved[: len(inertia)]) < 1e-8
    assert _distance(ours(loop_multipliers), -solved[len(inertia) :]) < 1e-8
    assert _distance(ours(embedded_acceleration), solved[: len(inertia)]) < 1e-8


SYMBOL_C = loop_jacobian @ prescribed
"""c, where rows are independent."""


@pytest.mark.parametrize("seed", range(6))
def test_redundant_rows_leave_the_motion_alone(seed: int) -> None:
    """v̇ by projection is the solution on any choice of independent rows; relative 1e-8."""
    ours = _Example(seed)
    rows, inertia = ours(loop_jacobian), ours(mass_matrix)
    rank = np.linalg.matrix_rank(rows)
    assert rank < len(rows)
    basis = np.linalg.svd(rows)[0][:, :rank].T
    independent = basis @ rows
    system = np.block([[inertia, independent.T], [independent, np.zeros((rank, rank))]])
    right = np.concatenate([ours(tau - bias_force), basis @ ours(SYMBOL_C)])
    solved = np.linalg.solve(system, right)[: len(inertia)]
    assert _distance(ours(embedded_acceleration), solved) < 1e-8


@pytest.mark.parametrize("seed", range(6))
def test_null_spaces_agree(seed: int) -> None:
    """Δ, Z and L* have one kernel, that of redundant rows; 𝓧 spans that of L."""
    ours = _Example(seed)
    rows, stress = ours(loop_jacobian), ours(self_stress)
    assert np.abs(stress).max() > 0.1
    rank = np.linalg.matrix_rank(rows, rtol=1e-9)
    for expr in (Z, loop_compliance):
        assert np.linalg.matrix_rank(ours(expr), rtol=1e-9, hermitian=False) == rank
        assert np.abs(ours(expr) @ stress).max() < 1e-9 * np.abs(ours(expr)).max()
    assert np.linalg.matrix_rank(ours(embedding)) == rows.shape[1] - rank
    assert np.abs(rows @ ours(embedding)).max() < 1e-10 * np.abs(rows).max()


@pytest.mark.parametrize("seed", range(6))
def test_redundant_rows_end_at_the_common_ancestor(seed: int) -> None:
    """φΓ is zero at the common ancestor of a loop's links and inboard of it, ψΓ is not; what a
    self-stress hands inward is zero there, too; relative 1e-11."""
    ours = _Example(seed, "uncoupled")
    model, start = ours.model, 0
    rigid, free = ours(phi @ Gamma), ours(psi @ Gamma)
    inboard_of_all = set(range(len(model.bodies)))
    reaches_further = False
    for rows in ours.loops:
        shared = set(model.ancestors(rows.predecessor)) & set(model.ancestors(rows.successor))
        columns = slice(start, start := start + rows.count)
        for k in shared:
            assert np.abs(rigid[6 * k : 6 * k + 6, columns]).max() < 1e-11 * np.abs(rigid).max()
            reaches_further |= bool(np.abs(free[6 * k : 6 * k + 6, columns]).max() > 1e-6)
        inboard_of_all &= shared
    stress = ours(U @ self_stress)
    assert np.abs(stress).max() > 1e-3
    for k in inboard_of_all:
        assert np.abs(stress[6 * k : 6 * k + 6]).max() < 1e-11 * np.abs(rigid).max()
    assert reaches_further or not any(
        set(model.ancestors(r.predecessor)) & set(model.ancestors(r.successor)) for r in ours.loops
    )


@pytest.mark.parametrize("seed", range(6))
def test_nodes_form_a_tree(seed: int) -> None:
    """A node has one link that carries it, at most; Pₐ is block diagonal over links and Dₐ over
    nodes, so nothing larger than a link has to be carried inward."""
    ours = _Example(seed)
    numbers, parents = ours.dense.node_numbers, ours.model.parents
    carriers: dict[int, set[int]] = {}
    for k, parent in enumerate(parents):
        if parent == GROUND or numbers[parent] != numbers[k]:
            carriers.setdefault(numbers[k], set()).add(int(parent))
    assert all(len(found) == 1 for found in carriers.values())
    assert 1 < len(carriers) < len(parents)
    links = np.kron(np.eye(len(parents)), np.ones((6, 6)))
    assert np.abs(ours(P_a) * (1 - links)).max() < 1e-9 * np.abs(ours(P_a)).max()
    inertia = ours(mass_matrix_a)
    assert _distance(ours(node_factor @ D_a @ node_factor.T), inertia) < 1e-9
    assert np.count_nonzero(np.abs(ours(D_a)) > 1e-9 * np.abs(inertia).max()) < inertia.size


@pytest.mark.parametrize("seed", range(8))
def test_closing_at_the_common_ancestor_is_embedding(seed: int) -> None:
    """P + UΛ⁻¹U* at a loop's common ancestor, Λ the sum of Z*D⁻¹Z over the joints beyond it, is the
    articulated inertia that embedding gives this link; relative 1e-9."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, 9, topology="tree", armature=0.3)
    ends = [
        (i, j, shared[-1])
        for i in range(len(model.bodies))
        for j in range(i)
        if (shared := [k for k in model.ancestors(i) if k in model.ancestors(j)])
        and _rates_between(model, i, j) > 2
    ]
    predecessor, successor, k = ends[int(rng.integers(len(ends)))]
    rows = LoopRows(predecessor, successor, rng.normal(size=(6, 2)))
    dense = Dense(model, random_configuration(model, rng), loops=[rows])
    beyond = [j for j in range(len(model.bodies)) if k in model.ancestors(j) and j != k]
    joints = np.concatenate([np.r_[dense.joint_slices[j]] for j in beyond])
    z, d = dense(Z)[joints], dense(D)[np.ix_(joints, joints)]
    u, link = dense(U)[6 * k : 6 * k + 6], np.s_[6 * k : 6 * k + 6, 6 * k : 6 * k + 6]
    joined = dense(P)[link] + u @ np.linalg.solve(z.T @ np.linalg.solve(d, z), u.T)
    assert _distance(joined, dense(P_a)[link]) < 1e-9
    assert _distance(dense(P)[link], dense(P_a)[link]) > 1e-6


def _rates_between(model: Model, i: int, j: int) -> int:
    between = set(model.ancestors(i)) ^ set(model.ancestors(j))
    return sum(model.bodies[body].joint_kind.nv for body in between)


FALSE = [
    ("loop_forces", H @ phi @ Gamma),
    ("loop_whitening", H @ psi @ Gamma + coupling.T),
    ("loop_compliance_factored", Z.T @ D @ Z),
    ("loop_compliance_factored", Gamma.T @ Omega @ Gamma),
    ("loop_compliance_of_links", Gamma.T @ phi.T @ H.T @ D.inv @ H @ phi @ Gamma),
    ("loop_response", D.inv @ Z),
    ("closed_loops_hold", loop_jacobian @ closed_acceleration * 2),
    ("closed_loop_motion", tau - loop_jacobian.T @ loop_multipliers),
    ("loop_open_accelerations", Z.T @ D.inv @ epsilon),
    ("loop_columns_inward", phi @ Gamma),
    ("loop_innovations", H @ phi @ Gamma + coupling.T),
    ("closed_forward_dynamics", forward_dynamics.result),
    ("closed_compliance", Omega),
    ("closed_compliance", Omega + (Omega @ Gamma) @ loop_compliance.inv @ (Omega @ Gamma).T),
    ("loop_forces_dynamics", forward_dynamics.result),
    ("projection_of_energy", (projection @ v).T @ mass_matrix @ projection @ v),
    ("null_space_motion", embedding.T @ tau),
    ("forces_of_the_loops", loop_jacobian.T @ particular_rates.T @ tau),
    ("embedded_response", independent_rates @ mass_matrix.inv @ independent_rates.T),
    ("embedded_forces", embedding.T @ (tau - bias_force)),
    (
        "embedded_forward_dynamics",
        on_nodes(open_lets(forward_dynamics.result), {tau: embedding.T @ tau}),
    ),
    ("velocity_projection", projection @ projection.T @ tau),
    ("response_of_inertia", mass_matrix.inv),
    ("response_by_embedding", embedding @ embedding.T),
    ("loop_forces_inward", phi @ Gamma - psi @ K @ loop_jacobian.T),
    ("redundant_rows_decouple", psi @ Gamma @ self_stress),
    ("node_shifts", I - E_a),
    ("node_motions", phi.T @ H_a.T),
    ("embedded_mass_matrix", H_a @ phi_a @ M @ phi_a.T @ H_a.T),
    ("embedded_factorisation", D_a),
    ("embedded_mass_matrix_inverse", node_factor.T @ D_a.inv @ node_factor),
]


@pytest.mark.parametrize(("name", "wrong"), FALSE, ids=str)
def test_false_variants_are_refuted(name: str, wrong: Expr) -> None:
    """A wrong sign, a missing term or a rigid sweep for a free one has a counterexample."""
    theorem = catalogue()[name]
    assert prove(dataclasses.replace(theorem, result=wrong)).outcome is Outcome.REFUTED

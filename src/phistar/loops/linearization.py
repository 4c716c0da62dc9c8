# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of forward dynamics through loops.

With v̇ and λ held, the equations r₁ = ID(q, v, v̇) - L*λ - τ = 0 and r₂ = Lv̇ + L̇v = 0 change by their
partial derivatives, and

    [𝓜 -L*; L 0] (δv̇, δλ) = (δτ - ∂r₁, -∂r₂)

∂r₁ is the linearization of the tree's inverse dynamics less ∂(L*λ). On loops with dependent rows δv̇
exists along the loops only: ``vdot_q`` is then the operator on what is left of δq on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from phistar.arguments import check_shapes, require_time
from phistar.arrays import Array, DType, as_vectors
from phistar.compile import chained_entry, run_traced_results, traced_executable
from phistar.derivatives.discrete import Discretization
from phistar.derivatives.first import (
    InverseLinearization,
    Linearization,
    linearize_inverse,
    refuse_large_tensors,
)
from phistar.derivatives.lie_jacobians import right_jacobian, step_adjoint
from phistar.errors import UnknownNameError
from phistar.loops.apart import ApartError, each_its_way
from phistar.loops.assembly import assemble, usual_rank
from phistar.loops.constrained_dynamics import (
    NOT_HELD,
    Held,
    coordinate_names,
    posed,
    pushing,
    results_by_code,
)
from phistar.loops.minimal import dependent_columns, independent_of, partition
from phistar.loops.rank import Factored, factored
from phistar.loops.routes import LoopProblem, accelerations, solve_saddle
from phistar.loops.system import LoopSystem, loop_system, rows_at, tangents_at
from phistar.loops.traced_rows import PRECISIONS, linearization_key, live_rows, step_rates_key
from phistar.loops.uniqueness import ByLoop
from phistar.model.configuration import Coordinates, integrate_unchecked, neutral
from phistar.model.loop_kinds import LOOP_KINDS, LowerPair, wrench_columns
from phistar.model.model import Model
from phistar.model.model_cache import entries
from phistar.model.wrenches import Wrenches
from phistar.reprs import one_line_repr

COMPLEX_STEP = 1e-30


@one_line_repr
@dataclass(frozen=True)
class ReducedLinearization:
    """d/dt (δq_R, δv_R) = A (δq_R, δv_R) + B δτ in independent coordinates.

    Attributes:
        A: (..., 2n, 2n).
        B: (..., 2n, nv), for joint forces of all joints.
        X: (..., nv, n) with δq = X δq_R.
        Xdot: (..., nv, n) with δv = X δv_R + Xdot δq_R.
        independent: Names of the independent coordinates.
        entries: Their numbers in v.
    """

    A: Array
    B: Array
    X: Array = field(repr=False)
    Xdot: Array = field(repr=False)
    independent: tuple[str, ...]
    entries: Array = field(repr=False)

    def expand(self, dq: Array, dv: Array) -> tuple[Array, Array]:
        """δq and δv (..., nv) on the loops of independent changes (..., n)."""
        full = (self.X @ dq[..., None])[..., 0]
        return full, (self.X @ dv[..., None] + self.Xdot @ dq[..., None])[..., 0]


@one_line_repr
@dataclass(frozen=True)
class LoopLinearization(Linearization):
    """Joint accelerations on the loops and their derivatives.

    Attributes:
        multipliers: (..., rows) λ.
        multipliers_q, multipliers_v, multipliers_tau: (..., rows, nv).
        wrench_q, wrench_v, wrench_tau: For each loop joint (..., 6, nv), of its wrench on the
            successor.
        tangential: Whether rows depend on each other, so that derivatives exist along the loops
            only.
    """

    q: Array = field(repr=False)
    multipliers: Array = field(repr=False)
    multipliers_q: Array = field(repr=False)
    multipliers_v: Array = field(repr=False)
    multipliers_tau: Array = field(repr=False)
    rank: int

    @property
    def tangential(self) -> bool:
        """Whether derivatives exist along the loops only."""
        return has_dependent_rows(self.model, self.rank)

    @cached_property
    def rate_q(self) -> Array:
        """∂(Lv)/∂q (..., rows, nv)."""
        return motion_tangents(self.model, self.q, self.v)

    @cached_property
    def wrench_q(self) -> Mapping[str, Array]:
        """Derivatives (..., 6, nv) of the wrench of each loop joint with respect to q."""
        return self._wrenches(self.multipliers_q, True)

    @cached_property
    def wrench_v(self) -> Mapping[str, Array]:
        """Derivatives (..., 6, nv) of the wrench of each loop joint with respect to v."""
        return self._wrenches(self.multipliers_v, False)

    @cached_property
    def wrench_tau(self) -> Mapping[str, Array]:
        """Derivatives (..., 6, nv) of the wrench of each loop joint with respect to τ."""
        return self._wrenches(self.multipliers_tau, False)

    def _wrenches(self, by: Array, with_columns: bool) -> dict[str, Array]:
        system = loop_system(self.model)
        relative = rows_at(self.model, self.q).relative
        found = ByLoop[Array]()
        for number, loop, rows in system.joints():
            N = np.swapaxes(wrench_columns(loop, relative[..., number, :, :]), -1, -2)
            found[loop.name] = N @ by[..., rows, :]
            if with_columns and not isinstance(LOOP_KINDS[loop.kind], LowerPair):
                turned = self._column_changes(number)
                found[loop.name] = found[loop.name] + turned
        return found

    def _column_changes(self, wanted: int) -> Array:
        """∂(Nλ)/∂q (..., 6, nv) at fixed λ of a loop whose N depends on q, by complex steps."""
        model = self.model
        system = loop_system(model)
        ((loop, rows),) = [(x, r) for n, x, r in system.joints() if n == wanted]
        steps = 1j * COMPLEX_STEP * np.eye(model.nv)
        start = self.q[..., None, :].astype(complex)
        moved = integrate_unchecked(
            model, np.broadcast_to(start, (*self.q.shape[:-1], model.nv, model.nq)), steps
        )
        columns = wrench_columns(loop, rows_at(model, moved).relative[..., wanted, :, :])
        pushed = np.swapaxes(columns, -1, -2) @ self.multipliers[..., None, rows, None]
        return np.swapaxes(pushed[..., 0].imag / COMPLEX_STEP, -1, -2)

    def reduced(self) -> ReducedLinearization:
        """The linearization in independent coordinates.

        They are chosen at the first sample, without any at the neutral configuration assembled.
        """
        model = self.model
        system = loop_system(model)
        L = rows_at(model, self.q).L
        at = L if L.size else rows_at(model, assemble(model, neutral(model))).L
        first = at.reshape(-1, *L.shape[-2:])[0]
        dependent = dependent_columns(system, first, self.rank)
        entries = independent_of(dependent, model.nv)
        nothing = np.zeros(L.shape[:-1])
        X, _ = partition(system, L, self.rank, nothing, dependent)
        turned = self.rate_q @ X
        Xdot = _follow(system, L, self.rank, turned, dependent)
        by_q = self.vdot_q @ X + self.vdot_v @ Xdot
        by_v = self.vdot_v @ X
        top = (self.transport @ X)[..., entries, :]
        one = np.broadcast_to(np.eye(len(entries)), top.shape)
        A = np.block([[top, one], [by_q[..., entries, :], by_v[..., entries, :]]])
        below = self.vdot_tau[..., entries, :]
        B = np.concatenate([np.zeros_like(below), below], axis=-2)
        names = coordinate_names(model)
        A, B, X, Xdot = (x.astype(self.vdot.dtype) for x in (A, B, X, Xdot))
        return ReducedLinearization(A, B, X, Xdot, tuple(names[k] for k in entries), entries)


def _follow(system: LoopSystem, L: Array, rank: int, turned: Array, dependent: Array) -> Array:
    """Changes (..., nv, n) of dependent coordinates with L δv + turned = 0, column by column."""
    columns = np.moveaxis(turned, -1, 0)
    found = [partition(system, L, rank, -c, dependent)[1] for c in columns]
    if not found:
        return np.zeros((*L.shape[:-2], L.shape[-1], 0))
    return np.stack(found, axis=-1)


@each_its_way
def linearize(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    wrenches: Wrenches | None = None,
    method: str = "auto",
    held: Held = NOT_HELD,
) -> LoopLinearization:
    """Derivatives of forward dynamics on the loops."""
    if method == "auto":
        by_code = _by_code(model, q, v, tau, wrenches, held)
        if by_code is not None:
            return by_code
    problem, dtype = posed(model, q, v, tau, wrenches, "linearize", method, held)
    vdot = accelerations(problem, method)
    factor = factored(problem.rows.L, problem.rank)
    at, multipliers, tangents, by_q = _residual_changes(problem, factor, vdot)
    nothing = np.zeros((*at.tau.shape[:-1], problem.system.count, model.nv))
    one = np.broadcast_to(np.eye(model.nv), at.tau_q.shape)
    found = {}
    for name, force, c in (
        ("q", -by_q, -tangents["acceleration_q"]),
        ("v", -at.tau_v, -tangents["acceleration_v"]),
        ("tau", one, nothing),
    ):
        found[name] = solve_columns(at.tau_vdot, factor, force, c)
    vdot_q = found["q"][0]
    if has_dependent_rows(model, problem.rank):
        vdot_q = vdot_q @ factor.X @ np.swapaxes(factor.X, -1, -2)
    batch = vdot.shape[:-1]

    def wide(x: Array, *shape: int) -> Array:
        return np.array(np.broadcast_to(x, (*batch, *shape)), dtype)

    nv, rows = model.nv, problem.system.count
    return LoopLinearization(
        vdot.astype(dtype),
        wide(vdot_q, nv, nv),
        wide(found["v"][0], nv, nv),
        wide(found["tau"][0], nv, nv),
        model,
        wide(problem.v, nv),
        wide(problem.q, model.nq).astype(float),
        wide(multipliers, rows),
        wide(found["q"][1], rows, nv),
        wide(found["v"][1], rows, nv),
        wide(found["tau"][1], rows, nv),
        problem.rank,
    )


def has_dependent_rows(model: Model, rank: int) -> bool:
    """Whether rows depend on each other that are not zero in every configuration."""
    return rank < loop_system(model).count and rank < len(live_rows(model))


def _by_code(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    wrenches: Wrenches | None,
    held: Held,
) -> LoopLinearization | None:
    """The linearization by machine code, if that is at hand and all states are on the loops."""
    if wrenches is None and (found := _by_entry(model, q, v, tau, held)) is not None:
        return found
    if wrenches is not None and has_dependent_rows(model, usual_rank(model)):
        return None
    states = check_shapes(model, q=q, v=v, tau=tau)
    refuse_large_tensors(model, 2, *states.values(), count=3)
    by_code = results_by_code("linearize", model, q, v, tau, wrenches, held)
    if by_code is None:
        return None
    arrays, results = by_code
    if wrenches is not None:
        turned = _pushing_changes(model, arrays["q"], wrenches)
        results["change_q"] = results["change_q"] + results["change_tau"] @ turned
    return _from_results(model, arrays["q"], arrays["v"], results)


def _by_entry(
    model: Model, q: Coordinates, v: Coordinates, tau: Coordinates, held: Held
) -> LoopLinearization | None:
    """The same for plain arrays of double precision, without further looks at them."""
    if held.drives or type(q) is not np.ndarray or type(v) is not np.ndarray:
        return None
    entry = entries(model).get(linearization_key("double", held.loops))
    found = None if entry is None else entry(q, v, tau)
    return None if found is None else _from_results(model, q, v, found)  # type: ignore[arg-type]


def _from_results(
    model: Model, q: Array, v: Array, found: Mapping[str, Array]
) -> LoopLinearization:
    vdot, nv = found["vdot"], model.nv
    by_q, by_v, by_tau = (found[f"change_{name}"] for name in ("q", "v", "tau"))
    return LoopLinearization(
        vdot,
        found.get("along_q", by_q)[..., :nv, :],
        by_v[..., :nv, :],
        by_tau[..., :nv, :],
        model,
        _copy(v, vdot.shape, v.dtype),
        _copy(q, (*vdot.shape[:-1], model.nq), np.dtype(float)),
        found["multipliers"],
        by_q[..., nv:, :],
        by_v[..., nv:, :],
        by_tau[..., nv:, :],
        usual_rank(model),
    )


def _copy(x: Array, shape: tuple[int, ...], dtype: DType) -> Array:
    """An array of its own, with the axes of a batch."""
    return np.array(x if x.shape == shape else np.broadcast_to(x, shape), dtype=dtype)


def _pushing_changes(model: Model, q: Array, wrenches: Wrenches) -> Array:
    """Derivatives (..., nv, nv) of the joint forces of wrenches along q."""
    tree, rest = loop_system(model).tree, np.zeros(model.nv, q.dtype)
    weight = linearize_inverse(tree, q, rest, rest).tau_q
    return weight - linearize_inverse(tree, q, rest, rest, wrenches).tau_q


def _residual_changes(
    problem: LoopProblem, factor: Factored, vdot: Array
) -> tuple[InverseLinearization, Array, Mapping[str, Array], Array]:
    """The tree's linearization, λ, the tangents of rows, and ∂r₁/∂q at accelerations."""
    at = linearize_inverse(problem.system.tree, problem.q, problem.v, vdot, problem.wrenches)
    multipliers = factor.multipliers(at.tau - problem.tau)
    tangents = tangents_at(problem.model, problem.q, problem.v, vdot, multipliers)
    return at, multipliers, tangents, at.tau_q - tangents["force_q"]


@each_its_way
def discretize(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    dt: float,
    method: str = "semi_implicit",
    wrenches: Wrenches | None = None,
) -> Discretization:
    """A velocity step that keeps the loops: 𝓜(v' - v) = dt(τ - 𝒞) + L*Λ, Lv' = 0."""
    if method != "semi_implicit":
        raise UnknownNameError("method of a robot with loops", method, ("semi_implicit",))
    require_time("dt", dt)
    by_code, lost = _step_by_code(model, q, v, tau, float(dt), wrenches)
    if by_code is not None:
        return by_code
    problem, dtype = posed(model, q, v, tau, wrenches, "discretize")
    if lost.any() and not lost.all():
        raise ApartError(lost)
    L, h = problem.rows.L, float(dt)
    factor = factored(L, problem.rank)
    mass, force = problem.mass_and_force()
    push, _ = solve_saddle(mass, factor, force, -problem.rows.rate / h)
    later = problem.v + h * push
    at, _, _, by_q = _residual_changes(problem, factor, push)
    turned = motion_tangents(model, problem.q, later)
    nv = model.nv
    one = np.broadcast_to(np.eye(nv), at.tau_q.shape)
    by_q, _ = solve_columns(at.tau_vdot, factor, -by_q, -turned / h)
    by_v, _ = solve_columns(at.tau_vdot, factor, -at.tau_v, -L / h)
    by_tau, _ = solve_columns(at.tau_vdot, factor, one, np.zeros_like(turned))
    step = h * later
    way = h * right_jacobian(model, step)
    lower = np.concatenate([h * by_q, one + h * by_v], axis=-1)
    upper = way @ lower
    upper[..., :nv] += step_adjoint(model, step)
    push_tau = h * by_tau
    found = (
        integrate_unchecked(model, np.broadcast_to(problem.q, (*step.shape[:-1], model.nq)), step),
        later,
        np.concatenate([upper, lower], axis=-2),
        np.concatenate([way @ push_tau, push_tau], axis=-2),
    )
    return Discretization(*(x.astype(dtype) for x in found))


def _step_by_code(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    dt: float,
    wrenches: Wrenches | None,
) -> tuple[Discretization | None, Array]:
    """A step by machine code, if that is at hand and has all results; samples for which it has
    none, (...) booleans."""
    nowhere = np.zeros((), dtype=bool)
    arrays = check_shapes(model, q=q, v=v, tau=tau)
    dtype = np.result_type(*arrays.values())
    key = step_rates_key(PRECISIONS.get(dtype.name, ""))
    code = traced_executable(model, key) if dtype.name in PRECISIONS else None
    if code is None:
        return None, nowhere
    refuse_large_tensors(model, 2, *arrays.values(), count=3)
    pushed, time = arrays["tau"], np.full(1, dt, dtype)
    if wrenches is not None:
        pushed = pushed + pushing(model, arrays["q"], wrenches)
    found = code.try_run({"q": arrays["q"], "v": arrays["v"], "tau": pushed, "dt": time})
    if found is None:
        return None, nowhere
    rates, finite = found
    if not finite:
        # Where one result of a sample is not a number, all are.
        return None, np.asarray(~np.isfinite(rates["vdot"]).all(axis=-1))
    if wrenches is not None:
        turned = _pushing_changes(model, arrays["q"], wrenches)
        rates["change_q"] = rates["change_q"] + rates["change_tau"] @ turned
    rows = (as_vectors(rates[name]) for name in ("change_q", "change_v", "change_tau"))
    step = ("loop_discretization",)
    ahead = run_traced_results(model, step, arrays["q"], arrays["v"], time, rates["vdot"], *rows)
    if ahead is None:
        return None, nowhere
    if wrenches is None and dtype == np.float64:
        _add_step_entry(model, key, step)
    return Discretization(ahead["q_next"], ahead["v_next"], ahead["A"], ahead["B"]), nowhere


def _add_step_entry(model: Model, rates: tuple[str, *tuple[object, ...]], step: tuple[str]) -> None:
    """Have later calls with plain arrays go straight to both programs."""
    table, name = entries(model), ("discretize", "semi_implicit")
    if name not in table:
        names = {"q_next": "q", "v_next": "v"}
        entry = chained_entry(model, rates, step, ("q", "v", "tau", "dt"), names)
        if entry is not None:
            table[name] = entry


def motion_tangents(model: Model, q: Array, v: Array) -> Array:
    """∂(Lv)/∂q (..., rows, nv)."""
    rows = loop_system(model).count
    return tangents_at(model, q, v, np.zeros_like(v), np.zeros((*v.shape[:-1], rows)))["rate_q"]


def solve_columns(mass: Array, rows: Factored, force: Array, c: Array) -> tuple[Array, Array]:
    """As ``routes.solve_saddle`` for the columns of matrices."""
    U, V, X = rows.U, rows.V, rows.X
    start = V @ ((np.swapaxes(U, -1, -2) @ c) / rows.S[..., :, None])
    Xt = np.swapaxes(X, -1, -2)
    x = start + X @ np.linalg.solve(Xt @ mass @ X, Xt @ (force - mass @ start))
    push = (np.swapaxes(V, -1, -2) @ (mass @ x - force)) / rows.S[..., :, None]
    return x, U @ push

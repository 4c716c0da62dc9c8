# SPDX-License-Identifier: BSD-3-Clause
"""Second derivatives of forward dynamics through loops: tensors, and products with vectors.

With r₁ = ID(q, v, v̇) - L*λ - τ = 0 and r₂ = Lv̇ + L̇v = 0, both linear in (v̇, λ), a second change is

    [𝓜 -L*; L 0] (δ²v̇, δ²λ) = -(∂²r + ∂r_λ δλ + ∂r_v̇ δv̇, once in each order)

∂²r₁ has the tree's second derivatives of inverse dynamics; second derivatives of rows are complex
steps of their first ones, exact to rounding. Rows that depend on others are left out: near the
loops the others say the same, so that along them, to second order too, nothing is lost. Off the
loops the derivatives are those of the rows that were kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from phistar import dynamics
from phistar.arguments import checked_state
from phistar.arrays import Array
from phistar.derivatives import second
from phistar.derivatives.first import (
    InverseLinearization,
    jvp,
    linearize_inverse,
    refuse_large_tensors,
    vjp,
)
from phistar.derivatives.second import ForwardSecond
from phistar.loops.apart import each_its_way
from phistar.loops.constrained_dynamics import posed
from phistar.loops.linearization import COMPLEX_STEP, solve_columns
from phistar.loops.rank import Factored, factored, independent_rows, take_rows
from phistar.loops.routes import LoopProblem, accelerations, solve_saddle
from phistar.loops.system import rows_at, tangents_at
from phistar.model.configuration import Coordinates, integrate_unchecked
from phistar.model.model import Model
from phistar.model.wrenches import Wrenches
from phistar.reprs import one_line_repr


@one_line_repr
@dataclass(frozen=True)
class LoopForwardSecond(ForwardSecond):
    """Second derivatives of joint accelerations on loops, each (..., nv, nv, nv) as [i, j, k].

    Attributes:
        vdot_q, vdot_v, vdot_tau: (..., nv, nv) first derivatives with the same rows: those of
            ``linearize`` where all rows are independent.
        rows: (..., rank) numbers of the rows that were kept, of ``robot.loop_jacobian``.
    """

    vdot_q: Array = field(repr=False)
    vdot_v: Array = field(repr=False)
    vdot_tau: Array = field(repr=False)
    rows: Array = field(repr=False)


@dataclass(frozen=True)
class _Solved:
    """Forward dynamics at states, with independent rows.

    Attributes:
        problem: What was asked.
        vdot: (..., nv).
        kept: (..., rank) numbers of rows.
        factor: Of these rows.
        multipliers: (..., rows), zero for the rows that were left out.
    """

    problem: LoopProblem
    vdot: Array
    kept: Array
    factor: Factored
    multipliers: Array

    def rows(self, x: Array, tail: int = 1) -> Array:
        """The rows (..., rank, n) that were kept of (..., rows, n); or with more axes behind."""
        last = x.shape[x.ndim - tail :]
        flat = x.reshape(*x.shape[: x.ndim - tail], math.prod(last))
        batch = np.broadcast_shapes(flat.shape[:-2], self.kept.shape[:-1])
        kept = np.broadcast_to(self.kept, (*batch, self.kept.shape[-1]))
        found = take_rows(np.broadcast_to(flat, (*batch, *flat.shape[-2:])), kept)
        return found.reshape(*found.shape[:-1], *last)

    def of_rows(self, c: Array) -> Array:
        """Entries (..., rank) of the rows that were kept, of (..., rows)."""
        return self.rows(c[..., None])[..., 0]

    def spread(self, x: Array) -> Array:
        """Multipliers (..., rows) of those (..., rank) of the rows that were kept."""
        return _spread(self.problem, self.kept, x)


def _spread(problem: LoopProblem, kept: Array, x: Array) -> Array:
    result = np.zeros((*x.shape[:-1], problem.system.count), x.dtype)
    np.put_along_axis(result, np.broadcast_to(kept, x.shape), x, axis=-1)
    return result


def _solved(problem: LoopProblem, net: Array, vdot: Array) -> _Solved:
    """With λ of joint forces ``net`` = ID(q, v, v̇) - τ."""
    L, batch = problem.rows.L, vdot.shape[:-1]
    L = np.broadcast_to(L, (*batch, *L.shape[-2:]))
    kept = independent_rows(problem.system, L, problem.rank)
    factor = factored(take_rows(L, kept), problem.rank)
    multipliers = _spread(problem, kept, factor.multipliers(net))
    return _Solved(problem, vdot, kept, factor, multipliers)


@each_its_way
def forward_second(
    model: Model, q: Coordinates, v: Coordinates, tau: Coordinates, wrenches: Wrenches | None = None
) -> LoopForwardSecond:
    """Second derivatives of forward dynamics on the loops."""
    problem, dtype = posed(model, q, v, tau, wrenches, "forward_dynamics_second")
    refuse_large_tensors(model, 3, problem.q, problem.v, problem.tau, count=4)
    vdot = accelerations(problem, "auto")
    tree = problem.system.tree
    at = linearize_inverse(tree, problem.q, problem.v, vdot, wrenches)
    inner = second.inverse_second(tree, problem.q, problem.v, vdot, wrenches)
    here = _solved(problem, at.tau - problem.tau, vdot)
    first = _first(here, at)
    bent = _bent_rows(here)
    turned = bent["turned"]

    def felt(name: str) -> tuple[Array, Array]:
        """What changes of v̇ and λ along k add to column j of ∂r₁/∂q and of ∂r₂/∂q."""
        change, push = first[name]
        force = np.einsum("...ijl,...lk->...ijk", inner.q_vdot, change)
        force = force - np.einsum("...mij,...mk->...ijk", turned, push)
        return np.asarray(force), np.asarray(np.einsum("...mlj,...lk->...mjk", turned, change))

    def both(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        one, two = (x + np.swapaxes(x, -1, -2) for x in pair)
        return one, two

    added = both(felt("q"))
    by_v, by_tau = felt("v"), felt("tau")
    changes = {
        "qq": (inner.qq - bent["force_qq"] + added[0], bent["qq"] + added[1]),
        "qv": (inner.qv + by_v[0], bent["qv"] + by_v[1]),
        "vv": (inner.vv, bent["vv"]),
        "q_tau": by_tau,
    }
    found = {name: _solve(here, at.tau_vdot, *pair) for name, pair in changes.items()}
    own = {f"vdot_{name}": change for name, (change, _) in first.items()}
    arrays = {name: np.array(x, dtype) for name, x in {**found, **own}.items()}
    return LoopForwardSecond(**arrays, rows=here.kept)


def _first(here: _Solved, at: InverseLinearization) -> dict[str, tuple[Array, Array]]:
    """∂v̇ and ∂λ (of the rows that were kept) by q, v and τ."""
    problem = here.problem
    tangents = tangents_at(problem.model, problem.q, problem.v, here.vdot, here.multipliers)
    by_q, by_v = (here.rows(tangents[f"acceleration_{name}"]) for name in ("q", "v"))
    one = np.broadcast_to(np.eye(problem.model.nv), at.tau_q.shape)
    sides = {
        "q": (tangents["force_q"] - at.tau_q, -by_q),
        "v": (-at.tau_v, -by_v),
        "tau": (one, np.zeros_like(by_v)),
    }
    return {
        name: solve_columns(at.tau_vdot, here.factor, force, c)
        for name, (force, c) in sides.items()
    }


def _bent_rows(here: _Solved) -> dict[str, Array]:
    """Second derivatives of rows, those that were kept: ``qq qv vv`` of Lv̇ + L̇v, (..., rank, nv,
    nv), ``force_qq`` of L*λ, (..., nv, nv, nv), and ``turned`` = ∂L/∂q, (..., rank, nv, nv)."""
    problem = here.problem
    model, one = problem.model, np.eye(problem.model.nv)
    q, v = problem.q[..., None, :], problem.v[..., None, :]
    still = np.zeros_like(one)
    moved = integrate_unchecked(model, q.astype(complex), 1j * COMPLEX_STEP * one)
    vectors = (v, here.vdot[..., None, :], here.multipliers[..., None, :])
    bent = {k: x.imag / COMPLEX_STEP for k, x in tangents_at(model, moved, *vectors).items()}
    # L̇v is quadratic in v, Lv linear: their derivatives at units are the coefficients.
    none = np.zeros((len(one), problem.system.count))
    units = tangents_at(model, q, one, still, none)

    def kept(x: Array) -> Array:
        """(..., k, rows, j) as (..., rank, j, k)."""
        return here.rows(np.moveaxis(x, -3, -1), 2)

    return {
        "qq": kept(bent["acceleration_q"]),
        "qv": np.swapaxes(kept(bent["acceleration_v"]), -1, -2),
        "vv": kept(units["acceleration_v"]),
        "force_qq": np.moveaxis(bent["force_q"], -3, -1),
        "turned": np.swapaxes(kept(units["rate_q"]), -1, -2),
    }


def _solve(here: _Solved, mass: Array, force: Array, c: Array) -> Array:
    """-δ²v̇ (..., nv, nv, nv) of what ∂²r₁ and ∂²r₂ are, with its sign."""
    nv = mass.shape[-1]
    flat = (x.reshape(*x.shape[:-2], nv * nv) for x in (force, c))
    found = solve_columns(mass, here.factor, *flat)[0]
    return np.asarray(-found.reshape(*found.shape[:-1], nv, nv))


@each_its_way
def hvp(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    weights: Coordinates,
    dq: Coordinates,
    dv: Coordinates,
    dtau: Coordinates,
    wrenches: Wrenches | None = None,
) -> dict[str, Array]:
    """The change of the gradient of weights · v̇ along changes of q, v and τ.

    The gradient is -a*∂r₁ - b*∂r₂ with 𝓜a + L*b = w and La = 0.
    """
    w, dq, dv, dtau = checked_state(model, weights=weights, dq=dq, dv=dv, dtau=dtau)
    problem, dtype = posed(model, q, v, tau, wrenches, "hvp of forward_dynamics")
    given = (problem.q, problem.v, problem.tau, w, dq, dv, dtau)
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in given))
    w, dq, dv, dtau = (np.broadcast_to(x, (*batch, model.nv)) for x in (w, dq, dv, dtau))
    q_, v_, tree = problem.q, problem.v, problem.system.tree
    vdot = np.broadcast_to(accelerations(problem, "auto"), w.shape)
    net = dynamics.inverse_dynamics(tree, q_, v_, vdot, wrenches) - problem.tau
    here = _solved(problem, net, vdot)
    mass = dynamics.mass_matrix(tree, q_)
    tangents = tangents_at(model, q_, v_, vdot, here.multipliers)

    def solved(force: Array, c: Array) -> tuple[Array, Array]:
        """x, and multipliers of all rows, of 𝓜x = force + L*λ and Lx = c."""
        x, push = solve_saddle(mass, here.factor, force, here.of_rows(c))
        return x, here.spread(push)

    nothing = np.zeros((*batch, problem.system.count))
    a, less_b = solved(w, nothing)
    asked = jvp(tree, "inverse_dynamics", (q_, v_, vdot), {"dq": dq, "dv": dv}, wrenches)
    force = dtau - asked + _times(tangents["force_q"], dq)
    rows = _times(tangents["acceleration_q"], dq) + _times(tangents["acceleration_v"], dv)
    dvdot, push = solved(force, -rows)
    bent, turned = _along(here, (dq, dv, dvdot, push))
    # 𝓜δa + L*δb = -δ𝓜 a - δL*b, L δa = -δL a.
    leaning = _adjoint_times(turned, less_b) - second.mass_change(tree, q_, dq, a)
    da, less_db = solved(leaning, -_times(turned, a))
    inner = second.inverse_hvp(tree, q_, v_, vdot, a, (dq, dv, dvdot), wrenches)
    outer = vjp(tree, "inverse_dynamics", (q_, v_, vdot), da, wrenches)
    by_q = _adjoint_times(tangents["force_q"], da) + _adjoint_times(bent["force_q"], a)
    found = {"q": by_q - inner["q"] - outer["q"], "v": -inner["v"] - outer["v"], "tau": da}
    for name in ("q", "v"):
        row, change = tangents[f"acceleration_{name}"], bent[f"acceleration_{name}"]
        found[name] = found[name] + _adjoint_times(row, less_db) + _adjoint_times(change, less_b)
    return {name: x.astype(dtype) for name, x in found.items()}


def _along(
    here: _Solved, changes: tuple[Array, Array, Array, Array]
) -> tuple[dict[str, Array], Array]:
    """Changes of the tangents of rows, and of L, along changes of q, v, v̇ and λ."""
    problem = here.problem
    dq, *others = (1j * COMPLEX_STEP * x for x in changes)
    q = np.broadcast_to(problem.q, (*dq.shape[:-1], problem.model.nq)).astype(complex)
    moved = integrate_unchecked(problem.model, q, dq)
    start = (problem.v, here.vdot, here.multipliers)
    vectors = (x + dx for x, dx in zip(start, others, strict=True))
    bent = tangents_at(problem.model, moved, *vectors)
    turned = rows_at(problem.model, moved).L.imag / COMPLEX_STEP
    return {name: x.imag / COMPLEX_STEP for name, x in bent.items()}, turned


def _times(matrix: Array, x: Array) -> Array:
    return np.asarray((matrix @ x[..., None])[..., 0])


def _adjoint_times(matrix: Array, x: Array) -> Array:
    return _times(np.swapaxes(matrix, -1, -2), x)

# SPDX-License-Identifier: BSD-3-Clause
"""Forward dynamics with loops by six ways that agree: 𝓜v̇ + 𝒞 = τ + L*λ, Lv̇ = c.

kkt         both equations at once, with rows that are independent (Featherstone & Orin eq. 20)
range       λ first, from Δλ = c - L𝓜⁻¹(τ - 𝒞), Δ = L𝓜⁻¹L* (eq. 21)
null        in the motions that keep the loops, v̇ = p + Xy (eq. 22)
embedding   the same with independent joints for y, by sweeps over nodes of links
proximal    range, with Δ + μI and a few repetitions
join        one sweep that closes each loop at the nearest common ancestor (``loops.join``)
parallel    range, with the tree's dynamics in O(log N) rounds

``auto`` takes kkt for small robots, for those whose tree has a joint that moves no inertia, and
for reduced mimic joints; otherwise range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from phistar import dynamics
from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.loops.join import join
from phistar.loops.rank import Factored, factored, independent_rows, take_rows
from phistar.loops.system import LoopMotion, LoopSystem, loop_system
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.model.singular import singular_hinges
from phistar.model.wrenches import Wrenches
from phistar.spatial.reproducible_products import matvec, product
from phistar.thresholds import POLICY

PROXIMAL_DAMPING = 1e-6
"""μ of the proximal way, as a fraction of the mean diagonal of Δ."""
MAX_PROXIMAL_ITERATIONS = 40
PROXIMAL_TOLERANCE = 1e-12
"""Of what rows lack, where the proximal way ends."""


@dataclass(frozen=True)
class LoopProblem:
    """What forward dynamics is asked at states.

    Attributes:
        model: The robot with its loops.
        q, v: (..., nq), (..., nv), on the loops.
        tau: (..., nv).
        wrenches: On frames.
        rows: Rows and rates there.
        rank: How many are independent.
        c: (..., rows), what Lv̇ has to be.
        added: (..., nv) more inertia of joints; dense ways know it.
    """

    model: Model
    q: Array
    v: Array
    tau: Array
    wrenches: Wrenches | None
    rows: LoopMotion
    rank: int
    c: Array
    added: Array | None = None

    @property
    def system(self) -> LoopSystem:
        """Its loops."""
        return loop_system(self.model)

    def mass_and_force(self) -> tuple[Array, Array]:
        """𝓜 and τ - 𝒞 of the tree."""
        tree = self.system.tree
        bias = dynamics.bias_force(tree, self.q, self.v, self.wrenches)
        mass = dynamics.mass_matrix(tree, self.q)
        if self.added is not None:
            mass = mass + self.added[..., None] * np.eye(self.model.nv)
        return mass, self.tau - bias

    def chosen(self) -> tuple[Array, Array]:
        """Independent rows of L, and of c."""
        L, c = self.rows.L, self.c
        if self.rank == self.system.count:
            return L, c
        picked = independent_rows(self.system, L, self.rank)
        return take_rows(L, picked), np.take_along_axis(c, picked, axis=-1)


def solve_saddle(mass: Array, rows: Factored, force: Array, c: Array) -> tuple[Array, Array]:
    """x and the shortest λ with 𝓜x = force + L*λ and Lx = c, in the null space of L.

    Args:
        mass: (..., nv, nv), positive on the null space.
        rows: L.
        force: (..., nv).
        c: (..., rows).
    """
    start = rows.least_norm(c)
    X, Xt = rows.X, np.swapaxes(rows.X, -1, -2)
    inner = product(product(Xt, mass), X)
    left = matvec(Xt, force - matvec(mass, start))
    x = start + matvec(X, dynamics.solve(inner, left))
    return x, rows.multipliers(matvec(mass, x) - force)


def _by_null_space(problem: LoopProblem) -> Array:
    mass, force = problem.mass_and_force()
    return solve_saddle(mass, factored(problem.rows.L, problem.rank), force, problem.c)[0]


def _by_kkt(problem: LoopProblem) -> Array:
    mass, force = problem.mass_and_force()
    L, c = problem.chosen()
    n, r = mass.shape[-1], L.shape[-2]
    batch = np.broadcast_shapes(mass.shape[:-2], force.shape[:-1], c.shape[:-1])
    # Rows in the units of 𝓜, so that pivots of both blocks are of one size.
    scale = np.sqrt(np.abs(np.trace(mass, axis1=-2, axis2=-1)) / n)[..., None, None]
    whole = np.zeros((*batch, n + r, n + r))
    whole[..., :n, :n] = mass
    whole[..., n:, :n] = scale * L
    whole[..., :n, n:] = np.swapaxes(scale * L, -1, -2)
    right = np.concatenate(
        [np.broadcast_to(force, (*batch, n)), np.broadcast_to(scale[..., 0] * c, (*batch, r))],
        axis=-1,
    )
    return dynamics.solve(whole, right)[..., :n]


def _delta(problem: LoopProblem, rounds: bool = False) -> tuple[Array, Array, Array, Array]:
    """Accelerations a₀ of the tree; 𝓜⁻¹L*, Δ and c - La₀ of independent rows.

    Args:
        problem: What is asked.
        rounds: Whether the tree's links are taken in O(log N) rounds.
    """
    tree, q = problem.system.tree, problem.q
    free = dynamics.forward_dynamics(
        tree, q, problem.v, problem.tau, problem.wrenches, "parallel" if rounds else "articulated"
    )
    L, c = problem.chosen()
    if rounds:
        solved = dynamics.mass_matrix_solve(tree, q[..., None, :], L, "parallel")
        carried = np.swapaxes(solved, -1, -2)
    else:
        carried = carried_rows(problem.model, q, L)
    return free, carried, L @ carried, c - matvec(L, free)


def is_long(model: Model) -> bool:
    """Whether matrices over all coordinates are avoided: there are many, each with inertia."""
    few = model.nv <= POLICY.max_coordinates_of_dense_loop_mass
    return not few and joint_map(model).one_to_one and not singular_hinges(model)


def carried_rows(model: Model, q: Array, L: Array) -> Array:
    """𝓜⁻¹L* (..., nv, rows); of long robots by a sweep per row."""
    tree = loop_system(model).tree
    if not is_long(model):
        return dynamics.mass_matrix_inverse(tree, q) @ np.swapaxes(L, -1, -2)
    return np.swapaxes(dynamics.mass_matrix_solve(tree, q[..., None, :], L), -1, -2)


def metric_step(model: Model, q: Array, L: Array, c: Array, rank: int) -> Array:
    """The x (..., nv) of least x*𝓜x with Lx = c, L of a rank."""
    system = loop_system(model)
    if is_long(model):
        if rank < system.count:
            picked = independent_rows(system, L, rank)
            L, c = take_rows(L, picked), np.take_along_axis(c, picked, axis=-1)
        carried = carried_rows(model, q, L)
        return matvec(carried, dynamics.solve(L @ carried, c))
    mass = dynamics.mass_matrix(system.tree, q)
    nothing = np.zeros((*np.broadcast_shapes(mass.shape[:-2], c.shape[:-1]), mass.shape[-1]))
    return solve_saddle(mass, factored(L, rank), nothing, c)[0]


def _by_range(problem: LoopProblem, rounds: bool = False) -> Array:
    free, carried, delta, wanted = _delta(problem, rounds)
    return np.asarray(free + matvec(carried, dynamics.solve(delta, wanted)))


def _without_rows(problem: LoopProblem, rounds: bool) -> Array:
    """Every way on a robot whose loops are all switched off, or that has none: its tree's."""
    state = (problem.q, problem.v, problem.tau, problem.wrenches)
    method = "parallel" if rounds else "articulated"
    return dynamics.forward_dynamics(problem.system.tree, *state, method)


def _by_proximal(problem: LoopProblem) -> Array:
    free, carried, delta, wanted = _delta(problem)
    m = delta.shape[-1]
    mean = np.trace(delta, axis1=-2, axis2=-1)[..., None, None] / m
    damped = delta + PROXIMAL_DAMPING * mean * np.eye(m)
    multipliers = np.zeros_like(wanted)
    done: Array = np.zeros(wanted.shape[:-1], dtype=bool)
    for _ in range(MAX_PROXIMAL_ITERATIONS):
        pull = PROXIMAL_DAMPING * mean[..., 0] * multipliers
        found = dynamics.solve(damped, wanted + pull)
        # What is exact enough stays, however long the others take.
        multipliers = np.where(done[..., None], multipliers, found)
        left = np.abs(matvec(delta, multipliers) - wanted).max(axis=-1)
        done = done | (left <= PROXIMAL_TOLERANCE * np.abs(wanted).max(axis=-1))
        if done.all():
            return np.asarray(free + matvec(carried, multipliers))
    raise ArgumentError(
        f"method 'proximal' does not converge for robot '{problem.model.name}': its loops are "
        "nearly singular there, which its damping would hide; use method='auto'"
    )


def _by_embedding(problem: LoopProblem) -> Array:
    """Sweeps over nodes, in the coordinates that are independent at each sample."""
    from phistar.loops.minimal import dependent_columns
    from phistar.loops.node_rates import embedding

    model, L, c = problem.model, problem.rows.L, problem.c
    batch = np.broadcast_shapes(
        problem.q.shape[:-1], problem.v.shape[:-1], problem.tau.shape[:-1], c.shape[:-1]
    )
    dependent = np.sort(dependent_columns(problem.system, L, problem.rank), axis=-1)
    dependent = np.broadcast_to(dependent, (*batch, problem.rank)).reshape(-1, problem.rank)
    choices, which = np.unique(dependent, axis=0, return_inverse=True)
    samples = [np.flatnonzero(which.reshape(-1) == i) for i in range(len(choices))]
    q, L, c = (_flat(x, batch, axes) for x, axes in ((problem.q, 1), (L, 2), (c, 1)))
    embeddings = [
        embedding(model, L[own], chosen, c[own])
        for own, chosen in zip(samples, choices, strict=True)
    ]
    start = np.zeros((len(q), model.nv))
    for own, each in zip(samples, embeddings, strict=True):
        start[own] = each.start
    # What is left of τ when the dependent coordinates move as they have to.
    whole = start.reshape(*batch, model.nv)
    moved = dynamics.inverse_dynamics(
        problem.system.tree, problem.q, problem.v, whole, problem.wrenches
    )
    left = _flat(problem.tau - moved, batch, 1)
    for own, each in zip(samples, embeddings, strict=True):
        rates = each.tree(model, q[own]).solve(each.reduce(left[own]))
        start[own] += each.expand(rates)
    return whole


def _flat(x: Array, batch: tuple[int, ...], axes: int) -> Array:
    """An array with one batch axis."""
    shape = x.shape[x.ndim - axes :]
    return np.broadcast_to(x, (*batch, *shape)).reshape(-1, *shape)


def _by_join(problem: LoopProblem) -> Array:
    if not joint_map(problem.model).one_to_one:
        raise ArgumentError(
            f"method 'join' sweeps over joints with coordinates of their own, and robot "
            f"'{problem.model.name}' has reduced mimic joints; use method='auto', or load it with "
            "mimic='independent'"
        )
    if problem.model.turning_rotors:
        raise ArgumentError(
            "method 'join' does not know rotors that turn with joints of several axes, which "
            f"robot '{problem.model.name}' has; use method='auto'"
        )
    return join(problem)


ROUTES: Mapping[str, Callable[[LoopProblem], Array]] = {
    "kkt": _by_kkt,
    "range": _by_range,
    "null": _by_null_space,
    "embedding": _by_embedding,
    "proximal": _by_proximal,
    "join": _by_join,
}
"""Ways by name; each gives v̇."""
IN_ROUNDS = "parallel"
"""Not a way of its own: range, with sweeps in another order."""
LOOP_METHODS = ("auto", *ROUTES, IN_ROUNDS)
"""What users can ask for."""
NEEDS_TREE_INERTIA = frozenset({"range", "proximal", "join", IN_ROUNDS})
"""Ways that divide by the inertia of each joint of the tree."""


def accelerations(problem: LoopProblem, method: str = "auto") -> Array:
    """v̇ (..., nv).

    Raises:
        UnknownNameError: No such method.
    """
    if method not in LOOP_METHODS:
        raise UnknownNameError("forward-dynamics method", method, LOOP_METHODS)
    if not problem.system.count and problem.added is None:
        return _without_rows(problem, method == IN_ROUNDS)
    if method == "auto":
        method = "null" if problem.added is not None else cheapest_route(problem.model)
    elif method == IN_ROUNDS:
        return _by_range(problem, rounds=True)
    return ROUTES[method](problem)


def cheapest_route(model: Model) -> str:
    """What ``auto`` takes on a robot."""
    small = model.nv <= POLICY.max_coordinates_of_dense_loops
    if small or not joint_map(model).one_to_one or _has_singular_hinge(model):
        return "kkt"
    return "range"


@cached_on_model
def _has_singular_hinge(model: Model) -> bool:
    """Whether a joint of the tree moves no inertia anywhere."""
    return bool(singular_hinges(model))

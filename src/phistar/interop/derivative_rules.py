# SPDX-License-Identifier: BSD-3-Clause
"""How quantities are differentiated, in quantities again, over the arrays of any package.

A rule gets the arrays of a quantity and gives its results, and for each result and argument the
derivative: an array of the result's shape with one more axis, or None where there is none. Axes for
configurations are tangent steps (nv). Rules call quantities through ``Field.call``, so that results
of rules can be differentiated in turn: inverse and forward dynamics twice by the programs of second
order, everything that is traced as often as one likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from phistar.errors import ArgumentError
from phistar.interop.array_values import Choice, Choices, V, added
from phistar.scalar.trace.differentiated import derivative_name


class Field(Protocol[V]):
    """Arrays of a package, and the quantities of one robot on them."""

    @property
    def nv(self) -> int:
        """Size of joint vectors."""

    @property
    def on_loops(self) -> bool:
        """Whether the robot has active loops."""

    def call(self, name: str, *arrays: V, **choices: Choice) -> Sequence[V]:
        """The results of a quantity."""

    def names(self, name: str, **choices: Choice) -> tuple[Sequence[str], Sequence[str]]:
        """Names of the results of a quantity, and of its arguments."""

    def einsum(self, text: str, *arrays: V) -> V:
        """As of NumPy."""

    def moveaxis(self, x: V, source: int, target: int) -> V:
        """As of NumPy."""

    def eye(self, size: int, like: V) -> V:
        """The identity in the precision of an array."""

    def zeros_like(self, x: V) -> V:
        """Zeros."""

    def stack(self, entries: Sequence[V]) -> V:
        """Arrays (...) as (..., n)."""


def no_derivative(name: str, on_loops: bool, more: str = "") -> ArgumentError:
    """The error about a quantity that has no rule.

    Args:
        name: Of the quantity.
        on_loops: Whether it is one of closed loops.
        more: What else there is, for robots without them.
    """
    if on_loops:
        return ArgumentError(
            f"there is no derivative of {name} on closed loops: forward dynamics have two; "
            "robot.discretize has the first of steps"
        )
    return ArgumentError(
        f"there is no derivative of {name}: inverse and forward dynamics have two, matrices of "
        f"them one{more}"
    )


Partials = list[list[V | None]]
Derived = tuple[Sequence[V], Partials[V]]
"""Results, and derivatives [result][argument]."""


class DerivativeRule(Protocol):
    """Results of a quantity and their derivatives, for arrays of any package."""

    def __call__(self, f: Field[V], name: str, choices: Choices, x: tuple[V, ...], /) -> Derived[V]:
        """Field, name, choices and arrays -> results and derivatives."""


def inverse_dynamics(f: Field[V], name: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
    """By ``linearize_inverse``."""
    tau, *by = f.call("linearize_inverse", *x)
    return (tau,), [list(by)]


def forward_dynamics(f: Field[V], name: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
    """By ``linearize``."""
    vdot, *by = f.call("linearize", *x)
    return (vdot,), [list(by)]


def bias_force(f: Field[V], name: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
    """Inverse dynamics without accelerations."""
    tau, by_q, by_v, _ = f.call("linearize_inverse", *x, f.zeros_like(x[1]))
    return (tau,), [[by_q, by_v]]


def gravity_force(f: Field[V], name: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
    """Inverse dynamics at rest."""
    nothing = f.zeros_like(x[0][..., :1]) * f.zeros_like(f.eye(f.nv, x[0])[0])
    tau, by_q, _, _ = f.call("linearize_inverse", *x, nothing, nothing)
    return (tau,), [[by_q]]


def potential_energy(f: Field[V], name: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
    """Its gradient is the force of gravity."""
    return f.call(name, *x), [[f.call("gravity_force", *x)[0]]]


def mass_matrix(f: Field[V], name: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
    """By the program for ∂𝓜/∂q."""
    return f.call(name, *x), [[mass_matrix_q(f, x[0])]]


def mass_matrix_inverse(f: Field[V], name: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
    """-𝓜⁻¹ ∂𝓜 𝓜⁻¹."""
    (inverse,) = f.call(name, *x)
    by_q = -f.einsum("...ia,...abk,...bj->...ijk", inverse, mass_matrix_q(f, x[0]), inverse)
    return (inverse,), [[by_q]]


def mass_matrix_q(f: Field[V], q: V) -> V:
    """∂𝓜/∂q (..., nv, nv, nv): [i, j, k] along the step e_k."""
    (found,) = f.call("mass_matrix_q", q[..., None, :], f.eye(f.nv, q))
    return f.moveaxis(found, -3, -2)


def mass_matrix_times_q(f: Field[V], name: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
    """Of ∂(𝓜 x)/∂q with respect to q and x."""
    q, vdot = x
    (second,) = f.call("mass_matrix_qq", q[..., None, :], vdot[..., None, :], f.eye(f.nv, q))
    by_x = mass_matrix_q(f, q).swapaxes(-1, -2)
    return f.call(name, *x), [[f.moveaxis(second, -3, -2), by_x]]


def inverse_second(f: Field[V], q: V, v: V, vdot: V) -> tuple[V, ...]:
    """Second derivatives qq, qv, vv, q_vdot of inverse dynamics, [result, first, second]."""
    unit = f.eye(f.nv, q)
    q1, v1, vdot1 = (x[..., None, :] for x in (q, v, vdot))
    (qq,) = f.call("inverse_dynamics_qq", q1, v1, vdot1, unit)
    (qv,) = f.call("inverse_dynamics_qv", q1, v1, unit)
    (vv,) = f.call("inverse_dynamics_vv", q1, v1, unit)
    slices = (f.moveaxis(x, -3, -2) for x in (qq, qv, vv))
    return (*slices, mass_matrix_q(f, q).swapaxes(-1, -2))


def linearize_inverse(f: Field[V], name: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
    """By the second derivatives of inverse dynamics."""
    values = f.call(name, *x)
    q, v, vdot = x
    qq, qv, vv, q_vdot = inverse_second(f, q, v, vdot)
    return values, _by_second(values[1:], qq, qv, vv, q_vdot)


def linearize(f: Field[V], name: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
    """By those of inverse dynamics, through 𝓜v̇ + C = τ; with loops by the robot's own."""
    if f.on_loops:
        qq, qv, vv, q_tau, *first = f.call("forward_dynamics_second", *x)
        found = [f.call("forward_dynamics", *x)[0], *first]
        return found, _by_second(first, qq, qv, vv, q_tau)
    values = vdot, by_q, by_v, inverse = f.call(name, *x)
    qq, qv, vv, mass_q = inverse_second(f, x[0], x[1], vdot)

    def solved(tensor: V) -> V:
        return -f.einsum("...il,...ljk->...ijk", inverse, tensor)

    def felt(change: V) -> V:
        return f.einsum("...ijl,...lk->...ijk", mass_q, change)

    bent = felt(by_q)
    qq = solved(qq + bent + bent.swapaxes(-1, -2))
    qv, vv, q_tau = solved(qv + felt(by_v)), solved(vv), solved(felt(inverse))
    return values, _by_second([by_q, by_v, inverse], qq, qv, vv, q_tau)


def _by_second(first: Sequence[V], qq: V, qv: V, vv: V, q_third: V) -> Partials[V]:
    """Derivatives of a vector and of its matrices by q, v and a third argument, linear in that."""
    return [
        list(first),
        [qq, qv, q_third],
        [qv.swapaxes(-1, -2), vv, None],
        [q_third.swapaxes(-1, -2), None, None],
    ]


def _change(name: str) -> DerivativeRule:
    """Of the change of a result along directions, ``name_jvp``, by the matrices."""

    def rule(f: Field[V], _: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
        at, along = x[:3], x[3:]
        values, partials = SECOND[name](f, MATRICES[name], choices, at)
        pairs = zip(values[1:], along, strict=True)
        total = added((m * d[..., None, :]).sum(-1) for m, d in pairs)
        by: list[V | None] = [None] * 3
        for d, row in zip(along, partials[1:], strict=True):
            for k, tensor in enumerate(row):
                if tensor is not None:
                    term = (tensor * d[..., None, :, None]).sum(-2)
                    known = by[k]
                    by[k] = term if known is None else known + term
        return (total,), [[*by, *values[1:]]]

    return rule


def _gradient(name: str) -> DerivativeRule:
    """Of the gradient of w · result, ``name_vjp``, by the matrices."""

    def rule(f: Field[V], _: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
        *at, w = x
        values, partials = SECOND[name](f, MATRICES[name], choices, tuple(at))
        found = [(m * w[..., :, None]).sum(-2) for m in values[1:]]
        rows: Partials[V] = []
        for m, row in zip(values[1:], partials[1:], strict=True):
            by = [None if t is None else (t * w[..., :, None, None]).sum(-3) for t in row]
            rows.append([*by, m.swapaxes(-1, -2)])
        return found, rows

    return rule


SECOND: dict[str, DerivativeRule] = {
    "inverse_dynamics": linearize_inverse,
    "forward_dynamics": linearize,
}
"""Rules of the matrices of a quantity, by its name."""
MATRICES = {"inverse_dynamics": "linearize_inverse", "forward_dynamics": "linearize"}
"""What has them."""
inverse_dynamics_jvp, forward_dynamics_jvp = (_change(name) for name in SECOND)
inverse_dynamics_vjp, forward_dynamics_vjp = (_gradient(name) for name in SECOND)


def by_own_program(f: Field[V], name: str, choices: Choices, x: tuple[V, ...]) -> Derived[V]:
    """Operation by operation, by the program of the quantity itself."""
    results, arguments = f.names(name, **choices)
    prime = name + "'"
    found = dict(zip(f.names(prime, **choices)[0], f.call(prime, *x, **choices), strict=True))
    partials: Partials[V] = [
        [found[derivative_name(result, argument)] for argument in arguments] for result in results
    ]
    return [found[result] for result in results], partials

# SPDX-License-Identifier: BSD-3-Clause
"""Products of derivatives with vectors, in O(n): for packages that differentiate backward.

``PULLS`` has, by name of a quantity, what a gradient with respect to its results becomes with
respect to its arguments; ``PUSHES`` what changes of its arguments do to its results. Both are made
of quantities again. Quantities that are not here go by the matrices of ``derivative_rules``.

Gradients with respect to configurations are along tangent steps (nv).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from phistar.interop.array_values import V, added
from phistar.interop.derivative_rules import Field
from phistar.model.model import Model


class DerivativeProduct(Protocol):
    """A product of a quantity's derivatives, for arrays of any package.

    A pull takes gradients of the results and gives those of the arguments; a push takes changes of
    the arguments and gives those of the results.
    """

    def __call__(
        self, f: Field[V], model: Model, x: tuple[V, ...], along: Sequence[V], /
    ) -> list[V]:
        """Field, robot, arguments, and gradients of the results or changes of the arguments."""


def _inverse_pull(f: Field[V], model: Model, x: tuple[V, ...], w: Sequence[V]) -> list[V]:
    return list(f.call("inverse_dynamics_vjp", *x, w[0]))


def _forward_pull(f: Field[V], model: Model, x: tuple[V, ...], w: Sequence[V]) -> list[V]:
    return list(f.call("forward_dynamics_vjp", *x, w[0]))


def _inverse_push(f: Field[V], model: Model, x: tuple[V, ...], d: Sequence[V]) -> list[V]:
    return list(f.call("inverse_dynamics_jvp", *x, *d))


def _forward_push(f: Field[V], model: Model, x: tuple[V, ...], d: Sequence[V]) -> list[V]:
    return list(f.call("forward_dynamics_jvp", *x, *d))


def _inverse_change(f: Field[V], x: Sequence[V], w: V, d: Sequence[V]) -> list[V]:
    """The change of the gradient of w · tau along d."""
    return list(f.call("inverse_dynamics_hvp", *x, w, *d))


def _forward_change(f: Field[V], x: Sequence[V], w: V, d: Sequence[V]) -> list[V]:
    """The change of the gradient of w · vdot along d, from 𝓜v̇ + C = τ; with loops the robot's."""
    if f.on_loops:
        return list(f.call("forward_dynamics_hvp", *x, w, *d))
    q, v, _ = x
    (vdot,) = f.call("forward_dynamics", *x)
    (dvdot,) = f.call("forward_dynamics_jvp", *x, *d)
    (u,) = f.call("mass_matrix_solve", q, w)
    (bent,) = f.call("mass_matrix_change", q, d[0], u)
    du = -f.call("mass_matrix_solve", q, bent)[0]
    second = _inverse_change(f, (q, v, vdot), u, (d[0], d[1], dvdot))
    first = f.call("inverse_dynamics_vjp", q, v, vdot, du)
    return [-second[0] - first[0], -second[1] - first[1], du]


_CHANGES = {"inverse_dynamics": _inverse_change, "forward_dynamics": _forward_change}


def _gradient_pull(name: str) -> DerivativeProduct:
    """Of the quantity ``name_vjp``: arguments x and w."""

    def pull(f: Field[V], model: Model, x: tuple[V, ...], c: Sequence[V]) -> list[V]:
        *at, w = x
        found = _CHANGES[name](f, at, w, c)
        found[0] = found[0] - torsion(f, model, f.call(f"{name}_vjp", *x)[0], c[0])
        return [*found, f.call(f"{name}_jvp", *at, *c)[0]]

    return pull


def _gradient_push(name: str) -> DerivativeProduct:
    def push(f: Field[V], model: Model, x: tuple[V, ...], d: Sequence[V]) -> list[V]:
        *at, w = x
        *along, dw = d
        changed = _CHANGES[name](f, at, w, along)
        more = f.call(f"{name}_vjp", *at, dw)
        return [a + b for a, b in zip(changed, more, strict=True)]

    return push


def _change_pull(name: str) -> DerivativeProduct:
    """Of the quantity ``name_jvp``: arguments x and directions."""

    def pull(f: Field[V], model: Model, x: tuple[V, ...], c: Sequence[V]) -> list[V]:
        at, along = x[:3], x[3:]
        found = _CHANGES[name](f, at, c[0], along)
        gradient = f.call(f"{name}_vjp", *at, c[0])
        found[0] = found[0] - torsion(f, model, gradient[0], along[0])
        return [*found, *gradient]

    return pull


def _change_push(name: str) -> DerivativeProduct:
    """By the matrices: two directions, one result."""

    def push(f: Field[V], model: Model, x: tuple[V, ...], d: Sequence[V]) -> list[V]:
        from phistar.interop import derivative_rules as rules

        at, along = x[:3], x[3:]
        moved, turned = d[:3], d[3:]
        rule = rules.linearize if name == "forward_dynamics" else rules.linearize_inverse
        row = "linearize" if name == "forward_dynamics" else "linearize_inverse"
        values, partials = rule(f, row, {}, at)
        terms: list[V] = []
        for k in range(3):
            terms.append((values[1 + k] * turned[k][..., None, :]).sum(-1))
            for j, tensor in enumerate(partials[1 + k]):
                if tensor is not None:
                    change = (tensor * moved[j][..., None, None, :]).sum(-1)
                    terms.append((change * along[k][..., None, :]).sum(-1))
        return [added(terms)]

    return push


PULLS: dict[str, DerivativeProduct] = {
    "inverse_dynamics": _inverse_pull,
    "forward_dynamics": _forward_pull,
    **{f"{name}_vjp": _gradient_pull(name) for name in _CHANGES},
    **{f"{name}_jvp": _change_pull(name) for name in _CHANGES},
}
PUSHES: dict[str, DerivativeProduct] = {
    "inverse_dynamics": _inverse_push,
    "forward_dynamics": _forward_push,
    **{f"{name}_vjp": _gradient_push(name) for name in _CHANGES},
    **{f"{name}_jvp": _change_push(name) for name in _CHANGES},
}


def torsion(f: Field[V], model: Model, gradient: V, c: V) -> V:
    """What a second derivative along c, then e_k, has less than along e_k, then c: (..., nv).

    Steps of rotations do not commute: the difference is the first derivative along the bracket of
    both, joint by joint, and zero for joints with one axis.
    """
    columns: dict[int, V] = {}
    for joint in (model.joints[name] for name in model.joint_names):
        start = joint.v_slice.start
        for k, i, j, factor in joint.joint_kind.structure_constants:
            term = factor * (gradient[..., start + k] * c[..., start + i])
            known = columns.get(start + j)
            columns[start + j] = term if known is None else known + term
    if not columns:
        return f.zeros_like(gradient)
    zero = f.zeros_like(gradient[..., 0])
    return f.stack([columns.get(j, zero) for j in range(model.nv)])

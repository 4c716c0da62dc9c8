# SPDX-License-Identifier: BSD-3-Clause
"""A step of time and its derivatives as an unrolled program, from those of forward dynamics.

    euler           q' = q ⊕ dt v         v' = v + dt v̇
    semi_implicit   v' = v + dt v̇         q' = q ⊕ dt v'

With u the step of q, Ad its ``step_adjoint`` and J its ``right_jacobian``, both blocks of single
joints and the identity elsewhere: δq' = Ad δq + J δu.
"""

from __future__ import annotations

from collections.abc import Iterator

from phistar.model.model import Model
from phistar.scalar.graph import Graph
from phistar.scalar.linear.vectors import Vector, plus, scaled, times
from phistar.scalar.lower import quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.trace.configuration_programs import integrated
from phistar.scalar.trace.step_jacobians import step_jacobians


def discretization(
    model: Model, scheme: str, prefix: str = "vdot_", more_rows: int = 0
) -> Unrolled:
    """A step and its derivatives, in the robot's own coordinates.

    It reads ``q v dt`` and the linearization ``vdot vdot_q vdot_v vdot_tau``, and gives ``q_next
    v_next`` and the matrices ``A`` (2 nv, 2 nv) and ``B`` (2 nv, nv), rows one after the other.

    Args:
        model: The robot.
        scheme: ``"euler"`` or ``"semi_implicit"``.
        prefix: Of the names of the matrices.
        more_rows: Rows of these beyond nv, which are not read.
    """
    nq, nv = model.nq, model.nv
    matrices = {name: prefix + name.removeprefix("vdot_") for name in _MATRICES}
    size = (nv + more_rows) * nv
    sizes = {"q": nq, "v": nv, "dt": 1, "vdot": nv, **dict.fromkeys(matrices.values(), size)}
    outputs = {"q_next": nq, "v_next": nv, "A": 4 * nv * nv, "B": 2 * nv * nv}
    body = BasicBlock(Graph())
    g = body.graph
    dt = g.load("dt", 0)
    v: Vector = [g.load("v", i) for i in range(nv)]
    v_next = [x + dt * g.load("vdot", i) for i, x in enumerate(v)]
    step = scaled(dt, v if scheme == "euler" else v_next)
    q_next = integrated(model, [g.load("q", i) for i in range(nq)], step)
    body.stores += [Store("q_next", i, "", x) for i, x in enumerate(q_next)]
    body.stores += [Store("v_next", i, "", x) for i, x in enumerate(v_next)]
    for joint in (model.joints[name] for name in model.joint_names):
        rows = range(joint.v_slice.start, joint.v_slice.stop)
        adjoint, jacobian = step_jacobians(joint.joint_kind, step[joint.v_slice])
        way = [scaled(dt, row) for row in jacobian]
        for name in _MATRICES:
            for j in range(nv):
                rate: Vector = [dt * g.load(matrices[name], i * nv + j) for i in rows]
                own = j - rows.start if j in rows else None
                ahead = _column(name, scheme, own, way, adjoint, rate)
                body.stores += _column_stores(name, nv, rows, j, ahead, rate)
    return Unrolled(Signature(sizes, outputs, quaternion_entries(model)), body, short_lived=True)


_MATRICES = ("vdot_q", "vdot_v", "vdot_tau")


def _column(
    name: str,
    scheme: str,
    own: int | None,
    way: list[Vector],
    adjoint: list[Vector],
    rate: Vector,
) -> Vector:
    """A joint's rows of δq' in one column of a matrix; ``rate``, those of δv', is completed.

    Args:
        name: The matrix of the linearization.
        scheme: See ``discretization``.
        own: Which of the joint's own coordinates the column belongs to; None for other joints.
        way: dt J.
        adjoint: Ad.
        rate: The rows of dt times the matrix.
    """
    if own is not None and name == "vdot_v":
        rate[own] = rate[own] + 1.0
    if scheme == "semi_implicit":
        ahead = times(way, rate)
    else:
        ahead = [row[own] if own is not None and name == "vdot_v" else 0.0 for row in way]
    if own is not None and name == "vdot_q":
        ahead = plus(ahead, [row[own] for row in adjoint])
    return ahead


def _column_stores(
    name: str, nv: int, rows: range, j: int, ahead: Vector, rate: Vector
) -> Iterator[Store]:
    """Where the numbers of a joint's rows in a column go: rows of q' above those of v'."""
    output, width, first = {
        "vdot_q": ("A", 2 * nv, 0), "vdot_v": ("A", 2 * nv, nv), "vdot_tau": ("B", nv, 0),
    }[name]  # fmt: skip
    for i, above, below in zip(rows, ahead, rate, strict=True):
        yield Store(output, i * width + first + j, "", above)
        yield Store(output, (nv + i) * width + first + j, "", below)

# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a robot's active loops and couplings as straight lines: poses, Jacobian, rates, tangents.

Rows stand in the order of ``model.loops``. A coupling y - y₀ = f(x - x₀) of two coordinates is one
row, e_y - f' e_x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from phistar.model.components import Coupling, LoopJoint
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar
from phistar.scalar.linear.vectors import Matrix, Vector, zeros
from phistar.scalar.lower import DEFAULT_OPTIONS, link_number_choices, quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled, count_arithmetic
from phistar.scalar.robot.joint_transforms import GRAPH_OPS
from phistar.scalar.trace.kinematics_programs import PathSteps
from phistar.scalar.trace.loop_chains import ChainTangents, LoopChain
from phistar.thresholds import POLICY


@dataclass(frozen=True)
class JointCoordinate:
    """A coordinate of a robot as a joint sees it: scale · q + offset if it mimics another."""

    q: int
    v: int
    scale: float
    offset: float

    @classmethod
    def of(cls, model: Model, joint: str) -> JointCoordinate:
        """Of a joint with one coordinate."""
        body = model.bodies[model.joints[joint].bodies[0]]
        return cls(body.q_slice.start, body.v_slice.start, body.scale, body.offset)


class CoupledCoordinates:
    """A coupling in a graph: derivatives of f at the present x, and how far it is off."""

    def __init__(self, graph: Graph, model: Model, loop: Coupling) -> None:
        self.y = JointCoordinate.of(model, loop.joint)
        self.x = JointCoordinate.of(model, loop.source) if loop.source else None
        self.slopes: list[Scalar] = [0.0, 0.0, 0.0]
        follows: Scalar = float(loop.coefficients[0]) if loop.coefficients else 0.0
        if self.x is not None:
            at = self.x.scale * graph.load("q", self.x.q) + self.x.offset - loop.references[1]
            coefficients = [float(c) for c in loop.coefficients]
            follows = _polynomial(coefficients, at)
            for i in range(3):
                coefficients = [k * c for k, c in enumerate(coefficients)][1:]
                self.slopes[i] = _polynomial(coefficients, at)

        own = self.y.scale * graph.load("q", self.y.q) + self.y.offset
        self.error = own - loop.references[0] - follows

    def speed(self, graph: Graph, name: str = "v") -> Scalar:
        """Rate of x, or its acceleration."""
        return 0.0 if self.x is None else self.x.scale * graph.load(name, self.x.v)


def _polynomial(coefficients: Sequence[float], x: Scalar) -> Scalar:
    total: Scalar = 0.0
    for c in reversed(coefficients):
        total = total * x + c
    return total


def row_counts(model: Model) -> list[int]:
    """How many rows each active loop has."""
    from phistar.model.loop_kinds import LOOP_KINDS

    return [
        LOOP_KINDS[loop.kind].rows if isinstance(loop, LoopJoint) else 1
        for loop in active_loops(model.loops)
    ]


Outputs = Mapping[str, Vector]


def _cheapest(
    model: Model, inputs: Mapping[str, int], trace: Callable[[PathSteps], Outputs]
) -> Unrolled:
    """The program of a trace, in the axes in which it takes the fewest operations.

    Of large robots in the first ones: these programs are long, and their users wait.
    """
    found = []
    choices = link_number_choices(model, frozenset(), DEFAULT_OPTIONS)
    most = None if len(model.bodies) <= POLICY.max_links_of_loops_compared else 1
    for links in islice(choices, most):
        steps = PathSteps(model, links)
        outputs = trace(steps)
        sizes = {name: len(x) for name, x in outputs.items()}
        stores = [
            Store(name, i, "", value) for name, x in outputs.items() for i, value in enumerate(x)
        ]
        signature = Signature(dict(inputs), sizes, quaternion_entries(model))
        found.append(Unrolled(signature, BasicBlock(steps.graph, stores)))
    return min(found, key=lambda program: count_arithmetic(program.count()))


def _flat(rows: Matrix) -> Vector:
    return [x for row in rows for x in row]


def loop_rows(model: Model) -> Unrolled:
    """q -> ``poses``, 12 numbers [R p] per loop joint, and ``rows``, L row by row."""
    return _cheapest(model, {"q": model.nq}, lambda steps: _rows(steps, _chains(steps)))


def loop_motion(model: Model) -> Unrolled:
    """q, v -> the same, ``rate`` = Lv and ``bias`` = L̇v."""

    def trace(steps: PathSteps) -> Outputs:
        chains = _chains(steps)
        return {**_rows(steps, chains), **_rates(steps, chains)}

    return _cheapest(model, {"q": model.nq, "v": model.nv}, trace)


def loop_closure(model: Model) -> Unrolled:
    """q, v -> ``rows``, ``rate``, ``bias`` and ``error`` to first order where nearly closed."""

    def trace(steps: PathSteps) -> Outputs:
        chains = _chains(steps)
        found = {**_rows(steps, chains), **_rates(steps, chains)}
        del found["poses"]
        error: Vector = []
        for chain in chains:
            if isinstance(chain, LoopChain):
                error += chain.kind.near_error(chain.loop, chain.pose, GRAPH_OPS)
            else:
                error.append(chain.error)
        return {**found, "error": error}

    return _cheapest(model, {"q": model.nq, "v": model.nv}, trace)


def loop_tangents(model: Model) -> Unrolled:
    """q, v, vdot, multipliers -> d(Lv)/dq, d(Lv̇ + L̇v)/dq and /dv, d(L*λ)/dq, all row by row."""
    nv, total = model.nv, sum(row_counts(model))

    def trace(steps: PathSteps) -> Outputs:
        g = steps.graph
        v, vdot = ([g.load(name, i) for i in range(nv)] for name in ("v", "vdot"))
        rows: dict[str, Matrix] = {"rate_q": [], "acceleration_q": [], "acceleration_v": []}
        forces = zeros(nv * nv)
        first = 0
        for chain in _chains(steps):
            if isinstance(chain, LoopChain):
                tangents = ChainTangents(chain, v, vdot)
                blocks = tangents.rows(nv)
                count = len(blocks[0])
                own = [g.load("multipliers", first + i) for i in range(count)]
                for (row, column), x in tangents.force_rows(own, nv).items():
                    forces[row * nv + column] = forces[row * nv + column] + x
            else:
                blocks, count = _coupling_tangents(g, chain, nv), 1
                if chain.x is not None:
                    at = chain.x.v * (nv + 1)
                    push = -chain.slopes[1] * chain.x.scale * chain.x.scale
                    forces[at] = forces[at] + push * g.load("multipliers", first)
            for matrix, block in zip(rows.values(), blocks, strict=True):
                matrix += block
            first += count
        return {**{name: _flat(x) for name, x in rows.items()}, "force_q": forces}

    inputs = {"q": model.nq, "v": nv, "vdot": nv, "multipliers": total}
    return _cheapest(model, inputs, trace)


Chain = LoopChain | CoupledCoordinates


def _chains(steps: PathSteps) -> list[Chain]:
    model = steps.model
    return [
        LoopChain(steps, loop)
        if isinstance(loop, LoopJoint)
        else CoupledCoordinates(steps.graph, model, loop)
        for loop in active_loops(model.loops)
    ]


def _rows(steps: PathSteps, chains: Sequence[Chain]) -> dict[str, Vector]:
    nv = steps.model.nv
    poses: Vector = []
    rows: Matrix = []
    for chain in chains:
        if isinstance(chain, LoopChain):
            for axes, x in zip(chain.pose.R, chain.pose.p, strict=True):
                poses += [*axes, x]
            rows += chain.row_entries(nv)
        else:
            row = zeros(nv)
            row[chain.y.v] = row[chain.y.v] + chain.y.scale
            if chain.x is not None:
                row[chain.x.v] = row[chain.x.v] - chain.slopes[0] * chain.x.scale
            rows.append(row)
    return {"poses": poses, "rows": _flat(rows)}


def _rates(steps: PathSteps, chains: Sequence[Chain]) -> dict[str, Vector]:
    g = steps.graph
    v: Vector = [g.load("v", i) for i in range(steps.model.nv)]
    rate: Vector = []
    bias: Vector = []
    for chain in chains:
        if isinstance(chain, LoopChain):
            own_rate, own_bias = chain.rate_and_bias(v)
            rate, bias = rate + own_rate, bias + own_bias
        else:
            speed = chain.speed(g)
            rate.append(chain.y.scale * v[chain.y.v] - chain.slopes[0] * speed)
            bias.append(-chain.slopes[1] * speed * speed)
    return {"rate": rate, "bias": bias}


def _coupling_tangents(
    g: Graph, chain: CoupledCoordinates, nv: int
) -> tuple[Matrix, Matrix, Matrix]:
    rate_q, accel_q, accel_v = zeros(nv), zeros(nv), zeros(nv)
    if chain.x is not None:
        entry, scale = chain.x.v, chain.x.scale
        speed, push = chain.speed(g), chain.speed(g, "vdot")
        _, second, third = chain.slopes
        rate_q[entry] = -second * speed * scale
        accel_q[entry] = -(second * push + third * speed * speed) * scale
        accel_v[entry] = -2.0 * second * speed * scale
    return [rate_q], [accel_q], [accel_v]

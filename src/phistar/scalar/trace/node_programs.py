# SPDX-License-Identifier: BSD-3-Clause
"""Dynamics of robots whose mimic joints are reduced, as straight lines in their own coordinates.

The tree's derived sweeps give bias forces and their derivatives, X* of them; those over nodes
(``node_sweeps``) what it takes to divide by X*𝓜X. All are put together in one graph, in the same
frames, so that what they have in common is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.graph import WORK, Scalar, log
from phistar.scalar.linear.vectors import Matrix, Vector, dot, minus, zeros
from phistar.scalar.lower import (
    LoweringOptions,
    link_number_choices,
    quaternion_entries,
    trace_context,
)
from phistar.scalar.program import (
    BasicBlock,
    MatrixProduct,
    Signature,
    Store,
    Unrolled,
    count_arithmetic,
)
from phistar.scalar.robot.link_numbers import LinkNumbers
from phistar.scalar.trace.determinant_programs import PIVOTS_PER_LOGARITHM
from phistar.scalar.trace.inline import inline
from phistar.scalar.trace.kinematics_programs import RESULT_OUTPUT
from phistar.scalar.trace.link_operations import as_vector
from phistar.scalar.trace.link_tracer import EXTERNAL_FORCE
from phistar.scalar.trace.node_sweeps import NodeSweeps
from phistar.scalar.trace.traced_links import ADDED_INERTIA, TracedLinks
from phistar.scalar.trace.unrolled import UnrolledTrace
from phistar.sweeps.schedule import Schedule
from phistar.thresholds import POLICY

OMITTED = (EXTERNAL_FORCE, "gravity")
"""Inputs that are not given: no external forces, the robot's own gravity."""
FRAMES = ("file", "square")
"""Choices of link frames that are compared."""

TreeProgram = Callable[[LoweringOptions], Unrolled]
"""A derived program of the tree, joint vectors in body order, in frames that are told."""


class NodeTracer:
    """A robot's links, nodes and coordinates in one graph."""

    def __init__(
        self, model: Model, links: Sequence[LinkNumbers], added: Mapping[int, int] | None = None
    ) -> None:
        self.model = model
        self.robot = TracedLinks(links, added)
        self.sweeps = NodeSweeps(model, self.robot)
        joints = joint_map(model)
        self._places = list(zip(joints.v_indices.tolist(), joints.scales.tolist(), strict=True))
        self.stores: list[Store] = []
        self.sizes: dict[str, int] = {}
        self.products: list[MatrixProduct] = []
        self.slots = 0

    def given(self, name: str, size: int | None = None) -> Vector:
        """An input, joint vectors by default."""
        return [self.robot.graph.load(name, i) for i in range(size or self.model.nv)]

    def spread(self, x: Sequence[Scalar]) -> Vector:
        """X x: velocities of all joints."""
        return [scale * x[i] for i, scale in self._places]

    def gather(self, x: Sequence[Scalar]) -> Vector:
        """X* x: forces on the robot's own coordinates."""
        result = zeros(self.model.nv)
        for (i, scale), value in zip(self._places, x, strict=True):
            result[i] = result[i] + scale * value
        return result

    def tree(self, program: Unrolled, **vectors: Sequence[Scalar]) -> dict[str, Vector]:
        """A program of the tree on vectors of the robot's own coordinates; results by joint."""
        inputs = {name: self.spread(x) for name, x in vectors.items()}
        return inline(program, {"q": self.given("q", self.model.nq), **inputs})

    def gathered_matrix(self, flat: Sequence[Scalar]) -> Matrix:
        """X* A X of a matrix over all joints."""
        size = len(self._places)
        rows = [self.gather(flat[i * size : (i + 1) * size]) for i in range(size)]
        columns = [self.gather([row[j] for row in rows]) for j in range(self.model.nv)]
        return [[column[i] for column in columns] for i in range(self.model.nv)]

    def link_streams(self, scheduled: Schedule) -> dict[str, list[Vector]]:
        """Outputs of a program of the tree at all links, in their axes; it reads own coordinates.

        Optional inputs are not given.
        """
        program = scheduled.classical.program
        context = trace_context(program, self.model, frozenset(OMITTED))
        context = replace(context, joint_places=tuple(self._places))
        trace = UnrolledTrace(self.robot, context)
        trace.run(scheduled.classical)
        return {
            name: [as_vector(link.value(stream)) for link in trace.tracers]
            for name, stream in program.outputs.items()
        }

    def accelerations(self, loads: Schedule, tau: Sequence[Scalar]) -> Vector:
        """v̇ under joint forces; ``loads`` as of ``forward_dynamics``."""
        found = self.link_streams(loads)
        if "tau" in found:
            tau = minus(tau, self.gather([x for own in found["tau"] for x in own]))
        return self.sweeps.solve(tau, dict(enumerate(found["f"])))

    def store(self, name: str, values: Sequence[Scalar]) -> None:
        """An output."""
        self.sizes[name] = len(values)
        self.stores += [Store(name, i, "", x) for i, x in enumerate(values)]

    def store_matrix(self, name: str, rows: Matrix) -> None:
        """An output, rows one after the other."""
        self.store(name, [x for row in rows for x in row])

    def store_minus_products(self, left: Matrix, right: Mapping[str, Matrix]) -> None:
        """Minus the products of a square matrix with others, as outputs; large ones by loops."""
        size = len(left)
        if size <= POLICY.max_product_rows_unrolled:
            for name, rows in right.items():
                columns = [[row[j] for row in rows] for j in range(size)]
                self.store_matrix(name, [[-dot(row, c) for c in columns] for row in left])
            return
        start = self.slots
        for row in left:
            for x in row:
                self._spill(x)
        for name, rows in right.items():
            slots: list[dict[int, int]] = [
                {k: self._spill(rows[k][j]) for k in range(size) if rows[k][j] != 0.0}
                for j in range(size)
            ]
            self.sizes[name] = size * size
            self.products.append(MatrixProduct(name, start, size, slots))

    def _spill(self, x: Scalar) -> int:
        self.stores.append(Store(WORK, self.slots, "", x))
        self.slots += 1
        return self.slots - 1

    def program(self, inputs: Sequence[str]) -> Unrolled:
        """All that was stored."""
        model = self.model
        read = {name: model.nq if name == "q" else model.nv for name in inputs}
        signature = Signature(read, self.sizes, quaternion_entries(model))
        body = BasicBlock(self.robot.graph, self.stores)
        return Unrolled(signature, body, tuple(self.products), self.slots)


def cheapest(
    model: Model,
    trace: Callable[[NodeTracer, LoweringOptions], None],
    inputs: Sequence[str],
    added: Mapping[int, int] | None = None,
) -> Unrolled:
    """What is traced, in the frames in which it takes the fewest operations."""
    found = []
    for frames in FRAMES:
        options = LoweringOptions(frames=frames, regroup=True)
        for flat in (True, False):
            (links,) = link_number_choices(model, frozenset(), options, flat)
            tracer = NodeTracer(model, links, added)
            trace(tracer, options)
            found.append(tracer.program(inputs))
    return min(found, key=lambda program: count_arithmetic(program.count()))


def solve(model: Model) -> Unrolled:
    """q, tau -> (X*𝓜X)⁻¹τ."""

    def trace(tracer: NodeTracer, _: LoweringOptions) -> None:
        tracer.store("vdot", tracer.sweeps.solve(tracer.given("tau")))

    return cheapest(model, trace, ("q", "tau"))


def forward_dynamics(
    model: Model, loads: Schedule, added: Mapping[int, int] | None = None
) -> Unrolled:
    """q, v, tau -> v̇ = (X*𝓜X)⁻¹(τ - X*𝒞).

    Args:
        model: The robot.
        loads: Gives ``f``, the force on each link that the motion takes at v̇ = 0, and maybe
            ``tau``, forces on joints besides.
        added: Joints with more inertia, which the program reads, see ``TracedLinks``.
    """
    inputs = ("q", "v", "tau") if added is None else ("q", "v", "tau", ADDED_INERTIA)

    def trace(tracer: NodeTracer, _: LoweringOptions) -> None:
        tracer.store("vdot", tracer.accelerations(loads, tracer.given("tau")))

    return cheapest(model, trace, inputs, added)


def inverse(model: Model) -> Unrolled:
    """q -> (X*𝓜X)⁻¹."""

    def trace(tracer: NodeTracer, _: LoweringOptions) -> None:
        tracer.store_matrix(RESULT_OUTPUT, tracer.sweeps.inverse())

    return cheapest(model, trace, ("q",))


def compliance(model: Model, jacobians: Sequence[Unrolled]) -> Unrolled:
    """q -> J(X*𝓜X)⁻¹J* of frames in their own axes, (6m)² numbers.

    Args:
        model: The robot.
        jacobians: q -> J of each frame in its own axes, in the robot's coordinates.
    """

    def trace(tracer: NodeTracer, _: LoweringOptions) -> None:
        q = tracer.given("q", model.nq)
        flat = [x for program in jacobians for x in next(iter(inline(program, {"q": q}).values()))]
        J = [flat[i : i + model.nv] for i in range(0, len(flat), model.nv)]
        moved = [tracer.sweeps.solve(row) for row in J]
        rows: Matrix = [zeros(len(J)) for _ in J]
        for i, row in enumerate(J):
            for j in range(i + 1):
                rows[i][j] = rows[j][i] = dot(row, moved[j])
        tracer.store_matrix(RESULT_OUTPUT, rows)

    return cheapest(model, trace, ("q",))


def log_determinant(model: Model) -> Unrolled:
    """q -> log det X*𝓜X."""

    def trace(tracer: NodeTracer, _: LoweringOptions) -> None:
        pivots, total = tracer.sweeps.inverse_pivots(), zeros(1)[0]
        for first in range(0, len(pivots), PIVOTS_PER_LOGARITHM):
            product: Scalar = 1.0
            for x in pivots[first : first + PIVOTS_PER_LOGARITHM]:
                product = product * x
            total = total - log(product)
        tracer.store(RESULT_OUTPUT, [total])

    return cheapest(model, trace, ("q",))


def linearize(model: Model, loads: Schedule, forces: TreeProgram) -> Unrolled:
    """q, v, tau -> v̇ and its derivatives: minus (X*𝓜X)⁻¹ times those of X*τ at that v̇.

    Args:
        model: The robot.
        loads: As of ``forward_dynamics``.
        forces: q, v, vdot -> ``tau_q`` and ``tau_v`` of inverse dynamics, joints in body order.
    """

    def trace(tracer: NodeTracer, options: LoweringOptions) -> None:
        vdot = tracer.accelerations(loads, tracer.given("tau"))
        found = tracer.tree(forces(options), v=tracer.given("v"), vdot=vdot)
        inverse = tracer.sweeps.inverse()
        tracer.store("vdot", vdot)
        by_name = {"vdot_q": found["tau_q"], "vdot_v": found["tau_v"]}
        matrices = {name: tracer.gathered_matrix(x) for name, x in by_name.items()}
        tracer.store_minus_products(inverse, matrices)
        tracer.store_matrix("vdot_tau", inverse)

    return cheapest(model, trace, ("q", "v", "tau"))


def forward_dynamics_jvp(model: Model, loads: Schedule, forces: TreeProgram) -> Unrolled:
    """The change of v̇ along dq, dv and dtau: (X*𝓜X)⁻¹(δτ - X* δτ of inverse dynamics)."""

    def trace(tracer: NodeTracer, options: LoweringOptions) -> None:
        vdot = tracer.accelerations(loads, tracer.given("tau"))
        changes = {name: tracer.given(name) for name in ("v", "dq", "dv")}
        still = zeros(model.nv)
        (bent,) = tracer.tree(forces(options), vdot=vdot, dvdot=still, **changes).values()
        tracer.store("dvdot", tracer.sweeps.solve(minus(tracer.given("dtau"), tracer.gather(bent))))

    return cheapest(model, trace, ("q", "v", "tau", "dq", "dv", "dtau"))


def forward_dynamics_vjp(model: Model, loads: Schedule, forces: TreeProgram) -> Unrolled:
    """Gradients of w · v̇: u = (X*𝓜X)⁻¹w for tau, minus those of u · τ for q and v."""

    def trace(tracer: NodeTracer, options: LoweringOptions) -> None:
        vdot = tracer.accelerations(loads, tracer.given("tau"))
        u = tracer.sweeps.solve(tracer.given("w"))
        found = tracer.tree(forces(options), v=tracer.given("v"), vdot=vdot, w=u)
        for name in ("w_q", "w_v"):
            tracer.store(name, [-x for x in tracer.gather(found[name])])
        tracer.store("w_tau", u)

    return cheapest(model, trace, ("q", "v", "tau", "w"))

# SPDX-License-Identifier: BSD-3-Clause
"""What control laws do between quantities of a robot: errors, gains and limits, unrolled.

Inputs are the state, quantities that other programs made of it, and the numbers of a law: gains and
goals, in the robot's own coordinates. Those that change in time or from sample to sample stand in
one row, ``reference``; the others are inputs of their own. Without a goal's velocity or
acceleration these are zero. Each program ends with what motors can do: passive forces made up for,
limits kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from phistar.model.components import Joint
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.graph import Graph
from phistar.scalar.linear.elementary import larger, rotation_log, smaller
from phistar.scalar.linear.vectors import (
    Matrix,
    Vector,
    cross,
    dot,
    minus,
    plus,
    scaled,
    times,
    transposed,
)
from phistar.scalar.lower import quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.robot.joint_transforms import GRAPH_OPS
from phistar.scalar.trace.law_numbers import LawNumbers
from phistar.scalar.trace.passive_programs import passive_scalars
from phistar.scalar.trace.step_rates import StepRates

REFERENCE = "reference"


@dataclass
class _Tracer:
    """A program while it is made; joint vectors are in the robot's own coordinates here."""

    model: Model
    numbers: LawNumbers
    graph: Graph = field(default_factory=Graph)
    inputs: dict[str, int] = field(default_factory=dict)

    def load(self, name: str, size: int) -> Vector:
        """An input as it is."""
        self.inputs[name] = size
        return [self.graph.load(name, i) for i in range(size)]

    def order(self, own: bool) -> list[int]:
        """The coordinate at each place of a joint vector."""
        return list(range(self.model.nv)) if own else joint_map(self.model).v_indices.tolist()

    def joint_vector(self, name: str, own: bool = False) -> Vector:
        """An input that is a joint vector, of another program unless said otherwise."""
        given = self.load(name, self.model.nv)
        result: Vector = [0.0] * self.model.nv
        for i, x in zip(self.order(own), given, strict=True):
            result[i] = x
        return result

    def velocity(self) -> Vector:
        """v of the state."""
        return self.joint_vector("v", self.numbers.own)

    def state(self) -> tuple[Vector, Vector]:
        """q and v."""
        return self.load("q", self.model.nq), self.velocity()

    def number(self, name: str) -> Vector | None:
        """Numbers of the law; None if there are none of the name."""
        if name in dict(self.numbers.fixed):
            return self.load(name, dict(self.numbers.fixed)[name])
        row = self.load(REFERENCE, sum(size for _, size in self.numbers.varying))
        place = 0
        for known, size in self.numbers.varying:
            if known == name:
                return row[place : place + size]
            place += size
        return None

    def needed(self, name: str) -> Vector:
        """The same of what every law of the kind has."""
        found = self.number(name)
        assert found is not None, name
        return found

    def gains(self, name: str) -> Vector:
        """One for each joint velocity, or one for all of them."""
        found = self.needed(name)
        return found * self.model.nv if len(found) == 1 else found

    def or_zero(self, name: str, size: int) -> Vector:
        """The same, zero if there are none."""
        found = self.number(name) if self.numbers.has(name) else None
        return [0.0] * size if found is None else found

    def joints(self) -> Iterator[Joint]:
        """Those that have coordinates of their own."""
        return (self.model.joints[name] for name in self.model.joint_names)

    def steps_from_goal(self, q: Vector, goal: Vector) -> list[tuple[Joint, StepRates]]:
        """The step u of each joint with q = goal ⊕ u."""
        found = []
        for joint in self.joints():
            pair = goal[joint.q_slice], q[joint.q_slice]
            u = list(joint.joint_kind.step_between(*pair, GRAPH_OPS))
            found.append((joint, StepRates(joint.joint_kind, u)))
        return found

    def program(self, name: str, result: Vector, own: bool = False) -> Unrolled:
        """The program that gives a joint vector, for another one unless said otherwise."""
        stores = [Store(name, k, "", result[i]) for k, i in enumerate(self.order(own))]
        quaternions = quaternion_entries(self.model) if "q" in self.inputs else ()
        return self.unrolled(stores, {name: self.model.nv}, quaternions)

    def unrolled(
        self, stores: list[Store], outputs: dict[str, int], quaternions: Sequence[int]
    ) -> Unrolled:
        """The program; numbers of the law that all samples share are read once for all lanes."""
        shared = {*dict(self.numbers.fixed), *((REFERENCE,) if self.numbers.shared else ())}
        common = tuple(name for name in self.inputs if name in shared)
        signature = Signature(self.inputs, outputs, quaternions, common=common)
        return Unrolled(signature, BasicBlock(self.graph, stores))

    def motor_program(self, tau: Vector) -> Unrolled:
        """The program that gives the forces of motors that should do tau."""
        if self.numbers.passive:
            q, v = self.state()
            tau = minus(tau, passive_scalars(self.model, q, v, self.numbers.passive))
        if self.numbers.has("lower"):
            low, high = self.needed("lower"), self.needed("upper")
            # What is not a number stays so: the second operand is taken then.
            tau = [smaller(b, larger(a, x)) for a, b, x in zip(low, high, tau, strict=True)]
        return self.program("tau", tau, self.numbers.own)


def pd_force(model: Model, numbers: LawNumbers, gravity: bool) -> Unrolled:
    """E*k_p δ - k_d (v - v°) + g: q, v, (held,) numbers -> tau.

    v° is the goal's velocity in the axes at q. Without ``goal`` there is no first term.

    Args:
        model: The robot.
        numbers: ``damping``; ``goal`` and ``stiffness``; ``goal_velocity``.
        gravity: Whether to add the input ``held``, which holds the robot against gravity.
    """
    t = _Tracer(model, numbers)
    q, v = t.state()
    damping, moving = t.gains("damping"), t.or_zero("goal_velocity", model.nv)
    pull: Vector = [0.0] * model.nv
    if numbers.has("goal"):
        stiffness = t.gains("stiffness")
        for joint, step in t.steps_from_goal(q, t.needed("goal")):
            own = joint.v_slice
            spring = [-k * x for k, x in zip(stiffness[own], step.u, strict=True)]
            pull[own] = step.rate_adjoint(spring)
            moving[own] = step.carried(moving[own])
    tau = minus(pull, [k * x for k, x in zip(damping, minus(v, moving), strict=True)])
    if gravity:
        tau = plus(tau, t.joint_vector("held"))
    return t.motor_program(tau)


def wanted_acceleration(model: Model, numbers: LawNumbers) -> Unrolled:
    """The acceleration with which errors obey δ̈ + k_d δ̇ + k_p δ = 0: q, v, numbers -> vdot.

    With q = goal ⊕ u and the goal's velocity v° and acceleration a° in the axes at q,
    v - v° = J(u) u̇ and v̇ = J ü + J̇ u̇ + a° - [v, v°].
    """
    t = _Tracer(model, numbers)
    q, v = t.state()
    stiffness, damping = t.gains("stiffness"), t.gains("damping")
    goal_rate = t.or_zero("goal_velocity", model.nv)
    goal_acceleration = t.or_zero("goal_acceleration", model.nv)
    wanted: Vector = [0.0] * model.nv
    for joint, step in t.steps_from_goal(q, t.needed("goal")):
        own = joint.v_slice
        moving = step.carried(goal_rate[own])
        speed = minus(v[own], moving)
        rate = step.rate(speed)
        gains = stiffness[own], damping[own]
        if all(k is each[0] for each in gains for k in each):
            # J u = u and J u̇ = v - v°.
            second = _pulled(*gains, step.u, speed)
        else:
            second = step.velocity(_pulled(*gains, step.u, rate))
        found = plus(plus(second, step.bend(rate)), step.carried(goal_acceleration[own]))
        if not joint.joint_kind.is_euclidean:
            found = minus(found, list(joint.joint_kind.bracket(v[own], moving)))
        wanted[own] = found
    return t.program("vdot", wanted)


def _pulled(stiffness: Vector, damping: Vector, u: Vector, rate: Vector) -> Vector:
    """-k_p u - k_d u̇."""
    terms = zip(stiffness, u, damping, rate, strict=True)
    return [-(kp * x) - kd * y for kp, x, kd, y in terms]


def motor_force(model: Model, numbers: LawNumbers, gravity: bool = True) -> Unrolled:
    """What motors do of joint forces ``asked``: q, v, asked, numbers -> tau.

    Args:
        model: The robot.
        numbers: Limits.
        gravity: If false, the input ``held``, forces against gravity, is taken away.
    """
    t = _Tracer(model, numbers)
    asked = t.joint_vector("asked")
    return t.motor_program(asked if gravity else minus(asked, t.joint_vector("held")))


def state_error(model: Model, numbers: LawNumbers) -> Unrolled:
    """(δq, δv) from a nominal state to this one: q, v, numbers -> error, 2 nv numbers.

    Args:
        model: The robot.
        numbers: ``goal``, ``goal_velocity``.
    """
    t = _Tracer(model, numbers)
    q, v = t.state()
    error: Vector = [0.0] * model.nv
    for joint, step in t.steps_from_goal(q, t.needed("goal")):
        error[joint.v_slice] = step.u
    error = [*error, *minus(v, t.or_zero("goal_velocity", model.nv))]
    stores = [Store("error", i, "", x) for i, x in enumerate(error)]
    return t.unrolled(stores, {"error": 2 * model.nv}, quaternion_entries(model))


def gain_rows(model: Model, rows: int, shared: bool) -> Unrolled:
    """Some rows of gains times the error: error, gain -> product.

    Args:
        model: The robot.
        rows: How many.
        shared: Whether all samples have the same gains.
    """
    body, size = BasicBlock(Graph()), 2 * model.nv
    error, gain = (
        [body.graph.load(name, i) for i in range(count)]
        for name, count in (("error", size), ("gain", rows * size))
    )
    body.stores += [
        Store("product", i, "", dot(gain[i * size : (i + 1) * size], error)) for i in range(rows)
    ]
    inputs, common = {"error": size, "gain": rows * size}, ("gain",) if shared else ()
    return Unrolled(Signature(inputs, {"product": rows}, common=common), body)


def linear_force(
    model: Model, numbers: LawNumbers, columns: Sequence[int], sizes: Sequence[int]
) -> Unrolled:
    """τ° - K (δq, δv): numbers, product0, product1, ... -> tau.

    Args:
        model: The robot.
        numbers: ``force``, τ°.
        columns: The entries of tau of the motors.
        sizes: How many rows of the product each of the inputs has.
    """
    t = _Tracer(model, numbers)
    tau = list(t.needed("force"))
    product = [x for k, size in enumerate(sizes) for x in t.load(f"product{k}", size)]
    for i, x in zip(columns, product, strict=False):
        tau[i] = tau[i] - x
    return t.motor_program(tau)


def damped_acceleration(model: Model, numbers: LawNumbers) -> Unrolled:
    """-c v: v, numbers -> vdot.

    Args:
        model: The robot.
        numbers: ``inner``, c.
    """
    t = _Tracer(model, numbers)
    c = t.needed("inner")[0]
    return t.program("vdot", [-(c * x) for x in t.velocity()])


def _axes_and_place(pose: Vector) -> tuple[Matrix, Vector]:
    """Rotation and position of a pose of 16 numbers."""
    return [pose[0:3], pose[4:7], pose[8:11]], [pose[3], pose[7], pose[11]]


def operational_force(model: Model, numbers: LawNumbers) -> Unrolled:
    """coasting + J*Λ(a° + k_p e + k_d (V° - V) - J̇v + c V) of a frame, in world axes.

    e is the rotation vector and the way to the goal's pose, V° and a° the goal's velocity and
    acceleration. Reads v, the joint forces ``coasting`` of accelerations -c v, the frame's
    ``pose``, ``jacobian``, ``drift`` J̇v and ``inertia`` Λ, and numbers; gives tau.
    """
    t = _Tracer(model, numbers)
    v, nv = t.velocity(), model.nv
    R, place = _axes_and_place(t.load("pose", 16))
    flat = t.load("jacobian", 6 * nv)
    jacobian = [flat[i * nv : (i + 1) * nv] for i in range(6)]
    inertia = t.load("inertia", 36)
    goal_axes, goal_place = _axes_and_place(t.needed("goal"))
    turn = rotation_log([[dot(a, b) for b in R] for a in goal_axes])
    speed = times(jacobian, v)
    kp, kd, c = (t.needed(name)[0] for name in ("stiffness", "damping", "inner"))
    pull = scaled(kp, [*turn, *minus(goal_place, place)])
    push = scaled(kd, minus(t.or_zero("goal_velocity", 6), speed))
    wanted = plus(plus(pull, push), t.or_zero("goal_acceleration", 6))
    wanted = plus(minus(wanted, t.load("drift", 6)), scaled(c, speed))
    wrench = [dot(inertia[6 * i : 6 * i + 6], wanted) for i in range(6)]
    tau = plus(t.joint_vector("coasting"), times(transposed(jacobian), wrench))
    return t.motor_program(tau)


def pose_force(model: Model, numbers: LawNumbers, gravity: bool = True) -> Unrolled:
    """asked + c₂ J_Y*e: what draws a frame's origin and axes to a goal.

    Reads the joint forces ``asked``, the frame's ``pose`` and ``jacobian`` in world axes, and
    numbers; gives tau. ``gravity`` as of ``motor_force``.
    """
    t = _Tracer(model, numbers)
    nv = model.nv
    R, place = _axes_and_place(t.load("pose", 16))
    flat = t.load("jacobian", 6 * nv)
    goal_axes, goal_place = _axes_and_place(t.needed("goal"))
    moment: Vector = [0.0, 0.0, 0.0]
    for ours, theirs in zip(transposed(R), transposed(goal_axes), strict=True):
        moment = plus(moment, cross(ours, theirs))
    length, stiffness = t.needed("length")[0], t.needed("stiffness")[0]
    wrench = [*scaled(length * length, moment), *minus(goal_place, place)]
    pull = [dot(flat[i::nv], wrench) for i in range(nv)]
    tau = plus(t.joint_vector("asked"), scaled(stiffness, pull))
    return t.motor_program(tau if gravity else minus(tau, t.joint_vector("held")))


def reordered_velocity(model: Model, numbers: LawNumbers) -> Unrolled:
    """v in the order that it does not have: of bodies, or the robot's own: v -> v_other."""
    t = _Tracer(model, numbers)
    return t.program("v_other", t.velocity(), not numbers.own)

# SPDX-License-Identifier: BSD-3-Clause
"""The operations on streams, one row each: types, properties, text, value, cost and meaning.

What the compiler knows of an operation is its row. Besides, an operation has two forms of code: a
line in ``backends.to_numpy.OP_SOURCE`` and one in ``scalar.trace.link_operations.LINK_OPERATIONS``;
a test compares their names with this table. Rows without a value are the statements of the language
itself, which every pass knows by name: what is given from outside, sums, choices and recursions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from phistar.arrays import Array
from phistar.sweeps import op_costs as cost
from phistar.sweeps import op_values as value
from phistar.sweeps.op_costs import LinkType, Operand, OperationCount
from phistar.sweeps.op_values import GroundState, OneLink
from phistar.sweeps.stream_types import GROUND_COMPONENTS, Direction, OpSignature, Type

MOTION, FORCE, JOINT = Type.MOTION, Type.FORCE, Type.JOINT
INERTIA, BLOCK, FACTOR, TRANSFER = Type.INERTIA, Type.BLOCK, Type.FACTOR, Type.TRANSFER
ANGULAR_ACCELERATION_MATRIX = Type.ANGULAR_ACCELERATION_MATRIX
NUMBER, TOTAL, GROUND_FORCE = Type.NUMBER, Type.TOTAL, Type.GROUND_FORCE
WORLD_MOTION = Type.WORLD_MOTION
POINT, PLANE, GROUND_POINT, PLACE = Type.POINT, Type.PLANE, Type.GROUND_POINT, Type.PLACE
INWARD, OUTWARD = Direction.INWARD, Direction.OUTWARD


class Support(Enum):
    """The links at which a result may be other than zero."""

    EVERYWHERE = "every link, whatever the operands are"
    UNION = "where one of the operands is not zero"
    INTERSECTION = "where no operand is zero"


class Reduction(Enum):
    """The links whose values are added up to one value at the ground."""

    ROOTS = "links whose parent is the ground"
    LINKS = "all links"


@dataclass(frozen=True)
class Op:
    """An operation on streams.

    Attributes:
        name: Its name.
        signatures: Types of operands and result, for each overload.
        meaning: What it is, in one line.
        text: How it is printed; {0}, {1}, ... are its operands.
        shift: The direction in which values cross a joint: operands belong to the children, whose
            results are added up, or to the parent. None if operands belong to the same link.
        reduction: The links over which it adds up values; the sum is at the ground, not at a link.
            It suits sweeps of either direction.
        linear: Whether it is linear in its last operand, so that sums of it are collected.
        support: Where it may be other than zero, given where its operands may.
        is_variadic: Whether it takes any number of operands, all of the type of the result.
        is_input: Whether it comes from outside, under the name that is its data.
        is_given: Whether it is known before the first sweep.
        only_at_roots: Whether it is zero at links whose parent is not the ground.
        is_infix: Whether its text needs parentheses as an operand.
        is_dense: Whether it takes a matrix times a vector or more, for estimates of work.
        divides: Whether it divides by the joint inertia D.
        needs_rotors: Whether it is zero at joints without rotors.
        is_scalar_only: Whether it is made after lowering, for scalar programs alone.
        value: Its value in NumPy, from the link (at the ground: the robot) and the operands; see
            ``sweeps.op_values``.
        cost: Its cost at a link, of a shift for one joint; see ``sweeps.op_costs``.
        crossing: What happens at the joint, if something crosses it.
    """

    name: str
    signatures: tuple[OpSignature, ...]
    meaning: str
    text: str = ""
    shift: Direction | None = None
    reduction: Reduction | None = None
    linear: bool = False
    support: Support = Support.INTERSECTION
    is_variadic: bool = False
    is_input: bool = False
    is_given: bool = False
    only_at_roots: bool = False
    is_infix: bool = False
    is_dense: bool = False
    divides: bool = False
    needs_rotors: bool = False
    is_scalar_only: bool = False
    value: Callable[..., Array] | None = None
    cost: Callable[..., OperationCount] | None = None
    crossing: str = ""

    @property
    def is_free(self) -> bool:
        """Whether it takes no operations: it is given, or but another name."""
        return self.cost is None and not self.is_variadic

    def evaluate(self, link: OneLink | GroundState, *operands: Array) -> Array:
        """The value at a link or at the ground; of a shift, what crosses the link's joint."""
        assert self.value is not None, f"the operation {self.name!r} has no value of its own"
        return self.value(link, *operands)

    def count(self, link: LinkType, *operands: Operand) -> OperationCount:
        """The cost at a link; of a shift, for one joint."""
        assert self.cost is not None, f"the operation {self.name!r} has no cost of its own"
        return self.cost(link, *operands)

    def result(self, operands: tuple[Type, ...]) -> Type:
        """The type of the result; of two overloads with these operands the first one's."""
        found = next((s.result for s in self.signatures if s.operands == operands), None)
        assert found is not None, f"{self.name} does not take {[each.name for each in operands]}"
        return found

    def accepts(self, operands: tuple[Type, ...], result: Type) -> bool:
        """Whether there is an overload with these types."""
        if self.is_variadic:
            return bool(operands) and all(each is result for each in operands)
        return any(s.result is result and s.operands == operands for s in self.signatures)


_ROWS = (
    # -- statements of the language: without a value of their own
    Op(
        "leaf",
        (() >> MOTION, () >> FORCE, () >> JOINT),
        "given from outside: a vector over joints or links",
        support=Support.EVERYWHERE,
        is_input=True,
        is_given=True,
    ),
    Op(
        "scatter",
        (() >> FORCE,),
        "forces on chosen frames, given from outside, as forces on their links",
        support=Support.EVERYWHERE,
        is_input=True,
        is_given=True,
    ),
    Op(
        "rigid",
        (() >> INERTIA,),
        "the links' own inertias M",
        "M",
        support=Support.EVERYWHERE,
        is_given=True,
    ),
    Op(
        "mass_point",
        (() >> POINT,),
        "the links as weighted points: first moment and mass",
        "μ",
        support=Support.EVERYWHERE,
        is_given=True,
    ),
    *(
        Op(
            f"coordinate_{axis}",
            (() >> PLANE,),
            f"the world's coordinate {axis} at the roots, as a function of place there",
            f"e_{axis}",
            support=Support.EVERYWHERE,
            is_given=True,
            only_at_roots=True,
        )
        for axis in "xyz"
    ),
    Op(
        "ground_point",
        (() >> GROUND_POINT,),
        "the links that are welded to the ground, as one weighted point",
        "μ₀",
        support=Support.EVERYWHERE,
        is_given=True,
    ),
    Op(
        "zero",
        (
            *(() >> each for each in (MOTION, FORCE, JOINT, INERTIA, TRANSFER)),
            *(() >> each for each in (POINT, PLANE, WORLD_MOTION, *GROUND_COMPONENTS)),
        ),
        "zero of any type",
        "0",
        support=Support.UNION,
        is_given=True,
    ),
    Op(
        "rec",
        (*(() >> each for each in Type),),
        "a stream that is defined later, so that it may depend on itself across links",
        support=Support.UNION,
    ),
    Op(
        "sum",
        (),
        "a linear combination of streams of one type",
        support=Support.UNION,
        is_variadic=True,
        is_infix=True,
    ),
    Op(
        "select",
        ((MOTION, MOTION) >> MOTION,),
        "columns of the first stream, and of the second where the first has none",
        "{0} for columns beyond k, {1} for the others",
        support=Support.UNION,
    ),
    # -- at one link
    Op(
        "H",
        (FORCE >> JOINT, MOTION >> JOINT),
        "onto the joint axes",
        "H {0}",
        linear=True,
        value=value.project,
        cost=cost.projection,
        crossing="H x            joint force of a force x = [n; f], moment and force",
    ),
    Op(
        "Ht",
        (JOINT >> MOTION, JOINT >> FORCE),
        "from the joint axes",
        "H* {0}",
        linear=True,
        value=value.expand,
        cost=cost.expansion,
        crossing="H* x           the motion of the link when its joint moves by x",
    ),
    Op(
        "Ax",
        (JOINT >> JOINT,),
        "rotor inertias A times a joint vector",
        "A {0}",
        linear=True,
        needs_rotors=True,
        value=value.rotor_product,
        cost=cost.rotor_product,
    ),
    Op(
        "inertia",
        (
            (INERTIA, MOTION) >> FORCE,
            (INERTIA, FORCE) >> MOTION,
            (TRANSFER, MOTION) >> FORCE,
            (TRANSFER, MOTION) >> MOTION,
        ),
        "an inertia, a compliance or a transfer times a vector",
        "{0} {1}",
        linear=True,
        is_dense=True,
        value=value.multiply,
        cost=cost.product,
    ),
    Op(
        "inertia_t",
        ((TRANSFER, MOTION) >> FORCE, (TRANSFER, FORCE) >> FORCE),
        "the adjoint of a transfer times a vector",
        "{0}* {1}",
        linear=True,
        value=value.multiply_adjoint,
        cost=cost.fixed(OperationCount(18, 15)),
    ),
    Op(
        "crm",
        ((MOTION, MOTION) >> MOTION,),
        "the cross product of two motions",
        "{0} × {1}",
        is_infix=True,
        is_dense=True,
        value=value.cross_motion,
        cost=cost.fixed(cost.CROSS_PRODUCT_COST),
    ),
    Op(
        "crf",
        ((MOTION, FORCE) >> FORCE,),
        "the cross product of a motion and a force",
        "{0} ×* {1}",
        is_infix=True,
        is_dense=True,
        value=value.cross_force,
        cost=cost.fixed(cost.CROSS_PRODUCT_COST),
    ),
    Op(
        "gyro",
        (MOTION >> TRANSFER,),
        "M̂ = ½(V ×* M - M V × - Q[MV]), the bilinear gyroscopic force of a link",
        "M̂({0})",
        support=Support.EVERYWHERE,
        value=value.gyroscopic,
        cost=cost.fixed(cost.GYROSCOPIC_COST),
    ),
    Op(
        "to_world",
        ((PLANE, PLANE, PLANE, MOTION) >> WORLD_MOTION,),
        "X₀ x: a motion in the axes of the world, by the rows of the link's pose",
        "X₀({0}, {1}, {2}) {3}",
        linear=True,
        support=Support.UNION,
        is_dense=True,
        value=value.to_world,
        cost=cost.fixed(cost.FORCE_SHIFT_COST),
    ),
    # -- across a joint that yields
    Op(
        "U",
        (INERTIA >> BLOCK,),
        "P H*: the force that holds a unit acceleration of the joint",
        "{0} H*",
        support=Support.EVERYWHERE,
        value=value.joint_block,
        cost=cost.joint_block,
    ),
    Op(
        "D",
        (BLOCK >> FACTOR,),
        "H U + A, factored: the inertia that the joint sees",
        "H {0} + A",
        support=Support.EVERYWHERE,
        value=value.joint_inertia,
        cost=cost.joint_inertia,
    ),
    Op(
        "G",
        ((BLOCK, FACTOR) >> BLOCK,),
        "U D⁻¹: the gain of the joint",
        "{0} {1}⁻¹",
        support=Support.EVERYWHERE,
        divides=True,
        value=value.gain,
        cost=cost.gain,
    ),
    Op(
        "Gx",
        ((BLOCK, JOINT) >> FORCE,),
        "G times a joint vector",
        "{0} {1}",
        linear=True,
        is_dense=True,
        value=value.multiply,
        cost=cost.gain_product,
    ),
    Op(
        "Gtx",
        ((BLOCK, MOTION) >> JOINT,),
        "G* times a motion",
        "{0}* {1}",
        linear=True,
        is_dense=True,
        value=value.multiply_adjoint,
        cost=cost.per_freedom(OperationCount(6, 5)),
    ),
    Op(
        "Dx",
        ((FACTOR, JOINT) >> JOINT,),
        "D times a joint vector",
        "{0} {1}",
        linear=True,
        is_dense=True,
        value=value.multiply,
        cost=cost.joint_product,
    ),
    Op(
        "Dsolve",
        ((FACTOR, JOINT) >> JOINT,),
        "D⁻¹ times a joint vector",
        "{0}⁻¹ {1}",
        linear=True,
        is_dense=True,
        divides=True,
        value=value.solve_joint_inertia,
        cost=cost.joint_product,
    ),
    Op(
        "articulated_downdate",
        ((INERTIA, BLOCK, BLOCK) >> INERTIA,),
        "P - G U*: the inertia that the parent sees across the joint",
        "{0} - {2} {1}*",
        support=Support.EVERYWHERE,
        value=value.articulated_downdate,
        cost=cost.per_freedom(OperationCount(21, 21)),
        crossing="P⁺ = P - G U*  remainder of P across a free joint: U = P H*, G = U D⁻¹",
    ),
    Op(
        "inertia_rate",
        ((MOTION, INERTIA) >> INERTIA,),
        "x ×* S - S x ×: how an inertia changes as it moves by x",
        "{0} ×* {1} - {1} {0} ×",
        value=value.inertia_rate,
        cost=cost.fixed(cost.INERTIA_RATE_COST),
        crossing="δ ×* P⁺ - P⁺ δ ×   rate of P⁺ in the axes of the parent as the joint moves by δ",
    ),
    Op(
        "congruence_across",
        ((INERTIA, BLOCK) >> INERTIA,),
        "(I - G H) S (I - G H)*: what is left of a change of inertia across the joint",
        "(I - {1} H) {0} (I - {1} H)*",
        value=value.congruence_across,
        cost=cost.congruence_across,
        crossing="(I - G H) and its adjoint on both sides: a rate of inertia across the joint",
    ),
    Op(
        "project_across",
        ((TRANSFER, BLOCK) >> TRANSFER,),
        "S - G H S: a transfer across the joint, from the left",
        "{0} - {1} H {0}",
        value=value.project_across,
        cost=cost.project_across,
    ),
    Op(
        "compliance_update",
        ((INERTIA, BLOCK, FACTOR) >> INERTIA,),
        "(I - G H)* S (I - G H) + H* D⁻¹ H: a compliance across the joint",
        "(I - {1} H)* {0} (I - {1} H) + H* {2}⁻¹ H",
        support=Support.EVERYWHERE,
        divides=True,
        value=value.compliance_update,
        cost=cost.compliance_update,
        crossing="(I - G H) and its adjoint on both sides: a compliance across a free joint",
    ),
    Op(
        "bias_gain",
        ((TRANSFER, TRANSFER, BLOCK, FACTOR) >> BLOCK,),
        "N* H* D⁻¹ - S* G: the part of the bias N that S has not taken across yet",
        "{0}* H* {3}⁻¹ - {1}* {2}",
        support=Support.EVERYWHERE,
        divides=True,
        value=value.bias_gain,
        cost=cost.bias_gain,
    ),
    Op(
        "transfer_update",
        ((TRANSFER, BLOCK) >> TRANSFER,),
        "S + H* B*: motions per motion across the joint, B a joint block",
        "{0} + H* {1}*",
        support=Support.EVERYWHERE,
        value=value.transfer_update,
        cost=cost.transfer_update,
        crossing="S + H* B*      a free joint adds its own motion",
    ),
    # -- from link to link
    Op(
        "shift_out",
        (MOTION >> MOTION,),
        "φ* x of the parent: motions one link outward",
        "φ*(p,k) {0}(p)",
        shift=OUTWARD,
        linear=True,
        support=Support.UNION,
        is_dense=True,
        value=value.shift_out,
        cost=cost.fixed(cost.FORCE_SHIFT_COST),
        crossing="φ*(p,k) y      a motion, parent to link: by the joint's placement, then X(q)",
    ),
    Op(
        "shift_in",
        (FORCE >> FORCE,),
        "Σ over children of φ x: forces one link inward",
        "Σ φ(k,j) {0}(j)",
        shift=INWARD,
        linear=True,
        support=Support.UNION,
        is_dense=True,
        value=value.shift_in,
        cost=cost.fixed(cost.FORCE_SHIFT_COST),
        crossing="φ(k,j) x       a force, child to link: by the inverse of the same transform",
    ),
    Op(
        "congruence_in",
        (INERTIA >> INERTIA, TRANSFER >> TRANSFER),
        "Σ over children of φ S φ*: inertias one link inward",
        "Σ φ(k,j) {0}(j) φ*(k,j)",
        shift=INWARD,
        linear=True,
        support=Support.UNION,
        is_dense=True,
        value=value.congruence_in,
        cost=cost.congruence_in,
        crossing="φ(k,j) S φ*    an inertia, child to link: moved on both sides",
    ),
    Op(
        "congruence_out",
        (INERTIA >> INERTIA,),
        "φ* S φ of the parent: compliances one link outward",
        "φ*(p,k) {0}(p) φ(p,k)",
        shift=OUTWARD,
        support=Support.UNION,
        is_dense=True,
        value=value.congruence_out,
        cost=cost.fixed(cost.INERTIA_SHIFT_COST),
        crossing="φ* S φ         a compliance, parent to link: moved on both sides",
    ),
    Op(
        "similarity_out",
        (TRANSFER >> TRANSFER,),
        "φ* S φ*⁻¹ of the parent: motions per motion one link outward",
        "φ*(p,k) {0}(p) φ*⁻¹(p,k)",
        shift=OUTWARD,
        support=Support.UNION,
        is_dense=True,
        value=value.similarity_out,
        cost=cost.fixed(cost.TRANSFER_SHIFT_COST),
        crossing="φ* S φ*⁻¹      motions per motion, parent to link",
    ),
    Op(
        "point_in",
        (POINT >> POINT,),
        "Σ over children of Eπ x: weighted points one link inward",
        "Σ π(k,j) {0}(j)",
        shift=INWARD,
        linear=True,
        support=Support.UNION,
        is_dense=True,
        value=value.point_in,
        cost=cost.fixed(cost.POINT_SHIFT_COST),
        crossing="π(k,j) x       a weighted point [h; m], child to link: h turned, m p added",
    ),
    Op(
        "plane_out",
        (PLANE >> PLANE,),
        "Eπ* y of the parent: functions of place one link outward",
        "π*(p,k) {0}(p)",
        shift=OUTWARD,
        linear=True,
        support=Support.UNION,
        is_dense=True,
        value=value.plane_out,
        cost=cost.fixed(OperationCount(12, 9)),
        crossing="π*(p,k) y      a function of place [n; d], parent to link: n turned, n · p added",
    ),
    # -- from links to the ground
    Op(
        "link_energy",
        (MOTION >> NUMBER,),
        "½ x* M x: the kinetic energy of a link that moves by x",
        "½ {0}* M {0}",
        is_dense=True,
        value=value.link_energy,
        cost=cost.fixed(cost.LINK_ENERGY_COST),
    ),
    Op(
        "rotor_energy",
        (JOINT >> NUMBER,),
        "½ x* A x: the kinetic energy of the rotors of a joint that moves by x",
        "½ {0}* A {0}",
        needs_rotors=True,
        value=value.rotor_energy,
        cost=cost.rotor_energy,
    ),
    Op(
        "dot",
        ((MOTION, FORCE) >> NUMBER, (FORCE, MOTION) >> NUMBER, (JOINT, JOINT) >> NUMBER),
        "the product of two vectors at a link",
        "{0}* {1}",
        linear=True,
        value=value.dot,
        cost=cost.dot,
    ),
    Op(
        "total",
        (NUMBER >> TOTAL,),
        "Σ over all links: a number of the whole robot",
        "Σ {0}",
        reduction=Reduction.LINKS,
        linear=True,
        value=value.unchanged,
        cost=cost.fixed(OperationCount(0, 1)),
    ),
    Op(
        "to_ground",
        (FORCE >> GROUND_FORCE,),
        "Σ over the roots of φ x: forces on the ground, about the world's origin",
        "Σ φ(0,r) {0}(r)",
        reduction=Reduction.ROOTS,
        linear=True,
        is_dense=True,
        value=value.shift_in,
        cost=cost.fixed(cost.FORCE_SHIFT_COST + OperationCount(0, 6)),
        crossing="φ(0,r) x       a force, root to ground: like one from child to link",
    ),
    Op(
        "point_to_ground",
        (POINT >> GROUND_POINT,),
        "Σ over the roots of Eπ₀ x: weighted points in the world",
        "Σ π(0,r) {0}(r)",
        reduction=Reduction.ROOTS,
        linear=True,
        is_dense=True,
        value=value.point_in,
        cost=cost.fixed(cost.POINT_SHIFT_COST + OperationCount(0, 4)),
        crossing="π(0,r) x       a weighted point, root to world: like one from child to link",
    ),
    # -- at the ground, of the robot as a whole
    Op(
        "weigh",
        (GROUND_POINT >> TOTAL,),
        "-g · h: the potential energy of a weighted point",
        "w₀ {0}",
        linear=True,
        value=value.weigh,
        cost=cost.fixed(OperationCount(3, 2)),
    ),
    Op(
        "center",
        (GROUND_POINT >> PLACE,),
        "h / m: the place of a point that weighs as much as all links",
        "c₀ {0}",
        linear=True,
        value=value.center,
        cost=cost.fixed(OperationCount(3)),
    ),
    Op(
        "moving_center",
        (GROUND_POINT >> PLACE,),
        "h / m: the place of a point that weighs as much as the links that move",
        "c₁ {0}",
        linear=True,
        value=value.moving_center,
        cost=cost.fixed(OperationCount(3)),
    ),
    # -- classical accelerations: see sweeps.classical_accelerations
    Op(
        "shift_out_classical",
        ((MOTION, ANGULAR_ACCELERATION_MATRIX) >> MOTION,),
        "a classical acceleration of the parent one link outward",
        "φ*(p,k) ({0}(p), {1}(p))",
        shift=OUTWARD,
        support=Support.UNION,
        is_dense=True,
        is_scalar_only=True,
        value=value.shift_out_classical,
        cost=cost.fixed(OperationCount(27, 21)),
    ),
    Op(
        "joint_bias",
        ((MOTION, MOTION) >> MOTION,),
        "what the joint's rate adds to a classical acceleration",
        "bias({0}, {1})",
        support=Support.EVERYWHERE,
        is_scalar_only=True,
        value=value.joint_bias,
        cost=cost.fixed(OperationCount(21, 12)),
    ),
    Op(
        "angular_acceleration_matrix",
        ((MOTION, MOTION) >> ANGULAR_ACCELERATION_MATRIX,),
        "α~ + ω~ω~: the accelerations of the points of a turning body",
        "α~({1}) + ω~({0})²",
        support=Support.UNION,
        is_scalar_only=True,
        value=value.angular_acceleration_matrix,
        cost=cost.fixed(OperationCount(6, 9)),
    ),
    Op(
        "rigid_force",
        ((MOTION, ANGULAR_ACCELERATION_MATRIX) >> FORCE,),
        "the force of a rigid body with a classical acceleration",
        "M({0}, {1})",
        support=Support.UNION,
        is_scalar_only=True,
        value=value.rigid_force,
        cost=cost.fixed(OperationCount(33, 30)),
    ),
)

OPS: dict[str, Op] = {row.name: row for row in _ROWS}
"""The operations by name."""

# SPDX-License-Identifier: BSD-3-Clause
"""How a link hangs on its parent, as scalars, and what formulas of joint kinds call there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from phistar.model.joints.number_ops import JointRotation, QuaternionTurn, Turn
from phistar.scalar.graph import Scalar, cos, sin, sqrt
from phistar.scalar.linear.elementary import HalfAngle, quaternion_log
from phistar.scalar.linear.vectors import (
    AxisRotation,
    DenseRotation,
    Matrix,
    Rotation,
    RotationFactor,
    SignedPermutation,
    Vector,
    plus,
    times,
)
from phistar.scalar.robot.link_scalars import LinkScalars
from phistar.spatial.entries import quaternion_matrix

CoordinateReader = Callable[[int], Scalar]


def factor_rotation(R: Matrix) -> tuple[RotationFactor, ...]:
    """A rotation as the cheapest factors that its known entries allow."""
    whole = [[x if x in (0.0, 1.0, -1.0) else None for x in row] for row in R]
    if all(x is not None for row in whole for x in row):
        return _signed_permutation(R)
    for axis in range(3):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        # The cosine of a small angle is 1 to rounding, so the diagonal alone does not tell.
        if all(whole[axis][k] == whole[k][axis] == float(k == axis) for k in range(3)):
            return (AxisRotation(axis, R[i][i], R[j][i]),)
    if whole[2][0] == 0.0:
        return (AxisRotation(2, R[0][0], R[1][0]), AxisRotation(0, R[2][2], R[2][1]))
    return (DenseRotation(R),)


def _signed_permutation(R: Matrix) -> tuple[RotationFactor, ...]:
    """A rotation by right angles; no factor for none."""
    places = [next(j for j in range(3) if row[j]) for row in R]
    signs = [R[i][j] for i, j in enumerate(places)]
    straight = places == [0, 1, 2] and all(sign == 1.0 for sign in signs)
    return () if straight else (SignedPermutation(tuple(places), tuple(signs)),)  # type: ignore[arg-type]


CosSin = Callable[[Scalar], tuple[Scalar, Scalar]]


def cosine_and_sine(angle: Scalar) -> tuple[Scalar, Scalar]:
    """Computed on the spot."""
    return cos(angle), sin(angle)


@dataclass(frozen=True)
class GraphOps:
    """What formulas of joints call, on scalars.

    Attributes:
        cos_sin: Cosine and sine of an angle.
    """

    cos_sin: CosSin = cosine_and_sine

    def sqrt(self, x: Scalar) -> Scalar:
        """Square root."""
        return sqrt(x)

    def arc(self, square: Scalar) -> HalfAngle:
        """Functions of the angle with this square."""
        return HalfAngle(square)

    def wrapped(self, angle: Scalar) -> Scalar:
        """An angle less whole turns: the logarithm of its quaternion."""
        cosine, sine = self.cos_sin(0.5 * angle)
        return quaternion_log([0.0, 0.0, sine, cosine])[2]

    def rotation_vector(self, quaternion: Sequence[Scalar]) -> Vector:
        """The logarithm of a unit quaternion xyzw, the shorter way round."""
        return quaternion_log(quaternion)

    def cotangent_defect(self, square: Scalar) -> Scalar:
        """(1 - (θ/2) cot(θ/2)) / θ² of the angle with this square, for products with θ²."""
        return HalfAngle(square).cotangent_defect


GRAPH_OPS = GraphOps()


def joint_transform(
    link: LinkScalars, q: CoordinateReader, cos_sin: CosSin = cosine_and_sine
) -> tuple[Rotation, Vector]:
    """Rotation and offset of a link in its parent.

    Args:
        link: The link.
        q: Its joint's coordinates by number.
        cos_sin: Cosine and sine of an angle.
    """
    kind = link.joint_kind
    own = [link.scale * q(i) + link.offset for i in range(kind.nq)]
    turns, moved = kind.placement(own, GraphOps(cos_sin))
    p = plus(link.p, times(link.R, list(moved)))
    if kind.turns_about_axis:
        turns = _with_angle(turns, link.angle_offset)
    factors = [_factor(each, cos_sin) for each in turns]
    return Rotation(_merge_rotation(factor_rotation(link.R), tuple(factors))), p


def _with_angle(turns: JointRotation, angle: Scalar) -> JointRotation:
    """A turn about z and then those of a joint that turns about z."""
    first, *others = turns or (Turn(2, 0.0),)
    if isinstance(first, Turn) and first.axis == 2:
        return (Turn(2, first.angle + angle), *others)
    return (Turn(2, angle), *turns)


def _factor(factor: Turn | QuaternionTurn, cos_sin: CosSin) -> RotationFactor:
    if isinstance(factor, Turn):
        return AxisRotation(factor.axis, *cos_sin(factor.angle))
    return DenseRotation(quaternion_matrix(list(factor.quaternion)))


def _merge_rotation(
    fixed: tuple[RotationFactor, ...], turns: tuple[RotationFactor, ...]
) -> tuple[RotationFactor, ...]:
    """A dense constant rotation and a turn about z are one dense matrix."""
    if turns and len(fixed) == 1 and isinstance(fixed[0], DenseRotation):
        turn, *others = turns
        if isinstance(turn, AxisRotation) and turn.axis == 2:
            c, s = turn.c, turn.s
            rows = [[x * c + y * s, y * c - x * s, z] for x, y, z in fixed[0].rows]
            return (DenseRotation(rows), *others)
    return (*fixed, *turns)

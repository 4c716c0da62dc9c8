# SPDX-License-Identifier: BSD-3-Clause
"""A robot's links as the scalar level sees them: numbers in frames of our own choice.

A link frame may be turned and slid along its own joint axis without changing any joint's force or
motion. We turn every axis to z, and then choose what makes most constants vanish:

    file    the file's frame, its axis turned to z
    normal  the origin on the common normal with the parent's axis, x along the one to the first
            child or along the mass of a tip: placements become a turn about x and an offset with
            one zero, all of the same form
    square  the same, but x as in the file where all axes are at right angles anyway

``body_placement`` takes our coordinates back to the file's. Vectors over links cross it at the
border.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND
from phistar.model.fast_init import fast_init
from phistar.model.joints import Fixed, JointKind
from phistar.model.joints.kind import Columns
from phistar.model.model import Model
from phistar.model.singular import pivot_thresholds
from phistar.scalar.robot.frame_choice import (
    axis_slides,
    move_twist_to_joint,
    rotations_to_z,
    x_alignments,
)
from phistar.scalar.robot.link_arrays import LinkArrays
from phistar.scalar.robot.regroup import regroup_inertia
from phistar.scalar.robot.rounding import (
    ROUNDING_TOLERANCE,
    merge_close_numbers,
    snap_to_quarter_turns,
    snap_to_units,
    snap_to_zero,
)
from phistar.spatial.reproducible_products import matvec, product

_UPPER_TRIANGLE = np.triu_indices(3)


class FlatLayout:
    """Where the numbers of a link stand in ``LinkNumbers.flat_numbers``, by their names there.

    The parameters of the joint kind follow, then the placement in the body, R and p, then armature
    and least pivots: how many these are depends on the kind.
    """

    R = slice(0, 9)
    p = slice(9, 12)
    mass = 12
    h = slice(13, 16)
    J = slice(16, 22)
    E = slice(22, 25)
    scale = 25
    offset = 26
    angle_offset = 27
    parameters = 28


@fast_init
@dataclass(frozen=True)
class Placement:
    """A placement: rotation (3, 3) and offset (3,), child to parent."""

    R: Array = field(default_factory=lambda: np.eye(3))
    p: Array = field(default_factory=lambda: np.zeros(3))

    def __matmul__(self, other: Placement) -> Placement:
        return Placement(product(self.R, other.R), matvec(self.R, other.p) + self.p)

    @property
    def inverse(self) -> Placement:
        """The parent in the child."""
        return Placement(self.R.T, -matvec(self.R.T, self.p))


@fast_init
@dataclass(frozen=True)
class LinkNumbers:
    """One body.

    Attributes:
        index, parent: Numbers; the ground is -1.
        joint_kind: Kind of the joint about z, its parameters apart.
        parameters: Those of the kind, e.g. the pitch of a helical joint [m/rad].
        columns: Joint map H*: for each joint velocity the (axis, factor) pairs it moves along.
        placement: Placement of the joint in the parent link.
        mass, h, J: Inertia about the link's origin.
        E: Sums of mass times x², y² and z²: tr J/2 - J, its diagonal.
        armature: Rotor inertia per joint velocity.
        min_pivots: What D is called rounding below, per joint velocity; zero where D has to be
            greater.
        q: First coordinate in configurations.
        v: First entry in joint vectors, which list the joints of free bodies in their order.
        scale, offset: Displacement = scale q + offset, for joints that follow others.
        rotate_frames: Angle added to the joint's own.
        body_placement: The link frame in the body frame of the model.
    """

    index: int
    parent: int
    joint_kind: JointKind
    parameters: tuple[float, ...]
    columns: Columns
    placement: Placement
    mass: float
    h: Array
    J: Array
    E: Array
    armature: tuple[float, ...]
    min_pivots: tuple[float, ...]
    q: int
    v: int
    scale: float
    offset: float
    angle_offset: float
    body_placement: Placement

    @property
    def kind(self) -> str:
        """Name of the joint kind."""
        return self.joint_kind.name

    @property
    def size(self) -> int:
        """Number of joint velocities."""
        return len(self.columns)

    @cached_property
    def flat_numbers(self) -> list[float]:
        """All numbers in a fixed order, see ``FlatLayout``."""
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = self.J.tolist()
        frame, seat = self.placement, self.body_placement
        return [
            *frame.R.ravel().tolist(), *frame.p.tolist(),
            float(self.mass), *self.h.tolist(), xx, xy, xz, yy, yz, zz, *self.E.tolist(),
            float(self.scale), float(self.offset), float(self.angle_offset), *self.parameters,
            *seat.R.ravel().tolist(), *seat.p.tolist(),
            *map(float, self.armature), *map(float, self.min_pivots),
        ]  # fmt: skip


def build_link_numbers(
    model: Model,
    frames: str = "normal",
    regroup: str = "",
    snap: float = ROUNDING_TOLERANCE,
    locked: frozenset[int] = frozenset(),
) -> list[LinkNumbers]:
    """The links of a model.

    Args:
        model: The robot.
        frames: ``"file"``, ``"normal"`` or ``"square"``.
        regroup: Move inertia that a joint cannot feel to the parent link. Only for programs whose
            outputs are all over the joints. Revolute links keep no J_yy (``"line"``) or no second
            moment E_zz (``"flat"``); ``""`` leaves all as it is.
        snap: Rotations closer than this to a right angle become one, offsets [m] smaller than this
            and moments of a link smaller than this share of its largest one become zero. The
            default only removes rounding, and makes numbers equal that differ by rounding, see
            ``rounding``; 0 leaves all numbers as they come.
        locked: Bodies whose joints do not move freely: they have no joint velocities.
    """
    if not model.bodies:
        return []
    draft = LinkArrays(model, locked)
    draft.rotate_frames(rotations_to_z(model, draft))
    if frames != "file":
        keep = snap if frames == "square" else None
        draft.slide_frames(axis_slides(draft))
        draft.rotate_frames(x_alignments(draft, keep))
        move_twist_to_joint(draft, keep)
    if regroup:
        regroup_inertia(draft, regroup == "flat")
    draft.update_scales()
    return _merge_rounding(model, draft, snap)


def placement_in_link(links: Sequence[LinkNumbers], body: int, pose: Array) -> Placement:
    """A pose (4, 4) in the frame of a model's body, as seen from our link; without rounding."""
    given = Placement(pose[:3, :3], pose[:3, 3])
    here = given if body == GROUND else links[body].body_placement.inverse @ given
    reach = max(1.0, float(np.abs(pose[:3, 3]).max()))
    return Placement(
        snap_to_units(here.R, ROUNDING_TOLERANCE), snap_to_zero(here.p, ROUNDING_TOLERANCE * reach)
    )


def frame_as_link(index: int, parent: int, frame: Placement) -> LinkNumbers:
    """A frame on a link, as a link of its own that does not move on it and weighs nothing."""
    return LinkNumbers(
        index=index,
        parent=parent,
        joint_kind=Fixed(),
        parameters=(),
        columns=(),
        placement=frame,
        mass=0.0,
        h=np.zeros(3),
        J=np.zeros((3, 3)),
        E=np.zeros(3),
        armature=(),
        min_pivots=(),
        q=0,
        v=0,
        scale=1.0,
        offset=0.0,
        angle_offset=0.0,
        body_placement=Placement(),
    )


def frames_as_links(
    links: Sequence[LinkNumbers], model: Model, frames: Sequence[str]
) -> list[LinkNumbers]:
    """Frames as links that hang on others without a joint."""
    found = []
    for number, name in enumerate(frames):
        frame = model.frame(name)
        place = placement_in_link(links, frame.body, frame.body_pose)
        found.append(frame_as_link(len(links) + number, frame.body, place))
    return found


def _second_moments(J: Array) -> Array:
    """Sums (links, 3) of mass times x², y² and z²."""
    x, y, z = J[:, 0, 0], J[:, 1, 1], J[:, 2, 2]
    half = (x + y + z) / 2
    return np.stack([half - x, half - y, half - z], axis=-1)


def _merge_rounding(model: Model, draft: LinkArrays, snap: float) -> list[LinkNumbers]:
    """Links whose numbers do not depend on how they were rounded, see ``rounding``.

    Args:
        model: The robot.
        draft: Its links as they came out of moving frames.
        snap: As in ``build_link_numbers``.
    """
    fine = min(snap, ROUNDING_TOLERANCE)
    first, second = _rounding_scales(draft)
    turns = snap_to_units(np.stack([draft.R, draft.body_R], axis=1), snap)
    places = np.stack([draft.p, draft.body_p], axis=1)
    reach = np.abs(places).max(axis=(1, 2), keepdims=True)
    places = snap_to_zero(places, np.maximum(snap, fine * reach))
    h = snap_to_zero(draft.h, snap * first)
    J = (draft.J + draft.J.swapaxes(-1, -2)) / 2
    J = merge_close_numbers(snap_to_zero(J, snap * second), second, fine)
    total = second[:, 0, :1]
    E = snap_to_zero(_second_moments(J), snap * total)
    turns, places = merge_close_numbers(turns, 1.0, fine), merge_close_numbers(places, reach, fine)
    scales = np.concatenate([second.reshape(-1, 9), total, total, total], axis=1)
    moments = merge_close_numbers(np.concatenate([J.reshape(-1, 9), E], axis=1), scales, fine)
    J, E = moments[:, :9].reshape(-1, 3, 3), moments[:, 9:]
    h = merge_close_numbers(h, first, fine)
    masses = merge_close_numbers(draft.mass, 0.0, fine)
    angles = merge_close_numbers(snap_to_quarter_turns(draft.angle, snap), 1.0, fine)
    return _link_numbers_of(model, draft, turns, places, masses, h, J, E, angles)


def _link_numbers_of(
    model: Model,
    draft: LinkArrays,
    turns: Array,
    places: Array,
    masses: Array,
    h: Array,
    J: Array,
    E: Array,
    angles: Array,
) -> list[LinkNumbers]:
    """The links of settled numbers, their ``flat_numbers`` made for all at once."""
    bodies = model.bodies
    given = np.array([(b.scale, b.offset) for b in bodies], dtype=float)
    table = np.concatenate(
        [
            turns[:, 0].reshape(-1, 9), places[:, 0], masses[:, None], h,
            J[:, _UPPER_TRIANGLE[0], _UPPER_TRIANGLE[1]], E, given, angles[:, None],
            turns[:, 1].reshape(-1, 9), places[:, 1],
        ],
        axis=1,
    )  # fmt: skip
    links: list[LinkNumbers] = []
    given_kinds = {
        id(kind): (kind.columns(), tuple(float(getattr(kind, name)) for name in kind.parameters))
        for kind in {id(body.joint_kind): body.joint_kind for body in bodies}.values()
    }
    least = pivot_thresholds(model)
    v = 0
    rows = zip(
        bodies, draft.kinds, draft.is_free, table.tolist(), turns[:, 0], places[:, 0], h, J, E,
        turns[:, 1], places[:, 1], strict=True,
    )  # fmt: skip
    for body, kind, free, row, R, p, first, second, squares, seat_R, seat_p in rows:
        armature = body.armature if free else ()
        pivots = least.get(body.index, (0.0,) * body.joint_kind.nv) if free else ()
        columns, parameters = given_kinds[id(body.joint_kind)]
        columns = columns if free else ()
        link = LinkNumbers(
            body.index, body.parent, kind, parameters, columns, Placement(R, p),
            row[FlatLayout.mass], first,
            second, squares, armature, pivots, body.q_slice.start, v, body.scale, body.offset,
            row[FlatLayout.angle_offset], Placement(seat_R, seat_p),
        )  # fmt: skip
        if parameters:
            row[FlatLayout.parameters : FlatLayout.parameters] = parameters
        row += map(float, armature)
        row += pivots
        vars(link)["flat_numbers"] = row
        links.append(link)
        v += len(columns)
    return links


def _rounding_scales(draft: LinkArrays) -> tuple[Array, Array]:
    """What each first moment (links, 3) and second moment (links, 3, 3) was computed from."""
    first = np.repeat(draft.total_scales[:, :1], 3, axis=1)
    first[:, :2] = draft.own_scales[:, :1]
    second = np.repeat(draft.total_scales[:, 1:], 9, axis=1).reshape(-1, 3, 3)
    second[:, 2, 2] = draft.own_scales[:, 1]
    return first, second


def describe_snapping(model: Model, snap: float) -> tuple[str, ...]:
    """What a tolerance changes in a robot beyond rounding: a line for each link that it touches."""
    lines = []
    exact, rough = (
        build_link_numbers(model, "file", snap=each) for each in (ROUNDING_TOLERANCE, snap)
    )
    for body, before, after in zip(model.bodies, exact, rough, strict=True):
        parts = {
            "rotation": (before.placement.R, after.placement.R),
            "offset [m]": (before.placement.p, after.placement.p),
            "first moment [kg m]": (before.h, after.h),
            "inertia [kg m^2]": (before.J, after.J),
        }
        changes = {name: float(np.abs(a - b).max()) for name, (a, b) in parts.items()}
        told = [f"{name} by {change:.1e}" for name, change in changes.items() if change]
        if told:
            lines.append(f"{body.link}: {', '.join(told)}")
    return tuple(lines)

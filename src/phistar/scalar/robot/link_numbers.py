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

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from operator import attrgetter

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
from phistar.scalar.robot.link_arrays import LinkArrays, rows_to_array
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
_SYMMETRIC = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
"""Where the entries of a symmetric matrix stand in its upper triangle."""


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
    """One body. Large robots have very many, so what few of them are asked for is made on demand.

    Attributes:
        index, parent: Numbers; the ground is -1.
        joint_kind: Kind of the joint about z, its parameters apart.
        parameters: Those of the kind, e.g. the pitch of a helical joint [m/rad].
        columns: Joint map H*: for each joint velocity the (axis, factor) pairs it moves along.
        table: (links, 40) numbers of all links of the robot: those of ``FlatLayout`` up to the
            parameters, then the placement in the body, R and p.
        armature: Rotor inertia per joint velocity.
        min_pivots: What D is called rounding below, per joint velocity; zero where D has to be
            greater.
        q: First coordinate in configurations.
        v: First entry in joint vectors, which list the joints of free bodies in their order.
        row: Row in the table.
    """

    index: int
    parent: int
    joint_kind: JointKind
    parameters: tuple[float, ...]
    columns: Columns
    table: Array
    armature: tuple[float, ...]
    min_pivots: tuple[float, ...]
    q: int
    v: int
    row: int

    @property
    def kind(self) -> str:
        """Name of the joint kind."""
        return self.joint_kind.name

    @property
    def size(self) -> int:
        """Number of joint velocities."""
        return len(self.columns)

    @property
    def placement(self) -> Placement:
        """Placement of the joint in the parent link."""
        own = self.table[self.row]
        return Placement(own[FlatLayout.R].reshape(3, 3), own[FlatLayout.p])

    @property
    def body_placement(self) -> Placement:
        """The link frame in the body frame of the model."""
        own = self.table[self.row, FlatLayout.parameters :]
        return Placement(own[:9].reshape(3, 3), own[9:12])

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.table[self.row, FlatLayout.mass])

    @property
    def h(self) -> Array:
        """(3,) first moments about the link's origin."""
        return np.asarray(self.table[self.row, FlatLayout.h])

    @property
    def J(self) -> Array:
        """(3, 3) inertia about the link's origin."""
        return np.asarray(self.table[self.row, FlatLayout.J][_SYMMETRIC])

    @property
    def E(self) -> Array:
        """(3,) sums of mass times x², y² and z²: tr J/2 - J, its diagonal."""
        return np.asarray(self.table[self.row, FlatLayout.E])

    @property
    def scale(self) -> float:
        """Displacement = scale q + offset, for joints that follow others."""
        return float(self.table[self.row, FlatLayout.scale])

    @property
    def offset(self) -> float:
        """See ``scale``."""
        return float(self.table[self.row, FlatLayout.offset])

    @property
    def angle_offset(self) -> float:
        """Angle added to the joint's own."""
        return float(self.table[self.row, FlatLayout.angle_offset])

    @cached_property
    def flat_numbers(self) -> list[float]:
        """All numbers in a fixed order, see ``FlatLayout``."""
        own: list[float] = self.table[self.row].tolist()
        own[FlatLayout.parameters : FlatLayout.parameters] = self.parameters
        return [*own, *map(float, self.armature), *self.min_pivots]


def flat_table(links: Sequence[LinkNumbers]) -> Array:
    """``LinkNumbers.flat_numbers`` of each link, NaN behind those that are shorter."""
    tables = {id(link.table): link.table for link in links}
    numbers = np.concatenate(list(tables.values()))
    if len(tables) == 1:
        rows = np.array([link.row for link in links])
    else:
        starts = dict(zip(tables, [0, *accumulate(map(len, tables.values()))], strict=False))
        rows = np.array([starts[id(link.table)] + link.row for link in links])
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for k, link in enumerate(links):
        groups[len(link.parameters), len(link.armature)].append(k)
    middle = FlatLayout.parameters
    most = max(inner + 2 * outer for inner, outer in groups)
    flat = np.full((len(links), numbers.shape[1] + most), math.nan)
    for (inner, outer), members in groups.items():
        end = numbers.shape[1] + inner
        own = numbers[rows[members]]
        flat[members, :middle] = own[:, :middle]
        flat[members, middle + inner : end] = own[:, middle:]
        for at, width, name in (
            (middle, inner, "parameters"),
            (end, outer, "armature"),
            (end + outer, outer, "min_pivots"),
        ):
            if width:
                values = list(map(attrgetter(name), map(links.__getitem__, members)))
                flat[members, at : at + width] = rows_to_array(values, width)
    return flat


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
    own = np.zeros((1, FlatLayout.parameters + 12))
    own[0, FlatLayout.R], own[0, FlatLayout.p] = frame.R.ravel(), frame.p
    own[0, FlatLayout.scale] = 1.0
    own[0, FlatLayout.parameters : FlatLayout.parameters + 9] = np.eye(3).ravel()
    return LinkNumbers(index, parent, Fixed(), (), (), own, (), (), 0, 0, 0)


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
    """The links of settled numbers."""
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
        id(kind): (
            kind.columns(),
            tuple(float(getattr(kind, name)) for name in kind.parameters),
            (0.0,) * kind.nv,
        )
        for kind in {id(body.joint_kind): body.joint_kind for body in bodies}.values()
    }
    least = pivot_thresholds(model)
    v = 0
    for body, kind, free in zip(bodies, draft.kinds, draft.is_free, strict=True):
        index = body.index
        columns, parameters, pivots = given_kinds[id(body.joint_kind)]
        armature = body.armature
        if not free:
            columns, armature, pivots = (), (), ()
        elif index in least:
            pivots = least[index]
        q = body.q_slice.start
        parent = body.parent
        links.append(
            LinkNumbers(
                index, parent, kind, parameters, columns, table, armature, pivots, q, v, index
            )
        )
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

# SPDX-License-Identifier: BSD-3-Clause
"""Which parts of a robot may touch what: pairs of its collision shapes and of the ground.

Spheres, capsules, cylinders, boxes and points of frames touch planes, boxes and height fields of
the world, and boxes of other trees of the same forest; spheres and capsules of two trees touch each
other and cylinders. Links of one tree do so if asked for. Other shapes are not used, and are
listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.components import GROUND, Shape
from phistar.model.idle_shapes import TOUCHING_KINDS, idle_shapes, shape_name
from phistar.model.model import Model
from phistar.scalar.trace.unilateral_rows import (
    Ball,
    Can,
    ContactRow,
    Corner,
    Crossing,
    Cuboid,
    Feature,
    GivenPlane,
    HalfSpace,
    Rod,
    Surface,
    Triple,
)
from phistar.sim.surfaces import Box, GroundPart, HeightField, Plane, check_material
from phistar.sim.unilateral_row import refuse_many
from phistar.spatial import pose_product
from phistar.thresholds import POLICY

Ground = bool | GroundPart | Sequence[GroundPart]
SelfContact = bool | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Pair:
    """A pair that may touch.

    Attributes:
        name: Of the part that touches: its shape, its frame or its link.
        link: That carries it.
        surface: Name of what is touched.
        row: Its rows.
        terrain: The height field, if it is one.
        surface_link: The link that carries what is touched; "" of the world.
    """

    name: str
    link: str
    surface: str
    row: ContactRow
    terrain: HeightField | None = None
    surface_link: str = ""


@dataclass(frozen=True)
class _Part:
    """A part of the robot: what it touches with, and with what it is touched."""

    name: str
    link: str
    body: int
    shape: Shape | None
    pose: Array
    radius: float = 0.0
    excluded: tuple[str, ...] = ()

    @property
    def friction(self) -> float | None:
        return None if self.shape is None else self.shape.friction

    @property
    def is_box(self) -> bool:
        return self.shape is not None and self.shape.kind == "box"

    @property
    def kind(self) -> str:
        return "point" if self.shape is None else self.shape.kind

    @property
    def can(self) -> Can:
        radius, length = self.shape.size  # type: ignore[union-attr]
        x, y, z = (_triple(self.pose[:3, i]) for i in range(3))
        return Can(self.body, _triple(self.pose[:3, 3]), (z, x, y), radius, 0.5 * length)

    @property
    def rod(self) -> Rod:
        radius, length = self.shape.size  # type: ignore[union-attr]
        center, axis = _triple(self.pose[:3, 3]), _triple(self.pose[:3, 2])
        return Rod(self.body, center, axis, 0.5 * length, radius, flat=self.kind == "cylinder")

    @property
    def surface(self) -> Surface:
        """As what is touched by others."""
        if self.kind == "box":
            return self.box
        if self.kind == "cylinder":
            return self.can
        if self.kind == "capsule":
            return self.rod
        (ball,) = self.features(corners=True)
        assert isinstance(ball, Ball)
        return ball

    def on(self, surface: Surface) -> list[Feature]:
        """What it touches a box or something round with."""
        if self.kind == "capsule" and not isinstance(surface, Ball):
            return [*self.rod.places]
        found = self.features(corners=True)
        if isinstance(surface, Cuboid):
            if self.kind == "cylinder":
                found += self.rod.places
            if self.kind == "box":
                found.append(Crossing(self.box))
        return found

    @property
    def box(self) -> Cuboid:
        assert self.shape is not None
        return _cuboid(self.body, self.pose, np.array(self.shape.size))

    def features(self, *, corners: bool) -> list[Feature]:
        """Four corners of a box if they may be chosen by the surface, otherwise eight points."""
        kind = "point" if self.shape is None else self.shape.kind
        if kind == "box":
            if corners:
                return [Corner(self.box, number) for number in range(4)]
            half = 0.5 * np.array(self.shape.size)  # type: ignore[union-attr]
            signs = product((-1.0, 1.0), repeat=3)
            return [Ball(self.body, _triple(self._place(half * s))) for s in signs]
        if kind == "cylinder":
            return self._rims(corners)
        if kind == "capsule":
            radius, length = self.shape.size  # type: ignore[union-attr]
            ends = ([0.0, 0.0, z] for z in (-0.5 * length, 0.5 * length))
            return [Ball(self.body, _triple(self._place(np.array(x))), radius) for x in ends]
        radius = self.radius if self.shape is None else self.shape.size[0]
        return [Ball(self.body, _triple(self.pose[:3, 3]), radius)]

    def _rims(self, chosen: bool) -> list[Feature]:
        """Points that the surface chooses, or four of each rim."""
        radius, length = self.shape.size  # type: ignore[union-attr]
        if chosen:
            return [*self.can.rims]
        ways = ([1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0])
        places = [
            np.array([*(radius * np.array(way)), z * length]) for way in ways for z in (-0.5, 0.5)
        ]
        return [Ball(self.body, _triple(self._place(x))) for x in places]

    def _place(self, x: Array) -> Array:
        return np.asarray(self.pose[:3, :3] @ x + self.pose[:3, 3])


@dataclass(frozen=True)
class ContactPairs:
    """Pairs that may touch, and what was not used.

    Attributes:
        pairs: In order of the rows.
        unused: Shapes that touch nothing, with the reason.
    """

    pairs: tuple[Pair, ...] = ()
    unused: tuple[str, ...] = ()


def contact_pairs(
    model: Model,
    ground: Ground,
    points: Sequence[str] | Mapping[str, float] = (),
    friction: float | None = None,
    restitution: float | None = None,
    self_contact: SelfContact = False,
) -> ContactPairs:
    """The pairs of a robot.

    Args:
        model: The robot.
        ground: True: planes and boxes of the file's world, or the plane z = 0; or surfaces.
        points: Frames whose origins touch the ground, too; with radii [m] as a mapping.
        friction, restitution: Of all pairs, in place of what file and surfaces say.
        self_contact: Whether links of one tree touch each other: all, but those that a joint
            connects, or the named pairs of links or shapes.
    """
    if friction is not None or restitution is not None:
        check_material("all contacts", friction, restitution or 0.0)
    parts = _parts(model, points)
    unused = tuple(str(x) for x in idle_shapes(model) if x.moves or ground is True)
    trees = _trees(model, parts)
    own = _own_pairs(model, trees, self_contact)
    surfaces = ground_surfaces(model, ground)
    more = sum(len(part.on(other.surface)) for part, other in own)
    refuse_many(model, more + (0 if ground is False else _count(trees, surfaces)), 0)
    found: list[Pair] = []
    for surface in surfaces:
        found += _on_ground(parts, surface)
    others = [] if ground is False else _touching_parts(trees)
    for part, other in (*others, *own):
        found += _on_part(part, other)
    if friction is not None or restitution is not None:
        found = [_with_material(pair, friction, restitution) for pair in found]
    return ContactPairs(_numbered(found), unused)


def _with_material(pair: Pair, friction: float | None, restitution: float | None) -> Pair:
    row = pair.row
    mu = row.friction if friction is None else friction
    e = row.restitution if restitution is None else restitution
    row = ContactRow(row.feature, row.surface, float(mu), float(e))
    return replace(pair, row=row)


def _numbered(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Planes that are inputs get their numbers."""
    found, number = [], 0
    for pair in pairs:
        if pair.terrain is not None:
            row = pair.row
            row = ContactRow(row.feature, GivenPlane(number), row.friction, row.restitution)
            pair = replace(pair, row=row)
            number += 1
        found.append(pair)
    return tuple(found)


def _parts(model: Model, points: Sequence[str] | Mapping[str, float]) -> list[_Part]:
    """What moves and may touch."""
    parts = []
    for link in (x for x in model.links if x.collisions):
        frame = model.frame(link.name)
        for shape in link.collisions if frame.body != GROUND else ():
            if shape.kind not in TOUCHING_KINDS:
                continue
            pose = pose_product(frame.body_pose, shape.pose)
            name = shape_name(link, shape)
            given = (name, link.name, frame.body, shape, np.asarray(pose))
            parts.append(_Part(*given, excluded=link.excluded))
    if isinstance(points, str):
        points = (points,)
    for name in points:
        if name not in model.frames:
            raise UnknownNameError("frame", name, model.frames)
        frame = model.frame(name)
        if frame.body == GROUND:
            raise ArgumentError(
                f"points: frame '{name}' does not move; name frames of moving links"
            )
        radius = float(points[name]) if isinstance(points, Mapping) else 0.0
        if not 0.0 <= radius < np.inf:
            raise ArgumentError(f"points: radius {radius} of '{name}', expected 0 or more [m]")
        parts.append(_Part(name, frame.link or name, frame.body, None, frame.body_pose, radius))
    return parts


def ground_surfaces(model: Model, ground: Ground) -> list[GroundPart]:
    """The ground that is asked for."""
    if ground is False:
        return []
    if ground is True:
        return file_surfaces(model) or [Plane()]
    given = [ground] if isinstance(ground, GroundPart) else ground
    if not isinstance(given, Sequence) or not all(isinstance(x, GroundPart) for x in given):
        raise ArgumentError(
            f"ground is {ground!r}; expected True, False, or Plane, Box, HeightField of phistar.sim"
        )
    return list(given)


def file_surfaces(model: Model) -> list[GroundPart]:
    """Planes and boxes of links that do not move."""
    found: list[GroundPart] = []
    for link in (x for x in model.links if x.collisions):
        frame = model.frame(link.name)
        for shape in link.collisions if frame.body == GROUND else ():
            pose = np.asarray(pose_product(frame.body_pose, shape.pose))
            name = shape_name(link, shape)
            if shape.kind == "plane":
                n = pose[:3, 2]
                found.append(Plane(n, float(n @ pose[:3, 3]), shape.friction, name=name))
            elif shape.kind == "box":
                found.append(Box(np.array(shape.size), pose, shape.friction, name=name))
    return found


def _on_ground(parts: Sequence[_Part], ground: GroundPart) -> list[Pair]:
    """All parts on one surface of the world."""
    terrain = ground if isinstance(ground, HeightField) else None
    surface: Surface
    if isinstance(ground, Plane):
        surface = HalfSpace(_triple(np.asarray(ground.normal)), float(ground.offset))
    elif isinstance(ground, Box):
        surface = _cuboid(GROUND, np.asarray(ground.pose), np.asarray(ground.size))
    else:
        surface = GivenPlane(0)
    found = []
    for part in parts:
        mu = _friction(part.friction, ground.friction)
        e = float(ground.restitution)
        if isinstance(surface, Cuboid):
            rows = [ContactRow(feature, surface, mu, e) for feature in part.on(surface)]
            if part.is_box:
                rows += [ContactRow(part.box, Corner(surface, i), mu, e) for i in range(4)]
        else:
            features = part.features(corners=terrain is None)
            rows = [ContactRow(feature, surface, mu, e) for feature in features]
        found += [Pair(part.name, part.link, ground.name, row, terrain) for row in rows]
    return found


def _trees(model: Model, parts: Sequence[_Part]) -> list[list[_Part]]:
    """Parts of each tree of a forest."""
    trees: dict[int, list[_Part]] = {}
    for part in parts:
        trees.setdefault(model.ancestors(part.body)[0], []).append(part)
    return list(trees.values())


def _count(trees: Sequence[Sequence[_Part]], surfaces: Sequence[GroundPart]) -> int:
    """Pairs that there would be: on the ground, and of parts of two trees.

    They are counted before they are made, of which there may be very many.
    """
    fields = sum(isinstance(x, HeightField) for x in surfaces)
    boxes = sum(isinstance(x, Box) for x in surfaces)
    planes = len(surfaces) - fields - boxes
    total, everything = 0, Counter(part.kind for tree in trees for part in tree)
    for tree in trees:
        own = Counter(part.kind for part in tree)
        for kind, many in own.items():
            few, fixed, on_box = _POINTS[kind]
            total += many * (planes * few + fields * fixed + boxes * (on_box + 4 * (kind == "box")))
        total -= _between_parts(own)
    return total + _between_parts(everything)


_POINTS = {
    "point": (1, 1, 1),
    "sphere": (1, 1, 1),
    "capsule": (2, 2, 3),
    "cylinder": (6, 8, 9),
    "box": (4, 8, 5),
}
"""Points with which shapes touch planes, height fields and boxes."""


def _between_parts(kinds: Counter[str]) -> int:
    """Pairs of all parts with each other."""
    balls, rods, cans = (kinds[kind] for kind in ("sphere", "capsule", "cylinder"))
    boxes, points = kinds["box"], kinds["point"]
    round_ones = balls * (balls - 1) // 2 + balls * rods + 3 * (rods * (rods - 1) // 2)
    on_cans = cans * (balls + 3 * rods)
    on_boxes = boxes * (points + balls + 3 * rods + 9 * cans) + 9 * (boxes * (boxes - 1) // 2)
    return round_ones + on_cans + on_boxes


def _touching_parts(trees: Sequence[Sequence[_Part]]) -> list[tuple[_Part, _Part]]:
    """What touches and what is touched, of different trees: boxes each way, all others once."""
    return [
        (part, other)
        for i, tree in enumerate(trees)
        for k, others in enumerate(trees)
        if i != k
        for part in tree
        for other in others
        if _touches(part.kind, other.kind, first=i < k) and _allowed(part, other)
    ]


def _allowed(one: _Part, other: _Part) -> bool:
    """Whether a file lets two shapes touch: by its bits, and the links that it excludes."""
    if one.shape is None or other.shape is None:
        return True
    a, b = one.shape, other.shape
    shared = (a.contype & b.conaffinity) | (b.contype & a.conaffinity)
    return bool(shared) and other.link not in one.excluded


def _own_pairs(
    model: Model, trees: Sequence[Sequence[_Part]], wanted: SelfContact
) -> list[tuple[_Part, _Part]]:
    """What touches and what is touched of one tree: MuJoCo's rule, or the pairs that are named."""
    if wanted is False:
        return []
    shapes = [[part for part in tree if part.shape is not None] for tree in trees]
    named = None if wanted is True else _named_pairs(shapes, wanted)
    joined = _joined_bodies(model)
    return [
        (part, other)
        for tree in shapes
        for i, one in enumerate(tree)
        for two in tree[i + 1 :]
        if one.body != two.body
        and (
            _allowed(one, two) and frozenset((one.body, two.body)) not in joined
            if named is None
            else any(_is_pair(one, two, pair) for pair in named)
        )
        for part, other, first in ((one, two, True), (two, one, False))
        if _touches(part.kind, other.kind, first)
    ]


def _is_pair(one: _Part, two: _Part, names: tuple[str, str]) -> bool:
    a, b = ((part.name, part.link) for part in (one, two))
    return (names[0] in a and names[1] in b) or (names[1] in a and names[0] in b)


def _named_pairs(
    trees: Sequence[Sequence[_Part]], wanted: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """The pairs of names that a user gives, checked."""
    known = dict.fromkeys(
        name for tree in trees for part in tree for name in (part.link, part.name)
    )
    given: object = wanted
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise ArgumentError(
            f"self_contact is {given!r}; expected True, False, or pairs of names of links or "
            "shapes, as [('left_hand', 'right_hand')]"
        )
    found = []
    for pair in given:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ArgumentError(f"self_contact: {pair!r} is not a pair of names of links or shapes")
        for name in pair:
            if name not in known:
                raise UnknownNameError("link or shape that touches", str(name), known)
        found.append((pair[0], pair[1]))
    for pair in found:
        if not any(
            one.body != two.body and _is_pair(one, two, pair)
            for tree in trees
            for i, one in enumerate(tree)
            for two in tree[i + 1 :]
        ):
            raise ArgumentError(
                f"self_contact: '{pair[0]}' and '{pair[1]}' are not two bodies of one tree"
            )
    return found


def _joined_bodies(model: Model) -> set[frozenset[int]]:
    """Bodies with links that a joint connects, through bodies that are parts of joints, too."""
    carrying = {model.frame(link.name).body for link in model.links if not link.virtual}
    found = set()
    for body in carrying - {GROUND}:
        parent = model.bodies[body].parent
        while parent != GROUND and parent not in carrying:
            parent = model.bodies[parent].parent
        found.add(frozenset((body, parent)))
    return found


def _touches(kind: str, other: str, first: bool) -> bool:
    """Whether a part is what touches, and not what is touched."""
    if other == "box":
        return True
    if other == "cylinder":
        return kind in ("sphere", "capsule")
    if other == "capsule":
        return kind == "sphere" or (kind == "capsule" and first)
    return other == "sphere" and kind == "sphere" and first


def _on_part(part: _Part, other: _Part) -> list[Pair]:
    """A part on one of another tree; crossing edges of two boxes once."""
    mu, surface = _friction(part.friction, other.friction), other.surface
    twice = part.is_box and other.is_box and part.body > other.body
    return [
        Pair(
            part.name,
            part.link,
            other.name,
            ContactRow(feature, surface, mu),
            surface_link=other.link,
        )
        for feature in part.on(surface)
        if not (twice and isinstance(feature, Crossing))
    ]


def _friction(one: float | None, other: float | None) -> float:
    """Of a pair: the larger one, as in MuJoCo."""
    known = [x for x in (one, other) if x is not None]
    return float(max(known)) if known else POLICY.default_friction


def _cuboid(body: int, pose: Array, size: Array) -> Cuboid:
    axes = tuple(_triple(pose[:3, i]) for i in range(3))
    return Cuboid(body, _triple(pose[:3, 3]), axes, _triple(0.5 * size))  # type: ignore[arg-type]


def _triple(x: Array) -> Triple:
    a, b, c = (float(y) for y in x)
    return a, b, c

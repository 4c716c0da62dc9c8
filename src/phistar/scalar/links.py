# SPDX-License-Identifier: BSD-3-Clause
"""A robot's links as the scalar level sees them: numbers in frames of our own choice.

A link frame may be turned and slid along its own joint axis without changing any joint's force or
motion. We turn every axis to z, and then choose what makes most constants vanish:

    file    the file's frame, its axis turned to z
    normal  the origin on the common normal with the parent's axis, x along the one to the first
            child or along the mass of a tip: placements become a turn about x and an offset with
            one zero, all of the same form
    square  the same, but x as in the file where all axes are at right angles anyway

``seat`` takes our coordinates back to the file's. Vectors over links cross it at the border.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.model.model import Model
from phistar.model.parts import GROUND, Body
from phistar.spatial import inertia_matrix, rotation_between

Array = NDArray[Any]

ROUNDING = 2e-15
"""Entries of a rotation below this are the rounding of a right angle, not a number of the user."""

Columns = tuple[tuple[tuple[int, float], ...], ...]

_AXES: dict[str, Columns] = {
    "revolute": (((2, 1.0),),),
    "prismatic": (((5, 1.0),),),
    "cylindrical": (((2, 1.0),), ((5, 1.0),)),
    "planar": (((3, 1.0),), ((4, 1.0),), ((2, 1.0),)),
    "spherical": tuple(((i, 1.0),) for i in range(3)),
    "translation": tuple(((i, 1.0),) for i in range(3, 6)),
    "free": tuple(((i, 1.0),) for i in range(6)),
}
_Z = (0.0, 0.0, 1.0)
_PARALLEL = 1e-2
"""Sine below which two axes count as parallel when frames are chosen; any choice is exact."""
_ABOUT_Z = frozenset({"revolute", "prismatic", "helical", "cylindrical", "planar"})


@dataclass(frozen=True)
class Frame:
    """A placement: rotation (3, 3) and offset (3,), child to parent."""

    R: Array = field(default_factory=lambda: np.eye(3))
    p: Array = field(default_factory=lambda: np.zeros(3))

    def __matmul__(self, other: Frame) -> Frame:
        return Frame(self.R @ other.R, self.R @ other.p + self.p)

    @property
    def inverse(self) -> Frame:
        """The parent in the child."""
        return Frame(self.R.T, -self.R.T @ self.p)


@dataclass(frozen=True)
class Link:
    """One body.

    Attributes:
        index, parent: Numbers; the ground is -1.
        kind: Joint kind; axes are z.
        pitch: Advance of a helical joint [m/rad].
        columns: Joint map H*: for each joint velocity the (axis, factor) pairs it moves along.
        frame: Placement of the joint in the parent link.
        mass, h, J: Inertia about the link's origin.
        E: Sums of mass times x², y² and z²: tr J/2 - J, its diagonal.
        armature: Rotor inertia per joint velocity.
        q: First coordinate in configurations.
        v: First entry in joint vectors, which list the joints of free bodies in their order.
        scale, offset: Displacement = scale q + offset, for joints that follow others.
        turn: Angle added to the joint's own.
        seat: The link frame in the body frame of the model.
    """

    index: int
    parent: int
    kind: str
    pitch: float
    columns: Columns
    frame: Frame
    mass: float
    h: Array
    J: Array
    E: Array
    armature: tuple[float, ...]
    q: int
    v: int
    scale: float
    offset: float
    turn: float
    seat: Frame

    @property
    def size(self) -> int:
        """Number of joint velocities."""
        return len(self.columns)


def links_of(
    model: Model,
    frames: str = "normal",
    regroup: str = "",
    snap: float = ROUNDING,
    locked: frozenset[int] = frozenset(),
) -> list[Link]:
    """The links of a model.

    Args:
        model: The robot.
        frames: ``"file"``, ``"normal"`` or ``"square"``.
        regroup: Move inertia that a joint cannot feel to the parent link. Only for programs whose
            outputs are all over the joints. Revolute links keep no J_yy (``"line"``) or no second
            moment E_zz (``"flat"``); ``""`` leaves all as it is.
        snap: Rotations closer than this to a right angle become one, offsets [m] smaller than this
            and moments of a link smaller than this share of its largest one become zero. The
            default only removes rounding.
        locked: Bodies whose joints do not move freely: they have no joint velocities.
    """
    links: list[Link] = []
    matrices = inertia_matrix(np.reshape([body.inertia for body in model.bodies], (-1, 10)))
    for body, matrix in zip(model.bodies, matrices, strict=True):
        v = links[-1].v + links[-1].size if links else 0
        links.append(_link(body, matrix, v, body.index in locked))
    sizes = [_size(link) for link in links]
    tree = _Tree(links)
    turned = [k for k, link in enumerate(links) if link.kind in _ABOUT_Z]
    axes = [model.bodies[k].motion.axis for k in turned]  # type: ignore[attr-defined]
    for k, R in zip(turned, rotation_between(_Z, np.reshape(axes, (-1, 3))), strict=True):
        tree.move(k, Frame(R))
    if frames != "file":
        for step in (_slide, _align, _split):
            for k in range(len(tree.links)):
                if step is _slide or frames == "normal" or not _is_square(tree, k, snap):
                    step(tree, k)
    if regroup:
        _regroup(tree.links, sizes, regroup == "flat")
    pairs = zip(tree.links, sizes, strict=True)
    return [_snapped(link, snap, np.maximum(size, _size(link))) for link, size in pairs]


def _link(body: Body, matrix: Array, v: int, locked: bool) -> Link:
    kind = "revolute" if body.motion.name == "continuous" else body.motion.name
    pitch = float(getattr(body.motion, "pitch", 0.0))
    columns = (((2, 1.0), (5, pitch)),) if kind == "helical" else _AXES[kind]
    return Link(
        index=body.index,
        parent=body.parent,
        kind=kind,
        pitch=pitch,
        columns=() if locked else columns,
        frame=Frame(np.array(body.placement[:3, :3]), np.array(body.placement[:3, 3])),
        mass=float(matrix[5, 5]),
        h=np.array([matrix[2, 4], matrix[0, 5], matrix[1, 3]]),
        J=matrix[:3, :3],
        E=_second(matrix[:3, :3]),
        armature=() if locked else tuple(body.armature),
        q=body.q_slice.start,
        v=v,
        scale=body.scale,
        offset=body.offset,
        turn=0.0,
        seat=Frame(),
    )


def frame_link(index: int, parent: int, frame: Frame) -> Link:
    """A frame on a link, as a link of its own that does not move on it and weighs nothing."""
    return Link(
        index=index,
        parent=parent,
        kind="frame",
        pitch=0.0,
        columns=(),
        frame=frame,
        mass=0.0,
        h=np.zeros(3),
        J=np.zeros((3, 3)),
        E=np.zeros(3),
        armature=(),
        q=0,
        v=0,
        scale=1.0,
        offset=0.0,
        turn=0.0,
        seat=Frame(),
    )


class _Tree:
    """Links on their way, with the children of each."""

    def __init__(self, links: list[Link]) -> None:
        self.links = links
        self.children: list[list[int]] = [[] for _ in links]
        for link in links:
            if link.parent != GROUND:
                self.children[link.parent].append(link.index)

    def move(self, k: int, x: Frame) -> None:
        """Put the frame of a link elsewhere on it; ``x`` must commute with the joint's motion."""
        links, link = self.links, self.links[k]
        h = x.R.T @ (link.h - link.mass * x.p)
        H, p = _tilde(link.h), _tilde(x.p)
        J = x.R.T @ (link.J + H @ p + p @ H - link.mass * p @ p) @ x.R
        links[k] = replace(link, frame=link.frame @ x, h=h, J=J, seat=link.seat @ x)
        for c in self.children[k]:
            links[c] = replace(links[c], frame=x.inverse @ links[c].frame)


def _tilde(x: Array) -> Array:
    """As ``spatial.skew``, for the many single vectors here."""
    a, b, c = x.tolist()
    return np.array([[0.0, -c, b], [c, 0.0, -a], [-b, a, 0.0]])


def _slide(tree: _Tree, k: int) -> None:
    """The origin: a prismatic link's to its parent's, others to the foot of the common normal."""
    links, link = tree.links, tree.links[k]
    R, p = link.frame.R, link.frame.p
    if link.kind == "prismatic":
        tree.move(k, Frame(p=-R.T @ p))
    elif link.kind in ("revolute", "helical", "cylindrical"):
        z = R[:, 2]
        across = z[0] ** 2 + z[1] ** 2
        if link.parent != GROUND and links[link.parent].kind in _ABOUT_Z and across > _PARALLEL**2:
            along = -(p[0] * z[0] + p[1] * z[1]) / across
        elif abs(z[2]) > 0.5:
            along = -p[2] / z[2]
        else:
            along = -float(p @ z)
        tree.move(k, Frame(p=np.array([0.0, 0.0, along])))


def _align(tree: _Tree, k: int) -> None:
    """x along the common normal to the first child's axis, or along the mass of a last link."""
    if tree.links[k].kind not in ("revolute", "helical", "cylindrical", "prismatic"):
        return
    x = _normal(tree, k)
    length = math.hypot(x[0], x[1])
    if length < _PARALLEL:
        return
    c, s = x[0] / length, x[1] / length
    tree.move(k, Frame(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])))


def _is_square(tree: _Tree, k: int, snap: float) -> bool:
    """Whether a link's axes are at right angles to those of its parent and of its children."""
    near = [tree.links[k], *(tree.links[c] for c in tree.children[k])]
    size = np.abs([link.frame.R for link in near])
    return len(near) > 1 and bool(np.all((size < snap) | (np.abs(size - 1.0) < snap)))


def _normal(tree: _Tree, k: int) -> Array:
    for c in tree.children[k]:
        child = tree.links[c]
        if child.kind in _ABOUT_Z:
            z = child.frame.R[:, 2]
            across = np.array([-z[1], z[0]])
            return across if math.hypot(*across) > _PARALLEL else child.frame.p[:2]
    return tree.links[k].h[:2]


def _split(tree: _Tree, k: int) -> None:
    """R = Rz(a) Rx(b) Rz(e): the last turn goes into the joint's own angle."""
    link = tree.links[k]
    R = link.frame.R
    if link.kind not in ("revolute", "helical", "cylindrical"):
        return
    lean = math.hypot(R[0, 2], R[1, 2])
    ca, sa = (-R[1, 2] / lean, R[0, 2] / lean) if lean > ROUNDING else (1.0, 0.0)
    if ca < 0.0:
        ca, sa, lean = -ca, -sa, -lean
    cb, sb = float(R[2, 2]), lean if abs(lean) > ROUNDING else 0.0
    e = math.atan2(-(ca * R[0, 1] + sa * R[1, 1]), ca * R[0, 0] + sa * R[1, 0])
    clean = np.array([[ca, -sa * cb, sa * sb], [sa, ca * cb, -ca * sb], [0.0, sb, cb]])
    tree.links[k] = replace(link, frame=Frame(clean, link.frame.p), turn=e)


def _second(J: Array) -> Array:
    return np.asarray(np.trace(J) / 2 - np.diag(J))


def _size(link: Link) -> Array:
    """The largest first and second moment of a link: what their rounding is measured by."""
    moved = link.mass * np.abs(link.seat.p).max() ** np.array([1, 2])
    return np.asarray(np.maximum([np.abs(link.h).max(), np.abs(link.J).max()], np.abs(moved)))


def _regroup(links: list[Link], sizes: list[Array], flat: bool) -> None:
    """Move what a joint cannot feel of a link's inertia to the parent; tips first.

    About a revolute axis that is a line of mass on it: m, h_z and J = diag(e, e, 0), with J_yy for
    e, or with E_zz, so that a flat body in the plane z = 0 is left. Of a prismatic link it is all
    rotational inertia. ``sizes`` become those of links at their largest.
    """
    for k in range(len(links) - 1, -1, -1):
        link = links[k]
        sizes[k] = np.maximum(sizes[k], _size(link))
        if link.kind == "revolute" and link.size:
            moved = (
                link.mass,
                np.array([0.0, 0.0, link.h[2]]),
                np.diag([1.0, 1.0, 0.0]) * (_second(link.J)[2] if flat else link.J[1, 1]),
            )
        elif link.kind == "prismatic" and link.size:
            moved = 0.0, np.zeros(3), link.J
        else:
            continue
        mass, h, J = moved
        links[k] = replace(link, mass=link.mass - mass, h=link.h - h, J=link.J - J)
        if link.parent != GROUND:
            R, p = link.frame.R, link.frame.p
            h = R @ h
            P, H = _tilde(p), _tilde(h)
            J = R @ J @ R.T - H @ P - P @ H - mass * P @ P
            to = links[link.parent]
            links[link.parent] = replace(to, mass=to.mass + mass, h=to.h + h + mass * p, J=to.J + J)


def _snapped(link: Link, snap: float, size: Array) -> Link:
    R = link.frame.R.copy()
    for whole in (0.0, 1.0, -1.0):
        R[np.abs(R - whole) < snap] = whole
    p = np.where(np.abs(link.frame.p) < snap, 0.0, link.frame.p)
    h = np.where(np.abs(link.h) < snap * size[0], 0.0, link.h)
    J = np.where(np.abs(link.J) < snap * size[1], 0.0, (link.J + link.J.T) / 2)
    E = np.where(np.abs(_second(J)) < snap * size[1], 0.0, _second(J))
    turn = 0.0 if abs(link.turn) < snap else link.turn
    return replace(link, frame=Frame(R, p), h=h, J=J, E=E, turn=turn)


def snapped(model: Model, snap: float) -> tuple[str, ...]:
    """What a tolerance changes in a robot beyond rounding: a line for each link that it touches."""
    lines = []
    exact, rough = (links_of(model, "file", snap=each) for each in (ROUNDING, snap))
    for body, before, after in zip(model.bodies, exact, rough, strict=True):
        parts = {
            "rotation": (before.frame.R, after.frame.R),
            "offset [m]": (before.frame.p, after.frame.p),
            "first moment [kg m]": (before.h, after.h),
            "inertia [kg m^2]": (before.J, after.J),
        }
        changes = {name: float(np.abs(a - b).max()) for name, (a, b) in parts.items()}
        told = [f"{name} by {change:.1e}" for name, change in changes.items() if change]
        if told:
            lines.append(f"{body.link}: {', '.join(told)}")
    return tuple(lines)

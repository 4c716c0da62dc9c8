# SPDX-License-Identifier: BSD-3-Clause
"""Generated robots of any size: chains and trees of equal rods."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.builder import ModelBuilder, make_pose
from phistar.model.components import Shape
from phistar.model.joints import JOINT_KINDS, AxisKind
from phistar.model.model import Model
from phistar.spatial import cylinder_inertia

_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
_RGBA = (0.35, 0.5, 0.7, 1.0)


def chain(
    n: int,
    *,
    axes: str = "y",
    kind: str = "revolute",
    length: float = 1.0,
    mass: float = 1.0,
    radius: float | None = None,
    floating_base: bool = False,
    name: str = "",
) -> Model:
    """A serial chain of ``n`` equal rods that hangs straight down at the zero configuration.

    Args:
        n: Number of links and joints.
        axes: Joint axes, repeated cyclically: ``"y"`` is a planar chain, ``"xy"`` alternates,
            ``"zyx"`` winds.
        kind: A joint kind with an axis and one coordinate, e.g. ``"revolute"``, ``"prismatic"``.
        length: Length of a rod [m].
        mass: Mass of a rod [kg].
        radius: Radius of a rod [m]; default a twentieth of its length.
        floating_base: Free the root link; it then is a rod too.
        name: Name of the robot; default ``"chain<n>"``.

    Returns:
        The model; links are ``base``, ``link1``, ..., joints ``joint1``, ...

    Raises:
        ArgumentError: A number is not positive, or an axis or kind is not one of those.
    """
    _require_count("n", n, 1)
    rod = _Rod(length, mass, radius, axes, kind)
    builder = ModelBuilder(name or f"chain{n}")
    builder.link("base", **(rod.solid() if floating_base else {}))
    for k in range(1, n + 1):
        offset = (0.0, 0.0, -length) if k > 1 or floating_base else (0.0, 0.0, 0.0)
        builder.link(f"link{k}", **rod.solid())
        parent = f"link{k - 1}" if k > 1 else "base"
        builder.joint(f"joint{k}", kind, parent, f"link{k}", xyz=offset, axis=rod.axis(k))
    return builder.build(floating_base=floating_base)


def tree(
    depth: int,
    branching: int = 2,
    *,
    axes: str = "y",
    kind: str = "revolute",
    length: float = 1.0,
    mass: float = 1.0,
    radius: float | None = None,
    spread: float = math.pi / 6,
    floating_base: bool = False,
    name: str = "",
) -> Model:
    """A tree of equal rods: each one carries ``branching`` others, for ``depth`` generations.

    Args:
        depth: Generations of joints.
        branching: Rods that each rod and the root carry.
        axes: Joint axes, one per generation, repeated cyclically.
        kind, length, mass, radius, floating_base, name: As in ``chain``.
        spread: Angle between a rod and those it carries, evenly distributed around it [rad].

    Returns:
        The model with branching + branching^2 + ... + branching^depth joints; the rods that
        ``link1`` carries are ``link1_1``, ``link1_2``, ...

    Raises:
        ArgumentError: As ``chain``.
    """
    _require_count("depth", depth, 1)
    _require_count("branching", branching, 1)
    rod = _Rod(length, mass, radius, axes, kind)
    builder = ModelBuilder(name or f"tree{depth}x{branching}")
    builder.link("base", **(rod.solid() if floating_base else {}))
    rod_end = (0.0, 0.0, -length)
    generation = [("base", rod_end if floating_base else (0.0, 0.0, 0.0))]
    for level in range(1, depth + 1):
        grown = []
        for parent, end in generation:
            for branch in range(branching):
                label = _label(parent, branch)
                rotation = _direction(2 * math.pi * branch / branching, spread)
                builder.link(f"link{label}", **rod.solid())
                builder.joint(
                    f"joint{label}",
                    kind,
                    parent,
                    f"link{label}",
                    origin=make_pose(end, rotation=rotation),
                    axis=rod.axis(level),
                )
                grown.append((f"link{label}", rod_end))
        generation = grown
    return builder.build(floating_base=floating_base)


def _label(parent: str, branch: int) -> str:
    path = parent.removeprefix("link") if parent != "base" else ""
    return f"{path}_{branch + 1}" if path else f"{branch + 1}"


def _direction(around: float, tilt: float) -> Array:
    """Rotation that tilts a rod out of its parent's line, towards the angle ``around`` about z."""
    return make_pose(rpy=(0.0, tilt, around))[:3, :3]


def _require_count(argument: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(f"{argument} must be a whole number of at least {least}, got {value!r}")


class _Rod:
    """The rod that generators repeat: a solid cylinder from its joint down its own -z."""

    def __init__(
        self, length: float, mass: float, radius: float | None, axes: str, kind: str
    ) -> None:
        thick = length / 20 if radius is None else radius
        for argument, value in (("length", length), ("mass", mass), ("radius", thick)):
            if not (math.isfinite(value) and value > 0):
                raise ArgumentError(f"{argument} must be positive and finite, got {value!r}")
        if not axes or set(axes) - set(_AXES):
            raise ArgumentError(f"axes must be made of the letters x, y and z, got {axes!r}")
        known = [
            name for name, cls in JOINT_KINDS.items() if issubclass(cls, AxisKind) and cls.nv == 1
        ]
        if kind not in known:
            raise ArgumentError(f"kind must be one of {', '.join(known)}, got {kind!r}")
        self.axes = axes
        center = (0.0, 0.0, -length / 2)
        shape = Shape("cylinder", (float(thick), float(length)), make_pose(center), _RGBA)
        self._solid: dict[str, object] = {
            "mass": mass,
            "com": center,
            "inertia": cylinder_inertia(mass, thick, length),
            "visuals": (shape,),
            "collisions": (Shape(shape.kind, shape.size, shape.pose),),
        }

    def solid(self) -> dict[str, Any]:
        """Keyword arguments of the builder's ``link``."""
        return self._solid

    def axis(self, index: int) -> tuple[float, float, float]:
        """Axis of a joint, counted from 1."""
        return _AXES[self.axes[(index - 1) % len(self.axes)]]


__all__ = ["chain", "tree"]

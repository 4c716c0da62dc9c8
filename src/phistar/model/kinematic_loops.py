# SPDX-License-Identifier: BSD-3-Clause
"""Loops of a robot: which are active, where their ends are; an error where a tree is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phistar.arrays import Array
from phistar.errors import LoopError
from phistar.model.components import GROUND, Loop, LoopJoint
from phistar.spatial import pose_product

if TYPE_CHECKING:
    from phistar.model.model import Model

WORLD = "world"
"""What loops call the ground."""

TREE_CURE = (
    "robot.tree is the same robot without its loops: use that if the motion of the tree is wanted."
)


def active_loops(loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """The loops that the file does not switch off."""
    return tuple(loop for loop in loops if loop.active)


def loop_label(loop: Loop) -> str:
    """A loop with its kind and the links or joints it connects."""
    if isinstance(loop, LoopJoint):
        return f'loop "{loop.name}" ({loop.kind}, "{loop.predecessor}" to "{loop.successor}")'
    ends = f'"{loop.joint}" to "{loop.source}"' if loop.source else f'"{loop.joint}"'
    return f'coupling "{loop.name}" ({ends})'


def require_tree(model: Model, purpose: str, cure: str = TREE_CURE) -> None:
    """Raise a ``LoopError`` if a robot has loops that dynamics would leave open.

    Args:
        model: The robot.
        purpose: What was requested, at the start of the message.
        cure: Suggested fix, at its end.
    """
    if model.loops and (left := active_loops(model.loops)):
        raise LoopError(model.name, purpose, left, cure)


@dataclass(frozen=True)
class LoopEnd:
    """A frame at the end of a loop: the body that carries it, or ``GROUND``, and its pose in it."""

    body: int
    pose: Array


def loop_ends(model: Model, loop: LoopJoint) -> tuple[LoopEnd, LoopEnd]:
    """Predecessor and successor frame."""
    ends = (loop.predecessor, loop.predecessor_pose), (loop.successor, loop.successor_pose)
    found = []
    for name, pose in ends:
        carrier = model.frames.get(name)
        if carrier is None:
            found.append(LoopEnd(GROUND, pose))
        else:
            found.append(LoopEnd(carrier.body, pose_product(carrier.body_pose, pose)))
    return found[0], found[1]

# SPDX-License-Identifier: BSD-3-Clause
"""Passes over links -> scalar programs: formulation, frames and shape are chosen here.

Equal programs are traced and the one with the fewest operations is kept.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache

from phistar.model.model import Model
from phistar.scalar.classical import classical
from phistar.scalar.links import ROUNDING, Link, links_of
from phistar.scalar.program import Rolled, Signature, Straight, arithmetic
from phistar.scalar.rolled import rolled
from phistar.scalar.straight import straight
from phistar.scalar.tracer import Setting
from phistar.sweeps.ir import Program, Type
from phistar.sweeps.schedule import Schedule, schedule


@dataclass(frozen=True)
class Options:
    """How a robot is turned into numbers.

    Attributes:
        frames: ``"file"``, ``"normal"`` or ``"square"`` (see ``scalar.links``), or ``"best"``: for
            loops ``"normal"``, where links are most alike, otherwise the better of the others.
        regroup: Whether inertia that a joint cannot feel may be moved to its parent link. Only for
            programs about the motion of the whole robot, whose outputs cannot tell.
        classical: Whether accelerations may be classical ones where no output can tell.
        snap: Constants closer than this to what would vanish become that. The default only
            removes rounding; larger values change the robot.
    """

    frames: str = "best"
    regroup: bool = False
    classical: bool = True
    snap: float = ROUNDING


DEFAULT = Options()

ORDER = ("v", "vdot", "tau")
"""Of the inputs after the configuration; others follow by name."""


def signature_of(
    scheduled: Schedule, model: Model, absent: Set[str], locked: Set[int]
) -> Signature:
    """Sizes of what a program reads and gives; the configuration comes first."""
    program = scheduled.program
    outputs = {
        name: _size(program.nodes[stream].type, model, locked)
        for name, stream in program.outputs.items()
    }
    return Signature(sizes_of_inputs(program, model, absent, locked), outputs)


def sizes_of_inputs(
    program: Program, model: Model, absent: Set[str], locked: Set[int]
) -> dict[str, int]:
    """Sizes of what a program reads, in the order in which people give it."""
    given = (program.nodes[stream] for stream in program.live())
    read = {n.data: n for n in given if n.op in ("leaf", "scatter") and n.data not in absent}
    order = [name for name in ORDER if name in read]
    order += sorted(name for name in read if name not in ORDER)
    return {"q": model.nq, **{name: _size(read[name].type, model, locked) for name in order}}


def _size(kind: Type, model: Model, locked: Set[int]) -> int:
    if kind is not Type.JOINT:
        return 6 * len(model.bodies)
    return sum(body.motion.nv for body in model.bodies if body.index not in locked)


def robot_setting(program: Program, model: Model, absent: Set[str]) -> Setting:
    """A program in a robot's gravity."""
    return Setting(program, tuple(float(g) for g in model.gravity), frozenset(absent))


def to_straight(
    scheduled: Schedule,
    model: Model,
    absent: Set[str] = frozenset(),
    locked: Set[int] = frozenset(),
    options: Options = DEFAULT,
) -> Straight:
    """The straight line of a program on a robot, the cheapest of the frames that are allowed.

    Args:
        scheduled: The program.
        model: The robot.
        absent: Inputs that are not given: zero, or for gravity the robot's own.
        locked: Bodies whose joints are not free.
        options: What may be chosen.
    """
    formulated, signature, setting = _prepared(scheduled, model, absent, locked, options)
    found = [
        straight(formulated, links, signature, setting)
        for links in choices(model, locked, options, _is_flat(formulated.program))
    ]
    return min(found, key=lambda program: arithmetic(program.count()))


def to_rolled(
    scheduled: Schedule,
    model: Model,
    absent: Set[str] = frozenset(),
    locked: Set[int] = frozenset(),
    options: Options = DEFAULT,
) -> Rolled:
    """The loops of a program on a robot; arguments as for ``to_straight``."""
    formulated, signature, setting = _prepared(scheduled, model, absent, locked, options)
    links = uniform(model, locked, options, _is_flat(formulated.program))
    return rolled(formulated, links, signature, setting)


def _prepared(
    scheduled: Schedule, model: Model, absent: Set[str], locked: Set[int], options: Options
) -> tuple[Schedule, Signature, Setting]:
    signature = signature_of(scheduled, model, absent, locked)
    formulated = _formulated(scheduled) if options.classical else scheduled
    return formulated, signature, robot_setting(formulated.program, model, absent)


@lru_cache(maxsize=256)
def _by_identity(key: _Same) -> Schedule:
    program = classical(key.scheduled.program)
    return key.scheduled if program is None else schedule(program)


@dataclass(frozen=True, eq=False)
class _Same:
    """A schedule as a key: the same object, not an equal one."""

    scheduled: Schedule

    def __hash__(self) -> int:
        return id(self.scheduled)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.scheduled is other.scheduled


def _formulated(scheduled: Schedule) -> Schedule:
    """The program with classical accelerations where no output can tell."""
    return _by_identity(_Same(scheduled))


def choices(
    model: Model, locked: Set[int], options: Options, flat: bool = False
) -> Sequence[Sequence[Link]]:
    """The robot in the frames that may be tried, the likeliest last; flat links if regrouped."""
    frames = ("file", "square") if options.frames == "best" else (options.frames,)
    regroup = ("flat" if flat else "line") if options.regroup else ""
    return [_links(model, each, regroup, options.snap, frozenset(locked)) for each in frames]


def uniform(model: Model, locked: Set[int], options: Options, flat: bool = False) -> Sequence[Link]:
    """The robot in the frames in which links are most alike; for loops."""
    alike = replace(options, frames="normal") if options.frames == "best" else options
    (links,) = choices(model, locked, alike, flat)
    return links


def _is_flat(program: Program) -> bool:
    """Whether the inertia of links enters by their second moments, so that fewer of them help."""
    return any(program.nodes[stream].op == "rigid_force" for stream in program.live())


@lru_cache(maxsize=64)
def _links(
    model: Model, frames: str, regroup: str, snap: float, locked: frozenset[int]
) -> tuple[Link, ...]:
    return tuple(links_of(model, frames, regroup, snap, locked))

# SPDX-License-Identifier: BSD-3-Clause
"""Passes over links -> scalar programs: formulation, frames and shape are chosen here.

Equal programs are traced and the one with the fewest operations is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from phistar.model.configuration import quaternion_starts
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.model_cache import cached_for_equal_models
from phistar.model.wrenches import WrenchFrames
from phistar.scalar.program import Looped, Signature, Unrolled, count_arithmetic
from phistar.scalar.robot.link_numbers import LinkNumbers, build_link_numbers
from phistar.scalar.robot.rounding import ROUNDING_TOLERANCE
from phistar.scalar.trace.frame_wrenches import SeatedWrenches
from phistar.scalar.trace.link_tracer import EXTERNAL_FORCE, TraceContext
from phistar.scalar.trace.traced_links import ADDED_INERTIA
from phistar.scalar.trace.unrolled import trace_unrolled
from phistar.sweeps.ir import StreamProgram, Type
from phistar.sweeps.op_values import GroundState
from phistar.sweeps.schedule import Schedule
from phistar.sweeps.stream_types import GROUND_COMPONENTS


@dataclass(frozen=True)
class LoweringOptions:
    """How a robot is turned into numbers.

    Attributes:
        frames: ``"file"``, ``"normal"`` or ``"square"`` (see ``scalar.robot.frame_choice``), or
            ``"best"``: for loops ``"normal"``, where links are most alike, otherwise the better of
            the others.
        regroup: Whether inertia that a joint cannot feel may be moved to its parent link. Only for
            programs about the motion of the whole robot, whose outputs cannot tell.
        classical: Whether accelerations may be classical ones where no output can tell.
        snap: Constants closer than this to what would vanish become that. The default only
            removes rounding; larger values change the robot.
    """

    frames: str = "best"
    regroup: bool = False
    classical: bool = True
    snap: float = ROUNDING_TOLERANCE

    @classmethod
    def of(cls, regroup: bool, snap: float | None) -> LoweringOptions:
        """What a user asks for; without ``snap`` only rounding is removed."""
        return cls(regroup=regroup, snap=ROUNDING_TOLERANCE if snap is None else snap)


DEFAULT_OPTIONS = LoweringOptions()
REGROUPED_OPTIONS = LoweringOptions(regroup=True)

INPUT_ORDER = ("v", "vdot", "tau")
"""Of the inputs after the configuration; others follow by name."""


def signature_of(
    scheduled: Schedule,
    model: Model,
    absent: Set[str],
    locked: Set[int],
    wrenches: SeatedWrenches | None = None,
) -> Signature:
    """Sizes of what a program reads and gives; the configuration comes first."""
    program = scheduled.program
    outputs = {
        name: _size(program.nodes[stream].type, model, locked)
        for name, stream in program.outputs.items()
    }
    sizes = input_sizes(program, model, absent, locked, wrenches)
    return Signature(sizes, outputs, quaternion_entries(model))


def quaternion_entries(model: Model) -> tuple[int, ...]:
    """Entries of q with which quaternions begin."""
    return tuple(start for _, start in quaternion_starts(model))


def input_sizes(
    program: StreamProgram,
    model: Model,
    absent: Set[str],
    locked: Set[int],
    wrenches: SeatedWrenches | None = None,
) -> dict[str, int]:
    """Sizes of what a program reads, in the order in which people give it.

    Args:
        program: The streams.
        model: The robot.
        absent: Inputs that are not given.
        locked: Bodies whose joints are not free.
        wrenches: On frames, in place of external forces on links: inputs after all others.
    """
    given = (program.nodes[stream] for stream in program.live())
    read = {n.data: n for n in given if n.op in ("leaf", "scatter") and n.data not in absent}
    order = [name for name in INPUT_ORDER if name in read]
    order += sorted(name for name in read if name not in INPUT_ORDER)
    sizes = {"q": model.nq, **{name: _size(read[name].type, model, locked) for name in order}}
    if wrenches is not None and sizes.pop(EXTERNAL_FORCE, None) is not None:
        sizes |= wrenches.sizes
    return sizes


def _size(kind: Type, model: Model, locked: Set[int]) -> int:
    if kind.at_ground:
        return GROUND_COMPONENTS[kind]
    if kind is not Type.JOINT:
        return kind.width * len(model.bodies)
    return sum(body.joint_kind.nv for body in model.bodies if body.index not in locked)


def trace_context(program: StreamProgram, model: Model, absent: Set[str]) -> TraceContext:
    """A program in a robot's gravity."""
    gravity = tuple(float(g) for g in model.gravity)
    return TraceContext(program, gravity, GroundState.of(model), frozenset(absent))


def to_unrolled(
    scheduled: Schedule,
    model: Model,
    absent: Set[str] = frozenset(),
    locked: Set[int] = frozenset(),
    options: LoweringOptions = DEFAULT_OPTIONS,
    wrenches: WrenchFrames | None = None,
    own_coordinates: bool = False,
    added: Mapping[int, int] | None = None,
) -> Unrolled:
    """A program unrolled for a robot, in the cheapest of the frames that are allowed.

    Args:
        scheduled: The program.
        model: The robot.
        absent: Inputs that are not given: zero, or for gravity the robot's own.
        locked: Bodies whose joints are not free.
        options: What may be chosen.
        wrenches: Frames on which wrenches are given, in place of external forces on links.
        own_coordinates: Whether joint vectors are given in the robot's own coordinates, (nv,),
            rather than by the joints of the bodies; outputs may not be joint vectors.
        added: Joints with more inertia, which the program reads, see ``TracedLinks``.
    """
    seated = None if wrenches is None else SeatedWrenches(model, wrenches)
    formulated, signature, setting = _prepare(scheduled, model, absent, locked, options, seated)
    if own_coordinates:
        signature, setting = in_own_coordinates(model, formulated.program, signature, setting)
    if added is not None:
        signature = replace(signature, inputs={**signature.inputs, ADDED_INERTIA: model.nv})
    found = [
        trace_unrolled(formulated, links, signature, setting, seated, added)
        for links in link_number_choices(
            model, locked, options, _uses_second_moments(formulated.program)
        )
    ]
    return min(found, key=lambda program: count_arithmetic(program.count()))


def to_looped(
    scheduled: Schedule,
    model: Model,
    absent: Set[str] = frozenset(),
    locked: Set[int] = frozenset(),
    options: LoweringOptions = DEFAULT_OPTIONS,
) -> Looped:
    """The loops of a program on a robot; arguments as for ``to_unrolled``."""
    formulated, signature, setting = _prepare(scheduled, model, absent, locked, options)
    links = uniform_link_numbers(model, locked, options, _uses_second_moments(formulated.program))
    from phistar.scalar.trace.looped import trace_looped

    return trace_looped(formulated, links, signature, setting)


def _prepare(
    scheduled: Schedule,
    model: Model,
    absent: Set[str],
    locked: Set[int],
    options: LoweringOptions,
    wrenches: SeatedWrenches | None = None,
) -> tuple[Schedule, Signature, TraceContext]:
    signature = signature_of(scheduled, model, absent, locked, wrenches)
    formulated = scheduled.classical if options.classical else scheduled
    return formulated, signature, trace_context(formulated.program, model, absent)


def in_own_coordinates(
    model: Model, program: StreamProgram, signature: Signature, setting: TraceContext
) -> tuple[Signature, TraceContext]:
    """What is read, if joint vectors are (nv,): joints that follow others share their entries."""
    assert all(program.nodes[s].type is not Type.JOINT for s in program.outputs.values())
    given = (program.nodes[stream] for stream in program.live())
    over_joints = {node.data for node in given if node.op == "leaf" and node.type is Type.JOINT}
    sizes = {n: model.nv if n in over_joints else x for n, x in signature.inputs.items()}
    joints = joint_map(model)
    places = tuple(zip(joints.v_indices.tolist(), joints.scales.tolist(), strict=True))
    return replace(signature, inputs=sizes), replace(setting, joint_places=places)


def link_number_choices(
    model: Model, locked: Set[int], options: LoweringOptions, flat: bool = False
) -> Sequence[Sequence[LinkNumbers]]:
    """Links of the robot for each choice of frames, the most likely one last."""
    frames = ("file", "square") if options.frames == "best" else (options.frames,)
    regroup = ("flat" if flat else "line") if options.regroup else ""
    return [
        _cached_link_numbers(model, each, regroup, options.snap, frozenset(locked))
        for each in frames
    ]


def uniform_link_numbers(
    model: Model, locked: Set[int], options: LoweringOptions, flat: bool = False
) -> Sequence[LinkNumbers]:
    """The robot in the frames in which links are most alike; for loops."""
    alike = replace(options, frames="normal") if options.frames == "best" else options
    (links,) = link_number_choices(model, locked, alike, flat)
    return links


def _uses_second_moments(program: StreamProgram) -> bool:
    """Whether the inertia of links enters by their second moments, so that fewer of them help."""
    return any(program.nodes[stream].op == "rigid_force" for stream in program.live())


@cached_for_equal_models(64)
def _cached_link_numbers(
    model: Model, frames: str, regroup: str, snap: float, locked: frozenset[int]
) -> tuple[LinkNumbers, ...]:
    return tuple(build_link_numbers(model, frames, regroup, snap, locked))

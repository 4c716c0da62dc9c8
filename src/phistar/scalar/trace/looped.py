# SPDX-License-Identifier: BSD-3-Clause
"""Passes over links -> loops: one block of scalar operations for each pass and class of links.

Links of a class have the same joint kind and place in the tree and, if that gives few classes, the
same pattern of zeros among their constants; numbers in which they differ are read from a table.
Motions are read from the parent; forces and inertias are added to its sums: the first child stores,
the others add. If the link's own part of such a sum is known in an earlier pass, it is stored then
(a hoisted sum), and all children add. Loops are bound by memory: children compute U = α~ + ω~ω~
again instead of loading it. Compile time grows with the number of blocks, so classes that differ
only in their place share the blocks that do not depend on it.

Blocks are traced again until no more constants are found among what they store for each other; dead
stores are then removed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from phistar.model.components import GROUND
from phistar.scalar.allocate import Alias, allocate_slots
from phistar.scalar.graph import TABLE, Graph, Scalar, SlotKey, Value, cos, sin
from phistar.scalar.linear.inertias import SymmetricInertia, ZeroInertia, to_symmetric
from phistar.scalar.linear.vectors import Vector, zeros
from phistar.scalar.program import (
    BasicBlock,
    LinkSweep,
    LinkTable,
    Looped,
    Signature,
    Store,
    first_visited_siblings,
    keyed_store,
)
from phistar.scalar.robot.joint_transforms import cosine_and_sine, joint_transform
from phistar.scalar.robot.link_numbers import LinkNumbers
from phistar.scalar.robot.link_scalars import FamilyConstants, LinkScalars
from phistar.scalar.trace import link_operations
from phistar.scalar.trace.ground_tracer import GroundTracer
from phistar.scalar.trace.link_classes import classify_links, flatten, inertia_forms, unflatten
from phistar.scalar.trace.link_operations import LinkValue, PlacedLink, as_inertia, as_vector
from phistar.scalar.trace.link_tracer import LinkTracer, TraceContext
from phistar.sweeps.inlining import defining_stream
from phistar.sweeps.ir import Direction, Node, StreamProgram, Type
from phistar.sweeps.ops import Reduction
from phistar.sweeps.schedule import Schedule, Sweep
from phistar.sweeps.stream_types import GROUND_COMPONENTS

T = TypeVar("T")


def trace_looped(
    schedule: Schedule, links: Sequence[LinkNumbers], signature: Signature, setting: TraceContext
) -> Looped:
    """The loops of a program; arguments as for ``straight``."""
    sweeps = (*given_sweeps(schedule), *schedule.sweeps)
    return LoopedTracer(schedule.program, sweeps, links, signature, setting).trace()


def given_sweeps(schedule: Schedule) -> tuple[Sweep, ...]:
    """A pass for given streams that other links read, or that are outputs, before all others."""
    program = schedule.program
    read = {
        o
        for s in program.live()
        if program.nodes[s].spec.shift is not None
        for o in program.operands(s)
    }
    read |= set(program.outputs.values())
    given = tuple(sorted(s for s in read if program.nodes[s].spec.is_given))
    return (Sweep(Direction.OUTWARD, given),) if given else ()


class LoopedTracer:
    """All blocks of a program, and what they know of each other."""

    def __init__(
        self,
        program: StreamProgram,
        sweeps: Sequence[Sweep],
        links: Sequence[LinkNumbers],
        signature: Signature,
        context: TraceContext,
    ) -> None:
        self.program = program
        self.sweeps = tuple(sweeps)
        self.links = list(links)
        self.signature = signature
        self.context = context
        self.children: list[list[int]] = [[] for _ in links]
        for link in links:
            if link.parent != GROUND:
                self.children[link.parent].append(link.index)
        classes = classify_links(links, self.children, sum(1 for _ in program.live()))
        self.class_of = classes.class_of
        self.members: dict[int, list[int]] = defaultdict(list)
        self.family: dict[int, int] = {}
        for k, (c, family) in enumerate(zip(self.class_of, classes.family_of, strict=True)):
            self.members[c].append(k)
            self.family[c] = family
        families: dict[int, list[int]] = defaultdict(list)
        for k, family in enumerate(classes.family_of):
            families[family].append(k)
        self.constants = {
            family: FamilyConstants(
                [links[k] for k in members],
                classes.flat_numbers[members, : len(links[members[0]].flat_numbers)],
                len(families) > 1,
            )
            for family, members in families.items()
        }
        self.first_visited = {
            way: first_visited_siblings([link.parent for link in links], way) for way in Direction
        }
        self.sweep_of = {
            defining_stream(self.program, s): i
            for i, p in enumerate(self.sweeps)
            for s in p.streams
        }
        self.forms = inertia_forms(self.program)
        self.hoisted_sums = self._find_hoisted_sums()
        self.hoisted_by_shift = {each.shift_in: each for each in self.hoisted_sums.values()}
        self.stored_streams = self._kept()
        self.known_constants: dict[Alias, float] = {}
        self.value_shapes: dict[tuple[int, int], LinkValue] = {}
        self.stored_constants: dict[Alias, set[float | None]] = {}

    def _find_hoisted_sums(self) -> dict[Node, _HoistedSum]:
        """Sums of forces of the children and of terms that are known before these are pushed."""
        nodes, found = self.program.nodes, {}
        uses = Counter(o for s in self.program.live() for o in set(self.program.operands(s)))
        for stream in self.program.live():
            node = nodes[stream]
            shifts = [o for o in node.operands if nodes[o].op == "shift_in"]
            if node.op != "sum" or len(shifts) != 1 or not self.may_hoist(stream):
                continue
            hoisted = self._hoisted_sum(node, shifts[0]) if uses[shifts[0]] == 1 else None
            if hoisted is not None:
                found[node] = hoisted
        return found

    def _hoisted_sum(self, node: Node, inward: int) -> _HoistedSum | None:
        """A sum whose terms are partly known before the children push theirs, ``inward``."""
        child = self.program.nodes[inward].operands[0]
        pushed = self.sweep_of.get(defining_stream(self.program, child), 0)
        terms = [(f, o) for f, o in zip(node.data, node.operands, strict=True) if o != inward]
        early = [(f, o) for f, o in terms if self._made(o) < pushed]
        if not early or node.data[node.operands.index(inward)] != 1:
            return None
        late = [term for term in terms if term not in early]
        first = max(self._made(o) for _, o in early)
        return _HoistedSum(inward, first, tuple(early), tuple(late))

    def may_hoist(self, stream: int) -> bool:
        """Whether a sum may be begun before the forces of the children come."""
        return True

    def _made(self, stream: int) -> float:
        """The pass that makes a stream; none for given ones."""
        made = defining_stream(self.program, stream)
        given = self.program.nodes[made].spec.is_given
        return math.inf if given else self.sweep_of[made]

    def _kept(self) -> set[int]:
        """Streams that other passes or children read."""
        kept = set()
        for stream in self.program.live():
            node = self.program.nodes[stream]
            if node.type.at_ground and node.spec.reduction is None:
                continue
            if node.op != "rec" and node.spec.shift is not Direction.INWARD:
                kept |= self._read_elsewhere(node, self.sweep_of.get(stream))
        return kept

    def _read_elsewhere(self, node: Node, home: float | None) -> set[int]:
        hoisted = self.hoisted_sums.get(node)
        early = [] if hoisted is None else [o for _, o in hoisted.early_terms]
        found = set()
        for operand in node.operands:
            made = defining_stream(self.program, operand)
            if made not in self.sweep_of:
                continue
            reader = hoisted.sweep if hoisted is not None and operand in early else home
            if node.spec.shift is not Direction.OUTWARD:
                found |= {made} if self.sweep_of[made] != reader else set()
            elif self.program.nodes[made].op == "angular_acceleration_matrix":
                found |= {
                    defining_stream(self.program, o) for o in self.program.nodes[made].operands
                }
            else:
                found.add(made)
        return found

    def trace(self) -> Looped:
        """The program as loops."""
        loops = self.trace_to_fixed_point(lambda: self.trace_sweeps(len(self.sweeps)))
        done = allocate_slots(loops)
        table = self.link_table()
        return Looped(
            self.signature,
            table,
            done.link_sweeps,
            done.slots,
            forward_slots=done.forward_slots,
            ground_start=self.ground_start(),
        )

    def ground_start(self) -> dict[str, list[float]]:
        """What outputs at the ground begin with, before links add to them."""
        nodes = self.program.nodes

        def nothing(stream: int, node: Node) -> Vector:
            return zeros(GROUND_COMPONENTS[node.type])

        tracer = GroundTracer(self.program, self.context.ground, nothing)
        found: dict[str, list[float]] = {}
        for name, stream in self.program.outputs.items():
            if nodes[stream].type.at_ground:
                start = tracer.value(stream)
                found[name] = [x for x in start if isinstance(x, float)]
                assert len(found[name]) == len(start)
        return found

    def trace_to_fixed_point(self, trace: Callable[[], T]) -> T:
        """What is traced, with all constants that blocks leave to each other."""
        before = dict(self.known_constants)
        while True:
            self.stored_constants = defaultdict(set)
            result = trace()
            constant = {
                key: value
                for key, (value, *others) in self.stored_constants.items()
                if value is not None and not others
            }
            if before | constant == self.known_constants:
                return result
            self.known_constants = before | constant

    def trace_sweeps(self, count: int) -> list[LinkSweep]:
        """The loops of the first passes."""
        return [self._angles(), *(self._loop(i) for i in range(count))]

    def class_scalars(self, c: int, graph: Graph) -> LinkScalars:
        """The numbers of a class."""
        return self.constants[self.family[c]].scalars(lambda i: graph.load(TABLE, i, "link"))

    def _loop(self, number: int) -> LinkSweep:
        """A block for each class; those of a family that ask the same of their place share it."""
        bodies: dict[int, BasicBlock] = {}
        traced: list[ClassTracer] = []
        for c in self.members:
            tracer = ClassTracer(self, number, c)
            alike = next((each for each in traced if each.shares_block_with(tracer)), None)
            if alike is None:
                bodies[c] = tracer.trace_block()
                traced.append(tracer)
            else:
                bodies[c] = bodies[alike.c]
                for stream in alike.streams:
                    self.value_shapes[stream, c] = self.value_shapes[stream, alike.c]
        return LinkSweep(self.sweeps[number].direction, bodies)

    def _angles(self) -> LinkSweep:
        """Sines and cosines of all joint angles, once."""
        bodies: dict[int, BasicBlock] = {}
        for c, family in self.family.items():
            if family not in bodies:
                body = bodies[family] = BasicBlock()
                seen = AngleNumbers()

                def turned(angle: Scalar, seen: AngleNumbers = seen) -> tuple[Scalar, Scalar]:
                    seen.number(angle)
                    return cosine_and_sine(angle)

                own = self.class_scalars(c, body.graph)
                joint_transform(own, _coordinate_reader(body.graph), turned)
                for number, angle in enumerate(seen.angles):
                    stored = [("cos", cos(angle)), ("sin", sin(angle))]
                    body.stores += [keyed_store((n, number), "link", x) for n, x in stored]
        turning = {c: bodies[f] for c, f in self.family.items() if bodies[f].stores}
        return LinkSweep(Direction.OUTWARD, turning)

    def link_table(self) -> LinkTable:
        """The links as loops know them."""
        return LinkTable(
            self.class_of,
            [link.parent for link in self.links],
            [link.q for link in self.links],
            [link.v for link in self.links],
            [
                self.constants[self.family[c]].table_row(link)
                for c, link in zip(self.class_of, self.links, strict=True)
            ],
        )


class AngleNumbers:
    """The angles of a joint's transform, numbered as they come; the same one has one number."""

    def __init__(self) -> None:
        self.angles: list[Value] = []

    def number(self, angle: Scalar) -> int | None:
        """The number of an angle; None of a constant."""
        if not isinstance(angle, Value):
            return None
        known = [each.id for each in self.angles]
        if angle.id in known:
            return known.index(angle.id)
        self.angles.append(angle)
        return len(known)


@dataclass(frozen=True)
class _HoistedSum:
    """A sum of forces of the children and others.

    Attributes:
        shift_in: The forces of the children.
        sweep: The pass that puts the early terms where these are collected.
        early_terms, late_terms: The other terms, with their factors.
    """

    shift_in: int
    sweep: float
    early_terms: tuple[tuple[Fraction, int], ...]
    late_terms: tuple[tuple[Fraction, int], ...]


def _coordinate_reader(graph: Graph) -> Callable[[int], Scalar]:
    return lambda i: graph.load("q", i, "q")


class ClassTracer(LinkTracer):
    """One pass at all links of a class."""

    def __init__(self, roller: LoopedTracer, number: int, c: int) -> None:
        self.program_tracer = roller
        self.sweep = number
        self.c = c
        self.result = BasicBlock()
        self.graph = self.result.graph
        member = roller.members[c][0]
        link = roller.links[member]
        own = roller.class_scalars(c, self.graph)
        self._angles = AngleNumbers()
        place = PlacedLink(own, *joint_transform(own, _coordinate_reader(self.graph), self._turn))
        super().__init__(roller.context, place, link.parent == GROUND, member, link.v)
        made = [defining_stream(self.program, s) for s in roller.sweeps[number].streams]
        at_links = (s for s in made if not self.program.nodes[s].type.at_ground)
        self.streams = tuple(dict.fromkeys(at_links))
        self._asked: dict[str, object] = {}
        self._forms: dict[int, tuple[type, int]] = {}

    def shares_block_with(self, other: ClassTracer) -> bool:
        """Whether the block that was traced here is that of another class, too."""
        family = self.program_tracer.family
        return (
            (family[self.c], self.is_root) == (family[other.c], other.is_root)
            and all(getattr(other, asked) == answer for asked, answer in self._asked.items())
            and all(other.value_form(stream) == form for stream, form in self._forms.items())
        )

    def value_form(self, stream: int) -> tuple[type, int]:
        """What an earlier pass left of a stream: tips may have a simpler kind of inertia."""
        shape = self.program_tracer.value_shapes[stream, self.c]
        self._forms[stream] = found = (type(shape), len(flatten(shape)))
        return found

    @property
    def is_leaf(self) -> bool:
        """Whether the links have no children."""
        self._asked["is_leaf"] = found = not self.program_tracer.children[
            self.program_tracer.members[self.c][0]
        ]
        return found

    @property
    def is_first_visited(self) -> bool | None:
        """Whether the links are the first of their siblings in this pass; None if some are."""
        flags = self.program_tracer.first_visited[self.program_tracer.sweeps[self.sweep].direction]
        found = {flags[k] for k in self.program_tracer.members[self.c]}
        self._asked["is_first_visited"] = answer = None if len(found) > 1 else found.pop()
        return answer

    def _turn(self, angle: Scalar) -> tuple[Scalar, Scalar]:
        number = self._angles.number(angle)
        if number is None:
            return cosine_and_sine(angle)
        return self._load(("cos", number), "link"), self._load(("sin", number), "link")

    def trace_block(self) -> BasicBlock:
        """What is done at a link in this pass."""
        roller = self.program_tracer
        for stream in self.streams:
            roller.value_shapes[stream, self.c] = self.value(stream)
        for stream in self.streams:
            if stream in roller.stored_streams:
                for i, x in enumerate(flatten(self.value(stream))):
                    self._store((stream, i), "link", x)
        for hoisted in roller.hoisted_sums.values():
            if hoisted.sweep == self.sweep:
                self._store_hoisted(hoisted)
        self._push_to_parent()
        self._outputs()
        return self.result

    def _outputs(self) -> None:
        for name, stream in self.program.outputs.items():
            made = defining_stream(self.program, stream)
            if self.program.nodes[made].type.at_ground:
                self._add_at_ground(name, made)
            elif self.program_tracer.sweep_of.get(made, 0) == self.sweep:
                self._output(name, self.program.nodes[made].type, self.value(made))

    def _add_at_ground(self, name: str, output: int) -> None:
        """Add what this link has, if it is of this pass, to an output that is a sum over links."""

        def term(stream: int, node: Node) -> Vector:
            here = self.program_tracer.sweep_of[stream] == self.sweep
            if not here or (node.spec.reduction is Reduction.ROOTS and not self.is_root):
                return zeros(GROUND_COMPONENTS[node.type])
            operands = (self.value(o) for o in node.operands)
            return as_vector(link_operations.LINK_OPERATIONS[node.op](self.placed, *operands))

        tracer = GroundTracer(self.program, self.context.ground, term, with_constants=False)
        for i, x in enumerate(tracer.value(output)):
            if not isinstance(x, float) or x != 0.0:
                self.result.stores.append(Store(name, i, "ground", x, add=True))

    def _store_hoisted(self, hoisted: _HoistedSum) -> None:
        """Put what is known of a sum where the children will add to it."""
        total: LinkValue | None = None
        for factor, stream in hoisted.early_terms:
            total = link_operations.add_term(total, factor, self.value(stream))
        assert total is not None
        for i, x in enumerate(as_vector(total)):
            self._store((hoisted.shift_in, i), "link", x)

    def _sum(self, node: Node) -> LinkValue:
        hoisted = self.program_tracer.hoisted_sums.get(node)
        if hoisted is None:
            return super()._sum(node)
        total = self.sum_over_children(hoisted.shift_in, self.program.nodes[hoisted.shift_in])
        for factor, stream in hoisted.late_terms:
            total = link_operations.add_term(total, factor, self.value(stream))
        return total

    def _push_to_parent(self) -> None:
        """Forces and inertias that were made here, moved to the parent."""
        if self.is_root:
            return
        roller = self.program_tracer
        for stream in self.program.live():
            node = self.program.nodes[stream]
            if node.spec.shift is not Direction.INWARD:
                continue
            operand = defining_stream(self.program, node.operands[0])
            if roller.sweep_of.get(operand, 0) == self.sweep and self._is_pushed(stream):
                begins = self._is_first_push(stream, operand)
                for i, x in enumerate(flatten(self._in_parent(stream, node, self.value(operand)))):
                    self._store((stream, i), "parent", x, begins)

    def _is_pushed(self, stream: int) -> bool:
        """Whether there is something to push."""
        return True

    def _is_first_push(self, stream: int, operand: int) -> bool | None:
        """Whether what is pushed begins a sum; None if it does at some links."""
        return False if stream in self.program_tracer.hoisted_by_shift else self.is_first_visited

    def _in_parent(self, stream: int, node: Node, value: LinkValue) -> LinkValue:
        moved = link_operations.LINK_OPERATIONS[node.op](self.placed, value)
        form = self.program_tracer.forms.get(stream)
        if isinstance(form, SymmetricInertia):
            return to_symmetric(as_inertia(moved))
        return form if form is not None and isinstance(moved, ZeroInertia) else moved

    def _store(self, key: SlotKey, base: str, x: Scalar, begins: bool | None = True) -> None:
        """Store a number, add it (begins: False), or one or the other (None)."""
        # Equal numbers that are added do not stay what they are, unless they are zero.
        same = isinstance(x, float) and (base == "link" or x == 0.0)
        for place in self.key_aliases(key, base):
            self.program_tracer.stored_constants[place].add(x if same else None)  # type: ignore[arg-type]
        if begins is not False or not isinstance(x, float) or x != 0.0:
            store = keyed_store(key, base, x, begins is not True, begins is None)
            self.result.stores.append(store)

    def _load(self, key: SlotKey, base: str) -> Scalar:
        known, *others = {
            self.program_tracer.known_constants.get(place) for place in self.key_aliases(key, base)
        }
        return self.graph.load_key(key, base) if known is None or others else known

    def key_aliases(self, key: SlotKey, base: str) -> tuple[Alias, ...]:
        """What a key may stand for."""
        return (key,)

    def _output(self, name: str, kind: Type, value: LinkValue) -> None:
        base = {Type.JOINT: "v", Type.PLANE: "plane"}.get(kind, "body")
        self.result.stores += [
            Store(name, i, base, x)
            for i, x in enumerate(self.in_body_frame(kind, as_vector(value)))
        ]

    def in_body_frame(self, kind: Type, value: Vector) -> Vector:
        """A value in the frames of the model."""
        if kind is Type.JOINT:
            return value
        return self.placed.to_body_frame(kind)(value)

    def _value(self, stream: int) -> LinkValue:
        made = self.program_tracer.sweep_of.get(stream)
        node = self.program.nodes[stream]
        if made is None or made >= self.sweep or self._is_rematerialized(node):
            return super()._value(stream)
        _, size = self.value_form(stream)
        shape = self.program_tracer.value_shapes[stream, self.c]
        return unflatten(shape, [self._load((stream, i), "link") for i in range(size)])

    def _is_rematerialized(self, node: Node) -> bool:
        """Whether a stream costs nothing: given, or a given joint vector along the joint's axes."""
        if node.spec.is_given:
            return True
        return node.op == "Ht" and self.program.nodes[node.operands[0]].op == "leaf"

    def input_entry(self, name: str, i: int, base: str) -> Scalar:
        """See ``LinkTracer``."""
        return self.graph.load(name, i, base)

    def parent_value(self, stream: int) -> LinkValue:
        """See ``LinkTracer``."""
        made = defining_stream(self.program, stream)
        kind = self.program.nodes[made].type
        if kind is Type.ANGULAR_ACCELERATION_MATRIX:
            motions = [as_vector(self.parent_value(o)) for o in self.program.nodes[made].operands]
            return link_operations.angular_acceleration_matrix(*motions)
        form: LinkValue = zeros(kind.width)
        if kind in (Type.INERTIA, Type.TRANSFER):
            form = self.program_tracer.forms[made]
        return unflatten(form, [self._load((made, i), "parent") for i in range(len(flatten(form)))])

    def sum_over_children(self, stream: int, node: Node) -> LinkValue:
        """See ``LinkTracer``."""
        if stream not in self.program_tracer.hoisted_by_shift and self.is_leaf:
            return self._zero(node)
        form: LinkValue = self.program_tracer.forms.get(stream) or zeros(node.type.width)
        return unflatten(form, [self._load((stream, i), "link") for i in range(len(flatten(form)))])

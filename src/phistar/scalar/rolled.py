# SPDX-License-Identifier: BSD-3-Clause
"""Passes over links -> loops: one body of scalar operations for each pass and class of links.

Links of a class have the same joint kind and place in the tree and, if that gives few classes, the
same pattern of zeros among their constants; numbers in which they differ are read from a table.
Motions are read from the parent; forces and inertias are pushed to it: the first child stores, the
others add. If the link's own part of such a sum is known in an earlier pass, it is put there then,
and all children add. Memory is what loops wait for: U = α~ + ω~ω~ is made again by the children
rather than kept. Compilation takes its time by the body, so classes that differ in their place
alone share the bodies that do not depend on it.

Bodies are traced again until no more constants are found among what they leave to each other; what
nobody reads is then dropped.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from phistar.model.parts import GROUND
from phistar.scalar import emit
from phistar.scalar.classes import classes_of, flatten, inertia_forms, like
from phistar.scalar.emit import Place
from phistar.scalar.graph import Graph, Scalar, Value, cos, sin
from phistar.scalar.inertia import Inertia, Nothing, Symmetric, symmetric
from phistar.scalar.joints import cosine_and_sine, transform
from phistar.scalar.links import Link
from phistar.scalar.numbers import Constants, Numbers
from phistar.scalar.program import Body, Links, Loop, Rolled, Signature, Store, first_met
from phistar.scalar.slots import Key, with_slots
from phistar.scalar.tracer import LinkTracer, Setting
from phistar.sweeps.ir import SHIFTS, Direction, Node, Program, Type
from phistar.sweeps.lines import resolve
from phistar.sweeps.schedule import GIVEN_OPS, Pass, Schedule

T = TypeVar("T")


def rolled(
    schedule: Schedule, links: Sequence[Link], signature: Signature, setting: Setting
) -> Rolled:
    """The loops of a program; arguments as for ``straight``."""
    passes = (*early(schedule), *schedule.passes)
    return Roller(schedule.program, passes, links, signature, setting).roll()


def early(schedule: Schedule) -> tuple[Pass, ...]:
    """A pass for given streams that other links read, or that are outputs, before all others."""
    program = schedule.program
    read = {o for s in program.live() if program.nodes[s].op in SHIFTS for o in program.operands(s)}
    read |= set(program.outputs.values())
    given = tuple(sorted(s for s in read if program.nodes[s].op in GIVEN_OPS))
    return (Pass(Direction.OUTWARD, given),) if given else ()


class Roller:
    """All bodies of a program, and what they know of each other."""

    def __init__(
        self,
        program: Program,
        passes: Sequence[Pass],
        links: Sequence[Link],
        signature: Signature,
        setting: Setting,
    ) -> None:
        self.program = program
        self.passes = tuple(passes)
        self.links = list(links)
        self.signature = signature
        self.setting = setting
        self.children: list[list[int]] = [[] for _ in links]
        for link in links:
            if link.parent != GROUND:
                self.children[link.parent].append(link.index)
        classes = classes_of(links, self.children, sum(1 for _ in program.live()))
        self.class_of = classes.class_of
        self.members: dict[int, list[int]] = defaultdict(list)
        self.family: dict[int, int] = {}
        for k, (c, family) in enumerate(zip(self.class_of, classes.family_of, strict=True)):
            self.members[c].append(k)
            self.family[c] = family
        families: dict[int, list[Link]] = defaultdict(list)
        for link, family in zip(links, classes.family_of, strict=True):
            families[family].append(link)
        self.constants = {
            family: Constants(members, len(families) > 1) for family, members in families.items()
        }
        self.begins = {way: first_met([link.parent for link in links], way) for way in Direction}
        self.pass_of = {
            resolve(self.program, s): i for i, p in enumerate(self.passes) for s in p.streams
        }
        self.forms = inertia_forms(self.program)
        self.presums = self._presums()
        self.presummed = {each.shin: each for each in self.presums.values()}
        self.kept = self._kept()
        self.known: dict[Any, float] = {}
        self.shapes: dict[tuple[int, int], Any] = {}
        self.stored: dict[Any, set[float | None]] = {}

    def _presums(self) -> dict[Node, _Presum]:
        """Sums of forces of the children and of terms that are known before these are pushed."""
        nodes, found = self.program.nodes, {}
        uses = Counter(o for s in self.program.live() for o in set(self.program.operands(s)))
        for stream in self.program.live():
            node = nodes[stream]
            shins = [o for o in node.operands if nodes[o].op == "shin"]
            if node.op != "sum" or len(shins) != 1 or uses[shins[0]] != 1:
                continue
            if not self.may_begin(stream):
                continue
            pushed = self.pass_of.get(resolve(self.program, nodes[shins[0]].operands[0]), 0)
            terms = [(f, o) for f, o in zip(node.data, node.operands, strict=True) if o != shins[0]]
            early = [(f, o) for f, o in terms if self._made(o) < pushed]
            if early and node.data[node.operands.index(shins[0])] == 1:
                late = [term for term in terms if term not in early]
                first = max(self._made(o) for _, o in early)
                found[node] = _Presum(shins[0], first, tuple(early), tuple(late))
        return found

    def may_begin(self, stream: int) -> bool:
        """Whether a sum may be begun before the forces of the children come."""
        return True

    def _made(self, stream: int) -> float:
        """The pass that makes a stream; none for given ones."""
        made = resolve(self.program, stream)
        given = self.program.nodes[made].op in GIVEN_OPS
        return math.inf if given else self.pass_of[made]

    def _kept(self) -> set[int]:
        """Streams that other passes or children read."""
        kept = set()
        for stream in self.program.live():
            node = self.program.nodes[stream]
            if node.op not in ("rec", "shin", "cong"):
                kept |= self._read_elsewhere(node, self.pass_of.get(stream))
        return kept

    def _read_elsewhere(self, node: Node, home: float | None) -> set[int]:
        presum = self.presums.get(node)
        early = [] if presum is None else [o for _, o in presum.early]
        found = set()
        for operand in node.operands:
            made = resolve(self.program, operand)
            if made not in self.pass_of:
                continue
            reader = presum.walk if presum is not None and operand in early else home
            if SHIFTS.get(node.op) is not Direction.OUTWARD:
                found |= {made} if self.pass_of[made] != reader else set()
            elif self.program.nodes[made].op == "turning":
                found |= {resolve(self.program, o) for o in self.program.nodes[made].operands}
            else:
                found.add(made)
        return found

    def roll(self) -> Rolled:
        """The program as loops."""
        loops = self.settled(lambda: self.loops(len(self.passes)))
        done = with_slots(loops)
        table = self.link_table()
        return Rolled(self.signature, table, done.loops, done.slots, hands=done.hands)

    def settled(self, trace: Callable[[], T]) -> T:
        """What is traced, with all constants that bodies leave to each other."""
        before = dict(self.known)
        while True:
            self.stored = defaultdict(set)
            result = trace()
            constant = {
                key: value
                for key, (value, *others) in self.stored.items()
                if value is not None and not others
            }
            if before | constant == self.known:
                return result
            self.known = before | constant

    def loops(self, count: int) -> list[Loop]:
        """The loops of the first passes."""
        return [self._angles(), *(self._loop(i) for i in range(count))]

    def numbers(self, c: int, graph: Graph) -> Numbers:
        """The numbers of a class."""
        return self.constants[self.family[c]].numbers(lambda i: graph.load("table", i, "link"))

    def _loop(self, number: int) -> Loop:
        """A body for each class; those of a family that ask the same of their place share it."""
        bodies: dict[int, Body] = {}
        traced: list[ClassTracer] = []
        for c in self.members:
            tracer = ClassTracer(self, number, c)
            alike = next((each for each in traced if each.answers(tracer)), None)
            if alike is None:
                bodies[c] = tracer.body()
                traced.append(tracer)
            else:
                bodies[c] = bodies[alike.c]
                for stream in alike.streams:
                    self.shapes[stream, c] = self.shapes[stream, alike.c]
        return Loop(self.passes[number].direction, bodies)

    def _angles(self) -> Loop:
        """Sines and cosines of all joint angles, once."""
        bodies: dict[int, Body] = {}
        for c, family in self.family.items():
            if family not in bodies:
                body = bodies[family] = Body()
                seen = _Angle()
                transform(self.numbers(c, body.graph), _coordinates(body.graph), seen)
                if isinstance(seen.angle, Value):
                    turned = [("cos", cos(seen.angle)), ("sin", sin(seen.angle))]
                    body.stores = [Store("work", (n, 0), "link", x) for n, x in turned]
        turning = {c: bodies[f] for c, f in self.family.items() if bodies[f].stores}
        return Loop(Direction.OUTWARD, turning)

    def link_table(self) -> Links:
        """The links as loops know them."""
        return Links(
            self.class_of,
            [link.parent for link in self.links],
            [link.q for link in self.links],
            [link.v for link in self.links],
            [
                self.constants[self.family[c]].row(link)
                for c, link in zip(self.class_of, self.links, strict=True)
            ],
        )


class _Angle:
    """Notes the angle of a joint instead of turning it into sine and cosine."""

    def __init__(self) -> None:
        self.angle: Scalar = 0.0

    def __call__(self, angle: Scalar) -> tuple[Scalar, Scalar]:
        self.angle = angle
        return 1.0, 0.0


@dataclass(frozen=True)
class _Presum:
    """A sum of forces of the children and others.

    Attributes:
        shin: The forces of the children.
        walk: The pass that puts the early terms where these are collected.
        early, late: The other terms, with their factors.
    """

    shin: int
    walk: float
    early: tuple[tuple[Fraction, int], ...]
    late: tuple[tuple[Fraction, int], ...]


def _coordinates(graph: Graph) -> Any:
    return lambda i: graph.load("q", i, "q")


class ClassTracer(LinkTracer):
    """One pass at all links of a class."""

    def __init__(self, roller: Roller, number: int, c: int) -> None:
        self.roller = roller
        self.walk = number
        self.c = c
        self.result = Body()
        self.graph = self.result.graph
        member = roller.members[c][0]
        link = roller.links[member]
        own = roller.numbers(c, self.graph)
        place = Place(own, *transform(own, _coordinates(self.graph), self._turn))
        super().__init__(roller.setting, place, link.parent == GROUND, member, link.v)
        self.streams = tuple(
            dict.fromkeys(resolve(self.program, s) for s in roller.passes[number].streams)
        )
        self._asked: dict[str, object] = {}
        self._forms: dict[int, tuple[type, int]] = {}

    def answers(self, other: ClassTracer) -> bool:
        """Whether the body that was traced here is that of another class, too."""
        family = self.roller.family
        return (
            (family[self.c], self.root) == (family[other.c], other.root)
            and all(getattr(other, asked) == answer for asked, answer in self._asked.items())
            and all(other.form(stream) == form for stream, form in self._forms.items())
        )

    def form(self, stream: int) -> tuple[type, int]:
        """What an earlier pass left of a stream: tips may have a simpler kind of inertia."""
        shape = self.roller.shapes[stream, self.c]
        self._forms[stream] = found = (type(shape), len(flatten(shape)))
        return found

    @property
    def tip(self) -> bool:
        """Whether the links have no children."""
        self._asked["tip"] = found = not self.roller.children[self.roller.members[self.c][0]]
        return found

    @property
    def begins(self) -> bool | None:
        """Whether the links are the first of their siblings in this pass; None if some are."""
        flags = self.roller.begins[self.roller.passes[self.walk].direction]
        found = {flags[k] for k in self.roller.members[self.c]}
        self._asked["begins"] = answer = None if len(found) > 1 else found.pop()
        return answer

    def _turn(self, angle: Scalar) -> tuple[Scalar, Scalar]:
        if not isinstance(angle, Value):
            return cosine_and_sine(angle)
        return self._read(("cos", 0), "link"), self._read(("sin", 0), "link")

    def body(self) -> Body:
        """What is done at a link in this pass."""
        roller = self.roller
        for stream in self.streams:
            roller.shapes[stream, self.c] = self.value(stream)
        for stream in self.streams:
            if stream in roller.kept:
                for i, x in enumerate(flatten(self.value(stream))):
                    self._leave((stream, i), "link", x)
        for presum in roller.presums.values():
            if presum.walk == self.walk:
                self._begin(presum)
        self._push()
        self._outputs()
        return self.result

    def _outputs(self) -> None:
        for name, stream in self.program.outputs.items():
            made = resolve(self.program, stream)
            if self.roller.pass_of.get(made, 0) == self.walk:
                self._output(name, self.program.nodes[made].type, self.value(made))

    def _begin(self, presum: _Presum) -> None:
        """Put what is known of a sum where the children will add to it."""
        total: Any = None
        for factor, stream in presum.early:
            total = emit.with_term(total, factor, self.value(stream))
        for i, x in enumerate(total):
            self._leave((presum.shin, i), "link", x)

    def _sum(self, node: Node) -> Any:
        presum = self.roller.presums.get(node)
        if presum is None:
            return super()._sum(node)
        total = self.of_children(presum.shin, self.program.nodes[presum.shin])
        for factor, stream in presum.late:
            total = emit.with_term(total, factor, self.value(stream))
        return total

    def _push(self) -> None:
        """Forces and inertias that were made here, moved to the parent."""
        if self.root:
            return
        roller = self.roller
        for stream in self.program.live():
            node = self.program.nodes[stream]
            if node.op not in ("shin", "cong"):
                continue
            operand = resolve(self.program, node.operands[0])
            if roller.pass_of.get(operand, 0) == self.walk and self._is_pushed(stream):
                begins = self._begins(stream, operand)
                for i, x in enumerate(flatten(self._moved(stream, node, self.value(operand)))):
                    self._leave((stream, i), "parent", x, begins)

    def _is_pushed(self, stream: int) -> bool:
        """Whether there is something to push."""
        return True

    def _begins(self, stream: int, operand: int) -> bool | None:
        """Whether what is pushed begins a sum; None if it does at some links."""
        return False if stream in self.roller.presummed else self.begins

    def _moved(self, stream: int, node: Node, value: Any) -> Any:
        if node.op == "shin":
            return self.place.inward(value)
        inertia: Inertia = value.moved(self.place.rotation, self.place.offset)
        form = self.roller.forms[stream]
        if isinstance(form, Symmetric):
            return symmetric(inertia)
        return form if isinstance(inertia, Nothing) else inertia

    def _leave(self, key: Key, base: str, x: Scalar, begins: bool | None = True) -> None:
        """Store a number, add it (begins: False), or one or the other (None)."""
        # Equal numbers that are added do not stay what they are, unless they are zero.
        same = isinstance(x, float) and (base == "link" or x == 0.0)
        for place in self.places(key, base):
            self.roller.stored[place].add(x if same else None)  # type: ignore[arg-type]
        if begins is not False or not isinstance(x, float) or x != 0.0:
            store = Store("work", key, base, x, begins is not True, begins is None)
            self.result.stores.append(store)

    def _read(self, key: Key, base: str) -> Scalar:
        known, *others = {self.roller.known.get(place) for place in self.places(key, base)}
        return self.graph.load("work", key, base) if known is None or others else known

    def places(self, key: Key, base: str) -> tuple[Any, ...]:
        """What a key may stand for."""
        return (key,)

    def _output(self, name: str, kind: Type, value: Any) -> None:
        base = "v" if kind is Type.JOINT else "body"
        self.result.stores += [
            Store(name, i, base, x) for i, x in enumerate(self.shown(kind, value))
        ]

    def shown(self, kind: Type, value: Any) -> Any:
        """A value in the frames of the model."""
        if kind is Type.JOINT:
            return value
        return (self.place.unseat_force if kind is Type.FORCE else self.place.unseat_motion)(value)

    def _value(self, stream: int) -> Any:
        made = self.roller.pass_of.get(stream)
        node = self.program.nodes[stream]
        if made is None or made >= self.walk or self._is_remade(node):
            return super()._value(stream)
        _, size = self.form(stream)
        shape = self.roller.shapes[stream, self.c]
        return like(shape, [self._read((stream, i), "link") for i in range(size)])

    def _is_remade(self, node: Node) -> bool:
        """Whether a stream costs nothing: given, or a given joint vector along the joint's axes."""
        if node.op in GIVEN_OPS:
            return True
        return node.op == "Ht" and self.program.nodes[node.operands[0]].op == "leaf"

    def entry(self, name: str, i: int, base: str) -> Scalar:
        """See ``LinkTracer``."""
        return self.graph.load(name, i, base)

    def of_parent(self, stream: int) -> Any:
        """See ``LinkTracer``."""
        made = resolve(self.program, stream)
        kind = self.program.nodes[made].type
        if kind is Type.TURNING:
            operands = self.program.nodes[made].operands
            return emit.turning(*(self.of_parent(o) for o in operands))
        form = self.roller.forms[made] if kind in (Type.INERTIA, Type.TRANSFER) else [0.0] * 6
        return like(form, [self._read((made, i), "parent") for i in range(len(flatten(form)))])

    def of_children(self, stream: int, node: Node) -> Any:
        """See ``LinkTracer``."""
        if stream not in self.roller.presummed and self.tip:
            return [0.0] * 6 if node.op == "shin" else Nothing()
        form = [0.0] * 6 if node.op == "shin" else self.roller.forms[stream]
        return like(form, [self._read((stream, i), "link") for i in range(len(flatten(form)))])

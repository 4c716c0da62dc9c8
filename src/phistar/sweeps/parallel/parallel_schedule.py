# SPDX-License-Identifier: BSD-3-Clause
"""Streams -> stages: each recursion is classified, and gets the associative join of its class.

    affine      x = L s + b, s the value shifted from the parent or the children     φ, φ*, ψ, ψ*
    congruence  the same of inertias, moved on both sides                            composites
    riccati     P = M + Σ φ P⁺ φ*, P⁺ = P - P H* D⁻¹ H P                              articulated

All others belong to no class and are refused. Where L is the identity, what is joined are poses, a
group product that all such recursions share. A Riccati recursion is joined by the star product
(``parallel.star``), which gives P at every link; recursions through free joints, ψ and ψ*, are
affine then.

One rule goes further. A Riccati recursion is mostly there for a pair of affine ones: inward through
free joints, x = z + G (τ - H z), z = b + P a + Σ φ x, and back outward, α = φ* α + a + H* v̇ with
v̇ = D⁻¹ (τ - H z) - G* φ* α. Together they are a right-hand side (a, b, τ) of the star product: its
vectors go up in the rounds of the matrices and down again, and P, G, D, z are never formed unless
something else asks for them. The pair is found by the forms of its streams, in any program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from phistar.errors import LoweringError
from phistar.sweeps.ir import Direction, StreamProgram, Type
from phistar.sweeps.parallel.linear_forms import (
    Cycle,
    Form,
    NotAffineError,
    Word,
    defining,
    flat,
)
from phistar.sweeps.schedule import Schedule, strong_components


@dataclass(frozen=True, eq=False)
class RoundStage:
    """A step of a parallel program, of all links at once or in rounds.

    Attributes:
        gives: The streams that it computes, in order.
        needs: The streams that it reads.
    """

    gives: tuple[int, ...]
    needs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Local(RoundStage):
    """A stream of which every link computes its own, from its own or its neighbours' values."""


@dataclass(frozen=True, eq=False)
class Scan(RoundStage):
    """A recursion whose state is an affine function of what is shifted.

    Attributes:
        cycle: Its streams.
        words: The linear part by words: factors.
        two_sided: Whether it is of matrices, to which the linear part applies on both sides.
        direction: Which way it goes.
    """

    cycle: Cycle
    words: tuple[tuple[Word, Fraction], ...]
    two_sided: bool
    direction: Direction

    @property
    def by_poses(self) -> bool:
        """Whether nothing happens at joints: segments are joined as poses."""
        return self.words == (((), Fraction(1)),)

    @property
    def transfer_key(self) -> object:
        """What its products of segments depend on, so that recursions can share them."""
        return "poses" if self.by_poses else (self.words, self.direction)


@dataclass(frozen=True, eq=False)
class RiccatiScan(RoundStage):
    """The articulated inertias, by the star product.

    Attributes:
        cycle: Its streams.
        inertia: The stream of inertias that enter at each link.
    """

    cycle: Cycle
    inertia: int


@dataclass(frozen=True, eq=False)
class StarPair(RoundStage):
    """An inward recursion through free joints and the outward one that goes with it.

    Attributes:
        riccati: Whose star product it is a right-hand side of.
        a, b, tau: What enters at each link.
        entering, acceleration, rates: Streams φ* α of the parent, α, and v̇.
    """

    riccati: RiccatiScan
    a: int
    b: int
    tau: int
    entering: int
    acceleration: int
    rates: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ParallelSchedule:
    """A program as stages, in an order in which each has what it needs.

    Attributes:
        sequential: The same program as sweeps.
        program: With the streams that pairs need besides.
        stages: The steps.
    """

    sequential: Schedule
    program: StreamProgram
    stages: tuple[RoundStage, ...]

    @cached_property
    def riccati(self) -> RiccatiScan | None:
        """The Riccati recursion whose star products are made, if there is one."""
        for each in self.stages:
            if isinstance(each, (RiccatiScan, StarPair)):
                return each.riccati if isinstance(each, StarPair) else each
        return None

    @property
    def needs_articulated(self) -> bool:
        """Whether articulated inertias are wanted at the links themselves."""
        return any(isinstance(each, RiccatiScan) for each in self.stages)


def parallel_schedule(sequential: Schedule) -> ParallelSchedule:
    """The stages of a program.

    Raises:
        LoweringError: One of its recursions is of no class with an associative join.
    """
    return _Scheduler(sequential).schedule()


@dataclass
class _Scheduler:
    """One program on its way."""

    sequential: Schedule
    program: StreamProgram = field(init=False)
    maker: dict[int, RoundStage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.sequential.program
        self.program = StreamProgram(
            list(given.nodes),
            dict(given.definitions),
            dict(given.names),
            dict(given.outputs),
            {node: number for number, node in enumerate(given.nodes)},
        )

    def schedule(self) -> ParallelSchedule:
        components = strong_components(self.program)
        cycles: list[Cycle] = []
        for members in components:
            if len(members) == 1 and not self._is_cyclic(members[0]):
                self._add_local(members[0])
            else:
                cycles.append(self._cycle(members))
        riccati = [self._riccati(each) for each in cycles if self._is_riccati(each)]
        scans = [each for each in cycles if not self._is_riccati(each)]
        for each in riccati:
            for stream in each.gives:
                self.maker[stream] = each
        self._pending = {stream: cycle for cycle in scans for stream in cycle.members}
        for recursion in riccati:
            for outward in scans:
                self._pair(recursion, scans, outward)
        return ParallelSchedule(self.sequential, self.program, tuple(self._ordered()))

    def _is_cyclic(self, stream: int) -> bool:
        return stream in self.program.operands(stream)

    def _add_local(self, stream: int) -> None:
        self.maker[stream] = Local((stream,), tuple(self.program.operands(stream)))

    def _cycle(self, members: list[int]) -> Cycle:
        inside = frozenset(members)
        nodes = self.program.nodes
        shifts = [s for s in members if nodes[s].spec.shift is not None]
        crossing = [s for s in shifts if inside.intersection(nodes[s].operands)]
        if len(crossing) != 1 or len(nodes[crossing[0]].operands) != 1:
            raise LoweringError(self._refusal(crossing or members))
        return Cycle(
            self.program,
            inside,
            crossing[0],
            defining(self.program, nodes[crossing[0]].operands[0]),
        )

    def _refusal(self, streams: list[int]) -> str:
        names = self.program.names
        ops = ", ".join(sorted({self.program.nodes[s].op for s in streams}))
        called = [names[s] for s in streams if s in names]
        what = f"the recursion of {called[0]}" if called else f"a recursion through {ops}"
        return (
            f"{what} is of no class that has an associative join (affine, congruence, Riccati): "
            'it has no parallel schedule; compile it with schedule="sequential"'
        )

    # -- classes

    def _is_riccati(self, cycle: Cycle) -> bool:
        return any(self.program.nodes[s].op == "articulated_downdate" for s in cycle.members)

    def _riccati(self, cycle: Cycle) -> RiccatiScan:
        nodes = self.program.nodes
        sums = [
            s for s in cycle.members if nodes[s].op == "sum" and cycle.shift in nodes[s].operands
        ]
        ops = sorted(nodes[s].op for s in cycle.members)
        wanted = ["D", "G", "U", "articulated_downdate", "congruence_in", "sum"]
        if [op for op in ops if op != "rec"] != wanted or len(sums) != 1:
            raise LoweringError(self._refusal(sorted(cycle.members)))
        terms = zip(nodes[sums[0]].data, nodes[sums[0]].operands, strict=True)
        inertia = self.program.sum([(c, o) for c, o in terms if o != cycle.shift])
        self._make(inertia)
        return RiccatiScan(self._in_order(cycle, [cycle.shift]), (inertia,), cycle, inertia)

    def _scan(self, cycle: Cycle) -> Scan:
        """A recursion as a scan.

        Raises:
            LoweringError: It is not affine, or nothing is known to join its linear parts.
        """
        shift = self.program.nodes[cycle.shift]
        direction = shift.spec.shift
        assert direction is not None
        try:
            form = cycle.form(cycle.state)
        except NotAffineError as error:
            raise LoweringError(self._refusal([error.stream])) from None
        words = tuple((w, c) for (w, source), c in form.items() if source == cycle.shift)
        two_sided = shift.type in (Type.INERTIA, Type.TRANSFER)
        if not _is_joined(shift.op, words, two_sided):
            raise LoweringError(self._refusal([cycle.shift]))
        gives = self._in_order(cycle, [cycle.shift])
        outer = {o for s in gives for o in self.program.operands(s)} - cycle.members
        return Scan(gives, tuple(sorted(outer)), cycle, words, two_sided, direction)

    def _in_order(self, cycle: Cycle, known: list[int]) -> tuple[int, ...]:
        """The streams of a recursion, what is known first, operands before results."""
        done = dict.fromkeys(known)
        for root in sorted(cycle.members):
            stack = [(root, False)]
            while stack:
                stream, ready = stack.pop()
                if stream in done:
                    continue
                if ready:
                    done[stream] = None
                    continue
                stack.append((stream, True))
                stack += [(o, False) for o in self.program.operands(stream) if o in cycle.members]
        return tuple(done)

    # -- pairs

    def _pair(self, riccati: RiccatiScan, scans: list[Cycle], outward: Cycle) -> None:
        """Join an outward recursion with the inward one that feeds it, if they are a pair."""
        pair = _PairFinder(self.program, riccati, outward).found(scans)
        if pair is None:
            return
        for stream in (pair.a, pair.b, pair.tau):
            self._make(stream)
        for stream in pair.gives:
            self.maker[stream] = pair
        # Whatever else this recursion holds is computed from what the pair gives.
        for stream in outward.members.difference(pair.gives):
            self.maker[stream] = Local((stream,), tuple(self.program.operands(stream)))

    def _make(self, stream: int) -> None:
        """Streams that were made for a pair are computed like others."""
        for each in (stream, *self.program.operands(stream)):
            if each not in self.maker and each not in getattr(self, "_pending", {}):
                self._add_local(each)
                if each != stream:
                    self._make(each)

    # -- order

    def _ordered(self) -> Iterator[RoundStage]:
        """The stages that outputs ask for, operands first."""
        done: set[RoundStage] = set()
        stack: list[tuple[RoundStage, bool]] = []
        for output in reversed(list(self.program.outputs.values())):
            stack.append((self._maker(output), False))
        while stack:
            stage, ready = stack.pop()
            if stage in done:
                continue
            if ready:
                done.add(stage)
                yield stage
                continue
            stack.append((stage, True))
            needed = [self._maker(o) for o in reversed(stage.needs)]
            stack += [(each, False) for each in needed if each not in done]

    def _maker(self, stream: int) -> RoundStage:
        if stream not in self.maker:
            scan = self._scan(self._pending[stream])
            for each in scan.gives:
                self.maker.setdefault(each, scan)
        return self.maker[stream]


_VECTOR_SHIFTS = ("shift_in", "shift_out")
_POSE_SHIFTS = (*_VECTOR_SHIFTS, "congruence_in", "congruence_out", "point_in", "plane_out")
MATRIX_LETTERS = (
    *("H", "Ht", "Ax", "Gx", "Gtx", "Dx", "Dsolve"),
    *("inertia", "inertia_t", "crm", "crf"),
)
"""Operations at a link that are the product with a matrix."""


def _is_joined(op: str, words: tuple[tuple[Word, Fraction], ...], two_sided: bool) -> bool:
    """Whether there is a join for a linear part."""
    if words == (((), Fraction(1)),):
        return op in _POSE_SHIFTS
    if two_sided:
        letters = [word for word, factor in words if factor == 1 and len(word) == 1]
        across = len(words) == 1 == len(letters) and letters[0][0][0] == "congruence_across"
        return op == "congruence_in" and across
    known = all(letter in MATRIX_LETTERS for word, _ in words for letter, _ in word)
    return op in _VECTOR_SHIFTS and known


class _PairFinder:
    """The inward recursion that feeds an outward one through the joints of a Riccati recursion."""

    def __init__(self, program: StreamProgram, riccati: RiccatiScan, outward: Cycle) -> None:
        self.program, self.riccati, self.outward = program, riccati, outward
        by_op = {program.nodes[s].op: s for s in riccati.cycle.members}
        self.G, self.D = by_op["G"], by_op["D"]
        self.P = by_op["sum"]
        self.gain, self.gain_adjoint = ("Gx", (self.G,)), ("Gtx", (self.G,))

    def found(self, scans: list[Cycle]) -> StarPair | None:
        """The pair, or None."""
        program, fed = self.program, self._sources()
        if fed is None:
            return None
        own, driven = fed
        nu = defining(program, driven)
        node = program.nodes[nu]
        if node.op != "Dsolve" or defining(program, node.operands[0]) != self.D:
            return None
        for inward in scans:
            found = self._fed_by(inward, nu, node.operands[1], own)
            if found is not None:
                return found
        return None

    def _sources(self) -> tuple[dict[int, Fraction], int] | None:
        """What the outward recursion adds at links with factors, and the rates ν in H*ν.

        None if it is another recursion than a = (I - G H)* φ* a + own + H*ν.
        """
        outward, program = self.outward, self.program
        if program.nodes[outward.shift].op != "shift_out":
            return None
        try:
            form = outward.form(outward.state)
        except NotAffineError:
            return None
        linear = {w: c for (w, source), c in form.items() if source == outward.shift}
        if linear != {(): 1, (self.gain_adjoint, ("Ht", ())): -1}:
            return None
        sources = {key: c for key, c in form.items() if key[1] != outward.shift}
        own = {source: c for (w, source), c in sources.items() if w == ()}
        driven = {source: c for (w, source), c in sources.items() if w == (("Ht", ()),)}
        if len(own) + len(driven) != len(sources) or list(driven.values()) != [1]:
            return None
        return own, next(iter(driven))

    def _fed_by(
        self, inward: Cycle, nu: int, innovation: int, own: dict[int, Fraction]
    ) -> StarPair | None:
        program = self.program
        if program.nodes[inward.shift].op != "shift_in":
            return None
        entered = self._entered(inward)
        if entered is None:
            return None
        z, tau = entered
        try:
            wide = Cycle(program, inward.members | {innovation}, inward.shift, inward.state)
            form = wide.form(innovation)
        except NotAffineError:
            return None
        expected: Form = {((), s): c for s, c in tau.items() if c}
        for stream, factor in {**z, inward.shift: Fraction(1)}.items():
            key = ((("H", ()),), stream)
            expected[key] = expected.get(key, Fraction(0)) - factor
        if _written_out(program, form) != _written_out(program, expected):
            return None
        a, b = self._split(z)
        if flat(program, a) != flat(program, own):
            return None
        return self._stage(a, b, tau, nu)

    def _entered(self, inward: Cycle) -> tuple[dict[int, Fraction], dict[int, Fraction]] | None:
        """Forces z₀ and joint forces τ with x = s + z₀ + G (τ - H (s + z₀)); else None."""
        try:
            form = inward.form(inward.state)
        except NotAffineError:
            return None
        across = (("H", ()), self.gain)
        forces = {s: c for (w, s), c in form.items() if w == ()}
        back = {s: c for (w, s), c in form.items() if w == across}
        tau = {s: c for (w, s), c in form.items() if w == (self.gain,)}
        if len(forces) + len(back) + len(tau) != len(form):
            return None
        if forces.pop(inward.shift, None) != 1 or back.pop(inward.shift, None) != -1:
            return None
        for stream in {*forces, *back}:
            extra = back.get(stream, Fraction(0)) + forces.get(stream, Fraction(0))
            if extra:
                projected = self.program.apply("H", stream)
                tau[projected] = tau.get(projected, Fraction(0)) + extra
        return forces, tau

    def _split(self, z: dict[int, Fraction]) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
        """Motions a and forces b with z₀ = P a + b."""
        a: dict[int, Fraction] = {}
        b: dict[int, Fraction] = {}
        for stream, factor in z.items():
            node = self.program.nodes[stream]
            if node.op == "inertia" and defining(self.program, node.operands[0]) == self.P:
                a[node.operands[1]] = factor
            else:
                b[stream] = factor
        return a, b

    def _stage(
        self, a: dict[int, Fraction], b: dict[int, Fraction], tau: dict[int, Fraction], nu: int
    ) -> StarPair:
        made = [
            self._sum(terms, kind)
            for terms, kind in ((a, Type.MOTION), (b, Type.FORCE), (tau, Type.JOINT))
        ]
        outward = self.outward
        rates = tuple(s for s in sorted(outward.members) if self._is_rates(s, nu))
        states = tuple(
            s for s in sorted(outward.members) if defining(self.program, s) == outward.state
        )
        return StarPair(
            (outward.shift, *states, *rates),
            (*made, self.riccati.inertia),
            self.riccati,
            made[0],
            made[1],
            made[2],
            outward.shift,
            outward.state,
            rates,
        )

    def _sum(self, terms: dict[int, Fraction], kind: Type) -> int:
        if not terms:
            return self.program.add("zero", (), kind)
        return self.program.sum([(factor, stream) for stream, factor in terms.items()])

    def _is_rates(self, stream: int, nu: int) -> bool:
        """Whether a stream of the outward recursion is ν - G* φ* α."""
        if self.program.nodes[stream].type is not Type.JOINT:
            return False
        form = self.outward.form(stream)
        wanted = {((), nu): Fraction(1), ((self.gain_adjoint,), self.outward.shift): Fraction(-1)}
        return {
            (w, defining(self.program, s) if not w else s): c for (w, s), c in form.items()
        } == wanted


def _written_out(program: StreamProgram, form: Form) -> Form:
    """A form with sums of streams written out, and H x of known streams as words."""
    total: Form = {}
    for (word, stream), factor in form.items():
        for each, inner in flat(program, {stream: Fraction(1)}).items():
            node, letters = program.nodes[each], word
            if node.op == "H":
                letters, each = (("H", ()), *word), node.operands[0]
            for source, more in flat(program, {each: Fraction(1)}).items():
                key = (letters, source)
                total[key] = total.get(key, Fraction(0)) + factor * inner * more
    return {key: value for key, value in total.items() if value}

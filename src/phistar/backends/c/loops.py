# SPDX-License-Identifier: BSD-3-Clause
"""Loops over links as the body of a C function: constants in tables, one case for each class.

kind[k]   class of link k             q_at[k], v_at[k]   first entries in q and in v
up[k]     number of its parent        row[k]             first entry in ``table``
first_inward[k], first_outward[k]     whether a walk meets it before its siblings
hand_inward[k], hand_outward[k]       its place for what links hand to each other
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from phistar.backends.c.expressions import Writer, folded
from phistar.backends.c.signature import Interface
from phistar.backends.c.text import Names, table
from phistar.errors import LoweringError
from phistar.scalar.program import Body, Loop, Rolled, Store, first_met, hand_places, start_of
from phistar.sweeps.ir import Direction

_FIRST = {way: f"first_{way.value}" for way in Direction}
_HAND = {way: f"hand_{way.value}" for way in Direction}
_INDENT = " " * 4
_CASE = " " * 8
_INNER = " " * 12
_LOCALS = ("k", "kind", "up", "q_at", "v_at", "row", "table", *_FIRST.values(), *_HAND.values())


def workspace(program: Rolled) -> int:
    """Numbers that are kept at the links, and places for what they hand to each other."""
    places = [max(hand_places(program.links.parent, way)) + 1 for way in Direction]
    return _kept(program) + max(places) * program.hands


def _kept(program: Rolled) -> int:
    return len(program.links) * program.slots


def rolled_body(program: Rolled, face: Interface) -> list[str]:
    """Lines between the braces.

    Raises:
        LoweringError: It has walks for the columns of a matrix.
    """
    if program.columns is not None:
        raise LoweringError("a matrix as loops has no C form; take the straight line instead")
    return _Loops(program, face).lines()


class _Loops:
    def __init__(self, program: Rolled, face: Interface) -> None:
        self.program = program
        self.links = program.links
        self.face = face
        self.names = Names([face.name, *(a for a in face.arguments if a != face.work_name)])
        self.local = {name: self.names.take(name) for name in _LOCALS}
        self.local["work"] = face.work_name if face.work else self.names.take("work")
        self.inputs = {name: c for name, c, _ in face.inputs}
        self.outputs = {name: c for name, c, _ in face.outputs}
        self.used: set[str] = set()

    def lines(self) -> list[str]:
        walks = [line for loop in self.program.loops if loop.bodies for line in self._loop(loop)]
        return [*self._tables(), *self._locals(bool(walks)), *self._clear(), *walks]

    # -- what stands above the loops

    def _tables(self) -> Iterator[str]:
        links = self.links
        starts: list[int] = []
        numbers: list[float] = []
        for row in links.table:
            starts.append(len(numbers))
            numbers += row
        whole: dict[str, Sequence[int]] = {
            "kind": links.class_of,
            "up": [max(parent, 0) for parent in links.parent],
            "q_at": links.q,
            "v_at": links.v,
            "row": starts,
            **{_FIRST[way]: [*map(int, first_met(links.parent, way))] for way in Direction},
            **{_HAND[way]: hand_places(links.parent, way) for way in Direction},
        }
        for name, values in whole.items():
            if name in self.used:
                kind = "unsigned char" if max(values) < 256 else "unsigned short"
                kind = kind if max(values) < 65536 else "unsigned long"
                declaration = f"static const {kind} {self.local[name]}[{len(values)}]"
                yield table(declaration, [str(x) for x in values], _INDENT)
        if "table" in self.used:
            real = self.face.real
            declaration = f"static const {real.type} {self.local['table']}[{len(numbers)}]"
            yield table(declaration, [real.literal(x) for x in numbers], _INDENT)

    def _locals(self, walks: bool) -> Iterator[str]:
        if not self.face.work and "work" in self.used:
            size = workspace(self.program)
            yield f"{_INDENT}{self.face.real.type} {self.local['work']}[{size}];"
        if walks:
            yield f"{_INDENT}int {self.local['k']};"

    def _clear(self) -> Iterator[str]:
        """Zeros where outputs are added to, and where no link writes."""
        for name, c in self.outputs.items():
            size = self.program.signature.outputs[name]
            if size and self._needs_zeros(name, size):
                zero = self.face.real.literal(0.0)
                k = self.local["k"]
                yield f"\n{_INDENT}for ({k} = 0; {k} < {size}; ++{k}) {{"
                yield f"{_CASE}{c}[{k}] = {zero};\n{_INDENT}}}"

    def _needs_zeros(self, name: str, size: int) -> bool:
        written: set[int] = set()
        for loop in self.program.loops:
            for k, kind in enumerate(self.links.class_of):
                body = loop.bodies.get(kind)
                for store in body.stores if body is not None else ():
                    if store.space == name:
                        if store.add:
                            return True
                        written.add(start_of(self.links, store.base, k) + store.index)
        return len(written) < size

    # -- loops

    def _loop(self, loop: Loop) -> Iterator[str]:
        k, n = self.local["k"], len(self.links)
        outward = loop.direction is Direction.OUTWARD
        way = "outward: parents first" if outward else "inward: children first"
        steps = f"{k} = 0; {k} < {n}; ++{k}" if outward else f"{k} = {n - 1}; {k} >= 0; --{k}"
        self.used.add("kind")
        yield f"\n{_INDENT}/* {way} */"
        yield f"{_INDENT}for ({steps}) {{"
        yield f"{_CASE}switch ({self.local['kind']}[{k}]) {{"
        bodies = {id(body): body for body in loop.bodies.values() if body.stores}
        for name, body in bodies.items():
            kinds = [kind for kind, each in loop.bodies.items() if id(each) == name]
            yield "\n".join(f"{_CASE}case {kind}:" for kind in kinds) + " {"
            yield from self._case(body, loop.direction)
            yield f"{_INNER}break;\n{_CASE}}}"
        yield f"{_CASE}default:\n{_INNER}break;\n{_CASE}}}\n{_INDENT}}}"

    def _case(self, body: Body, way: Direction) -> Iterator[str]:
        kept = Counter(value.id for value in body.roots)
        names = Names([*self.local.values(), self.face.name, *self.face.arguments])
        pointers = _Pointers(names)

        def load(space: str, index: int, base: str) -> tuple[str, str]:
            return f"{self._base(space, base, way, False, pointers)}[{index}]", ""

        writer = Writer(body.graph, body.live, kept, self.face.real, names, load)
        lines = [folded(statement, _INNER) for _, statement in writer.statements()]
        lines += [self._store(store, writer, pointers, way) for store in body.stores]
        yield from (f"{_INNER}{line}" for line in pointers.lines)
        yield from lines

    def _store(self, store: Store, writer: Writer, pointers: _Pointers, way: Direction) -> str:
        place = f"{self._base(store.space, store.base, way, True, pointers)}[{store.index}]"
        value = writer.text(store.value)
        if store.begins:
            self.used.add(_FIRST[way])
            zero = self.face.real.literal(0.0)
            first = f"{self.local[_FIRST[way]]}[{self.local['k']}]"
            return f"{_INNER}{place} = ({first} ? {zero} : {place}) + ({value});"
        return f"{_INNER}{place} {'+=' if store.add else '='} {value};"

    def _base(
        self, space: str, base: str, way: Direction, output: bool, pointers: _Pointers
    ) -> str:
        """A pointer to where the link's part of an array begins, declared at the first use."""
        key = (space, base, output and space not in ("work", "hand"))
        if key not in pointers.found:
            pointers.found[key] = self._declared(space, base, way, output, pointers)
        return pointers.found[key]

    def _declared(
        self, space: str, base: str, way: Direction, output: bool, pointers: _Pointers
    ) -> str:
        real, local, k = self.face.real.type, self.local, self.local["k"]
        if space == "table":
            self.used |= {"table", "row"}
            return pointers.declare(f"const {real}", "c", f"{local['table']} + {local['row']}[{k}]")
        if space in ("work", "hand"):
            self.used.add("work")
            link = k
            if base == "parent":
                self.used.add("up")
                link = f"{local['up']}[{k}]"
            wish = "own" if base == "link" else "parent"
            start = f"{local['work']} + {self.program.slots} * {link}"
            if space == "hand":
                self.used.add(_HAND[way])
                wish = "handed" if base == "link" else "parents"
                place = f"{local[_HAND[way]]}[{link}]"
                start = f"{local['work']} + {_kept(self.program)} + {self.program.hands} * {place}"
            return pointers.declare(real, wish, start)
        array = self.outputs[space] if output else self.inputs[space]
        start = f"{array} + {self._entry(base)}"
        return pointers.declare(real if output else f"const {real}", f"{array}_k", start)

    def _entry(self, base: str) -> str:
        k = self.local["k"]
        if base == "body":
            return f"6 * {k}"
        self.used.add(f"{base}_at")
        return f"{self.local[f'{base}_at']}[{k}]"


class _Pointers:
    """Pointers that a case declares, by what they point at."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.found: dict[tuple[str, str, bool], str] = {}
        self.lines: list[str] = []

    def declare(self, kind: str, wish: str, start: str) -> str:
        name = self.names.take(wish)
        self.lines.append(f"{kind} *const {name} = {start};")
        return name

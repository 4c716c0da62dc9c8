# SPDX-License-Identifier: BSD-3-Clause
"""Programs as Python source for NumPy: a loop over the links per pass, a line per statement.

The source knows no robot; the robot's numbers come as tables (``backends.links``). Values carry the
batch in trailing axes, so a line works on a whole batch at once, in the precision of its inputs.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from functools import lru_cache, partial
from hashlib import sha256
from json import dumps
from keyword import iskeyword
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.backends import arithmetic
from phistar.backends.base import PLAIN, Backend, Quick, Tuning, Way, require_inputs
from phistar.backends.batch import Batch, all_finite, fill, in_precision, inexact, precision
from phistar.backends.links import Links, Stream, Tables
from phistar.model.configuration import configuration
from phistar.model.model import Model
from phistar.sweeps.ir import SHIFTS, Direction, Node, Program, Type
from phistar.sweeps.lines import Lines, resolve
from phistar.sweeps.schedule import Pass, Schedule

Array = NDArray[Any]
Run = Callable[..., dict[str, Stream]]

FORMS = {
    "H": "H(k, {0})",
    "Ht": "Ht(k, {0})",
    "inertia": "times({0}, {1})",
    "inertia_t": "times({0}.swapaxes(0, 1), {1})",
    "gyro": "gyro(k, {0})",
    "across": "{0} - outer({1}, H(k, {0}))",
    "U": "H(k, {0})",
    "D": "factor(k, {0})",
    "G": "{1}.solve({0})",
    "down": "{0} - outer({2}, {1})",
    "Gx": "joined({0}, {1})",
    "Gtx": "times({0}, {1})",
    "Dx": "{0}.times({1})",
    "Dsolve": "{0}.solve({1})",
    "Ax": "Ax(k, {0})",
    "turn": "turn({0}, {1})",
    "through": "through(k, {0}, {1})",
    "crm": "crm({0}, {1})",
    "crf": "crf({0}, {1})",
    "shin": "shin(k, {0})",
    "cong": "cong(k, {0})",
    "shout": "shout(k, {0})",
    "outcong": "outcong(k, {0})",
    "give": "give(k, {0}, {1}, {2})",
    "outsim": "outsim(k, {0})",
    "slip": "slip(k, {0}, {1}, {2}, {3})",
    "bend": "bend(k, {0}, {1})",
}
"""How each operation is written at link k; {0}, {1}, ... are its operands, whole ones for shifts.

Blocks U and G stand as rows, so that P H* of a symmetric P is H P.
"""
ARITHMETIC = ("crf", "crm", "joined", "outer", "times")
LINK = (
    *("Ax", "H", "Ht", "M", "Mx", "bend", "cong", "factor", "give"),
    *("gyro", "outcong", "outsim", "shin", "shout", "slip", "through", "turn", "zero"),
)
"""What generated code takes from ``arithmetic`` and from ``Links``."""
RESERVED = frozenset((*ARITHMETIC, *LINK, "k", "link", "run"))
ZEROS = {Type.JOINT: "joint", Type.INERTIA: "inertia", Type.TRANSFER: "inertia"}


def generate(schedule: Schedule) -> str:
    """The source of ``run(link, **leaves)``, which gives the outputs as streams by name."""
    return _Writer(schedule).text()


class _Writer:
    """One program being written."""

    def __init__(self, schedule: Schedule) -> None:
        self.program: Program = schedule.program
        self.passes = schedule.passes
        self.lines = Lines(schedule)
        self.names: dict[int, str] = {}
        self.taken = set(RESERVED)
        live = self.program.live()
        given = [s for s in live if self.program.nodes[s].op in ("leaf", "scatter")]
        self.leaves = [self.name(stream, self.program.nodes[stream].data) for stream in given]
        called = {resolve(self.program, s): n for s, n in self.program.names.items()}
        for stream in sorted(self.lines.own & set(called)):
            self.name(stream, called[stream])

    def text(self) -> str:
        """The module."""
        loops = [line for each in self.passes for line in self.loop(each)]
        outputs = ", ".join(
            f"{dumps(n)}: {self.output(s)}" for n, s in self.program.outputs.items()
        )
        body = [*loops, f"    return {{{outputs}}}"]
        words = set(re.findall(r"\w+", "\n".join(body)))
        helpers = [name for name in ARITHMETIC if name in words]
        methods = [name for name in LINK if name in words]
        head = [f"from {arithmetic.__name__} import {', '.join(helpers)}", "", ""]
        arguments = "".join(f", {name}" for name in self.leaves)
        start = [f"def run(link{arguments}):"]
        if methods:
            start.append(f"    {', '.join(methods)} = {', '.join('link.' + m for m in methods)}")
        kept = [self.name(s) for each in self.passes for s in each.streams if s in self.lines.kept]
        if kept:
            start.append(f"    {', '.join(kept)}, = link.streams({len(kept)})")
        return "\n".join([*(head if helpers else []), *start, *body, ""])

    def loop(self, each: Pass) -> list[str]:
        """The lines of a pass."""
        way = "outward" if each.direction is Direction.OUTWARD else "inward"
        rows = []
        for stream in each.streams:
            if stream in self.lines.own:
                place = "[k]" if stream in self.lines.kept else ""
                rows.append(f"        {self.name(stream)}{place} = {self.body(stream)}")
        return [f"    for k in link.{way}:", *rows]

    def output(self, stream: int) -> str:
        """A stream over all links."""
        stream = resolve(self.program, stream)
        if stream in self.lines.kept or self.program.nodes[stream].op in ("leaf", "scatter"):
            return self.name(stream)
        return f"[{self.term(stream)} for k in link.outward]"

    def name(self, stream: int, wanted: str = "") -> str:
        """An identifier for a stream, after the name that people gave it."""
        if stream not in self.names:
            self.names[stream] = self._fresh(wanted)
        return self.names[stream]

    def _fresh(self, wanted: str) -> str:
        plain = re.sub(r"\W", "_", wanted.replace("⁺", "_plus"), flags=re.ASCII)
        plain = f"{plain}_" if iskeyword(plain) or plain[:1].isdigit() else plain
        name, count = plain or "x1", 1
        while name in self.taken:
            count += 1
            name = f"{plain or 'x'}{count}"
        self.taken.add(name)
        return name

    def body(self, stream: int) -> str:
        """The right side of a statement."""
        node = self.program.nodes[stream]
        if node.op == "sum":
            return self._sum(node.operands, node.data)
        if node.op in SHIFTS:
            return self._shift(node)
        if node.op == "inertia" and self.program.nodes[node.operands[0]].op == "rigid":
            return f"Mx(k, {self.term(node.operands[1])})"
        return FORMS[node.op].format(*(self.term(o) for o in node.operands))

    def _shift(self, node: Node) -> str:
        operand = resolve(self.program, node.operands[0])
        op = self.program.nodes[operand].op
        if op == "zero":
            return self.term(operand)
        return FORMS[node.op].format("M" if op == "rigid" else self.name(operand))

    def term(self, stream: int) -> str:
        """An operand at link k: its name, or its own body in place."""
        stream = resolve(self.program, stream)
        node = self.program.nodes[stream]
        if node.op == "rigid":
            return "M[k]"
        if node.op == "zero":
            return f'zero(k, "{ZEROS.get(node.type, "spatial")}")'
        if node.op in ("leaf", "scatter") or stream in self.lines.kept:
            return f"{self.name(stream)}[k]"
        return self.name(stream) if stream in self.lines.own else self.body(stream)

    def _sum(self, streams: Sequence[int], factors: Sequence[Fraction]) -> str:
        pairs = sorted(zip(factors, streams, strict=True), key=lambda pair: pair[0] < 0)
        parts = []
        for factor, stream in pairs:
            size = "" if abs(factor) == 1 else f"{float(abs(factor))!r} * "
            sign = "-" if factor < 0 else "+"
            parts.append(f"{sign} {size}{self._summand(stream)}")
        text = " ".join(parts)
        return text.removeprefix("+ ") if text.startswith("+") else "-" + text.removeprefix("- ")

    def _summand(self, stream: int) -> str:
        stream = resolve(self.program, stream)
        inline = stream not in self.lines.own and self.program.nodes[stream].op in ("sum", "down")
        return f"({self.term(stream)})" if inline else self.term(stream)


@lru_cache(maxsize=256)
def _load(source: str) -> Run:
    """The function of a source; tracebacks show its lines."""
    file = f"<phistar {sha256(source.encode()).hexdigest()[:12]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {}
    exec(compile(source, file, "exec"), names)
    run: Run = names["run"]
    return run


class Compiled:
    """A program for one robot: generated source and the robot's tables."""

    def __init__(
        self, schedule: Schedule, model: Model, frames: Sequence[str], locked: Set[int]
    ) -> None:
        self.source = generate(schedule)
        self._run = _load(self.source)
        program = schedule.program
        nodes = (program.nodes[stream] for stream in program.live())
        self._leaves = {n.data: n for n in nodes if n.op in ("leaf", "scatter")}
        self._joint_output = {
            name: program.nodes[s].type is Type.JOINT for name, s in program.outputs.items()
        }
        self._model = model
        self._tables = lru_cache(maxsize=4)(partial(Tables, model, tuple(frames), locked))

    def __call__(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """See ``base.Executable``."""
        require_inputs(tuple(self._leaves), inputs)
        names = [name for name in self._leaves if name in inputs]
        tails = [1, *(1 if self._leaves[name].type is Type.JOINT else 2 for name in names)]
        arrays = [configuration(self._model, q), *(inexact(inputs[name]) for name in names)]
        real = precision(arrays)
        tables = self._tables(real)
        batch = Batch([x.shape[: x.ndim - tail] for x, tail in zip(arrays, tails, strict=True)])
        entered = [
            batch.enter(in_precision(x, real), tail) for x, tail in zip(arrays, tails, strict=True)
        ]
        results: dict[str, Array] = {}
        for part in batch.pieces():
            here, *values = (batch.cut(x, t, part) for x, t in zip(entered, tails, strict=True))
            links = Links(tables, here)
            leaves = self._streams(links, dict(zip(names, values, strict=True)))
            for name, stream in self._run(links, *leaves).items():
                if name not in results:
                    results[name] = self._empty(name, stream, tables, batch)
                self._store(results[name], name, stream, tables, part if batch.inner else ...)
        return {name: batch.leave(x, x.ndim - len(batch.inner)) for name, x in results.items()}

    def run(
        self,
        q: ArrayLike,
        inputs: Mapping[str, ArrayLike],
        out: Mapping[str, Array] | None = None,
    ) -> tuple[dict[str, Array], bool]:
        """See ``base.Executable``."""
        read = [inputs[name] for name in self._leaves if name in inputs]
        return fill(out, self(q, inputs)), all_finite([q, *read])

    def quick(self, order: Sequence[str], keep: Callable[[Quick], None]) -> None:
        """There is no quicker way."""

    def ways(self, order: Sequence[str], keep: Callable[[Way], None]) -> None:
        """There is no quicker way."""

    def _streams(self, links: Links, given: Mapping[str, Array]) -> Iterator[Stream | Array]:
        """What the leaves hold at each link, in the order of the generated arguments."""
        for name, node in self._leaves.items():
            if name not in given:
                yield links.gravity() if name == "gravity" else links.nothing()
            elif node.op == "scatter":
                yield links.frame_forces(given[name])
            else:
                yield links.joint_leaf(given[name]) if node.type is Type.JOINT else given[name]

    def _empty(self, name: str, stream: Stream, tables: Tables, batch: Batch) -> Array:
        rows = (sum(tables.sizes),) if self._joint_output[name] else (tables.count, 6)
        dtype = np.result_type(tables.inertia.dtype, *{x.dtype for x in stream})
        return np.empty((*rows, *batch.inner), dtype=dtype)

    def _store(
        self, result: Array, name: str, stream: Stream, tables: Tables, part: slice | EllipsisType
    ) -> None:
        if self._joint_output[name]:
            for rows, value in zip(tables.slices, stream, strict=True):
                result[rows, part] = value
        else:
            for k, value in enumerate(stream):
                result[k, :, part] = value


class NumpyBackend(Backend):
    """Writes programs as Python for NumPy."""

    name = "numpy"

    def build(
        self,
        schedule: Schedule,
        model: Model,
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
        tuning: Tuning = PLAIN,
    ) -> Compiled:
        """See ``base.Backend``."""
        return Compiled(schedule, model, frames, locked)


backend = NumpyBackend()

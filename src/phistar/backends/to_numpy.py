# SPDX-License-Identifier: BSD-3-Clause
"""Programs as Python source for NumPy: a loop over the links per pass, a line per statement.

The source knows no robot; the robot's numbers come as tables (``numpy_links``). Values carry the
batch in trailing axes, so a line works on a whole batch at once, in the precision of its inputs.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from hashlib import sha256
from json import dumps
from keyword import iskeyword
from types import EllipsisType

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.backends import numpy_algebra
from phistar.backends.base import Backend, Executable, SweptExecutable, require_inputs
from phistar.backends.batch_axes import Batch, as_inexact, cast_to_precision, real_dtype
from phistar.backends.numpy_links import LinkTables, NumpyLinks, Stream
from phistar.backends.numpy_rounds import NumpyRounds
from phistar.backends.numpy_scalars import NumpyScalarCode
from phistar.backends.robot_programs import RobotProgram, TracedProgram, VectorProgram
from phistar.model.configuration import normalized_configuration
from phistar.model.wrenches import ProgramInputs
from phistar.sweeps.costs import OperationCount
from phistar.sweeps.inlining import Inlining, defining_stream
from phistar.sweeps.ir import Direction, Node, StreamProgram, Type
from phistar.sweeps.schedule import Schedule, Sweep
from phistar.sweeps.stream_types import GROUND_COMPONENTS

GeneratedFunction = Callable[..., dict[str, Stream]]

OP_SOURCE = {
    "H": "H(k, {0})",
    "Ht": "Ht(k, {0})",
    "inertia": "times({0}, {1})",
    "inertia_t": "times({0}.swapaxes(0, 1), {1})",
    "gyro": "gyro(k, {0})",
    "project_across": "{0} - block_outer({1}, H(k, {0}))",
    "U": "H(k, {0})",
    "D": "joint_inertia(k, {0})",
    "G": "{1}.solve({0})",
    "articulated_downdate": "{0} - block_outer({2}, {1})",
    "Gx": "block_times({0}, {1})",
    "Gtx": "times({0}, {1})",
    "Dx": "{0}.times({1})",
    "Dsolve": "{0}.solve({1})",
    "Ax": "Ax(k, {0})",
    "inertia_rate": "inertia_rate({0}, {1})",
    "congruence_across": "congruence_across(k, {0}, {1})",
    "crm": "crm({0}, {1})",
    "crf": "crf({0}, {1})",
    "link_energy": "link_energy(k, {0})",
    "rotor_energy": "rotor_energy(k, {0})",
    "dot": "dot({0}, {1})",
    "total": "total({0})",
    "to_ground": "to_ground({0})",
    "point_in": "point_in(k, {0})",
    "plane_out": "plane_out(k, {0})",
    "to_world": "to_world({0}, {1}, {2}, {3})",
    "point_to_ground": "point_to_ground({0})",
    "weigh": "weigh({0})",
    "center": "center({0})",
    "moving_center": "moving_center({0})",
    "shift_in": "shift_in(k, {0})",
    "congruence_in": "congruence_in(k, {0})",
    "shift_out": "shift_out(k, {0})",
    "congruence_out": "congruence_out(k, {0})",
    "compliance_update": "compliance_update(k, {0}, {1}, {2})",
    "similarity_out": "similarity_out(k, {0})",
    "bias_gain": "bias_gain(k, {0}, {1}, {2}, {3})",
    "transfer_update": "transfer_update(k, {0}, {1})",
}
"""How each operation is written at link k; {0}, {1}, ... are its operands, whole ones for
shifts and for sums at the ground.

Functions are those of ``numpy_algebra``, or else methods of ``NumpyLinks``; an operand may be a
sum. Blocks U and G stand as rows, so that P H* of a symmetric P is H P.
"""
ZERO_KINDS = {
    Type.JOINT: "joint",
    Type.INERTIA: "inertia",
    Type.TRANSFER: "inertia",
    Type.POINT: "point",
    Type.PLANE: "point",
}
ROBOT_STREAMS = {
    "rigid": "M",
    "mass_point": "mu",
    **{f"coordinate_{axis}": f"e_{axis}" for axis in "xyz"},
}
"""What a robot gives at each link."""


def _functions() -> tuple[list[str], list[str]]:
    """What generated code takes from ``numpy_algebra``, and from ``NumpyLinks``."""
    names = {n for text in OP_SOURCE.values() for n in re.findall(r"(?<![.\w])\w+(?=\()", text)}
    helpers = {name for name in names if hasattr(numpy_algebra, name)}
    return sorted(helpers), sorted(
        names - helpers | {*ROBOT_STREAMS.values(), "Mx", "mu_0", "zero", "nothing"}
    )


def generate_source(schedule: Schedule) -> str:
    """The source of ``run(link, **leaves)``, which gives the outputs as streams by name."""
    return _SourceWriter(schedule).text()


class _SourceWriter:
    """One program being written."""

    def __init__(self, schedule: Schedule) -> None:
        self.program: StreamProgram = schedule.program
        self.sweeps = schedule.sweeps
        self.lines = Inlining(schedule)
        self.names: dict[int, str] = {}
        self.helpers, self.methods = _functions()
        self.taken = {*self.helpers, *self.methods, "k", "link", "run"}
        live = self.program.live()
        given = [s for s in live if self.program.nodes[s].spec.is_input]
        self.leaves = [self.name(stream, self.program.nodes[stream].data) for stream in given]
        called = {defining_stream(self.program, s): n for s, n in self.program.names.items()}
        for stream in sorted(self.lines.assigned & set(called)):
            self.name(stream, called[stream])

    def text(self) -> str:
        """The module."""
        loops = [line for each in self.sweeps for line in self.loop(each)]
        outputs = ", ".join(
            f"{dumps(n)}: {self.output(s)}" for n, s in self.program.outputs.items()
        )
        body = [*loops, *self.at_ground(), f"    return {{{outputs}}}"]
        return "\n".join([*self.head(set(re.findall(r"\w+", "\n".join(body)))), *body, ""])

    def head(self, words: set[str]) -> list[str]:
        """What comes before the loops, which use these words."""
        helpers = [name for name in self.helpers if name in words]
        methods = [name for name in self.methods if name in words]
        start = [f"from {numpy_algebra.__name__} import {', '.join(helpers)}", "", ""]
        arguments = "".join(f", {name}" for name in self.leaves)
        start = [*(start if helpers else []), f"def run(link{arguments}):"]
        if methods:
            start.append(f"    {', '.join(methods)} = {', '.join('link.' + m for m in methods)}")
        stored = [
            self.name(s)
            for each in self.sweeps
            for s in each.streams
            if s in self.lines.stored and not self._is_at_ground(s)
        ]
        if stored:
            start.append(f"    {', '.join(stored)}, = link.streams({len(stored)})")
        return start

    def loop(self, each: Sweep) -> list[str]:
        """The lines of a pass."""
        way = "outward" if each.direction is Direction.OUTWARD else "inward"
        rows = []
        for stream in each.streams:
            if stream in self.lines.assigned and not self._is_at_ground(stream):
                place = "[k]" if stream in self.lines.stored else ""
                rows.append(f"        {self.name(stream)}{place} = {self.body(stream)}")
        return [f"    for k in link.{way}:", *rows]

    def at_ground(self) -> list[str]:
        """The lines of what is at the ground, after all loops."""
        streams = [s for each in self.sweeps for s in each.streams if s in self.lines.assigned]
        found = [s for s in streams if self._is_at_ground(s)]
        return [f"    {self.name(s)} = {self.body(s)}" for s in found]

    def _is_at_ground(self, stream: int) -> bool:
        return self.program.nodes[stream].type.at_ground

    def output(self, stream: int) -> str:
        """A stream over all links, or a value at the ground."""
        stream = defining_stream(self.program, stream)
        if self._is_at_ground(stream):
            return self.term(stream)
        if stream in self.lines.stored or self.program.nodes[stream].spec.is_input:
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
        if node.spec.shift is not None or node.spec.reduction is not None:
            return self._across_links(node)
        if node.op == "inertia" and self.program.nodes[node.operands[0]].op == "rigid":
            return f"Mx(k, {self.term(node.operands[1])})"
        return OP_SOURCE[node.op].format(*(self.term(o) for o in node.operands))

    def _across_links(self, node: Node) -> str:
        operands = [defining_stream(self.program, o) for o in node.operands]
        ops = [self.program.nodes[o].op for o in operands]
        if "zero" in ops:
            return self._zero(node)
        names = (
            ROBOT_STREAMS[op] if op in ROBOT_STREAMS else self.name(o)
            for o, op in zip(operands, ops, strict=True)
        )
        return OP_SOURCE[node.op].format(*names)

    def _zero(self, node: Node) -> str:
        if node.type.at_ground:
            return f"nothing({GROUND_COMPONENTS[node.type]})"
        return f'zero(k, "{ZERO_KINDS.get(node.type, "spatial")}")'

    def term(self, stream: int) -> str:
        """An operand at link k: its name, or its own body in place."""
        stream = defining_stream(self.program, stream)
        node = self.program.nodes[stream]
        if node.op in ROBOT_STREAMS:
            return f"{ROBOT_STREAMS[node.op]}[k]"
        if node.op == "ground_point":
            return "mu_0"
        if node.op == "zero":
            return self._zero(node)
        if node.type.at_ground and stream in self.lines.assigned:
            return self.name(stream)
        if node.spec.is_input or stream in self.lines.stored:
            return f"{self.name(stream)}[k]"
        return self.name(stream) if stream in self.lines.assigned else self.body(stream)

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
        stream = defining_stream(self.program, stream)
        inline = stream not in self.lines.assigned
        op = self.program.nodes[stream].op
        is_sum = op == "sum" or " - " in OP_SOURCE.get(op, "") or " + " in OP_SOURCE.get(op, "")
        return f"({self.term(stream)})" if inline and is_sum else self.term(stream)


def _load_function(source: str) -> GeneratedFunction:
    """The function of a source; tracebacks show its lines."""
    file = f"<phistar {sha256(source.encode()).hexdigest()[:12]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, GeneratedFunction] = {}
    exec(compile(source, file, "exec"), names)
    return names["run"]


class NumpyCode(SweptExecutable):
    """A program for one robot: generated source and the robot's tables."""

    def __init__(self, vectors: VectorProgram) -> None:
        super().__init__(vectors)
        schedule = vectors.schedule
        self._source = generate_source(schedule)
        self._run = _load_function(self._source)
        program = schedule.program
        nodes = (program.nodes[stream] for stream in program.live())
        self._leaves = {n.data: n for n in nodes if n.spec.is_input}
        self._output_types = {name: program.nodes[s].type for name, s in program.outputs.items()}
        self._tables = lru_cache(maxsize=4)(
            partial(LinkTables, vectors.model, tuple(vectors.frames), vectors.locked)
        )

    @property
    def source(self) -> str:
        """See ``base.Executable``."""
        return self._source

    def results(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """See ``SweptExecutable``."""
        require_inputs(tuple(self._leaves), inputs)
        names = [name for name in self._leaves if name in inputs]
        tails = [1, *(1 if self._leaves[name].type is Type.JOINT else 2 for name in names)]
        arrays = [
            normalized_configuration(self.model, q),
            *(as_inexact(inputs[name]) for name in names),
        ]
        real = real_dtype(arrays)
        tables = self._tables(real)
        batch = Batch([x.shape[: x.ndim - tail] for x, tail in zip(arrays, tails, strict=True)])
        entered = [
            batch.to_inner(cast_to_precision(x, real), tail)
            for x, tail in zip(arrays, tails, strict=True)
        ]
        results: dict[str, Array] = {}
        for part in batch.pieces():
            here, *values = (
                batch.take_piece(x, t, part) for x, t in zip(entered, tails, strict=True)
            )
            links = NumpyLinks(tables, here)
            leaves = self._streams(links, dict(zip(names, values, strict=True)))
            for name, stream in self._run(links, *leaves).items():
                if name not in results:
                    results[name] = self._empty(name, stream, tables, batch)
                self._store(results[name], name, stream, tables, part if batch.inner_shape else ...)
        return {
            name: batch.to_outer(x, x.ndim - len(batch.inner_shape)) for name, x in results.items()
        }

    def _streams(self, links: NumpyLinks, given: Mapping[str, Array]) -> Iterator[Stream | Array]:
        """What the leaves hold at each link, in the order of the generated arguments."""
        for name, node in self._leaves.items():
            if name not in given:
                yield links.gravity() if name == "gravity" else links.zeros()
            elif node.op == "scatter":
                yield links.frame_forces(given[name])
            else:
                yield (
                    links.split_joint_vector(given[name])
                    if node.type is Type.JOINT
                    else given[name]
                )

    def _empty(self, name: str, stream: Stream, tables: LinkTables, batch: Batch) -> Array:
        kind = self._output_types[name]
        dtype = np.result_type(tables.inertia.dtype, *{x.dtype for x in stream})
        rows: tuple[int, ...] = (tables.count, kind.width)
        if kind.at_ground:
            rows = np.shape(stream)[:1] if kind.output_axes else ()
        elif kind is Type.JOINT:
            rows = (sum(tables.sizes),)
        return np.empty((*rows, *batch.inner_shape), dtype=dtype)

    def _store(
        self,
        result: Array,
        name: str,
        stream: Stream,
        tables: LinkTables,
        part: slice | EllipsisType,
    ) -> None:
        kind = self._output_types[name]
        if kind.at_ground:
            if kind.output_axes:
                result[:, part] = stream
            else:
                result[part] = stream[0]
        elif kind is Type.JOINT:
            for rows, value in zip(tables.slices, stream, strict=True):
                result[rows, part] = value
        else:
            for k, value in enumerate(stream):
                result[k, :, part] = value


class NumpyListing(Executable):
    """Matrices for one robot as source: their sweeps, to be run on unit columns."""

    def __init__(self, program: RobotProgram) -> None:
        self._program = program

    @property
    def source(self) -> str:
        """See ``base.Executable``."""
        return "\n\n".join(map(generate_source, self._program.column_schedules))

    @property
    def cost(self) -> OperationCount:
        """See ``base.Executable``; of the scalar program, for this source runs nothing."""
        return OperationCount.of_scalars(self._program.final_scalars().count())

    def try_run(self, inputs: ProgramInputs, out: Mapping[str, Array] | None = None) -> None:
        """Nothing runs."""


class NumpyBackend(Backend):
    """Writes programs as Python for NumPy."""

    name = "numpy"
    in_rounds = True

    def build(self, program: RobotProgram) -> Executable:
        """See ``base.Backend``; matrices run by ``sweeps.matrix_plans``, by no source."""
        if isinstance(program, VectorProgram):
            return NumpyCode(program) if program.parallel is None else NumpyRounds(program)
        if isinstance(program, TracedProgram):
            return NumpyScalarCode(program)
        return NumpyListing(program)


backend = NumpyBackend()

# SPDX-License-Identifier: BSD-3-Clause
"""A parallel program as text: what all links do at once, and what is joined in rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import groupby

from phistar.sweeps.ir import Direction, StreamProgram
from phistar.sweeps.parallel.linear_forms import defining
from phistar.sweeps.parallel.parallel_schedule import (
    Local,
    ParallelSchedule,
    RiccatiScan,
    RoundStage,
    Scan,
    StarPair,
)
from phistar.sweeps.printing import Printer

LOCAL_TITLE = "all links at once  k, parent p, children j:"
STAR_LINES = (
    "(F, C, J) of k and what is beyond, joined: E = (I + C₁J₂)⁻¹",
    "    F₂EF₁, C₂ + F₂EC₁F₂*, J₁ + F₁*J₂EF₁",
)
"""The matrices of the star product."""


def to_text(schedule: ParallelSchedule) -> str:
    """The stages with their statements."""
    return "\n".join(line for title, rows in sections(schedule) for line in _lines(title, rows))


def _lines(title: str, rows: list[str]) -> list[str]:
    return [title, *(f"    {row}" for row in rows)] if rows else []


def sections(schedule: ParallelSchedule) -> Iterator[tuple[str, list[str]]]:
    """Title and statements of each stage, those at all links together."""
    computed = {s for stage in schedule.stages for s in stage.gives}
    printer = Printer(schedule.program, computed, _own_lines(schedule))
    matrices = True
    for local, group in groupby(schedule.stages, lambda stage: isinstance(stage, Local)):
        if local:
            streams = [s for stage in group for s in stage.gives]
            yield LOCAL_TITLE, _statements(printer, streams)
            continue
        for stage in group:
            yield _title(stage), _stage_lines(printer, stage, matrices)
            matrices = matrices and isinstance(stage, Scan)


def _title(stage: RoundStage) -> str:
    if isinstance(stage, Scan):
        way = "outward" if stage.direction is Direction.OUTWARD else "inward"
        joined = "poses: R₁R₂, p₁ + R₁p₂" if stage.by_poses else "matrices: T₁T₂"
        kind = "congruence" if stage.two_sided else "affine"
        return f"{way}, {kind}, in rounds, joined by {joined}"
    if isinstance(stage, RiccatiScan):
        return "inward, Riccati, in rounds, joined by star products:"
    return "forces inward and motions outward through free joints, up and down by star products:"


def _stage_lines(printer: Printer, stage: RoundStage, matrices: bool) -> list[str]:
    if isinstance(stage, Scan):
        return _statements(printer, stage.gives)
    head = list(STAR_LINES) if matrices else []
    if isinstance(stage, RiccatiScan):
        return [*head, *_statements(printer, stage.gives)]
    assert isinstance(stage, StarPair)
    a, b, tau = (printer.term(each) for each in (stage.a, stage.b, stage.tau))
    alpha, entering = printer.name(stage.acceleration), printer.name(stage.entering)
    lines = [
        *head,
        f"up      (c, d) of k from a = {a}, b = {b}, τ = {tau}",
        "        joined: w = E (c₁ - C₁d₂), c₂ + F₂w, d₁ + F₁*(d₂ + J₂w)",
        "down    split: α = E (F₁α_in + c₁ - C₁(F₂*f_out + d₂)), f = J₂α + F₂*f_out + d₂",
        f"at k    {entering} = φ*(p,k) {alpha}(p)",
    ]
    rates = [printer.name(each) for each in stage.rates[:1]] or ["v̇"]
    lines.append(f"        {rates[0]} = D⁻¹ (τ - H (z + F₂*f_out)) - G* {entering}")
    return [*lines, f"        {alpha} = {entering} + a + H* {rates[0]}"]


def _statements(printer: Printer, streams: list[int] | tuple[int, ...]) -> list[str]:
    return [f"{row.name} = {row.body}" for row in printer.statements(streams)]


def _own_lines(schedule: ParallelSchedule) -> set[int]:
    """Streams with a line of their own: read twice, read from other links, recursive, wanted."""
    program = schedule.program
    uses, kept = _uses_and_kept(schedule)
    named = {s for s in map(partial(defining, program), program.names) if _op(program, s) != "sum"}
    often = {s for s, count in uses.items() if count > 1}
    computed = {s for stage in schedule.stages for s in stage.gives if _op(program, s) != "rec"}
    given = {s for s in computed if program.nodes[s].spec.is_given}
    return (computed - given) & (kept | often | named)


def _op(program: StreamProgram, stream: int) -> str:
    return program.nodes[stream].op


def _uses_and_kept(schedule: ParallelSchedule) -> tuple[Counter[int], set[int]]:
    """How often each stream is read; those that other links, recursions or users read."""
    program = schedule.program
    uses: Counter[int] = Counter()
    kept = {defining(program, s) for s in program.outputs.values()}
    for stage in schedule.stages:
        if isinstance(stage, StarPair):
            kept.update(stage.gives)
            kept.update(defining(program, s) for s in (stage.a, stage.b, stage.tau))
            continue
        if isinstance(stage, Scan):
            kept.add(stage.cycle.state)
        for stream in stage.gives:
            node = program.nodes[stream]
            operands = {defining(program, o) for o in node.operands}
            uses.update(operands)
            if node.spec.shift is not None or node.spec.reduction is not None:
                kept |= operands
    return uses, kept

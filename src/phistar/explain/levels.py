# SPDX-License-Identifier: BSD-3-Clause
"""How a program comes about, level by level: from its expression down to scalar operations.

The levels are those of Fig. 3 of Rodriguez and Kreutz-Delgado 1992, with one more at the bottom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from phistar.algebra import derivation as text
from phistar.algebra.ir import Expr
from phistar.algebra.printing import to_text
from phistar.algebra.proof import prove
from phistar.algebra.spaces import ONE
from phistar.algebra.symbols import SYMBOLS
from phistar.algorithms.programs import PROGRAMS
from phistar.compile import ARGUMENTS, Kernel, compile_outputs, kernel
from phistar.derive import derive
from phistar.errors import ArgumentError, UnknownNameError
from phistar.explain.layout import plural, section
from phistar.explain.links import crossing, frames
from phistar.explain.places import stated
from phistar.explain.scalars import scalars
from phistar.explain.used import symbols_in, theorems_in
from phistar.model.model import Model


def explain(what: str | Expr | Kernel, model: Model | None = None, level: str | None = None) -> str:
    """How a program comes about, level by level, as text.

    Args:
        what: A program, e.g. ``"forward_dynamics"``; or your own operator or vector expression; or
            a kernel (``robot.function(...).kernel``).
        model: A robot's model (``robot.model``), to see its joints, frames and operation counts.
        level: One of ``LEVELS``, to see that one only; default all that can be shown.

    Raises:
        UnknownNameError: No such program or level.
        ArgumentError: The level needs a robot.
        LoweringError: The expression has no sweep form.
    """
    program = _compiled(what)
    if level is None:
        shown = [name for name in LEVELS if model is not None or name not in _NEEDS_ROBOT]
        return "\n".join([program.name, *(x for n in shown for x in _level(n, program, model))])
    if level not in LEVELS:
        raise UnknownNameError("level", level, LEVELS)
    if model is None and level in _NEEDS_ROBOT:
        raise ArgumentError(f"the level {level!r} needs a robot: give its model")
    return "\n".join(_level(level, program, model)[1:])


def program_names() -> tuple[str, ...]:
    """Every program."""
    return tuple(PROGRAMS)


def _compiled(what: str | Expr | Kernel) -> Kernel:
    if isinstance(what, str):
        return kernel(what)
    if isinstance(what, Kernel):
        return what
    if what.domain is not ONE and what.domain not in ARGUMENTS:
        raise ArgumentError(f"{what} takes {what.domain.reads}, which is not supported")
    output = what if what.domain is ONE else what @ ARGUMENTS[what.domain]
    return compile_outputs(str(what), (("y", output),))


def _level(name: str, program: Kernel, model: Model | None) -> list[str]:
    gloss, lines = _LEVELS[name]
    return section(f"{LEVELS.index(name) + 1} {name}: {gloss}", lines(program, model))


def _expression(program: Kernel, model: Model | None) -> Iterator[str]:
    wanted, closed = dict(program.outputs), _closed(program)
    yield from _equations(wanted)
    if closed != wanted:
        yield "derived from it, without inverses of matrices:"
        yield from _equations(closed)


def _equations(outputs: Mapping[str, Expr]) -> Iterator[str]:
    for output, expr in outputs.items():
        label = SYMBOLS[output].text if output in SYMBOLS else output
        yield f"{label} = {to_text(expr)}"
    for line in text.named(outputs.values()):
        yield f"  {line}"


def _closed(program: Kernel) -> Mapping[str, Expr]:
    """The outputs as the last pass of the compiler on expressions left them."""
    forms = [value for each, value in program.after if each.level == "expressions"]
    outputs: Mapping[str, Expr] = forms[-1]
    return outputs


def _operators(program: Kernel, model: Model | None) -> Iterator[str]:
    wanted, closed = dict(program.outputs), _closed(program)
    if closed != wanted:
        yield from _derivation(wanted)
    exprs = list(closed.values())
    used = theorems_in(exprs)
    for theorem in used:
        proof = prove(theorem)
        steps = len(proof.left) + len(proof.right)
        yield f"theorem {theorem.name}, {proof.outcome.value} (steps: {steps})"
        yield f"  {text.statement(theorem)[0]}"
        yield f"  {stated(theorem.name)}  {theorem.ref or ''}".rstrip()
    if not used and closed == wanted:
        yield "straight from the definitions, no theorem needed"
    for symbol in symbols_in(exprs):
        known = SYMBOLS[symbol]
        yield f"{known.text:<3} {known.meaning}"


def _derivation(wanted: Mapping[str, Expr]) -> Iterator[str]:
    """The rules that led from what is wanted to what is computed."""
    found = derive(wanted)
    rules = Counter(step.identity.name for _, _, steps in found.steps() for step in steps)
    yield f"derived in {plural(sum(rules.values()), 'step')} ({found.form.name}) by the rules"
    yield f"  {', '.join(f'{times} x {name}' for name, times in rules.items())}"


def _recursion(program: Kernel, model: Model | None) -> Iterator[str]:
    streams, passes = program.schedule.program, program.schedule.passes
    recursions = plural(len(streams.recursions), "recursion")
    walks = plural(len(passes), "pass", "passes")
    yield f"{recursions}, {walks}: {', '.join(program.schedule.directions)}"
    for number, each in enumerate(passes, 1):
        keys = [streams.nodes[s].data for s in each.streams if streams.nodes[s].op == "rec"]
        kinds = [_recursion_kind(key) for key in keys] or ["nothing recurs"]
        for kind in kinds:
            yield f"pass {number}, {each.direction.value:<7}  {kind}"


def _recursion_kind(key: object) -> str:
    name = str(key[0] if isinstance(key, tuple) else key)
    return _RECURSIONS.get(name, name)


_RECURSIONS = {
    "phi": "φ: z = x + Σ φ z",
    "phi*": "φ*: y = x + φ* y",
    "psi": "ψ: z = x + Σ φ (z - G H z)",
    "psi*": "ψ*: y = x + (I - H* G*) φ* y",
    "P": "P: the Riccati recursion of the articulated-body inertias",
    "R": "R: the composite-body inertias",
    "Upsilon": "Υ: the compliances of the links",
    "meet": "ψ*H*D⁻¹Hψ, column by column: outward from where branches meet",
}


def _transition(program: Kernel, model: Model | None) -> Iterable[str]:
    return program.sweeps.splitlines()


_LEVELS: dict[str, tuple[str, Callable[[Kernel, Model | None], Iterable[str]]]] = {
    "expression": ("what is computed", _expression),
    "operators": ("the theorems behind it, and what it is made of", _operators),
    "recursion": ("φ, ψ and P as recursions over the links, fused into passes", _recursion),
    "transition": ("the statements at one link, pass by pass", _transition),
    "crossing": ("how a quantity passes a joint", crossing),
    "frames": ("where the links are, and in what axes things are written", frames),
    "scalars": ("numbers held and operations done", scalars),
}
LEVELS = tuple(_LEVELS)
"""Names of the levels, from the highest down."""

_NEEDS_ROBOT = frozenset({"frames"})

# SPDX-License-Identifier: BSD-3-Clause
"""A program level by level: from its expression down to scalar operations.

The levels are those of Fig. 3 of Rodriguez and Kreutz-Delgado 1992, with one more at the bottom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from phistar.algebra import proof_text as text
from phistar.algebra.expression_checks import check_expression
from phistar.algebra.ir import Expr
from phistar.algebra.printing import to_text
from phistar.algebra.proof import prove
from phistar.algebra.spaces import ONE
from phistar.algebra.symbols import SYMBOLS
from phistar.algorithms.catalogue import catalogue
from phistar.algorithms.programs import MATRICES, PROGRAMS
from phistar.compile import (
    ARGUMENTS,
    REQUESTS,
    SCHEDULES,
    BuildTarget,
    Kernel,
    Traced,
    Vectors,
    cheapest_inner_products,
    compile_outputs,
    compile_request,
    kernel,
)
from phistar.derive import derive
from phistar.errors import ArgumentError, UnknownNameError, kind_of, renamed_argument
from phistar.explain import meanings
from phistar.explain.dependencies import symbols_in, theorems_in
from phistar.explain.joint_crossings import crossing_lines, frame_lines
from phistar.explain.meanings import METHOD_MEANINGS, Method
from phistar.explain.operation_counts import scalar_lines
from phistar.explain.source_locations import theorem_location
from phistar.explain.text_layout import align_columns, plural, section
from phistar.model.model import Model
from phistar.sweeps.parallel.printing import sections


class RobotLike(Protocol):
    """A robot."""

    model: Model


@renamed_argument("model", "robot")
def explain(
    what: str | Expr | Kernel,
    robot: Model | RobotLike | None = None,
    level: str | None = None,
    schedule: str = "sequential",
) -> str:
    """A program level by level, as text.

    Args:
        what: A program, e.g. ``"forward_dynamics"``, a matrix or a method of a robot; a theorem,
            e.g. ``"loop_compliance_factored"``; or your own operator, vector or number expression;
            or a kernel (``robot.function(...).kernel``).
        robot: A robot or its model, to see its joints, frames and operation counts.
        level: One of ``LEVELS``, to see that one only; default all that can be shown.
        schedule: ``"sequential"``, or ``"parallel"``: the program in O(log N) rounds.

    Raises:
        UnknownNameError: No such program, matrix, method, theorem, level or schedule.
        ArgumentError: The level needs a robot, or a theorem does not have it.
        LoweringError: The expression has no sweep form.
    """
    model = None if robot is None else _model(robot)
    if isinstance(what, str) and (text := _explain_name(what, model, level)) is not None:
        return text
    if schedule not in SCHEDULES:
        raise UnknownNameError("schedule", schedule, SCHEDULES)
    program = _scheduled(_compiled(what, model), schedule)
    if level is None:
        levels = [name for name in LEVELS if model is not None or name not in _NEEDS_ROBOT]
        return "\n".join([program.name, *(x for n in levels for x in _level(n, program, model))])
    if level not in LEVELS:
        raise UnknownNameError("level", level, LEVELS)
    if model is None and level in _NEEDS_ROBOT:
        raise ArgumentError(f"the level {level!r} needs a robot")
    return "\n".join(_level(level, program, model)[1:])


def _explain_name(name: str, model: Model | None, level: str | None) -> str | None:
    """A method, a row of ``REQUESTS`` or a theorem; None for what has all levels."""
    if name in METHOD_MEANINGS and name not in PROGRAMS:
        return _explain_method(name, model, level)
    if name in PROGRAMS or name in MATRICES:
        return None
    if name in REQUESTS:
        return _explain_request(name, model)
    return _explain_theorem(name, level) if name in catalogue() else None


def program_names() -> tuple[str, ...]:
    """Every program."""
    return tuple(PROGRAMS)


def listing() -> str:
    """Everything that can be explained by name, one line each."""
    tables = {
        "programs": meanings.PROGRAM_MEANINGS,
        "matrices": meanings.MATRIX_MEANINGS,
        "other methods of a robot": {
            name: _programs_text(m) for name, m in METHOD_MEANINGS.items()
        },
    }
    rows = [row for table in tables.values() for row in table.items()]
    lines = dict(zip(rows, align_columns(rows), strict=True))
    sections = [[title, *(f"  {lines[row]}" for row in t.items())] for title, t in tables.items()]
    return "\n\n".join("\n".join(lines) for lines in sections)


def _model(robot: Model | RobotLike) -> Model:
    model = robot if isinstance(robot, Model) else getattr(robot, "model", None)
    if not isinstance(model, Model):
        given = f"got {kind_of(robot)}"
        raise ArgumentError(f"explain takes a robot, or its model, as the second argument, {given}")
    return model


def _explain_method(name: str, model: Model | None, level: str | None) -> str:
    """A method by its programs: the program if it is one, else their names."""
    method = METHOD_MEANINGS[name]
    head = f"{name}: {method.meaning}"
    if len(method.programs) > 1:
        return "\n".join([head, *(f"  see {each}: {_meaning(each)}" for each in method.programs)])
    return f"{head}\n\n{explain(method.programs[0], model, level)}"


def _explain_request(name: str, model: Model | None) -> str:
    """A quantity that is traced directly, or several that are computed together."""
    request = REQUESTS[name]
    if isinstance(request, Traced):
        chosen = ", ".join(request.choices)
        lines = [
            f"{name}: {request.defined}",
            f"reads {', '.join(request.inputs)}" + (f"; chosen: {chosen}" if chosen else ""),
            "traced for the robot directly: robot.compile(...).scalars has every operation",
        ]
        if model is not None and not {"frame", "frames"} & set(request.choices):
            code = kernel(name).on(
                model, BuildTarget("llvm", choices=tuple(request.choices.values()))
            )
            if code is not None:
                lines.append(
                    f"on '{model.name}': {code.final_scalars().count().total()} operations"
                )
        return "\n".join(lines)
    parts = [stage.text for stage in kernel(name, model).passes[:1]]
    return "\n".join([f"{name}: computed together, in one program", *parts])


def _explain_theorem(name: str, level: str | None) -> str:
    """A theorem that is no program: what it says, of what, and how it is proved.

    Raises:
        ArgumentError: The level is one of computations.
    """
    if level not in (None, LEVELS[0]):
        cure = f"it has the level {LEVELS[0]!r} only; phistar.prove({name!r}) has its steps"
        raise ArgumentError(f"{name} is a theorem, which nothing computes by itself: {cure}")
    theorem = catalogue()[name]
    proof = prove(theorem)
    rules = dict.fromkeys(step.identity.name for step in (*proof.left, *proof.right))
    lines = [f"{name}: {theorem.doc}", f"{theorem_location(name)}  {theorem.ref or ''}".rstrip()]
    lines += section("statement", text.statement_lines(theorem))
    lines += section("holds for", [text.hypotheses_text(proof)])
    symbols = (SYMBOLS[each] for each in symbols_in(theorem.sides))
    lines += section("symbols", (f"{entry.text:<3} {entry.meaning}" for entry in symbols))
    steps = plural(len(proof.left) + len(proof.right), "step")
    how = [f"{proof.outcome.value} in {steps}; phistar prove {name} prints them"]
    how += [f"by {', '.join(rules)}"] if rules else []
    return "\n".join([*lines, *section("proof", how)])


def _programs_text(method: Method) -> str:
    first, *others = method.programs
    return f"by {first}" + (f" and {len(others)} more" if others else "")


def _meaning(name: str) -> str:
    found = meanings.PROGRAM_MEANINGS.get(name) or meanings.MATRIX_MEANINGS.get(name)
    if found is not None:
        return found
    request = REQUESTS[name]
    return request.defined if isinstance(request, Traced) else METHOD_MEANINGS[name].meaning


def _compiled(what: str | Expr | Kernel, model: Model | None) -> Kernel:
    if isinstance(what, str):
        return _named_program(what, model)
    if isinstance(what, Kernel):
        return what
    check_expression(what)
    if what.domain is ONE and what.codomain is ONE:
        pairs = [pair for term in cheapest_inner_products(what) for pair in term.pairs]
        sides = ((f"{n}{k}", x) for k, p in enumerate(pairs) for n, x in zip("xy", p, strict=True))
        return compile_outputs(f"{what}, a sum of products of vectors x and y", tuple(sides))
    if what.domain is not ONE and what.domain not in ARGUMENTS:
        raise ArgumentError(f"{what} takes {what.domain.reads}, which is not supported")
    output = what if what.domain is ONE else what @ ARGUMENTS[what.domain]
    return compile_outputs(str(what), (("y", output),))


def _scheduled(program: Kernel, schedule: str) -> Kernel:
    """The same program with a schedule."""
    request = program.request
    if schedule == "sequential" or not isinstance(request, Vectors):
        return program
    return compile_request(replace(request, schedule=schedule))


def _named_program(name: str, model: Model | None) -> Kernel:
    """A program of the catalogue, or a matrix as its operator times a vector."""
    if name in PROGRAMS:
        return kernel(name, model)
    if name not in MATRICES:
        every = (*PROGRAMS, *MATRICES, *METHOD_MEANINGS, *REQUESTS, *catalogue())
        raise UnknownNameError("program", name, dict.fromkeys(every))
    operator = MATRICES[name]
    meaning = meanings.MATRIX_MEANINGS[name]
    title = f"{name}: {meaning}, an operator, whose columns are y for unit vectors x"
    return compile_outputs(title, (("y", operator @ ARGUMENTS[operator.domain]),))


def _level(name: str, program: Kernel, model: Model | None) -> list[str]:
    gloss, lines = _LEVELS[name]
    return section(f"{LEVELS.index(name) + 1} {name}: {gloss}", lines(program, model))


def _expression(program: Kernel, model: Model | None) -> Iterator[str]:
    written, closed = dict(program.outputs), _without_inverses(program)
    yield from _equations(written)
    if closed != written:
        yield "derived from it, without inverses of matrices:"
        yield from _equations(closed)


def _equations(outputs: Mapping[str, Expr]) -> Iterator[str]:
    for output, expr in outputs.items():
        label = SYMBOLS[output].text if output in SYMBOLS else output
        yield f"{label} = {to_text(expr)}"
    for line in text.let_lines(outputs.values()):
        yield f"  {line}"


def _without_inverses(program: Kernel) -> Mapping[str, Expr]:
    """The outputs after the last compiler pass on expressions."""
    forms = [value for each, value in program.after if each.level == "expressions"]
    return forms[-1].outputs


def _operators(program: Kernel, model: Model | None) -> Iterator[str]:
    written, closed = dict(program.outputs), _without_inverses(program)
    if closed != written:
        yield from _derivation(written)
    exprs = list(closed.values())
    used = theorems_in(exprs)
    for theorem in used:
        proof = prove(theorem)
        steps = len(proof.left) + len(proof.right)
        yield f"theorem {theorem.name}, {proof.outcome.value} (steps: {steps})"
        yield f"  {text.statement_lines(theorem)[0]}"
        yield f"  {theorem_location(theorem.name)}  {theorem.ref or ''}".rstrip()
    if not used and closed == written:
        yield "straight from the definitions, no theorem needed"
    for symbol in symbols_in(exprs):
        entry = SYMBOLS[symbol]
        yield f"{entry.text:<3} {entry.meaning}"


def _derivation(written: Mapping[str, Expr]) -> Iterator[str]:
    """The rules that led from the expression to what is computed."""
    derived = derive(written)
    rules = Counter(step.identity.name for _, trace in derived.traces() for step in trace.steps)
    yield f"derived in {plural(sum(rules.values()), 'step')} ({derived.chosen.name}) by the rules"
    yield f"  {', '.join(f'{times} x {name}' for name, times in rules.items())}"


def _recursion(program: Kernel, model: Model | None) -> Iterator[str]:
    if program.draft.parallel is not None:
        yield from (title for title, _ in sections(program.draft.parallel))
        return
    streams, passes = program.schedule.program, program.schedule.sweeps
    recursions = plural(len(streams.recursions), "recursion")
    pass_count = plural(len(passes), "pass", "passes")
    yield f"{recursions}, {pass_count}: {', '.join(program.schedule.directions)}"
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
    "common_ancestor_product": "ψ*H*D⁻¹Hψ, column by column: outward from where branches meet",
}


def _transition(program: Kernel, model: Model | None) -> Iterable[str]:
    return program.sweeps.splitlines()


_LEVELS: dict[str, tuple[str, Callable[[Kernel, Model | None], Iterable[str]]]] = {
    "expression": ("what is computed", _expression),
    "operators": ("its theorems and symbols", _operators),
    "recursion": ("φ, ψ and P as recursions over the links, fused into passes", _recursion),
    "transition": ("the statements at one link, pass by pass", _transition),
    "crossing": ("how a quantity passes a joint", crossing_lines),
    "frames": ("where the links are, and the axes of expression", frame_lines),
    "scalars": ("numbers stored and operations", scalar_lines),
}
LEVELS = tuple(_LEVELS)
"""Names of the levels, from the highest down."""

_NEEDS_ROBOT = frozenset({"frames"})

# SPDX-License-Identifier: BSD-3-Clause
"""The compiler: one ordered list of named passes, from a request to emitted code.

    expressions   check, derive     what is wanted, then forms of it that sweeps can compute
    streams       lower, prune      one value per link, and nothing that no output needs
    sweeps        schedule          the fewest walks over the links
    scalars       trace             operations on numbers, for one robot
    code          emit              text for one machine

Vectors, matrices and bundles of both go through the same list. A quantity that is traced by hand
has no expression; it enters at *trace*. Up to the sweeps no robot is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from phistar.algebra.ir import Expr, Inverse
from phistar.algebra.printing import to_text as expression_text
from phistar.algebra.proof_text import let_lines
from phistar.algebra.spaces import ONE
from phistar.algebra.symbols import D
from phistar.algebra.traverse import nodes
from phistar.algorithms.programs import FACTORS, PROGRAMS
from phistar.compile.requests import FULL, Bundle, MatrixOf, Request, Traced, Vectors
from phistar.derive import derive, with_closed_inverses
from phistar.errors import LoweringError
from phistar.sweeps.ir import StreamProgram
from phistar.sweeps.lower import lower
from phistar.sweeps.matrix_requests import (
    Full,
    InnovationForms,
    LoweredBundle,
    MatrixCandidate,
    MatrixForm,
    check_request,
    matrix_candidates,
    matrix_forms,
)
from phistar.sweeps.matrix_requests import Request as MatrixPart
from phistar.sweeps.parallel.parallel_schedule import ParallelSchedule, parallel_schedule
from phistar.sweeps.parallel.printing import to_text as parallel_text
from phistar.sweeps.printing import to_text
from phistar.sweeps.prune import program_listing, prune
from phistar.sweeps.schedule import Schedule, schedule
from phistar.sweeps.split_matrices import SplitMatrices, SplitTerms, lower_split
from phistar.sweeps.verify import verified


@dataclass(frozen=True)
class Draft:
    """A request on its way through the passes; what is not there yet is empty.

    Attributes:
        request: What is wanted.
        outputs: Vectors by name, as expressions.
        operators: Matrices by name, as expressions.
        part: Which part of the matrices.
        candidates: For each matrix the expressions that may give it.
        program: The vectors as streams.
        programs: The candidates as streams, in the same order.
        schedule: The vectors as sweeps.
        parallel: The same in rounds, if that is wanted.
        forms: The candidates as sweeps.
        split: Matrices from single sweeps, an alternative to others.
        factors: Those of the matrix, or of the left one of products: an alternative to it.
        innovations: Another way to products, with their left matrix.
    """

    request: Request
    outputs: Mapping[str, Expr]
    operators: Mapping[str, Expr] = field(default_factory=dict)
    part: MatrixPart = FULL
    candidates: Mapping[str, tuple[MatrixCandidate, ...]] = field(default_factory=dict)
    program: StreamProgram | None = None
    programs: Mapping[str, tuple[StreamProgram, ...]] = field(default_factory=dict)
    schedule: Schedule | None = None
    parallel: ParallelSchedule | None = None
    forms: Mapping[str, tuple[MatrixForm, ...]] = field(default_factory=dict)
    split: SplitMatrices | None = None
    factors: tuple[Sequence[MatrixForm], Sequence[MatrixForm]] | None = None
    innovations: InnovationForms | None = None

    @classmethod
    def of(cls, request: Request) -> Draft:
        """A request before the first pass."""
        if isinstance(request, Vectors):
            return cls(request, dict(request.vectors))
        if isinstance(request, MatrixOf):
            return cls(request, {}, {request.name: request.operator}, request.part)
        if isinstance(request, Bundle):
            return cls(request, dict(request.vectors), request.wanted.matrices)
        return cls(request, PROGRAMS[request.program] if request.program else {})

    @property
    def bundle(self) -> LoweredBundle:
        """A bundle after the last pass that knows no robot."""
        assert isinstance(self.request, Bundle)
        assert self.schedule is not None
        rest = self.request.wanted.products, self.split, self.factors, self.innovations
        return LoweredBundle(self.schedule, self.forms, *rest)


def _check(draft: Draft) -> Draft:
    """Outputs are vectors, or operators with the part of the matrix that is wanted."""
    if not (draft.outputs or draft.operators or isinstance(draft.request, Traced)):
        raise LoweringError("nothing to compute: no output is asked for")
    for name, expr in draft.outputs.items():
        if expr.domain is not ONE:
            raise LoweringError(f"output {name!r} is an operator, not a vector; apply it to one")
    for expr in draft.operators.values():
        check_request(expr, draft.part)
    return draft


def _derive(draft: Draft) -> Draft:
    """The cheapest form of vectors that the identities give; all forms of matrices."""
    outputs = draft.outputs
    simplify = isinstance(draft.request, Vectors) and draft.request.simplify
    if outputs and (simplify or _needs_derivation(outputs)):
        outputs = derive(outputs).outputs
    operators = {n: with_closed_inverses(expr) for n, expr in draft.operators.items()}
    candidates = {n: matrix_candidates(expr, draft.part) for n, expr in operators.items()}
    return replace(draft, outputs=outputs, operators=operators, candidates=candidates)


def _needs_derivation(outputs: Mapping[str, Expr]) -> bool:
    """Whether there are inverses other than D⁻¹, which have no sweep form."""
    inverses = {node for node in nodes(outputs.values()) if isinstance(node, Inverse)}
    return bool(inverses - {D.inv})


def _lower(draft: Draft) -> Draft:
    return replace(
        draft,
        program=lower(draft.outputs) if draft.outputs else None,
        programs={n: tuple(x.lowered() for x in found) for n, found in draft.candidates.items()},
    )


def _prune(draft: Draft) -> Draft:
    """Of matrices nothing goes: their terms are all there is."""
    return replace(draft, program=None if draft.program is None else prune(draft.program))


def _schedule(draft: Draft) -> Draft:
    forms = {
        n: tuple(
            candidate.scheduled(program)
            for candidate, program in zip(found, draft.programs[n], strict=True)
        )
        for n, found in draft.candidates.items()
    }
    split, factors = _split_matrices(draft.request), _factors(draft)
    program, asked = draft.program, draft.request
    sweeps = None if program is None else verified(schedule(program))
    rounds = None
    if sweeps is not None and isinstance(asked, Vectors) and asked.schedule == "parallel":
        rounds = parallel_schedule(sweeps)
    return replace(
        draft,
        schedule=sweeps,
        parallel=rounds,
        forms=forms,
        split=split,
        factors=factors,
        innovations=_innovations(draft),
    )


def _split_matrices(request: Request) -> SplitMatrices | None:
    """Matrices of a bundle as an inverse times others, if its row says so."""
    if not isinstance(request, Bundle) or request.wanted.split is None:
        return None
    inverse, terms = request.wanted.split
    return lower_split(inverse, {n: SplitTerms(*each) for n, each in terms.items()})


def _factors(draft: Draft) -> tuple[Sequence[MatrixForm], Sequence[MatrixForm]] | None:
    """Forms of a triangle and of pivots that a matrix may be multiplied of, if there are any."""
    request, given = draft.request, None
    if isinstance(request, Bundle):
        given = request.wanted.factors
    elif isinstance(request, MatrixOf) and isinstance(draft.part, Full):
        given = FACTORS.get(draft.operators[request.name])
    if given is None:
        return None
    lower, pivots = (matrix_forms(each, draft.part) for each in given)
    return lower, pivots


def _innovations(draft: Draft) -> InnovationForms | None:
    """Forms of both factors of products with innovations, if a bundle has some."""
    request = draft.request
    if not isinstance(request, Bundle) or request.wanted.innovations is None:
        return None
    response, found = request.wanted.innovations
    rights = {name: _column_forms(each, transposed=False) for name, each in found.items()}
    return _column_forms(response, transposed=True), rights


def _column_forms(expr: Expr, transposed: bool) -> list[MatrixForm]:
    """The walks of an operator itself, or of its adjoint: others take more operations."""
    found = (each for each in matrix_candidates(expr, Full()) if each.name == "columns")
    return [each.scheduled(each.lowered()) for each in found if each.transposed == transposed]


@dataclass(frozen=True)
class Pass:
    """One step of the compiler.

    Attributes:
        name: What it is called.
        level: What it leaves: one of ``LEVELS``.
        doc: What it does, in one line.
        run: The draft before -> the draft after. None: it needs a robot, and is done by
            ``backends.robot_programs`` (trace) or the backend (emit) when code is wanted.
    """

    name: str
    level: str
    doc: str
    run: Callable[[Draft], Draft] | None = None


LEVELS = ("expressions", "streams", "sweeps", "scalars", "code")

PASSES = (
    Pass("check", "expressions", "outputs are vectors, or matrices of operators", _check),
    Pass("derive", "expressions", "the cheapest form, proved equal, without inverses", _derive),
    Pass("lower", "streams", "operators become recursions over the links", _lower),
    Pass("prune", "streams", "streams that no output needs go", _prune),
    Pass(
        "schedule",
        "sweeps",
        "the fewest inward and outward walks, or rounds over all links",
        _schedule,
    ),
    Pass("trace", "scalars", "operations on numbers for one robot, simplified and counted"),
    Pass("emit", "code", "text of the backend, with the numbers of one robot"),
)
"""The compiler, in order."""


class Stage(NamedTuple):
    """A program as a pass left it, for people."""

    name: str
    level: str
    text: str

    def __str__(self) -> str:
        rows = "\n".join(f"    {line}" for line in self.text.splitlines())
        return f"{self.name} -> {self.level}\n{rows}"

    def __repr__(self) -> str:
        return f"<{self.name} -> {self.level}: lines: {len(self.text.splitlines())}>"


class Stages(tuple[Stage, ...]):
    """A program as each pass left it; ``print`` shows all of them."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))


# -- what a draft looks like to people


def draft_text(draft: Draft, level: str) -> str:
    """A draft on a level."""
    if isinstance(draft.request, Traced) and not draft.outputs:
        return f"{draft.request.name}: {draft.request.defined}"
    lines = {"expressions": _expression_lines, "streams": _stream_lines, "sweeps": _sweep_lines}
    return "\n".join(lines[level](draft))


def sweeps_text(draft: Draft) -> str:
    """The sweeps of all that is wanted."""
    return draft_text(draft, "sweeps")


def _expression_lines(draft: Draft) -> Iterator[str]:
    written: dict[str, Expr] = dict(draft.outputs)
    if not draft.candidates:
        written |= draft.operators
    for name, found in draft.candidates.items():
        for candidate in found:
            title = f"{name} by {_title(candidate)}"
            written |= {f"{title}, {kind}": term for kind, term in candidate.terms.items()}
    for name, expr in written.items():
        yield f"{name} = {expression_text(expr)}"
    yield from let_lines(written.values())
    if isinstance(draft.request, Bundle):
        for name, (left, right) in draft.request.wanted.products.items():
            yield f"{name} = -{left} {right}"
        yield from _innovation_lines(draft.request)


def _innovation_lines(request: Bundle) -> Iterator[str]:
    if request.wanted.innovations is None:
        return
    response, found = request.wanted.innovations
    yield "or, where these are not multiplied out,"
    for name, each in found.items():
        yield f"{name} = -({expression_text(response)}) ({expression_text(each)})"
    yield from let_lines(found.values())


def _stream_lines(draft: Draft) -> Iterator[str]:
    if draft.program is not None:
        yield program_listing(draft.program)
    for name, programs in draft.programs.items():
        for candidate, program in zip(draft.candidates[name], programs, strict=True):
            yield f"{name} by {_title(candidate)}, on a unit column"
            yield program_listing(program)


def _sweep_lines(draft: Draft) -> Iterator[str]:
    if draft.parallel is not None:
        yield parallel_text(draft.parallel)
    elif draft.schedule is not None:
        yield to_text(draft.schedule)
    for name, forms in draft.forms.items():
        for form in forms:
            yield f"{name} by {_title(form)}, on a unit column"
            yield to_text(form.schedule)
    if draft.innovations is not None:
        response, found = draft.innovations
        for name, walks in {"response": response, **found}.items():
            for form in walks:
                yield f"innovations, {name} by {_title(form)}, on a unit column"
                yield to_text(form.schedule)
    if draft.split is not None:
        yield f"{', '.join(draft.split.matrices)} by single sweeps along branches"
        yield to_text(draft.split.schedule)


def _title(form: MatrixCandidate | MatrixForm) -> str:
    return form.name + (" of the adjoint" if form.transposed else "")

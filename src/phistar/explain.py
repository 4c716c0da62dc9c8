# SPDX-License-Identifier: BSD-3-Clause
"""What phistar knows about itself: how a program comes about, where it stands, whom to cite.

Names are those of programs (``inverse_dynamics``), theorems (``mass_matrix_inverse``), identities
(``psi_resolvent``) and symbols (``phi``).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from phistar.algebra import derivation as text
from phistar.algebra.identities import DEFINITIONS, IDENTITIES
from phistar.algebra.ir import Expr, Product, Symbol
from phistar.algebra.printing import to_text
from phistar.algebra.proof import Proof, Theorem
from phistar.algebra.proof import prove as prove_theorem
from phistar.algebra.rewrite import Step
from phistar.algebra.symbols import SYMBOLS
from phistar.algebra.traverse import nodes
from phistar.algorithms import catalogue as theorems
from phistar.algorithms.equations_of_motion import PROGRAMS, at_rest, in_motion
from phistar.compile import Kernel, kernel
from phistar.errors import UnknownNameError
from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.refs import Paper, Ref
from phistar.sweeps.costs import count

PACKAGE = Path(__file__).parent
MAX_LINKS = 60
"""Links of a robot that an explanation lists."""


def prove(name: str) -> Proof:
    """Prove a theorem of the catalogue.

    Args:
        name: Name of the theorem, e.g. ``"forward_dynamics"``.

    Returns:
        The proof: its ``outcome``, the steps of both sides and the residual.

    Raises:
        UnknownNameError: No such theorem.
    """
    return prove_theorem(_theorem(name))


def theorem_names() -> tuple[str, ...]:
    """Every theorem, in the order of the files."""
    known = theorems.catalogue()
    return tuple(sorted(known, key=lambda name: theorems.FILES.index(Path(_stated(name)[0]).stem)))


def program_names() -> tuple[str, ...]:
    """Every program."""
    return tuple(PROGRAMS)


def derivation(
    proof: Proof, full: bool = False, limit: int | None = None, rules: bool = True
) -> str:
    """A proof step by step: statement, hypotheses, both sides, rules, outcome.

    Args:
        proof: What ``prove`` returned.
        full: Print the whole sum after every step; otherwise sums are shortened.
        limit: Steps to show of each side; default all.
        rules: Whether to list the rules with their equations.
    """
    theorem = proof.theorem
    place = f"{_at(*_stated(theorem.name))}  {theorem.ref or ''}".rstrip()
    used = text.rules_used(proof) if rules else []
    return "\n".join(
        [
            f"{theorem.name}: {theorem.doc}",
            place,
            *_section("statement", text.statement(theorem)),
            *_section("hypotheses", [text.hypotheses(proof)]),
            *_section("derivation", text.derivation(proof, full, limit)),
            *(_section("rules used", used) if used else ()),
            *_section("outcome", [text.outcome(proof, full)]),
        ]
    )


def explain(name: str, model: Model | None = None) -> str:
    """How a program comes about, level by level: expression, operators, recursions, sweeps.

    Args:
        name: A program, e.g. ``"forward_dynamics"``.
        model: A robot's model (``robot.model``), to see its links, joints and operation counts too.

    Raises:
        UnknownNameError: No such program.
    """
    program = kernel(name)
    lines = [name]
    lines += _section("expression", _expression(program))
    lines += _section("operators", _operators(program))
    lines += _section("recursions", _recursions(program))
    lines += _section("sweeps", program.sweeps.splitlines())
    if model is not None:
        lines += _section(f"links of {model.name}", _links(model))
        lines += _section("joints", _joints(model))
        lines += _section("operations", _operations(program, model))
    return "\n".join(lines)


def where(name: str) -> str:
    """File, line and reference of a theorem, program, identity or symbol; a line each.

    Args:
        name: Its name; a symbol's printed form (``"φ"``) will do too.

    Returns:
        Lines such as ``algorithms/innovations.py:45  theorem mass_matrix_inverse  <reference>``;
        files are relative to the package.

    Raises:
        UnknownNameError: Nothing has this name.
    """
    return "\n".join(
        f"{found.place}  {found.kind} {found.name}  {'; '.join(map(str, found.refs))}".rstrip()
        for found in _find(name)
    )


def cite(name: str) -> str:
    """BibTeX entries of the papers behind a theorem, program, identity or symbol.

    Raises:
        UnknownNameError: Nothing has this name.
    """
    papers: dict[str, Paper] = {}
    for found in _find(name):
        papers.update((ref.paper.key, ref.paper) for ref in (*found.refs, *found.behind))
    if not papers:
        return f"% {name} stands in none of the papers that phistar implements"
    return "\n\n".join(paper.bibtex() for paper in papers.values())


# -- the levels of an explanation


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)]


def _expression(program: Kernel) -> Iterator[str]:
    for output, expr in program.outputs:
        label = SYMBOLS[output].text if output in SYMBOLS else output
        yield f"{label} = {to_text(expr)}"
    for line in text.named(expr for _, expr in program.outputs):
        yield f"  {line}"


def _operators(program: Kernel) -> Iterator[str]:
    exprs = [expr for _, expr in program.outputs]
    used = _theorems_in(exprs)
    for theorem in used:
        proof = prove_theorem(theorem)
        steps = len(proof.left) + len(proof.right)
        yield f"theorem {theorem.name}, {proof.outcome.value} (steps: {steps})"
        yield f"  {text.statement(theorem)[0]}"
        yield f"  {_at(*_stated(theorem.name))}  {theorem.ref or ''}".rstrip()
    if not used:
        yield "straight from the definitions, no theorem needed"
    for symbol in _symbols_in(exprs):
        known = SYMBOLS[symbol]
        yield f"{known.text:<3} {known.meaning}"


def _recursions(program: Kernel) -> Iterator[str]:
    streams = program.schedule.program
    passes = program.schedule.directions
    yield f"{len(streams.recursions)} recursions, {len(passes)} passes: {', '.join(passes)}"
    kinds = Counter(_recursion_kind(streams.nodes[s].data) for s in streams.recursions)
    for kind, times in kinds.items():
        yield f"{times} x {kind}"


def _recursion_kind(key: object) -> str:
    name = key[0] if isinstance(key, tuple) else key
    return _RECURSIONS.get(str(name), str(name))


_RECURSIONS = {
    "phi": "φ, inward: z = x + Σ φ z",
    "phi*": "φ*, outward: y = x + φ* y",
    "psi": "ψ, inward: z = x + Σ φ (z - G H z)",
    "psi*": "ψ*, outward: y = x + (I - H* G*) φ* y",
    "P": "P, inward: the Riccati recursion of the articulated-body inertias",
    "R": "R, inward: the composite-body inertias",
}


def _links(model: Model) -> Iterator[str]:
    shown = model.bodies[:MAX_LINKS]
    width = max((len(body.link) for body in shown), default=0)
    for body in shown:
        parent = "ground" if body.parent == GROUND else model.bodies[body.parent].link
        motion = f"{body.motion.name}, d = {body.motion.nv}"
        yield f"{body.link:<{width}}  {motion:<20}  from {parent}"
    if len(model.bodies) > len(shown):
        yield f"... and {len(model.bodies) - len(shown)} more"
    yield "each in its own frame; φ*(p,k): the joint's fixed placement, then its motion X(q)"


def _joints(model: Model) -> Iterator[str]:
    kinds = Counter((body.motion.name, body.motion.nv) for body in model.bodies)
    for (kind, size), times in kinds.items():
        force = "a number" if size == 1 else f"{size} x {size}"
        yield f"{times} x {kind}: d = {size}, H is {size} x 6, D is {force}"


def _operations(program: Kernel, model: Model) -> Iterator[str]:
    bill = count(program.schedule, model)
    statements = sum(line.startswith(" ") for line in program.sweeps.splitlines())
    lines = statements * bill.links
    yield f"{statements} statements x {bill.links} links = {lines} statements"
    rows = [(_OPERATIONS.get(op, op), *row) for op, row in bill.by_operation.items()]
    width = max((len(label) for label, _, _ in rows), default=0)
    for label, times, cost in rows:
        if cost.total:
            yield f"{label:<{width}}  {times:>5} x   {cost}"
    yield f"in all: {bill.total}"
    if bill.links:
        yield f"a link: {bill.total.total / bill.links:.1f} operations; the transforms not counted"


_OPERATIONS = {
    "sum": "sums",
    "inertia": "inertia times motion",
    "D": "D = H U + A, factored",
    "G": "G = U D⁻¹",
    "down": "P⁺ = P - G U*",
    "Gx": "G x",
    "Gtx": "G* x",
    "Dx": "D x",
    "Dsolve": "D⁻¹ x",
    "Ax": "A x",
    "H": "H x",
    "Ht": "H* x",
    "U": "U = P H*",
    "crm": "V × x",
    "crf": "V ×* x",
    "shin": "Σ φ x",
    "shout": "φ* x",
    "cong": "Σ φ P⁺ φ*",
    "gravity": "gravity to the roots",
}


# -- what is used by what


def _theorem(name: str) -> Theorem:
    known = theorems.catalogue()
    if name not in known:
        raise UnknownNameError("theorem", name, known)
    return known[name]


def _theorems_in(exprs: Iterable[Expr]) -> list[Theorem]:
    """Theorems whose results occur in expressions, and those that they rest on."""
    every = list(nodes(exprs))
    known = theorems.catalogue()
    found = [t for t in known.values() if any(_holds(every, form) for form in _forms(t))]
    for theorem in found:
        found += [t for t in _rests_on(theorem) if t not in found]
    return found


def _rests_on(theorem: Theorem) -> list[Theorem]:
    known = theorems.catalogue()
    return [known[rule.name] for rule in theorem.rules if rule.name in known]


def _forms(theorem: Theorem) -> set[Expr]:
    return {theorem.result, in_motion(theorem.result), at_rest(theorem.result)}


def _holds(every: list[Expr], part: Expr) -> bool:
    """Whether an expression is one of some nodes, or a run of factors in one of them."""
    run = part.factors if isinstance(part, Product) else (part,)
    if len(run) == 1:
        return part in every and not isinstance(part, Symbol) and bool(list(nodes((part,)))[1:])
    products = (node.factors for node in every if isinstance(node, Product))
    return any(
        factors[i : i + len(run)] == run
        for factors in products
        for i in range(len(factors) - len(run) + 1)
    )


def _symbols_in(exprs: Iterable[Expr]) -> list[str]:
    """Operators and vectors in expressions, in the order in which they are defined."""
    used = {node.name for node in nodes(exprs) if isinstance(node, Symbol)}
    return [name for name in SYMBOLS if name in used]


# -- places and references


@dataclass(frozen=True)
class _Found:
    """Something that has the name asked for; ``behind`` holds the references it rests on."""

    kind: str
    name: str
    place: str
    refs: tuple[Ref, ...]
    behind: tuple[Ref, ...] = ()


def _find(name: str) -> list[_Found]:
    asked = name.removesuffix("*")
    found = [*_find_algorithms(asked), *_find_rows(asked)]
    if not found:
        rows = (row.name for row in IDENTITIES)
        every = dict.fromkeys([*theorems.catalogue(), *PROGRAMS, *rows, *SYMBOLS])
        raise UnknownNameError("theorem, program, identity or symbol", name, every)
    return found


def _find_algorithms(name: str) -> Iterator[_Found]:
    if name in theorems.catalogue():
        theorem = _theorem(name)
        behind = [*theorem.rules, *(step.identity for step in _steps(theorem))]
        place = _at(*_stated(name))
        yield _Found("theorem", name, place, _refs([theorem.ref]), _refs(r.ref for r in behind))
    if name in PROGRAMS:
        exprs = PROGRAMS[name].values()
        refs = _refs(theorem.ref for theorem in _theorems_in(exprs))
        behind_it = _refs(SYMBOLS[symbol].ref for symbol in _symbols_in(exprs))
        place = _line("algorithms/equations_of_motion.py", name)
        yield _Found("program", name, place, refs, behind_it)


def _find_rows(name: str) -> Iterator[_Found]:
    for row in IDENTITIES:
        if row.name == name:
            # A definition that is used as a rule stands with its symbol.
            table = "algebra/symbols.py" if row in DEFINITIONS else "algebra/identities.py"
            place = _line(table, name.removesuffix("_definition"))
            yield _Found("identity", name, place, _refs([row.ref]))
    for key, entry in SYMBOLS.items():
        if name in (key, entry.text):
            files = ["algebra/symbols.py", *(f"algorithms/{file}.py" for file in theorems.FILES)]
            places = (_line(file, key) for file in files if _has(file, key))
            yield _Found("symbol", key, next(places, "given by a user"), _refs([entry.ref]))


def _steps(theorem: Theorem) -> Iterator[Step]:
    proof = prove_theorem(theorem)
    yield from (*proof.left, *proof.right)


def _refs(refs: Iterable[Ref | None]) -> tuple[Ref, ...]:
    return tuple(dict.fromkeys(ref for ref in refs if ref is not None))


def _stated(name: str) -> tuple[str, int]:
    file, line = theorems.where(name)
    return Path(file).relative_to(PACKAGE).as_posix(), line


def _at(file: str, line: int) -> str:
    return f"{file}:{line}"


def _has(file: str, name: str) -> bool:
    return name in _rows(file)


def _line(file: str, name: str) -> str:
    return _at(file, _rows(file)[name])


@cache
def _rows(file: str) -> dict[str, int]:
    """Lines of the rows of a registry: the first string of a call, or the key of a table."""
    lines: dict[str, int] = {}
    for node in ast.walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8"))):
        named: list[ast.expr | None] = []
        if isinstance(node, ast.Call):
            named = list(node.args[:1])
        elif isinstance(node, ast.Dict):
            named = list(node.keys)
        for key in named:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                lines.setdefault(key.value, key.lineno)
    return lines

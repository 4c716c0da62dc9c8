# SPDX-License-Identifier: BSD-3-Clause
"""Pages made from the registries: symbols, identities, algorithms, programs and references.

``write(folder)`` is called by ``conf.py`` at every build; proofs are run and passes scheduled anew,
so a page cannot say what the code does not.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import phistar
from phistar.algebra.identities import (
    BIAS,
    COMPOSITE,
    CORE,
    DECOMPOSITIONS,
    DEFINITIONS,
    DUAL,
    HYPOTHESES,
    RESOLVED,
    ROOTS,
    Identity,
)
from phistar.algebra.ir import Expr
from phistar.algebra.phases import IDENTITIES, PHASES
from phistar.algebra.printing import to_latex, to_text
from phistar.algebra.proof import Theorem, open_lets, prove
from phistar.algebra.schemas import (
    GYROSCOPIC,
    JACOBI,
    ONE_DOF_ROOTS,
    RATES,
    RIGID,
    ROOT,
    ROOT_RATES,
    SWAPS,
    TWOFOLD,
)
from phistar.algebra.symbols import (
    SYMBOLS,
    Entry,
    LyapunovIn,
    LyapunovOut,
    Riccati,
    Root,
    RootRate,
    Siblings,
    SylvesterOut,
)
from phistar.algebra.transfers import BIAS_TRANSFER, COMPLIANCE, FREE_TRANSFER, RIGID_TRANSFER
from phistar.algorithms.catalogue import catalogue, where
from phistar.algorithms.programs import PROGRAMS
from phistar.compile import kernel
from phistar.refs import PAPERS, Ref

PACKAGE = Path(phistar.__file__).parent
SYMBOLS_FILE, PROGRAMS_FILE = "algebra/symbols.py", "algorithms/programs.py"
IDENTITY_FILES = ("algebra/identities.py", "algebra/transfers.py", "algebra/schemas.py")
GROUPS = (
    ("Swaps", SWAPS, "For any motions x, y and forces f; in proofs about derivatives."),
    ("Rigid motion", RIGID, "How cross products pass through φ."),
    ("Gravity", ROOT, "Gravity is a motion of the roots."),
    ("Gyroscopic", GYROSCOPIC, "M̂ unfolded."),
    ("Twofold", TWOFOLD, "Products of two cross products between rigid motions."),
    ("Jacobi", JACOBI, "Cross products of cross products."),
    ("Rates", RATES, "The rate Ṗ of the articulated inertia."),
    ("Rates of roots", (*ROOT_RATES, *ONE_DOF_ROOTS), "The rate of the root of D."),
    ("Core", CORE, "Every proof uses these: shifts, resolvents, gains, the Riccati equation."),
    ("Definitions", DEFINITIONS, "Shorthand that every proof unfolds."),
    ("Resolved", RESOLVED, "Consequences of the core that save steps."),
    ("Roots", ROOTS, "The block-diagonal root of D, for diagonalised dynamics."),
    ("Bias", BIAS, "One-sided recursion of any block diagonal X."),
    ("Dual", DUAL, "Inertia across a joint by the forces it holds."),
    (
        "Hypotheses",
        tuple(row for hypothesis in HYPOTHESES.values() for row in hypothesis.rows),
        "What holds under a hypothesis.",
    ),
    ("Composite", COMPOSITE, "Composite-body sums, in place of the Riccati equation."),
    ("Rigid transfer", RIGID_TRANSFER, "Outward sums on motions, moved rigidly."),
    ("Free transfer", FREE_TRANSFER, "The same through free joints from the left."),
    ("Bias transfer", BIAS_TRANSFER, "Motions of ancestors through the gains of P̂."),
    ("Compliance", COMPLIANCE, "Outward sums of compliances; Ξ joins siblings."),
    (
        "Decompositions",
        DECOMPOSITIONS,
        "Triangular splits for matrices: consequences of the recursions above.",
    ),
)


def write(folder: Path) -> None:
    """Write every page; one that has not changed keeps its date, so Sphinx need not read it."""
    folder.mkdir(exist_ok=True)
    pages = {
        "symbols": symbols_page(),
        "identities": identities_page(),
        "algorithms": algorithms_page(),
        "programs": programs_page(),
        "references": references_page(),
    }
    for name, lines in pages.items():
        text = "\n".join(lines) + "\n"
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def symbols_page() -> Iterator[str]:
    """A table of all symbols."""
    yield "# Symbols\n\nOperators and vectors that expressions are made of. *Given* are those that"
    yield "a robot, its state and the user provide.\n"
    rows = (
        (
            f"`{name}`",
            f"`{entry.text}`",
            f"${entry.latex}$",
            _escape(entry.meaning),
            _definition(entry),
            _cite(entry.ref),
            f"`{_symbol_place(name)}`",
        )
        for name, entry in SYMBOLS.items()
        if _symbol_place(name)
    )
    titles = ("name", "text", "LaTeX", "meaning", "definition", "reference", "where")
    yield from _table(titles, rows)


def identities_page() -> Iterator[str]:
    """A table of rewrite rules for each group."""
    yield "# Identities\n\nRewrite rules, read from left to right. The adjoint"
    yield "of each row is a rule as well. All are tested as matrices on random robots.\n"
    yield "Rows act in phases, in this order: " + ", ".join(phase.name for phase in PHASES) + "."
    yield "Those without variables terminate, by weights that fall, and are confluent, by their"
    yield "critical pairs; both are tested. Rules with variables x, y, f, d, for any vectors, are"
    yield "tested on random words. Every proof that is not done before uses the core, and again"
    yield "after each later phase.\n"
    for title, group, what in GROUPS:
        yield f"## {title}\n\n{what}\n"
        rows = (
            (
                f"`{row.name}`",
                f"`{to_text(row.lhs)} → {to_text(row.rhs)}`",
                _escape(row.why),
                _cite(row.ref),
                ", ".join(sorted(row.needs)),
                f"`{_identity_place(row)}`",
            )
            for row in group
        )
        yield from _table(("name", "rule", "why", "reference", "needs", "where"), rows)
        yield ""


def algorithms_page() -> Iterator[str]:
    """A section for each theorem, its proof run now."""
    yield "# Algorithms\n\nEach is a theorem: a definition from mechanics equals a factored form,"
    yield "from which code is made. The proofs were run when this page was built: both sides are"
    yield "brought to normal form by the [identities](identities.md); *proved* means that nothing"
    yield "is left of their difference.\n"
    for theorem in catalogue().values():
        yield from _theorem(theorem)


def _theorem(theorem: Theorem) -> Iterator[str]:
    proof = prove(theorem)
    used = sorted({step.identity.name for step in (*proof.left, *proof.right)})
    left, right = to_latex(theorem.definition), to_latex(open_lets(theorem.result))
    yield f"## {theorem.name}\n\n{_sentence(theorem.doc)}"
    yield f"{_cite(theorem.ref)}; `{_theorem_place(theorem)}`.\n"
    yield f"```{{math}}\n{left} = {right}\n```\n"
    needs = f" It needs: {', '.join(sorted(theorem.needs))}." if theorem.needs else ""
    yield f"**{proof.outcome.value.capitalize()}**: {_steps(len(proof.left))} from the left,"
    yield f"{_steps(len(proof.right))} from the right.{needs} Rules used: " + ", ".join(
        f"`{name}`" for name in used
    )
    yield ""


def programs_page() -> Iterator[str]:
    """A section for each program, its passes scheduled now."""
    yield f"# Programs\n\nWhat a robot can be asked for, from `{PROGRAMS_FILE}`: the result of a"
    yield "theorem with velocity, gravity and external forces put in, and the passes over the links"
    yield "that the compiler makes of it. `V(p)` is the value at the parent, `f(j)` at a child.\n"
    for name in PROGRAMS:
        program = kernel(name)
        directions = ", ".join(program.schedule.directions)
        count = len(program.schedule.passes)
        yield f"## {name}\n\n{count} {'pass' if count == 1 else 'passes'}: {directions}.\n"
        yield f"```text\n{program.sweeps}\n```\n"


def references_page() -> Iterator[str]:
    """From the papers to the code, by the reference each entry gives."""
    found: list[tuple[Ref, str, str, str]] = []
    for name, entry in SYMBOLS.items():
        if entry.ref and (place := _symbol_place(name)):
            found.append((entry.ref, "symbol", name, place))
    for row in IDENTITIES:
        if row.ref and row not in DEFINITIONS:
            found.append((row.ref, "identity", row.name, _identity_place(row)))
    for theorem in catalogue().values():
        if theorem.ref:
            found.append((theorem.ref, "theorem", theorem.name, _theorem_place(theorem)))
    yield "# References\n\nWhat in the code cites which place of a paper. [Papers](../papers.md)"
    yield "goes the other way, equation by equation.\n"
    for paper in PAPERS.values():
        hits = [hit for hit in found if hit[0].paper is paper]
        venue = f"{paper.venue}, {paper.year}"
        yield f"## {paper.short}\n\n{paper.title}. {venue}.\n"
        if hits:
            rows = ((_escape(r.place), kind, f"`{n}`", f"`{at}`") for r, kind, n, at in hits)
            yield from _table(("place", "kind", "name", "where"), rows)
        else:
            yield "Nothing cites it by itself."
        yield ""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    titles = list(head)
    for cells in (titles, ["---"] * len(titles), *rows):
        yield f"| {' | '.join(cells)} |"


def _definition(entry: Entry) -> str:
    definition = entry.definition
    if definition is None:
        return "given"
    if isinstance(definition, Expr):
        return f"`{to_text(definition)}`"
    if isinstance(definition, Riccati):
        return "`P = M + Eφ (P - P H* D⁻¹ H P) Eφ*`, inward"
    if isinstance(definition, Root):
        return f"`{entry.text} {entry.text}* = {to_text(definition.of)}`, lower triangular blocks"
    if isinstance(definition, RootRate):
        root, rate = to_text(definition.root), to_text(definition.of)
        return f"`{entry.text} {root}* + {root} {entry.text}* = {rate}`, lower triangular blocks"
    if isinstance(definition, Siblings):
        return f"blocks off the diagonal of `{to_text(definition.of)}`"
    source, left, right = map(to_text, (definition.source, definition.left, definition.right))
    if isinstance(definition, SylvesterOut):
        return f"`{entry.text} {right} = {source} {right} + {left} {entry.text}`, outward"
    assert isinstance(definition, (LyapunovIn, LyapunovOut))
    way = "inward" if isinstance(definition, LyapunovIn) else "outward, diagonal blocks"
    return f"`{entry.text} = {source} + {left} {entry.text} {right}`, {way}"


def _cite(ref: Ref | None) -> str:
    return _escape(str(ref)) if ref else ""


def _escape(text: str) -> str:
    return re.sub(r"[*_]", r"\\\g<0>", text)


def _sentence(text: str) -> str:
    return f"{_escape(text[0].upper() + text[1:])}."


def _steps(count: int) -> str:
    return f"{count} {'step' if count == 1 else 'steps'}"


@cache
def _symbol_place(name: str) -> str | None:
    """Where a symbol of the algebra is registered; None for arguments that other code makes up."""
    algorithms = sorted((PACKAGE / "algorithms").glob("*.py"))
    files = (SYMBOLS_FILE, *(f"algorithms/{file.name}" for file in algorithms))
    pattern = rf"^{name} = (_register|vector)\("
    places = (_place(pattern, file) for file in files)
    return next((place for place in places if place), None)


def _identity_place(row: Identity) -> str:
    pattern = "^DEFINITIONS" if row in DEFINITIONS else re.escape(f'"{row.name}"')
    places = (_place(pattern, file) for file in IDENTITY_FILES)
    place = next((place for place in places if place), None)
    assert place, f"{row.name} is not spelt out in {' or '.join(IDENTITY_FILES)}"
    return place


def _theorem_place(theorem: Theorem) -> str:
    file, line = where(theorem.name)
    return f"{Path(file).relative_to(PACKAGE).as_posix()}:{line}"


def _place(pattern: str, file: str) -> str | None:
    """``file:line`` of the first line that matches."""
    lines = (PACKAGE / file).read_text(encoding="utf-8").splitlines()
    numbers = (n for n, line in enumerate(lines, 1) if re.search(pattern, line))
    number = next(numbers, None)
    return f"{file}:{number}" if number else None

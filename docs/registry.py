# SPDX-License-Identifier: BSD-3-Clause
"""Pages made from the registries: symbols, identities, theorems, programs and references.

``write(folder)`` is called by ``conf.py`` at every build; proofs are run and passes scheduled anew,
so a page cannot say what the code does not.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import reference_pages
import theorems
from markup import anchor, cite, link, plain, spot, table

import phistar
from phistar.algebra.cross_product_rules import (
    ARTICULATED_RATES,
    BRACKET_PAIRS,
    GRAVITY_AT_ROOTS,
    GYROSCOPIC,
    JACOBI,
    ONE_DOF_SQUARE_ROOT_RATES,
    RIGID_SHIFTS,
    SQUARE_ROOT_RATES,
    SWAPS,
)
from phistar.algebra.identities import (
    COMPOSITE,
    CONSTRAINT_DUAL,
    CORE,
    DEFINITIONS,
    GYROSCOPIC_BIAS,
    HYPOTHESES,
    LINK_ROOTS,
    RICCATI_PRODUCTS,
    SQUARE_ROOTS,
    TRIANGULAR_SPLITS,
    Identity,
)
from phistar.algebra.ir import Expr
from phistar.algebra.loop_identities import AGGREGATED, AGGREGATION, LOOP_ROWS, PARTITION
from phistar.algebra.outward_identities import (
    BIAS_TRANSFER,
    COMPLIANCE,
    FREE_TRANSFER,
    RIGID_TRANSFER,
)
from phistar.algebra.phases import IDENTITIES, PHASES
from phistar.algebra.printing import to_text
from phistar.algebra.proof import SCALAR_ADJOINT, Theorem
from phistar.algebra.symbols import (
    SYMBOLS,
    CholeskyRate,
    CholeskyRoot,
    LyapunovIn,
    LyapunovOut,
    NodeRiccati,
    Riccati,
    SiblingBlocks,
    SylvesterOut,
    SymbolEntry,
)
from phistar.algorithms.catalogue import catalogue, where
from phistar.algorithms.programs import PROGRAMS
from phistar.compile import kernel
from phistar.refs import PAPERS, Ref
from phistar.sweeps.ops import OPS

PACKAGE = Path(phistar.__file__).parent
SYMBOL_FILES = ("algebra/symbols.py", "algebra/loop_symbols.py")
PROGRAMS_FILE = "algorithms/programs.py"
OPERATIONS_FILE = "sweeps/ops.py"
IDENTITY_FILES = (
    "algebra/identities.py",
    "algebra/outward_identities.py",
    "algebra/cross_product_rules.py",
    "algebra/loop_identities.py",
)
GROUPS = (
    ("Core", CORE, "Every proof uses these: shifts, resolvents, gains, the Riccati equation."),
    ("Definitions", DEFINITIONS, "Shorthand that every proof unfolds."),
    ("Resolved", RICCATI_PRODUCTS, "Consequences of the core that save steps."),
    ("Roots", SQUARE_ROOTS, "The block-diagonal root of D, for diagonalised dynamics."),
    ("Roots of links", LINK_ROOTS, "The block-diagonal root of M; links may have no mass."),
    ("Swaps", SWAPS, "For any motions x, y and forces f; in proofs about derivatives."),
    ("Rigid motion", RIGID_SHIFTS, "How cross products pass through φ."),
    ("Gravity", GRAVITY_AT_ROOTS, "Gravity is a motion of the roots."),
    ("Gyroscopic", GYROSCOPIC, "M̂ unfolded."),
    ("Twofold", BRACKET_PAIRS, "Products of two cross products between rigid motions."),
    ("Jacobi", JACOBI, "Cross products of cross products."),
    ("Rates", ARTICULATED_RATES, "The rate Ṗ of the articulated inertia."),
    (
        "Rates of roots",
        (*SQUARE_ROOT_RATES, *ONE_DOF_SQUARE_ROOT_RATES),
        "The rate of the root of D.",
    ),
    ("Bias", GYROSCOPIC_BIAS, "One-sided recursion of any block diagonal X."),
    ("Dual", CONSTRAINT_DUAL, "Inertia across a joint by the forces it holds."),
    ("Loop rows", LOOP_ROWS, "The rows of closed loops, unfolded."),
    ("Partition", PARTITION, "Independent and dependent rates of closed loops."),
    ("Aggregation", AGGREGATION, "Links that share loops, joined to nodes."),
    ("Nodes", AGGREGATED, "The core on the tree of nodes."),
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
        TRIANGULAR_SPLITS,
        "Triangular splits for matrices: consequences of the recursions above.",
    ),
)


def write(folder: Path) -> None:
    """Write every page; one that has not changed keeps its date, so Sphinx need not read it."""
    pages = {
        "symbols": symbols_page(),
        "identities": identities_page(),
        **theorems.pages(),
        "programs": programs_page(),
        "references": references_page(),
        **reference_pages.pages(),
    }
    for name, lines in pages.items():
        text = "\n".join(lines) + "\n"
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def symbols_page() -> Iterator[str]:
    """A table of all symbols."""
    yield "# Symbols\n\nOperators and vectors that expressions are made of. *Given* are those that"
    yield "a robot, its state and the user provide, vectors by name: `function(q, v=...)`."
    yield "X, Y and Z stand for any block diagonal in theorems; they get values as matrices only,"
    yield '`phistar.algebra.Dense(robot.model, q, vectors={"X": matrix})(expr)`. So do those of'
    yield "closed loops, `Dense(robot.model, q, loops=[LoopRows(...)])(expr)`.\n"
    rows = (
        (
            f"{anchor('symbol', name)}`{name}`",
            f"`{entry.text}`",
            f"{{math}}`{entry.latex}`",
            plain(entry.meaning),
            _definition(entry),
            cite(entry.ref),
            spot(_symbol_place(name)),
        )
        for name, entry in SYMBOLS.items()
        if _symbol_place(name)
    )
    titles = ("name", "text", "math", "meaning", "definition", "reference", "where")
    yield from table("symbols", titles, rows)


def identities_page() -> Iterator[str]:
    """A table of rewrite rules for each group."""
    yield "# Identities\n\nRewrite rules, read from left to right. The adjoint"
    yield "of each row is a rule as well. All are tested as matrices on random robots.\n"
    yield "Rows act in phases, in this order: " + ", ".join(phase.name for phase in PHASES) + "."
    yield "Those without variables terminate, by weights that fall, and are confluent, by their"
    yield "critical pairs; both are tested. Rules with variables x, y, f, d, for any vectors, are"
    yield "tested on random words. Every proof that is not done before uses the core, and again"
    yield "after each later phase."
    mark, name = anchor("rule", SCALAR_ADJOINT.name), SCALAR_ADJOINT.name
    yield f"{mark}Besides, {SCALAR_ADJOINT.why}: such a step is `{name}`.\n"
    for title, group, what in GROUPS:
        yield f"## {title}\n\n{what}\n"
        rows = (
            (
                f"{anchor('rule', row.name)}`{row.name}`",
                f"`{to_text(row.lhs)} → {to_text(row.rhs)}`",
                _why(row),
                cite(row.ref),
                spot(_identity_place(row)),
            )
            for row in group
        )
        titles = ("name", "rule", "why", "reference", "where")
        yield from table("identities", titles, rows)
        yield ""


def _why(row: Identity) -> str:
    needs = "".join(f"; {HYPOTHESES[need].says}" for need in sorted(row.needs))
    return plain(row.why + needs)


def programs_page() -> Iterator[str]:
    """A section for each program, its passes scheduled now."""
    yield f"# Programs\n\nWhat a robot can be asked for, from `{PROGRAMS_FILE}`: the result of a"
    yield "theorem with velocity, gravity and external forces put in, and the passes over the links"
    yield "that the compiler makes of it. `V(p)` is the value at the parent, `f(j)` at a child.\n"
    for name in PROGRAMS:
        program = kernel(name)
        directions = ", ".join(program.schedule.directions)
        number = len(program.schedule.sweeps)
        passes = "1 pass" if number == 1 else f"{number} passes"
        yield f"## {name}\n\n{anchor('program', name)}{passes}: {directions}.\n"
        yield f"```text\n{program.sweeps}\n```\n"
    yield from _operations()


def _operations() -> Iterator[str]:
    yield f"## Operations\n\nWhat passes are made of, from `{OPERATIONS_FILE}`.\n"
    yield "| operation | written | types | meaning |\n|---|---|---|---|"
    for row in OPS.values():
        types = "<br>".join(str(each) for each in row.signatures)
        text = f"`{row.text}`" if row.text else ""
        yield f"| `{row.name}` | {text} | {types} | {plain(row.meaning)} |"


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
            rows = ((plain(r.place), kind, link(n), spot(at)) for r, kind, n, at in hits)
            yield from table("references", ("place", "kind", "name", "where"), rows)
        else:
            yield "Nothing cites it by itself."
        yield ""


def _definition(entry: SymbolEntry) -> str:
    definition = entry.definition
    if definition is None:
        return "given"
    if isinstance(definition, Expr):
        return f"`{to_text(definition)}`"
    if isinstance(definition, NodeRiccati):
        return "`Pₐ = M + Eₐ (Pₐ - Pₐ Hₐ* Dₐ⁻¹ Hₐ Pₐ) Eₐ*`, inward over nodes"
    if isinstance(definition, Riccati):
        return "`P = M + Eφ (P - P H* D⁻¹ H P) Eφ*`, inward"
    if isinstance(definition, CholeskyRoot):
        return f"`{entry.text} {entry.text}* = {to_text(definition.of)}`, lower triangular blocks"
    if isinstance(definition, CholeskyRate):
        root, rate = to_text(definition.root), to_text(definition.of)
        return f"`{entry.text} {root}* + {root} {entry.text}* = {rate}`, lower triangular blocks"
    if isinstance(definition, SiblingBlocks):
        return f"blocks off the diagonal of `{to_text(definition.of)}`"
    source, left, right = map(to_text, (definition.source, definition.left, definition.right))
    if isinstance(definition, SylvesterOut):
        return f"`{entry.text} {right} = {source} {right} + {left} {entry.text}`, outward"
    assert isinstance(definition, (LyapunovIn, LyapunovOut))
    way = "inward" if isinstance(definition, LyapunovIn) else "outward, diagonal blocks"
    return f"`{entry.text} = {source} + {left} {entry.text} {right}`, {way}"


@cache
def _symbol_place(name: str) -> str | None:
    """Where a symbol of the algebra is registered; None for arguments that other code makes up."""
    algorithms = sorted((PACKAGE / "algorithms").glob("*.py"))
    files = (*SYMBOL_FILES, *(f"algorithms/{file.name}" for file in algorithms))
    pattern = rf"^{name} = (_register|vector|register_articulated_rate)\("
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

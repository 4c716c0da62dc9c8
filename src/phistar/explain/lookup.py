# SPDX-License-Identifier: BSD-3-Clause
"""File, line, reference and citation of anything that has a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from phistar.algebra.identities import DEFINITIONS
from phistar.algebra.phases import IDENTITIES
from phistar.algebra.proof import Theorem
from phistar.algebra.proof import prove as prove_theorem
from phistar.algebra.rewrite import Step
from phistar.algebra.symbols import SYMBOLS
from phistar.algorithms import catalogue as theorems
from phistar.algorithms.programs import PROGRAMS
from phistar.errors import UnknownNameError
from phistar.explain import places
from phistar.explain.used import symbols_in, theorems_in
from phistar.refs import Paper, Ref

_TABLES = ("algebra/identities.py", "algebra/transfers.py", "algebra/schemas.py")


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
        theorem = theorems.catalogue()[name]
        behind = [*theorem.rules, *(step.identity for step in _steps(theorem))]
        place = places.stated(name)
        yield _Found("theorem", name, place, _refs([theorem.ref]), _refs(r.ref for r in behind))
    if name in PROGRAMS:
        exprs = PROGRAMS[name].values()
        refs = _refs(theorem.ref for theorem in theorems_in(exprs))
        behind_it = _refs(SYMBOLS[symbol].ref for symbol in symbols_in(exprs))
        place = places.line("algorithms/programs.py", name)
        yield _Found("program", name, place, refs, behind_it)


def _find_rows(name: str) -> Iterator[_Found]:
    for row in IDENTITIES:
        if row.name == name:
            # A definition that is used as a rule stands with its symbol.
            if row in DEFINITIONS:
                place = places.line("algebra/symbols.py", name.removesuffix("_definition"))
            else:
                place = places.line(next(file for file in _TABLES if places.has(file, name)), name)
            yield _Found("identity", name, place, _refs([row.ref]))
    for key, entry in SYMBOLS.items():
        if name in (key, entry.text):
            files = ["algebra/symbols.py", *(f"algorithms/{file}.py" for file in theorems.FILES)]
            lines = (places.line(file, key) for file in files if places.has(file, key))
            yield _Found("symbol", key, next(lines, "given by a user"), _refs([entry.ref]))


def _steps(theorem: Theorem) -> Iterator[Step]:
    proof = prove_theorem(theorem)
    yield from (*proof.left, *proof.right)


def _refs(refs: Iterable[Ref | None]) -> tuple[Ref, ...]:
    return tuple(dict.fromkeys(ref for ref in refs if ref is not None))

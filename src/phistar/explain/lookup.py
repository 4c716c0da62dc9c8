# SPDX-License-Identifier: BSD-3-Clause
"""File, line, reference and citation of anything that has a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from phistar.algebra.phases import IDENTITIES
from phistar.algebra.proof import Theorem
from phistar.algebra.proof import prove as prove_theorem
from phistar.algebra.rewrite import RewriteStep
from phistar.algebra.symbols import SYMBOLS
from phistar.algorithms import catalogue as theorems
from phistar.algorithms.programs import PROGRAMS
from phistar.errors import UnknownNameError
from phistar.explain import source_locations
from phistar.explain.dependencies import symbols_in, theorems_in
from phistar.refs import Paper, Ref


def where(name: str) -> str:
    """File, line and reference of a theorem, program, identity or symbol; one line each.

    Args:
        name: Its name, or a symbol's printed form (``"φ"``).

    Returns:
        Lines such as ``algorithms/innovations.py:45  theorem mass_matrix_inverse  <reference>``;
        files are relative to the package.

    Raises:
        UnknownNameError: Nothing has this name.
    """
    return "\n".join(
        f"{result.place}  {result.kind} {result.name}  {'; '.join(map(str, result.refs))}".rstrip()
        for result in _find(name)
    )


def cite(name: str) -> str:
    """BibTeX entries of the papers behind a theorem, program, identity or symbol.

    Raises:
        UnknownNameError: Nothing has this name.
    """
    papers: dict[str, Paper] = {}
    for result in _find(name):
        papers.update((ref.paper.key, ref.paper) for ref in (*result.refs, *result.used_refs))
    if not papers:
        return f"% {name} is in none of the papers that phistar implements"
    return "\n\n".join(paper.bibtex() for paper in papers.values())


@dataclass(frozen=True)
class _LookupResult:
    """Something with the requested name; ``used_refs`` are the references that it uses."""

    kind: str
    name: str
    place: str
    refs: tuple[Ref, ...]
    used_refs: tuple[Ref, ...] = ()


def _find(name: str) -> list[_LookupResult]:
    base_name = name.removesuffix("*")
    results = [*_find_algorithms(base_name), *_find_rows(base_name)]
    if not results:
        rows = (row.name for row in IDENTITIES)
        every = dict.fromkeys([*theorems.catalogue(), *PROGRAMS, *rows, *SYMBOLS])
        raise UnknownNameError("theorem, program, identity or symbol", name, every)
    return results


def _find_algorithms(name: str) -> Iterator[_LookupResult]:
    if name in theorems.catalogue():
        theorem = theorems.catalogue()[name]
        behind = [*theorem.rules, *(step.identity for step in _steps(theorem))]
        location = source_locations.theorem_location(name)
        yield _LookupResult(
            "theorem", name, location, _refs([theorem.ref]), _refs(r.ref for r in behind)
        )
    if name in PROGRAMS:
        exprs = PROGRAMS[name].values()
        refs = _refs(theorem.ref for theorem in theorems_in(exprs))
        behind_it = _refs(SYMBOLS[symbol].ref for symbol in symbols_in(exprs))
        location = source_locations.row_location("algorithms/programs.py", name)
        yield _LookupResult("program", name, location, refs, behind_it)


def _find_rows(name: str) -> Iterator[_LookupResult]:
    for row in IDENTITIES:
        if row.name == name:
            yield _LookupResult(
                "identity", name, source_locations.identity_location(row), _refs([row.ref])
            )
    for key, entry in SYMBOLS.items():
        if name in (key, entry.text):
            files = [
                *source_locations.SYMBOL_FILES,
                *(f"algorithms/{file}.py" for file in theorems.THEOREM_MODULES),
            ]
            lines = (
                source_locations.row_location(file, key)
                for file in files
                if source_locations.has_row(file, key)
            )
            yield _LookupResult("symbol", key, next(lines, "given by a user"), _refs([entry.ref]))


def _steps(theorem: Theorem) -> Iterator[RewriteStep]:
    proof = prove_theorem(theorem)
    yield from (*proof.left, *proof.right)


def _refs(refs: Iterable[Ref | None]) -> tuple[Ref, ...]:
    return tuple(dict.fromkeys(ref for ref in refs if ref is not None))

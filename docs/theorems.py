# SPDX-License-Identifier: BSD-3-Clause
"""Pages of theorems, one for each file of algorithms, with proofs that are run at every build."""

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib import import_module
from pathlib import Path

from markup import anchor, cite, count, link, plain, sentence, table, target

from phistar.algebra.printing import to_latex
from phistar.algebra.proof import Outcome, Proof, Theorem, open_lets, prove
from phistar.algebra.proof_text import hypotheses_text, outcome_text, steps_lines, sum_text
from phistar.algebra.rewrite import RewriteStep, RewriteTrace
from phistar.algebra.words import WordSum
from phistar.algorithms.catalogue import THEOREM_MODULES, catalogue, where

ROOT = "../"
"""From a page of theorems to the folder of generated pages."""

SHOWN = 250
"""Steps of a side that are written out."""

STEP = re.compile(r"\s+(\d+)  (\S.*?)\s+(\d+ words?)  (.*)")
"""A line of a derivation: number, rule, size of the sum afterwards, word that it was applied to."""


def pages() -> dict[str, Iterator[str]]:
    """A page for each file, and one that lists them all."""
    return {
        "algorithms": _overview(),
        **{f"algorithms/{file}": _page(file) for file in THEOREM_MODULES},
    }


def _overview() -> Iterator[str]:
    yield "# Algorithms\n\nEach is a theorem: a definition from mechanics equals a factored form,"
    yield "from which code is made. The proofs were run when these pages were built: both sides are"
    yield "brought to normal form by the [identities](identities.md); *proved* means that nothing"
    yield "is left of their difference. Derivations are folded up below their theorems; of a side"
    yield f"that takes more than {SHOWN} steps, the first {SHOWN} are shown. `phistar prove NAME`"
    yield "prints all of them.\n"
    for file in THEOREM_MODULES:
        yield f"## {_title(file)}\n\n{plain(_doc(file)[0])}.\n"
        rows = ((link(t.name), sentence(t.doc), cite(t.ref)) for t in _theorems(file))
        yield from table("theorems", ("theorem", "says", "reference"), rows)
        yield ""
    yield "```{toctree}\n:hidden:\n"
    yield from (f"algorithms/{file}" for file in THEOREM_MODULES)
    yield "```"


def _page(file: str) -> Iterator[str]:
    first, rest = _doc(file)
    yield f"# {_title(file)}\n\n{plain(first)}.\n"
    yield from (line if line.startswith("    ") else plain(line) for line in rest.splitlines())
    yield ""
    for theorem in _theorems(file):
        yield from _theorem(theorem)


def _title(file: str) -> str:
    return file.replace("_", " ").capitalize()


def _doc(file: str) -> tuple[str, str]:
    """First sentence of a module, and the rest."""
    text = import_module(f"phistar.algorithms.{file}").__doc__ or ""
    first, _, rest = text.strip().partition("\n\n")
    return " ".join(first.split()).rstrip("."), rest


@cache
def _theorems(file: str) -> tuple[Theorem, ...]:
    return tuple(t for t in catalogue().values() if Path(where(t.name)[0]).stem == file)


def _theorem(theorem: Theorem) -> Iterator[str]:
    proof = prove(theorem)
    left, right = to_latex(theorem.definition), to_latex(open_lets(theorem.result))
    yield f"## {theorem.name}\n\n{anchor('theorem', theorem.name)}{sentence(theorem.doc)}"
    place = f"algorithms/{Path(where(theorem.name)[0]).name}:{where(theorem.name)[1]}"
    yield f"{cite(theorem.ref)}; `{place}`.\n".removeprefix("; ")
    yield f"```{{math}}\n{left} = {right}\n```\n"
    yield f"Holds for {plain(hypotheses_text(proof))}.\n"
    yield "\n".join(_folded(proof)) + "\n"


def _folded(proof: Proof) -> Iterator[str]:
    """The derivation as HTML without an empty line, so that Markdown leaves it alone."""
    assert proof.outcome is Outcome.PROVED, f"{proof.theorem.name} is {proof.outcome.value}"
    steps = count(len(proof.left) + len(proof.right), "step")
    yield f'<details class="proof"><summary><b>Proved</b> in {steps}</summary>'
    shown = ((trace, step) for trace in proof.traces for step in trace.steps[:SHOWN])
    for line in steps_lines(proof, limit=SHOWN):
        found = STEP.match(line)
        yield _step(*found.groups(), *next(shown)) if found else _remark(line)
    yield f"<p>{escape(outcome_text(proof).capitalize())}.</p></details>"


def _step(
    number: str, rule: str, size: str, word: str, trace: RewriteTrace, step: RewriteStep
) -> str:
    """A word, what the rule makes of it, and how many words the whole sum has then."""
    # Rows that cancel the inverses of a theorem are made for it and stand on no page.
    named = link(rule, ROOT) if target(rule) else _code(rule)
    put = WordSum(trace.start.codomain, trace.start.domain, dict(step.results()))
    change = f"{_code(word)} → {_code(sum_text(put, full=False))}"
    return f'<p class="step">{number}. {named}: {change}; {size} in all</p>'


def _remark(line: str) -> str:
    """A side as it stands at first or in the end, or how many steps are not shown."""
    title, colon, words = line.strip().partition(": ")
    if colon:
        return f"<p><b>{escape(title.capitalize())}</b> {_code(words)}</p>"
    if title.startswith("= "):
        return f"<p>= {_code(title[2:])}</p>"
    return f"<p>{escape(title)}</p>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"

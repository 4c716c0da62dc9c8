# SPDX-License-Identifier: BSD-3-Clause
"""``explain``, ``where``, ``cite`` and ``prove``: true of every name that phistar knows."""

import re

import pytest

import phistar
from phistar.algebra.identities import IDENTITIES
from phistar.algebra.symbols import SYMBOLS
from phistar.algorithms.catalogue import catalogue
from phistar.algorithms.equations_of_motion import PROGRAMS
from phistar.errors import UnknownNameError
from phistar.refs import PAPERS
from tests.helpers import ROOT

NAMES = [*catalogue(), *PROGRAMS, *(row.name for row in IDENTITIES), *SYMBOLS]
PACKAGE = ROOT / "src" / "phistar"


@pytest.mark.parametrize("name", dict.fromkeys(NAMES))
def test_where_points_at_the_name(name: str) -> None:
    """The line that is named, or one of the next few, holds the name."""
    for line in phistar.where(name).splitlines():
        place = line.split()[0]
        if place == "given":
            continue
        file, number = place.split(":")
        text = (PACKAGE / file).read_text(encoding="utf-8").splitlines()
        assert name.removesuffix("_definition") in " ".join(text[int(number) - 1 :][:3])


def test_where_speaks_of_all_that_have_the_name() -> None:
    """A program and the theorem it is made from share their name."""
    lines = phistar.where("forward_dynamics").splitlines()
    assert [line.split()[1] for line in lines] == ["theorem", "program"]
    assert "Rodriguez & Kreutz-Delgado 1992, (66)-(73)" in lines[0]


def test_where_reads_printed_symbols_and_adjoint_rules() -> None:
    """φ is phi, and the rule phi_shift* stands where phi_shift does."""
    assert phistar.where("φ") == phistar.where("phi")
    assert phistar.where("phi_shift*") == phistar.where("phi_shift")


@pytest.mark.parametrize("name", dict.fromkeys(NAMES))
def test_cite_gives_bibtex_or_says_why_not(name: str) -> None:
    """Entries of known papers, each once; a comment where no paper has it."""
    text = phistar.cite(name)
    keys = re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)
    assert len(keys) == len(set(keys))
    assert set(keys) <= set(PAPERS)
    assert keys or text.startswith("% ")


def test_cite_goes_behind_the_proof() -> None:
    """The factored inverse stands in one paper, the rules that prove it in two more."""
    text = phistar.cite("mass_matrix_inverse")
    for key in ("RodriguezKreutz1992", "JainRodriguez1993", "JainRodriguez1995"):
        assert key in text


@pytest.mark.parametrize("name", PROGRAMS)
def test_explain_has_every_level(name: str) -> None:
    """Expression, operators, recursions and sweeps, in this order."""
    text = phistar.explain(name)
    places = [
        text.index(f"\n{title}\n") for title in ["expression", "operators", "recursions", "sweeps"]
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("program", "theorem"),
    [
        ("forward_dynamics", "forward_dynamics"),
        ("forward_dynamics", "mass_matrix_inverse"),
        ("mass_matrix_solve", "mass_matrix_inverse"),
        ("inverse_dynamics", "inverse_dynamics"),
        ("momenta", "link_velocities"),
    ],
)
def test_explain_names_the_theorems(program: str, theorem: str) -> None:
    """A program names the theorems whose results it computes and those that these rest on."""
    assert f"theorem {theorem}, proved" in phistar.explain(program)


def test_explain_claims_no_theorem_where_there_is_none() -> None:
    """𝓜x is computed from the definition of 𝓜."""
    assert "no theorem needed" in phistar.explain("mass_matrix_times")


def test_prove_returns_the_proof() -> None:
    """A proof has its theorem, and its outcome."""
    proof = phistar.prove("innovations_inverse")
    assert proof.theorem is catalogue()["innovations_inverse"]
    assert proof.outcome.value == "proved"


@pytest.mark.parametrize("function", ["explain", "where", "cite", "prove"])
def test_unknown_names_have_close_matches(function: str) -> None:
    """A misspelt name is told with the right one."""
    with pytest.raises(UnknownNameError, match="'forward_dynamics'"):
        getattr(phistar, function)("forward_dynamic")

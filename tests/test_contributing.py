# SPDX-License-Identifier: BSD-3-Clause
"""What CONTRIBUTING and the page of papers say about the algebra must be so."""

import re
from typing import Any

import pytest

from phistar import Robot
from phistar.algebra import identities
from phistar.algebra.identities import IDENTITIES, Identity
from phistar.algebra.proof import Outcome, Theorem, differ, prove
from phistar.algebra.rewrite import Rule
from phistar.algebra.symbols import SYMBOLS
from phistar.algorithms import catalogue, equations_of_motion, kinematics
from phistar.algorithms.equations_of_motion import PROGRAMS
from tests.helpers import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROW, FILE = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_the_row_shown_is_an_identity() -> None:
    """The example row is a rule of its own, follows from the core, and holds as matrices."""
    row = eval(ROW, vars(identities).copy())
    assert isinstance(row, Identity)
    assert Rule.of(row).lhs not in {Rule.of(known).lhs for known in IDENTITIES}
    theorem = Theorem(row.name, row.lhs, row.rhs, row.why, row.ref)
    assert prove(theorem).outcome is Outcome.PROVED
    assert not differ(theorem)


def test_the_file_shown_is_an_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example file puts one new theorem into the catalogue, and it is proved."""
    catalogue.catalogue()
    known = dict(catalogue._CATALOGUE)
    monkeypatch.setattr(catalogue, "_CATALOGUE", added := {})
    monkeypatch.setattr(catalogue, "_PLACES", {})
    names: dict[str, Any] = {}
    exec(compile(FILE, "CONTRIBUTING.md", "exec"), names)
    ((name, theorem),) = added.items()
    assert name not in known
    assert prove(theorem).outcome is Outcome.PROVED


def test_papers_names_things_that_exist() -> None:
    """Each name in the last column is a symbol, identity, theorem, program or method."""
    rows = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").split("## ", 1)[1]
    names = {name for line in rows.splitlines() for name in re.findall(r"`([^`]+)`", line)}
    known = {*SYMBOLS, *(row.name for row in IDENTITIES), *catalogue.catalogue(), *PROGRAMS}
    known |= {*vars(kinematics), *vars(equations_of_motion)}
    known |= {f"Robot.{method}" for method in dir(Robot)}
    assert len(names) > 40
    assert names - known == set()

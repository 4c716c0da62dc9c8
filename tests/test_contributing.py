# SPDX-License-Identifier: BSD-3-Clause
"""What CONTRIBUTING says about the algebra must be so."""

import re
from typing import Any

import pytest

from phistar.algebra import identities
from phistar.algebra.identities import Identity
from phistar.algebra.phases import IDENTITIES, PHASES
from phistar.algebra.proof import Outcome, Theorem, differ, prove
from phistar.algebra.rewrite import Rewriter, Rule, critical_pairs
from phistar.algorithms import catalogue
from tests.helpers import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROW, FILE = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_the_row_shown_is_an_identity() -> None:
    """The example row is a new rule, follows from the core, holds as matrices and joins."""
    row = eval(ROW, vars(identities).copy())
    assert isinstance(row, Identity)
    assert Rule.of(row).lhs not in {Rule.of(known).lhs for known in IDENTITIES}
    theorem = Theorem(row.name, row.lhs, row.rhs, row.why, row.ref)
    assert prove(theorem).outcome is Outcome.PROVED
    assert not differ(theorem)
    core = next(phase for phase in PHASES if phase.name == "core")
    rewriter = Rewriter(identities.with_adjoints((*core.rows, row)))
    for pair in critical_pairs(rewriter.rules):
        assert rewriter.normal_form(pair.left) == rewriter.normal_form(pair.right)


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

# SPDX-License-Identifier: BSD-3-Clause
"""The table of operation counts in the documentation: what is printed, and what we count."""

import re

import pytest

from tests.helpers import ROOT
from tools.counts import PRINTED, SIZES, ours, printed

ROWS = {
    int(line.split("|")[1]): [int(x) for x in re.findall(r"\b\d+\b", line)][-2 * len(SIZES) :]
    for line in (ROOT / "docs" / "derivatives.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| [1-6] \|", line)
}
# The totals for 6 and 30 joints that the printed polynomials have.
TOTALS = {1: (3430, 18382), 2: (5138, 58838), 3: (3571, 29495)}
TOTALS |= {4: (6256, 209148), 5: (2694, 14478), 6: (11328, 108240)}


@pytest.mark.parametrize("algorithm", PRINTED)
def test_printed_counts(algorithm: int) -> None:
    """The paper's polynomials give integers, and those of the table."""
    assert (printed(algorithm, 6), printed(algorithm, 30)) == TOTALS[algorithm]
    assert ROWS[algorithm][::2] == [printed(algorithm, n) for n in SIZES]


@pytest.mark.parametrize("algorithm", PRINTED)
def test_our_counts(algorithm: int) -> None:
    """The table says what our programs for six joints take, exactly."""
    assert ROWS[algorithm][1] == ours(algorithm, SIZES[0])

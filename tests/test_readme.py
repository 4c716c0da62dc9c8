# SPDX-License-Identifier: BSD-3-Clause
"""What the README says of the compiler is so; that its blocks run is tested with all pages."""

import re

from phistar.compile import kernel
from tests.helpers import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_what_is_typed_becomes_the_articulated_body_algorithm() -> None:
    """The printed passes are those of forward dynamics, but for names and external forces."""
    (block,) = re.findall(r"^```text\n(.*?)\n```", TEXT, re.MULTILINE | re.DOTALL)
    ours = kernel("forward_dynamics").sweeps
    assert _shape(block) == _shape(ours.replace(" - f_ext", ""))


def _shape(sweeps: str) -> list[list[str]]:
    """The statements without the names of intermediate results and the order of sums."""
    lines = [re.sub(r"\b(x\d*|a|V|α|out|v̇)(?=\W|$)", "x", line) for line in sweeps.splitlines()]
    return [sorted(re.split(r" ([=+-]) ", line.strip())) for line in lines]

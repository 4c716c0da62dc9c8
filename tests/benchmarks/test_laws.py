# SPDX-License-Identifier: BSD-3-Clause
"""The laws of the benchmark run in machine code and move robots as calls of them do."""

import pytest

import phistar
from benchmarks import laws


@pytest.mark.parametrize("law", [law for name, law in laws.LAWS if name == "panda"])
def test_machine_code_and_calls_agree(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """States and forces agree to the benchmark's tolerance; the Panda, which compiles fast."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = phistar.load("panda")
    controller = laws.LAWS["panda", law](robot, laws.QUICK_STEPS)
    assert laws.difference(robot, controller, 3) < laws.TOLERANCE

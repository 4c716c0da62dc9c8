# SPDX-License-Identifier: BSD-3-Clause
"""``phistar explain``, ``where`` and ``cite`` on the command line."""

import pytest

from phistar.algorithms.programs import MATRICES, PROGRAMS
from phistar.cli import main
from phistar.compile import kernel
from phistar.explain import cite, where
from phistar.explain.meanings import METHOD_MEANINGS


def test_forward_dynamics_of_the_panda(capsys: pytest.CaptureFixture[str]) -> None:
    """Three passes, the sweeps of the compiler, seven revolute links, frames, counts."""
    assert main(["explain", "forward_dynamics", "panda"]) == 0
    out = capsys.readouterr().out
    assert "4 recursions, 3 passes: outward, inward, outward" in out
    for line in kernel("forward_dynamics").sweeps.splitlines():
        assert f"\n  {line}\n" in out
    assert "7 x revolute, d = 1" in out
    assert "panda_link7  panda_link6  (0.088, 0, 0)" in out
    assert "17 statements x 7 links, in all: " in out


def test_one_level(capsys: pytest.CaptureFixture[str]) -> None:
    """--level shows one; a level that needs a robot says so; a wrong one is refused."""
    assert main(["explain", "forward_dynamics", "panda", "--level", "scalars"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("7 scalars: ")
    assert "crossing" not in out
    assert main(["explain", "forward_dynamics", "--level", "frames"]) == 2
    assert "needs a robot" in capsys.readouterr().err
    assert main(["explain", "forward_dynamics", "--level", "frame"]) == 2
    assert "frames" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "passes"),
    [
        ("inverse_dynamics", "2 passes: outward, inward"),
        ("mass_matrix_times", "2 passes: outward, inward"),
        ("mass_matrix_solve", "3 recursions, 2 passes: inward, outward"),
    ],
)
def test_passes(name: str, passes: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The number of passes of the textbook algorithms."""
    assert main(["explain", name]) == 0
    assert passes in capsys.readouterr().out


def test_programs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Without an argument: every program, matrix and method, and what it is, in 80 columns."""
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = dict(line.split(maxsplit=1) for line in lines if line.startswith("  "))
    assert list(rows) == [*PROGRAMS, *MATRICES, *METHOD_MEANINGS]
    assert all(rows.values())
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("mass_matrix", "y = 𝓜 x"),
        ("jacobian", "J = B* φ* H*"),
        ("linearize", "see forward_dynamics_q: ∂v̇/∂q"),
        ("aba", "another name of forward_dynamics"),
    ],
)
def test_methods_of_a_robot(name: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The methods that people know show what stands behind them."""
    assert main(["explain", name]) == 0
    assert shown in capsys.readouterr().out


def test_two_forces_have_two_names(capsys: pytest.CaptureFixture[str]) -> None:
    """The force at a link and that from outside are not both called f."""
    assert main(["explain", "inverse_dynamics", "--level", "expression"]) == 0
    out = capsys.readouterr().out
    assert "f = φ (M α + b)" in out
    assert "b = crf[V] M V - f_ext" in out


@pytest.mark.parametrize("command", ["explain", "where", "cite"])
def test_unknown_names(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong name costs one line with close matches, and code 2."""
    assert main([command, "forward_dynamcs"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Did you mean 'forward_dynamics'" in err


def test_unknown_robot(capsys: pytest.CaptureFixture[str]) -> None:
    """So does a wrong robot."""
    assert main(["explain", "forward_dynamics", "pandda"]) == 2
    assert "did you mean panda" in capsys.readouterr().err.lower()


@pytest.mark.parametrize(("command", "function"), [("where", where), ("cite", cite)])
def test_commands_print_what_the_functions_return(
    command: str, function: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands add nothing to the functions."""
    assert callable(function)
    assert main([command, "psi_resolvent"]) == 0
    assert capsys.readouterr().out == f"{function('psi_resolvent')}\n"

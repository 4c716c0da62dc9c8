# SPDX-License-Identifier: BSD-3-Clause
"""``phistar prove``: derivations, outcomes, exit codes."""

import pytest

from phistar.algebra.proof import Theorem
from phistar.algebra.symbols import H, psi
from phistar.algorithms.catalogue import catalogue
from phistar.cli import main
from phistar.explain import prove

WRONG = Theorem("forward_dynamics", definition=H @ psi, result=2 * H @ psi, doc="wrong")


@pytest.mark.parametrize("name", catalogue())
def test_every_theorem_is_proved(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each theorem prints as many numbered steps as its proof has, its outcome, and code 0."""
    assert main(["prove", name]) == 0
    out = capsys.readouterr().out
    proof = prove(name)
    numbered = [line for line in out.splitlines() if line.split() and line.split()[0].isdigit()]
    steps = [line for line in numbered if " word" in line]
    assert len(steps) == len(proof.left) + len(proof.right)
    for step in (*proof.left, *proof.right):
        assert step.identity.name in out
    assert "\n  proved in " in out


def test_list_names_every_theorem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an argument: one line a theorem, with outcome and number of steps, then its words."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["prove"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if not line.startswith(" ")]
    assert len(lines) >= 2 * len(rows)
    assert max(map(len, lines)) <= 80
    assert {row[0] for row in rows} == set(catalogue())
    assert {row[1] for row in rows} == {"proved"}
    assert next(row[2] for row in rows if row[0] == "innovations_inverse") == "1"


def test_full_prints_the_sum_after_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    """``--full`` shortens nothing; without it long sums are cut."""
    assert main(["prove", "forward_dynamics", "--full"]) == 0
    full = capsys.readouterr().out
    assert main(["prove", "forward_dynamics"]) == 0
    assert "+ ... (" in capsys.readouterr().out
    assert "+ ... (" not in full
    assert full.count("\n         = ") == 45


def test_all_prints_every_derivation(capsys: pytest.CaptureFixture[str]) -> None:
    """``--all``: the outcome of each theorem."""
    assert main(["prove", "--all"]) == 0
    assert capsys.readouterr().out.count("\noutcome\n  proved in ") == len(catalogue())


def test_what_is_not_proved_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong theorem is refuted, its residual is printed, and the exit code is 1."""
    catalogue()
    wrong = dict(catalogue()) | {"forward_dynamics": WRONG}
    monkeypatch.setattr("phistar.algorithms.catalogue.catalogue", lambda: wrong)
    assert main(["prove", "forward_dynamics"]) == 1
    assert "refuted: " in (out := capsys.readouterr().out)
    assert "-H ψ" in out
    assert main(["prove"]) == 1


def test_unknown_theorem(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong name costs one line with close matches, and code 2."""
    assert main(["prove", "forwrd_dynamics"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Did you mean 'forward_dynamics'" in err


def test_identities_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A row of the algebra: its equation, its reason, where it acts, and that it holds."""
    assert main(["prove", "riccati"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("identity riccati: the Riccati equation solved for M\n")
    assert "M = P - Eφ P Eφ* + K D K*" in out
    assert "algebra/identities.py:" in out
    assert "agree as matrices on 3 random robots" in out
    assert main(["prove", "dual_inertia"]) == 0
    assert "no massless links" in capsys.readouterr().out


def test_list_shows_hypotheses(capsys: pytest.CaptureFixture[str]) -> None:
    """A theorem that holds under a hypothesis says so in the list."""
    assert main(["prove"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    for name, theorem in catalogue().items():
        needs = ", ".join(sorted(theorem.needs))
        assert lines[name].endswith(f"[{needs}]") == bool(needs)

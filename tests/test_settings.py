# SPDX-License-Identifier: BSD-3-Clause
"""Wrong values of environment variables are refused by name, wherever they are read."""

import re
from pathlib import Path

import pytest

import phistar
from phistar import backends, settings
from phistar.backends import base
from phistar.errors import ArgumentError, SettingError, UnknownNameError

SRC = Path(phistar.__file__).parent

WRONG = [
    ("PHISTAR_TIER", "slow"),
    ("PHISTAR_THREADS", "abc"),
    ("PHISTAR_THREADS", "0"),
    ("PHISTAR_THREADS", "-2"),
    ("PHISTAR_THREADS", "1.5"),
    ("PHISTAR_THREADS", "257"),
    ("PHISTAR_CACHE", "~nobody-of-this-name/x"),
    ("PHISTAR_CACHE_SIZE", "-3"),
    ("PHISTAR_CACHE_SIZE", "nan"),
    ("PHISTAR_CACHE_SIZE", "inf"),
    ("PHISTAR_CACHE_SIZE", "much"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_values_are_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a robot is made, with the name, the value and what was expected."""
    monkeypatch.setenv(name, value)
    with pytest.raises(
        SettingError, match=f"{name} is {re.escape(repr(value))}, expected"
    ) as error:
        phistar.load("double_pendulum")
    assert isinstance(error.value, ArgumentError)
    assert (error.value.name, error.value.value) == (name, value)


def test_a_wrong_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which variable names it, and the one that is close."""
    monkeypatch.setattr(base, "_default_name", None)
    monkeypatch.setenv("PHISTAR_BACKEND", "sweep")
    with pytest.raises(UnknownNameError, match=r"PHISTAR_BACKEND.*'sweeps'"):
        backends.default()


def test_right_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They mean what they say; empty ones and spaces around them do not matter."""
    for name in ("TIER", "THREADS", "CACHE", "CACHE_SIZE", "BACKEND"):
        monkeypatch.setenv(f"PHISTAR_{name}", "")
    assert (settings.tier(), settings.threads(), settings.cache_megabytes()) == (
        "auto",
        None,
        256.0,
    )
    assert settings.cache_folder() is not None
    monkeypatch.setenv("PHISTAR_TIER", " wait ")
    monkeypatch.setenv("PHISTAR_THREADS", " 3")
    monkeypatch.setenv("PHISTAR_CACHE_SIZE", "0.5")
    monkeypatch.setenv("PHISTAR_CACHE", str(tmp_path / "new"))
    assert (settings.tier(), settings.threads(), settings.cache_megabytes()) == ("wait", 3, 0.5)
    assert settings.cache_folder() == tmp_path / "new"
    monkeypatch.setenv("PHISTAR_CACHE", "Off")
    assert settings.cache_folder() is None
    settings.check()


def test_nobody_else_reads_the_environment() -> None:
    """But for what is not ours: the width of a terminal, and what others set."""
    readers = [
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        if re.search(r"environ\b.*PHISTAR_|environ\.get\(VARIABLE", path.read_text("utf-8"))
    ]
    assert readers == ["settings.py"]

# SPDX-License-Identifier: BSD-3-Clause
"""Wrong values of environment variables are refused by name, wherever they are read."""

import re
import warnings
from pathlib import Path

import pytest

import phistar
from phistar import backends, settings
from phistar.backends import base
from phistar.errors import ArgumentError, SettingError, SettingWarning, UnknownNameError

SRC = Path(phistar.__file__).parent
ROOT = Path(__file__).parent.parent

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


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PHISTAR_THREAD", r"did you mean PHISTAR_THREADS\?"),
        ("phistar_tier", r"did you mean PHISTAR_TIER\?"),
        ("PHISTAR_CACHE_DIR", r"did you mean PHISTAR_CACHE"),
        ("PHISTAR_XYZ_OF_NOBODY", "there are PHISTAR_BACKEND, PHISTAR_TIER"),
    ],
)
def test_unknown_names_are_warned_of(name: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelled variable would do nothing: the warning names it and the one that is close."""
    monkeypatch.setenv(name, "2")
    monkeypatch.setattr(settings, "_variables_seen", 0)
    with pytest.warns(SettingWarning, match=f"^{name} is set.* {hint}") as caught:
        phistar.load("double_pendulum")
    assert [warning.filename for warning in caught] == [__file__]


def test_all_names_in_use_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the Makefile, the tests, the tools and the pages say nothing."""
    places = [ROOT / "Makefile", ROOT / "README.md"]
    for folder in ("src", "tests", "tools", "benchmarks", "docs", "examples"):
        places += [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.md")]
    text = "".join(path.read_text("utf-8") for path in places if path != Path(__file__))
    names = set(re.findall(r"\bPHISTAR_[A-Z_]*[A-Z]\b", text))
    assert {"PHISTAR_TEST_TORCH", "PHISTAR_FUZZ_SECONDS", *settings.VARIABLES} <= names
    for name in names:
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(settings, "_variables_seen", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SettingWarning)
        settings.check()


def test_nobody_else_reads_the_environment() -> None:
    """But for what is not ours: the width of a terminal, and what others set."""
    readers = [
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*.py")
        if re.search(r"environ\b.*PHISTAR_|environ\.get\(VARIABLE", path.read_text("utf-8"))
    ]
    assert readers == ["settings.py"]

# SPDX-License-Identifier: BSD-3-Clause
"""Completion as shells do it: the script is read by the shell, which then says what it offers."""

import shutil
import subprocess
from pathlib import Path

import pytest

import phistar
from phistar.cli import COMMANDS, main
from phistar.cli.completion import HOMES, script
from phistar.explain import theorem_names

CASES = [
    ("phistar vi", {"view"}),
    ("phistar view pan", {"panda", "panda_hand"}),
    ("phistar view panda --tr", {"--trajectory", "--tree", "--trust-xacro"}),
    ("phistar view panda --trajectory mo", {"motion.npz"}),
    ("phistar info ur5 --mimic ", {"reduce", "independent"}),
    ("phistar control ur5 --law po", {"pose"}),
    ("phistar simulate ur5 --scheme rk", {"rk4"}),
    ("phistar prove forward_dyn", None),
    ("phistar export panda mass_matrix --out ", {"my folder"}),
    ("phistar check mo", {"motion.npz"}),
    ("phistar completion ", set(HOMES)),
    ("phistar nothing ", set()),
]
"""A line, and what may stand at its end; None: something, which the shells agree on."""

BASH = """
source "$1"
line=$2
read -ra COMP_WORDS <<< "$line"
[[ $line == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
$(complete -p phistar | sed 's/.*-F \\([^ ]*\\).*/\\1/') 2>&1
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
compadd() { [[ $1 == -a ]] && print -rl -- ${(P)3} || print -rl -- ${@:2} }
_describe() { print -rl -- ${${(P)2}%%:*} }
_files() { [[ $1 == -/ ]] && print -rl -- *(/N) || print -rl -- *(N) }
words=(${(z)2}); [[ $2 == *" " ]] && words+=("")
CURRENT=$#words; PREFIX=$words[-1]
source $1
"""
FISH = "source $argv[1]; complete -C $argv[2] | string replace -r '\\t.*' ''; true"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file, a folder, and the scripts beside them."""
    made = tmp_path_factory.mktemp("completion")
    here = made / "here"
    (here / "my folder").mkdir(parents=True)
    (here / "motion.npz").touch()
    for shell in HOMES:
        (made / shell).write_text(script(shell) + "\n", encoding="utf-8")
    return here


def _offered(shell: str, folder: Path, line: str) -> set[str]:
    """What a shell offers at the end of a line."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    calls = {
        "bash": ["bash", "--norc", "-c", BASH, "bash"],
        "zsh": ["zsh", "-f", "-c", ZSH, "zsh"],
        "fish": ["fish", "--no-config", "-c", FISH],
    }
    done = subprocess.run(
        [*calls[shell], str(folder.parent / shell), line],
        capture_output=True, text=True, cwd=folder, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    start = line.rpartition(" ")[2]
    words = {word.rstrip("/") for word in done.stdout.splitlines()}
    return {word for word in words if word and word.startswith(start)}


@pytest.mark.parametrize("shell", HOMES)
@pytest.mark.parametrize(("line", "expected"), CASES, ids=[line for line, _ in CASES])
def test_shells_complete(shell: str, line: str, expected: set[str] | None, folder: Path) -> None:
    """Commands, options, their choices, bundled robots, programs, files and folders."""
    found = _offered(shell, folder, line)
    if expected is None:
        expected = {x for x in theorem_names() if x.startswith(line.split()[-1])}
        assert expected
    assert found == expected


def test_scripts_know_every_command_option_and_robot() -> None:
    """In all three shells."""
    for shell in HOMES:
        text = script(shell)
        for word in (*COMMANDS, *phistar.robots.names(), "no-timings", "trust-xacro"):
            assert word in text, (shell, word)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the script; other shells are refused in one line."""
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == script("bash") + "\n"
    assert main(["completion", "tcsh"]) == 2
    assert "'tcsh'" in capsys.readouterr().err

# SPDX-License-Identifier: BSD-3-Clause
"""The front door: help, exit codes, one line for every failure, pipes and terminals."""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from phistar.cli import COMMANDS, FIRST_STEPS, command_and_parser, main
from phistar.cli import robots as robots_command


def run_module(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``python -m phistar`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "phistar", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8"} | environment,
        check=False,
    )


def test_first_steps_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Five commands that exist and are typed as they stand, and how to see all of them."""
    assert main([]) == 0
    out = capsys.readouterr().out
    assert len(FIRST_STEPS) == 5
    for line in FIRST_STEPS:
        assert f"  {line} " in out
        assert _parsed(line)
    assert f"phistar --help lists all {len(COMMANDS)} commands" in out


def _parsed(line: str) -> argparse.Namespace:
    """The options of a command line, which must be understood."""
    program, name, *arguments = shlex.split(line.partition(">")[0])
    assert program == "phistar"
    _, parser = command_and_parser(name)
    return parser.parse_args(arguments)


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["help"]])
def test_help_lists_every_command(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Help names each command with its purpose."""
    assert main(argv) == 0
    out = capsys.readouterr().out
    for name, summary in COMMANDS.items():
        assert f"  {name} " in out
        assert summary in out


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("order", ["command first", "help first"])
def test_every_command_explains_itself(
    name: str, order: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """``phistar X --help`` and ``phistar help X`` say what X does and how it is called."""
    assert main([name, "--help"] if order == "command first" else ["help", name]) == 0
    out = capsys.readouterr().out
    assert f"usage: phistar {name}" in out
    assert COMMANDS[name][1:] in " ".join(out.split())
    example = out.partition("example:\n")[2].strip()
    assert example.startswith(f"phistar {name}")
    assert _parsed(example)


@pytest.mark.parametrize("columns", ["30", "200"])
def test_help_fits_eighty_columns_everywhere(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the terminal is: the same lines, none wider than 80."""
    monkeypatch.delenv("COLUMNS", raising=False)
    pages = [[], ["--help"], *([name, "--help"] for name in COMMANDS)]
    texts = []
    for width in (columns, "80"):
        monkeypatch.setenv("COLUMNS", width)
        assert [main(page) for page in pages] == [0] * len(pages)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert max(map(len, texts[0].splitlines())) <= 80


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """``phistar --version`` is the version of the package."""
    import phistar

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"phistar {phistar.__version__}\n"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["inf"], "unknown command 'inf'; did you mean info?"),
        (["xyzzy"], "unknown command 'xyzzy'; have: info, check,"),
        (["--verion"], "unknown option '--verion'; did you mean --version?"),
        (["info", "panda", "--al"], "unknown option '--al' of phistar info; did you mean --all"),
        (["info"], "required: ROBOT (see phistar info --help)"),
        (["info", "panda", "ur5"], "unexpected argument 'ur5'"),
        (["info", "panda", "--mimic", "no"], "invalid choice: 'no'"),
        (["info", "pandda"], "did you mean panda"),
        (["info", "no/such.urdf"], "no such file"),
        (["convert", "pandda", "-"], "did you mean panda"),
        (["info", "two\nlines\x1b[31m"], "two\\nlines\\x1b[31m"),
    ],
)
def test_wrong_command_lines_are_told_in_one_line(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not understood costs one line on standard error and exit code 2."""
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("phistar: ")
    assert err.count("\n") == 1
    assert said in err


def test_file_at_fault_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file with several faults: the first one, how many more, and who lists them; code 1."""
    file = tmp_path / "bad.urdf"
    file.write_text(
        '<robot name="bad"><link name="a"/><joint name="j" type="fixed"><parent link="b"/>'
        '<child link="c"/></joint></robot>'
    )
    assert main(["info", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("phistar: bad.urdf:1: ")
    assert "(and 1 more; phistar check lists all)" in err


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "phistar: interrupted\n"),
        (BrokenPipeError(), 141, ""),
        (PermissionError(13, "Permission denied", "x.urdf"), 1, "x.urdf: Permission denied\n"),
    ],
)
def test_interruptions(
    raised: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A key, a closed pipe and a refusal of the system end in their exit codes, not in traces."""

    def fail(options: object) -> int:
        raise raised

    monkeypatch.setattr(robots_command, "run", fail)
    assert main(["robots"]) == code
    assert capsys.readouterr().err.endswith(said)


def test_module_runs_as_a_program() -> None:
    """``python -m phistar`` is the same program: output, and exit code."""
    done = run_module("info", "cartpole")
    assert done.returncode == 0
    assert done.stdout.startswith("cartpole (urdf)\n")
    assert done.stderr == ""
    assert run_module("info", "cartpol").returncode == 2


def test_closed_pipe_is_quiet() -> None:
    """``phistar info ... | head -1`` says nothing about the pipe."""
    command = [sys.executable, "-m", "phistar", "info", "humanoid", "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_help_is_light() -> None:
    """Help imports neither rich nor any command."""
    script = (
        "import sys; from phistar.cli import main; main(['--help']); "
        "print(*[m for m in sys.modules if m.startswith(('rich', 'phistar.cli.'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "phistar.cli.terminal"


@pytest.mark.parametrize("command", [["info", "panda_hand"], ["robots"], ["check", "ur5"]])
def test_no_escape_codes_into_files(command: list[str]) -> None:
    """Output that goes to a file holds no terminal codes and keeps to its width."""
    done = run_module(*command, COLUMNS="")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    if command[0] != "check":
        assert max(len(line) for line in done.stdout.splitlines()) <= 100


def test_colours_obey_no_color() -> None:
    """A terminal gets colours unless NO_COLOR is set."""
    red_to_white = tuple(f"\x1b[{code}" for code in range(31, 38))
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    loud = run_module("check", "cartpole", NO_COLOR="", **terminal)
    quiet = run_module("check", "cartpole", NO_COLOR="1", **terminal)
    assert any(code in loud.stdout for code in red_to_white)
    assert not any(code in quiet.stdout for code in red_to_white)


def test_output_survives_a_plain_terminal() -> None:
    """Where only ASCII can be shown, trees and arrows are drawn with ASCII."""
    done = run_module("info", "four_bar", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "|- crank_joint continuous y -> crank" in done.stdout
    assert "\\u" not in done.stdout

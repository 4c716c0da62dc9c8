# SPDX-License-Identifier: BSD-3-Clause
"""``phistar check``: every problem on one line, and an exit code to build on."""

import csv
import re
from pathlib import Path

import pytest

from phistar.cli import main
from tests.helpers import SHARED, needs_shared

GOOD = """<robot name="good"><link name="base"/>
<link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""
# Line 3 breaks the triangle inequality.
DOUBTFUL = GOOD.replace('izz="1"', 'izz="5"')
LINE = re.compile(r"^(?P<where>.+?): (?P<severity>error|warning|note): .+ \[(?P<code>[\w-]+)\]$")


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """Exit code and lines; nothing goes to standard error."""
    code = main(["check", *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out.splitlines()


def write(folder: Path, text: str, name: str = "robot.urdf") -> str:
    """A file with the text."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_good_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line: ok, and what it is."""
    file = write(tmp_path, GOOD)
    assert check(capsys, file) == (0, [f"{file}: ok: urdf 'good', 2 links, nv 1"])


def test_bundled_robot_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """A bundled name works like a file."""
    assert check(capsys, "panda") == (0, ["panda: ok: urdf 'panda', 9 links, nv 7"])


def test_every_error_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three faults give three lines with the file as given, the line, the code; exit code 1."""
    text = GOOD.replace('mass value="1"', 'mass value="nan"')
    text = text.replace('<parent link="base"/>', '<parent link="bse"/>\n<axis xyz="0 0 0"/>')
    file = write(tmp_path, text)
    code, lines = check(capsys, file)
    assert code == 1
    found = [LINE.match(line) for line in lines[:-1]]
    assert all(match and match["where"].startswith(f"{file}:") for match in found)
    assert {m["code"] for m in found if m} == {"not-finite", "unknown-link", "zero-axis"}
    assert any("Did you mean 'base'?" in line for line in lines)
    assert lines[-1] == f"{file}: not ok: 3 errors"


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 1)])
def test_warnings(
    options: tuple[str, ...], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A warning is told and allowed, unless one is strict."""
    file = write(tmp_path, DOUBTFUL)
    got, lines = check(capsys, file, *options)
    assert got == code
    warning = LINE.match(lines[0])
    assert warning is not None
    assert warning["severity"] == "warning"
    assert warning["code"] == "inertia-triangle-inequality"
    verdict = "not ok (strict)" if code else "ok"
    assert lines[-1] == f"{file}: {verdict}: urdf 'good', 2 links, nv 1, 1 warning"


def test_notes_and_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    """Advice comes as notes, which --quiet leaves out and --strict does not count."""
    code, lines = check(capsys, "ur5", "--strict")
    assert code == 0
    assert [LINE.match(line)["severity"] for line in lines[:-1]] == ["note"]  # type: ignore[index]
    code, lines = check(capsys, "ur5", "--quiet")
    assert (code, len(lines)) == (0, 1)


BARS = """<robot name="bars" xmlns:phistar="urn:phistar:urdf"><link name="base"/>
<link name="a"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<link name="b"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="x" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint>
<joint name="y" type="continuous"><origin xyz="1.2 0 0"/>
<parent link="base"/><child link="b"/><axis xyz="0 1 0"/></joint>
<phistar:loop name="tie" type="spherical">
<phistar:predecessor link="a"><origin xyz="0 0 1"/></phistar:predecessor>
<phistar:successor link="b"><origin xyz="0 0 1"/></phistar:successor></phistar:loop></robot>"""
# Two bars on pivots 1.2 m apart, drawn upright, their ends tied by the loop of line 9.


def notes(lines: list[str]) -> dict[str, str]:
    """Lines by their codes."""
    return {match["code"]: line for line in lines if (match := LINE.match(line))}


def test_closed_loops_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    """Kind, ends, rows and whether it is closed, at its line; mobility and redundant rows."""
    code, lines = check(capsys, "four_bar", "--strict")
    assert code == 0
    told = notes(lines)
    assert set(told) == {"loop", "mobility", "loop-redundant"}
    words = 'loop "coupler_closure" (revolute, "rocker" to "coupler"), 5 rows, is closed in the'
    assert told["loop"].startswith(f"four_bar.urdf:103: note: {words} drawn pose")
    assert "1 degree of freedom" in told["mobility"]
    assert "3 rows of the loops follow from others" in told["loop-redundant"]


def test_open_loops_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The gap of the drawn pose is told, a doubt only if no other pose closes it."""
    file = write(tmp_path, BARS)
    code, lines = check(capsys, file, "--strict")
    assert code == 0
    told = notes(lines)
    assert told["loop-open"].startswith(f'{file}:9: note: loop "tie" (spherical, "a" to "b")')
    assert "3 rows, is open by 1.2 in the drawn pose" in told["loop-open"]
    far = write(tmp_path, BARS.replace('xyz="1.2 0 0"', 'xyz="2.5 0 0"'), "far.urdf")
    code, lines = check(capsys, far, "--strict")
    assert code == 1
    told = notes(lines)
    assert "warning" in told["loop-not-closed"]
    assert 'loop "tie"' in told["loop-not-closed"]
    assert "stays open by 0.5 m" in told["loop-not-closed"]


def test_loops_on_one_link_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the line of the loop."""
    file = write(tmp_path, BARS.replace('successor link="b"', 'successor link="a"'))
    code, lines = check(capsys, file)
    assert code == 1
    assert lines[0].startswith(f'{file}:9: error: loop "tie" has both ends on link "a"')


def test_loops_switched_off_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One note; the report lists them as not used."""
    file = write(tmp_path, BARS.replace('type="spherical"', 'type="spherical" active="false"'))
    code, lines = check(capsys, file, "--report")
    assert code == 0
    assert set(notes(lines)) == {"loop-off"}
    (listed,) = [line for line in lines if "switched off by the file" in line]
    assert lines.index(listed) > lines.index("  not used by dynamics: 1")


def test_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each file has its verdict, the last line counts, one bad file decides the exit code."""
    good = write(tmp_path, GOOD, "good.urdf")
    bad = write(tmp_path, "<robot/>", "bad.urdf")
    code, lines = check(capsys, good, bad)
    assert code == 1
    assert lines[0].startswith(f"{good}: ok")
    assert lines[-1] == "2 files: 1 ok, 1 not"


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("absent.urdf", None, "not-found"),
        ("empty.urdf", "", "empty"),
        ("text.urdf", "hello", "xml"),
        ("page.urdf", "<html><body/></html>", "wrong-root"),
        ("bomb.urdf", '<!DOCTYPE r [<!ENTITY a "b">]>\n<robot/>', "doctype"),
        ("cut.urdf", '<robot name="r"><link', "xml"),
        ("no.urdf.xacro", '<robot name="r"/>', "xacro"),
    ],
)
def test_file_level_errors_are_one_line(
    name: str, text: str | None, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Absent, empty, hostile or foreign files: one line each and exit code 1."""
    file = str(tmp_path / name) if text is None else write(tmp_path, text, name)
    got, lines = check(capsys, file)
    assert got == 1
    assert len(lines) == 2
    match = LINE.match(lines[0])
    assert match is not None
    assert match["severity"] == "error"
    assert match["code"].startswith(code)
    assert lines[1] == f"{file}: not ok: 1 error"


def test_directory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory is no robot file."""
    code, lines = check(capsys, str(tmp_path))
    assert code == 1
    assert "not a regular file" in lines[0]


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--report says what became of everything in the file."""
    text = GOOD.replace("</robot>", '<transmission name="t"/></robot>')
    code, lines = check(capsys, write(tmp_path, text), "--report")
    assert code == 0
    whole = "\n".join(lines)
    for title in ("read", "used", "defaulted", "ignored"):
        assert f"\n  {title}: " in whole
    assert "transmission" in whole.split("  ignored:")[1]


def test_hostile_names_stay_on_their_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Line breaks and terminal codes in names cannot forge lines of the report."""
    evil = "&#10;evil.urdf: ok: fine"
    file = write(tmp_path, GOOD.replace('parent link="base"', f'parent link="{evil}"'))
    code, lines = check(capsys, file)
    assert code == 1
    assert all(line.startswith(file) for line in lines)
    assert "\\nevil.urdf" in lines[0]


@needs_shared
def test_bad_files_behave_as_expected(capsys: pytest.CaptureFixture[str]) -> None:
    """Every file of the collection of bad ones ends in the exit code its row asks for."""
    with (SHARED / "bad" / "expectations.csv").open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream)]
    checked = 0
    for row in rows:
        file = SHARED / "bad" / row["file"]
        if not file.is_file() or row["expect"] not in ("error", "ok", "warn"):
            continue
        code, lines = check(capsys, str(file))
        assert code == (1 if row["expect"] == "error" else 0), row["file"]
        assert all(LINE.match(line) for line in lines[:-1]), row["file"]
        checked += 1
    assert checked > 50

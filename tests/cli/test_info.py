# SPDX-License-Identifier: BSD-3-Clause
"""``phistar info``: what a reader needs is there, with its unit; long robots are cut."""

import re
from pathlib import Path

import pytest

import phistar
from phistar.cli import main
from phistar.cli.info import MAX_ROWS
from phistar.loaders.urdf.urdf_writer import export_urdf
from phistar.model import Coupling, ModelBuilder
from phistar.model.generators import chain
from phistar.spatial import pose


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same width wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "100")


def info(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints."""
    assert main(["info", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def rows(text: str, title: str) -> list[list[str]]:
    """Cells of the table under a title."""
    lines = text.split(f"\n{title}", 1)[1].split("\n\n")[0].splitlines()[2:]
    return [re.split(r"\s{2,}", line.rstrip()) for line in lines]


def write(folder: Path, builder: ModelBuilder) -> str:
    """A file of the robot."""
    file = folder / "robot.urdf"
    file.write_text(export_urdf(builder.build()), encoding="utf-8")
    return str(file)


def limbs(*names: str) -> ModelBuilder:
    """A builder with a base and unit links."""
    builder = ModelBuilder("limbs")
    builder.link("base")
    for name in names:
        builder.link(name, 1.0, inertia=(1.0, 1.0, 1.0))
    return builder


def test_header_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """The header says how large the robot is."""
    text = " ".join(info(capsys, "panda_hand").split())
    assert "panda_hand (urdf) source panda_hand.urdf (bundled) links 13" in text
    assert "joints 12 (8 moving, 3 fixed, 1 mimic)" in text
    assert "coordinates nq 8, nv 8" in text
    assert "mass 17.45 kg gravity (0, 0, -9.81) m/s^2 loops none" in text


def test_joint_table_tells_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    """Each moving joint has its kind, axis, place in q and v, and its two links."""
    robot = phistar.load("panda_hand")
    table = rows(info(capsys, "panda_hand"), "Joints that move")
    assert len(table) == 9
    for name, kind, axis, q, v, ends in table:
        joint = robot.joints[name]
        assert kind.split()[0] == joint.kind
        assert (kind.endswith("(mimic)")) == (joint.mimic is not None)
        assert axis in ("z", "y", "-y")
        assert int(q) == joint.q_slice.start
        assert int(v) == joint.v_slice.start
        assert ends == f"{joint.parent} → {joint.child}"


def test_limits_have_units(capsys: pytest.CaptureFixture[str]) -> None:
    """Angles in rad and N m, slides in m and N."""
    table = rows(info(capsys, "panda_hand"), "Limits and drives")
    assert table[0] == ["panda_joint1", "-2.897 .. 2.897 rad", "2.175 rad/s", "87 N m"]
    assert table[7] == ["panda_finger_joint1", "0 .. 0.04 m", "0.05 m/s", "70 N"]


def test_drive_columns_appear_when_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Armature, damping, friction and springs are shown with units, where there are any."""
    builder = limbs("a", "b")
    drive = {"rotor_inertia": 1e-4, "gear_ratio": 100.0, "damping": 0.5, "friction": 0.25}
    builder.joint("turn", "revolute", "base", "a", **drive)
    builder.joint("slide", "prismatic", "a", "b", damping=3.0, stiffness=7.0)
    text = info(capsys, write(tmp_path, builder))
    table = rows(text, "Limits and drives")
    assert "N m/rad" not in text
    assert table[0] == ["turn", "1 kg m^2", "0.5 N m s/rad", "0.25 N m"]
    assert table[1] == ["slide", "3 N s/m", "7 N/m"]


def test_masses_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Every link with a mass, its mass and centre of mass."""
    robot = phistar.load("double_pendulum")
    text = info(capsys, "double_pendulum")
    heavy = {link.name: link for link in robot.links.values() if link.mass}
    table = [row for row in rows(text, "Masses") if len(row) == 3]
    assert {row[0] for row in table} == set(heavy)
    for name, mass, _ in table:
        assert float(mass) == pytest.approx(heavy[name].mass, rel=1e-3)
    assert "2 links without mass" in text


def test_floating_base_and_mimic_options(capsys: pytest.CaptureFixture[str]) -> None:
    """The options of loading reach the loader."""
    assert "nq 19, nv 18" in info(capsys, "quadruped")
    assert "nq 12, nv 12" in info(capsys, "quadruped", "--no-floating-base")
    assert "nq 14, nv 13" in info(capsys, "panda", "--floating-base")
    assert "nq 9, nv 9" in info(capsys, "panda_hand", "--mimic", "independent")


def test_mimic_law_and_loops_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The law of a mimic stands in the tree, loops below it."""
    assert "panda_rightfinger  = panda_finger_joint1\n" in info(capsys, "panda_hand")
    assert "coupler_closure: revolute y, rocker ↔ coupler" in info(capsys, "four_bar")
    builder = limbs("a", "b")
    builder.joint("x", "revolute", "base", "a")
    builder.joint("y", "revolute", "base", "b")
    builder.couple(Coupling("gear", "y", "x", (0.0, -2.0)))
    text = info(capsys, write(tmp_path, builder))
    assert "gear: coupling, y = -2 x" in text
    assert "1 coupling with 1 row of rank 1" in text


def test_loops_are_marked_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Both ends in the drawing, the degrees of freedom below it; a platform has the first three."""
    text = info(capsys, "four_bar")
    assert "→ coupler  ↔ coupler_closure\n" in text
    assert "→ rocker  ↔ coupler_closure\n" in text
    assert "'four_bar' has 1 degree of freedom: 3 coordinates, 1 loop with 5 rows" in text
    text = " ".join(info(capsys, "delta").split())
    assert "→ platform ↔ rod1a_ball, rod1b_ball, rod2a_ball and 3 more" in text
    assert "'delta' has 3 degrees of freedom" in text
    assert "degrees of freedom" not in info(capsys, "panda")


def hinged(reach: float, active: bool = True) -> ModelBuilder:
    """Bars of 1 m and ``reach`` on pivots 1.2 m apart, their ends tied."""
    builder = limbs("a", "b")
    builder.joint("x", "revolute", "base", "a", axis=(0, 1, 0))
    place = pose(translation=(1.2, 0, 0))
    builder.joint("y", "revolute", "base", "b", axis=(0, 1, 0), origin=place)
    ends = {"predecessor_pose": pose(translation=(0, 0, 1))}
    ends["successor_pose"] = pose(translation=(0, 0, reach))
    builder.loop("tie", "spherical", "a", "b", active=active, **ends)
    return builder


def test_open_home_is_assembled_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bars that stand apart at zero can meet; how far apart they were is told."""
    text = " ".join(info(capsys, write(tmp_path, hinged(1.0))).split())
    assert "has 0 degrees of freedom: 2 coordinates, 1 loop with 3 rows of rank 2" in text
    assert "Home is open (loop 'tie' by 1.2): assembled first." in text


def test_impossible_loops_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bars too short to meet: the loop and the gap that is left, 1.2 - 1 - 0.1 m."""
    text = " ".join(info(capsys, write(tmp_path, hinged(0.1))).split())
    assert 'cannot be assembled from its home pose: loop "tie"' in text
    assert "stays open by 0.1 m." in text


def test_mobility_of_large_robots_waits_for_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dense matrices of many coordinates take long: not without --all."""
    monkeypatch.setattr("phistar.cli.info.MAX_COORDINATES", 2)
    text = info(capsys, "four_bar")
    assert "Mobility is not computed for more than 2 coordinates" in text
    assert "degree of freedom" not in text
    assert "1 degree of freedom" in info(capsys, "four_bar", "--all")


def test_loops_switched_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are listed and counted, not marked; nothing is said of mobility."""
    text = info(capsys, write(tmp_path, hinged(1.0, active=False)))
    assert "tie: spherical, a ↔ b (switched off)" in text
    assert "1 (1 switched off)" in text
    assert "↔ tie" not in text
    assert "freedom" not in text


def test_kinds_with_several_coordinates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A range of indices, and one entry per coordinate where they differ."""
    builder = limbs("a", "b")
    builder.joint("ball", "spherical", "base", "a")
    limits = {"lower": (-1.0, -0.1), "upper": (1.0, 0.1)}
    builder.joint("piston", "cylindrical", "a", "b", effort=(3.0, 5.0), **limits)
    text = info(capsys, write(tmp_path, builder))
    joints = rows(text, "Joints that move")
    assert joints[0][:1] + joints[0][2:4] == ["ball", "0:4", "0:3"]
    assert joints[1][3:5] == ["4:6", "3:5"]
    assert rows(text, "Limits and drives") == [
        ["piston", "-1 .. 1 rad, -0.1 .. 0.1 m", "3 N m, 5 N"]
    ]


def test_long_robots_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beyond a screen, rows are counted; --all shows them."""
    file = tmp_path / "chain.urdf"
    file.write_text(export_urdf(chain(100)), encoding="utf-8")
    text = info(capsys, str(file))
    assert "link100" not in text
    assert f"... {101 - MAX_ROWS} more links (--all shows them)" in text
    assert f"... {100 - MAX_ROWS} more joints (--all shows them)" in text
    whole = info(capsys, str(file), "--all")
    assert "joint100 revolute y → link100" in whole
    assert "--all" not in whole


def test_doubts_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the loader warns about stands at the end, not as a Python warning."""
    builder = limbs("a")
    builder.link("tip")
    builder.joint("j", "revolute", "base", "a")
    builder.joint("k", "revolute", "a", "tip")
    text = info(capsys, write(tmp_path, builder))
    assert "Warnings and notes" in text
    assert "[singular-hinge]" in text.splitlines()[-1]


def test_names_are_not_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Square brackets, colons and other scripts in names are shown as they are."""
    builder = limbs("[red]arm[/red]", "关节:smile:")
    builder.joint("[bold]j", "revolute", "base", "[red]arm[/red]")
    builder.joint("k", "revolute", "base", "关节:smile:")
    text = info(capsys, write(tmp_path, builder))
    assert "[bold]j revolute z → [red]arm[/red]" in text
    assert "关节:smile:" in text


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_output_keeps_to_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No line is wider than COLUMNS."""
    monkeypatch.setenv("COLUMNS", str(columns))
    text = info(capsys, "panda_hand")
    assert max(map(len, text.splitlines())) <= columns

# SPDX-License-Identifier: BSD-3-Clause
"""What real files do that no specification allows: reversed limits, odd XML versions, no bodies."""

import math
from pathlib import Path
from typing import Any

import pytest

import phistar
from phistar.errors import ArgumentError, LimitWarning, ModelError, StructureWarning

ARM = """<robot name="arm"><link name="base"/>
<link name="a"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="a"/>
<limit lower="-2" upper="2" effort="30" velocity="4"/></joint></robot>"""
SPRING = """<mujoco><worldbody><body name="a"><joint name="j"/>
<inertial mass="1" pos="0 0 -.5" diaginertia=".1 .1 .01"/></body></worldbody></mujoco>"""


def test_reversed_limits_are_none() -> None:
    """Bullet's way to say that a joint has no limits: warned of by name, then unlimited."""
    text = ARM.replace('lower="-2" upper="2"', 'lower="1" upper="-1"')
    with pytest.warns(LimitWarning, match=r'joint "j": lower limit 1 is above upper limit -1'):
        robot = phistar.load(text.encode())
    limits = robot.joints["j"].limits
    assert (limits.lower, limits.upper) == ((-math.inf,), (math.inf,))
    assert (limits.effort, limits.velocity) == ((30.0,), (4.0,))
    assert any("limit" in entry.note for entry in robot.load_report.defaulted)


def test_reversed_limits_of_one_coordinate() -> None:
    """Of a joint with several coordinates only the reversed pair is dropped."""
    own = '<p:limits xmlns:p="urn:phistar:urdf" lower="1 -2" upper="-1 2"/>'
    text = ARM.replace('type="revolute"', 'type="phistar:universal"').replace(
        '<limit lower="-2" upper="2" effort="30" velocity="4"/>',
        f'{own}<axis xyz="1 0 0"/><p:axis2 xmlns:p="urn:phistar:urdf" xyz="0 1 0"/>',
    )
    with pytest.warns(LimitWarning):
        limits = phistar.load(text.encode()).joints["j"].limits
    assert (limits.lower, limits.upper) == ((-math.inf, -2.0), (math.inf, 2.0))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "iso-8859-1"])
def test_an_odd_version_of_xml_is_read_as_one(encoding: str) -> None:
    """A warning with the version; names and lines stay as they are in every encoding."""
    name = "utf-16" if encoding.startswith("utf-16") else encoding.removesuffix("-sig")
    head = f'<?xml version="0.0" encoding="{name}"?>\n'
    mark = "\ufeff" if encoding.startswith("utf-16") else ""
    text = (mark + head + ARM.replace('"a"', '"ä"')).encode(encoding)
    if encoding.startswith("utf-16"):
        # A start tag in two-byte characters is found by the parser only.
        from phistar.loaders.load_report import LoadReport
        from phistar.loaders.robot_source import Source
        from phistar.loaders.xml import parse_xml

        report = LoadReport("x", "urdf")
        root = parse_xml(Source(text, "x"), report)
        assert root.findall("link")[1].get("name") == "ä"
        assert [p.code for p in report.problems] == ["xml-version"]
        return
    with pytest.warns(StructureWarning, match=r'version="0.0".*read as 1.0'):
        robot = phistar.load(text)
    assert robot.link_names == ("base", "ä")
    assert robot.joints["j"].where == "<bytes>:5"


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_versions_that_exist_say_nothing(version: str) -> None:
    """No warning, which would be an error here."""
    phistar.load(f'<?xml version="{version}"?>{ARM}'.encode())


def test_an_odd_version_of_mjcf() -> None:
    """The same for MJCF."""
    pytest.importorskip("mujoco")
    with pytest.warns(StructureWarning, match="version"):
        phistar.load(f'<?xml version="0.0"?>{SPRING}'.encode())


def test_negative_moments_are_refused_with_file_line_and_cure() -> None:
    """No body has one; the message says what to look at."""
    text = ARM.replace('ixx="1"', 'ixx="-0.1"')
    with pytest.raises(ModelError, match=r'<bytes>:2: link "a": .* -0\.1 kg m² .*check signs'):
        phistar.load(text.encode())


def test_text_as_str_is_not_echoed() -> None:
    """The message says to pass bytes, and does not hold the robot."""
    with pytest.raises(ArgumentError, match=r"pass it as bytes") as caught:
        phistar.load(ARM)
    assert len(str(caught.value)) < 250
    assert "inertia" not in str(caught.value)
    with pytest.raises(phistar.errors.RobotNotFoundError) as missing:
        phistar.load("x" * 5000)
    assert len(str(missing.value)) < 600


def test_a_file_with_odd_characters_in_its_name_loads(tmp_path: Path) -> None:
    """A path that exists is a path, whatever its characters."""
    file = tmp_path / "a<b.urdf"
    file.write_text(ARM)
    assert phistar.load(str(file)).name == "arm"


@pytest.mark.parametrize("source", ["urdf", "mjcf", "model", "builder"])
@pytest.mark.parametrize("gravity", [9.81, (0, 0), "down", (0, 0, math.nan)])
def test_gravity_is_named(source: str, gravity: object) -> None:
    """Whatever is wrong with it, the message names gravity."""
    if source == "mjcf":
        pytest.importorskip("mujoco")
    builder = phistar.ModelBuilder("m", gravity=gravity if source == "builder" else (0, 0, -1))  # type: ignore[arg-type]
    builder.link("a", 1.0, inertia=(1, 1, 1))
    described = {"urdf": lambda: ARM.encode(), "mjcf": lambda: SPRING.encode()}
    describe: Any = described.get(source, builder.build)
    with pytest.raises(ArgumentError, match=r"^gravity is "):
        phistar.load(describe(), gravity=gravity)  # type: ignore[arg-type]


def test_arguments_of_the_builder_are_named() -> None:
    """So are the others: links, joints, frames, loops."""
    builder = phistar.ModelBuilder("m")
    for name, act in {
        "com of link 'a'": lambda: builder.link("a", com=1.0),
        "inertia of link 'a'": lambda: builder.link("a", inertia=(1, 2)),
        "xyz": lambda: builder.joint("j", "fixed", "a", "b", xyz=1.0),
        "rpy": lambda: builder.joint("j", "fixed", "a", "b", rpy=(1, 2)),
        "origin of joint 'j'": lambda: builder.joint("j", "fixed", "a", "b", origin=[1, 2]),
        "damping of joint 'j'": lambda: builder.joint("j", "revolute", "a", "b", damping=(1, 2)),
        "effort of joint 'j'": lambda: builder.joint("j", "revolute", "a", "b", effort="x"),
        "pose of frame 'f'": lambda: builder.frame("f", "a", pose=[1]),
        "successor_pose of loop 'l'": lambda: builder.loop(
            "l", "weld", "a", "b", successor_pose=[1]
        ),
    }.items():
        with pytest.raises(ArgumentError, match=f"^{name} "):
            act()

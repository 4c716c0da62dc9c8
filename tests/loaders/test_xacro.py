# SPDX-License-Identifier: BSD-3-Clause
"""xacro documents: expanded when trusted, refused otherwise."""

import sys
from pathlib import Path

import pytest

from phistar.errors import MissingExtraError, ModelError, UnsafeFileError
from phistar.loaders import load_model
from phistar.loaders.robot_source import Source, read_source
from phistar.loaders.urdf.urdf_reader import read_urdf
from phistar.loaders.xacro import expand_xacro

HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
SEGMENT = """
  <xacro:macro name="segment" params="k">
    <link name="l${k}"><inertial><mass value="${2 * mass}"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
    <joint name="j${k}" type="continuous"><parent link="l${k - 1}"/><child link="l${k}"/></joint>
  </xacro:macro>
"""
ARM = f"""{HEAD}
  <xacro:arg name="count" default="1"/>
  <xacro:property name="mass" value="1.5"/>{SEGMENT}
  <link name="l0"/>
  <xacro:segment k="1"/>
  <xacro:if value="${{int('$(arg count)') > 1}}"><xacro:segment k="2"/></xacro:if>
</robot>"""


@pytest.mark.parametrize("count", [1, 2])
def test_macros_properties_and_arguments(count: int) -> None:
    """Macros are called, expressions evaluated and arguments passed."""
    source = expand_xacro(Source(ARM.encode(), "arm.xacro"), arguments={"count": str(count)})
    model, _ = read_urdf(source)
    assert model.nv == count
    assert model.total_mass == 3.0 * count


def test_includes_are_found_beside_the_file(tmp_path: Path) -> None:
    """A file is included relative to the one that names it."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "segment.xacro").write_text(f"{HEAD}{SEGMENT}</robot>")
    arm = (
        f'{HEAD}<xacro:include filename="parts/segment.xacro"/>'
        '<xacro:property name="mass" value="1"/><link name="l0"/><xacro:segment k="1"/></robot>'
    )
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(arm)
    model, _ = read_urdf(expand_xacro(read_source(path)))
    assert model.joint_names == ("j1",)
    assert load_model(path, trust_xacro=True)[0] == model


def test_places_are_those_of_the_expanded_text() -> None:
    """A message about an expanded document says so and names a line of the expansion."""
    text = (
        f'{HEAD}<xacro:property name="m" value="x"/><link name="a"/><joint name="${{m}}"/></robot>'
    )
    expanded = expand_xacro(Source(text.encode(), "arm.xacro"))
    with pytest.raises(ModelError, match=r'arm\.xacro \(expanded\):4: joint "x"'):
        read_urdf(expanded)


def test_nothing_is_expanded_unasked(tmp_path: Path) -> None:
    """Without trust a xacro file is refused before anything in it is evaluated."""
    path = tmp_path / "arm.xacro"
    path.write_text(ARM)
    with pytest.raises(UnsafeFileError, match="trust_xacro=True"):
        load_model(path)
    with pytest.raises(UnsafeFileError, match=r"arm\.xacro"):
        expand_xacro(read_source(path), trusted=False)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ("<link name='${nobody}'/>", "nobody"),
        ("<link name='${1 / 0}'/>", "division by zero"),
        ("<xacro:include filename='nowhere.xacro'/>", "nowhere.xacro"),
        ("<xacro:nobody/>", "nobody"),
        ("<link name='$(arg nobody)'/>", "nobody"),
        (
            "<xacro:macro name='m'><xacro:m/></xacro:macro><xacro:m/>",
            "recursion",
        ),
        ("<gz:x/>", "unbound prefix"),
    ],
)
def test_failures_are_ours(inside: str, message: str) -> None:
    """Whatever goes wrong inside xacro comes out as a ModelError that keeps the reason."""
    with pytest.raises(ModelError, match=rf"arm\.xacro: xacro cannot expand the file: .*{message}"):
        expand_xacro(Source(f"{HEAD}{inside}</robot>".encode(), "arm.xacro"))


def test_doctypes_are_refused_here_too() -> None:
    """The document is checked like any other before xacro sees it."""
    with pytest.raises(UnsafeFileError, match="DOCTYPE"):
        expand_xacro(Source(b"<!DOCTYPE robot><robot/>", "arm.xacro"))


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the xacro package the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(MissingExtraError, match=r"phistar\[xacro\]") as caught:
        expand_xacro(Source(ARM.encode(), "arm.xacro"))
    assert caught.value.extra == "xacro"

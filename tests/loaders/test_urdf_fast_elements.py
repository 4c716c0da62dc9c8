# SPDX-License-Identifier: BSD-3-Clause
"""The short way through links and joints gives what the long way gives, or is not taken."""

import warnings
from typing import Any

import pytest

from phistar.errors import ModelError
from phistar.loaders import LoadReport, load_model
from phistar.loaders.urdf.joint import JointReader
from phistar.loaders.urdf.link import LinkReader
from phistar.model.fingerprint import fingerprint

PARTS = {
    "origin of mass": '<origin xyz="0.1 0 -0"/>',
    "mass": '<mass value="1"/>',
    "inertia": '<inertia ixx="1" ixy="0" ixz="0.1" iyy="1" iyz="0" izz="1"/>',
    "parent": '<parent link="a"/>',
    "child": '<child link="b"/>',
    "origin": '<origin xyz="0 -0 0.2" rpy="0.1 0.2 0.3"/>',
    "axis": '<axis xyz="0 0 1"/>',
    "limit": '<limit lower="-1" upper="1" effort="2" velocity="3"/>',
    "link": '<link name="b">',
    "joint": '<joint name="j" type="revolute">',
}
CHANGES = [
    ("mass", '<mass value="1" unit="kg"/>'), ("mass", '<mass value=" 1 "/>'),
    ("mass", '<mass value="-1"/>'), ("mass", '<mass value="one"/>'), ("mass", "<mass/>"),
    ("mass", ""), ("mass", '<mass value="1"/><mass value="2"/>'), ("mass", '<mass value="0x1"/>'),
    ("inertia", ""), ("inertia", '<inertia ixx="1" iyy="1" izz="1"/>'),
    ("inertia", '<inertia ixx="1" ixy="0" ixz="nan" iyy="1" iyz="0" izz="1"/>'),
    ("inertia", '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" IZZ="1"/>'),
    ("origin of mass", ""), ("origin of mass", "<origin/>"),
    ("origin of mass", '<origin xyz="0 0 0" rpy="0 0 0"/>'),
    ("origin of mass", '<origin xyz="1 0 0" rpy="0 0 0.5"/>'),
    ("origin of mass", '<origin xyz="1 0"/>'), ("origin of mass", '<origin xyz="1 0 inf"/>'),
    ("origin", ""), ("origin", "<origin/>"), ("origin", '<origin rpy="0 0 90"/>'),
    ("origin", '<origin xyz=""/>'), ("origin", '<origin xyz="1,0,0"/>'),
    ("origin", '<origin xyz="1 0 0" frame="x"/>'), ("axis", ""), ("axis", "<axis/>"),
    ("axis", '<axis xyz="0 0 2"/>'), ("axis", '<axis xyz="0 0 0"/>'), ("axis", '<axis xyz="0 1"/>'),
    ("axis", '<axis xyz="0 0 1"/><dynamics damping="1"/>'), ("limit", ""), ("limit", "<limit/>"),
    ("limit", '<limit lower="1" upper="-1" effort="2" velocity="3"/>'),
    ("limit", '<limit lower="-1" upper="inf" effort="2" velocity="3"/>'),
    ("limit", '<limit lower="-1" upper="1" effort="-2" velocity="3"/>'),
    ("parent", ""), ("parent", '<parent link=""/>'), ("parent", '<parent link="a" to="b"/>'),
    ("parent", '<parent name="a"/>'), ("child", '<child link="c"/>'),
    ("link", '<link name="b" kind="x">'), ("link", "<link>"),
    ("link", f'<link name="{"b" * 1001}">'),
    ("link", '<link name="b"><visual/>'), ("link", '<link name="b"><gazebo/>'),
    ("joint", '<joint name="j" type="prismatic">'), ("joint", '<joint name="j" type="fixed">'),
    ("joint", '<joint name="j" type="continuous">'), ("joint", '<joint name="j" type="hinge">'),
    ("joint", '<joint name="j">'), ("joint", '<joint type="revolute">'),
    ("joint", '<joint name="j" type="revolute" x="1">'),
]  # fmt: skip


def _document(name: str = "", text: str = "") -> bytes:
    p = {**PARTS, name: text}
    inertial = f"<inertial>{p['origin of mass']}{p['mass']}{p['inertia']}</inertial>"
    ends = f"{p['parent']}\n{p['child']}{p['origin']}{p['axis']}{p['limit']}"
    return (
        f'<robot name="r"><link name="a"/>\n{p["link"]}\n{inertial}</link>\n'
        f"{p['joint']}{ends}</joint></robot>"
    ).encode()


def _read(document: bytes) -> tuple[Any, ...]:
    report = LoadReport("<bytes>", "unknown")
    made: tuple[Any, ...]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model, _ = load_model(document, report=report)
            made = fingerprint(model), [link.where for link in model.links], model.problems
        except ModelError as error:
            made = (str(error),)
    return made, report.problems, report.read, report.ignored, report.defaulted, report.used


@pytest.mark.parametrize(("name", "text"), [("", ""), *CHANGES])
def test_both_ways_agree(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Model and report of a document are those of the long way, whatever is in it."""
    document = _document(name, text)
    found = _read(document)
    for reader in (LinkReader, JointReader):
        monkeypatch.setattr(reader, "_plain", lambda _self, _element: None)
    assert found == _read(document)


def test_the_short_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual link and joint do not come to the long way."""
    monkeypatch.setattr(LinkReader, "_inertial", lambda *_: (0.0, (0.0,) * 3, (0.0,) * 6))
    monkeypatch.delattr(JointReader, "_joint_kind")
    model, _ = load_model(_document())
    assert model.links[1].mass == 1.0
    assert model.nv == 1

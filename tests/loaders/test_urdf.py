# SPDX-License-Identifier: BSD-3-Clause
"""The URDF reader: what each element becomes, and what is said about those that are not right."""

import gc
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from phistar.errors import (
    IgnoredWarning,
    InertiaWarning,
    LimitWarning,
    ModelError,
    StructureWarning,
    UnitWarning,
)
from phistar.loaders.load_report import LoadReport
from phistar.loaders.robot_source import Source
from phistar.loaders.urdf.urdf_reader import read_urdf
from phistar.loaders.urdf.values import parse_number
from phistar.model import Coupling, LoopJoint, Model
from phistar.model.numpy_kinematics import link_poses

OURS = 'xmlns:phistar="urn:phistar:urdf"'
DRAKE = 'xmlns:drake="http://drake.mit.edu"'
SOLID = '<mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'


def robot(*parts: str, attributes: str = "") -> bytes:
    """A document with one part a line, starting in line 2."""
    body = "\n".join(parts)
    return f'<robot name="r" {attributes}>\n{body}\n</robot>'.encode()


def link(name: str, inside: str = f"<inertial>{SOLID}</inertial>") -> str:
    """A link of 1 kg, unless told otherwise."""
    return f'<link name="{name}">{inside}</link>'


def joint(inside: str = LIMIT, kind: str = "revolute", name: str = "j", ends: str = "ab") -> str:
    """A joint from a to b about z."""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{ends[0]}"/><child link="{ends[1]}"/>'
        f"{inside}</joint>"
    )


Z = '<axis xyz="0 0 1"/>'
PAIR = (link("a"), link("b"))


def read(*parts: str, attributes: str = "", **options: object) -> tuple[Model, LoadReport]:
    """Model and report of a document."""
    return read_urdf(Source(robot(*parts, attributes=attributes), "r.urdf"), **options)  # type: ignore[arg-type]


def errors(*parts: str, attributes: str = "") -> list[str]:
    """The errors of a document that must be refused."""
    report = LoadReport("r.urdf", "unknown")
    with pytest.raises(ModelError) as caught:
        read_urdf(Source(robot(*parts, attributes=attributes), "r.urdf"), report=report)
    assert tuple(report.errors) == caught.value.problems
    return [str(problem) for problem in report.errors]


def only_error(*parts: str, attributes: str = "") -> str:
    """The one error of a document."""
    (found,) = errors(*parts, attributes=attributes)
    return found


def codes(report: LoadReport) -> list[str]:
    """Kinds of the problems found."""
    return [problem.code for problem in report.problems]


# Numbers


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_exactly(value: float) -> None:
    """The shortest text of a double reads back as that double."""
    assert parse_number(repr(value)) == value


@pytest.mark.parametrize("text", ["1", "+1", "1.", ".5", "-1.5e-3", "1E5", "007", "1e+2"])
def test_xsd_doubles_are_numbers(text: str) -> None:
    """Every spelling of a double that XML Schema knows is read as Python reads it."""
    assert parse_number(text) == float(text)


@pytest.mark.parametrize(
    "text",
    [
        "1kg",
        "0x10",
        "1_000",
        "0,1",
        "1e",
        ".",
        "",
        "e5",
        "--1",
        "1 .",
        "٣",
        "1e1.5",
        "nan",
        "1" * 600,
    ],
)
def test_other_texts_are_not_numbers(text: str) -> None:
    """What C or Python would accept, but XML Schema does not, is no number."""
    assert math.isnan(parse_number(text))


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "inf", "-INF", "Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(text: str) -> None:
    """A mass that is NaN or infinite, or overflows, is an error that says so."""
    bad = f'<inertial><mass value="{text}"/></inertial>'
    found = errors(link("a", bad + ""))[0]
    assert found.startswith(f'r.urdf:2: link "a": mass "{text}" is not finite.')


def test_wrong_count_is_refused() -> None:
    """A vector of two numbers is an error that names joint, element, and both counts."""
    found = only_error(*PAIR, joint(f'{LIMIT}<axis xyz="0 1"/>'))
    assert found.startswith('r.urdf:4: joint "j": axis needs 3 values, got 2: "0 1".')


def test_every_error_is_found_at_once() -> None:
    """Errors in values, structure and mimics are reported together, in the order of the file."""
    found = errors(
        link("a", '<inertial><mass value="1kg"/></inertial>'),
        link("b"),
        joint(f'{LIMIT}<origin xyz="0 0 nan"/>'),
        joint(LIMIT, kind="revolut", name="k", ends="bz"),
        joint('<mimic joint="nobody"/>' + LIMIT, name="m", ends="bx"),
    )
    assert [re.match(r"r\.urdf:(\d+)", text).group(1) for text in found] == list("245566")  # type: ignore[union-attr]
    texts = ("1kg", "nan", "'revolute'", '"z"', '"x"', '"nobody"')
    assert all(any(text in line for line in found) for text in texts)


# Links


def test_inertial_frame_is_turned_into_link_axes() -> None:
    """Inertia R I R* and centre of mass of a tilted inertial frame, against SciPy's rotations."""
    rpy = (0.3, -1.1, 2.0)
    moments = '<inertia ixx="3" ixy="0.1" ixz="-0.2" iyy="4" iyz="0.3" izz="5"/>'
    tilted = f'<origin xyz="1 2 3" rpy="{rpy[0]} {rpy[1]} {rpy[2]}"/><mass value="2"/>{moments}'
    model, _ = read(link("a", f"<inertial>{tilted}</inertial>"))
    turn = Rotation.from_euler("xyz", rpy).as_matrix()
    inertia = np.array([[3, 0.1, -0.2], [0.1, 4, 0.3], [-0.2, 0.3, 5]])
    np.testing.assert_allclose(model.link("a").inertia, turn @ inertia @ turn.T, rtol=1e-13)
    np.testing.assert_array_equal(model.link("a").com, [1, 2, 3])
    assert model.link("a").mass == 2


def test_link_without_inertial_is_massless_and_listed() -> None:
    """No <inertial> means no mass, and the report says so."""
    model, report = read(link("a"), link("b", ""), joint())
    assert model.link("b").mass == 0
    assert [str(entry) for entry in report.defaulted if "massless" in entry.note] == [
        'r.urdf:3: link "b": no <inertial>: massless'
    ]


@pytest.mark.parametrize(
    ("inertial", "message"),
    [
        ("", "<inertial> without <mass>"),
        ("<mass/>", "<mass> without value"),
        ('<mass value="1kg"/>', 'cannot parse mass "1kg"'),
        ('<mass value="1"/><inertia ixx="1" iyy="1"/>', "<inertia> without ixy, ixz, iyz, izz"),
        ('<mass value="-1"/>', "mass -1 kg is negative"),
    ],
)
def test_bad_inertials_are_refused(inertial: str, message: str) -> None:
    """A mass that is missing, malformed or negative, or half an inertia, is an error."""
    assert any(message in text for text in errors(link("a", f"<inertial>{inertial}</inertial>")))


def test_missing_inertia_makes_a_point_mass() -> None:
    """A mass without <inertia> is kept as a point, with a warning."""
    model, report = read(link("a", '<inertial><mass value="2"/></inertial>'))
    assert model.link("a").mass == 2
    assert not model.link("a").inertia.any()
    assert report.warnings[0].category is InertiaWarning
    assert 'link "a": <inertial> without <inertia>' in report.warnings[0].what


def test_missing_products_of_inertia_are_zero() -> None:
    """Moments without products are a diagonal inertia, with a warning that names the products."""
    moments = '<inertia ixx="1" iyy="2" izz="2.5"/>'
    model, report = read(link("a", f'<inertial><mass value="2"/>{moments}</inertial>'))
    np.testing.assert_array_equal(model.link("a").inertia, np.diag([1, 2, 2.5]))
    assert "without ixy, ixz, iyz" in report.warnings[0].what


def test_first_of_two_inertials_counts() -> None:
    """A second <inertial> is not used and is warned of."""
    model, report = read(link("a", f"<inertial>{SOLID}</inertial><inertial><mass/></inertial>"))
    assert model.link("a").mass == 1
    assert 'link "a": two <inertial> elements' in report.warnings[0].what


def test_shapes_are_kept_with_their_colours() -> None:
    """Kind, size, pose, name and colour of shapes; a material may be defined after its use."""
    shapes = (
        '<visual name="v"><origin xyz="1 0 0"/><geometry><box size="1 2 3"/></geometry>'
        '<material name="red"/></visual>'
        '<visual><geometry><mesh filename="package://x/y.stl" scale="1 -1 1"/></geometry>'
        '<material name="own"><color rgba="0 1 0 1"/></material></visual>'
        '<collision><geometry><cylinder radius="0.5" length="2"/></geometry></collision>'
        '<collision><geometry><sphere radius="0.5"/></geometry></collision>'
        '<collision><geometry><capsule radius="0.5" length="1"/></geometry></collision>'
    )
    red = '<material name="red"><color rgba="1 0 0 0.5"/></material>'
    model, report = read(link("a", shapes), red)
    box, mesh = model.link("a").visuals
    assert (box.kind, box.size, box.name, box.rgba) == ("box", (1, 2, 3), "v", (1, 0, 0, 0.5))
    assert box.pose[0, 3] == 1
    assert (mesh.kind, mesh.mesh, mesh.size) == ("mesh", "package://x/y.stl", (1, -1, 1))
    assert mesh.rgba == (0, 1, 0, 1)
    kinds = [(shape.kind, shape.size) for shape in model.link("a").collisions]
    assert kinds == [("cylinder", (0.5, 2)), ("sphere", (0.5,)), ("capsule", (0.5, 1))]
    assert report.read["meshes"] == 1


def test_friction_of_shapes() -> None:
    """In our dialect; a negative one is warned of, and the shape is not used."""
    sphere = '<collision><geometry><sphere radius="1"/></geometry>{}</collision>'
    tag = '<phistar:friction xmlns:phistar="urn:phistar:urdf" value="{}"/>'
    shapes = "".join(sphere.format(x) for x in ("", tag.format(0.3), tag.format(-1)))
    model, report = read(link("a", shapes))
    assert [shape.friction for shape in model.link("a").collisions] == [None, 0.3]
    assert any("coefficient of friction of -1" in x.what for x in report.warnings)


@pytest.mark.parametrize(
    "shape",
    [
        "<visual/>",
        "<visual><geometry/></visual>",
        "<visual><geometry><box/></geometry></visual>",
        '<visual><geometry><box size="1 1"/></geometry></visual>',
        '<visual><geometry><sphere radius="-1"/></geometry></visual>',
        '<visual><geometry><sphere radius="nan"/></geometry></visual>',
        "<visual><geometry><torus/></geometry></visual>",
        "<visual><geometry><mesh/></geometry></visual>",
        '<visual><origin xyz="x"/><geometry><sphere radius="1"/></geometry></visual>',
    ],
)
def test_bad_shapes_cost_a_warning_only(shape: str) -> None:
    """What is wrong with something to draw keeps it from being drawn, not the robot from moving."""
    model, report = read(link("a", f"<inertial>{SOLID}</inertial>{shape}"))
    assert model.link("a").visuals == ()
    assert len(report.problems) == 1
    assert 'link "a" visual' in report.warnings[0].what
    assert "not drawn" in report.warnings[0].cure


# Joints


def test_joint_frame_is_where_the_origin_says() -> None:
    """xyz and rpy place the child as SciPy's fixed-axis rotation does, relative 1e-14."""
    rpy = (0.1, 0.2, -0.4)
    origin = f'<origin xyz="1 2 3" rpy="{rpy[0]} {rpy[1]} {rpy[2]}"/>'
    model, _ = read(*PAIR, joint(origin, kind="fixed"))
    pose = link_poses(model, np.zeros(0))["b"]
    turn = Rotation.from_euler("xyz", rpy).as_matrix()
    np.testing.assert_allclose(pose[:3, :3], turn, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(pose[:3, 3], [1, 2, 3])


@pytest.mark.parametrize(
    ("kind", "inside", "expected", "nq", "nv"),
    [
        ("revolute", LIMIT, "revolute", 1, 1),
        ("continuous", "", "continuous", 1, 1),
        ("prismatic", LIMIT, "prismatic", 1, 1),
        ("fixed", "", "fixed", 0, 0),
        ("floating", "", "free", 7, 6),
        ("free", "", "free", 7, 6),
        ("planar", "", "planar", 3, 3),
        ("spherical", "", "spherical", 4, 3),
        ("translation", "", "translation", 3, 3),
        ("cylindrical", "", "cylindrical", 2, 2),
        ("helical", '<phistar:pitch value="0.1"/>', "helical", 1, 1),
        ("universal", '<phistar:axis2 xyz="0 1 0"/>', "universal", 2, 2),
        ("phistar:revolute", LIMIT, "revolute", 1, 1),
    ],
)
def test_joint_types(kind: str, inside: str, expected: str, nq: int, nv: int) -> None:
    """Each type of joint becomes its kind, with its numbers of coordinates."""
    model, _ = read(*PAIR, joint(inside, kind=kind), attributes=OURS)
    assert (model.joint("j").kind, model.nq, model.nv) == (expected, nq, nv)


def test_missing_axis_is_x() -> None:
    """The specification's default axis 1 0 0 is taken and listed, without a warning."""
    model, report = read(*PAIR, joint())
    assert model.joint("j").joint_kind.axis == (1.0, 0.0, 0.0)  # type: ignore[attr-defined]
    assert report.problems == []
    assert [entry.note for entry in report.defaulted] == ["no <axis>: 1 0 0"]


def test_planar_joint_without_axis_is_warned_of() -> None:
    """The default axis x makes an upright plane, which is seldom meant."""
    _, report = read(*PAIR, joint("", kind="planar"))
    assert codes(report) == ["planar-axis"]
    assert codes(read(*PAIR, joint(Z, kind="planar"))[1]) == []


@pytest.mark.parametrize(("xyz", "warned"), [("0 0 10", True), ("0 0.6 0.8001", False)])
def test_axis_is_normalised(xyz: str, warned: bool) -> None:
    """An axis of another length is scaled to one, with a warning if it is not just rounding."""
    model, report = read(*PAIR, joint(f'{LIMIT}<axis xyz="{xyz}"/>'))
    axis = model.joint("j").joint_kind.axis  # type: ignore[attr-defined]
    assert math.hypot(*axis) == pytest.approx(1.0, rel=1e-15)
    assert codes(report) == (["axis-length"] if warned else [])


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<axis xyz="0 0 0"/>', "axis is zero"),
        ("<axis/>", "<axis> has no xyz"),
        ('<axis xyz="0 0 nan"/>', 'axis "nan" is not finite'),
        ('<mimic multiplier="2"/>', "<mimic> without joint"),
        ('<mimic joint="j"/>', "mimic cycle j -> j"),
        ('<parent link="b"/>', "more than one <parent>"),
        ('<dynamics damping="much"/>', 'cannot parse dynamics damping "much"'),
        ('<origin xyz="${x} 0 0"/>', 'cannot parse origin xyz "${x}". Expand the file with xacro'),
    ],
)
def test_bad_joints_are_refused(inside: str, message: str) -> None:
    """Nonsense in a joint is an error that names the joint and the element."""
    found = only_error(*PAIR, joint(LIMIT + inside))
    assert message in found
    assert "r.urdf:4" in found


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("<joint/>", "a <joint> has no name"),
        ('<joint name="k"/>', 'joint "k" has no type. Types: revolute,'),
        ('<joint name="k"/>', 'joint "k": element <parent> is missing'),
        ('<joint name="k" type="hinge"/>', 'joint "k" has unknown type "hinge"'),
        ('<joint name="k" type="Revolute"/>', "Did you mean 'revolute'?"),
        ('<joint name="k" type="fixed"><child/></joint>', "<child> names no link"),
        ("<link/>", "a <link> has no name"),
        (joint(kind="helical"), "a helical joint needs a pitch"),
        (joint(kind="universal"), "a universal joint needs a second axis"),
    ],
)
def test_incomplete_parts_are_refused(part: str, message: str) -> None:
    """Missing names, types and ends are errors; the hole they leave in the tree is not another."""
    found = errors(link("a"), link("b"), link("c"), part, joint(name="x", ends="ac"))
    assert any(message in text for text in found)
    assert not any("root links" in text for text in found) or "helical" in part or "univ" in part


def test_parallel_axes_are_refused() -> None:
    """A universal joint with one direction twice is an error with file and line."""
    axes = f'{Z}<phistar:axis2 xyz="0 0 2"/>'
    found = errors(*PAIR, joint(axes, kind="universal"), attributes=OURS)
    assert found[0].startswith('r.urdf:4: joint "j": the two axes of a universal joint')


def test_limits_are_read() -> None:
    """All four numbers of <limit>, in the fields they belong to."""
    model, report = read(*PAIR, joint())
    limits = model.joint("j").limits
    assert (limits.lower, limits.upper) == ((-1.0,), (2.0,))
    assert (limits.effort, limits.velocity) == ((3.0,), (4.0,))
    assert report.warnings == []


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_missing_limit_is_warned_of(kind: str) -> None:
    """A joint that needs <limit> and has none is unlimited, with a warning that names it."""
    model, report = read(*PAIR, joint("", kind=kind))
    assert model.joint("j").limits.upper == (math.inf,)
    assert report.warnings[0].category is LimitWarning
    assert f'joint "j": <limit> is required for {kind}' in report.warnings[0].what


def test_missing_numbers_of_a_limit_are_unlimited() -> None:
    """A number that <limit> leaves out is no limit, with a warning that names it."""
    model, report = read(*PAIR, joint('<limit effort="3" lower="-inf"/>'))
    limits = model.joint("j").limits
    assert (limits.lower, limits.upper, limits.effort) == ((-math.inf,), (math.inf,), (3.0,))
    assert "has no upper, velocity" in report.warnings[0].what


def test_limits_of_a_continuous_joint_are_listed() -> None:
    """A continuous joint keeps effort and velocity; its position limits are ignored and listed."""
    model, report = read(*PAIR, joint(kind="continuous"))
    limits = model.joint("j").limits
    assert (limits.upper, limits.effort) == ((math.inf,), (3.0,))
    assert [entry.what for entry in report.ignored] == [
        'joint "j": limit lower',
        'joint "j": limit upper',
    ]


def test_damping_and_friction_are_read() -> None:
    """<dynamics> goes into the drive; attributes of other dialects are warned of."""
    inside = f'{LIMIT}<dynamics damping="0.5" friction="0.25" mu_coulomb="1"/>'
    model, report = read(*PAIR, joint(inside))
    drive = model.joint("j").drive
    assert (drive.damping, drive.friction) == ((0.5,), (0.25,))
    assert report.warnings[0].category is IgnoredWarning
    assert "mu_coulomb" in report.warnings[0].what


def test_negative_damping_is_warned_of() -> None:
    """Damping that feeds energy in is kept, with a warning."""
    model, report = read(*PAIR, joint(f'{LIMIT}<dynamics damping="-0.5"/>'))
    assert model.joint("j").drive.damping == (-0.5,)
    assert 'joint "j": negative damping -0.5' in report.warnings[0].what


def test_degrees_are_suspected() -> None:
    """An angle beyond a full turn is kept, with a warning that it may be degrees."""
    _, report = read(*PAIR, joint(f'{LIMIT}<origin rpy="0 90 0"/>'))
    assert report.warnings[0].category is UnitWarning
    assert 'joint "j": origin rpy 0 90 0: 90 rad exceeds 2*pi' in report.warnings[0].what


def test_mimic_chain_is_reduced() -> None:
    """q3 = 3 q2 + 1/2 and q2 = 2 q1 give one coordinate and q3 = 6 q1 + 1/2."""
    parts = [link(name) for name in "abcd"]
    parts += [
        joint(LIMIT, name="j1", ends="ab"),
        joint(f'{LIMIT}<mimic joint="j1" multiplier="2"/>', name="j2", ends="bc"),
        joint(f'{LIMIT}<mimic joint="j2" multiplier="3" offset="0.5"/>', name="j3", ends="cd"),
    ]
    model, _ = read(*parts)
    assert model.joint_names == ("j1",)
    assert (model.bodies[2].scale, model.bodies[2].offset) == (6.0, 0.5)
    independent, _ = read(*parts, mimic="independent")
    assert independent.joint_names == ("j1", "j2", "j3")


def test_mimic_of_a_fixed_joint_is_dropped() -> None:
    """A joint that follows a fixed one moves on its own; a fixed one that follows stays fixed."""
    parts = [*PAIR, link("c"), joint("", kind="fixed", name="f")]
    model, report = read(*parts, joint(f'{LIMIT}<mimic joint="f"/>', ends="bc"))
    assert model.joint_names == ("j",)
    assert '"j" mimics "f", which is fixed' in report.warnings[0].what
    still, _ = read(*PAIR, joint('<mimic joint="j"/>', kind="fixed"))
    assert still.nv == 0


# Structure


def test_fixed_joint_ignores_what_it_cannot_have() -> None:
    """Axis, limit, dynamics and mimic of a fixed joint are listed as ignored, not refused."""
    inside = f'<axis xyz="0 0 0"/>{LIMIT}<dynamics damping="1"/>'
    _, report = read(*PAIR, joint(inside, kind="fixed"))
    assert len(report.ignored) == 3
    assert {entry.note for entry in report.ignored} == {"a fixed joint has none"}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((), "there is no link"),
        (PAIR, '2 root links found: "a", "b"'),
        ((*PAIR, joint(ends="ax")), 'joint "j" refers to unknown child link "x"'),
        ((*PAIR, joint(ends="xb")), 'joint "j" refers to unknown parent link "x"'),
        ((*PAIR, joint(ends="bb")), 'joint "j" connects link "b" to itself'),
        ((*PAIR, link("a"), joint()), 'r.urdf:4: duplicate link name "a" (2 times)'),
        ((*PAIR, joint(), joint(ends="ba")), 'r.urdf:5: duplicate joint name "j" (2 times)'),
        ((*PAIR, joint(), joint(name="k")), 'link "b" has 2 parent joints: "j", "k"'),
        ((*PAIR, joint(), joint(name="k", ends="ba")), "cycle"),
    ],
)
def test_broken_trees_are_refused(parts: tuple[str, ...], message: str) -> None:
    """What is not a tree is an error that names the links and joints at fault."""
    assert any(message in text for text in errors(*parts))


def test_many_cycles_are_found_in_one_pass() -> None:
    """Two cycles and a tail on one of them give two errors."""
    parts = [link(name) for name in "abcdex"]
    ends = ("ab", "ba", "cd", "dc", "de")
    parts += [joint(name=f"j{k}", ends=pair) for k, pair in enumerate(ends)]
    assert sum("form a cycle" in text for text in errors(*parts)) == 2


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"<mujoco/>", "root element is <mujoco>, expected <robot>. Load it as MJCF"),
        (b"<sdf/>", "SDF is not supported"),
        (b"<html/>", "root element is <html>"),
    ],
)
def test_wrong_root_is_refused(document: bytes, message: str) -> None:
    """A document of another kind is refused with its root's name."""
    with pytest.raises(ModelError, match=re.escape(message)):
        read_urdf(Source(document, "r.urdf"))


def test_robot_without_name_has_that_of_the_file() -> None:
    """A missing robot name is replaced by the file's, with a warning."""
    model, report = read_urdf(Source(b'<robot><link name="a"/></robot>', "arm.urdf"))
    assert model.name == "arm"
    assert "no-robot-name" in codes(report)


# Namespaces and xacro


@pytest.mark.parametrize("uses", [1, 150])
def test_undeclared_prefixes_are_tolerated(uses: int) -> None:
    """Elements with prefixes nobody declared are passed over, with one warning a prefix."""
    model, report = read(*PAIR, joint(), "<gz:x y:z='1'/>" * uses, "<late:one/>")
    assert model.nv == 1
    warned = [p for p in report.warnings if p.code == "unbound-prefix"]
    assert sorted(re.findall(r"'(\w+):'", str(warned))) == ["gz", "late", "y"]
    assert {p.where for p in warned} == {"r.urdf:5", "r.urdf:6"}
    assert any(entry.what == "<gz:x>" for entry in report.ignored)


def test_undeclared_prefixes_do_not_hide_errors() -> None:
    """A document that is not well-formed stays refused, whatever prefixes it uses."""
    with pytest.raises(ModelError, match="mismatched tag"):
        read("<gz:x/>", "<link>")


def test_default_namespace_is_plain_urdf() -> None:
    """A default namespace on the root changes nothing."""
    plain, _ = read(*PAIR, joint())
    named, _ = read(*PAIR, joint(), attributes='xmlns="http://www.ros.org"')
    assert plain == named


def test_unexpanded_xacro_is_noticed() -> None:
    """An include is refused; a call of a macro is warned of as a missing part of the robot."""
    xacro = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
    found = only_error(*PAIR, joint(), '<xacro:include filename="x"/>', attributes=xacro)
    assert 'unexpanded xacro: <xacro:include filename="x">' in found
    assert "trust_xacro=True" in found
    _, report = read(*PAIR, joint(), '<xacro:arm prefix="l"/>', attributes=xacro)
    assert "<xacro:arm> was left unexpanded: part of the robot" in report.warnings[0].what


# What is ignored


def test_everything_unused_is_listed() -> None:
    """Elements and attributes the model does not hold are in the report, each with a reason."""
    _, report = read(
        link("a", "<self_filter/>"),
        link("b"),
        joint(f'{LIMIT}<safety_controller k_velocity="1"/>'),
        '<gazebo reference="a"><mu1>1</mu1></gazebo>',
        '<transmission name="t"/>',
        '<ros2_control name="c"/>',
        "<mystery/>",
        attributes='colour="blue"',
    )
    listed = {entry.what for entry in report.ignored}
    assert listed == {
        "robot: <robot> attribute colour",
        'link "a": <self_filter>',
        'joint "j": <safety_controller>',
        '<gazebo> of "a"',
        "<transmission>",
        "<ros2_control>",
        "<mystery>",
    }
    assert all(entry.note for entry in report.ignored)
    assert report.warnings == []


@pytest.mark.parametrize(
    ("part", "what"),
    [
        ("<inertial/>", "<inertial> has no meaning here"),
        ("<loop_joint/>", "<loop_joint> has no meaning here"),
        ("<mujoco><compiler settotalmass='3'/></mujoco>", "settotalmass changes the dynamics"),
        ("<gazebo><turnGravityOff>true</turnGravityOff></gazebo>", "turnGravityOff changes"),
    ],
)
def test_unused_dynamics_is_warned_of(part: str, what: str) -> None:
    """What would change the dynamics and is not used gives a warning."""
    _, report = read(link("a"), part)
    assert report.warnings[0].category is IgnoredWarning
    assert what in report.warnings[0].what


def test_long_rows_of_ignored_elements_are_counted() -> None:
    """Beyond some hundred alike, ignored elements are counted rather than listed."""
    _, report = read(link("a"), "<mystery/>" * 2000)
    assert len(report.ignored) == 501
    assert "1500 more like <mystery>" in str(report.ignored[-1])


def test_report_counts_what_was_read() -> None:
    """The report counts links, joints and shapes, and says what went into the model."""
    shape = "<visual><geometry><sphere radius='1'/></geometry></visual>"
    _, report = read(link("a", shape), link("b"), joint())
    assert (report.read["links"], report.read["joints"], report.read["visuals"]) == (2, 1, 1)
    assert str(report.used[0]) == "links: 2, 1 of them with mass, 1 kg in all"
    _, report = read(link("a", "<visual><geometry><mesh filename='a.stl'/></geometry></visual>"))
    assert "1 visual, 1 mesh" in report.counts()


# Options


def test_floating_base_and_gravity() -> None:
    """A free joint under the root, and a gravity that goes before the file's."""
    own = '<phistar:gravity xyz="0 0 -1.62"/>'
    model, _ = read(*PAIR, joint(), own, attributes=OURS)
    np.testing.assert_array_equal(model.gravity, [0, 0, -1.62])
    floating, _ = read(
        *PAIR, joint(), own, attributes=OURS, floating_base=True, gravity=(0, 0, -3.7)
    )
    assert floating.joint_names == ("root_joint", "j")
    np.testing.assert_array_equal(floating.gravity, [0, 0, -3.7])


def test_collector_is_left_as_it_was() -> None:
    """Reading pauses the garbage collector and starts it again, also after an error."""
    assert gc.isenabled()
    read(link("a"))
    assert gc.isenabled()
    errors()
    assert gc.isenabled()


# Dialects


def test_drake_frames_and_rotors() -> None:
    """Drake's <frame>, rotor inertia and gear ratio are used."""
    motor = (
        '<transmission><joint name="j"/><actuator name="m"><drake:rotor_inertia value="0.5"/>'
        '<drake:gear_ratio value="10"/></actuator></transmission>'
    )
    frame = '<frame name="tip" link="b" xyz="0 0 1" rpy="0 0 0"/>'
    model, report = read(*PAIR, joint(), motor, frame, attributes=DRAKE)
    assert model.joint("j").drive.reflected_inertia == (50.0,)
    assert model.frame("tip").pose[2, 3] == 1
    assert report.warnings == []


@pytest.mark.parametrize(
    ("kind", "inside", "expected"),
    [
        ("ball", "", "spherical"),
        ("planar", "", "planar"),
        ("universal", "", "universal"),
        ("screw", f'{Z}<drake:screw_thread_pitch value="0.5"/>', "helical"),
    ],
)
def test_drake_joints(kind: str, inside: str, expected: str) -> None:
    """Drake's own joints become ours; a screw's pitch is given per turn."""
    text = (
        joint(inside, kind=kind).replace("<joint", "<drake:joint").replace("/joint", "/drake:joint")
    )
    model, _ = read(*PAIR, text, attributes=DRAKE)
    joint_kind = model.joint("j").joint_kind
    assert joint_kind.name == expected
    if kind == "screw":
        turn = joint_kind.transform(np.array([2 * math.pi]))
        np.testing.assert_allclose(turn[:3, 3], [0, 0, 0.5], rtol=1e-15)
    if kind == "planar":
        assert joint_kind.axis == (0.0, 0.0, 1.0)  # type: ignore[attr-defined]


def test_loops_and_couplings() -> None:
    """Loop joints and couplings are kept in the order of the file."""
    loop = (
        '<phistar:loop name="l" type="revolute"><phistar:predecessor link="a"><origin xyz="1 0 0"/>'
        '</phistar:predecessor><phistar:successor link="world"/><axis xyz="0 1 0"/></phistar:loop>'
    )
    tie = (
        '<phistar:coupling name="c" joint="j" source="" coefficients="0 1 2" references="3 4" '
        'active="false"/>'
    )
    model, _ = read(*PAIR, joint(), tie, loop, attributes=OURS)
    coupling, closing = model.loops
    assert isinstance(coupling, Coupling)
    assert isinstance(closing, LoopJoint)
    assert (coupling.coefficients, coupling.references) == ((0, 1, 2), (3, 4))
    assert not coupling.active
    assert (closing.predecessor, closing.successor, closing.axis) == ("a", "world", (0, 1, 0))
    assert closing.predecessor_pose[0, 3] == 1
    assert closing.active


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ('<phistar:loop name="l" type="rope"/>', 'loop "l" has unknown type "rope"'),
        ('<phistar:loop name="l" type="weld"/>', "<phistar:predecessor> is missing"),
        ('<phistar:frame name="a" link="a"/>', 'frame "a" has the name of another'),
        ('<phistar:frame name="f" link="A"/>', "Did you mean 'a'?"),
        ('<phistar:frame link="a"/>', "a <phistar:frame> has no name"),
        ('<phistar:coupling name="c" joint="j"/>', 'coupling "c" has no coefficients'),
        ('<phistar:coupling name="c" joint="k" coefficients="1"/>', 'unknown joint "k"'),
        ('<phistar:gravity xyz="0 0"/>', "gravity needs 3 values, got 2"),
        ('<phistar:configuration name="q" values="0 1"/>', "needs 1 values, got 2"),
        ('<phistar:order><phistar:joint name="k"/></phistar:order>', "independent joints are: j"),
        ('<phistar:loop name="l" type="weld" active="maybe"/>', "is missing"),
    ],
)
def test_bad_dialect_is_refused(part: str, message: str) -> None:
    """What is wrong with an element of the dialect is an error with file and line."""
    found = errors(*PAIR, joint(), part, attributes=OURS)
    assert any(message in text and text.startswith("r.urdf:5") for text in found)


def test_joint_extensions() -> None:
    """Armature, spring, reference, child origin and per-coordinate limits of the dialect."""
    inside = (
        '<phistar:dynamics armature="1 2" damping="3" stiffness="4 5" spring_reference="6 7"/>'
        '<phistar:limits lower="-inf -1" upper="inf 1" velocity="1 2" effort="3 4"/>'
        '<phistar:child_origin xyz="0 0 1"/>'
    )
    model, _ = read(*PAIR, joint(inside, kind="cylindrical"), attributes=OURS)
    found = model.joint("j")
    assert found.drive.armature == (1, 2)
    assert found.drive.damping == (3, 3)
    assert found.drive.spring_reference == (6, 7)
    assert found.limits.lower == (-math.inf, -1)
    assert found.limits.effort == (3, 4)
    assert found.child_pose[2, 3] == 1
    simple, _ = read(*PAIR, joint(f'{LIMIT}<phistar:reference value="2"/>'), attributes=OURS)
    assert simple.joint("j").reference == 2


def test_exact_rotation() -> None:
    """phistar:rotation is taken bit for bit, if it is a rotation and agrees with rpy."""
    turn = Rotation.from_euler("xyz", (0.1, 0.2, 0.3)).as_matrix()
    text = " ".join(repr(float(x)) for x in turn.ravel())
    good = f'{LIMIT}<origin rpy="0.1 0.2 0.3" phistar:rotation="{text}"/>'
    model, _ = read(*PAIR, joint(good), attributes=OURS)
    np.testing.assert_array_equal(model.joint("j").origin[:3, :3], turn)
    other = good.replace("0.3", "0.31", 1)
    assert "rpy differ by" in only_error(*PAIR, joint(other), attributes=OURS)
    skewed = f'{LIMIT}<origin phistar:rotation="1 1 0 0 1 0 0 0 1"/>'
    assert "not a rotation" in only_error(*PAIR, joint(skewed), attributes=OURS)


def test_order_and_configurations() -> None:
    """The order of coordinates and named configurations, also with a free base put under them."""
    parts = (*PAIR, link("c"), joint(), joint(name="k", ends="ac"))
    order = '<phistar:order><phistar:joint name="k"/><phistar:joint name="j"/></phistar:order>'
    home = '<phistar:configuration name="home" values="1 2"/>'
    model, _ = read(*parts, order, home, attributes=OURS)
    assert model.joint_names == ("k", "j")
    np.testing.assert_array_equal(model.configurations["home"], [1, 2])
    free, _ = read(*parts, order, home, attributes=OURS, floating_base=True)
    assert free.joint_names == ("root_joint", "k", "j")
    np.testing.assert_array_equal(free.configurations["home"], [0, 0, 0, 0, 0, 0, 1, 1, 2])


def test_independent_mimics_drop_configurations() -> None:
    """Configurations made for reduced mimic joints do not fit independent ones and are listed."""
    follower = joint(f'{LIMIT}<mimic joint="j"/>', name="k", ends="ac")
    home = '<phistar:configuration name="home" values="1"/>'
    parts = (*PAIR, link("c"), joint(), follower, home)
    model, report = read(*parts, attributes=OURS, mimic="independent")
    assert dict(model.configurations) == {}
    assert any("phistar:configuration" in entry.what for entry in report.ignored)


def test_ground_forest_and_virtual_links() -> None:
    """A link that stands for the ground is none; forests and virtual links are marked as such."""
    ground = '<link name="earth" phistar:ground="true"/>'
    free = joint("", kind="floating", ends="xb").replace('"x"', '"earth"')
    virtual = '<link name="v" phistar:virtual="true"/>'
    parts = (ground, *PAIR, virtual, free, joint(name="k", ends="bv"))
    model, _ = read(*parts, attributes=f'{OURS} phistar:forest="true"')
    assert model.link_names == ("a", "b")
    assert model.joint("j").parent == "(ground)"
    assert model.link("v").virtual


# Size


def test_lines_beyond_65535_are_right() -> None:
    """libxml2 counts lines in 16 bits; problems further down still name their own line."""
    padding = "<!-- -->\n" * 70_000
    found = only_error(
        link("a"), padding, '<joint name="j" type="fixed">\n<child link="a"/></joint>'
    )
    assert found.startswith('r.urdf:70004: joint "j": element <parent> is missing')


@pytest.mark.parametrize("count", [5_000, 20_000])
def test_long_chains_need_no_recursion(count: int) -> None:
    """A chain far deeper than Python's stack is read; its coordinates run from the root outward."""
    parts = ['<link name="l0"/>']
    for k in range(1, count + 1):
        parts.append(link(f"l{k}"))
        parts.append(
            f'<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/>'
            f'<child link="l{k}"/></joint>'
        )
    model, _ = read(*parts)
    assert model.nv == count
    assert model.joint_names[-1] == f"j{count}"
    assert list(model.parents) == list(range(-1, count - 1))


def test_warning_categories_are_ours() -> None:
    """Every warning of the reader has a category that a filter can name."""
    _, report = read("<gz:x/>", link("a", "<visual/>"), link("b"), joint("<axis xyz='0 0 5'/>"))
    categories = {problem.category for problem in report.warnings}
    assert categories == {StructureWarning, LimitWarning}

# SPDX-License-Identifier: BSD-3-Clause
"""The files of the bundled robots: sound as files, sound as mechanics.

Pinocchio reads the files where dynamics are tested, so these tests judge the data and not our own
reader.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

from tests.helpers import ROOT
from tools import make_delta, make_humanoid, make_humanoid_ankles

DATA = ROOT / "src" / "phistar" / "robots" / "data"
FILES = sorted(DATA.glob("*.urdf"))

# robot: a word by which its file names the source of its numbers
SOURCES = {
    "cartpole": "Barto, Sutton and Anderson",
    "delta": "Numbers: ours",
    "double_pendulum": "Numbers: ours",
    "four_bar": "Numbers: ours",
    "humanoid": "de Leva",
    "humanoid_ankles": "de Leva",
    "panda": "Gaz, Cognetti, Oliva",
    "panda_hand": "Gaz, Cognetti, Oliva",
    "quadruped": "Grimminger et al.",
    "ur5": "Universal Robots",
}
PHISTAR = "{urn:phistar:urdf}"
GRAVITY = 9.81

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def robot_of(path: Path) -> etree._Element:
    """Root element of a file; entities and DTDs are not expanded."""
    return etree.parse(path, etree.XMLParser(resolve_entities=False, no_network=True)).getroot()


def floats(text: str) -> np.ndarray:
    """Numbers of an attribute."""
    return np.array([float(word) for word in text.split()])


def inertia_of(inertial: etree._Element) -> np.ndarray:
    """Inertia about the centre of mass, (3, 3)."""
    entry = {key: float(value) for key, value in inertial.find("inertia").attrib.items()}
    return np.array([[entry["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])


def moving_joints(robot: etree._Element) -> list[etree._Element]:
    """Joints of the tree that are not fixed."""
    return [joint for joint in robot.findall("joint") if joint.get("type") != "fixed"]


def test_every_robot_is_there() -> None:
    """The bundled robots are exactly those promised, and each names itself as its file does."""
    assert [path.stem for path in FILES] == list(SOURCES)
    assert [robot_of(path).get("name") for path in FILES] == list(SOURCES)


def test_files_are_small() -> None:
    """All bundled data together stay under 150 kB, well within the promised 1 MB."""
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 150_000


@each_file
def test_file_names_licence_and_source(path: Path) -> None:
    """A comment at the top names the licence, and the next one where the numbers come from."""
    licence, source = robot_of(path).xpath("preceding-sibling::comment()")
    assert licence.text.strip() == "SPDX-License-Identifier: BSD-3-Clause"
    assert SOURCES[path.stem] in " ".join(source.text.split())
    assert f"| `{path.stem}` |" in (DATA / "SOURCES.md").read_text(encoding="utf-8")


@each_file
def test_links_and_joints_make_one_tree(path: Path) -> None:
    """Names are unique, every joint joins known links, and one link alone has no parent."""
    robot = robot_of(path)
    links = [link.get("name") for link in robot.findall("link")]
    joints = [joint.get("name") for joint in robot.findall("joint")]
    children = [joint.find("child").get("link") for joint in robot.findall("joint")]
    assert len({*links, *joints}) == len(links) + len(joints)
    seen = set(links) - set(children)
    assert len(seen) == 1
    assert len(set(children)) == len(children)
    for joint in robot.findall("joint"):
        assert joint.find("parent").get("link") in seen, "a file lists parents first"
        seen.add(joint.find("child").get("link"))
    assert seen == set(links)


@each_file
def test_moving_links_have_sound_inertia(path: Path) -> None:
    """A moving link has mass, a positive-definite inertia and principal moments of a real body."""
    robot = robot_of(path)
    for joint in moving_joints(robot):
        name = joint.find("child").get("link")
        inertial = robot.find(f"link[@name='{name}']/inertial")
        assert inertial is not None, name
        assert float(inertial.find("mass").get("value")) > 0, name
    for inertial in robot.iterfind("link/inertial"):
        small, middle, large = np.linalg.eigvalsh(inertia_of(inertial))
        assert small > 0, inertial.getparent().get("name")
        assert small + middle > large, inertial.getparent().get("name")


@each_file
def test_limits_are_finite_and_ordered(path: Path) -> None:
    """Revolute and prismatic joints have finite limits in order; axes are unit vectors."""
    for joint in moving_joints(robot_of(path)):
        if joint.get("type") == "floating":
            continue
        axis = floats(joint.find("axis").get("xyz"))
        assert np.linalg.norm(axis) == 1, joint.get("name")
        if joint.get("type") == "continuous":
            continue
        limit = {key: float(value) for key, value in joint.find("limit").attrib.items()}
        assert set(limit) == {"lower", "upper", "effort", "velocity"}, joint.get("name")
        assert all(map(math.isfinite, limit.values())), joint.get("name")
        assert limit["lower"] < limit["upper"], joint.get("name")
        assert limit["effort"] >= 0, joint.get("name")
        assert limit["velocity"] > 0, joint.get("name")


@each_file
def test_shapes_are_primitive_and_coloured(path: Path) -> None:
    """There is something to draw: boxes, cylinders and spheres of positive size, each coloured."""
    robot = robot_of(path)
    colours = {material.get("name") for material in robot.findall("material")}
    shapes = robot.findall("link/visual/geometry/*")
    assert {shape.tag for shape in shapes} <= {"box", "cylinder", "sphere"}
    assert all((floats(" ".join(shape.attrib.values())) > 0).all() for shape in shapes)
    assert all(v.find("material").get("name") in colours for v in robot.iterfind("link/visual"))
    for joint in moving_joints(robot):
        name = joint.find("child").get("link")
        assert robot.find(f"link[@name='{name}']/visual") is not None, name


def test_second_finger_mimics_the_first() -> None:
    """The right finger repeats the left one's travel in the opposite direction."""
    robot = robot_of(DATA / "panda_hand.urdf")
    first, second = (robot.find(f"joint[@name='panda_finger_joint{k}']") for k in (1, 2))
    mimic = second.find("mimic")
    assert mimic.get("joint") == first.get("name")
    assert (float(mimic.get("multiplier")), float(mimic.get("offset"))) == (1, 0)
    axes = [floats(joint.find("axis").get("xyz")) for joint in (first, second)]
    np.testing.assert_array_equal(axes[0], -axes[1])


def test_arm_is_the_same_with_and_without_hand() -> None:
    """The two Panda files share the arm, element by element."""
    arm, whole = (robot_of(DATA / f"{name}.urdf") for name in ("panda", "panda_hand"))
    for element in [*arm.findall("link"), *arm.findall("joint")]:
        twin = whole.find(f"{element.tag}[@name='{element.get('name')}']")
        assert etree.tostring(twin, method="c14n") == etree.tostring(element, method="c14n")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("humanoid", make_humanoid.humanoid),
        ("humanoid_ankles", make_humanoid_ankles.humanoid_ankles),
        ("delta", make_delta.delta),
    ],
)
def test_file_is_what_the_program_writes(name: str, write: Callable[[], str]) -> None:
    """No file was edited by hand after its program in tools wrote it."""
    text = (DATA / f"{name}.urdf").read_text(encoding="utf-8")
    assert text == write(), f"run python -m tools.make_{name}"


def test_humanoid_has_the_body_mass() -> None:
    """At least 30 moving joints, 73 kg to nine digits, and segment shares that make a whole."""
    robot = robot_of(DATA / "humanoid.urdf")
    assert len(moving_joints(robot)) >= 30
    total = sum(float(mass.get("value")) for mass in robot.iterfind("link/inertial/mass"))
    assert total == pytest.approx(73, rel=1e-9)
    paired = {"upper_arm", "forearm", "hand", "thigh", "shank", "foot"}
    shares = {name: row.mass for name, row in make_humanoid.TABLE.items()}
    whole = sum(share * (2 if name in paired else 1) for name, share in shares.items())
    assert whole == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(("name", "links"), [("humanoid", 15), ("humanoid_ankles", 19)])
def test_humanoid_is_symmetric(name: str, links: int) -> None:
    """Each right link and joint is the left one reflected in the x-z plane."""
    robot = robot_of(DATA / f"{name}.urdf")
    flip = np.array([1, -1, 1])

    def twins(tag: str) -> list[tuple[etree._Element, etree._Element]]:
        left = robot.xpath(f"{tag}[starts-with(@name, 'left_')]")
        names = [element.get("name").replace("left_", "right_", 1) for element in left]
        return [(e, robot.find(f"{tag}[@name='{n}']")) for e, n in zip(left, names, strict=True)]

    def origin(element: etree._Element) -> np.ndarray:
        found = element.find("origin")
        return np.zeros(3) if found is None else floats(found.get("xyz"))

    assert len(twins("link")) == len(robot.xpath("link[starts-with(@name, 'right_')]")) == links
    for left, right in twins("link"):
        if left.find("inertial") is None:
            continue
        left, right = left.find("inertial"), right.find("inertial")
        assert left.find("mass").get("value") == right.find("mass").get("value")
        np.testing.assert_array_equal(origin(left) * flip, origin(right))
        mirrored = inertia_of(left) * np.outer(flip, flip)
        np.testing.assert_array_equal(mirrored, inertia_of(right))
    for left, right in twins("joint"):
        np.testing.assert_array_equal(origin(left) * flip, origin(right))
        if left.get("type") == "fixed":
            continue
        # An axis is an axial vector: reflection turns it the other way round.
        axes = [floats(joint.find("axis").get("xyz")) for joint in (left, right)]
        np.testing.assert_array_equal(-axes[0] * flip, axes[1])
        assert dict(left.find("limit").attrib) == dict(right.find("limit").attrib)


def pinocchio_model(name: str, floating: bool = False) -> tuple[object, object, object]:
    """Pinocchio itself, and a bundled robot as it reads it with room for results."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is the engine of this test")
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    model = pin.buildModelFromUrdf(str(DATA / f"{name}.urdf"), *root)
    return pin, model, model.createData()


def test_humanoid_segments_are_the_published_ones() -> None:
    """At q = 0, balls and segment together have the mass, centre and inertia of the table."""
    pin, model, data = pinocchio_model("humanoid", floating=True)
    pin.forwardKinematics(model, data, pin.neutral(model))
    # De Leva's thigh: 14.16 % of 73 kg, 0.4222 m from hip to knee, centre at 40.95 %, radii of
    # gyration 32.9, 32.9 and 14.9 % of the length.
    ids = [model.getJointId(f"left_hip_{name}") for name in ("flexion", "abduction", "rotation")]
    base = data.oMi[ids[0]]
    body = sum((model.inertias[i] for i in ids[1:]), model.inertias[ids[0]])
    assert all((base.inverse() * data.oMi[i]).isIdentity(1e-15) for i in ids)
    assert body.mass == pytest.approx(0.1416 * 73, rel=1e-9)
    np.testing.assert_allclose(body.lever, [0, 0, -0.4095 * 0.4222], rtol=1e-9)
    moments = body.mass * (np.array([0.329, 0.329, 0.149]) * 0.4222) ** 2
    np.testing.assert_allclose(body.inertia, np.diag(moments), atol=1e-9 * moments.max())


def test_humanoid_moves_symmetrically() -> None:
    """A pose and its mirror image have the same mass matrix, sides exchanged and signs flipped."""
    pin, model, _ = pinocchio_model("humanoid")
    names = list(model.names)[1:]
    swap = {"left_": "right_", "right_": "left_"}
    order, sign = [], []
    for name in names:
        side = next((s for s in swap if name.startswith(s)), "")
        order.append(names.index(name.replace(side, swap[side], 1) if side else name))
        sign.append(-1 if not side and not name.endswith("flexion") else 1)
    rng = np.random.default_rng(1)
    q = rng.uniform(model.lowerPositionLimit, model.upperPositionLimit)
    sign = np.array(sign)

    def mass_matrix(configuration: np.ndarray) -> np.ndarray:
        upper = np.triu(pin.crba(model, model.createData(), configuration))
        return upper + np.triu(upper, 1).T

    mirrored = mass_matrix(sign * q[order])
    expected = np.outer(sign, sign) * mass_matrix(q)[np.ix_(order, order)]
    np.testing.assert_allclose(mirrored, expected, atol=1e-12 * np.abs(expected).max())


def test_humanoid_stands_on_its_soles() -> None:
    """Upright, the soles are level and the centre of mass is over the feet, in the lower belly."""
    pin, model, data = pinocchio_model("humanoid", floating=True)
    q = pin.neutral(model)
    pin.framesForwardKinematics(model, data, q)
    left, right = (data.oMf[model.getFrameId(f"{side}_sole")] for side in ("left", "right"))
    np.testing.assert_allclose(left.translation * [1, -1, 1], right.translation, atol=1e-15)
    forward, sideways, up = pin.centerOfMass(model, data, q)
    assert abs(sideways) < 1e-12
    assert -0.06 < forward - left.translation[0] < 0.19  # heel and toes
    assert 0 < up < 0.1457  # from the hips to the navel


def as_angles(pin: object, model: object, angles: np.ndarray) -> np.ndarray:
    """Pinocchio's configuration for one number a joint: a continuous joint is (cos, sin) there."""
    return pin.integrate(model, pin.neutral(model), np.asarray(angles, dtype=float))


@pytest.mark.parametrize("angles", [(0.0, 0.0), (0.7, -1.9), (-2.4, 2.9)])
def test_double_pendulum_is_the_textbook_one(angles: tuple[float, float]) -> None:
    """Mass matrix and gravity torque of two rods in closed form."""
    pin, model, data = pinocchio_model("double_pendulum")
    m1, l1, m2, l2, r = 1.2, 0.5, 0.6, 0.4, 0.02
    i1, i2 = (m * (3 * r**2 + length**2) / 12 for m, length in ((m1, l1), (m2, l2)))
    c1, c2 = l1 / 2, l2 / 2
    q1, q2 = angles
    far = i2 + m2 * c2**2
    cross = far + m2 * l1 * c2 * math.cos(q2)
    near = i1 + m1 * c1**2 + far + m2 * (l1**2 + 2 * l1 * c2 * math.cos(q2))
    q = as_angles(pin, model, np.array(angles))
    mass = np.triu(pin.crba(model, data, q))
    np.testing.assert_allclose(mass, [[near, cross], [0, far]], rtol=1e-13)
    elbow = m2 * GRAVITY * c2 * math.sin(q1 + q2)
    shoulder = (m1 * c1 + m2 * l1) * GRAVITY * math.sin(q1) + elbow
    gravity = pin.computeGeneralizedGravity(model, data, q)
    np.testing.assert_allclose(gravity, [shoulder, elbow], atol=1e-13 * m1 * GRAVITY)


@pytest.mark.parametrize("angle", [0.0, 0.3, 2.5])
def test_cartpole_is_the_textbook_one(angle: float) -> None:
    """Mass matrix, and the bias force of a moving pole, in closed form."""
    pin, model, data = pinocchio_model("cartpole")
    cart, pole, half, speed = 1.0, 0.1, 0.5, 1.3
    q = as_angles(pin, model, np.array([0.4, angle]))
    cross = pole * half * math.cos(angle)
    mass = np.triu(pin.crba(model, data, q))
    expected = [[cart + pole, cross], [0, 4 / 3 * pole * half**2]]
    np.testing.assert_allclose(mass, expected, rtol=1e-13)
    bias = pin.nonLinearEffects(model, data, q, np.array([0.2, speed]))
    lever = pole * half * math.sin(angle)
    np.testing.assert_allclose(bias, [-lever * speed**2, -lever * GRAVITY], atol=1e-13)


def loop_ends(pin: object, model: object, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """World positions of the loop's two halves as the file places them."""
    loop = robot_of(DATA / "four_bar.urdf").find(f"{PHISTAR}loop")
    return ends_of(pin, model, loop, as_angles(pin, model, angles))


def ends_of(
    pin: object, model: object, loop: etree._Element, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """World positions of the two halves of a loop."""
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    ends = []
    for half in ("predecessor", "successor"):
        end = loop.find(f"{PHISTAR}{half}")
        frame = data.oMf[model.getFrameId(end.get("link"))]
        ends.append(frame.act(floats(end.find("origin").get("xyz"))))
    return ends[0], ends[1]


def test_four_bar_is_closed_at_zero() -> None:
    """At q = 0 coupler and rocker meet, and the closing axis is normal to the plane of the bars."""
    pin, model, _ = pinocchio_model("four_bar")
    first, second = loop_ends(pin, model, np.zeros(3))
    np.testing.assert_allclose(first, [0.4, 0, 0.4], atol=1e-15)
    np.testing.assert_allclose(second, first, atol=1e-15)
    loop = robot_of(DATA / "four_bar.urdf").find(f"{PHISTAR}loop")
    assert (loop.get("name"), loop.get("type")) == ("coupler_closure", "revolute")
    assert loop.find("axis").get("xyz") == "0 1 0"


def test_four_bar_crank_turns_fully() -> None:
    """The loop closes for every crank angle, and the rocker stays within its limits."""
    pin, model, _ = pinocchio_model("four_bar")
    names = list(model.names)[1:]
    crank, coupler, rocker = (names.index(f"{n}_joint") for n in ("crank", "coupler", "rocker"))
    angles, swing = np.zeros(3), []
    for angle in np.linspace(0, 2 * np.pi, 61):
        angles[crank] = angle
        for _ in range(8):  # Newton on the gap, with differences for the Jacobian
            gap = np.subtract(*loop_ends(pin, model, angles))[[0, 2]]
            columns = []
            for joint in (coupler, rocker):
                moved = angles + 1e-7 * np.eye(3)[joint]
                columns.append((np.subtract(*loop_ends(pin, model, moved))[[0, 2]] - gap) / 1e-7)
            angles[[coupler, rocker]] -= np.linalg.solve(np.transpose(columns), gap)
        assert np.abs(np.subtract(*loop_ends(pin, model, angles))).max() < 1e-12
        swing.append(angles[rocker])
    limit = robot_of(DATA / "four_bar.urdf").find("joint[@name='rocker_joint']/limit")
    assert float(limit.get("lower")) < min(swing) < max(swing) < float(limit.get("upper"))
    # Dead points: crank and coupler in line, 0.6 and 0.4 m from pivot to pin (law of cosines).
    stroke = math.acos((0.74 - 0.36) / 0.7) - math.acos((0.74 - 0.16) / 0.7)
    assert max(swing) - min(swing) == pytest.approx(stroke, rel=1e-2)


@pytest.mark.parametrize(("name", "count"), [("four_bar", 1), ("delta", 6), ("humanoid_ankles", 4)])
def test_loops_are_closed_at_zero(name: str, count: int) -> None:
    """Pinocchio puts both halves of every loop at one place, within 1e-12 m."""
    pin, model, _ = pinocchio_model(name)
    loops = robot_of(DATA / f"{name}.urdf").findall(f"{PHISTAR}loop")
    assert len(loops) == count
    for loop in loops:
        first, second = ends_of(pin, model, loop, pin.neutral(model))
        np.testing.assert_allclose(first, second, atol=1e-12, err_msg=loop.get("name"))


def test_ankles_weigh_what_the_file_says() -> None:
    """The body of 73 kg and a linkage of 0.44 kg for each leg."""
    robot = robot_of(DATA / "humanoid_ankles.urdf")
    total = sum(float(mass.get("value")) for mass in robot.iterfind("link/inertial/mass"))
    assert total == pytest.approx(73.88, rel=1e-9)

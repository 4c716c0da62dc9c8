# SPDX-License-Identifier: BSD-3-Clause
"""Export to URDF: our reader makes the same model of it, other readers the same robot."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

from phistar import robots
from phistar.errors import ArgumentError, PhistarError
from phistar.loaders import load_model
from phistar.loaders.robot_source import Source
from phistar.loaders.urdf.dialect import NAMESPACE
from phistar.loaders.urdf.urdf_reader import read_urdf
from phistar.loaders.urdf.urdf_writer import export_urdf
from phistar.model import (
    JOINT_KINDS,
    Coupling,
    Mimic,
    Model,
    ModelBuilder,
    Shape,
    generators,
    make_pose,
)
from phistar.model.configuration import random_configuration
from phistar.model.numpy_kinematics import jacobian, link_poses
from phistar.model.random import TOPOLOGIES, random_model
from phistar.spatial import inertia_matrix, inertia_parameters
from tests.helpers import SHARED, needs_shared

EVERYTHING = {
    "fixed": 0.3,
    "mimic": 0.4,
    "massless": 0.5,
    "armature": 0.5,
    "anchors": 0.5,
    "frames": 3,
    "loops": 5,
    "configurations": 2,
}
STANDARD_KINDS = ("revolute", "prismatic")


def read(text: str) -> Model:
    """The model of a document, of which the reader must have ignored nothing."""
    model, report = read_urdf(Source(text.encode(), "export.urdf"))
    assert report.ignored == []
    return model


def assert_returns(model: Model) -> None:
    """The model equals what its export is read as, and so do what it is made of."""
    text = export_urdf(model)
    again = read(text)
    assert again == model
    assert export_urdf(again) == text


def shared_files() -> list[Path]:
    """A few files of every kind among the reference robots."""
    return sorted((SHARED / "robots").rglob("*.urdf"))[::20] if SHARED.is_dir() else []


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("seed", range(4))
def test_random_models_return_bit_for_bit(topology: str, seed: int) -> None:
    """Every joint kind, mimic, weld, spring, loop, frame and order survives in every topology."""
    rng = np.random.default_rng(seed)
    model = random_model(
        rng,
        14,
        topology=topology,
        floating_base=topology != "forest" and seed % 2 == 0,
        gravity=rng.normal(size=3) if seed % 2 else (0.0, 0.0, -9.81),
        **EVERYTHING,
    )
    if seed > 1:
        order = rng.permutation(len(model.joint_names))
        model = model.reorder([model.joint_names[k] for k in order])
    assert_returns(model)


@pytest.mark.parametrize("kind", JOINT_KINDS)
def test_each_kind_returns(kind: str) -> None:
    """A robot of one joint kind alone comes back, limits, drives and anchors included."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        assert_returns(random_model(rng, 3, kinds=[kind], armature=0.7, anchors=0.7))


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("name", robots.names())
def test_bundled_robots_return(name: str, floating_base: bool) -> None:
    """The bundled robots come back bit for bit, on a fixed and on a free base."""
    model, _ = load_model(robots.path(name), floating_base=floating_base)
    assert_returns(model)


@needs_shared
@pytest.mark.parametrize("path", shared_files(), ids=lambda path: path.stem)
def test_files_of_others_return(path: Path) -> None:
    """Files from the wild come back bit for bit: inertias turned, names and meshes of any kind."""
    model, _ = load_model(path)
    assert_returns(model)


@pytest.mark.parametrize(
    "model", [generators.chain(30, axes="xyz"), generators.tree(3, 3)], ids=repr
)
def test_generated_robots_return(model: Model) -> None:
    """Chains and trees made by rule come back."""
    assert_returns(model)


def one_link(**changes: object) -> ModelBuilder:
    """A builder with a pendulum: two links and a revolute joint."""
    builder = ModelBuilder("pendulum")
    builder.link("base")
    builder.link("bob", 1.0, (0, 0, -1), (0.1, 0.1, 0.1))
    builder.joint("hinge", "revolute", "base", "bob", **changes)
    return builder


SHAPES = [
    Shape("box", (1, 2, 3)),
    Shape("sphere", (0.1,), name="ball", friction=0.3),
    Shape("cylinder", (0.1, 0.2), make_pose((1, 2, 3), (0.1, 0.2, 0.3)), (0.1, 0.2, 0.3, 1.0)),
    Shape("capsule", (0.1, 0.2), rgba=(1.0, 0.0, 0.0, 0.5)),
    Shape("ellipsoid", (0.1, 0.2, 0.3)),
    Shape("plane"),
    Shape("mesh", mesh="package://a & b/c d.stl"),
    Shape("mesh", (-1.0, 1.0, 0.001), mesh="mirrored.dae", name="m"),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.kind)
def test_shapes_return(shape: Shape) -> None:
    """Every shape comes back as visual and as collision, with colour, name and pose."""
    builder = one_link()
    builder.link("ornament", visuals=[shape, *SHAPES], collisions=[*SHAPES, shape])
    builder.joint("glue", "fixed", "bob", "ornament")
    assert_returns(builder.build())


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"lower": -1.0, "upper": 2.0, "velocity": 3.0, "effort": 4.0},
        {"lower": -1.0},
        {"upper": 0.1 + 0.2, "effort": math.pi},
        {"lower": -1e-300, "upper": 1e300},
    ],
)
@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "helical"])
def test_limits_return(kind: str, limits: dict[str, float]) -> None:
    """Finite, infinite, one-sided and awkward limits come back on every kind with one axis."""
    builder = ModelBuilder("limits")
    builder.link("a")
    builder.link("b", 1.0, inertia=(1, 1, 1))
    builder.joint("j", kind, "a", "b", **limits)
    assert_returns(builder.build())


@pytest.mark.parametrize("name", ["a b", " padded ", "tab\tand\nline", "<&>\"'", "λ·θ̈", "a/b:c"])
def test_awkward_names_return(name: str) -> None:
    """Names with blanks, quotes, markup and letters of other alphabets come back as they are."""
    builder = ModelBuilder(f"robot {name}")
    builder.link("root")
    for k in range(3):
        builder.link(f"link {name}{k}", 1.0, inertia=(1, 1, 1))
        builder.joint(f"{name}{k}", "revolute", "root", f"link {name}{k}")
    builder.frame(f"frame {name}", f"link {name}0", xyz=(1, 2, 3))
    builder.configurations[name] = {f"{name}0": 0.5}
    model = builder.build()
    assert_returns(model)
    assert_returns(model.reorder(model.joint_names[::-1]))


def test_names_that_xml_cannot_hold_are_refused() -> None:
    """A control character in a name is an error that shows it, not a broken file."""
    builder = ModelBuilder("robot")
    builder.link("a\x00b")
    with pytest.raises(ArgumentError, match="x00"):
        export_urdf(builder.build())


def test_loops_and_couplings_return() -> None:
    """Loops switched off, ties without a source and frames on the world come back."""
    builder = one_link()
    builder.loop("to_world", "spherical", "bob", "world", active=False, axis=(1, 1, 0))
    builder.couple(Coupling("held", "hinge", "", (0.25,), (0.5, 0.0), active=False))
    builder.couple(Coupling("curve", "hinge", "hinge", (0, 1, 0.1)))
    assert_returns(builder.build())


def test_virtual_links_and_mimics_return() -> None:
    """Links that only realise a joint stay out of the names; chains of mimics keep their laws."""
    builder = one_link()
    builder.link("between", virtual=True)
    builder.link("tip", 1.0, inertia=(1, 1, 1))
    builder.joint("j1", "revolute", "bob", "between", mimic=Mimic("j2", -2.0, 0.1))
    builder.joint("j2", "prismatic", "between", "tip", mimic=Mimic("hinge", 0.3))
    model = builder.build()
    assert model.link_names == ("base", "bob", "tip")
    assert_returns(model)


def test_export_of_a_change_differs() -> None:
    """The round trip has teeth: any change of the model changes the file and what it is read as."""
    model = one_link(damping=0.1).build()
    text = export_urdf(model)
    for changed in (
        one_link(damping=0.1 + 1e-16).build(),
        one_link(damping=0.1, armature=1e-9).build(),
        one_link(damping=0.1, upper=1e300).build(),
        one_link(damping=0.1, xyz=(5e-324, 0, 0)).build(),
        model.with_gravity((0, 0, -9.8)),
        replace(model, name="other"),
    ):
        assert export_urdf(changed) != text
        assert read(export_urdf(changed)) == changed != model


def test_plain_robots_give_plain_urdf() -> None:
    """A robot that standard URDF can describe is described without our namespace."""
    builder = one_link(
        lower=-1.0, upper=1.0, velocity=2.0, effort=3.0, damping=0.1, rpy=(0.5, 0, 0)
    )
    text = export_urdf(builder.build())
    assert NAMESPACE not in text
    assert {child.tag for child in etree.fromstring(text)} == {"link", "joint"}


def test_other_readers_refuse_what_they_would_misread() -> None:
    """A joint whose meaning hangs on our elements has a type that is not standard."""
    for change in ({"child_pose": make_pose((0, 0, 1))}, {"reference": 0.1}):
        text = export_urdf(one_link(**change).build())
        assert etree.fromstring(text).find("joint").get("type") == "phistar:revolute"


def mass_matrix(model: Model, q: np.ndarray) -> np.ndarray:
    """Σ JᵀIJ over all links: the mass matrix straight from the definition of kinetic energy."""
    total = np.zeros((model.nv, model.nv))
    for link in model.links:
        spatial = inertia_matrix(inertia_parameters(link.mass, link.com, link.inertia))
        j = jacobian(model, q, link.name, "local")
        total += j.T @ spatial @ j
    return total


def pinocchio_configuration(pin: object, other: object, model: Model, q: np.ndarray) -> np.ndarray:
    """Coordinates of Pinocchio's model; only for joints with one coordinate in both."""
    result = np.empty(other.nq)
    for name in model.joint_names:
        result[other.joints[other.getJointId(name)].idx_q] = q[model.joints[name].q_slice][0]
    return result


@pytest.mark.parametrize("seed", range(5))
def test_pinocchio_reads_the_same_robot(seed: int) -> None:
    """M and the poses of all links agree with Pinocchio's reading of the export, to 1e-12."""
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(seed)
    model = random_model(rng, 8, kinds=STANDARD_KINDS, fixed=0.4)
    other = pin.buildModelFromXML(export_urdf(model))
    data = other.createData()
    q = random_configuration(model, rng)
    theirs = pinocchio_configuration(pin, other, model, q)
    mass = pin.crba(other, data, theirs)
    mass = np.triu(mass) + np.triu(mass, 1).T
    places = [other.joints[other.getJointId(name)].idx_v for name in model.joint_names]
    expected = mass_matrix(model, q)
    np.testing.assert_allclose(mass[np.ix_(places, places)], expected, atol=1e-12)
    pin.framesForwardKinematics(other, data, theirs)
    for name, pose in link_poses(model, q).items():
        frame = data.oMf[other.getFrameId(name, pin.FrameType.BODY)]
        np.testing.assert_allclose(frame.homogeneous, pose, atol=1e-12)


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("name", robots.names())
def test_pinocchio_reads_bundled_robots_alike(name: str, floating_base: bool) -> None:
    """Pinocchio makes the same M and poses of our export as of the bundled file, exactly."""
    pin = pytest.importorskip("pinocchio")
    model, _ = load_model(robots.path(name), floating_base=floating_base)
    again = pin.buildModelFromXML(export_urdf(model))
    base = [pin.JointModelFreeFlyer()] if floating_base else []
    first = pin.buildModelFromUrdf(str(robots.path(name)), *base)
    assert list(again.names) == list(first.names)
    rng = np.random.default_rng(1)
    q = pin.integrate(first, pin.neutral(first), rng.uniform(-1, 1, first.nv))
    results = []
    for candidate in (first, again):
        data = candidate.createData()
        pin.crba(candidate, data, q)
        pin.framesForwardKinematics(candidate, data, q)
        links = [candidate.getFrameId(link, pin.FrameType.BODY) for link in model.link_names]
        results.append((np.triu(data.M), [data.oMf[link].homogeneous for link in links]))
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", robots.names())
def test_mujoco_reads_bundled_robots(name: str) -> None:
    """MuJoCo compiles the export of every bundled robot, with all its joints and moving mass."""
    mujoco = pytest.importorskip("mujoco")
    model, _ = load_model(robots.path(name), mimic="independent")
    theirs = mujoco.MjModel.from_xml_string(export_urdf(model))
    assert theirs.nv == model.nv
    moving = sum(body.inertia[0] for body in model.bodies)
    assert theirs.body_subtreemass[0] == pytest.approx(moving, rel=1e-12)


def test_errors_of_a_spoilt_export_are_ours() -> None:
    """Without one of its attributes an export is still a robot or gets an error of ours."""
    model = random_model(np.random.default_rng(3), 6, **EVERYTHING)
    root = etree.fromstring(export_urdf(model))
    elements = [element for element in root.iter() if element.attrib]
    chosen = elements[:: max(1, len(elements) // 60)]
    refused = 0
    for element in chosen:
        key = sorted(element.attrib)[0]
        value = element.attrib.pop(key)
        try:
            read_urdf(Source(etree.tostring(root), "spoilt.urdf"))
        except PhistarError:
            refused += 1
        element.set(key, value)
    assert 0 < refused < len(chosen)


@pytest.mark.parametrize(("name", "words"), [("", "without a name"), ("n" * 1001, "1001 charac")])
@pytest.mark.parametrize("part", ["robot", "link", "joint", "frame"])
def test_names_that_would_not_return_are_refused(part: str, name: str, words: str) -> None:
    """Empty names and those beyond the reader's limit; a thousand characters still return."""
    names = {each: each for each in ("robot", "link", "joint", "frame")}

    def named(text: str) -> Model:
        own = {**names, part: text}
        builder = ModelBuilder(own["robot"])
        builder.link("base")
        builder.link(own["link"], 1.0, inertia=(1, 1, 1))
        builder.joint(own["joint"], "continuous", "base", own["link"])
        builder.frame(own["frame"], own["link"])
        return builder.build()

    assert_returns(named("n" * 1000))
    if name or part in ("robot", "frame"):
        with pytest.raises(ArgumentError, match=words):
            export_urdf(named(name))

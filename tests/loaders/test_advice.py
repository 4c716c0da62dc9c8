# SPDX-License-Identifier: BSD-3-Clause
"""Notes on a robot: mirror images, units, and inertias that no body of that size has."""

import math

import numpy as np
import pytest

from phistar.loaders.advice import (
    advice,
    inertia_notes,
    length_notes,
    mass_notes,
    mirror_notes,
)
from phistar.model import Model, ModelBuilder, Shape
from phistar.spatial import cylinder_inertia


def pair(left: str, right: str, masses: tuple[float, float]) -> Model:
    """A robot of two links beside each other."""
    builder = ModelBuilder("pair")
    builder.link("base")
    for name, mass in zip((left, right), masses, strict=True):
        builder.link(name, mass, inertia=(mass, mass, mass), where=f"file:{len(builder.links)}")
        builder.joint(f"to_{name}", "revolute", "base", name)
    return builder.build()


def body(mass: float = 1.0, size: float = 0.1, **link: object) -> Model:
    """A robot of one moving ball with the given mass and radius."""
    builder = ModelBuilder("body")
    builder.link("base")
    shapes = (Shape("sphere", (size,)),)
    solid = {"inertia": (0.4 * mass * size**2,) * 3, "visuals": shapes, "where": "f:7"} | link
    builder.link("ball", mass, **solid)
    builder.joint("hinge", "revolute", "base", "ball")
    return builder.build()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("left_hip", "right_hip"),
        ("LeftHip", "RightHip"),
        ("hip_left", "hip_right"),
        ("l_hip", "r_hip"),
        ("hip_L", "hip_R"),
        ("hip.l", "hip.r"),
        ("LHipYaw", "RHipYaw"),
        ("FL_thigh", "FR_thigh"),
        ("RL_thigh", "RR_thigh"),
        ("lf_thigh", "rf_thigh"),
        ("panda_leftfinger", "panda_rightfinger"),
    ],
)
def test_mirror_masses_are_compared(left: str, right: str) -> None:
    """Names that differ in left and right are twins: 2 % apart is told, 0.5 % is not."""
    (note,) = mirror_notes(pair(left, right, (1.0, 1.02)))
    assert (note.severity, note.code, note.where) == ("note", "mirror-mass", "file:1")
    assert f'"{left}"' in note.what
    assert f'"{right}"' in note.what
    assert mirror_notes(pair(left, right, (1.0, 1.005))) == []


@pytest.mark.parametrize(("one", "other"), [("leg", "reg"), ("link1", "rink1"), ("all", "arr")])
def test_letters_inside_words_are_no_sides(one: str, other: str) -> None:
    """An l inside a word does not mean left."""
    assert mirror_notes(pair(one, other, (1.0, 2.0))) == []


def test_left_without_right_is_alone() -> None:
    """A left link without a twin is no reason for a note."""
    assert mirror_notes(pair("left_hip", "tail", (1.0, 2.0))) == []


def test_massless_twin_is_told() -> None:
    """A twin whose mass was forgotten is 100 % apart."""
    (note,) = mirror_notes(pair("left_hip", "right_hip", (1.0, 0.0)))
    assert "100 %" in note.what


@pytest.mark.parametrize(("mass", "count"), [(999.0, 0), (1001.0, 1), (2e9, 0)])
def test_heavy_links_are_asked_about(mass: float, count: int) -> None:
    """Above a tonne: grams? Absurd masses are a warning of the model itself, not said twice."""
    notes = mass_notes(body(mass))
    assert len(notes) == count
    assert all("grams" in note.cure for note in notes)


def test_long_joint_offset_is_asked_about() -> None:
    """333 m from link to link: millimetres?"""
    builder = ModelBuilder("long")
    builder.link("base")
    builder.link("tip", 1.0, inertia=(1.0, 1.0, 1.0))
    builder.joint("mast", "revolute", "base", "tip", xyz=(0, 0, 333.0), where="f:3")
    (note,) = length_notes(builder.build())
    assert (note.code, note.where) == ("length-unit", "f:3")
    assert '"mast"' in note.what
    assert "333 m" in note.what
    assert "millimetres" in note.cure


@pytest.mark.parametrize(
    "link", [{"com": (0.0, 120.0, 0.0)}, {"collisions": (Shape("box", (300.0, 1.0, 1.0)),)}]
)
def test_far_masses_and_big_shapes_are_asked_about(link: dict[str, object]) -> None:
    """Centres of mass and shapes are lengths too."""
    (note,) = length_notes(body(**link))
    assert '"ball"' in note.what


@pytest.mark.parametrize("exponent", range(-4, 4))
def test_solid_bodies_are_never_doubted(exponent: int) -> None:
    """A solid cylinder drawn as it is stays below the bound at every scale, whatever its shape."""
    rng = np.random.default_rng(exponent + 10)
    for _ in range(20):
        radius, length = rng.uniform(0.01, 1.0, 2) * 10.0**exponent
        mass = rng.uniform(0.1, 10.0)
        model = body(
            mass,
            inertia=cylinder_inertia(mass, radius, length),
            visuals=(Shape("cylinder", (radius, length)),),
        )
        assert inertia_notes(model) == []


def test_inertia_in_square_millimetres_is_found() -> None:
    """kg mm^2 read as kg m^2 is a million times too much."""
    (note,) = inertia_notes(body(inertia=(4e3, 4e3, 4e3)))
    assert (note.code, note.where) == ("inertia-size", "f:7")
    assert "4e+03 kg m^2" in note.what
    ratio = 4e3 / (1.0 * 0.1**2)
    assert f"{ratio:.0f} times" in note.what


def test_joints_that_a_link_carries_count_as_its_size() -> None:
    """A long bar drawn as a small ball may have the inertia of a long bar."""
    builder = ModelBuilder("bar")
    inertia = (1.0 / 3.0, 1.0 / 3.0, 0.01)
    builder.link("bar", 1.0, inertia=inertia, visuals=(Shape("sphere", (0.01,)),))
    builder.link("tip", 1.0, inertia=(1e-3, 1e-3, 1e-3))
    builder.joint("end", "revolute", "bar", "tip", xyz=(0, 0, 1.0))
    assert inertia_notes(builder.build()) == []


def test_a_mesh_hides_the_size() -> None:
    """Beside a mesh, which is not opened, a small shape says nothing about the link's size."""
    shapes = (Shape("sphere", (0.01,)), Shape("mesh", mesh="bar.stl"))
    assert inertia_notes(body(inertia=(0.1, 0.1, 0.01), visuals=shapes[:1])) != []
    assert inertia_notes(body(inertia=(0.1, 0.1, 0.01), visuals=shapes)) == []


def test_links_without_shapes_are_measured_by_the_robot() -> None:
    """Where nothing is drawn, the whole robot bounds each of its links."""
    builder = ModelBuilder("plain")
    builder.link("base")
    builder.link("a", 1.0, inertia=(5.0, 5.0, 5.0))
    builder.link("b", 1.0, inertia=(200.0, 200.0, 200.0))
    builder.joint("ja", "revolute", "base", "a", xyz=(0, 0, 1.0))
    builder.joint("jb", "revolute", "a", "b", xyz=(0, 0, 1.0))
    (note,) = inertia_notes(builder.build())
    assert '"b"' in note.what
    assert "add up to 2 m" in note.what


def test_advice_is_all_of_them() -> None:
    """A robot with every flaw gets a note of each kind."""
    builder = ModelBuilder("flawed")
    builder.link("base")
    ball = (Shape("sphere", (0.1,)),)
    builder.link("left", 2000.0, inertia=(1e9,) * 3, visuals=ball)
    builder.link("right", 1.0, com=(0.0, 0.0, math.tau * 100.0), inertia=(1e-3,) * 3)
    builder.joint("a", "revolute", "base", "left")
    builder.joint("b", "revolute", "base", "right")
    notes = advice(builder.build())
    codes = {note.code for note in notes}
    assert codes == {"mirror-mass", "mass-unit", "length-unit", "inertia-size"}
    assert {note.severity for note in notes} == {"note"}

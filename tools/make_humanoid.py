# SPDX-License-Identifier: BSD-3-Clause
"""Write the bundled humanoid from a table of human body segments.

In: the segment table, joint ranges and a few widths below. Out: the text of humanoid.urdf.
Run ``python -m tools.make_humanoid`` after a change; a test compares the file with this program.

The pose at q = 0 is the anatomical position: upright, arms hanging, palms to the front; x points
forward, y left, z up, and the axes of all links are parallel. A joint of two or three axes is a
chain of hinges with small balls between them: flexion comes first, then the sideways movement,
then rotation about the long axis. A ball's mass is taken from the segment it moves with, such
that at q = 0 ball and segment together have exactly the mass, centre and inertia of the table.
"""

from dataclasses import dataclass
from math import radians
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

OUTPUT = Path(__file__).resolve().parent.parent / "src/phistar/robots/data/humanoid.urdf"

BODY_MASS = 73.0
BALL_SHARE = 0.02  # of its segment's mass


@dataclass(frozen=True)
class Segment:
    """A row of the table.

    Attributes:
        mass: Share of the body mass.
        length: Distance of the end points [m].
        center: Distance of the centre of mass from the proximal (upper) end, share of the length.
        gyration: Radii of gyration about the sagittal (front to back), transverse (left to right)
            and longitudinal axis through the centre of mass, shares of the length.
    """

    mass: float
    length: float
    center: float
    gyration: tuple[float, float, float]


# De Leva, "Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters", J. of Biomechanics
# 29(9), 1996, table 4, men (mean mass 73.0 kg, stature 1.741 m). End points as named there.
TABLE = {
    "head": Segment(0.0694, 0.2429, 0.5002, (0.303, 0.315, 0.261)),  # VERT-CERV
    "thorax": Segment(0.1596, 0.2421, 0.5066, (0.505, 0.320, 0.465)),  # CERV-XYPH
    "abdomen": Segment(0.1633, 0.2155, 0.4502, (0.482, 0.383, 0.468)),  # XYPH-OMPH
    "pelvis": Segment(0.1117, 0.1457, 0.6115, (0.615, 0.551, 0.587)),  # OMPH-MIDH
    "upper_arm": Segment(0.0271, 0.2817, 0.5772, (0.285, 0.269, 0.158)),  # SJC-EJC
    "forearm": Segment(0.0162, 0.2689, 0.4574, (0.276, 0.265, 0.121)),  # EJC-WJC
    "hand": Segment(0.0061, 0.0862, 0.7900, (0.628, 0.513, 0.401)),  # WJC-MET3
    "thigh": Segment(0.1416, 0.4222, 0.4095, (0.329, 0.329, 0.149)),  # HJC-KJC
    "shank": Segment(0.0433, 0.4403, 0.4395, (0.251, 0.246, 0.102)),  # KJC-AJC
    "foot": Segment(0.0137, 0.2581, 0.4415, (0.257, 0.245, 0.124)),  # HEEL-TTIP
}
SHOULDERS_OVER_HIPS = 0.5155  # MIDS-MIDH of the same table

# Ours, since the table has lengths only: half distances of the joint centres, the height of the
# ankle (3.9 % of the stature) and its distance from the heel as a share of the foot.
SHOULDER_Y = 0.19
HIP_Y = 0.09
ANKLE_HEIGHT = 0.068
HEEL_SHARE = 0.25


@dataclass(frozen=True)
class Hinge:
    """One axis of a joint.

    Attributes:
        movement: Last part of the joint's name; says what a positive angle does.
        axis: Axis on the left side or in the middle; the right side has its mirror image.
        range: Smallest and largest angle [degrees].
        effort: Largest torque [N m].
        velocity: Largest speed [rad/s].
    """

    movement: str
    axis: tuple[int, int, int]
    range: tuple[float, float]
    effort: float
    velocity: float


@dataclass(frozen=True)
class Part:
    """A segment with the joint that carries it.

    Attributes:
        name: Name of the segment in the table.
        parent: Segment to which it is hinged.
        joint: First part of its joints' names.
        place: Joint centre in the parent's frame [m], on the left side or in the middle.
        up: Whether the segment extends upward from its joint.
        ball: Radius of the balls between its hinges [m].
        hinges: From the parent outward.
    """

    name: str
    parent: str
    joint: str
    place: tuple[float, float, float]
    up: bool
    ball: float
    hinges: tuple[Hinge, ...]


X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
MINUS_X, MINUS_Y, MINUS_Z = (-1, 0, 0), (0, -1, 0), (0, 0, -1)

# Ranges: normal values of the American Academy of Orthopaedic Surgeons, "Joint motion: method of
# measuring and recording", 1965; those of the whole trunk are divided between its two joints,
# and pronation counts from palms to the front. Torques and speeds: ours, of the order of a strong
# adult's.
TRUNK = (
    Part(
        "abdomen", "pelvis", "lumbar", (0, 0, TABLE["pelvis"].length), True, 0.05,
        (
            Hinge("flexion", Y, (-15, 50), 250, 6),
            Hinge("bending", X, (-20, 20), 200, 6),
            Hinge("rotation", Z, (-10, 10), 150, 6),
        ),
    ),
    Part(
        "thorax", "abdomen", "thoracic", (0, 0, TABLE["abdomen"].length), True, 0.05,
        (
            Hinge("flexion", Y, (-10, 30), 200, 6),
            Hinge("bending", X, (-15, 15), 150, 6),
            Hinge("rotation", Z, (-35, 35), 120, 6),
        ),
    ),
    Part(
        "head", "thorax", "neck", (0, 0, TABLE["thorax"].length), True, 0.04,
        (
            Hinge("flexion", Y, (-45, 45), 40, 8),
            Hinge("bending", X, (-45, 45), 40, 8),
            Hinge("rotation", Z, (-60, 60), 20, 8),
        ),
    ),
)  # fmt: skip
SHOULDER_Z = SHOULDERS_OVER_HIPS - TABLE["pelvis"].length - TABLE["abdomen"].length
LIMBS = (
    Part(
        "upper_arm", "thorax", "shoulder", (0, SHOULDER_Y, SHOULDER_Z), False, 0.045,
        (
            Hinge("flexion", MINUS_Y, (-60, 180), 90, 12),
            Hinge("abduction", X, (-30, 180), 90, 12),
            Hinge("rotation", MINUS_Z, (-90, 70), 50, 12),
        ),
    ),
    Part(
        "forearm", "upper_arm", "elbow", (0, 0, -TABLE["upper_arm"].length), False, 0.038,
        (
            Hinge("flexion", MINUS_Y, (0, 150), 70, 15),
            Hinge("pronation", MINUS_Z, (0, 160), 15, 15),
        ),
    ),
    Part(
        "hand", "forearm", "wrist", (0, 0, -TABLE["forearm"].length), False, 0.026,
        (
            Hinge("flexion", MINUS_Y, (-70, 80), 15, 15),
            Hinge("deviation", X, (-30, 20), 15, 15),
        ),
    ),
    Part(
        "thigh", "pelvis", "hip", (0, HIP_Y, 0), False, 0.07,
        (
            Hinge("flexion", MINUS_Y, (-30, 120), 250, 12),
            Hinge("abduction", X, (-30, 45), 200, 12),
            Hinge("rotation", MINUS_Z, (-45, 45), 100, 12),
        ),
    ),
    Part(
        "shank", "thigh", "knee", (0, 0, -TABLE["thigh"].length), False, 0.05,
        (Hinge("flexion", Y, (0, 135), 250, 15),),
    ),
    Part(
        "foot", "shank", "ankle", (0, 0, -TABLE["shank"].length), False, 0.035,
        (
            Hinge("flexion", MINUS_Y, (-50, 20), 180, 12),
            Hinge("inversion", MINUS_X, (-15, 35), 50, 12),
        ),
    ),
)  # fmt: skip

# What a viewer draws in each segment's frame: shape, its size, its centre, colour.
LOOKS: dict[str, tuple[tuple[str, tuple[float, ...], tuple[float, float, float], str], ...]] = {
    "pelvis": (("box", (0.17, 0.30, 0.16), (0, 0, 0.06), "dark"),),
    "abdomen": (("box", (0.16, 0.25, 0.17), (0, 0, 0.11), "light"),),
    "thorax": (("box", (0.19, 0.30, 0.21), (0, 0, 0.105), "blue"),),
    "head": (
        ("cylinder", (0.05, 0.10), (0, 0, 0.04), "light"),
        ("sphere", (0.095,), (0.01, 0, 0.148), "light"),
    ),
    "upper_arm": (("cylinder", (0.04, 0.25), (0, 0, -0.145), "blue"),),
    "forearm": (("cylinder", (0.033, 0.24), (0, 0, -0.14), "light"),),
    "hand": (("box", (0.028, 0.08, 0.17), (0, 0, -0.1), "dark"),),
    "thigh": (("cylinder", (0.068, 0.37), (0, 0, -0.215), "dark"),),
    "shank": (
        ("sphere", (0.05,), (0, 0, 0), "blue"),
        ("cylinder", (0.045, 0.39), (0, 0, -0.225), "light"),
    ),
    "foot": (("box", (0.2581, 0.09, 0.055), (0.064525, 0, -0.0405), "dark"),),
}
COLOURS = {"blue": "0.18 0.40 0.66", "dark": "0.24 0.27 0.31", "light": "0.82 0.83 0.85"}

# Frames without mass: name, segment, place in its frame.
FRAMES = (
    ("palm", "hand", (0.0, 0.0, -TABLE["hand"].length)),
    ("sole", "foot", (0.0, 0.0, -ANKLE_HEIGHT)),
)

HEADER = """\
<?xml version="1.0"?>
<!-- SPDX-License-Identifier: BSD-3-Clause -->
<!--
  Humanoid with the proportions and masses of a man of 73 kg, made by tools/make_humanoid.py.
  Segment lengths, masses, centres and radii of gyration: de Leva, "Adjustments to
  Zatsiorsky-Seluyanov's segment inertia parameters", Journal of Biomechanics 29(9), 1996 (men, mean
  stature 1.741 m; the lengths between joint centres add up to 1.777 m from sole to vertex).
  Joint ranges: American Academy of Orthopaedic Surgeons, "Joint motion: method of measuring and
  recording", 1965. Ours: widths of hips and shoulders, height of the ankle, torques and speeds.
  The root link is the pelvis, its origin midway between the hip joints. At q = 0 the body stands
  upright, arms hanging, palms to the front; x points forward, y left, z up. A positive angle
  means the same movement on both sides: flexion (of the ankle: toes up), abduction, inward
  rotation, pronation, inversion; of the wrist, deviation to the thumb; bending of the trunk and the
  neck to the right, rotation to the left. Balls between the hinges of one joint take 2 % of the
  mass of the segment they move with; ball and segment together are the published segment.
-->
<robot name="humanoid" xmlns:phistar="urn:phistar:urdf">
"""

HEIGHT = 0.9305
"""Of the hip joints above the soles [m], upright."""
STANDING = f"""
  <!-- Upright, the soles on the plane z = 0. -->
  <phistar:configuration name="home" values="{" ".join("0" * 35)}"
    base="0 0 {HEIGHT} 0 0 0 1"/>
"""


def number(value: float) -> str:
    """Shortest text of a number to ten digits."""
    return f"{value + 0.0:.10g}" if abs(value) > 1e-15 else "0"


def numbers(values: Vector | tuple[float, ...]) -> str:
    """Numbers separated by blanks."""
    return " ".join(number(float(value)) for value in values)


def steiner(mass: float, offset: Vector) -> Vector:
    """Inertia of a point mass at ``offset`` about the origin, (3, 3)."""
    return mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))


def published(name: str, up: bool) -> tuple[float, Vector, Vector]:
    """Mass, centre from the joint and inertia about the centre of a whole segment."""
    row = TABLE[name]
    mass = BODY_MASS * row.mass
    sagittal, transverse, longitudinal = (radius * row.length for radius in row.gyration)
    if name == "foot":
        # Its long axis runs from heel to toes, and its second axis is upright.
        center = np.array([(row.center - HEEL_SHARE) * row.length, 0, -ANKLE_HEIGHT / 2])
        radii = np.array([longitudinal, transverse, sagittal])
    else:
        height = (1 - row.center if up else -row.center) * row.length
        center = np.array([0, 0, height])
        radii = np.array([sagittal, transverse, longitudinal])
    return mass, center, np.diag(mass * radii**2)


def without_balls(part: Part) -> tuple[float, Vector, Vector]:
    """What is left of a segment when the balls at its joint are taken out of it."""
    mass, center, inertia = published(part.name, part.up)
    balls = max(len(part.hinges) - 1, 0)
    ball = BALL_SHARE * mass
    rest = mass - balls * ball
    rest_center = center * mass / rest
    about_joint = inertia + steiner(mass, center) - balls * ball_inertia(ball, part.ball)
    return rest, rest_center, about_joint - steiner(rest, rest_center)


def ball_inertia(mass: float, radius: float) -> Vector:
    """Inertia of a solid ball about its centre, (3, 3)."""
    return 0.4 * mass * radius**2 * np.eye(3)


def mirrored(side: int, center: Vector, inertia: Vector) -> tuple[Vector, Vector]:
    """Centre and inertia reflected in the x-z plane for the right side (-1)."""
    flip = np.array([1, side, 1])
    return flip * center, np.outer(flip, flip) * inertia


TOUCHING = frozenset({"foot"})
"""Segments whose shapes also touch the ground."""


def visual(shape: str, size: tuple[float, ...], place: Vector, colour: str) -> str:
    """A shape to draw."""
    material = f'      <material name="{colour}"/>\n'
    return f"    <visual>\n{placed(shape, size, place)}{material}    </visual>\n"


def collision(shape: str, size: tuple[float, ...], place: Vector) -> str:
    """A shape that touches others."""
    return f"    <collision>\n{placed(shape, size, place)}    </collision>\n"


def placed(shape: str, size: tuple[float, ...], place: Vector) -> str:
    """Origin and geometry of a shape."""
    keys = {"box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",)}[shape]
    values = (numbers(size),) if shape == "box" else tuple(map(number, size))
    sizes = " ".join(f'{key}="{value}"' for key, value in zip(keys, values, strict=True))
    origin = f'      <origin xyz="{numbers(place)}"/>\n' if np.any(place) else ""
    return f"{origin}      <geometry><{shape} {sizes}/></geometry>\n"


def link(name: str, mass: float, center: Vector, inertia: Vector, visuals: str) -> str:
    """A link with its inertia and looks."""
    origin = f'      <origin xyz="{numbers(center)}"/>\n' if np.any(center) else ""
    entries = " ".join(
        f'i{a}{b}="{number(inertia["xyz".index(a), "xyz".index(b)])}"'
        for a, b in ("xx", "yy", "zz", "xy", "xz", "yz")
    )
    return (
        f'  <link name="{name}">\n    <inertial>\n{origin}      <mass value="{number(mass)}"/>\n'
        f"      <inertia {entries}/>\n    </inertial>\n{visuals}  </link>\n"
    )


def looks(name: str, side: int) -> str:
    """All shapes of a segment."""
    text = "".join(
        visual(shape, size, np.array([1, side, 1]) * np.array(place), colour)
        for shape, size, place, colour in LOOKS[name]
    )
    if name in TOUCHING:
        text += "".join(
            collision(shape, size, np.array([1, side, 1]) * np.array(place))
            for shape, size, place, _ in LOOKS[name]
        )
    return text


def hinge(name: str, parent: str, child: str, place: Vector, side: int, hinge: Hinge) -> str:
    """A revolute joint. The mirror image of a rotation about (x, y, z) is one about (-x, y, -z)."""
    axis = np.array(hinge.axis) * (side, 1, side)
    origin = f'    <origin xyz="{numbers(place)}"/>\n' if np.any(place) else ""
    lower, upper = (number(round(radians(angle), 4)) for angle in hinge.range)
    return (
        f'\n  <joint name="{name}" type="revolute">\n{origin}    <parent link="{parent}"/>\n'
        f'    <child link="{child}"/>\n    <axis xyz="{numbers(axis)}"/>\n'
        f'    <limit lower="{lower}" upper="{upper}" effort="{number(hinge.effort)}"'
        f' velocity="{number(hinge.velocity)}"/>\n  </joint>\n'
    )


def mount(name: str, parent: str, child: str, place: Vector | tuple[float, ...]) -> str:
    """A fixed joint."""
    return (
        f'\n  <joint name="{name}" type="fixed">\n'
        f'    <origin xyz="{numbers(place)}"/>\n    <parent link="{parent}"/>\n'
        f'    <child link="{child}"/>\n  </joint>\n'
    )


def part_text(part: Part, prefix: str, side: int) -> str:
    """Joints, balls and the segment of one part of the body; without hinges it is fixed."""
    text = ""
    parent = part.parent if part.parent in ("pelvis", "thorax") else prefix + part.parent
    place = np.array(part.place) * (1, side, 1)
    ball = BALL_SHARE * BODY_MASS * TABLE[part.name].mass
    for axis in part.hinges[:-1]:
        joint = f"{prefix}{part.joint}_{axis.movement}"
        child = f"{joint}_ball"
        text += hinge(joint, parent, child, place, side, axis)
        text += link(
            child, ball, np.zeros(3), ball_inertia(ball, part.ball),
            visual("sphere", (part.ball,), np.zeros(3), "blue"),
        )  # fmt: skip
        parent, place = child, np.zeros(3)
    mass, center, inertia = without_balls(part)
    center, inertia = mirrored(side, center, inertia)
    name = prefix + part.name
    if part.hinges:
        last = part.hinges[-1]
        text += hinge(f"{prefix}{part.joint}_{last.movement}", parent, name, place, side, last)
    else:
        text += mount(f"{prefix}{part.joint}_mount", parent, name, place)
    text += link(name, mass, center, inertia, looks(part.name, side))
    for frame, owner, where in FRAMES:
        if owner == part.name:
            text += mount(f"{prefix}{frame}_mount", name, prefix + frame, where)
            text += f'  <link name="{prefix}{frame}"/>\n'
    return text


def materials() -> str:
    """The colours."""
    return "".join(
        f'  <material name="{name}"><color rgba="{colour} 1"/></material>\n'
        for name, colour in COLOURS.items()
    )


def humanoid() -> str:
    """The text of humanoid.urdf."""
    text = HEADER + materials()
    text += "\n" + link("pelvis", *published("pelvis", up=True), looks("pelvis", 1))
    text += "".join(part_text(part, "", 1) for part in TRUNK)
    for prefix, side in (("left_", 1), ("right_", -1)):
        text += "".join(part_text(part, prefix, side) for part in LIMBS)
    return text + STANDING + "</robot>\n"


if __name__ == "__main__":
    OUTPUT.write_text(humanoid(), encoding="utf-8", newline="\n")
    print(f"wrote {OUTPUT}")

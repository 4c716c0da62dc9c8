# SPDX-License-Identifier: BSD-3-Clause
"""Write the bundled humanoid whose ankles are driven by two rods each.

In: the segments of ``make_humanoid``, fewer of its joints, and the linkage below. Out: the text of
humanoid_ankles.urdf. Run ``python -m tools.make_humanoid_ankles`` after a change; a test compares
the file with this program.

Each shank carries two cranks behind the calf, side by side. A rod hangs from the end of each crank
by two crossed hinges and ends in a ball at the heel, which closes a loop with the foot. Both cranks
the same way bend the ankle, one up and one down tilts it.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from tools.make_humanoid import (
    HEIGHT,
    LIMBS,
    OUTPUT,
    TABLE,
    TRUNK,
    Hinge,
    Part,
    Vector,
    ball_inertia,
    hinge,
    link,
    looks,
    materials,
    part_text,
    published,
    visual,
)

ANKLES = Path(OUTPUT).with_name("humanoid_ankles.urdf")

KEPT = {
    "lumbar": ("rotation",),
    "thoracic": (),
    "neck": (),
    "shoulder": ("flexion", "abduction", "rotation"),
    "elbow": ("flexion",),
    "wrist": (),
    "hip": ("flexion", "abduction", "rotation"),
    "knee": ("flexion",),
    "ankle": ("flexion", "inversion"),
}
"""Movements of each joint; a joint without any is fixed."""

# Ours: the linkage, in metres and kilograms.
CRANK_LENGTH = 0.05
ROD_LENGTH = 0.3
HALF_WIDTH = 0.04  # of the rods from the middle of the shank
CRANK_MASS, CRANK_RADIUS = 0.12, 0.012
ROD_MASS, ROD_RADIUS = 0.09, 0.006
CROSS_MASS, CROSS_RADIUS = 0.01, 0.008

CRANK = Hinge("joint", (0, 1, 0), (-60, 60), 120, 12)
SWING = Hinge("swing", (0, 1, 0), (-90, 90), 0, 12)
TILT = Hinge("tilt", (1, 0, 0), (-60, 60), 0, 12)

HEADER = """\
<?xml version="1.0"?>
<!-- SPDX-License-Identifier: BSD-3-Clause -->
<!--
  Humanoid whose ankles are driven by rods, made by tools/make_humanoid_ankles.py: the body of
  humanoid.urdf (de Leva, "Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters",
  Journal of Biomechanics 29(9), 1996; ranges: American Academy of Orthopaedic Surgeons, "Joint
  motion", 1965) with fewer joints: 21 hinges that move as those of a robot would.
  The linkage is ours. Each shank carries two cranks of 50 mm, 40 mm to both sides of the middle.
  From their ends rods of 0.3 m hang by two crossed hinges, and a ball at the lower end of each
  closes a loop with the heel, 50 mm behind the ankle. The hinges of the ankle have no motors; both
  cranks upward lift the heel, one alone tilts the foot. Cranks, rods and crosses are cylinders and
  balls, 0.44 kg for each leg, which come on top of the 73 kg.
  At q = 0 the body stands upright, rods hang straight down, cranks point backward and every loop
  is closed. Axes and signs are those of humanoid.urdf.
-->
<robot name="humanoid_ankles" xmlns:phistar="urn:phistar:urdf">
"""


def reduced(part: Part) -> Part:
    """A part of the body with the movements that this robot has."""
    kept = tuple(h for h in part.hinges if h.movement in KEPT[part.joint])
    if part.joint == "ankle":
        kept = tuple(replace(h, effort=0) for h in kept)
    return replace(part, hinges=kept)


def rod_inertia(mass: float, radius: float, length: float, along: int) -> Vector:
    """Inertia of a solid cylinder along an axis (0, 1, 2) about its centre, (3, 3)."""
    across = mass * (3 * radius**2 + length**2) / 12
    moments = np.full(3, across)
    moments[along] = mass * radius**2 / 2
    return np.diag(moments)


def cylinder(radius: float, length: float, place: Vector, colour: str, rpy: str) -> str:
    """A cylinder to draw, turned from the z axis."""
    text = visual("cylinder", (radius, length), place, colour)
    return text.replace('"/>\n      <geometry>', f'" rpy="{rpy}"/>\n      <geometry>', 1)


def leg_linkage(prefix: str, side: int) -> tuple[str, str]:
    """Cranks and rods of a leg, and the loops that they close."""
    text, loops = "", ""
    top = TABLE["shank"].length - ROD_LENGTH
    for name, sign in (("outer", side), ("inner", -side)):
        at = f"{prefix}{name}"
        y = sign * HALF_WIDTH
        middle = np.array([-CRANK_LENGTH / 2, 0, 0])
        text += hinge(
            f"{at}_crank_joint",
            f"{prefix}shank",
            f"{at}_crank",
            np.array([0, y, -top]),
            side,
            CRANK,
        )
        text += link(
            f"{at}_crank", CRANK_MASS, middle,
            rod_inertia(CRANK_MASS, CRANK_RADIUS, CRANK_LENGTH, 0),
            cylinder(CRANK_RADIUS, CRANK_LENGTH, middle, "blue", "0 1.5707963267948966 0"),
        )  # fmt: skip
        end = np.array([-CRANK_LENGTH, 0, 0])
        text += hinge(f"{at}_rod_swing", f"{at}_crank", f"{at}_cross", end, side, SWING)
        text += link(
            f"{at}_cross", CROSS_MASS, np.zeros(3), ball_inertia(CROSS_MASS, CROSS_RADIUS),
            visual("sphere", (CROSS_RADIUS,), np.zeros(3), "dark"),
        )  # fmt: skip
        middle = np.array([0, 0, -ROD_LENGTH / 2])
        text += hinge(f"{at}_rod_tilt", f"{at}_cross", f"{at}_rod", np.zeros(3), side, TILT)
        text += link(
            f"{at}_rod", ROD_MASS, middle, rod_inertia(ROD_MASS, ROD_RADIUS, ROD_LENGTH, 2),
            visual("cylinder", (ROD_RADIUS, ROD_LENGTH), middle, "dark"),
        )  # fmt: skip
        heel = np.array([-CRANK_LENGTH, y, 0])
        loops += loop(
            f"{at}_ball", f"{at}_rod", np.array([0, 0, -ROD_LENGTH]), f"{prefix}foot", heel
        )
    return text, loops


def exact(values: Vector) -> str:
    """Numbers that read back as they are, so that loops close up to rounding."""
    return " ".join(repr(float(x)).removesuffix(".0") if abs(x) > 1e-15 else "0" for x in values)


def loop(name: str, first: str, there: Vector, second: str, here: Vector) -> str:
    """A ball between two links."""
    text = f'\n  <phistar:loop name="{name}" type="spherical">\n'
    for end, carrier, place in (("predecessor", first, there), ("successor", second, here)):
        origin = f'<origin xyz="{exact(place)}"/>'
        text += f'    <phistar:{end} link="{carrier}">{origin}</phistar:{end}>\n'
    return text + "  </phistar:loop>\n"


def humanoid_ankles() -> str:
    """The text of humanoid_ankles.urdf."""
    text = HEADER + materials()
    text += "\n" + link("pelvis", *published("pelvis", up=True), looks("pelvis", 1))
    text += "".join(part_text(reduced(part), "", 1) for part in TRUNK)
    closing = ""
    for prefix, side in (("left_", 1), ("right_", -1)):
        text += "".join(part_text(reduced(part), prefix, side) for part in LIMBS)
        cranks, loops = leg_linkage(prefix, side)
        text, closing = text + cranks, closing + loops
    count = text.count('type="revolute"')
    home = (
        "\n  <!-- Upright, the soles on the plane z = 0. -->\n"
        f'  <phistar:configuration name="home" values="{" ".join("0" * count)}"\n'
        f'    base="0 0 {HEIGHT} 0 0 0 1"/>\n'
    )
    return text + closing + home + "</robot>\n"


if __name__ == "__main__":
    ANKLES.write_text(humanoid_ankles(), encoding="utf-8", newline="\n")
    print(f"wrote {ANKLES}")

# SPDX-License-Identifier: BSD-3-Clause
"""Write the bundled delta robot. In: the numbers below. Out: the text of delta.urdf.

Run ``python -m tools.make_delta`` after a change; a test compares the file with this program. At
q = 0 the arms are level and each rod is the long side of a triangle 3 : 4 : 5, so that all loops
are closed up to rounding.
"""

from math import cos, pi, sin

import numpy as np

from tools.make_humanoid import OUTPUT, Vector, ball_inertia, link, number, visual
from tools.make_humanoid_ankles import cylinder, exact, loop, rod_inertia

DELTA = OUTPUT.with_name("delta.urdf")

# Metres and kilograms.
BASE_RADIUS = 0.2
ARM_LENGTH, ARM_RADIUS, ARM_MASS = 0.35, 0.025, 0.6
ROD_LENGTH, ROD_RADIUS, ROD_MASS = 0.8, 0.006, 0.11
HALF_WIDTH = 0.05  # of the two rods of an arm from its middle
PLATFORM_RADIUS, PLATFORM_MASS, PLATFORM_HEIGHT = 0.07, 0.4, 0.02
CROSS_RADIUS, CROSS_MASS = 0.01, 0.02
DEPTH = 0.64  # of the platform below the arms
TILT = 0.6435011087932844  # of the rods from upright: sine 3/5, cosine 4/5

HEADER = """\
<?xml version="1.0"?>
<!-- SPDX-License-Identifier: BSD-3-Clause -->
<!--
  Delta robot: three arms, each of which moves the platform by a pair of parallel rods, so that it
  shifts and does not turn. Made by tools/make_delta.py. Numbers: ours, of the size of a packer for
  small goods. The arrangement is that of R. Clavel, "Device for the movement and positioning of an
  element in space", US patent 4976582, 1990.
  Motors on a circle of radius 0.2 m; arms 0.35 m, rods 0.8 m and 0.1 m apart, their lower ends on
  a circle of radius 0.07 m. A rod hangs on its arm by two crossed hinges and ends in a ball at the
  platform; these six balls are the loops. Arms, rods and platform are solid cylinders, crosses are
  balls. The platform's joint gives its pose, so that it can be read off q; it carries nothing. At
  q = 0 the arms are level, pointing outward, the platform is 0.64 m below the motors and every loop
  is closed (0.2 + 0.35 - 0.07 = 0.48, and 0.48 : 0.64 : 0.8 = 3 : 4 : 5). A positive angle lowers
  an arm. Coordinates: arms, platform, rods.
-->
<robot name="delta" xmlns:phistar="urn:phistar:urdf">
  <material name="steel"><color rgba="0.55 0.58 0.62 1"/></material>
  <material name="blue"><color rgba="0.16 0.38 0.67 1"/></material>
  <material name="dark"><color rgba="0.24 0.27 0.31 1"/></material>
"""


def revolute(
    name: str, parent: str, child: str, place: Vector, rpy: str, axis: str, limit: str
) -> str:
    """A hinge."""
    turned = f' rpy="{rpy}"' if rpy else ""
    return (
        f'\n  <joint name="{name}" type="revolute">\n'
        f'    <origin xyz="{exact(place)}"{turned}/>\n    <parent link="{parent}"/>\n'
        f'    <child link="{child}"/>\n    <axis xyz="{axis}"/>\n    <limit {limit}/>\n  </joint>\n'
    )


def motor(joint: str) -> str:
    """A transmission without gears."""
    return (
        f'\n  <transmission name="{joint}">\n'
        "    <type>transmission_interface/SimpleTransmission</type>\n"
        f'    <joint name="{joint}"/>\n    <actuator name="{joint}"/>\n  </transmission>\n'
    )


def arm(k: int) -> tuple[str, str]:
    """An arm with its rods, and the loops with the platform."""
    angle = 2 * pi * k / 3
    out = np.array([cos(angle), sin(angle), 0])
    aside = np.array([-sin(angle), cos(angle), 0])
    name = f"arm{k + 1}"
    middle = np.array([ARM_LENGTH / 2, 0, 0])
    text = revolute(
        f"{name}_joint", "base", name, BASE_RADIUS * out, f"0 0 {angle!r}" if k else "", "0 1 0",
        'lower="-0.9" upper="1.4" effort="60" velocity="20"',
    )  # fmt: skip
    text += link(
        name, ARM_MASS, middle, rod_inertia(ARM_MASS, ARM_RADIUS, ARM_LENGTH, 0),
        cylinder(ARM_RADIUS, ARM_LENGTH, middle, "blue", "0 1.5707963267948966 0"),
    )  # fmt: skip
    loops = ""
    for letter, sign in (("a", 1), ("b", -1)):
        rod, y = f"rod{k + 1}{letter}", sign * HALF_WIDTH
        passive = 'lower="-1.5" upper="1.5" effort="0" velocity="30"'
        end = np.array([ARM_LENGTH, y, 0])
        text += revolute(f"{rod}_swing", name, f"{rod}_cross", end, f"0 {TILT} 0", "0 1 0", passive)
        text += link(
            f"{rod}_cross", CROSS_MASS, np.zeros(3), ball_inertia(CROSS_MASS, CROSS_RADIUS),
            visual("sphere", (CROSS_RADIUS,), np.zeros(3), "steel"),
        )  # fmt: skip
        middle = np.array([0, 0, -ROD_LENGTH / 2])
        text += revolute(f"{rod}_tilt", f"{rod}_cross", rod, np.zeros(3), "", "1 0 0", passive)
        text += link(
            rod, ROD_MASS, middle, rod_inertia(ROD_MASS, ROD_RADIUS, ROD_LENGTH, 2),
            visual("cylinder", (ROD_RADIUS, ROD_LENGTH), middle, "dark"),
        )  # fmt: skip
        lower = np.array([0, 0, -ROD_LENGTH])
        here = PLATFORM_RADIUS * out + y * aside
        loops += loop(f"{rod}_ball", rod, lower, "platform", here)
    return text, loops


def delta() -> str:
    """The text of delta.urdf."""
    text = HEADER + '\n  <link name="base">\n'
    text += visual("cylinder", (BASE_RADIUS, 0.04), np.array([0, 0, 0.06]), "steel") + "  </link>\n"
    closing = ""
    for k in range(3):
        part, loops = arm(k)
        text, closing = text + part, closing + loops
    text += (
        '\n  <joint name="platform_joint" type="floating">\n'
        f'    <origin xyz="0 0 {number(-DEPTH)}"/>\n'
        '    <parent link="base"/>\n    <child link="platform"/>\n  </joint>\n'
    )
    disc = rod_inertia(PLATFORM_MASS, PLATFORM_RADIUS, PLATFORM_HEIGHT, 2)
    shape = visual("cylinder", (PLATFORM_RADIUS, PLATFORM_HEIGHT), np.zeros(3), "blue")
    text += link("platform", PLATFORM_MASS, np.zeros(3), disc, shape) + closing
    text += "".join(motor(f"arm{k}_joint") for k in (1, 2, 3))
    rods = [f"rod{k}{x}_{way}" for k in (1, 2, 3) for x in "ab" for way in ("swing", "tilt")]
    order = ["arm1_joint", "arm2_joint", "arm3_joint", "platform_joint", *rods]
    entries = "".join(f'    <phistar:joint name="{name}"/>\n' for name in order)
    return text + f"\n  <phistar:order>\n{entries}  </phistar:order>\n</robot>\n"


if __name__ == "__main__":
    DELTA.write_text(delta(), encoding="utf-8", newline="\n")
    print(f"wrote {DELTA}")

# SPDX-License-Identifier: BSD-3-Clause
"""What backends make code of: a scheduled request on one robot, one class for each kind of request.

    VectorProgram    a schedule whose outputs are vectors
    MatrixProgram    the matrix of an operator, or a part of it
    BundleProgram    vectors and matrices that are wanted together
    TracedProgram    scalar operations that are traced for the robot directly

All say what they read and give and how large they are, and are traced to scalar operations in the
same way, so that a backend need not know which kind it has.
"""

from phistar.backends.robot_programs.bundle_program import BundleProgram
from phistar.backends.robot_programs.matrix_program import MatrixProgram
from phistar.backends.robot_programs.robot_program import (
    DEFAULT_TUNING,
    EXTERNAL_FORCE,
    OPTIONAL_INPUTS,
    REGROUPED,
    RobotProgram,
    Shape,
    Tuning,
)
from phistar.backends.robot_programs.traced_program import TracedProgram
from phistar.backends.robot_programs.vector_program import VectorProgram

__all__ = [
    "DEFAULT_TUNING",
    "EXTERNAL_FORCE",
    "OPTIONAL_INPUTS",
    "REGROUPED",
    "BundleProgram",
    "MatrixProgram",
    "RobotProgram",
    "Shape",
    "TracedProgram",
    "Tuning",
    "VectorProgram",
]

# SPDX-License-Identifier: BSD-3-Clause
"""Joint kinds: what a joint lets its child do. One class a kind, all answering the same questions.

A kind knows its transform X_J(q), its joint map H* (columns span the relative motion, constant in
the child's axes) and how to step, compare and draw configurations. Kinds whose H* is not constant
(universal) are compounds: ``parts`` lists the simple joints that realise them, with massless links
in between. A new class with a ``name`` is all that is needed to add a kind.
"""

# JOINT_KINDS lists the kinds in the order of these imports, and random models draw by it.
from phistar.model.joints.kind import JOINT_KINDS, Fixed, JointKind, make_kind
from phistar.model.joints.one_axis import (
    Axis,
    Continuous,
    Cylindrical,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Universal,
    unit_axis,
)
from phistar.model.joints.space import Free, Spherical, Translation, free_configuration

__all__ = [
    "JOINT_KINDS",
    "Axis",
    "Continuous",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "JointKind",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Translation",
    "Universal",
    "free_configuration",
    "make_kind",
    "unit_axis",
]

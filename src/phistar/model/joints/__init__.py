# SPDX-License-Identifier: BSD-3-Clause
"""Joint kinds: what a joint lets its child do. One file per kind, all answering the same questions.

A kind knows its transform X_J(q), its joint map H* (columns span the relative motion, constant in
the child's axes) and how to step and compare configurations, written once for arrays and for
scalar programs; see ``kind``. Kinds whose H* is not constant (universal) are compounds: ``parts``
lists the simple joints that realise them, with massless links in between. A new class with a
``name`` is all that is needed to add a kind.
"""

# JOINT_KINDS lists the kinds in the order of these imports, and random models draw by it.
# isort: off
from phistar.model.joints.kind import (
    JOINT_KINDS,
    Axis,
    AxisKind,
    CompoundKind,
    JointKind,
    JointLabels,
    make_kind,
    unit_axis,
)
from phistar.model.joints.fixed import Fixed
from phistar.model.joints.revolute import Revolute
from phistar.model.joints.continuous import Continuous
from phistar.model.joints.prismatic import Prismatic
from phistar.model.joints.helical import Helical
from phistar.model.joints.cylindrical import Cylindrical
from phistar.model.joints.universal import Universal
from phistar.model.joints.planar import Planar
from phistar.model.joints.spherical import Spherical
from phistar.model.joints.translation import Translation
from phistar.model.joints.free import Free, free_configuration
from phistar.model.joints.number_ops import QuaternionTurn, Turn
# isort: on

__all__ = [
    "JOINT_KINDS",
    "Axis",
    "AxisKind",
    "CompoundKind",
    "Continuous",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "JointKind",
    "JointLabels",
    "Planar",
    "Prismatic",
    "QuaternionTurn",
    "Revolute",
    "Spherical",
    "Translation",
    "Turn",
    "Universal",
    "free_configuration",
    "make_kind",
    "unit_axis",
]

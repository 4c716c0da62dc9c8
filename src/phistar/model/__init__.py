# SPDX-License-Identifier: BSD-3-Clause
"""Immutable models of links, joints and frames, and their configuration space."""

from phistar.model.builder import ModelBuilder, make_pose
from phistar.model.components import (
    GROUND,
    Body,
    Coupling,
    Drive,
    Frame,
    Joint,
    Limits,
    Link,
    LoopJoint,
    Mimic,
    Shape,
)
from phistar.model.joints import JOINT_KINDS, JointKind, make_kind
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.model.tree import GROUND_NAME

__all__ = [
    "GROUND",
    "GROUND_NAME",
    "JOINT_KINDS",
    "Body",
    "Coupling",
    "Drive",
    "Frame",
    "Joint",
    "JointKind",
    "Limits",
    "Link",
    "LoopJoint",
    "Mimic",
    "Model",
    "ModelBuilder",
    "Shape",
    "make_kind",
    "make_pose",
    "random_model",
]

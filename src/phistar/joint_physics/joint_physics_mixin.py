# SPDX-License-Identifier: BSD-3-Clause
"""Limits, actuators and passive forces; a part of ``Robot``."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property, partial

from phistar.arrays import Array
from phistar.joint_physics.actuator_forces import Actuators
from phistar.joint_physics.passive_forces import passive_force
from phistar.model.bad_samples import RAISE, nan_where_bad
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import (
    FORCE_PARTS,
    JointLimits,
    Passive,
    joint_limits,
    passive_parts,
)
from phistar.model.model import Model
from phistar.model.model_cache import Entry


class HasJointPhysics:
    """Limits, actuators and passive forces of a robot."""

    model: Model
    _entries: dict[Hashable, Entry | None]

    @property
    def limits(self) -> JointLimits:
        """Limits and physics of the joints as named arrays: ``lower upper velocity effort`` and
        ``damping friction stiffness spring_reference``; infinite or zero where there is none.
        """
        return joint_limits(self.model)

    @cached_property
    def actuators(self) -> Actuators:
        """The actuators of the file: ``names joint kind gear ctrlrange forcerange``, and
        ``force(ctrl, q, v)``.

        MJCF's without states of their own, on joints with one coordinate or on sums of such; of a
        URDF a motor with gear 1 for each ``<transmission>``. None if the file says nothing.
        """
        return Actuators(self.model)

    def passive_force(
        self, q: Coordinates, v: Coordinates, *, passive: Passive = True, on_error: str = "raise"
    ) -> Array:
        """Joint forces (..., nv) [N m, N] of springs, dampers and sliding dry friction.

        -K e(q) - B v - F sign(v), with e the way from where springs rest, in the axes of v. At
        rest dry friction is whatever holds the joint, which takes the other forces to know: here it
        is zero, ``simulate`` and ``step`` find it. Limits are no force at a state.

        Args:
            q: (..., nq).
            v: (..., nv).
            passive: True, or some of ``"springs"``, ``"damping"``, ``"friction"``.
            on_error: ``"raise"``, or ``"nan"``: results of samples that have none become NaN.
        """
        parts = tuple(part for part in passive_parts(passive) if part in FORCE_PARTS)
        entry = self._entries.get(("passive_force", parts))
        if entry is not None and on_error is RAISE and (result := entry(q, v)) is not None:
            return result
        if on_error != "raise":
            call = partial(self.passive_force, passive=passive)
            return nan_where_bad(self.model, on_error, call, {"q": q, "v": v})
        return passive_force(self.model, q, v, parts)

# SPDX-License-Identifier: BSD-3-Clause
"""Editing as a part of ``Robot``: every method gives a new robot, the old one stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from numpy.typing import ArrayLike

from phistar.errors import ArgumentError, kind_of
from phistar.model.configuration import Coordinates
from phistar.model.editing import (
    attach,
    carried_load,
    edited_inertias,
    frames,
    limits,
    lock,
    remove,
    scale,
)
from phistar.model.editing.parts import Edit
from phistar.model.model import HasModel, Model


class Edited:
    """A robot with more, fewer or other parts. Names stay; the load report says what was edited."""

    model: Model

    if TYPE_CHECKING:

        def _edited(self, edit: Edit) -> Self:
            """The robot of an edit; its report extends the one of this robot."""

    def with_payload(
        self,
        frame: str,
        mass: float,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia: ArrayLike = (0.0, 0.0, 0.0),
        *,
        name: str | None = None,
    ) -> Self:
        """The robot with a load fixed to a frame, as a link of its own.

        Args:
            frame: Name of the link or frame that carries it.
            mass: [kg].
            com: (3,) centre of mass in that frame [m].
            inertia: About the centre of mass in the frame's axes [kg m^2]: (3, 3), or
                (ixx, ixy, ixz, iyy, iyz, izz), or (ixx, iyy, izz). Default: a point mass.
            name: Of the new link; default ``"payload"``, then ``"payload_2"`` and so on. Its joint
                is ``name + "_mount"``; ``without(name)`` takes it off again.

        Raises:
            ArgumentError: The mass is negative, something is not finite, or the name is taken.
            ModelError: No body has such an inertia.
            UnknownNameError: No such frame.
        """
        return self._edited(carried_load.with_payload(self.model, frame, mass, com, inertia, name))

    def with_frame(self, name: str, parent: str, pose: ArrayLike | None = None) -> Self:
        """The robot with another named frame.

        Args:
            name: Its name.
            parent: The link or frame that carries it.
            pose: (4, 4) its pose in the parent; default: the same.

        Raises:
            ArgumentError: The name is taken, or the pose is no rigid motion.
            UnknownNameError: No such parent.
        """
        return self._edited(frames.with_frame(self.model, name, parent, pose))

    def with_parameters(self, parameters_: ArrayLike, /) -> Self:
        """The robot whose ``parameters`` are the given ones.

        Links that fixed joints weld together are one body: its first link takes what is given and
        the others become massless. Bodies whose numbers do not change keep their links.

        Args:
            parameters_: (10 bodies,) or (bodies, 10) inertial parameters in the order of
                ``regressor``, for instance from an estimation.

        Raises:
            ShapeError: Another number of parameters.
            ArgumentError: A mass is negative, or something is not finite.
            ModelError: No body has such an inertia.
        """
        return self._edited(edited_inertias.with_parameters(self.model, parameters_))

    def lock(self, joints: Mapping[str, ArrayLike]) -> Self:
        """The robot with joints held at values: they become fixed, their coordinates go.

        Mimic joints that follow a locked one are held as well. Loops stay; a coupling whose source
        is locked holds its joint where it is then.

        Args:
            joints: Values [rad, m] by the names of independent joints; a list of them for a joint
                with several coordinates.

        Raises:
            ArgumentError: A joint is fixed already or follows another one, or a coupling would be
                broken.
            UnknownNameError: No such joint.
        """
        return self._edited(lock.lock(self.model, joints))

    def attach(
        self,
        other: HasModel | Model,
        frame: str,
        pose: ArrayLike | None = None,
        *,
        prefix: str = "",
    ) -> Self:
        """The robot with another one mounted on a frame: what stood on the ground stands there.

        Coordinates are those of this robot, then those of the other. Joints of the other robot stay
        what they are, the free joint of a floating base, too. Configurations of one name are
        joined; a robot that does not have one is at home in it. Gravity is this robot's.

        Args:
            other: A robot or model.
            frame: Name of the link or frame of this robot; or ``"world"``: both stand on the
                ground, each a tree of its own, and their shapes may touch in ``simulator``.
            pose: (4, 4) of the other's ground in that frame; default: the same.
            prefix: Put in front of all names of the other robot.

        Raises:
            ArgumentError: Both robots have something of one name.
            UnknownNameError: No such frame.
        """
        model = other if isinstance(other, Model) else getattr(other, "model", None)
        if not isinstance(model, Model):
            raise ArgumentError(f"attach takes a robot or model, got {kind_of(other)}")
        return self._edited(attach.attach(self.model, model, frame, pose, prefix))

    def without(self, *links: str) -> Self:
        """The robot without links and everything that hangs on them.

        Args:
            links: Names of links. Loops within what goes, go as well.

        Raises:
            ArgumentError: Nothing would be left, or a loop or mimic joint connects what goes with
                what stays.
            UnknownNameError: No such link.
        """
        return self._edited(remove.without(self.model, links))

    def with_limits(
        self,
        *,
        lower: Coordinates | None = None,
        upper: Coordinates | None = None,
        velocity: Coordinates | None = None,
        effort: Coordinates | None = None,
    ) -> Self:
        """The robot with other limits; ``math.inf`` means none.

        Args:
            lower, upper: [rad, m] by joint name (others stay), or (nq,), or one number for all.
            velocity, effort: [rad/s, m/s], [N m, N] by joint name, or (nv,), or one number.

        Raises:
            ArgumentError: A lower limit is above the upper one, or a size is negative or NaN.
            UnknownNameError: No such joint.
        """
        given = {"lower": lower, "upper": upper, "velocity": velocity, "effort": effort}
        return self._edited(limits.with_limits(self.model, given))

    def with_joint_physics(
        self,
        *,
        damping: Coordinates | None = None,
        friction: Coordinates | None = None,
        armature: Coordinates | None = None,
        rotor_inertia: Coordinates | None = None,
        stiffness: Coordinates | None = None,
        spring_reference: Coordinates | None = None,
    ) -> Self:
        """The robot with other damping, dry friction, rotor inertia or springs of its joints.

        Args:
            damping: [N m s/rad, N s/m] by joint name (others stay), or (nv,), or one number.
            friction: Dry friction [N m, N], in the same way.
            armature: Inertia added along the joint's axes [kg m^2, kg].
            rotor_inertia: Of the motor about its own axis [kg m^2]; the joint feels it times the
                gear ratio squared.
            stiffness: Of springs [N m/rad, N/m].
            spring_reference: Where springs rest [rad, m] by joint name, or (nq,), or one number.

        Raises:
            ArgumentError: A number is not finite, or negative where a size is meant.
            UnknownNameError: No such joint.
        """
        given = {
            "damping": damping,
            "friction": friction,
            "armature": armature,
            "rotor_inertia": rotor_inertia,
            "stiffness": stiffness,
            "spring_reference": spring_reference,
        }
        return self._edited(limits.with_joint_physics(self.model, given))

    def scaled(self, length: float = 1.0, mass: float | None = None) -> Self:
        """The robot with all lengths and masses multiplied, names and angles kept.

        Limits, springs, damping and rotors are scaled along, so that it moves in the same way in
        the same gravity, only slower by the square root of ``length``.

        Args:
            length: Factor of lengths.
            mass: Factor of masses; default ``length`` cubed, the same materials.

        Raises:
            ArgumentError: A factor is not positive, or a joint of a user's own kind has numbers of
                unknown dimension.
        """
        return self._edited(scale.scaled(self.model, length, mass))

# SPDX-License-Identifier: BSD-3-Clause
"""Kinematics of a model for a user's arrays: machine code for what is asked often.

The functions are those of ``model.kinematics``, which answers whatever has no machine code: other
dtypes than float64 and float32, numbers that are not finite, very long paths, other backends, and
the first samples of each program. ``Kinematics`` is the part of ``Robot`` that asks them. Momentum
and energies are asked here too, see ``energies``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phistar import backends
from phistar.model import kinematics
from phistar.model.configuration import Coordinates, batch_shape, configuration, tangent
from phistar.model.kinematics import check_reference
from phistar.model.model import Model
from phistar.model.tables import Tables

if TYPE_CHECKING:
    from phistar.backends.llvm.direct import Direct
    from phistar.scalar.program import Straight

Array = NDArray[Any]
Lean = Callable[..., bool]
Key = tuple[Any, ...]

SMALL = 12
"""Links up to which a program compiles while its user waits."""

FEW = 64
"""Links of a robot up to which its numbers are prepared meanwhile too."""

LARGEST = 150
"""Links beyond which a straight line is too long."""

MOST_POSES = 64
"""Poses beyond which one program for all takes too long to compile: stores are what costs."""


lean_table: Tables[Key, Lean] = Tables()
"""Quick ways of a model for single samples, see ``backends.base.Executable.lean``.

They take q and, where velocities matter, v, and then an array for the numbers of the result.
Keys are ``("frame_pose", frame)``, ``("link_poses",)``, ``("jacobian", frame, reference)``,
``("frame_velocity", frame, reference)``, ``("center_of_mass", fixed)``, ``("momentum",)``,
``("kinetic_energy",)`` and ``("potential_energy",)``.
"""


def frame_pose(model: Model, q: Coordinates, frame: str) -> Array:
    """World pose of a frame, (..., nq) -> (..., 4, 4)."""
    model.frame(frame)
    q = configuration(model, q)
    found = answer(model, ("frame_pose", frame), q)
    if found is None:
        return kinematics.frame_pose(model, q, frame)
    return found.reshape(*q.shape[:-1], 4, 4)


def link_poses(model: Model, q: Coordinates) -> dict[str, Array]:
    """World pose (..., 4, 4) of every link, by name in file order."""
    q = configuration(model, q)
    found = answer(model, ("link_poses",), q)
    if found is None:
        return kinematics.link_poses(model, q)
    poses = found.reshape(*q.shape[:-1], len(model.link_names), 4, 4)
    return dict(zip(model.link_names, np.moveaxis(poses, -3, 0), strict=True))


def jacobian(model: Model, q: Coordinates, frame: str, reference: str = "world_aligned") -> Array:
    """Jacobian (..., 6, nv) of a frame; see ``model.kinematics.jacobian``."""
    check_reference(reference)
    model.frame(frame)
    q = configuration(model, q)
    found = answer(model, ("jacobian", frame, reference), q)
    if found is None:
        return kinematics.jacobian(model, q, frame, reference)
    return found.reshape(*q.shape[:-1], 6, model.nv)


def frame_velocity(
    model: Model, q: Coordinates, v: Coordinates, frame: str, reference: str = "world_aligned"
) -> Array:
    """Velocity (..., 6) [angular; linear] of a frame; see ``model.kinematics.frame_velocity``."""
    check_reference(reference)
    model.frame(frame)
    q, v = configuration(model, q), tangent(model, v)
    batch_shape(model, {"q": q, "v": v})
    found = answer(model, ("frame_velocity", frame, reference), q, v)
    return kinematics.frame_velocity(model, q, v, frame, reference) if found is None else found


def center_of_mass(model: Model, q: Coordinates, *, fixed: bool = True) -> Array:
    """Centre of mass (..., 3), world axes; see ``model.kinematics.center_of_mass``."""
    q = configuration(model, q)
    found = answer(model, ("center_of_mass", bool(fixed)), q)
    return kinematics.center_of_mass(model, q, fixed=fixed) if found is None else found


class Kinematics:
    """Poses, Jacobians and velocities of a robot's frames."""

    model: Model
    _nv: int
    _lean_motion: dict[Key, Lean]

    def frame_pose(self, q: Coordinates, frame: str) -> Array:
        """World pose (..., 4, 4) of a link or frame."""
        lean = self._quick("frame_pose", frame)
        if lean is not None and lean(q, result := np.empty(16)):
            return result.reshape(4, 4)
        return frame_pose(self.model, q, frame)

    def link_poses(self, q: Coordinates) -> dict[str, Array]:
        """World pose (..., 4, 4) of every link, by name."""
        lean, names = self._quick("link_poses"), self.model.link_names
        if lean is not None and lean(q, result := np.empty(16 * len(names))):
            return dict(zip(names, result.reshape(-1, 4, 4), strict=True))
        return link_poses(self.model, q)

    def jacobian(self, q: Coordinates, frame: str, reference: str = "world_aligned") -> Array:
        """Jacobian (..., 6, nv) of a frame, rows [angular; linear]: J @ v is its velocity.

        Args:
            q: (..., nq).
            frame: Name of a link or frame.
            reference: ``"local"``: frame's axes, its origin; ``"world"``: world axes, the point of
                the extended link at the world's origin; ``"world_aligned"``: world axes, the
                frame's origin.
        """
        lean = self._quick("jacobian", frame, reference)
        if lean is not None and lean(q, result := np.empty(6 * self._nv)):
            return result.reshape(6, self._nv)
        return jacobian(self.model, q, frame, reference)

    def frame_velocity(
        self, q: Coordinates, v: Coordinates, frame: str, reference: str = "world_aligned"
    ) -> Array:
        """Velocity (..., 6) [angular; linear] of a frame [rad/s, m/s]; see ``jacobian``."""
        lean = self._quick("frame_velocity", frame, reference)
        if lean is not None and lean(q, v, result := np.empty(6)):
            return result
        return frame_velocity(self.model, q, v, frame, reference)

    def center_of_mass(self, q: Coordinates, *, fixed: bool = True) -> Array:
        """Centre of mass (..., 3), world axes [m].

        Args:
            q: (..., nq).
            fixed: Count the links that are welded to the ground too (MuJoCo does, Pinocchio
                does not).
        """
        lean = self._quick("center_of_mass", fixed)
        if lean is not None and lean(q, result := np.empty(3)):
            return result
        return center_of_mass(self.model, q, fixed=fixed)

    def _quick(self, *key: object) -> Lean | None:
        """The quick way for a single sample, where there is one."""
        try:
            return self._lean_motion.get(key)
        except TypeError:
            return None


def answer(model: Model, key: Key, *arrays: Array) -> Array | None:
    """The numbers of a result (..., size) by machine code, if that is at hand.

    Args:
        model: The robot.
        key: What is asked, see ``lean_table``.
        arrays: Checked q and, where velocities matter, v; their batches broadcast.
    """
    if backends.default() != "llvm":
        return None
    program = _program(model, key)
    if program is None:
        return None
    result = program(arrays)
    if program.lean is not None:
        lean_table(model)[key] = program.lean
    return result


@lru_cache(maxsize=1024)
def _program(model: Model, key: Key) -> Direct | None:
    """The program that a key means, or None where a straight line is no good."""
    what, *choices = key
    along_path = what in ("frame_pose", "jacobian", "frame_velocity")
    path = model.ancestors(model.frame(choices[0]).body) if along_path else model.bodies
    weightless = what == "center_of_mass" and not model.inertias[:, 0].sum()
    too_many = what == "link_poses" and len(model.link_names) > MOST_POSES
    if not 0 < len(path) <= LARGEST or weightless or too_many:
        return None
    from phistar.backends.llvm.direct import Direct
    from phistar.backends.llvm.recipe import direct_fingerprint

    return Direct(
        direct_fingerprint(model, *key),
        f"{model.name}: {' '.join(map(str, key))}",
        len(path) <= SMALL and len(model.bodies) <= FEW,
        partial(_traced, model, what, *choices),
    )


def _traced(model: Model, what: str, *choices: Any) -> Straight:
    """The straight line that a key means."""
    from phistar.scalar import energy
    from phistar.scalar import kinematics as programs

    if what in ("momentum", "kinetic_energy", "potential_energy"):
        trace: Callable[..., Straight] = getattr(energy, what)
        return trace(model)
    if what == "frame_pose":
        return programs.poses(model, choices)
    if what == "link_poses":
        return programs.poses(model, model.link_names)
    if what == "center_of_mass":
        return programs.center_of_mass(model, *choices)
    trace = programs.jacobian if what == "jacobian" else programs.velocity
    return trace(model, *choices)

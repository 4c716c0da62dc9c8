# SPDX-License-Identifier: BSD-3-Clause
"""A part of ``Robot``: the equations of all links, and the forces through joints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import checked_state
from phistar.arrays import Array
from phistar.compile import joint_map, kernel
from phistar.dynamics import with_wrenches
from phistar.errors import ArgumentError
from phistar.loops.constrained_dynamics import require_on_loops
from phistar.loops.held import Held
from phistar.loops.link_loads import link_loads
from phistar.loops.system import loop_system, motion_at
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.wrenches import Wrenches, check_numbers, check_wrenches, link_forces
from phistar.whole_system.link_blocks import by_joint, link_blocks
from phistar.whole_system.loop_blocks import loop_blocks
from phistar.whole_system.sparse_equations import WholeSystem


class HasWholeSystem:
    """Equations over all links of a robot."""

    model: Model

    if TYPE_CHECKING:

        @property
        def _held(self) -> Held: ...

    def system(
        self,
        q: Coordinates,
        v: Coordinates,
        tau: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
    ) -> WholeSystem:
        """Eq. (27) of Featherstone and Orin: one sparse system over all links.

        ``.matrix`` and ``.right_hand_side`` are symmetric and indefinite, over the accelerations of
        links and the constraint forces of joints, tips first; ``.blocks`` names them, ``.solve()``
        gives ``vdot`` and ``forces``. ``.force_equations`` is eq. (28), ``.incidence`` the matrix
        of eq. (29). Rows of closed loops are part of it. For teaching and as a witness: recursions
        solve the same equations without forming them.

        Args:
            q, v, tau: One state (nq,), (nv,), (nv,).
            forces, reference: As of ``forward_dynamics``.

        Raises:
            ArgumentError: There is a batch, or joints share coordinates.
            LoopOpenError, LoopVelocityError: The state is not on the loops.
        """
        model = self.model
        _refuse_shared(model, "system")
        wrenches = check_wrenches(model, q, forces, reference)
        q, v, tau = checked_state(model, q=q, v=v, tau=tau)
        check_numbers(model, {"q": q, "v": v, "tau": tau}, wrenches)
        if any(x.ndim > 1 for x in (q, v, tau)):
            shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], tau.shape[:-1])
            raise ArgumentError(
                f"system takes one state, got a batch {shape}: a sparse matrix has no batch axes; "
                "ask sample by sample"
            )
        precision = max(float(np.finfo(x.dtype).eps) for x in (q, v))
        q, v, tau = (np.asarray(x, dtype=float) for x in (q, v, tau))
        if loop_system(model).count:
            require_on_loops(model, motion_at(model, q, v), v, "system", precision)
        if model.turning_rotors:
            tau = tau - _force_of_turning_rotors(model, q, v)
        blocks = link_blocks(model, q, v, wrenches)
        return WholeSystem(model, blocks, tau, loop_blocks(model, blocks, q, v))

    def reaction_forces(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        *,
        tau: Coordinates | None = None,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
    ) -> Mapping[str, Array]:
        """Forces through joints: for each (..., 6) [moment; force], Nm and N, on its link.

        In the axes of the link at its joint, by one sweep outward and one inward. Their part along
        the joint is its torque less what its rotor takes; of a joint of several in one (universal)
        that of the outermost. Fixed joints are part of links and have none.

        On closed loops the wrenches of the loops push the links, too, and depend on the joint
        forces under which the robot moves; where loops hold each other in tension they are those
        of the shortest multipliers, and a warning says so.

        Args:
            q, v, vdot: (..., nq), (..., nv), (..., nv); on the loops, where there are some.
            tau: (..., nv) joint forces under which a robot with loops moves so; default: those of
                ``constrained_inverse_dynamics``. Trees have no choice: leave it out.
            forces, reference: As of ``inverse_dynamics``.

        Raises:
            ArgumentError: ``tau`` does not give ``vdot``, or the robot has no loops.
            LoopOpenError, LoopVelocityError: The motion is not on the loops.
            UnderactuatedError: The actuators cannot give this acceleration.
        """
        model = self.model
        wrenches = check_wrenches(model, q, forces, reference)
        if loop_system(model).count:
            return self._reactions_on_loops(q, v, vdot, tau, wrenches)
        if tau is not None:
            raise ArgumentError(
                f"reaction_forces of robot '{model.name}' takes no tau: it has no loops, and its "
                "motion alone says what joints carry; leave tau out"
            )
        q, v, vdot = checked_state(model, q=q, v=v, vdot=vdot)
        check_numbers(model, {"q": q, "v": v, "vdot": vdot}, wrenches)
        joints = joint_map(model)
        given = {"v": joints.spread(v), "vdot": joints.spread(vdot)}
        found = kernel("link_forces", model)(model, q, with_wrenches(given, wrenches))["f"]
        return by_joint(model, found)

    def _reactions_on_loops(
        self,
        q: Coordinates,
        v: Coordinates,
        vdot: Coordinates,
        tau: Coordinates | None,
        wrenches: Wrenches | None,
    ) -> Mapping[str, Array]:
        """Forces through joints of the tree that the loops push as well."""
        model, tree = self.model, loop_system(self.model).tree
        pushed = link_loads(model, q, v, vdot, tau, wrenches, self._held)
        q, v, vdot = checked_state(model, q=q, v=v, vdot=vdot)
        if wrenches is not None:
            pushed = pushed + link_forces(tree, q, wrenches)
        joints = joint_map(tree)
        given = {"v": joints.spread(v), "vdot": joints.spread(vdot), "f_ext": pushed}
        return by_joint(tree, kernel("link_forces", tree)(tree, q, given)["f"])


def _force_of_turning_rotors(model: Model, q: Array, v: Array) -> Array:
    """Joint forces (nv,) that rotors of balls and free joints take besides those of A v̇."""
    joints = joint_map(model)
    given = {"v": joints.spread(v)}
    with_them, without = (
        joints.gather(kernel("bias_force", at)(model, q, given)["tau"]) for at in (model, None)
    )
    return np.asarray(with_them - without)


def _refuse_shared(model: Model, what: str) -> None:
    joints = joint_map(model)
    if not joints.one_to_one or (joints.scales != 1.0).any():
        raise ArgumentError(
            f"{what} of robot '{model.name}' with joints that mimic others: load it with "
            "mimic='independent', or close them as gears"
        )

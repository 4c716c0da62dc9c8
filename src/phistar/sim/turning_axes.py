# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of what a step does with the axes of bodies that float; see ``floating_roots``.

With E the turn of the axes, E = exp(-h ω̃), J the right Jacobian of the turn and s = v + ω × c the
velocity of the centre of mass, tangent steps along axes and in them are, from (δφ, δp, δω, δv) at
the beginning to those at the end,

    δφ⁺ = Eδφ + J hδω      δp⁺ = E(δp + δφ × (c + h s) + h δs) - δφ⁺ × c
    δω⁺ = δω               δv⁺ = (Es) × (J hδω) + E δs - δω × c
"""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.derivatives.lie_jacobians import right_jacobian, step_adjoint
from phistar.joint_physics.passive_forces import IMAGINARY_STEP
from phistar.model.floating_roots import FloatingRoot, carried_velocity, floating_roots
from phistar.model.model import Model
from phistar.spatial import skew


def carried_derivative(model: Model, v: Array, h: float) -> Array:
    """(batch, nv, nv) of h c(v), by imaginary steps."""
    found = np.zeros((len(v), model.nv, model.nv))
    for root in floating_roots(model):
        for i in range(root.v, root.v + 6):
            moved = v.astype(complex)
            moved[:, i] += 1j * IMAGINARY_STEP
            found[:, :, i] += carried_velocity(model, moved, h).imag / IMAGINARY_STEP
    return found


def settled_derivatives(model: Model, v: Array, h: float, ahead: Array) -> Array:
    """Derivatives of the state after a step.

    Args:
        model: The robot.
        v: (batch, nv) v*.
        h: Length of the step.
        ahead: (batch, 2 nv, n) of q ⊕ h v* and v*, of which columns begin with those along q.
    """
    found = np.array(ahead)
    if not floating_roots(model):
        return found
    turn, way = step_adjoint(model, h * v), right_jacobian(model, h * v)
    for root in floating_roots(model):
        _settle(model, root, (v, h), (turn, way), ahead, found)
    return found


def _settle(
    model: Model,
    root: FloatingRoot,
    motion: tuple[Array, float],
    turns: tuple[Array, Array],
    ahead: Array,
    found: Array,
) -> None:
    """The twelve rows of a body that floats."""
    v, h = motion
    angular, linear = slice(root.v, root.v + 3), slice(root.v + 3, root.v + 6)
    E, J = (each[:, angular, angular] for each in turns)
    com = np.array(root.com)
    speed = v[:, linear] + np.cross(v[:, angular], com)
    by_w, by_v = (ahead[:, model.nv + own.start : model.nv + own.stop] for own in (angular, linear))
    columns = np.eye(ahead.shape[-1])
    at_start, place = columns[angular], columns[linear]
    along = E @ at_start + h * J @ by_w
    shift = by_v - skew(com) @ by_w
    straight = place - skew(com + h * speed) @ at_start + h * shift
    found[:, angular] = along
    found[:, linear] = E @ straight + skew(com) @ along
    turned = (E @ speed[..., None])[..., 0]
    later = skew(turned) @ (h * J @ by_w) + E @ shift + skew(com) @ by_w
    found[:, model.nv + linear.start : model.nv + linear.stop] = later

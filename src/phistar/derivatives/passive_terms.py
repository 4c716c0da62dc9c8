# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives with springs and dampers: joint forces τ + p(q, v) in place of τ.

δv̇ = vdot_q δq + vdot_v δv + vdot_tau (δτ + p_q δq + p_v δv)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from phistar.arguments import check_shapes
from phistar.arrays import Array
from phistar.derivatives.discrete import Discretization
from phistar.derivatives.first import InverseLinearization, Linearization
from phistar.joint_physics.passive_forces import passive_derivatives, passive_force_unchecked
from phistar.model.configuration import Coordinates
from phistar.model.model import Model

AnyLinearization = TypeVar("AnyLinearization", bound=Linearization)


def linearized_with_passive(
    at: AnyLinearization, model: Model, q: Coordinates, v: Coordinates, parts: tuple[str, ...]
) -> AnyLinearization:
    """A linearization at τ + p, as one of τ.

    Args:
        at: Accelerations and whatever else depends on joint forces (``x_q x_v x_tau``), at τ + p.
        model: The robot.
        q, v: The state.
        parts: Those of the joint physics.
    """
    along_q, along_v = _derivatives(model, q, v, parts)
    changes: dict[str, Any] = {}
    for name, by_tau in vars(at).items():
        stem = name.removesuffix("_tau")
        if stem == name or by_tau is None:
            continue
        for suffix, force in (("q", along_q), ("v", along_v)):
            before = getattr(at, f"{stem}_{suffix}")
            changes[f"{stem}_{suffix}"] = before + by_tau @ force
    return replace(at, **changes)


def discretized_with_passive(
    step: Discretization, model: Model, q: Coordinates, v: Coordinates, parts: tuple[str, ...]
) -> Discretization:
    """An explicit step under τ + p, p as it is at its start, as one under τ."""
    force = np.concatenate(np.broadcast_arrays(*_derivatives(model, q, v, parts)), axis=-1)
    return replace(step, A=step.A + step.B @ force)


def inverse_with_passive(
    at: InverseLinearization, model: Model, q: Coordinates, v: Coordinates, parts: tuple[str, ...]
) -> InverseLinearization:
    """Joint forces that motors give besides p, and their derivatives."""
    arrays = check_shapes(model, q=q, v=v)
    along_q, along_v = _derivatives(model, q, v, parts)
    force = passive_force_unchecked(model, arrays["q"], arrays["v"], parts)
    return InverseLinearization(at.tau - force, at.tau_q - along_q, at.tau_v - along_v, at.tau_vdot)


def _derivatives(
    model: Model, q: Coordinates, v: Coordinates, parts: tuple[str, ...]
) -> tuple[Array, Array]:
    arrays = check_shapes(model, q=q, v=v)
    along_q, along_v = passive_derivatives(model, arrays["q"], arrays["v"], parts)
    real = np.result_type(arrays["q"], arrays["v"])
    return along_q, along_v.astype(real)

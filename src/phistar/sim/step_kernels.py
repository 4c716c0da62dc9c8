# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of machine code that steps of time are made of."""

from __future__ import annotations

import hashlib
from importlib import import_module
from typing import TYPE_CHECKING

from phistar.compile import kernel
from phistar.model.model import Model
from phistar.model.model_cache import cached_for_equal_models
from phistar.model.wrenches import Wrenches

if TYPE_CHECKING:
    from phistar.backends.llvm.run.machine_kernel import MachineKernel


def quantity_kernel(
    name: str,
    model: Model,
    real: str,
    patient: bool,
    wrenches: Wrenches | None = None,
    choices: tuple[object, ...] | None = None,
) -> MachineKernel:
    """The kernel of a program of the catalogue; the best one for who is patient."""
    from phistar.backends.to_llvm import MachineCode

    code = kernel(name, model).build(model, choices=choices or ())
    assert isinstance(code, MachineCode)
    tiers = code.tiers((), real, None if wrenches is None else wrenches.at)
    return tiers.wait_for_final() if patient else tiers.kernel


@cached_for_equal_models(64)
def small_kernel(model: Model, name: str, choices: tuple[object, ...], real: str) -> MachineKernel:
    """The kernel of a short program, made on the spot.

    Args:
        model: The robot.
        name: ``"module.function"`` of ``scalar.trace``.
        choices: Arguments of the function after the robot.
        real: Precision.
    """
    from phistar.backends.llvm.run.key import compiler_digest
    from phistar.backends.llvm.run.tiers import TieredKernel

    text = "\n".join([compiler_digest(), name, model.fingerprint, repr(choices)])
    key = hashlib.sha256(text.encode()).hexdigest()
    module, function = name.split(".")
    trace = getattr(import_module(f"phistar.scalar.trace.{module}"), function)
    title = f"{model.name}: {name}"
    return TieredKernel(key, real, title, None, lambda: trace(model, *choices)).kernel

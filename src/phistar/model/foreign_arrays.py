# SPDX-License-Identifier: BSD-3-Clause
"""Values that look like arrays to NumPy but are not: tracers, tensors, symbols, masked arrays.

They are recognised by the module of their type, without importing those packages.
"""

from __future__ import annotations

import sys
from typing import Any

from phistar.errors import ArgumentError

PACKAGES = {"jax": "JAX", "jaxlib": "JAX", "torch": "torch", "casadi": "CasADi"}

_DERIVATIVES = (
    "its derivatives are robot.jvp and robot.vjp (products) and robot.linearize (matrices), from "
    "which a function with a custom derivative can be made"
)


def refuse_foreign(x: Any, argument: str) -> None:
    """Raise if a value, or the first one in a list, must not be converted silently.

    A concrete float64 array may be: nothing is lost. A float32 one may not: float32 is the default
    of those packages, not a request for results in float32.

    Raises:
        ArgumentError: It must not; the message says what to do.
    """
    while isinstance(x, list | tuple) and x:
        x = x[0]
    # To ask NumPy for the type imports its package; who has such an array has done that.
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(x, masked.MaskedArray):
        if masked.getmaskarray(x).any():
            raise ArgumentError(
                f"{argument} is a masked array with {int(masked.getmaskarray(x).sum())} entries "
                "masked; fill them (x.filled(...)) or leave those samples out"
            )
        return
    package = PACKAGES.get(type(x).__module__.partition(".")[0])
    if package is None:
        return
    kind = type(x).__name__
    if package == "CasADi":
        if kind == "DM":
            raise ArgumentError(f"{argument} is a CasADi DM, a matrix; pass x.full().ravel()")
        raise ArgumentError(
            f"{argument} is a CasADi {kind}, a symbol without a value; wrap the robot in a CasADi "
            f"Callback, {_DERIVATIVES}"
        )
    if "Tracer" in kind:
        raise ArgumentError(
            f"{argument} is a JAX tracer ({kind}): methods of a robot cannot run inside jit, grad "
            "or vmap; those of phistar.interop.jax.wrap(robot) can, with its derivatives"
        )
    if getattr(x, "requires_grad", False):
        raise ArgumentError(
            f"{argument} is a torch tensor that requires a gradient, which an array would lose; "
            "phistar.interop.torch.wrap(robot) keeps it, with the robot's derivatives, or pass "
            "x.detach().numpy() if no gradient is wanted"
        )
    dtype = str(getattr(x, "dtype", "")).removeprefix("torch.")
    if dtype not in ("float64", "double") and "float" in dtype:
        pure = "x.double().numpy()" if package == "torch" else "np.asarray(x, dtype=np.float64)"
        raise ArgumentError(
            f"{argument} is a {package} array in {dtype}, the default there, and the result would "
            f"be as coarse; pass {pure}, or np.asarray(x) if {dtype} is meant"
        )

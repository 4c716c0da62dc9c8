# SPDX-License-Identifier: BSD-3-Clause
"""Values that look like arrays to NumPy but are not: tracers, tensors, symbols, masked arrays.

They are recognised by the module of their type, without importing those packages.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError

PACKAGES = {"jax": "JAX", "jaxlib": "JAX", "torch": "torch", "casadi": "CasADi"}

_DERIVATIVES = (
    "its derivatives are robot.jvp and robot.vjp (products) and robot.linearize (matrices), from "
    "which a function with a custom derivative can be made"
)


def refuse_foreign(x: object, argument: str) -> None:
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
        _refuse_masked(int(masked.getmaskarray(x).sum()), argument)
        return
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
        _refuse_subclass(x, argument)
    package = PACKAGES.get(type(x).__module__.partition(".")[0])
    if package is not None:
        _refuse_of_package(x, package, argument)


def _refuse_masked(masked: int, argument: str) -> None:
    if masked:
        raise ArgumentError(
            f"{argument} is a masked array with {masked} entries masked; fill them "
            "(x.filled(...)) or leave those samples out"
        )


def _refuse_of_package(x: object, package: str, argument: str) -> None:
    """The same for a value of a package that differentiates or compiles."""
    kind = type(x).__name__
    if package == "CasADi":
        if kind == "DM":
            raise ArgumentError(f"{argument} is a CasADi DM, a matrix; pass x.full().ravel()")
        raise ArgumentError(
            f"{argument} is a CasADi {kind}, a symbol without a value; take "
            "phistar.interop.casadi.function(robot, name), a function of CasADi with its "
            "derivatives"
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


def _refuse_subclass(x: Array, argument: str) -> None:
    """Raise if a kind of NumPy array means something that its numbers do not say.

    All others are taken as arrays, and results are arrays of NumPy.

    Raises:
        ArgumentError: It is a matrix, or has a unit.
    """
    kind = type(x)
    if isinstance(x, np.matrix):
        raise ArgumentError(
            f"{argument} is a np.matrix, which has two axes whatever it holds; pass "
            "np.asarray(x), or np.asarray(x).ravel() for one sample"
        )
    unit = getattr(x, "unit", getattr(x, "units", None))
    if unit is not None:
        raise ArgumentError(
            f"{argument} is a {kind.__module__}.{kind.__name__} with unit '{unit}', which an array "
            "would lose; pass its numbers in rad, m, s, N and N m"
        )


def labelled_columns(x: Any) -> Mapping[Hashable, Array] | None:
    """The columns of a pandas object by their labels, where these are names; None otherwise.

    Labels that are numbers count positions, and the values are an array as any other.
    """
    if type(x).__module__.partition(".")[0] != "pandas":
        return None
    labels = getattr(x, "columns", getattr(x, "index", ()))
    if not any(isinstance(label, str) for label in labels):
        return None
    if len(set(labels)) != len(labels):
        raise ArgumentError(f"labels of a pandas {type(x).__name__} are not unique: {list(labels)}")
    return {label: np.asarray(x[label]) for label in labels}

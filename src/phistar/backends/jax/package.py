# SPDX-License-Identifier: BSD-3-Clause
"""JAX itself: imported here and nowhere else, when a program is first built with it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from phistar.arrays import Array, has_no_precision
from phistar.errors import ArgumentError, MissingExtraError, require_version
from phistar.model.configuration import as_numbers

if TYPE_CHECKING:
    from jax import Array as AnyJaxArray
    from jax.core import ShapedArray as ShapedArray
    from jax.extend.core import Primitive as Primitive
    from jax.interpreters.mlir import LoweringRuleContext as LoweringRuleContext
    from jaxlib.mlir.ir import Attribute as Attribute
    from jaxlib.mlir.ir import Value as Value

    JaxArray: TypeAlias = AnyJaxArray

OLDEST = (0, 10)
"""The first version whose foreign functions and primitives are what we use."""
PRECISIONS = ("float32", "float64", "complex64", "complex128")


def jax() -> ModuleType:
    """The package.

    Raises:
        MissingExtraError: It is not installed.
        PackageVersionError: It is too old.
    """
    try:
        import jax as found
        import jax.numpy
    except ImportError:
        raise MissingExtraError("jax", "jax", "the backend 'jax'") from None
    package: ModuleType = found
    _require(package.__version__)
    return package


@cache
def _require(version: str) -> None:
    require_version("jax", version, OLDEST, "jax")


def jax_extension() -> SimpleNamespace:
    """What primitives of one's own are made with: ``.core .ad .batching .mlir .ffi`` and so on.

    Raises:
        MissingExtraError: JAX is not installed.
    """
    jax()
    from jax import ffi, sharding
    from jax.core import ShapedArray
    from jax.extend import core
    from jax.interpreters import ad, batching, mlir
    from jaxlib.mlir.dialects import sdy

    return SimpleNamespace(
        core=core,
        ad=ad,
        batching=batching,
        mlir=mlir,
        sdy=sdy,
        ffi=ffi,
        sharding=sharding,
        ShapedArray=ShapedArray,
    )


def double_precision() -> AbstractContextManager[object]:
    """Inside, float64 is float64, whatever the user's setting is; only this thread notices."""
    context: AbstractContextManager[object] = jax().enable_x64(True)
    return context


def has_double_precision() -> bool:
    """Whether the user's own JAX code computes in float64."""
    return bool(jax().config.jax_enable_x64)


def is_jax_array(x: object) -> bool:
    """Whether a value is an array of JAX, traced or not; JAX is not imported to find out."""
    loaded = sys.modules.get("jax")
    return loaded is not None and isinstance(x, loaded.Array)


def as_jax_array(x: JaxArray, argument: str) -> Array:
    """A value as an array of JAX in the precision that it has.

    Integers, numbers without axes and lists of Python's numbers have none of their own: they are in
    the precision of the user's JAX.

    Raises:
        ArgumentError: JAX would make another one of it without a word, or programs do not know it.
    """
    plain = not is_jax_array(x) and has_no_precision(x)
    array = x if is_jax_array(x) else as_numbers(x, argument)
    kind = str(array.dtype)
    if array.dtype.kind in "biu" or (array.dtype.kind == "f" and plain):
        kind = "float64" if has_double_precision() else "float32"
        array = array.astype(kind)
    if kind not in PRECISIONS:
        raise ArgumentError(
            f"{argument} has dtype {kind}; programs compute in {', '.join(PRECISIONS)}: "
            f"convert it first, {argument}.astype('float32')"
        )
    if not is_jax_array(x) and kind in ("float64", "complex128") and not has_double_precision():
        raise ArgumentError(
            f"{argument} is a NumPy array in {kind}, of which JAX would silently make a "
            "float32 one: enable float64 first, jax.config.update('jax_enable_x64', True), or pass "
            f"{argument}.astype('float32') if that is meant"
        )
    if not is_jax_array(array):
        # JAX may go on reading an array of NumPy after the call is back; this copy is nobody's.
        array = np.array(array)
    found: Array = jax().numpy.asarray(array)
    return found


def manual_axes(aval: ShapedArray) -> dict[str, Any]:
    """What a type says about axes of devices inside ``jax.shard_map``, by JAX's name for it."""
    kind = getattr(aval, "manual_axis_type", None)
    return {} if kind is None else {"manual_axis_type": kind}


def varying_alike(arrays: Sequence[JaxArray]) -> Sequence[JaxArray]:
    """Arrays that differ between the same devices of ``jax.shard_map``, as primitives want them."""
    package = jax()
    kinds = [manual_axes(package.typeof(x)) for x in arrays]
    axes: list[frozenset[str]] = [
        each["manual_axis_type"].varying if each else frozenset() for each in kinds
    ]
    every = frozenset[str]().union(*axes)
    return [
        x if each == every else package.lax.pcast(x, tuple(every - each), to="varying")
        for x, each in zip(arrays, axes, strict=True)
    ]

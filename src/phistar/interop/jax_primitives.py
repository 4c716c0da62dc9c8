# SPDX-License-Identifier: BSD-3-Clause
"""Two primitives of JAX: a quantity of a robot, and a kernel of machine code.

A quantity is what users' functions are made of. It is differentiated by its rule, into quantities
again; a map over it becomes its batch; for XLA it is a call of a kernel, or of Python where there
is none. Its arrays are (*batch, size), batches of one rank, each whole or of ones alone.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from phistar.backends.jax.package import jax, jax_extension, manual_axes, varying_alike
from phistar.errors import ArgumentError

if TYPE_CHECKING:
    from phistar.backends.jax.package import (
        Attribute,
        JaxArray,
        LoweringRuleContext,
        Primitive,
        ShapedArray,
        Value,
    )
    from phistar.interop.jax_calculations import JaxCalculation
    from phistar.interop.jax_ffi import KernelHandle

Shapes = tuple[tuple[int, ...], ...]
T = TypeVar("T")


class Weakly(Generic[T]):
    """A parameter of a primitive that does not keep its object alive.

    JAX keeps parameters in caches of its own. Quantities live as long as the wrapped robot, which
    functions hold; kernels as long as executables.
    """

    def __init__(self, thing: T) -> None:
        self._reference = weakref.ref(thing)
        self._text = repr(thing)

    def __repr__(self) -> str:
        return self._text

    def __call__(self) -> T:
        """The object.

        Raises:
            ArgumentError: It is gone.
        """
        found = self._reference()
        if found is None:
            raise ArgumentError(
                f"a function of JAX calls {self._text}, which is gone: keep what wrap(robot) gave "
                "as long as functions that were traced with it are used"
            )
        return found


def batch_of(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The batch of arrays (*batch, size) of one rank."""
    return tuple(np.broadcast_shapes(*(shape[:-1] for shape in shapes)))


def result_types(avals: Sequence[ShapedArray], shapes: Shapes) -> list[ShapedArray]:
    """Types of results of these shapes for each sample: on the devices that have the batch."""
    ext = jax_extension()
    batch = batch_of([each.shape for each in avals])
    meshes = [each.sharding.mesh for each in avals if not each.sharding.mesh.empty]
    if not meshes:
        return [ext.ShapedArray((*batch, *shape), avals[0].dtype) for shape in shapes]
    spread: list[Any] = [None] * len(batch)
    for each in avals:
        for i, axes in enumerate(each.sharding.spec[: len(batch)]):
            if each.shape[i] == batch[i]:
                spread[i] = spread[i] or axes
    sharding = ext.sharding
    found = []
    for shape in shapes:
        spec = sharding.PartitionSpec(*spread, *(None,) * len(shape))
        where = sharding.NamedSharding(meshes[0], spec)
        more = manual_axes(avals[0])
        found.append(ext.ShapedArray((*batch, *shape), avals[0].dtype, sharding=where, **more))
    return found


def fill_batches(arrays: Sequence[JaxArray]) -> list[JaxArray]:
    """Arrays whose batches broadcast, as ones of one rank, each whole or of ones alone."""
    jnp = jax().numpy
    batch = tuple(np.broadcast_shapes(*(x.shape[:-1] for x in arrays)))
    found = []
    for x in varying_alike(arrays):
        own = (1,) * (len(batch) - x.ndim + 1) + x.shape[:-1]
        if own not in (batch, (1,) * len(batch)):
            x, own = jnp.broadcast_to(x, (*batch, x.shape[-1])), batch
        found.append(x.reshape((*own, x.shape[-1])))
    return found


class _Primitives:
    """Both primitives; JAX is told of each when it is first used."""

    @cached_property
    def quantity(self) -> Primitive:
        """The primitive of quantities; parameter ``calc``."""
        ext = jax_extension()
        made = ext.core.Primitive("phistar_quantity")
        made.multiple_results = True
        made.def_impl(lambda *arrays, calc: calc().compiled(*arrays))
        made.def_abstract_eval(_quantity_shapes)
        ext.ad.primitive_jvps[made] = _quantity_jvp
        ext.ad.primitive_transposes[made] = _quantity_transpose
        ext.batching.primitive_batchers[made] = _quantity_batch
        ext.mlir.register_lowering(made, _lower_quantity)
        return made

    @cached_property
    def kernel(self) -> Primitive:
        """The primitive of kernels; parameters ``handle`` and ``shapes`` of the outputs."""
        ext = jax_extension()
        made = ext.core.Primitive("phistar_kernel")
        made.multiple_results = True
        made.def_abstract_eval(_kernel_shapes)
        ext.mlir.register_lowering(made, _lower_kernel, platform="cpu")
        return made


PRIMITIVES = _Primitives()


# -- quantities


def _quantity_shapes(*avals: ShapedArray, calc: Weakly[JaxCalculation]) -> list[ShapedArray]:
    return result_types(avals, calc().shapes)


def _quantity_jvp(
    primals: Sequence[JaxArray], tangents: Sequence[JaxArray], *, calc: Weakly[JaxCalculation]
) -> tuple[Sequence[JaxArray], Sequence[JaxArray]]:
    zero = jax_extension().ad.Zero
    quantity = calc()
    moved = [
        None if type(t) is zero else quantity.tangent(i, x, t)
        for i, (x, t) in enumerate(zip(primals, tangents, strict=True))
    ]
    return quantity.linearized(tuple(primals), moved)


def _quantity_transpose(
    gradients: Sequence[JaxArray], *arrays: JaxArray, calc: Weakly[JaxCalculation]
) -> list[JaxArray | None]:
    """Of a change along directions, which is linear in them: the product in O(n) backward."""
    ad = jax_extension().ad
    quantity = calc()
    if not quantity.is_change:
        raise ArgumentError(f"{quantity.name} is not linear in its arguments")
    (gradient,) = gradients
    count = len(arrays) // 2
    if type(gradient) is ad.Zero:
        return [None] * len(arrays)
    found = quantity.pulled(arrays[:count], gradient)
    back = [
        summed_to(g, x.aval.shape) if ad.is_undefined_primal(x) else None
        for g, x in zip(found, arrays[count:], strict=True)
    ]
    return [*(None,) * count, *back]


def summed_to(x: JaxArray, shape: tuple[int, ...]) -> JaxArray:
    """Summed over the axes along which an array of a shape was broadcast."""
    axes = tuple(i for i, (a, b) in enumerate(zip(x.shape, shape, strict=True)) if a != b)
    return x.sum(axes, keepdims=True) if axes else x


def _quantity_batch(
    arrays: Sequence[JaxArray], dims: Sequence[int | None], *, calc: Weakly[JaxCalculation]
) -> tuple[Sequence[JaxArray], Sequence[int]]:
    jnp = jax().numpy
    if calc().has_one_state(dims):
        # Many directions at the same states: matrices once, and their products.
        return calc().by_matrices(arrays, dims)
    ready = [
        x[None] if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(arrays, dims, strict=True)
    ]
    found = PRIMITIVES.quantity.bind(*fill_batches(ready), calc=calc)
    return found, (0,) * len(found)


def _lower_quantity(
    ctx: LoweringRuleContext, *operands: Value, calc: Weakly[JaxCalculation]
) -> Sequence[Value]:
    mlir = jax_extension().mlir
    quantity = calc()
    _refuse_export(ctx, quantity.name)
    platforms = tuple(ctx.platforms or ctx.module_context.platforms)
    if platforms != ("cpu",):
        raise ArgumentError(
            f"{quantity.name} is machine code for this processor, asked for on "
            f"{', '.join(platforms)}: wrap(robot, engine='xla') compiles it for accelerators"
        )
    lowered = quantity.lowered_whole if spans_devices(ctx) else quantity.lowered
    made: Sequence[Value] = mlir.lower_fun(lowered, multiple_results=True)(ctx, *operands)
    return made


def _refuse_export(ctx: LoweringRuleContext, name: str) -> None:
    parameters = getattr(ctx.module_context, "lowering_parameters", None)
    if getattr(parameters, "for_export", False):
        raise ArgumentError(
            f"{name} cannot be exported: it is machine code in the memory of this process, which "
            "no other one has; wrap(robot, engine='xla') makes functions that jax.export takes"
        )


# -- kernels


def _kernel_shapes(
    *avals: ShapedArray, handle: Weakly[KernelHandle], shapes: Shapes
) -> list[ShapedArray]:
    del handle
    return result_types(avals, shapes)


def _lower_kernel(
    ctx: LoweringRuleContext, *operands: Value, handle: Weakly[KernelHandle], shapes: Shapes
) -> Sequence[Value]:
    from phistar.interop.jax_ffi import TARGET

    del shapes
    found = handle()
    _refuse_export(ctx, "a kernel")
    ctx.module_context.add_keepalive(found)
    shapes_in, shapes_out = ([x.shape for x in avals] for avals in (ctx.avals_in, ctx.avals_out))
    rank = len(batch_of(shapes_in))
    lower = jax_extension().ffi.ffi_lowering(
        TARGET, extra_attributes=batch_attributes(shapes_in, shapes_out, rank)
    )
    numbers = {"kernel": np.int64(found.address), "process": np.int64(found.process)}
    made: Sequence[Value] = lower(ctx, *operands, **numbers)
    return made


def batch_attributes(
    shapes_in: Sequence[tuple[int, ...]], shapes_out: Sequence[tuple[int, ...]], rank: int
) -> dict[str, Attribute]:
    """What XLA's partitioners read of a call: the first ``rank`` axes of all arrays are a batch.

    Devices that hold parts of a batch then compute these, and nothing is gathered. Arrays must have
    the whole batch, see ``spans_devices``.
    """
    ext = jax_extension()
    sizes = list(shapes_out[0][:rank])

    def axes(shape: tuple[int, ...]) -> Attribute:
        """The axes of an array: those of the batch are 0, 1, ..., all others its own."""
        numbers = list(range(rank))
        for size in shape[rank:]:
            numbers.append(len(sizes))
            sizes.append(size)
        mapped = [ext.sdy.DimMappingAttr.get(factor_indices=[i]) for i in numbers]
        return ext.sdy.TensorMappingAttr.get(dim_mappings=mapped)

    sides = [list(map(axes, shapes)) for shapes in (shapes_in, shapes_out)]
    rule = ext.sdy.OpShardingRuleAttr.get(
        factor_sizes=sizes, operand_mappings=sides[0], result_mappings=sides[1], is_custom=True
    )
    return {
        "mhlo.frontend_attributes": ext.mlir.ir_attribute({"num_batch_dims": str(rank)}),
        "sdy.sharding_rule": rule,
    }


def spans_devices(ctx: LoweringRuleContext) -> bool:
    """Whether XLA cuts what is being lowered between several devices by itself."""
    where = ctx.module_context.axis_context
    manual = getattr(where, "manual_axes", None)
    if manual is not None:  # in shard_map, which may leave some axes to XLA
        return set(manual) != set(where.mesh.axis_names)
    return getattr(where, "num_devices", 1) > 1

# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of a robot on arrays of JAX: by machine code (``FfiField``) or by XLA (``XlaField``).

Both are a ``derivative_rules.Field``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from phistar.arrays import Array
from phistar.backends.jax.package import jax, varying_alike
from phistar.interop import derivative_rules as rules
from phistar.interop.array_values import Choice, added
from phistar.interop.jax_primitives import (
    PRIMITIVES,
    Weakly,
    fill_batches,
)
from phistar.interop.package_field import Calculated, PackageField
from phistar.interop.quantities import Calculation
from phistar.kernels import RobotKernel
from phistar.model.joint_map import joint_map
from phistar.robot import Robot

if TYPE_CHECKING:
    from phistar.backends.jax.package import JaxArray
    from phistar.interop.jax_ffi import KernelHandle

C = TypeVar("C", bound=Calculated, covariant=True)

REALS = {"float64": "double", "float32": "float"}
"""What kernels compute in, by dtype."""


class JaxField(PackageField["JaxArray", C]):
    """Arithmetic of JAX, for rules."""

    def __init__(self, robot: Robot) -> None:
        jnp = jax().numpy
        super().__init__(robot, jnp, lambda parts: jnp.concatenate(parts, -1))

    def eye(self, size: int, like: JaxArray) -> JaxArray:
        """See ``Field``."""
        made: JaxArray = jax().numpy.eye(size, dtype=like.dtype)
        return made


class FfiField(JaxField["JaxCalculation"]):
    """Quantities by machine code.

    Attributes:
        callback: Whether Python is called back instead.
    """

    def __init__(self, robot: Robot, callback: bool) -> None:
        super().__init__(robot)
        self.callback = callback

    def _adapted(self, made: Calculation) -> JaxCalculation:
        return JaxCalculation(self, made)

    def call(self, name: str, *arrays: JaxArray, **choices: Choice) -> Sequence[JaxArray]:
        """See ``Field``."""
        calc = self.calculation(name, choices)
        found: Sequence[JaxArray] = PRIMITIVES.quantity.bind(
            *fill_batches(arrays), calc=calc.reference
        )
        return found


_Called = tuple["KernelHandle", list[int], dict[str, tuple[int, ...]]]
"""A kernel, the arguments that it reads, and shapes of its outputs for one sample."""


class JaxCalculation:
    """A quantity as the primitive knows it.

    Attributes:
        field: The robot's quantities.
        made: What it is.
        reference: To itself, for JAX.
    """

    def __init__(self, field: FfiField, made: Calculation) -> None:
        self.field = field
        self.made = made
        self._handles: dict[str, _Called | None] = {}
        self.reference = Weakly(self)

    def __repr__(self) -> str:
        return repr(self.made)

    @property
    def name(self) -> str:
        """Of the quantity."""
        return self.made.name

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the results for one sample."""
        return self.made.shapes

    @cached_property
    def compiled(self) -> Callable[..., Sequence[JaxArray]]:
        """The quantity outside of any other function of JAX."""
        bind = PRIMITIVES.quantity.bind
        made: Callable[..., Sequence[JaxArray]] = jax().jit(
            lambda *arrays: bind(*arrays, calc=self.reference)
        )
        return made

    # -- derivatives

    def tangent(self, argument: int, x: JaxArray, change: JaxArray) -> JaxArray:
        """The change of an argument along its directions: tangent steps of configurations."""
        if not self.made.is_configuration(argument):
            return change
        return self.field.space.velocity_of(x, change)

    def linearized(
        self, arrays: tuple[JaxArray, ...], moved: Sequence[JaxArray | None]
    ) -> tuple[Sequence[JaxArray], Sequence[JaxArray]]:
        """The results, and their changes along changes of the arguments; None: no change."""
        if self.name in rules.MATRICES and not self.made.on_loops:
            return self._pushed(arrays, moved)
        rule = self.made.rule
        if rule is None:
            raise rules.no_derivative(
                self.name,
                self.made.on_loops,
                "; wrap(robot, engine='xla') has all that JAX makes",
            )
        values, partials = rule(self.field, self.name, self.made.choices, arrays)
        changes = []
        for value, row in zip(values, partials, strict=True):
            total = None
            for partial, change in zip(row, moved, strict=True):
                if partial is None or change is None:
                    continue
                rank = partial.ndim - change.ndim
                wide = change.reshape((*change.shape[:-1], *(1,) * rank, change.shape[-1]))
                term = (partial * wide).sum(-1)
                total = term if total is None else total + term
            changes.append(self.field.zeros_like(value) if total is None else total)
        return values, changes

    def _pushed(
        self, arrays: tuple[JaxArray, ...], moved: Sequence[JaxArray | None]
    ) -> tuple[Sequence[JaxArray], Sequence[JaxArray]]:
        """The same by a product in O(n), which JAX can transpose."""
        values = PRIMITIVES.quantity.bind(*arrays, calc=self.reference)
        batch = values[0].shape[:-1]
        nothing = jax().numpy.zeros((*(1,) * len(batch), self.field.nv), values[0].dtype)
        given = [nothing if x is None else x for x in moved]
        return values, self.field.call(f"{self.name}_jvp", *arrays, *given)

    @property
    def is_change(self) -> bool:
        """Whether it is the change of a quantity along directions."""
        return self.name.removesuffix("_jvp") in rules.MATRICES and self.name.endswith("_jvp")

    @property
    def is_gradient(self) -> bool:
        """Whether it is the gradient of weights times a quantity."""
        return self.name.removesuffix("_vjp") in rules.MATRICES and self.name.endswith("_vjp")

    def pulled(self, arrays: Sequence[JaxArray], gradient: JaxArray) -> Sequence[JaxArray]:
        """Of a change: gradients with respect to the directions."""
        return self.field.call(self.name.replace("_jvp", "_vjp"), *arrays, gradient)

    def has_one_state(self, dims: Sequence[int | None]) -> bool:
        """Whether a map is over directions or weights alone, of a change or a gradient."""
        if not (self.is_change or self.is_gradient):
            return False
        return all(axis is None for axis in dims[:3]) and self.field.nv > 1

    def by_matrices(
        self, arrays: Sequence[JaxArray], dims: Sequence[int | None]
    ) -> tuple[Sequence[JaxArray], Sequence[int]]:
        """The same for such a map, by the matrices of the quantity."""
        jnp = jax().numpy
        matrices = self.field.call(rules.MATRICES[self.name[:-4]], *arrays[:3])[1:]
        rest = [
            x[None] if axis is None else jnp.moveaxis(x, axis, 0)
            for x, axis in zip(arrays[3:], dims[3:], strict=True)
        ]
        if self.is_change:
            pairs = zip(matrices, rest, strict=True)
            found = [added((m * d[..., None, :]).sum(-1) for m, d in pairs)]
        else:
            found = [(m * rest[0][..., :, None]).sum(-2) for m in matrices]
        return found, (0,) * len(found)

    # -- what XLA gets

    def lowered(self, *arrays: JaxArray) -> Sequence[JaxArray]:
        """The quantity as a call of a kernel, or of Python."""
        handle = None if self.field.callback else self.handle(str(arrays[0].dtype))
        if handle is None:
            return self._called_back(arrays)
        found = self._by_kernel(handle, arrays)
        if not self.made.on_loops:
            return found
        # Where rows lose their rank the robot knows another way.
        package = jax()
        fine = package.numpy.isfinite(found[0]).all()
        chosen: Sequence[JaxArray] = package.lax.cond(
            fine, lambda *_: tuple(found), lambda *given: tuple(self._called_back(given)), *arrays
        )
        return chosen

    def lowered_whole(self, *arrays: JaxArray) -> Sequence[JaxArray]:
        """The same with the whole batch in every array, which devices can share."""
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        jnp = jax().numpy
        return self.lowered(*(jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays))

    def handle(self, dtype: str) -> _Called | None:
        """The kernel for a precision; None if there is none."""
        from phistar.interop.jax_ffi import KernelHandle, handler

        if dtype not in self._handles:
            real = REALS[dtype]
            kernel, there = self.made.kernel(real), handler()
            made = None
            if kernel is not None and there is not None:
                reads = self.made.kernel_arguments(kernel)
                outputs = self.made.kernel_shapes(kernel, real)
                made = (KernelHandle.of_kernel(there, kernel), reads, outputs)
            self._handles[dtype] = made
        return self._handles[dtype]

    def _by_kernel(self, found: _Called, arrays: Sequence[JaxArray]) -> Sequence[JaxArray]:
        handle, reads, outputs = found
        made = self.made
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        given = list(arrays)
        if made.in_body_order:
            spread = joint_map(made.model).spread
            given = [
                x if name == "q" else spread(x)
                for name, x in zip(made.arguments, given, strict=True)
            ]
        read = [given[i] for i in reads]
        if np.broadcast_shapes(*(x.shape[:-1] for x in read)) != batch:
            # What carries the batch is not read: results are the same for all of it.
            read[0] = jax().numpy.broadcast_to(read[0], (*batch, read[0].shape[-1]))
        shapes = tuple(outputs.values())
        results = PRIMITIVES.kernel.bind(*read, handle=handle.reference, shapes=shapes)
        return made.results_of(dict(zip(outputs, results, strict=True)))

    def _called_back(self, arrays: Sequence[JaxArray]) -> Sequence[JaxArray]:
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        dtype = arrays[0].dtype
        package = jax()
        shapes = [package.ShapeDtypeStruct((*batch, *each), dtype) for each in self.shapes]

        def run(*given: JaxArray) -> list[Array]:
            found = self.made.run(*(np.asarray(x) for x in given))
            return [
                np.ascontiguousarray(np.broadcast_to(x, each.shape), each.dtype)
                for x, each in zip(found, shapes, strict=True)
            ]

        found: Sequence[JaxArray] = package.pure_callback(run, shapes, *arrays)
        return varying_alike([*arrays, *found])[len(arrays) :]


class XlaField(JaxField["XlaCalculation"]):
    """Quantities as XLA compiles them, by the backend ``jax``; JAX differentiates."""

    def _adapted(self, made: Calculation) -> XlaCalculation:
        return XlaCalculation(made)

    def call(self, name: str, *arrays: JaxArray, **choices: Choice) -> Sequence[JaxArray]:
        """See ``Field``.

        Raises:
            ArgumentError: There are no sweeps of it.
        """
        return self.calculation(name, choices).run(*arrays)


class XlaCalculation:
    """A quantity as XLA compiles it.

    Attributes:
        made: What it is.
    """

    def __init__(self, made: Calculation) -> None:
        self.made = made

    @cached_property
    def _kernel(self) -> RobotKernel:
        made = self.made
        usual = made.quantity.choices
        named = made.choices.get("frames") or made.choices.get("frame") or ()
        frames = [named] if isinstance(named, str) else list(cast(Sequence[str], named))
        others: dict[str, Any] = {
            name: chosen
            for name, chosen in made.choices.items()
            if name not in ("frame", "frames") and chosen != usual[name]
        }
        return made.robot.compile(made.name, backend="jax", frames=frames, **others)

    def run(self, *arrays: JaxArray) -> Sequence[JaxArray]:
        """The results."""
        first, *rest = arrays
        read = self._kernel.inputs
        pairs = zip(self.made.arguments[1:], rest, strict=True)
        found = self._kernel.function(first, **{name: x for name, x in pairs if name in read})
        if not isinstance(found, Mapping):
            return [found]
        return [found[each] for each in self.made.outputs]

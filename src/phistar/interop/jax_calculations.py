# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of a robot on arrays of JAX: by machine code (``FfiField``) or by XLA (``XlaField``).

Both are a ``derivative_rules.Field``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from phistar.backends.jax.package import jax
from phistar.interop import derivative_rules as rules
from phistar.interop.jax_primitives import (
    Weakly,
    fill_batches,
    kernel_primitive,
    quantity_primitive,
)
from phistar.interop.quantities import Calculation, calculation
from phistar.interop.tangents import ArrayNamespace, ConfigurationSpace
from phistar.model.joint_map import joint_map
from phistar.model.kinematic_loops import active_loops
from phistar.robot import Robot

REALS = {"float64": "double", "float32": "float"}
"""What kernels compute in, by dtype."""


class JaxField:
    """Arithmetic of JAX, for rules.

    Attributes:
        robot: Whose quantities are called.
        space: Its configurations.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        jnp = jax().numpy
        namespace = ArrayNamespace(jnp, lambda parts: jnp.concatenate(parts, -1))
        self.space = ConfigurationSpace(robot.model, namespace)

    @property
    def nv(self) -> int:
        """See ``Field``."""
        return self.robot.nv

    @property
    def on_loops(self) -> bool:
        """See ``Field``."""
        return bool(active_loops(self.robot.model.loops))

    def einsum(self, text: str, *arrays: Any) -> Any:
        """See ``Field``."""
        return jax().numpy.einsum(text, *arrays)

    def moveaxis(self, x: Any, source: int, target: int) -> Any:
        """See ``Field``."""
        return jax().numpy.moveaxis(x, source, target)

    def eye(self, size: int, like: Any) -> Any:
        """See ``Field``."""
        return jax().numpy.eye(size, dtype=like.dtype)

    def zeros_like(self, x: Any) -> Any:
        """See ``Field``."""
        return jax().numpy.zeros_like(x)

    def stack(self, entries: Sequence[Any]) -> Any:
        """See ``Field``."""
        return jax().numpy.stack(entries, -1)


class FfiField(JaxField):
    """Quantities by machine code.

    Attributes:
        callback: Whether Python is called back instead.
    """

    def __init__(self, robot: Robot, callback: bool) -> None:
        super().__init__(robot)
        self.callback = callback
        self._known: dict[tuple[object, ...], JaxCalculation] = {}

    def calculation(self, name: str, choices: Mapping[str, Any]) -> JaxCalculation:
        """A quantity; the same object for the same choices."""
        key = (
            name,
            *sorted((k, tuple(x) if isinstance(x, list) else x) for k, x in choices.items()),
        )
        if key not in self._known:
            made = calculation(self.robot, name, **choices)
            self._known[key] = JaxCalculation(self, made)
        return self._known[key]

    def names(self, name: str, **choices: Any) -> tuple[Sequence[str], Sequence[str]]:
        """See ``Field``."""
        made = self.calculation(name, choices).made
        return made.results, made.arguments

    def call(self, name: str, *arrays: Any, **choices: Any) -> Sequence[Any]:
        """See ``Field``."""
        calc = self.calculation(name, choices)
        found: Sequence[Any] = quantity_primitive().bind(*fill_batches(arrays), calc=calc.reference)
        return found


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
        self._handles: dict[str, Any] = {}
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
    def compiled(self) -> Callable[..., Any]:
        """The quantity outside of any other function of JAX."""
        bind = quantity_primitive().bind
        made: Callable[..., Any] = jax().jit(lambda *arrays: bind(*arrays, calc=self.reference))
        return made

    # -- derivatives

    def tangent(self, argument: int, x: Any, change: Any) -> Any:
        """The change of an argument along its directions: tangent steps of configurations."""
        if not self.made.is_configuration(argument):
            return change
        return self.field.space.velocity_of(x, change)

    def linearized(
        self, arrays: tuple[Any, ...], moved: Sequence[Any | None]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
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
        self, arrays: tuple[Any, ...], moved: Sequence[Any | None]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """The same by a product in O(n), which JAX can transpose."""
        values = quantity_primitive().bind(*arrays, calc=self.reference)
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

    def pulled(self, arrays: Sequence[Any], gradient: Any) -> Sequence[Any]:
        """Of a change: gradients with respect to the directions."""
        return self.field.call(self.name.replace("_jvp", "_vjp"), *arrays, gradient)

    def has_one_state(self, dims: Sequence[int | None]) -> bool:
        """Whether a map is over directions or weights alone, of a change or a gradient."""
        if not (self.is_change or self.is_gradient):
            return False
        return all(axis is None for axis in dims[:3]) and self.field.nv > 1

    def by_matrices(
        self, arrays: Sequence[Any], dims: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int]]:
        """The same for such a map, by the matrices of the quantity."""
        jnp = jax().numpy
        matrices = self.field.call(rules.MATRICES[self.name[:-4]], *arrays[:3])[1:]
        rest = [
            x[None] if axis is None else jnp.moveaxis(x, axis, 0)
            for x, axis in zip(arrays[3:], dims[3:], strict=True)
        ]
        if self.is_change:
            found = [
                sum((m * d[..., None, :]).sum(-1) for m, d in zip(matrices, rest, strict=True))
            ]
        else:
            found = [(m * rest[0][..., :, None]).sum(-2) for m in matrices]
        return found, (0,) * len(found)

    # -- what XLA gets

    def lowered(self, *arrays: Any) -> Sequence[Any]:
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
        chosen: Sequence[Any] = package.lax.cond(
            fine, lambda *_: tuple(found), lambda *given: tuple(self._called_back(given)), *arrays
        )
        return chosen

    def lowered_whole(self, *arrays: Any) -> Sequence[Any]:
        """The same with the whole batch in every array, which devices can share."""
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        jnp = jax().numpy
        return self.lowered(*(jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays))

    def handle(self, dtype: str) -> Any:
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

    def _by_kernel(self, found: Any, arrays: Sequence[Any]) -> Sequence[Any]:
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
        results = kernel_primitive().bind(*read, handle=handle.reference, shapes=shapes)
        return made.results_of(dict(zip(outputs, results, strict=True)))

    def _called_back(self, arrays: Sequence[Any]) -> Sequence[Any]:
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        dtype = arrays[0].dtype
        package = jax()
        shapes = [package.ShapeDtypeStruct((*batch, *each), dtype) for each in self.shapes]

        def run(*given: Any) -> list[Any]:
            found = self.made.run(*(np.asarray(x) for x in given))
            return [
                np.ascontiguousarray(np.broadcast_to(x, each.shape), each.dtype)
                for x, each in zip(found, shapes, strict=True)
            ]

        found: Sequence[Any] = package.pure_callback(run, shapes, *arrays)
        return found


class XlaField(JaxField):
    """Quantities as XLA compiles them, by the backend ``jax``; JAX differentiates."""

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self._known: dict[tuple[object, ...], Any] = {}

    def call(self, name: str, *arrays: Any, **choices: Any) -> Sequence[Any]:
        """See ``Field``.

        Raises:
            ArgumentError: There are no sweeps of it.
        """
        made = calculation(self.robot, name, **choices)
        key = made.key
        if key not in self._known:
            self._known[key] = self.robot.compile(name, backend="jax")
        code = self._known[key]
        first, *rest = arrays
        found = code.function(first, **dict(zip(made.arguments[1:], rest, strict=True)))
        if not isinstance(found, Mapping):
            return [found]
        return [found[each] for each in made.outputs]

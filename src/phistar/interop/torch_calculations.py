# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of one robot on tensors of PyTorch.

A quantity is a ``torch.autograd.Function`` with rules for both modes and for maps, by our programs.
Where ``torch.compile`` traces, which knows no such functions with rules of their own, it is the
operator ``phistar::quantity`` of ``torch.library``, with the same backward rule. Both end in
``TorchCalculation.run``: memory of contiguous tensors is read where it is.
"""

from __future__ import annotations

import itertools
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.interop.array_values import Choice, Choices
from phistar.interop.derivative_rules import Derived, no_derivative
from phistar.interop.package_field import PackageField
from phistar.interop.product_rules import PULLS, PUSHES
from phistar.interop.quantities import Calculation
from phistar.interop.torch_import import inside_one_transform, torch
from phistar.robot import Robot

if TYPE_CHECKING:
    from phistar.interop.torch_import import CustomOpDef, Function, Library, Tensor

_numbers = itertools.count(1)
_by_number: weakref.WeakValueDictionary[int, TorchField] = weakref.WeakValueDictionary()
"""Robots as operators name them: graphs hold numbers and names, not objects."""


class _Traced(threading.local):
    """Whether quantities are operators in this thread, because a graph is being made."""

    on = False


_traced = _Traced()


class TorchField(PackageField["Tensor", "TorchCalculation"]):
    """Quantities of a robot, and arithmetic of PyTorch.

    Attributes:
        torch: The package.
        number: The robot's name in graphs.
    """

    def __init__(self, robot: Robot) -> None:
        self.torch = package = torch()
        super().__init__(robot, package, lambda parts: package.cat(list(parts), -1))
        self.number = next(_numbers)
        self._operator = _registered.operator
        self._apply = _registered.function.apply
        _by_number[self.number] = self

    def _adapted(self, made: Calculation) -> TorchCalculation:
        return TorchCalculation(self, made)

    def call(self, name: str, *arrays: Tensor, **choices: Choice) -> Sequence[Tensor]:
        """See ``Field``."""
        package = self.torch
        batch = package.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        whole = [x.expand(*batch, x.shape[-1]) for x in arrays]
        if package.compiler.is_compiling() or _traced.on:
            return list(self._operator(whole, self.number, name, _encoded(choices)))
        found: Sequence[Tensor] = self._apply(self.calculation(name, choices), *whole)
        return found

    def eye(self, size: int, like: Tensor) -> Tensor:
        """See ``Field``."""
        return self.torch.eye(size, dtype=like.dtype, device=like.device)


class TorchCalculation:
    """A quantity as operators know it.

    Attributes:
        field: The robot's quantities.
        made: What it is.
    """

    def __init__(self, field: TorchField, made: Calculation) -> None:
        self.field = field
        self.made = made

    @property
    def calc(self) -> TorchCalculation:
        """Itself."""
        return self

    # -- values

    def run(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The results, on the processor.

        Raises:
            ArgumentError: The tensors are mapped in PyTorch's older way.
        """
        package = self.field.torch
        try:
            arrays = [x.numpy(force=True) for x in tensors]
        except RuntimeError:
            if any(package._C._functorch.is_legacy_batchedtensor(x) for x in tensors):
                raise ArgumentError(
                    f"{self.made.name} is mapped by is_grads_batched=True or vectorize=True of "
                    "torch.autograd, which do not know functions of others: use torch.func.vmap, "
                    "jacrev, jacfwd or hessian"
                ) from None
            raise
        batch = arrays[0].shape[:-1]
        found = self.made.run(*arrays)
        shapes = [(*batch, *shape) for shape in self.made.shapes]
        return [
            package.from_numpy(_owned(x, shape)) for x, shape in zip(found, shapes, strict=True)
        ]

    def shaped(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Empty tensors of the shapes of the results."""
        batch = tensors[0].shape[:-1]
        return [tensors[0].new_empty((*batch, *shape)) for shape in self.made.shapes]

    # -- derivatives

    def pull(self, tensors: Sequence[Tensor], gradients: Sequence[Tensor]) -> list[Tensor]:
        """Gradients with respect to the arguments, from those with respect to the results."""
        rule = PULLS.get(self.made.name)
        model = self.made.model
        if rule is not None:
            found = rule(self.field, model, tuple(tensors), gradients)
        else:
            found = self._pull_by_matrices(tensors, gradients)
        return [
            self._to_numbers(i, x, g) for i, (x, g) in enumerate(zip(tensors, found, strict=True))
        ]

    def push(self, tensors: Sequence[Tensor], changes: Sequence[Tensor]) -> list[Tensor]:
        """Changes of the results, from those of the arguments."""
        moved = [
            self._tangent(i, x, d) for i, (x, d) in enumerate(zip(tensors, changes, strict=True))
        ]
        rule = PUSHES.get(self.made.name)
        if rule is not None:
            return rule(self.field, self.made.model, tuple(tensors), moved)
        values, partials = self._matrices(tensors)
        found = []
        for value, row in zip(values, partials, strict=True):
            total = self.field.zeros_like(value)
            for partial, change in zip(row, moved, strict=True):
                if partial is not None:
                    wide = change.reshape(
                        (*change.shape[:-1], *(1,) * (partial.ndim - change.ndim), -1)
                    )
                    total = total + (partial * wide).sum(-1)
            found.append(total)
        return found

    def _pull_by_matrices(
        self, tensors: Sequence[Tensor], gradients: Sequence[Tensor]
    ) -> list[Tensor]:
        values, partials = self._matrices(tensors)
        batch = tensors[0].ndim - 1
        found: list[Tensor | None] = [None] * len(tensors)
        for gradient, value, row in zip(gradients, values, partials, strict=True):
            for i, partial in enumerate(row):
                if partial is None:
                    continue
                term = partial * gradient[..., None]
                axes = tuple(range(batch, value.ndim))
                term = term.sum(axes) if axes else term
                found[i] = term if found[i] is None else found[i] + term
        widths = [
            self.field.nv if self.made.is_configuration(i) else x.shape[-1]
            for i, x in enumerate(tensors)
        ]
        return [
            x.new_zeros((*x.shape[:-1], width)) if each is None else each
            for x, width, each in zip(tensors, widths, found, strict=True)
        ]

    def _matrices(self, tensors: Sequence[Tensor]) -> Derived[Tensor]:
        rule = self.made.rule
        if rule is None:
            raise no_derivative(self.made.name, self.made.on_loops)
        return rule(self.field, self.made.name, self.made.choices, tuple(tensors))

    def _tangent(self, argument: int, x: Tensor, change: Tensor) -> Tensor:
        """The change of an argument along its directions: tangent steps of configurations."""
        if not self.made.is_configuration(argument):
            return change
        return self.field.space.velocity_of(x, change)

    def _to_numbers(self, argument: int, x: Tensor, gradient: Tensor) -> Tensor:
        """A gradient along directions as one with respect to the numbers of an argument."""
        if not self.made.is_configuration(argument):
            return gradient
        return self.field.space.gradient_of(x, gradient)


def _owned(x: Array, shape: tuple[int, ...]) -> Array:
    """A writeable array of a shape, the same memory if it can be."""
    x = x if x.shape == shape else np.broadcast_to(x, shape)
    return x if x.flags.writeable and x.flags.c_contiguous else np.array(x)


class Differentiated(Protocol):
    """Something with the rules of a quantity."""

    @property
    def calc(self) -> TorchCalculation:
        """The quantity."""


class Saved(Protocol):
    """What PyTorch keeps between a function's value and its derivatives."""

    calc: TorchCalculation
    saved_tensors: Sequence[Tensor]
    needs_input_grad: Sequence[bool]

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep tensors."""

    def save_for_forward(self, *tensors: Tensor) -> None:
        """Keep tensors for changes, too."""


class Mapped(Protocol):
    """What PyTorch says about a map.

    Attributes:
        batch_size: The length of the axis that is mapped.
    """

    batch_size: int


# -- names in graphs


_BETWEEN = "\x1f"
"""Between words; no name has it."""


def _encoded(choices: Choices) -> str:
    """Choices as words."""
    words: list[str] = []
    for name, value in choices.items():
        if isinstance(value, str):
            words += [name, "word", value]
        elif isinstance(value, bool):
            words += [name, "yes" if value else "no", ""]
        else:
            words += [name, "list", str(len(value)), *value]
    return _BETWEEN.join(words)


def _decoded(words: str) -> Choices:
    choices: dict[str, Choice] = {}
    rest = words.split(_BETWEEN) if words else []
    while rest:
        name, kind, value, *rest = rest
        if kind == "list":
            choices[name], rest = tuple(rest[: int(value)]), rest[int(value) :]
        else:
            choices[name] = value if kind == "word" else kind == "yes"
    return choices


def _named(number: int, name: str, words: str) -> TorchCalculation:
    """The quantity that an operator names.

    Raises:
        ArgumentError: Its robot is gone.
    """
    field = _by_number.get(number)
    if field is None:
        raise ArgumentError(
            "a graph of PyTorch calls a robot that is gone: keep what wrap(robot) gave as long as "
            "graphs and compiled functions made with it are used"
        )
    return field.calculation(name, _decoded(words))


@dataclass(frozen=True)
class _NamedCall:
    """A quantity with what the operator is called with: robot, name, choices."""

    calc: TorchCalculation
    names: tuple[int, str, str]


@contextmanager
def _operators() -> Iterator[None]:
    """Inside, quantities are operators."""
    before, _traced.on = _traced.on, True
    try:
        yield
    finally:
        _traced.on = before


def _function_class() -> type[Function]:
    """The ``torch.autograd.Function`` of all quantities."""
    package = torch()

    class TorchQuantity(package.autograd.Function):  # type: ignore[name-defined,misc]
        """A quantity, and its arguments in one batch."""

        generate_vmap_rule = False

        @staticmethod
        def forward(calc: TorchCalculation, *tensors: Tensor) -> tuple[Tensor, ...]:
            return tuple(calc.run(tensors))

        @staticmethod
        def setup_context(
            ctx: Saved, inputs: tuple[Differentiated, *tuple[Tensor, ...]], output: object
        ) -> None:
            ctx.calc = inputs[0].calc
            ctx.save_for_backward(*inputs[1:])
            ctx.save_for_forward(*inputs[1:])

        @staticmethod
        def backward(ctx: Saved, *gradients: Tensor) -> tuple[Tensor | None, ...]:
            pulled = ctx.calc.pull(ctx.saved_tensors, gradients)
            needs = ctx.needs_input_grad[1:]
            return (None, *(g if n else None for g, n in zip(pulled, needs, strict=True)))

        @staticmethod
        def jvp(ctx: Saved, _: None, *changes: Tensor | None) -> tuple[Tensor, ...]:
            tensors = ctx.saved_tensors
            given = [
                package.zeros_like(x) if d is None else d
                for x, d in zip(tensors, changes, strict=True)
            ]
            return tuple(ctx.calc.push(tensors, given))

        @staticmethod
        def vmap(
            info: Mapped, dims: Dims, calc: TorchCalculation, *tensors: Tensor
        ) -> tuple[Sequence[Tensor], Sequence[int]]:
            moved = _mapped(info.batch_size, dims[1:], tensors)
            results = TorchQuantity.apply(calc, *moved)
            return results, (0,) * len(results)

    return TorchQuantity


Dims = Sequence[int | None]
"""Of each tensor the axis that is mapped; None: it is the same for all."""


def _mapped(size: int, dims: Dims, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors with the mapped axis first, all of them."""
    return [
        x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0)
        for x, axis in zip(tensors, dims, strict=True)
    ]


_SCHEMA = "(Tensor[] tensors, int robot, str name, str choices) -> Tensor[]"


def _quantity_operator() -> CustomOpDef:
    """The operator of all quantities, for ``torch.compile``."""
    library = torch().library

    def run(tensors: list[Tensor], robot: int, name: str, choices: str) -> list[Tensor]:
        return _named(robot, name, choices).run(tensors)

    def fake(tensors: list[Tensor], robot: int, name: str, choices: str) -> list[Tensor]:
        return _named(robot, name, choices).shaped(tensors)

    operator = library.custom_op("phistar::quantity", run, mutates_args=(), schema=_SCHEMA)
    operator.register_fake(fake)

    def mapped(
        info: Mapped, dims: Sequence[Dims], tensors: Sequence[Tensor], *names: int | str
    ) -> tuple[Sequence[Tensor], Sequence[int]]:
        results = operator(_mapped(info.batch_size, dims[0], tensors), *names)
        return results, [0] * len(results)

    operator.register_vmap(mapped)
    return operator


def _register_derivatives(operator: CustomOpDef, eager: type[Function]) -> Library:
    """Give the operator the rules of the function, in both modes; the registration has to be kept.

    ``register_autograd`` knows backward alone: forward mode would be zero without a word, and
    derivatives of ``torch.func`` inside ``torch.compile`` an error.
    """
    package = torch()
    below = package._C._AutoDispatchBelowAutograd
    forward_mode = package.autograd.forward_ad

    class TracedQuantity(eager):  # type: ignore[misc]
        """The operator with the rules of quantities, which are operators in turn."""

        @staticmethod
        def forward(call: _NamedCall, *tensors: Tensor) -> tuple[Tensor, ...]:
            # Transforms outside of this one may differentiate what is computed here.
            with package.enable_grad(), forward_mode._set_fwd_grad_enabled(True), below():
                return tuple(operator(list(tensors), *call.names))

        @staticmethod
        def backward(ctx: Saved, *gradients: Tensor) -> tuple[Tensor | None, ...]:
            with _operators():
                found: tuple[Tensor | None, ...] = eager.backward(ctx, *gradients)
                return found

        @staticmethod
        def jvp(ctx: Saved, _: None, *changes: Tensor | None) -> tuple[Tensor, ...]:
            with _operators():
                found: tuple[Tensor, ...] = eager.jvp(ctx, _, *changes)
                return found

    # The dispatcher has split nested transforms before it comes here.
    apply = super(package.autograd.Function, TracedQuantity).apply

    def differentiable(
        tensors: list[Tensor], robot: int, name: str, choices: str
    ) -> Sequence[Tensor]:
        call = _NamedCall(_named(robot, name, choices), (robot, name, choices))
        with inside_one_transform():
            return list(apply(call, *tensors))

    library = package.library.Library("phistar", "IMPL")
    with warnings.catch_warnings():
        # PyTorch says that a kernel is replaced, which is what is wanted.
        warnings.filterwarnings("ignore", message="(?s).*previously registered kernel")
        library.impl("quantity", differentiable, "Autograd", allow_override=True)
    made: Library = library
    return made


class _Registered:
    """What PyTorch is told of once, when a robot is first wrapped."""

    @cached_property
    def function(self) -> type[Function]:
        """The ``torch.autograd.Function`` of all quantities."""
        return _function_class()

    @cached_property
    def operator(self) -> CustomOpDef:
        """The operator of all quantities."""
        made = _quantity_operator()
        self.derivatives = _register_derivatives(made, self.function)
        return made


_registered = _Registered()

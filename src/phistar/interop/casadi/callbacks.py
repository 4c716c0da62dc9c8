# SPDX-License-Identifier: BSD-3-Clause
"""A quantity as callbacks: machine code, called by Python, called by CasADi."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from phistar.arrays import Array
from phistar.interop.casadi.casadi_package import Argument, PythonFunction, callback
from phistar.interop.casadi.casadi_quantities import CasadiQuantity, unit_rows
from phistar.interop.casadi.derivatives import (
    WEIGHTS,
    Composer,
    Functions,
    Layout,
    sample_rows,
)

Key = TypeVar("Key")


def _nonzeros(patterns: Mapping[Key, Array]) -> dict[Key, tuple[Array, Array]]:
    """Rows and columns of entries, columnwise."""
    found = {}
    for key, pattern in patterns.items():
        columns, rows = np.nonzero(pattern.T)
        found[key] = (rows, columns)
    return found


class CallbackFunction:
    """A quantity of a robot as callbacks of CasADi.

    Attributes:
        function: The function of CasADi; its derivatives are kept here, too.
    """

    def __init__(self, quantity: CasadiQuantity, samples: int, name: str) -> None:
        self._quantity = quantity
        self._layout = layout = Layout(quantity, samples)
        self._composer = Composer(layout)
        self._first_places = _nonzeros(quantity.first_patterns)
        self._second_places = _nonzeros(quantity.second_patterns)
        given = [Argument(key, layout.argument(key)) for key in quantity.inputs]
        weighted = [*given, Argument(WEIGHTS, layout.argument(WEIGHTS))]
        first = [
            Argument(f"{quantity.output}_{key}", layout.blocks(pattern))
            for key, pattern in quantity.first_patterns.items()
        ]
        second = [
            Argument(f"{WEIGHTS}_{row}_{column}", layout.blocks(pattern))
            for (row, column), pattern in quantity.second_patterns.items()
        ]
        gradients = [Argument(f"{WEIGHTS}_{k}", layout.argument("v")) for k in quantity.inputs]
        composer = self._composer
        self.function = callback(
            PythonFunction(
                name, given, [Argument(quantity.output, layout.result)], self._run(self._value),
                composer.jacobian, composer.adjoint,
            )
        )  # fmt: skip
        made = [
            callback(PythonFunction(f"{name}_{kind}", inputs, outputs, self._run(call), jacobian))
            for kind, inputs, outputs, call, jacobian in (
                ("first", given, first, self._first, composer.first_jacobian),
                ("products", weighted, gradients, self._products, composer.products_jacobian),
                ("second", weighted, second, self._second, None),
            )
        ]
        composer.functions = Functions(self.function, *made)

    def _run(
        self, call: Callable[[list[Array]], Sequence[Array]]
    ) -> Callable[[list[Array]], Sequence[Array]]:
        """A function of arrays (samples, size), quaternions unit, from one of buffers."""

        def evaluate(buffers: list[Array]) -> Sequence[Array]:
            given = sample_rows(self._layout, buffers)
            given[0] = unit_rows(self._quantity.robot, given[0])
            return call(given)

        return evaluate

    def _value(self, given: list[Array]) -> Sequence[Array]:
        return [self._quantity.value(given)]

    def _first(self, given: list[Array]) -> Sequence[Array]:
        found = self._quantity.first(given)
        return [found[key][:, rows, cols] for key, (rows, cols) in self._first_places.items()]

    def _products(self, given: list[Array]) -> Sequence[Array]:
        *arguments, weights = given
        found = self._quantity.products(arguments, weights)
        return [found[key] for key in self._quantity.inputs]

    def _second(self, given: list[Array]) -> Sequence[Array]:
        *arguments, weights = given
        found = self._quantity.second(arguments, weights)
        return [found[key][:, rows, cols] for key, (rows, cols) in self._second_places.items()]

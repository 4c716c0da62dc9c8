# SPDX-License-Identifier: BSD-3-Clause
"""From a quantity's four functions along tangent steps to what CasADi asks of a function.

A quantity is four functions of CasADi, run by Python or by compiled C: value, first derivatives,
products with weights, second derivatives. They are composed here, as graphs of CasADi, with the
tangent map T(q) of ``interop.tangent_maps``, which CasADi differentiates by itself:

    jacobian            y_q T,  y_v,  ...
    adjoint             T* g_q,  g_v,  ...                  g_i = w y_i
    its jacobian        d(T* g_q) = T* (H_qq T dq + H_qv dv + ...) + (dT)* g_q, and so on
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.interop.casadi.casadi_package import casadi
from phistar.interop.casadi.casadi_quantities import CasadiQuantity
from phistar.interop.tangent_maps import adds_steps, matrix_entries, unit_columns
from phistar.interop.tangents import SeriesArc
from phistar.model.model import Model
from phistar.spatial.entries import Number

if TYPE_CHECKING:
    from phistar.interop.casadi.casadi_package import MX, SX, Function, Sparsity

WEIGHTS = "w"
"""The argument that holds the weights of products."""


@dataclass(frozen=True)
class Layout:
    """Sparsities of a quantity's functions, for a number of samples side by side.

    Vectors of samples are columns of one matrix, matrices of samples blocks of one that is
    block-diagonal, so that they are derivatives of those.
    """

    quantity: CasadiQuantity
    samples: int

    @property
    def model(self) -> Model:
        """The robot's model."""
        model: Model = self.quantity.robot.model
        return model

    def argument(self, name: str) -> Sparsity:
        """Sparsity of an argument, of the weights or (any other name) of a joint vector."""
        size = self.model.nq if name == "q" else self.model.nv
        if name == WEIGHTS:
            size = self.quantity.size
        return casadi().Sparsity.dense(size, self.samples)

    @property
    def result(self) -> Sparsity:
        """Sparsity of the result."""
        rows, columns = self.quantity.shape
        return casadi().Sparsity.dense(rows, columns * self.samples)

    def blocks(self, pattern: Array) -> Sparsity:
        """Sparsity of block-diagonal matrices with a pattern in each block."""
        one = block_sparsity(pattern)
        return casadi().diagcat(*[one] * self.samples)


def block_sparsity(pattern: Array) -> Sparsity:
    """A boolean matrix as CasADi's sparsity."""
    columns, rows = np.nonzero(pattern.T)
    size = pattern.shape
    return casadi().Sparsity.triplet(*size, rows.tolist(), columns.tolist())


@dataclass(frozen=True)
class Functions:
    """A quantity's functions along tangent steps, as functions of CasADi.

    Attributes:
        value: Arguments -> result.
        first: Arguments -> derivatives along each argument.
        products: Arguments, weights -> gradients along each argument.
        second: Arguments, weights -> derivatives of those, in the order of ``second_patterns``.
    """

    value: Function
    first: Function
    products: Function
    second: Function


class SymbolFunctions:
    """Functions of symbols."""

    def cos(self, x: SX) -> SX:
        """Cosine."""
        return casadi().cos(x)

    def sin(self, x: SX) -> SX:
        """Sine."""
        return casadi().sin(x)

    def sqrt(self, x: SX) -> SX:
        """Square root."""
        return casadi().sqrt(x)

    def less(self, x: SX, y: float) -> SX:
        """x < y."""
        return casadi().lt(x, y)

    def where(self, condition: SX, x: SX, y: SX) -> SX:
        """x where a condition holds, else y."""
        return casadi().if_else(condition, x, y)


class SymbolOps(SymbolFunctions):
    """Functions of symbols, as kinds of joints call them."""

    def cos_sin(self, angle: SX) -> tuple[SX, SX]:
        """Cosine and sine."""
        return self.cos(angle), self.sin(angle)

    def arc(self, square: SX) -> SeriesArc[SX]:
        """Functions of the angle with this square."""
        return SeriesArc(self, square)


def tangent_map_function(model: Model, samples: int) -> Function:
    """T of q (nq, samples) as a block-diagonal matrix (nv samples, nq samples)."""
    ca = casadi()
    q = ca.SX.sym("q", model.nq, samples)
    blocks = []
    for k in range(samples):
        column = [q[i, k] for i in range(model.nq)]
        entries = matrix_entries(model, column, SymbolOps(), rates=False)
        blocks.append(_filled(entries, model.nv, model.nq))
    return ca.Function("tangent_map", [q], [ca.diagcat(*blocks)], ["q"], ["T"])


def _bend_function(tangent_map: Function, model: Model, samples: int) -> Function:
    """The derivative of T* g with respect to the numbers of q, g held: block-diagonal."""
    ca = casadi()
    q, g = ca.SX.sym("q", model.nq, samples), ca.SX.sym("g", model.nv, samples)
    turned = tangent_map(q).T @ ca.vec(g)
    bend = ca.jacobian(turned, ca.vec(q))
    return ca.Function("bend", [q, g], [bend], ["q", "g"], ["bend"])


def _filled(entries: Mapping[tuple[int, int], Number], rows: int, columns: int) -> SX:
    ca = casadi()
    entries = {place: ca.SX(entry) for place, entry in entries.items()}
    kept = [place for place, entry in entries.items() if not entry.is_zero()]
    places = sorted(kept, key=lambda place: (place[1], place[0]))
    pattern = ca.Sparsity.triplet(rows, columns, [i for i, _ in places], [j for _, j in places])
    return ca.SX(pattern, ca.vertcat(*[entries[place] for place in places]))


def rate_function(model: Model) -> Function:
    """G(normalize(q)) v: rates of the nq numbers of q, as an expression of CasADi."""
    ca = casadi()
    q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    column = unit_columns(model, [q[i] for i in range(model.nq)], SymbolOps())
    entries = matrix_entries(model, column, SymbolOps(), rates=True)
    rates = _filled(entries, model.nq, model.nv) @ v
    return ca.Function("coordinate_rates", [q, v], [rates], ["q", "v"], ["qdot"])


class Composer:
    """Derivatives of a quantity, composed of its functions.

    Args:
        layout: Sparsities.
        functions: The functions; they may be set later, before a derivative is asked for.
    """

    def __init__(self, layout: Layout, functions: Functions | None = None) -> None:
        self.layout = layout
        self.functions = functions
        model = layout.model
        self._tangent_map: Function | None = None
        self._bend: Function | None = None
        if not adds_steps(model):
            self._tangent_map = tangent_map_function(model, layout.samples)
            self._bend = _bend_function(self._tangent_map, model, layout.samples)

    def _symbols(self, *names: str) -> list[MX]:
        return [casadi().MX.sym(name, self.layout.argument(name)) for name in names]

    def _along_numbers(self, name: str, matrix: MX, q: MX) -> MX:
        """A derivative along tangent steps as one with respect to numbers."""
        return matrix @ self._tangent_map(q) if name == "q" and self._tangent_map else matrix

    def _functions(self) -> Functions:
        assert self.functions is not None
        return self.functions

    def jacobian(self, name: str, inputs: list[str], outputs: list[str]) -> Function:
        """Of the value; CasADi gives the names."""
        given = self._symbols(*self.layout.quantity.inputs)
        result = casadi().MX.sym("result", casadi().Sparsity(*self.layout.result.shape))
        found = casadi().Function.call(self._functions().first, given)
        pairs = zip(self.layout.quantity.inputs, found, strict=True)
        blocks = [self._along_numbers(key, block, given[0]) for key, block in pairs]
        return casadi().Function(name, [*given, result], blocks, inputs, outputs)

    def adjoint(self, name: str, inputs: list[str], outputs: list[str]) -> Function:
        """Products of weights with the value's Jacobian."""
        ca = casadi()
        given, none, weights = self._adjoint_symbols()
        found = ca.Function.call(self._functions().products, [*given, self._as_column(weights)])
        if self._tangent_map is not None:
            turned = self._tangent_map(given[0]).T @ ca.vec(found[0])
            found[0] = ca.reshape(turned, *given[0].shape)
        names = [*inputs, *(f"out_{x}" for x in outputs)]
        pairs = [f"jac_{x}_{y}" for x in outputs for y in inputs]
        jacobian = self.adjoint_jacobian(f"jac_{name}", names, pairs)
        options = {"custom_jacobian": jacobian, "jac_penalty": 0, "never_inline": True}
        return ca.Function(name, [*given, none, weights], found, inputs, outputs, options)

    def _adjoint_symbols(self) -> tuple[list[MX], MX, MX]:
        """Arguments of ``adjoint``: the quantity's, its result (not read), weights of it."""
        ca = casadi()
        given = self._symbols(*self.layout.quantity.inputs)
        none = ca.MX.sym("result", ca.Sparsity(*self.layout.result.shape))
        return given, none, ca.MX.sym(WEIGHTS, self.layout.result)

    def adjoint_jacobian(self, name: str, inputs: list[str], outputs: list[str]) -> Function:
        """Of ``adjoint``, written out: CasADi would look for it by many directions."""
        ca, quantity = casadi(), self.layout.quantity
        given, none, weights = self._adjoint_symbols()
        arguments = [*given, self._as_column(weights)]
        rows = self._gradient_blocks(arguments)
        results = [ca.MX.sym(f"out{k}", ca.Sparsity(*x.shape)) for k, x in enumerate(given)]
        if self._tangent_map is not None and self._bend is not None:
            turn = self._tangent_map(given[0]).T
            rows["q"] = {key: turn @ block for key, block in rows["q"].items()}
            gradient = ca.Function.call(self._functions().products, arguments)[0]
            rows["q"]["q"] += self._bend(given[0], gradient)
        blocks = []
        for key, argument in zip(quantity.inputs, given, strict=True):
            row = rows[key]
            blocks += [row[each] for each in quantity.inputs]
            blocks += [ca.MX(argument.numel(), none.numel()), row[WEIGHTS]]
        arguments = [*given, none, weights, *results]
        return ca.Function(name, arguments, blocks, inputs, outputs)

    def _as_column(self, weights: MX) -> MX:
        """Weights of results side by side, (rows, columns samples) -> (size, samples)."""
        return casadi().reshape(weights, self.layout.quantity.size, self.layout.samples)

    def _gradient_blocks(self, arguments: Sequence[MX]) -> dict[str, dict[str, MX]]:
        """Derivatives of gradients along tangent steps, by argument and by what changes."""
        ca, quantity = casadi(), self.layout.quantity
        found = ca.Function.call(self._functions().second, arguments)
        second = dict(zip(quantity.second_patterns, found, strict=True))
        first = ca.Function.call(self._functions().first, arguments[:-1])
        size = self.layout.argument("v").numel()
        rows: dict[str, dict[str, MX]] = {}
        for key, block in zip(quantity.inputs, first, strict=True):
            rows[key] = {WEIGHTS: block.T}
            for other, argument in zip(quantity.inputs, arguments[:-1], strict=True):
                if (key, other) in second:
                    along = self._along_numbers(other, second[key, other], arguments[0])
                else:
                    along = ca.MX(size, argument.numel())
                rows[key][other] = along
        return rows

    def first_jacobian(self, name: str, inputs: list[str], outputs: list[str]) -> Function:
        """Of ``Functions.first``, with respect to numbers: a Hessian for each entry of a result."""
        ca, quantity, samples = casadi(), self.layout.quantity, self.layout.samples
        given = self._symbols(*quantity.inputs)
        patterns = [self.layout.blocks(x) for x in quantity.first_patterns.values()]
        none = [
            ca.MX.sym(f"out_{key}", ca.Sparsity(*pattern.shape))
            for key, pattern in zip(quantity.inputs, patterns, strict=True)
        ]
        size, nv = quantity.size, self.layout.model.nv
        totals = [
            ca.MX(pattern.numel(), argument.numel()) for pattern in patterns for argument in given
        ]
        for row in range(size):
            unit = np.tile(np.eye(size)[:, row : row + 1], samples)
            found = ca.Function.call(self._functions().second, [*given, ca.MX(ca.DM(unit))])
            second = dict(zip(quantity.second_patterns, found, strict=True))
            # Where the row of each sample's block is among the entries of all blocks.
            lines = np.arange(samples)[:, None] * size + row
            columns = np.arange(samples * nv).reshape(samples, nv)
            entries = (lines + columns * (size * samples)).ravel().tolist()
            for k, key in enumerate(quantity.inputs):
                place = ca.Sparsity.triplet(
                    patterns[k].numel(), nv * samples, entries, columns.ravel().tolist()
                )
                for m, other in enumerate(quantity.inputs):
                    if (key, other) in second:
                        block = self._along_numbers(other, second[key, other], given[0])
                        totals[k * len(given) + m] += ca.DM(place, 1.0) @ block
        return ca.Function(name, [*given, *none], totals, inputs, outputs)

    def products_jacobian(self, name: str, inputs: list[str], outputs: list[str]) -> Function:
        """Of ``Functions.products``: gradients along tangent steps, with respect to numbers."""
        ca, quantity = casadi(), self.layout.quantity
        given = self._symbols(*quantity.inputs, WEIGHTS)
        shape = self.layout.argument("v").shape
        none = [ca.MX.sym(f"out_{key}", ca.Sparsity(*shape)) for key in quantity.inputs]
        rows = self._gradient_blocks(given)
        blocks = [rows[x][y] for x in quantity.inputs for y in (*quantity.inputs, WEIGHTS)]
        return ca.Function(name, [*given, *none], blocks, inputs, outputs)


def sample_rows(layout: Layout, arrays: Sequence[Array]) -> list[Array]:
    """Buffers of CasADi as arrays (samples, size)."""
    return [array.reshape(layout.samples, -1) for array in arrays]

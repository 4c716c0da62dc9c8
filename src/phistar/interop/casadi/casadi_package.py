# SPDX-License-Identifier: BSD-3-Clause
"""CasADi itself: imported here and nowhere else, and what Python functions need to be one of its.

CasADi is under the LGPL-3; it is an extra of its own and nothing else needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.errors import MissingExtraError, require_version

if TYPE_CHECKING:
    from casadi import MX as MX
    from casadi import SX as SX
    from casadi import Callback as Callback
    from casadi import Function as Function
    from casadi import Sparsity as Sparsity

OLDEST = (3, 6)
"""Since then Jacobians have an output for each pair of output and input."""


def casadi() -> ModuleType:
    """The package.

    Raises:
        MissingExtraError: It is not installed.
        PackageVersionError: It is too old.
    """
    try:
        import casadi as found
    except ImportError:
        raise MissingExtraError("casadi", "casadi", "phistar.interop.casadi") from None
    package: ModuleType = found
    require_version("casadi", package.__version__, OLDEST, "casadi")
    return package


@dataclass(frozen=True)
class Argument:
    """An input or output of a function: its name and sparsity (CasADi's)."""

    name: str
    sparsity: Sparsity


Derivative = Callable[[str, list[str], list[str]], "Function"]
"""Name, names of inputs and of outputs -> a function of CasADi."""


@dataclass(frozen=True)
class PythonFunction:
    """A function on nonzeros, with what CasADi may ask about its derivatives.

    Attributes:
        name: Of the function.
        inputs, outputs: Its arguments.
        evaluate: Nonzeros of the inputs -> nonzeros of the outputs, flat arrays.
        jacobian: Makes its Jacobian, or None.
        reverse: Makes its products with weights from the left, or None.
    """

    name: str
    inputs: Sequence[Argument]
    outputs: Sequence[Argument]
    evaluate: Callable[[list[Array]], Sequence[Array]]
    jacobian: Derivative | None = None
    reverse: Derivative | None = None


class _Answers:
    """What CasADi asks a function whose values come from Python, by the buffers of both sides.

    Attributes:
        given: The function.
    """

    given: PythonFunction
    _jacobian: Function | None = None

    if TYPE_CHECKING:

        def reverse(self, count: int) -> Function: ...

    def get_n_in(self) -> int:
        return len(self.given.inputs)

    def get_n_out(self) -> int:
        return len(self.given.outputs)

    def get_name_in(self, i: int) -> str:
        return self.given.inputs[i].name

    def get_name_out(self, i: int) -> str:
        return self.given.outputs[i].name

    def get_sparsity_in(self, i: int) -> Sparsity:
        return self.given.inputs[i].sparsity

    def get_sparsity_out(self, i: int) -> Sparsity:
        return self.given.outputs[i].sparsity

    def has_eval_buffer(self) -> bool:
        return True

    def eval_buffer(
        self, arg: Sequence[memoryview | None], res: Sequence[memoryview | None]
    ) -> int:
        given = [
            np.zeros(x.sparsity.nnz()) if data is None else np.frombuffer(data)
            for x, data in zip(self.given.inputs, arg, strict=True)
        ]
        for values, data in zip(self.given.evaluate(given), res, strict=True):
            if data is not None:
                np.frombuffer(data)[:] = values.reshape(-1)
        return 0

    def has_jacobian(self) -> bool:
        return self.given.jacobian is not None

    def get_jacobian(
        self, name: str, inputs: Sequence[str], outputs: Sequence[str], options: object
    ) -> Function:
        assert self.given.jacobian is not None
        return self.given.jacobian(name, list(inputs), list(outputs))

    def has_jac_sparsity(self, output: int, given: int) -> bool:
        return self.given.jacobian is not None

    def get_jac_sparsity(self, output: int, given: int, symmetric: bool) -> Sparsity:
        if self._jacobian is None:
            assert self.given.jacobian is not None
            inputs, outputs = len(self.given.inputs), len(self.given.outputs)
            names = [f"i{k}" for k in range(inputs + outputs)]
            results = [f"o{k}" for k in range(inputs * outputs)]
            self._jacobian = self.given.jacobian(f"{self.given.name}_sparsity", names, results)
        return self._jacobian.sparsity_out(output * len(self.given.inputs) + given)

    def has_reverse(self, count: int) -> bool:
        return count == 1 and self.given.reverse is not None

    def get_reverse(
        self,
        count: int,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        options: object,
    ) -> Function:
        assert self.given.reverse is not None
        if count == 1:
            return self.given.reverse(name, list(inputs), list(outputs))
        return self._reverse_of_several(count, name, list(inputs), list(outputs))

    def _reverse_of_several(
        self, count: int, name: str, inputs: list[str], outputs: list[str]
    ) -> Function:
        """Weights side by side, one product after the other."""
        ca = casadi()
        one = self.reverse(1)
        fixed = one.n_in() - len(self.given.outputs)
        given = [ca.MX.sym(inputs[k], one.sparsity_in(k)) for k in range(fixed)]
        weights = [
            ca.MX.sym(inputs[fixed + k], ca.repmat(x.sparsity, 1, count))
            for k, x in enumerate(self.given.outputs)
        ]
        parts = [ca.horzsplit(w, w.size2() // count) for w in weights]
        found = [one.call([*given, *(x[k] for x in parts)]) for k in range(count)]
        results = [ca.horzcat(*columns) for columns in zip(*found, strict=True)]
        return ca.Function(name, [*given, *weights], results, inputs, outputs)


@cache
def _callback_class() -> type[Callback]:
    """The class of callbacks; made when CasADi is there."""

    class RobotFunction(_Answers, casadi().Callback):  # type: ignore[misc]
        """A Python function that CasADi calls."""

        def __init__(self, given: PythonFunction) -> None:
            casadi().Callback.__init__(self)
            self.given = given
            self.construct(given.name, {})

    return RobotFunction


def callback(given: PythonFunction) -> Callback:
    """A Python function as one of CasADi; it has to be kept as long as it is used."""
    return _callback_class()(given)

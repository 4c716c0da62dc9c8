# SPDX-License-Identifier: BSD-3-Clause
"""A robot in PyTorch: ``from phistar.interop import torch as pt; r = pt.wrap(robot)``.

``r`` has the methods of the robot as functions of tensors, differentiable in both modes. See
docs/torch.md. Needs the extra ``phistar[torch]``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, cast

from numpy.typing import ArrayLike

from phistar.arrays import has_no_precision
from phistar.errors import ArgumentError
from phistar.interop.torch_calculations import TorchField
from phistar.interop.torch_import import torch
from phistar.interop.wrapped import WrappedRobot, require_robot
from phistar.model.configuration import as_numbers
from phistar.robot import Robot

if TYPE_CHECKING:
    from phistar.interop.torch_import import Tensor

__all__ = ("TorchRobot", "wrap")


class TorchRobot(WrappedRobot["Tensor"]):
    """A robot on tensors of PyTorch."""

    package = "PyTorch"
    field: TorchField

    def __init__(self, robot: Robot, move: bool) -> None:
        super().__init__(robot, TorchField(robot))
        self._move = move

    def __reduce__(self) -> tuple[Callable[[Robot, bool], TorchRobot], tuple[Robot, bool]]:
        """Made again from its robot, in another process too."""
        return wrap, (self.robot, self._move)

    def _is_own(self, value: object) -> bool:
        return isinstance(value, self.field.torch.Tensor)

    def _is_plain(self, value: object) -> bool:
        if isinstance(value, self.field.torch.Tensor):
            return not (value.dtype.is_floating_point or value.dtype.is_complex)
        return has_no_precision(value)

    def _array(self, value: object, name: str) -> Tensor:
        package = self.field.torch
        if isinstance(value, package.Tensor):
            tensor = value
        elif isinstance(value, int | float):
            tensor = package.as_tensor(value, dtype=package.float64)
        else:
            tensor = package.as_tensor(as_numbers(cast(ArrayLike, value), name))
        if tensor.layout is not package.strided:
            raise ArgumentError(f"{name} is a sparse tensor; pass {name}.to_dense()")
        if tensor.device.type != "cpu":
            if not self._move:
                raise ArgumentError(
                    f"{name} is on {tensor.device}; machine code runs on the processor: pass "
                    f"{name}.cpu(), or wrap(robot, move=True) to have tensors moved at every call"
                )
            tensor = tensor.cpu()
        if not tensor.dtype.is_floating_point and not tensor.dtype.is_complex:
            tensor = tensor.to(package.float64)
        if tensor.dtype not in (package.float64, package.float32):
            raise ArgumentError(
                f"{name} has dtype {tensor.dtype}; machine code computes in torch.float64 and "
                f"torch.float32: convert it, {name}.float()"
            )
        return tensor

    def _promoted(self, arrays: Mapping[str, Tensor], plain: Collection[str] = ()) -> list[Tensor]:
        dtypes = {x.dtype for x in arrays.values()}
        if len(dtypes) == 1 and not plain:
            return list(arrays.values())
        package = self.field.torch
        precise = [x for name, x in arrays.items() if name not in plain]
        # Numbers without axes, a length of time for example, have no precision of their own.
        wide = {x.dtype for x in precise if x.ndim} or {x.dtype for x in precise}
        wide = wide or {package.get_default_dtype()}
        dtype = package.float64 if package.float64 in wide else package.float32
        return [x.to(dtype) for x in arrays.values()]


def wrap(robot: Robot, move: bool = False) -> TorchRobot:
    """A robot on tensors of PyTorch.

    Args:
        robot: The robot.
        move: Take tensors of other devices, too: they are copied to the processor, and results stay
            there.

    Raises:
        MissingExtraError: PyTorch is not installed.
        PackageVersionError: It is too old.
        ArgumentError: It is no robot.
    """
    torch()
    require_robot(robot)
    return TorchRobot(robot, move)

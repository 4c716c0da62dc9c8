# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch itself: imported here and nowhere else, when a robot is first wrapped for it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import ModuleType
from typing import TYPE_CHECKING

from phistar.errors import MissingExtraError, require_version

if TYPE_CHECKING:
    from torch import Tensor as Tensor
    from torch.autograd import Function as Function
    from torch.library import CustomOpDef as CustomOpDef
    from torch.library import Library as Library

OLDEST = (2, 8)
"""The first version whose operators may be given rules of one's own in place of PyTorch's."""


def torch() -> ModuleType:
    """The package.

    Raises:
        MissingExtraError: It is not installed.
        PackageVersionError: It is too old.
    """
    try:
        import torch as found
    except ImportError:
        raise MissingExtraError("torch", "torch", "phistar.interop.torch") from None
    package: ModuleType = found
    require_version("torch", package.__version__, OLDEST, "torch")
    return package


def inside_one_transform() -> AbstractContextManager[None]:
    """Inside, functions are those of the transform of ``torch.func`` that is being applied.

    What kernels of operators are in, which the dispatcher calls for each transform in turn.
    """
    from torch._functorch.utils import enable_single_level_autograd_function

    found: AbstractContextManager[None] = enable_single_level_autograd_function()
    return found

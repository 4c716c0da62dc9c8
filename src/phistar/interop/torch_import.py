# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch itself: imported here and nowhere else, when a robot is first wrapped for it."""

from __future__ import annotations

from functools import cache
from typing import Any

from phistar.errors import MissingExtraError, require_version

OLDEST = (2, 4)
"""The first version that has ``torch.library.custom_op`` with rules for maps."""


@cache
def torch() -> Any:
    """The package.

    Raises:
        MissingExtraError: It is not installed.
        PackageVersionError: It is too old.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "torch", "phistar.interop.torch") from None
    require_version("torch", torch.__version__, OLDEST, "torch")
    return torch

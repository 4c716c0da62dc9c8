# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch itself: imported here and nowhere else, when a robot is first wrapped for it."""

from __future__ import annotations

from functools import cache
from typing import Any

from phistar.errors import MissingExtraError, PackageVersionError

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
    require_version(torch.__version__)
    return torch


def require_version(version: str) -> None:
    """Raise if a version is too old."""
    numbers = tuple(int(x) for x in version.split("+")[0].split(".")[:2] if x.isdigit())
    if numbers < OLDEST:
        raise PackageVersionError("torch", version, ".".join(map(str, OLDEST)), "torch")

# SPDX-License-Identifier: BSD-3-Clause
"""The type of every array: real or complex numbers of any precision."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

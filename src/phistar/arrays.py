# SPDX-License-Identifier: BSD-3-Clause
"""The types of every array, real or complex numbers of any precision, and of its elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DType = np.dtype[Any]

# SPDX-License-Identifier: BSD-3-Clause
"""The laws here are about formulas: they run in NumPy unless a test asks for ``machine_code``."""

from tests.formulas import machine_code as machine_code
from tests.formulas import numpy_backend as numpy_backend

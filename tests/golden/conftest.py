# SPDX-License-Identifier: BSD-3-Clause
"""Golden values are about formulas; a ninth of the robots is asked as machine code, too."""

from tests.formulas import machine_code as machine_code
from tests.formulas import numpy_backend as numpy_backend

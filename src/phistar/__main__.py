# SPDX-License-Identifier: BSD-3-Clause
"""``python -m phistar``: the same as the command ``phistar``."""

import sys

from phistar.cli import main

sys.exit(main())

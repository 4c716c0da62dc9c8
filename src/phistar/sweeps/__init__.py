# SPDX-License-Identifier: BSD-3-Clause
"""Level 2: operator expressions as sweeps over the links, inward and outward."""

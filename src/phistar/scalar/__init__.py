# SPDX-License-Identifier: BSD-3-Clause
"""Level 3: passes over links become scalar operations for one robot, unrolled or in loops."""

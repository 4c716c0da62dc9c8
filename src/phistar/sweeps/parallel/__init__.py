# SPDX-License-Identifier: BSD-3-Clause
"""Level 2 in O(log N) rounds: recursions classified, each with its associative join."""

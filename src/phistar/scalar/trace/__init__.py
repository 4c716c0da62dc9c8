# SPDX-License-Identifier: BSD-3-Clause
"""Tracers: run the formulas of a schedule on the links of one robot and record scalar
operations."""

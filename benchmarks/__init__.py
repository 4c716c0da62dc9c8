# SPDX-License-Identifier: BSD-3-Clause
"""Timings, each a module to run: ``python -m benchmarks.loading``."""

# SPDX-License-Identifier: BSD-3-Clause
"""Timings: ``python -m benchmarks`` for dynamics, ``python -m benchmarks.loading`` for files."""

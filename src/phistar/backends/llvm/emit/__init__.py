# SPDX-License-Identifier: BSD-3-Clause
"""Scalar programs to LLVM text."""

# SPDX-License-Identifier: BSD-3-Clause
"""LLVM text to machine code that is compiled, cached, loaded and called."""

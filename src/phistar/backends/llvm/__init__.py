# SPDX-License-Identifier: BSD-3-Clause
"""Machine code: scalar programs as LLVM text, SIMD lanes over the batch."""

# SPDX-License-Identifier: BSD-3-Clause
"""URDF, with the dialect that says what plain URDF cannot: ``reader`` and ``export``."""

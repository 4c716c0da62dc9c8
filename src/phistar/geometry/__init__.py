# SPDX-License-Identifier: BSD-3-Clause
"""The mass matrix as a metric: Christoffel symbols, curvature, flatness; a mixin of ``Robot``."""

# SPDX-License-Identifier: BSD-3-Clause
"""Small linear algebra on scalars of a graph: 3-vectors, rotations, spatial inertias."""

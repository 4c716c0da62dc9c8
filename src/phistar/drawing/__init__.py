# SPDX-License-Identifier: BSD-3-Clause
"""Robots as pictures: shapes as triangles, figures by matplotlib, pages for a browser."""

# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of what a robot does: linearizations, products, second order, parameters."""

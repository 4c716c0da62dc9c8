# SPDX-License-Identifier: BSD-3-Clause
"""Adapters: a robot inside programs of other packages.

Each is one module, imported by its user, and needs the package of its name: ``jax``, ``torch``,
``casadi``. What they share, quantities and their derivatives, is in ``quantities``.
"""

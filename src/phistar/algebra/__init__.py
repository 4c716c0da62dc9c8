# SPDX-License-Identifier: BSD-3-Clause
"""Level 1: operator expressions, their identities and their rewriting; knows no sweeps."""

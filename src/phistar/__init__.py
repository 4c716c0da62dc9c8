# SPDX-License-Identifier: BSD-3-Clause
"""phistar: robot dynamics as algebra."""

# SPDX-License-Identifier: BSD-3-Clause
"""Programs for people who work on phistar, each run with ``python -m tools.NAME``."""

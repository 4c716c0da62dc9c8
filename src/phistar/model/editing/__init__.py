# SPDX-License-Identifier: BSD-3-Clause
"""Editing a robot: functions that make a new model of one, an idea a file; a part of ``Robot``."""

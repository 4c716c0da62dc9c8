# SPDX-License-Identifier: BSD-3-Clause
"""Robots in a browser: sliders, motions, and the algebra at work. Needs the extra ``viewer``."""

from phistar.viewer.viewer import Viewer

__all__ = ["Viewer"]

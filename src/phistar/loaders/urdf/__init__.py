# SPDX-License-Identifier: BSD-3-Clause
"""URDF, with a dialect for what plain URDF cannot express: ``urdf_reader`` and ``urdf_writer``."""

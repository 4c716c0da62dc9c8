# SPDX-License-Identifier: BSD-3-Clause
"""MJCF through MuJoCo: ``reader``, and the steps before and after MuJoCo has its say."""

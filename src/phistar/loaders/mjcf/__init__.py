# SPDX-License-Identifier: BSD-3-Clause
"""MJCF through MuJoCo: ``mjcf_reader``, and the steps before and after MuJoCo's compiler."""

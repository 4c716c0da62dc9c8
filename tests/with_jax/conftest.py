# SPDX-License-Identifier: BSD-3-Clause
"""Tests that need JAX: collected by ``make test-jax`` alone, which installs it."""

from tests.helpers import chosen_backends

collect_ignore_glob = [] if "jax" in chosen_backends() else ["test_*.py"]

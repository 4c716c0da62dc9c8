# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the whole test suite: how hypothesis searches."""

from hypothesis import HealthCheck, settings

# The same examples every time, so that a red test means a changed program; no deadlines, because
# cores are shared.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make fuzz`: new examples every time.
settings.register_profile("fuzz", settings.get_profile("ci"), derandomize=False, max_examples=1000)
settings.load_profile("ci")

# SPDX-License-Identifier: BSD-3-Clause
"""The state of a simulator's batch: what a step begins with and leaves."""

from __future__ import annotations

from dataclasses import dataclass

from phistar.arrays import Array


@dataclass
class BatchState:
    """Configurations (batch, nq), velocities (batch, nv) and impulses (batch, rows)."""

    q: Array
    v: Array
    impulses: Array

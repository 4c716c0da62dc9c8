# SPDX-License-Identifier: BSD-3-Clause
"""Samples as identification takes them: a state, its acceleration and joint forces."""

from __future__ import annotations

from dataclasses import dataclass

from phistar.arrays import Array


@dataclass(frozen=True, eq=False)
class Samples:
    """A log as identification takes it: N samples with all derivatives.

    Attributes:
        q, v, vdot, tau: (N, nq), (N, nv), (N, nv), (N, nv).
        notes: What was done to get them.
    """

    q: Array
    v: Array
    vdot: Array
    tau: Array
    notes: tuple[str, ...] = ()

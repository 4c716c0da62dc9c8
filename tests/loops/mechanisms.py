# SPDX-License-Identifier: BSD-3-Clause
"""Closed-loop mechanisms of ../shared/loops with their goldens, and a few made here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import phistar
from benchmarks.mechanisms import windows
from phistar.arrays import Array
from phistar.robot import Robot
from tests.helpers import SHARED

__all__ = [
    "NAMES", "Mechanism", "error", "four_bar", "four_bar_state", "mechanism", "needs_loops",
    "windows",
]  # fmt: skip

LOOPS = SHARED / "loops"
NAMES = sorted(path.stem for path in LOOPS.glob("*.json"))
needs_loops = pytest.mark.skipif(
    not NAMES, reason="needs the mechanisms in ../shared/loops (or where PHISTAR_SHARED says)"
)


@dataclass(frozen=True)
class Mechanism:
    """A mechanism with its data: arrays of the README there, and facts."""

    robot: Robot
    golden: dict[str, Array]
    facts: dict[str, Any]

    @property
    def state(self) -> tuple[Array, Array, Array]:
        """Four samples of q, v and tau on the loops."""
        return self.golden["q"], self.golden["v"], self.golden["tau"]


@cache
def mechanism(name: str) -> Mechanism:
    """One of ../shared/loops."""
    facts = json.loads((LOOPS / f"{name}.json").read_text())
    with np.load(LOOPS / f"{name}.npz") as stored:
        golden = {key: stored[key] for key in stored.files}
    return Mechanism(phistar.load(str(LOOPS / facts["file"])), golden, facts)


def error(found: Array, expected: Array) -> float:
    """Largest difference, relative to the largest entry expected."""
    largest = float(np.abs(expected).max(initial=0.0))
    return float(np.abs(np.asarray(found) - expected).max(initial=0.0)) / max(largest, 1e-9)


@cache
def four_bar() -> Robot:
    """The bundled four-bar linkage."""
    return phistar.load("four_bar")


def four_bar_state(seed: int = 0) -> tuple[Array, Array, Array]:
    """A state of it on the loop, at random."""
    robot, rng = four_bar(), np.random.default_rng(seed)
    q = robot.assemble(robot.neutral())
    q, v = robot.project(q, rng.normal(size=robot.nv))
    return q, v, rng.normal(size=robot.nv)

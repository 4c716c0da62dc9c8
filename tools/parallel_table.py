# SPDX-License-Identifier: BSD-3-Clause
"""``make parallel``: forward dynamics in rounds on every reference robot, beside the recursion.

Each robot is run by the schedule that it would get, and once more with all its paths joined link by
link, which short robots would not get. NumPy's recursion is the witness.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import phistar
from phistar.backends import VectorProgram
from phistar.backends.numpy_rounds import NumpyRounds
from phistar.compile import BuildTarget, kernel
from phistar.errors import PhistarError
from phistar.sweeps.parallel.join_tree import JoinTree
from phistar.sweeps.parallel.robot_tree import may_end_runs
from tests.helpers import SHARED
from tools.golden import golden_files

TOLERANCE = 1e-9
"""Of the largest acceleration."""
SAMPLES = 3


@dataclass(frozen=True)
class Outcome:
    """How a robot agrees.

    Attributes:
        path: Its file.
        links: Number of links that move.
        error: Largest difference of an acceleration, relative to the largest one.
        joined_error: The same with paths joined link by link.
        note: Why there are no numbers.
    """

    path: Path
    links: int = 0
    error: float = 0.0
    joined_error: float = 0.0
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Whether both are within the tolerance."""
        return max(self.error, self.joined_error) <= TOLERANCE


robot_files = golden_files


def compare(path: Path) -> Outcome:
    """Load a robot and compare."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = phistar.load(path, mimic="independent").tree
    if robot.singular_hinges:
        return Outcome(path, len(robot.model.bodies), note="singular hinges")
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(seed) for seed in range(SAMPLES)])
    v, tau = rng.normal(size=(2, SAMPLES, robot.nv))
    try:
        expected = robot.compile("forward_dynamics", backend="numpy")(q, v=v, tau=tau)
    except PhistarError as error:
        return Outcome(path, len(robot.model.bodies), note=str(error))
    found = robot.forward_dynamics(q, v, tau, method="parallel")
    program = kernel("forward_dynamics", robot.model, "parallel").on(
        robot.model, BuildTarget("numpy")
    )
    assert isinstance(program, VectorProgram)
    parents = [body.parent for body in robot.model.bodies]
    tree = JoinTree(parents, 1, may_end_runs(robot.model))
    # Joint vectors of programs are in the order of the bodies.
    joined = robot.compile("forward_dynamics", schedule="parallel")
    joined._executable = NumpyRounds(program, tree)
    scale = np.abs(expected).max(initial=1e-300)
    errors = [
        float(np.abs(x - expected).max(initial=0.0) / scale)
        for x in (found, joined(q, v=v, tau=tau))
    ]
    return Outcome(path, len(robot.model.bodies), *errors)


def main() -> int:
    """Print the robots that are worst; the exit code is 1 if one disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=SHARED / "robots")
    parser.add_argument("--match", default="", help="only files whose path contains this")
    options = parser.parse_args()
    files = [p for p in robot_files(options.folder) if options.match in str(p)]
    outcomes = [compare(path) for path in files]
    compared = [each for each in outcomes if not each.note]
    worst = sorted(compared, key=lambda each: -max(each.error, each.joined_error))
    for each in worst[:12]:
        name = each.path.relative_to(options.folder)
        print(f"{each.error:8.1e} {each.joined_error:8.1e} {each.links:4} links  {name}")
    for each in outcomes:
        if each.note:
            print(f"not compared: {each.path.relative_to(options.folder)}: {each.note[:90]}")
    agreeing = sum(each.agrees for each in compared)
    print(
        f"{agreeing} of {len(compared)} robots agree to {TOLERANCE:g} of the largest acceleration"
    )
    return 0 if compared and agreeing == len(compared) else 1


if __name__ == "__main__":
    raise SystemExit(main())

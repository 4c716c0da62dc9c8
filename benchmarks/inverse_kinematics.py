# SPDX-License-Identifier: BSD-3-Clause
"""Inverse kinematics of many poses, beside a loop over Pinocchio that takes the same steps.

Same robot, goals, start, damping, limits and tolerance, one start for each goal, one thread. The
loop is as one writes it: Pinocchio gives the frame and its Jacobian, NumPy solves. Where both end
is compared before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import cases, peers
from benchmarks.timing import Act, Ratio, Timing, interleaved
from phistar import robots
from phistar.arrays import Array
from phistar.inverse_kinematics import search
from phistar.scalar.trace.target_programs import DAMPING_FLOOR

ROBOT, FRAME, BATCH, PEER_BATCH = "panda", "panda_link8", 4096, 64
TOLERANCE, MAX_ITERATIONS = 1e-8, 100
SAME = 1e-6
"""Configurations [rad] that differ by less are the same."""
LEAST_AGREEMENT = 0.9
"""Share of goals for which both end in the same place: at a fork, rounding decides."""


@dataclass(frozen=True)
class InverseKinematicsRow:
    """What was found.

    Attributes:
        robot, batch: What was solved.
        success, iterations: Share of goals that were reached from one start, and mean steps.
        with_restarts: Share with the default restarts, and ``restarts`` the time of a goal then.
        ours: Seconds of a goal.
        theirs: The same of the loop; None if Pinocchio is not there.
        ratio: How many times faster ours is.
        agreement: Share of goals for which both end in the same place.
        missing: Why there is no Pinocchio.
    """

    robot: str
    batch: int
    success: float
    iterations: float
    with_restarts: float
    restarts: Timing
    ours: Timing
    theirs: Timing | None = None
    ratio: Ratio | None = None
    agreement: float = 1.0
    missing: str = ""


def measure(quick: bool = False) -> tuple[InverseKinematicsRow, str]:
    """Time it; the second result names a disagreement, or is empty."""
    robot = cases.robot(ROBOT)
    goals = robot.frame_pose(robot.random_configuration(0, (BATCH,)), FRAME)

    def solve(restarts: int, count: int = BATCH) -> Any:
        return robot.inverse_kinematics(
            {FRAME: goals[:count]}, robot.home, restarts=restarts, tolerance=TOLERANCE,
            max_iterations=MAX_ITERATIONS,
        )  # fmt: skip

    acts: dict[str, Act] = {"ours": lambda: solve(0), "restarts": lambda: solve(20)}
    missing = peers.why_not("pinocchio", ROBOT)
    agreement = 1.0
    if not missing:
        loop = pinocchio_loop(robot.home, robot.lower_limits, robot.upper_limits)
        found = np.array([loop(goal)[0] for goal in goals[:PEER_BATCH]])
        gaps = np.abs(found - solve(0, PEER_BATCH).q).max(axis=1)
        agreement = float((gaps <= SAME).mean())
        acts["theirs"] = lambda: [loop(goal) for goal in goals[:PEER_BATCH]]
    rounds = interleaved(acts, 1.0 if quick else 6.0, least=3, most=6, tries=1)
    one, all_starts = solve(0), solve(20)
    mine = [t / BATCH for t in rounds["ours"]]
    row = InverseKinematicsRow(
        ROBOT, BATCH, float(one.success.mean()), float(one.iterations.mean()),
        float(all_starts.success.mean()), Timing.of(rounds["restarts"], BATCH), Timing.of(mine),
        agreement=agreement, missing=missing,
    )  # fmt: skip
    if missing:
        return row, ""
    other = [t / PEER_BATCH for t in rounds["theirs"]]
    times = {"theirs": Timing.of(other), "ratio": Ratio.of(mine, other)}
    row = InverseKinematicsRow(**{**vars(row), **times})
    wrong = agreement < LEAST_AGREEMENT
    text = f"{ROBOT}, inverse kinematics: the loop over Pinocchio ends elsewhere for "
    return row, f"{text}{1.0 - agreement:.0%} of goals" if wrong else ""


def pinocchio_loop(
    start: Array, lower: Array, upper: Array
) -> Callable[[Array], tuple[Array, int]]:
    """A function from a goal (4, 4) to the configuration reached and the steps it took."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(robots.path(ROBOT)))
    data, frame = model.createData(), model.getFrameId(FRAME)
    aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    e, A = np.empty(6), np.empty((6, model.nv))

    def errors(q: Array, R: Array, p: Array) -> None:
        """e and A at q, angular rows first."""
        J = pin.computeFrameJacobian(model, data, q, frame, aligned)
        pin.updateFramePlacement(model, data, frame)
        place = data.oMf[frame]
        left = R @ place.rotation.T
        e[:3], e[3:] = pin.log3(left), p - place.translation
        A[:3], A[3:] = pin.Jlog3(left) @ J[3:], J[:3]

    def step(q: Array, mu: float) -> Array:
        """The damped step; joints that stand at a limit and would go beyond are held."""
        damping = (mu * 0.5 * (e @ e) + DAMPING_FLOOR) * np.eye(6)
        found = A.T @ np.linalg.solve(A @ A.T + damping, e)
        held = ((q <= lower) & (found < 0.0)) | ((q >= upper) & (found > 0.0))
        if held.any():
            free = A * ~held
            found = free.T @ np.linalg.solve(free @ free.T + damping, e)
        return np.asarray(np.clip(q + found, lower, upper))

    def solve(goal: Array) -> tuple[Array, int]:
        R, p = goal[:3, :3], goal[:3, 3]
        q = best = start
        least, mu, slow, again = np.inf, search.FIRST_MU, 0, False
        for count in range(1, MAX_ITERATIONS + 1):
            errors(q, R, p)
            merit, used = 0.5 * (e @ e), mu
            if again or merit < least:
                if not again:
                    gained = least - merit > search.SLOW_PROGRESS * merit
                    slow = 0 if gained else slow + 1
                    mu = max(mu * search.MU_DOWN, search.LEAST_MU)
                best, least, again = q, merit, False
                if np.sqrt(2.0 * merit) <= TOLERANCE or slow >= search.SLOW_STEPS:
                    return best, count
                q = step(q, used)
            else:
                q, mu, slow, again = best, mu * search.MU_UP, slow + 1, True
                if slow >= search.SLOW_STEPS or mu > search.MOST_MU:
                    return best, count
        return best, MAX_ITERATIONS

    return solve

# SPDX-License-Identifier: BSD-3-Clause
"""Controllers made of linearized dynamics: regulators, trackers, and trajectories optimised."""

from phistar.control.cost import Cost, Expansion, FrameGoal, QuadraticCost
from phistar.control.feedback import Feedback
from phistar.control.feedforward import feedforward
from phistar.control.ilqr import Solution, ilqr
from phistar.control.lqr import Regulator, lqr
from phistar.control.trajectory import Policy, Trajectory, minimum_jerk, rollout, work
from phistar.control.tv_lqr import Tracker, tv_lqr

__all__ = [
    "Cost",
    "Expansion",
    "Feedback",
    "FrameGoal",
    "Policy",
    "QuadraticCost",
    "Regulator",
    "Solution",
    "Tracker",
    "Trajectory",
    "feedforward",
    "ilqr",
    "lqr",
    "minimum_jerk",
    "rollout",
    "tv_lqr",
    "work",
]

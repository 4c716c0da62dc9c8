# SPDX-License-Identifier: BSD-3-Clause
"""Control: laws with a Lyapunov function; regulators, trackers and optimised trajectories."""

from phistar.control.actuation import Actuation
from phistar.control.cost import Cost, Expansion, FrameGoal, QuadraticCost
from phistar.control.feedback import Feedback
from phistar.control.feedforward import feedforward
from phistar.control.follow import Following, follow
from phistar.control.gravity_law import GravityCompensation, gravity_compensation
from phistar.control.ilqr import Solution, ilqr
from phistar.control.joint_laws import ComputedTorque, PDGravity, computed_torque, pd_gravity
from phistar.control.law import Law
from phistar.control.lqr import Regulator, lqr
from phistar.control.operational_law import OperationalSpace, operational_space
from phistar.control.policy_rollout import Policy
from phistar.control.pose_law import PoseControl, pose_control
from phistar.control.rate_law import RateFeedback, rate_feedback
from phistar.control.regulate import regulate
from phistar.control.regulation import Regulation
from phistar.control.rollout import rollout
from phistar.control.trajectory import Trajectory, minimum_jerk, work
from phistar.control.tv_lqr import Tracker, tv_lqr
from phistar.control.user_cost import check_cost

__all__ = [
    "Actuation",
    "ComputedTorque",
    "Cost",
    "Expansion",
    "Feedback",
    "Following",
    "FrameGoal",
    "GravityCompensation",
    "Law",
    "OperationalSpace",
    "PDGravity",
    "Policy",
    "PoseControl",
    "QuadraticCost",
    "RateFeedback",
    "Regulation",
    "Regulator",
    "Solution",
    "Tracker",
    "Trajectory",
    "check_cost",
    "computed_torque",
    "feedforward",
    "follow",
    "gravity_compensation",
    "ilqr",
    "lqr",
    "minimum_jerk",
    "operational_space",
    "pd_gravity",
    "pose_control",
    "rate_feedback",
    "regulate",
    "rollout",
    "tv_lqr",
    "work",
]

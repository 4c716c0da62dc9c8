# SPDX-License-Identifier: BSD-3-Clause
"""Inverse kinematics as a part of ``Robot``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import require_count, require_number
from phistar.arrays import Array
from phistar.errors import ArgumentError, LoopError, NotFiniteError
from phistar.inverse_kinematics.search import Places, SearchProblem, search
from phistar.inverse_kinematics.solution import (
    AT_LIMITS,
    NOT_A_NUMBER,
    REACHED,
    STUCK,
    UNFINISHED,
    InverseKinematics,
)
from phistar.inverse_kinematics.targets import Target, Wanted, read_targets
from phistar.model.configuration import (
    Coordinates,
    neutral,
    random_configuration,
    random_generator,
    read_coordinates,
    require_unit_quaternions,
)
from phistar.model.follower_limits import limits_with_followers
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model


class SolvesInverseKinematics:
    """Configurations in which frames are where one wants them."""

    model: Model

    def inverse_kinematics(
        self,
        targets: Mapping[str, Target | ArrayLike],
        q0: Coordinates | None = None,
        *,
        fixed: Sequence[str] = (),
        limits: bool = True,
        tolerance: float = 1e-8,
        max_iterations: int = 100,
        restarts: int = 20,
        seed: int = 0,
        on_error: str = "raise",
    ) -> InverseKinematics:
        """Configurations for targets, by Levenberg–Marquardt steps on the configuration space.

        Args:
            targets: By frame name a pose (..., 4, 4) in the world, or a target of
                ``phistar.inverse_kinematics``: ``Pose``, ``Position``, ``Orientation``, ``Axis``,
                ``CenterOfMass``, ``Posture``, with weights and priorities.
            q0: (..., nq) where to start; default ``home``. What is outside the limits is put on
                them.
            fixed: Names of joints that stay where they are.
            limits: Keep the joints inside their limits, those that follow by mimic too.
            tolerance: Largest residual of targets of the first priority [rad and m].
            max_iterations: Steps from each start.
            restarts: How many random configurations to start from where it does not work; joints
                with quaternions keep those of q0.
            seed: Of these configurations: they are the same for all samples.
            on_error: ``"raise"``, or ``"nan"``: samples with numbers that are none give NaN.

        Returns:
            q, success and what is left of each target; a target out of reach is no error.

        Raises:
            UnknownNameError: No such frame or joint.
            LoopError: The robot has closed loops.
            ArgumentError: A target, weight or option that cannot be.
        """
        model = self.model
        if loops := active_loops(model.loops):
            cure = "Use robot.tree and project the result, or lock the joints of the loops"
            raise LoopError(model.name, "inverse kinematics", loops, cure)
        _check_options(model, fixed, tolerance, max_iterations, restarts, on_error)
        given = _start(model) if q0 is None else read_coordinates(model, q0, "q", "q0")
        start = np.asarray(given, dtype=np.float64)
        wanted = read_targets(model, targets, start.shape[:-1])
        flat = np.broadcast_to(start, (*wanted.batch, model.nq)).reshape(-1, model.nq).copy()
        numbers = np.isfinite(np.concatenate([flat, wanted.goals], axis=1))
        bad = np.asarray(~numbers.all(axis=1))
        if bad.any() and on_error == "raise":
            _refuse_bad(wanted, flat, bad)
        flat[bad] = _start(model)
        flat = require_unit_quaternions(model, flat, "q0")
        wanted.goals[bad] = 0.0
        if limits:
            flat = _clamped(model, flat, fixed)
        problem = SearchProblem(
            model, wanted.rows, wanted.scales, tuple(fixed), bool(limits), tolerance, max_iterations
        )
        good = np.flatnonzero(~bad)
        drawn = partial(_drawn, problem, random_generator(seed, "seed"))
        found, starts = search(problem, flat[good], wanted.goals[good], drawn, restarts)
        flat[good] = found.q
        return _solution(problem, wanted, flat, good, found, starts)


def _start(model: Model) -> Array:
    named = model.configurations
    return np.asarray(named["home"]) if "home" in named else neutral(model)


def _check_options(
    model: Model,
    fixed: Sequence[str],
    tolerance: float,
    max_iterations: int,
    restarts: int,
    on_error: str,
) -> None:
    if isinstance(fixed, str) or not isinstance(fixed, Iterable):
        raise ArgumentError(f"fixed is {fixed!r}, expected a list of joint names")
    for name in fixed:
        if model.joint(name).nv == 0:
            raise ArgumentError(f"joint '{name}' of '{model.name}' has no coordinates to hold")
    require_number("tolerance", tolerance, "a number above 0", zero=False)
    require_count("max_iterations", max_iterations)
    require_count("restarts", restarts, "a whole number, 0 or more", least=0)
    if on_error not in ("raise", "nan"):
        raise ArgumentError(f"on_error is {on_error!r}, expected 'raise' or 'nan'")


def _refuse_bad(wanted: Wanted, q0: Array, bad: Array) -> None:
    """Say which sample has a number that is none."""
    index = np.unravel_index(int(np.flatnonzero(bad)[0]), wanted.batch or (1,))
    sample = [int(i) for i in index] if wanted.batch else []
    what = "a target" if np.isfinite(q0[bad][0]).all() else "q0"
    raise NotFiniteError(
        f"{what} of sample {sample} is not finite or has no direction; on_error='nan' goes on "
        "with the others",
        bad.reshape(wanted.batch),
    )


def _clamped(model: Model, q: Array, fixed: Sequence[str]) -> Array:
    """Configurations inside the limits; those of fixed joints stay.

    Raises:
        ArgumentError: A mimic joint and its leader cannot both be inside.
    """
    lower, upper = (np.array(each) for each in limits_with_followers(model))
    for name in model.joint_names:
        at = model.joints[name].q_slice
        if (lower[at] > upper[at]).any():
            raise ArgumentError(
                f"joint '{name}' of '{model.name}' and those that follow it have no place inside "
                "all their limits; pass limits=False, or give others by with_limits"
            )
    inside = np.clip(q, lower, upper)
    for name in fixed:
        at = model.joints[name].q_slice
        inside[:, at] = q[:, at]
    return np.asarray(inside)


def _drawn(problem: SearchProblem, rng: np.random.Generator) -> Array:
    """A random configuration (nq,); NaN for joints with quaternions and those that stay."""
    model, fixed = problem.model, problem.fixed
    q = random_configuration(model, rng)
    if problem.limited:
        q = np.clip(q, *limits_with_followers(model))
    for name in model.joint_names:
        joint = model.joints[name]
        if joint.joint_kind.quaternion is not None or name in fixed:
            q[joint.q_slice] = np.nan
    return q


def _solution(
    problem: SearchProblem, wanted: Wanted, q: Array, good: Array, found: Places, starts: Array
) -> InverseKinematics:
    """What was found, with the errors there."""
    from phistar.scalar.trace.target_programs import row_counts

    model, shape = problem.model, wanted.batch
    at = problem.step(q, wanted.goals, np.ones((len(q), 1)))
    bad = np.ones(len(q), bool)
    bad[good] = False
    reached = problem.reached(at["squares"]) & ~bad
    lower, upper = (np.array(each) for each in limits_with_followers(model))
    touching = ((q <= lower) | (q >= upper)) & problem.limited
    codes = np.where(touching.any(axis=1), AT_LIMITS, STUCK)
    codes[good[found.unfinished]] = UNFINISHED
    codes[reached] = REACHED
    codes[bad] = NOT_A_NUMBER
    residuals, errors = np.sqrt(at["squares"]), at["errors"].copy()
    for values in (q, residuals, errors):
        values[bad] = np.nan
    iterations, tried = np.zeros(len(q), int), np.zeros(len(q), int)
    iterations[good], tried[good] = found.iterations, starts
    ends = np.cumsum([0, *row_counts(model, problem.rows)])
    labels = wanted.labels
    return InverseKinematics(
        q.reshape(*shape, model.nq),
        reached.reshape(shape),
        {label: residuals[:, i].reshape(shape) for i, label in enumerate(labels)},
        {
            label: errors[:, ends[i] : ends[i + 1]].reshape(*shape, ends[i + 1] - ends[i])
            for i, label in enumerate(labels)
        },
        codes.reshape(shape),
        iterations.reshape(shape),
        tried.reshape(shape),
        touching.reshape(*shape, model.nq),
    )

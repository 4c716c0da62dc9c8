# SPDX-License-Identifier: BSD-3-Clause
"""The motion of a robot under a controller: machine code for laws, calls for other policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.policy_rollout import Policy, PolicyRollout, reject_step
from phistar.control.trajectory import Trajectory
from phistar.errors import ArgumentError, UnknownNameError, kind_of
from phistar.model.bad_samples import check_on_error
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.robot import Robot
from phistar.sim.compiled_stepper import CompiledStepper
from phistar.sim.initial_state import count_of_steps
from phistar.sim.joint_rows import refuse_scheme, used_parts
from phistar.sim.law_calls import Controller, LawProgram, NoLawCodeError
from phistar.sim.law_motion import LawMotion, LawSteps, law_motion
from phistar.sim.schemes import SCHEMES, SEMI_IMPLICIT


def rollout(
    robot: Robot,
    q: Coordinates,
    v: Coordinates,
    policy: Policy | Controller,
    dt: float,
    steps: int,
    *,
    scheme: str = SEMI_IMPLICIT.name,
    every: int = 1,
    forces: Mapping[str, ArrayLike] | None = None,
    reference: str = "world_aligned",
    passive: Passive = False,
    threads: int | None = None,
    on_error: str = "raise",
) -> Trajectory:
    """The motion of a robot under a controller, whose forces are held during each step.

    Laws of ``phistar.control``, also towards moving goals (``follow``), regulators and feedback
    along trajectories run in machine code, all steps of all samples in one call, as ``simulate``
    does. Any other function gets one call a step for the whole batch; so do laws of robots with
    loops or mimic joints. ``engine`` and ``engine_reason`` of the result tell.

    By default the scheme of ``robot.discretize``: v' = v + dt v̇(q, v, τ), q' = integrate(q, dt v').
    With loops each step ends on them, as ``robot.step`` does.

    Args:
        robot: The robot.
        q: (..., nq) initial configuration.
        v: (..., nv) initial velocity.
        policy: A law, a regulator, feedback, or a function: ``policy(k, q, v)`` gives the joint
            forces (..., nv) of step k.
        dt: Length of a step [s].
        steps: Number of steps.
        scheme: ``"semi_implicit"``, ``"implicit"``, ``"euler"``, ``"midpoint"`` or ``"rk4"``.
        every: Keep one knot in so many steps; ``tau`` is then that of the last step before the
            next knot.
        forces: External wrenches (..., 6) on named frames, as in ``robot.forward_dynamics``,
            constant in time.
        reference: Axes and point of those wrenches.
        passive: What the plant's joints do by themselves, as in ``robot.step``: True, or some of
            ``{"springs", "damping", "friction", "limits"}``; by default nothing, as the laws and
            ``robot.discretize`` have it.
        threads: Number of threads of machine code; default: by the work. Results do not depend on
            it.
        on_error: ``"raise"``, or ``"nan"``: samples that are or become not finite are NaN from
            there on and the others continue; see ``ok`` and ``diverged`` of the result. A function
            gets them at rest in a harmless configuration.

    Raises:
        DivergenceError: The motion, or a force of the policy, is not finite.
        ArgumentError: A number that comes in is not finite; steps of no length, or more than the
            controller has goals for.
        LoopOpenError, LoopVelocityError: The start is not on the loops.
    """
    count = count_of_steps(dt, steps, None, every)
    check_on_error(on_error)
    if scheme not in SCHEMES:
        raise UnknownNameError("scheme", scheme, SCHEMES)
    refuse_scheme(robot.model, scheme, used_parts(robot.model, passive)[0])
    given = LawSteps(float(dt), count, every, scheme, passive, forces, reference, on_error, threads)
    program = policy.program() if isinstance(policy, Controller) else None
    call: Policy = policy.at_step if isinstance(policy, Controller) else policy
    why = f"{kind_of(policy)} is Python"
    if program is not None:
        _require_goals(program, count)
        try:
            found = law_motion(robot.model, q, v, program, given)
        except NoLawCodeError as error:
            why = str(error)
        else:
            return _compiled(robot, call, found, given)
    wrenches = (forces, reference)
    motion = PolicyRollout(robot, (q, v), given.dt, count, wrenches, on_error, passive, scheme)
    return _thinned(motion.run(call, why), every)


def _require_goals(program: LawProgram, steps: int) -> None:
    if program.steps is not None and steps > program.steps:
        raise ArgumentError(
            f"steps is {steps}, and the controller has goals for {program.steps} steps; give it "
            "more, or take fewer steps"
        )


def _compiled(robot: Robot, policy: Policy, found: LawMotion, given: LawSteps) -> Trajectory:
    """The motion that machine code found; a lost sample is an error unless on_error is "nan"."""
    lost = found.diverged >= 0
    if lost.any() and given.on_error == "raise":
        _explain(robot, policy, found, given)
    return Trajectory.trusted(
        t=given.dt * given.every * np.arange(len(found.q)),
        q=found.q,
        v=found.v,
        tau=found.tau,
        diverged=found.diverged if given.on_error == "nan" else None,
        engine=CompiledStepper.engine,
    )


def _explain(robot: Robot, policy: Policy, found: LawMotion, given: LawSteps) -> None:
    """Raise with the reason for which samples are lost: the same steps, one by one, tell it."""
    knot = int(found.diverged[found.diverged >= 0].min())
    begin = (knot - 1) * given.every
    again = PolicyRollout(
        robot,
        (found.q[knot - 1], found.v[knot - 1]),
        given.dt,
        given.every,
        (given.forces, given.reference),
        "raise",
        given.passive,
        given.scheme,
        begin,
    )
    again.run(policy)
    last = begin + given.every - 1
    reject_step(robot, found.diverged == knot, last, (last + 1) * given.dt)


def _thinned(motion: Trajectory, every: int) -> Trajectory:
    """One knot in so many."""
    if every == 1:
        return motion
    diverged: Array | None = motion.diverged
    if diverged is not None:
        diverged = np.where(diverged < 0, -1, -(-diverged // every))
    return replace(
        motion,
        t=motion.t[::every],
        q=motion.q[::every],
        v=motion.v[::every],
        tau=motion.tau[every - 1 :: every],
        diverged=diverged,
    )

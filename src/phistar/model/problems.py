# SPDX-License-Identifier: BSD-3-Clause
"""Checks of values that do not prevent a model: inertias, limits, drives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from phistar.errors import InertiaWarning, LimitWarning, Problem, Severity, close_matches
from phistar.model.components import GROUND, Body, Coupling, Frame, Joint, Link, Loop
from phistar.model.kinematic_loops import WORLD
from phistar.model.loop_kinds import LOOP_KINDS
from phistar.spatial import inertia_matrix, inertia_problems

MAX_PLAUSIBLE_MASS_KG = 1e9
"""Masses above this [kg] are reported as an error of units or typing."""
MAX_MAGNITUDE = 1e50
"""Masses, lengths and inertias above this are rejected: their products would overflow."""


def link_problems(links: Sequence[Link]) -> list[Problem]:
    """Errors for inertias that no body can have, warnings for implausible ones."""
    if not links:
        return []
    masses = np.array([link.mass for link in links])
    inertias = np.concatenate([link.inertia for link in links]).reshape(-1, 3, 3)
    coms = np.concatenate([link.com for link in links]).reshape(-1, 3)
    # Written so that NaN counts as too large.
    finite = (
        (np.abs(masses) < MAX_MAGNITUDE)
        & (np.abs(coms) < MAX_MAGNITUDE).all(axis=-1)
        & (np.abs(inertias) < MAX_MAGNITUDE).all(axis=(-1, -2))
    )
    problems: list[Problem] = []
    principal = np.linalg.eigvalsh(np.where(finite[:, None, None], inertias, 0.0))
    largest = principal[:, 2]
    sound = finite & (masses > 0) & (masses < MAX_PLAUSIBLE_MASS_KG) & (principal[:, 0] > 0)
    sound &= principal[:, 0] + principal[:, 1] >= largest * (1 - 1e-12)
    sound &= (inertias == np.swapaxes(inertias, -1, -2)).all(axis=(-1, -2))
    empty = finite & (masses == 0) & ~inertias.any(axis=(-1, -2))
    for k in np.flatnonzero(~(sound | empty)):
        problems += _one_link(links[int(k)])
    return problems


def _one_link(link: Link) -> Iterable[Problem]:
    if not np.all(np.isfinite(link.com)):
        what = f'link "{link.name}": centre of mass {link.com.tolist()} is not finite.'
        yield Problem("error", "com-not-finite", link.where, what, "Give finite numbers.")
    largest = max(abs(link.mass), np.abs(link.com).max(), np.abs(link.inertia).max())
    if math.isfinite(link.mass) and link.mass >= MAX_PLAUSIBLE_MASS_KG:
        what = f'link "{link.name}": mass {link.mass:g} kg is absurd.'
        severity: Severity = "error" if largest >= MAX_MAGNITUDE else "warning"
        cure = "Check the unit: masses are in kg."
        yield Problem(severity, "mass-huge", link.where, what, cure, InertiaWarning)
    elif math.isfinite(largest) and largest >= MAX_MAGNITUDE:
        what = (
            f'link "{link.name}": the centre of mass or inertia has the absurd value {largest:g}.'
        )
        yield Problem("error", "inertia-huge", link.where, what, "Check units and exponents.")
    for problem in inertia_problems(link.mass, link.inertia):
        what = f'link "{link.name}": {problem.text}.'
        code = f"inertia-{problem.kind.replace(' ', '-')}"
        upside_down = problem.kind == "negative moment" and np.diagonal(link.inertia).min() <= 0
        fatal = problem.kind in _FATAL or upside_down
        severity = "error" if fatal else "warning"
        yield Problem(severity, code, link.where, what, _CURES[problem.kind], InertiaWarning)


def body_problems(
    problems: Sequence[Problem],
    links: Sequence[Link],
    frames: Mapping[str, Frame],
    bodies: Sequence[Body],
) -> list[Problem]:
    """Errors of links with a negative moment that are too heavy for what they move with.

    Products of inertia that are too large make a moment negative. Such files exist (an antenna of a
    milligram on a base of 28 kg): they stay warnings as long as the body, all links that are fixed
    to each other, resists every rotation about its joint.
    """
    errors: list[Problem] = []
    if not any(problem.code == _NEGATIVE for problem in problems):
        return errors
    for link in links:
        body = frames[link.name].body
        negative = [
            p for p in inertia_problems(link.mass, link.inertia) if p.kind == "negative moment"
        ]
        if not negative or body == GROUND:
            continue
        about_joint = inertia_matrix(bodies[body].inertia)[:3, :3]
        if np.linalg.eigvalsh(about_joint)[0] <= 0:
            what = f'link "{link.name}": {negative[0].text}.'
            cure = _CURES["negative moment"]
            errors.append(Problem("error", _NEGATIVE, link.where, what, cure, InertiaWarning))
    return errors


_NEGATIVE = "inertia-negative-moment"
_FATAL = frozenset({"not finite", "negative mass", "not symmetric"})
_CURES = {
    "not finite": "Give finite numbers.",
    "negative mass": "A mass must be positive, or zero for a massless link.",
    "not symmetric": "An inertia matrix must be symmetric.",
    "negative moment": "No body has one: check signs, axes and order (ixx ixy ixz iyy iyz izz), or "
    "recompute the inertia from the CAD model.",
    "not positive definite": "Recompute the inertia from the CAD model; check signs and axes.",
    "triangle inequality": "This violates the triangle inequality, which every solid satisfies; "
    "recompute the moments about the centre of mass.",
    "inertia without mass": "Give the link a mass or remove the inertia.",
    "mass without inertia": "Give the rotational inertia about the centre of mass.",
}


def joint_problems(joints: Sequence[Joint]) -> list[Problem]:
    """Errors and warnings about placement, limits, damping, friction and armature."""
    problems: list[Problem] = []
    # Joints of a large robot share most of their limits and drives: each pair is checked once.
    sound: dict[tuple[int, int, int], bool] = {}
    for joint in joints:
        shared = id(joint.limits), id(joint.drive), joint.joint_kind.nv
        if shared not in sound:
            sound[shared] = _is_sound(joint)
        if joint.reference != 0.0 or not sound[shared]:
            problems += _one_joint(joint)
    if joints:
        given = [pose for joint in joints for pose in (joint.origin, joint.child_pose)]
        poses = np.concatenate(given).reshape(-1, 32)
        is_huge = ~(np.abs(poses) < MAX_MAGNITUDE).all(axis=1)
        for k in np.flatnonzero(is_huge):
            joint = joints[int(k)]
            what = f'joint "{joint.name}": its origin has an absurd or non-finite value.'
            cure = "Lengths are in metres; check units and exponents."
            problems.append(Problem("error", "origin-huge", joint.where, what, cure))
    return problems


def _one_joint(joint: Joint) -> Iterable[Problem]:
    limits = joint.limits
    if _is_sound(joint):
        return
    label = f'joint "{joint.name}"'
    numbers = (*limits.lower, *limits.upper, *limits.velocity, *limits.effort)
    if any(math.isnan(x) for x in numbers):
        yield Problem(
            "error", "limit-nan", joint.where, f"{label}: a limit is NaN.", "Give a number."
        )
        return
    for low, high in zip(limits.lower, limits.upper, strict=True):
        if low > high or low == math.inf or high == -math.inf:
            what = f"{label}: lower limit {low:g} is above upper limit {high:g}."
            yield Problem("error", "limit-order", joint.where, what, "Swap or correct them.")
    if any(x < 0 for x in (*limits.velocity, *limits.effort)):
        what = f"{label}: a velocity or effort limit is negative."
        yield Problem(
            "warning", "limit-negative", joint.where, what, "Give its size.", LimitWarning
        )
    if joint.reference != 0.0 and joint.joint_kind.nq != 1:
        what = f"{label}: a {joint.kind} joint has a reference, {joint.reference:g}."
        cure = "Only a joint with one coordinate has one; shift the joint's frame instead."
        yield Problem("error", "reference-size", joint.where, what, cure)
    yield from _drive_problems(joint, label)


def _is_sound(joint: Joint) -> bool:
    """Whether none of the checks below applies; written for speed."""
    limits, drive = joint.limits, joint.drive
    sizes = (*limits.velocity, *limits.effort, *drive.armature, *drive.rotor_inertia)
    sizes += (*drive.gear_ratio, *drive.damping, *drive.friction, *drive.stiffness)
    if joint.reference != 0.0 or not all([x >= 0.0 for x in sizes]):
        return False
    if math.inf in sizes[2 * joint.joint_kind.nv :]:
        return False
    ends = zip(limits.lower, limits.upper, strict=True)
    return all([low <= high and low < math.inf and high > -math.inf for low, high in ends])


def _drive_problems(joint: Joint, label: str) -> Iterable[Problem]:
    drive = joint.drive
    for name in ("armature", "rotor_inertia", "gear_ratio", "damping", "friction", "stiffness"):
        values = getattr(drive, name)
        if not all(math.isfinite(x) for x in values):
            what = f"{label}: {name} {values} is not finite."
            yield Problem("error", f"{name}-not-finite", joint.where, what, "Give finite numbers.")
    for name in ("armature", "rotor_inertia"):
        values = getattr(drive, name)
        if any(x < 0 for x in values):
            what = f"{label}: {name} {min(values):g} is negative: the mass matrix is indefinite."
            yield Problem("error", f"negative-{name}", joint.where, what, "It must be >= 0.")
    for name in ("damping", "friction"):
        values = getattr(drive, name)
        if any(x < 0 for x in values):
            what = f"{label}: negative {name} {min(values):g} feeds energy into the robot."
            cure = "It must be >= 0; the value is kept."
            yield Problem("warning", f"negative-{name}", joint.where, what, cure, LimitWarning)


def loop_problems(
    links: Sequence[Link], joints: Sequence[Joint], loops: Sequence[Loop]
) -> list[Problem]:
    """Errors for loops of an unknown kind, or on missing links and joints."""
    if not loops:
        return []
    known = {"link": {link.name for link in links} | {WORLD}, "joint": {j.name for j in joints}}
    return [problem for loop in loops for problem in _one_loop(loop, known)]


def _one_loop(loop: Loop, known: dict[str, set[str]]) -> Iterable[Problem]:
    if isinstance(loop, Coupling):
        label, kind = f'coupling "{loop.name}"', "joint"
        ends = [loop.joint, *([loop.source] if loop.source else [])]
    else:
        label, kind, ends = f'loop "{loop.name}"', "link", [loop.predecessor, loop.successor]
        if loop.kind not in LOOP_KINDS:
            what = f'{label} has unknown kind "{loop.kind}".'
            cure = f"Kinds: {', '.join(LOOP_KINDS)}."
            yield Problem("error", "loop-kind", loop.where, what, cure)
        if loop.predecessor == loop.successor:
            what = f'{label} has both ends on link "{loop.successor}".'
            cure = "A loop connects two links, or one and the world."
            yield Problem("error", "loop-ends", loop.where, what, cure)
    for name in ends:
        if name not in known[kind]:
            close = close_matches(name, known[kind], 1)
            cure = f"Did you mean '{close[0]}'?" if close else "Correct the name."
            what = f'{label} refers to unknown {kind} "{name}".'
            yield Problem("error", f"unknown-{kind}", loop.where, what, cure)


def mass_problems(links: Sequence[Link], name: str) -> list[Problem]:
    """A robot without any mass has kinematics only."""
    if any(link.mass > 0 for link in links):
        return []
    what = f'robot "{name}" has no mass at all: only its kinematics is defined.'
    cure = "Give its links an <inertial>."
    return [Problem("warning", "no-mass", "", what, cure, InertiaWarning)]

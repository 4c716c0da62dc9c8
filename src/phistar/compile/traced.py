# SPDX-License-Identifier: BSD-3-Clause
"""Quantities whose scalar program is traced for a robot directly: one row each.

A row says what a quantity reads and gives, how much work it is, and how its program is traced. The
tracers are in ``scalar.trace``; they are imported when a program is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from phistar.backends.policy import TracedWork
from phistar.compile.requests import Traced
from phistar.model.model import Model

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled

_IN_REFERENCE = {"frame": None, "reference": "world_aligned"}
"""What is chosen of a quantity of a frame in some axes; None: it has to be named."""


def _tracer(module: str, function: str) -> Callable[..., Unrolled]:
    """A function of a module of ``scalar.trace``, which is imported when it is called."""

    def trace(model: Model, *choices: Any) -> Unrolled:
        program: Unrolled = getattr(import_module(f"phistar.scalar.trace.{module}"), function)(
            model, *choices
        )
        return program

    return trace


def _along_path(model: Model, frame: str, *_: Any) -> TracedWork:
    return TracedWork(len(model.ancestors(model.frame(frame).body)), 1)


def _all_links(model: Model, *_: Any) -> TracedWork:
    return TracedWork(len(model.bodies), 1)


def _all_poses(model: Model) -> TracedWork:
    return TracedWork(len(model.bodies), len(model.link_names))


def _some_mass(model: Model, *_: Any) -> TracedWork | None:
    return _all_links(model) if model.inertias[:, 0].sum() else None


def _link_poses(model: Model) -> Unrolled:
    return _tracer("kinematics_programs", "poses")(model, model.link_names)


def _frame_pose(model: Model, frame: str) -> Unrolled:
    return _tracer("kinematics_programs", "poses")(model, (frame,))


_ROWS = (
    Traced(
        "frame_pose",
        ("q",),
        lambda model, frame: (4, 4),
        _frame_pose,
        _along_path,
        choices={"frame": None},
        defined="T = T(parent) T_J from the world to the frame",
    ),
    Traced(
        "link_poses",
        ("q",),
        lambda model: (len(model.link_names), 4, 4),
        _link_poses,
        _all_poses,
        defined="T(k) = T(parent of k) T_J(k), outward",
    ),
    Traced(
        "jacobian",
        ("q",),
        lambda model, frame, reference: (6, model.nv),
        _tracer("kinematics_programs", "jacobian"),
        _along_path,
        choices=_IN_REFERENCE,
        defined="J = X B* φ* H*, X from the frame's axes to those of the reference",
    ),
    Traced(
        "frame_velocity",
        ("q", "v"),
        lambda model, frame, reference: (6,),
        _tracer("kinematics_programs", "velocity"),
        _along_path,
        choices=_IN_REFERENCE,
        defined="X B* φ* H* v, X from the frame's axes to those of the reference",
    ),
    Traced(
        "center_of_mass",
        ("q",),
        lambda model, fixed: (3,),
        _tracer("kinematics_programs", "center_of_mass"),
        _some_mass,
        choices={"fixed": True},
        defined="Σ m(k) c(k) / Σ m(k), first moments collected inward",
    ),
    Traced(
        "momentum",
        ("q", "v"),
        lambda model: (6,),
        _tracer("energy_programs", "momentum"),
        _all_links,
        defined="Σ X(k) M(k) V(k) about the world's origin, V = φ* H* v",
    ),
    Traced(
        "kinetic_energy",
        ("q", "v"),
        lambda model: (),
        _tracer("energy_programs", "kinetic_energy"),
        _all_links,
        defined="½ V* M V + ½ v* A v, V = φ* H* v",
    ),
    Traced(
        "potential_energy",
        ("q",),
        lambda model: (),
        _tracer("energy_programs", "potential_energy"),
        _all_links,
        defined="-g · Σ m(k) c(k), first moments collected inward",
    ),
)

TRACED: Mapping[str, Traced] = {row.name: row for row in _ROWS}
"""Traced quantities by name."""

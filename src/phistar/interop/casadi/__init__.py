# SPDX-License-Identifier: BSD-3-Clause
"""Robots in CasADi: ``from phistar.interop import casadi as pc; pc.function(robot, name)``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from phistar.errors import ArgumentError, kind_of
from phistar.interop.casadi.callbacks import CallbackFunction
from phistar.interop.casadi.casadi_package import casadi
from phistar.interop.casadi.casadi_quantities import QUANTITIES, quantity_of
from phistar.interop.casadi.derivatives import rate_function
from phistar.interop.tangent_maps import tangent_map
from phistar.model.fingerprint import fingerprint
from phistar.robot import Robot

if TYPE_CHECKING:
    from phistar.interop.casadi.casadi_package import Function

__all__ = ["ENGINES", "QUANTITIES", "coordinate_rates", "function", "release"]

ENGINES = ("callback", "c")
"""What runs a function: machine code called through Python, or compiled C."""

_kept: dict[tuple[str, str, str | None, int | None, str], CallbackFunction] = {}
"""Callbacks have to live as long as functions that call them, and CasADi does not see to it."""


def function(
    robot: Robot,
    name: str,
    *,
    frame: str | None = None,
    samples: int | None = None,
    engine: str = "callback",
    directory: str | os.PathLike[str] | None = None,
) -> Function:
    """A quantity of a robot as a ``casadi.Function`` with exact first and second derivatives.

    Derivatives are ordinary partial ones with respect to the numbers of q. Quaternions may have
    any length: F(q) = f(normalize(q)); add their length 1 as a constraint where they are
    variables. Where there is no value (numbers that are not finite) results are NaN.

    Args:
        robot: The robot; one without closed loops.
        name: A row of ``QUANTITIES``, e.g. ``"forward_dynamics"``.
        frame: That of ``"frame_pose"``.
        samples: Columns of arguments and result: so many states in one call. By default one.
        engine: ``"callback"``: machine code through Python. ``"c"``: C that is compiled here and
            loaded by ``casadi.external``, no Python while it runs.
        directory: Where C files and library go; by default one that is removed at the end.

    Returns:
        Functions of ``(q, v, tau)`` and so on, as ``robot``'s methods name them. Callbacks are
        kept until ``release``; the same request gives the same function.

    Raises:
        MissingExtraError: CasADi is not installed.
        PackageVersionError: It is too old.
        UnknownNameError: There is no such quantity, frame or engine.
        LoopError: The robot closes loops.
        ArgumentError: A frame is missing, a joint kind is not known, or there is no C compiler.
    """
    casadi()
    if not isinstance(robot, Robot):
        raise ArgumentError(f"robot is {kind_of(robot)}, expected a phistar.Robot")
    if engine not in ENGINES:
        raise ArgumentError(f"engine is {engine!r}, expected {' or '.join(map(repr, ENGINES))}")
    count = _sample_count(samples)
    quantity = quantity_of(robot, name, frame)
    tangent_map(robot.model, robot.home)
    if engine == "c":
        from phistar.interop.casadi.c_library import external

        return external(quantity, count, directory)
    if directory is not None:
        raise ArgumentError("directory is for engine 'c'; callbacks write no files")
    key = (fingerprint(robot.model), name, frame, samples, engine)
    if key not in _kept:
        _kept[key] = CallbackFunction(quantity, count, name)
    return _kept[key].function


def _sample_count(samples: int | None) -> int:
    if samples is None:
        return 1
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise ArgumentError(f"samples is {samples!r}, expected a whole number, 1 or more")
    return samples


def coordinate_rates(robot: Robot) -> Function:
    """q̇ (nq,) of q and v as an expression of CasADi: what to integrate q with.

    That is v for joints with one axis; quaternions change by half their product with v.

    Raises:
        MissingExtraError: CasADi is not installed.
        ArgumentError: A joint's kind is not known.
    """
    return rate_function(robot.model)


def release(robot: Robot | None = None) -> int:
    """Forget the callbacks of a robot, or all; returns how many.

    Functions and solvers that were made of them cannot be called any more.
    """
    wanted = None if robot is None else fingerprint(robot.model)
    gone = [key for key in _kept if wanted is None or key[0] == wanted]
    for key in gone:
        del _kept[key]
    return len(gone)

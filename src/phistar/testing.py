# SPDX-License-Identifier: BSD-3-Clause
"""Checks for users' own robots: are the derivatives those of the dynamics?

``check_derivatives(robot)`` compares every derivative of inverse and forward dynamics with complex
steps, Im f(x + ih)/h, or central differences of the robot's own dynamics at random states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, DerivativeError, UnknownNameError
from phistar.robot import Robot

Call = Callable[..., Any]
Triple = tuple[Array, Array, Array]

TOLERANCES: Mapping[str, float] = {"complex": 1e-9, "central": 1e-5}
"""Steps to differentiate with, and the largest relative error that passes by default."""
_COMPLEX_STEP = 1e-30
_CENTRAL_STEP = 1e-6
_MIN_RELATIVE_SCALE = 1e-3
"""Errors are relative to the largest entry, but to no less than this fraction of the differentiated
value (plus this fraction itself): a derivative may be zero."""


@dataclass(frozen=True)
class DerivativeReport:
    """Result of ``check_derivatives``.

    Attributes:
        robot: Name of the robot.
        step: ``"complex"`` or ``"central"``.
        tolerance: Largest relative error that passes.
        errors: Largest relative error over all states, by name of the derivative.
        skipped: What could not be checked, and why.
    """

    robot: str
    step: str
    tolerance: float
    errors: Mapping[str, float] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every error is within the tolerance."""
        return all(error <= self.tolerance for error in self.errors.values())

    def __str__(self) -> str:
        head = f"derivatives of '{self.robot}' beside {self.step} steps, relative errors:"
        rows = [f"  {name:<28}{error:.1e}" for name, error in self.errors.items()]
        return "\n".join([head, *rows, *(f"  {reason}" for reason in self.skipped)])


def check_derivatives(
    robot: Robot,
    *,
    states: int = 3,
    seed: int = 0,
    step: str = "complex",
    tolerance: float | None = None,
    second: bool = True,
) -> DerivativeReport:
    """Compare the derivatives of a robot with differences of its dynamics.

    Derivatives with respect to q are along tangent steps: at ``integrate(q, ε e_k)``.

    Args:
        robot: Any robot.
        states: Number of random states.
        seed: Seed of the random states.
        step: ``"complex"``: exact but for rounding; ``"central"``: differences over 1e-6.
        tolerance: Largest relative error that passes; default ``TOLERANCES[step]``.
        second: Check second derivatives, too.

    Returns:
        The largest relative error of each derivative. Forward dynamics is skipped, with a reason,
        where a joint moves no inertia.

    Raises:
        DerivativeError: An error is above the tolerance; it names them all.
        UnknownNameError: No such ``step``.
        ArgumentError: ``states`` is less than one.
    """
    if step not in TOLERANCES:
        raise UnknownNameError("step", step, TOLERANCES)
    if states < 1:
        raise ArgumentError(f"states is {states}, expected at least one")
    allowed = TOLERANCES[step] if tolerance is None else tolerance
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, (states,))
    v, vdot, *directions, weights = rng.normal(size=(6, states, robot.nv))
    moves = (directions[0], directions[1], directions[2])
    look = _Comparison(robot, _NumericDerivatives(robot, step), second)
    look.function("inverse_dynamics", (q, v, vdot), moves, weights)
    skipped: tuple[str, ...] = ()
    if robot.singular_hinges:
        names = ", ".join(hinge.joint for hinge in robot.singular_hinges)
        skipped = (f"forward dynamics: skipped, no inertia moves with {names}",)
    else:
        tau = robot.inverse_dynamics(q, v, vdot)
        look.function("forward_dynamics", (q, v, tau), moves, weights)
    report = DerivativeReport(robot.name, step, allowed, look.errors, skipped)
    if not report.passed:
        raise DerivativeError(robot.name, report.errors, allowed)
    return report


class _NumericDerivatives:
    """Derivatives by steps of the arguments (q, v, ...)."""

    def __init__(self, robot: Robot, step: str) -> None:
        self._robot = robot
        self._complex = step == "complex"

    def along(self, call: Call, arguments: Sequence[Array], moves: Sequence[Array]) -> Array:
        """The derivative of a function along changes of all its arguments."""

        def at(size: complex) -> Array:
            q, *others_at = arguments
            dq, *others = (size * move for move in moves)
            shifted = [x + dx for x, dx in zip(others_at, others, strict=True)]
            return np.asarray(call(self._robot.integrate(q, dq), *shifted))

        if self._complex:
            return np.asarray(at(1j * _COMPLEX_STEP).imag / _COMPLEX_STEP)
        return np.asarray((at(_CENTRAL_STEP) - at(-_CENTRAL_STEP)) / (2 * _CENTRAL_STEP))

    def matrices(self, call: Call, arguments: Sequence[Array]) -> list[Array]:
        """The derivative with respect to each argument; its directions are the last index."""
        n = self._robot.nv
        units = np.eye(n).reshape(n, *(1 for _ in arguments[0].shape[:-1]), n)
        wide = [x[None] for x in arguments]
        still = np.zeros_like(units)
        matrices = []
        for index in range(len(arguments)):
            moves = [units if k == index else still for k in range(len(arguments))]
            matrices.append(np.moveaxis(self.along(call, wide, moves), 0, -1))
        return matrices


class _Comparison:
    """Relative errors by name."""

    def __init__(self, robot: Robot, steps: _NumericDerivatives, second: bool) -> None:
        self.robot = robot
        self.steps = steps
        self.second = second
        self.errors: dict[str, float] = {}

    def note(self, name: str, ours: Array, theirs: Array, of: Array) -> None:
        """Compare derivatives of ``of``."""
        floor = _MIN_RELATIVE_SCALE * (1.0 + np.abs(of).max(initial=0.0))
        size = max(np.abs(theirs).max(initial=0.0), floor)
        error = float(np.abs(ours - theirs).max(initial=0.0) / size)
        self.errors[name] = max(self.errors.get(name, 0.0), error)

    def function(self, name: str, arguments: Triple, moves: Triple, weights: Array) -> None:
        """All derivatives of one function of the dynamics."""
        first, second, result, third = self._parts(name)
        call: Call = getattr(self.robot, name)
        value = call(*arguments)
        matrices = self.steps.matrices(call, arguments)
        linear = first(*arguments)
        for argument, expected in zip(("q", "v", third), matrices, strict=True):
            part = f"{result}_{argument}"
            self.note(part, getattr(linear, part), expected, value)
        changes: dict[str, Any] = dict(zip(("dq", "dv", f"d{third}"), moves, strict=True))
        change = self.robot.jvp(name, *arguments, **changes)
        self.note(f"jvp {name}", change, self.steps.along(call, arguments, moves), value)
        gradients = self.robot.vjp(name, *arguments, weights).values()
        for gradient, expected in zip(gradients, matrices, strict=True):
            back = (weights[..., None, :] @ expected)[..., 0, :]
            self.note(f"vjp {name}", gradient, back, value)
        if self.second:
            self._tensors(name, second(*arguments), linear, arguments, moves)
            self._second_product(name, arguments, moves, weights)

    def _parts(self, name: str) -> tuple[Call, Call, str, str]:
        robot = self.robot
        if name == "inverse_dynamics":
            return robot.linearize_inverse, robot.inverse_dynamics_second, "tau", "vdot"
        return robot.linearize, robot.forward_dynamics_second, "vdot", "tau"

    def _tensors(
        self, name: str, tensors: Any, linear: object, arguments: Triple, moves: Triple
    ) -> None:
        """The change of the first derivatives along one direction: tensors times it."""
        first, _, result, third = self._parts(name)
        of_q = (tensors.qq, tensors.qv, getattr(tensors, f"q_{third}"))
        of_v = (np.swapaxes(tensors.qv, -1, -2), tensors.vv)
        for argument, parts in (("q", of_q), ("v", of_v)):
            part = f"{result}_{argument}"
            terms = (t @ x[..., None, :, None] for t, x in zip(parts, moves, strict=False))
            ours = np.sum([term[..., 0] for term in terms], axis=0)
            along = (*moves[: len(parts)], *(0 * move for move in moves[len(parts) :]))
            theirs = self.steps.along(lambda *x, p=part: getattr(first(*x), p), arguments, along)
            self.note(f"second, of {part}", ours, theirs, getattr(linear, part))

    def _second_product(self, name: str, arguments: Triple, moves: Triple, weights: Array) -> None:
        third = self._parts(name)[3]
        changes: dict[str, Any] = dict(zip(("dq", "dv", f"d{third}"), moves, strict=True))
        gradients = self.robot.vjp(name, *arguments, weights)
        for part, ours in self.robot.hvp(name, *arguments, weights, **changes).items():

            def gradient(q: Array, v: Array, x: Array, part: str = part) -> Array:
                return self.robot.vjp(name, q, v, x, weights)[part]

            theirs = self.steps.along(gradient, arguments, moves)
            self.note(f"hvp {name}", ours, theirs, gradients[part])

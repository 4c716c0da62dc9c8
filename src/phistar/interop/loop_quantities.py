# SPDX-License-Identifier: BSD-3-Clause
"""Quantities about motion on robots with active loops: by the robot's methods, and as machine code.

``LOOP_QUANTITIES`` has a row for each that there is. Machine code has no results for states off the
loops, nor where rows lose their rank; methods of the robot may have some for the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.compile import RequestKey
from phistar.interop.array_values import Choices, chosen_word, chosen_words
from phistar.loops.assembly import usual_rank
from phistar.loops.linearization import has_dependent_rows
from phistar.loops.traced_rows import dynamics_key, linearization_key
from phistar.robot import Robot

Run = Callable[[Robot, Choices, Sequence[Array]], Sequence[Array]]
_DERIVATIVES = ("vdot_q", "vdot_v", "vdot_tau")
_SECOND = ("qq", "qv", "vv", "q_tau")


@dataclass(frozen=True)
class LoopQuantity:
    """A row.

    Attributes:
        axes: Of each result by name: how many axes of joint vectors, or ``"q"``: a configuration.
        run: The results by the robot's methods, NaN where there are none.
        key: Of the program that is machine code, for a real type and choices; None: there is none.
        read: The results, in order, of what that program gives.
    """

    axes: Mapping[str, int | str]
    run: Run
    key: Callable[[str, Choices], RequestKey] | None = None
    read: Callable[[Mapping[str, Array], int], list[Array]] | None = None

    def shapes(self, robot: Robot) -> dict[str, tuple[int, ...]]:
        """Of the results for one sample."""
        return {
            name: (robot.nq,) if axes == "q" else (robot.nv,) * int(axes)
            for name, axes in self.axes.items()
        }


def _forward(robot: Robot, choices: Choices, arrays: Sequence[Array]) -> Sequence[Array]:
    q, v, tau = arrays
    return [robot.forward_dynamics(q, v, tau, on_error="nan")]


def _linearize(robot: Robot, choices: Choices, arrays: Sequence[Array]) -> Sequence[Array]:
    q, v, tau = arrays
    at = robot.linearize(q, v, tau, on_error="nan")
    return [at.vdot, *(getattr(at, name) for name in _DERIVATIVES)]


def _read_linearization(found: Mapping[str, Array], nv: int) -> list[Array]:
    """Without multipliers; derivatives along the loops where rows depend on each other."""
    by_q = found.get("along_q", found["change_q"])
    changes = (by_q, found["change_v"], found["change_tau"])
    return [found["vdot"], *(x[..., :nv, :] for x in changes)]


def step_by_method(robot: Robot, choices: Choices, arrays: Sequence[Array]) -> Sequence[Array]:
    """A step of time, of any robot."""
    q, v, tau, dt = arrays
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    passive = chosen_words(choices, "parts") or False
    lengths = np.broadcast_to(dt[..., 0], batch)
    scheme = chosen_word(choices, "scheme")
    return robot.step(q, v, tau, lengths, scheme=scheme, passive=passive, on_error="nan")


def _step_key(real: str, choices: Choices) -> RequestKey:
    parts = chosen_words(choices, "parts")
    return "loop_step", chosen_word(choices, "scheme"), True, *((parts,) if parts else ())


def _matrices(robot: Robot, arrays: Sequence[Array]) -> list[Array]:
    """First derivatives of the same rows as the second ones, where some depend on others."""
    if not has_dependent_rows(robot.model, usual_rank(robot.model)):
        return list(_linearize(robot, {}, arrays)[1:])
    found = robot.forward_dynamics_second(*arrays, on_error="nan")
    return [getattr(found, name) for name in _DERIVATIVES]


def _gradient(robot: Robot, choices: Choices, arrays: Sequence[Array]) -> Sequence[Array]:
    *state, w = arrays
    return [(np.swapaxes(m, -1, -2) @ w[..., None])[..., 0] for m in _matrices(robot, state)]


def _change(robot: Robot, choices: Choices, arrays: Sequence[Array]) -> Sequence[Array]:
    terms = zip(_matrices(robot, arrays[:3]), arrays[3:], strict=True)
    return [np.asarray(sum((m @ d[..., None])[..., 0] for m, d in terms))]


def _gradient_change(robot: Robot, choices: Choices, arrays: Sequence[Array]) -> Sequence[Array]:
    q, v, tau, w, dq, dv, dtau = arrays
    found = robot.hvp("forward_dynamics", q, v, tau, w, dq=dq, dv=dv, dtau=dtau, on_error="nan")
    return [found[name] for name in ("q", "v", "tau")]


def _second(robot: Robot, choices: Choices, arrays: Sequence[Array]) -> Sequence[Array]:
    q, v, tau = arrays
    found = robot.forward_dynamics_second(q, v, tau, on_error="nan")
    return [getattr(found, name) for name in (*_SECOND, *_DERIVATIVES)]


_GRADIENT = dict.fromkeys(("w_q", "w_v", "w_tau"), 1)
LOOP_QUANTITIES: Mapping[str, LoopQuantity] = {
    "forward_dynamics": LoopQuantity(
        {"vdot": 1},
        _forward,
        lambda real, choices: dynamics_key(real),
        lambda found, nv: [found["vdot"]],
    ),
    "linearize": LoopQuantity(
        {"vdot": 1, **dict.fromkeys(_DERIVATIVES, 2)},
        _linearize,
        lambda real, choices: linearization_key(real),
        _read_linearization,
    ),
    "step": LoopQuantity(
        {"q_next": "q", "v_next": 1},
        step_by_method,
        _step_key,
        lambda found, nv: [found["q_next"], found["v_next"]],
    ),
    "forward_dynamics_vjp": LoopQuantity(_GRADIENT, _gradient),
    "forward_dynamics_jvp": LoopQuantity({"dvdot": 1}, _change),
    "forward_dynamics_hvp": LoopQuantity(_GRADIENT, _gradient_change),
    "forward_dynamics_second": LoopQuantity(
        {**dict.fromkeys(_SECOND, 3), **dict.fromkeys(_DERIVATIVES, 2)}, _second
    ),
}
"""By name of the quantity."""

# SPDX-License-Identifier: BSD-3-Clause
"""A scheme as machine code: all steps of all samples in one call."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phistar import backends
from phistar.compile import joint_map, kernel
from phistar.model.model import Model
from phistar.scalar.steps import Seat, Update, seats, to_update
from phistar.sim.manifold import is_flat
from phistar.sim.schemes import Go, Rate, Scheme
from phistar.sim.variables import Program, Variable

if TYPE_CHECKING:
    from phistar.backends.llvm.kernel import Kernel
    from phistar.backends.llvm.rollout import Call

Array = NDArray[Any]

LARGE = 20_000
"""Evaluations of the dynamics from which on it pays to wait for their best code."""


class Compiled:
    """Steps of a scheme, compiled.

    Attributes:
        engine: Its name in results.
        cost: Nanoseconds of a step of one sample, about.
    """

    engine = "machine code"

    def __init__(
        self, model: Model, program: Program, scheme: Scheme, work: int, threads: int | None
    ) -> None:
        """Args:
        model: The robot; every joint has a coordinate of its own.
        program: Rates of the state.
        scheme: What a step is.
        work: Steps times samples that will be taken.
        threads: How many may take them; default: by the work.
        """
        from phistar.backends.llvm.rollout import Rollout

        self.joints = joint_map(model)
        self._model = model
        self._threads = threads
        self._program = program
        self._patient = work * len(scheme.parts) // 2 >= LARGE
        calls = (self._rate(p) if isinstance(p, Rate) else self._go(p) for p in scheme.parts)
        self._rollout = Rollout([call for call in calls if call is not None], ("h",))
        self.cost = self._rollout.cost

    def _rate(self, part: Rate) -> Call | None:
        """The dynamics at a stage."""
        from phistar.backends.llvm.rollout import Call

        own = {name: f"{name}{part.stage}" for name in ("q", "x", "v", "a")} | {"tau": "tau"}
        name = self._program.velocity if part.velocity_only else self._program.rates
        if name is None:
            return None
        code = _code(name, self._model, self._patient)
        buffers = {theirs: own[ours] for theirs, ours in self._program.names.items()}
        signature = code.call.signature
        read = tuple(buffers[each] for each in signature.inputs)
        return Call(code, read, tuple(buffers[each] for each in signature.outputs))

    def _go(self, part: Go) -> Call:
        """An update of the state."""
        from phistar.backends.llvm.rollout import Call

        # Without brackets there is less to read.
        update = replace(part.update, turns=()) if is_flat(self._model) else part.update
        velocity = "x" if self._program.velocity is None else "v"
        read = ["q0", "x0", "h", *(f"{velocity}{s}" for s in update.velocities)]
        read += [f"a{stage}" for stage, _ in update.rates]
        written = (f"q{part.stage}", f"x{part.stage}")
        return Call(_update(seats(self._model), update), tuple(read), written)

    def run(
        self,
        q: Array,
        x: Array,
        tau: Array,
        dt: float,
        steps: int,
        every: int,
        results: tuple[Array, Array],
    ) -> bool:
        """See ``sim.loop.Loop.run``."""
        same = self.joints.same
        rows = [np.ascontiguousarray(self.joints.spread(each)) for each in (x, tau)]
        out = results[1] if same else np.empty_like(results[1])
        finite = self._rollout(
            {"q0": np.ascontiguousarray(q), "x0": rows[0], "tau": rows[1]},
            {"q0": results[0], "x0": out},
            {"h": np.array([dt])},
            steps,
            every,
            self._threads,
        )
        if not same:
            results[1][...] = self.joints.gather(out)
        return finite


def compiled(
    model: Model, variable: Variable, scheme: Scheme, work: int, threads: int | None = None
) -> Compiled | None:
    """The machine code of a scheme, or None where there is none.

    Without it are robots whose mimic joints are reduced, robots that do not move, forces on frames,
    the variable η, and every robot where PHISTAR_BACKEND names another backend.
    """
    joints = joint_map(model)
    program = variable.program
    if program is None or backends.default() != "llvm" or not model.bodies:
        return None
    if not joints.one_to_one or (joints.scales != 1.0).any():
        return None
    return Compiled(model, program, scheme, work, threads)


def _code(name: str, model: Model, patient: bool) -> Kernel:
    """The kernel of a program of the catalogue; the best one for who is patient."""
    from phistar.backends.to_llvm import MachineCode

    code = kernel(name).executable(model)
    assert isinstance(code, MachineCode)
    tiers = code.tiers()
    return tiers.wait() if patient else tiers.kernel


@lru_cache(maxsize=256)
def _update(joints: tuple[Seat, ...], update: Update) -> Kernel:
    """The kernel of an update; robots with the same joints share it."""
    from phistar.backends.llvm.recipe import compiler
    from phistar.backends.llvm.tiers import Tiers

    text = "\n".join([compiler(), "update", repr([(s.kind.name, s.q, s.v) for s in joints])])
    name = hashlib.sha256(f"{text}\n{update!r}".encode()).hexdigest()
    title = f"step of time, {len(joints)} joints"
    return Tiers(name, "double", title, None, lambda: to_update(joints, update)).kernel

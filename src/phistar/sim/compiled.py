# SPDX-License-Identifier: BSD-3-Clause
"""A scheme as machine code: all steps of all samples in one call."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar import backends
from phistar.compile import joint_map, kernel
from phistar.model.model import Model
from phistar.scalar.steps import Seat, Update, seats, to_update
from phistar.sim.manifold import is_flat
from phistar.sim.schemes import Rate, Scheme
from phistar.sim.variables import Program, Variable

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

    def __init__(self, model: Model, program: Program, scheme: Scheme, work: int) -> None:
        """Args:
        model: The robot; every joint has a coordinate of its own.
        program: Rates of the state.
        scheme: What a step is.
        work: Steps times samples that will be taken.
        """
        from phistar.backends.llvm.rollout import Call, Rollout
        from phistar.backends.to_llvm import MachineCode

        self.joints = joint_map(model)
        code = kernel(program.name).executable(model)
        assert isinstance(code, MachineCode)
        tiers = code.tiers()
        rates = tiers.wait() if work * len(scheme.parts) // 2 >= LARGE else tiers.kernel
        velocity = "v" if "v" in program.outputs.values() else "x"
        calls = []
        for part in scheme.parts:
            if isinstance(part, Rate):
                if part.velocity_only and velocity == "x":
                    continue
                own = {"q": f"q{part.stage}", "x": f"x{part.stage}", "tau": "tau"}
                own |= {"v": f"v{part.stage}", "a": f"a{part.stage}"}
                if part.velocity_only:
                    own["a"] = "unused"
                signature = rates.call.signature
                given = tuple(own[program.inputs[name]] for name in signature.inputs)
                filled = tuple(own[program.outputs[name]] for name in signature.outputs)
                calls.append(Call(rates, given, filled))
                continue
            # Without brackets there is less to read.
            update = replace(part.update, turns=()) if is_flat(model) else part.update
            read = ["q0", "x0", "h", *(f"{velocity}{s}" for s in update.velocities)]
            read += [f"a{stage}" for stage, _ in update.rates]
            written = (f"q{part.stage}", f"x{part.stage}")
            calls.append(Call(_update(seats(model), update), tuple(read), written))
        self._rollout = Rollout(calls, ("h",))
        self.cost = self._rollout.cost

    def run(
        self,
        q: Array,
        x: Array,
        tau: Array,
        dt: float,
        steps: int,
        every: int,
        results: tuple[Array, Array],
        threads: int | None = None,
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
            threads,
        )
        if not same:
            results[1][...] = self.joints.gather(out)
        return finite


def compiled(model: Model, variable: Variable, scheme: Scheme, work: int) -> Compiled | None:
    """The machine code of a scheme, or None where there is none.

    Without it are robots whose mimic joints are reduced, robots that do not move, forces on frames,
    and every robot where PHISTAR_BACKEND names another backend.
    """
    joints = joint_map(model)
    program = variable.program
    if program is None or backends.default() != "llvm" or not model.bodies:
        return None
    if not joints.one_to_one or (joints.scales != 1.0).any():
        return None
    return Compiled(model, program, scheme, work)


@lru_cache(maxsize=256)
def _update(joints: tuple[Seat, ...], update: Update) -> Any:
    """The kernel of an update; robots with the same joints share it."""
    from phistar.backends.llvm.recipe import compiler
    from phistar.backends.llvm.tiers import Tiers

    text = "\n".join([compiler(), "update", repr([(s.kind.name, s.q, s.v) for s in joints])])
    name = hashlib.sha256(f"{text}\n{update!r}".encode()).hexdigest()
    title = f"step of time, {len(joints)} joints"
    return Tiers(name, "double", title, None, lambda: to_update(joints, update)).kernel

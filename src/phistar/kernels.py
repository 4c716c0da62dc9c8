# SPDX-License-Identifier: BSD-3-Clause
"""A program compiled for one robot, for users: checked arrays in, arrays out, and what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phistar import backends, settings
from phistar.algebra.expression_checks import check_expression, check_frames
from phistar.algebra.ir import Expr
from phistar.algebra.spaces import JOINT, TASK_MOTION, Space
from phistar.arguments import refuse_mimic, refuse_singular, spatial_vectors
from phistar.arrays import Array
from phistar.backends.policy import (
    Decision,
    VectorWork,
    decide,
    decide_c,
    this_machine,
    without_machine_code,
)
from phistar.compile import (
    Kernel,
    Stage,
    Stages,
    compile_outputs,
    frame_motions,
    joint_map,
    kernel,
    spell_inverses_for_robot,
)
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.configuration import Coordinates, batch_shape, configuration, tangent
from phistar.model.model import Model
from phistar.scalar.robot.link_numbers import describe_snapping
from phistar.sweeps.costs import CostReport, OperationCount, count_operations
from phistar.sweeps.ir import Node, Type

ProgramSpec = str | Expr | Mapping[str, Expr]

CODE_SHAPES = ("auto", "straight", "rolled")


class RobotKernel:
    """A program on a robot: ``k = robot.compile("forward_dynamics"); k(q, v=v, tau=tau)``.

    Joint vectors are (..., nv) or dicts by joint name; MOTION and FORCE vectors are
    (..., bodies, 6) in link axes, those of frames (..., frames, 6) in their own axes,
    [angular; linear]. Batch axes broadcast.

    Attributes:
        model: The robot.
        backend: Name of the backend that runs it.
        frames: The frames that B selects.
        inputs: Names of the inputs. ``f_ext`` may be left out (no external forces), and so may
            ``gravity``, which is not listed (the robot's own).
        outputs: Names of the outputs.
        snapped: What ``snap`` changed in the robot, a line a link.
    """

    def __init__(
        self,
        model: Model,
        wanted: ProgramSpec,
        backend: str | None = None,
        frames: Sequence[str] = (),
        snap: float | None = None,
        shape: str = "auto",
    ) -> None:
        if shape not in CODE_SHAPES:
            raise UnknownNameError("shape", shape, CODE_SHAPES)
        if snap is not None and not 0.0 <= snap < 1e-3:
            raise ArgumentError(f"snap is {snap}, expected a small length or angle, such as 1e-10")
        self._arguments = (model, wanted, backend, tuple(frames), snap, shape)
        self.model = model
        self.snapped = () if snap is None else describe_snapping(model, snap)
        self.backend = backends.get(backends.default() if backend is None else backend).name
        self.frames = (frames,) if isinstance(frames, str) else tuple(frames)
        for name in self.frames:
            model.frame(name)
        self._kernel = _kernel(wanted, model, self.frames)
        self._joints = joint_map(model)
        program = self._kernel.schedule.program
        live = [program.nodes[stream] for stream in program.live()]
        self._leaves: dict[str, Node] = {n.data: n for n in live if n.op in ("leaf", "scatter")}
        self._refuse(divides=any(n.spec.divides for n in live), own=not isinstance(wanted, str))
        self._work = VectorWork(len(live), shape)
        self._executable = self._kernel.executable(
            model, self.frames, backend=self.backend, snap=snap, shape=shape
        )
        self.inputs = tuple(name for name in self._leaves if name != "gravity")
        self.outputs = tuple(name for name, _ in self._kernel.outputs)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments

    def _refuse(self, *, divides: bool, own: bool) -> None:
        """Programs of the catalogue that do not divide know how to sum over mimic joints."""
        if divides:
            refuse_singular(self.model)
        if divides or own:
            refuse_mimic(self.model)

    def __repr__(self) -> str:
        call = ", ".join(("q", *(f"{name}=" for name in self.inputs)))
        outputs = ", ".join(self.outputs)
        name, robot = self._kernel.name, self.model.name
        return f"<{name}({call}) -> {outputs}: '{robot}', backend {self.backend}>"

    def __call__(self, q: Coordinates, **inputs: Coordinates) -> Any:
        """Run.

        Args:
            q: (..., nq).
            inputs: By name; see the class for shapes.

        Returns:
            The output, or a dict of them if there are several.

        Raises:
            ShapeError, ArgumentError, UnknownNameError: An input does not fit, is missing, is not
                finite or is not known.
        """
        q = configuration(self.model, q)
        for name in inputs:
            if name not in self._leaves:
                raise UnknownNameError("input", name, self.inputs, self._kernel.name)
        missing = [n for n in self.inputs if n not in inputs and n not in backends.OPTIONAL_INPUTS]
        if missing:
            raise ArgumentError(f"{self._kernel.name} needs a value for {', '.join(missing)}")
        given = {name: self._read(name, value) for name, value in inputs.items()}
        rows = {n: x if self._is_joint(n) else x[..., 0] for n, x in given.items()}
        batch_shape(self.model, {"q": q, **rows})
        values = {n: self._joints.spread(x) if self._is_joint(n) else x for n, x in given.items()}
        results = self._executable(q, values)
        written = {n: self._write(results[n], e.codomain) for n, e in self._kernel.outputs}
        return written if len(written) > 1 else written[self.outputs[0]]

    def _is_joint(self, name: str) -> bool:
        return self._leaves[name].type is Type.JOINT

    def _read(self, name: str, value: Coordinates) -> Array:
        node = self._leaves[name]
        if node.type is Type.JOINT:
            return tangent(self.model, value, name)
        if isinstance(value, Mapping):
            raise ArgumentError(f"{name} is a vector over the links; give an array, not a dict")
        count = len(self.frames) if node.op == "scatter" else len(self.model.bodies)
        return spatial_vectors(self.model, name, value, count)

    def _write(self, result: Array, space: Space) -> Array:
        if space is JOINT:
            return self._joints.gather(result)
        return frame_motions(self.model, self.frames, result) if space is TASK_MOTION else result

    @property
    def sweeps(self) -> str:
        """The passes over the links as text."""
        return self._kernel.sweeps

    @property
    def cost(self) -> OperationCount:
        """Scalar operations that the code which runs does for one sample.

        Of machine code: its final shape, which is waited for, without external forces. Sines,
        cosines and roots are not counted.
        """
        return self._executable.cost

    @property
    def decision(self) -> Decision:
        """How it is computed, one sample, and why: ``print(k.decision)``."""
        return self.decision_for(1)

    def decision_for(self, batch: int) -> Decision:
        """The same for a batch; its threads follow from an estimate of the operations."""
        if self.backend == "c":
            # Loops do at least as many operations as the unrolled program that was counted.
            return decide_c(self.cost.multiplications + self.cost.additions)
        if self.backend != "llvm":
            return without_machine_code(self.backend)
        bodies = len(self.model.bodies)
        estimate = self._work.estimated_operations(bodies)
        machine, tier = this_machine(), settings.tier()
        return decide(self._work, bodies, batch, tier=tier, machine=machine, operations=estimate)

    @property
    def sweep_cost(self) -> CostReport:
        """The same for ``sweeps``, by link and operation, as a person would do them.

        Machine code does less: it knows the numbers of the robot.
        """
        return count_operations(self._kernel.schedule, self.model)

    def source(self, backend: str | None = None) -> str:
        """The code that a backend makes of it, by default the one that runs."""
        if backend is None:
            return self._executable.source
        return self._kernel.executable(self.model, self.frames, backend=backend).source

    @property
    def passes(self) -> Stages:
        """The program after each pass of the compiler: (name, level, text)."""
        return Stages((*self._kernel.passes, Stage("build", "code", self.source())))


def _kernel(wanted: ProgramSpec, model: Model, frames: Sequence[str]) -> Kernel:
    if isinstance(wanted, str):
        return kernel(wanted, model)
    outputs = wanted if isinstance(wanted, Mapping) else {"out": wanted}
    for expr in outputs.values():
        check_expression(expr)
        check_frames(expr, frames)
    return compile_outputs(
        "own", tuple((n, spell_inverses_for_robot(e, model)) for n, e in outputs.items())
    )

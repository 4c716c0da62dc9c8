# SPDX-License-Identifier: BSD-3-Clause
"""A program compiled for one robot, for users: checked arrays in, arrays out, and what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from phistar import backends
from phistar.algebra.ir import Expr
from phistar.algebra.spaces import JOINT, TASK_MOTION, Space
from phistar.arguments import refuse_mimic, refuse_nan, refuse_singular, spatial_vectors
from phistar.compile import Kernel, Stage, compile_outputs, joint_map, kernel, pick_off
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.configuration import Coordinates, batch_shape, configuration, tangent
from phistar.model.model import Model
from phistar.scalar.links import snapped
from phistar.sweeps.costs import Bill, count
from phistar.sweeps.ir import Node, Type

Array = NDArray[Any]
Wanted = str | Expr | Mapping[str, Expr]

SHAPES = ("auto", "straight", "rolled")
DIVIDES = frozenset({"G", "Dsolve", "give", "slip"})
"""Operations that divide by a joint's inertia D."""


class RobotKernel:
    """A program on a robot: ``k = robot.compile("forward_dynamics"); k(q, v=v, tau=tau)``.

    Joint vectors are (..., nv) or dicts by joint name; MOTION and FORCE vectors are
    (..., bodies, 6) in link axes, those of frames (..., frames, 6) in their own axes,
    [angular; linear]. Batch axes broadcast.

    Attributes:
        model: The robot.
        backend: Name of the backend that runs it.
        frames: The frames that B speaks of.
        inputs: Names of the inputs. ``f_ext`` may be left out (no external forces), and so may
            ``gravity``, which is not listed (the robot's own).
        outputs: Names of the outputs.
        snapped: What ``snap`` changed in the robot, a line a link.
    """

    def __init__(
        self,
        model: Model,
        wanted: Wanted,
        backend: str | None = None,
        frames: Sequence[str] = (),
        snap: float | None = None,
        shape: str = "auto",
    ) -> None:
        if shape not in SHAPES:
            raise UnknownNameError("shape", shape, SHAPES)
        if snap is not None and not 0.0 <= snap < 1e-3:
            raise ArgumentError(f"snap is {snap}, expected a small length or angle, such as 1e-10")
        self.model = model
        self.snapped = () if snap is None else snapped(model, snap)
        self.backend = backends.get(backends.default() if backend is None else backend).name
        self.frames = tuple(frames)
        for name in frames:
            model.frame(name)
        self._kernel = _kernel(wanted)
        self._joints = joint_map(model)
        program = self._kernel.schedule.program
        live = [program.nodes[stream] for stream in program.live()]
        self._leaves: dict[str, Node] = {n.data: n for n in live if n.op in ("leaf", "scatter")}
        self._refuse(divides=any(n.op in DIVIDES for n in live), own=not isinstance(wanted, str))
        self._executable = self._kernel.executable(
            model, self.frames, backend=self.backend, snap=snap, shape=shape
        )
        self.inputs = tuple(name for name in self._leaves if name != "gravity")
        self.outputs = tuple(name for name, _ in self._kernel.outputs)

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
        refuse_nan("q", q)
        for name in inputs:
            if name not in self._leaves:
                raise UnknownNameError("input", name, self.inputs, self._kernel.name)
        missing = [n for n in self.inputs if n not in inputs and n not in backends.OPTIONAL]
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
            array = tangent(self.model, value, name)
            refuse_nan(name, array)
            return array
        if isinstance(value, Mapping):
            raise ArgumentError(f"{name} is a vector over the links; give an array, not a dict")
        count = len(self.frames) if node.op == "scatter" else len(self.model.bodies)
        return spatial_vectors(self.model, name, value, count)

    def _write(self, result: Array, space: Space) -> Array:
        if space is JOINT:
            return self._joints.gather(result)
        return pick_off(self.model, self.frames, result) if space is TASK_MOTION else result

    @property
    def sweeps(self) -> str:
        """The passes over the links as text."""
        return self._kernel.sweeps

    @property
    def cost(self) -> Bill:
        """Scalar operations for one sample on this robot."""
        return count(self._kernel.schedule, self.model)

    def source(self, backend: str | None = None) -> str:
        """The code that a backend makes of it, by default the one that runs."""
        if backend is None:
            return self._executable.source
        return self._kernel.executable(self.model, self.frames, backend=backend).source

    @property
    def passes(self) -> tuple[Stage, ...]:
        """The program after each pass of the compiler: (name, level, text)."""
        return (*self._kernel.passes, Stage("build", "code", self.source()))


def _kernel(wanted: Wanted) -> Kernel:
    if isinstance(wanted, str):
        return kernel(wanted)
    outputs = {"out": wanted} if isinstance(wanted, Expr) else wanted
    return compile_outputs("own", tuple(outputs.items()))

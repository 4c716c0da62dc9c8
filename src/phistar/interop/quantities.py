# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of a robot as adapters to other packages see them: arrays in, arrays out, derivatives.

``QUANTITIES`` has a row for each. ``calculation(robot, name, **choices)`` puts a row on a robot:
what it reads and gives for one sample, the machine code that computes it (``kernel``), a function
of NumPy arrays that always works (``run``), and its derivatives as quantities again (``rule``, see
``interop.derivative_rules``). No package besides NumPy is needed here.

Samples without a result (an input that is not finite, a quaternion that is not unit, a singular
hinge) are not numbers: inside the programs of others nothing can be raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from phistar.arguments import refuse_singular
from phistar.arrays import Array
from phistar.backends import Executable, RobotProgram
from phistar.compile import (
    TRACED,
    RequestKey,
    Traced,
    cheapest_equivalent,
    compile_request,
    embedded_request,
    input_sizes,
    joint_map,
    kernel,
    traced_executable,
)
from phistar.errors import ArgumentError, UnknownNameError
from phistar.interop import derivative_rules as rules
from phistar.interop.array_values import Choice, Choices, chosen_word, chosen_words
from phistar.interop.derivative_rules import DerivativeRule
from phistar.interop.loop_quantities import (
    LOOP_QUANTITIES,
    LoopQuantity,
    step_by_method,
)
from phistar.interop.masked_runs import run_masked
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.model.numpy_kinematics import check_reference
from phistar.robot import Robot
from phistar.sim.schemes import SCHEMES
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.llvm.run.machine_kernel import MachineKernel
    from phistar.backends.to_llvm import MachineCode
    from phistar.scalar.program import Unrolled

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Quantity:
    """A row.

    Attributes:
        name: As the method of ``Robot``.
        arguments: Names of its arrays, in order.
        choices: What is chosen by keyword, and the defaults; None: it has to be chosen.
        doc: What it is, one line.
        rule: Its derivatives; None: operation by operation from its own program, if it is traced.
        results: Names of its results; none: there is one.
        divides: Whether it divides by inertias of joints.
    """

    name: str
    arguments: tuple[str, ...]
    doc: str
    choices: Mapping[str, Choice | None] = field(default_factory=dict)
    rule: DerivativeRule | None = None
    results: tuple[str, ...] = ()
    divides: bool = False


_FRAME: Mapping[str, Choice | None] = {"frame": None, "reference": "world_aligned"}
_SECOND = ("qq", "qv", "vv")

_ROWS = (
    Quantity(
        "inverse_dynamics",
        ("q", "v", "vdot"),
        "Joint forces (..., nv) that give the accelerations ``vdot``.",
        rule=rules.inverse_dynamics,
    ),
    Quantity(
        "forward_dynamics",
        ("q", "v", "tau"),
        "Joint accelerations (..., nv) under the joint forces ``tau``.",
        rule=rules.forward_dynamics,
        divides=True,
    ),
    Quantity(
        "bias_force",
        ("q", "v"),
        "Joint forces (..., nv) at zero acceleration: Coriolis, centrifugal and gravity.",
        rule=rules.bias_force,
    ),
    Quantity(
        "gravity_force",
        ("q",),
        "Joint forces (..., nv) that hold the robot at rest against gravity.",
        rule=rules.gravity_force,
    ),
    Quantity(
        "mass_matrix",
        ("q",),
        "Joint-space inertia (..., nv, nv), rotor inertia included.",
        rule=rules.mass_matrix,
    ),
    Quantity(
        "mass_matrix_inverse",
        ("q",),
        "Inverse of the mass matrix (..., nv, nv), from its factors.",
        rule=rules.mass_matrix_inverse,
        divides=True,
    ),
    Quantity(
        "coriolis_matrix",
        ("q", "v"),
        "Christoffel-consistent C (..., nv, nv): C v is the bias force without gravity.",
    ),
    Quantity(
        "linearize_inverse",
        ("q", "v", "vdot"),
        "Joint forces and their derivatives: ``.tau .tau_q .tau_v .tau_vdot``.",
        rule=rules.linearize_inverse,
        results=("tau", "tau_q", "tau_v", "tau_vdot"),
    ),
    Quantity(
        "linearize",
        ("q", "v", "tau"),
        "Joint accelerations and their derivatives: ``.vdot .vdot_q .vdot_v .vdot_tau``.",
        rule=rules.linearize,
        results=("vdot", "vdot_q", "vdot_v", "vdot_tau"),
        divides=True,
    ),
    Quantity("frame_pose", ("q",), "Pose (..., 4, 4) of a frame.", {"frame": None}),
    Quantity("link_poses", ("q",), "Poses (..., links, 4, 4) of all links, in order of names."),
    Quantity("jacobian", ("q",), "Jacobian (..., 6, nv) of a frame.", _FRAME),
    Quantity("jacobian_rate", ("q", "v"), "Time derivative (..., 6, nv) of ``jacobian``.", _FRAME),
    Quantity("frame_velocity", ("q", "v"), "Velocity (..., 6) of a frame.", _FRAME),
    Quantity(
        "frame_acceleration",
        ("q", "v", "vdot"),
        "Time derivative (..., 6) of ``frame_velocity``, without gravity.",
        _FRAME,
    ),
    Quantity(
        "frame_bias_acceleration",
        ("q", "v"),
        "Acceleration (..., 6) of a frame without joint accelerations.",
        _FRAME,
    ),
    Quantity("center_of_mass", ("q",), "Centre of mass (..., 3) [m].", {"fixed": True}),
    Quantity("center_of_mass_jacobian", ("q",), "Jacobian (..., 3, nv) of that.", {"fixed": True}),
    Quantity("center_of_mass_jacobian_rate", ("q", "v"), "Its time derivative.", {"fixed": True}),
    Quantity(
        "centroidal_momentum_matrix", ("q",), "A (..., 6, nv): momentum about the centre of mass."
    ),
    Quantity("centroidal_momentum_matrix_rate", ("q", "v"), "Its time derivative."),
    Quantity("momentum", ("q", "v"), "Momentum (..., 6) about the world's origin."),
    Quantity("kinetic_energy", ("q", "v"), "Kinetic energy (...) [J]."),
    Quantity(
        "potential_energy",
        ("q",),
        "Potential energy (...) [J] of gravity.",
        rule=rules.potential_energy,
    ),
    Quantity("integrate", ("q", "dv"), "The configuration (..., nq) reached by a step ``dv``."),
    Quantity("difference", ("q0", "q1"), "The step (..., nv) from q0 to q1."),
    Quantity("regressor", ("q", "v", "vdot"), "Y (..., nv, 10 bodies): forces per parameter."),
    Quantity("log_determinant", ("q",), "log det of the mass matrix (...).", divides=True),
    Quantity(
        "operational_inertia",
        ("q",),
        "Inertia (..., 6m, 6m) that m frames show to forces on them.",
        {"frames": None, "reference": "local"},
        divides=True,
    ),
    Quantity(
        "passive_force",
        ("q", "v"),
        "Forces (..., nv) of springs and dampers of the joints.",
        {"parts": ("springs", "damping")},
    ),
    Quantity(
        "step",
        ("q", "v", "tau", "dt"),
        "The state after a step of time by a scheme.",
        {"scheme": "semi_implicit", "parts": ()},
        results=("q_next", "v_next"),
        divides=True,
    ),
)

_PARTS = (
    Quantity("inverse_dynamics_qq", ("q", "v", "vdot", "dq"), "Of tau_q along dq."),
    Quantity("inverse_dynamics_qv", ("q", "v", "dq"), "Of tau_v along dq."),
    Quantity("inverse_dynamics_vv", ("q", "v", "dv"), "Of tau_v along dv."),
    Quantity(
        "mass_matrix_q", ("q", "vdot"), "How 𝓜 vdot follows q.", rule=rules.mass_matrix_times_q
    ),
    Quantity("mass_matrix_qq", ("q", "vdot", "dq"), "How that follows q."),
    Quantity(
        "inverse_dynamics_vjp",
        ("q", "v", "vdot", "w"),
        "The gradient of w · tau.",
        rule=rules.inverse_dynamics_vjp,
        results=("w_q", "w_v", "w_vdot"),
    ),
    Quantity(
        "forward_dynamics_vjp",
        ("q", "v", "tau", "w"),
        "The gradient of w · vdot.",
        rule=rules.forward_dynamics_vjp,
        results=("w_q", "w_v", "w_tau"),
        divides=True,
    ),
    Quantity(
        "inverse_dynamics_jvp",
        ("q", "v", "vdot", "dq", "dv", "dvdot"),
        "The change of joint forces.",
        rule=rules.inverse_dynamics_jvp,
        results=("dtau",),
    ),
    Quantity(
        "forward_dynamics_jvp",
        ("q", "v", "tau", "dq", "dv", "dtau"),
        "The change of accelerations.",
        rule=rules.forward_dynamics_jvp,
        results=("dvdot",),
        divides=True,
    ),
    Quantity(
        "inverse_dynamics_hvp",
        ("q", "v", "vdot", "w", "dq", "dv", "dvdot"),
        "The change of the gradient of w · tau.",
        results=("w_q", "w_v", "w_vdot"),
    ),
    Quantity(
        "forward_dynamics_hvp",
        ("q", "v", "tau", "w", "dq", "dv", "dtau"),
        "The change of the gradient of w · vdot, with loops.",
        results=("w_q", "w_v", "w_tau"),
        divides=True,
    ),
    Quantity(
        "forward_dynamics_second",
        ("q", "v", "tau"),
        "Second derivatives of vdot with loops, and the first ones that go with them.",
        results=("qq", "qv", "vv", "q_tau", "vdot_q", "vdot_v", "vdot_tau"),
        divides=True,
    ),
    Quantity("mass_matrix_solve", ("q", "tau"), "𝓜⁻¹ tau.", divides=True),
    Quantity("mass_matrix_times", ("q", "vdot"), "𝓜 vdot."),
    Quantity("mass_matrix_change", ("q", "dq", "w"), "(d𝓜 along dq) w."),
)
"""What rules need besides, along directions that are arrays, too."""

QUANTITIES: Mapping[str, Quantity] = {row.name: row for row in _ROWS}
"""What users may ask for, by name."""
_ALL = {row.name: row for row in (*_ROWS, *_PARTS)}
PRIME = "'"
"""After the name of a quantity: its results, and their derivatives by its own program."""


def calculation(robot: Robot, name: str, **choices: Choice) -> Calculation:
    """A quantity on a robot.

    Args:
        robot: The robot.
        name: A name of ``QUANTITIES``; primes after it ask for derivatives.
        choices: Frames and the like.

    Raises:
        UnknownNameError: No such quantity, choice or frame.
        ArgumentError: A choice is missing, or there is no such quantity on this robot.
        SingularHingeError: It divides by the inertia of a joint that moves none.
    """
    plain = name.rstrip(PRIME)
    if plain not in _ALL:
        raise UnknownNameError("quantity", plain, QUANTITIES)
    row = _ALL[plain]
    chosen = _complete(row, choices)
    _check_names(robot, chosen)
    if row.divides and not active_loops(robot.model.loops):
        refuse_singular(robot.model)
    made = Calculation(robot, row, chosen, name.count(PRIME))
    made.require()
    return made


def _complete(row: Quantity, choices: Choices) -> dict[str, Choice]:
    """All choices of a quantity, each of the kind of its default; several frames as a tuple."""
    for each in choices:
        if each not in row.choices:
            raise UnknownNameError("choice", each, row.choices, row.name)
    chosen: dict[str, Choice] = {}
    for each, value in {**row.choices, **choices}.items():
        if value is None:
            raise ArgumentError(f"{row.name} needs {each}=, a name of robot.frame_names")
        flag = isinstance(row.choices[each], bool)
        if flag != isinstance(value, bool) or not isinstance(value, bool | str | list | tuple):
            kind = "True or False" if flag else "a name, or names"
            raise ArgumentError(f"{each} is {value!r}, expected {kind}")
        chosen[each] = value
    if "frames" in chosen:
        named = chosen["frames"]
        chosen["frames"] = (named,) if isinstance(named, str) else chosen_words(chosen, "frames")
    return chosen


def _check_names(robot: Robot, chosen: Choices) -> None:
    """Refuse names of frames, references and schemes that there are not."""
    if "reference" in chosen:
        check_reference(chosen_word(chosen, "reference"))
    if "scheme" in chosen and chosen["scheme"] not in SCHEMES:
        raise UnknownNameError("scheme", chosen["scheme"], SCHEMES)
    one = (chosen_word(chosen, "frame"),) if "frame" in chosen else ()
    several = chosen_words(chosen, "frames") if "frames" in chosen else ()
    for frame in (*one, *several):
        robot.model.frame(frame)


class Calculation:
    """A quantity on a robot, with its choices.

    Attributes:
        robot: The robot.
        quantity: The row.
        choices: By name.
        order: How often it is differentiated by its own program.
        arguments: Names of its arrays.
        sizes: Numbers of a sample in each of them.
        results: Names of the results.
        shapes: Shape of each for one sample.
    """

    def __init__(self, robot: Robot, quantity: Quantity, choices: Choices, order: int) -> None:
        self.robot = robot
        self.quantity = quantity
        self.choices = dict(choices)
        self.order = order
        self.arguments = quantity.arguments
        self.sizes = tuple(
            robot.nq if name in ("q", "q0", "q1") else 1 if name == "dt" else robot.nv
            for name in self.arguments
        )

    @property
    def model(self) -> Model:
        """The robot."""
        return self.robot.model

    @property
    def name(self) -> str:
        """With a prime for each derivative."""
        return self.quantity.name + PRIME * self.order

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for the same quantity with the same choices."""
        return (self.name, *sorted(self.choices.items()))

    def __repr__(self) -> str:
        return f"<{self.name} of '{self.robot.name}'>"

    @property
    def rule(self) -> DerivativeRule | None:
        """Its derivatives; None: there are none of this order."""
        if self.order == 0 and self.quantity.rule is not None:
            return self.quantity.rule
        return rules.by_own_program if self._traced is not None else None

    def is_configuration(self, argument: int) -> bool:
        """Whether an argument is a configuration, whose directions are tangent steps."""
        return self.arguments[argument] in ("q", "q0", "q1")

    # -- programs

    @cached_property
    def on_loops(self) -> bool:
        """Whether loops are active and matter: see ``loop_quantities``."""
        return self.quantity.divides and bool(active_loops(self.model.loops))

    @property
    def _loop_row(self) -> LoopQuantity:
        return LOOP_QUANTITIES[self.quantity.name]

    @cached_property
    def _traced(self) -> Traced | None:
        """The row that is traced for the robot, if it is of that kind."""
        if self.on_loops:
            return None
        name = embedded_request(self.quantity.name, self.model)
        row = TRACED.get(name)
        if row is None and self.quantity.name == "coriolis_matrix":
            row = _matrix_as_traced(name) if self._identity else None
        for _ in range(self.order):
            row = None if row is None else row.derivative
        return row

    @property
    def _identity(self) -> bool:
        return joint_map(self.model).is_identity

    @cached_property
    def _row_choices(self) -> tuple[object, ...]:
        found: tuple[object, ...] = tuple(self.choices.values())
        if self.quantity.name == "operational_inertia":
            found = (*found, POLICY.singular_roundings)
        if self.quantity.name == "step" and not self.choices["parts"]:
            found = found[:1]
        return found

    @property
    def in_body_order(self) -> bool:
        """Whether joint vectors of its program are in the order of bodies, not the robot's."""
        return self._traced is None and not self.on_loops and not self._identity

    @cached_property
    def executable(self) -> Executable | None:
        """What runs it; None if the robot's own method does."""
        if self.on_loops:
            return None
        if self._traced is not None:
            return compile_request(self._traced).build(self.model, choices=self._row_choices)
        return kernel(cheapest_equivalent(self.quantity.name), self.model).build(self.model)

    @cached_property
    def _program(self) -> RobotProgram:
        """The program, also where no backend has compiled it."""
        from phistar.compile import BuildTarget

        row = self._traced
        name = cheapest_equivalent(self.quantity.name)
        request = kernel(name, self.model) if row is None else compile_request(row)
        target = BuildTarget("numpy", choices=() if row is None else self._row_choices)
        found = request.on(self.model, target)
        if found is None:
            raise ArgumentError(f"there is no {self.name} of robot '{self.robot.name}'")
        return found

    def require(self) -> None:
        """Raise unless there is such a quantity on the robot."""
        if not self.on_loops:
            _ = self._program
        elif self.order or self.quantity.name not in LOOP_QUANTITIES:
            raise ArgumentError(
                f"robot '{self.robot.name}' has closed loops, with which there is no "
                f"{self.name} here; robot.tree has it"
            )

    @cached_property
    def _shapes_by_name(self) -> dict[str, Shape]:
        """Of all outputs, in the order of the robot's coordinates."""
        if self.on_loops:
            return self._loop_row.shapes(self.robot)
        shapes = dict(self._program.sample_shapes)
        if not self.in_body_order:
            return shapes
        return {name: (self.robot.nv,) * len(shape) for name, shape in shapes.items()}

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Names of the program's outputs, in the order of the results."""
        found = self._shapes_by_name
        wanted = self.quantity.results
        if not self.order:
            return wanted if wanted and set(wanted) <= set(found) else tuple(found)
        return tuple(found)

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the results."""
        return self.outputs

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """Shape of each result for one sample."""
        return tuple(self._shapes_by_name[name] for name in self.outputs)

    def kernel(self, real: str = "double") -> MachineKernel | None:
        """Machine code of the final shape, which is waited for; None if there is none.

        It reads the arguments of ``kernel_arguments`` and writes ``kernel_shapes``.
        """
        code = self._machine_code(real)
        return None if code is None else code.tiers((), real).wait_for_final()

    def _machine_code(self, real: str) -> MachineCode | None:
        """What is compiled for a real type."""
        from phistar.backends.to_llvm import MachineCode

        code = self.executable
        if self.on_loops and self._loop_row.key is not None:
            code = traced_executable(self.model, self._loop_row.key(real, self.choices))
        if not isinstance(code, MachineCode):
            return None
        # The other program has results on straight legs, too.
        return code.otherwise or code

    def kernel_arguments(self, found: MachineKernel) -> list[int]:
        """Numbers of the arguments in the order of a kernel's inputs."""
        return [self.arguments.index(name) for name in found.call.signature.inputs]

    def kernel_shapes(self, found: MachineKernel, real: str) -> dict[str, Shape]:
        """Outputs of a kernel by name, in its order, with their shapes for one sample."""
        code = self._machine_code(real)
        assert code is not None
        shapes = code.program.sample_shapes
        return {name: shapes[name] for name in found.call.signature.outputs}

    def results_of(self, found: Mapping[str, Array]) -> list[Array]:
        """The results of what a program gives, arrays of any package."""
        if self.on_loops:
            assert self._loop_row.read is not None
            return self._loop_row.read(found, self.robot.nv)
        if self.in_body_order:
            gather = joint_map(self.model).gather
            found = {name: gathered(gather, x, self._axes(name)) for name, x in found.items()}
        return [found[name] for name in self.outputs]

    # -- NumPy

    def run(self, *arrays: Array) -> list[Array]:
        """The results for arrays (..., size) of float64 or float32, whose batches broadcast."""
        if self.on_loops:
            return list(self._loop_row.run(self.robot, self.choices, arrays))
        joints = joint_map(self.model)
        given = dict(zip(self.arguments, arrays, strict=True))
        if self.in_body_order:
            given = {n: x if n == "q" else joints.spread(x) for n, x in given.items()}
        found = run_masked(self.executable, self._program, self.model, given)
        return self._by_method(arrays) if found is None else self.results_of(found)

    def _axes(self, name: str) -> int:
        return len(self._shapes_by_name[name])

    def _by_method(self, arrays: Sequence[Array]) -> list[Array]:
        """By the method of the robot, where a program would be enormous."""
        if self.quantity.name == "step":
            return list(step_by_method(self.robot, self.choices, arrays))
        found = getattr(self.robot, self.quantity.name)(*arrays, on_error="nan")
        if not self.quantity.results:
            return [found]
        return [getattr(found, each) for each in self.outputs]


def gathered(gather: Callable[[Array], Array], x: Array, axes: int) -> Array:
    """Joint axes of a result brought from the order of bodies to the robot's."""
    if axes == 1:
        return gather(x)
    return gather(gather(x).swapaxes(-1, -2)).swapaxes(-1, -2)


def _matrix_as_traced(name: str) -> Traced:
    """A matrix of the catalogue as a traced row, on robots whose coordinates are in body order."""
    return _MATRICES.setdefault(name, _make_matrix_row(name))


_MATRICES: dict[str, Traced] = {}


def _make_matrix_row(name: str) -> Traced:
    from phistar.backends.policy import MatrixWork
    from phistar.backends.robot_programs import OPTIONAL_INPUTS
    from phistar.compile import BuildTarget
    from phistar.compile.traced import with_result_name

    def trace(model: Model) -> Unrolled:
        program = kernel(name, model).on(model, BuildTarget("llvm"))
        assert program is not None
        return with_result_name(program.unrolled(frozenset(OPTIONAL_INPUTS)))

    def shape(model: Model) -> Shape:
        return (model.nv, model.nv)

    def work(model: Model) -> MatrixWork:
        return MatrixWork(model.nv, model.nv**2, POLICY.max_part_operations)

    return Traced(f"{name} as a line", _ALL[name].arguments, shape, trace, work)


def sample_size(shape: Shape) -> int:
    """Numbers of a result."""
    return math.prod(shape)


__all__ = ("QUANTITIES", "Calculation", "Quantity", "RequestKey", "calculation", "input_sizes")

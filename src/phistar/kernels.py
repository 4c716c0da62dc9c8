# SPDX-License-Identifier: BSD-3-Clause
"""A quantity compiled for one robot, for users: checked arrays in, arrays out, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from phistar import backends, settings
from phistar.algebra.expression_checks import check_expression, check_frames
from phistar.algebra.ir import Expr
from phistar.algebra.spaces import JOINT, TASK_MOTION, Space
from phistar.algorithms.programs import PROGRAMS
from phistar.arguments import refuse_singular, spatial_vectors
from phistar.arrays import Array
from phistar.backends import (
    BundleProgram,
    Executable,
    MatrixProgram,
    RobotProgram,
    TracedProgram,
    Tuning,
)
from phistar.backends.jax.package import is_jax_array
from phistar.backends.policy import (
    Decision,
    VectorWork,
    decide,
    decide_c,
    this_machine,
    without_machine_code,
)
from phistar.compile import (
    KEPT_ZEROS,
    REQUESTS,
    RESULT_OUTPUT,
    SCHEDULES,
    BuildTarget,
    Bundle,
    Kernel,
    MatrixOf,
    Pieces,
    Stage,
    Stages,
    Traced,
    Vectors,
    cheapest_equivalent,
    compile_outputs,
    compile_request,
    embedded_request,
    evaluate_bundle,
    evaluate_matrix,
    is_embedded,
    joint_map,
    kept_zeros,
    mimic_in_rounds,
    refuse_on_nodes,
    request,
    spell_inverses_for_robot,
)
from phistar.compile import kernel as catalogue_kernel
from phistar.compile.on_loops import ON_LOOPS
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.configuration import Coordinates, batch_shape, configuration, tangent
from phistar.model.frame_motions import frame_motions
from phistar.model.kinematic_loops import require_tree
from phistar.model.model import Model
from phistar.model.singular import require_finite_results
from phistar.reprs import html_card, html_folded
from phistar.scalar.printing import to_text as scalars_text
from phistar.scalar.program import ScalarProgram
from phistar.scalar.robot.link_numbers import describe_snapping
from phistar.sweeps.costs import CostReport, OperationCount, count_operations
from phistar.sweeps.ir import Node, Type
from phistar.sweeps.matrix_requests import LoweredBundle

_ROUNDS_CURE = (
    "robot.forward_dynamics(..., method='parallel') takes the tree's sweeps in rounds and keeps "
    "the loops, robot.tree.compile(...) is the same robot without them."
)

ProgramSpec = str | Expr | Mapping[str, Expr]

CODE_SHAPES = ("auto", "straight", "rolled")


class RobotKernel:
    """A quantity on a robot: ``k = robot.compile("forward_dynamics"); k(q, v=v, tau=tau)``.

    Joint vectors are (..., nv) or dicts by joint name; MOTION and FORCE vectors are
    (..., bodies, 6) in link axes, those of frames (..., frames, 6) in their own axes,
    [angular; linear]. Matrices are (..., rows, columns). Batch axes broadcast.

    Attributes:
        model: The robot.
        backend: Name of the backend that runs it.
        schedule: ``"sequential"``, link after link, or ``"parallel"``, in O(log N) rounds.
        frames: The frames that it is about.
        inputs: Names of the inputs. ``f_ext`` may be left out (no external forces), and so may
            ``gravity``, which is not listed (the robot's own).
        outputs: Names of the outputs.
        snapped: What ``snap`` changed in the robot, a line per link.
    """

    def __init__(
        self,
        model: Model,
        wanted: ProgramSpec,
        backend: str | None = None,
        frames: Sequence[str] = (),
        snap: float | None = None,
        shape: str = "auto",
        choices: Mapping[str, object] | None = None,
        schedule: str = "sequential",
    ) -> None:
        if shape not in CODE_SHAPES:
            raise UnknownNameError("shape", shape, CODE_SHAPES)
        if schedule not in SCHEDULES:
            raise UnknownNameError("schedule", schedule, SCHEDULES)
        if snap is not None and not 0.0 <= snap < 1e-3:
            raise ArgumentError(f"snap is {snap}, expected a small length or angle, such as 1e-10")
        self._arguments = (model, wanted, backend, frames, snap, shape, choices, schedule)
        self.model = model
        self.snapped = () if snap is None else describe_snapping(model, snap)
        self.schedule = schedule
        self.backend = _backend_name(backend, schedule)
        self.frames = (frames,) if isinstance(frames, str) else tuple(frames)
        for name in self.frames:
            model.frame(name)
        self._kernel = _kernel(wanted, model, self.frames, self.backend, schedule)
        if schedule == "parallel":
            self._kernel = _in_rounds(self._kernel, model)
        self._choices = self._chosen(choices or {})
        self._joints = joint_map(model)
        self._refuse(own=not isinstance(wanted, str))
        tuning = Tuning(self._kernel.regroup_inertia, snap, shape)
        self._target = BuildTarget(self.backend, self.frames, tuning=tuning, choices=self._choices)
        self._program = self._on_robot()
        self._executable = self._built(self.backend)
        self._leaves = self._leaf_nodes()
        self.inputs = self._input_names()
        self.outputs = self._output_names()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._arguments

    # -- what it is

    @property
    def name(self) -> str:
        """What it computes."""
        wanted = self._arguments[1]
        return wanted if isinstance(wanted, str) else self._kernel.name

    def __repr__(self) -> str:
        call = ", ".join(("q", *(f"{name}=" for name in self.inputs)))
        outputs = ", ".join(self.outputs)
        return f"<{self.name}({call}) -> {outputs}: '{self.model.name}', backend {self.backend}>"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        title = repr(self)[1:-1]
        parts = (("sweeps", self.sweeps), ("decision", self.decision), ("passes", self.passes))
        folded = (html_folded(name, text) for name, text in parts if text is not None)
        return html_card(title, f"<p>{self.cost}</p>", *folded)

    def _chosen(self, given: Mapping[str, object]) -> tuple[object, ...]:
        """What was chosen of a quantity that has choices, in their order."""
        request = self._kernel.request
        known = dict(request.choices) if isinstance(request, Traced) else {}
        for name in given:
            if name not in known or name in ("frame", "frames"):
                raise UnknownNameError("choice", name, known, request.name)
        found: list[object] = []
        for name, default in known.items():
            if name == "frames":
                found.append(self._some_frames())
            elif name == "frame":
                found.append(self._only_frame())
            else:
                found.append(given.get(name, default))
        return tuple(found)

    def _some_frames(self) -> tuple[str, ...]:
        # Without targets there is a centre of mass or a posture to be near to.
        if not self.frames and self.name != "inverse_kinematics_step":
            raise self._frames_error("frames")
        return self.frames

    def _only_frame(self) -> str:
        if len(self.frames) != 1:
            raise self._frames_error("one frame")
        return self.frames[0]

    def _frames_error(self, wanted: str) -> ArgumentError:
        return ArgumentError(
            f"{self.name} is about {wanted}, got {list(self.frames)}; for instance "
            f'robot.compile("{self.name}", frames=["{self.model.link_names[-1]}"])'
        )

    def _refuse(self, *, own: bool) -> None:
        """Programs of the catalogue that do not divide know how to sum over mimic joints."""
        draft = self._kernel.draft
        schedules = [form.schedule for forms in draft.forms.values() for form in forms]
        schedules += [] if draft.schedule is None else [draft.schedule]
        programs = [each.program for each in schedules]
        divides = any(p.nodes[stream].spec.divides for p in programs for stream in p.live())
        if divides or is_embedded(self._kernel.name):
            refuse_singular(self.model)
        if own:
            self._refuse_own()
        elif divides:
            refuse_on_nodes(self.name, self.model)

    def _refuse_own(self) -> None:
        """Own expressions are programs of the tree, or in pieces where joints share coordinates."""
        if self._joints.one_to_one:
            return
        for name, expr in self._kernel.outputs:
            if not Pieces(self.model, expr, self.frames).is_one_program:
                raise ArgumentError(
                    f"{name} = {expr} is no single program on robot '{self.model.name}', whose "
                    "reduced mimic joints share coordinates: robot.function(expr) computes it in "
                    "pieces; or load it with mimic='independent'"
                )

    def _on_robot(self) -> RobotProgram:
        found = self._kernel.on(self.model, self._target)
        if found is None:
            raise ArgumentError(
                f"{self.name} has no program on robot '{self.model.name}': call the method of "
                "the robot, which has another way"
            )
        return found

    def _built(self, backend: str) -> Executable | None:
        tuning = self._target.tuning
        return self._kernel.build(
            self.model,
            self.frames,
            backend=backend,
            snap=tuning.snap,
            shape=tuning.shape,
            choices=self._choices,
        )

    def _leaf_nodes(self) -> dict[str, Node]:
        """Inputs that are streams, by name."""
        programs = [each.program for each in self._program.schedules]
        live = [program.nodes[stream] for program in programs for stream in program.live()]
        return {n.data: n for n in live if n.op in ("leaf", "scatter")}

    def _input_names(self) -> tuple[str, ...]:
        read = self._program.input_axes
        if isinstance(self._kernel.request, Vectors):
            return tuple(name for name in self._leaves if name != "gravity")
        if isinstance(self._kernel.request, Traced):
            return tuple(read)[1:]
        return tuple(name for name in read if name != "q")

    def _output_names(self) -> tuple[str, ...]:
        if isinstance(self._kernel.request, Traced):
            names = tuple(self._program.sample_shapes)
            return (self.name,) if names == (RESULT_OUTPUT,) else names
        return self._kernel.output_names

    # -- running

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
        if self.backend == "jax" and any(map(is_jax_array, (q, *inputs.values()))):
            return self.function(q, **inputs)
        self._check_names(inputs)
        q = configuration(self.model, q)
        if isinstance(self._kernel.request, Traced):
            found = self._run_traced(q, inputs)
        else:
            found = self._run_streams(q, inputs)
        return found if len(found) > 1 else next(iter(found.values()))

    @cached_property
    def function(self) -> Callable[..., Any]:
        """Of the backend ``"jax"``: the pure function of JAX arrays, ``k.function(q, v=v)``.

        Arguments and results are those of a call, as arrays of JAX; ``jax.jit``, ``jax.vmap``,
        ``jax.grad`` and the like take it. Leading axes broadcast. Shapes and precision are checked,
        values cannot be: where a call on arrays of NumPy would raise, since an input is not finite
        or an inertia is singular, results are NaN or infinite. Quaternions are made unit.

        Raises:
            ArgumentError: Another backend was chosen, or the quantity is no program of sweeps.
        """
        if not isinstance(self._executable, backends.PureExecutable):
            what = f"{self.name} by the backend {self.backend!r}"
            cure = "it is traced for scalars and has no sweeps"
            if self.backend != "jax":
                cure = f'robot.compile("{self.name}", backend="jax") has'
            raise ArgumentError(f"there is no pure function of {what}: {cure}")
        return partial(self._run_pure, self._executable)

    def _run_pure(
        self, code: backends.PureExecutable, q: Coordinates, **inputs: Coordinates
    ) -> Any:
        self._check_names(inputs)
        model, bodies = self.model, len(self.model.bodies)
        samples: dict[str, tuple[int, ...]] = {"q": (model.nq,)}
        for name in inputs:
            count = len(self.frames) if self._leaves[name].op == "scatter" else bodies
            samples[name] = (model.nv,) if self._is_joint(name) else (count, 6)
        given = code.read({"q": q, **inputs}, samples)
        rows = {n: x if len(samples[n]) == 1 else x[..., 0] for n, x in given.items()}
        batch_shape(model, rows)
        at = given.pop("q")
        values = {n: self._joints.spread(x) if self._is_joint(n) else x for n, x in given.items()}
        found = self._written(code.map({"q": at, **values}))
        return found if len(found) > 1 else next(iter(found.values()))

    def _check_names(self, inputs: Mapping[str, Coordinates]) -> None:
        known = {*self.inputs, *(n for n in self._leaves if n in backends.OPTIONAL_INPUTS)}
        for name in inputs:
            if name not in known:
                raise UnknownNameError("input", name, self.inputs, self.name)
        missing = [n for n in self.inputs if n not in inputs and n not in backends.OPTIONAL_INPUTS]
        if missing:
            raise ArgumentError(f"{self.name} needs a value for {', '.join(missing)}")

    def _run_streams(self, q: Array, inputs: Mapping[str, Coordinates]) -> dict[str, Array]:
        given = {name: self._read(name, value) for name, value in inputs.items()}
        rows = {n: x if self._is_joint(n) else x[..., 0] for n, x in given.items()}
        batch_shape(self.model, {"q": q, **rows})
        values = {n: self._joints.spread(x) if self._is_joint(n) else x for n, x in given.items()}
        request = self._kernel.request
        if isinstance(request, MatrixOf):
            matrix = evaluate_matrix(request, self.model, q, values, self.frames, self.backend)
            return self._written({request.name: matrix})
        if isinstance(request, Bundle):
            found = evaluate_bundle(self.name, self.model, q, values, self.backend)
            if found is None:  # one after the other where it cannot be at once
                found = self._one_by_one(self._kernel.bundle, q, values)
            return self._written(found)
        executable = self._executable
        assert isinstance(executable, backends.VectorExecutable)
        return self._written(executable(q, values))

    def _one_by_one(
        self, bundle: LoweredBundle, q: Array, values: Mapping[str, Array]
    ) -> dict[str, Array]:
        request = self._kernel.request
        assert isinstance(request, Bundle)
        vectors = compile_outputs(self.name, request.vectors, regroup_inertia=True)
        found = dict(vectors.executable(self.model, backend=self.backend)(q, values))
        for name, operator in request.wanted.matrices.items():
            each = MatrixOf(name, operator, regroup_inertia=True)
            read = {n: x for n, x in values.items() if n in _inputs_of(each, self.model)}
            found[name] = evaluate_matrix(each, self.model, q, read, backend=self.backend)
        for name, (left, right) in bundle.products.items():
            found[name] = -(found[left] @ found[right])
        wanted = {*bundle.vectors.program.outputs, *bundle.outputs}
        return {name: x for name, x in found.items() if name in wanted}

    def _run_traced(self, q: Array, inputs: Mapping[str, Coordinates]) -> dict[str, Array]:
        first, *others = self._program.input_axes
        given = {first: q, **{name: self._traced_input(name, inputs[name]) for name in others}}
        batch_shape(self.model, {n: x for n, x in given.items() if n != "dt"})
        found = None if self._executable is None else self._executable.try_run(given)
        if found is None:
            fallback = backends.get("numpy").build(self._program)
            assert fallback is not None
            found = fallback.try_run(given)
            assert found is not None
        results, valid = found
        if not valid and self._executable is not None and self._executable.wait_for_others():
            found = self._executable.try_run(given)
            assert found is not None
            results, valid = found
        if not valid:
            shapes = self._program.sample_shapes
            name = next(iter(results))
            require_finite_results(self.model, q, results, results[name].ndim - len(shapes[name]))
        return results if len(results) > 1 else {self.name: next(iter(results.values()))}

    def _traced_input(self, name: str, value: Coordinates) -> Array:
        if name in ("q", "q0", "q1"):
            return configuration(self.model, value)
        if name in ("v", "vdot", "tau", "dq", "dv", "dtau", "w"):
            return tangent(self.model, value, name)
        array = np.asarray(value, dtype=float)
        return array[..., None] if array.shape[-1:] != (1,) else array

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

    def _written(self, results: Mapping[str, Array]) -> dict[str, Array]:
        """Results whose axes over joints are in the order of the robot's coordinates."""
        request = self._kernel.request
        if isinstance(request, MatrixOf):
            (found,) = results.values()
            operator = request.operator
            return {request.name: self._in_coordinates(found, operator.codomain, operator.domain)}
        if isinstance(request, Bundle):
            matrices = set(self._kernel.bundle.outputs)
            return {
                name: self._in_coordinates(x, JOINT, JOINT)
                if name in matrices
                else self._joints.gather(x)
                for name, x in results.items()
            }
        return {n: self._write(results[n], e.codomain) for n, e in self._kernel.outputs}

    def _write(self, result: Array, space: Space) -> Array:
        if space is JOINT:
            return self._joints.gather(result)
        return frame_motions(self.model, self.frames, result) if space is TASK_MOTION else result

    def _in_coordinates(self, result: Array, rows: Space, columns: Space) -> Array:
        gather = self._joints.gather
        if columns is JOINT:
            result = gather(result)
        return gather(result.swapaxes(-1, -2)).swapaxes(-1, -2) if rows is JOINT else result

    # -- looking

    @property
    def sweeps(self) -> str:
        """The walks over the links as text; of a traced quantity what it is."""
        return self._kernel.sweeps

    def scalar_program(self) -> ScalarProgram:
        """The scalar program of the code that runs, or would run."""
        found = None if self._executable is None else self._executable.scalars
        return self._program.final_scalars() if found is None else found

    @property
    def scalars(self) -> str:
        """Its operations on numbers, one per line."""
        return scalars_text(self.scalar_program())

    @property
    def cost(self) -> OperationCount:
        """Scalar operations that the code which runs does for one sample.

        Of machine code: its final shape, which is waited for, without external forces. Sines,
        cosines and roots are not counted. ``cost.work`` are all of them, ``cost.span`` those on the
        longest path: fewer where the schedule is parallel.
        """
        if self._executable is None:
            return OperationCount.of_scalars(self.scalar_program().count())
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
        bodies, work = len(self.model.bodies), self._program.work
        estimate = work.estimated_operations(bodies) if isinstance(work, VectorWork) else None
        machine, tier = this_machine(), settings.tier()
        found = decide(work, bodies, batch, tier=tier, machine=machine, operations=estimate)
        return replace(found, why=f"{found.why}{self._two_ways}{self._kept_zeros}")

    @property
    def _kept_zeros(self) -> str:
        """What becomes of result buffers that keep their zeros, of quantities that have them."""
        name, program = self._kernel.name, self._program
        if name not in KEPT_ZEROS or not isinstance(program, MatrixProgram | BundleProgram):
            return ""
        return f"; {kept_zeros(program, name)[1]}"

    @property
    def _two_ways(self) -> str:
        """Operations of a program that does not have all results, and of the one that has."""
        program = self._program
        if not isinstance(program, TracedProgram) or program.otherwise is None:
            return ""
        return (
            f"; {program.operations} operations; samples that have no result by these, as on "
            f"straight legs: {program.otherwise.operations}"
        )

    @property
    def sweep_cost(self) -> CostReport:
        """The same for ``sweeps``, by link and operation, as a person would do them.

        Machine code does less: it knows the numbers of the robot. Of programs with vectors as
        outputs.
        """
        return count_operations(self._kernel.schedule, self.model)

    def source(self, backend: str | None = None) -> str:
        """The code that a backend makes of it, by default the one that runs."""
        name = self.backend if backend is None else backend
        code = self._executable if backend is None else self._built(backend)
        # Enormous matrices have no machine code of their own; their sweeps are run in NumPy.
        found = backends.get("numpy").build(self._program) if code is None else code
        if found is None:
            raise ArgumentError(f"the backend {name!r} has no code for {self.name}")
        return found.source

    @property
    def passes(self) -> Stages:
        """The program after each pass of the compiler: (name, level, text)."""
        found = [*self._kernel.passes]
        scalars = None if self._executable is None else self._executable.scalars
        if scalars is not None:
            found.append(Stage("trace", "scalars", scalars_text(scalars)))
        return Stages((*found, Stage("emit", "code", self.source())))


def _backend_name(backend: str | None, schedule: str) -> str:
    """The backend that is asked for, or the default one, if it knows the schedule."""
    wanted = backends.get(backends.default() if backend is None else backend)
    if schedule == "sequential" or wanted.in_rounds:
        return wanted.name
    if backend is not None:
        known = [name for name in backends.running_names() if backends.get(name).in_rounds]
        raise ArgumentError(
            f"the backend {backend!r} runs link after link: schedule='parallel' is for "
            f"{', '.join(repr(name) for name in known)}"
        )
    return "numpy"


def _in_rounds(kernel: Kernel, model: Model) -> Kernel:
    """The same quantity with a parallel schedule."""
    request = kernel.request
    if not isinstance(request, Vectors):
        if request.name in ON_LOOPS.values():
            require_tree(model, "schedule='parallel'", _ROUNDS_CURE)
        if is_embedded(request.name):
            raise mimic_in_rounds(model, "schedule")
        what = "traced for a robot" if isinstance(request, Traced) else "a matrix"
        raise ArgumentError(
            f"{request.name} is {what}: schedule='parallel' is for programs whose results are "
            "vectors, such as 'forward_dynamics', 'mass_matrix_times' or 'forward_dynamics_jvp'"
        )
    return compile_request(replace(request, schedule="parallel"))


def _inputs_of(request: MatrixOf, model: Model) -> set[str]:
    program = compile_request(request).on(model, BuildTarget("numpy"))
    assert program is not None
    return set(program.input_axes)


def _kernel(
    wanted: ProgramSpec, model: Model, frames: Sequence[str], backend: str, schedule: str
) -> Kernel:
    """What is compiled; of a name what the robot's method of that name runs, too."""
    if isinstance(wanted, str):
        on_nodes = embedded_request(wanted, model)
        if on_nodes != wanted:
            return compile_request(request(on_nodes))
        in_rounds = schedule == "parallel" and isinstance(REQUESTS.get(wanted), Traced)
        if len(PROGRAMS.get(wanted, ())) == 1 and (backend == "jax" or in_rounds):
            # Sweeps, also where machine code is traced for scalars under the same name.
            return catalogue_kernel(wanted, model)
        return compile_request(request(cheapest_equivalent(wanted, backend), model.turning_rotors))
    outputs = wanted if isinstance(wanted, Mapping) else {"out": wanted}
    for expr in outputs.values():
        check_expression(expr)
        check_frames(expr, frames)
    return compile_outputs(
        "own", tuple((n, spell_inverses_for_robot(e, model)) for n, e in outputs.items())
    )

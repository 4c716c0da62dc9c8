# SPDX-License-Identifier: BSD-3-Clause
"""A user's operator expression, compiled for a robot: applied, or its matrix or parts of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phistar.algebra.expression_checks import check_expression, check_frames
from phistar.algebra.ir import Expr, Symbol
from phistar.algebra.random_examples import vector_names
from phistar.algebra.spaces import (
    FORCE,
    GROUND_SPACES,
    JOINT,
    MOTION,
    ONE,
    TASK_FORCE,
    TASK_MOTION,
    Space,
)
from phistar.algebra.symbols import SYMBOLS, D, E_psi, G, K, P, Upsilon, psi
from phistar.algebra.traverse import nodes
from phistar.algorithms.operational_space import compliance
from phistar.arguments import checked_numbers, names_in, refuse_singular, require_number
from phistar.arrays import Array, as_vectors
from phistar.compile import (
    ARGUMENTS,
    Block,
    Col,
    Diag,
    DualPair,
    Full,
    Kernel,
    MatrixPart,
    Pieces,
    Row,
    cheapest_inner_products,
    compile_outputs,
    joint_map,
    matrix,
    run_traced,
    spell_inverses_for_robot,
    with_closed_inverses,
)
from phistar.errors import (
    ArgumentError,
    ShapeError,
    SingularPoseError,
    UnknownNameError,
    first_index,
)
from phistar.model.components import GROUND
from phistar.model.configuration import (
    Coordinates,
    as_numbers,
    batch_shape,
    configuration,
    read_coordinates,
    require_finite,
)
from phistar.model.frame_motions import frame_motions
from phistar.model.model import Model
from phistar.model.node_tree import NodeTree
from phistar.model.numpy_kinematics import (
    Reference,
    check_reference,
    frame_pose,
    jacobian,
    reference_pose,
)
from phistar.spatial import motion_transform, pose_inverse
from phistar.thresholds import POLICY

_ARTICULATED_SYMBOLS = frozenset({P, D, G, K, E_psi, psi, Upsilon})
"""Symbols that need D > 0."""


def operational_inertia(
    model: Model, q: Coordinates, frames: Sequence[str], reference: str, damping: float
) -> Array:
    """Operational inertia (..., 6m, 6m) of frames; see ``Robot``."""
    refuse_singular(model)
    kind = check_operational(model, frames, reference, damping, model.nv)
    if joint_map(model).one_to_one:
        mobility_at = Function(model, compliance, frames).at
    else:
        mobility_at = partial(_mobility_on_nodes, model, frames)
    q = read_coordinates(model, q, "q", "q")
    found = _traced_inertia(model, q, tuple(frames), kind, damping)
    if found is not None:
        return found
    (q,) = checked_numbers(model, q=q)
    return inertia_of_mobility(model, q, frames, kind, damping, mobility_at(q))


def check_operational(
    model: Model, frames: Sequence[str], reference: str, damping: float, freedoms: int
) -> Reference:
    """The reference; raises unless frames of a robot with so many freedoms may have an inertia."""
    kind = check_reference(reference)
    _check_frames(model, frames)
    require_number("damping", damping, "a number of at least zero")
    rows = 6 * len(frames)
    if rows > freedoms and not damping:
        raise ArgumentError(
            f"{_frames_text(frames)} cannot move in {rows} directions: robot '{model.name}' has "
            f"{freedoms} degrees of freedom, so there is no operational inertia; name fewer "
            "frames, or pass damping="
        )
    return kind


def inertia_of_mobility(
    model: Model,
    q: Array,
    frames: Sequence[str],
    reference: Reference,
    damping: float,
    mobility: Array,
) -> Array:
    """Operational inertia (..., 6m, 6m) of frames with accelerations ``mobility`` @ wrenches.

    Args:
        model: The robot.
        q: (..., nq).
        frames, reference, damping: As of ``Robot.operational_inertia``.
        mobility: (..., 6m, 6m), in the frames' own axes.
    """
    if reference != "local":
        transform = np.zeros_like(mobility)
        for i, name in enumerate(frames):
            pose = frame_pose(model, q, name)
            block = slice(6 * i, 6 * i + 6)
            transform[..., block, block] = motion_transform(
                pose_inverse(reference_pose(pose, reference)) @ pose
            )
        mobility = transform @ mobility @ np.swapaxes(transform, -1, -2)
    if damping:
        mobility = mobility + damping * np.eye(6 * len(frames), dtype=mobility.real.dtype)
    else:
        _refuse_singular_pose(model, frames, mobility)
    inertia = np.linalg.inv(mobility)
    return np.asarray((inertia + np.swapaxes(inertia, -1, -2)) / 2)


def _mobility_on_nodes(model: Model, frames: Sequence[str], q: Array) -> Array:
    """J𝓜⁻¹J* (..., 6m, 6m) in the frames' own axes, where mimic joints are reduced."""
    J = np.concatenate([jacobian(model, q, name, "local") for name in frames], axis=-2)
    solved = NodeTree.of_mimics(model, q[..., None, :]).solve(J)
    return np.asarray(J @ np.swapaxes(solved, -1, -2), dtype=q.dtype)


def _traced_inertia(
    model: Model, q: Array, frames: tuple[str, ...], reference: str, damping: float
) -> Array | None:
    """The same by machine code, if that is at hand and the pose not singular."""
    if q.dtype.kind != "f":
        return None
    if damping:
        rows = np.full(1, damping, q.dtype)
        return run_traced(model, ("damped_operational_inertia", frames, reference), q, rows)
    # What counts as singular in single precision is in roundings of double precision, too.
    roundings = POLICY.singular_roundings * float(np.finfo(q.dtype).eps / np.finfo(float).eps)
    return run_traced(model, ("operational_inertia", frames, reference, roundings), q)


def _frames_text(frames: Sequence[str]) -> str:
    return ("frames " if len(frames) > 1 else "frame ") + ", ".join(f"'{f}'" for f in frames)


def _check_frames(model: Model, frames: Sequence[str]) -> None:
    if isinstance(frames, str):
        raise ArgumentError(f"frames is a string; pass a list of names: [{frames!r}]")
    frames = names_in("frames", frames)
    if not frames or len(set(frames)) < len(frames):
        raise ArgumentError(f"expected one frame or more, each named once, got {list(frames)}")
    for name in frames:
        if model.frame(name).body == GROUND:
            raise ArgumentError(
                f"frame '{name}' of robot '{model.name}' is fixed to the ground: it does not move, "
                "so it has no operational inertia"
            )


def _refuse_singular_pose(model: Model, frames: Sequence[str], compliance: Array) -> None:
    """Raise where a compliance (..., n, n) has no inverse, whatever the units of its rows."""
    compliance = compliance.real
    size = np.sqrt(np.diagonal(compliance, axis1=-2, axis2=-1))
    size = np.where(size > 0, size, 1.0)
    values = np.linalg.eigvalsh(compliance / (size[..., :, None] * size[..., None, :]))
    bad = values <= POLICY.singular_roundings * np.finfo(values.dtype).eps
    if not bad.any():
        return
    samples = np.asarray(bad.any(axis=-1))
    index = first_index(samples)
    rank = int((~bad[index]).sum())
    where = f" of sample {list(index)}" if index else ""
    raise SingularPoseError(
        f"{_frames_text(frames)} of robot '{model.name}' can move in {rank} of {values.shape[-1]} "
        f"directions only in the pose{where}, so there is no operational inertia; choose another "
        "pose, or pass damping=",
        samples,
        frames,
        rank,
    )


class Function:
    """An operator, vector or number expression for one robot.

    A vector expression is called with its inputs by name, ``f(q, tau=..., v=...)``, and so is a
    number such as ``v.T @ mass_matrix @ v / 2``, which gives (...). An operator is applied, ``f(q,
    x)``, which costs O(n). Its matrix is ``f(q)``, in O(n·depth) or O(n²); parts of it are
    ``diagonal``, ``block``, ``row``, ``column``, mostly in O(n). Shapes of vectors: JOINT (...,
    nv), MOTION and FORCE (..., bodies * 6) in link axes, frames (..., frames * 6) in their own axes
    at their own origins; all [angular; linear].

    The symbols X, Y and Z are arbitrary block diagonals in theorems; they have values only in dense
    matrices, ``phistar.algebra.dense.Dense(robot.model, q, vectors={"X": matrix})``.

    Rows and columns of blocks go by name: a joint's in JOINT, that of the joint that carries the
    body in MOTION and FORCE, a frame's for B.
    """

    def __init__(self, model: Model, expr: Expr, frames: Sequence[str] = ()) -> None:
        check_expression(expr)
        self.model = model
        self.expr = expr
        self.frames = (frames,) if isinstance(frames, str) else tuple(frames)
        for name in self.frames:
            model.frame(name)
        check_frames(expr, self.frames)
        self._joints = joint_map(model)
        # What is computed; ``expr`` is as written, for messages.
        self._computed = spell_inverses_for_robot(expr, model)
        # Joints that share coordinates are between pieces of the expression.
        one_to_one = self._joints.one_to_one
        self._pieces = None if one_to_one else Pieces(model, self._computed, self.frames)
        if _ARTICULATED_SYMBOLS & set(nodes([with_closed_inverses(self._computed)])):
            refuse_singular(model)
        self.is_vector = expr.domain is ONE
        self.is_number = self.is_vector and expr.codomain is ONE
        self._terms = (
            cheapest_inner_products(self._computed) if self.is_number and one_to_one else ()
        )
        self.inputs = tuple(sorted(vector_names([expr])))
        self._input_names = {*self.inputs, *({"gravity"} & {n.name for n in _symbols(expr)})}

        if one_to_one:
            self.kernel = self._compiled()

    @cached_property
    def kernel(self) -> Kernel:
        """Its program; joints that share coordinates are not reduced in it."""
        return self._compiled()

    def _compiled(self) -> Kernel:
        return compile_outputs("function", self._outputs(), simplify=True)

    def _outputs(self) -> tuple[tuple[str, Expr], ...]:
        if self.is_number:
            pairs = [pair for term in self._terms for pair in term.pairs]
            return tuple(
                (name, x) for k, pair in enumerate(pairs) for name, x in _pair_outputs(k, pair)
            )
        output = self._computed if self.is_vector else self._computed @ self._argument()
        return (("out", output),)

    def __repr__(self) -> str:
        call = ["q", *(f"{name}=" for name in self.inputs)]
        if not self.is_vector:
            call.insert(1, "[x]")
        result_text = "a number" if self.is_number else self.expr.codomain.reads
        return f"<function({', '.join(call)}) -> {result_text}: {self.expr} of '{self.model.name}'>"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.model, self.expr, self.frames)

    def _argument(self) -> Expr:
        if self.expr.domain not in ARGUMENTS:
            raise ArgumentError(
                f"{self.expr} takes {self.expr.domain.reads}, which is not supported"
            )
        return ARGUMENTS[self.expr.domain]

    def _argument_name(self) -> str:
        return "" if self.is_vector else ARGUMENTS[self.expr.domain].name

    def size(self, space: Space) -> int:
        """Length of the vectors of a space for this robot."""
        links, frames = 6 * len(self.model.bodies), 6 * len(self.frames)
        sizes = {JOINT: self.model.nv, MOTION: links, FORCE: links}
        sizes |= {TASK_MOTION: frames, TASK_FORCE: frames}
        return {**sizes, **dict.fromkeys(GROUND_SPACES, 6)}[space]

    def __call__(self, q: Coordinates, x: ArrayLike | None = None, **inputs: ArrayLike) -> Array:
        """Apply to ``x``, make dense (no ``x``), or evaluate with inputs by name.

        Args:
            q: (..., nq).
            x: (..., n) vector of the operator's domain.
            inputs: The vectors that the expression names.

        Returns:
            (..., m); (..., m, n) for a dense operator; (...) for a number.
        """
        if x is not None and self.is_vector:
            what = "a number" if self.is_number else "a vector"
            raise ArgumentError(f"{self.expr} is {what}, it acts on nothing; give inputs by name")
        if x is None and not self.is_vector:
            if self._pieces is not None:
                return self._matrix_in_pieces(q, inputs)
            return self._dense(self._matrix(Full(), q, inputs))
        vectors = self._read_inputs(inputs)
        if self._pieces is not None:
            argument = None if x is None else self._read("", x)
            given = vectors if argument is None else {**vectors, "x": argument}
            return self._run_pieces(self._configuration(q, given), vectors, argument)
        if x is not None:
            vectors = {**vectors, self._argument_name(): self._read("", x)}
        return self._run(self._configuration(q, vectors), vectors)

    def at(self, q: Array) -> Array:
        """The matrix of an operator without inputs at configurations that are checked."""
        return self._dense(matrix(self._computed, Full(), self.model, q, {}, self.frames))

    def _dense(self, found: Array) -> Array:
        """A matrix with rows and columns in the order of coordinates."""
        by_columns = self._in_coordinate_order(found, self.expr.domain, -1)
        return self._in_coordinate_order(by_columns, self.expr.codomain, -2)

    def diagonal(self, q: Coordinates, **inputs: ArrayLike) -> Array:
        """The diagonal of an operator's matrix (..., n), number by number, in O(n) where possible.

        Args:
            q: (..., nq).
            inputs: The vectors that the expression names.
        """
        own = (self.expr.codomain, self.expr.codomain.dual)
        if not self.is_vector and self.expr.domain not in own:
            text = f"{self.expr.domain.reads} to {self.expr.codomain.reads}"
            raise ArgumentError(f"{self.expr} maps {text}, so it has no diagonal")
        if self._pieces is not None:
            self._reject_vector()
            return np.diagonal(self._matrix_in_pieces(q, inputs), axis1=-2, axis2=-1)
        blocks = self._matrix(Diag(), q, inputs)
        rows = [np.diagonal(block, axis1=-2, axis2=-1) for block in blocks]
        nothing = np.zeros((*configuration(self.model, q).shape[:-1], 0))
        joined = np.concatenate(rows, axis=-1) if rows else nothing
        return self._in_coordinate_order(joined, self.expr.domain, -1)

    def block(self, q: Coordinates, row: str, column: str, **inputs: ArrayLike) -> Array:
        """A block of an operator's matrix (..., r, c), by names of joints or frames.

        Args:
            q: (..., nq).
            row, column: Which block; its sizes are degrees of freedom of joints, else 6.
            inputs: The vectors that the expression names.
        """
        rows, columns = (
            self._block_indices(row, self.expr.codomain),
            self._block_indices(column, self.expr.domain),
        )
        if self._pieces is not None:
            found = self._matrix_in_pieces(q, inputs)
            below, beside = self._entries(row, rows, True), self._entries(column, columns, False)
            return found[..., below, :][..., beside]
        return np.asarray(self._matrix(Block(rows, columns), q, inputs))

    def row(self, q: Coordinates, name: str, **inputs: ArrayLike) -> Array:
        """A joint's or frame's rows of an operator's matrix (..., r, n), in O(n)."""
        indices = self._block_indices(name, self.expr.codomain)
        if self._pieces is not None:
            return self._matrix_in_pieces(q, inputs)[..., self._entries(name, indices, True), :]
        block = self._matrix(Row(indices), q, inputs)
        return self._in_coordinate_order(block, self.expr.domain, -1)

    def column(self, q: Coordinates, name: str, **inputs: ArrayLike) -> Array:
        """A joint's or frame's columns of an operator's matrix (..., m, c), in O(n)."""
        indices = self._block_indices(name, self.expr.domain)
        if self._pieces is not None:
            return self._matrix_in_pieces(q, inputs)[..., self._entries(name, indices, False)]
        block = self._matrix(Col(indices), q, inputs)
        return self._in_coordinate_order(block, self.expr.codomain, -2)

    def _matrix(self, request: MatrixPart, q: Coordinates, inputs: Mapping[str, ArrayLike]) -> Any:
        self._reject_vector()
        vectors = self._read_inputs(inputs)
        q = self._configuration(q, vectors)
        return matrix(self._computed, request, self.model, q, self._streams(vectors), self.frames)

    def _matrix_in_pieces(self, q: Coordinates, inputs: Mapping[str, ArrayLike]) -> Array:
        """The matrix, column by column."""
        vectors = self._read_inputs(inputs)
        q = self._configuration(q, vectors)
        given = {name: x[..., None, :] for name, x in vectors.items()}
        columns = self._run_pieces(q[..., None, :], given, np.eye(self.size(self.expr.domain)))
        return np.swapaxes(columns, -1, -2)

    def _entries(self, name: str, blocks: Sequence[int], rows: bool) -> list[int]:
        """Rows or columns of blocks."""
        space = self.expr.codomain if rows else self.expr.domain
        if space is JOINT:
            return list(range(self.model.nv)[self.model.joints[name].v_slice])
        return [6 * block + i for block in blocks for i in range(6)]

    def _run_pieces(self, q: Array, flat: Mapping[str, Array], x: Array | None) -> Array:
        """Applied to ``x`` (..., n), or evaluated."""
        assert self._pieces is not None
        vectors = {
            name: array if self._space(name) is JOINT else array.reshape(*array.shape[:-1], -1, 6)
            for name, array in flat.items()
        }
        if x is None:
            result = self._pieces.value(q, vectors)
        else:
            over_joints = self.expr.domain is JOINT
            argument = x if over_joints else x.reshape(*x.shape[:-1], x.shape[-1] // 6, 6)
            result = self._pieces.apply(q, argument, vectors)
        if self.expr.codomain not in (JOINT, ONE, *GROUND_SPACES):
            result = as_vectors(result)
        arrays = [*flat.values(), *(() if x is None else (x,))]
        batch = np.broadcast_shapes(q.shape[:-1], *(each.shape[:-1] for each in arrays))
        tail = () if self.is_number else result.shape[-1:]
        return np.broadcast_to(result, (*batch, *tail)).copy()

    def _space(self, name: str) -> Space:
        return SYMBOLS[name].symbol.codomain

    def _configuration(self, q: Coordinates, vectors: Mapping[str, Array]) -> Array:
        """q, finite, with batch axes that fit those of the vectors."""
        q = configuration(self.model, q)
        argument = self._argument_name()
        named = {"x" if name == argument else name: x for name, x in vectors.items()}
        batch_shape(self.model, {"q": q, **named})
        return q

    def _reject_vector(self) -> None:
        if self.is_vector:
            raise ArgumentError(
                f"{self.expr} is a vector, which has no matrix; call the function with its inputs"
            )

    def _block_indices(self, name: str, space: Space) -> tuple[int, ...]:
        """Indices of the blocks of a name; a compound joint has several."""
        self._reject_vector()
        if space in (TASK_FORCE, TASK_MOTION):
            if name not in self.frames:
                raise UnknownNameError("frame", name, self.frames, "this function")
            return (self.frames.index(name),)
        indices = tuple(body.index for body in self.model.bodies if body.joint == name)
        if not indices:
            owner = f"'{self.model.name}'"
            raise UnknownNameError("moving joint", name, self.model.joint_names, owner)
        return indices

    def _in_coordinate_order(self, array: Array, space: Space, axis: int) -> Array:
        """An axis over the joints of bodies in the order of the robot's coordinates."""
        if space is not JOINT:
            return array
        return np.moveaxis(self._joints.gather(np.moveaxis(array, axis, -1)), -1, axis)

    def _read_inputs(self, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        for name in inputs:
            if name not in self._input_names:
                raise UnknownNameError("input", name, self.inputs, f"the function {self.expr}")
        vectors = {name: self._read(name, value) for name, value in inputs.items()}
        missing = [name for name in self.inputs if name not in vectors]
        if missing:
            raise ArgumentError(f"{self.expr} needs a value for {', '.join(missing)}")
        return vectors

    @property
    def sweeps(self) -> str:
        """The compiled passes as text."""
        return self.kernel.sweeps if self._pieces is None else self._pieces.sweeps

    def _read(self, name: str, value: ArrayLike) -> Array:
        space = SYMBOLS[name].symbol.codomain if name in SYMBOLS else self.expr.domain
        array = as_numbers(value, name or "x")
        size = self.size(space)
        if array.ndim == 0 or array.shape[-1] != size:
            owner = f"{space.reads} of robot '{self.model.name}'"
            raise ShapeError(name or "x", array.shape, f"(..., {size})", owner)
        require_finite(name or "x", array)
        return array

    def _streams(self, flat: Mapping[str, Array]) -> dict[str, Array]:
        """Flat vectors as the sweeps take them."""
        return {
            name: self._joints.spread(array)
            if SYMBOLS[name].symbol.codomain is JOINT
            else array.reshape(*array.shape[:-1], -1, 6)
            for name, array in flat.items()
        }

    def _run(self, q: Array, flat: Mapping[str, Array]) -> Array:
        results = self.kernel(self.model, q, self._streams(flat), self.frames)
        batch = np.broadcast_shapes(q.shape[:-1], *(x.shape[:-1] for x in flat.values()))
        if self.is_number:
            return np.broadcast_to(self._number(results), batch).copy()
        result = results["out"]
        if self.expr.codomain is JOINT:
            result = self._joints.gather(result)
        elif self.expr.codomain not in GROUND_SPACES:
            if self.expr.codomain is TASK_MOTION:
                result = frame_motions(self.model, self.frames, result)
            result = as_vectors(result)
        # A vector that cancels is not read, but its batch axes count.
        if result.shape[:-1] == batch:
            return result
        return np.broadcast_to(result, (*batch, result.shape[-1])).copy()

    def _number(self, results: Mapping[str, Array]) -> Array:
        """A number as its sum of products of vectors."""
        pairs, values = iter(range(len(results))), []
        for term in self._terms:
            value: Array | float = float(term.factor)
            for pair in term.pairs:
                (left, x), (right, _) = _pair_outputs(next(pairs), pair)
                axes = -1 if x.codomain is JOINT else (-2, -1)
                value = value * (results[left] * results[right]).sum(axis=axes)
            values.append(value)
        return np.asarray(sum(values))


def _pair_outputs(number: int, pair: DualPair) -> tuple[tuple[str, Expr], tuple[str, Expr]]:
    """The two vectors of a product, by the names of their outputs."""
    return (f"left{number}", pair[0]), (f"right{number}", pair[1])


def _symbols(expr: Expr) -> Iterator[Symbol]:
    return (node for node in nodes([expr]) if isinstance(node, Symbol))

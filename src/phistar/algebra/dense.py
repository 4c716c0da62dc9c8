# SPDX-License-Identifier: BSD-3-Clause
"""The oracle: expressions as plain matrices, for one robot in one state.

Every operator becomes a matrix over all links (6 rows per link) or all joints, built from its
definition. Slow and simple on purpose. Frames of expression:

    "link"      each link's own origin and axes
    "origin"    each link's own origin, world axes
    "inertial"  the world's origin and axes, where E_phi is a pure shift

JOINT has one block per body of the model, in body order: mimic joints are not reduced here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from phistar.algebra.dense_loops import LoopRows, Partition, node_numbers, partition
from phistar.algebra.ir import (
    Adjoint,
    Bracket,
    Expr,
    IdentityOperator,
    Inverse,
    Let,
    Product,
    Sum,
    Symbol,
)
from phistar.algebra.loop_symbols import A_a, E_a, H_a, loop_jacobian
from phistar.algebra.spaces import (
    CONSTRAINT,
    FORCE,
    GROUND_FORCE,
    GROUND_MOTION,
    GROUND_PLANE,
    GROUND_POINT,
    JOINT,
    LOOP,
    MINIMAL,
    MOTION,
    NORMALISED,
    ONE,
    PLACE,
    PLANE,
    POINT,
    TASK_FORCE,
    TASK_MOTION,
    WORLD_FORCE,
    WORLD_MOTION,
    Space,
)
from phistar.algebra.symbols import (
    CholeskyRate,
    CholeskyRoot,
    Definition,
    LyapunovIn,
    LyapunovOut,
    NodeRiccati,
    Riccati,
    SiblingBlocks,
    SylvesterOut,
    symbol_entry,
)
from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.numpy_kinematics import body_poses, ground_mass_point
from phistar.spatial import (
    Q,
    crf,
    crm,
    force_transform,
    inertia_matrix,
    motion_transform,
    pose,
    pose_inverse,
)

ExpressionFrame = Literal["link", "origin", "inertial"]

BASE_SYMBOLS = (
    *("H", "M", "M_root", "E_phi", "E_0", "A", "N", "B", "T", "gravity"),
    *("E_pi", "E_pi_0", "mu", "mu_0", "weight", "center", "moving_center"),
    *("e_x", "e_y", "e_z", "X_0"),
    *("Gamma", "coupling", "embedding", "independent_rates", "particular_rates"),
    *("self_stress", "E_inner"),
)
"""Symbols defined by the robot, its loops and its configuration."""


PIVOT_ROUNDING = 1e-14
"""Fraction of a diagonal entry below which a pivot of its Cholesky factor is rounding."""


class Dense:
    """Matrices of expressions for one model and configuration.

    Args:
        model: The robot.
        q: (nq,) one configuration, real or complex.
        frame: Frame of expression.
        vectors: Values of given symbols by name: vectors, and matrices for the block diagonals X,
            Y and Z. JOINT vectors are in body order, MOTION and FORCE ones (6 per body) in the
            frame of expression.
        tasks: Names of the frames selected by ``B``, in order.
        axes: Joint map of each body, 6 x nv in link axes, in place of the model's.
        loops: Rows of the loops, in the order of the rows of L; the model's own are not used.
    """

    def __init__(
        self,
        model: Model,
        q: ArrayLike,
        frame: ExpressionFrame = "link",
        vectors: Mapping[str, ArrayLike] | None = None,
        tasks: tuple[str, ...] = (),
        axes: Sequence[Array] | None = None,
        loops: Sequence[LoopRows] = (),
    ) -> None:
        if frame not in get_args(ExpressionFrame):
            raise ArgumentError(f"frame must be one of {get_args(ExpressionFrame)}, got {frame!r}")
        self.model = model
        self.frame = frame
        self.tasks = tasks
        self.loops = tuple(loops)
        self.axes = axes or [body.joint_kind.motion_map() for body in model.bodies]
        self.q = np.asarray(q)
        self.poses = body_poses(model, self.q)
        self.parents = model.parents
        sizes = [body.joint_kind.nv for body in model.bodies]
        ends = np.cumsum([0, *sizes])
        self.joint_slices = [slice(a, b) for a, b in pairwise(ends)]
        constraint_starts = np.cumsum([0, *(6 - size for size in sizes)])
        self.constraint_slices = [slice(a, b) for a, b in pairwise(constraint_starts)]
        self.dimensions = {
            ONE: 1,
            JOINT: int(ends[-1]),
            MOTION: 6 * len(sizes),
            FORCE: 6 * len(sizes),
            NORMALISED: 6 * len(sizes),
            TASK_MOTION: 6 * len(tasks),
            TASK_FORCE: 6 * len(tasks),
            WORLD_MOTION: 6 * len(sizes),
            WORLD_FORCE: 6 * len(sizes),
            GROUND_MOTION: 6,
            GROUND_FORCE: 6,
            POINT: 4 * len(sizes),
            PLANE: 4 * len(sizes),
            GROUND_POINT: 4,
            GROUND_PLANE: 4,
            PLACE: 3,
            CONSTRAINT: int(constraint_starts[-1]),
            LOOP: sum(rows.count for rows in self.loops),
        }
        self._values: dict[Expr, Array] = {}
        self._vectors = {name: np.asarray(value) for name, value in (vectors or {}).items()}

    def __call__(self, expr: Expr) -> Array:
        """The matrix of an expression; a vector comes as (n,)."""
        matrix = self.matrix(expr)
        return matrix[:, 0] if expr.domain is ONE else matrix

    def matrix(self, expr: Expr) -> Array:
        """The matrix of an expression; a vector has one column."""
        if expr not in self._values:
            self._values[expr] = self._evaluate(expr)
        return self._values[expr]

    def _evaluate(self, expr: Expr) -> Array:
        if isinstance(expr, Symbol):
            return self._symbol(expr)
        if isinstance(expr, IdentityOperator):
            return np.eye(self.dimension(expr.domain), dtype=self.poses.dtype)
        if isinstance(expr, Adjoint):
            return self.matrix(expr.of).T
        if isinstance(expr, Inverse):
            return np.asarray(np.linalg.inv(self.matrix(expr.of)))
        if isinstance(expr, Let):
            return self.matrix(expr.value)
        if isinstance(expr, Bracket):
            return self._bracket(expr)
        if isinstance(expr, Product):
            result = self.matrix(expr.factors[-1])
            for factor in reversed(expr.factors[:-1]):
                result = self.matrix(factor) @ result
            return result
        assert isinstance(expr, Sum)
        result = np.zeros(self._shape(expr), dtype=self.poses.dtype)
        for coefficient, term in expr.terms:
            result = result + float(coefficient) * self.matrix(term)
        return result

    def _shape(self, expr: Expr) -> tuple[int, int]:
        return self.dimension(expr.codomain), self.dimension(expr.domain)

    def dimension(self, space: Space) -> int:
        """Size of the vectors of a space; that of minimal ones depends on the rank of the loops."""
        if space is MINIMAL:
            return len(self._partition.independent)
        return self.dimensions[space]

    def _symbol(self, node: Symbol) -> Array:
        if node.name in self._vectors:
            return self._vectors[node.name].reshape(self._shape(node))
        if node.name in BASE_SYMBOLS:
            base: Array = getattr(self, f"_{node.name}")()
            return base
        definition = symbol_entry(node).definition
        if definition is None:
            raise ArgumentError(f"no value was given for {node.name}; pass it in vectors=")
        return self._defined(definition)

    def _defined(self, definition: Definition) -> Array:
        if isinstance(definition, NodeRiccati):
            return self._node_riccati()
        if isinstance(definition, Riccati):
            return self._riccati()
        if isinstance(definition, LyapunovIn):
            return self._lyapunov_in(definition)
        if isinstance(definition, LyapunovOut):
            return self._lyapunov_out(definition)
        if isinstance(definition, SylvesterOut):
            return self._sylvester_out(definition)
        if isinstance(definition, SiblingBlocks):
            return self._siblings(definition)
        if isinstance(definition, CholeskyRoot):
            return self._root(definition)
        if isinstance(definition, CholeskyRate):
            return self._root_rate(definition)
        return self.matrix(definition)

    def _block(self, k: int) -> slice:
        return slice(6 * k, 6 * k + 6)

    def to_frame(self, k: int) -> Array:
        """6x6 that takes a motion of body k from its own axes to the frame of expression."""
        if self.frame == "link":
            return np.eye(6, dtype=self.poses.dtype)
        if self.frame == "inertial":
            return motion_transform(self.poses[k])
        return motion_transform(pose(self.poses[k, :3, :3]))

    def _diagonal(self, blocks: list[Array], codomain: Space, domain: Space) -> Array:
        dtype = np.result_type(self.poses.dtype, *blocks)
        result = np.zeros((self.dimensions[codomain], self.dimensions[domain]), dtype)
        for k, block in enumerate(blocks):
            result[self._of_body(k, codomain), self._of_body(k, domain)] = block
        return result

    def _of_body(self, k: int, space: Space) -> slice:
        """Rows of body k in vectors of a space."""
        if space is JOINT:
            return self.joint_slices[k]
        return self.constraint_slices[k] if space is CONSTRAINT else self._block(k)

    def _H(self) -> Array:
        blocks = [(self.to_frame(k) @ axes).T for k, axes in enumerate(self.axes)]
        return self._diagonal(blocks, JOINT, FORCE)

    def _T(self) -> Array:
        blocks = []
        for k, axes in enumerate(self.axes):
            basis = np.linalg.qr(axes, mode="complete").Q[:, axes.shape[1] :]
            blocks.append(np.linalg.inv(self.to_frame(k)).T @ basis)
        return self._diagonal(blocks, FORCE, CONSTRAINT)

    def _M(self) -> Array:
        blocks = []
        for body in self.model.bodies:
            back = np.linalg.inv(self.to_frame(body.index))
            blocks.append(back.T @ inertia_matrix(body.inertia) @ back)
        return self._diagonal(blocks, FORCE, MOTION)

    def _M_root(self) -> Array:
        blocks = []
        for body in self.model.bodies:
            root = _cholesky(np.asarray(inertia_matrix(body.inertia)))
            blocks.append(np.linalg.inv(self.to_frame(body.index)).T @ root)
        return self._diagonal(blocks, FORCE, NORMALISED)

    def _A(self) -> Array:
        blocks = [np.diag(np.array(body.armature)) for body in self.model.bodies]
        return self._diagonal(blocks, JOINT, JOINT)

    def _N(self) -> Array:
        blocks = [np.linalg.inv(self.to_frame(k)).T @ axes for k, axes in enumerate(self.axes)]
        return self._diagonal(blocks, FORCE, JOINT)

    def _E_phi(self) -> Array:
        result = np.zeros((self.dimensions[FORCE],) * 2, dtype=self.poses.dtype)
        for k, parent in enumerate(self.parents):
            if parent != GROUND:
                result[self._block(parent), self._block(k)] = self._shift(parent, k)
        return result

    def _E_0(self) -> Array:
        """World axes and the world's origin at the ground, whatever the frame of expression."""
        result = np.zeros((6, self.dimensions[FORCE]), dtype=self.poses.dtype)
        for k, parent in enumerate(self.parents):
            if parent == GROUND:
                result[:, self._block(k)] = force_transform(self.poses[k]) @ self.to_frame(k).T
        return result

    def _shift(self, parent: int, k: int) -> Array:
        """phi(parent, k): takes a force on body k to its parent, in the frame of expression."""
        if self.frame == "inertial":
            return np.eye(6, dtype=self.poses.dtype)
        if self.frame == "link":
            return force_transform(pose_inverse(self.poses[parent]) @ self.poses[k])
        offset = self.poses[k, :3, 3] - self.poses[parent, :3, 3]
        return force_transform(pose(translation=offset))

    def _B(self) -> Array:
        result = np.zeros((self.dimensions[FORCE], self.dimensions[TASK_FORCE]), self.poses.dtype)
        for column, name in enumerate(self.tasks):
            frame = self.model.frame(name)
            if frame.body != GROUND:
                in_body = force_transform(frame.body_pose)
                lift = np.linalg.inv(self.to_frame(frame.body)).T
                result[self._block(frame.body), self._block(column)] = lift @ in_body
        return result

    def _Gamma(self) -> Array:
        """Wrenches of the loops on their links: on each successor, the opposite on what it joins.

        A force is the same wherever the predecessor's frame is, so only bodies count.
        """
        result = np.zeros((self.dimensions[FORCE], self.dimensions[LOOP]), self.poses.dtype)
        start = 0
        for rows in self.loops:
            columns = slice(start, start := start + rows.count)
            world = self._body_pose(rows.successor) @ rows.successor_pose
            for sign, k in ((1.0, rows.successor), (-1.0, rows.predecessor)):
                if k != GROUND:
                    lift = np.linalg.inv(self.to_frame(k)).T
                    moved = force_transform(pose_inverse(self.poses[k]) @ world) @ rows.forces
                    result[self._block(k), columns] += sign * lift @ moved
        return result

    def _body_pose(self, k: int) -> Array:
        return np.eye(4, dtype=self.poses.dtype) if k == GROUND else self.poses[k]

    def _coupling(self) -> Array:
        nothing = np.zeros((0, self.dimensions[JOINT]))
        empty = (np.zeros((rows.count, self.dimensions[JOINT])) for rows in self.loops)
        blocks = [
            zeros if rows.joints is None else rows.joints
            for rows, zeros in zip(self.loops, empty, strict=True)
        ]
        return np.concatenate([nothing, *blocks])

    @cached_property
    def _partition(self) -> Partition:
        return partition(self.matrix(loop_jacobian))

    def _embedding(self) -> Array:
        return self._partition.embedding()

    def _independent_rates(self) -> Array:
        return self._partition.independent_rates()

    def _particular_rates(self) -> Array:
        return self._partition.particular_rates()

    def _self_stress(self) -> Array:
        return self._partition.self_stress()

    @cached_property
    def _joint_bodies(self) -> Array:
        """(nv,) body of each joint rate."""
        return np.repeat(np.arange(len(self.axes)), [axes.shape[1] for axes in self.axes])

    @cached_property
    def node_numbers(self) -> list[int]:
        """The node of each body, by the smallest index of its bodies."""
        return node_numbers(list(self.parents), self.loops, self._joint_bodies)

    def _E_inner(self) -> Array:
        result = self._E_phi()
        for k, parent in enumerate(self.parents):
            if parent != GROUND and self.node_numbers[parent] != self.node_numbers[k]:
                result[self._block(parent), self._block(k)] = 0.0
        return result

    def _node_riccati(self) -> Array:
        """P_a, node by node: a node has a larger number than the node that carries it."""
        total, shift = self._M(), self.matrix(E_a)
        axes, rotors = self.matrix(H_a), self.matrix(A_a)
        minimal_nodes = np.array(self.node_numbers)[self._joint_bodies[self._partition.independent]]
        for node in sorted(set(self.node_numbers), reverse=True):
            links = np.repeat(np.array(self.node_numbers) == node, 6)
            rates = minimal_nodes == node
            h, p = axes[np.ix_(rates, links)], total[np.ix_(links, links)]
            d, u = h @ p @ h.T + rotors[np.ix_(rates, rates)], p @ h.T
            outward = shift[:, links]
            total = total + outward @ (p - u @ np.linalg.solve(d, u.T)) @ outward.T
        return total

    def _gravity(self) -> Array:
        """Upward acceleration of the ground, -g, as a motion of the root links."""
        result = np.zeros((self.dimensions[MOTION], 1), dtype=self.poses.dtype)
        upward = np.concatenate([np.zeros(3), -self.model.gravity])
        for k, parent in enumerate(self.parents):
            if parent == GROUND:
                local = motion_transform(pose_inverse(self.poses[k])) @ upward
                result[self._block(k), 0] = self.to_frame(k) @ local
        return result

    def _point_to_frame(self, k: int) -> Array:
        """4x4 that takes a weighted point of body k from its own axes to those of expression."""
        if self.frame == "link":
            return np.eye(4, dtype=self.poses.dtype)
        return self.poses[k] if self.frame == "inertial" else pose(self.poses[k, :3, :3])

    def _E_pi(self) -> Array:
        result = np.zeros((self.dimensions[POINT],) * 2, dtype=self.poses.dtype)
        for k, parent in enumerate(self.parents):
            if parent != GROUND:
                across = pose_inverse(self.poses[parent]) @ self.poses[k]
                back = pose_inverse(self._point_to_frame(k))
                rows, columns = slice(4 * parent, 4 * parent + 4), slice(4 * k, 4 * k + 4)
                result[rows, columns] = self._point_to_frame(parent) @ across @ back
        return result

    def _E_pi_0(self) -> Array:
        result = np.zeros((4, self.dimensions[POINT]), dtype=self.poses.dtype)
        for k, parent in enumerate(self.parents):
            if parent == GROUND:
                back = pose_inverse(self._point_to_frame(k))
                result[:, 4 * k : 4 * k + 4] = self.poses[k] @ back
        return result

    def _X_0(self) -> Array:
        blocks = [
            motion_transform(self.poses[k]) @ np.linalg.inv(self.to_frame(k))
            for k in range(len(self.parents))
        ]
        return self._diagonal(blocks, WORLD_MOTION, MOTION)

    def _e_x(self) -> Array:
        return self._E_pi_0().T[:, :1]

    def _e_y(self) -> Array:
        return self._E_pi_0().T[:, 1:2]

    def _e_z(self) -> Array:
        return self._E_pi_0().T[:, 2:3]

    def _mu(self) -> Array:
        points = [
            self._point_to_frame(k) @ np.roll(body.inertia[:4], -1)
            for k, body in enumerate(self.model.bodies)
        ]
        return np.concatenate([np.zeros(0, self.poses.dtype), *points])[:, None]

    def _mu_0(self) -> Array:
        return ground_mass_point(self.model)[:, None]

    def _weight(self) -> Array:
        return np.array([[*-self.model.gravity, 0.0]])

    def _center(self) -> Array:
        mass = self.model.inertias[:, 0].sum() + ground_mass_point(self.model)[3]
        return np.asarray(np.eye(3, 4) / mass)

    def _moving_center(self) -> Array:
        return np.asarray(np.eye(3, 4) / self.model.inertias[:, 0].sum())

    def _bracket(self, expr: Bracket) -> Array:
        make = {"crm": crm, "crf": crf, "Q": Q}[expr.kind]
        values = self.matrix(expr.argument).reshape(-1, 6)
        return self._diagonal(list(make(values)), expr.codomain, expr.domain)

    def _riccati(self) -> Array:
        h, m, a = self._H(), self._M(), self._A()
        count = len(self.parents)
        blocks = [m[self._block(k), self._block(k)].copy() for k in range(count)]
        for k in reversed(range(count)):
            parent = self.parents[k]
            if parent == GROUND:
                continue
            rows = self.joint_slices[k]
            h_k = h[rows, self._block(k)]
            d = h_k @ blocks[k] @ h_k.T + a[rows, rows]
            u = blocks[k] @ h_k.T
            shift = self._shift(parent, k)
            blocks[parent] = (
                blocks[parent] + shift @ (blocks[k] - u @ np.linalg.solve(d, u.T)) @ shift.T
            )
        return self._diagonal(blocks, FORCE, MOTION)

    def _lyapunov_in(self, node: LyapunovIn) -> Array:
        source, left, right = (self.matrix(e) for e in (node.source, node.left, node.right))
        total = source.copy()
        for k in reversed(range(len(self.parents))):
            parent = self.parents[k]
            if parent != GROUND:
                p, c = self._block(parent), self._block(k)
                total[p, p] += left[p, c] @ total[c, c] @ right[c, p]
        return total

    def _lyapunov_out(self, node: LyapunovOut) -> Array:
        source, left, right = (self.matrix(e) for e in (node.source, node.left, node.right))
        total = source.copy()
        for k, parent in enumerate(self.parents):
            if parent != GROUND:
                p, c = self._block(parent), self._block(k)
                total[c, c] += left[c, p] @ total[p, p] @ right[p, c]
        return total

    def _sylvester_out(self, node: SylvesterOut) -> Array:
        source, left, right = (self.matrix(e) for e in (node.source, node.left, node.right))
        total = source.copy()
        for k, parent in enumerate(self.parents):
            if parent != GROUND:
                p, c = self._block(parent), self._block(k)
                total[c, c] += left[c, p] @ total[p, p] @ np.linalg.inv(right[c, p])
        return total

    def _siblings(self, node: SiblingBlocks) -> Array:
        total = self.matrix(node.of).copy()
        for k in range(len(self.parents)):
            total[self._block(k), self._block(k)] = 0
        return total

    def _root(self, node: CholeskyRoot) -> Array:
        matrix = self.matrix(node.of)
        return self._diagonal([_cholesky(matrix[r, r]) for r in self.joint_slices], JOINT, JOINT)

    def _root_rate(self, node: CholeskyRate) -> Array:
        root, rate = self.matrix(node.root), self.matrix(node.of)
        blocks = [_cholesky_rate(root[r, r], rate[r, r]) for r in self.joint_slices]
        return self._diagonal(blocks, JOINT, JOINT)


def _cholesky_rate(root: Array, rate: Array) -> Array:
    """The lower triangular S with S R* + R S* = rate, by its entries: linear equations for them."""
    entries = list(zip(*np.tril_indices(len(root)), strict=True))
    columns = []
    for i, j in entries:
        unit = np.zeros_like(root)
        unit[i, j] = 1.0
        columns.append([(unit @ root.T + root @ unit.T)[entry] for entry in entries])
    right_side = np.array([rate[entry] for entry in entries])
    result = np.zeros_like(root)
    for entry, value in zip(entries, np.linalg.solve(np.array(columns).T, right_side), strict=True):
        result[entry] = value
    return result


def _cholesky(matrix: Array) -> Array:
    """The lower triangular L with L Lᵀ = matrix; Lᵀ, not Lᴴ, so that complex steps go through.

    The matrix may be singular: a pivot that is nothing but rounding has a column of zeros.
    """
    root = np.zeros_like(matrix)
    for j in range(len(matrix)):
        pivot = matrix[j, j] - root[j, :j] @ root[j, :j]
        if not pivot.real > PIVOT_ROUNDING * abs(matrix[j, j]):
            continue
        root[j, j] = np.sqrt(pivot)
        root[j + 1 :, j] = (matrix[j + 1 :, j] - root[j + 1 :, :j] @ root[j, :j]) / root[j, j]
    return root

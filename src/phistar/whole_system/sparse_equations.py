# SPDX-License-Identifier: BSD-3-Clause
"""Accelerations and constraint forces of all links from one sparse symmetric system.

    [ M̂   -T_g ] [α]   [ active and gyroscopic forces ]
    [-T_g*  0  ] [β] = [ -T_g*(accelerations at rest)  ]

Featherstone and Orin, eq. (27). Unknowns are taken tips first, the acceleration of a link and then
the force of its joint: eliminating them in this order fills no block that was empty, and is the
articulated-body algorithm read as Gaussian elimination. Inertia of rotors couples a link with its
parent. Rows of closed loops come just before the link at which their chain ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, SingularHingeError, UnknownNameError
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.singular import singular_hinges
from phistar.reprs import one_line_repr
from phistar.whole_system.block_cyclic_reduction import solve_block_tridiagonal
from phistar.whole_system.link_blocks import (
    LinkBlocks,
    by_joint,
    inner_accelerations,
    joint_rates,
)

if TYPE_CHECKING:
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import SuperLU

METHODS = ("sparse", "forces", "cyclic_reduction")
_RESIDUAL = 1e-6
"""Relative residual from which an elimination without pivots is done again with pivots."""


@one_line_repr
@dataclass(frozen=True)
class SystemSolution:
    """What the links do.

    Attributes:
        vdot: (nv,) joint accelerations.
        accelerations: (links, 6) [angular; linear] of links relative to free fall, in their axes.
        forces: For each joint (6,) [moment; force] through it on its link, in the link's axes.
        multipliers: (rows,) of closed loops.
        unknowns: (size,) all of them, in the order of ``WholeSystem.blocks``.
    """

    vdot: Array
    accelerations: Array = field(repr=False)
    forces: Mapping[str, Array] = field(repr=False)
    multipliers: Array = field(repr=False)
    unknowns: Array = field(repr=False)


@dataclass(frozen=True)
class LoopBlocks:
    """Rows of closed loops in link accelerations: Γ*α + Cv̇ = wanted.

    Attributes:
        gamma: For each link that is pushed (6, rows).
        coupled: (rows, nv) C.
        wanted: (rows,).
        ends: (rows,) links before which they are eliminated.
        names: Of loops, with their rows.
    """

    gamma: Mapping[int, Array] = field(default_factory=dict)
    coupled: Array = field(default_factory=lambda: np.zeros((0, 0)))
    wanted: Array = field(default_factory=lambda: np.zeros(0))
    ends: Array = field(default_factory=lambda: np.zeros(0, dtype=int))
    names: Mapping[str, slice] = field(default_factory=dict)


NO_LOOPS = LoopBlocks()


class WholeSystem:
    """Equation (27) of a robot at a state.

    Attributes:
        matrix: (size, size) SciPy sparse array, symmetric and indefinite.
        right_hand_side: (size,).
        blocks: Entries of unknowns: ``("acceleration", link)`` and ``("force", joint)``, of closed
            loops ``("loop", name)``.
    """

    def __init__(
        self, model: Model, blocks: LinkBlocks, tau: Array, loops: LoopBlocks = NO_LOOPS
    ) -> None:
        self._model = model
        self._links = blocks
        self._tau = tau
        self._loops = loops
        self._order = _Order(blocks, loops)

    def __repr__(self) -> str:
        size = self._order.size
        text = f"{len(self._model.bodies)} links, {size} unknowns, {self.matrix.nnz} numbers"
        return f"<WholeSystem of '{self._model.name}': {text}>"

    @cached_property
    def blocks(self) -> Mapping[tuple[str, str], slice]:
        """Entries of unknowns, in the order of elimination."""
        order, found = self._order, {}
        for body in reversed(self._model.bodies):
            start = int(order.accelerations[body.index])
            found["acceleration", body.link] = slice(start, start + 6)
            forces = int(order.forces[body.index])
            found["force", body.joint] = slice(forces, forces + int(order.widths[body.index]))
        for name, rows in self._loops.names.items():
            places = order.rows[rows]
            found["loop", name] = slice(int(places.min()), int(places.max()) + 1)
        return dict(sorted(found.items(), key=lambda item: item[1].start))

    def block(self, row: tuple[str, str], column: tuple[str, str]) -> Array:
        """A block of the matrix, dense, by the names of unknowns."""
        for name in (row, column):
            if name not in self.blocks:
                raise UnknownNameError("block", str(name), map(str, self.blocks))
        return np.asarray(self.matrix[self.blocks[row], self.blocks[column]].toarray())

    @cached_property
    def matrix(self) -> csc_array:
        """The matrix."""
        from scipy.sparse import coo_array

        entries = _Entries()
        links, order = self._links, self._order
        number = np.arange(links.count)
        entries.add(order.accelerations[number], order.accelerations[number], links.M)
        for space in links.spaces:
            k = space.links
            inner = k[links.parents[k] != GROUND]
            p = links.parents[inner]
            one = np.broadcast_to(space.T, (len(k), *space.T.shape))
            back = -np.swapaxes(links.X[inner], -1, -2)
            entries.add_both(order.accelerations[k], order.forces[k], -one)
            entries.add_both(order.accelerations[p], order.forces[inner], -(back @ space.T))
            felt = links.armature[space.columns]
            if not felt.any():
                continue
            own = np.swapaxes(space.S.T[None] * felt[:, None, :] @ space.S, -1, -2)
            there = own[links.parents[k] != GROUND]
            forward = -links.X[inner]
            entries.add(order.accelerations[k], order.accelerations[k], own)
            entries.add_both(order.accelerations[inner], order.accelerations[p], there @ forward)
            entries.add(order.accelerations[p], order.accelerations[p], back @ there @ forward)
        self._add_loops(entries)
        size = self._order.size
        return coo_array(entries.all(), shape=(size, size)).tocsc()

    def _add_loops(self, entries: _Entries) -> None:
        order, links, loops = self._order, self._links, self._loops
        for k, gamma in loops.gamma.items():
            if k != GROUND:
                entries.add_columns(order.accelerations[k], order.rows, -gamma)
        for space in links.spaces:
            for k, columns in zip(space.links, space.columns, strict=True):
                felt = (
                    loops.coupled[:, columns] @ space.S if len(loops.wanted) else np.zeros((0, 6))
                )
                if not felt.any():
                    continue
                entries.add_columns(order.accelerations[k], order.rows, -felt.T)
                p = links.parents[k]
                if p != GROUND:
                    entries.add_columns(order.accelerations[p], order.rows, (felt @ links.X[k]).T)

    @cached_property
    def right_hand_side(self) -> Array:
        """(size,)."""
        links, order = self._links, self._order
        result = np.zeros(order.size)
        pushed = np.array(links.push)
        known = links.c + inner_accelerations(links, np.zeros((links.count, 6)))
        for space in links.spaces:
            k = space.links
            felt = links.armature[space.columns]
            active = (self._tau[space.columns] + felt * (known[k] @ space.S.T)) @ space.S
            pushed[k] += active
            inner = links.parents[k] != GROUND
            back = np.swapaxes(links.X[k[inner]], -1, -2)
            np.add.at(pushed, links.parents[k[inner]], -(back @ active[inner][..., None])[..., 0])
            if space.T.shape[1]:
                places = order.forces[k][:, None] + np.arange(space.T.shape[1])
                result[places] = -(known[k] @ space.T)
        result[order.accelerations[:, None] + np.arange(6)] = pushed
        if len(self._loops.wanted):
            result[order.rows] = -self._wanted_of_loops(known)
        return result

    def _wanted_of_loops(self, known: Array) -> Array:
        loops, links = self._loops, self._links
        wanted = np.array(loops.wanted)
        if GROUND in loops.gamma:
            wanted -= loops.gamma[GROUND].T @ links.ground
        for space in links.spaces:
            rates = known[space.links] @ space.S.T
            wanted += np.einsum("rkd,kd->r", loops.coupled[:, space.columns], rates)
        return wanted

    @cached_property
    def incidence(self) -> csc_array:
        """I - E* (6 links, 6 links) of eq. (29), links in the robot's order: its inverse is φ*."""
        from scipy.sparse import coo_array

        links = self._links
        entries = _Entries()
        number = np.arange(links.count)
        entries.add(6 * number, 6 * number, np.broadcast_to(np.eye(6), (links.count, 6, 6)))
        inner = number[links.parents != GROUND]
        entries.add(6 * inner, 6 * links.parents[inner], -links.X[inner])
        return coo_array(entries.all(), shape=(6 * links.count,) * 2).tocsc()

    @cached_property
    def factor(self) -> SuperLU:
        """The factors, eliminated in the order of the unknowns without pivots."""
        from scipy.sparse.linalg import splu

        options = {"SymmetricMode": True, "Equil": False}
        return splu(
            self.matrix, permc_spec="NATURAL", diag_pivot_thresh=0.0, relax=1, options=options
        )

    @property
    def factor_nonzeros(self) -> int:
        """Most numbers below the diagonal of the factor: no block fills that was empty, but those
        where a row of a loop crosses the links on the way to its end."""
        if len(self._loops.wanted):
            return self._nonzeros_with_loops()
        width = self._order.widths
        inner = self._links.parents != GROUND
        own = 6 * 5 // 2 + 6 * width + width * (width - 1) // 2
        outer = inner * (6 * width + 36 * self._has_rotor)
        return int((own + outer).sum())

    @property
    def _has_rotor(self) -> Array:
        result = np.zeros(self._links.count, dtype=int)
        for space in self._links.spaces:
            result[space.links] = self._links.armature[space.columns].any(axis=-1)
        return result

    def _nonzeros_with_loops(self) -> int:
        """By elimination of blocks: what a block leaves is joined to the first of its neighbours.

        Blocks are named by the unknown that they begin with.
        """
        order, links, loops = self._order, self._links, self._loops
        sizes = dict.fromkeys(order.accelerations.tolist(), 6)
        sizes |= dict(zip(order.forces.tolist(), order.widths.tolist(), strict=True))
        sizes |= dict.fromkeys(order.rows.tolist(), 1)
        near: dict[int, set[int]] = {block: set() for block in sizes}

        def join(*blocks: int) -> None:
            near[min(blocks)].add(max(blocks))

        for k, rotor in enumerate(self._has_rotor):
            a, p = int(order.accelerations[k]), int(links.parents[k])
            join(a, int(order.forces[k]))
            if p != GROUND:
                above = int(order.accelerations[p])
                join(int(order.forces[k]), above)
                if rotor:
                    join(a, above)
        touched = {k: (gamma != 0.0).any(axis=0) for k, gamma in loops.gamma.items()}
        for space in links.spaces:
            for k, columns in zip(space.links.tolist(), space.columns, strict=True):
                felt = (loops.coupled[:, columns] != 0.0).any(axis=-1)
                for each in (k, int(links.parents[k])):
                    touched[each] = touched.get(each, False) | felt
        for k, rows in touched.items():
            for row in order.rows[rows].tolist() if k != GROUND else ():
                join(row, int(order.accelerations[k]))
        count = 0
        for block in sorted(sizes):
            size = sizes[block]
            count += size * (size - 1) // 2 + size * sum(sizes[other] for other in near[block])
            if near[block]:
                first = min(near[block])
                near[first] |= near[block] - {first}
        return count

    def solve(self, method: str = "sparse") -> SystemSolution:
        """Accelerations and forces.

        Args:
            method: ``"sparse"``: this system; ``"forces"``: eq. (28), which has the forces alone
                and needs inertia of every link; ``"cyclic_reduction"``: eq. (28) of a chain by
                O(log N) rounds.
        """
        if method not in METHODS:
            raise UnknownNameError("method", method, METHODS)
        if method == "sparse":
            return self._solution(self._solve_sparse())
        matrix, right = self.force_equations
        if method == "forces":
            from scipy.sparse.linalg import spsolve

            forces = spsolve(matrix, right)
        else:
            forces = solve_block_tridiagonal(matrix, right, self._chain_widths())
        return self._solution(self._from_forces(forces))

    def _solve_sparse(self) -> Array:
        from scipy.sparse.linalg import splu

        right = self.right_hand_side
        size = np.abs(right).max(initial=0.0)
        try:
            found = self.factor.solve(right)
            left = np.abs(self.matrix @ found - right).max(initial=0.0)
            if left <= _RESIDUAL * size:
                # Once more for what elimination without pivots lost.
                return np.asarray(found - self.factor.solve(self.matrix @ found - right))
        except RuntimeError:
            pass  # a pivot is zero: links without inertia of their own
        try:
            return np.asarray(splu(self.matrix).solve(right))
        except RuntimeError:
            if not len(self._loops.wanted) and (hinges := singular_hinges(self._model)):
                raise SingularHingeError(hinges) from None
            raise ArgumentError(
                f"the equations of robot '{self._model.name}' are singular: a joint moves no "
                "inertia, or rows of loops depend on each other"
            ) from None

    def _solution(self, unknowns: Array) -> SystemSolution:
        links, order = self._links, self._order
        accelerations = unknowns[order.accelerations[:, None] + np.arange(6)]
        vdot = joint_rates(links, accelerations, len(self._tau))
        forces = np.zeros((links.count, 6))
        for space in links.spaces:
            k, columns = space.links, space.columns
            beta = unknowns[order.forces[k][:, None] + np.arange(space.T.shape[1])]
            active = self._tau[columns] - links.armature[columns] * vdot[columns]
            if len(self._loops.wanted):
                active = active + unknowns[order.rows] @ self._loops.coupled[:, columns].swapaxes(
                    0, 1
                )
            forces[k] = beta @ space.T.T + active @ space.S
        return SystemSolution(
            vdot, accelerations, by_joint(self._model, forces), unknowns[order.rows], unknowns
        )

    @cached_property
    def force_equations(self) -> tuple[csc_array, Array]:
        """Eq. (28): T_g*M̂⁻¹T_g and its right-hand side, over the constraint forces tips first.

        On a chain it is block tridiagonal.

        Raises:
            ArgumentError: A link has no inertia of its own, there are rotors or closed loops.
        """
        from scipy.sparse import bsr_array, csc_array

        self._refuse_forces()
        order = self._order
        a = (order.accelerations[::-1][:, None] + np.arange(6)).ravel()
        b = self._force_entries()
        blocks = np.linalg.inv(self._links.M[::-1])
        count = len(blocks)
        inverse = csc_array(bsr_array((blocks, np.arange(count), np.arange(count + 1))))
        T = -self.matrix[a][:, b]
        right = self.right_hand_side
        rest = inverse @ right[a]
        return csc_array(T.T @ inverse @ T), -right[b] - T.T @ rest

    def _from_forces(self, forces: Array) -> Array:
        """All unknowns from the constraint forces."""
        order, right = self._order, self.right_hand_side
        a = (order.accelerations[::-1][:, None] + np.arange(6)).ravel()
        b = self._force_entries()
        pushed = (right[a] - self.matrix[a][:, b] @ forces).reshape(-1, 6)
        result = np.zeros(order.size)
        result[b] = forces
        result[a] = np.linalg.solve(self._links.M[::-1], pushed[..., None])[..., 0].ravel()
        return result

    def _force_entries(self) -> Array:
        order = self._order
        starts, widths = order.forces[::-1], order.widths[::-1]
        return np.concatenate([np.arange(s, s + w) for s, w in zip(starts, widths, strict=True)])

    def _refuse_forces(self) -> None:
        name = self._model.name
        least = np.linalg.eigvalsh(self._links.M)[:, 0]
        largest = np.abs(self._links.M).max(axis=(-1, -2))
        if (bad := least <= 1e-12 * largest).any():
            link = self._model.bodies[int(np.argmax(bad))].link
            raise ArgumentError(
                f"equation (28) inverts the inertia of every link; link '{link}' of robot '{name}' "
                "has none in some direction; solve() takes equation (27)"
            )
        if self._links.armature.any() or len(self._loops.wanted):
            what = "rotors" if self._links.armature.any() else "closed loops"
            raise ArgumentError(
                f"equation (28) is for links without {what}, robot '{name}' has some; solve() "
                "takes equation (27)"
            )

    def _chain_widths(self) -> list[int]:
        parents = self._links.parents
        if (parents != np.arange(-1, len(parents) - 1)).any():
            raise ArgumentError(
                f"cyclic reduction is for chains, robot '{self._model.name}' has branches; "
                "method='forces' solves the same equations"
            )
        return [int(w) for w in self._order.widths[::-1]]


class _Order:
    """Where unknowns stand: link by link, tips first."""

    def __init__(self, links: LinkBlocks, loops: LoopBlocks) -> None:
        self.widths = 6 - links.allowed()
        steps = 6 + self.widths
        before = np.zeros(links.count + 1, dtype=int)
        for end in loops.ends:
            before[links.count - 1 - end if end != GROUND else links.count] += 1
        sizes = steps[::-1] + before[:-1]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self.size = int(starts[-1] + before[-1])
        self.accelerations = (starts[:-1] + before[:-1])[::-1]
        self.forces = self.accelerations + 6
        self.rows = np.zeros(len(loops.ends), dtype=int)
        taken = np.zeros(links.count + 1, dtype=int)
        for row, end in enumerate(loops.ends):
            place = links.count - 1 - end if end != GROUND else links.count
            self.rows[row] = starts[place] + taken[place]
            taken[place] += 1


class _Entries:
    """Numbers of a sparse matrix, block by block."""

    def __init__(self) -> None:
        self._values: list[Array] = []
        self._rows: list[Array] = []
        self._columns: list[Array] = []

    def add(self, rows: Array, columns: Array, blocks: Array) -> None:
        """Blocks (m, r, c) at some first rows and columns (m,)."""
        _, height, width = blocks.shape
        shape = blocks.shape
        down = rows[:, None, None] + np.arange(height)[:, None]
        across = columns[:, None, None] + np.arange(width)
        self._values.append(np.ascontiguousarray(blocks).ravel())
        self._rows.append(np.broadcast_to(down, shape).ravel())
        self._columns.append(np.broadcast_to(across, shape).ravel())

    def add_both(self, rows: Array, columns: Array, blocks: Array) -> None:
        """The same, and their transposes on the other side of the diagonal."""
        self.add(rows, columns, blocks)
        self.add(columns, rows, np.swapaxes(blocks, -1, -2))

    def add_columns(self, row: int, columns: Array, block: Array) -> None:
        """A block whose columns stand anywhere, and its transpose."""
        height, width = block.shape
        down = np.broadcast_to(row + np.arange(height)[:, None], block.shape).ravel()
        across = np.broadcast_to(columns[:width], block.shape).ravel()
        keep = block.ravel() != 0.0
        for r, c in ((down, across), (across, down)):
            self._values.append(block.ravel()[keep])
            self._rows.append(r[keep])
            self._columns.append(c[keep])

    def all(self) -> tuple[Array, tuple[Array, Array]]:
        """Values, and their rows and columns; what stands at one place is added up."""
        return (
            np.concatenate(self._values),
            (np.concatenate(self._rows), np.concatenate(self._columns)),
        )

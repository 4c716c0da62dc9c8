# SPDX-License-Identifier: BSD-3-Clause
"""Affine recursions in rounds: transfers of segments are joined, vectors go up and down.

A segment takes a value at one end to the other, x ↦ T x + e. Outward, e of a segment 1 and a
segment 2 beyond it is T₂ e₁ + e₂; inward it is e₁ + T₁ e₂. T are poses where nothing happens at
joints, else matrices; values are vectors, or matrices that are multiplied on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from phistar.arrays import Array
from phistar.sweeps.ir import Direction, StreamProgram
from phistar.sweeps.parallel.array_ops import fold_arrays
from phistar.sweeps.parallel.join_tree import Indices, JoinTree, Round
from phistar.sweeps.parallel.linear_forms import Letter, Word
from phistar.sweeps.parallel.link_fields import CROSSING, LinkFields

HERE = slice(None)


class PoseTransfers:
    """Poses across open segments: the last link in the frame before the first."""

    def __init__(self, fields: LinkFields, tree: JoinTree) -> None:
        self.fields, self.tree = fields, tree
        more = tree.size - tree.count
        self.R = _extended(fields, fields.R, more)
        self.p = _extended(fields, fields.p, more)
        fold_arrays(fields.ops, tree.up_alone, [(self, ("R", "p"))], self._join)

    def _join(self, each: Round) -> None:
        ops, algebra = self.fields.ops, self.fields.algebra
        for index, first, second in _open_pairs(each):
            if len(index):
                R, p = ops.take(self.R, first), ops.take(self.p, first)
                offset = p + algebra.times(R, ops.take(self.p, second))
                R = algebra.matmul(R, ops.take(self.R, second))
                self.R = ops.assign(self.R, (..., index, HERE), R)
                self.p = ops.assign(self.p, (..., index, HERE), offset)

    def own(self, op: str, index: Array, x: Array) -> Array:
        """What crosses the joints of links."""
        take = self.fields.ops.take
        return CROSSING[op](self.fields, take(self.fields.R, index), take(self.fields.p, index), x)

    def through(self, op: str, index: Array, x: Array) -> Array:
        """What crosses segments."""
        take = self.fields.ops.take
        return CROSSING[op](self.fields, take(self.R, index), take(self.p, index), x)


class MatrixTransfers:
    """Matrices across open segments: outward L φ* from the parent, inward φ L to the parent."""

    def __init__(self, fields: LinkFields, tree: JoinTree, L: Array, direction: Direction) -> None:
        self.fields, self.tree = fields, tree
        self._outward = direction is Direction.OUTWARD
        moved = fields.algebra.columns_out if self._outward else fields.algebra.rows_in
        self.links = moved(fields.R, fields.p, L)
        self.T = _extended(fields, self.links, tree.size - tree.count)
        fold_arrays(fields.ops, tree.up_alone, [(self, ("T",))], self._join)

    def _join(self, each: Round) -> None:
        ops, algebra = self.fields.ops, self.fields.algebra
        for index, first, second in _open_pairs(each):
            if len(index):
                pair = ops.take(self.T, first), ops.take(self.T, second)
                product = algebra.matmul(*(reversed(pair) if self._outward else pair))
                self.T = ops.assign(self.T, (..., index, HERE), product)

    def own(self, op: str, index: Array, x: Array) -> Array:
        """What crosses the joints of links, and what happens there."""
        return self._apply(op, self.fields.ops.take(self.links, index), x)

    def through(self, op: str, index: Array, x: Array) -> Array:
        """What crosses segments."""
        return self._apply(op, self.fields.ops.take(self.T, index), x)

    def _apply(self, op: str, T: Array, x: Array) -> Array:
        algebra = self.fields.algebra
        if op == "congruence_in":
            return algebra.matmul_adjoint(algebra.matmul(T, x), T)
        return algebra.times(T, x)


Transfers = PoseTransfers | MatrixTransfers


def _open_pairs(each: Round) -> tuple[tuple[Indices, Indices, Indices], ...]:
    """Open segments that a round makes of two: the segment, the inboard one, the outboard one."""
    links, joins = each.open_links, each.open_joins
    return (links.index, links.index, links.next), (joins.index, joins.left, joins.right)


def _extended(fields: LinkFields, x: Array, more: int) -> Array:
    """An array over links with places for joins."""
    xp = fields.ops.xp
    wide = xp.broadcast_to(x, (*x.shape[:-2], fields.numbers.count, x.shape[-1]))
    return xp.concatenate([wide, xp.zeros((*x.shape[:-2], more, x.shape[-1]), x.dtype)], axis=-2)


def linear_part(
    fields: LinkFields,
    program: StreamProgram,
    words: tuple[tuple[Word, Fraction], ...],
    value: Callable[[int], Any],
) -> Array:
    """The matrix of a sum of words at each link, (6, 6, links, samples)."""
    eye = fields.ops.xp.eye(6, dtype=fields.numbers.inertia.dtype)[:, :, None, None]
    total = fields.zero((6, 6))
    for word, factor in words:
        product = eye
        for letter in word:
            product = fields.algebra.matmul(_letter(fields, letter, value), product)
        total = total + float(factor) * product
    return total


def _letter(fields: LinkFields, letter: Letter, value: Callable[[int], Any]) -> Array:
    """The matrix of an operation at each link."""
    op, others = letter
    xp, numbers = fields.ops.xp, fields.numbers
    known = [value(each) for each in others]
    found: Array
    if op == "H":
        return numbers.H
    if op == "Ht":
        return xp.swapaxes(numbers.H, 0, 1)
    if op == "Ax":
        return xp.eye(len(numbers.H), dtype=numbers.H.dtype)[:, :, None, None] * numbers.armature
    if op in ("Gx", "inertia"):
        found = known[0]
        return found
    if op in ("Gtx", "inertia_t"):
        return xp.swapaxes(known[0], 0, 1)
    if op in ("Dx", "Dsolve"):
        found = known[0].matrix if op == "Dx" else known[0].inverse
        return found
    if op == "congruence_across":
        return fields.across(known[0])
    w, v = fields.skew(known[0][:3]), fields.skew(known[0][3:])
    nothing = xp.zeros_like(w)
    rows = ((w, nothing), (v, w)) if op == "crm" else ((w, v), (nothing, w))
    return xp.concatenate([xp.concatenate(row, axis=1) for row in rows])


def scan_outward(tree: JoinTree, transfers: Transfers, op: str, own: Array) -> Array:
    """x = T x(parent) + own at every link: the values x."""
    fields = transfers.fields
    ops, xp = fields.ops, fields.ops.xp
    e = _room(fields, tree, own)
    take = ops.take

    def up(e: Array, each: Round) -> Array:
        links, joins = each.open_links, each.open_joins
        if len(each.open_last.index):
            index = each.open_last.index
            e = ops.assign(e, (..., index, HERE), take(own, index))
        if len(links.index):
            moved = transfers.through(op, links.next, take(own, links.index))
            e = ops.assign(e, (..., links.index, HERE), moved + take(e, links.next))
        if len(joins.index):
            moved = transfers.through(op, joins.right, take(e, joins.left))
            e = ops.assign(e, (..., joins.index, HERE), moved + take(e, joins.right))
        return e

    e = ops.fold(tree.up_alone, up, e)
    entering, x = xp.zeros_like(e), xp.zeros_like(e[..., : tree.count, :])

    def down(state: tuple[Array, Array], each: Round) -> tuple[Array, Array]:
        entering, x = state
        for joins, _ in each.joins:
            if len(joins.index):
                before = take(entering, joins.index)
                entering = ops.assign(entering, (..., joins.left, HERE), before)
                after = transfers.through(op, joins.left, before) + take(e, joins.left)
                entering = ops.assign(entering, (..., joins.right, HERE), after)
        for links, _, last in each.links:
            if not len(links.index):
                continue
            here = transfers.own(op, links.index, take(entering, links.index))
            here = here + take(own, links.index)
            x = ops.assign(x, (..., links.index, HERE), here)
            if not last:
                entering = ops.assign(entering, (..., links.next, HERE), here)
            if len(links.children):
                place = (..., links.children, HERE)
                entering = ops.assign(entering, place, take(here, links.hung))
        return entering, x

    return ops.fold(tree.down, down, (entering, x))[1]


def scan_inward(
    tree: JoinTree, transfers: Transfers, op: str, leaving: Array, like: Array
) -> Array:
    """s = Σ over children of (T s + leaving) at every link: the values s.

    Args:
        tree, transfers: Segments.
        op: The shift.
        leaving: What a link hands on of its own, (..., links, samples), in its parent's frame.
        like: An array of as many samples as the result.
    """
    fields = transfers.fields
    ops, xp, take = fields.ops, fields.ops.xp, fields.ops.take
    e = _room(fields, tree, like)
    hung = xp.zeros_like(e[..., : tree.count, :])

    def up(state: tuple[Array, Array], each: Round) -> tuple[Array, Array]:
        e, hung = state
        for links, _, last in each.links:
            if not len(links.index):
                continue
            here = take(leaving, links.index)
            coming = [] if last else [take(e, links.next)]
            if len(links.children):
                own = ops.sum_by(take(e, links.children), links.hung, len(links.index))
                hung = ops.assign(hung, (..., links.index, HERE), own)
                coming.append(own)
            if coming:
                here = here + transfers.own(op, links.index, sum(coming[1:], coming[0]))
            e = ops.assign(e, (..., links.index, HERE), here)
        for joins, _ in each.joins:
            if len(joins.index):
                moved = transfers.through(op, joins.left, take(e, joins.right))
                e = ops.assign(e, (..., joins.index, HERE), take(e, joins.left) + moved)
        return e, hung

    e, hung = ops.fold(tree.up, up, (e, hung))
    return _spread_inward(tree, transfers, op, e, hung)


def _spread_inward(tree: JoinTree, transfers: Transfers, op: str, e: Array, s: Array) -> Array:
    """The way down: what comes in from beyond each segment, added to what hangs on."""
    ops = transfers.fields.ops
    take, xp = ops.take, ops.xp
    outer = xp.zeros_like(e)

    def down(state: tuple[Array, Array], each: Round) -> tuple[Array, Array]:
        outer, s = state
        for joins, closed in each.joins:
            if not len(joins.index):
                continue
            inner = take(e, joins.right)
            if not closed:
                beyond = take(outer, joins.index)
                outer = ops.assign(outer, (..., joins.right, HERE), beyond)
                inner = inner + transfers.through(op, joins.right, beyond)
            outer = ops.assign(outer, (..., joins.left, HERE), inner)
        for links, closed, last in each.links:
            if not len(links.index) or (closed and last):
                continue
            here = take(s, links.index)
            beyond = take(outer, links.index)
            if last:
                here = here + beyond
            else:
                here = here + take(e, links.next)
                if not closed:
                    here = here + transfers.through(op, links.next, beyond)
                    outer = ops.assign(outer, (..., links.next, HERE), beyond)
            s = ops.assign(s, (..., links.index, HERE), here)
        return outer, s

    return ops.fold(tree.down_alone, down, (outer, s))[1]


def _room(fields: LinkFields, tree: JoinTree, like: Array) -> Array:
    """Zeros for all segments; as many samples as an array or the configurations have."""
    xp = fields.ops.xp
    samples = max(like.shape[-1], fields.samples)
    dtype = xp.result_type(like, fields.p)
    return xp.zeros((*like.shape[:-2], tree.size, samples), dtype=dtype)

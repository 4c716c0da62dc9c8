# SPDX-License-Identifier: BSD-3-Clause
"""Riccati recursions by the star product: segments between two handles, joined and split again.

A segment of a path takes the acceleration α_in of what is inboard of it and the force f_out that
what is outboard needs, and gives the others:

    α_out = F α_in - C f_out + c        f_in = J α_in + F* f_out + d

A link with what is beyond it in its run (F₂, C₂, J₂; of the last one F₂ = I, C₂ = J₂ = 0), its own
inertia and what hangs onto it together M, is one elimination of its joint:

    U = (M + J₂) H*    D = H U + A    G = U D⁻¹
    J = φ (M + J₂ - G U*) φ*    F = F₂ (I - H* G*) φ*    C = C₂ + F₂ H* D⁻¹ H F₂*
    z = b + d₂ + (M + J₂) a    ε = τ - H z    ν = D⁻¹ ε
    c = c₂ + F₂ (a + H* ν)    d = φ (z + G ε)

and two segments, 2 outboard of 1, are joined by

    E = (I + C₁ J₂)⁻¹    w = E (c₁ - C₁ d₂)
    F = F₂ E F₁    C = C₂ + F₂ E C₁ F₂*    J = J₁ + F₁* J₂ E F₁
    c = c₂ + F₂ w    d = d₁ + F₁* (d₂ + J₂ w)

which is associative (``algorithms.parallel_joins``). It needs D > 0 of the links at which runs end,
seen by themselves, and no more. Closed segments, which end at a tip, have f_out = 0: J and d alone.
With the matrices known (``StarFactor``), a right-hand side (a, b, τ) takes vectors up and down
(``StarSolve``), or the articulated inertia of each link comes down (``outer_inertias``).
"""

from __future__ import annotations

from phistar.arrays import Array
from phistar.sweeps.parallel.array_ops import fold_arrays
from phistar.sweeps.parallel.join_tree import Joins, JoinTree, Links, Round
from phistar.sweeps.parallel.link_fields import LinkFields


class StarFactor:
    """The matrices of all segments, made round by round."""

    def __init__(self, fields: LinkFields, tree: JoinTree, inertia: Array) -> None:
        """Begin.

        Args:
            fields: The links.
            tree: Their segments.
            inertia: M of each link, (6, 6, links, samples).
        """
        self.fields, self.tree = fields, tree
        self.ops, self.algebra = fields.ops, fields.algebra
        self.inertia = inertia
        joins, samples = tree.size - tree.count, fields.samples
        d = fields.numbers.H.shape[0]
        xp = self.ops.xp
        self.dtype = xp.result_type(fields.p, inertia)

        def zeros(*shape: int) -> Array:
            return xp.zeros((*shape, samples), dtype=self.dtype)

        self.F, self.C, self.J = (zeros(6, 6, tree.size) for _ in range(3))
        self.loaded = zeros(6, 6, tree.count)
        self.G, self.D_inverse = zeros(6, d, tree.count), zeros(d, d, tree.count)
        self.E, self.EF, self.EC = (zeros(6, 6, joins) for _ in range(3))

    def put(self, name: str, index: Array, value: Array) -> None:
        """Store what some segments, links or joins have."""
        place = (..., index, slice(None))
        setattr(self, name, self.ops.assign(getattr(self, name), place, value))

    ARRAYS = ("F", "C", "J", "loaded", "G", "D_inverse", "E", "EF", "EC")

    def all_up(self) -> None:
        """All rounds."""
        fold_arrays(self.ops, self.tree.up, [(self, self.ARRAYS)], self.up)

    def up(self, each: Round) -> None:
        """One round."""
        for links, closed, last in each.links:
            if len(links.index):
                self._take_in(links, closed, last)
        for joins, closed in each.joins:
            if len(joins.index):
                self._join(joins, closed)

    def _take_in(self, links: Links, closed: bool, last: bool) -> None:
        take, mul, index = self.ops.take, self.algebra.matmul, links.index
        own = self.fields.at(index)
        M = take(self.inertia, index)
        if len(links.children):
            M = M + self.ops.sum_by(take(self.J, links.children), links.hung, len(index))
        if not last:
            M = M + take(self.J, links.next)
        H = own.numbers.H
        U = self.algebra.matmul_adjoint(M, H)
        D_inverse = own.joint_inertia(U).inverse
        G = mul(U, D_inverse)
        J = M - self.algebra.matmul_adjoint(G, U)
        moved = self.algebra.congruence_in(own.R, own.p, J)
        self.put("loaded", index, M)
        self.put("G", index, G)
        self.put("D_inverse", index, D_inverse)
        self.put("J", index, self.algebra.symmetric(moved))
        if closed:
            return
        eye = self.ops.xp.eye(6, dtype=H.dtype)[:, :, None, None]
        across = eye - self.algebra.adjoint_matmul(H, self.ops.xp.swapaxes(G, 0, 1))
        C = self.algebra.adjoint_matmul(H, mul(D_inverse, H))
        if not last:
            F2 = take(self.F, links.next)
            across = mul(F2, across)
            spread = self.algebra.matmul_adjoint(F2, H)
            C = self.algebra.matmul_adjoint(mul(spread, D_inverse), spread)
            C = take(self.C, links.next) + self.algebra.symmetric(C)
        self.put("F", index, self.algebra.columns_out(own.R, own.p, across))
        self.put("C", index, C)

    def _join(self, joins: Joins, closed: bool) -> None:
        take, mul, algebra = self.ops.take, self.algebra.matmul, self.algebra
        at = joins.number
        F1, C1 = take(self.F, joins.left), take(self.C, joins.left)
        J2 = take(self.J, joins.right)
        eye = self.ops.xp.eye(6, dtype=F1.dtype)[:, :, None, None]
        E = algebra.inverse(eye + mul(C1, J2))
        EF, EC = mul(E, F1), algebra.symmetric(mul(E, C1))
        J = algebra.adjoint_matmul(F1, mul(J2, EF))
        self.put("E", at, E)
        self.put("EF", at, EF)
        self.put("EC", at, EC)
        self.put("J", joins.index, take(self.J, joins.left) + algebra.symmetric(J))
        if closed:
            return
        F2 = take(self.F, joins.right)
        C = algebra.matmul_adjoint(mul(F2, EC), F2)
        self.put("F", joins.index, mul(F2, EF))
        self.put("C", joins.index, take(self.C, joins.right) + algebra.symmetric(C))

    def outer_inertias(self) -> Array:
        """Σ φ P⁺ φ* over the children of each link of the whole robot, (6, 6, links, samples)."""
        tree, take = self.tree, self.ops.take
        beyond = self.ops.xp.zeros((6, 6, tree.size, self.fields.samples), dtype=self.dtype)
        total = self.loaded - self.inertia

        def down(state: tuple[Array, Array], each: Round) -> tuple[Array, Array]:
            beyond, total = state
            for links, closed, last in each.links:
                if closed or not len(links.index):
                    continue
                here = (..., links.index, slice(None))
                outer = take(beyond, links.index)
                if last:
                    total = self.ops.assign(total, here, take(total, links.index) + outer)
                    continue
                more = self._through(links.next, outer)
                total = self.ops.assign(total, here, take(total, links.index) + more)
                beyond = self.ops.assign(beyond, (..., links.next, slice(None)), outer)
            for joins, closed in each.joins:
                if not len(joins.index):
                    continue
                inner = take(self.J, joins.right)
                if not closed:
                    outer = take(beyond, joins.index)
                    inner = inner + self._through(joins.right, outer)
                    beyond = self.ops.assign(beyond, (..., joins.right, slice(None)), outer)
                beyond = self.ops.assign(beyond, (..., joins.left, slice(None)), inner)
            return beyond, total

        return self.ops.fold(tree.down_alone, down, (beyond, total))[1]

    def _through(self, segments: Array, outer: Array) -> Array:
        """F* J (I + C J)⁻¹ F: an inertia beyond a segment as it is felt before it."""
        algebra, mul = self.algebra, self.algebra.matmul
        F, C = self.ops.take(self.F, segments), self.ops.take(self.C, segments)
        eye = self.ops.xp.eye(6, dtype=F.dtype)[:, :, None, None]
        felt = mul(outer, mul(algebra.inverse(eye + mul(C, outer)), F))
        return algebra.symmetric(algebra.adjoint_matmul(F, felt))


class StarSolve:
    """A right-hand side through the segments: vectors up with the matrices, then down.

    Attributes:
        acceleration: α of each link, (6, links, samples).
        entering: φ* α of its parent, the same shape.
        joint_acceleration: The rates' rates of its joint, (d, links, samples).
    """

    def __init__(self, factor: StarFactor, a: Array, b: Array, tau: Array) -> None:
        """Begin with motions a, forces b and joint forces τ of each link."""
        self.factor, self.ops, self.algebra = factor, factor.ops, factor.algebra
        fields, tree = factor.fields, factor.tree
        xp = self.ops.xp
        dtype = xp.result_type(factor.dtype, a, b, tau)
        samples = max(fields.samples, a.shape[-1], b.shape[-1], tau.shape[-1])
        self.a, self.b, self.tau = a, b, tau

        def zeros(*shape: int) -> Array:
            return xp.zeros((*shape, samples), dtype=dtype)

        self.c, self.d = zeros(6, tree.size), zeros(6, tree.size)
        self.w = zeros(6, tree.size - tree.count)
        self.nu = zeros(fields.numbers.H.shape[0], tree.count)
        self.alpha_in, self.f_out = zeros(6, tree.size), zeros(6, tree.size)
        self.acceleration, self.entering = zeros(6, tree.count), zeros(6, tree.count)
        self.joint_acceleration = zeros(fields.numbers.H.shape[0], tree.count)

    def put(self, name: str, index: Array, value: Array) -> None:
        """Store what some segments, links or joins have."""
        place = (..., index, slice(None))
        setattr(self, name, self.ops.assign(getattr(self, name), place, value))

    def all_up_and_down(self, with_factor: bool) -> None:
        """All rounds, the way up together with those of the matrices unless these are done."""
        tree, factor = self.factor.tree, self.factor

        def both_up(each: Round) -> None:
            factor.up(each)
            self.up(each)

        own = (self, ("c", "d", "w", "nu"))
        if with_factor:
            fold_arrays(self.ops, tree.up, [(factor, factor.ARRAYS), own], both_up)
        else:
            fold_arrays(self.ops, tree.up, [own], self.up)
        names = ("alpha_in", "f_out", "acceleration", "entering", "joint_acceleration")
        fold_arrays(self.ops, tree.down, [(self, names)], self.down)

    def up(self, each: Round) -> None:
        """One round, after that of the matrices."""
        for links, closed, last in each.links:
            if len(links.index):
                self._take_in(links, closed, last)
        for joins, closed in each.joins:
            if len(joins.index):
                self._join(joins, closed)

    def _take_in(self, links: Links, closed: bool, last: bool) -> None:
        take, times, index = self.ops.take, self.algebra.times, links.index
        factor = self.factor
        own = factor.fields.at(index)
        a, b = take(self._wide(self.a), index), take(self._wide(self.b), index)
        if len(links.children):
            b = b + self.ops.sum_by(take(self.d, links.children), links.hung, len(index))
        if not last:
            b = b + take(self.d, links.next)
        M, D_inverse = take(factor.loaded, index), take(factor.D_inverse, index)
        tau = take(self._wide(self.tau), index)
        z = b + times(M, a)
        innovation = tau - own.H_times(z)
        nu = times(D_inverse, innovation)
        leaving = z + times(take(factor.G, index), innovation)
        self.put("nu", index, nu)
        self.put("d", index, self.algebra.force_in(own.R, own.p, leaving))
        if closed:
            return
        free = a + own.Ht_times(nu)
        if not last:
            free = take(self.c, links.next) + times(take(factor.F, links.next), free)
        self.put("c", index, free)

    def _wide(self, x: Array) -> Array:
        """Over all links."""
        return self.ops.xp.broadcast_to(x, (x.shape[0], self.factor.tree.count, x.shape[-1]))

    def _join(self, joins: Joins, closed: bool) -> None:
        take, times, factor = self.ops.take, self.algebra.times, self.factor
        at = joins.number
        d2 = take(self.d, joins.right)
        w = times(take(factor.E, at), take(self.c, joins.left)) - times(take(factor.EC, at), d2)
        inner = d2 + times(take(factor.J, joins.right), w)
        d = self.algebra.adjoint_times(take(factor.F, joins.left), inner)
        self.put("w", at, w)
        self.put("d", joins.index, take(self.d, joins.left) + d)
        if not closed:
            c = times(take(factor.F, joins.right), w)
            self.put("c", joins.index, take(self.c, joins.right) + c)

    def down(self, each: Round) -> None:
        """One round."""
        for joins, closed in each.joins:
            if len(joins.index):
                self._split(joins, closed)
        for links, closed, last in each.links:
            if len(links.index):
                self._let_out(links, closed, last)

    def _split(self, joins: Joins, closed: bool) -> None:
        take, times, factor = self.ops.take, self.algebra.times, self.factor
        at = joins.number
        alpha = take(self.alpha_in, joins.index)
        middle = times(take(factor.EF, at), alpha) + take(self.w, at)
        force = take(self.d, joins.right)
        if not closed:
            f_out = take(self.f_out, joins.index)
            carried = self.algebra.adjoint_times(take(factor.F, joins.right), f_out)
            middle = middle - times(take(factor.EC, at), carried)
            force = force + carried
            self.put("f_out", joins.right, f_out)
        self.put("alpha_in", joins.left, alpha)
        self.put("f_out", joins.left, force + times(take(factor.J, joins.right), middle))
        self.put("alpha_in", joins.right, middle)

    def _let_out(self, links: Links, closed: bool, last: bool) -> None:
        take, index, factor = self.ops.take, links.index, self.factor
        own = factor.fields.at(index)
        entering = self.algebra.motion_out(own.R, own.p, take(self.alpha_in, index))
        rates = take(self.nu, index)
        rates = rates - self.algebra.adjoint_times(take(factor.G, index), entering)
        if not closed:
            force = take(self.f_out, index)
            if not last:
                self.put("f_out", links.next, force)
                force = self.algebra.adjoint_times(take(factor.F, links.next), force)
            held = self.algebra.times(take(factor.D_inverse, index), own.H_times(force))
            rates = rates - held
        alpha = entering + take(self._wide(self.a), index) + own.Ht_times(rates)
        self.put("entering", index, entering)
        self.put("joint_acceleration", index, rates)
        self.put("acceleration", index, alpha)
        if not last:
            self.put("alpha_in", links.next, alpha)
        if len(links.children):
            self.put("alpha_in", links.children, take(alpha, links.hung))

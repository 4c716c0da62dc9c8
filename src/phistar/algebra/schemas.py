# SPDX-License-Identifier: BSD-3-Clause
"""Rules of the calculus: identities of cross products with rigid motion, for any vectors x, y, f.

Derivatives bring brackets, block diagonals made from vectors. How these pass through φ is all that
proofs about derivatives need: a bracket between two φ telescopes, because rigid motion keeps cross
products, crm[Eφ*x]Eφ* = Eφ*crm[x].
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from phistar.algebra.ir import Bracket, Expr, I, Q, Symbol, crf, crm, zero
from phistar.algebra.patterns import argument
from phistar.algebra.rows import Bindings, Identity, d, e, f, x, y
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE
from phistar.algebra.symbols import (
    D,
    D_root,
    D_root_dot,
    E_phi,
    G,
    H,
    K,
    LyapunovIn,
    M_hat,
    P,
    P_dot,
    definition_of,
    entry,
    gravity,
    phi,
    psi,
)
from phistar.algebra.traverse import nodes, open_lets
from phistar.algebra.words import Word
from phistar.refs import JR93, JR95

MARKS = ("dv", "dq", "dq_second")
"""Names of directions: swaps bring them to the end of a word, the later one of two last."""


def _mark(word: Word) -> int:
    names = {node.name for node in nodes(word) if isinstance(node, Symbol)}
    return max((MARKS.index(name) + 1 for name in names.intersection(MARKS)), default=0)


def _size(word: Word) -> int:
    return sum(1 + (_size(argument(a)) if isinstance(a, Bracket) else 0) for a in word)


def _leaves(inside: Symbol, tail: Symbol) -> Callable[[Bindings], bool]:
    """Whether the vector in a bracket and that after it change places.

    Marks go to the end; without marks the longer word goes into the bracket, unless it begins with
    a bracket itself: telescoping makes such words, and would go round in a circle with this.
    """

    def when(found: Bindings) -> bool:
        inner, rest = found[inside], found[tail]
        if _mark(inner) != _mark(rest):
            return _mark(inner) > _mark(rest)
        if isinstance(rest[0], Bracket):
            return False
        return (_size(inner), str(inner)) < (_size(rest), str(rest))

    return when


_SIGN = JR93.eq("1.6")

SWAPS = (
    Identity(
        "swap_motions",
        crm(x) @ y,
        -crm(y) @ x,
        "x × y = -y × x",
        _SIGN,
        when=_leaves(x, y),
    ),
    Identity("swap_force", crf(x) @ f, -Q(f) @ x, "definition of Q", _SIGN, when=_leaves(x, f)),
    Identity("swap_motion", Q(f) @ x, -crf(x) @ f, "definition of Q", _SIGN, when=_leaves(f, x)),
    Identity("parallel", crm(x) @ x, zero(MOTION, ONE), "x × x = 0", _SIGN),
)
"""A vector in a bracket and the vector that the bracket acts on change places."""


def _passed(vector: Expr) -> Expr:
    """φ*crm[x]φ*, telescoped."""
    whole = crm(phi.T @ vector)
    return whole @ phi.T - phi.T @ whole + phi.T @ crm(vector)


def _carried(force: Expr) -> Expr:
    """φQ[g]φ*, telescoped."""
    whole = Q(phi @ force)
    return phi @ whole + whole @ phi.T - whole


RIGID = (
    Identity(
        "cross_shift",
        E_phi.T @ crm(x),
        crm(E_phi.T @ x) @ E_phi.T,
        "rigid motion keeps cross products",
        JR95.eq("6.9"),
        when=lambda found: found[x] != (phi.T, gravity),
    ),
    Identity(
        "telescope_motion",
        phi.T @ crm(x) @ phi.T,
        _passed(x),
        "crm[φ*x] in φ*(I - Eφ*) = I: what a bracket leaves on its way out",
        JR95.eq("6.7"),
    ),
    Identity(
        "telescope_force",
        phi @ Q(f) @ phi.T,
        _carried(f),
        "Q[φf] solves Q[φf] = Q[f] + EφQ[φf]Eφ*",
        JR93.eq("A.1"),
    ),
)
"""How brackets pass through rigid motion."""

ROOT = (
    Identity(
        "ground_shift",
        crm(gravity) @ E_phi.T,
        zero(MOTION, MOTION),
        "γ is a motion of the roots, and these have no parent",
    ),
    Identity(
        "ground_motion",
        crm(gravity) @ phi.T,
        crm(gravity),
        "φ* = I + Eφ*φ*, and γ is a motion of the roots",
    ),
    Identity("ground_at_root", crm(phi.T @ x) @ gravity, crm(x) @ gravity, "at the roots φ*x is x"),
    Identity(
        "ground_commutes",
        crm(phi.T @ gravity) @ phi.T,
        phi.T @ crm(phi.T @ gravity),
        "φ*γ is one motion of all space, so that rigid motion keeps it",
    ),
    Identity(
        "ground_passes",
        crm(phi.T @ gravity) @ E_phi.T,
        E_phi.T @ crm(phi.T @ gravity),
        "φ*γ is one motion of all space, so that rigid motion keeps it",
    ),
)
"""Gravity, a motion of the roots alone."""

GYROSCOPIC = (
    Identity(
        "gyroscopic_brackets",
        M_hat,
        open_lets(definition_of(M_hat)),
        "definition of M̂",
        JR93.eq("2.8"),
    ),
)
"""M̂ unfolded into brackets, where its velocities can be seen."""

JACOBI = (
    Identity(
        "jacobi_motion",
        crm(crm(x) @ y),
        crm(x) @ crm(y) - crm(y) @ crm(x),
        "Jacobi's identity for motions",
        JR95.eq("5.5"),
    ),
    Identity(
        "jacobi_force",
        Q(crf(x) @ f),
        crf(x) @ Q(f) - Q(f) @ crm(x),
        "Jacobi's identity for forces",
        JR93.eq("1.6"),
    ),
    Identity(
        "jacobi_swapped",
        Q(Q(f) @ x),
        Q(f) @ crm(x) - crf(x) @ Q(f),
        "Jacobi's identity for forces, and the definition of Q",
        JR93.eq("1.6"),
    ),
)
"""Brackets of brackets."""


def _greater(first: Symbol, second: Symbol) -> Callable[[Bindings], bool]:
    """Whether one vector is a longer word than another."""

    def when(found: Bindings) -> bool:
        one, other = found[first], found[second]
        return (_size(one), str(one)) > (_size(other), str(other))

    return when


def _telescoped(one: Expr, other: Expr) -> Expr:
    """φ*(crm[φ*x]crm[y] + crm[x]crm[φ*y] - crm[x]crm[y])(φ* - I), telescoped as a whole."""
    whole = crm(phi.T @ one) @ crm(phi.T @ other)
    return whole @ phi.T - phi.T @ whole


_STEP = phi.T - I
_BOTH = Q(phi @ f) @ crm(phi.T @ x)
_LEFT = crm(x) @ crm(x) + crm(crm(phi.T @ x) @ x)

TWOFOLD = (
    Identity(
        "order_motions",
        phi.T @ crm(x) @ crm(y) @ phi.T,
        phi.T @ crm(y) @ crm(x) @ phi.T + _passed(crm(x) @ y),
        "crm[x]crm[y] - crm[y]crm[x] = crm[x × y], telescoped",
        JR95.eq("6.7"),
        when=_greater(y, x),
    ),
    Identity(
        "telescope_motions",
        phi.T @ crm(phi.T @ x) @ crm(y) @ phi.T,
        phi.T @ crm(phi.T @ x) @ crm(y)
        + _telescoped(x, y)
        - phi.T @ crm(x) @ (crm(phi.T @ y) - crm(y)) @ _STEP,
        "the product of two brackets telescopes as one does",
        JR95.eq("6.7"),
        when=_greater(x, y),
    ),
    Identity(
        "telescope_square",
        phi.T @ crm(phi.T @ x) @ crm(x) @ phi.T,
        phi.T @ crm(phi.T @ x) @ crm(x)
        + Fraction(1, 2)
        * (_telescoped(x, x) + phi.T @ (crm(x) @ crm(x) + crm(crm(phi.T @ x) @ x)) @ _STEP),
        "the same for one vector twice",
        JR95.eq("6.7"),
    ),
    Identity(
        "order_force",
        phi @ crf(x) @ Q(f) @ phi.T,
        phi @ Q(f) @ crm(x) @ phi.T + _carried(crf(x) @ f),
        "crf[x]Q[f] - Q[f]crm[x] = Q[crf[x]f], telescoped",
        JR93.eq("A.1"),
        lone=True,
    ),
    Identity(
        "telescope_force_motion",
        phi @ Q(f) @ crm(phi.T @ x) @ phi.T,
        phi @ _BOTH + _BOTH @ phi.T - _BOTH + (phi - I) @ Q(phi @ f) @ crm(x) @ _STEP,
        "Q[φf]crm[φ*x] telescopes as Q[φf] does",
        JR93.eq("A.1"),
        lone=True,
    ),
)
"""Products of two brackets between rigid motions."""

ONE_DOF = (
    Identity(
        "one_axis",
        H @ crf(H.T @ d),
        zero(JOINT, FORCE),
        "a joint with one axis does not turn it: h × h = 0",
        JR93.eq("A.7"),
        frozenset({"one_dof"}),
    ),
    Identity(
        "one_axis_force",
        H @ Q(f) @ H.T,
        zero(JOINT, JOINT),
        "a joint with one axis does not turn what it feels: h × h = 0",
        JR93.eq("A.7"),
        frozenset({"one_dof"}),
    ),
    Identity(
        "one_axis_commutes",
        crm(H.T @ d) @ crm(H.T @ e),
        crm(H.T @ e) @ crm(H.T @ d),
        "crm[x]crm[y] - crm[y]crm[x] = crm[x × y], and h × h = 0",
        JR93.eq("A.7"),
        frozenset({"one_dof"}),
        _greater(d, e),
    ),
)
"""Joints with one axis each, as in the papers."""

_CLOSED = frozenset({"subalgebra", "unmotored"})

SUBALGEBRA = (
    Identity(
        "closed_axes",
        H @ crf(H.T @ d) @ G @ H,
        H @ crf(H.T @ d),
        "crm[H*d]H* is in the range of H*, on which H*G* is the identity",
        needs=_CLOSED,
    ),
    Identity(
        "closed_inertia",
        H @ crf(H.T @ d) @ P,
        H @ crf(H.T @ d) @ G @ D @ G.T,
        "the same, and HP = DG*",
        needs=_CLOSED,
    ),
)
"""Joints whose motions are closed under the cross product, as those of all lower pairs are."""

_rate = entry(P_dot).definition
assert isinstance(_rate, LyapunovIn)
_moved = _rate.source
_KH = K @ H

RATES = (
    Identity(
        "rate_recursion",
        E_phi @ P_dot @ E_phi.T,
        P_dot - _moved + E_phi @ P_dot @ _KH.T + _KH @ P_dot @ E_phi.T - _KH @ P_dot @ _KH.T,
        "the recursion of Ṗ, Eψ = Eφ - KH",
        JR95.eq("6.4"),
    ),
    Identity(
        "rate_split",
        psi @ P_dot,
        psi @ _moved @ psi.T - P_dot @ psi.T + P_dot,
        "the recursion of Ṗ, times ψ and ψ*",
        JR95.eq("6.4"),
        lone=True,
    ),
    Identity(
        "rate_mixed",
        psi @ P_dot @ _KH.T @ phi.T,
        psi @ _moved @ phi.T - psi @ P_dot - P_dot @ phi.T + P_dot + P_dot @ _KH.T @ phi.T,
        "the recursion of Ṗ, times ψ and φ*",
        JR95.eq("6.4"),
    ),
    Identity(
        "rate_full",
        phi @ _KH @ P_dot @ _KH.T @ phi.T,
        phi @ P_dot
        + P_dot @ phi.T
        - P_dot
        - phi @ _moved @ phi.T
        + phi @ _KH @ P_dot @ (phi.T - I)
        + (phi - I) @ P_dot @ _KH.T @ phi.T,
        "the recursion of Ṗ, times φ and φ*",
        JR95.eq("6.4"),
    ),
)
"""The rate of the articulated inertia."""

_change = H @ P_dot @ H.T

ROOT_RATES = (
    Identity(
        "root_rate",
        D_root @ D_root_dot.T,
        _change - D_root_dot @ D_root.T,
        "√D √D* = D, differentiated",
        JR95.at("Identity 6.1"),
        lone=True,
    ),
)
"""The rate of the root of D."""

ONE_DOF_ROOTS = (
    Identity(
        "root_rate_one_axis",
        D_root_dot,
        Fraction(1, 2) * _change @ D_root.T.inv,
        "numbers commute: d√D = ½ dD / √D",
        JR95.at("Identity 6.1"),
        frozenset({"one_dof"}),
    ),
)
"""The same where D has one number a joint."""

CALCULUS = (*SWAPS, *RIGID, *ROOT, *GYROSCOPIC)
"""What proofs about derivatives use."""

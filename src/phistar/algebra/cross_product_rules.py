# SPDX-License-Identifier: BSD-3-Clause
"""Rules of the calculus: identities of cross products with rigid motion, for any vectors x, y, f.

Derivatives bring brackets, block diagonals made from vectors. Proofs about derivatives need only
how brackets pass through φ: a bracket between two φ telescopes, because rigid motion preserves
cross products, crm[Eφ*x]Eφ* = Eφ*crm[x].
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from phistar.algebra.ir import Bracket, Expr, I, Q, Symbol, crf, crm, zero
from phistar.algebra.matching import bracket_argument
from phistar.algebra.rules import Bindings, Identity, d, e, f, x, y
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
    gravity,
    phi,
    psi,
    symbol_entry,
)
from phistar.algebra.traverse import nodes, open_lets
from phistar.algebra.words import Word
from phistar.refs import JR93, JR95

DIRECTION_NAMES = ("dv", "dq", "dq_second")
"""Names of directions: swaps move them to the end of a word, the later one last."""


def _direction_rank(word: Word) -> int:
    names = {node.name for node in nodes(word) if isinstance(node, Symbol)}
    return max(
        (DIRECTION_NAMES.index(name) + 1 for name in names.intersection(DIRECTION_NAMES)), default=0
    )


def _size(word: Word) -> int:
    return sum(1 + (_size(bracket_argument(a)) if isinstance(a, Bracket) else 0) for a in word)


def _should_swap(inside: Symbol, tail: Symbol) -> Callable[[Bindings], bool]:
    """Whether to exchange the vector in a bracket and the one after it.

    Directions go to the end; without them the longer word goes into the bracket, unless it begins
    with a bracket: telescoping makes such words, and the two rules would loop.
    """

    def when(bindings: Bindings) -> bool:
        inner, outer = bindings[inside], bindings[tail]
        if _direction_rank(inner) != _direction_rank(outer):
            return _direction_rank(inner) > _direction_rank(outer)
        if isinstance(outer[0], Bracket):
            return False
        return (_size(inner), str(inner)) < (_size(outer), str(outer))

    return when


_SIGN = JR93.eq("1.6")

SWAPS = (
    Identity(
        "swap_motions", crm(x) @ y, -crm(y) @ x, "x × y = -y × x", _SIGN, when=_should_swap(x, y)
    ),
    Identity(
        "swap_force", crf(x) @ f, -Q(f) @ x, "definition of Q", _SIGN, when=_should_swap(x, f)
    ),
    Identity(
        "swap_motion", Q(f) @ x, -crf(x) @ f, "definition of Q", _SIGN, when=_should_swap(f, x)
    ),
    Identity("parallel", crm(x) @ x, zero(MOTION, ONE), "x × x = 0", _SIGN),
)
"""Exchange of the vector in a bracket with the vector that the bracket acts on."""


def _telescoped_motion(vector: Expr) -> Expr:
    """φ*crm[x]φ*, telescoped."""
    bracket = crm(phi.T @ vector)
    return bracket @ phi.T - phi.T @ bracket + phi.T @ crm(vector)


def _telescoped_force(force: Expr) -> Expr:
    """φQ[g]φ*, telescoped."""
    bracket = Q(phi @ force)
    return phi @ bracket + bracket @ phi.T - bracket


RIGID_SHIFTS = (
    Identity(
        "cross_shift",
        E_phi.T @ crm(x),
        crm(E_phi.T @ x) @ E_phi.T,
        "rigid motion preserves cross products",
        JR95.eq("6.9"),
        when=lambda bindings: bindings[x] != (phi.T, gravity),
    ),
    Identity(
        "telescope_motion",
        phi.T @ crm(x) @ phi.T,
        _telescoped_motion(x),
        "crm[φ*x] in φ*(I - Eφ*) = I: what remains of a bracket moved outward",
        JR95.eq("6.7"),
    ),
    Identity(
        "telescope_force",
        phi @ Q(f) @ phi.T,
        _telescoped_force(f),
        "Q[φf] solves Q[φf] = Q[f] + EφQ[φf]Eφ*",
        JR93.eq("A.1"),
    ),
)
"""Brackets and rigid motion."""

GRAVITY_AT_ROOTS = (
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
        "φ*γ is one motion of all space, which rigid motion preserves",
    ),
    Identity(
        "ground_passes",
        crm(phi.T @ gravity) @ E_phi.T,
        E_phi.T @ crm(phi.T @ gravity),
        "φ*γ is one motion of all space, which rigid motion preserves",
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
"""M̂ unfolded into brackets of its velocities."""

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


def _is_longer(first: Symbol, second: Symbol) -> Callable[[Bindings], bool]:
    """Whether one vector is a longer word than another."""

    def when(bindings: Bindings) -> bool:
        one, other = bindings[first], bindings[second]
        return (_size(one), str(one)) > (_size(other), str(other))

    return when


def _telescoped_pair(one: Expr, other: Expr) -> Expr:
    """φ*(crm[φ*x]crm[y] + crm[x]crm[φ*y] - crm[x]crm[y])(φ* - I), telescoped together."""
    pair = crm(phi.T @ one) @ crm(phi.T @ other)
    return pair @ phi.T - phi.T @ pair


_STEP = phi.T - I
_BOTH = Q(phi @ f) @ crm(phi.T @ x)

BRACKET_PAIRS = (
    Identity(
        "order_motions",
        phi.T @ crm(x) @ crm(y) @ phi.T,
        phi.T @ crm(y) @ crm(x) @ phi.T + _telescoped_motion(crm(x) @ y),
        "crm[x]crm[y] - crm[y]crm[x] = crm[x × y], telescoped",
        JR95.eq("6.7"),
        when=_is_longer(y, x),
    ),
    Identity(
        "telescope_motions",
        phi.T @ crm(phi.T @ x) @ crm(y) @ phi.T,
        phi.T @ crm(phi.T @ x) @ crm(y)
        + _telescoped_pair(x, y)
        - phi.T @ crm(x) @ (crm(phi.T @ y) - crm(y)) @ _STEP,
        "the product of two brackets telescopes as one does",
        JR95.eq("6.7"),
        when=_is_longer(x, y),
    ),
    Identity(
        "telescope_square",
        phi.T @ crm(phi.T @ x) @ crm(x) @ phi.T,
        phi.T @ crm(phi.T @ x) @ crm(x)
        + Fraction(1, 2)
        * (_telescoped_pair(x, x) + phi.T @ (crm(x) @ crm(x) + crm(crm(phi.T @ x) @ x)) @ _STEP),
        "the same for one vector twice",
        JR95.eq("6.7"),
    ),
    Identity(
        "order_force",
        phi @ crf(x) @ Q(f) @ phi.T,
        phi @ Q(f) @ crm(x) @ phi.T + _telescoped_force(crf(x) @ f),
        "crf[x]Q[f] - Q[f]crm[x] = Q[crf[x]f], telescoped",
        JR93.eq("A.1"),
        one_way=True,
    ),
    Identity(
        "telescope_force_motion",
        phi @ Q(f) @ crm(phi.T @ x) @ phi.T,
        phi @ _BOTH + _BOTH @ phi.T - _BOTH + (phi - I) @ Q(phi @ f) @ crm(x) @ _STEP,
        "Q[φf]crm[φ*x] telescopes as Q[φf] does",
        JR93.eq("A.1"),
        one_way=True,
    ),
)
"""Products of two brackets between rigid motions."""

ONE_DOF = (
    Identity(
        "one_axis",
        H @ crf(H.T @ d),
        zero(JOINT, FORCE),
        "a joint with one axis does not rotate it: h × h = 0",
        JR93.eq("A.7"),
        frozenset({"one_dof"}),
    ),
    Identity(
        "one_axis_force",
        H @ Q(f) @ H.T,
        zero(JOINT, JOINT),
        "a joint with one axis does not rotate its own force: h × h = 0",
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
        _is_longer(d, e),
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

_rate = symbol_entry(P_dot).definition
assert isinstance(_rate, LyapunovIn)
_source = _rate.source
_KH = K @ H

ARTICULATED_RATES = (
    Identity(
        "rate_recursion",
        E_phi @ P_dot @ E_phi.T,
        P_dot - _source + E_phi @ P_dot @ _KH.T + _KH @ P_dot @ E_phi.T - _KH @ P_dot @ _KH.T,
        "the recursion of Ṗ, Eψ = Eφ - KH",
        JR95.eq("6.4"),
    ),
    Identity(
        "rate_split",
        psi @ P_dot,
        psi @ _source @ psi.T - P_dot @ psi.T + P_dot,
        "the recursion of Ṗ, times ψ and ψ*",
        JR95.eq("6.4"),
        one_way=True,
    ),
    Identity(
        "rate_mixed",
        psi @ P_dot @ _KH.T @ phi.T,
        psi @ _source @ phi.T - psi @ P_dot - P_dot @ phi.T + P_dot + P_dot @ _KH.T @ phi.T,
        "the recursion of Ṗ, times ψ and φ*",
        JR95.eq("6.4"),
    ),
    Identity(
        "rate_full",
        phi @ _KH @ P_dot @ _KH.T @ phi.T,
        phi @ P_dot
        + P_dot @ phi.T
        - P_dot
        - phi @ _source @ phi.T
        + phi @ _KH @ P_dot @ (phi.T - I)
        + (phi - I) @ P_dot @ _KH.T @ phi.T,
        "the recursion of Ṗ, times φ and φ*",
        JR95.eq("6.4"),
    ),
)
"""The rate of the articulated inertia."""

_change = H @ P_dot @ H.T

SQUARE_ROOT_RATES = (
    Identity(
        "root_rate",
        D_root @ D_root_dot.T,
        _change - D_root_dot @ D_root.T,
        "√D √D* = D, differentiated",
        JR95.at("Identity 6.1"),
        one_way=True,
    ),
)
"""The rate of the root of D."""

ONE_DOF_SQUARE_ROOT_RATES = (
    Identity(
        "root_rate_one_axis",
        D_root_dot,
        Fraction(1, 2) * _change @ D_root.T.inv,
        "numbers commute: d√D = ½ dD / √D",
        JR95.at("Identity 6.1"),
        frozenset({"one_dof"}),
    ),
)
"""The same where D has one number per joint."""

CALCULUS = (*SWAPS, *RIGID_SHIFTS, *GRAVITY_AT_ROOTS, *GYROSCOPIC)
"""Rows for proofs about derivatives."""

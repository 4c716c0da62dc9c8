# SPDX-License-Identifier: BSD-3-Clause
"""The composite-body form of the mass matrix: one block per link and ancestor, none elsewhere."""

from phistar.algebra.ir import identity
from phistar.algebra.phases import row
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import FORCE
from phistar.algebra.symbols import A, E_phi, H, M, composite, mass_matrix, phi
from phistar.algorithms.catalogue import algorithm
from phistar.refs import FO00, RK92

_R = (row("composite_recursion"),)
_strict = phi - identity(FORCE)


@algorithm
def composite_inertia() -> Theorem:
    """R = M + Σ φRφ* over the children."""
    return Theorem(
        "composite_inertia",
        definition=M + E_phi @ composite @ E_phi.T,
        result=composite,
        doc="the inertia of a link and all beyond it, joints locked",
        ref=FO00.eq("9"),
        rules=_R,
    )


@algorithm
def newton_euler_composites() -> Theorem:
    """φMφ* = R + φ̃R + Rφ̃*."""
    return Theorem(
        "newton_euler_composites",
        definition=phi @ M @ phi.T,
        result=composite + _strict @ composite + composite @ _strict.T,
        doc="φMφ* is diagonal, strictly lower and strictly upper, by the composite inertias",
        ref=RK92.at("Identity 1"),
        rules=_R,
    )


@algorithm
def composite_body() -> Theorem:
    """𝓜 = HRH* + Hφ̃RH* + HRφ̃*H* + A."""
    lower = H @ _strict @ composite @ H.T
    return Theorem(
        "composite_body",
        definition=mass_matrix,
        result=H @ composite @ H.T + lower + lower.T + A,
        doc="blocks of the mass matrix: R(k)H*(k) moved inward to each ancestor, zero elsewhere",
        ref=FO00.eq("10"),
        rules=_R,
    )

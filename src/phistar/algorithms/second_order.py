# SPDX-License-Identifier: BSD-3-Clause
"""Second derivatives of joint forces: their symmetry, and the deviation from it.

Directions δ and ε are tangent vectors, each joint's in its own axes. Motions of a joint with
several axes do not commute, nor do the derivatives along them: these differ by the derivative
along the cross product of the two motions, which is a motion of the joint again.
"""

from phistar.algebra.calculus import derivative
from phistar.algebra.cross_product_rules import BRACKET_PAIRS, CALCULUS, JACOBI
from phistar.algebra.ir import Expr, crm, zero
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import JOINT, ONE
from phistar.algebra.symbols import G, H, dq, v, vector
from phistar.algorithms.catalogue import register_theorem
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.linearized import A_D, B_D, dv
from phistar.refs import JR93

dq_second = vector("dq_second", JOINT, "ε", "Another direction.", r"\epsilon")

_B = in_motion(B_D)
_RULES = (*CALCULUS, *BRACKET_PAIRS, *JACOBI)


def _asymmetry(gradient: Expr) -> Expr:
    """The derivative along ε of that along δ, minus the reverse."""
    first = derivative(gradient @ dq, {"q": dq_second})
    return first - derivative(gradient @ dq_second, {"q": dq})


register_theorem(
    Theorem(
        "second_order_torsion",
        _asymmetry(_B),
        -_B @ G.T @ crm(H.T @ dq) @ H.T @ dq_second,
        "second derivatives differ by the first along the cross product of the two motions",
        JR93.at("Lemma 3.1"),
        _RULES,
        frozenset({"subalgebra", "unmotored"}),
    )
)
register_theorem(
    Theorem(
        "second_order_symmetry",
        _asymmetry(_B),
        zero(JOINT, ONE),
        "second derivatives are symmetric if every joint has one axis",
        JR93.at("Lemma 3.1"),
        _RULES,
        frozenset({"one_dof"}),
    )
)
register_theorem(
    Theorem(
        "second_order_mixed",
        derivative(_B @ dq, {v: dv}),
        derivative(A_D @ dv, {"q": dq}),
        "derivatives with respect to velocity and configuration commute",
        JR93.at("Lemma 3.1"),
        _RULES,
    )
)

# SPDX-License-Identifier: BSD-3-Clause
"""How expressions read as text and as LaTeX: the exact string of each."""

from fractions import Fraction

import pytest

from phistar.algebra.ir import Expr, I, Q, crf, crm, identity, let, symbol, zero
from phistar.algebra.printing import to_latex, to_text
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE
from phistar.algebra.symbols import A, D, E_phi, G, H, K, M, P, phi, psi

x = symbol("x", MOTION, ONE)
tip = symbol("tip_force", FORCE, ONE)
half = Fraction(1, 2)

TABLE: list[tuple[Expr, str, str]] = [
    (H @ phi @ M @ phi.T @ H.T, "H φ M φ* H*", r"H\,\phi\,M\,\phi^*\,H^*"),
    (D.inv @ H @ psi, "D⁻¹ H ψ", r"D^{-1}\,H\,\psi"),
    (psi.T.inv, "ψ⁻*", r"\psi^{-*}"),
    (psi.inv.T, "ψ⁻*", r"\psi^{-*}"),
    (E_phi.T, "Eφ*", r"\mathcal{E}_\phi^*"),
    (H @ P @ H.T + A, "H P H* + A", r"H\,P\,H^* + A"),
    ((I - E_phi).inv, "(I - Eφ)⁻¹", r"(I - \mathcal{E}_\phi)^{-1}"),
    ((I - E_phi).inv.T, "(I - Eφ*)⁻¹", r"(I - \mathcal{E}_\phi^*)^{-1}"),
    ((H @ P @ H.T).inv, "(H P H*)⁻¹", r"(H\,P\,H^*)^{-1}"),
    (
        (I - H @ psi @ K) @ D @ (I - H @ psi @ K).T,
        "(I - H ψ K) D (I - K* ψ* H*)",
        r"(I - H\,\psi\,K)\,D\,(I - K^*\,\psi^*\,H^*)",
    ),
    (
        H @ (phi - psi @ (I + K @ H)) @ G,
        "H (φ - ψ (I + K H)) G",
        r"H\,(\phi - \psi\,(I + K\,H))\,G",
    ),
    (-phi, "-φ", r"-\phi"),
    (-phi - psi, "-φ - ψ", r"-\phi - \psi"),
    (phi @ (-psi - I), "φ (-ψ - I)", r"\phi\,(-\psi - I)"),
    ((-phi) @ psi, "-φ ψ", r"-\phi\,\psi"),
    (
        2 * phi - half * psi @ E_phi,
        "2 φ - 1/2 ψ Eφ",
        r"2 \phi - \tfrac{1}{2}\psi\,\mathcal{E}_\phi",
    ),
    (2 * phi - half * psi, "2 φ - 1/2 ψ", r"2 \phi - \tfrac{1}{2}\psi"),
    (H @ (half * phi + 3 * psi), "H (1/2 φ + 3 ψ)", r"H\,(\tfrac{1}{2}\phi + 3 \psi)"),
    ((2 * D).inv, "1/2 D⁻¹", r"\tfrac{1}{2}D^{-1}"),
    (2 * identity(JOINT), "2 I", "2 I"),
    (identity(MOTION), "I", "I"),
    (zero(JOINT, FORCE), "0", "0"),
    (crm(x), "crm[x]", r"\mathrm{crm}[x]"),
    (crm(x).T, "-crf[x]", r"-\mathrm{crf}[x]"),
    (
        crf(phi.T @ H.T @ H @ M @ x) @ M,
        "crf[φ* H* H M x] M",
        r"\mathrm{crf}[\phi^*\,H^*\,H\,M\,x]\,M",
    ),
    (
        Q(phi @ (M + P) @ x).inv,
        "Q[φ (M + P) x]⁻¹",
        r"\mathrm{Q}[\phi\,(M + P)\,x]^{-1}",
    ),
    (crm(x) @ (I - psi.T), "crm[x] (I - ψ*)", r"\mathrm{crm}[x]\,(I - \psi^*)"),
    (phi @ tip, "φ tip_force", r"\phi\,\mathrm{tip\_force}"),
    (H @ let("V", psi @ P + P), "H V", r"H\,V"),
    (let("bias", psi @ P).T, "bias*", r"\mathrm{bias}^*"),
    (let("V", psi).inv, "V⁻¹", "V^{-1}"),
]


@pytest.mark.parametrize(("expr", "text", "latex"), TABLE, ids=[row[1] for row in TABLE])
def test_printed_forms(expr: Expr, text: str, latex: str) -> None:
    """An expression prints exactly so, with the parentheses it needs and no others."""
    assert to_text(expr) == text
    assert to_latex(expr) == latex
    assert repr(expr) == text


def test_different_expressions_print_differently() -> None:
    """Parentheses tell apart what differs only in its tree."""
    trees = [
        phi @ psi + E_phi,
        phi @ (psi + E_phi),
        (phi @ psi).inv,
        phi @ psi.inv,
        (phi + psi).inv,
        phi + psi.inv,
        (phi + psi).T,
        phi + psi.T.T,
        phi - (psi - E_phi),
        phi - psi - E_phi,
    ]
    texts = {to_text(tree) for tree in trees}
    assert len(texts) == len(set(trees))

# SPDX-License-Identifier: BSD-3-Clause
"""The spatial operators, each with its definition, its meaning and its place in the papers.

Base operators (H, M, E_phi, A and the vectors) are given by a robot and its state; all others are
defined by them. Links are whatever the robot has; the algebra knows neither their number nor order.
"""

from __future__ import annotations

from dataclasses import dataclass

from phistar.algebra.ir import Expr, I, Pattern, Symbol, symbol
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE, TASK_FORCE, Space
from phistar.errors import UnknownNameError
from phistar.refs import JR93, JR95, RK92, Ref


@dataclass(frozen=True)
class Riccati:
    """P = M + E_phi (P - P H* D^-1 H P) E_phi*, D = H P H* + A: an inward recursion."""


@dataclass(frozen=True)
class LyapunovIn:
    """S = source + left S right, inward: left takes a child's value to its parent."""

    source: Expr
    left: Expr
    right: Expr


@dataclass(frozen=True)
class LyapunovOut:
    """The block-diagonal S with S(k) = source(k) + left S(parent) right, outward.

    On a serial chain S = source + left S right; on a tree siblings leave off-diagonal blocks in the
    product, which S does not hold.
    """

    source: Expr
    left: Expr
    right: Expr


Definition = Expr | Riccati | LyapunovIn | LyapunovOut


@dataclass(frozen=True)
class Entry:
    """What is known of a symbol.

    Attributes:
        symbol: The node.
        text, latex: How it is printed.
        meaning: One sentence of mechanics.
        definition: None for base symbols.
        ref: Where it is introduced.
    """

    symbol: Symbol
    text: str
    latex: str
    meaning: str
    definition: Definition | None
    ref: Ref | None


SYMBOLS: dict[str, Entry] = {}
"""Every symbol by name."""


def _register(
    node: Symbol,
    text: str,
    latex: str,
    meaning: str,
    definition: Definition | None = None,
    ref: Ref | None = None,
) -> Symbol:
    SYMBOLS[node.name] = Entry(node, text, latex, meaning, definition, ref)
    return node


def entry(node: Symbol) -> Entry:
    """What is known of a symbol."""
    if node.name not in SYMBOLS:
        raise UnknownNameError("operator", node.name, SYMBOLS)
    return SYMBOLS[node.name]


def vector(name: str, space: Space, text: str = "", meaning: str = "") -> Symbol:
    """A vector given from outside, e.g. ``vector("tau", JOINT)``."""
    node = symbol(name, space, ONE)
    if name not in SYMBOLS:
        _register(node, text or name, text or name, meaning or f"a vector of {space.reads}")
    return node


H = _register(
    symbol("H", JOINT, FORCE),
    "H",
    "H",
    "Projects a link's force on its joint axes; its adjoint spans the joint's motion.",
    ref=RK92.eq("18"),
)
M = _register(
    symbol("M", FORCE, MOTION, symmetric=True),
    "M",
    "M",
    "Spatial inertia of each link about its own frame.",
    ref=RK92.eq("2"),
)
E_phi = _register(
    symbol("E_phi", FORCE, FORCE, Pattern.SHIFT),
    "Eφ",
    r"\mathcal{E}_\phi",
    "Takes the force on each link to its parent as if the joint were locked.",
    ref=JR95.eq("4.6"),
)
A = _register(
    symbol("A", JOINT, JOINT, symmetric=True),
    "A",
    "A",
    "Rotor inertia that each joint feels through its gear; zero without motors.",
)
phi = _register(
    symbol("phi", FORCE, FORCE, Pattern.LOWER),
    "φ",
    r"\phi",
    "Collects the forces on a link and all its descendants, moved rigidly.",
    (I - E_phi).inv,
    JR95.eq("4.5"),
)
P = _register(
    symbol("P", FORCE, MOTION, symmetric=True),
    "P",
    "P",
    "Articulated-body inertia: what a link weighs with its descendants' joints free.",
    Riccati(),
    RK92.eq("35"),
)
D = _register(
    symbol("D", JOINT, JOINT, symmetric=True),
    "D",
    "D",
    "Inertia a joint feels when all joints beyond it are free.",
    H @ P @ H.T + A,
    RK92.eq("36"),
)
G = _register(
    symbol("G", FORCE, JOINT),
    "G",
    "G",
    "Kalman gain: the force on a link per unit of joint force beyond what it asks for.",
    P @ H.T @ D.inv,
    RK92.eq("36"),
)
K = _register(
    symbol("K", FORCE, JOINT, Pattern.SHIFT),
    "K",
    "K",
    "The gain as the parent feels it.",
    E_phi @ G,
    JR95.eq("4.9"),
)
E_psi = _register(
    symbol("E_psi", FORCE, FORCE, Pattern.SHIFT),
    "Eψ",
    r"\mathcal{E}_\psi",
    "Takes the force on each link to its parent across a joint that is free to move.",
    E_phi - K @ H,
    JR95.eq("4.9"),
)
psi = _register(
    symbol("psi", FORCE, FORCE, Pattern.LOWER),
    "ψ",
    r"\psi",
    "Collects forces inward through joints that are free to move.",
    (I - E_psi).inv,
    JR95.eq("4.9"),
)
composite = _register(
    symbol("composite", FORCE, MOTION, symmetric=True),
    "R",
    "R",
    "Composite-body inertia: what a link weighs with its descendants' joints locked.",
    LyapunovIn(M, E_phi, E_phi.T),
    RK92.eq("(29)-(31)"),
)
Upsilon = _register(
    symbol("Upsilon", MOTION, FORCE, symmetric=True),
    "Υ",
    r"\Upsilon",
    "How a link gives way to a force on itself with all joints free.",
    LyapunovOut(H.T @ D.inv @ H, E_psi.T, E_psi),
    JR93.eq("4.19"),
)
B = _register(
    symbol("B", FORCE, TASK_FORCE),
    "B",
    "B",
    "Moves forces on chosen frames to the links that carry them; its adjoint picks off motions.",
    ref=RK92.eq("18"),
)
mass_matrix = _register(
    symbol("mass_matrix", JOINT, JOINT, Pattern.DENSE, symmetric=True),
    "𝓜",
    r"\mathcal{M}",
    "Joint-space inertia.",
    H @ phi @ M @ phi.T @ H.T + A,
    RK92.eq("22"),
)
v = vector("v", JOINT, "v", "Joint velocities.")
vdot = vector("vdot", JOINT, "v̇", "Joint accelerations.")
tau = vector("tau", JOINT, "τ", "Joint forces.")
gravity = vector(
    "gravity", MOTION, "γ", "Upward acceleration of the ground, a motion of the roots."
)
f_ext = vector("f_ext", FORCE, "f", "External forces on the links.")

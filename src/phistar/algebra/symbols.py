# SPDX-License-Identifier: BSD-3-Clause
"""The spatial operators, each with its definition, meaning and reference.

Base operators (H, M, E_phi, E_0, A, N, B, T, gravity, and those of weighted points) are given by a
robot and its state; vectors and the block diagonals X, Y, Z by the user of an expression; all
others are defined by them. Those of closed loops stand in ``loop_symbols``. The algebra knows
neither the number nor the order of the links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from phistar.algebra.ir import Expr, I, Inverse, Q, Sparsity, Symbol, crf, crm, let, symbol
from phistar.algebra.spaces import (
    CONSTRAINT,
    FORCE,
    GROUND_FORCE,
    GROUND_POINT,
    JOINT,
    MINIMAL,
    MOTION,
    NORMALISED,
    ONE,
    PLACE,
    PLANE,
    POINT,
    TASK_FORCE,
    WORLD_MOTION,
    Space,
)
from phistar.algebra.traverse import nodes
from phistar.errors import SpaceError, UnknownNameError
from phistar.refs import FO00, JR93, JR95, RK92, Ref


@dataclass(frozen=True)
class Riccati:
    """P = M + E_phi (P - P H* D^-1 H P) E_phi*, D = H P H* + A: an inward recursion."""


@dataclass(frozen=True)
class NodeRiccati(Riccati):
    """The same recursion over nodes: P_a = M + E_a (P_a - P_a H_a* D_a^-1 H_a P_a) E_a*."""


@dataclass(frozen=True)
class LyapunovIn:
    """S = source + left S right, inward: left maps a child's value to its parent."""

    source: Expr
    left: Expr
    right: Expr


@dataclass(frozen=True)
class LyapunovOut:
    """The block-diagonal S with S(k) = source(k) + left S(parent) right, outward.

    On a serial chain S = source + left S right; on a tree the product has off-diagonal blocks
    between siblings, which S does not have.
    """

    source: Expr
    left: Expr
    right: Expr


@dataclass(frozen=True)
class SylvesterOut:
    """The block-diagonal S with S right = source right + left S, outward; S = source at roots.

    ``right`` is an outward shift, so S(k) = source(k) + left S(parent) right⁻¹, block by block.
    """

    source: Expr
    left: Expr
    right: Expr


@dataclass(frozen=True)
class SiblingBlocks:
    """The blocks off the diagonal of ``of``, an outward shift times blocks times an inward one.

    They couple links with the same parent, so a serial chain has none.
    """

    of: Expr


@dataclass(frozen=True)
class CholeskyRoot:
    """The block-diagonal R with R R* = of, each block lower triangular with a positive diagonal."""

    of: Expr


@dataclass(frozen=True)
class CholeskyRate:
    """The block-diagonal, lower triangular S with S R* + R S* = of, the rate of R R*."""

    root: Expr
    of: Expr


Definition = (
    Expr
    | Riccati
    | LyapunovIn
    | LyapunovOut
    | SylvesterOut
    | SiblingBlocks
    | CholeskyRoot
    | CholeskyRate
)


def definition_operands(definition: Definition | None) -> tuple[Expr, ...]:
    """The operands of a definition."""
    if isinstance(definition, Expr):
        return (definition,)
    if isinstance(definition, (LyapunovIn, LyapunovOut, SylvesterOut)):
        return definition.source, definition.left, definition.right
    if isinstance(definition, (SiblingBlocks, CholeskyRoot)):
        return (definition.of,)
    if isinstance(definition, CholeskyRate):
        return definition.root, definition.of
    return ()


@dataclass(frozen=True)
class SymbolEntry:
    """Data of a symbol.

    Attributes:
        symbol: The node.
        text, latex: Printed forms.
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


SYMBOLS: dict[str, SymbolEntry] = {}
"""Every symbol by name."""


def _register(
    node: Symbol,
    text: str,
    latex: str,
    meaning: str,
    definition: Definition | None = None,
    ref: Ref | None = None,
) -> Symbol:
    SYMBOLS[node.name] = SymbolEntry(node, text, latex, meaning, definition, ref)
    return node


def symbol_entry(node: Symbol) -> SymbolEntry:
    """The data of a symbol."""
    if node.name not in SYMBOLS:
        raise UnknownNameError("operator", node.name, SYMBOLS)
    return SYMBOLS[node.name]


def definition_of(node: Symbol) -> Expr:
    """The expression that defines a symbol.

    Raises:
        UnknownNameError: It is unknown, or given by a robot, a user or a recursion.
    """
    definition = symbol_entry(node).definition
    if not isinstance(definition, Expr):
        known = [name for name, e in SYMBOLS.items() if isinstance(e.definition, Expr)]
        raise UnknownNameError("operator with an explicit definition", node.name, known)
    return definition


RESERVED_VECTOR_SPACES = {
    "a": MOTION,
    "b": FORCE,
    "w": JOINT,
    "dv": JOINT,
    "dvdot": JOINT,
    "dtau": JOINT,
    "dq_second": JOINT,
    "zeta": JOINT,
    "kappa": JOINT,
    "V_lag": MOTION,
    "v_lag": JOINT,
    "lift_lag": MOTION,
}
"""Names of vectors in ``phistar.algorithms``: reserved even before those are imported."""


def vector(
    name: str,
    space: Space,
    text: str = "",
    meaning: str = "",
    latex: str = "",
    ref: Ref | None = None,
) -> Symbol:
    """A vector given by the user, e.g. ``vector("tau", JOINT)``.

    Raises:
        SpaceError: The name belongs to another symbol.
    """
    node = symbol(name, space, ONE)
    known = (
        SYMBOLS[name].symbol
        if name in SYMBOLS
        else symbol(name, RESERVED_VECTOR_SPACES.get(name, space), ONE)
    )
    if known is not node:
        what = f"maps {known.domain.reads} to {known.codomain.reads}"
        what = f"a vector of {known.codomain.reads}" if known.domain is ONE else what
        raise SpaceError(f"there is a symbol {name!r} already: {what}; choose another name")
    if name not in SYMBOLS:
        text = text or name
        _register(node, text, latex or text, meaning or f"a vector of {space.reads}", ref=ref)
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
    symbol("E_phi", FORCE, FORCE, Sparsity.SHIFT),
    "Eφ",
    r"\mathcal{E}_\phi",
    "Takes the force on each link to its parent as if the joint were locked.",
    ref=JR95.eq("4.6"),
)
E_0 = _register(
    symbol("E_0", GROUND_FORCE, FORCE, Sparsity.SHIFT),
    "E₀",
    r"\mathcal{E}_0",
    "Takes the forces on the roots to the ground: the row of Eφ for the world itself.",
)
A = _register(
    symbol("A", JOINT, JOINT, symmetric=True),
    "A",
    "A",
    "Rotor inertia at each joint, reflected through its gear; zero without motors.",
)
N = _register(
    symbol("N", FORCE, JOINT),
    "N",
    "N",
    "The joint axes as forces on the links: NAv is the momentum of rotors as their links carry it.",
)
phi = _register(
    symbol("phi", FORCE, FORCE, Sparsity.LOWER),
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
    "Articulated-body inertia: of a link and its descendants, whose joints are free.",
    Riccati(),
    RK92.eq("35"),
)
D = _register(
    symbol("D", JOINT, JOINT, symmetric=True),
    "D",
    "D",
    "Inertia at a joint when all joints beyond it are free.",
    H @ P @ H.T + A,
    RK92.eq("36"),
)
G = _register(
    symbol("G", FORCE, JOINT),
    "G",
    "G",
    "Kalman gain: the force on a link per unit of joint force.",
    P @ H.T @ D.inv,
    RK92.eq("36"),
)
K = _register(
    symbol("K", FORCE, JOINT, Sparsity.SHIFT),
    "K",
    "K",
    "The gain, shifted to the parent.",
    E_phi @ G,
    JR95.eq("4.9"),
)
E_psi = _register(
    symbol("E_psi", FORCE, FORCE, Sparsity.SHIFT),
    "Eψ",
    r"\mathcal{E}_\psi",
    "Takes the force on each link to its parent across a joint that is free to move.",
    E_phi - K @ H,
    JR95.eq("4.9"),
)
psi = _register(
    symbol("psi", FORCE, FORCE, Sparsity.LOWER),
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
    "Composite-body inertia: of a link and its descendants, whose joints are locked.",
    LyapunovIn(M, E_phi, E_phi.T),
    RK92.eq("(29)-(31)"),
)
Upsilon = _register(
    symbol("Upsilon", MOTION, FORCE, symmetric=True),
    "Υ",
    r"\Upsilon",
    "Compliance: acceleration of a link per unit force on it, all joints free.",
    LyapunovOut(H.T @ D.inv @ H, E_psi.T, E_psi),
    JR93.eq("4.19"),
)
B = _register(
    symbol("B", FORCE, TASK_FORCE),
    "B",
    "B",
    "Moves forces on chosen frames to the links that carry them; its adjoint selects motions.",
    ref=RK92.eq("18"),
)
mass_matrix = _register(
    symbol("mass_matrix", JOINT, JOINT, Sparsity.DENSE, symmetric=True),
    "𝓜",
    r"\mathcal{M}",
    "Joint-space inertia.",
    H @ phi @ M @ phi.T @ H.T + A,
    RK92.eq("22"),
)
D_root = _register(
    symbol("D_root", JOINT, JOINT),
    "√D",
    r"\sqrt{D}",
    "Lower triangular root of the inertia at each joint: √D √D* = D.",
    CholeskyRoot(D),
    JR95.eq("5.1"),
)
M_root = _register(
    symbol("M_root", FORCE, NORMALISED),
    "√M",
    r"\sqrt{M}",
    "Root of each link's inertia, lower triangular in its own axes: √M √M* = M.",
    ref=RK92.at("section X.A"),
)
T = _register(
    symbol("T", FORCE, CONSTRAINT),
    "T",
    "T",
    "Spans the constraint forces of each joint, those without a component along its axes.",
    ref=FO00.eq("27"),
)
X = _register(
    symbol("X", FORCE, MOTION),
    "X",
    "X",
    "Any block diagonal from motions to forces, symmetric or not.",
    ref=JR93.at("Lemma A.1"),
)
S_X = _register(
    symbol("S_X", FORCE, MOTION),
    "S_X",
    "S_X",
    "X summed over each link and its descendants, moved rigidly.",
    LyapunovIn(X, E_phi, E_phi.T),
    JR93.eq("A.1"),
)
v = vector("v", JOINT, "v", "Joint velocities.", "v", RK92.eq("7"))
velocities = let("V", phi.T @ H.T @ v)
"""Spatial velocities of the links: outward V(k) = φ*(p,k) V(p) + H* v."""
M_hat = _register(
    symbol("M_hat", FORCE, MOTION),
    "M̂",
    r"\hat M",
    "Gyroscopic force of a link as a bilinear form: M̂V = V ×* MV, and M̂ + M̂* is the rate of M.",
    Fraction(1, 2) * (crf(velocities) @ M - M @ crm(velocities) - Q(M @ velocities)),
    JR93.eq("3.4"),
)
R_hat = _register(
    symbol("R_hat", FORCE, MOTION),
    "R̂",
    r"\hat R",
    "M̂ summed over each link and its descendants, moved rigidly.",
    LyapunovIn(M_hat, E_phi, E_phi.T),
    JR93.eq("3.6"),
)
P_hat = _register(
    symbol("P_hat", FORCE, MOTION),
    "P̂",
    r"\hat P",
    "M̂ summed inward, through free joints from the left and rigidly from the right.",
    LyapunovIn(M_hat, E_psi, E_phi.T),
    JR93.eq("4.12"),
)
G_hat = _register(
    symbol("G_hat", FORCE, JOINT),
    "Ĝ",
    r"\hat G",
    "The gain of P̂: its adjoint gives joint accelerations per unit of motion of the link.",
    P_hat.T @ H.T @ D.inv,
    JR93.eq("4.12"),
)
K_hat = _register(
    symbol("K_hat", FORCE, JOINT, Sparsity.SHIFT),
    "K̂",
    r"\hat K",
    "The gain of P̂, shifted to the parent.",
    E_phi @ G_hat,
    JR93.eq("4.12"),
)
J_hat = _register(
    symbol("J_hat", MOTION, MOTION),
    "Ĵ",
    r"\hat J",
    "What the motions of a link's ancestors add to its own through the gains of P̂.",
    SylvesterOut(H.T @ G_hat.T, E_psi.T, E_phi.T),
    JR93.eq("4.22"),
)
Xi = _register(
    symbol("Xi", MOTION, FORCE, Sparsity.DENSE, symmetric=True),
    "Ξ",
    r"\Xi",
    "Compliance between siblings; zero on a chain.",
    SiblingBlocks(E_psi.T @ Upsilon @ E_psi),
)
Y = _register(
    symbol("Y", MOTION, FORCE),
    "Y",
    "Y",
    "Any block diagonal from forces to motions, symmetric or not.",
    ref=JR93.at("Lemma A.1"),
)
S_Y = _register(
    symbol("S_Y", MOTION, FORCE),
    "S_Y",
    "S_Y",
    "Y summed over each link and its ancestors, through free joints.",
    LyapunovOut(Y, E_psi.T, E_psi),
    JR93.eq("A.3"),
)
Xi_Y = _register(
    symbol("Xi_Y", MOTION, FORCE, Sparsity.DENSE),
    "Ξ_Y",
    r"\Xi_Y",
    "The remainder of S_Y between siblings; zero on a chain.",
    SiblingBlocks(E_psi.T @ S_Y @ E_psi),
)
Z = _register(
    symbol("Z", MOTION, MOTION),
    "Z",
    "Z",
    "Any block diagonal from motions to motions.",
    ref=JR93.at("Lemma A.1"),
)
S_Z = _register(
    symbol("S_Z", MOTION, MOTION),
    "S_Z",
    "S_Z",
    "Z summed over each link and its ancestors, moved rigidly.",
    SylvesterOut(Z, E_phi.T, E_phi.T),
    JR93.eq("A.4"),
)
J_Z = _register(
    symbol("J_Z", MOTION, MOTION),
    "J_Z",
    "J_Z",
    "Z summed over each link and its ancestors, through free joints from the left.",
    SylvesterOut(Z, E_psi.T, E_phi.T),
    JR93.eq("A.5"),
)
vdot = vector("vdot", JOINT, "v̇", "Joint accelerations.", r"\dot v", RK92.eq("8"))
tau = vector("tau", JOINT, "τ", "Joint forces.", r"\tau", RK92.eq("15"))
gravity = vector(
    "gravity",
    MOTION,
    "γ",
    "Upward acceleration of the ground, a motion of the roots.",
    r"\gamma",
    FO00.at("section 3.1"),
)
dq = vector("dq", JOINT, "δ", "A direction in which the configuration moves.", r"\delta")
f_ext = vector(
    "f_ext", FORCE, "f_ext", "External forces on the links.", r"f_{\mathrm{ext}}", FO00.eq("5")
)
E_pi = _register(
    symbol("E_pi", POINT, POINT, Sparsity.SHIFT),
    "Eπ",
    r"\mathcal{E}_\pi",
    "Takes a weighted point [mass times place; mass] of each link to its parent.",
)
pi = _register(
    symbol("pi", POINT, POINT, Sparsity.LOWER),
    "π",
    r"\pi",
    "Collects the weighted points of a link and all its descendants.",
    (I - E_pi).inv,
)
E_pi_0 = _register(
    symbol("E_pi_0", GROUND_POINT, POINT, Sparsity.SHIFT),
    "Eπ₀",
    r"\mathcal{E}_{\pi 0}",
    "Takes the weighted points of the roots to the world: the row of Eπ for the world itself.",
)
e_x, e_y, e_z = (
    vector(
        f"e_{axis}",
        PLANE,
        f"e_{axis}",
        f"The world's coordinate {axis} on the roots, as a function of place.",
    )
    for axis in "xyz"
)
POSE_ROWS: Mapping[str, Expr] = {"x": pi.T @ e_x, "y": pi.T @ e_y, "z": pi.T @ e_z}
"""The world's coordinates as functions of place on each link: the rows of its pose."""
X_0 = _register(
    symbol("X_0", WORLD_MOTION, MOTION),
    "X₀",
    "X_0",
    "Takes the motion of each link to the axes of the world, about its origin.",
)
mu = vector("mu", POINT, "μ", "Each link as a weighted point: first moment and mass.", r"\mu")
mu_0 = vector(
    "mu_0", GROUND_POINT, "μ₀", "The links that are welded to the ground, as one point.", r"\mu_0"
)
weight = _register(
    symbol("weight", ONE, GROUND_POINT),
    "w₀",
    "w_0",
    "Potential energy of a weighted point in the robot's gravity.",
)
center = _register(
    symbol("center", PLACE, GROUND_POINT),
    "c₀",
    "c_0",
    "Place of the point that weighs as much as all links, those welded to the ground too.",
)
moving_center = _register(
    symbol("moving_center", PLACE, GROUND_POINT),
    "c₁",
    "c_1",
    "Place of the point that weighs as much as the links that move.",
)
ARTICULATED_RATE_SYMBOLS: dict[Expr, Symbol] = {}
"""The rates of the articulated inertia that have symbols, by direction of the configuration."""


def register_articulated_rate(
    name: str, direction: Expr, text: str, latex: str, along: str
) -> Symbol:
    """A symbol for the rate of P as the joints move along a direction, a joint vector."""
    meaning = "Rate of the articulated inertia of a link, in its own axes, as the joints move"
    p_plus, motion = P - G @ D @ G.T, H.T @ direction
    ARTICULATED_RATE_SYMBOLS[direction] = _register(
        symbol(name, FORCE, MOTION, symmetric=True),
        text,
        latex,
        f"{meaning} {along}.",
        LyapunovIn(E_phi @ (crf(motion) @ p_plus - p_plus @ crm(motion)) @ E_phi.T, E_psi, E_psi.T),
        JR95.eq("6.4"),
    )
    return ARTICULATED_RATE_SYMBOLS[direction]


P_dot = register_articulated_rate("P_dot", dq, "Ṗ", r"\dot P", "along δ")
D_root_dot = _register(
    symbol("D_root_dot", JOINT, JOINT),
    "√̇D",
    r"\dot{\sqrt{D}}",
    "Rate of the root of the inertia at each joint as the joints move along δ.",
    CholeskyRate(D_root, H @ P_dot @ H.T),
    JR95.at("Identity 6.1"),
)
P_dot_v = register_articulated_rate("P_dot_v", v, "Ṗᵥ", r"\dot P_v", "at v")


def divides_by_D(exprs: Iterable[Expr]) -> bool:
    """Whether expressions, their symbols unfolded, invert D or an expression of it: they need D >
    0. Inverses on minimal rates need Dₐ > 0 instead."""
    return any(
        (isinstance(node, Inverse) and isinstance(node.of, Symbol) and node.domain is not MINIMAL)
        or (isinstance(node, Symbol) and type(symbol_entry(node).definition) is Riccati)
        for node in unfold_definitions(exprs)
    )


def divides_by_node_inertia(exprs: Iterable[Expr]) -> bool:
    """Whether expressions, their symbols unfolded, invert an inertia in minimal rates."""
    return any(
        (isinstance(node, Inverse) and node.domain is MINIMAL)
        or (isinstance(node, Symbol) and isinstance(symbol_entry(node).definition, NodeRiccati))
        for node in unfold_definitions(exprs)
    )


def unfold_definitions(exprs: Iterable[Expr]) -> Iterator[Expr]:
    """Every node of expressions and of the definitions of their symbols, each once."""
    stack, visited = list(exprs), set[Expr]()
    while stack:
        for node in nodes((stack.pop(),)):
            if node not in visited:
                visited.add(node)
                yield node
                stack += (
                    definition_operands(symbol_entry(node).definition)
                    if isinstance(node, Symbol)
                    else ()
                )

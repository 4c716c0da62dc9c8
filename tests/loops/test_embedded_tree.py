# SPDX-License-Identifier: BSD-3-Clause
"""The embedded tree of minimal coordinates: operators on nodes against dense matrices.

Witnesses: X*𝓜X, its inverse and J(X*𝓜X)⁻¹J* by matrices of the whole robot, and the operators of
``algebra.dense`` with the same loops, which finds its nodes and its partition in its own way.
"""

from functools import cache

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.dense_loops import LoopRows
from phistar.algebra.ir import Expr
from phistar.algebra.loop_symbols import E_a, P_a, phi_a, psi_a
from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.loops.embedded_operators import EmbeddedOperators
from phistar.loops.system import rows_at
from phistar.model.components import GROUND, LoopJoint
from phistar.model.joint_map import joint_map
from phistar.model.kinematic_loops import active_loops, loop_ends
from phistar.model.loop_kinds import wrench_columns
from phistar.model.model import Model
from phistar.robot import Robot
from tests.loops.mechanisms import NAMES, error, mechanism, needs_loops
from tests.loops.test_mimic import gripper_chain

LINKS = ("phi", "psi", "E_phi", "P", "Upsilon")
ALL = ("M", "N", "D", "R", "eta", "X", "H", "G", "K", *LINKS)


@cache
def _case(name: str) -> tuple[Robot, Array]:
    """A robot and a configuration on its loops."""
    rng = np.random.default_rng(2)
    if name in ("four_bar", "delta"):
        robot = phistar.load(name)
        return robot, robot.assemble(robot.home)
    robot = {
        "panda_hand": lambda: phistar.load("panda_hand"),
        "panda": lambda: phistar.load("panda"),
        "grippers": lambda: gripper_chain(2, fingers=2),
    }[name]()
    return robot, robot.random_configuration(rng)


OWN = ("four_bar", "delta", "panda_hand", "panda", "grippers")


def _rotors(model: Model, X: Array) -> Array:
    """X*AX of all joints, followers too."""
    joints = joint_map(model)
    rates = joints.scales[:, None] * X[joints.v_indices]
    A = np.array([x for body in model.bodies for x in body.armature])
    return np.asarray(rates.T @ (A[:, None] * rates))


def _check(robot: Robot, q: Array, tolerance: float) -> EmbeddedOperators:
    """All identities of the embedded tree at one configuration."""
    m = robot.minimal(q)
    op = m.operators()
    mass = m.X.T @ robot.tree.mass_matrix(q) @ m.X
    inverse = np.linalg.inv(mass)
    dense = {name: getattr(op, name).dense() for name in ALL}
    rates, links = np.eye(len(mass)), np.eye(6 * len(robot.model.bodies))
    N, D, H, P, G, K = (dense[name] for name in ("N", "D", "H", "P", "G", "K"))
    phi, psi, E = dense["phi"], dense["psi"], dense["E_phi"]
    compliance = psi.T @ H.T @ np.linalg.inv(D) @ H @ psi
    felt = dense["Upsilon"]
    pairs = {
        "X": (dense["X"], m.X),
        "M": (dense["M"], mass),
        "M = N D N*": (N @ D @ N.T, mass),
        "M inverse": (op.M.inv.dense(), inverse),
        "M inverse by factors": (
            op.N.inv.T.dense() @ op.D.inv.dense() @ op.N.inv.dense(),
            inverse,
        ),
        "D": (D, H @ P @ H.T + _rotors(robot.model, m.X)),
        "R": (dense["R"] @ dense["R"].T, D),
        "eta": (dense["eta"].T @ dense["eta"], mass),
        "eta inverse": (op.eta.inv.dense() @ dense["eta"], rates),
        "G": (G @ D, P @ H.T),
        "K": (K, E @ G),
        "N": (N, rates + H @ phi @ K),
        "N inverse": (op.N.inv.dense(), rates - H @ psi @ K),
        "phi": (phi @ (links - E), links),
        "psi": (psi @ (links - E + K @ H), links),
        "Upsilon": (np.where(felt != 0.0, compliance, 0.0), felt),
    }
    for name, (found, expected) in pairs.items():
        assert error(found, expected) < tolerance, name
    for name in ALL:
        assert error(getattr(op, name).T.dense(), dense[name].T) < tolerance, name
    link = robot.model.bodies[-1].link
    whole = robot.jacobian(q, link, reference="local")
    J = whole @ m.X
    # The link may happen to be at rest: compared with what it could do.
    size = np.abs(whole).max() * np.abs(m.X).max()
    assert np.abs(op.J(link, "local").dense() - J).max() < tolerance * size
    expected = J @ inverse @ J.T
    assert np.abs(op.compliance(link) - expected).max() < tolerance * size**2 * inverse.max()
    return op


@pytest.mark.parametrize("name", OWN)
def test_identities(name: str) -> None:
    """X*𝓜X = N D N*, its inverse, K = EφG, φ, ψ and Υ; relative 1e-10."""
    _check(*_case(name), 1e-10)


@needs_loops
@pytest.mark.parametrize("name", NAMES)
def test_identities_on_mechanisms(name: str) -> None:
    """The same on all mechanisms, with redundant rows, mimics and massless links; 1e-7."""
    case = mechanism(name)
    _check(case.robot, case.golden["q"][0], 1e-7)


def _oracle_rows(model: Model, q: Array) -> list[LoopRows]:
    """Mimic laws and loop joints of a robot as rows of the dense oracle."""
    joints = joint_map(model)
    count = len(joints.v_indices)
    rows = []
    for entry in range(model.nv):
        places = np.flatnonzero(joints.v_indices == entry)
        first = next(k for k in places if joints.scales[k] == 1.0)
        for k in places:
            if k != first:
                row = np.zeros((1, count))
                row[0, k], row[0, first] = 1.0, -joints.scales[k]
                rows.append(LoopRows(GROUND, GROUND, np.zeros((6, 1)), row))
    relative = rows_at(model, q).relative
    for i, loop in enumerate(active_loops(model.loops)):
        assert isinstance(loop, LoopJoint)
        before, after = loop_ends(model, loop)
        forces = wrench_columns(loop, relative[i]).T
        rows.append(LoopRows(before.body, after.body, forces, successor_pose=after.pose))
    return rows


@pytest.mark.parametrize("name", ["four_bar", "panda_hand", "grippers"])
def test_operators_of_the_dense_oracle(name: str) -> None:
    """P, φ, ψ and Eφ of nodes do not depend on the choice of rates; relative 1e-9."""
    robot, q = _case(name)
    oracle = Dense(robot.model, q, loops=_oracle_rows(robot.model, q))
    op = robot.minimal(q).operators()
    symbols: dict[str, Expr] = {"P": P_a, "phi": phi_a, "psi": psi_a, "E_phi": E_a}
    for each, symbol in symbols.items():
        assert error(getattr(op, each).dense(), oracle(symbol)) < 1e-9, each


def test_operational_inertia_from_compliance() -> None:
    """Its inverse is the operational inertia that a robot with mimic joints reports."""
    robot, q = _case("panda_hand")
    found = np.linalg.inv(robot.minimal(q).operators().compliance("panda_hand"))
    expected = robot.operational_inertia(q, ["panda_hand"], reference="local")
    assert error(found, expected) < 1e-8


def test_closed_robot_moves_as_its_embedded_tree() -> None:
    """v̇ = X𝓜⁻¹X*τ at rest without gravity; and energies by total rates; relative 1e-10."""
    robot = phistar.load("delta").with_gravity((0, 0, 0))
    q = robot.assemble(robot.home)
    op = robot.minimal(q).operators()
    rng = np.random.default_rng(0)
    tau = rng.normal(size=robot.nv)
    expected = robot.forward_dynamics(q, np.zeros(robot.nv), tau)
    assert error(op.X @ op.M.solve(op.X.T @ tau), expected) < 1e-10
    y = rng.normal(size=len(op.independent))
    zeta = op.N.T @ y
    energy = robot.kinetic_energy(q, op.X @ y)
    assert abs(zeta @ (op.D @ zeta) / 2 - energy) < 1e-10 * energy


def test_batches_and_other_configurations() -> None:
    """``m.operators(q)`` elsewhere on the loops, for many samples at once."""
    bars, q = _case("four_bar")
    m = bars.minimal(q)
    many = np.stack([np.asarray(m.expand(m.coordinates(q) + x)) for x in (0.0, 0.1, 0.2)])
    op = m.operators(many)
    X = m.map(many)
    mass = np.swapaxes(X, -1, -2) @ bars.tree.mass_matrix(many) @ X
    assert error(op.M.dense(), mass) < 1e-11
    assert error(op.M.inv.dense(), np.linalg.inv(mass)) < 1e-11
    assert op.compliance("coupler").shape == (3, 6, 6)
    arm, at = _case("panda_hand")
    two = np.stack([at, arm.neutral()])
    found = arm.minimal(at).operators(two).M.inv.dense()
    assert error(found, np.linalg.inv(arm.mass_matrix(two))) < 1e-10


def test_printing_and_errors() -> None:
    """Nodes by the names of links and rates; what cannot be asked says so."""
    robot, q = _case("panda_hand")
    op = robot.minimal(q).operators()
    assert op.nodes[-1] == ("panda_leftfinger", "panda_rightfinger")
    text = str(op)
    assert text.splitlines()[0] == "'panda_hand' as a tree of 8 nodes, 8 rates:"
    assert "panda_leftfinger, panda_rightfinger  on panda_link7; rates: panda_finger_joint1" in text
    assert "8 nodes" in repr(op)
    assert "\n" not in repr(op)
    with pytest.raises(ArgumentError, match="ground"):
        op.compliance(robot.link_names[0])
    with pytest.raises(ArgumentError, match="no inverse"):
        op.P.inv  # noqa: B018

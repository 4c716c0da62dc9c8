# SPDX-License-Identifier: BSD-3-Clause
"""Every mistake that the dynamics can be asked to make, through the public names: class and words.

One row a mistake: what is done, the error, and what its message must hold.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.algebra.ir import crm
from phistar.algebra.symbols import B, D, H, K, M, f_ext, phi, psi, tau, v
from phistar.errors import (
    ArgumentError,
    InertiaWarning,
    LoweringError,
    PhistarError,
    ShapeError,
    SingularHingeError,
    SingularHingeWarning,
    SpaceError,
    UnknownNameError,
)

Z = np.zeros(7)
NAN = np.array([0, 0, np.nan, 0, 0, 0, 0])
OMEGA = psi.T @ H.T @ D.inv @ H @ psi


@pytest.fixture(scope="module")
def panda() -> phistar.Robot:
    """A robot of seven joints."""
    return phistar.load("panda")


@pytest.fixture(scope="module")
def bare() -> phistar.Robot:
    """A robot whose last joint moves no inertia."""
    builder = phistar.ModelBuilder("bare")
    builder.link("base")
    builder.link("arm", 1.0, (0.0, 0.0, 0.1), np.eye(3))
    builder.link("tip")
    builder.joint("elbow", "revolute", "base", "arm")
    builder.joint("wrist", "revolute", "arm", "tip")
    with pytest.warns((SingularHingeWarning, InertiaWarning)):
        return phistar.load(builder.build())


Row = tuple[Callable[[Any], Any], type[PhistarError], str]

COMPOSITIONS: dict[str, Row] = {
    "H H": (lambda r: H @ H, SpaceError, r"cannot compose H with H.*did you forget a \.T"),
    "phi M phi": (lambda r: phi @ M @ phi, SpaceError, r"did you forget a \.T"),
    "H tau": (lambda r: H @ tau, SpaceError, "cannot compose"),
    "sum": (lambda r: phi + H, SpaceError, "cannot add"),
    "crm of a force": (lambda r: crm(f_ext), SpaceError, "motion"),
    "operator as vector": (lambda r: r.operators(Z).apply(phi), ArgumentError, "acts on"),
    "vector as operator": (lambda r: r.operators(Z).operator(H.T @ v), ArgumentError, "vector"),
    "no sweep form": (lambda r: r.function(M.inv @ f_ext), LoweringError, "sweep form"),
    "B inside": (lambda r: r.function(B.T @ phi.T @ B), SpaceError, "cannot compose"),
    "shapes": (
        lambda r: r.operators(Z).phi @ r.operators(Z).H,
        ShapeError,
        r"H has shape \(7, 42\).*needs \(42, n\)",
    ),
}

FRAMES: dict[str, Row] = {
    "jacobian": (lambda r: r.jacobian(Z, "panda_lnk8"), UnknownNameError, "panda_link8"),
    "pose": (lambda r: r.frame_pose(Z, "panda_lnk8"), UnknownNameError, "panda_link8"),
    "operators": (lambda r: r.operators(Z).J("panda_lnk8"), UnknownNameError, "panda_link8"),
    "stacked": (
        lambda r: r.operators(Z).J(["panda_link7", "panda_lnk8"]),
        UnknownNameError,
        "panda_link8",
    ),
    "function": (
        lambda r: r.function(B.T @ OMEGA @ B, frames=["panda_lnk8"]),
        UnknownNameError,
        "panda_link8",
    ),
    "forces": (
        lambda r: r.inverse_dynamics(Z, Z, Z, forces={"panda_lnk8": np.zeros(6)}),
        UnknownNameError,
        "panda_link8",
    ),
    "operational inertia": (
        lambda r: r.operational_inertia(Z, ["panda_lnk8"]),
        UnknownNameError,
        "panda_link8",
    ),
    "reference": (lambda r: r.jacobian(Z, "panda_link8", "body"), ArgumentError, "world_aligned"),
    "joint": (
        lambda r: r.hybrid_dynamics(Z, Z, Z, Z, ["panda_jont1"]),
        UnknownNameError,
        "panda_joint1",
    ),
    "method": (
        lambda r: r.forward_dynamics(Z, Z, Z, method="articulatd"),
        UnknownNameError,
        "articulated",
    ),
}

NUMBERS: dict[str, Row] = {
    "q": (lambda r: r.mass_matrix(NAN), ArgumentError, r"q is not finite: q\[2\] is nan"),
    "v": (lambda r: r.inverse_dynamics(Z, NAN, Z), ArgumentError, r"v\[2\] is nan"),
    "vdot": (lambda r: r.inverse_dynamics(Z, Z, NAN), ArgumentError, r"vdot\[2\] is nan"),
    "tau": (lambda r: r.forward_dynamics(Z, Z, NAN), ArgumentError, r"tau\[2\] is nan"),
    "infinite": (lambda r: r.gravity_force(Z + np.inf), ArgumentError, r"q\[0\] is inf"),
    "energy": (lambda r: r.kinetic_energy(Z, NAN), ArgumentError, r"v\[2\] is nan"),
    "coriolis": (lambda r: r.coriolis_matrix(Z, NAN), ArgumentError, r"v\[2\] is nan"),
    "in a batch": (
        lambda r: r.bias_force(Z, np.stack([Z, NAN])),
        ArgumentError,
        r"v\[1, 2\] is nan",
    ),
    "force": (
        lambda r: r.inverse_dynamics(Z, Z, Z, forces={"panda_link8": np.full(6, np.nan)}),
        ArgumentError,
        r"forces\['panda_link8'\] is not finite",
    ),
    "operators": (lambda r: r.operators(NAN), ArgumentError, "q is not finite"),
    "operand": (lambda r: r.operators(Z).M @ NAN, ArgumentError, "not finite"),
    "function": (lambda r: r.function(D)(Z, NAN), ArgumentError, "x is not finite"),
    "function's q": (lambda r: r.function(D)(NAN, Z), ArgumentError, "q is not finite"),
    "words": (lambda r: r.mass_matrix(["a"] * 7), ArgumentError, "not an array of numbers"),
}

SHAPES: dict[str, Row] = {
    "q": (
        lambda r: r.mass_matrix(np.zeros(6)),
        ShapeError,
        r"q has shape \(6,\).*\(\.\.\., 7\).*panda_joint1",
    ),
    "v": (lambda r: r.bias_force(Z, np.zeros(8)), ShapeError, r"v has shape \(8,\)"),
    "scalar": (lambda r: r.gravity_force(0.0), ShapeError, r"q has shape \(\)"),
    "batches": (
        lambda r: r.inverse_dynamics(np.zeros((2, 7)), np.zeros((3, 7)), Z),
        ShapeError,
        r"v has shape \(3, 7\).*broadcast with \(2,\)",
    ),
    "operators": (
        lambda r: r.operators(np.zeros((2, 7)), np.zeros((3, 7))),
        ShapeError,
        r"broadcast with \(2,\)",
    ),
    "operand": (
        lambda r: r.operators(np.zeros((2, 7))).M @ np.zeros((3, 7)),
        ShapeError,
        r"broadcast with \(2,\)",
    ),
    "function": (
        lambda r: r.function(D)(np.zeros((2, 7)), np.zeros((3, 7))),
        ShapeError,
        "broadcast",
    ),
    "function's size": (lambda r: r.function(phi)(Z, Z), ShapeError, r"\(\.\.\., 42\)"),
    "forces": (
        lambda r: r.inverse_dynamics(Z, Z, Z, forces={"panda_link8": np.zeros(3)}),
        ShapeError,
        r"forces\['panda_link8'\] has shape \(3,\)",
    ),
    "force batches": (
        lambda r: r.inverse_dynamics(
            np.zeros((2, 7)), Z, Z, forces={"panda_link8": np.zeros((3, 6))}
        ),
        ShapeError,
        "broadcast",
    ),
    "force and velocity batches": (
        lambda r: r.inverse_dynamics(
            Z, np.zeros((2, 7)), Z, forces={"panda_link8": np.zeros((3, 6))}
        ),
        ShapeError,
        r"forces.*broadcast with \(2,\)",
    ),
    "velocity": (lambda r: r.operators(Z).C, ArgumentError, r"operators\(q, v\)"),
}

ROWS = {
    f"{group}: {name}": row
    for group, rows in (
        ("composition", COMPOSITIONS),
        ("name", FRAMES),
        ("number", NUMBERS),
        ("shape", SHAPES),
    )
    for name, row in rows.items()
}


@pytest.mark.parametrize("row", ROWS)
def test_mistakes_are_told(row: str, panda: phistar.Robot) -> None:
    """The class of the error fits, and the message names the thing, the value and the cure."""
    act, error, words = ROWS[row]
    with pytest.raises(error, match=words):
        act(panda)


SINGULAR: dict[str, Callable[[phistar.Robot], Any]] = {
    "forward dynamics": lambda r: r.forward_dynamics([0, 0], [0, 0], [1, 1]),
    "every algorithm": lambda r: r.forward_dynamics([0, 0], [0, 0], [1, 1], method="2"),
    "inverse": lambda r: r.mass_matrix_inverse([0, 0]),
    "solve": lambda r: r.operators([0, 0]).M.solve([1, 1]),
    "log determinant": lambda r: r.log_determinant([0, 0]),
    "operational inertia": lambda r: r.operational_inertia([0, 0], ["arm"]),
    "gain": lambda r: r.operators([0, 0]).G,
    "function": lambda r: r.function(H @ psi @ K),
    "hybrid": lambda r: r.hybrid_dynamics([0, 0], [0, 0], [1, 1], [0, 0], ["elbow"]),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_singular_hinges_are_named(name: str, bare: phistar.Robot) -> None:
    """Whatever needs D⁻¹ refuses a joint that moves no inertia, and says which one."""
    with pytest.raises(SingularHingeError, match=r"'wrist'") as caught:
        SINGULAR[name](bare)
    assert [hinge.joint for hinge in caught.value.hinges] == ["wrist"]


def test_singular_hinges_do_no_harm_elsewhere(bare: phistar.Robot) -> None:
    """What needs no inverse works: torques, the mass matrix, the rest with the wrist prescribed."""
    assert bare.inverse_dynamics([0.0, 0.0], [0.0, 0.0], [1.0, 1.0])[1] == 0.0
    assert bare.mass_matrix([0.0, 0.0])[1, 1] == 0.0
    accelerations, _ = bare.hybrid_dynamics([0, 0], [0, 0], [1, 0], [0, 5], ["wrist"])
    np.testing.assert_allclose(accelerations, [1.0, 5.0])

# SPDX-License-Identifier: BSD-3-Clause
"""The programs that differ on robots with gyroscopic rotors: ``programs`` with ``rotor_forces``.

Inverse problems add the force c of the rotors, forward ones subtract it from τ.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from phistar.algebra.calculus import gradient
from phistar.algebra.ir import Expr, let
from phistar.algebra.symbols import v, vdot
from phistar.algebra.traverse import substitute
from phistar.algorithms import diagonal_dynamics, linearized
from phistar.algorithms.innovations import L_inv, mass_matrix_inverse
from phistar.algorithms.programs import BUNDLES, MATRICES, PROGRAMS, LazyTable, OutputBundle
from phistar.algorithms.rotor_forces import (
    rotor_coriolis,
    rotor_force,
    rotor_force_v,
    subtract_rotor_force,
)

Outputs = Mapping[str, Expr]

_rotor_force_by_v = rotor_force_v
_weighted_rotor_force = _rotor_force_by_v.T @ linearized.w


def _minus_rotor_force(*names: str) -> dict[str, Callable[[], Outputs]]:
    """Programs in τ, or in τ and δτ, less the force of rotors."""

    def row(name: str) -> Callable[[], Outputs]:
        return lambda: {
            output: subtract_rotor_force(expr) for output, expr in PROGRAMS[name].items()
        }

    return {name: row(name) for name in names}


def _with_terms(outputs: Outputs, **terms: Expr) -> Outputs:
    """Outputs, some with an additional term."""
    return {name: x + terms[name] if name in terms else x for name, x in outputs.items()}


def _solved_rotor_force_by_v() -> Expr:
    return mass_matrix_inverse.result @ _rotor_force_by_v


def _diagonal_dynamics() -> Outputs:
    along: dict[Expr, Expr] = {v: diagonal_dynamics.v_of_zeta}
    return {
        n: substitute(subtract_rotor_force(x), along)
        for n, x in PROGRAMS["diagonal_dynamics"].items()
    }


def _forward_weights() -> Outputs:
    outputs = {
        name: subtract_rotor_force(x) for name, x in PROGRAMS["forward_dynamics_vjp"].items()
    }
    return _with_terms(
        outputs, w_v=-(_rotor_force_by_v.T @ let("u", mass_matrix_inverse.result @ linearized.w))
    )


ROTOR_PROGRAMS: Mapping[str, Outputs] = LazyTable(
    {
        "inverse_dynamics": lambda: _with_terms(PROGRAMS["inverse_dynamics"], tau=rotor_force),
        "bias_force": lambda: _with_terms(PROGRAMS["bias_force"], tau=rotor_force),
        **_minus_rotor_force("forward_dynamics", *(f"forward_dynamics_{n}" for n in (1, 2, 3))),
        "hybrid_bias": lambda: {**PROGRAMS["hybrid_bias"], "tau": rotor_force},
        "coriolis_times": lambda: _with_terms(
            PROGRAMS["coriolis_times"], tau=rotor_coriolis @ vdot
        ),
        "coriolis_adjoint_times": lambda: _with_terms(
            PROGRAMS["coriolis_adjoint_times"], tau=rotor_coriolis.T @ vdot
        ),
        "diagonal_bias": lambda: _with_terms(
            PROGRAMS["diagonal_bias"], coriolis=L_inv @ rotor_force
        ),
        "diagonal_dynamics": _diagonal_dynamics,
        "inverse_dynamics_jvp": lambda: _with_terms(
            PROGRAMS["inverse_dynamics_jvp"], dtau=_rotor_force_by_v @ linearized.dv
        ),
        "inverse_dynamics_vjp": lambda: _with_terms(
            PROGRAMS["inverse_dynamics_vjp"], w_v=_weighted_rotor_force
        ),
        "inverse_dynamics_hvp": lambda: _with_terms(
            PROGRAMS["inverse_dynamics_hvp"],
            w_v=linearized.directional_change(_weighted_rotor_force),
        ),
        **_minus_rotor_force(
            *(f"forward_dynamics_jvp{kind}" for kind in ("", "_articulated", "_split"))
        ),
        "forward_dynamics_vjp": _forward_weights,
    }
)
"""Outputs of the programs that differ."""

ROTOR_MATRICES: Mapping[str, Expr] = LazyTable(
    {
        "coriolis_matrix": lambda: MATRICES["coriolis_matrix"] + rotor_coriolis,
        "inverse_dynamics_v": lambda: MATRICES["inverse_dynamics_v"] + _rotor_force_by_v,
        "forward_dynamics_q": lambda: subtract_rotor_force(MATRICES["forward_dynamics_q"]),
        "forward_dynamics_v": lambda: MATRICES["forward_dynamics_v"] - _solved_rotor_force_by_v(),
        "forward_dynamics_q_split": lambda: subtract_rotor_force(
            MATRICES["forward_dynamics_q_split"]
        ),
        "forward_dynamics_v_split": lambda: (
            MATRICES["forward_dynamics_v_split"] - _solved_rotor_force_by_v()
        ),
        "inverse_dynamics_vv": lambda: (
            MATRICES["inverse_dynamics_vv"] + gradient(_rotor_force_by_v @ linearized.dv, v)
        ),
    }
)
"""Matrices that differ."""


def _with_rotors(bundle: OutputBundle) -> OutputBundle:
    """A bundle of forward dynamics: matrices by v with an additional term, and τ less the rotor
    force."""
    matrices = {name: subtract_rotor_force(x) for name, x in bundle.matrices.items()}
    if "tau_v" in matrices:
        matrices["tau_v"] += _rotor_force_by_v
    innovations = bundle.innovations
    if innovations is not None:
        response, found = innovations
        rights = {name: subtract_rotor_force(x) for name, x in found.items()}
        rights["vdot_v"] += L_inv @ _rotor_force_by_v
        innovations = response, rights
    bundle = replace(bundle, matrices=matrices, innovations=innovations)
    if bundle.split is None:
        return bundle
    inverse, parts = bundle.split
    split = {name: tuple(map(subtract_rotor_force, terms)) for name, terms in parts.items()}
    split["vdot_v"] = (*split["vdot_v"], -_rotor_force_by_v)
    return replace(bundle, split=(inverse, split))


def rotor_lagged_step() -> Outputs:
    """``diagonal_dynamics.LAGGED_STEP`` with the rotors of one step ago."""
    steps = diagonal_dynamics.LAGGED_STEP
    return {
        name: substitute(subtract_rotor_force(x), {v: diagonal_dynamics.v_lag})
        for name, x in steps.items()
    }


ROTOR_BUNDLES: Mapping[str, OutputBundle] = LazyTable(
    {name: lambda name=name: _with_rotors(BUNDLES[name]) for name in BUNDLES}  # type: ignore[misc]
)
"""Bundles that differ."""

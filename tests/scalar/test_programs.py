# SPDX-License-Identifier: BSD-3-Clause
"""Scalar programs, straight and rolled, against the interpreter of sweeps; all of them verify."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from phistar.algebra.dense import Dense
from phistar.algebra.spaces import FORCE
from phistar.algebra.symbols import D, H, M, Upsilon, phi, psi, v, vector
from phistar.algorithms.link_kinematics import V
from phistar.algorithms.programs import MATRICES, PROGRAMS, REGROUPABLE_PROGRAMS
from phistar.compile import compile_outputs, kernel, with_closed_inverses
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.lower import LoweringOptions, signature_of, to_looped, to_unrolled
from phistar.scalar.lower_matrix import MATRIX_OUTPUT, to_unrolled_matrix
from phistar.scalar.program import count_arithmetic
from phistar.scalar.verify import verify
from phistar.sweeps.classical_accelerations import with_classical_accelerations
from phistar.sweeps.matrix_requests import Full, matrix_forms

Error = Callable[..., float]

SHAPES: dict[str, Callable[..., Any]] = {"straight": to_unrolled, "rolled": to_looped}
GRAVITY = frozenset({"gravity"})
MIXED = ("mixed tree", "forest", "free base", "panda_hand")
SMALL = ("small tree", "small forest", "small base")
LONG = 60
"""Streams."""
CORE = ("inverse_dynamics", "forward_dynamics", "forward_dynamics_1", "hybrid_dynamics")
"""Programs that are tried on robots of one joint kind, too."""
CLOSE = 2e-12
"""Relative; the mass matrices have condition numbers of up to some 1e3."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_sweeps(name: str, shape: str, models: dict[str, Model], error: Error) -> None:
    """Every program, inertias regrouped where no output can tell; it verifies."""
    schedule = kernel(name).schedule
    short = MIXED if len(list(schedule.program.live())) <= LONG else SMALL
    chosen = tuple(models) if name in CORE else short
    for robot in chosen:
        model = models[robot]
        program = SHAPES[shape](
            schedule, model, GRAVITY, options=LoweringOptions(regroup=name in REGROUPABLE_PROGRAMS)
        )
        verify(program)
        assert error(program, schedule, model) <= CLOSE, robot


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("frames", ["file", "normal", "square"])
def test_frames_do_not_matter(
    frames: str, shape: str, models: dict[str, Model], error: Error
) -> None:
    """Outputs over joints and over links are the same in every choice of frames."""
    for name in ("forward_dynamics_2", "inverse_dynamics", "hybrid_bias"):
        schedule = kernel(name).schedule
        for robot in MIXED:
            model = models[robot]
            for regroup in (False, True)[: 1 + (name in REGROUPABLE_PROGRAMS)]:
                options = LoweringOptions(frames=frames, regroup=regroup)
                program = SHAPES[shape](schedule, model, GRAVITY, options=options)
                assert error(program, schedule, model) <= CLOSE, robot


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["hybrid_dynamics", "inverse_dynamics", "forward_dynamics_2"])
def test_locked_joints(name: str, shape: str, models: dict[str, Model], error: Error) -> None:
    """Bodies without joint velocities: joint vectors are shorter; it verifies."""
    schedule = kernel(name).schedule
    for robot in SMALL:
        model = models[robot]
        count = len(model.bodies)
        for locked in [{0}, {count - 1}, set(range(0, count, 2)), set(range(count))]:
            held = frozenset(locked)
            program = SHAPES[shape](schedule, model, GRAVITY, held)
            verify(program)
            assert error(program, schedule, model, held) <= CLOSE, (robot, locked)


@pytest.mark.parametrize("shape", SHAPES)
def test_absent_and_given_inputs(shape: str, models: dict[str, Model]) -> None:
    """Absent forces are zero; given gravity replaces that of the robot."""
    model = models["mixed tree"]
    schedule = kernel("inverse_dynamics").schedule
    bodies = len(model.bodies)
    rng = np.random.default_rng(2)
    q = random_configuration(model, rng, (2,))
    joints = signature_of(schedule, model, GRAVITY, frozenset()).inputs["v"]
    rows = {"q": q, "v": rng.normal(size=(2, joints)), "vdot": rng.normal(size=(2, joints))}
    nothing = np.zeros((2, 6 * bodies))
    make = SHAPES[shape]
    short = make(schedule, model, frozenset({"f_ext", "gravity"}))
    long = make(schedule, model, GRAVITY)
    assert set(short.signature.inputs) == {"q", "v", "vdot"}
    assert count_arithmetic(short.count()) < count_arithmetic(long.count())
    expected = run(long, {**rows, "f_ext": nothing})["tau"]
    np.testing.assert_allclose(
        run(short, rows)["tau"], expected, rtol=0, atol=1e-13 * np.abs(expected).max()
    )
    free = make(schedule, model, frozenset({"f_ext"}))
    verify(free)
    upward = np.zeros((2, bodies, 6))
    tau = run(free, {**rows, "gravity": upward.reshape(2, -1)})["tau"]
    weight = run(
        make(kernel("gravity_force").schedule, model, frozenset({"f_ext", "gravity"})), rows
    )
    np.testing.assert_allclose(
        tau + weight["tau"], expected, rtol=0, atol=1e-12 * np.abs(expected).max()
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics", "total_momentum"])
def test_complex_numbers(name: str, shape: str, models: dict[str, Model], error: Error) -> None:
    """Away from the real axis the programs are what the sweeps are: nothing is conjugated.

    Joints with quaternions are left out: a random imaginary part leaves the unit ones.
    """
    schedule = kernel(name).schedule
    for robot in ("revolute", "prismatic", "helical", "cylindrical", "planar", "arms"):
        model = models[robot]
        program = SHAPES[shape](
            schedule, model, GRAVITY, options=LoweringOptions(regroup=name in REGROUPABLE_PROGRAMS)
        )
        assert error(program, schedule, model, imaginary=0.1) <= 1e-11, robot


@pytest.mark.parametrize("shape", SHAPES)
def test_complex_step(shape: str) -> None:
    """Im f(q + ih) / h is the derivative that central differences approach; 1e-6."""
    model = random_model(np.random.default_rng(12), 6, kinds=["revolute", "prismatic", "helical"])
    schedule = kernel("forward_dynamics_3").schedule
    program = SHAPES[shape](
        schedule, model, frozenset({"f_ext", "gravity"}), options=LoweringOptions(regroup=True)
    )
    rng = np.random.default_rng(13)
    q, direction, rate, tau = rng.normal(size=(4, 1, model.nq))

    def value(step: complex) -> np.ndarray:
        return run(program, {"q": q + step * direction, "v": rate, "tau": tau})["vdot"]

    exact = value(1e-30j).imag / 1e-30
    difference = (value(1e-6) - value(-1e-6)) / 2e-6
    assert np.abs(exact - difference).max() <= 1e-6 * np.abs(exact).max()


# -- classical accelerations

CLASSICAL = {
    *("link_forces", "inverse_dynamics", "bias_force"),
    *("forward_dynamics_1", "forward_dynamics_3"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_classical_accelerations(name: str, models: dict[str, Model], error: Error) -> None:
    """Used where no output can tell, then with fewer operations and equal results."""
    schedule = kernel(name).schedule
    assert (with_classical_accelerations(schedule.program) is not None) == (name in CLASSICAL)
    if name not in CLASSICAL:
        return
    for robot in ("mixed tree", "forest", "free base", "helical"):
        model = models[robot]
        spatial, plain = (
            to_unrolled(schedule, model, GRAVITY, options=LoweringOptions(classical=flag))
            for flag in (False, True)
        )
        assert count_arithmetic(plain.count()) < count_arithmetic(spatial.count())
        for program in (spatial, plain):
            assert error(program, schedule, model) <= CLOSE


def test_classical_is_refused_where_an_output_tells() -> None:
    """Accelerations, or biases of them, as outputs, alone or beside forces."""
    tau = PROGRAMS["inverse_dynamics"]["tau"]
    alpha = PROGRAMS["forward_dynamics_2"]["alpha"]
    for outputs in (
        {"alpha": alpha},
        {"tau": tau, "alpha": alpha},
        {"a": PROGRAMS["hybrid_bias"]["a"]},
    ):
        program = compile_outputs("own", tuple(outputs.items())).schedule.program
        assert with_classical_accelerations(program) is None


@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_of_every_kind_at_once(shape: str, models: dict[str, Model], error: Error) -> None:
    """Motions, forces and joint vectors of one program go to the right places."""
    outputs = {"V": V, "h": M @ V, "f": phi @ M @ V, "tau": H @ phi @ M @ V, "v": v}
    schedule = compile_outputs("own", tuple(outputs.items())).schedule
    for robot, model in models.items():
        program = SHAPES[shape](schedule, model)
        verify(program)
        assert error(program, schedule, model) <= CLOSE, robot


@pytest.mark.parametrize("shape", SHAPES)
def test_compliances(shape: str, models: dict[str, Model], error: Error) -> None:
    """Υ goes outward as a symmetric matrix, also across locked joints; it verifies."""
    f = vector("f", FORCE)
    outputs = {"y": Upsilon @ f, "tau": H @ phi @ (M @ (Upsilon @ f)), "z": phi.T @ Upsilon @ f}
    schedule = compile_outputs("own", tuple(outputs.items())).schedule
    assert {"congruence_out", "compliance_update"} <= {
        schedule.program.nodes[s].op for s in schedule.program.live()
    }
    for robot in (*SMALL, "forest"):
        model = models[robot]
        count = len(model.bodies)
        for locked in (frozenset(), frozenset({0}), frozenset(range(0, count, 2))):
            program = SHAPES[shape](schedule, model, GRAVITY, locked)
            verify(program)
            assert error(program, schedule, model, locked) <= CLOSE, (robot, locked)


@pytest.mark.parametrize("shape", SHAPES)
def test_compliance_is_the_diagonal_of_the_dense_operator(
    shape: str, models: dict[str, Model]
) -> None:
    """Υ(k) f is block (k, k) of ψ*H*D⁻¹Hψ, as a matrix, times f; relative 1e-9."""
    f = vector("f", FORCE)
    schedule = compile_outputs("own", (("y", Upsilon @ f),)).schedule
    rng = np.random.default_rng(16)
    for robot in (*SMALL, *MIXED):
        model = models[robot]
        q = random_configuration(model, rng, (1,))
        forces = rng.normal(size=(1, 6 * len(model.bodies)))
        ours = run(SHAPES[shape](schedule, model), {"q": q, "f": forces})["y"].reshape(-1, 6)
        omega = Dense(model, q[0])(psi.T @ H.T @ D.inv @ H @ psi)
        blocks = omega.reshape(len(model.bodies), 6, len(model.bodies), 6)
        known = np.einsum("kikj,kj->ki", blocks, forces.reshape(-1, 6))
        assert np.abs(ours - known).max() <= 1e-9 * np.abs(known).max(), robot


FRAMES = ("link2", "link1")


@pytest.mark.parametrize("name", sorted(set(MATRICES) - {"hinge_inertia"}))
def test_matrices(name: str, models: dict[str, Model]) -> None:
    """Whole matrices as straight lines verify, and are those of dense operators; 1e-9."""
    found = matrix_forms(with_closed_inverses(MATRICES[name]), Full())
    for robot in SMALL:
        model = models[robot]
        program = to_unrolled_matrix(found, model, FRAMES, absent=frozenset({"f_ext", "gravity"}))
        verify(program)
        rng = np.random.default_rng(15)
        rows = {n: rng.normal(size=(1, m)) for n, m in program.signature.inputs.items()}
        rows["q"] = random_configuration(model, rng, (1,))
        vectors = {n: x[0] for n, x in rows.items() if n != "q"}
        vectors["f_ext"] = np.zeros(6 * len(model.bodies))
        known = Dense(model, rows["q"][0], vectors=vectors, tasks=FRAMES)(MATRICES[name])
        got = run(program, rows)[MATRIX_OUTPUT].reshape(known.shape)
        assert np.abs(got - known).max() <= 1e-9 * np.abs(known).max()


@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_that_are_given_are_written(shape: str) -> None:
    """An output that is zero, or an input itself, is an output like any other."""
    schedule = compile_outputs("given", (("zero", v - v), ("same", v))).schedule
    model = random_model(np.random.default_rng(0), 5)
    program = SHAPES[shape](schedule, model)
    verify(program)
    sizes = program.signature.inputs
    inputs = {n: np.random.default_rng(1).normal(size=(3, size)) for n, size in sizes.items()}
    outputs = run(program, inputs)
    np.testing.assert_array_equal(outputs["zero"], np.zeros((3, sizes["v"])))
    np.testing.assert_array_equal(outputs["same"], inputs["v"])

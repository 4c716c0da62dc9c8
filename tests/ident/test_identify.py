# SPDX-License-Identifier: BSD-3-Clause
"""From a log to a robot: estimates, error bars, possible bodies, a page, clear refusals."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from phistar import ident
from phistar.arrays import Array
from phistar.errors import (
    ArgumentError,
    ModelError,
    ModelMismatchWarning,
    NotFiniteError,
    ShapeError,
    UnknownNameError,
)
from phistar.ident.base_parameters import BaseParameters
from phistar.ident.consistent import PossibleProblem, consistent_fit, minimum, nearest
from phistar.ident.doubts import doubts
from phistar.ident.equations import TorqueEquations, accumulate, merged
from phistar.ident.least_squares import weighted_fit
from phistar.ident.pseudo_inertia import feasible
from phistar.ident.triangles import RowTriangles
from tests.ident.conftest import DT, Recorded

NOISE = np.array([0.2, 0.02])


@pytest.fixture(scope="module")
def tau(recorded: Recorded) -> Array:
    """Forces with noise that differs tenfold between the joints."""
    return recorded.tau + NOISE * np.random.default_rng(0).normal(size=recorded.tau.shape)


@pytest.fixture(scope="module")
def found(recorded: Recorded, tau: Array) -> ident.Identification:
    """The front call."""
    return ident.identify(recorded.known, recorded.q, recorded.v, recorded.vdot, tau)


def true_beta(recorded: Recorded, base: BaseParameters) -> Array:
    """The base parameters of the true robot."""
    true = ident.Columns.of(recorded.true)
    return base.matrix @ [true.values[true.names.index(n)] for n in base.columns.names]


def test_estimate_and_noise(recorded: Recorded, found: ident.Identification) -> None:
    """Noise of each joint is found, true values are within the ellipsoid, unseen parts are told."""
    assert found.fit.noise == pytest.approx(NOISE, rel=0.05)
    assert found.validation is not None
    assert found.validation.rms == pytest.approx(NOISE, rel=0.05)
    beta = true_beta(recorded, found.base)
    assert found.contains(beta)
    assert not found.contains(found.fit.beta + 6.0 * found.fit.deviation)
    assert (np.abs(found.fit.beta - beta) < 2.0 * found.interval()).all()
    assert found.doubts == ()
    assert found.sample.correlation == pytest.approx([1.0, 1.0], abs=0.3)
    assert "13 of 13" in repr(found)
    assert "viscous.elbow" in found.table()


def test_weights_of_joints_matter(recorded: Recorded, tau: Array) -> None:
    """Weighted by their own residuals, standard deviations are below those of equal weights."""
    equations = equations_of(recorded, tau)
    triangles = merged(accumulate(equations))
    own = weighted_fit(triangles, equations.support, equations.base.values)
    equal = weighted_fit(triangles, equations.support, equations.base.values, np.full(2, 0.2))
    assert own.noise == pytest.approx(NOISE, rel=0.05)
    assert (own.deviation <= equal.deviation).all()
    assert (own.deviation / equal.deviation).min() < 0.3


def equations_of(recorded: Recorded, tau: Array, known: bool = True) -> TorqueEquations:
    """Rows of the log."""
    columns = ident.Columns.of(recorded.known if known else recorded.true)
    rest = 0.01 * np.abs(recorded.v).max(axis=0)
    base = ident.base_parameters(columns)
    return TorqueEquations(base, recorded.q, recorded.v, recorded.vdot, tau, rest)


def test_coverage_of_the_ellipsoid(recorded: Recorded) -> None:
    """True values are inside the 95 % ellipsoid in at least 93 of 100 logs.

    All logs share their regressor: of each joint Q of [Y | τ] turns noise into that of the
    triangle, and what is beyond its columns is a sum of squares, drawn from its χ² distribution.
    """
    equations = equations_of(recorded, recorded.tau)
    whole = merged(accumulate(equations))
    beta = true_beta(recorded, equations.base)
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(100):
        factors = []
        for R, own, sigma, n in zip(
            whole.factors, equations.support, NOISE, whole.counts, strict=True
        ):
            p = len(own)
            Y = R[:p, :p]
            force = Y @ beta[own] + sigma * rng.normal(size=p)
            rest = sigma * np.sqrt(rng.chisquare(n - p))
            noisy = np.zeros((p + 1, p + 1))
            noisy[:p, :p], noisy[:p, p], noisy[p, p] = Y, force, rest
            factors.append(noisy)
        fit = weighted_fit(
            RowTriangles(tuple(factors), whole.counts), equations.support, equations.base.values
        )
        far = fit.information @ (beta - fit.beta)
        inside += far @ far <= 22.362  # χ² of 13 at 95 %
    assert 93 <= inside <= 100


def test_robot_predicts_unseen_motion(recorded: Recorded, found: ident.Identification) -> None:
    """The identified robot's forces differ from the true ones by a fraction of the noise."""
    motion = ident.FourierSeries(np.ones(2), np.random.default_rng(8).normal(size=(2, 8)), 4.0)
    q, v, vdot = motion.at(np.linspace(0.0, 4.0, 500))
    wanted = recorded.true.inverse_dynamics(q, v, vdot, passive=True)
    error = np.sqrt(np.mean((found.predict(q, v, vdot) - wanted) ** 2, axis=0))
    assert (error < 0.2 * NOISE).all()
    assert ident.is_possible(found.robot.parameters.reshape(-1, 10)).all()
    assert found.robot.limits.damping == pytest.approx([0.2, 0.1], rel=0.1)
    offsets = np.array(list(found.offsets.values()))
    robot = found.robot.inverse_dynamics(q, v, vdot, passive=True) + offsets
    assert found.predict(q, v, vdot) == pytest.approx(robot, rel=1e-12)


def test_exact_logs_give_exact_parameters(recorded: Recorded) -> None:
    """Without noise the base parameters are right to 1e-9, the possible ones to 1e-5."""
    log = (recorded.q, recorded.v, recorded.vdot, recorded.tau)
    found = ident.identify(recorded.known, *log, folds=1)
    beta = true_beta(recorded, found.base)
    assert np.abs(found.fit.beta - beta).max() < 1e-9
    assert found.consistent is not None
    assert np.abs(found.consistent.beta - beta).max() < 1e-5
    assert found.validation is None


def test_bodies_alone(recorded: Recorded) -> None:
    """Without any number of joints."""
    known = recorded.known
    tau = known.inverse_dynamics(recorded.q, recorded.v, recorded.vdot)
    found = ident.identify(
        known, recorded.q, recorded.v, recorded.vdot, tau, friction=False, rotors=False
    )
    assert found.joint_values == {}
    force = found.robot.inverse_dynamics(recorded.q, recorded.v, recorded.vdot)
    assert np.abs(force - tau).max() < 1e-6 * np.abs(tau).max()


def test_short_noisy_logs_stay_possible(recorded: Recorded) -> None:
    """Least squares has impossible numbers; the possible estimate has none."""
    rng = np.random.default_rng(2)
    few = slice(0, 2500, 50)
    noisy = recorded.tau[few] + 3.0 * rng.normal(size=recorded.tau[few].shape)
    log = (recorded.q[few], recorded.v[few], recorded.vdot[few], noisy)
    found = ident.identify(recorded.known, *log, folds=1)
    assert found.consistent is not None
    theta = found.consistent.theta
    assert ident.is_possible(theta[:20].reshape(-1, 10)).all()
    assert (theta[found.columns.positive] > 0.0).all()
    free = ident.identify(recorded.known, *log, folds=1, consistent=False)
    plain = free.parameters
    assert (plain[free.columns.positive] < 0.0).any()
    with pytest.raises((ArgumentError, ModelError)):
        _ = free.robot


def test_minimum_of_a_convex_cost(found: ident.Identification) -> None:
    """All slopes vanish, by differences of the cost, and no random step lowers it.

    The cost is convex, its curves are positive (``test_divergence``): there is no other minimum.
    """
    base, fit = found.base, found.fit
    positive = np.flatnonzero(base.columns.positive)
    problem = PossibleProblem(
        fit.information @ base.matrix, fit.information @ fit.beta,
        feasible(base.columns.values[:20].reshape(-1, 10), 0.005),
        nearest(base, fit.beta)[20:], positive, base.columns.values[positive], 1.0,
    )  # fmt: skip
    theta, steps = minimum(problem)
    assert steps < 60
    cost = problem.cost(theta)
    rng = np.random.default_rng(0)
    _, promised = problem.step(theta)
    assert promised < 1e-9
    for size in (1e-2, 1e-4):
        for _ in range(50):
            direction = size * rng.normal(size=len(theta)) * np.maximum(np.abs(theta), 1e-3)
            assert problem.cost(theta + direction) >= cost
    for k, x in enumerate(theta):
        step = np.zeros(len(theta))
        step[k] = 1e-6 * max(abs(x), 1e-3)
        rise = problem.cost(theta + step) - problem.cost(theta - step)
        bend = problem.cost(theta + step) + problem.cost(theta - step) - 2.0 * cost
        # In units of the step that Newton would take along this parameter.
        assert abs(rise) <= 1e-3 * bend + 1e-8


def test_rotors_that_the_robot_did_not_have(recorded: Recorded) -> None:
    """Forces tell the sum of a rotor and the first body's inertia: a large rotor is no reason for a
    possible estimate to leave what the log asks for, on which ‖R(β - β̂)‖ would be far above 1.
    """
    rng = np.random.default_rng(12)
    state = recorded.q, recorded.v, recorded.vdot
    true = recorded.true.with_joint_physics(armature=[0.3, 0.05])
    tau = true.inverse_dynamics(*state, passive=True)
    found = ident.identify(
        recorded.known, *state, tau + NOISE * rng.normal(size=tau.shape), folds=1
    )
    assert found.consistent is not None
    assert found.consistent.distance < 1.0
    assert found.joint_values["rotor"]["elbow"] == pytest.approx(0.05, rel=0.2)
    assert found.consistent.divergence.max() < 5.0


def test_prior_weight_must_be_positive(found: ident.Identification) -> None:
    """Without a prior there is no single possible robot."""
    with pytest.raises(ArgumentError, match="prior_weight is 0"):
        consistent_fit(found.base, found.fit, 0.0)


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_spikes(recorded: Recorded, tau: Array, loss: str) -> None:
    """Two percent of the forces far off: a robust estimate hardly moves, least squares does."""
    rng = np.random.default_rng(4)
    spiked = tau + 30.0 * (rng.random(tau.shape) < 0.02)
    log = (recorded.q, recorded.v, recorded.vdot, spiked)
    options = {"folds": 1, "consistent": False}
    plain = ident.identify(recorded.known, *log, **options)
    robust = ident.identify(recorded.known, *log, loss=loss, **options)
    beta = true_beta(recorded, plain.base)
    error = [np.abs(each.fit.beta - beta).max() for each in (plain, robust)]
    assert error[1] < 0.1 * error[0]
    assert robust.contains(beta, 0.9999)


def test_positions_alone(recorded: Recorded, tau: Array) -> None:
    """Velocities and accelerations are differentiated, the ends left out, and it is said."""
    q = recorded.q + 1e-6 * np.random.default_rng(6).normal(size=recorded.q.shape)
    found = ident.identify(recorded.known, q, None, None, tau, dt=DT, folds=1)
    assert "differentiated" in found.notes[0]
    assert found.fit.rank == 13
    assert found.fit.noise == pytest.approx(NOISE, rel=0.05)
    beta = true_beta(recorded, found.base)
    assert (np.abs(found.fit.beta - beta) < 5.0 * found.fit.deviation).all()


def test_directions_that_are_not_excited_stay(recorded: Recorded) -> None:
    """With the elbow held, what only it would tell is as the robot has it, and it is noted."""
    rng = np.random.default_rng(7)
    still = np.array([1.0, 0.0])
    q, v, vdot = recorded.q * still, recorded.v * still, recorded.vdot * still
    tau = recorded.true.inverse_dynamics(q, v, vdot, passive=True)
    tau = tau + NOISE * rng.normal(size=tau.shape)
    found = ident.identify(recorded.known, q, v, vdot, tau)
    assert found.fit.rank < 13
    assert any("not excited" in note for note in found.notes)
    assert any("'elbow' is left" in note for note in found.notes)
    index = found.base.columns.names.index("viscous.elbow")
    place = found.base.kept.tolist().index(index)
    assert np.isinf(found.fit.deviation[place])
    assert found.fit.beta[place] == found.base.values[place]


def test_report_needs_nothing_else(found: ident.Identification, tmp_path: Path) -> None:
    """One page with pictures inside, no address to fetch, names and numbers of the estimate."""
    text = found.report(tmp_path / "ident.html").read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml") == 2
    assert "http" not in text.replace("http-equiv", "")
    assert "hz.upper_rod - 0.5 m.lower_rod" in text
    assert "condition number" in text
    assert [len(found.plot(what).axes) for what in ("samples", "residuals")] == [2, 4]
    assert found.group_units == ("N m", "N m")
    assert "<th>unit</th><th>force, rms</th>" in text
    assert found.plot("samples").axes[1].get_ylabel() == "elbow\n[N m]"
    with pytest.raises(UnknownNameError, match="residuals"):
        found.plot("residual")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tau": np.array([1.0, -1.0])}, "'elbow' seems to have the wrong sign"),
        ({"tau": [1, 0]}, "forces of 'shoulder' and 'elbow' seem to be exchanged"),
        ({"q": [1, 0], "v": [1, 0], "vdot": [1, 0], "tau": [1, 0]}, "'shoulder' and 'elbow' seem"),
        ({"q": [1, 0], "v": [1, 0], "vdot": [1, 0]}, "motions of 'shoulder' and 'elbow' seem"),
    ],
)
def test_wrong_logs_are_recognised(
    recorded: Recorded, tau: Array, change: dict[str, object], words: str
) -> None:
    """Exchanged joints and signs are named, in a warning and in the result."""
    log = {"q": recorded.q, "v": recorded.v, "vdot": recorded.vdot, "tau": tau}
    for name, how in change.items():
        log[name] = log[name][:, how] if isinstance(how, list) else log[name] * how
    with pytest.warns(ModelMismatchWarning, match=words):
        found = ident.identify(recorded.known, **log, folds=1)
    assert words in found.doubts[0]


def test_a_sign_is_seen_beside_a_joint_of_noise(recorded: Recorded, tau: Array) -> None:
    """A joint whose forces are noise alone is explained by nothing, and hides nothing."""
    noisy = np.array([-1.0, 1.0]) * tau
    noisy[:, 1] = np.random.default_rng(1).normal(size=len(tau))
    said = doubts(recorded.known, recorded.q, recorded.v, recorded.vdot, noisy)
    assert "the force of 'shoulder' seems to have the wrong sign" in said[0]


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_other_units_of_forces(recorded: Recorded, tau: Array, factor: float) -> None:
    """A thousand times too much is not a matter of masses that are not known well."""
    said = doubts(recorded.known, recorded.q, recorded.v, recorded.vdot, factor * tau)
    (only,) = said
    assert "are they in N m" in only


def test_payload(recorded: Recorded, tmp_path: Path) -> None:
    """Mass, centre and moment of a load on a turned frame; no load is said to be none."""
    seat = np.array([[1, 0, 0, 0.1], [0, 0, -1, 0], [0, 1, 0, -0.2], [0, 0, 0, 1.0]])
    robot = recorded.true.with_frame("seat", "lower_rod", seat)
    loaded = robot.with_payload("seat", 0.7, (0.05, 0.1, 0.02), (0.004, 0.005, 0.006))
    state = recorded.q, recorded.v, recorded.vdot
    forces = loaded.inverse_dynamics(*state, passive=True)
    forces = forces + 0.01 * np.random.default_rng(1).normal(size=forces.shape)
    found = ident.payload(robot, "seat", *state, forces)
    unseen = ident.FourierSeries(np.ones(2), np.random.default_rng(9).normal(size=(2, 8)), 4.0)
    motion = unseen.at(np.linspace(0.0, 4.0, 200))
    error = found.robot.inverse_dynamics(*motion) - loaded.inverse_dynamics(*motion)
    assert np.abs(error).max() < 0.02
    assert found.mass > 0.0
    assert ident.is_possible(found.parameters)
    assert "on 'seat'" in repr(found)
    t, names = DT * np.arange(len(forces)), np.array(robot.joint_names)
    np.savez(tmp_path / "log.npz", t=t, q=recorded.q, tau=forces, names=names)
    log = ident.read_log(tmp_path / "log.npz", robot)
    again = ident.payload(robot, "seat", log, cutoff=10.0)
    assert again.mass == pytest.approx(found.mass, rel=0.02)
    with pytest.raises(ArgumentError, match="its own, give none"):
        ident.payload(robot, "seat", log, tau=forces)
    with pytest.raises(ArgumentError, match="no load on 'seat' is clear"):
        ident.payload(loaded, "seat", *state, forces)
    with pytest.raises(ArgumentError, match="ground"):
        ident.payload(robot, robot.link_names[0], *state, forces)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"tau": None}, ArgumentError, "tau is missing"),
        ({"tau": np.zeros((2500, 2))}, ArgumentError, "tau is zero everywhere"),
        ({"v": np.zeros((2500, 2)), "vdot": np.zeros((2500, 2))}, ArgumentError, "at rest"),
        ({"vdot": None}, ArgumentError, "dt is missing"),
        ({"v": None}, ArgumentError, "vdot is given and v is not"),
        ({"tau": np.ones((7, 2))}, ShapeError, "tau"),
        ({"tau": np.full((2500, 2), np.nan)}, NotFiniteError, "tau"),
        ({"loss": "cauchy"}, UnknownNameError, "huber"),
        ({"method": "power"}, UnknownNameError, "energy"),
        ({"folds": 0}, ArgumentError, "folds is 0"),
    ],
)
def test_what_is_refused(
    recorded: Recorded, change: dict[str, object], error: type[Exception], text: str
) -> None:
    """One clear line for each."""
    log = {"q": recorded.q, "v": recorded.v, "vdot": recorded.vdot, "tau": recorded.tau}
    with pytest.raises(error, match=text):
        ident.identify(recorded.known, **(log | change))


def test_one_sample_is_too_few(recorded: Recorded) -> None:
    """Two rows for thirteen parameters."""
    log = (recorded.q[:1], recorded.v[:1], recorded.vdot[:1], recorded.tau[:1])
    with pytest.raises(ArgumentError, match="2 rows for 13 base parameters"):
        ident.identify(recorded.known, *log, folds=1)


_SAME_BITS = """
import hashlib
import numpy as np
import phistar
from phistar import ident

robot = phistar.load("ur5")
rng = np.random.default_rng(1)
q = robot.random_configuration(rng, 9000)
v, vdot = rng.normal(size=(2, *q.shape))
tau = robot.inverse_dynamics(q, v, vdot) + rng.normal(size=q.shape)
found = ident.identify(robot, q, v, vdot, tau, folds=2)
told = hashlib.sha256(found.fit.beta.tobytes() + found.fit.covariance.tobytes())
told.update(found.parameters.tobytes())
print(told.hexdigest())
"""


def test_threads_do_not_matter() -> None:
    """The same bits with one thread of ours and of BLAS, and with two."""
    said = set()
    for threads in ("1", "2"):
        told = {"OPENBLAS_NUM_THREADS": threads, "PHISTAR_THREADS": threads, "PHISTAR_TIER": "wait"}
        done = subprocess.run(
            [sys.executable, "-c", _SAME_BITS],
            env={**os.environ, **told},
            capture_output=True,
            text=True,
            check=True,
        )
        said.add(done.stdout)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"folds": 3000}, "the log has 2500 samples, and 3000 folds take one each"),
        ({"folds": 2.5}, "folds is 2.5, expected 1 or more"),
        ({"rest_speed": np.nan}, "rest_speed is nan, expected one number that is not negative"),
        ({"rest_speed": [1.0, 2.0, 3.0]}, "rest_speed is .*, or 2 of them"),
        ({"friction": "viscous"}, r"friction is 'viscous', expected several names: \['viscous'\]"),
        ({"method": "energy", "dt": DT, "window": np.nan}, "window is nan, expected a time"),
        ({"method": "momentum", "dt": -DT}, "dt is -0.004, expected a time greater than zero"),
        ({"method": "momentum", "dt": np.nan}, "dt is nan, expected a time greater than zero"),
        ({"method": "energy", "dt": "4 ms"}, "dt is '4 ms', expected a time greater than zero"),
        ({"window": 0.1}, "window is 0.1, and method 'torque' has no windows"),
        ({"friction": 1}, "friction is 1, expected True, False or several names"),
        ({"bodies": 3}, "bodies is 3, expected several names"),
        ({"prior_weight": "much"}, "prior_weight is 'much', expected a positive number"),
        ({"vdot": None, "dt": DT, "cutoff": "10"}, "cutoff is '10', expected a frequency"),
    ],
)
def test_options_that_do_not_fit(
    recorded: Recorded, tau: Array, options: dict[str, object], said: str
) -> None:
    """Each is named in one line."""
    log = (recorded.q, recorded.v, recorded.vdot, tau)
    given = dict(zip(("q", "v", "vdot", "tau"), log, strict=True)) | options
    with pytest.raises(ArgumentError, match=said):
        ident.identify(recorded.known, **given)  # type: ignore[arg-type]


def test_values_that_cannot_be_compared(found: ident.Identification) -> None:
    """Of an ellipsoid: too few numbers, none, and a level that is none."""
    with pytest.raises(ShapeError, match=r"beta has shape \(3,\), .* needs \(13,\)"):
        found.contains(np.zeros(3))
    with pytest.raises(NotFiniteError, match="beta"):
        found.contains(np.full(13, np.nan))
    for level in (1.5, "most"):
        with pytest.raises(ArgumentError, match=f"level is {level!r}, expected a number between"):
            found.contains(found.fit.beta, level)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="level is"):
            found.interval(level)  # type: ignore[arg-type]


@pytest.mark.parametrize("samples", [1, 2])
def test_fewer_samples_than_folds(recorded: Recorded, tau: Array, samples: int) -> None:
    """A log of one sample is refused by its length."""
    log = (x[:samples] for x in (recorded.q, recorded.v, recorded.vdot, tau))
    with pytest.raises(ArgumentError, match=f"the log has {samples} sample.*a motion takes many"):
        ident.identify(recorded.known, *log)


@pytest.mark.filterwarnings("ignore:joint forces are:phistar.errors.ModelMismatchWarning")
@pytest.mark.parametrize("which", ["v", "tau"])
def test_numbers_that_are_too_large(recorded: Recorded, tau: Array, which: str) -> None:
    """Squares that overflow are said, and not handed to LAPACK."""
    log = {"q": recorded.q, "v": recorded.v, "vdot": recorded.vdot, "tau": tau}
    log[which] = 1e200 * log[which]
    with pytest.raises(ArgumentError, match="so large that their squares are not finite"):
        ident.identify(recorded.known, **log)

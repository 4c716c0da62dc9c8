# SPDX-License-Identifier: BSD-3-Clause
"""``make identify``: identification of simulated logs of a Panda and a UR5, figures and bounds.

Logs have positions of encoders (quantised), joint forces with white noise (quantised too), friction
and rotors that the model does not know, and masses that it has wrong by up to a fifth. Velocities
and accelerations are differentiated from positions. Exit code 1 if a bound is not kept.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np

import phistar
from phistar import ident
from phistar.arrays import Array
from phistar.errors import ModelMismatchWarning
from phistar.progress import progress_bar
from tools.identify_logs import quantised, random_motion, torque_noise, true_robot

ROBOTS = ("panda", "ur5")
DT = 2e-3
"""Time between samples [s]."""
SECONDS = 20.0
ENCODER = 2.0 * np.pi / 2**20
"""Steps of positions [rad]."""
CUTOFF = 10.0
"""Of the filter [Hz]; the motions have up to 1 Hz."""
MARGIN = 0.02
"""By how much errors on unseen motions may exceed the noise of forces."""
INSIDE, REPETITIONS = 93, 100
LARGE, MOST_SECONDS = 10**6, 10.0
FALL = 5.0
"""Factor by which excitation lowers the condition number of the Panda."""


@dataclass
class Verdicts:
    """Figures and whether they keep their bounds."""

    kept: bool = True

    def say(self, what: str, figure: str, bound: str, good: bool) -> None:
        """Print one line."""
        self.kept &= bool(good)
        print(f"{'ok ' if good else 'NOT'}  {what:48} {figure:>14}   {bound}", flush=True)


@dataclass(frozen=True)
class Measured:
    """A log as sensors give it.

    Attributes:
        q, tau: (N, n) positions and forces.
        noise: (N, n) what of the forces is noise and rounding.
    """

    q: Array
    tau: Array
    noise: Array


def measured(true: phistar.Robot, rng: np.random.Generator, seconds: float) -> Measured:
    """A random motion of a robot."""
    t = DT * np.arange(round(seconds / DT))
    q, v, vdot = random_motion(true, rng).at(t)
    forces = true.inverse_dynamics(q, v, vdot, passive=True)
    deviation = torque_noise(true)
    noisy = forces + deviation * rng.normal(size=forces.shape)
    tau = quantised(noisy, 0.1 * deviation)
    return Measured(quantised(q, ENCODER), tau, tau - forces)


def unseen_error(found: ident.Identification, log: Measured) -> float:
    """Largest over the joints: error on a motion that was not used, relative to its noise.

    The noise is that of the same samples, which the true robot would not predict either. Around
    rest dry friction may be anything: as in the estimate, 1 % of the largest speed is left out.
    """
    at = ident.differentiate(log.q, DT, CUTOFF)
    error = found.predict(at.x, at.first, at.second) - log.tau[at.kept]
    moving = np.abs(at.first) > 0.01 * np.abs(at.first).max(axis=0)
    squares, floor = (
        (x**2 * moving).sum(axis=0) for x in (error, log.noise[at.kept])
    )  # fmt: skip
    return float(np.sqrt(squares / floor).max())


def true_beta(true: phistar.Robot, base: ident.BaseParameters) -> Array:
    """Base parameters of the robot that made a log."""
    return np.asarray(base.matrix @ ident.Columns.of(true).values)


def repetitions(name: str, count: int, verdicts: Verdicts) -> None:
    """Many robots near a known one, each identified from a log of its own."""
    known = phistar.load(name)
    inside, possible, worst = 0, 0, []
    with progress_bar(sys.stderr.isatty(), f"identifying {name}", count, "logs") as advance:
        for seed in range(count):
            rng = np.random.default_rng([seed, len(name)])
            true = true_robot(known, rng)
            log = measured(true, rng, SECONDS)
            found = ident.identify(known, log.q, tau=log.tau, dt=DT, cutoff=CUTOFF)
            inside += found.contains(true_beta(true, found.base))
            bodies = found.robot.parameters.reshape(-1, 10)
            joints = found.parameters[found.columns.positive]
            possible += bool(ident.is_possible(bodies).all() and (joints >= 0.0).all())
            worst.append(unseen_error(found, measured(true, rng, SECONDS)))
            advance(1)
    mean, largest = float(np.mean(worst)) - 1.0, float(np.max(worst)) - 1.0
    verdicts.say(
        f"{name}: unseen motion, error over noise floor, mean", f"{mean:+.2%}", f"<= {MARGIN:.0%}",
        mean <= MARGIN,
    )  # fmt: skip
    verdicts.say(
        f"{name}: the same, worst joint of all logs", f"{largest:+.2%}", f"<= {MARGIN:.0%}",
        largest <= MARGIN,
    )  # fmt: skip
    least = INSIDE * count // REPETITIONS
    verdicts.say(
        f"{name}: true values inside the 95 % ellipsoid", f"{inside} of {count}", f">= {least}",
        inside >= least,
    )  # fmt: skip
    verdicts.say(
        f"{name}: physically possible estimates", f"{possible} of {count}", f"= {count}",
        possible == count,
    )  # fmt: skip


def large_log(verdicts: Verdicts, samples: int) -> None:
    """A Panda, a million samples with all derivatives."""
    rng = np.random.default_rng(0)
    known = phistar.load("panda")
    true = true_robot(known, rng)
    q, v, vdot = random_motion(known, rng, period=100.0, harmonics=40).at(1e-3 * np.arange(samples))
    tau = true.inverse_dynamics(q, v, vdot, passive=True)
    tau += torque_noise(known) * rng.normal(size=tau.shape)
    begin, worked = time.perf_counter(), time.process_time()
    found = ident.identify(known, q, v, vdot, tau)
    seconds = time.perf_counter() - begin
    print(f"     {time.process_time() - worked:.2f} s of processors, load {os.getloadavg()[0]:.1f}")
    verdicts.say(
        f"panda: {samples:.0e} samples", f"{seconds:.2f} s", f"< {MOST_SECONDS:g} s",
        seconds < MOST_SECONDS and found.fit.rank == len(found.base),
    )  # fmt: skip


def wrong_models(verdicts: Verdicts) -> None:
    """Joints exchanged, the sign of a force: all pairs and joints."""
    for name in ROBOTS:
        rng = np.random.default_rng(7)
        known = phistar.load(name)
        log = measured(true_robot(known, rng), rng, SECONDS)
        n = known.nv
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        said = sum(_told(known, log, _exchanged(n, pair), None, pair) for pair in pairs)
        signs = sum(_told(known, log, list(range(n)), joint, (joint,)) for joint in range(n))
        verdicts.say(
            f"{name}: exchanged joints told by name", f"{said} of {len(pairs)}",
            f"= {len(pairs)}", said == len(pairs),
        )  # fmt: skip
        verdicts.say(
            f"{name}: wrong signs of forces told by name", f"{signs} of {n}", f"= {n}", signs == n
        )


def _exchanged(n: int, pair: tuple[int, int]) -> list[int]:
    order = list(range(n))
    order[pair[0]], order[pair[1]] = pair[1], pair[0]
    return order


def _told(
    robot: phistar.Robot, log: Measured, order: list[int], sign: int | None, joints: tuple[int, ...]
) -> bool:
    """Whether a spoilt log is recognised, by the names of the joints."""
    tau = np.array(log.tau[:, order])
    if sign is not None:
        tau[:, sign] *= -1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelMismatchWarning)
        found = ident.identify(
            robot, log.q[:, order], tau=tau, dt=DT, cutoff=CUTOFF, consistent=False, folds=1
        )
    return any(all(robot.joint_names[k] in text for k in joints) for text in found.doubts)


def exciting_motion(verdicts: Verdicts) -> None:
    """The Panda's base regressor, beside random motions of the same duration within its limits."""
    panda = phistar.load("panda")
    begin = time.perf_counter()
    found = ident.excitation(panda, progress=False)
    seconds = time.perf_counter() - begin
    ratio = found.first_condition / found.condition
    print(f"     condition {found.first_condition:.0f} at random, {found.condition:.0f} found in "
          f"{seconds:.1f} s")  # fmt: skip
    verdicts.say(
        "panda: condition falls by excitation", f"{ratio:.1f} x", f">= {FALL:g} x", ratio >= FALL
    )
    q, v, vdot = found.at(np.linspace(0.0, found.series.period, 20011))
    limits = panda.limits
    tau = panda.inverse_dynamics(q, v, vdot, passive=True)
    within = (
        (q >= limits.lower).all() and (q <= limits.upper).all()
        and (np.abs(v) <= limits.velocity).all() and (np.abs(tau) <= limits.effort).all()
    )  # fmt: skip
    verdicts.say("panda: limits of q, v and tau kept", "yes" if within else "no", "yes", within)


def main() -> int:
    """All figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--samples", type=int, default=LARGE)
    options = parser.parse_args()
    verdicts = Verdicts()
    exciting_motion(verdicts)
    wrong_models(verdicts)
    for name in ROBOTS:
        repetitions(name, options.repetitions, verdicts)
    large_log(verdicts, options.samples)
    return 0 if verdicts.kept else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""``phistar control ROBOT``: a robot under a control law, with its Lyapunov function drawn."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from phistar import control
from phistar.arrays import Array
from phistar.cli import UsageError
from phistar.cli.chart import chart
from phistar.cli.loop_report import onto_configuration, onto_loops
from phistar.cli.options import add_loading, add_robot, add_tree, load_closing, seed
from phistar.cli.series import check_target, write_series
from phistar.cli.terminal import clean, vector
from phistar.cli.usage_errors import usage_errors
from phistar.control import Law, Regulation
from phistar.errors import pluralize
from phistar.model.kinematic_loops import active_loops
from phistar.robot import Robot

EXAMPLE = "phistar control ur5 --law pose --frame tool0 --out motion.csv"
LAWS = ("pose", "rate", "computed_torque", "pd_gravity", "operational")
GAINS = ("damping", "stiffness", "length", "inner")
"""Options that are passed to a law by name, if the law has them."""
GAINS_OF_LAW = {
    "rate": ("damping",),
    "pose": ("damping", "stiffness", "length"),
    "computed_torque": ("damping", "stiffness"),
    "pd_gravity": ("damping", "stiffness"),
    "operational": ("damping", "stiffness", "inner"),
}
LAWS_WITH_GRAVITY_OPTION = ("rate", "pose", "pd_gravity")
"""Laws in which gravity compensation is optional."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    text = f"{', '.join(LAWS)} (default: pose)"
    parser.add_argument("--law", choices=LAWS, default="pose", metavar="LAW", help=text)
    text = "frame that goes to a pose (default: the last link)"
    parser.add_argument("--frame", metavar="NAME", help=text)
    text = "random (default), neutral, home, a named configuration, or numbers: --start=0,-1.2,..."
    parser.add_argument("--start", metavar="Q", default="random", help=text)
    text = "likewise, or near (default): within 0.6 of the start; a frame goes to its pose there"
    parser.add_argument("--goal", metavar="Q", default="near", help=text)
    text = "velocity at the start: zero, random or numbers (default: random for rate, else zero)"
    parser.add_argument("--velocity", metavar="V", help=text)
    parser.add_argument("--seed", type=seed, default=0, help="of everything random (default: 0)")
    _gain(parser, "--damping", "c1 or k_d")
    _gain(parser, "--stiffness", "c2 or k_p")
    _gain(parser, "--length", "pose: length of the axes, the weight of orientation [m]")
    _gain(parser, "--inner", "operational: damping of motions without effect on the frame [1/s]")
    parser.add_argument(
        "--gravity-compensation",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="add the forces that hold the robot (default: yes)",
    )
    text = "joints with motors, of a robot with loops: all (default), file, or names with commas"
    parser.add_argument("--actuated", metavar="NAMES", default="all", help=text)
    parser.add_argument("--limits", action="store_true", help="limit forces as the file says")
    parser.add_argument("--duration", type=float, default=3.0, metavar="S", help="default: 3 s")
    parser.add_argument("--dt", type=float, default=0.002, metavar="S", help="default: 0.002 s")
    text = "write the motion as FILE.csv or FILE.npz"
    parser.add_argument("--out", metavar="FILE", help=text)
    add_loading(parser)
    add_tree(parser)


def _gain(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, type=float, metavar="X", help=f"{text} (default: the law's)")


def run(options: argparse.Namespace) -> int:
    """Run the law, draw its Lyapunov function and print the outcome."""
    if options.out:
        check_target("--out", options.out)
    robot = load_closing(options.robot, options)
    rng = np.random.default_rng(options.seed)
    start = _configuration(robot, options.start, rng, "--start")
    goal = _configuration(robot, options.goal, rng, "--goal", start)
    velocity = _velocity(robot, options, rng)
    if active_loops(robot.loops):
        start, velocity = onto_loops(robot, start, velocity)
        if options.law != "rate":
            goal = onto_configuration(robot, goal, "goal")
    with usage_errors():
        law = _law(robot, options, goal)
        regulation = control.regulate(
            law,
            start,
            velocity,
            duration=options.duration,
            dt=options.dt,
            progress=sys.stdout.isatty(),
        )
    _print(regulation, goal)
    if options.out:
        _write(options.out, regulation)
        print(f"wrote {clean(options.out)}")
    return 0


def _configuration(
    robot: Robot, word: str, rng: np.random.Generator, option: str, start: Array | None = None
) -> Array:
    if word == "random":
        return robot.random_configuration(rng)
    if word == "near" and start is not None:
        return robot.integrate(start, rng.uniform(-0.6, 0.6, robot.nv))
    if word in ("neutral", "home"):
        return robot.neutral() if word == "neutral" else robot.home
    if word in robot.configurations:
        return np.array(robot.configurations[word])
    known = list(dict.fromkeys(["random", "neutral", "home", *robot.configurations]))
    return _numbers(word, robot.nq, option, [*known, "near"] if start is not None else known)


def _velocity(robot: Robot, options: argparse.Namespace, rng: np.random.Generator) -> Array:
    word = options.velocity or ("random" if options.law == "rate" else "zero")
    if word == "random":
        return rng.normal(size=robot.nv)
    if word == "zero":
        return np.zeros(robot.nv)
    return _numbers(word, robot.nv, "--velocity", ["random", "zero"])


def _numbers(text: str, count: int, option: str, words: list[str]) -> Array:
    try:
        values = np.array([float(number) for number in text.split(",")])
    except ValueError:
        expected = f"{', '.join(words)} or {count} numbers with commas between them"
        raise UsageError(f"{option} is '{text}', expected {expected}") from None
    if len(values) != count:
        raise UsageError(f"{option} has {pluralize(len(values), 'number')}, expected {count}")
    if not np.isfinite(values).all():
        raise UsageError(f"{option} is '{text}', expected finite numbers")
    return values


def _law(robot: Robot, options: argparse.Namespace, goal: Array) -> Law:
    gains = {name: value for name in GAINS if (value := getattr(options, name)) is not None}
    for name in gains:
        if name not in GAINS_OF_LAW[options.law]:
            takes = ", ".join(f"--{x}" for x in GAINS_OF_LAW[options.law])
            raise UsageError(f"law '{options.law}' has no --{name}; it takes {takes}")
    settings: dict[str, Any] = {**gains, "limits": "robot" if options.limits else None}
    settings["actuated"] = _motors(robot, options.actuated)
    if options.law in LAWS_WITH_GRAVITY_OPTION:
        settings["gravity"] = options.gravity_compensation
    elif not options.gravity_compensation:
        raise UsageError(f"law '{options.law}' is made of inverse dynamics, gravity included")
    if options.law == "rate":
        return control.rate_feedback(robot, **settings)
    if options.law == "computed_torque":
        return control.computed_torque(robot, goal, **settings)
    if options.law == "pd_gravity":
        return control.pd_gravity(robot, goal, **settings)
    frame = options.frame or robot.link_names[-1]
    pose = robot.frame_pose(goal, frame)
    make = control.pose_control if options.law == "pose" else control.operational_space
    return make(robot, frame, pose, **settings)


def _motors(robot: Robot, text: str) -> list[str] | None:
    """Names of the joints with motors; None: all."""
    if text == "all":
        return None
    if text != "file":
        return text.split(",")
    if not robot.actuated:
        raise UsageError(f"--actuated is 'file', and that of '{robot.name}' says nothing of motors")
    return list(robot.actuated)


def _print(regulation: Regulation, goal: Array) -> None:
    robot, motors = regulation.law.robot, regulation.law.actuation
    for name in robot.joint_names if motors is None else motors.names:
        if robot.joints[name].kind == "free":
            print(f"note: joint '{clean(name)}' is free, and the law drives it as a motor would")
    print(f"start {vector(regulation.q[0])}")
    if regulation.law.name != "rate":
        print(f"goal  {vector(goal)}")
    for line in chart("Lyapunov function", regulation.t, regulation.lyapunov, logarithmic=True):
        print(line)
    print(clean(regulation))


def _write(path: str, regulation: Regulation) -> None:
    robot = regulation.law.robot
    names = {"q": _names(robot, "q_slice"), "v": _names(robot, "v_slice")}
    keys = ("t", "q", "v", "tau", "error", "lyapunov", "kinetic", "potential", "singular_value")
    arrays = {key: getattr(regulation, key) for key in keys}
    write_series(path, arrays, {**names, "tau": names["v"]})


def _names(robot: Robot, which: str) -> list[str]:
    """A name for each coordinate: the joint's, with a number if it has several."""
    names: list[str] = []
    for name in robot.joint_names:
        indices = getattr(robot.joints[name], which)
        count = indices.stop - indices.start
        names += [name] if count == 1 else [f"{name}.{k}" for k in range(count)]
    return names

# SPDX-License-Identifier: BSD-3-Clause
"""``phistar demo``: a short tour. The Python lines it shows are the lines it runs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from importlib.util import find_spec

import numpy as np
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

import phistar
from phistar.cli.demo_dynamics import DYNAMICS_STEPS
from phistar.cli.demo_step import DemoStep, Names
from phistar.cli.demo_world import WORLD_STEPS
from phistar.cli.info import print_tree
from phistar.cli.terminal import clean, make_console, problem_text, vector
from phistar.cli.tree_drawing import loop_text, mimic_text
from phistar.errors import ModelError
from phistar.explain import derivation

EXAMPLE = "phistar demo"
BROKEN = b"""<robot name="broken">
  <link name="base"/>
  <link name="upper_arm">
    <inertial>
      <mass value="nan"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
    </inertial>
  </link>
  <link name="forearm"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper_arm"/><axis xyz="0 0 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="2"/>
  </joint>
  <joint name="elbow" type="hinge">
    <parent link="uper_arm"/><child link="forearm"/>
  </joint>
</robot>
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command: none."""


def run(options: argparse.Namespace) -> int:
    """Run the steps, each with the names of the earlier ones."""
    console = make_console()
    names: Names = {"np": np, "phistar": phistar, "rng": np.random.default_rng(0), "broken": BROKEN}
    console.print(Text("phistar, in a few seconds", style="bold"))
    console.print("The lines of Python are those that run, every number is computed.", style="dim")
    for count, step in enumerate(STEPS, 1):
        console.print()
        console.print(Text(f"{count}. {step.title}", style="bold"))
        if step.needs and find_spec(step.needs) is None:
            console.print(f"{step.needs} is not installed, so there is nothing to compare with")
            continue
        _print_code(console, step.code)
        start = time.perf_counter()
        # Constant text: what is shown is what runs.
        exec(compile(step.code, "<demo>", "exec"), names)
        step.show(console, names, time.perf_counter() - start)
    _print_outlook(console)
    return 0


def _print_code(console: Console, code: str) -> None:
    for line in code.splitlines():
        prompt = "... " if line.startswith((" ", "except")) else ">>> "
        highlighted = Syntax("", "python", background_color="default").highlight(line)
        highlighted.rstrip()
        console.print(Text(prompt, style="dim").append_text(highlighted), soft_wrap=True)


def _show_arm(console: Console, names: Names, seconds: float) -> None:
    console.print(clean(repr(names["arm"])))
    print_tree(console, names["arm"], None)


def _show_poses(console: Console, names: Names, seconds: float) -> None:
    poses, shoulder = names["T"], np.array([0.0, 0.0, 0.333])
    reach = np.linalg.norm(poses[:, :3, 3] - shoulder, axis=-1).max()
    console.print(f"T has shape {poses.shape}: {1e3 * seconds:.0f} ms, its compilation included")
    console.print(f"farthest flange: {reach:.3f} m from the shoulder")


def _show_jacobian(console: Console, names: Names, seconds: float) -> None:
    console.print(f"J v, linear part        {_digits(names['predicted'])} m/s")
    console.print(f"central difference      {_digits(names['measured'])} m/s")
    console.print(f"largest difference      {names['error']:.1e} m/s")


def _show_proof(console: Console, names: Names, seconds: float) -> None:
    lines = derivation(names["proof"], limit=6, rules=False).splitlines()
    for line in lines:
        console.print(line, soft_wrap=True)
    console.print(f"{1e3 * seconds:.0f} ms; phistar prove forward_dynamics shows every step")


def _show_sweeps(console: Console, names: Names, seconds: float) -> None:
    for line in names["program"].sweeps.splitlines():
        console.print(line, soft_wrap=True)
    program = names["program"].schedule.program
    console.print(
        f"{len(program.recursions)} recursions in {len(names['program'].schedule.sweeps)} passes "
        "over the links: the articulated-body algorithm, no loop of it written by hand"
    )


def _show_dynamics(console: Console, names: Names, seconds: float) -> None:
    count = len(names["vdot"])
    console.print(f"{count} states there and back: {1e3 * seconds:.0f} ms")
    console.print(f"inverse dynamics gives tau back within {names['error']:.1e}, relative")


def _show_dense(console: Console, names: Names, seconds: float) -> None:
    console.print(f"the definition, as matrices {_digits(names['slow'][:3])} ... rad/s^2")
    console.print(f"the sweeps                  {_digits(names['vdot'][0][:3])} ... rad/s^2")
    console.print(f"largest relative difference {names['error']:.1e}")


def _show_peer(console: Console, names: Names, seconds: float) -> None:
    console.print(f"{len(names['theirs'])} states by Pinocchio {names['pin'].__version__}")
    console.print(f"largest relative difference {names['error']:.1e}")


def _show_speed(console: Console, names: Names, seconds: float) -> None:
    ours, slow = names["ours"], names["by_numpy"]
    rate = f"{1e-6 / ours:.1f} million per second"
    console.print(f"machine code             {1e9 * ours:6.0f} ns per state, {rate}")
    longer = f"{slow / ours:.0f} times as long"
    console.print(f"the same sweeps in NumPy {1e9 * slow:6.0f} ns per state, {longer}")


def _show_peer_speed(console: Console, names: Names, seconds: float) -> None:
    ours, theirs = names["ours"], names["by_pinocchio"]
    times = f"{theirs / ours:.0f} times as long"
    console.print(f"Pinocchio in a Python loop {1e9 * theirs:.0f} ns per state, {times}")
    console.print("make bench compares carefully, and also with its C++ loop", style="dim")


def _show_passes(console: Console, names: Names, seconds: float) -> None:
    for stage in names["energy"].passes:
        lines = [line for line in stage.text.splitlines() if line.strip()]
        console.print(
            f"{stage.name:<9}{stage.level:<12}{lines[0][:54]}", highlight=False, markup=False
        )
        if len(lines) > 1:
            console.print(f"{'':21}... {len(lines)} lines", style="dim")
    console.print(
        f"{names['energy'].cost.total} operations; {names['count']} quantities have such rows"
    )


def _show_export(console: Console, names: Names, seconds: float) -> None:
    for file in names["files"]:
        console.print(f"{file.stat().st_size:>8} bytes  {file}", soft_wrap=True)
    console.print("make test in that folder compiles and runs the self-test", style="dim")


def _digits(values: Iterable[float]) -> str:
    return "(" + ", ".join(f"{value: .9f}" for value in values) + ")"


def _show_floating(console: Console, names: Names, seconds: float) -> None:
    dog, q = names["dog"], names["q"]
    console.print(clean(repr(dog)))
    console.print("The base turned by one radian about its z axis while moving 0.3 m forward:")
    console.print(f"position {vector(q[:3])} m, quaternion xyzw {vector(q[3:7])}")
    console.print(f"length of the quaternion - 1 = {names['length'] - 1.0:.1e}")
    console.print(f"difference(q0, q) gives dv back within {names['error']:.1e}")


def _show_bad_sample(console: Console, names: Names, seconds: float) -> None:
    console.print(f"refused: {names['refusal']}", style="yellow", soft_wrap=True)
    console.print(f"with on_error='nan' the other {names['good']} of 4096 have their accelerations")


def _show_loop(console: Console, names: Names, seconds: float) -> None:
    sim = names["sim"]
    console.print(loop_text(names["bars"].loops[0], console.options.ascii_only), style="magenta")
    console.print(f"crank at 0.3 rad, loop open by {names['gap']:.4f} m; assembled:")
    console.print(f"q = {_digits(names['q'])}")
    console.print(clean(names["mobility"]), soft_wrap=True)
    console.print(f"{sim.t[-1]:g} s of motion in {sim.steps} steps, {seconds:.1f} s:", end=" ")
    console.print(f"loop open by at most {names['error']:.1e} m,")
    console.print(f"energy kept within {sim.drift().relative_energy:.1e}, relative;", end=" ")
    console.print(f"the pin pushes the coupler with up to {names['push']:.1f} N")


def _show_mimic(console: Console, names: Names, seconds: float) -> None:
    gripper, opening = names["gripper"], names["opening"]
    law = gripper.joints["panda_finger_joint2"].mimic
    console.print(
        f"panda_finger_joint2 {mimic_text(law)}: nv is {gripper.nv}, not {gripper.nv + 1}"
    )
    console.print(f"asking for 0.03 m at one finger opens both: {opening:.4f} m between them")


def _show_broken(console: Console, names: Names, seconds: float) -> None:
    console.print(Text("broken is this text:", style="dim"))
    for number, line in enumerate(BROKEN.decode().splitlines(), 1):
        console.print(Text(f"{number:>4}  {line}", style="dim"), soft_wrap=True)
    error: ModelError = names["error"]
    for problem in error.problems:
        console.print(problem_text(problem, "<bytes>"))


def _print_outlook(console: Console) -> None:
    console.print()
    console.print(Text("What to do next", style="bold"))
    for line, what in NEXT.items():
        console.print(f"{line:<41}{what}", soft_wrap=True)


NEXT = {
    "make view": "drag the arm, see its algebra at work",
    "make view ROBOT=quadruped": "another one, in your browser too",
    "phistar explain forward_dynamics panda": "from operators to operation counts",
    "phistar check robot.urdf": "your own robot",
    "make examples": "controllers at work, with plots",
    "make docs": "start here, and eight tutorials",
}
"""Lines to type, and what they do."""


STEPS = (
    DemoStep("A robot by its name", 'arm = phistar.load("panda")', _show_arm),
    DemoStep(
        "Where is the flange? 10 000 configurations at once",
        "Q = arm.random_configuration(rng, 10_000)\nT = arm.frame_pose(Q, 'panda_link8')",
        _show_poses,
    ),
    DemoStep(
        "Is the Jacobian right? Next to a finite difference",
        """\
q, v, h = Q[0], rng.normal(size=arm.nv), 1e-6
predicted = (arm.jacobian(q, 'panda_link8') @ v)[3:]
ahead = arm.frame_pose(arm.integrate(q, h * v), 'panda_link8')
behind = arm.frame_pose(arm.integrate(q, -h * v), 'panda_link8')
measured = (ahead - behind)[:3, 3] / (2 * h)
error = abs(predicted - measured).max()""",
        _show_jacobian,
    ),
    DemoStep(
        "Forward dynamics is a theorem: the rules of the papers prove it",
        'proof = phistar.prove("forward_dynamics")',
        _show_proof,
    ),
    DemoStep(
        "What is proved is compiled: the expression becomes sweeps",
        'from phistar.compile import kernel\nprogram = kernel("forward_dynamics")',
        _show_sweeps,
    ),
    DemoStep(
        "Run it: accelerations from torques, and the torques back",
        """\
Q, count = Q[:1000], 1000
V, tau = rng.normal(size=(count, arm.nv)), 20 * rng.normal(size=(count, arm.nv))
vdot = arm.forward_dynamics(Q, V, tau)
error = abs(arm.inverse_dynamics(Q, V, vdot) - tau).max() / abs(tau).max()""",
        _show_dynamics,
    ),
    DemoStep(
        "Is it right? Next to the definition, evaluated as plain matrices",
        """\
from phistar.algebra.dense import Dense
from phistar.algorithms.equations_of_motion import in_motion
given = {"v": V[0], "tau": tau[0], "f_ext": np.zeros((arm.nv, 6))}
dense = Dense(arm.model, Q[0], vectors=given)
slow = dense(in_motion(proof.theorem.definition))
error = abs(slow - vdot[0]).max() / abs(slow).max()""",
        _show_dense,
    ),
    DemoStep(
        "Do others agree? Next to Pinocchio",
        """\
import pinocchio as pin
peer = pin.buildModelFromUrdf(str(phistar.robots.path("panda")))
data = peer.createData()
theirs = np.array([pin.aba(peer, data, *state) for state in zip(Q, V, tau)])
error = abs(theirs - vdot).max() / abs(theirs).max()""",
        _show_peer,
        needs="pinocchio",
    ),
    DemoStep(
        "How fast? A hundred thousand states, one in each SIMD lane",
        """\
from timeit import repeat
many, few = 100_000, slice(4096)
Q, V, tau = (np.resize(x, (many, arm.nv)) for x in (Q, V, tau))
ours = min(repeat(lambda: arm.forward_dynamics(Q, V, tau), number=1)) / many
slow = arm.compile("forward_dynamics", backend="numpy")
by_numpy = min(repeat(lambda: slow(Q[few], v=V[few], tau=tau[few]), number=1)) / 4096""",
        _show_speed,
    ),
    DemoStep(
        "And Pinocchio, called from Python?",
        """\
states = list(zip(Q[:1000], V[:1000], tau[:1000]))
by_pinocchio = min(repeat(lambda: [pin.aba(peer, data, *s) for s in states], number=1)) / 1000""",
        _show_peer_speed,
        needs="pinocchio",
    ),
    DemoStep(
        "One pipeline for everything: an energy, pass by pass",
        """\
from phistar.compile import REQUESTS
energy, count = arm.compile("kinetic_energy"), len(REQUESTS)""",
        _show_passes,
    ),
    *DYNAMICS_STEPS,
    DemoStep(
        "The same program for a controller without Python: C99",
        """\
import tempfile
from phistar.c_export import export_c
folder = tempfile.mkdtemp(prefix="phistar-panda-")
files = export_c(arm.model, ["forward_dynamics"], folder)""",
        _show_export,
    ),
    DemoStep(
        "A free base moves on its manifold",
        """\
dog = phistar.load("quadruped")
dv = dog.tangent({"root_joint": [0, 0, 1, 0.3, 0, 0]})
q0 = dog.neutral()
q = dog.integrate(q0, dv)
length = np.linalg.norm(q[3:7])
error = abs(dog.difference(q0, q) - dv).max()""",
        _show_floating,
    ),
    DemoStep(
        "A bad sample is named, and need not cost the batch",
        """\
states = dog.random_configuration(rng, 4096)
states[7, 3:7] *= 1.5
rest = np.zeros((4096, dog.nv))
try:
    dog.forward_dynamics(states, rest, rest)
except phistar.errors.QuaternionError as problem:
    refusal = problem
vdot = dog.forward_dynamics(states, rest, rest, on_error="nan")
good = np.isfinite(vdot).all(axis=-1).sum()""",
        _show_bad_sample,
    ),
    *WORLD_STEPS,
    DemoStep(
        "A four-bar linkage has a loop, and keeps it closed",
        """\
bars = phistar.load("four_bar")
q0 = bars.configuration({"crank_joint": 0.3})
gap = np.linalg.norm(bars.loop_error(q0)["coupler_closure"])
q = bars.assemble(q0, fixed=["crank_joint"])
mobility = bars.mobility(q)
sim = bars.simulate(q, np.zeros(bars.nv), dt=5e-3, duration=1.0)
error = abs(sim.loop_error()).max()
push = np.linalg.norm(sim.wrenches("coupler_closure")[:, 3:], axis=-1).max()""",
        _show_loop,
    ),
    DemoStep(
        "A finger that mimics another has no coordinate of its own",
        """\
gripper = phistar.load("panda_hand")
poses = gripper.link_poses({"panda_finger_joint1": 0.03})
apart = poses["panda_leftfinger"] - poses["panda_rightfinger"]
opening = np.linalg.norm(apart[:3, 3])""",
        _show_mimic,
    ),
    DemoStep(
        "A broken file: every fault, where it is and what to do",
        """\
try:
    phistar.load(broken)
except phistar.errors.ModelError as problem:
    error = problem""",
        _show_broken,
    ),
)

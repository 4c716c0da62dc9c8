# SPDX-License-Identifier: BSD-3-Clause
"""Steps of ``phistar demo``: goals, loads, logs, the ground, long chains, pages."""

from __future__ import annotations

from rich.console import Console

from phistar.cli.demo_step import DemoStep, Names


def _show_reach(console: Console, names: Names, seconds: float) -> None:
    found = names["found"]
    console.print(
        f"{found.success.sum()} of {len(names['goals'])} goals reached in {seconds:.1f} s"
    )
    console.print(
        f"with 2 kg in the hand the arm needs {names['more']:.1f} N m more to hold itself"
    )


def _show_load(console: Console, names: Names, seconds: float) -> None:
    load = names["load"]
    console.print(f"{len(names['tau'])} samples of noisy torques: {load.mass:.3f} kg", end=" ")
    console.print(f"± {2.0 * load.deviation[0]:.3f} kg, and it was {names['mass']:.3f} kg")


def _show_stand(console: Console, names: Names, seconds: float) -> None:
    robots = names["robots"]
    down = names["height"] * 1000.0
    console.print(f"{robots.batch} quadrupeds stand for 1 s, {robots.engine}, in {seconds:.1f} s")
    console.print(f"they carry {names['share']:.4f} of their weight; trunks sank by {down:.1f} mm")


def _show_parallel(console: Console, names: Names, seconds: float) -> None:
    cost = names["rounds"].cost
    console.print(f"{cost.work:.0f} operations, of which {cost.span:.0f} one after the other")
    console.print(f"next to the recursion  {names['error']:.1e} of the largest acceleration")


def _show_pages(console: Console, names: Names, seconds: float) -> None:
    for page in (names["page"], names["report"]):
        console.print(f"{page.stat().st_size / 1e6:.1f} MB  {page}", soft_wrap=True)
    console.print("open them in a browser; they need no network")


WORLD_STEPS = (
    DemoStep(
        "Goals for the hand, and a load in it",
        """\
goals = arm.frame_pose(arm.random_configuration(rng, 256), "panda_link8")
found = arm.inverse_kinematics({"panda_link8": goals})
loaded = arm.with_payload("panda_link8", mass=2.0)
more = abs(loaded.gravity_force(arm.home) - arm.gravity_force(arm.home)).max()""",
        _show_reach,
    ),
    DemoStep(
        "What does the hand carry? A log of its motion tells",
        """\
from phistar import ident
path, mass = ident.FourierSeries(arm.home, 0.1 * rng.normal(size=(7, 10)), period=5.0), 2.0
q, v, vdot = path.at(np.arange(0.0, 5.0, 0.005))
tau = loaded.inverse_dynamics(q, v, vdot, passive=True) + 0.5 * rng.normal(size=q.shape)
load = ident.payload(arm, "panda_link8", q, v, vdot, tau)""",
        _show_load,
    ),
    DemoStep(
        "Sixty-four quadrupeds on the ground",
        """\
robots = dog.simulator(64, dt=1e-3)
start = robots.q
legs = slice(6, None)
for _ in range(500):
    tau = np.zeros_like(robots.v)
    tau[:, legs] = 8.0 * (dog.home[7:] - robots.q[:, 7:]) - 0.1 * robots.v[:, legs]
    robots.step(tau, substeps=2)
weight = dog.total_mass * 9.81
share = robots.contacts.force[..., 2].sum(axis=-1).mean() / weight
height = (start[:, 2] - robots.q[:, 2]).mean()""",
        _show_stand,
    ),
    DemoStep(
        "A chain of 1000 links in a few rounds over all links at once",
        """\
chain = phistar.robots.chain(1000)
rounds = chain.compile("forward_dynamics", schedule="parallel", backend="numpy")
state = rng.normal(size=(3, 1000))
one = chain.forward_dynamics(*state)
error = abs(chain.forward_dynamics(*state, method="parallel") - one).max() / abs(one).max()""",
        _show_parallel,
    ),
    DemoStep(
        "Pages for any browser: the motion, and a report on the robot",
        """\
from phistar.report import write_report
page = arm.save_html(f"{folder}/panda.html", sim)
report = write_report(arm, f"{folder}/report.html", timings=False)""",
        _show_pages,
    ),
)

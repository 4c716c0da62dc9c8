# SPDX-License-Identifier: BSD-3-Clause
"""A reach solved in CasADi and cart-poles in Gymnasium, beside those of Pinocchio and MuJoCo.

``make bench`` prints it at its end, ``python -m benchmarks.casadi_gym`` alone. Where
``pinocchio.casadi`` is missing, our own forward dynamics as a graph of CasADi, which it
differentiates by itself, shows what such graphs take.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import phistar
from phistar import Robot
from phistar.c_export import scalar_program
from phistar.compile import compile_request, request
from phistar.scalar.graph import Value

STEPS = 40
ENVS, RIVAL_ENVS = 4096, 16
CART_POLE, RIVAL = "phistar/CartPoleSwingUp-v0", "InvertedPendulum-v5"
REACH_GOAL, ENV_GOAL = 5.0, 10.0
"""How many times faster we have to be than Pinocchio's graphs, and than MuJoCo's environments."""


@dataclass(frozen=True)
class AdapterRow:
    """Something of ours beside something of others.

    Attributes:
        task: What is done.
        who: By whom.
        text: What it takes.
        ratio: How many times faster ours is; None for ours.
        goal: What that should be; None without one.
    """

    task: str
    who: str
    text: str
    ratio: float | None = None
    goal: float | None = None


def _example(name: str) -> Any:
    """A script of ``examples`` as a module."""
    path = Path(__file__).resolve().parent.parent / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def graph_of_casadi(robot: Robot) -> Any:
    """Forward dynamics as an expression of CasADi, operation by operation."""
    import casadi as ca

    compiled = compile_request(request("forward_dynamics", robot.model.turning_rotors))
    program = scalar_program(compiled, robot.model, "straight")
    symbols = {n: ca.SX.sym(n, size) for n, size in program.signature.inputs.items()}
    outputs = {n: ca.SX.zeros(size) for n, size in program.signature.outputs.items()}
    operations: dict[str, Callable[..., Any]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "guard": lambda x, least: x,
        "select": lambda a, b, x, y: ca.if_else(a > b, x, y),
        "neg": lambda a: -a,
        "sqrt": ca.sqrt,
        "sin": ca.sin,
        "cos": ca.cos,
    }
    values: dict[int, Any] = {}
    block = program.block  # type: ignore[union-attr]
    for number in block.live_nodes:
        op, *given = block.graph.nodes[number]
        if op == "const":
            values[number] = given[0]
        elif op == "load":
            values[number] = symbols[given[0].space][given[0].entry]
        else:
            values[number] = operations[op](*(values[i] for i in given))
    for store in block.stores:
        value = values[store.value.id] if isinstance(store.value, Value) else store.value
        if store.space in outputs:
            outputs[store.space][store.index] = value
    return ca.Function("graph", list(symbols.values()), list(outputs.values()))


def _pinocchio_graph(robot: Robot) -> Any:
    """Forward dynamics by ``pinocchio.casadi``; None where it is missing."""
    try:
        graphs = importlib.import_module("pinocchio.casadi")
    except ImportError:
        return None
    import casadi as ca
    import pinocchio

    plain = pinocchio.buildModelFromXML(robot.to_urdf())
    model = graphs.Model(plain)
    q, v, tau = (ca.SX.sym(name, robot.nv) for name in ("q", "v", "tau"))
    return ca.Function("aba", [q, v, tau], [graphs.aba(model, model.createData(), q, v, tau)])


def reach_rows(rounds: int) -> Iterator[AdapterRow]:
    """A reach of the Panda by IPOPT, the same problem with dynamics of several makers."""
    if importlib.util.find_spec("casadi") is None:
        yield AdapterRow("Panda reach", "CasADi", 'left out: pip install "phistar[casadi]"')
        return
    from phistar.interop import casadi as pc

    example, robot = _example("casadi_reach"), phistar.load("panda")
    pose = pc.function(robot, "frame_pose", frame=example.HAND, engine="c")
    graph, other = graph_of_casadi(robot), _pinocchio_graph(robot)
    makers = {
        "phistar, callbacks": pc.function(robot, "forward_dynamics", samples=STEPS),
        "phistar, C": pc.function(robot, "forward_dynamics", samples=STEPS, engine="c"),
        "our operations as a graph of CasADi": graph.map(STEPS),
    }
    if other is not None:
        makers["pinocchio.casadi"] = other.map(STEPS)
    best: dict[str, float] = {}
    costs: dict[str, Any] = {}
    for _ in range(rounds):
        for who, dynamics in makers.items():
            begin = time.process_time()
            found = example.solve(*example.problem_of(robot, STEPS, dynamics, pose))
            best[who] = min(best.get(who, np.inf), time.process_time() - begin)
            costs[who] = found
    ours = best["phistar, C"]
    for who, seconds in best.items():
        same = np.abs(costs[who].q - costs["phistar, C"].q).max()
        text = (
            f"{seconds:.2f} s of processor, {costs[who].iterations} iterations, q within {same:.0e}"
        )
        theirs = not who.startswith("phistar")
        goal = REACH_GOAL if theirs else None
        yield AdapterRow("Panda reach", who, text, seconds / ours if theirs else None, goal)
    if other is None:
        text = "left out: the installed pin has no pinocchio.casadi"
        yield AdapterRow("Panda reach", "pinocchio.casadi", text, None, REACH_GOAL)


def _steps_per_second(envs: Any, count: int, steps: int, rounds: int) -> float:
    envs.reset(seed=0)
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(8)]
    best = np.inf
    for _ in range(rounds):
        begin = time.perf_counter()
        for k in range(steps):
            envs.step(actions[k % len(actions)])
        best = min(best, time.perf_counter() - begin)
    return float(steps * count / best)


def environment_rows(rounds: int) -> Iterator[AdapterRow]:
    """Steps per second of cart-poles, 20 ms each."""
    task = f"cart-poles, {ENVS}"
    if importlib.util.find_spec("gymnasium") is None:
        yield AdapterRow(task, "Gymnasium", 'left out: pip install "phistar[gym]"')
        return
    import gymnasium

    from phistar.envs import RobotVectorEnv

    ours = _steps_per_second(RobotVectorEnv(CART_POLE, ENVS), ENVS, 20, rounds)
    yield AdapterRow(task, "RobotVectorEnv", f"{ours:,.0f} steps a second")
    try:
        rival = gymnasium.make_vec(RIVAL, num_envs=RIVAL_ENVS, vectorization_mode="sync")
    except ImportError as error:
        yield AdapterRow(task, RIVAL, f"left out: {error}", None, ENV_GOAL)
        return
    theirs = _steps_per_second(rival, RIVAL_ENVS, 50, rounds)
    who = f"{RIVAL} of MuJoCo, {RIVAL_ENVS} in a SyncVectorEnv"
    yield AdapterRow(task, who, f"{theirs:,.0f} steps a second", ours / theirs, ENV_GOAL)


def table(rows: list[AdapterRow]) -> Table:
    """Rows for people."""
    found = Table(title="CasADi and Gymnasium on this processor", title_justify="left")
    for name in ("task", "by", "takes", "ours is faster", "goal"):
        found.add_column(name, justify="left" if name != "goal" else "right")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.1f}x"
        goal = "" if row.goal is None else f">= {row.goal:g}x"
        if row.ratio is not None and row.goal is not None:
            goal += ", met" if row.ratio >= row.goal else ", MISSED"
        found.add_row(row.task, row.who, row.text, ratio, goal)
    return found


def measure(quick: bool = False) -> list[AdapterRow]:
    """All rows."""
    rounds = 1 if quick else 3
    return [*reach_rows(rounds), *environment_rows(rounds)]


if __name__ == "__main__":
    Console(width=150).print(table(measure()))

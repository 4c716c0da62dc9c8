# SPDX-License-Identifier: BSD-3-Clause
"""How load and first result grow with the robot: URDF chains, each in a process of its own.

    python -m benchmarks.size [--limit]

Each process loads a chain from memory, asks for inverse dynamics twice, with an empty code cache,
and tells what both took, imports of phistar apart. With ``--limit`` the command fails if a figure
is above its bound. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

LINKS = (1_000, 10_000, 100_000)
BOUNDS = {1_000: {"load + first": 0.3}, 100_000: {"load": 5.0, "first": 5.0}}
"""Seconds."""


def chain(links: int) -> bytes:
    """A URDF chain whose axes alternate."""
    rows = [
        f'<link name="l{k}"><inertial><origin xyz="0.05 0 {0.01 * (k % 7):g}"/><mass value="1"/>'
        '<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<joint name="j{k}" type="revolute"><parent link="l{k - 1}"/><child link="l{k}"/>'
        f'<origin xyz="0.1 0 0"/><axis xyz="0 {k % 2} {1 - k % 2}"/>'
        '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        for k in range(1, links + 1)
    ]
    return f'<robot name="chain"><link name="l0"/>{"".join(rows)}</robot>'.encode()


def measure(links: int) -> dict[str, float]:
    """Seconds for a chain, in this process."""
    import numpy as np

    import phistar

    source = chain(links)
    start = time.perf_counter()
    robot = phistar.load(source)
    loaded = time.perf_counter()
    rest = np.zeros(links)
    robot.inverse_dynamics(rest, rest, rest)
    first = time.perf_counter()
    robot.inverse_dynamics(rest, rest, rest)
    end = time.perf_counter()
    return {
        "load": loaded - start,
        "first": first - loaded,
        "warm": end - first,
        "load + first": first - start,
    }


def measured(links: int, bytecode: str) -> dict[str, float]:
    """Seconds for a chain, in a process of its own with an empty cache of machine code.

    Args:
        links: Of the chain.
        bytecode: The folder of Python's compiled modules: an installed package has them.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.size", "--one", str(links)]
        environment = {**os.environ, "PHISTAR_CACHE": folder, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(run.stdout)
    return found


def main() -> int:
    """Print the table; 1 if ``--limit`` is given and a bound is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", action="store_true", help="fail above the bounds")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return 0
    with tempfile.TemporaryDirectory() as bytecode:
        measured(10, bytecode)  # compiles the modules
        broken = _table(bytecode)
    print("\n".join(broken))
    return 1 if broken and options.limit else 0


def _table(bytecode: str) -> list[str]:
    """Print a row per chain; returns the bounds that are not kept."""
    broken: list[str] = []
    total: dict[int, float] = {}
    for links in LINKS:
        seconds = measured(links, bytecode)
        row = "".join(f"   {name} {value:9.4f} s" for name, value in seconds.items())
        for fewer, less in list(total.items())[-1:]:
            power = math.log(seconds["load + first"] / less) / math.log(links / fewer)
            row += f"   grows with links^{power:.2f}"
        total[links] = seconds["load + first"]
        print(f"{links:7d} links{row}", flush=True)
        bounds = BOUNDS.get(links, {}).items()
        broken += [f"{links} links: {n} above {s} s" for n, s in bounds if seconds[n] > s]
    return broken


if __name__ == "__main__":
    sys.exit(main())

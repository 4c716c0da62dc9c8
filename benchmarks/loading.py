# SPDX-License-Identifier: BSD-3-Clause
"""How long loading takes: the import, the bundled robots, and URDF chains of growing length.

Run by ``make bench-loading``. Where Pinocchio is installed, its URDF reader gets the same bytes in
the same run. For the chains it prints the growth exponent (1 is linear in the number of links).
"""

import argparse
import importlib.util
import math
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence

import phistar
from phistar import robots

Reader = Callable[[bytes], object]

LENGTHS = (1_000, 3_000, 10_000, 100_000)
# pin 4.1.0 ends the process by a segmentation fault at 10 000 links in a row.
PINOCCHIO_LIMIT = 3_000


def chain_urdf(n: int) -> bytes:
    """A URDF of ``n`` links in a row, joined by hinges about x, y, z in turn."""
    axes = ("1 0 0", "0 1 0", "0 0 1")
    lines = ['<robot name="chain">']
    for k in range(n):
        lines.append(
            f'<link name="link{k}"><inertial><origin xyz="0 0 0.05"/><mass value="1"/>'
            '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>'
        )
    for k in range(1, n):
        lines.append(
            f'<joint name="joint{k}" type="revolute"><parent link="link{k - 1}"/>'
            f'<child link="link{k}"/><origin xyz="0 0 0.1"/><axis xyz="{axes[k % 3]}"/>'
            '<limit lower="-3" upper="3" effort="10" velocity="5"/></joint>'
        )
    lines.append("</robot>")
    return "\n".join(lines).encode()


def best_time(act: Callable[[], object], at_most: float = 2.0, repeats: int = 5) -> float:
    """Least wall time of a call [s] over some repeats; stops early once ``at_most`` is spent."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < at_most:
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times)


def import_seconds(statement: str) -> float:
    """Time from starting an interpreter to its end [s], best of five."""
    command = [sys.executable, "-c", statement]
    return best_time(lambda: subprocess.run(command, check=True), at_most=10.0)


def pinocchio_reader() -> Reader | None:
    """Pinocchio's URDF reader, or None where it is not installed."""
    if importlib.util.find_spec("pinocchio") is None:
        return None
    import pinocchio

    return lambda data: pinocchio.buildModelFromXML(data.decode())


def growth_exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Slope of log(time) against log(size) between the first and the last point."""
    return math.log(times[-1] / times[0]) / math.log(sizes[-1] / sizes[0])


def report_import() -> None:
    """Print what ``import phistar`` adds to the start of an interpreter that has NumPy."""
    numpy_alone, both = import_seconds("import numpy"), import_seconds("import phistar")
    print(f"import phistar: {both:.3f} s, of which NumPy and Python {numpy_alone:.3f} s\n")


def report_bundled(reader: Reader | None) -> None:
    """Print one row for each bundled robot."""
    print(f"{'robot':20s} {'nq':>3s} {'nv':>3s} {'load [ms]':>10s}  pinocchio [ms]  ratio")
    for name in robots.names():
        robot = phistar.load(name)
        data = robots.path(name).read_bytes()
        seconds = best_time(lambda data=data: phistar.load(data))
        row = f"{name:20s} {robot.nq:3d} {robot.nv:3d} {1e3 * seconds:10.2f}"
        if reader is not None:
            theirs = best_time(lambda data=data: reader(data))
            row += f" {1e3 * theirs:15.2f} {seconds / theirs:6.1f}"
        print(row)
    print()


def report_chains(lengths: Sequence[int], reader: Reader | None) -> None:
    """Print one row for each length, and the growth exponent."""
    print("  links     MB  load [s]  us/link  pinocchio [s]  ratio")
    times = []
    for n in lengths:
        data = chain_urdf(n)
        times.append(best_time(lambda data=data: phistar.load(data)))
        row = f"{n:7d} {len(data) / 1e6:6.1f} {times[-1]:9.3f} {1e6 * times[-1] / n:8.1f}"
        if reader is not None and n <= PINOCCHIO_LIMIT:
            theirs = best_time(lambda data=data: reader(data))
            row += f" {theirs:14.3f} {times[-1] / theirs:6.1f}"
        print(row)
    if len(lengths) > 1:
        print(f"growth exponent: {growth_exponent(lengths, times):.2f} (1 is linear)")


def main() -> None:
    """Run all timings, or the chains of the given lengths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lengths", nargs="*", type=int, default=LENGTHS, help="links of the chains")
    lengths = tuple(parser.parse_args().lengths)
    python = platform.python_version()
    print(f"phistar {phistar.__version__}, Python {python}, {platform.platform()}\n")
    warnings.simplefilter("ignore", phistar.errors.PhistarWarning)
    reader = pinocchio_reader()
    if reader is None:
        print("Pinocchio is not installed: no comparison.\n")
    report_import()
    report_bundled(reader)
    report_chains(lengths, reader)


if __name__ == "__main__":
    main()

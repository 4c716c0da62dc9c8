# SPDX-License-Identifier: BSD-3-Clause
"""``phistar doctor``: installed packages, machine, and a self-check."""

from __future__ import annotations

import argparse
import os
import platform
import re
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from phistar import robots, settings
from phistar.cli.terminal import clean, make_console, print_line
from phistar.errors import PhistarError, pluralize
from phistar.robot import load

EXAMPLE = "phistar doctor"
EXTRAS = ("mjcf", "xacro", "examples", "viewer", "logs", "jax", "torch", "casadi", "gym", "dask")
"""Extras for users, without those for developers."""

SIMD = ("sse2", "sse4.2", "avx", "avx2", "fma", "avx512f", "avx512dq", "neon", "sve")
"""Processor features that determine the SIMD width."""

# The flange of the Panda at this q, by the product of the manufacturer's Denavit-Hartenberg
# matrices; tests/cli/test_doctor.py repeats the product.
CHECK_Q = (0.1, 0.2, 0.3, -0.4, 0.5, 0.6, 0.7)
CHECK_FLANGE = (0.32246806761375896, 0.16741824154047807, 0.8979695106476644)
CHECK_TOLERANCE = 1e-12

_REQUIREMENT = re.compile(r"^([\w.-]+)[^;]*(?:;.*?extra\s*==\s*['\"](\w+)['\"])?")
_MAX_FILES_COUNTED = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command: none."""


def run(options: argparse.Namespace) -> int:
    """Print the findings; 1 if something that phistar needs is missing or wrong."""
    console = make_console()
    troubles: list[str] = []
    sections: tuple[tuple[str, Callable[[list[str]], dict[str, str]]], ...] = (
        ("Software", _software),
        ("Extras", _extras),
        ("Machine", _machine),
        ("Files", _files),
        ("Self-check", _self_check),
    )
    for title, section in sections:
        _print_section(console, title, section(troubles))
    console.print()
    if troubles:
        verdict = Text(clean(f"Not well: {'; '.join(troubles)}."), style="bold red")
        print_line(console, verdict)
        return 1
    console.print(Text("All is well.", style="bold green"))
    return 0


def _print_section(console: Console, title: str, rows: dict[str, str]) -> None:
    console.print(Text(title, style="bold"))
    grid = Table.grid(padding=(0, 2))
    for key, value in rows.items():
        grid.add_row(Text(f"  {key}", style="dim"), Text(clean(value)))
    console.print(grid)


def requirements() -> tuple[list[str], dict[str, list[str]]]:
    """The packages that phistar needs, and those of each extra, by its metadata."""
    needed: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in requires("phistar") or []:
        match = _REQUIREMENT.match(line)
        if match and match.group(2):
            extras.setdefault(match.group(2), []).append(match.group(1))
        elif match:
            needed.append(match.group(1))
    return needed, extras


def installed(package: str) -> str | None:
    """A package's version, without importing it; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _software(troubles: list[str]) -> dict[str, str]:
    rows = {
        "phistar": version("phistar"),
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
    }
    for package in requirements()[0]:
        installed_version = installed(package)
        rows[package] = installed_version or "missing"
        if installed_version is None:
            troubles.append(f"{package} is missing")
    return rows


def _extras(troubles: list[str]) -> dict[str, str]:
    extras = requirements()[1]
    rows = {}
    for extra in EXTRAS:
        states = {package: installed(package) for package in extras.get(extra, [])}
        text = ", ".join(f"{package} {found}" for package, found in states.items() if found)
        missing = [package for package, found in states.items() if not found]
        if missing:
            text += f"{'; ' if text else ''}not installed: {', '.join(missing)}"
            text += f' (pip install "phistar[{extra}]")'
        rows[extra] = text
    return rows


def _machine(troubles: list[str]) -> dict[str, str]:
    rows = {
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": f"{_usable_cores()} usable of {os.cpu_count()}",
    }
    try:
        from llvmlite import binding  # type: ignore[import-untyped]

        features = binding.get_host_cpu_features()
        rows["processor"] = binding.get_host_cpu_name()
        rows["SIMD"] = ", ".join(name for name in SIMD if features.get(name)) or "none known"
    except (ImportError, OSError, RuntimeError) as error:
        rows["processor"] = f"unknown: {error}"
        troubles.append("llvmlite does not work")
    return rows


def _usable_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _files(troubles: list[str]) -> dict[str, str]:
    cache = settings.cache_folder()
    if cache is not None and not _is_writable(cache):
        troubles.append(f"the cache {cache} cannot be written")
    return {
        "installed in": str(Path(__file__).parent.parent),
        "cache": "off" if cache is None else f"{cache} ({_describe(cache)})",
        "bundled robots": ", ".join(robots.names()),
        "reference robots": _reference_robots(),
    }


def _is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or in its nearest existing parent."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)


def _describe(cache: Path) -> str:
    state = "writable" if _is_writable(cache) else "not writable"
    if not cache.is_dir():
        return f"not made yet, {state}"
    sizes: list[int] = []
    for folder, _, names in os.walk(cache):
        for name in names:
            with suppress(FileNotFoundError):  # other processes write here and drop old code
                sizes.append(os.lstat(os.path.join(folder, name)).st_size)
        if len(sizes) > _MAX_FILES_COUNTED:
            return f"more than {_MAX_FILES_COUNTED} files, {state}"
    return f"{pluralize(len(sizes), 'file')}, {sum(sizes) / 1e6:.1f} MB, {state}"


def _reference_robots() -> str:
    """The golden robots beside a developer's checkout."""
    root = Path(__file__).resolve().parents[3]
    shared = settings.shared_folder(root.parent / "shared") / "robots"
    if not shared.is_dir():
        return "none (only developers need them)"
    return f"{sum(1 for _ in shared.rglob('*.npz'))} in {shared}"


def _self_check(troubles: list[str]) -> dict[str, str]:
    """Load a robot and compare the pose of its flange with a stored one."""
    try:
        robot = load("panda")
        flange = robot.frame_pose(CHECK_Q, "panda_link8")[:3, 3]
    except PhistarError as problem:
        troubles.append(f"the bundled panda does not load: {problem}")
        return {"panda": "does not load"}
    error = float(np.abs(flange - CHECK_FLANGE).max())
    if not error <= CHECK_TOLERANCE:
        troubles.append(f"the flange of the panda is {error:.3g} m off")
    return {"panda": f"flange within {error:.1e} m of the manufacturer's geometry"}

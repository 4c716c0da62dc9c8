# SPDX-License-Identifier: BSD-3-Clause
"""Process replay for refactorings: what the compiler emits and decides, kept and compared.

Of bundled, reference and random robots, ``save`` stores for each program the SHA-256 of the emitted
LLVM or C text and its operation counts. Symbol names do not matter: locals, labels and functions
are numbered in order of appearance before the text is hashed. With ``--decisions`` it stores
instead, for all reference robots, what would be compiled when and in which form. ``compare`` does
the same again, names the items that differ, and ends with exit code 1 if there are any.

    python -m tools.replay save before.json              # about a minute
    python -m tools.replay save before.json --decisions  # two to three minutes
    python -m tools.replay compare before.json           # either kind; the file says which

All internal names are in ``tools.internals``.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import phistar
from phistar.errors import PhistarError
from tools import internals
from tools.fingerprints import FROM_SHARED
from tools.internals import Program

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("PHISTAR_SHARED", ROOT.parent / "shared"))

Items = dict[str, Any]
"""Found values by ``"robot: what"``."""

LOOPED = (
    "inverse_dynamics",
    "forward_dynamics",
    "bias_force",
    "gravity_force",
    "inverse_dynamics_jvp",
    "forward_dynamics_jvp",
    "forward_dynamics_vjp",
    "diagonal_dynamics",
    "total_momentum",
)
"""Programs of the catalogue as loops over the links; these take the same time on all robots."""

UNROLLED = {
    "inverse_dynamics": 30,
    "bias_force": 14,
    "forward_dynamics": 30,
    "inverse_dynamics_jvp": 14,
    "forward_dynamics_jvp": 14,
    "forward_dynamics_vjp": 10,
}
"""Programs as one sequence of operations, and the bodies up to which they are looked at."""

MATRICES = ("mass_matrix", "mass_matrix_inverse", "coriolis_matrix")
UNROLLED_MATRIX = 20
FUSED = {"linearize_inverse": 10, "linearize": 10, "linearize_split": 8}
LARGE_FUSED = ("quadruped", "humanoid")
"""Robots larger than these bounds, for programs that are cut into functions and for walks."""
TRACED = 30
SMALL = 6
"""Bodies up to which float32, external forces and all other variants are looked at, too."""

ROTORS = b"""
<mujoco><option gravity="0.5 -1 -9.81"/><default><joint armature="0.7"/></default><worldbody>
  <body name="trunk" pos="0 0 1"><joint name="float" type="free"/>
    <inertial pos="0.1 0.2 0" mass="3" fullinertia="0.1 0.2 0.25 0.01 0 0"/>
    <body name="jaw"><joint name="hinge" type="hinge" axis="0 1 0" pos="0 0 0.2"/>
      <inertial pos="0 0 0.1" mass="0.5" diaginertia="0.01 0.01 0.01"/></body></body>
</worldbody></mujoco>"""
"""A free joint with rotor inertia has programs of its own."""

EXPORTED = (("panda", "inverse_dynamics", "auto"), ("quadruped", "forward_dynamics", "looped"))


# -- texts without the names of symbols


_LLVM_NAME = re.compile(r'[%@](?:[-\w$.]+|"[^"]*")|^(?:[-\w$.]+)(?=:)', re.MULTILINE)
_FUNCTION = re.compile(r"^(?=define\b)", re.MULTILINE)
_DECLARED = re.compile(r'^declare\b[^@\n]*(@(?:[-\w$.]+|"[^"]*"))', re.MULTILINE)


def numbered_llvm(text: str) -> str:
    """LLVM text with defined functions, tables, locals and labels numbered; comments are dropped.

    Names of locals and labels are those of their function: each function begins to count anew.
    Names from outside, intrinsics among them, stay.
    """
    text = re.sub(r";[^\n]*", "", text)
    outside = set(_DECLARED.findall(text))
    shared: dict[str, str] = {}
    return "".join(_numbered_part(part, outside, shared) for part in _FUNCTION.split(text))


def _numbered_part(text: str, outside: Set[str], shared: dict[str, str]) -> str:
    """A function, or what stands before the first one."""
    local: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        name = match.group()
        if name in outside or name.startswith("@llvm."):
            return name
        if name[0] == "@":
            return shared.setdefault(name, f"@{len(shared)}")
        found = local.setdefault(name.removeprefix("%"), f"%{len(local)}")
        return found if name[0] == "%" else found[1:]

    return _LLVM_NAME.sub(number, text)


_C_KEPT = frozenset(
    re.findall(
        r"\w+",
        """
        auto break case char const continue default do double else enum extern float for goto if
        inline int long register restrict return short signed sizeof static struct switch typedef
        union unsigned void volatile while define ifdef ifndef endif include undef defined size_t
        int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
        sin cos sqrt fabs sinf cosf sqrtf fabsf
        """,
    )
)
_C_TOKEN = re.compile(r'"[^"\n]*"|\b0[xX][\w.+-]+|\b[\d.][\w.]*(?:[eE][+-]?\d+)?\w*|\b[A-Za-z_]\w*')


def numbered_c(text: str) -> str:
    """C text with identifiers numbered, without comments and line breaks."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        name = match.group()
        if name in _C_KEPT or not (name[0].isalpha() or name[0] == "_"):
            return name
        return numbers.setdefault(name, f"x{len(numbers)}")

    return " ".join(_C_TOKEN.sub(number, text).split())


def digest(text: str) -> str:
    """SHA-256 of a text, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


# -- code


def robots() -> Iterator[tuple[str, phistar.Robot]]:
    """Bundled, generated, random and, where they are there, reference robots."""
    for name in phistar.robots.names():
        yield name, internals.without_loops(phistar.load(name))
    yield "chain", phistar.robots.chain(6, axes="xyz")
    yield "tree", phistar.robots.tree(2, 2)
    for seed, bodies in enumerate((2, 3, 4, 4, 6, 9)):
        yield f"random {seed}", phistar.Robot(internals.random_robot(seed, bodies))
    yield "turning rotors", phistar.load(ROTORS)
    floating = internals.random_robot(7, 4, floating_base=True, armature=0.5, topology="serial")
    yield "random floating", phistar.Robot(floating)
    if SHARED.is_dir():
        for name in FROM_SHARED:
            robot = phistar.load(SHARED / "robots" / name)
            yield Path(name).name, internals.without_loops(robot)


def programs(name: str, robot: phistar.Robot) -> Iterator[tuple[str, Callable[[], Program]]]:
    """What is looked at on a robot, by its size."""
    model = robot.model
    bodies = internals.body_count(model)
    small = bodies <= SMALL
    for each in LOOPED:
        yield f"{each}, looped", partial(internals.looped, each, model)
        if small:
            yield f"{each}, forces", partial(internals.looped, each, model, forces=True)
    yield "hybrid_dynamics, looped", partial(internals.hybrid, model, (0, bodies - 1))
    for each, most in UNROLLED.items():
        if bodies <= most:
            yield f"{each}, unrolled", partial(internals.unrolled, each, model)
    for each in MATRICES:
        yield f"{each}, looped", partial(internals.looped_matrix, each, model)
        if bodies <= UNROLLED_MATRIX:
            yield f"{each}, unrolled", partial(internals.unrolled_matrix, each, model)
    for each, most in FUSED.items():
        if bodies <= most or name in LARGE_FUSED:
            yield f"{each}, fused", partial(internals.fused, each, model)
    if bodies <= TRACED:
        yield from _traced(robot)
    for each, update in internals.updates(model):
        yield f"update {each}", update


def _traced(robot: phistar.Robot) -> Iterator[tuple[str, Callable[[], Program]]]:
    frame = robot.frame_names[-1]
    keys: list[tuple[Any, ...]] = [("frame_pose", frame), ("link_poses",), ("center_of_mass", True)]
    for reference in ("local", "world", "world_aligned"):
        keys += [("jacobian", frame, reference), ("frame_velocity", frame, reference)]
    keys += [("momentum",), ("kinetic_energy",), ("potential_energy",)]
    for key in keys:
        title = " ".join([key[0], *map(str, key[1:])])
        yield title, partial(internals.traced, robot.model, *key)


def code_items() -> Items:
    """Hashes of texts, and operation counts, of all programs on all robots."""
    found: Items = {"step loop": {"text": digest(numbered_llvm(internals.step_loop_text()))}}
    for name, robot in robots():
        small = internals.body_count(robot.model) <= SMALL
        for what, make in programs(name, robot):
            found[f"{name}: {what}"] = _item(make, small)
    for name, program, shape in EXPORTED:
        text = numbered_c(internals.c_text(phistar.load(name).model, program, shape))
        found[f"{name}: {program}, C"] = {"text": digest(text)}
    return found


def _item(make: Callable[[], Program], single: bool) -> Mapping[str, Any]:
    """Hashes and counts of a program, or the error that it raises on this robot."""
    try:
        program = make()
    except PhistarError as error:
        return {"error": type(error).__name__}
    item = {"text": digest(numbered_llvm(internals.llvm_text(program)))}
    if single:
        item["text, float32"] = digest(numbered_llvm(internals.llvm_text(program, single=True)))
    return {**item, "operations": internals.operations(program)}


# -- decisions


def calls(robot: phistar.Robot) -> Iterator[tuple[str, Callable[[], object]]]:
    """Public methods whose first call compiles something."""
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng)
    many = robot.random_configuration(rng, 64)
    v, x = rng.normal(size=(2, robot.nv))
    fast = rng.normal(size=(64, robot.nv))
    frame = robot.frame_names[-1]
    yield "inverse_dynamics", partial(robot.inverse_dynamics, q, v, x)
    yield "forward_dynamics", partial(robot.forward_dynamics, q, v, x)
    yield "bias_force", partial(robot.bias_force, q, v)
    yield "gravity_force", partial(robot.gravity_force, q)
    yield "mass_matrix", partial(robot.mass_matrix, q)
    yield "mass_matrix_inverse", partial(robot.mass_matrix_inverse, q)
    yield "coriolis_matrix", partial(robot.coriolis_matrix, q, v)
    yield "linearize_inverse", partial(robot.linearize_inverse, q, v, x)
    yield "linearize", partial(robot.linearize, q, v, x)
    for name, third in (("inverse_dynamics", "dvdot"), ("forward_dynamics", "dtau")):
        changes = {"dq": v, "dv": v, third: v}
        yield f"jvp {name}", partial(robot.jvp, name, q, v, x, **changes)
        yield f"vjp {name}", partial(robot.vjp, name, q, v, x, v)
    yield "frame_pose", partial(robot.frame_pose, many, frame)
    yield "link_poses", partial(robot.link_poses, many)
    yield "jacobian", partial(robot.jacobian, many, frame)
    yield "frame_velocity", partial(robot.frame_velocity, many, fast, frame)
    yield "center_of_mass", partial(robot.center_of_mass, many)
    yield "momentum", partial(robot.momentum, many, fast)
    yield "kinetic_energy", partial(robot.kinetic_energy, many, fast)
    yield "potential_energy", partial(robot.potential_energy, many)


def decision(act: Callable[[], object]) -> str:
    """What a call would compile first; ``"nothing"`` if it ends without, or the error's name."""
    try:
        with internals.instead_of_compiling():
            act()
    except internals.Requested as request:
        return str(request)
    except PhistarError as error:
        return type(error).__name__
    return "nothing"


def decision_items(seconds: float) -> Items:
    """Decisions on all reference robots.

    Args:
        seconds: Of the processor, after which the choice between products and walks, which needs
            whole programs, is left out on the remaining robots.
    """
    found: Items = {}
    files = _reference_files()
    if not files:
        sys.exit(f"no reference robots in {SHARED / 'robots'}; PHISTAR_SHARED names another place")
    ready = []
    for path in files:
        name = str(path.relative_to(SHARED / "robots"))
        try:
            robot = internals.without_loops(phistar.load(path))
        except PhistarError as error:
            found[name] = type(error).__name__
            continue
        ready.append((name, robot))
        for tier in ("auto", "wait"):
            os.environ["PHISTAR_TIER"] = tier
            for what, act in calls(robot):
                found[f"{name}: {what}, tier {tier}"] = decision(act)
        os.environ["PHISTAR_TIER"] = "auto"
        for what, choose in internals.strategies(robot.model).items():
            found[f"{name}: {what}"] = _chosen(choose)
    sized = sorted(ready, key=lambda each: each[1].nv)
    for name, robot in sized:
        if time.process_time() > seconds:
            break
        if found.get(f"{name}: linearize, fused") == "yes":
            found[f"{name}: linearize, fused form"] = _chosen(
                partial(internals.linearize_form, robot.model)
            )
    return found


def _chosen(choose: Callable[[], str]) -> str:
    try:
        return choose()
    except PhistarError as error:
        return type(error).__name__


def _reference_files() -> list[Path]:
    index = SHARED / "robots" / "index.csv"
    if not index.is_file():
        return []
    with index.open(newline="", encoding="utf-8") as lines:
        paths = [SHARED / row["path"] for row in csv.DictReader(lines)]
    return sorted(path for path in paths if path.is_file())


# -- comparison


def differences(before: Items, after: Items, optional: Sequence[str] = ()) -> list[str]:
    """A line for each item that is not the same.

    Args:
        before, after: What was found.
        optional: Ends of names of items that one side may lack: they are left out for want of time.
    """
    lines = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old == new or (None in (old, new) and name.endswith(tuple(optional))):
            continue
        if old is None or new is None:
            lines.append(f"{name}: {'only now' if old is None else 'no longer there'}")
        elif isinstance(old, Mapping) and isinstance(new, Mapping):
            keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            lines.append(f"{name}: " + "; ".join(_change(k, old.get(k), new.get(k)) for k in keys))
        else:
            lines.append(f"{name}: {old} -> {new}")
    return lines


def _change(key: str, old: Any, new: Any) -> str:
    if key.startswith("text"):
        return f"{key} differs"
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        kinds = [kind for kind in {**old, **new} if old.get(kind) != new.get(kind)]
        return ", ".join(f"{kind} {old.get(kind, 0)} -> {new.get(kind, 0)}" for kind in kinds)
    return f"{key} {old} -> {new}"


OPTIONAL = ("linearize, fused form",)
SECONDS = 150.0
"""Of the processor, for all decisions."""


def collected(kind: str) -> Items:
    """Items of a kind: ``"code"`` or ``"decisions"``."""
    return code_items() if kind == "code" else decision_items(SECONDS)


def main() -> int:
    """Save or compare; the number of the exit code."""
    parser = argparse.ArgumentParser(prog="tools.replay", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("save", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--decisions", action="store_true", help="save decisions on all reference robots"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["PHISTAR_CACHE"] = "off"
    start = time.process_time()
    if options.command == "save":
        kind = "decisions" if options.decisions else "code"
        items = collected(kind)
        text = json.dumps({"kind": kind, "items": items}, indent=0, sort_keys=True)
        options.file.write_text(text + "\n", encoding="utf-8")
        print(f"{len(items)} items of {kind} saved in {time.process_time() - start:.0f} s")
        return 0
    saved = json.loads(options.file.read_text(encoding="utf-8"))
    items = collected(saved["kind"])
    lines = differences(saved["items"], items, OPTIONAL)
    print("\n".join(lines), end="\n" if lines else "")
    spent = f"{time.process_time() - start:.0f} s"
    print(f"{len(items)} items of {saved['kind']} compared in {spent}: {len(lines)} differ")
    for robot, count in Counter(line.partition(":")[0] for line in lines).most_common(8):
        print(f"  {count} on {robot}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""A robot has the same keys, code and operation counts whatever rounds its numbers."""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.backends.llvm.run import jit
from phistar.compile import kernel
from phistar.model import components
from phistar.model.model import Model
from phistar.scalar.graph import Value, operands
from phistar.scalar.lower import to_looped, to_unrolled
from phistar.scalar.program import BasicBlock
from phistar.scalar.robot.link_numbers import LinkNumbers, build_link_numbers
from tests.helpers import ROOT, SHARED, needs_shared
from tools import fingerprints
from tools.fingerprints import FROM_SHARED

EPSILON = float(np.finfo(float).eps)
ULPS = 4.0


def _files() -> list[Path]:
    return [SHARED / "robots" / name for name in FROM_SHARED] if SHARED.is_dir() else []


def _settings() -> Iterator[dict[str, str]]:
    """Kernels and threads of BLAS and vector loops of NumPy that this processor can run.

    The last kernel is left out where there are others: it is the processor's own, which a process
    without settings takes.
    """
    from numpy._core import _multiarray_umath as core

    present = [x for x in core.__cpu_dispatch__ if core.__cpu_features__[x]]
    features = {x[1:] for x in jit.host_cpu().features.split(",") if x.startswith("+")}
    blas = {"Prescott": "sse3", "Sandybridge": "avx", "Haswell": "avx2", "SkylakeX": "avx512f"}
    blas = {name: needs for name, needs in blas.items() if needs in features}
    without = [present, present[-1:], []]
    for name, off in zip(list(blas)[: max(1, len(blas) - 1)], without, strict=False):
        yield {
            "OPENBLAS_CORETYPE": name,
            "OPENBLAS_NUM_THREADS": str(2 + len(off) % 2),
            "NPY_DISABLE_CPU_FEATURES": " ".join(off),
            "PYTHONHASHSEED": str(len(off)),
        }


def test_keys_code_and_counts_are_the_same_on_other_processors() -> None:
    """Bundled, generated and shared robots, in processes with other kernels of BLAS and NumPy.

    Robots of ../shared are left out where it is not there.
    """
    files = list(map(str, _files()))
    command = [sys.executable, "-m", "tools.fingerprints", *files]
    outputs = []
    for setting in [{}, *_settings()]:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **setting},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append((setting, json.loads(done.stdout)))
    (_, expected), *others = outputs
    assert len(expected) >= len(phistar.robots.names()) + len(files)
    for setting, found in others:
        different = [name for name in expected if found[name] != expected[name]]
        assert not different, setting


def test_fingerprints_have_teeth() -> None:
    """Masses that are changed beyond rounding change key and code, and not the counts."""
    model = phistar.load("double_pendulum").model
    heavier = tuple(replace(b, inertia=(1 + 1e-9) * b.inertia) for b in model.bodies)
    before, after = fingerprints.of(model), fingerprints.of(with_bodies(model, heavier))
    assert not set(before) & set(after)
    assert [x.split()[-1] for x in before[1:]] == [x.split()[-1] for x in after[1:]]


# -- numbers disturbed before they are settled


def disturbed(model: Model, seed: int, ulps: float = ULPS) -> Model:
    """A robot whose placements and inertias are rounded otherwise, some units in the last place."""
    rng = np.random.default_rng(seed)

    def noise(x: np.ndarray) -> np.ndarray:
        return x + 0.5 * EPSILON * ulps * np.abs(x).max() * rng.uniform(-1, 1, x.shape)

    bodies = []
    for body in model.bodies:
        placement = np.eye(4)
        placement[:3, :3] = noise(body.placement[:3, :3])
        placement[:3, 3] = noise(body.placement[:3, 3])
        parts = (body.inertia[:1], body.inertia[1:4], body.inertia[4:])
        inertia = np.concatenate([noise(part) for part in parts])
        bodies.append(replace(body, placement=placement, inertia=inertia))
    return with_bodies(model, tuple(bodies))


def with_bodies(model: Model, bodies: tuple[components.Body, ...]) -> Model:
    """The same robot with other bodies."""
    return replace(model, bodies=bodies)


def kinds(link: LinkNumbers) -> Iterator[tuple[str, float]]:
    """The numbers of a link with what they are numbers of."""
    for frame in (link.placement, link.body_placement):
        yield from (("rotation", x) for x in frame.R.ravel())
        yield from (("offset", x) for x in frame.p)
    yield from (("first moment", x) for x in link.h)
    yield from (("second moment", x) for x in (*link.J.ravel(), *link.E))
    yield from (("mass", link.mass), ("angle", link.angle_offset))


def structure_of_links(model: Model) -> list[object]:
    """Zeros and ones among the numbers of all links, and which are equal but for their signs."""
    found: list[object] = []
    for frames in ("normal", "square", "file"):
        for regroup in ("", "line", "flat"):
            links = build_link_numbers(model, frames, regroup)
            numbers = [(kind, abs(x)) for link in links for kind, x in kinds(link)]
            first = {x: i for i, x in reversed(list(enumerate(numbers)))}
            found.append([x if x in (0.0, 1.0) else None for _, x in numbers])
            found.append([first[x] for x in numbers])
    return found


def structure(body: BasicBlock) -> list[object]:
    """The graph of a body without the values of its constants."""
    nodes = body.graph.nodes
    live = body.graph.live_nodes([s.value for s in body.stores if isinstance(s.value, Value)])
    number = {node: i for i, node in enumerate(live)}
    found: list[object] = []
    for each in live:
        node = nodes[each]
        own = node[1] if node[0] == "load" else tuple(number[x] for x in operands(node))
        found.append((node[0], own))
    return found


@pytest.mark.parametrize("name", phistar.robots.names())
def test_rounding_decides_nothing_about_bundled_robots(name: str) -> None:
    """Disturbed by four units in the last place: the same zeros, the same equal numbers."""
    model = phistar.load(name).model
    expected = structure_of_links(model)
    for seed in range(2):
        assert structure_of_links(disturbed(model, seed)) == expected


@needs_shared
@pytest.mark.parametrize("name", FROM_SHARED)
def test_rounding_decides_nothing_about_shared_robots(name: str) -> None:
    """The same for robots of others, MJCF among them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = phistar.load(SHARED / "robots" / name).model
    assert structure_of_links(disturbed(model, 3)) == structure_of_links(model)


@pytest.mark.parametrize("program", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("name", ["panda", "panda_hand", "ur5", "quadruped"])
def test_rounding_decides_no_operation(name: str, program: str) -> None:
    """Straight lines and loops have the same operations in the same order, and the same classes."""
    model, schedule = phistar.load(name).model, kernel(program).schedule
    absent = fingerprints.ABSENT
    found = []
    for each in (model, disturbed(model, 1)):
        line = to_unrolled(schedule, each, absent)
        loops = to_looped(schedule, each, absent)
        bodies = [structure(body) for sweep in loops.sweeps for body in sweep.blocks.values()]
        found.append((structure(line.block), line.count(), loops.links.class_of, bodies))
    assert found[0] == found[1]

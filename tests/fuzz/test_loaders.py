# SPDX-License-Identifier: BSD-3-Clause
"""Damaged robot files against the loaders: a robot with finite numbers, or a PhistarError.

A few seconds in the ordinary suite; ``make fuzz`` gives it more (PHISTAR_FUZZ_SECONDS) and new
random numbers each time. MuJoCo runs in a process of its own, so that a crash there would be seen.
"""

import multiprocessing
import os
import queue as queues
import random
import re
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import phistar
from phistar.errors import PhistarError

SECONDS = float(os.environ.get("PHISTAR_FUZZ_SECONDS", "0")) / 2
SEED = int(os.environ.get("PHISTAR_FUZZ_SEED", time.time_ns() if SECONDS > 10 else 20))
URDF_COPIES, MJCF_COPIES = 250, 1000
"""Damaged copies in the ordinary suite, the same ones on every machine."""

NASTY = [
    b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e-320", b"0", b"-1", b"", b" ", b"1 2", b"0,1",
    b"0x10", b"1_0", b"\xff", b"\x00", b"&lt;", b"&bomb;", b"../../x", b"a" * 3000, "関節".encode(),
]  # fmt: skip

MJCF = b"""<mujoco model="m"><compiler angle="radian"/><option gravity="0 0 -9.8"/>
<default><joint armature="0.1"/><default class="c"><joint damping="1"/></default></default>
<worldbody><body name="a" pos="0 0 1" quat="1 0 0 0"><freejoint name="f"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom type="sphere" size="0.1"/>
<body name="b" pos="0 0 0.5"><joint name="h" type="hinge" axis="0 1 0" range="-1 1" class="c"/>
<joint name="s" type="slide" axis="1 0 0" ref="0.1"/><geom type="box" size="0.1 0.1 0.1"/>
<site name="tip" pos="0 0 0.1"/></body></body></worldbody>
<equality><connect body1="a" body2="b" anchor="0 0 0"/><joint joint1="h" joint2="s"/></equality>
<keyframe><key qpos="0 0 1 1 0 0 0 0.1 0.1"/></keyframe></mujoco>"""

ATTRIBUTE = re.compile(rb'="([^"]*)"')
ELEMENT = re.compile(rb"<[^<>]+>")


def _spans(pattern: re.Pattern[bytes], data: bytes) -> list[tuple[int, int]]:
    return [m.span(m.re.groups) for m in pattern.finditer(data)]


def damage(rng: random.Random, data: bytes) -> bytes:
    """``data`` with one to three random injuries."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(6)
        values, elements = _spans(ATTRIBUTE, data), _spans(ELEMENT, data)
        if kind <= 1 and values:
            start, end = rng.choice(values)
            data = data[:start] + rng.choice(NASTY) + data[end:]
        elif kind == 2 and values:
            (a, b), (c, d) = rng.choice(values), rng.choice(values)
            data = data[:a] + data[c:d] + data[b:]
        elif kind == 3 and elements:
            start, end = rng.choice(elements)
            data = data[:start] + data[start:end] * rng.choice([0, 2]) + data[end:]
        elif kind == 4 and len(data) > 2:
            start = rng.randrange(len(data) - 1)
            data = data[:start] + data[min(len(data), start + rng.randint(1, 40)) :]
        else:
            start = rng.randrange(len(data))
            data = data[:start] + bytes([rng.randrange(256)]) + data[start + 1 :]
    return data


def survives(data: bytes) -> bool:
    """Load damaged data; True if a robot came of it. Anything but a PhistarError propagates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            robot: phistar.Robot | None = phistar.load(data)
        except PhistarError as error:
            message = str(error)
            robot = None
    if robot is None:
        assert message.strip(), "an error without a message"
        return False
    q = robot.random_configuration(0)
    for name in (robot.link_names[0], robot.link_names[-1]):
        pose = robot.frame_pose(q, name)
        assert np.isfinite(pose).all() or np.abs(q).max(initial=0.0) > 1e100
    assert np.isfinite(robot.model.inertias).all()
    return True


def injuries(original: bytes, least: int, seconds: float) -> Iterator[bytes]:
    """Damaged copies of a document: so many, and on until the time is up."""
    rng = random.Random(SEED)
    end = time.monotonic() + seconds
    made = 0
    while made < least or time.monotonic() < end:
        yield damage(rng, original)
        made += 1


def _run(load: Callable[[bytes], bool], original: bytes) -> tuple[int, int]:
    outcomes = [load(data) for data in injuries(original, URDF_COPIES, SECONDS / 3)]
    return sum(outcomes), len(outcomes) - sum(outcomes)


@pytest.mark.parametrize("name", ["panda_hand", "four_bar", "quadruped"])
def test_damaged_urdf(name: str) -> None:
    """Every damaged copy of a bundled robot loads or is refused; both happen."""
    loaded, refused = _run(survives, phistar.robots.path(name).read_bytes())
    assert loaded > 0
    assert refused > 0


def _mujoco_worker(seconds: float, queue: "multiprocessing.Queue[tuple[str, object]]") -> None:
    current = b""
    try:
        outcomes = []
        for current in injuries(MJCF, MJCF_COPIES, seconds):
            queue.put(("trying", current))
            outcomes.append(survives(current))
        queue.put(("done", (sum(outcomes), len(outcomes))))
    except BaseException as error:
        queue.put(("failed", f"{error!r} on {current!r}"))


def test_damaged_mjcf() -> None:
    """Every damaged copy of an MJCF document loads or is refused, and MuJoCo does not crash."""
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[tuple[str, object]] = context.Queue()
    worker = context.Process(target=_mujoco_worker, args=(SECONDS, queue))
    worker.start()
    state: tuple[str, object] = ("started", b"")
    while worker.is_alive() or not queue.empty():
        try:
            state = queue.get(timeout=0.5)
        except queues.Empty:
            continue
    worker.join()
    assert state[0] == "done", f"{state} (exit code {worker.exitcode}, seed {SEED})"
    loaded, total = state[1]  # type: ignore[misc]
    assert 0 < loaded < total

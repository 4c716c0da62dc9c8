# SPDX-License-Identifier: BSD-3-Clause
"""Machine code behind the public methods: any batch and array, threads, forks, tiers, the cache."""

import math
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import dynamics
from phistar.arrays import Array
from phistar.backends import Tuning, base
from phistar.backends.llvm.emit.looped_module import looped_module, looped_workspace
from phistar.backends.llvm.emit.unrolled_module import unrolled_module
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run import machine_kernel as kernels
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.backends.to_llvm import VectorMachineCode
from phistar.compile import kernel
from phistar.errors import ArgumentError, ShapeError
from phistar.model import Model
from phistar.model.generators import chain
from phistar.model.random import random_model
from phistar.scalar.lower import LoweringOptions, to_looped, to_unrolled
from phistar.scalar.program import Looped, Unrolled
from tests.helpers import build, chosen_backends, patch_policy

ABSENT = frozenset({"f_ext", "gravity"})
WIDTH = jit.lanes_for(jit.host_cpu()).width
LONG = float(os.environ.get("PHISTAR_FUZZ_SECONDS", "0"))


@pytest.fixture(autouse=True)
def _machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_default_name", "llvm")
    monkeypatch.delenv("PHISTAR_TIER", raising=False)


@pytest.fixture(scope="module")
def robot() -> phistar.Robot:
    """A small robot."""
    return phistar.load("double_pendulum")


def state(robot: phistar.Robot, batch: int, seed: int = 2) -> tuple[Array, Array, Array]:
    """q, v and one more vector."""
    rng = np.random.default_rng(seed)
    v, x = rng.normal(size=(2, batch, robot.nv))
    return robot.random_configuration(rng, batch), v, x


def by_numpy(model: Model, name: str, q: Any, **inputs: Any) -> Array:
    """The only output of a program by the backend ``numpy``."""
    executable = kernel(name).executable(model, backend="numpy")
    (result,) = executable(q, inputs).values()
    return result


def close(ours: Array, theirs: Array, bound: float = 1e-12) -> None:
    """Relative to the largest number."""
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max(initial=0.0) <= bound * np.abs(theirs).max(initial=1e-3)


def code_of(model: Model, name: str) -> VectorMachineCode:
    """Machine code of one's own, not the one that is kept for the model."""
    made = build("llvm", kernel(name).schedule, model, tuning=Tuning(regroup_inertia=True))
    assert isinstance(made, VectorMachineCode)
    return made


# -- batches


@pytest.mark.parametrize("batch", [0, 1, WIDTH - 1, WIDTH, WIDTH + 1, 5 * WIDTH - 1])
def test_odd_batches(robot: phistar.Robot, batch: int) -> None:
    """Torques and accelerations of every sample, for any number of them."""
    q, v, x = state(robot, batch)
    tau, vdot = robot.inverse_dynamics(q, v, x), robot.forward_dynamics(q, v, x)
    assert tau.shape == vdot.shape == (batch, 2)
    close(tau, by_numpy(robot.model, "inverse_dynamics", q, v=v, vdot=x))
    close(vdot, by_numpy(robot.model, "forward_dynamics", q, v=v, tau=x))
    close(robot.mass_matrix_inverse(q) @ robot.mass_matrix(q), np.tile(np.eye(2), (batch, 1, 1)))


def test_a_million_and_three_samples(robot: phistar.Robot) -> None:
    """Forward after inverse dynamics gives the accelerations back; samples here and there alone."""
    batch = 1_000_003
    q, v, vdot = state(robot, batch)
    tau = robot.inverse_dynamics(q, v, vdot)
    for i in (0, 1, 499_999, batch - WIDTH - 1, batch - 2, batch - 1):
        close(tau[i], robot.inverse_dynamics(q[i], v[i], vdot[i]), 1e-13)
    back = robot.forward_dynamics(q, v, tau, out=tau)
    assert back is tau
    close(back, vdot, 1e-10)


def test_leading_axes(robot: phistar.Robot) -> None:
    """Any number of them, broadcast, some of them empty."""
    q, v, x = (a.reshape(3, 4, 2) for a in state(robot, 12))
    got = robot.inverse_dynamics(q, v[:1], x[0])
    assert got.shape == (3, 4, 2)
    close(got[2, 1], robot.inverse_dynamics(q[2, 1], v[0, 1], x[0, 1]))
    assert robot.inverse_dynamics(q[:, :0], v[:, :0], x[:, :0]).shape == (3, 0, 2)
    assert robot.inverse_dynamics(q[:, None], v[0], x[0]).shape == (3, 1, 4, 2)


# -- arrays


def read_only(a: Array) -> Array:
    """The same numbers, not to be written."""
    b = a.copy()
    b.flags.writeable = False
    return b


KINDS: dict[str, Callable[[Array], Any]] = {
    "every other sample": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every other entry": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "Fortran order": np.asfortranarray,
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "int": lambda a: np.rint(3 * a).astype(int),
    "uint8": lambda a: np.abs(np.rint(3 * a)).astype(np.uint8),
    "bool": lambda a: a > 0,
    "lists": lambda a: a.tolist(),
    "tuples": lambda a: tuple(map(tuple, a)),
    "long double": lambda a: a.astype(np.longdouble),
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape),
    "misaligned": lambda a: _misaligned(a),
}


def _misaligned(a: Array) -> Array:
    room = np.empty(a.nbytes + 1, np.uint8)
    b = room[1:].view(a.dtype).reshape(a.shape)
    b[...] = a
    return b


@pytest.mark.parametrize("batch", [1, 2 * WIDTH + 1])
@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_array(robot: phistar.Robot, kind: str, batch: int) -> None:
    """As for plain arrays of the same numbers; the arrays themselves are left alone."""
    given = [KINDS[kind](a) for a in state(robot, batch)]
    plain = [np.array(a, float) for a in given]
    want = by_numpy(robot.model, "forward_dynamics", plain[0], v=plain[1], tau=plain[2])
    got = robot.forward_dynamics(*given)
    close(np.asarray(got, float), want)
    for a, b in zip(given, plain, strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)
    for i in range(3):
        mixed: list[Any] = list(plain)
        mixed[i] = given[i]
        close(np.asarray(robot.forward_dynamics(*mixed), float), want)
    one = robot.forward_dynamics(*(a[0] for a in given))
    close(np.asarray(one, float), want[0])


@pytest.mark.parametrize("batch", [1, 33])
def test_single_precision(robot: phistar.Robot, batch: int) -> None:
    """Single in is single out, 1e-4 of the largest; one double argument makes it double."""
    q, v, x = (a.astype(np.float32) for a in state(robot, batch))
    wide = [a.astype(float) for a in (q, v, x)]
    got = robot.forward_dynamics(q, v, x)
    assert got.dtype == np.float32
    assert robot.forward_dynamics(q[0], v[0], x[0]).dtype == np.float32
    close(got, robot.forward_dynamics(*wide), 1e-4)
    mixed = robot.forward_dynamics(wide[0], v, x)
    assert mixed.dtype == np.float64
    close(mixed, robot.forward_dynamics(*wide))


# -- out


def _room(kind: str, batch: int) -> Array:
    if kind == "strided":
        return np.full((2 * batch, 6), -7.0)[::2, 1:5:2]
    if kind == "Fortran order":
        return np.full((batch, 2), -7.0, order="F")
    return np.full((batch, 2), -7.0)


@pytest.mark.parametrize("batch", [0, 1, 3 * WIDTH + 1])
@pytest.mark.parametrize("kind", ["plain", "strided", "Fortran order"])
def test_out(robot: phistar.Robot, kind: str, batch: int) -> None:
    """The result is put there, and is that array."""
    q, v, x = state(robot, batch)
    calls: list[tuple[Any, tuple[Array, ...]]] = [
        (robot.inverse_dynamics, (q, v, x)),
        (robot.forward_dynamics, (q, v, x)),
        (robot.bias_force, (q, v)),
        (robot.gravity_force, (q,)),
        (lambda *a, out=None: dynamics.inverse_dynamics(robot.model, *a, out=out), (q, v, x)),
    ]
    for method, arguments in calls:
        want = method(*arguments)
        out = _room(kind, batch)
        assert method(*arguments, out=out) is out
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("shape", [(), (3 * WIDTH + 1,)])
def test_out_takes_the_quick_way(
    robot: phistar.Robot, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain arrays never get to the general way, with ``out`` or without."""
    q, v, x = (a.reshape(*shape, 2) for a in state(robot, math.prod(shape)))
    calls: list[tuple[Any, tuple[Array, ...]]] = [
        (robot.inverse_dynamics, (q, v, x)),
        (robot.forward_dynamics, (q, v, x)),
        (robot.bias_force, (q, v)),
        (robot.gravity_force, (q,)),
    ]
    wanted = [method(*arguments) for method, arguments in calls]

    def general(*_: object, **__: object) -> Array:
        raise AssertionError("this was not quick")

    monkeypatch.setattr(dynamics, "_run", general)
    for (method, arguments), want in zip(calls, wanted, strict=True):
        out = np.full((*shape, 2), -7.0)
        assert method(*arguments, out=out) is out
        np.testing.assert_array_equal(out, want)
        np.testing.assert_array_equal(method(*arguments), want)


@pytest.mark.parametrize("place", range(3))
def test_out_over_an_input(robot: phistar.Robot, place: int) -> None:
    """As with arrays of their own."""
    arrays = [a.copy() for a in state(robot, 3 * WIDTH + 1)]
    want = robot.inverse_dynamics(*arrays)
    robot.inverse_dynamics(*arrays, out=arrays[place])
    np.testing.assert_array_equal(arrays[place], want)


@pytest.mark.parametrize("backend", chosen_backends())
def test_out_in_parts(robot: phistar.Robot, backend: str) -> None:
    """An executable fills rows that are not equally far apart, on every backend."""
    q, v, x = (a.reshape(2, 3, 2) for a in state(robot, 6))
    executable = kernel("inverse_dynamics").executable(robot.model, backend=backend)
    want = executable(q, {"v": v, "vdot": x})["tau"]
    room = np.full((2, 4, 2), -7.0)
    results, _ = executable.run(q, {"v": v, "vdot": x}, {"tau": room[:, :3]})
    np.testing.assert_array_equal(room[:, :3], want)
    np.testing.assert_array_equal(results["tau"], want)
    assert (room[:, 3] == -7.0).all()


def test_unfit_out_is_refused(robot: phistar.Robot) -> None:
    """A wrong type, shape, dtype or right is named."""
    q, v, x = state(robot, 5)
    for out, error, message in (
        ([[0.0, 0.0]] * 5, ArgumentError, "list"),
        (np.empty((4, 2)), ShapeError, "out"),
        (np.empty((5, 2), np.float32), ArgumentError, "float32"),
        (read_only(np.empty((5, 2))), ArgumentError, "read-only"),
    ):
        with pytest.raises(error, match=message):
            robot.inverse_dynamics(q, v, x, out=out)  # type: ignore[arg-type]


def test_results_are_ones_own(robot: phistar.Robot) -> None:
    """Large results that are held, or parts of them, are not written over by later calls."""
    q, v, x = state(robot, 50_000)
    first = robot.inverse_dynamics(q, v, x)
    before = first.copy()
    part = robot.inverse_dynamics(q, v, x)[17:40_000:3, :1]
    others = [robot.inverse_dynamics(q, v, k * x) for k in range(2, 6)]
    np.testing.assert_array_equal(first, before)
    np.testing.assert_array_equal(part, before[17:40_000:3, :1])
    for k, other in enumerate(others, start=2):
        np.testing.assert_array_equal(other, robot.inverse_dynamics(q, v, k * x))
    assert all(not np.shares_memory(first, other) for other in others)


# -- numbers that are not finite


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("batch", [1, 3 * WIDTH + 2])
def test_what_is_not_finite_is_named(robot: phistar.Robot, bad: float, batch: int) -> None:
    """Argument and index; also for one sample, and with ``out``."""
    for place, name in enumerate(("q", "v", "vdot")):
        arrays = [a.copy() for a in state(robot, batch)]
        arrays[place][batch - 1, 1] = bad
        with pytest.raises(ArgumentError, match=rf"{name}\[{batch - 1}, 1\]"):
            robot.inverse_dynamics(*arrays)
        with pytest.raises(ArgumentError, match=rf"{name}\[1\]"):
            robot.inverse_dynamics(*(a[batch - 1] for a in arrays))
        with pytest.raises(ArgumentError, match=rf"{name}\[{batch - 1}, 1\]"):
            robot.inverse_dynamics(*arrays, out=np.empty((batch, 2)))


@pytest.mark.parametrize("tier", ["rolled", "straight"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_neighbours_keep_their_bits(tier: str, bad: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample that is no number, or far away, leaves all others as they are, to the bit."""
    monkeypatch.setenv("PHISTAR_TIER", tier)
    model = phistar.load("quadruped").model
    code = code_of(model, "forward_dynamics_3")
    q, v, tau = state(phistar.Robot(model), 2 * WIDTH + 3)
    clean, finite = code.run(q, {"v": v, "tau": tau})
    assert finite
    for sample in range(0, len(q), WIDTH - 1 or 1):
        for place in range(3):
            spoilt = [q.copy(), v.copy(), tau.copy()]
            spoilt[place][sample, -1] = bad
            got, finite = code.run(spoilt[0], {"v": spoilt[1], "tau": spoilt[2]})
            # Numbers that are far away are finite; what becomes of them need not be.
            assert finite == bool(np.isfinite(bad) and np.isfinite(got["vdot"]).all())
            others = np.arange(len(q)) != sample
            np.testing.assert_array_equal(got["vdot"][others], clean["vdot"][others])


# -- threads and processes


@pytest.mark.parametrize("tier", ["rolled", "straight"])
def test_same_bits_with_any_number_of_threads(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is cut between blocks of lanes, so nothing changes."""
    monkeypatch.setenv("PHISTAR_TIER", tier)
    model = phistar.load("panda").model
    call = code_of(model, "forward_dynamics_3").tiers().kernel.call
    q, v, tau = state(phistar.Robot(model), 1009)
    given = {"q": q, "v": v, "tau": tau}
    rows = [given[name] for name in call.signature.inputs]
    want = np.empty((1009, 7))
    call(rows, [want], threads=1)
    for threads in (2, 3):
        got = np.empty((1009, 7))
        call(rows, [got], threads=threads)
        np.testing.assert_array_equal(got.view(np.int64), want.view(np.int64))


def test_threads_of_the_environment(robot: phistar.Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """PHISTAR_THREADS changes no bit of a large batch, and one of its samples is itself alone."""
    q, v, x = state(robot, 400_001)
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("PHISTAR_THREADS", threads)
        results.append(robot.forward_dynamics(q, v, x))
    for other in results[1:]:
        np.testing.assert_array_equal(other.view(np.int64), results[0].view(np.int64))


def test_python_threads_share_a_robot() -> None:
    """Many threads make the first call at once, on batches and on single samples."""
    robot = phistar.Robot(random_model(np.random.default_rng(77), 9, floating_base=True))
    q, v, x = state(robot, 67)
    want = by_numpy(robot.model, "forward_dynamics", q, v=v, tau=x)
    barrier = threading.Barrier(6)
    faults: list[str] = []

    def work(number: int) -> None:
        barrier.wait(timeout=60)
        for i in range(30):
            got = robot.forward_dynamics(q, v, x)
            one = robot.forward_dynamics(q[i], v[i], x[i])
            for name, a, b in (("batch", got, want), ("one", one, want[i])):
                if not np.abs(a - b).max() <= 1e-11 * np.abs(want).max():
                    faults.append(f"thread {number}, call {i}: {name}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    assert faults == []


FORK = """
import os, sys, threading, time
import numpy as np
import phistar
from phistar.backends.llvm.run import jit, tiers
from phistar.thresholds import POLICY

phistar.load("double_pendulum").inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))
vars(POLICY)["max_link_streams_at_once"] = 100
robot = phistar.load("quadruped")
rng = np.random.default_rng(1)
q = robot.random_configuration(rng, 300)
v, x = rng.normal(size=(2, 300, robot.nv))

def values():
    return np.concatenate([robot.forward_dynamics(q, v, x).ravel(),
                           robot.inverse_dynamics(q, v, x).ravel(),
                           robot.inverse_dynamics(q[0], v[0], x[0])])

when, file = sys.argv[1:]
if when == "compiling":                 # a thread compiles the straight line
    values()
elif when.startswith("first call"):     # another thread is in the middle of the first call
    threading.Thread(target=values).start()
    time.sleep(float(when.split()[-1]))
child = os.fork()
if child == 0:
    np.save(file, values())
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
got, want = np.load(file), values()
print("equal", np.abs(got - want).max() <= 1e-10 * np.abs(want).max())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("when", ["before", "compiling", "first call 0.01", "first call 0.1"])
def test_fork(when: str, tmp_path: Path) -> None:
    """A child computes what its parent does, whatever the parent's threads were at."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, when, str(tmp_path / "child.npy")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "equal True\n"), done.stderr


# -- machines, tiers, cache


@pytest.mark.skipif(platform.machine().lower() not in jit.X86_MACHINES, reason="names a PC")
@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("make", [to_unrolled, to_looped])
def test_a_machine_without_extensions(make: Callable[..., Any], real: str) -> None:
    """Code for any PC gives the same to rounding: 1e-11 double, 1e-3 single, forward dynamics."""
    model = phistar.load("quadruped").model
    program = make(
        kernel("forward_dynamics_3").schedule, model, ABSENT, options=LoweringOptions(regroup=True)
    )
    dtype = np.float64 if real == "double" else np.float32
    q, v, tau = state(phistar.Robot(model), 19)
    results = []
    for cpu, features in ((None, None), ("x86-64", "")):
        lanes = jit.lanes_for(jit.target_cpu(cpu, features), real)
        assert isinstance(program, (Unrolled, Looped))
        if isinstance(program, Looped):
            text, room = looped_module(program, lanes), looped_workspace(program)
        else:
            text, room = unrolled_module(program, lanes), 0
        caller = KernelCaller(
            jit.load(text, cpu=cpu, features=features), program.signature, lanes, room
        )
        out = np.empty((19, 18), dtype)
        given = {"q": q, "v": v, "tau": tau}
        assert caller([given[name].astype(dtype) for name in program.signature.inputs], [out])
        results.append(out)
    close(results[1], results[0], 1e-11 if real == "double" else 1e-3)
    want = by_numpy(model, "forward_dynamics", q, v=v, tau=tau)
    close(results[1], want, 1e-11 if real == "double" else 1e-3)


@pytest.mark.parametrize(
    ("tier", "first", "final"),
    [
        ("auto", "rolled", "straight"),
        ("wait", "straight", "straight"),
        ("rolled", "rolled", "rolled"),
        ("straight", "straight", "straight"),
        ("", "rolled", "straight"),
    ],
)
def test_tiers(tier: str, first: str, final: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shape that runs at first and in the end; both give the same to rounding."""
    monkeypatch.setenv("PHISTAR_TIER", tier)
    # A straight line is compiled when it is waited for, and not before.
    patch_policy(monkeypatch, max_link_streams_at_once=100, background_delay_seconds=600.0)
    model = phistar.load("quadruped").model
    code = code_of(model, "forward_dynamics_3")
    q, v, tau = state(phistar.Robot(model), 21)
    tiers = code.tiers()
    assert tiers.kernel.shape == first
    begun = code(q, {"v": v, "tau": tau})["vdot"]
    assert tiers.wait_for_final().shape == final
    assert tiers.kernel.shape == final
    close(code(q, {"v": v, "tau": tau})["vdot"], begun, 1e-11)
    close(begun, by_numpy(model, "forward_dynamics", q, v=v, tau=tau), 1e-11)


def test_code_that_is_not_optimised_answers_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """It agrees with the final code to rounding, which is optimised and takes over."""
    monkeypatch.setenv("PHISTAR_TIER", "auto")
    patch_policy(monkeypatch, background_delay_seconds=600.0)
    made: list[bool] = []
    compile_text = jit.compile_text

    def watched(text: str, *, quick: bool = False) -> bytes:
        made.append(quick)
        return compile_text(text, quick=quick)

    monkeypatch.setattr(jit, "compile_text", watched)
    robot = phistar.robots.chain(5, axes="xyz")
    q, v, tau = state(robot, 21)
    begun = robot.linearize(q, v, tau)
    tiers = kernel("linearize", robot.model).build(robot.model).tiers()
    assert "not optimised at first: 25 >= 25" in tiers.decision.why
    assert made == [True]
    first, final = tiers.kernel, tiers.wait_for_final()
    assert final is not first
    assert made == [True, False]
    ended = robot.linearize(q, v, tau)
    # One for single samples is made once there was one.
    robot.linearize(q[0], v[0], tau[0])
    assert tiers.wait_for_final().single_entry is not None
    assert made == [True, False, False]
    for name in ("vdot", "vdot_q", "vdot_v", "vdot_tau"):
        one, other = getattr(begun, name), getattr(ended, name)
        assert np.abs(one - other).max() <= 1e-12 * np.abs(other).max(), name


def test_unknown_tier_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is used, with the choices."""
    monkeypatch.setenv("PHISTAR_TIER", "fast")
    with pytest.raises(ArgumentError, match="'fast', expected one of auto, wait, rolled, straight"):
        _ = code_of(chain(3), "inverse_dynamics").tiers().kernel


@pytest.mark.parametrize("tier", ["rolled", "straight"])
def test_cached_code_gives_the_same_bits(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second kernel comes from the disk, uncompiled, and computes the same."""
    monkeypatch.setenv("PHISTAR_TIER", tier)
    model = random_model(np.random.default_rng(5), 6, armature=0.5)
    q, v, tau = state(phistar.Robot(model), 23)
    want = code_of(model, "forward_dynamics_3")(q, {"v": v, "tau": tau})["vdot"]

    def refuse(*_: Any, **__: Any) -> bytes:
        raise AssertionError("compiled again")

    monkeypatch.setattr(kernels.jit, "compile_text", refuse)
    got = code_of(model, "forward_dynamics_3")(q, {"v": v, "tau": tau})["vdot"]
    np.testing.assert_array_equal(got.view(np.int64), want.view(np.int64))
    other = random_model(np.random.default_rng(6), 6, armature=0.5)
    with pytest.raises(AssertionError, match="compiled again"):
        code_of(other, "forward_dynamics_3")(*_sample_of(other))


def _sample_of(model: Model) -> tuple[Array, dict[str, Array]]:
    q, v, tau = state(phistar.Robot(model), 1)
    return q, {"v": v, "tau": tau}


# -- memory


MEMORY = """
import gc, os, time
import numpy as np
import phistar
from phistar.backends.llvm.run import machine_kernel
from phistar.scalar.graph import Graph, sin
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def cycles():
    end = time.monotonic() + float(os.environ.get("PHISTAR_FUZZ_SECONDS", "0")) / 3
    i = 0
    while i < 120 or time.monotonic() < end:
        yield i
        i += 1
"""
"""How both tests of memory begin; PHISTAR_FUZZ_SECONDS may ask for more cycles."""

COMPILATIONS = """
for i in cycles():
    graph = Graph()
    x = graph.load("x", 0)
    body = BasicBlock(graph, [Store("y", 0, "", sin(x * (1.0 + i)) + float(i + 2))])
    program = Unrolled(Signature({"x": 1}, {"y": 1}), body)
    made = machine_kernel.compile_kernel(f"leak {i}", "double", "leak", lambda: program)
    out = np.empty((5, 1))
    assert made.call([np.full((5, 1), 0.5)], [out])
    np.testing.assert_allclose(out, np.sin(0.5 * (1 + i)) + i + 2, rtol=1e-14)
    if i == 60:
        gc.collect()
        before = resident()
del made
gc.collect()
print(resident() - before)
"""

CALLS = """
robot = phistar.load("double_pendulum")
q, v, x = np.random.default_rng(2).normal(size=(3, 20_000, 2))

def calls(count):
    for i in range(count):
        robot.inverse_dynamics(q, v, x)
        robot.forward_dynamics(q[i], v[i], x[i])
        robot.forward_dynamics(q[:50], v[:50], x[:50].astype(np.float32))

calls(50)
before = resident()
calls(400)
print(resident() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
@pytest.mark.parametrize("what", [COMPILATIONS, CALLS], ids=["compilations", "calls"])
def test_no_leak(what: str) -> None:
    """Kernels made, run and dropped, and results of many calls, leave less than 8 MB behind.

    In a process of their own: this one may give memory to others meanwhile.
    """
    done = subprocess.run(
        [sys.executable, "-c", MEMORY + what],
        capture_output=True,
        text=True,
        timeout=300 + 2 * LONG,
        env={**os.environ, "PHISTAR_CACHE": "off", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) < 8e6


# -- robots of special kinds, one sample and many


@pytest.mark.parametrize("name", ["panda_hand", "quadruped", "humanoid", "cartpole"])
def test_one_sample_is_a_batch_of_one(name: str) -> None:
    """Mimic joints, free bases: the lean way, the general way and NumPy agree."""
    robot = phistar.load(name)
    q, v, x = state(robot, 4)
    tau, vdot = robot.inverse_dynamics(q, v, x), robot.forward_dynamics(q, v, x)
    for _ in range(2):
        for i in range(4):
            close(robot.inverse_dynamics(q[i], v[i], x[i]), tau[i], 1e-12)
            close(robot.forward_dynamics(q[i], v[i], x[i]), vdot[i], 1e-10)
    close(robot.inverse_dynamics(q, v, vdot), x + 0 * tau, 1e-9)

# SPDX-License-Identifier: BSD-3-Clause
"""A robot in JAX as part of a process: memory, devices, threads, forks, packages, versions."""

import gc
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import phistar
from phistar.errors import MissingExtraError, PackageVersionError
from phistar.interop import jax as pj
from phistar.interop import jax_ffi
from phistar.interop.xla_header import HeaderError, XlaHeader
from tests import interop_cases as cases


def _run(script: str, **variables: str) -> str:
    """What a fresh process prints."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu", **variables}
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", script],
        env=env, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


_HEAD = """
import gc, os, sys, jax, numpy as np, phistar
jax.config.update("jax_enable_x64", True)
from phistar.interop import jax as pj, jax_ffi
r = phistar.load("double_pendulum")
rng = np.random.default_rng(0)
def state(n):
    return r.random_configuration(rng, (n,)), *rng.normal(size=(2, n, r.nv))
"""


def test_memory_is_flat_over_200_robots() -> None:
    """Wrapped, compiled, differentiated, run and dropped: code is freed with its executables."""
    script = (
        _HEAD
        + """
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
import weakref
x = state(3)
alive = []
def once(k):
    robot = r.with_gravity((0.0, 0.0, -9.0 - 0.001 * k))
    w = pj.wrap(robot)
    alive.append(weakref.ref(robot))
    found = np.asarray(jax.jit(w.inverse_dynamics)(*x))
    expected = robot.inverse_dynamics(*x)
    assert abs(found - expected).max() < 1e-9 * abs(expected).max()
    if k % 20 == 0:
        g = jax.jit(jax.grad(lambda *a: w.inverse_dynamics(*a).sum()))(*x)
        expected = robot.linearize_inverse(*x).tau_q.sum(-2)
        assert abs(np.asarray(g) - expected).max() < 1e-9 * abs(expected).max()
for k in range(40):
    once(k)
gc.collect(); before = resident()
for k in range(40, 240):
    once(k)
gc.collect()
print(resident() - before, sum(each() is not None for each in alive), jax_ffi.release_unused())
"""
    )
    grown, alive, graves = _run(script).split()
    assert int(alive) <= 2
    assert int(graves) <= 4
    # A robot's code is some 0.1 MB, a compiled function of JAX more; 200 would be far above this.
    assert float(grown) < 25.0


def test_code_lives_as_long_as_executables() -> None:
    """A compiled function outlives robot and wrapper, and is freed with itself."""
    script = (
        _HEAD
        + """
x = state(5)
expected = r.forward_dynamics(*x)
w = pj.wrap(r.with_gravity((0.0, 0.0, -9.81)))
before = jax_ffi.release_unused()
run = jax.jit(w.forward_dynamics).lower(*x).compile()
del w; jax.clear_caches(); gc.collect()
assert abs(np.asarray(run(*x)) - expected).max() < 1e-9
def long(q, v, t):
    more = lambda i, y: y + 0.0 * k.forward_dynamics(q, v, t + y)
    return jax.lax.fori_loop(0, 3000, more, t)
slow = jax.jit(long)
k = pj.wrap(r.with_gravity((0.0, 0.0, -9.0)))
later = slow(*(np.tile(a, (200, 1)) for a in x))   # still running while all that is dropped
del k, slow, long; jax.clear_caches(); gc.collect()
assert np.isfinite(np.asarray(later)).all()
del run, later; gc.collect()
print(jax_ffi.release_unused() - before)
"""
    )
    assert int(_run(script)) <= 0


def test_callbacks_live_as_long_as_their_run() -> None:
    """By way of Python: robot, wrapper and function are dropped while a computation waits."""
    script = (
        _HEAD
        + """
import jax.numpy as jnp
x = state(5)
wide = jnp.ones((600, 600))
@jax.jit
def waits(a, t):
    return t + 0.0 * jax.lax.fori_loop(0, 10, lambda i, y: y @ a / 600.0, a)[0, 0]
def once(k):
    robot = r.with_gravity((0.0, 0.0, -9.0 - 0.001 * k))
    w = pj.wrap(robot, engine="callback")
    def long(q, v, t):
        more = lambda i, y: w.forward_dynamics(q, v, t + 0.0 * y)
        return jax.lax.fori_loop(0, 50, more, t)
    return jax.jit(long).lower(*x).compile()(*x[:2], waits(wide, x[2])), robot.forward_dynamics(*x)
for k in range(4):
    later, expected = once(k)
    jax.clear_caches(); gc.collect()
    assert abs(np.asarray(later) - expected).max() < 1e-9 * abs(expected).max()
print("fine")
"""
    )
    assert "fine" in _run(script)


def test_several_devices_on_one_host() -> None:
    """pmap and shard_map: each device its part."""
    script = (
        _HEAD
        + """
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
assert len(jax.devices()) == 4
w = pj.wrap(r)
x = state(64)
mesh = Mesh(np.array(jax.devices()), ("robots",))
held = [jax.device_put(a, NamedSharding(mesh, P("robots"))) for a in x]
z = jax.pmap(w.inverse_dynamics)(*(a.reshape(4, 16, -1) for a in x))
assert abs(np.asarray(z).reshape(64, -1) - r.inverse_dynamics(*x)).max() < 1e-10
each = jax.shard_map(w.inverse_dynamics, mesh=mesh, in_specs=P("robots"), out_specs=P("robots"))
assert abs(np.asarray(jax.jit(each)(*held)) - r.inverse_dynamics(*x)).max() < 1e-10

# Derivatives inside, with JAX's own checks: sums over devices where an argument is the same on all.
def cost(q, v, tau):
    start = w.step(q, v, tau, 1e-3)
    step = lambda s, _: (w.step(*s, tau, 1e-3), None)
    return jax.lax.scan(step, start, None, length=3)[0][1].sum()
shares = (P("robots"), P(), P("robots"))
mapped = jax.shard_map(jax.grad(cost, (0, 1, 2)), mesh=mesh, in_specs=shares, out_specs=shares)
given = held[0], x[1][0], held[2]
for ours, alone in zip(jax.jit(mapped)(*given), jax.grad(cost, (0, 1, 2))(x[0], *given[1:])):
    assert abs(np.asarray(ours) - alone).max() < 1e-9 * abs(alone).max()
by_xla = pj.wrap(r, engine="xla").forward_dynamics
found = jax.jit(jax.shard_map(by_xla, mesh=mesh, in_specs=shares, out_specs=P("robots")))(*given)
assert abs(np.asarray(found) - r.forward_dynamics(x[0], x[1][0], x[2])).max() < 1e-9
print("fine")
"""
    )
    assert "fine" in _run(script, XLA_FLAGS="--xla_force_host_platform_device_count=4")


_MOVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "dynamic-slice")
_SHARDED = (
    _HEAD
    + f"""
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
w = pj.wrap(r)
x = state(64)
mesh = Mesh(np.array(jax.devices()), ("robots",))
def put(a, mesh, *axes):
    return jax.device_put(a, NamedSharding(mesh, P(*axes)))
def check(function, arrays, expected, axes):
    code = jax.jit(function).lower(*arrays).compile()
    assert not [move for move in {_MOVES} if move in code.as_text()], code.as_text()
    found = code(*arrays)
    assert found.sharding.spec == P(*axes), found.sharding
    assert abs(np.asarray(found) - expected).max() <= 1e-12 * abs(expected).max()
held = [put(a, mesh, "robots") for a in x]
"""
    + """
check(w.forward_dynamics, held, r.forward_dynamics(*x), ("robots",))
check(jax.vmap(w.inverse_dynamics), held, r.inverse_dynamics(*x), ("robots",))
slopes = jax.grad(lambda *a: w.forward_dynamics(*a).sum())
check(slopes, held, r.linearize(*x).vdot_q.sum(-2), ("robots",))
# One state of motion for all: it has no batch, and is the same on all devices.
alone = lambda q, v, tau: w.forward_dynamics(q, v, tau)
check(alone, (held[0], x[1][0], held[2]), r.forward_dynamics(x[0], x[1][0], x[2]), ("robots",))
"""
)


def test_sharded_batches_stay_where_they_are() -> None:
    """In plain jit: each device computes its part, nothing is gathered, results are sharded."""
    script = (
        _SHARDED
        + """
two = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
wide = [put(a.reshape(8, 8, -1), two, "a", "b") for a in x]
check(w.forward_dynamics, wide, r.forward_dynamics(*x).reshape(8, 8, -1), ("a", "b"))
# Numbers of one robot on several devices have to come together: right, if not free.
odd = [put(a, two, "a", "b") for a in x]
assert abs(np.asarray(jax.jit(w.forward_dynamics)(*odd)) - r.forward_dynamics(*x)).max() < 1e-10
# Meshes whose shardings are parts of types, as jax.make_mesh makes them.
explicit = jax.make_mesh((4,), ("robots",))
typed = [put(a, explicit, "robots") for a in x]
second = jax.jit(jax.vmap(jax.hessian(lambda v, q, tau: w.forward_dynamics(q, v, tau).sum())))
found = second(typed[1], typed[0], typed[2])
assert jax.typeof(found).sharding.spec == P("robots", None, None), jax.typeof(found)
expected = r.forward_dynamics_second(*x).vv.sum(-3)
assert abs(np.asarray(found) - expected).max() < 1e-9 * abs(expected).max()
# Some axes by hand, others left to XLA.
part = jax.shard_map(w.forward_dynamics, mesh=two, in_specs=(P("a"), P(), P("a")),
                     out_specs=P("a"), axis_names={"a"})
given = (put(x[0], two, ("a", "b")), x[1][0], put(x[2], two, ("a", "b")))
found = jax.jit(part)(*given)
assert abs(np.asarray(found) - r.forward_dynamics(x[0], x[1][0], x[2])).max() < 1e-10
print("fine")
"""
    )
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    assert "fine" in _run(script, **flags)


def test_an_executable_from_a_cache_on_disk() -> None:
    """JAX keeps executables on disk: those of another process are not run with our addresses."""
    script = (
        _HEAD
        + """
jax.config.update("jax_compilation_cache_dir", os.environ["CACHED"])
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
w = pj.wrap(r); x = state(4)
assert abs(np.asarray(jax.jit(w.forward_dynamics)(*x)) - r.forward_dynamics(*x)).max() < 1e-10
print("fine")
"""
    )
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            assert "fine" in _run(script, CACHED=folder)


def test_threads_share_a_compiled_function() -> None:
    """Eight threads, each its own numbers."""
    script = (
        _HEAD
        + """
import threading
w = pj.wrap(r); f = jax.jit(w.forward_dynamics)
wrong = []
def work(seed):
    g = np.random.default_rng(seed)
    x = (r.random_configuration(g, (300,)), *g.normal(size=(2, 300, r.nv)))
    expected = r.forward_dynamics(*x)
    for _ in range(20):
        if abs(np.asarray(f(*x)) - expected).max() > 1e-9 * abs(expected).max():
            wrong.append(seed)
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(wrong))
"""
    )
    assert int(_run(script)) == 0


def test_without_foreign_functions_python_is_called_back() -> None:
    """A JAX whose header says something else: a warning, and the same numbers."""
    script = (
        _HEAD
        + """
import warnings
from phistar.interop import xla_header
def refuse(cls, folder):
    raise xla_header.HeaderError("a header from the future")
xla_header.XlaHeader.of = classmethod(refuse)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    w = pj.wrap(r)
assert w.engine == "callback", w.engine
assert any("a header from the future" in str(x.message) for x in seen), seen
x = state(4)
found = jax.jit(jax.vmap(w.forward_dynamics))(*x)
assert abs(np.asarray(found) - r.forward_dynamics(*x)).max() < 1e-10
g = jax.jit(jax.grad(lambda *a: w.forward_dynamics(*a).sum()))(*x)
assert abs(np.asarray(g) - r.linearize(*x).vdot_q.sum(-2)).max() < 1e-8
print("fine")
"""
    )
    assert "fine" in _run(script)


def test_a_header_that_is_not_understood() -> None:
    """Named, not guessed."""
    with pytest.raises(HeaderError, match="names no version"):
        XlaHeader("struct XLA_FFI_Buffer { int64_t rank; };")
    there = XlaHeader.of(jax.ffi.include_dir())
    assert there.version[0] == 0
    with pytest.raises(HeaderError, match="no field"):
        there.offset("XLA_FFI_Buffer.colour")


def test_offsets_are_those_of_c() -> None:
    """The places that ../shared/ECOSYSTEM.md found by compiling C."""
    there = XlaHeader.of(jax.ffi.include_dir())
    known = {
        "XLA_FFI_CallFrame.extension_start": 8,
        "XLA_FFI_CallFrame.stage": 32,
        "XLA_FFI_CallFrame.args.args": 72,
        "XLA_FFI_CallFrame.rets.rets": 112,
        "XLA_FFI_Extension_Base.type": 8,
        "XLA_FFI_Metadata_Extension.metadata": 24,
        "XLA_FFI_Metadata.api_version.major_version": 24,
        "XLA_FFI_Metadata.api_version.minor_version": 28,
        "XLA_FFI_Metadata.traits": 32,
        "XLA_FFI_Buffer.data": 24,
        "XLA_FFI_Buffer.rank": 32,
        "XLA_FFI_Buffer.dims": 40,
    }
    assert {path: there.offset(path) for path in known} == known


def test_missing_package(monkeypatch) -> None:
    """Named, with the line that installs it."""
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtraError, match=r"pip install \"phistar\[jax\]\""):
        pj.wrap(phistar.load("cartpole"))


def test_old_package(monkeypatch) -> None:
    """Said by its version, not by an attribute that is missing somewhere."""
    monkeypatch.setattr(jax, "__version__", "0.4.38")
    with pytest.raises(PackageVersionError, match=r"'jax' is version 0\.4\.38, .*0\.10 or newer"):
        pj.wrap(phistar.load("cartpole"))


def test_plain_methods_name_the_adapter() -> None:
    """A traced array in a method of the robot itself."""
    robot = phistar.load("panda")
    q, v, tau = cases.state(robot)
    with pytest.raises(phistar.errors.ArgumentError, match=r"phistar\.interop\.jax"):
        jax.jit(robot.forward_dynamics)(q, v, tau)


def test_handles_are_released() -> None:
    """A handle that no executable names is freed at once."""
    made = jax_ffi.handler()
    gc.collect()
    before = jax_ffi.release_unused()
    handle = jax_ffi.KernelHandle.of_code(made, made.code.kernel, (1,), (1,), 4)
    del handle
    gc.collect()
    assert jax_ffi.release_unused() <= before
    assert np.array_equal(
        np.asarray(made.double(np.ones((3, 1), np.float32))), np.full((3, 1), 2.0)
    )


def test_a_handle_that_is_dropped_while_others_are_released() -> None:
    """Garbage is collected at any time: code of a running executable must not be freed by that."""
    made = jax_ffi.handler()
    busy = np.ones(1, dtype=np.int64)
    before = jax_ffi.release_unused()

    class Words:
        """Of code that nothing runs; looking at it, Python collects garbage."""

        def __getitem__(self, number: int) -> int:
            if busy is not None and not any(x[1] is busy for x in jax_ffi._graves.values()):
                jax_ffi._bury(made, busy)
            return 0

    jax_ffi._bury(made, Words())
    assert jax_ffi.release_unused() == before + 1
    busy[0] = 0
    assert jax_ffi.release_unused() <= before

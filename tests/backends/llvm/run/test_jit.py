# SPDX-License-Identifier: BSD-3-Clause
"""Text becomes code that runs, in any thread and process, and leaves nothing behind."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.unrolled_module import unrolled_module
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.backends.llvm.run.jit import TargetCpu
from phistar.scalar.interpret import run
from phistar.scalar.program import Unrolled

ADD = """
define i64 @kernel(ptr %args, ptr %work, i64 %first, i64 %last) nounwind {{
  %x = add i64 %first, {number}
  ret i64 %x
}}
"""


def call(code: jit.LoadedCode, first: int) -> int:
    """The sum that the little module makes."""
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )
    return int(kind(code.kernel)(None, None, first, 0))


def script(text: str) -> str:
    """What a new interpreter prints."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout


def test_llvmlite_is_imported_when_needed() -> None:
    """Importing the engine does not import llvmlite."""
    text = "import sys, phistar.backends.llvm.run.jit; print('llvmlite' in sys.modules)"
    assert script(text).strip() == "False"


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_code_runs_the_program(program: Unrolled, width: int, real: str) -> None:
    """Loaded code returns what the interpreter returns, 1e-14 or 1e-5 of the largest number."""
    lanes = Lanes(width, real)
    caller = KernelCaller(jit.load(unrolled_module(program, lanes)), program.signature, lanes, 0)
    rng = np.random.default_rng(1)
    inputs = {name: rng.normal(size=(23, n)) for name, n in program.signature.inputs.items()}
    outputs = [np.full((23, n), np.nan, caller.dtype) for n in program.signature.outputs.values()]
    assert caller(list(inputs.values()), outputs)
    for got, expected in zip(outputs, run(program, inputs).values(), strict=True):
        tolerance = (1e-14 if real == "double" else 1e-5) * np.abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


def test_machine_without_extensions(program: Unrolled) -> None:
    """Code for the plainest processor gives the same numbers to rounding."""
    rng = np.random.default_rng(2)
    inputs = [rng.normal(size=(9, n)) for n in program.signature.inputs.values()]
    results = []
    for cpu, features in ((None, None), ("x86-64", "")):
        if cpu and os.uname().machine != "x86_64":
            pytest.skip("the plain processor of another architecture has another name")
        lanes = jit.lanes_for(jit.target_cpu(cpu, features))
        code = jit.load(unrolled_module(program, lanes), cpu=cpu, features=features)
        outputs = [np.empty((9, n)) for n in program.signature.outputs.values()]
        assert KernelCaller(code, program.signature, lanes, 0)(inputs, outputs)
        results.append(outputs)
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("features", "width"),
    [("+avx,+avx512f,+sse2", 8), ("+avx,-avx512f,+sse2", 4), ("-avx,+sse2", 2), ("+neon", 2)],
)
def test_lanes_follow_the_features(features: str, width: int) -> None:
    """Doubles fill the widest registers, floats are twice as many."""
    assert jit.lanes_for(TargetCpu("any", features)) == Lanes(width)
    assert jit.lanes_for(TargetCpu("any", features), "float") == Lanes(2 * width, "float")


def test_lanes_of_a_bare_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two on the architectures that always have vectors, one on others."""
    monkeypatch.setattr("platform.machine", lambda: "AMD64")
    assert jit.lanes_for(TargetCpu("x86-64", "")) == Lanes(2)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert jit.lanes_for(TargetCpu("generic", "")) == Lanes(1)


def test_named_processor_has_its_own_features_only() -> None:
    """What this machine has is not carried over to another one."""
    assert jit.target_cpu("x86-64") == TargetCpu("x86-64", "")
    assert jit.target_cpu() == jit.host_cpu()


def test_object_code_is_reproducible_and_loads() -> None:
    """The same text gives the same bytes, from which the same code comes."""
    text = ADD.format(number=5)
    code = jit.compile_text(text)
    assert code == jit.compile_text(text)
    assert call(jit.load(code), 30) == 35


@pytest.mark.parametrize("source", ["define nonsense", "@x = global i8 0", b"junk", b""])
def test_what_is_no_kernel_is_refused(source: str | bytes) -> None:
    """Bad text, bad bytes and a module without a kernel raise; nothing crashes."""
    with pytest.raises(RuntimeError):
        jit.load(source)


def test_symbols_that_are_absent_are_left_out() -> None:
    """Functions beside the kernel are found if they are there."""
    text = ADD.format(number=5) + "define i64 @more() nounwind { ret i64 8 }"
    code = jit.load(text, symbols=("more", "less"))
    assert list(code.symbols) == ["more"]
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(code.symbols["more"])() == 8


def test_code_is_freed_with_its_object() -> None:
    """The engine is closed when the last reference goes, or when asked."""
    code = jit.load(ADD.format(number=5))
    finalizer = code._finalizer
    assert finalizer.alive
    del code
    gc.collect()
    assert not finalizer.alive
    code = jit.load(ADD.format(number=5))
    code.close()
    code.close()
    assert code.closed


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_no_leak() -> None:
    """Hundreds of kernels, each with constants of its own, come and go in the same memory."""
    text = """
import resource
from pathlib import Path
from phistar.backends.llvm.run import jit

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

template = {template!r}
for i in range(600):
    jit.load(template.format(number=i)).close()
    if i == 200:
        before = resident()
print(resident() - before)
"""
    assert int(script(text.replace("{template!r}", repr(ADD)))) < 1_000_000


def test_threads_compile_at_the_same_time() -> None:
    """Each thread gets the code it asked for."""
    wrong: list[int] = []

    def work(start: int) -> None:
        for number in range(start, start + 5):
            if call(jit.load(ADD.format(number=number)), 1) != number + 1:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


FORK = """
import ctypes, os, sys, threading
from phistar.backends.llvm.run import jit

ADD = {add!r}
kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)

def call(code, first):
    return kind(code.kernel)(0, 0, first, 0)

def work():
    number = 1000
    while not done:
        call(jit.load(ADD.format(number=number)), 0)
        number += 1

done = []
before = jit.load(ADD.format(number=1))
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for i in range(20):
    child = os.fork()
    if child == 0:
        fresh = jit.load(ADD.format(number=i))
        os._exit(0 if (call(before, 4), call(fresh, 4)) == (5, 4 + i) else 1)
    if os.waitpid(child, 0)[1] != 0:
        print("child", i, "failed")
done.append(True)
for thread in threads:
    thread.join()
print("after", call(jit.load(ADD.format(number=2)), 3))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_while_others_compile() -> None:
    """A child runs loaded code and compiles more, even if it was born during a compilation."""
    assert script(FORK.replace("{add!r}", repr(ADD))) == "after 5\n"

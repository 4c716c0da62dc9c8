# SPDX-License-Identifier: BSD-3-Clause
"""Long compilations happen in a process of their own, which ends when nobody wants them."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import phistar
from phistar.backends.llvm.run import codegen, compiler_process, jit, tiers
from phistar.jobs import BackgroundJob
from phistar.thresholds import POLICY
from tests.helpers import patch_policy

TEXT = "define i64 @kernel(ptr %a, ptr %b, i64 %c, i64 %d) {\n  ret i64 0\n}\n"
FOREVER = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)"]


def _order(text: str = TEXT) -> tuple[str, str, str, int]:
    return (text, jit.host_cpu().cpu, jit.host_cpu().features, POLICY.opt_level)


def _emitted(text: str = TEXT) -> bytes | None:
    return compiler_process.compile_in_process(*_order(text))


def _command_that_is_seen(command: list[str], asked: threading.Event) -> Callable[[], list[str]]:
    """A command; the event is set when somebody is about to run it."""

    def found() -> list[str]:
        asked.set()
        return command

    return found


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Every compilation happens apart and takes for ever; set when one is about to start."""
    asked = threading.Event()
    monkeypatch.setattr(compiler_process, "_command", _command_that_is_seen(FOREVER, asked))
    patch_policy(monkeypatch, max_foreground_characters=0, max_background_characters=0)
    return asked


def test_the_same_code() -> None:
    """It is what this process would have made, to the byte; mistakes are told the same way."""
    here = codegen.object_code(*_order())
    assert _emitted() == here
    with pytest.raises(RuntimeError) as error:
        codegen.object_code(*_order("define nonsense"))
    with pytest.raises(RuntimeError, match="expected") as other:
        _emitted("define nonsense")
    assert str(other.value).splitlines()[-1] == str(error.value).splitlines()[-1]


def test_who_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long texts, and in the background all but short ones."""
    asked: list[int] = []
    monkeypatch.setattr(
        compiler_process, "compile_in_process", lambda text, *_: asked.append(len(text)) or b""
    )
    patch_policy(monkeypatch, max_foreground_characters=1000, max_background_characters=len(TEXT))
    jit.compile_text(TEXT)
    jit.compile_text(TEXT + " " * 10)
    assert asked == []
    jit.compile_text(TEXT + " " * 1000)
    thread = threading.Thread(
        target=lambda: BackgroundJob().run(
            lambda: [jit.compile_text(t) for t in (TEXT, TEXT + " ")] and None
        )
    )
    thread.start()
    thread.join()
    assert asked == [len(TEXT) + 1000, len(TEXT) + 1]


def test_without_a_process_this_one_does_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where none can be started, and where it is not known how."""
    patch_policy(monkeypatch, max_foreground_characters=0)
    known = codegen.object_code(*_order(TEXT)[:3], POLICY.opt_level - 1)
    monkeypatch.setattr(compiler_process, "_command", lambda: ["/nowhere/python"])
    with caplog.at_level("INFO", "phistar"):
        assert jit.compile_text(TEXT) == known
    assert "no process to compile in" in caplog.text
    monkeypatch.undo()
    monkeypatch.setattr(sys, "executable", "/opt/blender/blender")
    assert _emitted() is None


def test_a_process_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so; nothing else would be tried with better luck."""
    command = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read(1); sys.exit(3)"]
    monkeypatch.setattr(compiler_process, "_command", lambda: command)
    with pytest.raises(RuntimeError, match="was ended"):
        _emitted()


def test_it_ends_with_the_one_who_asked() -> None:
    """Also if that process is killed: its input ends."""
    command = compiler_process._command()
    assert command is not None
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b'{"length": 1000000}\n')
    process.stdin.close()
    assert process.wait(60) != 0
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals for threads")
def test_ctrl_c_is_heard(endless: threading.Event) -> None:
    """Whoever waits for a compilation can interrupt it."""
    main = threading.main_thread().ident
    assert main is not None

    def press() -> None:
        if endless.wait(60):
            time.sleep(0.3)
            signal.pthread_kill(main, signal.SIGINT)

    # A shell that starts the tests in the background has them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    presses = threading.Thread(target=press)
    presses.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            jit.compile_text(TEXT)
        presses.join()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_dropped_robot_cancels_its_compilations(
    endless: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread ends, and its process with it."""
    monkeypatch.setenv("PHISTAR_TIER", "auto")
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    patch_policy(
        monkeypatch,
        max_link_streams_at_once=0,
        background_delay_seconds=0.0,
        max_foreground_characters=10**9,
    )
    robot = phistar.robots.chain(3).with_gravity((0.0, 0.5, -3.25))  # nobody else has it
    q = np.zeros(3)
    robot.forward_dynamics(q, q, q)
    (compilation,) = tiers.compile_queue.running
    while compilation.job._stop is None:
        time.sleep(0.01)
    assert endless.is_set()
    del robot
    compilation.thread.join(60)
    assert not compilation.thread.is_alive()
    assert tiers.count_compilations() == 0


def test_few_at_a_time(endless: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait without a thread; those that nobody wants any more never get one."""
    monkeypatch.setenv("PHISTAR_TIER", "auto")
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    patch_policy(
        monkeypatch,
        max_link_streams_at_once=0,
        background_delay_seconds=0.0,
        max_foreground_characters=10**9,
    )
    robots = [phistar.robots.chain(3).with_gravity((0.0, 0.25, float(g))) for g in range(8)]
    q = np.zeros(3)
    for robot in robots:
        robot.gravity_force(q)
    running = tuple(tiers.compile_queue.running)
    assert len(running) == min(compiler_process.MAX_BACKGROUND_PROCESSES + 1, 8)
    assert tiers.count_compilations() == 8
    del robot, robots
    for compilation in running:
        compilation.thread.join(60)
    assert tiers.count_compilations() == 0


SCRIPT = """
import atexit, os, sys, threading
import numpy as np

def last():  # registered first: it runs after ours
    assert np.isfinite(robot.forward_dynamics(q, q, q)).all()
    (compilation,) = waited_for
    compilation.wait()
    print("the last handler", flush=True)

atexit.register(last)
import phistar
from phistar.backends.llvm.run import compiler_process, tiers
from phistar.thresholds import POLICY
atexit.register(lambda: print("the user's own handler", flush=True))
sleep = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)"]
compiler_process._command = lambda: sleep
changes = "max_background_characters", "max_link_streams_at_once", "background_delay_seconds"
vars(POLICY).update(dict.fromkeys(changes, 0))
robot = phistar.robots.chain(3)
q = np.zeros(3)
robot.forward_dynamics(q, q, q)
assert tiers.count_compilations() == 1
while {wait} and not any(each.job._stop for each in tuple(tiers.compile_queue.running)):
    threading.Event().wait(0.01)
waited_for = [*tiers.compile_queue.running, *tiers.compile_queue._waiting]
print("done", flush=True)
"""


@pytest.mark.parametrize("wait", [True, False])
def test_the_process_ends_when_the_work_is_done(wait: bool) -> None:
    """What is being compiled is abandoned, quietly, and handlers of users run and may compute."""
    env = os.environ | {"PHISTAR_TIER": "auto", "PHISTAR_CACHE": "off"}
    script = SCRIPT.format(wait=wait)
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=env, timeout=300
    )
    assert (out.returncode, out.stderr) == (0, "")
    assert out.stdout.split("\n") == ["done", "the user's own handler", "the last handler", ""]


def test_a_failed_compilation_leaves_the_loops(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The logger hears why; nobody tries again."""
    monkeypatch.setenv("PHISTAR_TIER", "auto")
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    patch_policy(
        monkeypatch,
        max_link_streams_at_once=0,
        max_background_characters=0,
        background_delay_seconds=600.0,  # it begins when it is waited for, and not before
    )
    command = [sys.executable, "-I", "-S", "-c", "raise SystemExit(3)"]
    monkeypatch.setattr(compiler_process, "_command", lambda: command)
    robot = phistar.robots.chain(3).with_gravity((0.0, 0.5, -3.5))  # nobody else has it
    q = np.zeros(3)
    first = robot.forward_dynamics(q, q, q)
    (compilation,) = tiers.compile_queue.running
    compilation.wait()
    assert "compiling its best form failed" in caplog.text
    np.testing.assert_array_equal(robot.forward_dynamics(q, q, q), first)
    assert tiers.count_compilations() == 0
    gc.collect()

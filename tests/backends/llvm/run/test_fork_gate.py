# SPDX-License-Identifier: BSD-3-Clause
"""A process forks between uses of LLVM: who wants to fork goes first, the collector never waits."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from phistar.backends.llvm.run.jit import _ForkGate
from phistar.jobs import BackgroundJob


class Engine:
    """Something to close."""

    closed = False

    def close(self) -> None:
        """Remember it."""
        self.closed = True


def _thread(action: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.001)


def test_who_forks_goes_first() -> None:
    """It waits for those inside, others wait for it, and whoever is inside may go in again."""
    gate, order, leave = _ForkGate(), [], threading.Event()

    def inside() -> None:
        with gate:
            leave.wait()
            with gate:
                order.append("inside again")

    def fork() -> None:
        gate.hold_for_fork()
        order.append("forked")
        gate.resume_after_fork()

    def late() -> None:
        with gate:
            order.append("late")

    threads = [_thread(inside)]
    _until(lambda: bool(gate._inside))
    threads.append(_thread(fork))
    _until(lambda: gate._forking == 1)
    threads.append(_thread(late))
    leave.set()
    for thread in threads:
        thread.join(60)
    assert order == ["inside again", "forked", "late"]
    assert (gate._inside, gate._forking) == ([], 0)


def test_the_collector_does_not_wait() -> None:
    """While a fork is under way an engine is put aside, and closed by the next who leaves."""
    gate, shut, go_on = _ForkGate(), threading.Event(), threading.Event()

    def fork() -> None:
        gate.hold_for_fork()
        shut.set()
        go_on.wait()
        gate.resume_after_fork()

    thread = _thread(fork)
    shut.wait()
    aside, now = Engine(), Engine()
    gate.close_soon(aside)
    assert not aside.closed
    go_on.set()
    thread.join(60)
    with gate:
        assert not aside.closed
    assert aside.closed
    gate.close_soon(now)
    assert now.closed
    assert gate._inside == []


def test_the_end_waits_for_those_inside() -> None:
    """And lets only the thread in that closed it; jobs that were abandoned do not go in at all."""
    gate, leave = _ForkGate(), threading.Event()

    def inside() -> None:
        with gate:
            leave.wait()

    thread = _thread(inside)
    _until(lambda: bool(gate._inside))
    threading.Timer(0.05, leave.set).start()
    gate.close()
    assert leave.is_set()
    assert gate._inside == []
    with gate:
        late = _thread(inside)
    thread.join(60)
    late.join(0.05)
    assert late.is_alive()
    assert gate._inside == []
    job, seen = BackgroundJob(), []

    def work() -> None:
        job.abandon()
        with _ForkGate():
            seen.append("in")

    job.run(work)
    assert seen == []


def test_the_child_has_one_thread() -> None:
    """Others that were inside are not there; the one that forked may be."""
    gate, leave = _ForkGate(), threading.Event()

    def inside() -> None:
        with gate:
            leave.wait()

    thread = _thread(inside)
    _until(lambda: bool(gate._inside))
    child = _ForkGate()
    child._inside = [*gate._inside, threading.get_ident()]
    child._forking = 1
    child.reset_after_fork()
    assert child._inside == [threading.get_ident()]
    child.__exit__()
    child.hold_for_fork()
    child.resume_after_fork()
    leave.set()
    thread.join(60)


SCRIPT = """
import os, threading, time
from phistar.backends.llvm.run import calls, jit
inside, leave = threading.Event(), threading.Event()

def compile():
    with jit.fork_gate:
        inside.set()
        leave.wait()

def first_large_batch():
    while not jit.fork_gate._forking:
        time.sleep(0.001)
    threading.Timer(0.2, leave.set).start()
    calls._thread_pool()

threads = [threading.Thread(target=each) for each in (compile, first_large_batch)]
for thread in threads:
    thread.start()
inside.wait()
child = os.fork()
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for thread in threads:
    thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_handlers_come_before_or_after_a_fork() -> None:
    """A thread that starts to use threads while another one forks gives no ignored exception."""
    out = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (out.returncode, out.stdout, out.stderr) == (0, "done\n", "")

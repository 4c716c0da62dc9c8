# SPDX-License-Identifier: BSD-3-Clause
"""Long work says what it does, makes way and can be abandoned."""

import gc
import io
import logging
import threading
import weakref
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from phistar import jobs
from phistar.jobs import (
    AbandonedError,
    BackgroundJob,
    checkpoint,
    expect_seconds,
    interpreter_slot,
    progress_message,
    run_interpreter,
)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    """Standard error is a terminal, and nothing was done before."""
    found = _Terminal()
    monkeypatch.setattr(jobs, "sys", SimpleNamespace(stderr=found))
    monkeypatch.setattr(jobs, "_progress_line", jobs._ProgressLine())
    return found


def test_jobs_are_frozen_when_the_process_ends() -> None:
    """An abandoned job releases its locks, but frees nothing that it made, and never goes on."""
    lock, began, left = threading.Lock(), threading.Event(), threading.Event()

    class Made:
        pass

    made: list[weakref.ref[Made]] = []

    def work_() -> None:
        large = Made()
        made.append(weakref.ref(large))
        with lock:
            began.set()
            while True:
                checkpoint()

    def run() -> None:
        job.run(work_)
        left.set()

    job = BackgroundJob()
    job.process_exiting = True
    threading.Thread(target=run, daemon=True).start()
    assert began.wait(60)
    job.abandon()
    assert lock.acquire(timeout=60)
    assert made[0]() is not None
    assert not left.wait(0.05)


def test_short_work_is_silent(terminal: _Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written, whatever it is."""
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: 100.0))
    with progress_message("compiling a robot"):
        checkpoint()
        expect_seconds(0.0)
    checkpoint()
    expect_seconds(1e9)
    assert terminal.getvalue() == ""


def test_long_work_says_what_it_is(terminal: _Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, once, which is cleared; inner work belongs to the outer one."""
    monkeypatch.setattr(jobs, "MESSAGE_DELAY_SECONDS", -1.0)
    with progress_message("compiling a robot"):
        with progress_message("compiling a part"):
            checkpoint()
            checkpoint()
        assert terminal.getvalue() == "\r\x1b[2Kphistar: compiling a robot ..."
    assert terminal.getvalue().endswith("...\r\x1b[2K")


def test_what_is_known_to_take_long(terminal: _Terminal) -> None:
    """It is said before, as nobody can look up meanwhile."""
    with progress_message("compiling a robot"):
        expect_seconds(100.0)
        assert "compiling a robot" in terminal.getvalue()


def test_pieces_of_work_add_up(terminal: _Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many short pieces that follow one another are long work, too; after a rest they are not."""
    now = [100.0]
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: now[0]))
    for _ in range(3):
        with progress_message("compiling a piece"):
            now[0] += 0.2
            checkpoint()
        now[0] += 0.05
    assert terminal.getvalue().count("piece") == 1
    now[0] += 1.0
    with progress_message("compiling a fourth"):
        now[0] += 0.2
        checkpoint()
    assert "fourth" not in terminal.getvalue()


def test_without_a_terminal_a_logger_hears_of_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At the level of information, under the name phistar."""
    monkeypatch.setattr(jobs, "_progress_line", jobs._ProgressLine())
    with caplog.at_level(logging.INFO, "phistar"), progress_message("compiling a robot"):
        expect_seconds(100.0)
    assert [(r.name, r.message) for r in caplog.records] == [("phistar", "compiling a robot")]


def _in_thread(action: object) -> None:
    thread = threading.Thread(target=action)  # type: ignore[arg-type]
    thread.start()
    thread.join()


def test_other_threads_are_silent(terminal: _Terminal) -> None:
    """They would write into each other's lines."""

    def action() -> None:
        with progress_message("compiling a robot"):
            expect_seconds(100.0)

    _in_thread(action)
    _in_thread(lambda: BackgroundJob().run(action))
    assert terminal.getvalue() == ""


def test_an_abandoned_job_ends() -> None:
    """At the next checkpoint, or before it begins; what it runs may be stopped from outside."""
    job, seen = BackgroundJob(), []

    def action() -> None:
        checkpoint()
        with job.on_abandon(lambda: seen.append("stopped")):
            job.abandon()
        seen.append("went on")
        checkpoint()
        seen.append("went on for ever")

    _in_thread(lambda: job.run(action))
    assert seen == ["stopped", "went on"]
    _in_thread(lambda: job.run(action))
    assert seen == ["stopped", "went on"]
    with pytest.raises(AbandonedError):
        job.raise_if_abandoned()
    assert jobs.current_job() is None


def test_one_job_at_a_time_and_the_urgent_first() -> None:
    """A job waits for those before it, unless it is urgent, and for work in the foreground."""
    background = [BackgroundJob() for _ in range(3)]
    order: list[int] = []
    ready = threading.Barrier(4)

    def run(number: int) -> None:
        def action() -> None:
            ready.wait()
            with interpreter_slot():
                checkpoint()
                order.append(number)

        background[number].run(action)

    background[1].urgent.set()
    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    with interpreter_slot():
        for thread in threads:
            thread.start()
        ready.wait()
        while len(jobs._interpreter_slots._jobs) < 3:
            threading.Event().wait(0.001)
        assert order == []
    for thread in threads:
        thread.join()
    assert order[0] == 1
    assert sorted(order) == [0, 1, 2]
    assert jobs._interpreter_slots._jobs == []


def test_an_abandoned_job_does_not_wait_for_its_turn() -> None:
    """It leaves the queue at once."""
    job = BackgroundJob()
    with interpreter_slot():
        thread = threading.Thread(target=lambda: job.run(interpreter_slot().__enter__))
        thread.start()
        job.abandon()
        thread.join()
    assert jobs._interpreter_slots._jobs == []


def _in_background(job: BackgroundJob, work: Callable[[], object]) -> threading.Thread:
    """A thread of its own for a job, as each compilation has one."""
    thread = threading.Thread(target=lambda: job.run(lambda: found.append(run_interpreter(work))))
    found: list[object] = []
    thread.found = found  # type: ignore[attr-defined]
    thread.start()
    return thread


def test_one_thread_does_what_jobs_want_of_the_interpreter() -> None:
    """Jobs that live at the same time share one heap; each is the current job of its own work."""
    names: set[int] = set()
    seen: list[BackgroundJob | None] = []

    def work() -> int:
        names.add(threading.get_ident())
        seen.append(jobs.current_job())
        return len(seen)

    background = [BackgroundJob() for _ in range(4)]
    with interpreter_slot():
        threads = [_in_background(job, work) for job in background]
        while len(jobs._interpreter_slots._jobs) < 4:
            threading.Event().wait(0.001)
    for thread in threads:
        thread.join(60)
    assert len(names) == 1
    assert not names & {thread.ident for thread in threads}
    assert set(seen) == set(background)
    assert sorted(thread.found for thread in threads) == [[1], [2], [3], [4]]  # type: ignore[attr-defined]


def test_the_foreground_uses_the_interpreter_itself() -> None:
    """Nobody is asked, and what was raised is raised."""
    assert run_interpreter(threading.get_ident) == threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        run_interpreter(lambda: 1 / 0)


def test_an_urgent_job_overtakes_in_a_thread_of_its_own() -> None:
    """The one that was at work waits at its next checkpoint, and goes on afterwards."""
    slow, fast = BackgroundJob(), BackgroundJob()
    fast.urgent.set()
    began, order = threading.Event(), []

    def long() -> None:
        began.set()
        while not order:
            checkpoint()
        order.append("slow")

    first = _in_background(slow, long)
    assert began.wait(60)
    _in_background(fast, lambda: order.append("fast")).join(60)
    first.join(60)
    assert order == ["fast", "slow"]


def test_what_goes_wrong_is_heard_where_it_is_waited_for() -> None:
    """Errors, and that a job was abandoned; the thread goes on with the next and keeps nothing."""

    class Made:
        pass

    kept: list[weakref.ref[Made]] = []
    errors: list[BaseException] = []

    def fail() -> Made:
        large = Made()
        kept.append(weakref.ref(large))
        raise KeyError("nothing")

    def give_up() -> None:
        job.abandon()
        checkpoint()

    def expect(work: Callable[[], object], error: type[BaseException]) -> None:
        with pytest.raises(error):
            run_interpreter(work)
        errors.append(error())

    job = BackgroundJob()
    for work, error in ((fail, KeyError), (give_up, AbandonedError)):
        _in_thread(lambda work=work, error=error: job.run(lambda: expect(work, error)))
    assert [type(each) for each in errors] == [KeyError, AbandonedError]
    gc.collect()
    assert kept[0]() is None
    assert jobs._interpreter_slots._jobs == []

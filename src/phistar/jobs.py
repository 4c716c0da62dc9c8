# SPDX-License-Identifier: BSD-3-Clause
"""Long work: it shows a progress message, yields to others, and can be abandoned.

``change_foreground`` is work that a user waits for. If it takes longer than
``MESSAGE_DELAY_SECONDS``, a line on the terminal says what is going on and is cleared afterwards;
without a terminal it goes to the logger ``phistar``. A ``BackgroundJob`` is work of a thread in the
background: one at a time, only while no work in the foreground waits, and stopped at the next
``checkpoint`` after ``abandon``.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")

MESSAGE_DELAY_SECONDS = 0.5
"""Seconds after which a progress message is shown."""

SAME_WORK_GAP_SECONDS = 0.1
"""Seconds between two pieces of work that count as one."""

POLL_SECONDS = 0.05
"""Seconds between checks of a waiting thread whether it was abandoned."""

LOGGER_NAME = "phistar"
"""Logger of progress messages without a terminal."""


class AbandonedError(Exception):
    """The job was abandoned."""


class BackgroundJob:
    """Work of a thread in the background.

    Attributes:
        abandoned: Whether the result is no longer needed.
        process_exiting: Whether the process is about to end: results of an abandoned job are not
            freed.
        urgent: Whether the user waits for it.
    """

    def __init__(self) -> None:
        self.abandoned = False
        self.process_exiting = False
        self.urgent = threading.Event()
        self._stop: Callable[[], None] | None = None
        self._process = os.getpid()

    def abandon(self) -> None:
        """Abandon the job; takes no lock, as the garbage collector may call it."""
        self.abandoned = True
        stop = self._stop
        # The child of a fork has nothing to stop.
        if stop is not None and self._process == os.getpid():
            stop()

    @contextmanager
    def on_abandon(self, stop: Callable[[], None]) -> Iterator[None]:
        """A context in which ``abandon`` calls ``stop``."""
        self._stop = stop
        try:
            self.raise_if_abandoned()
            yield
        finally:
            self._stop = None

    def raise_if_abandoned(self) -> None:
        """Raise AbandonedError if it was abandoned."""
        if self.abandoned:
            raise AbandonedError

    def run(self, work: Callable[[], None]) -> None:
        """Do some work as this job, in this thread."""
        _thread_state.job = self
        try:
            self.raise_if_abandoned()
            work()
        except AbandonedError:
            if self.process_exiting:
                # All locks are released by now. To free a large program takes longer than the
                # process may take to end, and the interpreter is busy with nothing else meanwhile.
                threading.Event().wait()
        finally:
            _thread_state.job = None


class _ThreadState(threading.local):
    job: BackgroundJob | None = None


_thread_state = _ThreadState()


def current_job() -> BackgroundJob | None:
    """The job of this thread; None in the foreground."""
    return _thread_state.job


def checkpoint() -> None:
    """A point in long work where it may yield, stop, or show its progress message."""
    job = _thread_state.job
    if job is None:
        if _progress_line.due_time and time.monotonic() > _progress_line.due_time:
            _progress_line.show()
        return
    job.raise_if_abandoned()
    while not _interpreter_slots.may_run(job):
        time.sleep(POLL_SECONDS)
        job.raise_if_abandoned()


@contextmanager
def interpreter_slot() -> Iterator[None]:
    """Use of the interpreter: at once in the foreground, one job at a time in the background."""
    job = _thread_state.job
    if job is None:
        _interpreter_slots.change_foreground(1)
        try:
            yield
        finally:
            _interpreter_slots.change_foreground(-1)
        return
    _interpreter_slots.enter(job)
    try:
        yield
    finally:
        _interpreter_slots.leave(job)


def run_interpreter(work: Callable[[], T]) -> T:
    """Long use of the interpreter, in its slot; one thread does it for all jobs in the background.

    The C library gives threads that live at the same time heaps of their own and keeps the end of
    each for the next thread, tens of megabytes once a large program was traced in it. Done by one
    thread, the work of all jobs needs one such heap.

    Raises:
        AbandonedError: The job of this thread was.
    """
    job = _thread_state.job
    with interpreter_slot():
        return work() if job is None else _interpreter_threads.run(job, work)


@contextmanager
def progress_message(what: str) -> Iterator[None]:
    """Work that a user may wait for.

    Args:
        what: What is being done, e.g. ``"compiling ur5: vdot"``.
    """
    if _thread_state.job is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    _progress_line.begin(what)
    try:
        yield
    finally:
        _progress_line.end()


def expect_seconds(seconds: float) -> None:
    """The next checkpoint is so far away: show the message now if that is too long."""
    if (
        _thread_state.job is None
        and _progress_line.due_time
        and time.monotonic() + seconds > _progress_line.due_time
    ):
        _progress_line.show()


class _InterpreterSlots:
    """Scheduling of long use of the interpreter."""

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """No user: the state in the child of a fork."""
        self._lock = threading.Lock()
        self._foreground = 0
        self._jobs: list[BackgroundJob] = []

    def change_foreground(self, change: int) -> None:
        """Work that a user waits for begins (1) or ends (-1)."""
        with self._lock:
            self._foreground = max(0, self._foreground + change)

    def may_run(self, job: BackgroundJob) -> bool:
        """Whether a job may run: nothing waits in the foreground, and it came first."""
        if self._foreground:
            return False
        jobs = tuple(self._jobs)
        first = next((each for each in jobs if each.urgent.is_set()), jobs[0] if jobs else job)
        return first is job or job not in jobs

    def enter(self, job: BackgroundJob) -> None:
        """Wait until a job may run."""
        with self._lock:
            self._jobs.append(job)
        try:
            while not self.may_run(job):
                time.sleep(POLL_SECONDS)
                job.raise_if_abandoned()
        except AbandonedError:
            self.leave(job)
            raise

    def leave(self, job: BackgroundJob) -> None:
        """Let others run."""
        with self._lock:
            if job in self._jobs:
                self._jobs.remove(job)


class _Task(Generic[T]):
    """Work of a job that another thread does."""

    def __init__(self, job: BackgroundJob, work: Callable[[], T]) -> None:
        self._job = job
        self._work: Callable[[], T] | None = work
        self._done = threading.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do it, in this thread."""
        assert self._work is not None
        _thread_state.job = self._job
        try:
            self._result.append(self._work())
        except BaseException as error:
            self._error = error
        finally:
            _thread_state.job = None
            self._work = None
            self._done.set()

    def wait(self) -> T:
        """What came of it."""
        self._done.wait()
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None
        return self._result.pop()


class _InterpreterThreads:
    """Threads that do what jobs in the background want of the interpreter.

    One is enough, as one job at a time may run; there is a second one only if a job that somebody
    waits for overtakes.
    """

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """No thread: the state in the child of a fork."""
        self._idle: list[SimpleQueue[Callable[[], None]]] = []

    def run(self, job: BackgroundJob, work: Callable[[], T]) -> T:
        """The result of some work of a job; the thread that was used last does it."""
        try:
            tasks = self._idle.pop()
        except IndexError:
            tasks = SimpleQueue()
            threading.Thread(
                target=_run_tasks, args=(tasks,), name="phistar tracer", daemon=True
            ).start()
        task = _Task(job, work)
        tasks.put(task.run)
        try:
            return task.wait()
        finally:
            self._idle.append(tasks)


def _run_tasks(tasks: SimpleQueue[Callable[[], None]]) -> None:
    """Do tasks as they come, and keep nothing of them."""
    while True:
        tasks.get()()


class _ProgressLine:
    """The progress message on the terminal or to the logger; of the main thread.

    Attributes:
        due_time: When to show it; 0 if there is none.
    """

    def __init__(self) -> None:
        self.due_time = 0.0
        self._what = ""
        self._begin = self._end = -SAME_WORK_GAP_SECONDS
        self._depth = 0
        self._shown = False

    def begin(self, what: str) -> None:
        """Some work begins; work that follows at once continues it."""
        self._depth += 1
        if self._depth > 1:
            return
        now = time.monotonic()
        if now - self._end > SAME_WORK_GAP_SECONDS:
            self._begin = now
        self._what, self.due_time = what, self._begin + MESSAGE_DELAY_SECONDS

    def end(self) -> None:
        """The work ends."""
        self._depth -= 1
        if self._depth:
            return
        self._end, self.due_time = time.monotonic(), 0.0
        if self._shown:
            self._shown = False
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def show(self) -> None:
        """Show the message, in the main thread only."""
        if threading.current_thread() is not threading.main_thread():
            return
        self.due_time = 0.0
        if sys.stderr is not None and sys.stderr.isatty():
            self._shown = True
            sys.stderr.write(f"\r\x1b[2Kphistar: {self._what} ...")
            sys.stderr.flush()
        else:
            import logging

            logging.getLogger(LOGGER_NAME).info("%s", self._what)


_interpreter_slots = _InterpreterSlots()
_interpreter_threads = _InterpreterThreads()
_progress_line = _ProgressLine()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_interpreter_threads.reset_after_fork)
    os.register_at_fork(after_in_child=_interpreter_slots.reset_after_fork)

__all__ = [
    "LOGGER_NAME",
    "POLL_SECONDS",
    "AbandonedError",
    "BackgroundJob",
    "checkpoint",
    "current_job",
    "expect_seconds",
    "interpreter_slot",
    "progress_message",
    "run_interpreter",
]

# SPDX-License-Identifier: BSD-3-Clause
"""Which shape of code runs: loops at once, a straight line as soon as it is ready.

Loops compile in a tenth of a second whatever the robot, straight lines run up to twice as fast but
take seconds to compile if they are long. So a long program starts as loops while a thread compiles
the straight line, which then takes over; a very long one stays as it is. What is to be replaced is
not optimised: LLVM takes half the time for loops then, a quarter for lines. Some straight lines
have a second kernel, for single samples, which is made last, once there was a single sample. Code
that only answers until other code is there (``stand_in``) gets no straight line before it is wanted
for itself.

Environment:
    PHISTAR_TIER: ``auto`` as above; ``wait`` compiles the final shape at once; ``rolled`` and
        ``straight`` make one shape only.
"""

from __future__ import annotations

import atexit
import gc
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial

from phistar import settings
from phistar.backends.llvm.run import compiler_process, jit
from phistar.backends.llvm.run.machine_kernel import (
    MachineKernel,
    compile_kernel,
    load_cached,
    with_single_entry,
)
from phistar.backends.policy import LOOPED, Decision, without_loops
from phistar.jobs import LOGGER_NAME, BackgroundJob
from phistar.scalar.program import Looped, ScalarProgram
from phistar.thresholds import POLICY

_thread = threading.local()


@contextmanager
def stand_in() -> Iterator[None]:
    """Programs that this thread runs meanwhile answer until another one is compiled."""
    before = getattr(_thread, "stands_in", False)
    _thread.stands_in = True
    try:
        yield
    finally:
        _thread.stands_in = before


class TieredKernel:
    """A program in the best shape that is ready."""

    def __init__(
        self,
        name: str,
        real: str,
        title: str,
        rolled: Callable[[], Looped] | None,
        straight: Callable[[], ScalarProgram],
        decide: Callable[[str], Decision] = without_loops,
    ) -> None:
        """Args:
        name: Fingerprint of the program on its robot.
        real: ``"double"`` or ``"float"``.
        title: What it is, for people.
        rolled: Makes the loops; None if there are none.
        straight: Makes the straight line.
        decide: Which shape it gets and when, by PHISTAR_TIER.
        """
        self._decide = decide
        self._name = name
        self._real = real
        self._title = title
        self._program_by_shape: dict[str, Callable[[], ScalarProgram]] = {"straight": straight}
        if rolled is not None:
            self._program_by_shape["rolled"] = rolled
        self._lock = threading.Lock()
        self._kernel: MachineKernel | None = None
        self._compilation: _BackgroundCompilation | None = None
        self._put_off: Callable[[], ScalarProgram] | None = None
        self._single_wanted = threading.Event()
        _all_tiered.add(self)

    @property
    def decision(self) -> Decision:
        """Which shape it gets, and when."""
        return self._decide(settings.tier())

    @property
    def kernel(self) -> MachineKernel:
        """The best one that is ready; the first is made on the spot."""
        if self._kernel is None:
            with self._lock:
                if self._kernel is None:
                    self._kernel = self._first_kernel()
        if self._put_off is not None and not getattr(_thread, "stands_in", False):
            with self._lock:
                program, self._put_off = self._put_off, None
                if program is not None:
                    self._promote_in_background(program=program)
        self._settle()
        return self._kernel

    @property
    def kernel_if_ready(self) -> MachineKernel | None:
        """The final one of a program that has no loops, if it is there; else it is being made.

        A thread makes it; the tiers ``wait`` and ``straight`` wait for it, and ``rolled`` never
        makes it.
        """
        if self._kernel is None and self._compilation is None and settings.tier() != "rolled":
            with self._lock:
                if self._kernel is None and self._compilation is None:
                    ready = self._from_cache("straight")
                    if ready is None and settings.tier() == "auto":
                        self._promote_in_background()
                    else:
                        self._kernel = self._with_single(ready) if ready else self._straight_now()
        self._settle()
        return self._kernel

    def _settle(self) -> None:
        """In the tier ``wait``: wait for the final one, should that be on its way."""
        compiling = self._compilation
        if compiling is not None and settings.tier() == "wait":
            compiling.wait()

    @property
    def awaits_single(self) -> bool:
        """Whether there will be code for single samples once there was one."""
        kernel = self._kernel
        if kernel is None or kernel.single_entry is not None or self._single_wanted.is_set():
            return False
        return self.decision.alone

    def want_single(self) -> None:
        """There was a single sample: code for such is to be made, unless there is no use for it."""
        if self._single_wanted.is_set():
            return
        self._single_wanted.set()
        with self._lock:
            kernel = self._kernel
            if kernel is not None and self._compilation is None and self._lacks_single(kernel):
                self._promote_in_background(kernel, shape=kernel.shape)

    def _lacks_single(self, kernel: MachineKernel) -> bool:
        """Whether it is the final one, and code for single samples is to come."""
        decision = self.decision
        final = kernel.shape == "straight" or decision.shape == LOOPED
        final = final and self._put_off is None
        return final and kernel.single_entry is None and decision.alone

    @property
    def has_kernel(self) -> bool:
        """Whether there is a kernel."""
        return self._kernel is not None

    @property
    def is_started(self) -> bool:
        """Whether there is a kernel, or one is being made."""
        return self._kernel is not None or self._compilation is not None

    def wait_for_final(self) -> MachineKernel:
        """The final one."""
        first = self.kernel
        compiling = self._compilation
        if compiling is not None:
            compiling.wait()
        return self._kernel or first

    def _first_kernel(self) -> MachineKernel:
        decision = self.decision
        has_loops = "rolled" in self._program_by_shape
        if decision.shape != LOOPED or not has_loops:
            ready = self._from_cache("straight")
            if ready is None and (decision.eager or not has_loops):
                return self._quick("straight") if decision.quick else self._straight_now()
            return self._quick("rolled") if ready is None else self._with_single(ready)
        rolled = self._program_by_shape["rolled"]
        kernel = self._from_cache("rolled") or self._compile_now("rolled", rolled)
        return self._with_single(kernel, shape="rolled")

    def _quick(self, shape: str) -> MachineKernel:
        """Code in a shape that is not optimised, while a thread makes the final one."""
        name, straight = f"{self._name} {shape}", self._program_by_shape["straight"]
        once = cache(straight)
        program = once if shape == "straight" else self._program_by_shape[shape]
        found = load_cached(name, self._real, quick=True)
        found = found or compile_kernel(name, self._real, self._title, program, quick=True)
        if getattr(_thread, "stands_in", False):
            self._put_off = once
        else:
            self._promote_in_background(program=once)
        return found

    @property
    def is_promoting(self) -> bool:
        """Whether a better kernel is being compiled, or will be."""
        compilation = self._compilation
        return self._put_off is not None or (
            compilation is not None and not compilation.finished.is_set()
        )

    def reset_after_fork(self) -> None:
        """In the child of a fork: another thread may have held the lock, and none is there now."""
        self._lock = threading.Lock()
        self._compilation = None
        wanted, self._single_wanted = self._single_wanted, threading.Event()
        if wanted.is_set():
            self._single_wanted.set()

    def _straight_now(self) -> MachineKernel:
        """The straight line, traced once for all its kernels."""
        once = cache(self._program_by_shape["straight"])
        return self._with_single(self._compile_now("straight", once), once)

    def _with_single(
        self,
        kernel: MachineKernel,
        program: Callable[[], ScalarProgram] | None = None,
        shape: str = "straight",
    ) -> MachineKernel:
        """A final kernel with code for single samples, if that is there.

        If not, the tiers ``wait`` and ``straight`` wait for it; else a thread makes it once there
        was a single sample.

        Args:
            kernel: The kernel.
            program: Gives the program of it; None: as we were told to make it.
            shape: Of the kernel.
        """
        if not self.decision.alone:
            return kernel
        single = load_cached(f"{self._name} {shape}", self._real, alone=True)
        if single is None and settings.tier() == "auto":
            if self._single_wanted.is_set():
                self._promote_in_background(kernel, program, shape)
            return kernel
        program = program or self._program_by_shape[shape]
        single = single or self._compile_now(shape, program, alone=True)
        return with_single_entry(kernel, single)

    def _promote_in_background(
        self,
        ready: MachineKernel | None = None,
        program: Callable[[], ScalarProgram] | None = None,
        shape: str = "straight",
    ) -> None:
        """Have a thread make the final kernel, unless that is ready, and code for single samples.

        The thread holds on to what it needs, not to us.

        Args:
            ready: The final kernel, if there is one.
            program: Gives the program of it; None: as we were told to make it.
            shape: Of the final kernel.
        """
        names = (f"{self._name} {shape}", self._real, self._title)
        program = program or self._program_by_shape[shape]
        # Who waits for all there is wants that, too.
        wanted = self._single_wanted.is_set if settings.tier() == "auto" else lambda: True
        alone = wanted if self.decision.alone else lambda: False
        work = partial(_compile_in_turn, *names, program, ready, alone)
        self._compilation = start_compilation(self, work)

    def promote(self, kernel: MachineKernel, last: bool) -> None:
        """What a thread made, and whether it was the last thing."""
        with self._lock:
            self._kernel = kernel
            if last:
                self._compilation = None
                if self._single_wanted.is_set() and self._lacks_single(kernel):
                    # It was wanted while the thread came to its end.
                    self._promote_in_background(kernel, shape=kernel.shape)

    def _from_cache(self, shape: str) -> MachineKernel | None:
        return load_cached(f"{self._name} {shape}", self._real)

    def _compile_now(
        self, shape: str, program: Callable[[], ScalarProgram], alone: bool = False
    ) -> MachineKernel:
        return compile_kernel(f"{self._name} {shape}", self._real, self._title, program, alone)


def _compile_in_turn(
    name: str,
    real: str,
    title: str,
    program: Callable[[], ScalarProgram],
    ready: MachineKernel | None,
    alone: Callable[[], bool],
) -> Iterator[tuple[MachineKernel, bool]]:
    """Kernels in the order in which they become ready, and whether each is the last one.

    Args:
        name, real, title, program: As for ``compile_kernel``.
        ready: The straight line, if it is there.
        alone: Whether code for single samples is wanted by now.
    """
    once = cache(program)
    kernel = compile_kernel(name, real, title, once) if ready is None else ready
    if not alone():
        yield kernel, True
        return
    if ready is None:
        yield kernel, False
    single = load_cached(name, real, alone=True)
    single = single or compile_kernel(name, real, title, once, alone=True)
    yield with_single_entry(kernel, single), True


class _BackgroundCompilation:
    """A kernel that a thread makes for tiers, as long as they live.

    Attributes:
        finished: Whether nothing will come of it any more that has not come yet.
    """

    def __init__(
        self, tiers: TieredKernel, work: Callable[[], Iterable[tuple[MachineKernel, bool]]]
    ) -> None:
        self.job = BackgroundJob()
        self._work = work
        self._tiers = weakref.ref(tiers)
        self.thread = threading.Thread(target=self._run, name="phistar compiler", daemon=True)
        self.finished = threading.Event()
        weakref.finalize(tiers, self.job.abandon).atexit = False

    def wait(self) -> None:
        """Until it is done, and soon, please."""
        self.job.urgent.set()
        compile_queue.start(self)
        self.finished.wait()

    def _run(self) -> None:
        try:
            self.job.run(self._make)
        finally:
            self.finished.set()
            compile_queue.done(self)

    def _make(self) -> None:
        # The first results are on their way; they would have to share the interpreter.
        self.job.urgent.wait(POLICY.background_delay_seconds)
        self.job.raise_if_abandoned()
        try:
            for kernel, last in self._work():
                if (tiers := self._tiers()) is not None:
                    tiers.promote(kernel, last)
        except (RuntimeError, MemoryError) as error:
            # Nobody tries again.
            import logging

            text = "a program stays as it is: compiling its best form failed: %s"
            logging.getLogger(LOGGER_NAME).warning(text, error)


class _CompileQueue:
    """Compilations; few at a time have a thread.

    Each thread that lives beside others has memory of its own, which is not given back; see
    ``jobs.run_interpreter``.

    Attributes:
        running: Those that have a thread.
    """

    def __init__(self) -> None:
        self.closed = False
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Nothing is compiled: so it is in the child of a fork."""
        self._lock = threading.Lock()
        self._waiting: list[_BackgroundCompilation] = []
        self.running: set[_BackgroundCompilation] = set()

    def add(self, compilation: _BackgroundCompilation) -> None:
        """One more."""
        with self._lock:
            self._waiting.append(compilation)
            self._start_some()

    def start(self, compilation: _BackgroundCompilation) -> None:
        """Somebody waits for this one: it gets a thread now, unless it has, or had, one."""
        with self._lock:
            if compilation in self._waiting:
                self._start(compilation)

    def done(self, compilation: _BackgroundCompilation) -> None:
        """Its thread ends."""
        with self._lock:
            self.running.discard(compilation)
            if not self.closed:
                self._start_some()

    def __len__(self) -> int:
        return len(self.running) + len(self._waiting)

    def finish(self) -> None:
        """Wait until nothing is compiled."""
        while len(self):
            with self._lock:
                present = (*self._waiting, *self.running)
            for compilation in present:
                compilation.wait()
                compilation.thread.join()

    def close(self) -> None:
        """Abandon all: the process ends."""
        with self._lock:
            self.closed = True
            waiting, self._waiting = self._waiting, []
            running = tuple(self.running)
        for compilation in running:
            compilation.job.process_exiting = True
            compilation.job.abandon()
        for compilation in (*waiting, *running):
            compilation.finished.set()
        if running:
            # The interpreter's last collection would look through all that the jobs had made.
            gc.freeze()

    def _start_some(self) -> None:
        self._waiting = [each for each in self._waiting if not each.job.abandoned]
        while self._waiting and len(self.running) <= compiler_process.MAX_BACKGROUND_PROCESSES:
            self._start(self._waiting[0])

    def _start(self, compilation: _BackgroundCompilation) -> None:
        self._waiting.remove(compilation)
        self.running.add(compilation)
        compilation.thread.start()


compile_queue = _CompileQueue()
_all_tiered: weakref.WeakSet[TieredKernel] = weakref.WeakSet()


def start_compilation(
    tiers: TieredKernel, work: Callable[[], Iterable[tuple[MachineKernel, bool]]]
) -> _BackgroundCompilation | None:
    """A compilation in the background; None if the process is about to end."""
    if compile_queue.closed:
        return None
    compilation = _BackgroundCompilation(tiers, work)
    compile_queue.add(compilation)
    return compilation


def count_compilations() -> int:
    """How many straight lines are being compiled, or will be."""
    return len(compile_queue)


def _reset_after_fork() -> None:
    compile_queue.reset_after_fork()
    for tiers in _all_tiered:
        tiers.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


@atexit.register
def _abandon_at_exit() -> None:
    """Abandon what is being compiled; LLVM must not be at work while the process is taken down.

    Threads that work in Python are taken down with it, so nobody waits for them. Who presses Ctrl-C
    now gets what he wants anyway.
    """
    for step in (compile_queue.close, jit.fork_gate.close, jit.fork_gate.close):
        with suppress(KeyboardInterrupt):
            step()

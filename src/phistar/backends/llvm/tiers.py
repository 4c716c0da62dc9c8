# SPDX-License-Identifier: BSD-3-Clause
"""Which shape of code runs: loops at once, a straight line as soon as it is ready.

Loops compile in a tenth of a second whatever the robot, straight lines run up to twice as fast but
take seconds to compile if they are long. So a long program starts as loops while a thread compiles
the straight line, which then takes over; a very long one stays as it is.

Environment:
    PHISTAR_TIER: ``auto`` as above; ``wait`` compiles the final shape at once; ``rolled`` and
        ``straight`` make one shape only.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable

from phistar.backends.llvm.kernel import Kernel, find, make
from phistar.errors import ArgumentError
from phistar.scalar.classes import LASTING
from phistar.scalar.program import Rolled, ScalarProgram

AT_ONCE = 400
"""Links times streams up to which the straight line compiles about as fast as the loops: a stream
takes about seven operations at a link, so these are 3000 operations."""

PAUSE = 0.2
"""Seconds before a thread begins to compile a straight line."""

VARIABLE = "PHISTAR_TIER"
TIERS = ("auto", "wait", "rolled", "straight")


class Tiers:
    """A program in the best shape that is ready."""

    def __init__(
        self,
        name: str,
        real: str,
        title: str,
        rolled: Callable[[], Rolled] | None,
        straight: Callable[[], ScalarProgram],
        weight: int = 0,
        shape: str = "auto",
        longest: int = LASTING,
    ) -> None:
        """Args:
        name: Fingerprint of the program on its robot.
        real: ``"double"`` or ``"float"``.
        title: What it is, for people.
        rolled: Makes the loops; None if there are none.
        straight: Makes the straight line.
        weight: Links times streams.
        shape: ``"straight"`` or ``"rolled"`` if only that one is wanted.
        longest: The weight beyond which it stays loops.
        """
        self._longest = longest
        self._shape = shape
        self._weight = weight
        self._name = name
        self._real = real
        self._title = title
        self._programs: dict[str, Callable[[], ScalarProgram]] = {"straight": straight}
        if rolled is not None:
            self._programs["rolled"] = rolled
        self._lock = threading.Lock()
        self._kernel: Kernel | None = None
        self._compiling: threading.Thread | None = None
        self._listeners: list[Callable[[Kernel], None]] = []
        self._hurry = threading.Event()
        _every.add(self)

    @property
    def kernel(self) -> Kernel:
        """The best one that is ready; the first is made on the spot."""
        if self._kernel is None:
            with self._lock:
                if self._kernel is None:
                    self._kernel = self._first()
        return self._kernel

    @property
    def ready(self) -> Kernel | None:
        """The final one of a program that has no loops, if it is there; else it is being made.

        A thread makes it; the tiers ``wait`` and ``straight`` wait for it, and ``rolled`` never
        makes it.
        """
        if self._kernel is None and self._compiling is None and policy() != "rolled":
            with self._lock:
                if self._kernel is None and self._compiling is None:
                    self._kernel = self._found("straight")
                    if self._kernel is None and policy() == "auto":
                        self._compiling = _start(self._improve)
                    elif self._kernel is None:
                        self._kernel = self._made("straight")
        return self._kernel

    @property
    def begun(self) -> bool:
        """Whether there is a kernel, or one is being made."""
        return self._kernel is not None or self._compiling is not None

    def wait(self) -> Kernel:
        """The final one."""
        first = self.kernel
        self._hurry.set()
        compiling = self._compiling
        if compiling is not None:
            compiling.join()
        return self._kernel or first

    def _first(self) -> Kernel:
        tier = policy() if self._shape == "auto" else self._shape
        if "rolled" not in self._programs or tier == "straight":
            return self._found("straight") or self._made("straight")
        if tier == "rolled":
            return self._found("rolled") or self._made("rolled")
        if self._weight > self._longest:
            return self._found("rolled") or self._made("rolled")
        ready = self._found("straight")
        if ready is not None:
            return ready
        if self._weight <= AT_ONCE or tier == "wait":
            return self._made("straight")
        loops = self._found("rolled") or self._made("rolled")
        self._compiling = _start(self._improve)
        return loops

    def listen(self, listener: Callable[[Kernel], None]) -> None:
        """Tell which kernel runs, now and when another one takes over."""
        with self._lock:
            self._listeners.append(listener)
        listener(self.kernel)

    def renew(self) -> None:
        """In the child of a fork: another thread may have held the lock, and none is there now."""
        self._lock = threading.Lock()
        self._compiling = None

    def _improve(self) -> None:
        # The first results are on their way; they would have to share the interpreter.
        self._hurry.wait(PAUSE)
        kernel = self._made("straight")
        with self._lock:
            self._kernel = kernel
            listeners = list(self._listeners)
        for listener in listeners:
            listener(kernel)

    def _found(self, shape: str) -> Kernel | None:
        return find(f"{self._name} {shape}", self._real)

    def _made(self, shape: str) -> Kernel:
        return make(f"{self._name} {shape}", self._real, self._title, self._programs[shape])


def policy() -> str:
    """The tier that PHISTAR_TIER names.

    Raises:
        ArgumentError: It names none.
    """
    tier = os.environ.get(VARIABLE, "").strip() or "auto"
    if tier not in TIERS:
        raise ArgumentError(f"{VARIABLE} is {tier!r}, expected one of {', '.join(TIERS)}")
    return tier


_running: set[threading.Thread] = set()
_every: weakref.WeakSet[Tiers] = weakref.WeakSet()


def compiling() -> int:
    """How many straight lines are being compiled."""
    return len(_running)


def _renew() -> None:
    _running.clear()
    for tiers in _every:
        tiers.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def _start(work: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            _running.discard(threading.current_thread())

    thread = threading.Thread(target=run, name="phistar compiler", daemon=True)
    _running.add(thread)
    thread.start()
    return thread


@atexit.register
def _finish() -> None:
    """LLVM must not be at work while the process is taken down."""
    for thread in tuple(_running):
        thread.join()

# SPDX-License-Identifier: BSD-3-Clause
"""LLVM text to machine code in memory.

``compile_text`` turns text into object code, which may be kept on disk; ``load`` puts it into
memory. The code stays there as long as its ``LoadedCode`` object lives. Any thread may do either:
each compilation has an LLVM context of its own, so that a long one does not hold up a short one,
and nothing that LLVM makes outlives it. Very long ones are done in a process of their own. A
process forks only between compilations.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Protocol

import numpy as np

from phistar import jobs
from phistar.backends.llvm import abi
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.run import codegen, compiler_process, machine_caches
from phistar.thresholds import POLICY

X86_MACHINES = ("x86_64", "amd64")
ARM_MACHINES = ("aarch64", "arm64")


@dataclass(frozen=True)
class TargetCpu:
    """What code is made for.

    Attributes:
        cpu: LLVM's name of the processor.
        features: What it has beyond that, as ``+avx,+fma,-avx512f``.
    """

    cpu: str
    features: str


class LoadedCode:
    """Machine code in memory, freed with this object.

    Attributes:
        kernel: Address of ``i64 kernel(ptr args, ptr work, i64 first, i64 last)``.
        symbols: Addresses of the other functions that were asked for; absent ones are left out.
    """

    def __init__(self, engine: Closable, kernel: int, symbols: dict[str, int]) -> None:
        self.kernel = kernel
        self.symbols = symbols
        self._finalizer = weakref.finalize(self, fork_gate.close_soon, engine)
        # A thread may still run the code when the interpreter ends; memory goes with the process.
        self._finalizer.atexit = False

    @property
    def closed(self) -> bool:
        """Whether the code is gone."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Free the code now; nothing may run it any more."""
        self._finalizer()


def load(
    source: str | bytes,
    *,
    cpu: str | None = None,
    features: str | None = None,
    symbols: tuple[str, ...] = (),
) -> LoadedCode:
    """Put code into memory.

    Args:
        source: LLVM text, or object code that ``compile_text`` made.
        cpu, features: What text is compiled for, see ``target_cpu``.
        symbols: Functions to find beside ``kernel``.

    Returns:
        The code.

    Raises:
        RuntimeError: The source is not a module, or has no kernel.
    """
    code = source if isinstance(source, bytes) else compile_text(source, cpu=cpu, features=features)
    llvm = _host.llvm
    with fork_gate:
        container = llvm.ObjectFileRef.from_data(code)
        if not container:
            container.detach()
            raise RuntimeError("this is not object code")
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        try:
            with container:
                engine.add_object_file(container)
            engine.finalize_object()
            found = {name: engine.get_function_address(name) for name in ("kernel", *symbols)}
            if not found["kernel"]:
                raise RuntimeError("this code has no function 'kernel'")
        except BaseException:
            engine.close()
            raise
    return LoadedCode(engine, found.pop("kernel"), {name: at for name, at in found.items() if at})


def compile_text(
    text: str, *, cpu: str | None = None, features: str | None = None, quick: bool = False
) -> bytes:
    """Object code of a module.

    Args:
        text: The module.
        cpu, features: What the code is made for, see ``target_cpu``.
        quick: Without optimisation: better code follows.

    Returns:
        An object file; the same bytes for the same text and machine.

    Raises:
        RuntimeError: The text is not a module.
        AbandonedError: The job of this thread was.
    """
    processor = target_cpu(cpu, features)
    order = (
        text,
        processor.cpu,
        processor.features,
        0 if quick else POLICY.opt_level - (len(text) > POLICY.max_optimised_characters),
    )
    if len(text) > (
        POLICY.max_foreground_characters
        if jobs.current_job() is None
        else POLICY.max_background_characters
    ):
        jobs.expect_seconds(math.inf)
        code = compiler_process.compile_in_process(*order)
        if code is not None:
            return code
    jobs.expect_seconds(len(text) * POLICY.seconds_per_character)
    with fork_gate:
        return codegen.object_code(*order)


def target_cpu(cpu: str | None = None, features: str | None = None) -> TargetCpu:
    """A processor: this one, or one by name.

    Args:
        cpu: LLVM's name, e.g. ``"x86-64"`` for what every 64-bit PC has; default: this one.
        features: As LLVM writes them; default: those of this processor if it is meant, none beyond
            its own for a named one.
    """
    if cpu is None and features is None:
        return host_cpu()
    return TargetCpu(host_cpu().cpu if cpu is None else cpu, features or "")


def host_cpu() -> TargetCpu:
    """The processor that this runs on."""
    return _host.cpu


def lanes_for(processor: TargetCpu, real: str = "double") -> Lanes:
    """How many samples fit side by side into the widest registers.

    Args:
        processor: What the code is made for.
        real: ``"double"`` or ``"float"``.
    """
    present = {name[1:] for name in processor.features.split(",") if name.startswith("+")}
    architecture = platform.machine().lower()
    if "avx512f" in present:
        width = 8
    elif "avx" in present:
        width = 4
    elif present & {"sse2", "neon"} or architecture in X86_MACHINES + ARM_MACHINES:
        width = 2
    else:
        width = 1
    return Lanes(width if real == "double" else 2 * width, real)


def generic_tuning_cpu() -> str:
    """A processor with a plain model of its timing, for code that must be made quickly.

    LLVM arranges code again after the allocation of registers where it knows a processor well. That
    takes about a tenth of its time; loops over links were no faster for it on Zen 3, the humanoid's
    3 % slower.
    """
    return "x86-64-v3" if platform.machine().lower() in X86_MACHINES else ""


def llvm_versions() -> str:
    """Of llvmlite and LLVM; code in the cache is used with the same ones only."""
    import llvmlite  # type: ignore[import-untyped]

    number = ".".join(str(part) for part in _host.llvm.llvm_version_info)
    return f"llvmlite {llvmlite.__version__}, LLVM {number}"


class _Host:
    """The machine that this runs on, looked at when it is first needed."""

    @cached_property
    def llvm(self) -> ModuleType:
        """llvmlite, ready to run code."""
        llvm, python = codegen.binding(), ctypes.pythonapi
        llvm.check_jit_execution()
        functions = (
            *("PyBool_FromLong", "PyDict_GetItem", "PyDict_Size"),
            *("PyTuple_New", "PyTuple_SetItem", "Py_DecRef"),
        )
        known = {
            **{n: ctypes.cast(getattr(python, n), ctypes.c_void_p).value for n in functions},
            "phistar_ndarray": id(np.ndarray),
            "phistar_dict": id(dict),
            "phistar_min_streamed_bytes": machine_caches.threshold_address(),
            # Without it nobody calls the code that names it, which must be loaded all the same.
            "phistar_new_array": abi.new_array_address() or id(np.ndarray),
        }
        for name, address in known.items():
            llvm.add_symbol(name, address)
        return llvm

    @cached_property
    def cpu(self) -> TargetCpu:
        """Its processor."""
        llvm = self.llvm
        with fork_gate:
            return TargetCpu(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


_host = _Host()


def _target_machine() -> object:
    processor = host_cpu()
    return codegen.target_machine(processor.cpu, processor.features, POLICY.opt_level)


class Closable(Protocol):
    """What holds memory of LLVM."""

    def close(self) -> None:
        """Give it back."""


class _ForkGate:
    """Lets any number of threads work with LLVM, and the process fork only when none does.

    A child of a process that forks in the middle of it would find LLVM's locks held for ever. Who
    wants to fork goes first: threads that always compile would else leave no moment for it.
    """

    def __init__(self) -> None:
        self._engines_to_close: deque[Closable] = deque()
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Go on, after the fork, in the child: of all threads only the one that forked is there."""
        me = threading.get_ident()
        self._closed_by: int | None = None
        self._inside = [thread for thread in getattr(self, "_inside", ()) if thread == me]
        self._change = threading.Condition()
        self._forking = 0

    def __enter__(self) -> None:
        me, job = threading.get_ident(), jobs.current_job()
        with self._change:
            self._change.wait_for(lambda: me in self._inside or self._may_enter(me))
            if job is not None:
                job.raise_if_abandoned()
            self._inside.append(me)

    def _may_enter(self, thread: int) -> bool:
        return not self._forking and self._closed_by in (None, thread)

    def __exit__(self, *_: object) -> None:
        self._close_dropped()
        with self._change:
            self._inside.remove(threading.get_ident())
            self._change.notify_all()

    def close_soon(self, engine: Closable) -> None:
        """Close an engine, now or as soon as that can be done without waiting.

        The garbage collector may call this, in a thread that holds locks for which those who
        fork or who are inside are waiting.
        """
        self._engines_to_close.append(engine)
        if self._change.acquire(blocking=False):
            try:
                if not self._may_enter(threading.get_ident()):
                    return
                self._inside.append(threading.get_ident())
            finally:
                self._change.release()
            self.__exit__()

    def _close_dropped(self) -> None:
        while self._engines_to_close:
            try:
                engine = self._engines_to_close.popleft()
            except IndexError:
                return
            engine.close()

    def hold_for_fork(self) -> None:
        """Wait until nobody else is inside, and let nobody in."""
        me = threading.get_ident()
        self._change.acquire()
        self._forking += 1
        self._change.wait_for(lambda: all(thread == me for thread in self._inside))

    def close(self) -> None:
        """Wait until nobody else is inside, and let nobody else in any more: the process ends.

        Nobody is inside for long. Threads that come later are taken down with the process.
        """
        me = threading.get_ident()
        with self._change:
            self._closed_by = me
            self._change.wait_for(lambda: all(thread == me for thread in self._inside))

    def resume_after_fork(self) -> None:
        """Go on, after the fork, in the parent."""
        self._forking -= 1
        self._change.notify_all()
        self._change.release()


fork_gate = _ForkGate()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=fork_gate.hold_for_fork,
        after_in_parent=fork_gate.resume_after_fork,
        after_in_child=fork_gate.reset_after_fork,
    )

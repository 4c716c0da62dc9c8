# SPDX-License-Identifier: BSD-3-Clause
"""LLVM text to machine code in memory: the only module that imports llvmlite.

``emit`` turns text into object code, which may be kept on disk; ``load`` puts it into memory. The
code stays there as long as its ``Code`` object lives. Any thread may do either: each compilation
has an LLVM context of its own, so that a long one does not hold up a short one, and nothing that
LLVM makes outlives it. A process forks only between compilations.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
import weakref
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from phistar.backends.llvm.writer import Lanes

OPTIMIZATION = 2
"""Of instruction selection and register allocation; programs come simplified."""

LONG = 500_000
"""Characters of text beyond which one level less is enough: it compiles in less than half the time,
to code of the same length."""

X86 = ("x86_64", "amd64")
ARM = ("aarch64", "arm64")


@dataclass(frozen=True)
class Machine:
    """What code is made for.

    Attributes:
        cpu: LLVM's name of the processor.
        features: What it has beyond that, as ``+avx,+fma,-avx512f``.
    """

    cpu: str
    features: str


class Code:
    """Machine code in memory, freed with this object.

    Attributes:
        kernel: Address of ``i64 kernel(ptr args, ptr work, i64 first, i64 last)``.
        symbols: Addresses of the other functions that were asked for; absent ones are left out.
    """

    def __init__(self, engine: Any, kernel: int, symbols: dict[str, int]) -> None:
        self.kernel = kernel
        self.symbols = symbols
        self._finalizer = weakref.finalize(self, _close, engine)
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
) -> Code:
    """Put code into memory.

    Args:
        source: LLVM text, or object code that ``emit`` made.
        cpu, features: What text is compiled for, see ``machine``.
        symbols: Functions to find beside ``kernel``.

    Returns:
        The code.

    Raises:
        RuntimeError: The source is not a module, or has no kernel.
    """
    code = source if isinstance(source, bytes) else emit(source, cpu=cpu, features=features)
    llvm = _binding()
    with _gate:
        container = llvm.ObjectFileRef.from_data(code)
        if not container:
            container.detach()
            raise RuntimeError("this is not object code")
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine(host()))
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
    return Code(engine, found.pop("kernel"), {name: at for name, at in found.items() if at})


def emit(text: str, *, cpu: str | None = None, features: str | None = None) -> bytes:
    """Object code of a module.

    Args:
        text: The module.
        cpu, features: What the code is made for, see ``machine``.

    Returns:
        An object file; the same bytes for the same text and machine.

    Raises:
        RuntimeError: The text is not a module.
    """
    llvm = _binding()
    with (
        _gate,
        llvm.create_context() as context,
        llvm.parse_assembly(text, context) as module,
        _target_machine(machine(cpu, features), OPTIMIZATION - (len(text) > LONG)) as target,
    ):
        return _object_code(target, module)


def machine(cpu: str | None = None, features: str | None = None) -> Machine:
    """A processor: this one, or one by name.

    Args:
        cpu: LLVM's name, e.g. ``"x86-64"`` for what every 64-bit PC has; default: this one.
        features: As LLVM writes them; default: those of this processor if it is meant, none beyond
            its own for a named one.
    """
    if cpu is None and features is None:
        return host()
    return Machine(host().cpu if cpu is None else cpu, features or "")


@cache
def host() -> Machine:
    """The processor that this runs on."""
    llvm = _binding()
    with _gate:
        return Machine(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def lanes_for(processor: Machine, real: str = "double") -> Lanes:
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
    elif present & {"sse2", "neon"} or architecture in X86 + ARM:
        width = 2
    else:
        width = 1
    return Lanes(width if real == "double" else 2 * width, real)


def plain_timing() -> str:
    """A processor with a plain model of its timing, for code that must be made quickly.

    LLVM arranges code again after the allocation of registers where it knows a processor well. That
    takes about a tenth of its time; loops over links were no faster for it on Zen 3, the humanoid's
    3 % slower.
    """
    return "x86-64-v3" if platform.machine().lower() in X86 else ""


@cache
def versions() -> str:
    """Of llvmlite and LLVM; code in the cache is used with the same ones only."""
    import llvmlite  # type: ignore[import-untyped]

    number = ".".join(str(part) for part in _binding().llvm_version_info)
    return f"llvmlite {llvmlite.__version__}, LLVM {number}"


@cache
def _binding() -> Any:
    """llvmlite, ready for this machine."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.check_jit_execution()
    known = {
        "PyBool_FromLong": ctypes.cast(ctypes.pythonapi.PyBool_FromLong, ctypes.c_void_p).value,
        "phistar_ndarray": id(np.ndarray),
    }
    for name, address in known.items():
        binding.add_symbol(name, address)
    return binding


def _target_machine(processor: Machine, effort: int = OPTIMIZATION) -> Any:
    target = _binding().Target.from_default_triple()
    return target.create_target_machine(
        cpu=processor.cpu,
        features=processor.features,
        opt=effort,
        codemodel="jitdefault",
        jit=True,
    )


def _object_code(target: Any, module: Any) -> bytes:
    """As ``target.emit_object(module)``, but other threads may use LLVM meanwhile."""
    ffi = _binding().ffi
    function = ffi.lib.LLVMPY_TargetMachineEmitToMemory
    # llvmlite holds one lock during each call. Code generation works on this context alone, so it
    # need not; without it, a first call would wait for whatever compiles in the background.
    unlocked = getattr(function, "_cfn", function)
    with ffi.OutputString() as complaint:
        buffer = unlocked(target, module, 1, complaint)
        if not buffer:
            raise RuntimeError(str(complaint))
    try:
        start, size = ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(start, size)
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def _close(engine: Any) -> None:
    with _gate:
        engine.close()


class _Gate:
    """Lets any number of threads work with LLVM, and the process fork only when none does.

    A child of a process that forks in the middle of it would find LLVM's locks held for ever.
    """

    def __init__(self) -> None:
        self._inside: list[int] = []
        self._change = threading.Condition()

    def __enter__(self) -> None:
        with self._change:
            self._inside.append(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        with self._change:
            self._inside.remove(threading.get_ident())
            self._change.notify_all()

    def shut(self) -> None:
        """Wait until nobody else is inside, and let nobody in."""
        me = threading.get_ident()
        self._change.acquire()
        self._change.wait_for(lambda: all(thread == me for thread in self._inside))

    def open(self) -> None:
        """Go on, after the fork, in the parent."""
        self._change.release()

    def renew(self) -> None:
        """Go on, after the fork, in the child."""
        self._change = threading.Condition()


_gate = _Gate()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_gate.shut, after_in_parent=_gate.open, after_in_child=_gate.renew)

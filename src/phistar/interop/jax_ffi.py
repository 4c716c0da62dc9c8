# SPDX-License-Identifier: BSD-3-Clause
"""Our machine code as custom calls of XLA: handler, descriptors, and a trial before first use."""

from __future__ import annotations

import ctypes
import itertools
import secrets
import sys
import weakref
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from phistar.arrays import Array
from phistar.backends.jax.package import jax, jax_extension
from phistar.errors import PhistarError, PhistarWarning, warn
from phistar.interop.jax_primitives import PRIMITIVES, Weakly
from phistar.interop.xla_handler import DESCRIPTOR_HEAD, FUNCTIONS, MAX_ARRAYS, handler_text
from phistar.interop.xla_header import XlaHeader
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.jax.package import JaxArray
    from phistar.backends.llvm.run.jit import LoadedCode
    from phistar.backends.llvm.run.machine_kernel import MachineKernel

TARGET = "phistar_kernel"
"""What XLA knows the handler by."""


class CallbackWarning(PhistarWarning):
    """XLA cannot call machine code here; Python is called back instead, which is slower."""


class FfiError(PhistarError):
    """Foreign functions of this JAX are not what they should be."""


class Handler:
    """The handler in memory, registered with XLA.

    Attributes:
        process: The number that call sites of this process have.
    """

    def __init__(self) -> None:
        from phistar.backends.llvm.run import jit

        ffi = jax_extension().ffi
        header = XlaHeader.of(ffi.include_dir())
        self.process = secrets.randbits(62) + 1
        yields = sys.platform != "win32"
        text = handler_text(header, self.process, yields, POLICY.pieces_per_thread)
        self.code: LoadedCode = jit.load(text, symbols=FUNCTIONS)
        at = self.code.symbols
        place = ctypes.CFUNCTYPE(ctypes.c_void_p)
        ffi.register_ffi_type(
            "phistar_kernel_state",
            {
                "type_id": _capsule(place(at["type_id"])()),
                "type_info": _capsule(place(at["type_info"])()),
            },
            platform="cpu",
        )
        stages = {name: _capsule(at[name]) for name in ("instantiate", "execute")}
        ffi.register_ffi_target(TARGET, stages, platform="cpu")
        ffi.register_ffi_target_as_batch_partitionable(TARGET)

    def double(self, x: Array) -> JaxArray:
        """Twice an array of float32, by a kernel of the handler's own: a trial."""
        trial = KernelHandle.of_code(self, self.code.kernel, (1,), (1,), 4)
        call = PRIMITIVES.kernel
        run = jax().jit(lambda x: call.bind(x, handle=trial.reference, shapes=((1,),))[0])
        return run(x)


def _capsule(address: int) -> object:
    return jax_extension().ffi.pycapsule(ctypes.c_void_p(address))


@cache
def handler() -> Handler | None:
    """The handler, if XLA calls it as it should; None, with a warning, if not."""
    try:
        made = Handler()
        given = np.arange(5, dtype=np.float32)[:, None]
        found = np.asarray(made.double(given))
        if not np.array_equal(found, 2.0 * given):
            raise FfiError(f"a trial gave {found.ravel()}, expected {2.0 * given.ravel()}")
    except (PhistarError, RuntimeError, AttributeError, TypeError, ValueError) as error:
        version = getattr(jax(), "__version__", "?")
        warn(
            f"JAX {version} cannot call machine code of phistar ({error}); it calls back Python "
            "instead, which costs some 0.1 ms a call",
            CallbackWarning,
        )
        return None
    return made


Words = NDArray[np.int64]
_graves: dict[int, tuple[object, Words]] = {}
"""Code that Python has dropped and that executables of XLA may still run."""
_numbers = itertools.count()


def _bury(code: object, words: Words) -> None:
    _graves[next(_numbers)] = (code, words)
    release_unused()


def release_unused() -> int:
    """Free code that no executable runs any more; how many are left.

    Handles are dropped in any thread and at any time, also while this runs: one by one.
    """
    for number in list(_graves):
        grave = _graves.get(number)
        if grave is not None and grave[1][0] == 0:
            _graves.pop(number, None)
    return len(_graves)


class KernelHandle:
    """A kernel that call sites of XLA may name; it lives as long as one of them does.

    Attributes:
        address: Of its descriptor, see ``interop.xla_handler``.
        process: The number of this process.
        reference: To itself, for JAX.
    """

    def __init__(
        self,
        process: int,
        code: object,
        words: Words,
        inputs: int,
    ) -> None:
        release_unused()
        self.process = process
        self.inputs = inputs
        self.address = int(words.ctypes.data)
        self.reference = Weakly(self)
        weakref.finalize(self, _bury, code, words).atexit = False

    @classmethod
    def of_code(
        cls,
        handler: Handler,
        kernel: int,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        width: int,
    ) -> KernelHandle:
        """A kernel of the handler's own."""
        words = _descriptor(kernel, 64, inputs, outputs, width, 1 << 40, 1, 0)
        return cls(handler.process, handler, words, len(inputs))

    @classmethod
    def of_kernel(cls, handler: Handler, kernel: MachineKernel) -> KernelHandle:
        """A kernel of ours."""
        from phistar.backends.llvm.emit.skeleton import streamed_outputs
        from phistar.backends.llvm.run.calls import usable_threads

        call = kernel.call
        signature = call.signature
        samples = max(int(POLICY.min_nanoseconds_per_thread / max(call.cost_ns, 1e-3)), 1)
        words = _descriptor(
            call.address,
            call.workspace_bytes,
            tuple(signature.inputs.values()),
            tuple(signature.outputs.values()),
            call.dtype.itemsize,
            samples,
            usable_threads(),
            sum(streamed_outputs(signature).values()),
        )
        return cls(handler.process, kernel, words, len(signature.inputs))


def _descriptor(
    kernel: int,
    workspace: int,
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
    width: int,
    samples_per_thread: int,
    threads: int,
    streamed: int,
) -> Words:
    """Words as ``interop.xla_handler`` says."""
    from phistar.backends.llvm.run.machine_caches import min_streamed_bytes

    if len(inputs) + len(outputs) > MAX_ARRAYS:
        raise FfiError(f"a kernel has {len(inputs) + len(outputs)} arrays, at most {MAX_ARRAYS}")
    head = (
        0, kernel, workspace, len(inputs), len(outputs), width, samples_per_thread, threads,
        streamed, min_streamed_bytes(),
    )  # fmt: skip
    assert len(head) == DESCRIPTOR_HEAD
    return np.array([*head, *inputs, *outputs], dtype=np.int64)

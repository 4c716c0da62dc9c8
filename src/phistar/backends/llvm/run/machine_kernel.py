# SPDX-License-Identifier: BSD-3-Clause
"""A scalar program as machine code, from the cache if it was made before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.unrolled_module import (
    needs_outlining,
    needs_pieces,
    unrolled_module,
)
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run import kernel_cache as cache
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.backends.llvm.run.native_entry import (
    ENTRY_SYMBOL,
    RESULTS_SYMBOL,
    NativeEntry,
    NativeResults,
    load_native_entry,
    load_native_results,
    native_entry_text,
    native_results_text,
)
from phistar.gc_pause import gc_paused
from phistar.jobs import progress_message, run_interpreter
from phistar.model.wrenches import is_wrench_input
from phistar.scalar.program import (
    Looped,
    ScalarProgram,
    Signature,
    Unrolled,
    count_arithmetic,
)
from phistar.thresholds import POLICY

META_FIELDS = ("shape", "inputs", "outputs", "lanes", "real", "workspace", "operations")
"""What must be known of object code to run it."""


@dataclass(frozen=True)
class MachineKernel:
    """Machine code, ready to run.

    Attributes:
        call: Runs it on arrays (batch, size).
        native_entry: Runs it on one sample or a batch of moderate size, given as plain arrays, or
            None.
        shape: ``"straight"`` or ``"rolled"``.
        operations: Additions, subtractions and multiplications on a sample.
        single_entry: Like the native entry, quicker for one sample, with the same bits; None if
            there is no such code, or not yet.
        single_results: Runs it on one sample and makes its results; None if there is no such code,
            or not yet.
    """

    call: KernelCaller
    native_entry: NativeEntry | None
    shape: str
    operations: int
    single_entry: NativeEntry | None = None
    single_results: NativeResults | None = None


def llvm_text(program: ScalarProgram, lanes: Lanes) -> str:
    """The LLVM module of a program, with the lean way in."""
    return emit_module(program, lanes)[0]


def emit_module(program: ScalarProgram, lanes: Lanes, alone: bool = False) -> tuple[str, int]:
    """The same, and the vectors of workspace that it needs; ``alone`` as for ``compile_kernel``."""
    # A first result waits for imports, too: only what this program needs.
    rolled = isinstance(program, Looped)
    max_batch = POLICY.max_fast_path_samples
    if isinstance(program, Looped):
        from phistar.backends.llvm.emit.looped_module import looped_module, looped_workspace

        if alone:
            max_batch = 1
        columns_in_lanes = alone and lanes.width > 1
        text = looped_module(program, lanes, jit.generic_tuning_cpu(), columns_in_lanes)
        workspace_vectors = looped_workspace(program, columns_in_lanes)
    elif needs_outlining(program):
        from phistar.backends.llvm.emit.outlined import OutlinedModule

        line = OutlinedModule(program, lanes)
        text, workspace_vectors = line.text(), line.workspace_vectors
    elif needs_pieces(program):
        from phistar.backends.llvm.emit.pieces import pieces_module

        text, workspace_vectors = pieces_module(program, lanes), program.slots
    else:
        text, workspace_vectors = unrolled_module(program, lanes), program.slots
    text += native_entry_text(
        program.signature, lanes, workspace_vectors, max_batch, fast_compile=rolled
    )
    if lanes.width == 1 < lanes.row_width and not any(
        map(is_wrench_input, program.signature.inputs)
    ):
        text += native_results_text(program.signature, lanes)
    return text, workspace_vectors


def load_cached(
    name: str, real: str, alone: bool = False, quick: bool = False
) -> MachineKernel | None:
    """A kernel that was made before; arguments as for ``compile_kernel``."""
    kept = cache.lookup(_cache_key(name, real, alone, quick), META_FIELDS)
    return None if kept is None else _load_kernel(*kept)


def compile_kernel(
    name: str,
    real: str,
    title: str,
    program: Callable[[], ScalarProgram],
    alone: bool = False,
    quick: bool = False,
) -> MachineKernel:
    """A kernel, made now and kept.

    Args:
        name: Its fingerprint.
        real: ``"double"`` or ``"float"``.
        title: What it is, for people who look into the cache.
        program: Gives the scalar program.
        alone: Whether it is for single samples: of one lane, and of a matrix in loops with columns
            in the lanes.
        quick: Whether it is not optimised, as one that answers until a better one is ready.
    """
    with progress_message(f"compiling {title}"):
        return _compile_kernel(name, real, title, program, alone, quick)


def with_single_entry(kernel: MachineKernel, single: MachineKernel) -> MachineKernel:
    """A kernel, and of another one the native entries for single samples."""
    return replace(kernel, single_entry=single.native_entry, single_results=single.single_results)


def _cache_key(name: str, real: str, alone: bool, quick: bool) -> str:
    return cache.cache_key(f"{name} {real}{' alone' * alone}{' quick' * quick}")


def _compile_kernel(
    name: str,
    real: str,
    title: str,
    program: Callable[[], ScalarProgram],
    alone: bool,
    quick: bool,
) -> MachineKernel:
    text, meta = run_interpreter(lambda: _emit_kernel(real, title, program, alone))
    code = jit.compile_text(text, quick=quick)
    del text
    cache.save(_cache_key(name, real, alone, quick), code, meta)
    return _load_kernel(code, meta)


@gc_paused
def _emit_kernel(
    real: str, title: str, program: Callable[[], ScalarProgram], alone: bool
) -> tuple[str, dict[str, Any]]:
    """The LLVM module of a program, and what must be known of it."""
    made = program()
    lanes = _lanes_for(made, real, alone)
    text, workspace_vectors = emit_module(made, lanes, alone)
    return text, {
        "name": title,
        "shape": "rolled" if isinstance(made, Looped) else "straight",
        "inputs": list(made.signature.inputs.items()),
        "outputs": list(made.signature.outputs.items()),
        "lanes": lanes.width,
        "real": real,
        "workspace": workspace_vectors,
        "operations": count_arithmetic(made.count()),
    }


def _lanes_for(program: ScalarProgram, real: str, alone: bool) -> Lanes:
    """Those of the processor; fewer for a program that does little more than move numbers."""
    lanes = jit.lanes_for(jit.host_cpu(), real)
    if alone and isinstance(program, Unrolled):
        return Lanes(1, real, lanes.width)
    most = POLICY.max_lanes
    if isinstance(program, Unrolled) and program.short_lived:
        most = min(most, POLICY.max_short_lived_vector_bits // lanes.bits)
    return Lanes(min(lanes.width, most), real)


def _load_kernel(object_code: bytes, meta: dict[str, Any]) -> MachineKernel:
    code = jit.load(object_code, symbols=(ENTRY_SYMBOL, RESULTS_SYMBOL))
    signature = Signature(dict(meta["inputs"]), dict(meta["outputs"]))
    lanes = Lanes(meta["lanes"], meta["real"])
    caller = KernelCaller(code, signature, lanes, meta["workspace"], meta["operations"])
    entry, results = load_native_entry(code), load_native_results(code)
    shape, operations = meta["shape"], meta["operations"]
    return MachineKernel(caller, entry, shape, operations, single_results=results)

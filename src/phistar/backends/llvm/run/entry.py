# SPDX-License-Identifier: BSD-3-Clause
"""The entry to one program of one robot: a function that goes straight to machine code.

    entry(q, v, tau, out=None) -> array, dict of arrays by name, or None
    entry(q, v, tau, forces, reference, out=None)

takes plain arrays (size,), or (batch, size) with the same batch, allocates the results, unless it
gets an array for one or a tuple of them for several, of the form of the arguments, and calls the
native entry. Wrenches on frames come as the user gave them, in one dict. It gives None for
everything else (lists, other dtypes and strides, large batches and those worth several threads,
numbers that are not finite, other frames): the general path then says what is wrong, or copes.
While a better kernel is being compiled, each call looks whether it is ready; no one has to be told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

import numpy as np

from phistar.arrays import Array
from phistar.backends.llvm import abi
from phistar.backends.llvm.run.calls import usable_threads
from phistar.backends.llvm.run.native_entry import NativeEntry
from phistar.backends.llvm.run.result_pool import pool
from phistar.backends.llvm.run.tiers import TieredKernel
from phistar.model.model_cache import Entry
from phistar.model.wrenches import WrenchFrames, is_wrench_input
from phistar.thresholds import POLICY

Shape = tuple[int, ...]

_HEAD = """
def make(tiers, latest, sizes, empty, rows, ndarray, dtype, few, fits, expected, frames, shapes):
    kernels = tiers
    def look_again():
        nonlocal tiers
        tiers = kernels
    native, single, tiers = latest(kernels, look_again)
"""
_ONE_OUTPUT = (
    _HEAD
    + """    {unpack}
    def entry({arguments}, out=None):
        nonlocal native, single, tiers
        if tiers is not None:
            native, single, tiers = latest(tiers, look_again)
        {check}
        if out is not None:
            # The native entry takes a matrix of one row for a vector.
            if type(out) is not ndarray or out.ndim != getattr({first}, "ndim", 0):
                return None
            if out.ndim == 2 and not len(out) <= few and not fits(len(out)):
                return None
            return out if native({given}, out) else None
        # One sample is tried first: to look at the arrays takes as long as the native entry does.
        out = empty({shape})
        if single({given}, out):
            return out{single}
        if type({first}) is not ndarray or {first}.ndim != 2:
            return None
        if not 0 < len({first}) <= few and not fits(len({first})):
            return None
        (out,) = rows(len({first}), sizes, dtype)
        return out{batch} if native({given}, out) else None
    return entry
"""
)

_MANY_OUTPUTS = (
    _HEAD
    + """    results = kernels.kernel.single_results
    {unpack}
    def entry({arguments}, out=None):
        nonlocal native, single, tiers, results
        if tiers is not None:
            native, single, tiers = latest(tiers, look_again)
            results = kernels.kernel.single_results
        {check}
        if type({first}) is not ndarray:
            return None
        if out is not None:
            # The native entry takes matrices of one row for vectors.
            if out[0].ndim != {first}.ndim:
                return None
            if {first}.ndim == 2 and not len({first}) <= few and not fits(len({first})):
                return None
            fill = single if {first}.ndim == 1 else native
            return out if fill({given}, *out) else None
        if {first}.ndim == 1:
            if results is not None:
                found = results(shapes, {given})
                if found is False:
                    return None
                {outputs}, = found
                return {{{made_results}}}
            {singles}
            if not single({given}, {outputs}):
                return None
            return {{{single_results}}}
        if {first}.ndim != 2 or not 0 < len({first}) <= few and not fits(len({first})):
            return None
        count = len({first})
        {outputs} = rows(count, sizes, dtype)
        if not native({given}, {outputs}):
            return None
        return {{{batch_results}}}
    return entry
"""
)

_CHAINED = """
def make(tiers, latest, sizes, last_tiers, empty, rows, ndarray, float64, few, fits):
    kernels, last_kernels = tiers, last_tiers
    def look_again():
        nonlocal tiers
        tiers = kernels
    def look_again_at_last():
        nonlocal last_tiers
        last_tiers = last_kernels
    native, single, tiers = latest(kernels, look_again)
    last_native, last_single, last_tiers = latest(last_kernels, look_again_at_last)
    free = []
    def entry({arguments}):
        nonlocal native, single, tiers, last_native, last_single, last_tiers
        if tiers is not None:
            native, single, tiers = latest(tiers, look_again)
        if last_tiers is not None:
            last_native, last_single, last_tiers = latest(last_tiers, look_again_at_last)
        if type({first}) is not ndarray:
            return None
        if {first}.ndim == 1:
            # Between two calls the first one's results are for the second alone; lists take and
            # give in one step, so that threads do not share them.
            try:
                inner = free.pop()
            except IndexError:
                inner = ({inner_singles},)
            {inner}, = inner
            {singles}
            done = single({inner_given}, {inner}) and last_single({given}, {outputs})
            free.append(inner)
            return {{{single_results}}} if done else None
        if {first}.ndim != 2 or not 0 < len({first}) <= few and not fits(len({first})):
            return None
        count = len({first})
        {inner}, {outputs} = rows(count, sizes, float64)
        if not native({inner_given}, {inner}):
            return None
        if not last_native({given}, {outputs}):
            return None
        return {{{batch_results}}}
    return entry
"""

_REFERENCE_CHECK = """
        if reference is not expected and (type(reference) is not str or reference != expected):
            return None
"""


def make_entry(
    tiers: TieredKernel,
    order: Sequence[str],
    shapes: Mapping[str, Shape],
    keys: Mapping[str, str] | None = None,
    wrenches: WrenchFrames | None = None,
) -> Entry | None:
    """The entry to a program.

    Args:
        tiers: Its kernels in one precision, of which one is ready.
        order: Names of the inputs in the order of the entry's arguments, wrenches left out.
        shapes: Shape of each output for one sample.
        keys: Names of several outputs in the result, where they differ.
        wrenches: Frames whose wrenches are the other inputs.

    Returns:
        None if the kernel reads other inputs, or has no native entry.
    """
    kernel = tiers.kernel
    signature = kernel.call.signature
    inputs = tuple(name for name in signature.inputs if not is_wrench_input(name))
    frames = () if wrenches is None else wrenches.frames
    if len(signature.inputs) - len(inputs) != len(frames):
        return None
    outputs = tuple(signature.outputs)
    if kernel.native_entry is None or sorted(inputs) != sorted(order):
        return None
    double = kernel.call.dtype == np.float64
    places = tuple(list(order).index(name) for name in inputs)
    tails = tuple(tuple(shapes[name]) for name in outputs)
    if len(outputs) == 1:
        factory = _one_output(places, len(frames), *tails)
    else:
        names = tuple((keys or {}).get(name, name) for name in outputs)
        factory = _many_outputs(places, len(frames), names, tails)
    return factory(
        tiers,
        _latest,
        tuple(map(math.prod, tails)),
        np.empty if double else partial(np.empty, dtype=np.float32),
        pool.rows,
        np.ndarray,
        kernel.call.dtype,
        _samples_for_one_thread(kernel.call.cost_ns),
        _is_for_one_thread,
        None if wrenches is None else wrenches.reference,
        frames,
        _shape_words(tails),
    )


def make_chained_entry(
    tiers: TieredKernel,
    last_tiers: TieredKernel,
    order: Sequence[str],
    shapes: Mapping[str, Shape],
    keys: Mapping[str, str],
) -> Entry | None:
    """The entry to two programs with several outputs each; the second reads those of the first.

    Args:
        tiers: Kernels of the first in float64, of which one is ready.
        last_tiers: Those of the second; what ``order`` does not name are outputs of the first.
        order: Names of what both read from outside, in the order of the entry's arguments.
        shapes: Shape of each output of the second for one sample.
        keys: Names of its outputs in the result, where they differ.

    Returns:
        None if they read something else, or have no native entries.
    """
    kernel, last = tiers.kernel, last_tiers.kernel
    natives = (kernel.native_entry, last.native_entry)
    ahead, behind = kernel.call.signature, last.call.signature
    known = {name: f"x{i}" for i, name in enumerate(order)}
    inner = {name: f"z{i}" for i, name in enumerate(ahead.outputs)}
    if None in natives or not set(ahead.inputs) <= set(known):
        return None
    if not set(behind.inputs) <= set(known) | set(inner):
        return None
    factory = _chained(
        tuple(known.values()),
        tuple(known[name] for name in ahead.inputs),
        tuple(ahead.outputs.values()),
        tuple({**known, **inner}[name] for name in behind.inputs),
        tuple((keys.get(name, name), tuple(shapes[name])) for name in behind.outputs),
    )
    return factory(
        tiers,
        _latest,
        (*ahead.outputs.values(), *behind.outputs.values()),
        last_tiers,
        np.empty,
        pool.rows,
        np.ndarray,
        np.dtype(np.float64),
        _samples_for_one_thread(kernel.call.cost_ns + last.call.cost_ns),
        _is_for_one_thread,
    )


def _samples_for_one_thread(cost_ns: float) -> int:
    """Samples that are less work than two threads are worth, few enough for the fast path."""
    most = POLICY.max_fast_path_samples
    least = 2 * POLICY.min_nanoseconds_per_thread
    return most if cost_ns * most < least else math.ceil(least / cost_ns) - 1


def _is_for_one_thread(samples: int) -> bool:
    """Whether a batch of more work has but one thread, so that it takes the fast path as well."""
    return 0 < samples <= POLICY.max_fast_path_samples and usable_threads() == 1


def _shape_words(shapes: Sequence[Shape]) -> Array:
    """Shapes as machine code that makes arrays reads them."""
    found = np.zeros((len(shapes), abi.SHAPE_WORDS), np.int64)
    for row, shape in zip(found, shapes, strict=True):
        row[0] = len(shape)
        row[1 : len(shape) + 1] = shape
    return found


def _latest(
    tiers: TieredKernel, look_again: Callable[[], None]
) -> tuple[NativeEntry, NativeEntry, TieredKernel | None]:
    """Native entries of the best kernel that is ready, and the tiers while one may follow.

    The second entry is that for single samples; the first of these has code for them made.

    Args:
        tiers: The kernels.
        look_again: To be called where another one will follow from now on.
    """
    pending = tiers if tiers.is_promoting else None
    kernel = tiers.kernel
    assert kernel.native_entry is not None
    native = kernel.native_entry
    if not tiers.awaits_single:
        return native, kernel.single_entry or native, pending

    def first_single(*given: object) -> bool:
        done = native(*given)
        if done:
            tiers.want_single()
            look_again()
        return done

    return native, first_single, pending


def _one_output(places: tuple[int, ...], frames: int, shape: Shape) -> Callable[..., Entry]:
    """The factory of entries to programs with one output; ``out=`` is for vectors."""
    vector = len(shape) == 1
    text = _ONE_OUTPUT.format(
        **_arguments(places, frames),
        shape=_allocated(shape),
        single=_reshaped(shape),
        batch="" if vector else f".reshape(len(x0){''.join(f', {n}' for n in shape)})",
    )
    return _compiled(text)


def _many_outputs(
    places: tuple[int, ...], frames: int, names: tuple[str, ...], shapes: tuple[Shape, ...]
) -> Callable[..., Entry]:
    """The factory of entries to programs with several outputs."""
    return _compiled(
        _MANY_OUTPUTS.format(
            **_arguments(places, frames), **_results(list(zip(names, shapes, strict=True)))
        )
    )


def _chained(
    arguments: tuple[str, ...],
    read: tuple[str, ...],
    sizes: tuple[int, ...],
    last_read: tuple[str, ...],
    results: tuple[tuple[str, Shape], ...],
) -> Callable[..., Entry]:
    """The factory of entries to two programs, by the variables that each reads."""
    text = _CHAINED.format(
        arguments=", ".join(arguments),
        first=arguments[0],
        inner_given=", ".join(read),
        inner=", ".join(f"z{i}" for i in range(len(sizes))),
        inner_singles=", ".join(f"empty({n})" for n in sizes),
        given=", ".join(last_read),
        **_results(results),
    )
    return _compiled(text)


def _results(outputs: Sequence[tuple[str, Shape]]) -> dict[str, str]:
    """Parts of a text about several outputs: made for a sample, and given for one or a batch."""
    rows = [(name, f"y{i}", shape) for i, (name, shape) in enumerate(outputs)]
    return {
        "outputs": ", ".join(y for _, y, _ in rows),
        "singles": "; ".join(f"{y} = empty({_allocated(shape)})" for _, y, shape in rows),
        "made_results": ", ".join(f"{name!r}: {y}" for name, y, _ in rows),
        "single_results": ", ".join(f"{name!r}: {y}{_reshaped(shape)}" for name, y, shape in rows),
        "batch_results": ", ".join(
            f"{name!r}: {y}"
            + ("" if len(shape) == 1 else f".reshape(count{''.join(f', {n}' for n in shape)})")
            for name, y, shape in rows
        ),
    }


def _arguments(places: Sequence[int], frames: int) -> dict[str, str]:
    names = [f"x{i}" for i in range(len(places))]
    given = [names[i] for i in places]
    if not frames:
        texts = {"arguments": ", ".join(names), "given": ", ".join(given), "first": names[0]}
        return {**texts, "unpack": "", "check": ""}
    keys = [f"k{i}" for i in range(frames)]
    return {
        "arguments": ", ".join([*names, "forces, reference"]),
        "given": ", ".join([*given, "forces", *keys]),
        "first": names[0],
        "unpack": f"{', '.join(keys)}, = frames",
        "check": _REFERENCE_CHECK,
    }


def _allocated(shape: Shape) -> str:
    """What a result of one sample is allocated with: its shape, or how many numbers it has."""
    flat = len(shape) == 1 or _is_like_a_batch(shape)
    return str(math.prod(shape)) if flat else str(tuple(shape))


def _reshaped(shape: Shape) -> str:
    """What gives such a result its shape, if it has it not yet."""
    return f".reshape{tuple(shape)}" if _is_like_a_batch(shape) else ""


def _is_like_a_batch(shape: Shape) -> bool:
    """Whether a matrix has one row, which the native entry would take for a batch of one."""
    return len(shape) == 2 and shape[0] == 1


@cache
def _compiled(text: str) -> Callable[..., Entry]:
    """The factory of a text; entries of one form share it."""
    scope: dict[str, Callable[..., Entry]] = {}
    exec(compile(text, "<entry to machine code>", "exec"), scope)
    return scope["make"]

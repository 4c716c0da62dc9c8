# SPDX-License-Identifier: BSD-3-Clause
"""The native entry of a kernel as LLVM text: a built-in function of Python, compiled with it.

    native_entry(q, v, vdot, tau) -> bool
    native_entry(q, v, vdot, forces, "left foot", "right foot", tau) -> bool

takes the inputs and then the outputs. Wrenches on frames come after the other inputs in a dict,
with the names that it must have by their numbers; a wrench without a batch serves all samples. An
output for a sample may have any shape, ``()`` and (6, nv) too, if it has so many numbers. It
reads the array objects directly, runs the kernel with a workspace of its own while it holds the
interpreter's lock, and says whether it did and all was well. It never raises: on anything unusual
(a list, another dtype, strides, overlapping memory, a number that is not finite) it answers
``False``, and the general path says what is wrong or copes.

    native_results(shapes, q, v, vdot) -> (tau, ...) or False

takes the inputs of one sample and makes the outputs, too, by NumPy's C interface: in Python that
takes as long as small programs themselves. Kernels for single samples have it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phistar.backends.llvm import abi
from phistar.backends.llvm.emit.ir_builder import EmittedBlock, FunctionBuilder, Lanes
from phistar.backends.llvm.emit.skeleton import (
    STORE_ALIGNED,
    STORE_ANYWHERE,
    STORE_STREAMING,
    WORKSPACE_ALIGNMENT_BYTES,
    staging_vectors,
    streamed_outputs,
)
from phistar.model.wrenches import is_wrench_input, wrench_number
from phistar.scalar.program import Signature
from phistar.thresholds import POLICY

ENTRY_SYMBOL = "native_entry"
RESULTS_SYMBOL = "native_results"
"""Names of the functions in the module."""

_DICT_DECLARATIONS = (
    "declare ptr @PyDict_GetItem(ptr, ptr)",
    "declare i64 @PyDict_Size(ptr)",
    "@phistar_dict = external global i8",
)


def native_entry_text(
    signature: Signature,
    lanes: Lanes,
    workspace: int,
    max_batch: int = POLICY.max_fast_path_samples,
    fast_compile: bool = False,
) -> str:
    """Text of the native entry, to be appended to the module of a kernel.

    Args:
        signature: Arrays of the kernel.
        lanes: Its lanes.
        workspace: Vectors that it needs.
        max_batch: Arrays hold one sample (size,) or a batch (batch, size) of at most so many, few
            enough to hold the interpreter's lock meanwhile.
        fast_compile: Compile it as fast as can be; each call takes some nanoseconds longer.
    """
    workspace_bytes = max(workspace + staging_vectors(signature), 1) * lanes.bytes
    sizes = [*signature.inputs.values(), *signature.outputs.values()]
    frames = sum(map(is_wrench_input, signature.inputs))
    w = _EntryBuilder(lanes, len(signature.inputs), max_batch)
    rows = w(f"alloca [{2 * len(sizes) + 1} x i64], align 8")
    with w.region() as w.done:
        w.require(w.compare("eq", "%count", len(sizes) + (1 if frames else 0)))
        vectors = [name for name in signature.inputs if not is_wrench_input(name)]
        forces = w.require_dict(w.argument(len(vectors)), frames) if frames else ""
        for name, size in signature.inputs.items():
            if is_wrench_input(name):
                place = len(vectors) + 1 + wrench_number(name)
                w.require_array(w.require_item(forces, w.argument(place)), size, repeats=True)
            else:
                w.require_array(w.argument(vectors.index(name)), size)
        first = len(signature.inputs) + (1 if frames else 0)
        for i, size in enumerate(signature.outputs.values()):
            w.require_output(w.argument(first + i), size)
        w.require_disjoint()
        w.start_block("run")
        for i, (data, stride) in enumerate(zip(w.data, w.strides, strict=True)):
            w.store("ptr", data, w.gep(rows, 2 * i, "i64"), 8)
            w.store("i64", stride, w.gep(rows, 2 * i + 1, "i64"), 8)
        w.store("i64", w.emit_store_kind(signature), w.gep(rows, 2 * len(sizes), "i64"), 8)
        status = w(f"call i64 @kernel(ptr {rows}, ptr @entry_work, i64 0, i64 {w.batch})")
        fine = w(f"zext i1 {w.compare('eq', status, 0)} to i64")
    answer = w.merge(fine, 0, kind="i64")
    w.emit(f"ret ptr {w(f'call ptr @PyBool_FromLong(i64 {answer})')}")
    attributes = "nounwind noinline optnone" if fast_compile else "nounwind"
    return "\n".join(
        [
            "declare ptr @PyBool_FromLong(i64)",
            "@phistar_ndarray = external global i8",
            "@phistar_min_streamed_bytes = external global i64",
            "@one = private constant i64 1",
            *(_DICT_DECLARATIONS if frames else ()),
            f"@entry_work = internal global [{workspace_bytes} x i8] zeroinitializer, align 64",
            w.function_text(f"ptr @{ENTRY_SYMBOL}(ptr %self, ptr %given, i64 %count) {attributes}"),
            "",
        ]
    )


def native_results_text(signature: Signature, lanes: Lanes) -> str:
    """Text of the function that makes its results, to be appended to that of the native entry.

    Args:
        signature: Arrays of the kernel; none of them is a wrench.
        lanes: Its lanes.
    """
    inputs, outputs = len(signature.inputs), len(signature.outputs)
    w = _EntryBuilder(lanes, inputs, 1)
    rows = w(f"alloca [{2 * (inputs + outputs) + 1} x i64], align 8")
    with w.region() as failed:
        with w.region() as w.done:
            w.require(w.compare("eq", "%count", inputs + 1))
            for i, size in enumerate(signature.inputs.values()):
                w.require_array(w.argument(i + 1), size)
            w.require(w(f"icmp eq i32 {w.axes}, 1"))
            made = _new_arrays(w, outputs, failed)
            w.data += [w.field(array, abi.DATA_OFFSET, "ptr") for array in made]
            for i, data in enumerate(w.data):
                w.store("ptr", data, w.gep(rows, 2 * i, "i64"), 8)
                w.store("i64", "0", w.gep(rows, 2 * i + 1, "i64"), 8)
            w.store("i64", str(STORE_ANYWHERE), w.gep(rows, 2 * len(w.data), "i64"), 8)
            status = w(f"call i64 @kernel(ptr {rows}, ptr @entry_work, i64 0, i64 1)")
            _give_up_unless(w, w.compare("eq", status, 0), made, w.done)
            found = w(f"call ptr @PyTuple_New(i64 {outputs})")
            _give_up_unless(w, w(f"icmp ne ptr {found}, null"), made, failed)
            for i, array in enumerate(made):
                w(f"call i32 @PyTuple_SetItem(ptr {found}, i64 {i}, ptr {array})")
        answer = w.merge(found, "null", kind="ptr")
        with w.if_(w(f"icmp eq ptr {answer}, null")):
            no = w("call ptr @PyBool_FromLong(i64 0)")
        answer = w.merge(answer, no, kind="ptr")
    w.emit(f"ret ptr {w.merge(answer, 'null', kind='ptr')}")
    return "\n".join(
        [
            "declare ptr @PyTuple_New(i64)",
            "declare i32 @PyTuple_SetItem(ptr, i64, ptr)",
            "declare void @Py_DecRef(ptr)",
            "declare ptr @phistar_new_array(ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)",
            w.function_text(f"ptr @{RESULTS_SYMBOL}(ptr %self, ptr %given, i64 %count) nounwind"),
            "",
        ]
    )


def _new_arrays(w: _EntryBuilder, count: int, failed: EmittedBlock) -> list[str]:
    """New arrays, or the end of the function with the error that NumPy raised."""
    shapes = w.field(w.argument(0), abi.DATA_OFFSET, "ptr")
    number = np.dtype("f8" if w.lanes.real == "double" else "f4").num
    made: list[str] = []
    for i in range(count):
        place = w.gep(shapes, abi.SHAPE_WORDS * i, "i64")
        axes = w(f"trunc i64 {w.load('i64', place, 8)} to i32")
        given = f"ptr @phistar_ndarray, i32 {axes}, ptr {w.gep(place, 1, 'i64')}, i32 {number}"
        rest = "ptr null, ptr null, i32 0, i32 0, ptr null"
        array = w(f"call ptr @phistar_new_array({given}, {rest})")
        _give_up_unless(w, w(f"icmp ne ptr {array}, null"), made, failed)
        made.append(array)
    return made


def _give_up_unless(
    w: _EntryBuilder, condition: str, made: Sequence[str], done: EmittedBlock
) -> None:
    """Let go of arrays and leave a region unless a condition holds."""
    if made:
        with w.if_(condition, negated=True):
            for array in made:
                w.emit(f"call void @Py_DecRef(ptr {array})")
    w.leave_unless(condition, done)


class _EntryBuilder(FunctionBuilder):
    """Writes tests that lead to the answer no.

    Attributes:
        data: Addresses of the first entries of the arrays checked so far.
        strides: From sample to sample, in entries.
        extents: Entries in all.
        axes: How many axes they all have.
        batch: Number of samples.
        done: Where the answer is given.
    """

    done: EmittedBlock

    def __init__(self, lanes: Lanes, inputs: int, max_batch: int) -> None:
        super().__init__(lanes)
        self.inputs = inputs
        self.max_batch = max_batch
        self.data: list[str] = []
        self.strides: list[str] = []
        self.extents: list[str] = []
        self.axes = ""
        self.batch = ""

    def require(self, condition: str) -> None:
        """Go on only if a condition holds."""
        self.leave_unless(condition, self.done)

    def require_all(self, *conditions: str) -> None:
        """Go on only if all conditions hold, which may be tested in any order."""
        both = conditions[0]
        for condition in conditions[1:]:
            both = self(f"and i1 {both}, {condition}")
        self.require(both)

    def argument(self, i: int) -> str:
        """The i-th argument."""
        return self.load("ptr", self.gep("%given", i, "ptr"), 8)

    def require_dict(self, thing: str, size: int) -> str:
        """An argument that must be a dict of so many items."""
        kind = self.field(thing, abi.TYPE_OFFSET, "ptr")
        self.require(self(f"icmp eq ptr {kind}, @phistar_dict"))
        self.require(self.compare("eq", self(f"call i64 @PyDict_Size(ptr {thing})"), size))
        return thing

    def require_item(self, thing: str, name: str) -> str:
        """What a dict must have under a name."""
        found = self(f"call ptr @PyDict_GetItem(ptr {thing}, ptr {name})")
        self.require(self(f"icmp ne ptr {found}, null"))
        return found

    def require_array(self, thing: str, size: int, repeats: bool = False) -> None:
        """Something must be a plain array of so many numbers a sample.

        All have one axis, or all have two and the same length.

        Args:
            thing: The object.
            size: Numbers of a sample.
            repeats: Whether one axis is enough in any case: one sample that serves all.
        """
        axes = self._require_plain(thing, written=False)
        one_or_two = self(f"icmp ult i32 {self(f'sub i32 {axes}, 1')}, 2")
        same_axes = self(f"icmp eq i32 {axes}, {self.axes}") if self.axes else one_or_two
        if repeats:
            same_axes = self(f"or i1 {same_axes}, {self(f'icmp eq i32 {axes}, 1')}")
        self.require(same_axes)
        self._size(thing, axes, size, repeats)
        self.data.append(self.field(thing, abi.DATA_OFFSET, "ptr"))

    def require_output(self, thing: str, size: int) -> None:
        """Something must be a plain array of so many numbers a sample.

        That of one sample has any shape; that of a batch is (batch, size), so that a batch of one
        is not taken for a sample.
        """
        axes = self._require_plain(thing, written=True)
        dimensions = self.field(thing, abi.SHAPE_OFFSET, "ptr")
        lengths: list[str] = []
        most = 4  # axes, that of the batch included
        for k in range(most):
            there = self.gep(dimensions, k, "i64")
            place = self.select(self(f"icmp sgt i32 {axes}, {k}"), there, "@one", "ptr")
            lengths.append(self.load("i64", place, 8))
        total = lengths[0]
        for length in lengths[1:]:
            total = self.mul(total, length)
        extent = self.mul(self.batch, size)
        single = self(f"icmp eq i32 {self.axes}, 1")
        two_axes = self(f"icmp eq i32 {axes}, 2")
        same_batch = self(f"and i1 {two_axes}, {self.compare('eq', lengths[0], self.batch)}")
        self.require_all(
            self(f"icmp ule i32 {axes}, {most}"),
            self(f"or i1 {single}, {same_batch}"),
            self.compare("eq", total, extent),
        )
        self.strides.append(str(size))
        self.extents.append(extent)
        self.data.append(self.field(thing, abi.DATA_OFFSET, "ptr"))

    def _require_plain(self, thing: str, written: bool) -> str:
        """Something must be an array of the kernel's dtype without gaps; how many axes it has."""
        self.require(
            self(f"icmp eq ptr {self.field(thing, abi.TYPE_OFFSET, 'ptr')}, @phistar_ndarray")
        )
        flags = self.field(thing, abi.FLAGS_OFFSET, "i32")
        dtype = self.field(thing, abi.DTYPE_OFFSET, "ptr")
        kind = self(f"and i64 {self.field(dtype, abi.DTYPE_KIND_OFFSET, 'i64')}, {abi.DTYPE_MASK}")
        need = abi.CONTIGUOUS_FLAG | abi.ALIGNED_FLAG | (abi.WRITEABLE_FLAG if written else 0)
        here = self(f"and i32 {flags}, {need}")
        word = abi.dtype_word(np.dtype("f8" if self.lanes.real == "double" else "f4"))
        self.require_all(self(f"icmp eq i32 {here}, {need}"), self(f"icmp eq i64 {kind}, {word}"))
        return self.field(thing, abi.NDIM_OFFSET, "i32")

    def _size(self, thing: str, axes: str, size: int, repeats: bool) -> None:
        """The last axis must have so many numbers, and that before it as many as everywhere."""
        dimensions = self.field(thing, abi.SHAPE_OFFSET, "ptr")
        first = self.load("i64", dimensions, 8)
        single = self(f"icmp eq i32 {axes}, 1")
        batch = self(f"select i1 {single}, i64 1, i64 {first}")
        last = self(f"select i1 {single}, i64 0, i64 1")
        length = self.load("i64", self.gep(dimensions, last, "i64"), 8)
        if not self.axes:
            self.axes, self.batch = axes, batch
            fits = self(f"icmp ule i64 {batch}, {self.max_batch}")
        else:
            fits = self(f"icmp eq i64 {batch}, {self.batch}")
        stride, extent = str(size), self(f"mul i64 {self.batch}, {size}")
        if repeats:
            fits = self(f"or i1 {fits}, {single}")
            stride = self(f"select i1 {single}, i64 0, i64 {size}")
            extent = self(f"select i1 {single}, i64 {size}, i64 {extent}")
        self.strides.append(stride)
        self.extents.append(extent)
        self.require_all(fits, self(f"icmp eq i64 {length}, {size}"))

    def field(self, start: str, place: int, kind: str) -> str:
        """Something at a distance from an address."""
        return self.load(kind, self.gep(start, place, "i8"), 4 if kind == "i32" else 8)

    def emit_store_kind(self, signature: Signature) -> str:
        """How large outputs are written, see ``KernelCaller``."""
        large = streamed_outputs(signature)
        if not large:
            return str(STORE_ANYWHERE)
        total = self(f"mul i64 {self.batch}, {sum(large.values()) * self.lanes.bits // 8}")
        least = self.load("i64", "@phistar_min_streamed_bytes", 8)
        far = self(f"icmp uge i64 {total}, {least}")
        yes = "true"
        for name, data in zip(signature.outputs, self.data[self.inputs :], strict=True):
            if name in large:
                place = self(f"ptrtoint ptr {data} to i64")
                rest = self(f"and i64 {place}, {WORKSPACE_ALIGNMENT_BYTES - 1}")
                yes = self(f"and i1 {yes}, {self(f'icmp eq i64 {rest}, 0')}")
        kind = self.select(far, STORE_STREAMING, STORE_ALIGNED)
        return self.select(yes, kind, STORE_ANYWHERE)

    def require_disjoint(self) -> None:
        """Outputs must not share memory with any other array."""
        if len(self.data) == self.inputs:
            return
        pairs = zip(self.data, self.extents, strict=True)
        ends = [self.gep(data, extent) for data, extent in pairs]
        tests = []
        for i in range(self.inputs, len(self.data)):
            for j in range(i):
                before = self(f"icmp ule ptr {ends[i]}, {self.data[j]}")
                after = self(f"icmp ule ptr {ends[j]}, {self.data[i]}")
                tests.append(self(f"or i1 {before}, {after}"))
        if tests:
            self.require_all(*tests)

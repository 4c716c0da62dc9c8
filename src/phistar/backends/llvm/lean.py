# SPDX-License-Identifier: BSD-3-Clause
"""A lean way into a kernel: a built-in function of Python, itself compiled with the kernel.

    lean(q, v, vdot, tau) -> bool

takes the inputs and then the outputs. It looks at the array objects directly, runs the kernel with
a workspace of its own while it holds the interpreter's lock, and says whether it did and all was
well. It never raises: on anything unusual (a list, another dtype, strides, overlapping memory, a
number that is not finite) it answers ``False``, and the general way says what is wrong or copes.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np

from phistar.backends.llvm import layout
from phistar.backends.llvm.call import ALIGNMENT, PAST
from phistar.backends.llvm.engine import Code
from phistar.backends.llvm.frame import large_outputs, staging
from phistar.backends.llvm.writer import Lanes, Writer
from phistar.scalar.program import Signature

SYMBOL = "lean"
"""Name of the function in the module."""

Lean = Callable[..., bool]

_METH_FASTCALL = 0x0080


MANY = 8192
"""Samples that a batch may have to be computed without giving other threads a turn."""


def lean_text(
    signature: Signature, lanes: Lanes, workspace: int, most: int = MANY, hasty: bool = False
) -> str:
    """Text of the built-in function, to be appended to the module of a kernel.

    Args:
        signature: Arrays of the kernel.
        lanes: Its lanes.
        workspace: Vectors that it needs.
        most: Arrays hold one sample (size,) or a batch (batch, size) of at most so many, few
            enough to hold the interpreter's lock meanwhile.
        hasty: Compile it as fast as can be; each call takes some nanoseconds longer.
    """
    room = max(workspace + staging(signature), 1) * lanes.bytes
    sizes = [*signature.inputs.values(), *signature.outputs.values()]
    w = _Checks(lanes, len(signature.inputs), most)
    w.block("entry")
    w.demand(w(f"icmp eq i64 %count, {len(sizes)}"))
    for i, size in enumerate(sizes):
        w.array(i, size)
    w.apart(sizes)
    w.do("br label %run")
    w.block("run")
    for i, data in enumerate(w.data):
        w.store("ptr", data, w.at("%rows", 2 * i, "i64"), 8)
        w.store("i64", str(sizes[i]), w.at("%rows", 2 * i + 1, "i64"), 8)
    w.store("i64", w.past(signature), w.at("%rows", 2 * len(sizes), "i64"), 8)
    status = w(f"call i64 @kernel(ptr %rows, ptr @lean_work, i64 0, i64 {w.batch})")
    done = w(f"icmp eq i64 {status}, 0")
    w.do(f"%fine = zext i1 {done} to i64")
    w.do("br label %answer")
    w.block("answer")
    w.do(f"%yes = phi i64 [%fine, %run], {', '.join(f'[0, %{label}]' for label in w.refusing)}")
    w.do("%result = call ptr @PyBool_FromLong(i64 %yes)")
    w.do("ret ptr %result")
    attributes = "nounwind noinline optnone" if hasty else "nounwind"
    return "\n".join(
        [
            "declare ptr @PyBool_FromLong(i64)",
            "@phistar_ndarray = external global i8",
            f"@lean_work = internal global [{room} x i8] zeroinitializer, align 64",
            f"define ptr @{SYMBOL}(ptr %self, ptr %given, i64 %count) {attributes} {{",
            w.lines[0],
            f"  %rows = alloca [{2 * len(sizes) + 1} x i64], align 8",
            *w.lines[1:],
            "}",
            "",
        ]
    )


def lean_function(code: Code) -> Lean | None:
    """The built-in function of loaded code, which it keeps alive.

    Returns:
        None where it cannot be used: the code has none, array objects look unfamiliar, or threads
        run without the interpreter's lock.
    """
    place = code.symbols.get(SYMBOL)
    unlocked = not getattr(sys, "_is_gil_enabled", lambda: True)()
    if place is None or unlocked or not layout.known():
        return None
    method = _Method(SYMBOL.encode(), place, _METH_FASTCALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes = (ctypes.POINTER(_Method), ctypes.py_object, ctypes.c_void_p)
    make.restype = ctypes.py_object
    function: Lean = make(ctypes.byref(method), (code, method), None)
    return function


class _Method(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


class _Checks(Writer):
    """Writes tests that lead to the answer no.

    Attributes:
        data: Addresses of the first entries of the arrays looked at.
        axes: How many axes they all have.
        batch: Number of samples.
        refusing: Blocks that end in a refusal.
    """

    def __init__(self, lanes: Lanes, inputs: int, most: int) -> None:
        super().__init__(lanes)
        self.inputs = inputs
        self.most = most
        self.data: list[str] = []
        self.axes = ""
        self.batch = ""
        self.refusing: list[str] = []
        self._here = ""

    def block(self, label: str) -> None:
        super().block(label)
        self._here = label

    def demand(self, condition: str) -> None:
        """Go on only if a condition holds."""
        further = self.label("next")
        self.do(f"br i1 {condition}, label %{further}, label %answer")
        self.refusing.append(self._here)
        self.block(further)

    def all(self, *conditions: str) -> None:
        """Go on only if all conditions hold, which may be looked at in any order."""
        both = conditions[0]
        for condition in conditions[1:]:
            both = self(f"and i1 {both}, {condition}")
        self.demand(both)

    def array(self, i: int, size: int) -> None:
        """The i-th argument must be a plain array of so many numbers a sample.

        All have one axis, or all have two and the same length.
        """
        thing = self.load("ptr", self.at("%given", i, "ptr"), 8)
        self.demand(self(f"icmp eq ptr {self.field(thing, layout.TYPE, 'ptr')}, @phistar_ndarray"))
        axes = self.field(thing, layout.AXES, "i32")
        one_or_two = self(f"icmp ult i32 {self(f'sub i32 {axes}, 1')}, 2")
        flags = self.field(thing, layout.FLAGS, "i32")
        dtype = self.field(thing, layout.DTYPE, "ptr")
        kind = self(f"and i64 {self.field(dtype, layout.DTYPE_KIND, 'i64')}, {layout.DTYPE_MASK}")
        need = layout.CONTIGUOUS | layout.ALIGNED
        need |= layout.WRITEABLE if i >= self.inputs else 0
        here = self(f"and i32 {flags}, {need}")
        word = layout.dtype_word(np.dtype("f8" if self.lanes.real == "double" else "f4"))
        self.all(
            self(f"icmp eq i32 {axes}, {self.axes}") if self.axes else one_or_two,
            self(f"icmp eq i32 {here}, {need}"),
            self(f"icmp eq i64 {kind}, {word}"),
        )
        self._size(thing, axes, size)
        self.data.append(self.field(thing, layout.DATA, "ptr"))

    def _size(self, thing: str, axes: str, size: int) -> None:
        """The last axis must have so many numbers, and that before it as many as everywhere."""
        dimensions = self.field(thing, layout.DIMENSIONS, "ptr")
        first = self.load("i64", dimensions, 8)
        single = self(f"icmp eq i32 {axes}, 1")
        batch = self(f"select i1 {single}, i64 1, i64 {first}")
        last = self(f"select i1 {single}, i64 0, i64 1")
        length = self.load("i64", self.at(dimensions, last, "i64"), 8)
        if not self.axes:
            self.axes, self.batch = axes, batch
            fits = self(f"icmp ule i64 {batch}, {self.most}")
        else:
            fits = self(f"icmp eq i64 {batch}, {self.batch}")
        self.all(fits, self(f"icmp eq i64 {length}, {size}"))

    def field(self, start: str, place: int, kind: str) -> str:
        """Something at a distance from an address."""
        return self.load(kind, self.at(start, place, "i8"), 4 if kind == "i32" else 8)

    def past(self, signature: Signature) -> str:
        """Whether large outputs go past the caches, see ``Caller``."""
        large = large_outputs(signature)
        if not large:
            return "0"
        total = sum(large.values()) * self.lanes.bits // 8
        yes = self(f"icmp uge i64 {self(f'mul i64 {self.batch}, {total}')}, {PAST}")
        for name, data in zip(signature.outputs, self.data[self.inputs :], strict=True):
            if name in large:
                rest = self(f"and i64 {self(f'ptrtoint ptr {data} to i64')}, {ALIGNMENT - 1}")
                yes = self(f"and i1 {yes}, {self(f'icmp eq i64 {rest}, 0')}")
        return self(f"zext i1 {yes} to i64")

    def apart(self, sizes: list[int]) -> None:
        """Outputs must not share memory with any other array."""
        if len(sizes) == self.inputs:
            return
        ends = []
        for data, size in zip(self.data, sizes, strict=True):
            ends.append(self.at(data, self(f"mul i64 {self.batch}, {size}")))
        tests = []
        for i in range(self.inputs, len(sizes)):
            for j in range(i):
                before = self(f"icmp ule ptr {ends[i]}, {self.data[j]}")
                after = self(f"icmp ule ptr {ends[j]}, {self.data[i]}")
                tests.append(self(f"or i1 {before}, {after}"))
        if tests:
            self.all(*tests)

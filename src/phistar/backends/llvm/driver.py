# SPDX-License-Identifier: BSD-3-Clause
"""LLVM text that calls kernels one after the other, step after step: a trajectory in one call.

    int64 kernel(int64 plan[], void *work, int64 first, int64 last)

has the form of a kernel, so that batches are cut for threads in the same way. The samples are taken
a block at a time through all steps, so that what passes between kernels stays in the caches. The
buffers of a block lie in the workspace, one row a sample.

The plan is a list of numbers: steps; steps from one result to the next; samples of a block; then
number and first index of each of four tables, and the place of the kernels' own workspace in ours.

    arguments   value, whether it is a place in the workspace    one for each entry of ``args`` of
                                                                 each kernel, at ``PLACE`` in ours
    calls       address of the kernel, place of its ``args``
    inputs      address, sample stride, step stride, size, place of the buffer
    results     the same

Strides count numbers of 8 bytes, places bytes. Inputs are read at every step, those whose step
stride is zero once. Nothing here knows a robot or a scheme.
"""

from __future__ import annotations

HEAD = 12
"""Numbers of the plan before its tables."""

PLACE = 64
"""Bytes of the workspace before the arguments of the kernels."""

INPUT = 5
"""Numbers of a row of the tables of inputs and results."""


def _loop(name: str, count: str, before: str, body: str, after: str) -> str:
    """A loop ``%<name>`` from 0 to ``%<count>``; ``body`` ends in block ``<name>.next``."""
    return f"""
  br label %{name}.head
{name}.head:
  %{name} = phi i64 [0, %{before}], [%{name}.more, %{name}.next]
  %{name}.is = icmp slt i64 %{name}, {count}
  br i1 %{name}.is, label %{name}.body, label %{after}
{name}.body:{body}
  br label %{name}.next
{name}.next:
  %{name}.more = add i64 %{name}, 1
  br label %{name}.head
{after}:"""


def _read(name: str, index: int) -> str:
    return f"""
  %{name}.at = getelementptr i64, ptr %plan, i64 {index}
  %{name} = load i64, ptr %{name}.at"""


_COPY = """
define internal void @move(ptr %row, ptr %work, i64 %time, i64 %sample, i64 %rows, i1 %out) {
entry:
  %base = load i64, ptr %row
  %p1 = getelementptr i64, ptr %row, i64 1
  %across = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %row, i64 2
  %step = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %row, i64 3
  %size = load i64, ptr %p3
  %p4 = getelementptr i64, ptr %row, i64 4
  %place = load i64, ptr %p4
  %bytes = mul i64 %size, 8
  %later = mul i64 %time, %step
  %aside = mul i64 %sample, %across
  %from = add i64 %later, %aside
  %outside = inttoptr i64 %base to ptr
  %first = getelementptr double, ptr %outside, i64 %from
  %buffer = getelementptr i8, ptr %work, i64 %place
  br label %head
head:
  %i = phi i64 [0, %entry], [%more, %body]
  %is = icmp slt i64 %i, %rows
  br i1 %is, label %body, label %done
body:
  %there = mul i64 %i, %across
  %theirs = getelementptr double, ptr %first, i64 %there
  %here = mul i64 %i, %size
  %ours = getelementptr double, ptr %buffer, i64 %here
  %to = select i1 %out, ptr %theirs, ptr %ours
  %of = select i1 %out, ptr %ours, ptr %theirs
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %of, i64 %bytes, i1 false)
  %more = add i64 %i, 1
  br label %head
done:
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

_FILL = """
  %fill.two = mul i64 %fill, 2
  %fill.entry = add i64 %fill.two, %tables
  %fill.p = getelementptr i64, ptr %plan, i64 %fill.entry
  %fill.value = load i64, ptr %fill.p
  %fill.q = getelementptr i64, ptr %fill.p, i64 1
  %fill.inside = load i64, ptr %fill.q
  %fill.start = mul i64 %fill.inside, %start
  %fill.sum = add i64 %fill.value, %fill.start
  %fill.to = getelementptr i64, ptr %args, i64 %fill
  store i64 %fill.sum, ptr %fill.to"""

_READ = f"""
  %read.off = mul i64 %read, {INPUT}
  %read.entry = add i64 %read.off, %inputs
  %read.row = getelementptr i64, ptr %plan, i64 %read.entry
  %read.p = getelementptr i64, ptr %read.row, i64 2
  %read.stride = load i64, ptr %read.p
  %read.moves = icmp ne i64 %read.stride, 0
  %read.begin = icmp eq i64 %step, 0
  %read.wanted = or i1 %read.moves, %read.begin
  br i1 %read.wanted, label %read.do, label %read.skip
read.do:
  call void @move(ptr %read.row, ptr %work, i64 %step, i64 %sample, i64 %rows, i1 false)
  br label %read.skip
read.skip:"""

_CALL = """
  %call.off = mul i64 %call, 2
  %call.entry = add i64 %call.off, %calls
  %call.p = getelementptr i64, ptr %plan, i64 %call.entry
  %call.address = load i64, ptr %call.p
  %call.q = getelementptr i64, ptr %call.p, i64 1
  %call.place = load i64, ptr %call.q
  %call.args = getelementptr i8, ptr %work, i64 %call.place
  %call.it = inttoptr i64 %call.address to ptr
  %call.status = call i64 %call.it(ptr %call.args, ptr %rest, i64 0, i64 %rows)
  %call.before = load i64, ptr %work
  %call.both = or i64 %call.before, %call.status
  store i64 %call.both, ptr %work"""

_WRITE = f"""
  %write.off = mul i64 %write, {INPUT}
  %write.entry = add i64 %write.off, %results
  %write.row = getelementptr i64, ptr %plan, i64 %write.entry
  call void @move(ptr %write.row, ptr %work, i64 %saved, i64 %sample, i64 %rows, i1 true)"""


def driver() -> str:
    """The module."""
    step = "".join(
        [
            _loop("read", "%inputcount", "step.body", _READ, "called"),
            _loop("call", "%callcount", "called", _CALL, "due"),
            """
  %done = add i64 %step, 1
  %saved = sdiv i64 %step, %every
  %after = srem i64 %done, %every
  %is.due = icmp eq i64 %after, 0
  br i1 %is.due, label %save, label %kept
save:""",
            _loop("write", "%resultcount", "save", _WRITE, "kept.too"),
            "\n  br label %kept\nkept:",
        ]
    )
    heads = (
        "steps", "every", "block", "tablecount", "tables", "callcount", "calls", "inputcount",
        "inputs", "resultcount", "results", "place",
    )  # fmt: skip
    assert len(heads) == HEAD
    return "".join(
        [
            _COPY,
            "\ndefine i64 @kernel(ptr %plan, ptr %work, i64 %first, i64 %last) nounwind {\nentry:",
            *(_read(name, i) for i, name in enumerate(heads)),
            f"""
  store i64 0, ptr %work
  %start = ptrtoint ptr %work to i64
  %args = getelementptr i8, ptr %work, i64 {PLACE}
  %rest = getelementptr i8, ptr %work, i64 %place""",
            _loop("fill", "%tablecount", "entry", _FILL, "ready"),
            """
  br label %block.head
block.head:
  %sample = phi i64 [%first, %ready], [%sample.next, %block.next]
  %some = icmp slt i64 %sample, %last
  br i1 %some, label %block.body, label %exit
block.body:
  %left = sub i64 %last, %sample
  %short = icmp slt i64 %left, %block
  %rows = select i1 %short, i64 %left, i64 %block""",
            _loop("step", "%steps", "block.body", step, "block.next"),
            """
  %sample.next = add i64 %sample, %rows
  br label %block.head
exit:
  %status = load i64, ptr %work
  ret i64 %status
}
""",
        ]
    )

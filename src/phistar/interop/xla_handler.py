# SPDX-License-Identifier: BSD-3-Clause
"""The function that XLA calls, as LLVM text: from its call frame to one of our kernels.

One handler serves all kernels. A call site names its kernel by the address of a *descriptor*, words
of 64 bits in memory that Python owns:

    0  call sites that may still run it     4  number of outputs
    1  address of the kernel                5  bytes of a number
    2  bytes of workspace                   6  samples that are worth a thread
    3  number of inputs                     7  most threads
    8  numbers of a sample in outputs that may go past the caches, 9  bytes from which they do
    10 ...  numbers of a sample of each input, then of each output

When XLA makes an executable it calls ``instantiate`` for each call site, which counts it in word 0;
when the executable is gone it calls ``release``. Only then may the kernel be freed, also if it is
called by a computation that is still under way when Python has forgotten it. A second attribute of
a call site is a number of this process: an executable that another one left on disk is refused.

A sample without a result (an input is not finite, a quaternion not unit, a singular hinge) becomes
not a number, all of it; its neighbours keep their results.
"""

from __future__ import annotations

from phistar.backends.llvm.emit.skeleton import STORE_ALIGNED, STORE_ANYWHERE, STORE_STREAMING
from phistar.interop.xla_header import XlaHeader

MAX_ARRAYS = 62
"""Inputs and outputs of a kernel, together; the second derivative of a step has 46."""

DESCRIPTOR_HEAD = 10
"""Words before the sizes."""

FUNCTIONS = ("execute", "instantiate", "release", "type_id", "type_info")
"""What to find in the module besides ``kernel``: twice a number, for a first trial."""

_BODY = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
{declare_yield}
@type_id_word = global i64 0
@type_info_words = global [3 x i64] [i64 {type_info_size}, i64 0,
                                     i64 ptrtoint (ptr @release to i64)]
@wrong_process = constant [{text_size} x i8] c"{text}\\00"

define ptr @type_id() {{
  ret ptr @type_id_word
}}

define ptr @type_info() {{
  ret ptr @type_info_words
}}

define void @release(ptr %descriptor) {{
  %before = atomicrmw sub ptr %descriptor, i64 1 seq_cst
  ret void
}}

define internal i64 @word(ptr %start, i64 %index) alwaysinline {{
  %place = getelementptr i64, ptr %start, i64 %index
  %value = load i64, ptr %place, align 8
  ret i64 %value
}}

define internal i1 @answers_metadata(ptr %frame) {{
  %extension_place = getelementptr i8, ptr %frame, i64 {frame_extension}
  %extension = load ptr, ptr %extension_place, align 8
  %none = icmp eq ptr %extension, null
  br i1 %none, label %no, label %some
some:
  %type_place = getelementptr i8, ptr %extension, i64 {extension_type}
  %type = load i32, ptr %type_place, align 4
  %asked = icmp eq i32 %type, 1
  br i1 %asked, label %answer, label %no
answer:
  %metadata_place = getelementptr i8, ptr %extension, i64 {extension_metadata}
  %metadata = load ptr, ptr %metadata_place, align 8
  %major = getelementptr i8, ptr %metadata, i64 {metadata_major}
  store i32 {major}, ptr %major, align 4
  %minor = getelementptr i8, ptr %metadata, i64 {metadata_minor}
  store i32 {minor}, ptr %minor, align 4
  %traits = getelementptr i8, ptr %metadata, i64 {metadata_traits}
  store i32 0, ptr %traits, align 4
  %state = getelementptr i8, ptr %metadata, i64 {metadata_state}
  %own_type = load i64, ptr @type_id_word, align 8
  store i64 %own_type, ptr %state, align 8
  ret i1 true
no:
  ret i1 false
}}

define internal i64 @attribute(ptr %frame, i64 %number) {{
  %attributes_place = getelementptr i8, ptr %frame, i64 {frame_attributes}
  %attributes = load ptr, ptr %attributes_place, align 8
  %own_place = getelementptr ptr, ptr %attributes, i64 %number
  %own = load ptr, ptr %own_place, align 8
  %value_place = getelementptr i8, ptr %own, i64 {scalar_value}
  %value = load ptr, ptr %value_place, align 8
  %found = load i64, ptr %value, align 8
  ret i64 %found
}}

define ptr @instantiate(ptr %frame) {{
  %metadata = call i1 @answers_metadata(ptr %frame)
  br i1 %metadata, label %done, label %look
done:
  ret ptr null
look:
  %api_place = getelementptr i8, ptr %frame, i64 {frame_api}
  %api = load ptr, ptr %api_place, align 8
  %process = call i64 @attribute(ptr %frame, i64 1)
  %mine = icmp eq i64 %process, {process}
  br i1 %mine, label %keep, label %refuse
refuse:
  %error_args = alloca [{error_size} x i8], align 8
  call void @llvm.memset.p0.i64(ptr %error_args, i8 0, i64 {error_size}, i1 false)
  store i64 {error_size}, ptr %error_args, align 8
  %message_place = getelementptr i8, ptr %error_args, i64 {error_message}
  store ptr @wrong_process, ptr %message_place, align 8
  %code_place = getelementptr i8, ptr %error_args, i64 {error_code}
  store i32 9, ptr %code_place, align 4
  %create_place = getelementptr i8, ptr %api, i64 {api_error_create}
  %create = load ptr, ptr %create_place, align 8
  %error = call ptr %create(ptr %error_args)
  ret ptr %error
keep:
  %address = call i64 @attribute(ptr %frame, i64 0)
  %descriptor = inttoptr i64 %address to ptr
  %before = atomicrmw add ptr %descriptor, i64 1 seq_cst
  %state_args = alloca [{state_size} x i8], align 8
  call void @llvm.memset.p0.i64(ptr %state_args, i8 0, i64 {state_size}, i1 false)
  store i64 {state_size}, ptr %state_args, align 8
  %context_place = getelementptr i8, ptr %frame, i64 {frame_context}
  %context = load ptr, ptr %context_place, align 8
  %context_there = getelementptr i8, ptr %state_args, i64 {state_context}
  store ptr %context, ptr %context_there, align 8
  %type_there = getelementptr i8, ptr %state_args, i64 {state_type}
  store ptr @type_id_word, ptr %type_there, align 8
  %state_there = getelementptr i8, ptr %state_args, i64 {state_state}
  store ptr %descriptor, ptr %state_there, align 8
  %set_place = getelementptr i8, ptr %api, i64 {api_state_set}
  %set = load ptr, ptr %set_place, align 8
  %failed = call ptr %set(ptr %state_args)
  ret ptr %failed
}}

define internal i64 @count(ptr %buffer) {{
entry:
  %rank_place = getelementptr i8, ptr %buffer, i64 {buffer_rank}
  %rank = load i64, ptr %rank_place, align 8
  %dims_place = getelementptr i8, ptr %buffer, i64 {buffer_dims}
  %dims = load ptr, ptr %dims_place, align 8
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %total = phi i64 [ 1, %entry ], [ %more, %body ]
  %inside = icmp slt i64 %i, %rank
  br i1 %inside, label %body, label %out
body:
  %one = call i64 @word(ptr %dims, i64 %i)
  %more = mul i64 %total, %one
  %next = add i64 %i, 1
  br label %head
out:
  ret i64 %total
}}

define internal void @run_piece(ptr %descriptor, ptr %args, ptr %work, i64 %first, i64 %last) {{
entry:
  %address = call i64 @word(ptr %descriptor, i64 1)
  %kernel = inttoptr i64 %address to ptr
  %status = call i64 %kernel(ptr %args, ptr %work, i64 %first, i64 %last)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %out, label %samples
samples:
  %s = phi i64 [ %first, %entry ], [ %next, %end_sample ]
  %more = icmp slt i64 %s, %last
  br i1 %more, label %sample, label %out
sample:
  %after = add i64 %s, 1
  %alone = call i64 %kernel(ptr %args, ptr %work, i64 %s, i64 %after)
  %good = icmp eq i64 %alone, 0
  br i1 %good, label %end_sample, label %erase
erase:
  %inputs = call i64 @word(ptr %descriptor, i64 3)
  %outputs = call i64 @word(ptr %descriptor, i64 4)
  %bytes = call i64 @word(ptr %descriptor, i64 5)
  br label %rows
rows:
  %o = phi i64 [ 0, %erase ], [ %o_next, %row ]
  %o_more = icmp slt i64 %o, %outputs
  br i1 %o_more, label %row, label %end_sample
row:
  %array = add i64 %inputs, %o
  %slot = mul i64 %array, 2
  %base = call i64 @word(ptr %args, i64 %slot)
  %size_slot = add i64 %array, {head}
  %size = call i64 @word(ptr %descriptor, i64 %size_slot)
  %wide = mul i64 %size, %bytes
  %shift = mul i64 %wide, %s
  %at = add i64 %base, %shift
  %there = inttoptr i64 %at to ptr
  call void @llvm.memset.p0.i64(ptr %there, i8 -1, i64 %wide, i1 false)
  %o_next = add i64 %o, 1
  br label %rows
end_sample:
  %next = add i64 %s, 1
  br label %samples
out:
  ret void
}}

define internal ptr @workspace(ptr %descriptor) {{
  %bytes = call i64 @word(ptr %descriptor, i64 2)
  %padded = add i64 %bytes, 128
  %start = call ptr @malloc(i64 %padded)
  ret ptr %start
}}

define internal ptr @aligned(ptr %start) {{
  %number = ptrtoint ptr %start to i64
  %up = add i64 %number, 63
  %even = and i64 %up, -64
  %place = inttoptr i64 %even to ptr
  ret ptr %place
}}

define void @worker(ptr %job) {{
entry:
  %next_place = getelementptr i64, ptr %job, i64 1
  %done_place = getelementptr i64, ptr %job, i64 2
  %pieces = call i64 @word(ptr %job, i64 6)
  %i0 = atomicrmw add ptr %next_place, i64 1 seq_cst
  %any = icmp slt i64 %i0, %pieces
  br i1 %any, label %begin, label %leave
begin:
  %address = call i64 @word(ptr %job, i64 3)
  %descriptor = inttoptr i64 %address to ptr
  %piece = call i64 @word(ptr %job, i64 4)
  %batch = call i64 @word(ptr %job, i64 5)
  %args = getelementptr i64, ptr %job, i64 8
  %start = call ptr @workspace(ptr %descriptor)
  %work = call ptr @aligned(ptr %start)
  br label %again
again:
  %i = phi i64 [ %i0, %begin ], [ %i1, %again ]
  %first = mul i64 %i, %piece
  %end = add i64 %first, %piece
  %short = icmp slt i64 %end, %batch
  %last = select i1 %short, i64 %end, i64 %batch
  call void @run_piece(ptr %descriptor, ptr %args, ptr %work, i64 %first, i64 %last)
  %i1 = atomicrmw add ptr %next_place, i64 1 seq_cst
  %done_before = atomicrmw add ptr %done_place, i64 1 seq_cst
  %more = icmp slt i64 %i1, %pieces
  br i1 %more, label %again, label %finish
finish:
  call void @free(ptr %start)
  br label %leave
leave:
  %before = atomicrmw sub ptr %job, i64 1 seq_cst
  %last_one = icmp eq i64 %before, 1
  br i1 %last_one, label %drop, label %out
drop:
  call void @free(ptr %job)
  br label %out
out:
  ret void
}}

define ptr @execute(ptr %frame) {{
entry:
  %args = alloca [{arg_words} x i64], align 8
  %schedule_args = alloca [{schedule_size} x i8], align 8
  %destroy_args = alloca [{destroy_size} x i8], align 8
  %metadata = call i1 @answers_metadata(ptr %frame)
  br i1 %metadata, label %nothing, label %staged
staged:
  %stage_place = getelementptr i8, ptr %frame, i64 {frame_stage}
  %stage = load i32, ptr %stage_place, align 4
  %executes = icmp eq i32 %stage, 3
  br i1 %executes, label %read, label %nothing
nothing:
  ret ptr null
read:
  %address = call i64 @attribute(ptr %frame, i64 0)
  %descriptor = inttoptr i64 %address to ptr
  %inputs = call i64 @word(ptr %descriptor, i64 3)
  %outputs = call i64 @word(ptr %descriptor, i64 4)
  %arrays = add i64 %inputs, %outputs
  %given_place = getelementptr i8, ptr %frame, i64 {frame_args}
  %given = load ptr, ptr %given_place, align 8
  %wanted_place = getelementptr i8, ptr %frame, i64 {frame_rets}
  %wanted = load ptr, ptr %wanted_place, align 8
  br label %fill
fill:
  %i = phi i64 [ 0, %read ], [ %i_next, %filled ]
  %batch = phi i64 [ 0, %read ], [ %rows, %filled ]
  %low = phi i64 [ 0, %read ], [ %low_next, %filled ]
  %i_more = icmp slt i64 %i, %arrays
  br i1 %i_more, label %one, label %ready
one:
  %is_input = icmp slt i64 %i, %inputs
  %o = sub i64 %i, %inputs
  %number = select i1 %is_input, i64 %i, i64 %o
  %list = select i1 %is_input, ptr %given, ptr %wanted
  %buffer_place = getelementptr ptr, ptr %list, i64 %number
  %buffer = load ptr, ptr %buffer_place, align 8
  %data_place = getelementptr i8, ptr %buffer, i64 {buffer_data}
  %data = load i64, ptr %data_place, align 8
  %numbers = call i64 @count(ptr %buffer)
  %size_slot = add i64 %i, {head}
  %size = call i64 @word(ptr %descriptor, i64 %size_slot)
  %rows = udiv i64 %numbers, %size
  %single = icmp eq i64 %rows, 1
  %shared = and i1 %single, %is_input
  %stride = select i1 %shared, i64 0, i64 %size
  %slot = mul i64 %i, 2
  %slot_place = getelementptr i64, ptr %args, i64 %slot
  store i64 %data, ptr %slot_place, align 8
  %stride_place = getelementptr i64, ptr %slot_place, i64 1
  store i64 %stride, ptr %stride_place, align 8
  br label %filled
filled:
  %own_low = select i1 %is_input, i64 0, i64 %data
  %low_next = or i64 %low, %own_low
  %i_next = add i64 %i, 1
  br label %fill
ready:
  %bytes = call i64 @word(ptr %descriptor, i64 5)
  %streamed = call i64 @word(ptr %descriptor, i64 8)
  %least = call i64 @word(ptr %descriptor, i64 9)
  %stream_numbers = mul i64 %streamed, %batch
  %stream_bytes = mul i64 %stream_numbers, %bytes
  %large = icmp uge i64 %stream_bytes, %least
  %odd = and i64 %low, 63
  %even = icmp eq i64 %odd, 0
  %aligned_kind = select i1 %large, i64 {streaming}, i64 {aligned}
  %stream_word = select i1 %even, i64 %aligned_kind, i64 {anywhere}
  %stream_slot = mul i64 %arrays, 2
  %stream_place = getelementptr i64, ptr %args, i64 %stream_slot
  store i64 %stream_word, ptr %stream_place, align 8
  %none = icmp eq i64 %batch, 0
  br i1 %none, label %nothing, label %some
some:
  %per_thread = call i64 @word(ptr %descriptor, i64 6)
  %most = call i64 @word(ptr %descriptor, i64 7)
  %worth = udiv i64 %batch, %per_thread
  %fewer = icmp ult i64 %worth, %most
  %threads = select i1 %fewer, i64 %worth, i64 %most
  %parallel = icmp ugt i64 %threads, 1
  br i1 %parallel, label %share, label %alone
alone:
  %start = call ptr @workspace(ptr %descriptor)
  %work = call ptr @aligned(ptr %start)
  call void @run_piece(ptr %descriptor, ptr %args, ptr %work, i64 0, i64 %batch)
  call void @free(ptr %start)
  ret ptr null
share:
  %cuts = mul i64 %threads, {pieces_per_thread}
  %cuts_less = sub i64 %cuts, 1
  %rounded = add i64 %batch, %cuts_less
  %raw = udiv i64 %rounded, %cuts
  %padded = add i64 %raw, 63
  %piece = and i64 %padded, -64
  %piece_less = sub i64 %piece, 1
  %batch_up = add i64 %batch, %piece_less
  %pieces = udiv i64 %batch_up, %piece
  %job = call ptr @malloc(i64 {job_bytes})
  store i64 %threads, ptr %job, align 8
  %j1 = getelementptr i64, ptr %job, i64 1
  store i64 0, ptr %j1, align 8
  %j2 = getelementptr i64, ptr %job, i64 2
  store i64 0, ptr %j2, align 8
  %j3 = getelementptr i64, ptr %job, i64 3
  store i64 %address, ptr %j3, align 8
  %j4 = getelementptr i64, ptr %job, i64 4
  store i64 %piece, ptr %j4, align 8
  %j5 = getelementptr i64, ptr %job, i64 5
  store i64 %batch, ptr %j5, align 8
  %j6 = getelementptr i64, ptr %job, i64 6
  store i64 %pieces, ptr %j6, align 8
  %words = add i64 %stream_slot, 1
  br label %copy
copy:
  %c = phi i64 [ 0, %share ], [ %c_next, %copy ]
  %word = call i64 @word(ptr %args, i64 %c)
  %c_slot = add i64 %c, 8
  %c_place = getelementptr i64, ptr %job, i64 %c_slot
  store i64 %word, ptr %c_place, align 8
  %c_next = add i64 %c, 1
  %c_more = icmp slt i64 %c_next, %words
  br i1 %c_more, label %copy, label %call_others
call_others:
  %api_place = getelementptr i8, ptr %frame, i64 {frame_api}
  %api = load ptr, ptr %api_place, align 8
  %context_place = getelementptr i8, ptr %frame, i64 {frame_context}
  %context = load ptr, ptr %context_place, align 8
  call void @llvm.memset.p0.i64(ptr %schedule_args, i8 0, i64 {schedule_size}, i1 false)
  store i64 {schedule_size}, ptr %schedule_args, align 8
  %s_context = getelementptr i8, ptr %schedule_args, i64 {schedule_context}
  store ptr %context, ptr %s_context, align 8
  %s_task = getelementptr i8, ptr %schedule_args, i64 {schedule_task}
  store ptr @worker, ptr %s_task, align 8
  %s_data = getelementptr i8, ptr %schedule_args, i64 {schedule_data}
  store ptr %job, ptr %s_data, align 8
  %schedule_place = getelementptr i8, ptr %api, i64 {api_schedule}
  %schedule = load ptr, ptr %schedule_place, align 8
  br label %calls
calls:
  %t = phi i64 [ 1, %call_others ], [ %t_next, %called ]
  %t_more = icmp slt i64 %t, %threads
  br i1 %t_more, label %call_one, label %own
call_one:
  %failed = call ptr %schedule(ptr %schedule_args)
  %scheduled = icmp eq ptr %failed, null
  br i1 %scheduled, label %called, label %not_scheduled
not_scheduled:
  %lost = atomicrmw sub ptr %job, i64 1 seq_cst
  call void @llvm.memset.p0.i64(ptr %destroy_args, i8 0, i64 {destroy_size}, i1 false)
  store i64 {destroy_size}, ptr %destroy_args, align 8
  %d_error = getelementptr i8, ptr %destroy_args, i64 {destroy_error}
  store ptr %failed, ptr %d_error, align 8
  %destroy_place = getelementptr i8, ptr %api, i64 {api_destroy}
  %destroy = load ptr, ptr %destroy_place, align 8
  call void %destroy(ptr %destroy_args)
  br label %called
called:
  %t_next = add i64 %t, 1
  br label %calls
own:
  %own_use = atomicrmw add ptr %job, i64 1 seq_cst
  call void @worker(ptr %job)
  br label %wait
wait:
  %done = load atomic i64, ptr %j2 seq_cst, align 8
  %all = icmp eq i64 %done, %pieces
  br i1 %all, label %gone, label %yield
yield:
  {call_yield}
  br label %wait
gone:
  %uses = atomicrmw sub ptr %job, i64 1 seq_cst
  %unused = icmp eq i64 %uses, 1
  br i1 %unused, label %drop, label %end
drop:
  call void @free(ptr %job)
  br label %end
end:
  ret ptr null
}}

define i64 @kernel(ptr %args, ptr %work, i64 %first, i64 %last) {{
entry:
  %in = load ptr, ptr %args, align 8
  %out_place = getelementptr i64, ptr %args, i64 2
  %out = load ptr, ptr %out_place, align 8
  br label %head
head:
  %i = phi i64 [ %first, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %last
  br i1 %more, label %body, label %done
body:
  %from = getelementptr float, ptr %in, i64 %i
  %x = load float, ptr %from, align 4
  %twice = fadd float %x, %x
  %to = getelementptr float, ptr %out, i64 %i
  store float %twice, ptr %to, align 4
  %next = add i64 %i, 1
  br label %head
done:
  ret i64 0
}}
"""

_OFFSETS = {
    "frame_extension": "XLA_FFI_CallFrame.extension_start",
    "frame_api": "XLA_FFI_CallFrame.api",
    "frame_context": "XLA_FFI_CallFrame.ctx",
    "frame_stage": "XLA_FFI_CallFrame.stage",
    "frame_args": "XLA_FFI_CallFrame.args.args",
    "frame_rets": "XLA_FFI_CallFrame.rets.rets",
    "frame_attributes": "XLA_FFI_CallFrame.attrs.attrs",
    "extension_type": "XLA_FFI_Extension_Base.type",
    "extension_metadata": "XLA_FFI_Metadata_Extension.metadata",
    "metadata_major": "XLA_FFI_Metadata.api_version.major_version",
    "metadata_minor": "XLA_FFI_Metadata.api_version.minor_version",
    "metadata_traits": "XLA_FFI_Metadata.traits",
    "metadata_state": "XLA_FFI_Metadata.state_type_id",
    "scalar_value": "XLA_FFI_Scalar.value",
    "buffer_data": "XLA_FFI_Buffer.data",
    "buffer_rank": "XLA_FFI_Buffer.rank",
    "buffer_dims": "XLA_FFI_Buffer.dims",
    "error_message": "XLA_FFI_Error_Create_Args.message",
    "error_code": "XLA_FFI_Error_Create_Args.errc",
    "state_context": "XLA_FFI_State_Set_Args.ctx",
    "state_type": "XLA_FFI_State_Set_Args.type_id",
    "state_state": "XLA_FFI_State_Set_Args.state",
    "schedule_context": "XLA_FFI_ThreadPool_Schedule_Args.ctx",
    "schedule_task": "XLA_FFI_ThreadPool_Schedule_Args.task",
    "schedule_data": "XLA_FFI_ThreadPool_Schedule_Args.data",
    "destroy_error": "XLA_FFI_Error_Destroy_Args.error",
    "api_error_create": "XLA_FFI_Api.XLA_FFI_Error_Create",
    "api_destroy": "XLA_FFI_Api.XLA_FFI_Error_Destroy",
    "api_state_set": "XLA_FFI_Api.XLA_FFI_State_Set",
    "api_schedule": "XLA_FFI_Api.XLA_FFI_ThreadPool_Schedule",
}
_SIZES = {
    "type_info_size": "XLA_FFI_TypeInfo",
    "error_size": "XLA_FFI_Error_Create_Args",
    "state_size": "XLA_FFI_State_Set_Args",
    "schedule_size": "XLA_FFI_ThreadPool_Schedule_Args",
    "destroy_size": "XLA_FFI_Error_Destroy_Args",
}
_WRONG_PROCESS = (
    "this executable calls machine code of phistar that belongs to another process, "
    "such as one from a cache on disk: trace the function again"
)


def handler_text(header: XlaHeader, process: int, yields: bool, pieces_per_thread: int) -> str:
    """The module of the handler.

    Args:
        header: Of the JAX that will call it.
        process: The number that call sites must have; positive, 63 bits.
        yields: Whether the C library has ``sched_yield``.
        pieces_per_thread: How finely large batches are cut.

    Raises:
        HeaderError: The header lacks something.
    """
    if header.offset("XLA_FFI_TypeInfo.deleter") != 16:
        # The words of type_info are written with the deleter as their third.
        from phistar.interop.xla_header import HeaderError

        raise HeaderError("XLA's struct XLA_FFI_TypeInfo has its deleter in an unknown place")
    words = 2 * MAX_ARRAYS + 2
    return _BODY.format(
        **{name: header.offset(path) for name, path in _OFFSETS.items()},
        **{name: header.size(struct) for name, struct in _SIZES.items()},
        major=header.version[0],
        minor=header.version[1],
        process=process,
        text=_WRONG_PROCESS,
        text_size=len(_WRONG_PROCESS) + 1,
        head=DESCRIPTOR_HEAD,
        arg_words=words,
        job_bytes=8 * (8 + words),
        pieces_per_thread=pieces_per_thread,
        declare_yield="declare i32 @sched_yield()" if yields else "",
        anywhere=STORE_ANYWHERE,
        aligned=STORE_ALIGNED,
        streaming=STORE_STREAMING,
        call_yield="%yielded = call i32 @sched_yield()" if yields else "",
    )

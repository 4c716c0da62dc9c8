# SPDX-License-Identifier: BSD-3-Clause
"""LLVM text to object code: the work itself, here or in a process of its own.

Run as a script it does one piece of work that comes through its standard input and ends. It imports
nothing of phistar, so that it starts quickly.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from types import ModuleType
from typing import Any

DONE_WORD, FAILED_WORD = b"done\n", b"fail\n"


def binding() -> ModuleType:
    """llvmlite, ready for this machine."""
    import llvmlite.binding  # type: ignore[import-untyped]

    llvm: ModuleType = llvmlite.binding
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def target_machine(cpu: str, features: str, opt_level: int) -> Any:
    """What code is made for."""
    target = binding().Target.from_default_triple()
    return target.create_target_machine(
        cpu=cpu, features=features, opt=opt_level, codemodel="jitdefault", jit=True
    )


def object_code(text: str, cpu: str, features: str, opt_level: int) -> bytes:
    """The object file of a module.

    Raises:
        RuntimeError: The text is not a module.
    """
    llvm = binding()
    with (
        llvm.create_context() as context,
        llvm.parse_assembly(text, context) as module,
        target_machine(cpu, features, opt_level) as target,
    ):
        return _emit_unlocked(target, module)


def _emit_unlocked(target: object, module: object) -> bytes:
    """As ``target.emit_object(module)``, but other threads may use LLVM meanwhile."""
    ffi = binding().ffi
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


def main() -> None:
    """One piece of work: a line of JSON, then the text; the answer is a word, a length and bytes.

    Who gave the work keeps our standard input open as long as the answer is wanted.
    """
    head = json.loads(sys.stdin.buffer.readline())
    text = sys.stdin.buffer.read(head["length"]).decode()
    threading.Thread(target=_exit_at_eof, daemon=True).start()
    os.nice(head["nice"])
    sys.path.append(head["path"])
    try:
        code = object_code(text, head["cpu"], head["features"], head["opt_level"])
        word, answer = DONE_WORD, code
    except RuntimeError as error:
        word, answer = FAILED_WORD, str(error).encode()
    sys.stdout.buffer.write(word + len(answer).to_bytes(8, "little") + answer)
    sys.stdout.buffer.flush()
    os._exit(0)


def _exit_at_eof() -> None:
    """End when nobody waits any more."""
    while os.read(0, 1 << 16):
        continue
    os._exit(1)


if __name__ == "__main__":
    main()

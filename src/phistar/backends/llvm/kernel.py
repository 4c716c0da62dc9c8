# SPDX-License-Identifier: BSD-3-Clause
"""A scalar program as machine code, from the cache if it was made before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from phistar.backends.llvm import cache, engine
from phistar.backends.llvm.call import Caller
from phistar.backends.llvm.collector import paused
from phistar.backends.llvm.lean import SYMBOL, Lean, lean_function, lean_text
from phistar.backends.llvm.long import LongLine, is_long
from phistar.backends.llvm.rolled import rolled_module, workspace
from phistar.backends.llvm.straight import straight_module
from phistar.backends.llvm.writer import Lanes
from phistar.scalar.program import Rolled, ScalarProgram, Signature, arithmetic


@dataclass(frozen=True)
class Kernel:
    """Machine code, ready to run.

    Attributes:
        call: Runs it on arrays (batch, size).
        lean: Runs it on one sample or a batch of moderate size, given as plain arrays, or None.
        shape: ``"straight"`` or ``"rolled"``.
        operations: Additions, subtractions and multiplications on a sample.
    """

    call: Caller
    lean: Lean | None
    shape: str
    operations: int


def text_of(program: ScalarProgram, lanes: Lanes) -> str:
    """The LLVM module of a program, with the lean way in."""
    return module_of(program, lanes)[0]


def module_of(program: ScalarProgram, lanes: Lanes) -> tuple[str, int]:
    """The same, and the vectors of workspace that it needs."""
    rolled = isinstance(program, Rolled)
    if isinstance(program, Rolled):
        text = rolled_module(program, lanes, engine.plain_timing())
        room = workspace(program)
    elif is_long(program):
        line = LongLine(program, lanes)
        text, room = line.text(), line.room
    else:
        text, room = straight_module(program, lanes), program.slots
    return text + lean_text(program.signature, lanes, room, hasty=rolled), room


def find(name: str, real: str) -> Kernel | None:
    """A kernel that was made before, by its fingerprint."""
    kept = cache.lookup(cache.key(f"{name} {real}"))
    return None if kept is None else _loaded(*kept)


def make(name: str, real: str, title: str, program: Callable[[], ScalarProgram]) -> Kernel:
    """A kernel, made now and kept.

    Args:
        name: Its fingerprint.
        real: ``"double"`` or ``"float"``.
        title: What it is, for people who look into the cache.
        program: Gives the scalar program.
    """
    lanes = engine.lanes_for(engine.host(), real)
    with paused:
        made = program()
        text, room = module_of(made, lanes)
    meta = {
        "name": title,
        "shape": "rolled" if isinstance(made, Rolled) else "straight",
        "inputs": list(made.signature.inputs.items()),
        "outputs": list(made.signature.outputs.items()),
        "lanes": lanes.width,
        "real": real,
        "workspace": room,
        "operations": arithmetic(made.count()),
    }
    code = engine.emit(text)
    cache.keep(cache.key(f"{name} {real}"), code, meta)
    return _loaded(code, meta)


def _loaded(object_code: bytes, meta: dict[str, Any]) -> Kernel:
    code = engine.load(object_code, symbols=(SYMBOL,))
    signature = Signature(dict(meta["inputs"]), dict(meta["outputs"]))
    lanes = Lanes(meta["lanes"], meta["real"])
    caller = Caller(code, signature, lanes, meta["workspace"], meta["operations"])
    return Kernel(caller, lean_function(code), meta["shape"], meta["operations"])

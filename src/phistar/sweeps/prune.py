# SPDX-License-Identifier: BSD-3-Clause
"""A program without the streams that no output depends on."""

from __future__ import annotations

from dataclasses import replace

from phistar.sweeps.ir import StreamProgram


def prune(program: StreamProgram) -> StreamProgram:
    """The same outputs from a table that holds nothing else; streams are numbered anew.

    ``a = leaf; b = H a; c = H* b; outputs {b}``  becomes  ``a = leaf; b = H a; outputs {b}``.
    """
    kept = list(program.live())
    number = {old: new for new, old in enumerate(kept)}
    nodes = [program.nodes[old] for old in kept]
    return StreamProgram(
        nodes=[replace(n, operands=tuple(number[o] for o in n.operands)) for n in nodes],
        definitions={number[r]: number[d] for r, d in program.definitions.items() if r in number},
        names={number[s]: name for s, name in program.names.items() if s in number},
        outputs={name: number[s] for name, s in program.outputs.items()},
    )


def program_listing(program: StreamProgram) -> str:
    """Every stream with its number, statement, type and name, one line each."""
    return "\n".join(_line(program, stream) for stream in range(len(program.nodes)))


def _line(program: StreamProgram, stream: int) -> str:
    node = program.nodes[stream]
    words = [node.op]
    if node.op == "sum":
        pairs = zip(node.data, node.operands, strict=True)
        words += [f"{'+' if factor > 0 else ''}{factor}·%{operand}" for factor, operand in pairs]
    elif node.op == "rec":
        words.append(f"of %{program.definitions[stream]}")
    else:
        words += [node.data] if node.data is not None else []
        words += [f"%{operand}" for operand in node.operands]
    names = [program.names[stream]] if stream in program.names else []
    names += [f"output {name}" for name, s in program.outputs.items() if s == stream]
    note = f"   {', '.join(names)}" if names else ""
    return f"%{stream} = {' '.join(words)} : {node.type.name.lower()}{note}"

# SPDX-License-Identifier: BSD-3-Clause
"""Spatial accelerations become classical ones, which cost a fifth less.

With c = (0; ω × v) at each link, a' = a + c - Eφ*c and b' = b - Mc give every acceleration
y = φ*(... + a) the value y' = y + c and leave My + b as it is. So a program may change over if its
accelerations are read through My + b alone. Then linear velocities are not needed at all, and

    U = α~ + ω~ω~   angular_acceleration_matrix, shared by the link and its children
    φ*y' + a'       shift_out_classical: R*(a + U p), and joint_bias: what the joint's rate adds
    My' + b'        rigid_force: m a + U h, and a moment from U and the second moments
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from phistar.sweeps.ir import Node, StreamProgram, Type


@dataclass(frozen=True)
class _Matches:
    """What changes: streams by number.

    Attributes:
        joint: crm(V, H*v) -> V.
        free: crf(V, MV) -> V.
        accelerations: y -> (V, its shift_out), where y = crm(V, H*v) + shift_out y + ...
    """

    joint: dict[int, int]
    free: dict[int, int]
    accelerations: dict[int, tuple[int, int]]


def with_classical_accelerations(program: StreamProgram) -> StreamProgram | None:
    """The program with classical accelerations, or None if an output would notice."""
    found = _find_matches(program)
    if not found.joint or not _is_unobservable(program, found):
        return None
    return _ClassicalRewriter(program, found).run()


def _find_matches(program: StreamProgram) -> _Matches:
    nodes = program.nodes
    joint: dict[int, int] = {}
    free: dict[int, int] = {}
    for stream in program.live():
        node = nodes[stream]
        if node.op == "crm" and _joint_rate(program, node.operands[0]) == node.operands[1]:
            joint[stream] = node.operands[0]
        if node.op == "crf" and _joint_rate(program, node.operands[0]) is not None:
            momentum = nodes[node.operands[1]]
            if _is_rigid(program, momentum) and momentum.operands[1] == node.operands[0]:
                free[stream] = node.operands[0]
    return _Matches(joint, free, _find_accelerations(program, joint))


def _find_accelerations(
    program: StreamProgram, joint: dict[int, int]
) -> dict[int, tuple[int, int]]:
    found = {}
    for stream in program.recursions:
        terms = _terms(program, program.definitions[stream])
        plain = [operand for operand, factor in terms.items() if factor == 1]
        bias = [o for o in plain if o in joint]
        shifts_out = [o for o in plain if _is_shift_out_of(program.nodes[o], stream)]
        if len(bias) == 1 and shifts_out:
            found[stream] = (joint[bias[0]], shifts_out[0])
    return found


def _joint_rate(program: StreamProgram, stream: int) -> int | None:
    """The stream H*v if another one is V = H*v + shift_out V."""
    if program.nodes[stream].op != "rec":
        return None
    terms = _terms(program, program.definitions[stream])
    others = [
        o
        for o, factor in terms.items()
        if factor == 1 and not _is_shift_out_of(program.nodes[o], stream)
    ]
    if len(terms) != 2 or len(others) != 1 or program.nodes[others[0]].op != "Ht":
        return None
    return others[0]


def _terms(program: StreamProgram, stream: int) -> dict[int, Fraction]:
    node = program.nodes[stream]
    return dict(zip(node.operands, node.data, strict=True)) if node.op == "sum" else {}


def _is_shift_out_of(node: Node, stream: int) -> bool:
    return node.op == "shift_out" and node.operands == (stream,)


def _is_rigid(program: StreamProgram, node: Node) -> bool:
    return node.op == "inertia" and program.nodes[node.operands[0]].op == "rigid"


def _force_pairs(program: StreamProgram, found: _Matches, stream: int) -> list[tuple[int, int]]:
    """(M y, b) among the terms of a sum, with equal factors and the same velocity."""
    terms = _terms(program, stream)
    pairs = []
    for bias, factor in terms.items():
        if bias not in found.free:
            continue
        for product, other in terms.items():
            node = program.nodes[product]
            if _is_rigid(program, node) and factor == other:
                y = node.operands[1]
                if y in found.accelerations and found.accelerations[y][0] == found.free[bias]:
                    pairs.append((product, bias))
                    break
    return pairs


def _is_unobservable(program: StreamProgram, found: _Matches) -> bool:
    """Whether biases enter accelerations alone, and these are read through M y + b alone."""
    if any(stream in found.accelerations for stream in program.outputs.values()):
        return False
    for stream in program.live():
        paired = {p for pair in _force_pairs(program, found, stream) for p in pair}
        operands = program.nodes[stream].operands
        if any(_is_noticed(program, found, stream, each, paired) for each in operands):
            return False
    return True


def _is_noticed(
    program: StreamProgram, found: _Matches, stream: int, operand: int, paired: set[int]
) -> bool:
    """Whether a stream reads what changes otherwise than through M y + b.

    Args:
        program, found: The program, and what was found in it.
        stream: Who reads.
        operand: What it reads.
        paired: Products M y and biases b that the stream adds up.
    """
    shifts_out = {shift_out for _, shift_out in found.accelerations.values()}
    if operand in found.joint or operand in shifts_out:
        homes = {program.definitions[y] for y in found.accelerations}
        if stream not in homes:
            return True
    inertia = program.nodes[operand]
    reads = _is_rigid(program, inertia) and inertia.operands[1] in found.accelerations
    if (operand in found.free or reads) and operand not in paired:
        return True
    through = stream in shifts_out or _is_rigid(program, program.nodes[stream])
    return operand in found.accelerations and not through


class _ClassicalRewriter:
    """One program on its way to another."""

    def __init__(self, program: StreamProgram, found: _Matches) -> None:
        self.old = program
        self.found = found
        self.new = StreamProgram()
        self._done: dict[int, int] = {}
        self._shifted = {shift_out: y for y, (_, shift_out) in found.accelerations.items()}

    def run(self) -> StreamProgram:
        """The new program; streams are made before those that use them."""
        for name, stream in self.old.outputs.items():
            self.new.outputs[name] = self.copy(stream)
        for stream, name in self.old.names.items():
            if stream in self._done:
                self.new.names.setdefault(self._done[stream], name)
        return self.new

    def copy(self, stream: int) -> int:
        """The new stream of an old one."""
        if stream not in self._done:
            node = self.old.nodes[stream]
            if node.op == "rec":
                self._done[stream] = self.new.recursion(node.data, node.type)
                self.new.define(self._done[stream], self.copy(self.old.definitions[stream]))
            else:
                self._done[stream] = self._made(stream, node)
        return self._done[stream]

    def _made(self, stream: int, node: Node) -> int:
        found = self.found
        if stream in found.joint:
            velocity = found.joint[stream]
            carried = next(
                o
                for o in _terms(self.old, self.old.definitions[velocity])
                if self.old.nodes[o].op == "shift_out"
            )
            self.copy(velocity)
            pair = (self.copy(carried), self.copy(node.operands[1]))
            return self.new.add("joint_bias", pair, Type.MOTION)
        if stream in self._shifted:
            y = self._shifted[stream]
            return self.new.add(
                "shift_out_classical", (self.copy(y), self._turning(y)), Type.MOTION
            )
        if node.op == "sum":
            return self._sum(stream)
        operands = tuple(self.copy(o) for o in node.operands)
        return self.new.add(node.op, operands, node.type, node.data)

    def _turning(self, y: int) -> int:
        operands = (self.copy(self.found.accelerations[y][0]), self.copy(y))
        return self.new.add(
            "angular_acceleration_matrix", operands, Type.ANGULAR_ACCELERATION_MATRIX
        )

    def _sum(self, stream: int) -> int:
        terms = _terms(self.old, stream)
        fused = []
        for product, bias in _force_pairs(self.old, self.found, stream):
            y = self.old.nodes[product].operands[1]
            force = self.new.add("rigid_force", (self.copy(y), self._turning(y)), Type.FORCE)
            fused.append((terms.pop(product), force))
            del terms[bias]
        rest = [(factor, self.copy(o)) for o, factor in terms.items()]
        return self.new.sum([*fused, *rest])

# SPDX-License-Identifier: BSD-3-Clause
"""Quaternions of q in C code: those that drifted from length one are made unit, as elsewhere."""

from __future__ import annotations

from phistar.backends.c.interface import Interface, length_tolerances
from phistar.scalar.program import Unrolled

QUATERNION_SIZE = 4

_NORMALIZE_TEMPLATE = """\
/* A quaternion that is unit but for drift is made unit, one further away is no number. */
static void {name}(const {real} *q, {real} *unit)
{{
    const {real} d = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - {one};
    const {real} size = d < {zero} ? -d : d;
    const {real} near = size <= {kept} ? {one} : {one} + d * ({bend} * d - {half});
    const {real} scale = size <= {most} ? near : {zero} / {zero};

    unit[0] = scale * q[0];
    unit[1] = scale * q[1];
    unit[2] = scale * q[2];
    unit[3] = scale * q[3];
}}"""


def normalize_name(face: Interface) -> str:
    """The function that makes a quaternion unit; static, beside the function that uses it."""
    return f"{face.name}_unit"


def normalize_function(face: Interface) -> str:
    """Its definition.

    With d = |q|² - 1 the scale 1/√(1 + d) is 1 - d/2 + 3d²/8 to less than a rounding for every d
    that is allowed. Where d is rounding alone the scale is one, and no bit changes.
    """
    real = face.real
    kept, most = length_tolerances(real)
    numbers = {"zero": 0.0, "half": 0.5, "one": 1.0, "bend": 0.375, "kept": kept, "most": most}
    texts = {name: real.literal(x) for name, x in numbers.items()}
    return _NORMALIZE_TEMPLATE.format(name=normalize_name(face), real=real.type, **texts)


def quaternions_read(program: Unrolled) -> list[int]:
    """Entries of q with which the quaternions begin that an unrolled program reads."""
    nodes = (program.block.graph.nodes[number] for number in program.block.live_nodes)
    read = {node[1][1] for node in nodes if node[0] == "load" and node[1][0] == "q"}
    starts = program.signature.quaternions
    return [start for start in starts if read & {*range(start, start + QUATERNION_SIZE)}]

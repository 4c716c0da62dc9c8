# SPDX-License-Identifier: BSD-3-Clause
"""A C program that runs exported functions on embedded inputs and checks what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phistar.arrays import Array
from phistar.backends.c.interface import Interface
from phistar.backends.c.tokens import DOUBLE, CPrecision, IdentifierScope, array_definition
from phistar.backends.c.unit_quaternions import QUATERNION_SIZE
from phistar.model.configuration import QUATERNION_LENGTH_TOLERANCE, random_configuration
from phistar.model.model import Model
from phistar.scalar.interpret import run
from phistar.scalar.program import Looped, ScalarProgram, Signature

TEST_SAMPLES = 4
QUATERNION_DRIFT = 0.5 * QUATERNION_LENGTH_TOLERANCE
"""Of the length of the quaternions of the last sample."""
DOUBLE_TOLERANCE = 1e-12
"""Error of double precision, relative to the largest entry of an output, that is let pass."""
MIN_FLOAT_TOLERANCE = 1e-5
"""The same of single precision, where the robot's conditioning does not make it larger."""

_C_HELPERS = """\
static double largest_error(const {real} *got, const double *want, int n)
{{
    double scale = 0.0, worst = 0.0;
    int i;

    for (i = 0; i < n; ++i) {{
        const double size = fabs(want[i]);
        if (size > scale) {{
            scale = size;
        }}
    }}
    for (i = 0; i < n; ++i) {{
        const double error = fabs((double)got[i] - want[i]) / (scale > 0.0 ? scale : 1.0);
        if (!(error <= worst)) {{
            worst = error;
        }}
        if (error != error) {{
            break;
        }}
    }}
    return worst;
}}

static double larger(double a, double b)
{{
    return a > b || a != a ? a : b;
}}

static int report(const char *name, double error, double allowed)
{{
    const int fine = error <= allowed;

    printf("%s: max relative error %.1e, allowed %.1e: %s\\n", name, error, allowed,
           fine ? "ok" : "FAILED");
    return fine ? 0 : 1;
}}"""


@dataclass(frozen=True)
class ExpectedResults:
    """Inputs and what must come out.

    Attributes:
        inputs, outputs: (samples, size) by name.
        tolerance: Error, relative to the largest entry of an output, that is let pass.
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    tolerance: float


def random_inputs(model: Model, signature: Signature, seed: int = 0) -> dict[str, Array]:
    """A few random configurations of a robot, and random numbers for all other inputs.

    Quaternions of the last sample have drifted from length one.
    """
    rng = np.random.default_rng(seed)
    inputs = {}
    for name, size in signature.inputs.items():
        at_q = name in signature.configurations and size == model.nq
        shape = (TEST_SAMPLES, size)
        inputs[name] = (
            random_configuration(model, rng, shape[:1]) if at_q else rng.normal(size=shape)
        )
    for name in signature.configurations:
        for start in signature.quaternions:
            inputs[name][-1, start : start + QUATERNION_SIZE] *= 1.0 + QUATERNION_DRIFT
    return inputs


def expected_results(
    program: ScalarProgram, inputs: Mapping[str, Array], real: CPrecision
) -> ExpectedResults:
    """What the scalar program gives, in double precision, for inputs of the given precision."""
    if real is DOUBLE:
        given = {name: np.asarray(x, dtype=np.float64) for name, x in inputs.items()}
        outputs = run(program, with_unit_quaternions(program.signature, given))
        return ExpectedResults(given, outputs, DOUBLE_TOLERANCE)
    single = {name: np.asarray(x, dtype=np.float32) for name, x in inputs.items()}
    given = {name: x.astype(np.float64) for name, x in single.items()}
    outputs = run(program, with_unit_quaternions(program.signature, given))
    single = with_unit_quaternions(program.signature, single)
    measured = relative_error(run(_with_float_tables(program), single), outputs)
    return ExpectedResults(
        given, outputs, max(MIN_FLOAT_TOLERANCE, float(f"{10.0 * measured:.1g}"))
    )


def with_unit_quaternions(signature: Signature, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs (samples, size) whose quaternions have length one."""
    result = dict(inputs)
    for start in signature.quaternions:
        q = result["q"].copy()
        part = q[:, start : start + QUATERNION_SIZE]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
        result["q"] = q
    return result


def relative_error(got: Mapping[str, Array], want: Mapping[str, Array]) -> float:
    """The largest error of a sample's output, relative to its largest entry."""
    worst = 0.0
    for name, x in want.items():
        for ours, theirs in zip(got[name], x, strict=True):
            scale = np.abs(theirs).max(initial=0.0) or 1.0
            worst = max(worst, float(np.abs(ours - theirs).max(initial=0.0) / scale))
    return worst


def _with_float_tables(program: ScalarProgram) -> ScalarProgram:
    """The program with tables in single precision."""
    if not isinstance(program, Looped):
        return program
    rows = [[float(np.float32(x)) for x in row] for row in program.links.table]
    return replace(program, links=replace(program.links, table=rows))


def selftest(header: str, checks: Sequence[tuple[Interface, ExpectedResults]]) -> str:
    """The C file, without the line that says who wrote it."""
    real = checks[0][0].real.type
    functions = [_check_function(k, *check) for k, check in enumerate(checks, 1)]
    calls = " | ".join(f"check_{k}()" for k in range(1, len(checks) + 1))
    includes = f'#include <math.h>\n#include <stdio.h>\n\n#include "{header}"'
    main = f"int main(void)\n{{\n    return {calls};\n}}"
    parts = ["/* Returns 0 if every function gives the embedded outputs. */", includes]
    return "\n\n".join([*parts, _C_HELPERS.format(real=real), *functions, main]) + "\n"


def _check_function(number: int, face: Interface, wanted: ExpectedResults) -> str:
    names = IdentifierScope([face.name, *face.arguments])
    i, worst = names.unique_name("i"), names.unique_name("worst")
    count = len(next(iter(wanted.inputs.values()), ()))
    tables, results, compared = [], [], []
    for name, c, size in face.inputs:
        tables.append(_samples_table(face.real, c, wanted.inputs[name], size))
    for name, c, size in face.outputs:
        want = names.unique_name(f"want_{c}")
        tables.append(_samples_table(DOUBLE, want, wanted.outputs[name], size))
        results.append(f"    {face.real.type} {c}[{max(size, 1)}];")
        call = f"largest_error({c}, {want}[{i}], {size})"
        compared.append(f"        {worst} = larger({worst}, {call});")
    if face.work_entries:
        results.append(f"    static {face.real.type} {face.work_name}[{face.work_size_macro}];")
    given = [f"{c}[{i}]" for _, c, _ in face.inputs]
    rest = [c for _, c, _ in face.outputs] + ([face.work_name] if face.work_entries else [])
    return "\n".join(
        [
            f"static int check_{number}(void)\n{{",
            *tables,
            *results,
            f"    double {worst} = 0.0;\n    int {i};\n",
            f"    for ({i} = 0; {i} < {count}; ++{i}) {{",
            f"        {face.name}({', '.join([*given, *rest])});",
            *compared,
            f'    }}\n    return report("{face.name}", {worst}, {wanted.tolerance!r});\n}}',
        ]
    )


def _samples_table(real: CPrecision, name: str, rows: Array, size: int) -> str:
    """A table of (samples, size)."""
    items = []
    for row in rows:
        numbers = [real.literal(float(x)) for x in row] or [real.literal(0.0)]
        items += [f"{{{numbers[0]}", *numbers[1:]]
        items[-1] += "}"
    return array_definition(
        f"static const {real.type} {name}[{len(rows)}][{max(size, 1)}]", items, " " * 4
    )

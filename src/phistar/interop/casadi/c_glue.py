# SPDX-License-Identifier: BSD-3-Clause
"""C around exported programs: a robot's dynamics in the form in which CasADi calls functions.

A function of CasADi in C is ``int f(const double **arg, double **res, long long *iw, double *w,
int mem)`` with others beside it that tell its arguments. Any pointer may be NULL: an argument that
is zero, a result that nobody wants. Matrices are nonzeros, column by column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phistar.arrays import Array
from phistar.backends.c.interface import Interface
from phistar.c_export import function_c
from phistar.interop.casadi.casadi_quantities import CasadiQuantity
from phistar.model.configuration import quaternion_starts

_HEAD = """\
#include <math.h>
#include <stddef.h>
#include <string.h>

#define NQ {nq}
#define NV {nv}
#define SAMPLES {samples}

static const double *given(const double *x, int sample, int size, double *zero)
{{
    if (x) return x + (size_t)sample * size;
    memset(zero, 0, (size_t)size * sizeof *zero);
    return zero;
}}

/* Nonzeros of one block; places are row by row. */
static void keep(const double *dense, const int *places, int count, double *out, int sample)
{{
    if (out) for (int k = 0; k < count; ++k) out[(size_t)sample * count + k] = dense[places[k]];
}}

/* a += sign * b* c */
static void add_product(double *a, const double *b, const double *c, double sign)
{{
    for (int l = 0; l < NV; ++l)
        for (int i = 0; i < NV; ++i) {{
            const double factor = sign * b[l * NV + i];
            for (int j = 0; j < NV; ++j) a[i * NV + j] += factor * c[l * NV + j];
        }}
}}

static void transpose(const double *a, double *out)
{{
    for (int i = 0; i < NV; ++i)
        for (int j = 0; j < NV; ++j) out[j * NV + i] = a[i * NV + j];
}}

/* Quaternions of any length are made unit. */
static void unit(const double *q, double *out)
{{
    memcpy(out, q, NQ * sizeof *q);
{quaternions}}}
"""

_QUATERNION = """\
    {{
        double *x = out + {start};
        const double scale = 1.0 / sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]);
        for (int i = 0; i < 4; ++i) x[i] *= scale;
    }}
"""


_INVERSE_SECOND = """\
/* Second derivatives of u · inverse dynamics, column by column along unit steps of q, then of v. */
static void inverse_second(const double *q, const double *v, const double *vdot, const double *u,
                           double *qq, double *vq, double *vv, double *mass_q, double *scratch)
{{
    double *dq = scratch, *dv = dq + NV, *dvdot = dv + NV;
    double *w_q = dvdot + NV, *w_v = w_q + NV, *w_vdot = w_v + NV;
    double *work = w_vdot + NV;
    const double *w = u;
    (void)work;
    memset(dq, 0, 3 * NV * sizeof *dq);
    for (int k = 0; k < 2 * NV; ++k) {{
        double *unit_step = (k < NV ? dq : dv) + k % NV;
        *unit_step = 1.0;
        {hvp};
        *unit_step = 0.0;
        for (int i = 0; i < NV; ++i) {{
            const int place = i * NV + k % NV;
            if (k < NV) {{
                qq[place] = w_q[i];
                vq[place] = w_v[i];
                mass_q[place] = w_vdot[i];
            }} else {{
                vv[place] = w_v[i];
            }}
        }}
    }}
}}
"""

_SECOND_OF_INVERSE = """\
        inverse_second(q, v, vdot, w_in, qq, vq, vv, mass_q, work);
        transpose(vq, qv);
        transpose(mass_q, q_mass);
"""

_SECOND_OF_FORWARD = """\
        {linearize};
        for (int i = 0; i < NV; ++i) {{
            u[i] = 0.0;
            for (int j = 0; j < NV; ++j) u[i] += vdot_tau[i * NV + j] * w_in[j];
        }}
        inverse_second(q, v, vdot, u, qq, vq, vv, m_q, work);
        memset(mass_q, 0, NV * NV * sizeof *mass_q);
        add_product(mass_q, vdot_tau, m_q, -1.0);
        transpose(mass_q, q_mass);
        add_product(qq, m_q, vdot_q, 1.0);
        add_product(qq, vdot_q, m_q, 1.0);
        add_product(vq, vdot_v, m_q, 1.0);
        for (int i = 0; i < NV * NV; ++i) {{
            qq[i] = -qq[i];
            vq[i] = -vq[i];
            vv[i] = -vv[i];
        }}
        transpose(vq, qv);
"""


@dataclass(frozen=True)
class CoreFunction:
    """A function of CasADi in C: its name, sparsities, in CasADi's compressed form, and body."""

    name: str
    inputs: Sequence[Sequence[int]]
    outputs: Sequence[Sequence[int]]
    body: str
    work: int

    def text(self) -> str:
        """The function and those beside it."""
        return "\n".join([self.body, *self._about()])

    def _about(self) -> Iterable[str]:
        name = self.name
        for kind, patterns in (("in", self.inputs), ("out", self.outputs)):
            yield f"long long {name}_n_{kind}(void) {{ return {len(patterns)}; }}"
            for k, pattern in enumerate(patterns):
                numbers = ", ".join(map(str, pattern))
                yield f"static const long long {name}_{kind}{k}[] = {{{numbers}}};"
            rows = ", ".join(f"{name}_{kind}{k}" for k in range(len(patterns)))
            yield f"static const long long *const {name}_{kind}[] = {{{rows}}};"
            yield (
                f"const long long *{name}_sparsity_{kind}(long long i) "
                f"{{ return i < {len(patterns)} ? {name}_{kind}[i] : 0; }}"
            )
        yield (
            f"int {name}_work(long long *sz_arg, long long *sz_res, long long *sz_iw, "
            "long long *sz_w)\n{\n"
            f"    if (sz_arg) *sz_arg = {len(self.inputs)};\n"
            f"    if (sz_res) *sz_res = {len(self.outputs)};\n"
            "    if (sz_iw) *sz_iw = 0;\n"
            f"    if (sz_w) *sz_w = {self.work};\n"
            "    return 0;\n}"
        )


def _call(face: Interface, names: Mapping[str, str] = {}) -> str:
    """A call of an exported function on variables of the same names."""
    arrays = [names.get(name, name) for name, _, _ in (*face.inputs, *face.outputs)]
    return f"{face.name}({', '.join([*arrays, 'work'] if face.work_entries else arrays)})"


def _places(pattern: Array) -> list[int]:
    """Nonzeros, column by column, as places in a matrix row by row."""
    columns, rows = np.nonzero(pattern.T)
    return [int(place) for place in rows * pattern.shape[1] + columns]


class GlueWriter:
    """The C file of a quantity's four functions.

    Args:
        quantity: Inverse or forward dynamics of a robot.
        samples: In one call.
        name: What names of functions begin with.
        patterns: CasADi's sparsities in compressed form, by kind: of the arguments, and of the
            results of each function.
    """

    def __init__(
        self,
        quantity: CasadiQuantity,
        samples: int,
        name: str,
        patterns: Mapping[str, Sequence[Sequence[int]]],
    ) -> None:
        self._quantity, self._samples, self._name = quantity, samples, name
        self._patterns = patterns
        self._model = quantity.robot.model
        forward = quantity.name == "forward_dynamics"
        self._programs = {
            "value": quantity.name,
            "first": "linearize" if forward else "linearize_inverse",
            "products": f"{quantity.name}_vjp",
            "second": "inverse_dynamics_hvp",
        }
        made = {kind: function_c(self._model, program) for kind, program in self._programs.items()}
        self.sources = {self._programs[kind]: source for kind, (source, _) in made.items()}
        self._faces = {kind: face for kind, (_, face) in made.items()}
        self._forward = forward
        self._work = max(face.work_entries for face in self._faces.values())

    def text(self) -> str:
        """The file."""
        head = _HEAD.format(
            nq=self._model.nq,
            nv=self._model.nv,
            samples=self._samples,
            quaternions="".join(
                _QUATERNION.format(start=start) for _, start in quaternion_starts(self._model)
            ),
        )
        declared = [f"{self._prototype(face)};" for face in self._faces.values()]
        hvp = _call(self._faces["second"])
        functions = [self._value(), self._first(), self._products(), self._second()]
        parts = [head, *declared, _INVERSE_SECOND.format(hvp=hvp), *(f.text() for f in functions)]
        return "\n".join(parts) + "\n"

    @staticmethod
    def _prototype(face: Interface) -> str:
        arrays = [f"const double *{c}" for _, c, _ in face.inputs]
        arrays += [f"double *{c}" for _, c, _ in face.outputs]
        arrays += ["double *work"] if face.work_entries else []
        return f"void {face.name}({', '.join(arrays)})"

    def _function(
        self, kind: str, locals_: Mapping[str, int], body: str, tables: Sequence[str] = ()
    ) -> CoreFunction:
        """A function whose body is repeated for each sample, with arrays from the workspace."""
        weighted = kind in ("products", "second")
        inputs = [*self._quantity.inputs, *(["w_in"] if weighted else [])]
        scratch = {"q": self._model.nq, **locals_}
        lines = ["    (void)iw;", "    (void)mem;"]
        place = 0
        for array, size in {**{f"{x}_zero": self._model.nq for x in inputs}, **scratch}.items():
            lines.append(f"    double *{array} = workspace + {place};")
            place += size
        lines.append(f"    double *work = workspace + {place};")
        lines.append("    (void)work;")
        lines.append("    for (int s = 0; s < SAMPLES; ++s) {")
        for k, x in enumerate(inputs):
            size = "NQ" if x == "q" else "NV"
            if x == "q":
                lines.append(f"        unit(given(arg[{k}], s, {size}, q_zero), q);")
            else:
                lines.append(f"        const double *{x} = given(arg[{k}], s, {size}, {x}_zero);")
        name = f"{self._name}_{kind}"
        lead = f"int {name}(const double **arg, double **res, long long *iw, double *workspace, "
        lines = [*tables, lead + "int mem)", "{", *lines, body.rstrip("\n"), "    }"]
        lines += ["    return 0;", "}"]
        # Inverse second derivatives take six vectors before what programs need.
        work = place + 6 * self._model.nv + self._work
        given = [*self._patterns["inputs"], *(self._patterns["weights"] if weighted else [])]
        return CoreFunction(name, given, self._patterns[kind], "\n".join(lines), work)

    def _value(self) -> CoreFunction:
        result = self._quantity.output
        body = (
            f"        {_call(self._faces['value'])};\n"
            f"        if (res[0]) memcpy(res[0] + s * NV, {result}, NV * sizeof *{result});"
        )
        return self._function("value", {result: self._model.nv}, body)

    def _tables(self, kind: str, patterns: Iterable[Array]) -> list[str]:
        tables = []
        for k, pattern in enumerate(patterns):
            places = _places(pattern)
            numbers = ", ".join(map(str, places or [0]))
            tables.append(f"static const int {kind}_places{k}[] = {{{numbers}}};")
        return tables

    def _first(self) -> CoreFunction:
        n, output = self._model.nv, self._quantity.output
        outputs = [name for name, _, _ in self._faces["first"].outputs]
        sizes = {name: n if name == output else n * n for name in outputs}
        lines = [f"        {_call(self._faces['first'])};"]
        patterns = self._quantity.first_patterns
        for k, (argument, pattern) in enumerate(patterns.items()):
            lines.append(
                f"        keep({output}_{argument}, first_places{k}, {int(pattern.sum())}, "
                f"res[{k}], s);"
            )
        tables = self._tables("first", patterns.values())
        return self._function("first", sizes, "\n".join(lines), tables)

    def _products(self) -> CoreFunction:
        n = self._model.nv
        names = {f"w_{x}": n for x in self._quantity.inputs}
        lines = [f"        {_call(self._faces['products'], {'w': 'w_in'})};"]
        for k, array in enumerate(names):
            lines.append(
                f"        if (res[{k}]) memcpy(res[{k}] + s * NV, {array}, NV * sizeof *{array});"
            )
        return self._function("products", names, "\n".join(lines))

    def _second(self) -> CoreFunction:
        n = self._model.nv
        matrices = ["qq", "qv", "vq", "vv", "mass_q", "q_mass"]
        sizes = dict.fromkeys(matrices, n * n)
        third = self._quantity.inputs[-1]
        if self._forward:
            outputs = [name for name, _, _ in self._faces["first"].outputs]
            sizes |= {name: n if name == "vdot" else n * n for name in outputs}
            sizes |= {"m_q": n * n, "u": n}
            body = _SECOND_OF_FORWARD.format(linearize=_call(self._faces["first"]))
        else:
            body = _SECOND_OF_INVERSE
        held = {
            ("q", "q"): "qq", ("q", "v"): "qv", ("v", "q"): "vq", ("v", "v"): "vv",
            ("q", third): "q_mass", (third, "q"): "mass_q",
        }  # fmt: skip
        patterns = self._quantity.second_patterns
        for k, (pair, pattern) in enumerate(patterns.items()):
            body += (
                f"        keep({held[pair]}, second_places{k}, {int(pattern.sum())}, "
                f"res[{k}], s);\n"
            )
        return self._function("second", sizes, body, self._tables("second", patterns.values()))


def compressed(sparsity: Any) -> list[int]:
    """CasADi's numbers for a sparsity: rows, columns, and where nonzeros are."""
    return [int(x) for x in sparsity.compress()]

# SPDX-License-Identifier: BSD-3-Clause
"""C around exported programs: a robot's quantities in the form in which CasADi calls functions.

A function of CasADi in C is ``int f(const double **arg, double **res, long long *iw, double *w,
int mem)`` with others beside it that tell its arguments. Any pointer may be NULL: an argument that
is zero, a result that nobody wants. Matrices are nonzeros, column by column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.backends.c.interface import Interface
from phistar.c_export import function_c
from phistar.interop.casadi.casadi_quantities import CasadiQuantity
from phistar.model.configuration import quaternion_starts

if TYPE_CHECKING:
    from phistar.interop.casadi.casadi_package import Sparsity

_HEAD = """\
#include <math.h>
#include <stddef.h>
#include <string.h>

#define NQ {nq}
#define NV {nv}
#define SIZE {size}
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


def call_of(face: Interface, names: Mapping[str, str] = {}) -> str:
    """A call of an exported function on variables of the same names."""
    arrays = [names.get(name, name) for name, _, _ in (*face.inputs, *face.outputs)]
    return f"{face.name}({', '.join([*arrays, 'work'] if face.work_entries else arrays)})"


def _places(pattern: Array) -> list[int]:
    """Nonzeros, column by column, as places in a matrix row by row."""
    columns, rows = np.nonzero(pattern.T)
    return [int(place) for place in rows * pattern.shape[1] + columns]


class GlueWriter(ABC):
    """The C file of a quantity's four functions.

    Args:
        quantity: Of a robot.
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
        programs = self._programs()
        made = {
            kind: function_c(self._model, program, "world_aligned")
            for kind, program in programs.items()
        }
        self._faces = {kind: face for kind, (_, face) in made.items()}
        self.sources = {face.name: source for source, face in made.values()}
        self._work = max(face.work_entries for face in self._faces.values())

    _scratch = 0
    """Numbers of workspace before what programs need."""

    @abstractmethod
    def _programs(self) -> Mapping[str, str]:
        """Programs to export, by what the glue calls them."""

    @abstractmethod
    def _support(self) -> str:
        """C before the four functions."""

    @abstractmethod
    def _functions(self) -> Sequence[CoreFunction]:
        """Value, first derivatives, products, second derivatives."""

    def text(self) -> str:
        """The file."""
        head = _HEAD.format(
            nq=self._model.nq,
            nv=self._model.nv,
            size=self._quantity.size,
            samples=self._samples,
            quaternions="".join(
                _QUATERNION.format(start=start) for _, start in quaternion_starts(self._model)
            ),
        )
        declared = [f"{self._prototype(face)};" for face in self._faces.values()]
        parts = [head, *declared, self._support(), *(f.text() for f in self._functions())]
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
        most = max(self._model.nq, self._quantity.size)
        for array, size in {**{f"{x}_zero": most for x in inputs}, **scratch}.items():
            lines.append(f"    double *{array} = workspace + {place};")
            place += size
        lines.append(f"    double *work = workspace + {place};")
        lines.append("    (void)work;")
        lines.append("    for (int s = 0; s < SAMPLES; ++s) {")
        for k, x in enumerate(inputs):
            count = {"q": "NQ", "w_in": "SIZE"}.get(x, "NV")
            if x == "q":
                lines.append(f"        unit(given(arg[{k}], s, {count}, q_zero), q);")
            else:
                lines.append(f"        const double *{x} = given(arg[{k}], s, {count}, {x}_zero);")
        name = f"{self._name}_{kind}"
        lead = f"int {name}(const double **arg, double **res, long long *iw, double *workspace, "
        lines = [*tables, lead + "int mem)", "{", *lines, body.rstrip("\n"), "    }"]
        lines += ["    return 0;", "}"]
        work = place + self._scratch + self._work
        given = [*self._patterns["inputs"], *(self._patterns["weights"] if weighted else [])]
        return CoreFunction(name, given, self._patterns[kind], "\n".join(lines), work)

    def _tables(self, kind: str, patterns: Iterable[Array]) -> list[str]:
        tables = []
        for k, pattern in enumerate(patterns):
            places = _places(pattern)
            numbers = ", ".join(map(str, places or [0]))
            tables.append(f"static const int {kind}_places{k}[] = {{{numbers}}};")
        return tables


def compressed(sparsity: Sparsity) -> list[int]:
    """CasADi's numbers for a sparsity: rows, columns, and where nonzeros are."""
    return [int(x) for x in sparsity.compress()]

# SPDX-License-Identifier: BSD-3-Clause
"""What depends on q alone as C for CasADi: poses, centres of mass, potential energies.

Each is three functions in C, around exported programs: entries of the result (columnwise), their
derivatives along tangent steps (SIZE, NV), and the second derivatives (NV, NV) of a weighted sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phistar.interop.casadi.c_glue import CoreFunction, GlueWriter, call_of
from phistar.interop.casadi.casadi_quantities import CasadiQuantity

_CROSS = """\
static void cross(const double *a, const double *b, double *out)
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Three rows of column j of a matrix (rows, NV). */
static void column(const double *rows, int j, double *out)
{
    for (int i = 0; i < 3; ++i) out[i] = rows[i * NV + j];
}
"""

_POSE_VALUE = """\
    double frame_pose[16];
    {value};
    for (int k = 0; k < 4; ++k)
        for (int i = 0; i < 4; ++i) y[4 * k + i] = frame_pose[4 * i + k];
"""

_POSE_FIRST = """\
    double frame_pose[16], axis[3], turn[3], moved[3];
    double *jacobian = scratch, *work = jacobian + 6 * NV;
    (void)work;
    {value};
    {first};
    memset(slope, 0, SIZE * NV * sizeof *slope);
    for (int j = 0; j < NV; ++j) {{
        column(jacobian, j, turn);
        for (int k = 0; k < 3; ++k) {{
            for (int i = 0; i < 3; ++i) axis[i] = frame_pose[4 * i + k];
            cross(turn, axis, moved);
            for (int i = 0; i < 3; ++i) slope[(4 * k + i) * NV + j] = moved[i];
        }}
        for (int i = 0; i < 3; ++i) slope[(12 + i) * NV + j] = jacobian[(3 + i) * NV + j];
    }}
"""

_POSE_SECOND = """\
    double frame_pose[16], axis[3], turn[3], rate[3], moved[3], held[3], moment[3];
    double *jacobian = scratch, *jacobian_rate = jacobian + 6 * NV;
    double *v = jacobian_rate + 6 * NV, *work = v + NV;
    (void)work;
    {value};
    {first};
    memset(v, 0, NV * sizeof *v);
    for (int j = 0; j < NV; ++j) {{
        v[j] = 1.0;
        {second};
        v[j] = 0.0;
        for (int k = 0; k < NV; ++k) {{
            column(jacobian_rate + 3 * NV, k, rate);
            bend[k * NV + j] = dot(rate, w + 12);
        }}
        /* w . (d(turn k)/d(step j) x axis + turn k x (turn j x axis)) */
        for (int c = 0; c < 3; ++c) {{
            for (int i = 0; i < 3; ++i) axis[i] = frame_pose[4 * i + c];
            cross(axis, w + 4 * c, moment);
            column(jacobian, j, turn);
            cross(turn, axis, moved);
            for (int k = 0; k < NV; ++k) {{
                column(jacobian_rate, k, rate);
                column(jacobian, k, turn);
                cross(w + 4 * c, turn, held);
                bend[k * NV + j] += dot(rate, moment) + dot(held, moved);
            }}
        }}
    }}
"""

_CENTER_VALUE = """\
    double *center_of_mass = y;
    {value};
"""

_CENTER_FIRST = """\
    double *center_of_mass_jacobian = slope, *work = scratch;
    (void)work;
    {first};
"""

_CENTER_SECOND = """\
    double *center_of_mass_jacobian_rate = scratch;
    double *v = center_of_mass_jacobian_rate + 3 * NV, *work = v + NV;
    double rate[3];
    (void)work;
    memset(v, 0, NV * sizeof *v);
    for (int j = 0; j < NV; ++j) {{
        v[j] = 1.0;
        {second};
        v[j] = 0.0;
        for (int k = 0; k < NV; ++k) {{
            column(center_of_mass_jacobian_rate, k, rate);
            bend[k * NV + j] = dot(rate, w);
        }}
    }}
"""

_ENERGY_VALUE = """\
    double *potential_energy = y;
    {value};
"""

_ENERGY_FIRST = """\
    double *tau = slope, *work = scratch;
    (void)work;
    {first};
"""

_ENERGY_SECOND = """\
    double *tau = scratch, *v = tau + NV, *vdot = v + NV;
    double *tau_q = bend, *tau_v = vdot + NV, *tau_vdot = tau_v + NV * NV;
    double *work = tau_vdot + NV * NV;
    (void)work;
    memset(v, 0, 2 * NV * sizeof *v);
    {second};
    for (int i = 0; i < NV * NV; ++i) bend[i] *= w[0];
"""


@dataclass(frozen=True)
class _Recipe:
    """Programs by kind, ``{frame}`` behind those of frames, and bodies of the three functions."""

    programs: tuple[str, str, str]
    value: str
    first: str
    second: str


_RECIPES: Mapping[str, _Recipe] = {
    "frame_pose": _Recipe(
        ("frame_pose:{frame}", "jacobian:{frame}", "jacobian_rate:{frame}"),
        _POSE_VALUE,
        _POSE_FIRST,
        _POSE_SECOND,
    ),
    "center_of_mass": _Recipe(
        ("center_of_mass", "center_of_mass_jacobian", "center_of_mass_jacobian_rate"),
        _CENTER_VALUE,
        _CENTER_FIRST,
        _CENTER_SECOND,
    ),
    "potential_energy": _Recipe(
        ("potential_energy", "gravity_force", "linearize_inverse"),
        _ENERGY_VALUE,
        _ENERGY_FIRST,
        _ENERGY_SECOND,
    ),
}

_FUNCTIONS = """\
static void entries(const double *q, double *y, double *work)
{{
    (void)work;
{value}}}

static void slopes(const double *q, double *slope, double *scratch)
{{
{first}}}

static void bends(const double *q, const double *w, double *bend, double *scratch)
{{
{second}}}
"""


class ConfigurationWriter(GlueWriter):
    """The file of a quantity of q alone."""

    @property
    def _scratch(self) -> int:  # type: ignore[override]
        """Of the second derivatives, which take most."""
        n = int(self._model.nv)
        return 13 * n + 2 * n * n

    def _programs(self) -> Mapping[str, str]:
        names = _RECIPES[self._quantity.name].programs
        frame = getattr(self._quantity, "frame", "")
        return {
            kind: name.replace("{frame}", frame)
            for kind, name in zip(("value", "first", "second"), names, strict=True)
        }

    def _support(self) -> str:
        calls = {kind: call_of(face) for kind, face in self._faces.items()}
        recipe = _RECIPES[self._quantity.name]
        bodies = (recipe.value, recipe.first, recipe.second)
        value, first, second = (body.format(**calls) for body in bodies)
        return _CROSS + "\n" + _FUNCTIONS.format(value=value, first=first, second=second)

    def _functions(self) -> Sequence[CoreFunction]:
        n, size = self._model.nv, self._quantity.size
        first, second = self._quantity.first_patterns, self._quantity.second_patterns
        kept = [int(x.sum()) for x in (first["q"], second["q", "q"])]
        return (
            self._function(
                "value",
                {"y": size},
                "        entries(q, y, work);\n"
                "        if (res[0]) memcpy(res[0] + s * SIZE, y, SIZE * sizeof *y);",
            ),
            self._function(
                "first",
                {"slope": size * n},
                "        slopes(q, slope, work);\n"
                f"        keep(slope, first_places0, {kept[0]}, res[0], s);",
                self._tables("first", first.values()),
            ),
            self._function(
                "products",
                {"slope": size * n},
                "        slopes(q, slope, work);\n"
                "        if (res[0]) for (int j = 0; j < NV; ++j) {\n"
                "            double sum = 0.0;\n"
                "            for (int i = 0; i < SIZE; ++i) sum += w_in[i] * slope[i * NV + j];\n"
                "            res[0][s * NV + j] = sum;\n"
                "        }",
            ),
            self._function(
                "second",
                {"bend": n * n},
                "        bends(q, w_in, bend, work);\n"
                f"        keep(bend, second_places0, {kept[1]}, res[0], s);",
                self._tables("second", second.values()),
            ),
        )


def has_recipe(quantity: CasadiQuantity) -> bool:
    """Whether a quantity is one of q alone that is known here."""
    return quantity.name in _RECIPES

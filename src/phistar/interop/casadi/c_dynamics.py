# SPDX-License-Identifier: BSD-3-Clause
"""Inverse and forward dynamics as C for CasADi."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phistar.interop.casadi.c_glue import CoreFunction, GlueWriter, call_of

_MATRICES = """\
/* a += sign * b* c */
static void add_product(double *a, const double *b, const double *c, double sign)
{
    for (int l = 0; l < NV; ++l)
        for (int i = 0; i < NV; ++i) {
            const double factor = sign * b[l * NV + i];
            for (int j = 0; j < NV; ++j) a[i * NV + j] += factor * c[l * NV + j];
        }
}

static void transpose(const double *a, double *out)
{
    for (int i = 0; i < NV; ++i)
        for (int j = 0; j < NV; ++j) out[j * NV + i] = a[i * NV + j];
}
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


class DynamicsWriter(GlueWriter):
    """The file of inverse or forward dynamics."""

    @property
    def _forward(self) -> bool:
        return self._quantity.name == "forward_dynamics"

    @property
    def _scratch(self) -> int:  # type: ignore[override]
        """Six vectors of ``inverse_second``."""
        return 6 * int(self._model.nv)

    def _programs(self) -> Mapping[str, str]:
        name = self._quantity.name
        return {
            "value": name,
            "first": "linearize" if self._forward else "linearize_inverse",
            "products": f"{name}_vjp",
            "second": "inverse_dynamics_hvp",
        }

    def _support(self) -> str:
        return _MATRICES + _INVERSE_SECOND.format(hvp=call_of(self._faces["second"]))

    def _functions(self) -> Sequence[CoreFunction]:
        return self._value(), self._first(), self._products(), self._second()

    def _value(self) -> CoreFunction:
        result = self._quantity.output
        body = (
            f"        {call_of(self._faces['value'])};\n"
            f"        if (res[0]) memcpy(res[0] + s * NV, {result}, NV * sizeof *{result});"
        )
        return self._function("value", {result: self._model.nv}, body)

    def _first(self) -> CoreFunction:
        n, output = self._model.nv, self._quantity.output
        outputs = [name for name, _, _ in self._faces["first"].outputs]
        sizes = {name: n if name == output else n * n for name in outputs}
        lines = [f"        {call_of(self._faces['first'])};"]
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
        lines = [f"        {call_of(self._faces['products'], {'w': 'w_in'})};"]
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
            body = _SECOND_OF_FORWARD.format(linearize=call_of(self._faces["first"]))
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

# SPDX-License-Identifier: BSD-3-Clause
"""Panels about the algebra of a robot at its state: 𝓜, D, η beside v, eigenvalues.

A panel is a function from a state to HTML; ``PANELS`` has them by title. They are worked out only
while they are open.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from phistar.arrays import Array
from phistar.derivatives.first import linearize
from phistar.diagonal.state import diagonalize
from phistar.dynamics import bias_force, mass_matrix
from phistar.explain.sweep_steps import sweep_steps
from phistar.loops.linearization import linearize as linearize_loops
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.viewer.view_state import ViewState

MOST_NAMED = 60
"""Coordinates up to which rows of a heat map have names."""
LEAST_HEIGHT = 10
"""Of a row with a name [px]."""
NOT_IN_THE_TREE = "the tree's, without the loops"
_CELL = "width:{0}px;height:{1}px;padding:0;background:rgb({2},{3},{4})"


def coordinate_labels(model: Model) -> list[str]:
    """A name for each entry of v."""
    labels = [""] * model.nv
    for name in model.joint_names:
        joint = model.joints[name]
        entries = range(model.nv)[joint.v_slice]
        for k, entry in enumerate(entries):
            labels[entry] = f"{name}.{k}" if len(entries) > 1 else name
    return labels


def mass_matrix_panel(state: ViewState) -> str:
    """𝓜 as a heat map: each entry relative to the diagonal, M_ij / sqrt(M_ii M_jj)."""
    matrix = mass_matrix(state.model, state.q)
    scale = np.sqrt(np.diag(matrix))
    relative = matrix / np.outer(scale, scale)
    picture = heat_map(relative, coordinate_labels(state.model), matrix)
    return _line(_of_tree(state.model, "𝓜ᵢⱼ / √(𝓜ᵢᵢ 𝓜ⱼⱼ), blue 1, white 0, red -1")) + picture


def heat_map(relative: Array, labels: Sequence[str], shown: Array) -> str:
    """A square table; blue is positive, red negative; numbers appear under the pointer."""
    count = len(labels)
    size = max(5, min(22, 220 // max(count, 1)))
    height = max(size, LEAST_HEIGHT) if count <= MOST_NAMED else size
    rows = []
    for i in range(count):
        cells = "".join(
            f'<td title="{html.escape(labels[i])}, {html.escape(labels[j])}: {shown[i, j]:.4g}" '
            f'style="{_CELL.format(size, height, *_colour(relative[i, j]))}"></td>'
            for j in range(count)
        )
        name = html.escape(labels[i]) if count <= MOST_NAMED else ""
        text = f"font-size:{height - 1 if height < 12 else 10}px;line-height:{height}px"
        rows.append(
            f'<tr>{cells}<td style="{text};padding:0 0 0 4px;white-space:nowrap">{name}</td></tr>'
        )
    return f'<table style="border-spacing:1px;border-collapse:separate">{"".join(rows)}</table>'


def _colour(x: float) -> tuple[int, int, int]:
    """White at 0, blue at 1, red at -1."""
    strength = min(abs(float(x)), 1.0)
    faded = round(255 * (1.0 - strength))
    return (faded, faded, 255) if x >= 0.0 else (255, faded, faded)


def hinge_inertia_panel(state: ViewState) -> str:
    """D beside the diagonal of 𝓜: what a joint feels if the outboard joints are free, or locked."""
    model, zero = state.model, np.zeros(state.model.nv)
    hinge = np.zeros(model.nv)
    for step in sweep_steps("forward_dynamics", model, state.q, v=zero, tau=zero).steps:
        if step.name == "D":
            body = model.bodies[step.body]
            hinge[body.v_slice] = np.diag(step.value)
    locked = np.diag(mass_matrix(model, state.q))
    note = "D / 𝓜ₖₖ: inertia that a joint feels if all outboard joints are free, relative to locked"
    return _bars(coordinate_labels(model), {"D": hinge / locked}, 1.0, _of_tree(model, note))


def rates_panel(state: ViewState) -> str:
    """Diagonal rates η beside v: ½ η·η is the kinetic energy."""
    model = state.model
    matrix = mass_matrix(model, state.q)
    eta = diagonalize(model, state.q, state.v).eta
    limit = max(float(np.abs([eta, state.v]).max(initial=0.0)), 1e-9)
    energy = f"½ η·η = {0.5 * eta @ eta:.4g} J, ½ v·𝓜v = {0.5 * state.v @ matrix @ state.v:.4g} J"
    note = energy if state.v.any() else f"{energy}: set velocities"
    return _bars(coordinate_labels(model), {"v": state.v, "η": eta}, limit, _of_tree(model, note))


def _of_tree(model: Model, note: str) -> str:
    """A note about a quantity that does not know of loops."""
    return f"{note} ({NOT_IN_THE_TREE})" if active_loops(model.loops) else note


def _line(text: str) -> str:
    return f'<p style="font-size:11px;margin:4px 0">{html.escape(text)}</p>'


def _bars(labels: Sequence[str], rows: Mapping[str, Array], limit: float, note: str = "") -> str:
    """Bars one above the other for each name, from the left if none of them is negative."""
    colours = dict(zip(rows, ("#8aa", "#27c"), strict=False))
    signed = any((values < 0.0).any() for values in rows.values())
    zero = 50.0 if signed else 0.0
    legend = ", ".join(f'<b style="color:{colours[name]}">{name}</b>' for name in rows)
    lines = []
    for k, label in enumerate(labels):
        for name, values in rows.items():
            width = (100.0 - zero) * min(abs(float(values[k])) / limit, 1.0)
            left = zero if values[k] >= 0.0 else zero - width
            title = f"{html.escape(label)}: {name} = {values[k]:.4g}"
            lines.append(
                f'<div title="{title}" style="position:relative;height:7px;background:#8881">'
                f'<div style="position:absolute;left:{left:.1f}%;width:{width:.1f}%;height:100%;'
                f'background:{colours[name]}"></div></div>'
            )
        lines.append(f'<div style="font-size:9px;opacity:0.7">{html.escape(label)}</div>')
    head = f'<p style="font-size:11px;margin:4px 0">{legend}; {html.escape(note)}</p>'
    return head + "".join(lines)


def eigenvalues_panel(state: ViewState) -> str:
    """Eigenvalues of the linearized motion [1/s] at this state, under forces that balance it.

    With closed loops of the motion on them, in independent coordinates.
    """
    model = state.model
    tau = bias_force(model, state.q, state.v)
    if active_loops(model.loops):
        A = linearize_loops(model, state.q, state.v, tau).reduced().A
    else:
        A = linearize(model, state.q, state.v, tau).A
    values = np.linalg.eigvals(A)
    size = max(float(np.abs(values).max(initial=0.0)), 1e-9)
    dots = "".join(
        f'<circle cx="{100 + 90 * x.real / size:.2f}" cy="{100 - 90 * x.imag / size:.2f}" r="3" '
        f'fill="{"#c33" if x.real > 1e-9 * size else "#27c"}"><title>{x:.4g}</title></circle>'
        for x in values
    )
    axes = '<path d="M0 100H200M100 0V200" stroke="#888" stroke-width="0.5"/>'
    unstable = int((values.real > 1e-6 * size).sum())
    note = f"{unstable} of {len(values)} grow; the circle's radius is {size:.3g} /s"
    circle = '<circle cx="100" cy="100" r="90" fill="none" stroke="#8886"/>'
    return f'{_line(note)}<svg viewBox="0 0 200 200">{axes}{circle}{dots}</svg>'


PANELS: Mapping[str, Callable[[ViewState], str]] = {
    "mass matrix 𝓜": mass_matrix_panel,
    "hinge inertia D": hinge_inertia_panel,
    "diagonal rates η": rates_panel,
    "eigenvalues": eigenvalues_panel,
}
"""Panels by title."""

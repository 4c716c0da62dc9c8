# SPDX-License-Identifier: BSD-3-Clause
"""An identification as one page: what was found, how sure it is, and what is left unexplained."""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Mapping

import numpy as np

from phistar.arrays import Array
from phistar.drawing.figures import Figure, figure
from phistar.ident.columns import PER_BODY
from phistar.ident.result import SIGNALS, Identification, changed_numbers
from phistar.reprs import html_document, html_picture, html_table
from phistar.spatial import inertia_components

MOST_POINTS = 600
"""Points of a curve."""
MOST_JOINTS = 12
"""Joints that are drawn."""


def report_html(result: Identification) -> str:
    """The page.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    signals = SIGNALS[result.sample.signal][0]
    sections = {
        "": _summary(result),
        "Doubts": _list(result.doubts, "None: the robot's model and the log belong together."),
        "Notes": _list(result.notes, "None."),
        "Residuals": _table_of_joints(result),
        f"{signals.capitalize()} and residuals over samples": _picture(
            _force_figure(result), f"{signals}, residuals"
        ),
        "Distribution of residuals": _picture(_residual_figure(result), "residual histograms"),
        "Base parameters": _base_table(result),
        "Links": _links(result),
        "Joints": _joints(result),
    }
    body = "".join(
        (f"<h2>{title}</h2>" if title else "") + content for title, content in sections.items()
    )
    return html_document(f"{result.columns.robot.name}, identified", body)


def _summary(result: Identification) -> str:
    above, below = result.base.gap
    possible = result.consistent
    rows = [
        ("rows used", f"{int(result.fit.rows.sum())}"),
        ("columns, base parameters", f"{len(result.columns)}, {len(result.base)}"),
        ("rank decided between pivots", f"{above:.2g} and {below:.2g} of the first"),
        ("directions that the motion excites", f"{result.fit.rank}"),
        ("condition number (columns of unit length)", f"{result.fit.condition:.4g}"),
    ]
    if possible is not None:
        rows.append(
            (
                "physically possible estimate",
                f"{possible.distance:.3g} standard deviations from least squares in "
                f"{len(result.base)} dimensions",
            )
        )
    return html_table(("", ""), rows)


def _list(texts: tuple[str, ...], otherwise: str) -> str:
    items = "".join(f"<li>{html.escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else f"<p>{html.escape(otherwise)}</p>"


def _table_of_joints(result: Identification) -> str:
    signal = result.sample.signal
    size = np.sqrt(np.nanmean(result.sample.measured**2, axis=0))
    rows = []
    for k, name in enumerate(result.groups):
        unseen = "" if result.validation is None else f"{result.validation.rms[k]:.4g}"
        noise = result.fit.noise[k]
        rows.append(
            (
                name,
                f"{int(result.fit.rows[k])}",
                result.group_units[k],
                f"{size[k]:.4g}",
                f"{noise:.4g}",
                f"{100 * noise / size[k]:.2g} %" if size[k] > 0.0 else "",
                unseen,
                f"{result.sample.correlation[k]:.2f}",
            )
        )
    head = (
        "joint", "rows", "unit", f"{signal}, rms", "residual, rms", f"of the {signal}",
        "residual on unseen parts", "samples worth one",
    )  # fmt: skip
    return html_table(head, rows)


def _base_table(result: Identification) -> str:
    width = result.interval()
    rows = []
    for k, name in enumerate(result.base.names):
        known = np.isfinite(width[k])
        rows.append(
            (
                f"{result.fit.beta[k]:.5g}",
                f"± {width[k]:.2g}" if known else "not excited",
                f"{result.base.values[k]:.5g}",
                result.base.units[k],
                name,
            )
        )
    return html_table(("estimate", "95 %", "before", "unit", "combination"), rows)


def _links(result: Identification) -> str:
    columns = result.columns
    after = result.parameters[: columns.inertial].reshape(-1, PER_BODY)
    before = columns.values[: columns.inertial].reshape(-1, PER_BODY)
    rows = []
    for k, old, new in zip(columns.bodies, before, after, strict=True):
        rows.append((columns.robot.model.bodies[k].link, *_body(old), *_body(new)))
    head = ("link", "mass before [kg]", "centre [m]", "mass now [kg]", "centre [m]")
    note = (
        "<p>Forces tell the combinations above; how they are shared between links is as near to "
        "the robot as it was as they allow.</p>"
    )
    return html_table(head, rows) + note


def _body(parameters: Array) -> tuple[str, str]:
    mass, com, _ = inertia_components(parameters)
    return f"{float(mass):.4g}", ", ".join(f"{x:.4g}" for x in com)


def _joints(result: Identification) -> str:
    rows = [
        (name, f"{old:.4g}", f"{new:.4g}", unit) for name, old, new, unit in changed_numbers(result)
    ]
    return html_table(("number", "before", "now", "unit"), rows) if rows else "<p>None.</p>"


def _picture(page: Figure, description: str) -> str:
    file = io.BytesIO()
    page.savefig(file, format="svg", metadata={"Date": None})
    return html_picture(file.getvalue(), description)


def _shown(result: Identification) -> range:
    return range(min(len(result.groups), MOST_JOINTS))


def _force_figure(result: Identification) -> Figure:
    """Measured forces and what is left of them, joint by joint."""
    sample = result.sample
    picked = np.unique(np.linspace(0, len(sample.samples) - 1, MOST_POINTS).astype(int))
    shown = _shown(result)
    page = figure(8.0, 1.3 * len(shown) + 0.5)
    axes = np.atleast_1d(page.subplots(len(shown), 1, sharex=True))
    for k, axis in zip(shown, axes, strict=True):
        axis.plot(picked, sample.measured[picked, k], color="0.6", linewidth=0.8, label="measured")
        axis.plot(picked, sample.residual[picked, k], color="C3", linewidth=0.6, label="residual")
        label = f"{result.groups[k]}\n[{result.group_units[k]}]"
        axis.set_ylabel(_plain(label), fontsize=7)
        axis.tick_params(labelsize=7)
    axes[0].legend(fontsize=7, loc="upper right", ncols=2)
    axes[-1].set_xlabel("sample of the runs that are shown")
    return page


def _residual_figure(result: Identification) -> Figure:
    """Residuals over their standard deviation beside the normal distribution."""
    shown = _shown(result)
    page = figure(8.0, 2.0 * ((len(shown) + 3) // 4) + 0.3)
    axes = np.atleast_1d(page.subplots((len(shown) + 3) // 4, 4)).reshape(-1)
    x = np.linspace(-4.0, 4.0, 81)
    for k, axis in enumerate(axes):
        if k >= len(shown):
            axis.set_axis_off()
            continue
        own = result.sample.residual[:, k] / result.fit.noise[k]
        axis.hist(np.clip(own[np.isfinite(own)], -4.0, 4.0), bins=x[::4], density=True, color="0.7")
        axis.plot(x, np.exp(-x * x / 2.0) / np.sqrt(2.0 * np.pi), color="C0", linewidth=0.9)
        axis.set_title(_plain(result.groups[k]), fontsize=7)
        axis.set_xlabel("residual / standard deviation", fontsize=6)
        axis.tick_params(labelsize=6)
    return page


def _plain(text: str) -> str:
    """A name that matplotlib does not read as mathematics."""
    return text.replace("$", r"\$")


PLOTS: Mapping[str, Callable[[Identification], Figure]] = {
    "samples": _force_figure,
    "residuals": _residual_figure,
}
"""Figures of an identification."""

# SPDX-License-Identifier: BSD-3-Clause
"""A robot with other inertial parameters: the inverse of ``robot.parameters``.

Links that fixed joints weld together are one body, of which only the sum is in the parameters: the
first link of a body takes what is given, the others become massless. Bodies whose numbers do not
change are left as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError
from phistar.model.components import GROUND, ZERO3, ZERO33, Body, Link, frozen
from phistar.model.configuration import as_numbers
from phistar.model.editing.parts import Edit, Parts
from phistar.model.model import Model
from phistar.spatial import PARAMETER_NAMES, inertia_components, pose_inverse, transform_inertia

_SIZE = len(PARAMETER_NAMES)


def with_parameters(model: Model, parameters: ArrayLike) -> Edit:
    """The model whose bodies have the inertial parameters (10 bodies,) or (bodies, 10)."""
    given = _checked(model, parameters)
    changed = [b for b in model.bodies if not np.array_equal(given[b.index], b.inertia)]
    carried = _links_of_bodies(model)
    edited: dict[str, Link] = {}
    lumped: list[str] = []
    for body in changed:
        welded = carried.get(body.index, [])
        edited.update(_lumped(model, body, welded, given[body.index]))
        lumped += [link.name for link in welded[1:] if link.mass or link.inertia.any()]
    parts = Parts.of(model)
    links = tuple(edited.get(link.name, link) for link in parts.links)
    made = replace(parts, links=links).build()
    named = ", ".join(f"'{body.link}'" for body in changed) or "no body"
    note = f"of {named} replaced by with_parameters"
    if lumped:
        note += f"; counted with the links that carry them: {', '.join(lumped)}"
    return Edit(made, "inertial parameters", note)


def _checked(model: Model, parameters: ArrayLike) -> Array:
    """Finite parameters, (bodies, 10)."""
    bodies = len(model.bodies)
    array = np.asarray(as_numbers(parameters, "parameters"), dtype=np.float64)
    if array.shape not in ((_SIZE * bodies,), (bodies, _SIZE)):
        expected = f"({_SIZE * bodies},) or ({bodies}, {_SIZE})"
        names = ", ".join(body.link for body in model.bodies[:12])
        raise ShapeError("parameters", array.shape, expected, f"robot '{model.name}'", names)
    rows = array.reshape(bodies, _SIZE)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        body, entry = bad[0]
        raise ArgumentError(
            f"{PARAMETER_NAMES[entry]} of body '{model.bodies[body].link}' is {rows[body, entry]}, "
            "expected a finite number"
        )
    return rows


def _links_of_bodies(model: Model) -> Mapping[int, list[Link]]:
    """The links that each body carries, its own link first."""
    carried: dict[int, list[Link]] = {}
    for link in model.links:
        if link.name in model.frames and (body := model.frames[link.name].body) != GROUND:
            first = link.name == model.bodies[body].link
            carried.setdefault(body, []).insert(0 if first else len(carried[body]), link)
    return carried


def _lumped(model: Model, body: Body, links: list[Link], given: Array) -> dict[str, Link]:
    """The links of a body, the first with all of its inertia."""
    label = f"body '{body.link}' (joint '{body.joint}')"
    if not links:
        raise ArgumentError(
            f"parameters of {label} are {given.tolist()}, expected zeros: a massless link between "
            "the axes of the joint carries nothing"
        )
    mass, moments = given[0], given[1:4]
    if mass < 0.0 or (mass == 0.0 and given.any()):
        raise ArgumentError(
            f"parameters of {label}: mass {mass:g} kg with first moments {moments.tolist()} kg m, "
            "expected a positive mass, or zeros; constrain the estimation"
        )
    empty = {
        link.name: replace(link, mass=0.0, com=ZERO3, inertia=ZERO33)
        for link in links
        if link.mass or link.inertia.any()
    }
    if mass == 0.0:
        return empty
    first = links[0]
    at_link = transform_inertia(pose_inverse(model.frames[first.name].body_pose), given)
    _, com, inertia = inertia_components(at_link)
    symmetric = frozen((inertia + inertia.T) / 2, (3, 3))
    carrier = replace(first, mass=float(mass), com=frozen(com, (3,)), inertia=symmetric)
    return {**empty, first.name: carrier}

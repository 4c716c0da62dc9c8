# SPDX-License-Identifier: BSD-3-Clause
"""A load that is fixed to a frame of a robot: a link of its own on a fixed joint."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from numpy.typing import ArrayLike

from phistar.errors import ArgumentError
from phistar.model.builder import ModelBuilder
from phistar.model.components import Joint
from phistar.model.editing.parts import Edit, Parts, finite_number, refuse_taken
from phistar.model.joints import Fixed
from phistar.model.model import Model

PAYLOAD = "payload"
"""Name of the first payload; the next are payload_2, payload_3 and so on."""


def with_payload(
    model: Model, frame: str, mass: float, com: ArrayLike, inertia: ArrayLike, name: str | None
) -> Edit:
    """The model with a load on a frame; see ``Edited.with_payload``."""
    carrier = model.frame(frame)
    label = _free_name(model) if name is None else name
    weight = finite_number(mass, f"mass of payload '{label}'")
    if weight < 0.0:
        raise ArgumentError(
            f"mass of payload '{label}' is {weight:g} kg, expected no less than 0; without() takes "
            "a payload off again, with_parameters() changes the links"
        )
    cure = "choose another name"
    refuse_taken(model, "frame", label, model.frames, cure)
    joint_name = f"{label}_mount"
    refuse_taken(model, "joint", joint_name, model.joints, cure)
    link = ModelBuilder().link(label, weight, com, inertia)
    joint = Joint(joint_name, Fixed(), carrier.link, label, carrier.pose)
    parts = Parts.of(model)
    made = replace(parts, links=(*parts.links, link), joints=(*parts.joints, joint)).build()
    note = f"{weight:g} kg on '{frame}', added by with_payload"
    # A point mass is a payload like any other: what carries it has inertia.
    return Edit(made, f"link '{label}'", note, frozenset({"inertia-mass-without-inertia"}))


def _free_name(model: Model) -> str:
    """The first name for a payload that no frame and no mount has."""
    names = (PAYLOAD if k == 1 else f"{PAYLOAD}_{k}" for k in count(1))
    return next(x for x in names if x not in model.frames and f"{x}_mount" not in model.joints)

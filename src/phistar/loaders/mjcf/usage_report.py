# SPDX-License-Identifier: BSD-3-Clause
"""Usage report of an MJCF document: used, defaulted, or ignored and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from phistar.arrays import Array
from phistar.errors import IgnoredWarning
from phistar.loaders.load_report import Entry, LoadReport
from phistar.loaders.mjcf.element_tree import Element
from phistar.loaders.mjcf.mjcf_files import ModelFiles
from phistar.loaders.mjcf.mujoco_model import (
    BALL,
    NO_CONSTRAINT,
    NO_DAMPER,
    NO_FRICTION,
    NO_LIMIT,
    NO_SPRING,
    MujocoModel,
    element_names,
)
from phistar.loaders.mjcf.mujoco_types import MjModel

# Elements that a rigid-body model does not have, by tag: of a section, or in a body.
_IGNORED_SECTIONS = {
    "sensor": "sensors are not modelled",
    "tendon": "tendons are not modelled",
    "contact": "only <exclude> is used, by robot.simulator",
    "custom": "custom data has no meaning to a model",
    "deformable": "flexible parts are not modelled",
    "extension": "plugins are not used",
    "visual": "settings of MuJoCo's viewer",
    "statistic": "settings of MuJoCo's viewer",
    "size": "memory of MuJoCo's own simulation",
}
_IGNORED_ELEMENTS = {
    "camera": "cameras are not modelled",
    "light": "lights are not modelled",
    "texture": "textures are never opened",
    "hfield": "height fields are never opened",
    "skin": "skins are never opened",
    "plugin": "plugins are not used",
}
_IGNORED_ATTRIBUTES = {
    "contact parameters": "condim friction solmix margin gap priority adhesion surfacevel",
    "constraint-solver parameters": (
        "solref solimp solreflimit solimplimit solreffriction solimpfriction torquescale"
    ),
    "fluid coefficients": "fluidshape fluidcoef",
    "user data": "user",
}
# Used, or reported as a fluid.
_USED_OPTIONS = {"gravity", "density", "viscosity"}
_MERGING = {
    "fusestatic": "MuJoCo merges bodies without joints into their parents",
    "discardvisual": "MuJoCo drops geoms that are only visual",
}


def report_usage(files: ModelFiles, compiled: MujocoModel, report: LoadReport) -> None:
    """Fill the report's lists, and warn of what is ignored though it matters to the dynamics."""
    _list_used(compiled, report)
    _list_defaulted(files, compiled, report)
    for root in files.documents:
        _list_ignored(root, report)
    _list_ball_limits(compiled, report)
    for code, what, cure in _dynamics_left_out(compiled.model):
        report.add_problem("warning", code, compiled.file, what, cure, IgnoredWarning)
        report.ignored.append(Entry(compiled.file, what.rstrip("."), cure))
    for what, note in _remarks(compiled.model):
        report.used.append(Entry(compiled.file, what, note))


def _list_used(compiled: MujocoModel, report: LoadReport) -> None:
    model = compiled.model
    kinds = (
        (model.nbody, "bodies", 'links in MuJoCo\'s order, the world is the link "world"'),
        (model.njnt, "joints", "in MuJoCo's order; an unlimited hinge is a continuous joint"),
        (model.ngeom, "geoms", "visual or collision shapes"),
        (model.nsite, "sites", "frames"),
        (model.nkey, "keyframes", "named configurations"),
    )
    for count, what, note in kinds:
        if count:
            report.used.append(Entry(compiled.file, f"{count} {what}", note))
    note = 'MuJoCo\'s reference configuration qpos0: configuration "home" (or "qpos0")'
    report.used.append(Entry(compiled.file, "qpos0", note))


def _list_defaulted(files: ModelFiles, compiled: MujocoModel, report: LoadReport) -> None:
    model = compiled.model
    options = [e for e in files.main.walk() if e.tag == "option"]
    if not any("gravity" in e.attributes for e in options):
        report.defaulted.append(Entry(compiled.file, "gravity", "(0, 0, -9.81)"))
    for kind, stem, locations in (
        ("body", "body", compiled.bodies),
        ("jnt", "joint", compiled.joints),
    ):
        is_named = _is_named(model, kind)
        for index, name in enumerate(element_names(model, kind, stem)):
            if not is_named[index]:
                report.defaulted.append(
                    Entry(locations.get(index, ""), f"unnamed {stem} {index}", f'called "{name}"')
                )
    names = element_names(model, "body", "body")
    for body in range(1, model.nbody):
        if body not in compiled.explicit and model.body_mass[body] > 0:
            note = f"computed from its geoms: mass {model.body_mass[body]:.6g} kg"
            where = compiled.bodies.get(body, "")
            report.defaulted.append(Entry(where, f'inertia of body "{names[body]}"', note))


def _is_named(model: MjModel, kind: str) -> list[bool]:
    text = bytes(model.names)
    return [text[address] != 0 for address in getattr(model, f"name_{kind}adr")]


def _list_ignored(root: Element, report: LoadReport) -> None:
    """One line per kind, at the location of the first."""
    counts: Counter[tuple[str, str]] = Counter()
    locations: dict[tuple[str, str], str] = {}
    for section in root.children:
        for element in [section] if section.tag in _IGNORED_SECTIONS else section.walk():
            for entry in _ignored_section(section) or _ignored_here(element):
                counts[entry] += 1
                locations.setdefault(entry, element.where)
    for (what, note), count in counts.items():
        report.ignored.append(Entry(locations[what, note], f"{what} ({count})", note))


def _ignored_section(section: Element) -> list[tuple[str, str]]:
    note = _IGNORED_SECTIONS.get(section.tag)
    if note is None:
        return []
    return [(f"{section.tag}: {e.tag}", note) for e in section.children] or [(section.tag, note)]


def _ignored_here(element: Element) -> Iterator[tuple[str, str]]:
    if element.tag in _IGNORED_ELEMENTS:
        yield element.tag, _IGNORED_ELEMENTS[element.tag]
    if element.tag == "option" and element.attributes.keys() - _USED_OPTIONS:
        names = " ".join(sorted(element.attributes.keys() - _USED_OPTIONS))
        yield f"option: {names}", "settings of MuJoCo's own simulation"
    for name, note in _MERGING.items():
        if element.tag == "compiler" and element.get(name) == "true":
            yield f"compiler: {name}", note
    for what, names in _IGNORED_ATTRIBUTES.items():
        if not element.attributes.keys().isdisjoint(names.split()):
            yield what, "contacts and MuJoCo's soft constraints are not modelled"


def _list_ball_limits(compiled: MujocoModel, report: LoadReport) -> None:
    model = compiled.model
    names = element_names(model, "jnt", "joint")
    for joint in np.flatnonzero((model.jnt_type == BALL) & (model.jnt_limited != 0)):
        angle = f"{model.jnt_range[joint, 1]:.6g} rad"
        note = f"{angle} of the total angle; such a limit is not supported"
        where = compiled.joints.get(int(joint), "")
        report.ignored.append(Entry(where, f'joint "{names[joint]}": range', note))


def _dynamics_left_out(model: MjModel) -> Iterator[tuple[str, str, str]]:
    """(code, what, suggested fix) of ignored data that would change forces or accelerations."""
    tendons = element_names(model, "tendon", "tendon")
    heavy = [tendons[i] for i in np.flatnonzero(_tendon_armature(model))]
    if heavy:
        what = (
            f"tendon armature of {_some(heavy)} is ignored: the mass matrix differs from MuJoCo's."
        )
        yield "tendon-armature", what, "Model the inertia as armature of joints."
    active = model.tendon_stiffness + model.tendon_damping + model.tendon_frictionloss
    if np.any(active):
        what = f"springs, damping and friction of {_some(_named(tendons, active))} are ignored."
        yield "tendon-forces", what, "Tendons are not modelled."
    if np.any(model.body_gravcomp):
        bodies = element_names(model, "body", "body")
        what = f"gravcomp of {_some(_named(bodies, model.body_gravcomp))} is ignored."
        yield "gravcomp", what, "Add the compensating force yourself."
    if model.opt.density or model.opt.viscosity:
        what = (
            f"fluid (density {model.opt.density:g}, viscosity {model.opt.viscosity:g}) is ignored."
        )
        yield "fluid", what, "The robot moves in a vacuum."
    joints = element_names(model, "jnt", "joint")
    nonlinear = _any_row(model, "jnt_stiffnesspoly", model.njnt)
    nonlinear[model.dof_jntid[_any_row(model, "dof_dampingpoly", model.nv)]] = True
    if nonlinear.any():
        what = f"nonlinear springs and damping of {_some(_named(joints, nonlinear))} are ignored."
        yield "nonlinear-joint", what, "Their linear terms are used."
    if model.nflex:
        what = (
            f"{model.nflex} flexible parts: their vertices are bodies, their elasticity is ignored."
        )
        yield "flex", what, "Only rigid bodies are modelled."


def _remarks(model: MjModel) -> Iterator[tuple[str, str]]:
    """(what, note) of remarkable conversions."""
    if model.nmocap:
        yield f"{model.nmocap} mocap bodies", "welded to the world where the file puts them"
    shares = getattr(model, "actuator_armature", np.zeros(0))
    if np.any(shares):
        yield "armature of actuators", "gear^2 times it is added to their joints"
    for bit, what in (
        (NO_SPRING, "joint springs"),
        (NO_DAMPER, "joint damping"),
        (NO_FRICTION | NO_CONSTRAINT, "dry friction"),
        (NO_LIMIT | NO_CONSTRAINT, "joint limits"),
    ):
        if model.opt.disableflags & bit:
            yield what, "switched off by the file's <flag>: none are used"


def _tendon_armature(model: MjModel) -> Array:
    """(ntendon,) armature of the tendons and of the actuators that pull them."""
    armature = np.array(getattr(model, "tendon_armature", np.zeros(model.ntendon)))
    for actuator, kind in enumerate(model.actuator_trntype):
        if kind == _TENDON_TRANSMISSION and hasattr(model, "actuator_armature"):
            armature[model.actuator_trnid[actuator, 0]] += model.actuator_armature[actuator]
    return armature


_TENDON_TRANSMISSION = 3


def _any_row(model: MjModel, name: str, count: int) -> Array:
    """(count,) whether a row of one of MuJoCo's arrays is not zero; older versions lack some."""
    values = np.asarray(getattr(model, name, np.zeros((count, 1))))
    return np.any(values.reshape(count, -1), axis=1) if count else np.zeros(0, bool)


def _named(names: list[str], values: Array) -> list[str]:
    return [names[i] for i in np.flatnonzero(values)]


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f'"{name}"' for name in names[:3]) + more

# SPDX-License-Identifier: BSD-3-Clause
"""Pages of the reference: ``Robot`` by topic with a table of its methods, then a page per subject.

A method that is new finds its topic by the class that defines it; nothing has to be listed.
"""

import inspect
from collections.abc import Iterator
from functools import cached_property
from types import FunctionType

from markup import plain, table

import phistar
from phistar.derivatives.derivatives_mixin import Differentiates
from phistar.diagonal.diagonal_mixin import Diagonalized
from phistar.drawing.drawing_mixin import Drawn
from phistar.energies import Energies
from phistar.geometry.curvature_mixin import Geometry
from phistar.inverse_kinematics.inverse_kinematics_mixin import SolvesInverseKinematics
from phistar.joint_physics.joint_physics_mixin import HasJointPhysics
from phistar.kinematics import Kinematics
from phistar.loops.loops_mixin import Constrained
from phistar.model.description_mixin import Described
from phistar.model.editing.editing_mixin import Edited
from phistar.sim.simulation_mixin import Simulates
from phistar.viewer.view_mixin import Viewable
from phistar.whole_body import WholeBody
from phistar.whole_system.whole_system_mixin import HasWholeSystem

TOPICS: dict[str, type | frozenset[str]] = {
    "Operators and compiled functions": frozenset({"operators", "function", "compile"}),
    "A changed robot": frozenset({"with_gravity", "with_loops", "reorder", "tree", "to_urdf"}),
    "Editing": Edited,
    "Dynamics": phistar.Robot,
    "Kinematics": Kinematics,
    "Momentum and energy": Energies,
    "Whole body": WholeBody,
    "Inverse kinematics": SolvesInverseKinematics,
    "Derivatives": Differentiates,
    "Simulation": Simulates,
    "Joint physics": HasJointPhysics,
    "Closed loops": Constrained,
    "All links in one system": HasWholeSystem,
    "Pictures": Drawn,
    "In a browser": Viewable,
    "Diagonal rates": Diagonalized,
    "Curvature": Geometry,
    "Names, limits and configurations": Described,
}
"""Topics of ``Robot``: some names, or else the class that defines the rest."""

ORDER = (
    "Dynamics",
    "Kinematics",
    "Momentum and energy",
    "Whole body",
    "Inverse kinematics",
    "Derivatives",
    "Simulation",
    "Joint physics",
    "Closed loops",
    "All links in one system",
    "Pictures",
    "In a browser",
    "Operators and compiled functions",
    "Diagonal rates",
    "Curvature",
    "Names, limits and configurations",
    "Editing",
    "A changed robot",
)

PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "loading": (
        "Loading and building",
        (
            "phistar.loaders",
            "phistar.loaders.dh",
            "phistar.model.builder",
            "phistar.robots",
        ),
    ),
    "model": ("Model", ("phistar.model",)),
    "derivatives": (
        "Results of derivatives",
        (
            "phistar.derivatives.first:Linearization, InverseLinearization",
            "phistar.derivatives.second:InverseSecond, ForwardSecond",
            "phistar.derivatives.discrete:Discretization",
            "phistar.derivatives.hybrid:HybridLinearization",
            "phistar.testing",
        ),
    ),
    "inverse_kinematics": ("Inverse kinematics", ("phistar.inverse_kinematics",)),
    "simulation": ("Simulation", ("phistar.sim.simulation", "phistar.sim.monitors:Drift")),
    "drawing": (
        "Pictures",
        (
            "phistar.drawing.scene:Scene, Part, MissingShapeWarning",
            "phistar.drawing.shape_triangles:Triangles",
            "phistar.viewer.viewer:Viewer",
            "phistar.report",
        ),
    ),
    "whole_system": (
        "All links in one system",
        (
            "phistar.whole_system.sparse_equations:WholeSystem, SystemSolution",
            "phistar.whole_system.sparse_ltdl:sparse_ltdl",
        ),
    ),
    "loops": (
        "Closed loops",
        (
            "phistar.constraints",
            "phistar.loops.constrained_dynamics:ConstrainedDynamics",
            "phistar.loops.inverse:ConstrainedInverse",
            "phistar.loops.linearization:LoopLinearization, ReducedLinearization",
            "phistar.loops.mobility:Mobility, LoopEvent",
            "phistar.loops.minimal:MinimalCoordinates",
            "phistar.loops.loops_mixin:NamedRows",
            "phistar.loops.loop_operators",
        ),
    ),
    "control": ("Control", ("phistar.control",)),
    "diagonal": ("Diagonal rates", ("phistar.diagonal",)),
    "geometry": (
        "Curvature",
        (
            "phistar.geometry.curvature_mixin:Christoffel, Curvature, Flatness",
            "phistar.geometry.tensors",
        ),
    ),
    "compiled": (
        "Compiled programs and operators",
        (
            "phistar.kernels",
            "phistar.functions",
            "phistar.operators",
            "phistar.linear",
            "phistar.compile",
            "phistar.backends.base",
            "phistar.c_export",
        ),
    ),
    "algebra": (
        "Algebra",
        (
            "phistar.algebra.ir",
            "phistar.algebra.identities:Identity, Hypothesis",
            "phistar.algebra.proof",
            "phistar.algebra.proof_text",
            "phistar.algebra.dense",
            "phistar.algorithms.catalogue",
            "phistar.explain",
            "phistar.refs",
        ),
    ),
    "conventions": ("Conventions", ("phistar.conventions",)),
    "spatial": ("Spatial vectors", ("phistar.spatial",)),
    "errors": ("Errors and warnings", ("phistar.errors",)),
}
"""Further pages: title and modules, some with the names that are shown of them."""


def pages() -> dict[str, Iterator[str]]:
    """Every page of the reference, by its place among the generated ones."""
    others = {f"reference/{name}": _modules(*row) for name, row in PAGES.items()}
    return {"reference": _overview(), "reference/robot": _robot(), **others}


def _overview() -> Iterator[str]:
    yield "# Reference\n\nArrays are NumPy arrays; `...` in a shape stands for any leading batch"
    yield "axes; [conventions](../conventions.md) says what the numbers mean. What a robot can do"
    yield "is on the page [Robot](reference/robot.md).\n"
    yield "| page | modules |\n|---|---|"
    yield "| [Robot](reference/robot.md) | `phistar.Robot`, `phistar.load` |"
    for name, (title, modules) in PAGES.items():
        held = ", ".join(f"`{module.partition(':')[0]}`" for module in modules)
        yield f"| [{title}](reference/{name}.md) | {held} |"
    yield "\n```{toctree}\n:hidden:\n\nreference/robot"
    yield from (f"reference/{name}" for name in PAGES)
    yield "```"


def _modules(title: str, modules: tuple[str, ...]) -> Iterator[str]:
    yield f"# {title}\n"
    for entry in modules:
        module, _, names = entry.partition(":")
        yield f"## {module}\n\n```{{eval-rst}}\n.. automodule:: {module}"
        yield f"   :members: {names}\n```\n"


def _robot() -> Iterator[str]:
    members = _members()
    yield "# Robot\n\n```{eval-rst}\n.. autofunction:: phistar.load\n"
    yield ".. autoclass:: phistar.Robot\n   :no-members:\n```\n"
    for topic in ORDER:
        yield f"**{topic}**\n"
        rows = (
            (f'<a href="#phistar.Robot.{name}"><code>{name}</code></a>', _says(name, member))
            for name, member in members.items()
            if _topic(name) == topic
        )
        yield from table("methods", ("name", "what it is"), rows)
        yield ""
    for topic in ORDER:
        yield f"## {topic}\n\n```{{eval-rst}}"
        for name, member in members.items():
            if _topic(name) == topic:
                kind = "automethod" if isinstance(member, FunctionType) else "autoproperty"
                yield f".. {kind}:: phistar.Robot.{name}\n"
        yield "```\n"


def _members() -> dict[str, object]:
    """Public methods and properties; those of a class in the order of its source."""
    found: dict[str, object] = {}
    for owner in phistar.Robot.__mro__[:-1]:
        for name, member in vars(owner).items():
            shown = isinstance(member, (FunctionType, property, cached_property))
            if shown and not name.startswith("_"):
                found.setdefault(name, member)
    return found


def _topic(name: str) -> str:
    owner = next(cls for cls in phistar.Robot.__mro__ if name in vars(cls))
    for topic, members in TOPICS.items():
        if members is owner or (isinstance(members, frozenset) and name in members):
            return topic
    raise ValueError(f"{name}, of {owner.__name__}, has no topic on the page of Robot")


def _says(name: str, member: object) -> str:
    """The first sentence of a docstring."""
    own = getattr(member, "__name__", name)
    if own != name:
        return f"Another name of `{own}`."
    text = " ".join((inspect.getdoc(member) or "").partition("\n\n")[0].split())
    return plain(text.partition(". ")[0].rstrip(".")) + "."

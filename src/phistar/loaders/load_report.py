# SPDX-License-Identifier: BSD-3-Clause
"""The load report of a file: what was read, used, defaulted and ignored, and every problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from phistar.errors import ModelError, PhistarWarning, Problem, Severity, warn
from phistar.model.components import Joint, Loop
from phistar.model.editing.parts import Edit
from phistar.model.idle_shapes import IdleShape, idle_shape_rows, idle_shapes
from phistar.model.model import Model
from phistar.model.singular import singular_problems
from phistar.model.unused import closed_loops, simulated_properties, unused_properties


@dataclass(frozen=True)
class Entry:
    """One line of a report: ``file:line``, what, and a note."""

    where: str
    what: str
    note: str

    def __str__(self) -> str:
        return f"{self.where + ': ' if self.where else ''}{self.what}: {self.note}"


@dataclass
class LoadReport:
    """The load report of a robot file.

    Attributes:
        source: File name, bundled name or ``"<bytes>"``.
        format: ``"urdf"``, ``"mjcf"``, ``"xacro"`` or ``"builder"``.
        read: Number of elements of each kind in the file.
        used: What went into the model, in one line per kind.
        defaulted: Defaults of what the file does not specify.
        ignored: What the file has and the model does not, with the reason.
        problems: Errors, warnings and notes, in file order.
        edited: What was changed after loading, in order.
        joints, loops: Those of the loaded robot, if any.
        folder: Where the file is, and its meshes; None for bytes and robots made in Python.
        idle_shapes: Its collision shapes that have no contacts.
    """

    source: str
    format: str
    read: Counter[str] = field(default_factory=Counter)
    used: list[Entry] = field(default_factory=list)
    defaulted: list[Entry] = field(default_factory=list)
    ignored: list[Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    joints: tuple[Joint, ...] = field(default=(), repr=False)
    loops: tuple[Loop, ...] = field(default=(), repr=False)
    edited: list[Entry] = field(default_factory=list)
    folder: Path | None = field(default=None, repr=False, compare=False)
    idle_shapes: tuple[IdleShape, ...] = field(default=(), repr=False)

    def extended(self, edit: Edit) -> LoadReport:
        """The report of an edited robot: this one, what was done, and new problems."""
        model = edit.model
        problems = dict.fromkeys((*self.problems, *model.problems, *singular_problems(model)))
        edited = [*self.edited, Entry("", edit.what, edit.note)]
        report = replace(self, problems=list(problems), edited=edited)
        report.describes(model)
        return report

    @property
    def simulated(self) -> list[Entry]:
        """Data of the joints that ``simulate`` and ``step`` use, and dynamics if it is told:
        ranges, springs, damping, dry friction."""
        return [Entry(*row) for row in simulated_properties(self.joints)]

    @property
    def unused(self) -> list[Entry]:
        """Data of the model that neither uses: loops switched off, speed and effort limits, and
        collision shapes that touch nothing in ``robot.simulator``."""
        rows = (*idle_shape_rows(self.idle_shapes), *unused_properties(self.joints, self.loops))
        return [Entry(*row) for row in rows]

    @property
    def closed(self) -> list[Entry]:
        """Loops of the model that dynamics keeps closed."""
        return [Entry(*row) for row in closed_loops(self.loops)]

    def describes(self, model: Model) -> None:
        """Store joints, loops and idle shapes of the loaded robot, for the lists they decide."""
        self.joints, self.loops = tuple(model.joints.values()), model.loops
        self.idle_shapes = idle_shapes(model)

    def add_problem(
        self,
        severity: Severity,
        code: str,
        where: str,
        what: str,
        cure: str,
        category: type[PhistarWarning] = PhistarWarning,
    ) -> None:
        """Record a problem; ``raise_errors`` and ``issue_warnings`` act on them."""
        self.problems.append(Problem(severity, code, where, what, cure, category))

    @property
    def errors(self) -> list[Problem]:
        """The problems that prevent a model."""
        return [p for p in self.problems if p.severity == "error"]

    @property
    def warnings(self) -> list[Problem]:
        """The problems that do not prevent a model."""
        return [p for p in self.problems if p.severity == "warning"]

    def raise_errors(self) -> None:
        """Raise a ``ModelError`` with every error, if there is one."""
        if self.errors:
            raise ModelError(self.errors)

    def issue_warnings(self, category: type[PhistarWarning] = PhistarWarning) -> None:
        """Issue one Python warning per kind of problem, naming the first few cases.

        Args:
            category: Only problems of this kind.
        """
        groups: dict[str, list[Problem]] = {}
        for problem in self.warnings:
            if issubclass(problem.category, category):
                groups.setdefault(problem.code, []).append(problem)
        for group in groups.values():
            text = str(group[0])
            if len(group) > 1:
                others = "; ".join(p.what for p in group[1:4])
                more = f"; and {len(group) - 4} more" if len(group) > 4 else ""
                text += f" (also: {others}{more}; robot.load_report lists all)"
            warn(text, group[0].category)

    def issue_new_warnings(self, known: LoadReport, expected: Container[str]) -> None:
        """Warn of problems that another report does not have, unless they are expected."""
        before = set(known.problems)
        new = [p for p in self.problems if p not in before and p.code not in expected]
        replace(self, problems=new).issue_warnings()

    def __str__(self) -> str:
        lines = [f"{self.source} ({self.format}): read {self.counts() or 'nothing'}"]
        sections: dict[str, Sequence[Entry | Problem]] = {**self.sections()}
        sections["problems"] = self.problems
        for title, entries in sections.items():
            lines.append(f"{title}: {len(entries)}")
            lines += [f"  {entry}" for entry in entries]
        return "\n".join(lines)

    def counts(self) -> str:
        """Number of elements of each kind, on one line."""
        singular = {"meshes": "mesh"}
        kinds = (
            (n, singular.get(kind, kind.removesuffix("s")) if n == 1 else kind)
            for kind, n in self.read.items()
        )
        return ", ".join(f"{n} {kind}" for n, kind in kinds)

    def sections(self) -> dict[str, list[Entry]]:
        """The lists of the report by their titles, in the order in which they are shown."""
        return {
            "used": [*self.used, *self.closed],
            "used by simulate": self.simulated,
            "not used by dynamics": self.unused,
            "defaulted": self.defaulted,
            "ignored": self.ignored,
            **({"edited": self.edited} if self.edited else {}),
        }

# SPDX-License-Identifier: BSD-3-Clause
"""What a loader did with a file: what it read, used, defaulted and ignored, and every problem."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field

from phistar.errors import ModelError, PhistarWarning, Problem, Severity


@dataclass(frozen=True)
class Entry:
    """One line of a report: ``file:line``, the thing, and what was done with it and why."""

    where: str
    what: str
    note: str

    def __str__(self) -> str:
        return f"{self.where + ': ' if self.where else ''}{self.what}: {self.note}"


@dataclass
class LoadReport:
    """What became of everything in a robot file.

    Attributes:
        source: File name, bundled name or ``"<bytes>"``.
        format: ``"urdf"``, ``"mjcf"``, ``"xacro"`` or ``"builder"``.
        read: How many elements of each kind the file has.
        used: What went into the model, in one line a kind.
        defaulted: What the file leaves open and which value was taken.
        ignored: What the file says and the model does not hold, with the reason.
        problems: Errors, warnings and notes, in file order.
    """

    source: str
    format: str
    read: Counter[str] = field(default_factory=Counter)
    used: list[Entry] = field(default_factory=list)
    defaulted: list[Entry] = field(default_factory=list)
    ignored: list[Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

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
        """The problems that keep a robot from being built."""
        return [p for p in self.problems if p.severity == "error"]

    @property
    def warnings(self) -> list[Problem]:
        """The problems a user should know of."""
        return [p for p in self.problems if p.severity == "warning"]

    def raise_errors(self) -> None:
        """Raise a ``ModelError`` that holds every error, if there is one."""
        if self.errors:
            raise ModelError(self.errors)

    def issue_warnings(self, stacklevel: int = 3) -> None:
        """Issue one Python warning per kind of problem, naming the first few cases."""
        groups: dict[str, list[Problem]] = {}
        for problem in self.warnings:
            groups.setdefault(problem.code, []).append(problem)
        for group in groups.values():
            text = str(group[0])
            if len(group) > 1:
                rest = "; ".join(p.what for p in group[1:4])
                more = f"; and {len(group) - 4} more" if len(group) > 4 else ""
                text += f" (also: {rest}{more}; robot.load_report lists all)"
            warnings.warn(text, group[0].category, stacklevel=stacklevel + 1)

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {kind}" for kind, n in self.read.items())
        lines = [f"{self.source} ({self.format}): read {counts or 'nothing'}"]
        for title in ("used", "defaulted", "ignored", "problems"):
            entries = getattr(self, title)
            lines.append(f"{title}: {len(entries)}")
            lines += [f"  {entry}" for entry in entries]
        return "\n".join(lines)

# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions and warnings of phistar: one root each, every one keeps its data as attributes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


class PhistarWarning(UserWarning):
    """Root of all warnings that phistar issues."""


class InertiaWarning(PhistarWarning):
    """A mass or inertia is missing, impossible or suspicious."""


class LimitWarning(PhistarWarning):
    """A joint limit, damping or friction value is missing or doubtful."""


class UnitWarning(PhistarWarning):
    """A number looks as if it were given in another unit (degrees, millimetres)."""


class StructureWarning(PhistarWarning):
    """Something about the file's structure was repaired or interpreted."""


class IgnoredWarning(PhistarWarning):
    """Something in the file is not used although it could matter to the dynamics."""


class CacheWarning(PhistarWarning):
    """Compiled code cannot be kept on disk, or what is kept there cannot be trusted."""


class SingularHingeWarning(PhistarWarning):
    """A joint moves no inertia, so forward dynamics does not exist for it."""


class ConvergenceWarning(PhistarWarning):
    """An iteration ended before it met its tolerance; its result says why."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong or doubtful in a robot description.

    Attributes:
        severity: ``"error"`` (no robot results), ``"warning"`` or ``"note"``.
        code: Short slug that names the kind of problem, e.g. ``"zero-axis"``.
        where: ``file:line`` or empty where there is no file.
        what: What is wrong, naming the element and its value.
        cure: What to do about it.
        category: Warning class used when a warning is issued for it.
    """

    severity: Severity
    code: str
    where: str
    what: str
    cure: str
    category: type[PhistarWarning] = PhistarWarning

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        cure = f" {self.cure}" if self.cure else ""
        return f"{place}{self.what}{cure}"


class PhistarError(Exception):
    """Root of all errors that phistar raises."""


class ModelError(PhistarError, ValueError):
    """A robot description does not describe a robot; ``problems`` holds every reason found."""

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        if isinstance(problems, str):
            problems = (Problem("error", "model", "", problems, ""),)
        self.problems = tuple(problems)
        text = str(self.problems[0])
        if len(self.problems) > 1:
            rest = "\n".join(f"  {p}" for p in self.problems[1:6])
            more = len(self.problems) - 6
            text += f"\nand {len(self.problems) - 1} more:\n{rest}"
            text += f"\n  ... ({more} not shown; see .problems)" if more > 0 else ""
        super().__init__(text)


class UnsafeFileError(ModelError):
    """A robot file asks for something a reader must not do (DTD, outside path, huge size)."""


class RobotFileError(PhistarError, OSError):
    """A robot file cannot be opened; ``path`` says which one."""

    def __init__(self, path: object, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"cannot read robot file '{path}': {reason}")


class RobotNotFoundError(RobotFileError, FileNotFoundError):
    """There is no such file and no bundled robot of that name."""


class UnknownNameError(PhistarError, KeyError):
    """A name is not known; ``candidates`` holds the valid ones, ``close`` the similar ones."""

    def __init__(self, kind: str, name: object, candidates: Iterable[str], owner: str = "") -> None:
        self.kind = kind
        self.name = name
        self.candidates = tuple(candidates)
        self.owner = owner
        self.close = close_matches(str(name), self.candidates)
        self.text = f"no {kind} {name!r}{' in ' + owner if owner else ''}. {self._hint()}"
        super().__init__(self.text)

    def _hint(self) -> str:
        if self.close:
            return "Did you mean " + " or ".join(repr(c) for c in self.close) + "?"
        if not self.candidates:
            return "There are none."
        shown = ", ".join(self.candidates[:12])
        more = f", ... ({len(self.candidates)} in all)" if len(self.candidates) > 12 else ""
        return f"Known: {shown}{more}."

    def __str__(self) -> str:
        return self.text


class ShapeError(PhistarError, ValueError):
    """An array argument has the wrong shape."""

    def __init__(
        self, argument: str, given: tuple[int, ...], expected: str, owner: str, names: str = ""
    ) -> None:
        self.argument = argument
        self.given = given
        self.expected = expected
        self.owner = owner
        detail = f": {names}" if names else ""
        super().__init__(f"{argument} has shape {given}, {owner} needs {expected}{detail}")


class ArgumentError(PhistarError, ValueError):
    """An argument has a value that is not allowed."""


class SingularHingeError(PhistarError, ArithmeticError):
    """A joint moves no inertia (D = 0), so its acceleration is not defined."""

    def __init__(self, hinges: Sequence[object]) -> None:
        self.hinges = tuple(hinges)
        super().__init__("; ".join(str(h) for h in self.hinges))


class EquilibriumError(PhistarError, ValueError):
    """A robot does not rest where it should; ``residual`` holds its accelerations (nv,)."""

    def __init__(self, text: str, residual: object) -> None:
        self.residual = residual
        super().__init__(text)


class StabilityError(PhistarError, ValueError):
    """No feedback of the wanted kind exists; ``modes`` holds (eigenvalue, description) pairs."""

    def __init__(self, text: str, modes: Sequence[tuple[complex, str]] = ()) -> None:
        self.modes = tuple(modes)
        listed = "".join(f"\n  eigenvalue {value:.4g}: {where}" for value, where in self.modes)
        super().__init__(text + listed)


class MissingExtraError(PhistarError, ImportError):
    """An optional package is needed; ``extra`` is the name to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed. "
            f'Install it with: pip install "phistar[{extra}]"'
        )


class DerivativeError(PhistarError, AssertionError):
    """Derivatives are not those of the function; ``errors`` holds relative errors by name."""

    def __init__(self, robot: str, errors: Mapping[str, float], tolerance: float) -> None:
        self.robot = robot
        self.errors = dict(errors)
        self.tolerance = tolerance
        wrong = {name: error for name, error in self.errors.items() if not error <= tolerance}
        shown = ", ".join(f"{name} by {error:.1e}" for name, error in wrong.items())
        super().__init__(
            f"derivatives of robot '{robot}' differ from those of its own dynamics by more than "
            f"{tolerance:g} of the largest entry: {shown}"
        )


def close_matches(name: str, candidates: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The candidates that look most like ``name`` or hold it, ignoring case; best first."""
    by_folded: dict[str, str] = {}
    for candidate in candidates:
        by_folded.setdefault(candidate.casefold(), candidate)
    wanted, known = name.casefold(), list(by_folded)[:5000]
    found = difflib.get_close_matches(wanted, known, n=count, cutoff=0.6)
    if len(wanted) > 2:
        found += sorted((k for k in known if wanted in k and k not in found), key=len)
    return tuple(by_folded[f] for f in found[:count])


class SpaceError(PhistarError, TypeError):
    """Operators are combined whose spaces do not fit."""


class RewriteError(PhistarError, ValueError):
    """A rule cannot be used, or rules rewrite each other for ever."""


class LoweringError(PhistarError, ValueError):
    """An expression has no form as sweeps over the links."""

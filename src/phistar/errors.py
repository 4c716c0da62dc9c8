# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions and warnings of phistar: one root each, with their data as attributes."""

from __future__ import annotations

import difflib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

if TYPE_CHECKING:
    from phistar.arrays import Array

Severity = Literal["error", "warning", "note"]


class PhistarWarning(UserWarning):
    """Root of all warnings that phistar issues."""


class InertiaWarning(PhistarWarning):
    """A mass or inertia is missing, impossible or suspicious."""


class LimitWarning(PhistarWarning):
    """A joint limit, damping or friction value is missing or implausible."""


class UnitWarning(PhistarWarning):
    """A number looks as if it were given in another unit (degrees, millimetres)."""


class StructureWarning(PhistarWarning):
    """Something about the file's structure was repaired or interpreted."""


class IgnoredWarning(PhistarWarning):
    """Something in the file is not used although it could matter to the dynamics."""


class CacheWarning(PhistarWarning):
    """Compiled code cannot be stored on disk, or what is there cannot be trusted."""


class SettingWarning(PhistarWarning):
    """An environment variable looks like one of phistar's, which knows none of that name."""


class SingularConfigurationWarning(PhistarWarning):
    """The loops of a robot lose rank at a configuration: it can move in one way more there."""


class RedundantWrenchWarning(PhistarWarning):
    """Wrenches of loops that hold each other in tension are not determined; the least are given."""


class SingularHingeWarning(PhistarWarning):
    """A joint moves no inertia, so forward dynamics does not exist for it."""


class ConvergenceWarning(PhistarWarning):
    """An iteration ended before it met its tolerance; its result has the reason."""


class PenetrationWarning(PhistarWarning):
    """A simulation begins with something deep inside the ground or another body."""


class ModelMismatchWarning(PhistarWarning):
    """A log does not seem to belong to the robot: exchanged joints, a wrong sign, degrees."""


class RenamedWarning(PhistarWarning, DeprecationWarning):
    """An argument has another name now; the old one still works."""


_PACKAGE = os.path.dirname(__file__) + os.sep


def warn(text: str, category: type[PhistarWarning]) -> None:
    """Issue a warning at the line of the caller's code: the first one outside phistar."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


_P = ParamSpec("_P")
_R = TypeVar("_R")


def renamed_argument(old: str, new: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A function whose keyword argument had another name: that is taken, with a warning."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if old in kwargs and new not in kwargs:
                name = function.__name__
                warn(f"{name}({old}=...) is {name}({new}=...) now", RenamedWarning)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


@dataclass(frozen=True)
class Problem:
    """One error, warning or note about a robot description.

    Attributes:
        severity: ``"error"`` (no robot results), ``"warning"`` or ``"note"``.
        code: Short slug that names the kind of problem, e.g. ``"zero-axis"``.
        where: ``file:line`` or empty where there is no file.
        what: What is wrong, naming the element and its value.
        cure: Suggested fix.
        category: Warning class used when a warning is issued for it.
    """

    severity: Severity
    code: str
    where: str
    what: str
    cure: str
    category: type[PhistarWarning] = PhistarWarning

    def __str__(self) -> str:
        location = f"{self.where}: " if self.where else ""
        cure = f" {self.cure}" if self.cure else ""
        return f"{location}{self.what}{cure}"


class PhistarError(Exception):
    """Root of all errors that phistar raises."""

    def __reduce__(self) -> tuple[object, ...]:
        """By its state, not its constructor, so that it can be passed between processes."""
        return _restored, (type(self), self.args, vars(self))


def _restored(
    kind: type[PhistarError], arguments: tuple[object, ...], state: dict[str, object]
) -> PhistarError:
    error = kind.__new__(kind)
    error.args = arguments
    vars(error).update(state)
    return error


class ModelError(PhistarError, ValueError):
    """A robot description is invalid; ``problems`` has every reason."""

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        if isinstance(problems, str):
            problems = (Problem("error", "model", "", problems, ""),)
        self.problems = tuple(problems)
        text = str(self.problems[0])
        if len(self.problems) > 1:
            others = "\n".join(f"  {p}" for p in self.problems[1:6])
            more = len(self.problems) - 6
            text += f"\nand {len(self.problems) - 1} more:\n{others}"
            text += f"\n  ... ({more} not shown; see .problems)" if more > 0 else ""
        super().__init__(text)


class UnsafeFileError(ModelError):
    """A robot file requires something unsafe (DTD, outside path, huge size)."""


class RobotFileError(PhistarError, OSError):
    """The robot file ``path`` cannot be opened."""

    def __init__(self, path: object, reason: str) -> None:
        self.path = path
        self.reason = reason
        shown = str(path) if len(str(path)) <= 300 else f"{str(path)[:297]}..."
        super().__init__(f"cannot read robot file '{shown}': {reason}")


class RobotNotFoundError(RobotFileError, FileNotFoundError):
    """There is no such file and no bundled robot of that name."""


class UnknownNameError(PhistarError, KeyError):
    """A name is unknown; ``candidates`` are the valid ones, ``close`` the similar ones."""

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


class DivergenceError(ArgumentError):
    """A motion is no longer finite.

    Attributes:
        sample: Index of the sample in the batch, () without batch axes.
        knot: Index of the first state that is not finite.
        time: Its time [s].
    """

    def __init__(self, text: str, sample: tuple[int, ...], knot: int, time: float) -> None:
        self.sample = sample
        self.knot = knot
        self.time = time
        super().__init__(text)


class InterpolationError(ArgumentError):
    """States between two knots are not determined; ``joint`` and ``interval`` [s] say where."""

    def __init__(self, text: str, joint: str, interval: tuple[float, float]) -> None:
        self.joint = joint
        self.interval = interval
        super().__init__(text)


class TooLargeError(ArgumentError):
    """A result would not fit into memory; raised before the work begins.

    Attributes:
        needed: Its size [bytes].
        available: Memory that is free [bytes].
        every: Value of ``every`` in a simulation that would fit; None if none does.
    """

    def __init__(self, text: str, needed: int, available: int, every: int | None = None) -> None:
        self.needed = needed
        self.available = available
        self.every = every
        super().__init__(text)


class SettingError(ArgumentError):
    """The environment variable ``name`` has an invalid value."""

    def __init__(self, name: str, value: str, expected: str) -> None:
        self.name = name
        self.value = value
        self.expected = expected
        super().__init__(f"{name} is {value!r}, expected {expected}")


class SingularHingeError(PhistarError, ArithmeticError):
    """A joint moves no inertia (D = 0), so its acceleration is not defined."""

    def __init__(self, hinges: Sequence[object]) -> None:
        self.hinges = tuple(hinges)
        super().__init__("; ".join(str(h) for h in self.hinges))


class LoopError(PhistarError, ValueError):
    """A robot has ``loops`` where a tree is needed."""

    def __init__(self, robot: str, purpose: str, loops: Sequence[object], cure: str) -> None:
        self.robot = robot
        self.purpose = purpose
        self.loops = tuple(loops)
        shown = ", ".join(f"'{getattr(loop, 'name', loop)}'" for loop in self.loops[:4])
        more = f" and {len(self.loops) - 4} more" if len(self.loops) > 4 else ""
        noun = pluralize(len(self.loops), "loop")
        super().__init__(
            f"{purpose} of robot '{robot}': it has {noun} ({shown}{more}), and this takes trees "
            f"only. {cure}"
        )


class SampleError(ArgumentError):
    """Some samples of a batch have no result; the others would have one.

    Attributes:
        bad: Array (...), true for the samples concerned.
        sample: Index of the first one, () where there is no batch.
    """

    def __init__(self, text: str, bad: Array) -> None:
        self.bad = bad
        self.sample = first_index(bad)
        super().__init__(text)

    def renumber(self, bad: Array) -> None:
        """Say which samples of a batch are concerned where only some of its samples were seen."""
        seen, self.bad, self.sample = self.sample, bad, first_index(bad)
        if seen and self.args:
            text = self.args[0].replace(f" sample {list(seen)}", f" sample {list(self.sample)}", 1)
            self.args = (text, *self.args[1:])


class NotFiniteError(SampleError):
    """An input or a result is infinite or NaN."""


class QuaternionError(SampleError):
    """A quaternion of ``joint`` has ``length`` other than one."""

    def __init__(self, text: str, bad: Array, joint: str, length: float) -> None:
        self.joint = joint
        self.length = length
        super().__init__(text, bad)


class SingularConfigurationError(SampleError, SingularHingeError):
    """A joint moves no inertia in some configurations; ``hinges`` are those of the first one."""

    def __init__(self, hinges: Sequence[object], bad: Array) -> None:
        SampleError.__init__(self, "", bad)
        self.hinges = tuple(hinges)
        listed = "; ".join(str(hinge) for hinge in self.hinges)
        where = f" of sample {list(self.sample)}" if self.sample else ""
        self.args = (f"in the configuration{where}, {listed}",)


class SingularPoseError(SampleError, ArithmeticError):
    """``frames`` can move in ``rank`` directions only."""

    def __init__(self, text: str, bad: Array, frames: Sequence[str], rank: int) -> None:
        self.frames = tuple(frames)
        self.rank = rank
        super().__init__(text, bad)


def first_index(bad: Array) -> tuple[int, ...]:
    """Index of the first true entry of an array of booleans."""
    indices = bad.nonzero() if bad.ndim else ()
    return tuple(int(index[0]) for index in indices)


class LoopOpenError(SampleError):
    """A loop is open by ``gap`` [``unit``] where it has to be closed, or cannot be closed."""

    def __init__(
        self,
        robot: str,
        purpose: str,
        loop: str,
        gap: float,
        unit: str,
        bad: Array,
        cure: str,
    ) -> None:
        self.robot, self.loop, self.gap, self.unit = robot, loop, gap, unit
        where = sample_text(first_index(bad))
        super().__init__(
            f"{purpose} of robot '{robot}'{where}: {loop} is open by {gap:.3g} {unit}; {cure}", bad
        )


class LoopVelocityError(SampleError):
    """Velocities or accelerations tear a loop open at ``rate``."""

    def __init__(
        self,
        robot: str,
        purpose: str,
        loop: str,
        what: str,
        rate: float,
        bad: Array,
        cure: str,
    ) -> None:
        self.robot, self.loop, self.rate = robot, loop, rate
        where = sample_text(first_index(bad))
        super().__init__(
            f"{purpose} of robot '{robot}'{where}: {what} open {loop} at a rate of {rate:.3g}; "
            f"{cure}",
            bad,
        )


class UnderactuatedError(SampleError):
    """Actuators cannot give a motion.

    Attributes:
        robot: Its name.
        motion: Joint velocities by name of the motion that they cannot drive.
        residual: Force along it that is missing.
    """

    def __init__(
        self,
        robot: str,
        motion: Mapping[str, float],
        residual: float,
        text: str,
        bad: Array,
    ) -> None:
        self.robot, self.motion, self.residual = robot, dict(motion), residual
        super().__init__(text, bad)


def sample_text(sample: tuple[int, ...]) -> str:
    """`` in sample [3]``, or nothing where there is no batch."""
    return f" in sample {list(sample)}" if sample else ""


class EquilibriumError(PhistarError, ValueError):
    """A robot is not in equilibrium; ``residual`` are its accelerations (nv,)."""

    def __init__(self, text: str, residual: object) -> None:
        self.residual = residual
        super().__init__(text)


class StabilityError(PhistarError, ValueError):
    """No stabilising feedback exists; ``modes`` are (eigenvalue, description) pairs."""

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


class PackageVersionError(PhistarError, ImportError):
    """An optional package is there, but too old; ``found`` and ``needed`` are versions."""

    def __init__(self, package: str, found: str, needed: str, extra: str) -> None:
        self.package = package
        self.found = found
        self.needed = needed
        super().__init__(
            f"the package '{package}' is version {found}, and phistar needs {needed} or newer. "
            f'Install it with: pip install --upgrade "phistar[{extra}]"'
        )


def require_version(package: str, found: str, oldest: tuple[int, int], extra: str) -> None:
    """Raise if the version of an optional package is older than one that an extra asks for.

    Raises:
        PackageVersionError: It is.
    """
    numbers = tuple(int(number) for number in re.findall(r"\d+", found)[:2])
    if numbers < oldest:
        raise PackageVersionError(package, found, ".".join(map(str, oldest)), extra)


class DerivativeError(PhistarError, AssertionError):
    """Derivatives are wrong; ``errors`` are relative errors by name."""

    def __init__(
        self, robot: str, errors: Mapping[str, float], tolerance: float, text: str = ""
    ) -> None:
        self.robot = robot
        self.errors = dict(errors)
        self.tolerance = tolerance
        wrong = {name: error for name, error in self.errors.items() if not error <= tolerance}
        shown = ", ".join(f"{name} by {error:.1e}" for name, error in wrong.items())
        text = text or f"derivatives of robot '{robot}' differ from those of its own dynamics"
        super().__init__(f"{text} by more than {tolerance:g} of the largest entry: {shown}")


def pluralize(count: int, noun: str) -> str:
    """``1 joint``, ``2 joints``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


SPELLED_OUT = ("ndarray", "MX", "SX", "MjModel")
"""Beginnings of names whose first letter is spoken with a vowel."""


def with_article(noun: str) -> str:
    """``a list``, ``an int``; what is spelled out goes by its sound, ``an ndarray``."""
    vowel = noun[:1].lower() in "aeiou" or noun.startswith(SPELLED_OUT)
    return f"{'an' if vowel else 'a'} {noun}"


def kind_of(value: object) -> str:
    """What somebody gave, in words: ``a list``, ``an ndarray``, ``None``."""
    return "None" if value is None else with_article(type(value).__name__)


def close_matches(name: str, candidates: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The candidates most similar to ``name`` or containing it, ignoring case; best first."""
    by_folded: dict[str, str] = {}
    for candidate in candidates:
        by_folded.setdefault(candidate.casefold(), candidate)
    folded, known = name.casefold(), list(by_folded)[:5000]
    matches = difflib.get_close_matches(folded, known, n=count, cutoff=0.6)
    if len(folded) > 2:
        matches += sorted((k for k in known if folded in k and k not in matches), key=len)
    return tuple(by_folded[f] for f in matches[:count])


class SpaceError(PhistarError, TypeError):
    """Operators with incompatible spaces are combined."""


class RewriteError(PhistarError, ValueError):
    """A rule cannot be used, or rules rewrite each other endlessly."""


class FalseRuleError(RewriteError):
    """A rule of a theorem does not hold.

    Attributes:
        rule: The rule.
        counterexample: A robot on which its sides differ; None if what it inverts is singular.
    """

    def __init__(self, text: str, rule: object, counterexample: object = None) -> None:
        self.rule = rule
        self.counterexample = counterexample
        super().__init__(text)


class LoweringError(PhistarError, ValueError):
    """An expression has no form as sweeps over the links."""

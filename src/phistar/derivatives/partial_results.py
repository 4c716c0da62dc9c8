# SPDX-License-Identifier: BSD-3-Clause
"""Linearizations of which not all is needed: some of the derivatives, some rows and columns.

What is not asked for is neither stored nor, as far as nothing else needs it, computed. Results are
those of the whole linearization to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from phistar.arguments import checked_state, names_in, refuse_singular
from phistar.arrays import Array
from phistar.backends.llvm.run.result_pool import pooled_copy
from phistar.compile import TRACED, RequestKey, entry_pattern, run_traced_results
from phistar.compile.part_rows import PATTERNS
from phistar.derivatives import first
from phistar.derivatives.first import InverseLinearization, Linearization
from phistar.dynamics import forward_dynamics
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.configuration import Coordinates
from phistar.model.kinematic_loops import require_tree
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model, entries
from phistar.packed import SparseMatrix
from phistar.reprs import brief, one_line_repr
from phistar.thresholds import POLICY

PartKey = tuple[str, tuple[str, ...], tuple[int, ...], tuple[int, ...]]
"""Name of the traced quantity, derivatives, and indices of rows and columns; () are all."""


_HIDDEN = ("model", "q", "v", "tau")


class _ResultPart:
    """What parts have in common: fields that were not asked for are not there."""

    wrt: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        if name == "vdot" and "tau" in vars(self):
            at = vars(self)
            at["vdot"] = forward_dynamics(at["model"], at["q"], at["v"], at["tau"])
            return at["vdot"]
        if name in {each.name for each in fields(type(self))}:  # type: ignore[arg-type]
            raise AttributeError(
                f"{name} was not asked for: wrt is {self.wrt}; name it there, or leave wrt out"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        shown = {n: x for n, x in vars(self).items() if n not in _HIDDEN}
        return f"<{type(self).__name__}: {', '.join(f'{n} {brief(x)}' for n, x in shown.items())}>"


@dataclass(frozen=True, repr=False)
class LinearizationPart(_ResultPart, Linearization):
    """Joint accelerations and some of their derivatives.

    Attributes:
        vdot: (..., nv), worked out when it is first read unless derivatives by q needed it.
        vdot_q, vdot_v, vdot_tau: (..., rows, columns), those that were asked for.
        wrt: Names of these: some of ``"q"``, ``"v"`` and ``"tau"``.
        rows, columns: Names of the joints whose rows and columns they have; () are all.
    """

    wrt: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def A(self) -> NoReturn:
        """Of whole linearizations only."""
        raise ArgumentError("A and B need all derivatives, rows and columns; leave wrt, rows out")

    B = A


@dataclass(frozen=True, repr=False)
class InverseLinearizationPart(_ResultPart, InverseLinearization):
    """Joint forces and some of their derivatives; attributes as for ``LinearizationPart``."""

    wrt: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@one_line_repr
@dataclass(frozen=True)
class SparseInverseLinearization:
    """Joint forces and their derivatives, without entries that are zero for every state.

    Attributes:
        tau: (..., nv).
        tau_q, tau_v, tau_vdot: Values for each sample and where they stand, see ``SparseMatrix``.
    """

    tau: Array
    tau_q: SparseMatrix
    tau_v: SparseMatrix
    tau_vdot: SparseMatrix


@dataclass(frozen=True)
class PartChoice:
    """Which part of a linearization is wanted.

    Attributes:
        name: ``"linearize"`` or ``"linearize_inverse"``.
        wrt: Names of the derivatives.
        rows, columns: Names of joints; () are all.
        key: Of the traced quantity.
        results: Names of what it gives.
    """

    name: str
    wrt: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    key: PartKey = field(repr=False)
    results: tuple[str, ...] = field(repr=False)

    @cached_property
    def said(self) -> dict[str, tuple[str, ...]]:
        """What the result says of itself."""
        return {"wrt": self.wrt, "rows": self.rows, "columns": self.columns}

    def of_whole(self, whole: Mapping[str, Array], vector: str) -> dict[str, Array]:
        """The part of a whole result."""
        found = {vector: whole[vector]}
        _, _, rows, columns = self.key
        for each in self.wrt:
            name = f"{vector}_{each}"
            value = whole[name]
            value = value[..., list(rows), :] if rows else value
            found[name] = np.ascontiguousarray(value[..., list(columns)] if columns else value)
        return found


def part_choice(
    model: Model,
    name: str,
    wrt: Sequence[str] | None,
    rows: Sequence[str] | None,
    columns: Sequence[str] | None,
) -> PartChoice:
    """What a user asks for, by names.

    Raises:
        UnknownNameError, ArgumentError: A derivative or joint that there is not, or nothing.
    """
    known = _known_choices(model)
    asked = name, _named("wrt", wrt), _named("rows", rows), _named("columns", columns)
    found = known.get(asked)
    if found is None:
        found = _part_choice(model, name, wrt, rows, columns)
        if len(known) < POLICY.max_known_choices:
            known[asked] = found
    return found


def _named(name: str, given: Sequence[str] | None) -> Hashable:
    if given is None or type(given) is str or type(given) is tuple:
        return given
    return tuple(names_in(name, given))


@cached_on_model
def _known_choices(model: Model) -> dict[Hashable, PartChoice]:
    """Those that were asked for, so that later calls need not look at names."""
    del model
    return {}


def _part_choice(
    model: Model,
    name: str,
    wrt: Sequence[str] | None,
    rows: Sequence[str] | None,
    columns: Sequence[str] | None,
) -> PartChoice:
    allowed = ("q", "v", "tau" if name == "linearize" else "vdot")
    given = allowed if wrt is None else (wrt,) if isinstance(wrt, str) else tuple(wrt)
    for each in given:
        if each not in allowed:
            raise UnknownNameError("derivative", each, allowed, name)
    wanted = tuple(each for each in allowed if each in given)
    if not wanted:
        raise ArgumentError(f"wrt is empty, expected some of {', '.join(allowed)}")
    down, across = _joint_names(rows, "rows"), _joint_names(columns, "columns")
    key = (f"{name}_part", wanted, _indices(model, down), _indices(model, across))
    results = tuple(TRACED[key[0]].shapes(model, *key[1:]))
    return PartChoice(name, wanted, down, across, key, results)


def is_sparse(form: str, choice: PartChoice) -> bool:
    """Whether matrices are wanted without their zeros, rather than parts of dense ones.

    Raises:
        UnknownNameError, ArgumentError: There is no such form, or it has no parts.
    """
    if form not in ("dense", "sparse"):
        raise UnknownNameError("form", form, ("dense", "sparse"), choice.name)
    if form == "sparse" and (choice.rows or choice.columns or len(choice.wrt) < 3):
        raise ArgumentError(
            "sparse matrices are given whole; leave wrt, rows and columns out, or take form='dense'"
        )
    return form == "sparse"


def _joint_names(names: Sequence[str] | None, what: str) -> tuple[str, ...]:
    if names is None:
        return ()
    if isinstance(names, str):
        raise ArgumentError(f"{what} is {names!r}, expected names of joints; pass [{names!r}]")
    if not tuple(names):
        raise ArgumentError(f"{what} is empty, expected names of joints; leave it out for all")
    return tuple(names)


def _indices(model: Model, names: Sequence[str]) -> tuple[int, ...]:
    """Coordinates of joints, in the order in which they are named."""
    return tuple(i for name in names for i in range(model.nv)[model.joint(name).v_slice])


def linearize_part(
    model: Model,
    choice: PartChoice,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    whole: Callable[[], Linearization] | None = None,
) -> LinearizationPart:
    """A part of the derivatives of forward dynamics.

    Args:
        model, choice, q, v, tau: What is wanted.
        whole: Gives all of it, where no program gives the part.
    """
    if whole is None:
        found = _by_code(model, choice.key, choice.results, q, v, tau)
        if found is not None:
            return _forward_part(choice, found, model, q, v, tau)
        require_tree(model, "linearize")
        refuse_singular(model)
        q, v, tau = checked_state(model, q=q, v=v, tau=tau)
        found = run_traced_results(model, choice.key, q, v, tau)
        if found is not None:
            return _forward_part(choice, found, model, q, v, tau)
        at = first.linearize_checked(model, q, v, tau)
    else:
        at = whole()
    return _forward_part(choice, choice.of_whole(vars(at), "vdot"), model, q, at.v, tau)


def linearize_inverse_part(
    choice: PartChoice,
    model: Model,
    q: Coordinates,
    v: Coordinates,
    vdot: Coordinates,
    whole: Callable[[], InverseLinearization] | None = None,
) -> InverseLinearizationPart:
    """A part of the derivatives of inverse dynamics; arguments as for ``linearize_part``."""
    found = None
    if whole is None:
        found = _inverse_by_code(model, choice.key, choice.results, q, v, vdot)
    if found is None:
        at = first.linearize_inverse(model, q, v, vdot) if whole is None else whole()
        found = choice.of_whole(vars(at), "tau")
    result = object.__new__(InverseLinearizationPart)
    result.__dict__.update(found, **choice.said)
    return result


def linearize_inverse_sparse(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    vdot: Coordinates,
    whole: Callable[[], InverseLinearization] | None = None,
) -> SparseInverseLinearization:
    """Derivatives of inverse dynamics without their zeros."""
    patterns = {f"tau_{name}": entry_pattern(model, kind) for name, kind in PATTERNS.items()}
    found = None
    if whole is None:
        results = ("tau", *patterns)
        found = _inverse_by_code(model, ("linearize_inverse_sparse",), results, q, v, vdot)
    if found is None:
        at = first.linearize_inverse(model, q, v, vdot) if whole is None else whole()
        kept = {n: getattr(at, n)[..., p.rows, p.columns] for n, p in patterns.items()}
        found = {"tau": at.tau, **kept}
    matrices = {name: SparseMatrix(pattern, found[name]) for name, pattern in patterns.items()}
    return SparseInverseLinearization(found["tau"], **matrices)


def _by_code(
    model: Model, key: RequestKey, results: Sequence[str], *given: Coordinates
) -> dict[str, Array] | None:
    """What machine code gives for plain arrays; None if there is none yet, or they are not."""
    entry: Any = entries(model).get(key)
    found: dict[str, Array] | Array | None = None if entry is None else entry(*given)
    if isinstance(found, np.ndarray):
        # A program with one output gives that.
        (name,) = results
        return {name: found}
    return found


def _inverse_by_code(
    model: Model,
    key: RequestKey,
    results: Sequence[str],
    q: Coordinates,
    v: Coordinates,
    vdot: Coordinates,
) -> dict[str, Array] | None:
    found = _by_code(model, key, results, q, v, vdot)
    if found is not None:
        return found
    return run_traced_results(model, key, *checked_state(model, q=q, v=v, vdot=vdot))


def _forward_part(
    choice: PartChoice,
    found: Mapping[str, Array],
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
) -> LinearizationPart:
    """The result of arrays by name; without ``vdot``, the state from which it can be had."""
    result = object.__new__(LinearizationPart)
    own = result.__dict__
    own.update(found)
    own.update(choice.said)
    own["model"], own["v"] = model, pooled_copy(v)
    if "vdot" not in found:
        own["q"], own["tau"] = pooled_copy(q), pooled_copy(tau)
    return result

# SPDX-License-Identifier: BSD-3-Clause
"""Parallel schedules by JAX: ``sweeps.parallel`` on its arrays, many rounds in one loop.

Rounds of a tree differ in how many links and joins they have. Unrolled, each would be code of its
own, and compiling would take longer the longer the chain is. A few groups of consecutive rounds are
filled up to the same width instead, and each group is one scan. What fills up has indices beyond
all arrays: it reads something, and what it writes is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array, DType
from phistar.backends.jax.links import DepthTables
from phistar.backends.jax.package import jax
from phistar.model.model import Model
from phistar.sweeps.ir import Type
from phistar.sweeps.parallel.array_ops import State
from phistar.sweeps.parallel.execute import run_stages
from phistar.sweeps.parallel.join_tree import Joins, JoinTree, Links, Round
from phistar.sweeps.parallel.link_fields import AllLinkNumbers, LinkFields
from phistar.sweeps.parallel.parallel_schedule import ParallelSchedule
from phistar.sweeps.parallel.robot_tree import tree_of_runs
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.jax.package import JaxArray

NOWHERE = 1 << 30
"""An index beyond all arrays."""
_LINKS = ("open_last", "open_links", "closed_last", "closed_links")
_JOINS = ("open_joins", "closed_joins")
_LINK_PARTS, _JOIN_PARTS = (tuple(x.name for x in fields(kind)) for kind in (Links, Joins))
_PARTS = (
    *((each, part) for each in _LINKS for part in _LINK_PARTS),
    *((each, part) for each in _JOINS for part in _JOIN_PARTS),
)
_IndexArrays = dict[tuple[str, str], Array]


class JaxOps:
    """``sweeps.parallel.array_ops.ArrayOps`` of JAX."""

    def __init__(self) -> None:
        self.xp = jax().numpy

    def assign(self, array: JaxArray, index: JaxArray, value: JaxArray) -> JaxArray:
        """See ``ArrayOps``; beyond the array nothing happens."""
        places = tuple(_as_index(each) for each in index)
        return array.at[places].set(value, mode="drop")

    def take(self, array: JaxArray, index: JaxArray) -> JaxArray:
        """See ``ArrayOps``; beyond the array stands its last link."""
        return self.xp.take(array, _as_index(index), axis=-2, mode="clip")

    def sum_by(self, array: JaxArray, groups: JaxArray, count: int) -> JaxArray:
        """See ``ArrayOps``; groups beyond ``count`` are dropped."""
        total = self.xp.zeros((*array.shape[:-2], count, array.shape[-1]), array.dtype)
        return total.at[..., _as_index(groups), :].add(array, mode="drop")

    def fold(
        self, rounds: Sequence[Round], step: Callable[[State, Round], State], state: State
    ) -> State:
        """See ``ArrayOps``: a scan for each group of rounds."""
        for arrays in round_groups(tuple(rounds)):
            if len(next(iter(arrays.values()))) == 1:
                state = step(state, _round({part: x[0] for part, x in arrays.items()}))
                continue
            rows = {f"{each} {part}": x for (each, part), x in arrays.items()}
            state, _ = jax().lax.scan(
                lambda held, row: (step(held, _round(_unnamed(row))), None), state, rows
            )
        return state

    def inverse(self, A: JaxArray) -> JaxArray:
        """By elimination; of large matrices in a loop over the pivots, which compiles sooner."""
        size = A.shape[0]
        unit = self.xp.eye(size, dtype=A.dtype)
        if size == 1:
            return 1 / A

        def eliminate(both: JaxArray, e: JaxArray) -> tuple[JaxArray, None]:
            """Row j is divided by its pivot, and its multiples are taken from all others."""
            row = self.xp.einsum("j,jk...->k...", e, both)
            column = self.xp.einsum("ij...,j->i...", both[:, :size], e)
            pivot = self.xp.einsum("k...,k->...", row[:size], e)
            factor = (column - e.reshape(-1, *(1,) * (A.ndim - 2))) / pivot
            return both - factor[:, None] * row[None], None

        start = self.xp.broadcast_to(unit.reshape(size, size, *(1,) * (A.ndim - 2)), A.shape)
        both, _ = jax().lax.scan(eliminate, self.xp.concatenate([A, start], axis=1), unit)
        return both[:, size:]


def _as_index(index: JaxArray) -> JaxArray:
    return index.astype(np.int32) if isinstance(index, np.ndarray) else index


def _unnamed(row: Mapping[str, JaxArray]) -> dict[tuple[str, str], JaxArray]:
    pairs = ((name.partition(" "), x) for name, x in row.items())
    return {(each, part): x for (each, _, part), x in pairs}


def _round(arrays: Mapping[tuple[str, str], JaxArray]) -> Round:
    parts: dict[str, dict[str, JaxArray]] = {}
    for (each, part), x in arrays.items():
        parts.setdefault(each, {})[part] = x
    known: dict[str, JaxArray] = {each: Links(**parts[each]) for each in _LINKS}
    known |= {each: Joins(**parts[each]) for each in _JOINS}
    return Round(**known)


@lru_cache(maxsize=64)
def round_groups(rounds: tuple[Round, ...]) -> tuple[_IndexArrays, ...]:
    """Consecutive rounds in a few groups, each as index arrays (rounds, width), filled up.

    The groups are chosen so that the least is done in vain.
    """
    if not rounds:
        return ()
    rounds = tuple(map(_opened, rounds))
    sizes = np.array(
        [[len(getattr(getattr(each, a), b)) for a, b in _PARTS] for each in rounds], dtype=int
    )
    ends = _cheapest_cuts(sizes[:, [part == "index" for _, part in _PARTS]])
    return tuple(_filled(rounds[a:b]) for a, b in zip((0, *ends[:-1]), ends, strict=True))


def _opened(each: Round) -> Round:
    """Closed segments as open ones beyond which there is nothing: half of the code to compile."""
    last = _together(each.open_last, each.closed_last)
    links = _together(each.open_links, each.closed_links)
    joins = [
        np.concatenate([getattr(each.open_joins, part), getattr(each.closed_joins, part)])
        for part in _JOIN_PARTS
    ]
    nothing = np.zeros(0, dtype=np.intp)
    none, no_join = Links(*[nothing] * len(_LINK_PARTS)), Joins(*[nothing] * len(_JOIN_PARTS))
    return Round(last, links, none, none, Joins(*joins), no_join)


def _together(one: Links, other: Links) -> Links:
    later = replace(other, hung=other.hung + len(one.index))
    parts = ([getattr(one, part), getattr(later, part)] for part in _LINK_PARTS)
    return Links(*map(np.concatenate, parts))


def _cheapest_cuts(widths: Array) -> tuple[int, ...]:
    """Where groups of rounds end, at most as many as the policy allows (dynamic programming)."""
    count = len(widths)
    cost = np.full((count + 1, count + 1), np.inf)
    for start in range(count):
        widest = np.maximum.accumulate(widths[start:], axis=0).sum(axis=1)
        cost[start, start + 1 :] = widest * np.arange(1, count - start + 1)
    best, cuts = cost[0].copy(), [(end,) for end in range(count + 1)]
    for _ in range(POLICY.jax_round_groups - 1):
        through = best[:, None] + cost
        middle = through.argmin(axis=0)
        better = through[middle, np.arange(count + 1)] < best * (1 - 1e-9)
        cuts = [(*cuts[middle[end]], end) if better[end] else cuts[end] for end in range(count + 1)]
        best = np.where(better, through[middle, np.arange(count + 1)], best)
    return cuts[count]


def _filled(rounds: Sequence[Round]) -> _IndexArrays:
    found = {}
    for each, part in _PARTS:
        rows = [getattr(getattr(one, each), part) for one in rounds]
        table = np.full((len(rows), max(map(len, rows))), NOWHERE, dtype=np.int32)
        for place, row in enumerate(rows):
            table[place, : len(row)] = row
        found[each, part] = table
    return found


class RoundsFunction:
    """A parallel program on a robot: a pure function of q and inputs for one sample."""

    def __init__(
        self,
        schedule: ParallelSchedule,
        model: Model,
        frames: tuple[str, ...],
        locked: Set[int],
    ) -> None:
        self.schedule = schedule
        self._tables = DepthTables(model, frames, locked)
        self._given = (model, frames, locked)
        self._tree: JoinTree = tree_of_runs(model, POLICY.jax_run_links)
        program = schedule.program
        nodes = (program.nodes[stream] for stream in program.live())
        self._leaves = {node.data: node for node in nodes if node.spec.is_input}
        self._types = {name: program.nodes[s].type for name, s in program.outputs.items()}

    def _numbers(self, precision: DType) -> AllLinkNumbers:
        found = AllLinkNumbers.of(*self._given, precision).renumbered(self._tree.order)
        entries, parents = (x.astype(np.int32) for x in (found.joint_entries, found.parents))
        return replace(found, joint_entries=entries, parents=parents)

    def __call__(self, q: Array, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs; see ``streams.StreamFunction``."""
        xp, links = jax().numpy, self._tables.at(q)
        placed = links.flat.transform[_as_index(self._tree.order)]
        R = xp.moveaxis(placed[:, :3, :3], 0, 2)[..., None]
        p = placed[:, :3, 3].T[..., None]
        state = LinkFields(JaxOps(), self._numbers(links.precision), R, p)
        given = {name: self._inner(name, x) for name, x in inputs.items()}
        found = run_stages(self.schedule, self._tree, state, given)
        return {name: self._outer(name, x).astype(q.dtype) for name, x in found.items()}

    def _inner(self, name: str, x: Array) -> Array:
        """Of one sample: (..., components) -> (components, ..., 1)."""
        node = self._leaves[name]
        links = node.op != "scatter" and node.type is not Type.JOINT
        return (x.T if links else x)[..., None]

    def _outer(self, name: str, x: Array) -> Array:
        kind = self._types[name]
        found: Array = x[..., 0]
        if kind is Type.TOTAL:
            found = found[0]
        return found.T if kind.output_axes == 2 else found

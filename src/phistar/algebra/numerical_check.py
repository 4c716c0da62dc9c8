# SPDX-License-Identifier: BSD-3-Clause
"""Equations as matrices on random robots: counterexamples, and hypotheses that exclude them.

Rounding is measured, not guessed: where two sides differ, both are computed again with every
intermediate result perturbed in its last place. The effect grows with the condition of what is
inverted, so a difference counts only if it is far larger. Operators without an inverse on a robot
are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from phistar.algebra.dense import BASE_SYMBOLS, Dense
from phistar.algebra.identities import HYPOTHESES
from phistar.algebra.ir import Expr, IdentityOperator, Inverse, Symbol
from phistar.algebra.printing import to_text
from phistar.algebra.random_examples import (
    random_axes,
    random_loops,
    random_model_with,
    random_vectors,
)
from phistar.algebra.spaces import LOOP, MINIMAL
from phistar.algebra.symbols import unfold_definitions
from phistar.arrays import Array
from phistar.model.configuration import random_configuration
from phistar.model.model import Model

Sides = tuple[Expr, Expr]

RELATIVE_TOLERANCE = 1e-9
"""Difference of two matrices that may be a counterexample, relative to their largest entry (or to
1e-2, so that rounding beside an exact zero is none)."""

MIN_ROUNDING_RATIO = 1e3
"""Ratio of a counterexample's difference to the effect of the perturbation."""

MAX_CONDITION = 1e13
"""Condition from which a matrix counts as singular in double precision."""

CHECK_SEEDS = range(3)


class NotInvertibleError(Exception):
    """An operator that an expression inverts is singular on the robot."""

    def __init__(self, of: Expr) -> None:
        self.of = of
        super().__init__(to_text(of))


class PerturbedDense(Dense):
    """Matrices of expressions; reports singular inverses, perturbs last places on request."""

    noise: np.random.Generator | None = None

    def _evaluate(self, expr: Expr) -> Array:
        if isinstance(expr, Inverse):
            inverted = self.matrix(expr.of)
            if not np.isfinite(inverted).all() or np.linalg.cond(inverted) > MAX_CONDITION:
                raise NotInvertibleError(expr.of)
        value = super()._evaluate(expr)
        if self.noise is None or _is_exact(expr):
            return value
        return value * (1.0 + np.finfo(float).eps * self.noise.normal(size=value.shape))


def _is_exact(expr: Expr) -> bool:
    """Whether it has no arithmetic: both sides have exactly the same numbers."""
    return isinstance(expr, IdentityOperator) or (
        isinstance(expr, Symbol) and expr.name in BASE_SYMBOLS
    )


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A robot on which two sides differ.

    Attributes:
        seed: Seed of the random robot.
        model: The robot.
        difference: Largest entry of the difference.
        scale: Largest entry of the right side.
    """

    seed: int
    model: Model
    difference: float
    scale: float

    def __str__(self) -> str:
        sizes = f"differ by {self.difference:.2g} where the largest entry is {self.scale:.2g}"
        return f"the sides {sizes}, on {describe_model(self.model)} (seed {self.seed})"


def describe_model(model: Model) -> str:
    """A random robot in a few words: its shape and what may matter about it."""
    parents = list(model.parents)
    shape = "a tree" if len(set(parents)) < len(parents) else "a chain"
    properties = [f"{shape} of {len(model.bodies)} links"]
    properties += ["with rotors"] if any(any(body.armature) for body in model.bodies) else []
    properties += ["massless links"] if not all(body.inertia.any() for body in model.bodies) else []
    return ", ".join(properties)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of a comparison of two sides on some robots.

    Attributes:
        counterexample: A robot on which they differ, if one was found.
        singular: Operators that they invert and that have no inverse on some robot.
        robots: Number of robots on which they agree.
    """

    counterexample: Counterexample | None
    singular: tuple[Expr, ...]
    robots: int

    @property
    def agrees(self) -> bool:
        """Whether the sides exist and are equal on every conclusive robot."""
        return self.counterexample is None and not self.singular and self.robots > 0


@lru_cache(maxsize=256)
def compare(sides: Sides, needs: frozenset[str], seeds: Iterable[int] = CHECK_SEEDS) -> Comparison:
    """Two sides as matrices on random robots that meet hypotheses, until they differ."""
    singular: dict[Expr, None] = {}
    robots = 0
    for seed in seeds:
        try:
            counterexample, blurred = _compare_on(sides, needs, seed)
        except NotInvertibleError as error:
            singular[error.of] = None
            continue
        if counterexample is not None:
            return Comparison(counterexample, tuple(singular), robots)
        robots += not blurred
    return Comparison(None, tuple(singular), robots)


def _compare_on(
    sides: Sides, needs: frozenset[str], seed: int
) -> tuple[Counterexample | None, bool]:
    """A counterexample, and whether rounding makes the robot inconclusive."""
    rng = np.random.default_rng(seed)
    model = random_model_with(rng, needs)
    loops = random_loops(np.random.default_rng([seed, 1]), model, needs)
    values = random_vectors(rng, model, sides, loops)
    q, axes = random_configuration(model, rng), random_axes(rng, model, needs)

    def gap(noise: np.random.Generator | None) -> tuple[Array, Array]:
        dense = PerturbedDense(model, q, vectors=values, tasks=("link3",), axes=axes, loops=loops)
        dense.noise = noise
        ours, theirs = (dense(side) for side in sides)
        return ours - theirs, theirs

    unperturbed, theirs = gap(None)
    scale = max(1e-2, _largest(theirs))
    difference = _largest(unperturbed)
    if difference <= RELATIVE_TOLERANCE * scale:
        return None, False
    perturbed = (gap(np.random.default_rng(each))[0] for each in range(2))
    rounding = max(_largest(each - unperturbed) for each in perturbed)
    if difference > MIN_ROUNDING_RATIO * rounding:
        return Counterexample(seed, model, difference, _largest(theirs)), False
    return None, MIN_ROUNDING_RATIO * rounding > scale


def _largest(matrix: Array) -> float:
    return float(np.abs(matrix).max(initial=0.0))


def sufficient_hypotheses(sides: Sides, needs: frozenset[str]) -> tuple[frozenset[str], ...]:
    """The smallest sets of further hypotheses under which two sides agree on random robots."""
    sets: list[frozenset[str]] = []
    # What fails with all hypotheses fails with fewer: there are more robots then.
    if not compare(sides, frozenset(HYPOTHESES)).agrees:
        return ()
    for more in _subsets(sorted(HYPOTHESES.keys() - needs - _idle_hypotheses(sides))):
        if sets and len(more) > len(sets[0]):
            break
        if compare(sides, needs | more).agrees:
            sets.append(more)
    return tuple(sets)


def _idle_hypotheses(sides: Sides) -> frozenset[str]:
    """Hypotheses about loops if two sides have none."""
    spaces = {node.domain for node in unfold_definitions(sides)}
    none = spaces.isdisjoint((LOOP, MINIMAL))
    return frozenset({"independent", "uncoupled"}) if none else frozenset()


def _subsets(names: list[str]) -> Iterator[frozenset[str]]:
    for size in range(1, len(names) + 1):
        yield from map(frozenset, combinations(names, size))


def describe_hypotheses(sets: Iterable[frozenset[str]]) -> str:
    """Sets of hypotheses in words."""
    return "; or ".join(
        f"{', '.join(HYPOTHESES[name].says for name in sorted(names))} "
        f"(needs={{{', '.join(map(repr, sorted(names)))}}})"
        for names in sets
    )

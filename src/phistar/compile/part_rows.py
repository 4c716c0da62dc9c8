# SPDX-License-Identifier: BSD-3-Clause
"""Parts of matrices over the joints that nobody needs in full, as traced quantities.

The programs are those of the whole results; what is not asked for is not stored, and what only it
needs is not computed. They are for robots whose coordinates are those of their bodies, in order;
others, and those too large for one unrolled program, take parts of whole results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phistar.backends.policy import UNROLLED, BundleWork, MatrixWork, decide
from phistar.backends.robot_programs import OPTIONAL_INPUTS
from phistar.compile.requests import RESULT_OUTPUT, Shape, Traced
from phistar.model.branch_pattern import (
    parents_first,
    related_coordinates,
    shifting_coordinates,
)
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.packed import EntryPattern

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled

RESULTS = {"linearize": ("vdot", "tau"), "linearize_inverse": ("tau", "vdot")}
"""Of each linearization: the vector that is differentiated, and the last of its arguments."""

PATTERNS: Mapping[str, str] = {"q": "shifted", "v": "related", "vdot": "related"}
"""What is zero in the derivatives of joint forces, see ``entry_pattern``."""

Indices = tuple[int, ...]


def has_vector(name: str, wrt: Sequence[str]) -> bool:
    """Whether a part gives the vector itself: accelerations only where derivatives need them."""
    return name == "linearize_inverse" or "q" in wrt


@cached_on_model
def _patterns(model: Model) -> Mapping[str, EntryPattern]:
    related = related_coordinates(model)
    return {
        "related": EntryPattern.of(related),
        "shifted": EntryPattern.of(related & ~shifting_coordinates(model)),
        "packed": EntryPattern.of(np.tril(related), parents_first(model)),
    }


def entry_pattern(model: Model, kind: str) -> EntryPattern:
    """Entries of a matrix that can be other than zero.

    Args:
        model: The robot.
        kind: ``"related"``, of links of one branch; ``"shifted"``, the same without the columns of
            coordinates that only shift the robot; ``"packed"``, the first on and below the
            diagonal.
    """
    return _patterns(model)[kind]


def _packed_mass_matrix(model: Model) -> Unrolled:
    from phistar.compile.pipeline import kernel
    from phistar.scalar.lower import LoweringOptions
    from phistar.scalar.lower_matrix import to_unrolled_matrix

    compiled = kernel("mass_matrix", model)
    (forms,) = compiled.draft.forms.values()
    absent, options = frozenset(OPTIONAL_INPUTS), LoweringOptions(regroup=True)
    whole = to_unrolled_matrix(forms, model, absent=absent, options=options)
    pattern = entry_pattern(model, "packed")
    kept = {i * model.nv + j: n for n, (i, j) in enumerate(_pairs(pattern))}
    stores = [
        replace(store, space=RESULT_OUTPUT, index=kept[store.index])
        for store in whole.block.stores
        if store.index in kept
    ]
    signature = replace(whole.signature, outputs={RESULT_OUTPUT: len(pattern)})
    return replace(whole, signature=signature, block=replace(whole.block, stores=stores))


def _packed_work(model: Model) -> MatrixWork | None:
    entries = len(entry_pattern(model, "packed"))
    work = MatrixWork(model.nv, entries)
    return work if _is_compiled(model, work) else None


def _is_compiled(model: Model, work: MatrixWork | BundleWork) -> bool:
    """Whether there is one unrolled program for the whole."""
    fits = decide(work, len(model.bodies)).shape == UNROLLED
    return joint_map(model).is_identity and fits


def _pairs(pattern: EntryPattern) -> list[tuple[int, int]]:
    return list(zip(pattern.rows.tolist(), pattern.columns.tolist(), strict=True))


def _part(name: str, single: bool = False) -> Callable[..., Unrolled]:
    """Tracer of some of the matrices of a bundle, in some rows and columns."""

    def trace(model: Model, wrt: tuple[str, ...], rows: Indices, columns: Indices) -> Unrolled:
        vector, _ = RESULTS[name]
        names = [f"{vector}_{each}" for each in wrt]
        every = tuple(range(model.nv))
        given = (names, rows or every, columns or every)
        return _traced_part(name, model, *given, None, has_vector(name, wrt), single)

    return trace


def _sparse(model: Model) -> Unrolled:
    every = tuple(range(model.nv))
    places = {f"tau_{x}": _pairs(entry_pattern(model, kind)) for x, kind in PATTERNS.items()}
    return _traced_part("linearize_inverse", model, list(places), every, every, places)


def _traced_part(
    name: str,
    model: Model,
    names: Sequence[str],
    rows: Indices,
    columns: Indices,
    places: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    with_vector: bool = True,
    single: bool = False,
) -> Unrolled:
    from phistar.compile.pipeline import lowered_bundle
    from phistar.scalar.lower import LoweringOptions
    from phistar.scalar.lower_fused import BundlePart, to_fused

    bundle = lowered_bundle(name, model.turning_rotors)
    if single:
        # Walks in common axes lose a digit more on long robots.
        bundle = replace(bundle, split=None)
    return to_fused(
        bundle,
        model,
        frozenset(OPTIONAL_INPUTS),
        LoweringOptions(regroup=True),
        part=BundlePart(names, rows, columns, places or {}, with_vector),
    )


def _part_shapes(name: str) -> Callable[..., Mapping[str, Shape]]:
    vector, _ = RESULTS[name]

    def shapes(
        model: Model, wrt: tuple[str, ...], rows: Indices, columns: Indices
    ) -> Mapping[str, Shape]:
        matrix = (len(rows) or model.nv, len(columns) or model.nv)
        first = {vector: (model.nv,)} if has_vector(name, wrt) else {}
        return {**first, **{f"{vector}_{each}": matrix for each in wrt}}

    return shapes


def _sparse_shapes(model: Model) -> Mapping[str, Shape]:
    sizes = {f"tau_{x}": (len(entry_pattern(model, kind)),) for x, kind in PATTERNS.items()}
    return {"tau": (model.nv,), **sizes}


def _bundle_work(model: Model, *_: object) -> BundleWork | None:
    work = BundleWork(model.nv)
    return work if _is_compiled(model, work) else None


def _choices(last: str) -> Mapping[str, object]:
    """Everything; no rows or columns named are all of them."""
    return {"wrt": ("q", "v", last), "rows": (), "columns": ()}


PART_ROWS = (
    Traced(
        "mass_matrix_packed",
        ("q",),
        lambda model: (len(entry_pattern(model, "packed")),),
        _packed_mass_matrix,
        _packed_work,
        defined="𝓜 = H φ M φ* H*, entries of one branch on and below the diagonal",
    ),
    *(
        Traced(
            f"{name}_part",
            ("q", "v", last),
            _part_shapes(name),
            _part(name),
            _bundle_work,
            choices=_choices(last),
            defined=f"some rows and columns of some of the matrices of {name}",
            trace_single=_part(name, single=True),
        )
        for name, (_, last) in RESULTS.items()
    ),
    Traced(
        "linearize_inverse_sparse",
        ("q", "v", "vdot"),
        _sparse_shapes,
        _sparse,
        _bundle_work,
        defined="∂τ/∂q, ∂τ/∂v and 𝓜, entries of one branch, row by row",
    ),
)

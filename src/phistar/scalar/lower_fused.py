# SPDX-License-Identifier: BSD-3-Clause
"""Several matrices and vectors of one robot in one unrolled program: what they share is done once.

Products of matrices come last. Small ones are unrolled, so that zeros fold away; large ones are
loops over stored numbers. Matrices made by single walks are in the axes of the root
(``trace.branch_rows``), with a loop over rows that have the same operations. Where both ways are
possible, the faster one is taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from phistar.errors import LoweringError
from phistar.model.model import Model
from phistar.model.wrenches import WrenchFrames
from phistar.scalar.graph import WORK, Scalar
from phistar.scalar.lower import (
    DEFAULT_OPTIONS,
    INPUT_ORDER,
    LoweringOptions,
    input_sizes,
    quaternion_entries,
    trace_context,
    uniform_link_numbers,
)
from phistar.scalar.lower_matrix import MatrixTracer, cheapest_form
from phistar.scalar.program import BasicBlock, MatrixProduct, RowLoop, Signature, Store, Unrolled
from phistar.scalar.robot.link_numbers import LinkNumbers
from phistar.scalar.trace.branch_rows import BranchRows
from phistar.scalar.trace.frame_wrenches import LinkWrenches, SeatedWrenches, link_wrenches
from phistar.scalar.trace.link_operations import as_vector
from phistar.scalar.trace.link_tracer import LinkForce
from phistar.scalar.trace.root_axes import RootAxesLinks
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unrolled import UnrolledTrace, output_stores
from phistar.scalar.trace.wrench_stiffness import stiffness
from phistar.sweeps.ir import StreamProgram
from phistar.sweeps.matrix_requests import LoweredBundle, MatrixForm
from phistar.thresholds import POLICY

MatrixEntries = Mapping[tuple[int, int], Scalar]
Places = Sequence[tuple[int, int]]
"""Rows and columns of entries."""


@dataclass(frozen=True)
class BundlePart:
    """What is wanted of the matrices of a bundle.

    Attributes:
        names: The matrices.
        rows, columns: Those of all of them that are wanted, in order.
        places: Entries that are wanted of some, in place of all of their rows and columns; not of
            products.
        with_vectors: Whether the vectors of the bundle are wanted, too.
    """

    names: Sequence[str]
    rows: Sequence[int]
    columns: Sequence[int]
    places: Mapping[str, Places] = field(default_factory=dict)
    with_vectors: bool = True

    def places_of(self, name: str) -> Places:
        """The entries of a matrix that are wanted, in order."""
        return self.places.get(name) or [(i, j) for i in self.rows for j in self.columns]


FORCE_BY_Q = "tau_q"
"""Name of the derivatives of joint forces along steps of q, with forces held in link axes."""


def to_fused(
    assembly: LoweredBundle,
    model: Model,
    absent: Set[str] = frozenset(),
    options: LoweringOptions = DEFAULT_OPTIONS,
    wrenches: WrenchFrames | None = None,
    part: BundlePart | None = None,
) -> Unrolled:
    """An assembly, unrolled for a robot.

    Args:
        assembly: What is wanted.
        model: The robot.
        absent: Inputs that are not given: zero, or for gravity the robot's own.
        options: What may be chosen.
        wrenches: Frames on which wrenches are given, in place of external forces on links. Those
            that are held in the world are known to products of matrices only.
        part: What is wanted of its matrices, by products where there are some; None: all.
    """
    rest = (assembly, model, absent, options, wrenches)
    if part is not None:
        return _ProductTracer(*rest, part).program()
    if wrenches is not None and wrenches.turn:
        return _ProductTracer(*rest).program()
    if not assembly.matrices and assembly.split is not None:
        return _BranchTracer(*rest).program()
    first = _ProductTracer(*rest)
    multiplied = first.program()
    if assembly.split is None or first.size <= POLICY.max_product_rows_unrolled:
        return multiplied
    walked = _BranchTracer(*rest).program()
    return (
        walked
        if _estimate_time(walked) < POLICY.max_branch_time_ratio * _estimate_time(multiplied)
        else multiplied
    )


def _estimate_time(program: Unrolled) -> int:
    """Estimated time: an unrolled operation takes as long as two in a loop."""
    loops = sum(product.count()["mul"] for product in program.products)
    for repeat in program.row_loops:
        loops += len(repeat.rows) * repeat.block.graph.count_fused(repeat.block.roots)
    return loops + 2 * program.block.graph.count_fused(program.block.roots)


class _FusedTracer(ABC):
    """One assembly on one robot."""

    links_type: type[TracedLinks] = TracedLinks

    def __init__(
        self,
        assembly: LoweredBundle,
        model: Model,
        absent: Set[str],
        options: LoweringOptions,
        wrenches: WrenchFrames | None = None,
        part: BundlePart | None = None,
    ) -> None:
        self.assembly = assembly
        self.model = model
        self.absent = absent
        self.links: Sequence[LinkNumbers] = uniform_link_numbers(model, frozenset(), options)
        self.traced_links = self.links_type(self.links)
        self.seated = None if wrenches is None else SeatedWrenches(model, wrenches)
        self.wrenches: LinkWrenches | None = None
        if self.seated is not None:
            self.wrenches = link_wrenches(self.traced_links, self.seated)
        self.size = sum(body.joint_kind.nv for body in model.bodies)
        every = range(self.size)
        self.part = part or BundlePart(assembly.outputs, every, every)
        self.stores: list[Store] = []
        self.products: list[MatrixProduct] = []
        self.row_loops: list[RowLoop] = []
        self.slots = 0

    def program(self) -> Unrolled:
        """The unrolled program."""
        vectors = self._vectors() if self.part.with_vectors else {}
        programs, unread = self._matrices()
        sizes = {name: len(self.part.places_of(name)) for name in self.part.names}
        given: dict[str, int] = {}
        for program in (self.assembly.vectors.program, *programs):
            unused = self.absent | unread
            given |= input_sizes(program, self.model, unused, frozenset(), self.seated)
        order = sorted(given, key=_input_order_key)
        signature = Signature(
            {n: given[n] for n in order}, {**vectors, **sizes}, quaternion_entries(self.model)
        )
        body = BasicBlock(self.traced_links.graph, self.stores)
        return Unrolled(signature, body, tuple(self.products), self.slots, tuple(self.row_loops))

    @abstractmethod
    def _matrices(self) -> tuple[list[StreamProgram], set[str]]:
        """Store all matrices; the programs that they came from, and inputs these do not read."""

    def _vectors(self) -> dict[str, int]:
        schedule = self.assembly.vectors
        context = trace_context(schedule.program, self.model, self.absent)
        trace = UnrolledTrace(self.traced_links, replace(context, link_force=self._link_force))
        trace.run(schedule)
        for name, stream in schedule.program.outputs.items():
            kind = schedule.program.nodes[stream].type
            for link in trace.tracers:
                self.stores += output_stores(name, kind, link, as_vector(link.value(stream)))
        return dict.fromkeys(schedule.program.outputs, self.size)

    @property
    def _link_force(self) -> LinkForce | None:
        return None if self.wrenches is None else self.wrenches.force

    def _spill(self, x: Scalar | None) -> int:
        """The slot of a number; None only makes room."""
        if x is not None:
            self.stores.append(Store(WORK, self.slots, "", x))
        self.slots += 1
        return self.slots - 1

    def _store(self, name: str, entries: MatrixEntries, others: Set[int] = frozenset()) -> None:
        """All entries that are wanted but some; what has no number is zero."""
        self.stores += [
            Store(name, place, "", entries.get(at, 0.0))
            for place, at in enumerate(self.part.places_of(name))
            if place not in others
        ]


class _ProductTracer(_FusedTracer):
    """Products of matrices as such."""

    def _matrices(self) -> tuple[list[StreamProgram], set[str]]:
        assembly = self.assembly
        chosen = {n: cheapest_form(forms, self.links) for n, forms in assembly.matrices.items()}
        found = {name: self._matrix(form) for name, form in chosen.items()}
        if self.wrenches is not None and self.wrenches.at.turn:
            found[FORCE_BY_Q] = _difference(found[FORCE_BY_Q], stiffness(self.wrenches))
        kept: dict[str, int] = {}
        for name, (left, right) in assembly.products.items():
            if name not in self.part.names:
                continue
            if self.size <= POLICY.max_product_rows_unrolled:
                found[name] = self._expanded(found[left], found[right])
            else:
                self._product(name, left, right, found, kept)
        for name in self.part.names:
            if name in found:
                self._store(name, found[name])
        programs = [form.schedule.program for form in chosen.values()]
        return programs, {form.argument for form in chosen.values()}

    def _matrix(self, form: MatrixForm) -> MatrixEntries:
        rest = (self.links, self.model, (), self.absent)
        return MatrixTracer(
            form, *rest, traced_links=self.traced_links, link_force=self._link_force
        ).entries()

    def _expanded(self, left: MatrixEntries, right: MatrixEntries) -> MatrixEntries:
        result: dict[tuple[int, int], Scalar] = {}
        by_row: dict[int, list[tuple[int, Scalar]]] = {}
        for (i, k), x in left.items():
            by_row.setdefault(i, []).append((k, x))
        for i, row in by_row.items():
            for j in range(self.size):
                total: Scalar = 0.0
                for k, x in row:
                    total = total + x * right.get((k, j), 0.0)
                result[i, j] = -total
        return result

    def _product(
        self,
        name: str,
        left: str,
        right: str,
        found: Mapping[str, MatrixEntries],
        kept: dict[str, int],
    ) -> None:
        if left in self.assembly.products:
            raise LoweringError(f"{left} is itself a product; it cannot be a factor of {name}")
        if left not in kept:
            kept[left] = self.slots
            for i in self.part.rows:
                for k in range(self.size):
                    self._spill(found[left].get((i, k), 0.0))
        columns: list[dict[int, int]] = [{} for _ in range(self.size)]
        wanted = frozenset(self.part.columns)
        for (k, j), x in sorted(found[right].items(), key=lambda item: item[0][::-1]):
            if j in wanted and not (isinstance(x, float) and x == 0.0):
                columns[j][k] = self._spill(x)
        rows, chosen = len(self.part.rows), [columns[j] for j in self.part.columns]
        self.products.append(MatrixProduct(name, kept[left], rows, chosen, self.size))


class _BranchTracer(_FusedTracer):
    """Single walks, the rows of each segment of the robot repeated."""

    links_type = RootAxesLinks

    def _matrices(self) -> tuple[list[StreamProgram], set[str]]:
        split = self.assembly.split
        assert split is not None
        found = BranchRows(
            split, self.model, self.absent, self.traced_links, self._spill, self._link_force
        )
        self.row_loops += found.row_loops
        for name in self.assembly.outputs:
            others = {
                row * self.size + store.index
                for repeat in found.row_loops
                for store in repeat.block.stores
                if store.space == name
                for row in repeat.rows
            }
            self._store(name, found.entries[name], others)
        return [split.schedule.program], {split.argument}


def _difference(left: MatrixEntries, right: MatrixEntries) -> MatrixEntries:
    return {at: left.get(at, 0.0) - right.get(at, 0.0) for at in {**left, **right}}


def _input_order_key(name: str) -> tuple[int, str]:
    """The configuration comes first, then the vectors that people give, then others by name."""
    order = ("q", *INPUT_ORDER)
    return (order.index(name) if name in order else len(order), name)

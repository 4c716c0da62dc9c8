# SPDX-License-Identifier: BSD-3-Clause
"""Several matrices and vectors of one robot in one unrolled program: what they share is done once.

Products of matrices come last. Small ones are unrolled, so that zeros fold away; large ones are
loops over stored numbers, or, where the left matrix itself is not wanted, a straight line with its
factors, which have more zeros. Matrices made by single walks are in the axes of the root
(``trace.branch_rows``), with a loop over rows that have the same operations. Where several ways are
possible, the fastest one is taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise

from phistar.errors import LoweringError
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.wrenches import WrenchFrames
from phistar.scalar.graph import WORK, Scalar, Value
from phistar.scalar.linear.sparse_entries import (
    MatrixEntries,
    SparseRows,
    congruence,
    count_congruence,
    nonzero_columns,
    nonzero_rows,
    times_column,
)
from phistar.scalar.lower import (
    DEFAULT_OPTIONS,
    INPUT_ORDER,
    LoweringOptions,
    input_sizes,
    quaternion_entries,
    trace_context,
    uniform_link_numbers,
)
from phistar.scalar.lower_matrix import FULL_MATRIX, MatrixTracer, cheapest_form
from phistar.scalar.program import (
    BasicBlock,
    MatrixProduct,
    ProductBand,
    RowLoop,
    Signature,
    Store,
    Unrolled,
)
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
from phistar.sweeps.matrix_requests import Block, LoweredBundle, MatrixForm, Request
from phistar.thresholds import POLICY

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


FORCE_BY_Q, FORCE_BY_V = "tau_q", "tau_v"
"""Names of the derivatives of joint forces, along steps of q with forces held in link axes."""

FALLING_COLUMNS = {FORCE_BY_Q: range(3), FORCE_BY_V: range(3, 6)}
"""Coordinates of a free base [angular; linear] along which it and all that it carries get the same
acceleration, by q as gravity turns in the axes of the base, by v from there on as these turn."""

_FREE = tuple(((axis, 1.0),) for axis in range(6))


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
    rest = (assembly, model, absent, options, wrenches, part)
    if not assembly.matrices and assembly.split is not None:
        return _BranchTracer(*rest).program()
    turned = wrenches is not None and wrenches.turn
    first = (_ProductTracer if turned else _product_tracer(assembly, model, part))(*rest)
    multiplied = first.program()
    if turned or not multiplied.products:
        return multiplied
    lefts = {left for left, _ in assembly.products.values()}
    has_left = not lefts.isdisjoint(first.part.names)
    if assembly.split is not None and first.is_whole:
        ratio = POLICY.max_branch_time_ratio if has_left else POLICY.max_branch_part_time_ratio
        walked = _BranchTracer(*rest).program()
        if _estimate_time(walked) < ratio * _estimate_time(multiplied):
            return walked
    operations = _count_operations(multiplied)
    if has_left or assembly.factors is None or operations > POLICY.max_operations_factored:
        return multiplied
    solved = _FactorTracer(*rest).program()
    return solved if _count_operations(solved) < operations else multiplied


def _product_tracer(
    assembly: LoweredBundle, model: Model, part: BundlePart | None
) -> type[_ProductTracer]:
    """How products are made: by innovations where they are large."""
    wanted = assembly.outputs if part is None else part.names
    if assembly.innovations is None or assembly.products.keys().isdisjoint(wanted):
        return _ProductTracer
    size = sum(body.joint_kind.nv for body in model.bodies)
    return _InnovationTracer if size >= POLICY.min_rows_innovations else _ProductTracer


def _estimate_time(program: Unrolled) -> int:
    """Estimated time: an unrolled operation takes as long as two in a loop."""
    return _count_operations(program) + program.block.graph.count_fused(program.block.roots)


def _count_operations(program: Unrolled) -> int:
    """Operations, a product that is added to something counted once."""
    loops = sum(product.count()["mul"] for product in program.products)
    for repeat in program.row_loops:
        loops += len(repeat.rows) * repeat.block.graph.count_fused(repeat.block.roots)
    return loops + program.block.graph.count_fused(program.block.roots)


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

    @property
    def is_whole(self) -> bool:
        """Whether all rows and columns are wanted, in order."""
        every = list(range(self.size))
        return list(self.part.rows) == every == list(self.part.columns)

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
        self.used: list[MatrixForm] = []
        found = {name: self._matrix(self.assembly.matrices[name]) for name in self._needed()}
        for name in {left for left, _ in self.assembly.products.values()} & found.keys():
            found[name] = self._by_factors(found[name])
        if self.wrenches is not None and self.wrenches.at.turn and FORCE_BY_Q in found:
            found[FORCE_BY_Q] = _difference(found[FORCE_BY_Q], stiffness(self.wrenches))
        self._multiply(found)
        for name in self.part.names:
            if name in found:
                self._store(name, found[name])
        programs = [form.schedule.program for form in self.used]
        return programs, {form.argument for form in self.used}

    def _needed(self) -> list[str]:
        """Matrices that are wanted, or factors of products that are."""
        products = self.assembly.products
        wanted = {each for n in self.part.names for each in products.get(n, (n,))}
        return [name for name in self.assembly.matrices if name in wanted]

    def _multiply(self, found: dict[str, MatrixEntries]) -> None:
        """Products that are wanted, of matrices that are there."""
        kept: dict[str, int] = {}
        for name, (left, right) in self.assembly.products.items():
            if name not in self.part.names:
                continue
            if self.size <= POLICY.max_product_rows_unrolled:
                found[name] = self._expanded(right, found[left], found[right])
            else:
                self._product(name, left, right, found, kept)

    def _matrix(self, forms: Sequence[MatrixForm], request: Request = FULL_MATRIX) -> MatrixEntries:
        form = cheapest_form(forms, self.links)
        self.used.append(form)
        rest = (self.links, self.model, (), self.absent, request)
        return MatrixTracer(
            form, *rest, traced_links=self.traced_links, link_force=self._link_force
        ).entries()

    def _by_factors(self, entries: MatrixEntries) -> MatrixEntries:
        """The left matrix of products, by its factors if that takes fewer operations."""
        if self.assembly.factors is None:
            return entries
        lower, pivots = map(self._matrix, self.assembly.factors)
        count = self._count(entries)
        if count_congruence(lower, pivots) >= count:
            return entries
        found = congruence(lower, pivots)
        return found if self._count(found) < count else entries

    def _count(self, entries: MatrixEntries) -> int:
        roots = [x for x in entries.values() if isinstance(x, Value)]
        return self.traced_links.graph.count_fused(roots)

    def _expanded(self, name: str, left: MatrixEntries, right: MatrixEntries) -> MatrixEntries:
        result: dict[tuple[int, int], Scalar] = {}
        falling = {j: self._falling(name, j, right) for j in range(self.size)}
        by_row: dict[int, list[tuple[int, Scalar]]] = {}
        for (i, k), x in left.items():
            by_row.setdefault(i, []).append((k, x))
        for i, row in by_row.items():
            for j in range(self.size):
                solved = falling[j]
                if solved is not None:
                    result[i, j] = -solved.get(i, 0.0)
                    continue
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
        entries = nonzero_columns(found[right])
        columns: list[dict[int, int]] = []
        known: dict[int, int] = {}
        for place, j in enumerate(self.part.columns):
            solved = self._falling(right, j, found[right])
            used = entries.get(j, {}) if solved is None else {}
            columns.append({k: self._spill(x) for k, x in used.items()})
            for n, i in enumerate(self.part.rows):
                if solved is not None and i in solved:
                    known[n * len(self.part.columns) + place] = self._spill(-solved[i])
        rows = len(self.part.rows)
        self.products.append(MatrixProduct(name, kept[left], rows, columns, self.size, known))

    def _falling(self, right: str, j: int, entries: MatrixEntries) -> dict[int, Scalar] | None:
        """A column of the product, where a free base and all that it carries move alike.

        The column of the right matrix is then that of 𝓜 for some acceleration of the base, which is
        the solution; forces along it are the mass of everything times it.
        """
        if right == FORCE_BY_Q and self.wrenches is not None and self.wrenches.at.turn:
            return None
        for root in self._free_roots():
            if j - root.v in FALLING_COLUMNS.get(right, ()):
                carried = self._carried_mass(root)
                forces = {i: entries.get((i, j), 0.0) for i in range(root.v + 3, root.v + 6)}
                return {
                    i: x * (1.0 / carried) for i, x in forces.items() if isinstance(x, Value) or x
                }
        return None

    def _free_roots(self) -> list[LinkNumbers]:
        return [x for x in self.links if x.parent == GROUND and x.columns == _FREE]

    def _carried_mass(self, root: LinkNumbers) -> float:
        above = {root.index}
        for link in self.links:
            if link.parent in above:
                above.add(link.index)
        return sum(self.links[k].mass for k in sorted(above))


class _InnovationTracer(_ProductTracer):
    """Products with innovations: of two matrices that are zero for joints of different branches.

    Rows of the left one that follow one another are a band, with the columns of all of them; so
    are rows on the right, each with the columns in which one of them is not zero.
    """

    def _matrices(self) -> tuple[list[StreamProgram], set[str]]:
        assert self.assembly.innovations is not None
        self.used: list[MatrixForm] = []
        response, found = self.assembly.innovations
        left = nonzero_rows(self._matrix(response))
        self.bands = banded_rows([frozenset(left[i]) for i in range(self.size)])
        bands = self._left_bands(left)
        for name in self.part.names:
            entries = self._matrix(found[name])
            known = self._known(name)
            slots = self._right_slots(entries, known.keys())
            across = len(self.part.columns)
            kept = {
                n * across + place: self._spill(-known[j][i])
                for place, j in enumerate(self.part.columns)
                for n, i in enumerate(self.part.rows)
                if i in known.get(j, {})
            }
            mirrored = _mirrored(self.size) if self._is_mirrored(name) else {}
            rows = len(self.part.rows)
            self.products.append(
                MatrixProduct(name, 0, rows, slots, self.size, kept, bands, mirrored)
            )
        programs = [form.schedule.program for form in self.used]
        return programs, {form.argument for form in self.used}

    def _is_mirrored(self, name: str) -> bool:
        """Whether a matrix is wanted whole, and is symmetric."""
        return self.is_whole and name not in self.assembly.products

    def _left_bands(self, left: SparseRows) -> list[ProductBand]:
        """The wanted rows on the left, kept."""
        found = []
        for band in _runs_within(self.part.rows, self.bands):
            chosen = [left[self.part.rows[n]] for n in band]
            inner = sorted({k for row in chosen for k in row})
            first = self.slots
            for row in chosen:
                for k in inner:
                    self._spill(row.get(k, 0.0))
            found.append(ProductBand(band, inner, first))
        return found

    def _right_slots(self, entries: MatrixEntries, others: Set[int]) -> list[dict[int, int]]:
        """Slots of a right matrix, for each wanted column; none for some columns.

        Blocks are kept whole, if not zero.
        """
        rows, across = nonzero_rows(entries), self.part.columns
        slots: list[dict[int, int]] = [{} for _ in across]
        for run in _runs_within(across, self.bands):
            places = [n for n in run if across[n] not in others]
            for band in self.bands:
                if any(across[n] in rows.get(k, {}) for k in band for n in places):
                    for k in band:
                        for n in places:
                            slots[n][k] = self._spill(rows.get(k, {}).get(across[n], 0.0))
        return slots

    def _known(self, name: str) -> dict[int, dict[int, Scalar]]:
        """Columns of minus the product along which a free base falls with all that it carries."""
        found: dict[int, dict[int, Scalar]] = {}
        _, right = self.assembly.products.get(name, ("", ""))
        for root in self._free_roots() if right else ():
            block = self._matrix(self.assembly.matrices[right], Block(root.index, root.index))
            for j in range(root.v, root.v + 6):
                solved = self._falling(right, j, block)
                if solved is not None:
                    found[j] = solved
        return found


def banded_rows(supports: Sequence[frozenset[int]]) -> list[range]:
    """Rows and columns that follow one another, cut so that products by blocks take little time.

    At first, those which are related to the same others are together; bands are joined as long as
    that gains time.

    Args:
        supports: The columns in which each row of the left matrix is not zero: those of the joints
            that carry it, and of its own. Rows of right matrices have them, and those in whose
            support they are.
    """
    size = len(supports)
    related = [
        {k for k in range(size) if k in supports[i] or i in supports[k]} for i in range(size)
    ]
    cuts = [0, *(i for i in range(1, size) if related[i] != related[i - 1]), size]
    bands = [x for a, b in pairwise(cuts) for x in _even_ranges(a, b)]

    def time(bands: Sequence[range]) -> int:
        """Multiplications, of tiles with some three rows."""
        inner = [frozenset().union(*(supports[i] for i in band)) for band in bands]
        blocks = [frozenset().union(*(related[i] for i in band)) for band in bands]
        return sum(
            -(-len(a) // 3) * (3 * len(b) * len(x & y) + POLICY.tile_start_products)
            for a, x in zip(bands, inner, strict=True)
            for b, y in zip(bands, blocks, strict=True)
        )

    best = time(bands)
    while True:
        joined = [
            [*bands[:n], range(a.start, b.stop), *bands[n + 2 :]]
            for n, (a, b) in enumerate(pairwise(bands))
            if b.stop - a.start <= POLICY.max_band_rows
        ]
        times = [time(each) for each in joined]
        if not times or min(times) >= best:
            return bands
        best = min(times)
        bands = joined[times.index(best)]


def _even_ranges(start: int, stop: int) -> list[range]:
    """As few ranges as rows of a band allow, about as long as each other."""
    parts = -(-(stop - start) // POLICY.max_band_rows)
    cuts = [start + n * (stop - start) // parts for n in range(parts + 1)]
    return [range(a, b) for a, b in pairwise(cuts)]


def _runs_within(numbers: Sequence[int], bands: Sequence[range]) -> list[range]:
    """Places of numbers that follow one another within a band."""
    band_of = {i: n for n, band in enumerate(bands) for i in band}
    cuts = [n for n in range(1, len(numbers)) if band_of[numbers[n]] != band_of[numbers[n - 1]]]
    return [range(a, b) for a, b in pairwise([0, *cuts, len(numbers)])]


def _mirrored(size: int) -> dict[int, int]:
    """Entries below the diagonal, and those across it."""
    return {i * size + j: j * size + i for i in range(size) for j in range(i)}


class _FactorTracer(_ProductTracer):
    """Products by the factors L⁻*D⁻¹L⁻¹ of the left matrix, column by column.

    A joint's column passes its own branch inward and goes out to all others from where they meet,
    so that factors have as few entries as there are links above and below each other.
    """

    def _needed(self) -> list[str]:
        lefts = {left for left, _ in self.assembly.products.values()}
        return [name for name in super()._needed() if name not in lefts]

    def _multiply(self, found: dict[str, MatrixEntries]) -> None:
        assert self.assembly.factors is not None
        lower, pivots = map(self._matrix, self.assembly.factors)
        steps = nonzero_rows(lower), nonzero_rows(pivots), nonzero_columns(lower)
        for name, (_, right) in self.assembly.products.items():
            if name not in self.part.names:
                continue
            result: dict[tuple[int, int], Scalar] = {}
            columns = nonzero_columns(found[right])
            for j in self.part.columns:
                solved = self._falling(right, j, found[right])
                if solved is None:
                    solved = columns.get(j, {})
                    for factor in steps:
                        solved = times_column(factor, solved)
                result |= {(i, j): -x for i, x in solved.items()}
            found[name] = result


class _BranchTracer(_FusedTracer):
    """Single walks, the rows of each segment of the robot repeated."""

    links_type = RootAxesLinks

    def _matrices(self) -> tuple[list[StreamProgram], set[str]]:
        assert self.assembly.split is not None
        wanted = frozenset(self.part.names)
        split = self.assembly.split.only(wanted)
        found = BranchRows(
            split, self.model, self.absent, self.traced_links, self._spill, self._link_force
        )
        self.row_loops += (_without_outputs(x, wanted) for x in found.row_loops)
        for name in self.part.names:
            others = {
                row * self.size + store.index
                for repeat in self.row_loops
                for store in repeat.block.stores
                if store.space == name
                for row in repeat.rows
            }
            self._store(name, found.entries[name], others)
        return [split.schedule.program], {split.argument}


def _without_outputs(repeat: RowLoop, wanted: Set[str]) -> RowLoop:
    """Rows of which only some outputs are stored."""
    block = repeat.block
    stores = [store for store in block.stores if store.space in wanted or store.space == WORK]
    return replace(repeat, block=replace(block, stores=stores))


def _difference(left: MatrixEntries, right: MatrixEntries) -> MatrixEntries:
    return {at: left.get(at, 0.0) - right.get(at, 0.0) for at in {**left, **right}}


def _input_order_key(name: str) -> tuple[int, str]:
    """The configuration comes first, then the vectors that people give, then others by name."""
    order = ("q", *INPUT_ORDER)
    return (order.index(name) if name in order else len(order), name)

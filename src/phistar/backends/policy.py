# SPDX-License-Identifier: BSD-3-Clause
"""Decisions: in which shape something is compiled, when, by which strategy, on how many threads.

``decide(request, bodies, batch)`` is pure: it compares what a request is about and the size of a
robot with the numbers of ``thresholds.POLICY``. Modules act on its result, and ``why`` of the same
result tells a person what was compared. A request is one of the classes ``...Work``: how much there
is to compute, in the unit that its rule counts in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from phistar.thresholds import POLICY, Policy

UNROLLED = "unrolled"
LOOPED = "looped"
NUMPY = "NumPy"
"""Shapes of code; the last one is no machine code."""

CACHE_LINE_BYTES = 64
"""Of a line of the caches; large arrays begin with one."""

SHAPE_OF_TIER = {"straight": UNROLLED, "rolled": LOOPED}
"""Shapes by the names that PHISTAR_TIER and ``robot.compile(shape=)`` have for them."""


@dataclass(frozen=True)
class Decision:
    """How something is computed.

    Attributes:
        shape: ``"unrolled"``, ``"looped"`` (over the links) or ``"NumPy"``: the final one.
        strategy: What the code does, e.g. ``"program"``, ``"fused"``, ``"columns"``.
        eager: Whether it is compiled while its user waits, not in a background thread.
        threads: That share the batch.
        why: Sentences with the numbers compared.
        alone: Whether single samples have a kernel of their own, with one lane, or in loops with
            columns of the matrix in the lanes; its results are the same bits.
        quick: Whether code in this shape that is not optimised answers until the final one is
            ready, which a background thread makes.
    """

    shape: str
    strategy: str
    eager: bool
    threads: int
    why: str
    alone: bool = False
    quick: bool = False

    def __str__(self) -> str:
        lanes = "columns in the lanes" if self.shape == LOOPED else "one lane"
        return "\n".join(
            (
                f"shape     {self.shape}",
                f"strategy  {self.strategy}",
                f"compiled  {self.when}",
                f"threads   {self.threads}",
                *((f"single    a kernel of its own, {lanes}",) if self.alone else ()),
                *(f"{'why' if i == 0 else '':10}{s}" for i, s in enumerate(self.why.split("; "))),
            )
        )

    @property
    def when(self) -> str:
        """When it is compiled, for people."""
        if self.shape == NUMPY:
            return "never"
        return "at once" if self.eager else "in a background thread"

    @property
    def line(self) -> str:
        """All of it in one line."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.shape}, {self.strategy}, {self.when}, {threads} ({self.why})"


@dataclass(frozen=True)
class Machine:
    """What a decision about threads depends on.

    Attributes:
        lanes: Samples side by side in a register.
        threads: That may be used.
    """

    lanes: int = 4
    threads: int = 1


@dataclass(frozen=True)
class VectorWork:
    """A program with vectors as outputs.

    Attributes:
        streams: That it computes at each link.
        shape: ``"straight"`` or ``"rolled"`` if the user wants it, else ``"auto"``.
    """

    streams: int
    shape: str = "auto"

    def decide(self, bodies: int, tier: str) -> Decision:
        """Loops for large programs; unrolled code for all others, at once where it is short."""
        weight = bodies * self.streams
        sizes = f"{_number(bodies)} links x {_number(self.streams)} streams"
        return _loops_or_unrolled("program", sizes, weight, self._tier(tier), limit=None)

    def _tier(self, tier: str) -> str:
        return tier if self.shape == "auto" else self.shape

    def estimated_operations(self, bodies: int) -> int:
        """Operations per sample, about."""
        return bodies * self.streams * POLICY.operations_per_link_stream


@dataclass(frozen=True)
class StagesWork:
    """One step of time as an unrolled program: dynamics at the stages of a scheme.

    Attributes:
        streams: That the dynamics computes at each link.
        stages: At which it does.
    """

    streams: int
    stages: int

    def decide(self, bodies: int, tier: str) -> Decision:
        """Unrolled unless it is too long: then dynamics and steps of q are composed."""
        weight, unit = bodies * self.streams * self.stages, "links x streams x stages"
        fits, text = _at_most(weight, POLICY.max_step_link_streams_unrolled, unit)
        if not fits:
            return _by_numpy(f"{text} are compiled")
        short, early = _at_most(weight, POLICY.max_link_streams_at_once, unit)
        found = Decision(UNROLLED, "step", short, 1, f"unrolled: {text} are")
        if short:
            return replace(found, why=f"{found.why}; at once: {early} are")
        return _when_tiered(found, tier, f"in a background thread: {early} are compiled at once")


@dataclass(frozen=True)
class MatrixWork:
    """The matrix of an operator, or a part of it.

    Attributes:
        side: The longer side of its largest block.
        entries: That it has.
        part_operations: Of a part by the plan for it; None: it is all of the matrix.
    """

    side: int
    entries: int
    part_operations: int | None = None

    def decide(self, bodies: int, tier: str) -> Decision:
        """None for enormous ones; loops for large ones; parts are unrolled in the background."""
        most = POLICY.max_matrix_entries
        if not 0 < self.entries <= most:
            return _by_numpy(f"{_number(self.entries)} entries, 1 to {_number(most)} are compiled")
        if self.part_operations is None:
            per_column = POLICY.streams_per_column
            weight = per_column * bodies * self.side
            sizes = f"{_number(bodies)} links x {_number(self.side)} columns x {per_column}"
            limit = per_column * POLICY.max_link_columns_unrolled
            found = _loops_or_unrolled("matrix", sizes, weight, tier, limit)
            if found.shape != LOOPED or tier in SHAPE_OF_TIER:
                return found
            why = f"{found.why}; a kernel for single samples: columns of loops side by side"
            return replace(found, alone=True, why=why)
        fits, text = _at_most(self.part_operations, POLICY.max_part_operations, "operations")
        if not fits:
            return _by_numpy(f"{text} are compiled for a part of a matrix")
        times = POLICY.part_requests_before_compile
        found = Decision(UNROLLED, "part of a matrix", False, 1, f"unrolled: {text} are")
        return _when_tiered(found, tier, f"in a background thread: from request {times} on")


@dataclass(frozen=True)
class BundleWork:
    """Vectors and matrices that are requested together, such as a linearization.

    Attributes:
        rows: Of its matrices.
        batches_only: Whether it is for batches, so that single samples need no code of their own.
    """

    rows: int
    batches_only: bool = False

    def decide(self, bodies: int, tier: str) -> Decision:
        """One unrolled kernel if it is not too long, else one result after the other."""
        weight = bodies * self.rows
        fits, text = _at_most(weight, POLICY.max_link_rows_fused, "links x rows")
        if not weight > 0 or not fits:
            return replace(_by_numpy(f"{text} are fused"), strategy="separate")
        soon = weight <= POLICY.max_link_rows_at_once
        strategy, reason = self._strategy()
        alone = weight >= POLICY.min_link_rows_alone and not self.batches_only
        found = Decision(UNROLLED, strategy, soon, 1, f"fused: {text} are; {reason}", alone)
        if alone:
            least = f"from {POLICY.min_link_rows_alone} links x rows on"
            found = replace(found, why=f"{found.why}; a kernel for single samples: {least}")
        if tier == "rolled":
            return replace(found, eager=False, why=f"{found.why}; never compiled: tier rolled")
        if soon:
            at_once = f"at once: {weight} <= {POLICY.max_link_rows_at_once}"
            quick = POLICY.min_link_rows_quick
            if tier == "auto" and weight >= quick:
                at_once = f"{at_once}, not optimised at first: {weight} >= {quick}"
                found = replace(found, quick=True)
            return replace(found, why=f"{found.why}; {at_once}")
        late = f"in a background thread: {_number(weight)} > {POLICY.max_link_rows_at_once}"
        return _when_tiered(found, tier, late)

    def _strategy(self) -> tuple[str, str]:
        """What becomes of products, see ``scalar.lower_fused``; of large ones when traced."""
        few, text = _at_most(self.rows, POLICY.max_product_rows_unrolled, "rows")
        if few:
            return "fused, products unrolled", f"products unrolled: {text} are"
        ratio, least = POLICY.max_branch_time_ratio, POLICY.min_rows_innovations
        way, sign = ("innovations", ">=") if self.rows >= least else ("products", "<")
        why = f"{way}: {self.rows} rows {sign} {least}; or branches, below {ratio:g} of the time"
        most = POLICY.max_operations_factored
        why = f"{why}; of parts, up to {_number(most)} operations by factors of 𝓜⁻¹"
        return f"fused, {way} or branches", why


@dataclass(frozen=True)
class TracedWork:
    """Kinematics or energies, traced directly.

    Attributes:
        links: That it goes along: a path, or all.
        poses: That it gives.
    """

    links: int
    poses: int = 0

    def decide(self, bodies: int, tier: str) -> Decision:
        """Unrolled unless it is too long, after some samples; at once along short paths."""
        fits, text = _at_most(self.links, POLICY.max_path_links_unrolled, "links")
        few, poses = _at_most(self.poses, POLICY.max_poses_unrolled, "poses")
        if not self.links > 0 or not fits:
            return _by_numpy(f"{text} are compiled")
        if not few:
            return _by_numpy(f"{poses} are compiled")
        short, path = _at_most(self.links, POLICY.max_path_links_at_once, "links")
        small, robot = _at_most(bodies, POLICY.max_bodies_at_once, "bodies")
        found = Decision(UNROLLED, "traced", short and small, 1, f"unrolled: {text} are")
        if short and small:
            return replace(found, why=f"{found.why}; at once: {path} and {robot} are")
        late = f"in a background thread: {robot if short else path} are compiled at once"
        return _when_tiered(found, tier, late)


@dataclass(frozen=True)
class LoopWork:
    """Dynamics with closed loops: the tree's sweeps, once more for each row.

    Attributes:
        rows: Of the loops.
        link_rows: Links along which rows are carried, all together; 0: all links for each row.
    """

    rows: int
    link_rows: int = 0

    def decide(self, bodies: int, tier: str) -> Decision:
        """Unrolled unless it is too long; at once where it is short."""
        weight, unit = bodies * self.rows, "links x rows"
        fits, text = _at_most(self.link_rows or weight, POLICY.max_link_loop_rows_unrolled, unit)
        if not weight > 0 or not fits:
            return _by_numpy(f"{text} are compiled")
        short, early = _at_most(weight, POLICY.max_link_loop_rows_at_once, unit)
        found = Decision(UNROLLED, "loops", short, 1, f"unrolled: {text} are")
        if short:
            return replace(found, why=f"{found.why}; at once: {early} are")
        return _when_tiered(found, tier, f"in a background thread: {early} are compiled at once")


@dataclass(frozen=True)
class UnilateralWork:
    """A step with rows whose multipliers are bounded, solved by an iteration.

    Attributes:
        rows: How many.
    """

    rows: int

    def decide(self, bodies: int, tier: str) -> Decision:
        """Unrolled unless it is too long: a round has a product for each pair of rows."""
        weight, unit = self.rows * (self.rows + bodies), "rows x (rows + links)"
        fits, text = _at_most(weight, POLICY.max_unilateral_pairs, unit)
        if not fits:
            return _by_numpy(f"{text} are compiled")
        short, early = _at_most(weight, POLICY.max_unilateral_pairs_at_once, unit)
        found = Decision(UNROLLED, "contacts", short, 1, f"unrolled: {text} are")
        if short:
            return replace(found, why=f"{found.why}; at once: {early} are")
        return _when_tiered(found, tier, f"in a background thread: {early} are compiled at once")


@dataclass(frozen=True)
class NodeWork:
    """Dynamics over nodes of links that move together, such as those of mimic joints.

    Attributes:
        links: Of the robot.
        columns: Links times rates of the nodes of more than one link.
        passes: How often the sweeps are done.
    """

    links: int
    columns: int
    passes: int = 1

    def decide(self, bodies: int, tier: str) -> Decision:
        """Unrolled unless it is too long: then NumPy sweeps over the nodes, in O(n) as well."""
        weight = (self.links + self.columns) * self.passes
        unit = "links and columns of nodes, times passes"
        fits, text = _at_most(weight, POLICY.max_node_links_unrolled, unit)
        if not weight > 0 or not fits:
            return replace(_by_numpy(f"{text} are compiled"), strategy="sweeps over nodes")
        short, early = _at_most(weight, POLICY.max_node_links_at_once, unit)
        found = Decision(UNROLLED, "nodes", short, 1, f"unrolled: {text} are")
        if short:
            return replace(found, why=f"{found.why}; at once: {early} are")
        return _when_tiered(found, tier, f"in a background thread: {early} are compiled at once")


@dataclass(frozen=True)
class StepWork:
    """Time steps of a simulation.

    Attributes:
        evaluations: Of the dynamics, in all.
    """

    evaluations: int

    def decide(self, bodies: int, tier: str) -> Decision:
        """A compiled step unless the robot is large; long simulations wait for optimised code."""
        fits, text = _at_most(bodies, POLICY.max_bodies_compiled_step, "bodies")
        if not bodies > 0 or not fits:
            return _by_numpy(f"{text} have compiled steps")
        least = POLICY.min_evaluations_to_wait
        waits = self.evaluations >= least
        sign = ">=" if waits else "<"
        end = "waits for optimised code" if waits else "starts with what is ready"
        why = f"unrolled: {text} have compiled steps; {end}: {_number(self.evaluations)} {sign} "
        return Decision(UNROLLED, "steps", waits, 1, f"{why}{_number(least)} evaluations")


Work = (
    VectorWork
    | StagesWork
    | MatrixWork
    | BundleWork
    | TracedWork
    | LoopWork
    | UnilateralWork
    | NodeWork
    | StepWork
)


def decide(
    request: Work,
    bodies: int,
    batch: int = 1,
    *,
    tier: str = "auto",
    machine: Machine | None = None,
    operations: int | None = None,
) -> Decision:
    """How a request is computed on a robot.

    Args:
        request: What is computed.
        bodies: Moving bodies of the robot.
        batch: Samples.
        tier: PHISTAR_TIER: ``"auto"``, ``"wait"``, ``"rolled"`` or ``"straight"``.
        machine: Where; None leaves threads out.
        operations: Per sample; None leaves threads out.
    """
    if not bodies:
        return _by_numpy("the robot has no moving bodies")
    found = request.decide(bodies, tier)
    if machine is None or operations is None or found.shape == NUMPY:
        return found
    cost_ns = nanoseconds_per_sample(operations, machine.lanes)
    threads = min(worthwhile_threads(batch * cost_ns), machine.threads)
    least = POLICY.min_nanoseconds_per_thread / 1e3
    work = f"about {batch * cost_ns / 1e3:.3g} µs of work, {least:.0f} µs are worth a thread"
    text = f"threads: {work}, at most {machine.threads}"
    return replace(found, threads=threads, why=f"{found.why}; {text}")


def this_machine(real: str = "double") -> Machine:
    """The processor that this runs on, and the threads that may be used on it."""
    from phistar.backends.llvm.run import jit
    from phistar.backends.llvm.run.calls import usable_threads

    return Machine(jit.lanes_for(jit.host_cpu(), real).width, usable_threads())


def without_machine_code(backend: str) -> Decision:
    """The decision where the backend is named and makes no machine code."""
    return _by_numpy(f"backend {backend}")


def by_tier(request: Work, bodies: int) -> Callable[[str], Decision]:
    """``decide`` as a function of PHISTAR_TIER."""
    return lambda tier: decide(request, bodies, tier=tier)


def without_loops(tier: str) -> Decision:
    """The decision about programs that are short and have no loops."""
    del tier
    return Decision(UNROLLED, "program", True, 1, "unrolled: there are no loops for it")


def decide_c(operations: int) -> Decision:
    """The shape of C source, by the operations of the unrolled program."""
    fits, text = _at_most(operations, POLICY.max_c_operations_unrolled, "operations")
    shape = UNROLLED if fits else LOOPED
    return Decision(shape, "C source", True, 1, f"{shape}: {text} are unrolled")


def decide_linearization(joints: int, bodies: int, samples: int) -> Decision:
    """Products of matrices or columns, for robots that are too large for one kernel.

    Both have the matrices of O(n²) in common. Beyond them, products of matrices with n rows take
    two times 2n³ operations, but quick ones, and columns so many for each link and column. So
    columns win from some 90 joints on, for single samples from some 350 on.
    """
    side_by_side = POLICY.simd_samples
    idle = side_by_side / min(max(samples, 1), side_by_side)
    dense = 2 * 2 * joints**3
    per_link = POLICY.dense_operations_per_link_operation * idle
    columns = per_link * POLICY.extra_operations_per_link_column * bodies * joints
    method, sign = ("product", "<=") if dense <= columns else ("columns", ">")
    why = f"{method}: {_number(dense)} operations of products {sign} {_number(columns)} of columns"
    return Decision(LOOPED, method, True, 1, why)


def decide_kept_zeros(lines: int, zero_lines: int, vector_bytes: int) -> tuple[bool, str]:
    """Whether results that keep their zeros have code of their own, which leaves lines of them.

    Args:
        lines: Lines of the caches that samples side by side have.
        zero_lines: Those of them that are zero for every state.
        vector_bytes: Of a vector of lanes.
    """
    what = "results that keep zeros"
    if vector_bytes != CACHE_LINE_BYTES:
        why = f"vectors have {vector_bytes} bytes, lines of the caches {CACHE_LINE_BYTES}"
        return False, f"{what} are written in full: {why}"
    share, least = zero_lines / max(lines, 1), POLICY.min_zero_line_share
    pays = share >= least
    text = f"{100 * share:.0f} % of the lines are zero, from {100 * least:.0f} % on it pays"
    return pays, f"{what} {'leave lines as they are' if pays else 'are written in full'}: {text}"


def nanoseconds_per_sample(operations: int, lanes: int) -> float:
    """Time of a kernel per sample, about."""
    return operations / (POLICY.operations_per_lane_nanosecond * lanes)


def worthwhile_threads(work_ns: float) -> int:
    """Threads that some work is worth."""
    return max(1, int(work_ns / POLICY.min_nanoseconds_per_thread))


def _loops_or_unrolled(
    strategy: str, sizes: str, weight: int, tier: str, limit: int | None
) -> Decision:
    """The rule of programs that have both shapes.

    Args:
        strategy: What it is.
        sizes: Factors of the weight.
        weight: Links times streams.
        tier: PHISTAR_TIER, or the shape that is wanted.
        limit: The weight beyond which it stays loops; None: that of programs.
    """
    limit = POLICY.max_link_streams_unrolled if limit is None else limit
    if tier in SHAPE_OF_TIER:
        shape = SHAPE_OF_TIER[tier]
        return Decision(shape, strategy, True, 1, f"{shape}: tier or shape is {tier}")
    weighed = f"{sizes} = {_number(weight)}"
    if weight > limit:
        why = f"looped: {weighed}, at most {_number(limit)} are unrolled"
        return Decision(LOOPED, strategy, True, 1, why)
    why = f"unrolled: {weighed}, at most {_number(limit)} are"
    at_once = POLICY.max_link_streams_at_once
    if weight <= at_once:
        why = f"{why}; at once: {_number(weight)} <= {_number(at_once)}"
        return Decision(UNROLLED, strategy, True, 1, why)
    until = "looped and not optimised until then"
    late = f"in a background thread, {until}: {_number(weight)} > {_number(at_once)}"
    return _when_tiered(Decision(UNROLLED, strategy, False, 1, why), tier, late)


def _when_tiered(found: Decision, tier: str, late: str) -> Decision:
    """Later, or at once for who wants to wait."""
    if tier == "auto":
        return replace(found, eager=False, why=f"{found.why}; {late}")
    if tier == "rolled":
        return replace(found, eager=False, why=f"{found.why}; never compiled: tier rolled")
    return replace(found, eager=True, why=f"{found.why}; at once: tier is {tier}")


def _by_numpy(why: str) -> Decision:
    return Decision(NUMPY, "sweeps", True, 1, f"NumPy: {why}")


def _at_most(value: int, most: int, unit: str) -> tuple[bool, str]:
    """Whether a value is within its limit, and both for people."""
    return value <= most, f"{_number(value)} {unit}, at most {_number(most)}"


def _number(x: float) -> str:
    """A number in groups of three digits."""
    return f"{math.floor(x):,}".replace(",", " ")


__all__ = [
    "POLICY",
    "BundleWork",
    "Decision",
    "Machine",
    "MatrixWork",
    "NodeWork",
    "Policy",
    "StagesWork",
    "StepWork",
    "TracedWork",
    "UnilateralWork",
    "VectorWork",
    "Work",
    "by_tier",
    "decide",
    "decide_c",
    "decide_kept_zeros",
    "decide_linearization",
    "nanoseconds_per_sample",
    "this_machine",
    "without_loops",
    "without_machine_code",
    "worthwhile_threads",
]

# SPDX-License-Identifier: BSD-3-Clause
"""Every number by which phistar decides *how* it computes: one table, ``POLICY``.

Modules compare with these numbers and nowhere hold one of their own; ``backends.policy`` makes
decisions of them and says why. None of them changes a result beyond rounding. Where no other place
is named, a number was measured by ``make bench`` on the machine of the README's table (Zen 3, AVX2,
512 KB of second-level cache per core). To try another one, for tests or tuning, set the entry of
``vars(POLICY)``; code that was compiled, or is in the cache on disk, stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

ClassWeights = tuple[float, float, float]
"""Most classes of links, a tip counting half, by what the links of a class have in common: the
pattern of all constants, that of rotations (other numbers come from a table), or less, which gives
the longest formulas."""


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """The table; the string below a number is its reason."""

    # -- unrolled, looped, or no machine code

    max_link_streams_unrolled: int = 2700
    """Links times streams beyond which a program stays loops: unrolled, at about seven operations
    each, it is not worth its compilation and size."""

    operations_per_link_stream: int = 7
    """Operations of a stream at a link, about; for estimates before a program is traced."""

    streams_per_column: int = 2
    """What a column of a matrix takes at a link, in streams of a program."""

    max_link_columns_unrolled: int = 4000
    """Links times columns up to which an unrolled matrix is worth its size."""

    max_matrix_entries: int = 4_000_000
    """Entries up to which a matrix is compiled: the kernel keeps it once more for each lane."""

    max_part_operations: int = 40_000
    """Operations up to which unrolled code for a part of a matrix is worth its size."""

    max_step_link_streams_unrolled: int = 6000
    """Links times streams times stages beyond which a step of time is no unrolled program. A step
    of the humanoid by ``rk4`` has 5328: it compiles in 13 s in the background and takes 10 µs, and
    100 µs if compiled dynamics and compiled steps of q are composed, as for longer robots."""

    operations_per_regressor_joint: int = 90
    """Operations that the ten parameters of a body take at each joint between it and the ground,
    about; for the estimate of a regressor before it is traced."""

    max_path_links_unrolled: int = 150
    """Links of a path, or of a robot, beyond which unrolled kinematics is too long."""

    max_poses_unrolled: int = 64
    """Poses beyond which one program for all takes too long to compile: stores are what costs."""

    max_bodies_compiled_step: int = 120
    """Bodies up to which a time step is one function of machine code: its compilation grows with
    their square, and for many links what NumPy adds to a step is little."""

    max_short_lived_vector_bits: int = 256
    """Bits of a vector of lanes in programs with many short-lived values, which are all loads and
    stores: vectors of 512 bits are no faster for batches, and one sample waits for twice the memory
    (a step of the quadruped with its derivatives: 4.8 against 2.5 µs)."""

    stores_per_piece: int = 320
    """Results that one function of a program with many short-lived values writes."""

    stores_per_piece_alone: int = 2000
    """The same in a kernel for one sample: a result is one store there, and pieces repeat less."""

    max_c_operations_unrolled: int = 14_000
    """Operations up to which ``export`` writes unrolled C unless told otherwise."""

    # -- at once, or later in a background thread

    max_link_streams_at_once: int = 400
    """Links times streams up to which unrolled code compiles about as fast as loops: a stream takes
    about seven operations at a link, so these are 3000 operations."""

    max_link_rows_at_once: int = 100
    """Links times rows up to which a fused kernel is compiled while its user waits."""

    min_link_rows_quick: int = 25
    """Links times rows from which on a fused kernel that is compiled while its user waits answers
    without optimisation until a thread has the final one: LLVM then takes 0.15 in place of 0.53 s
    for ``linearize`` of an arm (49), whose first results take twice as long each."""

    max_path_links_at_once: int = 12
    """Links of a path up to which kinematics compiles while its user waits."""

    max_bodies_at_once: int = 64
    """Bodies of a robot up to which its numbers are prepared meanwhile too."""

    samples_before_compile: int = 32
    """Samples of kinematics that NumPy computes before a program counts as one that is used: there
    is one per frame. Who looks once at every frame of a robot should not wait for as many
    compilations; who loops, or has a batch, soon gets over this."""

    part_requests_before_compile: int = 3
    """A part of a matrix is compiled when it is requested so many times: there are n² blocks."""

    max_parts_compiling: int = 2
    """Parts of matrices that are compiled at the same time; others have to wait."""

    min_evaluations_to_wait: int = 20_000
    """Evaluations of the dynamics from which on a simulation pays to wait for optimised code."""

    min_loop_steps_to_wait: int = 200
    """Steps of robots with loops from which on a simulation waits for machine code: in NumPy one
    takes milliseconds."""

    loop_steps_in_piece: int = 256
    """Steps of robots with loops in a call of machine code. A sample that needs more Newton steps
    begins a piece again, so pieces must not depend on the batch."""

    max_step_link_loop_rows: int = 600
    """Links times rows of loops times stages up to which a step on the loops is one program; beyond
    it dynamics and projection are programs of their own."""

    loop_projections: tuple[int, ...] = (1, 2, 4)
    """Newton steps onto the loops after each step of time, more where fewer leave a gap. Short
    steps leave so little of it that one is enough."""

    background_delay_seconds: float = 0.2
    """Before a thread begins to compile: the first results would have to share the interpreter."""

    max_background_processes: int = 4
    """Compilations in the background at the same time, and no more than there are processors."""

    background_niceness: int = 5
    """How far compilations in the background stand back."""

    # -- strategies: fused or separate, products, columns or branches, classes of links

    max_link_rows_fused: int = 2500
    """Links times rows up to which one unrolled kernel for vectors and matrices is worth its
    size."""

    min_link_rows_alone: int = 16
    """Links times rows from which on single samples get a kernel of their own for fused vectors and
    matrices, compiled after the one for batches. One sample in one lane rather than eight of it: a
    linearization of the quadruped takes 2.4 in place of 6.6 µs, of the panda (49) 1.2 in place of
    1.9, of the humanoid 14 in place of 42 (Zen 4, AVX-512)."""

    max_product_rows_unrolled: int = 12
    """Rows of a matrix product up to which it is multiplied out, where zeros vanish."""

    min_rows_innovations: int = 24
    """Rows of derivatives of accelerations from which on these are products with innovations, with
    fewer multiplications, in place of those with the inverse of the mass matrix. A humanoid with 41
    takes 2.7 in place of 3.3 µs, the quadruped with 18 would take 0.40 in place of 0.39, as blocks
    of its legs have three rows (Zen 5, AVX-512)."""

    max_branch_time_ratio: float = 0.7
    """Estimated share of the time at which branches are quicker than products for sure. A humanoid
    with 41 joint velocities, at 0.85, takes 3.3 µs by products and 4.5 by branches, whose code and
    workspace together do not fit into 1 MB of second-level cache (Zen 5, AVX-512)."""

    max_branch_part_time_ratio: float = 0.8
    """The same where the inverse of the mass matrix is not wanted: branches do not need it, but
    products do. Those of the humanoid by v took 1.5 µs by branches, at 0.79, and 1.7 by products
    with it; they take 1.3 by innovations."""

    max_operations_factored: int = 24_000
    """Operations of derivatives of accelerations by products up to which they may be a straight
    line with the factors of the inverse mass matrix instead, if this is not wanted, too. Those of
    the quadruped by v have 8 700 by products and 7 300 by factors. With the matrix itself, single
    samples would take an eighth longer."""

    max_segment_links: int = 8
    """Links of a segment whose rows have one loop for all other columns."""

    dense_operations_per_link_operation: int = 3
    """Operations of a dense matrix product in the time of one operation on links."""

    extra_operations_per_link_column: int = 118
    """Operations that a link and column take more without the mass matrix than for inverse
    dynamics."""

    simd_samples: int = 4
    """Samples that loops over links take side by side; fewer take as long."""

    max_words_split: int = 256
    """An expression that is more words when multiplied out is not split into walks."""

    max_class_weights: ClassWeights = (4.5, 4.5, 3.5)
    """For loops that are soon replaced by unrolled code: the time of compilation grows with the
    code. Worst of 25 slow robots 300 -> 238 ms; loops of the panda and humanoid do 9 to 17 % more
    operations until then."""

    max_class_weights_looped: ClassWeights = (6.5, 5.5, 4.5)
    """For programs that stay loops: constants save more than the code costs."""

    # -- sizes of functions

    max_nodes_one_function: int = 5000
    """Nodes and results up to which unrolled code is one function. Outlined, the humanoid's
    linearize_inverse is 20 % quicker and compiled in a third of the time."""

    max_results_one_function: int = 200
    """Results up to which it is one function either way: there is little to move, and it takes the
    same time."""

    short_distance_vector_bytes: int = 64
    """Bytes of vectors whose instructions write short distances in one byte: AVX-512."""

    short_distance_vectors: int = 128
    """Vectors before an address, and after it, to which a distance is short."""

    max_slot_bases: int = 5
    """Addresses of slots that a function holds, of sixteen registers for addresses. A sample of a
    humanoid's linearize takes 2.8 in place of 3.0 to 3.1 µs, with 3, 4, 6 or 10 of them 3.1, 3.1,
    2.9, 3.0; linearize_inverse 1.3 in place of 1.5 with any (batches of 256, Zen 5, AVX-512)."""

    min_uses_per_slot_base: int = 3
    """Uses of slots that make it worth to hold an address near them."""

    nodes_per_function: int = 2000
    """Nodes of an outlined function."""

    reload_distance_nodes: int = 40
    """Nodes after which a number is loaded again instead of kept."""

    max_c_operations_one_function: int = 4000
    """Operations up to which unrolled C is one function."""

    c_operations_per_function: int = 1500
    """Operations of an outlined C function."""

    max_c_inline_operations: int = 3
    """Operations that a C expression may have and still stand inside another one."""

    max_c_stack_bytes: int = 16 * 1024
    """Workspace that a C function takes from the stack; with more, the caller gives it."""

    # -- LLVM

    opt_level: int = 2
    """Of instruction selection and register allocation; programs come simplified."""

    max_lanes: int = 16
    """Samples that are worked on side by side, if the widest registers hold as many. One alone is
    for code that must be there soon: without optimisation (``opt_level`` 0) loops of single numbers
    compile in a third of the time of loops of vectors."""

    max_optimised_characters: int = 375_000
    """Characters of a module beyond which one level less is enough: it compiles in less than half
    the time, to code of the same length."""

    max_foreground_characters: int = 600_000
    """Beyond it a process of its own compiles a module: that takes a tenth of a second to start,
    and the user's Ctrl-C is heard meanwhile."""

    max_background_characters: int = 60_000
    """Beyond it, a process compiles in the background, where nobody waits for it to start; and when
    this process ends, nothing takes longer than these."""

    cache_share_unseen: float = 0.1
    """Share of the free room of the cache on disk that a process fills before it looks at all files
    again: so ten processes at the same time stay within the limit."""

    seconds_per_character: float = 1.5e-6
    """That a compilation takes, about."""

    min_links_packed: int = 10_000
    """Links whose tables are written as bytes rather than numbers, which is the same to LLVM but
    far faster. Smaller modules stay as people can read them, and below
    ``max_foreground_characters``."""

    # -- memory: streaming stores, tiles, pools, blocks

    min_streamed_caches: float = 1.0
    """Sizes of the second-level cache from which on large outputs bypass the caches: beyond it
    ordinary stores first read each line. Results of 2 to 16 MB take 12 to 30 % less time then on a
    Xeon with 2 MB (AVX-512)."""

    min_streamed_victim_share: float = 0.25
    """The same as a share of a third-level cache that takes what the second one drops. With 32 MB
    of it (Zen 4), a humanoid's mass matrices take 414 ns in the caches and 479 past them if they
    fill 3.4 MB, 440 and 470 if 14 MB, 845 and 481 if 27 MB; derivatives cross over at 10 MB. Other
    processes want that cache, too: beside them, a quadruped's 10.6 MB take 350 to 480 ns in the
    caches and 106 to 126 past them, those of its derivatives by v 594 and 450."""

    assumed_second_level_bytes: int = 1 << 20
    """Size of that cache where the system does not say."""

    min_streamed_entries: int = 64
    """Entries of an output from which on it may bypass the caches."""

    max_streamed_entries: int = 1 << 14
    """Entries beyond which a block of it would not stay in the caches until it is copied."""

    min_zero_line_share: float = 0.05
    """Share of the lines of results that are zero for every state from which on results that keep
    their zeros have code of their own. The humanoid's mass matrix has 25 %, that of the quadruped
    2 %."""

    tiles_per_round: int = 2
    """Tiles that bypass the caches in a round: so cache lines are soon complete."""

    tile_columns: int = 8
    """Columns of a tile of a looped matrix, a power of two."""

    min_rows_tiled: int = 64
    """Rows from which on a looped matrix is transposed by tiles."""

    product_rows_per_round: int = 2
    """Rows of a matrix product at a time: sums that wait for each other would leave half of the
    arithmetic units idle."""

    wide_vector_bytes: int = 64
    """Bytes of vectors for which processors have 32 registers; for shorter ones they have 16."""

    wide_vector_registers: int = 32
    """Registers of such vectors, which sums of a tile of a product of bands share with what they
    are made of. With 16 sums in place of 24, products of the humanoid take a tenth longer, with 28
    just as long (Zen 5, AVX-512)."""

    max_tile_columns: int = 8
    """Columns of a tile; half as many in 16 registers."""

    tile_start_products: int = 24
    """Products in the time that it takes to begin with another tile."""

    max_band_rows: int = 8
    """Rows of a band, and columns in which the same rows on the right are kept."""

    product_column_bytes_per_loop: int = 8192
    """Columns of a product in a loop, which with a few rows stay in the nearest cache."""

    partial_sums_alone: int = 4
    """Sums that show whether numbers are finite in a kernel for one sample: an addition takes four
    cycles, and each sum waits for its own only."""

    min_entries_sparsely_checked: int = 36
    """Entries of an output from which on not all are checked to be finite; a pose has 16."""

    checked_entries: int = 16
    """Entries of a large output that are checked if it is no square matrix."""

    min_pooled_bytes: int = 1 << 16
    """Size of a result below which the system's allocator is as good as the pool."""

    max_pool_bytes: int = 1 << 30
    """Size of all blocks that the pool keeps, at most. Fresh memory costs more than most results:
    65 536 mass matrices of a humanoid, 880 MB, take 3.4 µs each in fresh memory and 1.0 in memory
    of earlier ones, their inverses 4.7 and 2.4 (one thread, beside other work)."""

    max_pool_share: float = 0.125
    """The same as a share of the memory that was free when the pool was first used."""

    vectors_per_block: int = 4
    """Vectors of lanes in a block of simulated samples; more do not stay in the nearest cache."""

    max_link_loop_rows_unrolled: int = 1500
    """Links times rows of loops, those that rows are carried along, up to which dynamics with loops
    is an unrolled program: 40 four-bars in a row, 81 links with 200 rows of which 80 are left, have
    a weight of 217 and 7 000 operations, and a step takes 0.3 ms instead of 250 in NumPy."""

    elimination_steps_per_link_row: int = 20
    """Entries of Δ that change as rows are eliminated, as long as carrying a row over one link."""

    max_dependent_steps_linearized: int = 4000
    """Entries of Δ that change as its largest pivots are taken, up to which linearizations with
    rows that depend on each other are machine code: about ten operations each, with selects."""

    max_links_of_loops_compared: int = 100
    """Links up to which programs of rows of loops are traced in several choices of link frames, of
    which the shortest is taken: the first result of a chain of 1000 links on a pin waits for two of
    them, 3 s each."""

    max_chain_joints_traced: int = 300
    """Joints on the chains of loops up to which their rows are a program in a straight line: of
    1000 it takes 3 s to make and 10 ms a call in NumPy, all joints at once take 1 ms."""

    max_link_loop_rows_at_once: int = 40
    """Links times rows of loops up to which it is compiled by the first call that wants it."""

    max_unilateral_pairs: int = 40_000
    """Rows with bounded multipliers, times rows and links, up to which a step with contacts is one
    program: a round of its solver has a product for each pair of rows. The quadruped with four feet
    and twelve stops has 900 and compiles in 2 s."""

    max_unilateral_pairs_at_once: int = 100
    """The same up to which it is compiled by the first call that wants it."""

    pair_products_per_path_product: float = 2.5
    """How many products of pairs of rows a product along a row's path is worth in a sweep of the
    solver: along paths each row waits for the one before it. The quadruped with four feet and
    twelve stops has 576 of the former in 0.07 µs, or 400 of the latter in 0.12 µs."""

    joint_row_sweeps: int = 30
    """Rounds of projected Gauss-Seidel over friction and limits of joints in a step: with the
    impulses of the step before as a start, seven of an arm agree with an exact solution to 1e-12
    after 20."""

    gain_products_per_call: int = 128
    """Products of gains and errors in one of the calls that linear feedback is made of, about: a
    straight line of all 648 of a quadruped compiles for seconds, and six calls of 108 take no
    longer than it."""

    max_explicit_joint_rate: float = 1.0
    """Length of a step times the rate at which a damper stops, or a spring swings, a joint, up to
    which ``"auto"`` takes explicit steps: rk4 is stable up to 2.8."""

    steps_of_a_row_step: int = 50
    """Compiled steps for which friction and limits of one step take as long in NumPy."""

    smallest_row_mobility: float = 1e-12
    """Fraction of a contact's mobility in all directions below which it has none along its normal:
    a point of a planar robot that cannot leave its plane. Such a row does nothing."""

    simulator_steps: int = 1000
    """Steps that a simulator is expected to take: they decide whether it waits for machine code."""

    simulator_projections: int = 2
    """Newton steps with which each step of a simulator goes back to closed loops; samples that need
    more take their steps in NumPy."""

    smallest_joint_mobility: float = 2.0**-33
    """Fraction of the mobility of a joint that nothing holds below which closed loops hold it: what
    is left is rounding, and its friction and stops have nothing to do."""

    contact_sweeps: int = 20
    """Sweeps of projected Gauss-Seidel over all rows in a step. They begin with the impulses of the
    step before, so that what rests or slides is solved in a few steps whatever their number."""

    default_friction: float = 1.0
    """Coulomb's coefficient of two parts of which neither has one, as in MuJoCo."""

    contact_correction: float = 0.2
    """Fraction of a penetration that a step takes back: all of it at once would throw things up."""

    max_correction_speed: float = 1.0
    """Speed [m/s or rad/s] with which a penetration is taken back, at most: a robot that is put
    into the ground comes out of it rather than being shot."""

    deep_penetration: float = 0.005
    """Depth [m] from which a state that a simulation begins with is warned of."""

    smallest_contact_distance: float = 1e-9
    """Distance [m] between the centre of a ball and a box up to which it counts as inside: it is
    pushed out through the nearest face."""

    contact_edge_margin: float = 0.01
    """How far beyond a face, as a fraction of the box, a corner of another box still touches it:
    boxes of one size that stand on each other do."""

    smallest_crossing_sine: float = 0.01
    """Sine of the angle between edges of boxes, or axes of capsules, below which they are parallel:
    faces and ends of what lies beside each other tell then where they touch."""

    rim_projections: int = 6
    """Projections onto a cylinder and back by which the nearest point of a capsule's axis is found:
    20 cm from a rim it is right to 2 mm, where both touch to rounding."""

    contact_side_slant: float = 0.1
    """Sine of the angle between a normal and the plane across a cylinder's axis up to which its
    side touches; beyond it its rims do."""

    contact_out_of_reach: float = 1e3
    """Gap [m] of a corner that is beside the face it would touch."""

    resting_gravity_steps: float = 2.0
    """Steps of free fall: what comes slower than they make it does not bounce, but rests."""

    row_set_margin: float = 1e-6
    """Fraction of a step of free fall, and of what rows move in a step, below which impulses and
    rates of contacts and joints count as none: derivatives of a step say there that another law is
    near."""

    redundant_row_share: float = 1e-9
    """Share of the largest one up to which singular values of the rows that act in a step count as
    none: four corners of a box have twelve rows on six coordinates."""

    max_node_links_unrolled: int = 1000
    """Links, and columns of nodes of links that move together, up to which dynamics over nodes is
    an unrolled program: at about 92 operations each these are 92 000. There are no loops over
    nodes; beyond it NumPy sweeps over them."""

    max_node_links_at_once: int = 20
    """The same up to which it is compiled by the first call that wants it."""

    max_links_factored_first: int = 30
    """Links up to which all inertias of nodes are written before forces rather than beside them: an
    arm with a hand, 19 links, takes 170 in place of 205 ns a sample, a humanoid with hands, 51
    links, whose numbers would wait too long, 630 in place of 575 (one thread, AMD EPYC)."""

    max_coordinates_of_dense_nodes: int = 64
    """Coordinates of a robot with reduced mimic joints up to which NumPy, where there is no machine
    code over nodes (not yet, complex numbers), solves with its compiled mass matrix: a humanoid
    with hands, 39 coordinates, takes 2 ms rather than 8 for one sample, 0.3 s either way for 4096.
    Beyond them NumPy sweeps over the nodes, in O(n)."""

    least_usual_early_pivot: float = 1e-3
    """Share of their usual size that the pivots of rows of a loop with the ground keep in most of a
    few assembled configurations, if they are solved before the sweep gets there: the trunk of a
    robot on its feet. Below the next two, a sample is done again with all rows on the ground."""

    least_early_pivot: float = 1e-6
    """The same of a sample in double precision. The loss against all rows on the ground grows as
    the share falls, a quadruped with one knee nearly straight: 7e-15 of the accelerations at a
    share of 3e-5, 4e-14 at 3e-6; at 1e-6 the knee is 2 mrad from straight."""

    least_early_pivot_single: float = 1e-2
    """The same in single precision."""

    max_joints_per_early_row: int = 3
    """Joints between the ends of a loop with the ground and the link where it is solved, for each
    of its rows, at most."""

    max_coordinates_of_dense_loops: int = 14
    """Coordinates up to which loops are closed by one dense solution for v̇ and λ; beyond them the
    factors of the tree take fewer operations."""

    max_coordinates_of_dense_loop_mass: int = 200
    """Coordinates up to which NumPy closes loops with 𝓜 or its inverse; beyond them each row goes
    through the tree's sweeps: a chain of 1000 on a pin takes 2 ms in place of 260."""

    numpy_piece_samples: int = 1024
    """Samples that NumPy works on together; the inertias of a few links then fit into a cache."""

    jax_smallest_batch: int = 8
    """Samples to which smaller batches of JAX are filled up, so that few sizes are compiled."""

    max_known_choices: int = 256
    """Choices of derivatives, rows and columns of a robot that later calls need not look up."""

    max_kept_slices: int = 20_000
    """Index arrays of parallel schedules of which is known that they are slices."""

    jax_gathered_children: int = 8
    """Children of a link up to which JAX gathers them side by side and adds; beyond, it scatters,
    which XLA does one after the other on processors."""

    jax_run_links: int = 32
    """``parallel_run_links`` for JAX, whose rounds are filled up to one width: joins are few."""

    jax_round_groups: int = 3
    """Loops into which JAX puts the rounds of a parallel schedule, each filled up to its widest
    round: more take longer to compile (forward dynamics of a chain of 1000: 9 s with 4, 7 s with
    3), fewer do more in vain."""

    # -- parallel schedules

    parallel_run_links: int = 4
    """Links that are taken in one after the other before segments are joined: a link costs a third
    of a join, so that short runs do less and take no longer (chain of 4096, operations one after
    the other: 44 312 by runs of one link, 41 685 of two, 40 160 of four, 40 839 of eight)."""

    max_parallel_levels: int = 256
    """Levels of a tree beyond which nobody asks whether visiting them one by one is quicker than
    joining: a join costs as much as about four levels, and there are few of them."""

    min_own_joint_inertia: float = 1e-2
    """Part of the inertia of a link with its neighbours, along its joint, that a link must have by
    itself where a run ends: the star product divides by it."""

    numpy_link_samples: int = 1 << 15
    """Links times samples that NumPy works on together in rounds: 400 bytes each and matrix."""

    monitor_numbers_per_chunk: int = 1 << 20
    """Numbers of v that monitors look at together: energies of links take ten times the memory."""

    # -- rank and equality

    singular_roundings: int = 4096
    """Roundings below which an eigenvalue counts as a direction in which frames cannot move."""

    equal_steps_tolerance: float = 1e-9
    """Relative difference of steps of a simulation that count as equally long."""

    # -- identification

    base_rank_tolerance: float = 1e-9
    """Coefficient of a base parameter, for columns of unit length, below which it is rounding; so
    is a column so much shorter than the longest."""

    base_rank_rounding: float = 1e-14
    """Pivot, relative to the first, of the regressor at random states with columns of unit length
    at which it is rounding. The widest gap between pivots decides their number: of the bundled
    robots the smallest that count are above 1e-2, the largest that do not below 1e-14; columns that
    are short, as angles of a file have six digits, leave some of 1e-9."""

    excitation_tolerance: float = 1e-7
    """Singular value, relative to the first, of a log's base regressor with columns of unit length
    below which a direction was not excited: what noise makes of it is no information."""

    identification_piece_samples: int = 4096
    """Samples of a log whose rows are formed together and become a leaf of the tree of triangles:
    the regressors of an arm are 16 MB. With 1024 a sample takes 30 % longer, in Python."""

    # -- threads and the interpreter

    operations_per_lane_nanosecond: float = 4.0
    """In one lane: 4 to 7 with AVX-512 (AMD Zen 5; the least in loops over long chains), 4 with
    AVX2 (Zen 3)."""

    operations_per_array_number: int = 40
    """Operations for each number read or written, where those of a kernel are not known."""

    min_nanoseconds_per_thread: float = 2.5e5
    """Work that a thread must get to be worth waking."""

    pieces_per_thread: int = 4
    """Pieces of a batch per thread, so that one that is held up does not hold up all."""

    max_fast_path_samples: int = 8192
    """Samples up to which a batch takes the fast path, which gives other threads no turn. Batches
    that are worth several threads do not take it, where there are several."""

    simulation_piece_nanoseconds: float = 2e8
    """Machine code after which a simulation looks at the keyboard and moves its progress bar."""

    step_tangent_numbers: int = 8_000_000
    """Numbers of the derivatives of steps of a simulation that are computed at once, 64 MB: enough
    for the batch to be long, and small beside the memory of any machine."""

    # -- tasks of phistar.scale

    task_operations: int = 4_000_000_000
    """Operations of a task beyond which it is cut: about a second of one core. Progress is shown,
    and what was done is kept, from task to task."""

    task_bytes: int = 128_000_000
    """Bytes of the inputs and results of a task beyond which it is cut: a worker with 2 GB holds
    several tasks, and copies of them on their way to a store."""

    task_rows: int = 1_000_000
    """Rows of a task at most; at 20 ns each they take longer than Dask's own 1 to 8 ms per task."""


POLICY = Policy()
"""The numbers in use."""

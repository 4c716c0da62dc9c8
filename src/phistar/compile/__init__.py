# SPDX-License-Identifier: BSD-3-Clause
"""The compiler: requests, one list of passes, kernels for all robots, executables for one.

requests       kinds of requests: vectors, matrices, bundles of both, traced quantities
traced         the quantities that are traced directly, a row each
derivative_rows    derivatives of those, from their own programs
node_rows      those of robots whose mimic joints are reduced, over nodes of links
part_rows      parts of matrices that nobody needs in full
kept_zeros     results whose structural zeros are written once
request_table  REQUESTS, every quantity of a robot by name
on_loops       names of quantities on robots with loops
passes         PASSES, from expressions to sweeps to scalars to code
pipeline       kernels and executables, kept
evaluate       numbers from them, for arrays that were checked
reduced_expressions  own expressions on robots whose mimic joints are reduced
"""

from phistar.backends import Executable
from phistar.compile.derivative_rows import input_sizes
from phistar.compile.evaluate import (
    RequestKey,
    chained_entry,
    cheapest_inner_products,
    evaluate_bundle,
    evaluate_matrix,
    finish_compilations,
    keep_entry,
    matrix,
    matrix_executable,
    matrix_request,
    numpy_results,
    run_loops,
    run_traced,
    run_traced_results,
    traced_executable,
    traced_results,
)
from phistar.compile.kept_zeros import KEPT_ZEROS, kept_zeros
from phistar.compile.node_rows import (
    embedded_request,
    is_embedded,
    mimic_in_rounds,
    node_loads,
    refuse_on_nodes,
)
from phistar.compile.on_loops import quantity_on
from phistar.compile.part_rows import entry_pattern
from phistar.compile.passes import LEVELS, PASSES, Draft, Pass, Stage, Stages
from phistar.compile.pipeline import (
    BuildTarget,
    Kernel,
    cheapest_equivalent,
    compile_outputs,
    compile_request,
    kernel,
    lowered_bundle,
    matrix_plan,
)
from phistar.compile.reduced_expressions import Pieces
from phistar.compile.request_table import REQUESTS, request
from phistar.compile.requests import RESULT_OUTPUT, SCHEDULES, Bundle, MatrixOf, Traced, Vectors
from phistar.compile.traced import TRACED, add_traced
from phistar.derive import spell_inverses_for_robot, with_closed_inverses
from phistar.model.joint_map import JointMap, joint_map
from phistar.sweeps.inner_products import DualPair
from phistar.sweeps.lower import ARGUMENTS
from phistar.sweeps.matrix_requests import Apply, Block, Col, Diag, Full, Row
from phistar.sweeps.matrix_requests import Request as MatrixPart

__all__ = [
    "ARGUMENTS",
    "KEPT_ZEROS",
    "LEVELS",
    "PASSES",
    "REQUESTS",
    "RESULT_OUTPUT",
    "SCHEDULES",
    "TRACED",
    "Apply",
    "Block",
    "BuildTarget",
    "Bundle",
    "Col",
    "Diag",
    "Draft",
    "DualPair",
    "Executable",
    "Full",
    "JointMap",
    "Kernel",
    "MatrixOf",
    "MatrixPart",
    "Pass",
    "Pieces",
    "RequestKey",
    "Row",
    "Stage",
    "Stages",
    "Traced",
    "Vectors",
    "add_traced",
    "chained_entry",
    "cheapest_equivalent",
    "cheapest_inner_products",
    "compile_outputs",
    "compile_request",
    "embedded_request",
    "entry_pattern",
    "evaluate_bundle",
    "evaluate_matrix",
    "finish_compilations",
    "input_sizes",
    "is_embedded",
    "joint_map",
    "keep_entry",
    "kept_zeros",
    "kernel",
    "lowered_bundle",
    "matrix",
    "matrix_executable",
    "matrix_plan",
    "matrix_request",
    "mimic_in_rounds",
    "node_loads",
    "numpy_results",
    "quantity_on",
    "refuse_on_nodes",
    "request",
    "run_loops",
    "run_traced",
    "run_traced_results",
    "spell_inverses_for_robot",
    "traced_executable",
    "traced_results",
    "with_closed_inverses",
]

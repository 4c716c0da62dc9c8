# SPDX-License-Identifier: BSD-3-Clause
"""What matrix requests cost: counts on chains, stars and trees, and the route that is taken."""

from functools import cache
from itertools import pairwise

import pytest

import phistar
from phistar.algebra.ir import Expr
from phistar.algebra.symbols import D, H, M, mass_matrix, phi, psi
from phistar.algorithms.innovations import mass_matrix_inverse
from phistar.algorithms.link_kinematics import J
from phistar.algorithms.operational_space import Omega, compliance
from phistar.algorithms.programs import MATRICES
from phistar.model import Model
from phistar.model.generators import chain, tree
from phistar.sweeps.costs import RIGID_INERTIA_ENTRIES, count_operations, node_cost
from phistar.sweeps.lower import ARGUMENTS, lower
from phistar.sweeps.matrix_plans import MatrixPlan, all_plans, cheapest_plan
from phistar.sweeps.matrix_requests import (
    Apply,
    Block,
    Col,
    Diag,
    Full,
    Request,
    Row,
    matrix_forms,
)
from phistar.sweeps.op_costs import (
    FORCE_SHIFT_COST,
    INERTIA_SHIFT_COST,
    OperationCount,
    link_types,
)
from phistar.sweeps.printing import to_text
from phistar.sweeps.schedule import schedule
from phistar.thresholds import POLICY

INVERSE = mass_matrix_inverse.result


@cache
def _chain(n: int) -> Model:
    return chain(n)


@cache
def _star(n: int) -> Model:
    return tree(1, n, floating_base=True)


def _cost(expr: Expr, request: Request, model: Model, frames: tuple[str, ...] = ()) -> int:
    return cheapest_plan(expr, request, model, frames).cost.total


def _routes(expr: Expr, request: Request, model: Model) -> dict[str, MatrixPlan]:
    return {each.name: each for each in all_plans(expr, request, model)}


def test_mass_matrix_of_a_chain_to_the_last_operation() -> None:
    """Composite bodies: one inertia moved and added a link, one force moved a pair of links."""
    for n in (1, 2, 7, 20):
        moved = (INERTIA_SHIFT_COST + OperationCount(0, RIGID_INERTIA_ENTRIES)) * (n - 1)
        walked = FORCE_SHIFT_COST * (n * (n - 1) // 2)
        twice_and_less = OperationCount(0, 2 * n)
        walks = _routes(mass_matrix, Full(), _chain(n))["propagation"]
        assert walks.cost == moved + walked + twice_and_less


@pytest.mark.parametrize("expr", [mass_matrix, INVERSE, MATRICES["coriolis_matrix"]], ids="MIC")
def test_whole_matrices_of_chains_are_quadratic(expr: Expr) -> None:
    """Third differences vanish: O(n·depth) and O(n²), never more; by every route."""
    for route in range(len(all_plans(expr, Full(), _chain(8)))):
        costs = [all_plans(expr, Full(), _chain(n))[route].cost.total for n in (8, 16, 24, 32, 40)]
        first = [b - a for a, b in pairwise(costs)]
        second = [b - a for a, b in pairwise(first)]
        assert second[0] == second[1] == second[2] > 0


def test_mass_matrices_of_stars_and_bushes_are_linear() -> None:
    """What n links on a base cost is linear in n; n² tips on n links cost n times what n do."""
    costs = [_cost(mass_matrix, Full(), _star(n)) for n in (10, 20, 30)]
    assert costs[2] - costs[1] == costs[1] - costs[0] > 0
    four, eight = (_cost(mass_matrix, Full(), tree(2, n)) for n in (4, 8))
    assert eight == 4 * four > 0


@pytest.mark.parametrize("expr", [mass_matrix, INVERSE, Omega, H @ psi @ M @ phi.T @ H.T], ids=repr)
@pytest.mark.parametrize("request_of", ["diagonal", "corner", "middle", "row", "column"])
def test_parts_of_matrices_are_linear(expr: Expr, request_of: str) -> None:
    """Diagonals, blocks, rows, columns: every further link costs the same, or less if a better
    route begins to pay."""
    requests = {
        "diagonal": lambda n: Diag(),
        "corner": lambda n: Block(0, n - 1),
        "middle": lambda n: Block(n // 2, n // 4),
        "row": lambda n: Row(n // 2),
        "column": lambda n: Col(n // 2),
    }
    make = requests[request_of]
    costs = [_cost(expr, make(n), _chain(n)) for n in (32, 64, 96, 128)]
    differences = [b - a for a, b in pairwise(costs)]
    assert differences[0] >= differences[1] >= differences[2] > 0
    assert costs[1] < 2.1 * costs[0]


def test_frames_cost_their_paths_only() -> None:
    """All blocks of two frames: linear in the links, and less than one application per column."""
    costs = []
    for n in (32, 64, 96):
        model = _chain(n)
        frames = (model.frame_names[-1], model.frame_names[n // 2])
        costs.append(_cost(compliance, Full(), model, frames))
        program = schedule(lower({"out": compliance @ ARGUMENTS[compliance.domain]}))
        assert costs[-1] < 12 * count_operations(program, model).total.total
    assert costs[2] - costs[1] == costs[1] - costs[0] > 0


def test_rows_share_nothing_with_the_rest() -> None:
    """A row of a Jacobian is a walk from its frame to the root: no link beyond is visited."""
    model = _chain(20)
    name = model.frame_names[6]
    near = cheapest_plan(J, Row(0), model, (name,))
    assert near.cost.total < cheapest_plan(J, Row(0), model, (model.frame_names[-1],)).cost.total
    body = model.frame(name).body
    beyond = [row[k] for row in near.support.needed.values() for k in range(body + 1, 20)]
    assert not any(beyond)


@pytest.mark.parametrize(
    ("robot", "request_", "expr", "route"),
    [
        ("panda", Full(), mass_matrix, "propagation"),
        ("quadruped", Full(), mass_matrix, "propagation"),
        ("humanoid", Full(), mass_matrix, "propagation"),
        ("panda", Full(), INVERSE, "columns"),
        ("quadruped", Full(), INVERSE, "columns"),
        ("humanoid", Full(), INVERSE, "columns"),
        ("panda", Diag(), INVERSE, "columns"),
        ("humanoid", Diag(), INVERSE, "propagation"),
        ("humanoid", Diag(), mass_matrix, "propagation"),
        ("humanoid", Full(), D, "columns"),
    ],
)
def test_the_cheapest_route_is_taken(robot: str, request_: Request, expr: Expr, route: str) -> None:
    """Composite bodies for 𝓜, one application a column for 𝓜⁻¹, Υ for what is local."""
    model = phistar.load(robot).model
    found = _routes(expr, request_, model)
    best = cheapest_plan(expr, request_, model)
    assert best.name == route
    assert best.cost == found[route].cost
    assert best.cost.total == min(each.cost.total for each in found.values())


def test_applying_costs_what_the_sweeps_cost() -> None:
    """Without columns the count is that of ``sweeps.costs``, less what roots and tips pass on to
    nobody."""
    model = phistar.load("humanoid").model
    here = link_types(model)
    for expr in (mass_matrix, INVERSE, Omega):
        applied = cheapest_plan(expr, Apply(), model)
        support, nodes = applied.support, applied.support.program.nodes
        saved = 0
        for stream, k in support.execution_order():
            if not support.needed[stream][k] and nodes[stream].op != "rec":
                absent = {o for o in nodes[stream].operands if not support.present[o][k]}
                saved += node_cost(support.program, nodes[stream], here[k], absent).total
        assert (
            applied.cost.total + saved == count_operations(applied.form.schedule, model).total.total
        )
        assert saved == 0 or expr is not mass_matrix


def test_walks_read_like_a_textbook() -> None:
    """𝓜 needs the composite inertia inward, ψ*H*D⁻¹Hψ the compliance Υ outward."""
    walks = {form.name: form for form in matrix_forms(mass_matrix, Full())}["propagation"]
    assert "R = M + Σ φ(k,j) R(j) φ*(k,j)" in to_text(walks.schedule)
    assert walks.schedule.directions == ("inward",)
    assert sorted(part.kind for part in walks.parts) == ["half", "mirror"]
    walks = {form.name: form for form in matrix_forms(Omega, Diag())}["propagation"]
    text = to_text(walks.schedule)
    assert "Υ = (I - G H)* φ*(p,k) Υ(p) φ(p,k) (I - G H) + H* D⁻¹ H" in text
    assert "for columns beyond k" in text
    assert walks.schedule.directions == ("inward", "outward")


def test_long_expressions_stay_as_they_are() -> None:
    """More words than can be looked at: no splitting, one application per column."""
    expr = mass_matrix
    for _ in range(10):
        expr = expr @ (mass_matrix + D)
    assert POLICY.max_words_split < 2**10
    assert {form.name for form in matrix_forms(expr, Full())} == {"columns"}

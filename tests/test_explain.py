# SPDX-License-Identifier: BSD-3-Clause
"""``explain``, ``where``, ``cite`` and ``prove``: true of every name that phistar knows."""

import re

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.ir import Expr
from phistar.algebra.phases import IDENTITIES
from phistar.algebra.symbols import SYMBOLS, B, D, G, H, M, P, mass_matrix, phi, psi, v
from phistar.algorithms.catalogue import catalogue
from phistar.algorithms.link_kinematics import V
from phistar.algorithms.programs import MATRICES, PROGRAMS
from phistar.compile import REQUESTS, kernel
from phistar.errors import ArgumentError, LoweringError, RenamedWarning, UnknownNameError
from phistar.explain import LEVELS, meanings
from phistar.refs import PAPERS
from phistar.sweeps.costs import count_operations
from tests.helpers import ROOT

NAMES = [*catalogue(), *PROGRAMS, *(row.name for row in IDENTITIES), *SYMBOLS]
PACKAGE = ROOT / "src" / "phistar"
PANDA = phistar.load("panda").model


@pytest.mark.parametrize("name", dict.fromkeys(NAMES))
def test_where_points_at_the_name(name: str) -> None:
    """The line that is named, or one of the next few, holds the name."""
    for line in phistar.where(name).splitlines():
        place = line.split()[0]
        if place == "given":
            continue
        file, number = place.split(":")
        text = (PACKAGE / file).read_text(encoding="utf-8").splitlines()
        assert name.removesuffix("_definition") in " ".join(text[int(number) - 1 :][:3])


def test_where_speaks_of_all_that_have_the_name() -> None:
    """A program and the theorem it is made from share their name."""
    lines = phistar.where("forward_dynamics").splitlines()
    assert [line.split()[1] for line in lines] == ["theorem", "program"]
    assert "Rodriguez & Kreutz-Delgado 1992, (66)-(73)" in lines[0]


def test_where_reads_printed_symbols_and_adjoint_rules() -> None:
    """φ is phi, and the rule phi_shift* stands where phi_shift does."""
    assert phistar.where("φ") == phistar.where("phi")
    assert phistar.where("phi_shift*") == phistar.where("phi_shift")


@pytest.mark.parametrize("name", dict.fromkeys(NAMES))
def test_cite_gives_bibtex_or_says_why_not(name: str) -> None:
    """Entries of known papers, each once; a comment where no paper has it."""
    text = phistar.cite(name)
    keys = re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)
    assert len(keys) == len(set(keys))
    assert set(keys) <= set(PAPERS)
    assert keys or text.startswith("% ")


def test_cite_goes_behind_the_proof() -> None:
    """The factored inverse stands in one paper, the rules that prove it in two more."""
    text = phistar.cite("mass_matrix_inverse")
    for key in ("RodriguezKreutz1992", "JainRodriguez1993", "JainRodriguez1995"):
        assert key in text


OTHERS = (*REQUESTS, *PROGRAMS, *meanings.METHOD_MEANINGS)


@pytest.mark.parametrize("name", [name for name in catalogue() if name not in OTHERS])
def test_explain_tells_a_theorem(name: str) -> None:
    """What it says, of which symbols, and that it is proved; a computation has more levels."""
    text = phistar.explain(name)
    assert text.startswith(f"{name}: {catalogue()[name].doc}\n")
    assert re.findall(r"^(\w.*)$", text, re.MULTILINE)[2:] == [
        "statement",
        "holds for",
        "symbols",
        "proof",
    ]
    assert f"phistar prove {name} prints them" in text
    assert phistar.explain(name, level=LEVELS[0]) == text
    with pytest.raises(ArgumentError, match="is a theorem"):
        phistar.explain(name, level="scalars")


def _titles(text: str) -> list[str]:
    return re.findall(r"^\d (\w+): ", text, re.MULTILINE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_explain_has_every_level(name: str) -> None:
    """Seven levels in order with a robot; without one, all but those that are about a robot."""
    assert _titles(phistar.explain(name, PANDA)) == list(LEVELS)
    assert _titles(phistar.explain(name)) == [level for level in LEVELS if level != "frames"]


@pytest.mark.parametrize("level", LEVELS)
def test_one_level(level: str) -> None:
    """A level alone is the same text as in the whole."""
    whole, one = (phistar.explain("forward_dynamics", PANDA, which) for which in (None, level))
    assert _titles(one) == [level]
    assert f"\n{one}\n" in f"{whole}\n"


def test_level_errors() -> None:
    """A level that does not exist, and one that needs a robot."""
    with pytest.raises(UnknownNameError, match="'scalars'"):
        phistar.explain("forward_dynamics", PANDA, "scalar")
    with pytest.raises(ArgumentError, match="'frames' needs a robot"):
        phistar.explain("forward_dynamics", level="frames")


@pytest.mark.parametrize(
    ("what", "recursions", "passes"),
    [
        ("forward_dynamics", 4, "outward, inward, outward"),
        ("inverse_dynamics", 3, "outward, inward"),
        ("mass_matrix_times", 2, "outward, inward"),
        (mass_matrix, 2, "outward, inward"),
        (psi.T @ H.T @ D.inv @ H @ psi, 3, "inward, outward"),
    ],
    ids=str,
)
def test_passes_are_pinned(what: str | Expr, recursions: int, passes: str) -> None:
    """Numbers of recursions and passes of the textbook algorithms, and of a user's expressions."""
    text = phistar.explain(what, level="recursion")
    count = passes.count(",") + 1
    assert f"{recursions} recursions, {count} passes: {passes}\n" in text
    ways = re.findall(r"pass (\d), (\w+)", text)
    assert len(ways) == recursions
    assert [dict(ways)[str(k + 1)] for k in range(count)] == passes.split(", ")


def test_transition_is_the_compiled_program() -> None:
    """The statements at a link are those that run."""
    lines = phistar.explain("inverse_dynamics", level="transition").splitlines()[1:]
    assert [line[2:] for line in lines] == kernel("inverse_dynamics").sweeps.splitlines()


def test_crossing_names_the_joint_maps() -> None:
    """Rows of H as selections of axes; what crosses a free joint, without and with rotors."""
    text = phistar.explain("forward_dynamics", phistar.load("quadruped").model, "crossing")
    assert "1 x free, d = 6: " in text
    assert (
        "    H x = (nx, ny, nz, fx, fy, fz)\n    D is 6 x 6; G is 6 x 6: G = I and P⁺ = 0" in text
    )
    assert re.search(r"8 x revolute, d = 1: .*\n    H x = ny\n    D is a number; G is 6 x 1", text)
    builder = phistar.ModelBuilder("screw")
    builder.link("base")
    for kind, axis, parent, child in (
        ("helical", (0.0, 0.6, 0.8), "base", "nut"),
        ("free", None, "nut", "ball"),
    ):
        builder.link(child, 1.0, (0.0, 0.0, 0.1), np.diag([1.0, 2.0, 2.5]))
        rotors = (0.1,) * (1 if axis else 6)
        builder.joint(child, kind, parent, child, axis=axis, armature=rotors)
    text = phistar.explain("forward_dynamics", builder.build(), "crossing")
    assert "H x = 0.6 ny + 0.8 nz + 0.006 fy + 0.008 fz" in text
    assert "P⁺ = 0" not in text
    assert "rank 6" in text
    text = phistar.explain("inverse_dynamics", builder.build(), "crossing")
    assert "P⁺" not in text


def test_a_free_joint_lets_no_inertia_through() -> None:
    """What the crossing level says: P - G U* = 0 at a free joint without rotors, else H P⁺ = 0."""
    robot = phistar.load("quadruped")
    matrix = Dense(robot.model, robot.random_configuration(1))
    felt = matrix(P - G @ H @ P)
    assert np.abs(felt[:6, :6]).max() < 1e-12 * np.abs(matrix(P)[:6, :6]).max()
    assert np.abs(felt[6:12, 6:12]).max() > 1e-3
    assert np.abs(matrix(H) @ felt).max() < 1e-12 * np.abs(matrix(P)).max()


def test_frames_hold_the_numbers_of_the_robot() -> None:
    """Placement and axis of every link, and the gravity of this robot."""
    text = phistar.explain("momenta", phistar.load("panda", gravity=(0, 0, -1.62)).model, "frames")
    row = r"panda_link5 +panda_link4 +\(-0\.0825, 0\.384, 0\) +\(-1\.571, 0, 0\) +\(0, 0, 1\)"
    assert re.search(row, text)
    assert re.search(r"panda_link1 +ground +\(0, 0, 0\.333\)", text)
    assert "gravity (0, 0, -1.62) m/s²" in text


def test_scalars_add_up() -> None:
    """Counts by statement and by link have the same sum, which is what ``count_operations``
    gives."""
    text = phistar.explain("forward_dynamics", PANDA, "scalars")
    statements, links = text.split("operations of each statement")[1].split("at each link:")
    total = count_operations(kernel("forward_dynamics").schedule, PANDA).total
    for part in (statements, links.split("statements x")[0]):
        rows = re.findall(r" +(\d+) +(\d+) +(\d+)$", part, re.MULTILINE)
        sums = np.array(rows, dtype=int).sum(axis=0).tolist()
        assert sums == [total.multiplications, total.additions, total.divisions]
    assert f"17 statements x 7 links, in all: {total}" in text
    assert len(re.findall(r"^ +panda_link\d", links, re.MULTILINE)) == 7
    for held in (r"motion +6  .*V", r"symmetric inertia +21  P, P⁺", "joint block +6d  U, G"):
        assert re.search(held, text)


def test_growth_is_what_a_longer_chain_costs() -> None:
    """The cost of one more link, as printed, is the difference between two chains."""
    schedule = kernel("forward_dynamics").schedule
    text = phistar.explain("forward_dynamics", phistar.robots.chain(9).model, "scalars")
    nine, ten = (
        count_operations(schedule, phistar.robots.chain(n).model).total.total for n in (9, 10)
    )
    assert f"cost {ten - nine} operations each, and so does one more" in text


def test_long_robots_are_cut_short() -> None:
    """A level lists at most 60 links and says how many it left out."""
    model = phistar.robots.chain(100).model
    for level in ("frames", "scalars"):
        text = phistar.explain("inverse_dynamics", model, level)
        assert len(text.splitlines()) < 100
        assert "... and 41 more" in text


def test_parts_of_compound_joints_have_names() -> None:
    """A universal joint is two bodies, told apart."""
    rng = np.random.default_rng(0)
    text = phistar.explain("momenta", phistar.random_model(rng, 1, kinds=["universal"]), "frames")
    assert re.search(r"link1, part 1 +ground", text)
    assert re.search(r"link1 +link1, part 1", text)


def test_a_robot_that_does_not_move() -> None:
    """No links, no counts, no error."""
    model = phistar.random_model(np.random.default_rng(0), 0)
    assert "numbers per link" in phistar.explain("inverse_dynamics", model)


def test_explain_takes_expressions_and_kernels() -> None:
    """A user's operator, with its inverse derived, a vector, and a compiled function."""
    text = phistar.explain(mass_matrix.inv @ H @ phi)
    assert "y = 𝓜⁻¹ H φ x\n  derived from it" in text
    assert re.search(r"derived in \d+ steps .* by the rules\n .*x mass_matrix_inverse", text)
    assert "3 recursions, 2 passes: inward, outward" in text
    assert "V = φ* H* v" in phistar.explain(V)
    robot = phistar.load("panda")
    function = robot.function(B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B, frames=["panda_link7"])
    assert "3 recursions, 2 passes" in phistar.explain(function.kernel, robot.model)
    with pytest.raises(LoweringError, match="no sweep form"):
        phistar.explain(M.inv)


@pytest.mark.parametrize(
    ("program", "theorem"),
    [
        ("forward_dynamics", "forward_dynamics"),
        ("forward_dynamics", "mass_matrix_inverse"),
        ("mass_matrix_solve", "mass_matrix_inverse"),
        ("inverse_dynamics", "inverse_dynamics"),
        ("momenta", "link_velocities"),
    ],
)
def test_explain_names_the_theorems(program: str, theorem: str) -> None:
    """A program names the theorems whose results it computes and those that these rest on."""
    assert f"theorem {theorem}, proved" in phistar.explain(program)


def test_explain_claims_no_theorem_where_there_is_none() -> None:
    """𝓜x is computed from the definition of 𝓜."""
    assert "no theorem needed" in phistar.explain("mass_matrix_times")


def test_prove_returns_the_proof() -> None:
    """A proof has its theorem, and its outcome."""
    proof = phistar.prove("innovations_inverse")
    assert proof.theorem is catalogue()["innovations_inverse"]
    assert proof.outcome.value == "proved"


@pytest.mark.parametrize("function", ["explain", "where", "cite", "prove"])
def test_unknown_names_have_close_matches(function: str) -> None:
    """A misspelt name is told with the right one."""
    with pytest.raises(UnknownNameError, match="'forward_dynamics'"):
        getattr(phistar, function)("forward_dynamic")


def test_every_name_has_a_meaning() -> None:
    """A line for each program and matrix; what stands behind a method exists, and so does it."""
    assert list(meanings.PROGRAM_MEANINGS) == list(PROGRAMS)
    assert list(meanings.MATRIX_MEANINGS) == list(MATRICES)
    for name, method in meanings.METHOD_MEANINGS.items():
        assert hasattr(phistar.Robot, name)
        assert set(method.programs) <= set(REQUESTS)


def test_explain_takes_a_robot_and_a_number() -> None:
    """A robot will do for its model; a number is explained by the vectors it is made of."""
    robot = phistar.load("panda")
    expr = H @ phi @ M @ phi.T @ H.T
    assert phistar.explain(expr, robot) == phistar.explain(expr, robot.model)
    assert "y0 = 𝓜 v" in phistar.explain(v.T @ mass_matrix @ v / 2)
    with pytest.raises(ArgumentError, match=r"takes a robot, or its model, .* got a str"):
        phistar.explain(expr, "panda")
    with pytest.raises(ArgumentError, match="expected an operator expression"):
        phistar.explain(3)


def test_old_names_of_arguments_warn() -> None:
    """What was ``model`` and ``name`` still works, and says what it is now, at the user's line."""
    with pytest.warns(RenamedWarning, match=r"explain\(robot=\.\.\.\) now") as seen:
        old = phistar.explain("bias_force", model=PANDA, level="recursion")
    assert seen[0].filename == __file__
    assert old == phistar.explain("bias_force", robot=PANDA, level="recursion")
    with pytest.warns(RenamedWarning, match=r"prove\(what=\.\.\.\) now"):
        assert phistar.prove(name="link_velocities").outcome.value == "proved"

# SPDX-License-Identifier: BSD-3-Clause
"""Operation counts, exactly: additions, subtractions and multiplications for one sample.

A change of these numbers is a change of what every call costs. Fewer is progress: write the new
number down. More needs a reason.
"""

import sysconfig
import warnings
from pathlib import Path

import pytest

import phistar
from phistar.algorithms.programs import PROGRAMS, WHOLE
from phistar.compile import kernel
from phistar.scalar.lower import Options, to_rolled, to_straight
from phistar.scalar.program import arithmetic

ABSENT = frozenset({"f_ext", "gravity"})

COUNTS: dict[str, dict[str, tuple[int, int]]] = {
    "panda": {
        "link_velocities": (78, 181),
        "link_accelerations": (193, 355),
        "falling_accelerations": (204, 403),
        "inverse_dynamics": (584, 817),
        "bias_force": (558, 800),
        "gravity_force": (102, 439),
        "mass_matrix_times": (311, 450),
        "mass_matrix_solve": (734, 1211),
        "forward_dynamics": (1392, 2106),
        "forward_dynamics_1": (1308, 2022),
        "forward_dynamics_2": (1508, 2300),
        "forward_dynamics_3": (1228, 1899),
        "hybrid_bias": (496, 697),
        "hybrid_dynamics": (1302, 1907),
        "coriolis_times": (901, 1215),
        "coriolis_adjoint_times": (902, 1322),
        "momenta": (311, 442),
        "total_momentum": (442, 598),
        "hinge_inertias": (490, 840),
        "generalised_force": (0, 107),
        "new_rates": (589, 1043),
        "old_rates": (585, 1028),
        "new_forces": (585, 1008),
        "old_forces": (585, 1008),
        "diagonal_bias": (1904, 3048),
        "diagonal_dynamics": (2015, 3495),
        "inverse_dynamics_jvp": (1748, 2311),
        "inverse_dynamics_vjp": (1722, 2515),
        "inverse_dynamics_hvp": (5995, 8749),
        "mass_matrix_change": (740, 1095),
        "forward_dynamics_jvp": (2844, 4066),
        "forward_dynamics_jvp_articulated": (3590, 5362),
        "forward_dynamics_jvp_split": (5190, 8030),
        "forward_dynamics_vjp": (2818, 4361),
    },
    "quadruped": {
        "link_velocities": (218, 264),
        "link_accelerations": (496, 564),
        "falling_accelerations": (551, 631),
        "inverse_dynamics": (1142, 1260),
        "bias_force": (1065, 1239),
        "gravity_force": (197, 679),
        "mass_matrix_times": (622, 678),
        "mass_matrix_solve": (1662, 1959),
        "forward_dynamics": (2975, 3502),
        "forward_dynamics_1": (2757, 3224),
        "forward_dynamics_2": (3300, 3669),
        "forward_dynamics_3": (2585, 3034),
        "hybrid_bias": (1045, 1151),
        "hybrid_dynamics": (2674, 3139),
        "coriolis_times": (1815, 1878),
        "coriolis_adjoint_times": (1823, 2045),
        "momenta": (588, 646),
        "total_momentum": (884, 910),
        "hinge_inertias": (1083, 1248),
        "generalised_force": (0, 164),
        "new_rates": (622, 1482),
        "old_rates": (614, 1512),
        "new_forces": (624, 1442),
        "old_forces": (624, 1442),
        "diagonal_bias": (2620, 4538),
        "diagonal_dynamics": (3461, 5759),
        "inverse_dynamics_jvp": (3736, 3795),
        "inverse_dynamics_vjp": (3394, 4238),
        "inverse_dynamics_hvp": (12401, 15378),
        "mass_matrix_change": (1298, 1720),
        "forward_dynamics_jvp": (5932, 6842),
        "forward_dynamics_jvp_articulated": (7622, 9565),
        "forward_dynamics_jvp_split": (11235, 15336),
        "forward_dynamics_vjp": (5860, 7519),
    },
    "humanoid": {
        "link_velocities": (516, 1688),
        "link_accelerations": (1307, 2563),
        "falling_accelerations": (1331, 3640),
        "inverse_dynamics": (2269, 3535),
        "bias_force": (2183, 3491),
        "gravity_force": (466, 1948),
        "mass_matrix_times": (1254, 1976),
        "mass_matrix_solve": (4691, 6710),
        "forward_dynamics": (7512, 11213),
        "forward_dynamics_1": (6967, 10277),
        "forward_dynamics_2": (7815, 12599),
        "forward_dynamics_3": (6462, 9528),
        "hybrid_bias": (2114, 4650),
        "hybrid_dynamics": (7227, 12785),
        "coriolis_times": (3485, 5467),
        "coriolis_adjoint_times": (3494, 5932),
        "momenta": (875, 2536),
        "total_momentum": (1573, 3306),
        "hinge_inertias": (3084, 4561),
        "generalised_force": (0, 683),
        "new_rates": (3202, 5418),
        "old_rates": (3175, 5467),
        "new_forces": (3182, 5501),
        "old_forces": (3182, 5501),
        "diagonal_bias": (10413, 16213),
        "diagonal_dynamics": (11355, 18483),
        "inverse_dynamics_jvp": (7669, 10994),
        "inverse_dynamics_vjp": (7319, 11905),
        "inverse_dynamics_hvp": (28385, 42449),
        "mass_matrix_change": (3293, 5157),
        "forward_dynamics_jvp": (14215, 20751),
        "forward_dynamics_jvp_articulated": (20286, 27984),
        "forward_dynamics_jvp_split": (31715, 43832),
        "forward_dynamics_vjp": (14061, 21377),
    },
}
"""(straight, rolled) for the bundled robots; free bases where they have one."""


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("robot", COUNTS)
def test_counts_of_bundled_robots(robot: str, name: str) -> None:
    """Every program in both shapes, no external forces."""
    model = phistar.load(robot).model
    schedule, options = kernel(name).schedule, Options(regroup=name in WHOLE)
    counts = tuple(
        arithmetic(make(schedule, model, ABSENT, options=options).count())
        for make in (to_straight, to_rolled)
    )
    assert counts == COUNTS[robot][name]


ROBOTS = Path(sysconfig.get_path("purelib"), "cmeel.prefix/share/example-robot-data/robots")
PANDA = "panda_description/urdf/panda.urdf"
ANYMAL = "anymal_b_simple_description/robots/anymal.urdf"
TALOS = "talos_data/robots/talos_full_v2.urdf"

OUTSIDE: dict[str, tuple[str, bool, tuple[int, int], tuple[int, int]]] = {
    "panda": (PANDA, False, (646, 1361), (714, 1371)),
    "quadruped, fixed base": (ANYMAL, False, (644, 896), (776, 1100)),
    "quadruped, free base": (ANYMAL, True, (1366, 2902), (1517, 3037)),
    "humanoid, free base": (TALOS, True, (4950, 11230), (5341, 11266)),
}
"""File, free base, our counts and the best known ones of inverse and of forward dynamics."""


@pytest.mark.parametrize("robot", OUTSIDE)
def test_counts_beside_the_best_known(robot: str) -> None:
    """Robots of example-robot-data, constants snapped at 1e-10 on both sides.

    The best known counts are those of a prototype that searched over more formulations.
    """
    file, free, ours, best = OUTSIDE[robot]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = phistar.load(ROBOTS / file, floating_base=free, mimic="independent").model
    options = Options(regroup=True, snap=1e-10)
    for name, count, known in zip(
        ("inverse_dynamics", "forward_dynamics_3"), ours, best, strict=True
    ):
        program = to_straight(kernel(name).schedule, model, ABSENT, options=options)
        assert arithmetic(program.count()) == count
        assert count < known

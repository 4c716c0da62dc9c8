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
from phistar.algorithms.programs import PROGRAMS, REGROUPABLE_PROGRAMS
from phistar.compile import kernel
from phistar.scalar.lower import LoweringOptions, to_looped, to_unrolled
from phistar.scalar.program import count_arithmetic

ABSENT = frozenset({"f_ext", "gravity"})

COUNTS: dict[str, dict[str, tuple[int, int]]] = {
    "panda": {
        "link_velocities": (78, 181),
        "link_accelerations": (193, 355),
        "falling_accelerations": (204, 403),
        "link_forces": (764, 989),
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
        "coriolis_times": (900, 1215),
        "coriolis_adjoint_times": (901, 1322),
        "momenta": (311, 442),
        "total_momentum": (442, 598),
        "link_poses": (118, 259),
        "world_velocities": (396, 565),
        "momentum": (366, 468),
        "kinetic_energy": (190, 274),
        "potential_energy": (44, 90),
        "center_of_mass": (62, 102),
        "moving_center_of_mass": (60, 102),
        "hinge_inertias": (490, 840),
        "generalised_force": (0, 107),
        "new_rates": (589, 1043),
        "old_rates": (585, 1028),
        "new_forces": (585, 1008),
        "old_forces": (585, 1008),
        "diagonal_bias": (1904, 3048),
        "diagonal_dynamics": (2015, 3495),
        "inverse_dynamics_jvp": (1747, 2311),
        "inverse_dynamics_vjp": (1721, 2515),
        "inverse_dynamics_hvp": (5994, 8749),
        "mass_matrix_change": (740, 1095),
        "forward_dynamics_jvp": (2843, 4066),
        "forward_dynamics_jvp_articulated": (3589, 5362),
        "forward_dynamics_jvp_split": (5189, 8030),
        "forward_dynamics_vjp": (2817, 4361),
    },
    "quadruped": {
        "link_velocities": (218, 264),
        "link_accelerations": (496, 564),
        "falling_accelerations": (551, 631),
        "link_forces": (1444, 1556),
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
        "coriolis_times": (1815, 1874),
        "coriolis_adjoint_times": (1823, 2041),
        "momenta": (588, 646),
        "total_momentum": (884, 910),
        "link_poses": (336, 396),
        "world_velocities": (1022, 1074),
        "momentum": (688, 750),
        "kinetic_energy": (383, 420),
        "potential_energy": (102, 155),
        "center_of_mass": (129, 184),
        "moving_center_of_mass": (129, 184),
        "hinge_inertias": (1083, 1248),
        "generalised_force": (0, 164),
        "new_rates": (622, 1482),
        "old_rates": (614, 1512),
        "new_forces": (624, 1442),
        "old_forces": (624, 1442),
        "diagonal_bias": (2620, 4538),
        "diagonal_dynamics": (3461, 5759),
        "inverse_dynamics_jvp": (3736, 3791),
        "inverse_dynamics_vjp": (3394, 4234),
        "inverse_dynamics_hvp": (12401, 15374),
        "mass_matrix_change": (1298, 1720),
        "forward_dynamics_jvp": (5932, 6838),
        "forward_dynamics_jvp_articulated": (7622, 9561),
        "forward_dynamics_jvp_split": (11235, 15332),
        "forward_dynamics_vjp": (5860, 7515),
    },
    "humanoid": {
        "link_velocities": (516, 1688),
        "link_accelerations": (1307, 2563),
        "falling_accelerations": (1331, 3640),
        "link_forces": (2661, 4957),
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
        "coriolis_times": (3483, 5467),
        "coriolis_adjoint_times": (3492, 5932),
        "momenta": (875, 2536),
        "total_momentum": (1573, 3306),
        "link_poses": (747, 2486),
        "world_velocities": (2706, 3006),
        "momentum": (1320, 2048),
        "kinetic_energy": (806, 1264),
        "potential_energy": (223, 514),
        "center_of_mass": (250, 543),
        "moving_center_of_mass": (250, 543),
        "hinge_inertias": (3084, 4561),
        "generalised_force": (0, 683),
        "new_rates": (3202, 5418),
        "old_rates": (3175, 5467),
        "new_forces": (3182, 5501),
        "old_forces": (3182, 5501),
        "diagonal_bias": (10413, 16213),
        "diagonal_dynamics": (11355, 18483),
        "inverse_dynamics_jvp": (7667, 10994),
        "inverse_dynamics_vjp": (7317, 11905),
        "inverse_dynamics_hvp": (28383, 42449),
        "mass_matrix_change": (3293, 5157),
        "forward_dynamics_jvp": (14213, 20751),
        "forward_dynamics_jvp_articulated": (20284, 27984),
        "forward_dynamics_jvp_split": (31713, 43832),
        "forward_dynamics_vjp": (14059, 21377),
    },
}
"""(straight, rolled) for the bundled robots; free bases where they have one."""


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("robot", COUNTS)
def test_counts_of_bundled_robots(robot: str, name: str) -> None:
    """Every program in both shapes, no external forces."""
    model = phistar.load(robot).model
    schedule, options = kernel(name).schedule, LoweringOptions(regroup=name in REGROUPABLE_PROGRAMS)
    counts = tuple(
        count_arithmetic(make(schedule, model, ABSENT, options=options).count())
        for make in (to_unrolled, to_looped)
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
    "humanoid, free base": (TALOS, True, (4948, 11196), (5341, 11266)),
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
    options = LoweringOptions(regroup=True, snap=1e-10)
    for name, count, known in zip(
        ("inverse_dynamics", "forward_dynamics_3"), ours, best, strict=True
    ):
        program = to_unrolled(kernel(name).schedule, model, ABSENT, options=options)
        assert count_arithmetic(program.count()) == count
        assert count < known

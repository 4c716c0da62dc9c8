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
from phistar.algorithms.equations_of_motion import PROGRAMS, WHOLE
from phistar.compile import kernel
from phistar.scalar.lower import Options, to_rolled, to_straight
from phistar.scalar.program import arithmetic

ABSENT = frozenset({"f_ext", "gravity"})

COUNTS: dict[str, dict[str, tuple[int, int]]] = {
    "panda": {
        "link_velocities": (81, 117),
        "inverse_dynamics": (632, 770),
        "bias_force": (599, 750),
        "gravity_force": (102, 391),
        "mass_matrix_times": (314, 402),
        "mass_matrix_solve": (737, 998),
        "forward_dynamics": (1395, 1867),
        "forward_dynamics_1": (1344, 1753),
        "forward_dynamics_2": (1511, 1975),
        "forward_dynamics_3": (1264, 1652),
        "hybrid_bias": (499, 593),
        "hybrid_dynamics": (1305, 1564),
        "coriolis_times": (1344, 1739),
        "coriolis_adjoint_times": (1333, 1736),
        "momenta": (314, 378),
        "total_momentum": (444, 510),
        "hinge_inertias": (493, 673),
        "generalised_force": (0, 87),
    },
    "quadruped": {
        "link_velocities": (218, 264),
        "inverse_dynamics": (1226, 1336),
        "bias_force": (1149, 1315),
        "gravity_force": (201, 679),
        "mass_matrix_times": (634, 678),
        "mass_matrix_solve": (1670, 1932),
        "forward_dynamics": (2983, 3481),
        "forward_dynamics_1": (2833, 3261),
        "forward_dynamics_2": (3308, 3642),
        "forward_dynamics_3": (2661, 3077),
        "hybrid_bias": (1045, 1151),
        "hybrid_dynamics": (2686, 3112),
        "coriolis_times": (2942, 2996),
        "coriolis_adjoint_times": (2924, 3010),
        "momenta": (588, 646),
        "total_momentum": (884, 910),
        "hinge_inertias": (1091, 1227),
        "generalised_force": (0, 158),
    },
    "humanoid": {
        "link_velocities": (516, 1688),
        "inverse_dynamics": (2463, 3877),
        "bias_force": (2377, 3833),
        "gravity_force": (466, 1948),
        "mass_matrix_times": (1254, 1976),
        "mass_matrix_solve": (4691, 6710),
        "forward_dynamics": (7512, 11213),
        "forward_dynamics_1": (7136, 10579),
        "forward_dynamics_2": (7815, 12599),
        "forward_dynamics_3": (6631, 9830),
        "hybrid_bias": (2114, 4650),
        "hybrid_dynamics": (7227, 12785),
        "coriolis_times": (5214, 8734),
        "coriolis_adjoint_times": (5144, 8778),
        "momenta": (875, 2536),
        "total_momentum": (1573, 3306),
        "hinge_inertias": (3084, 4561),
        "generalised_force": (0, 683),
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
    "panda": (PANDA, False, (694, 1396), (714, 1371)),
    "quadruped, fixed base": (ANYMAL, False, (716, 952), (776, 1100)),
    "quadruped, free base": (ANYMAL, True, (1457, 2985), (1517, 3037)),
    "humanoid, free base": (TALOS, True, (5285, 11586), (5341, 11266)),
}
"""File, free base, our counts and the best known ones of inverse and of forward dynamics."""

ABOVE = {("panda", "forward_dynamics_3"), ("humanoid, free base", "forward_dynamics_3")}
"""Where we need more operations than the best known program, by 1.8 and 2.8 %."""


@pytest.mark.parametrize("robot", OUTSIDE)
def test_counts_beside_the_best_known(robot: str) -> None:
    """Robots of example-robot-data, constants snapped at 1e-10 on both sides.

    The best known counts are those of a prototype that searched over more formulations. Inverse
    dynamics needs fewer operations here on all four robots, forward dynamics on two; on the two of
    ``ABOVE`` it needs more, and the number is pinned all the same.
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
        assert (count > known) == ((robot, name) in ABOVE)

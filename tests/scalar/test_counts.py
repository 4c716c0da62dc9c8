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
        "link_velocities": (81, 114),
        "inverse_dynamics": (632, 767),
        "bias_force": (599, 747),
        "gravity_force": (102, 388),
        "mass_matrix_times": (314, 399),
        "mass_matrix_solve": (737, 995),
        "forward_dynamics": (1395, 1864),
        "forward_dynamics_1": (1344, 1750),
        "forward_dynamics_2": (1511, 1972),
        "forward_dynamics_3": (1264, 1649),
        "hybrid_bias": (499, 590),
        "hybrid_dynamics": (1305, 1561),
        "coriolis_times": (904, 1111),
        "coriolis_adjoint_times": (905, 1194),
        "momenta": (314, 375),
        "total_momentum": (444, 507),
        "hinge_inertias": (493, 670),
        "generalised_force": (0, 84),
        "link_accelerations": (196, 264),
        "falling_accelerations": (207, 272),
        "inverse_dynamics_jvp": (1751, 2159),
        "inverse_dynamics_vjp": (1725, 2339),
        "inverse_dynamics_hvp": (5998, 8243),
        "mass_matrix_change": (743, 974),
        "forward_dynamics_jvp": (2847, 3699),
        "forward_dynamics_jvp_articulated": (3593, 4904),
        "forward_dynamics_vjp": (2821, 3948),
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
        "coriolis_times": (1827, 1879),
        "coriolis_adjoint_times": (1835, 2046),
        "momenta": (588, 646),
        "total_momentum": (884, 910),
        "hinge_inertias": (1091, 1227),
        "generalised_force": (0, 158),
        "link_accelerations": (508, 564),
        "falling_accelerations": (551, 631),
        "inverse_dynamics_jvp": (3748, 3796),
        "inverse_dynamics_vjp": (3406, 4239),
        "inverse_dynamics_hvp": (12404, 15355),
        "mass_matrix_change": (1310, 1714),
        "forward_dynamics_jvp": (5940, 6822),
        "forward_dynamics_jvp_articulated": (7626, 9527),
        "forward_dynamics_vjp": (5868, 7493),
    },
    "humanoid": {
        "link_velocities": (516, 1824),
        "inverse_dynamics": (2463, 4618),
        "bias_force": (2377, 4574),
        "gravity_force": (466, 2565),
        "mass_matrix_times": (1254, 2593),
        "mass_matrix_solve": (4691, 8839),
        "forward_dynamics": (7512, 13599),
        "forward_dynamics_1": (7136, 13449),
        "forward_dynamics_2": (7815, 15218),
        "forward_dynamics_3": (6631, 12461),
        "hybrid_bias": (2114, 4445),
        "hybrid_dynamics": (7227, 14269),
        "coriolis_times": (3485, 6237),
        "coriolis_adjoint_times": (3494, 6938),
        "momenta": (875, 2564),
        "total_momentum": (1573, 3722),
        "hinge_inertias": (3084, 6073),
        "generalised_force": (0, 947),
        "link_accelerations": (1307, 3087),
        "falling_accelerations": (1331, 3912),
        "inverse_dynamics_jvp": (7669, 12251),
        "inverse_dynamics_vjp": (7319, 13407),
        "inverse_dynamics_hvp": (28250, 49266),
        "mass_matrix_change": (3293, 6650),
        "forward_dynamics_jvp": (14215, 24265),
        "forward_dynamics_jvp_articulated": (20286, 34270),
        "forward_dynamics_vjp": (14061, 26591),
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

# SPDX-License-Identifier: BSD-3-Clause
"""``rollout``: wrenches, policies that blow up, samples that are lost."""

import numpy as np
import pytest

import phistar
from phistar import control
from phistar.errors import ArgumentError, DivergenceError


@pytest.fixture(scope="module")
def pendulum() -> phistar.Robot:
    """Two hinges."""
    return phistar.load("double_pendulum")


def damped(k: int, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Joint forces against the motion; states without numbers are not for policies."""
    assert np.isfinite(q).all()
    return -0.1 * v


def test_wrenches(pendulum: phistar.Robot) -> None:
    """Steps under wrenches of each sample are those of ``forward_dynamics`` with them; 1e-12."""
    tip = pendulum.link_names[-1]
    f = np.random.default_rng(0).normal(size=(3, 6))
    motion = control.rollout(pendulum, [0.1, 0.2], [0.3, 0.4], damped, 0.01, 2, forces={tip: f})
    assert motion.q.shape == (3, 3, 2)
    vdot = pendulum.forward_dynamics([0.1, 0.2], [0.3, 0.4], [-0.03, -0.04], forces={tip: f})
    np.testing.assert_allclose(motion.v[1], [0.3, 0.4] + 0.01 * vdot, rtol=1e-12)


def test_a_policy_that_blows_up_is_told_with_its_step(pendulum: phistar.Robot) -> None:
    """Forces that are not finite: step, time and entry, not as if they were an argument."""

    def policy(k: int, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([0.0, np.nan if k == 3 else 0.0])

    said = r"policy .* not finite at step 3 \(0\.03 s\): tau\[1\] is nan"
    with pytest.raises(DivergenceError, match=said) as error:
        control.rollout(pendulum, [0, 0], [0, 0], policy, 0.01, 10)
    assert error.value.knot == 3
    assert error.value.time == pytest.approx(0.03)
    with pytest.raises(DivergenceError, match=r"not finite after step \d+ \(.* s\)"):
        control.rollout(pendulum, [0, 0], [1, 0], lambda k, q, v: 1e4 * v**3, 0.1, 100)
    with pytest.raises(ArgumentError, match="on_error is 'no'"):
        control.rollout(pendulum, [0, 0], [0, 0], policy, 0.01, 10, on_error="no")


def test_lost_samples(pendulum: phistar.Robot) -> None:
    """on_error="nan": others move as they do alone, the policy never sees what is not finite."""
    q = np.array([[[0.1, 0.2], [np.nan, 0.0]], [[0.3, 0.1], [0.0, 0.4]]])
    v = np.array([[[0.0, 0.0], [0.0, 0.0]], [[1e150, 0.0], [0.5, 0.0]]])
    motion = control.rollout(pendulum, q, v, damped, 0.01, 5, on_error="nan")
    assert motion.ok.tolist() == [[True, False], [False, True]]
    assert motion.diverged.tolist() == [[-1, 0], [1, -1]]
    assert np.isnan(motion.q[:, 0, 1]).all()
    assert np.isnan(motion.v[1:, 1, 0]).all()
    assert np.isnan(motion.tau[1:, 1, 0]).all()
    for index in ((0, 0), (1, 1)):
        alone = control.rollout(pendulum, q[index], v[index], damped, 0.01, 5)
        np.testing.assert_allclose(motion.q[:, *index], alone.q, rtol=1e-12)
        assert alone.ok.all()
    dog = phistar.load("quadruped")
    place = np.stack([dog.neutral(), 0.0 * dog.neutral()])
    still = control.rollout(dog, place, np.zeros(18), damped, 1e-3, 1, on_error="nan")
    assert still.diverged.tolist() == [-1, 0]
    one = control.rollout(pendulum, [0, 0], [1, 0], lambda k, q, v: 1e4 * v**3, 0.1, 100,
                          on_error="nan")  # fmt: skip
    assert not one.ok
    with pytest.raises(ArgumentError, match="q is not finite"):
        control.rollout(pendulum, q, v, damped, 0.01, 5)

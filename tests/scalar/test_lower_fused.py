# SPDX-License-Identifier: BSD-3-Clause
"""Ways to linearized forward dynamics, whole and in part, against dense operators."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.symbols import mass_matrix
from phistar.algorithms.linearized import A_D, B_D
from phistar.algorithms.linearized_forward import with_forward_acceleration
from phistar.compile import kernel, lowered_bundle
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.model.wrenches import WrenchFrames
from phistar.scalar.graph import Graph
from phistar.scalar.interpret import run
from phistar.scalar.lower import LoweringOptions
from phistar.scalar.lower_fused import BundlePart, to_fused
from phistar.scalar.lower_matrix import to_unrolled_matrix
from phistar.scalar.program import (
    BasicBlock,
    MatrixProduct,
    ProductBand,
    Signature,
    Store,
    Unrolled,
    count_arithmetic,
)
from phistar.scalar.verify import VerifyError, verify
from tests.helpers import patch_policy

NO_BRANCHES = {"max_branch_time_ratio": 0.0, "max_branch_part_time_ratio": 0.0}
WAYS = {
    "innovations": {"max_operations_factored": 0, **NO_BRANCHES},
    "products": {"max_operations_factored": 0, **NO_BRANCHES},
    "factors": {"max_operations_factored": 10**9, **NO_BRANCHES},
    "branches": {**dict.fromkeys(NO_BRANCHES, 100.0), "max_segment_links": 1},
}
PARTS = [("vdot_q", "vdot_v"), ("vdot_v",), ("vdot_q",), ("vdot_tau", "vdot_v")]
ABSENT = frozenset({"f_ext", "gravity"})


def _model(topology: str, floating: bool) -> Model:
    """Of every joint kind that moves."""
    rng, given = (
        np.random.default_rng(4),
        {"floating_base": True} if floating else {"armature": 0.5},
    )
    return random_model(rng, 11, topology=topology, gravity=(0.7, -1.1, -9.3), **given)


def _program(model: Model, names: Sequence[str], innovations: bool = True) -> Unrolled:
    every = range(sum(body.joint_kind.nv for body in model.bodies))
    part = BundlePart(names, every, every, with_vectors="vdot_q" in names)
    bundle = lowered_bundle("linearize")
    if not innovations:
        bundle = replace(bundle, innovations=None)
    return to_fused(bundle, model, ABSENT, LoweringOptions(regroup=True), part=part)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("topology", "floating"), [("binary", True), ("forest", False)])
def test_all_ways_dense(
    topology: str, floating: bool, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """-𝓜⁻¹B_D, -𝓜⁻¹A_D and 𝓜⁻¹ of dense operators, each wanted with or without others: 1e-9.

    The mass matrices have condition numbers up to some 1e4.
    """
    patch_policy(monkeypatch, max_product_rows_unrolled=1, min_rows_innovations=1, **WAYS[way])
    model = _model(topology, floating)
    rng, robot = np.random.default_rng(5), phistar.Robot(model)
    v, tau = rng.normal(size=(2, 1, robot.nv))
    given = {"q": robot.random_configuration(rng, 1), "v": v, "tau": tau}
    still = np.zeros(6 * len(model.bodies))
    dense = Dense(model, given["q"][0], "inertial", {"v": v[0], "tau": tau[0], "f_ext": still})
    inverse = np.linalg.inv(dense(mass_matrix))
    expected = {
        "vdot_q": -inverse @ dense(with_forward_acceleration(B_D)),
        "vdot_v": -inverse @ dense(with_forward_acceleration(A_D)),
        "vdot_tau": inverse,
    }
    for names in PARTS:
        program = _program(model, names, innovations=way == "innovations")
        verify(program)
        assert any(product.bands for product in program.products) == (way == "innovations")
        assert (bool(program.products), bool(program.row_loops)) == {
            "innovations": (True, False),
            "products": (True, False),
            "factors": ("vdot_tau" in names, False),
            "branches": (False, True),
        }[way]
        found = run(program, {name: given[name] for name in program.signature.inputs})
        assert set(found) - {"vdot"} == set(names)
        for name in names:
            matrix = found[name][0].reshape(inverse.shape)
            error = np.abs(matrix - expected[name]).max()
            assert error <= 1e-9 * np.abs(expected[name]).max(), name


@pytest.mark.parametrize(
    ("way", "unrolled"), [("factors", 1), ("products", 1), ("products", 99), ("innovations", 1)]
)
def test_falling_base(way: str, unrolled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A base that moves faster takes all along: no joint moves, to the bit."""
    sizes = {"max_product_rows_unrolled": unrolled, "min_rows_innovations": 1}
    patch_policy(monkeypatch, **sizes, **WAYS[way])
    model = _model("binary", True)
    rng, robot = np.random.default_rng(6), phistar.Robot(model)
    v, tau = rng.normal(size=(2, 1, robot.nv))
    given = {"q": robot.random_configuration(rng, 1), "v": v, "tau": tau}
    found = run(_program(model, ("vdot_q", "vdot_v"), way == "innovations"), given)
    size = (robot.nv, robot.nv)
    by_q, by_v = found["vdot_q"][0].reshape(size), found["vdot_v"][0].reshape(size)
    x, y, z = v[0, :3]
    turning = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    np.testing.assert_allclose(by_v[3:6, 3:6], -turning, rtol=1e-14, atol=1e-15)
    assert not np.delete(by_v[:, 3:6], range(3, 6), axis=0).any()
    assert not np.delete(by_q[:, :6], range(3, 6), axis=0).any()


def test_falling_columns_are_not_multiplied() -> None:
    """Products of the quadruped leave out the six columns along which it falls as a whole.

    Of six falling ones two numbers each are known.
    """
    model = phistar.load("quadruped").model
    program = _program(model, ("vdot_q", "vdot_v", "vdot_tau"), innovations=False)
    assert [p.count()["mul"] for p in program.products] == [18 * 108, 18 * 162]
    assert [len(p.known) for p in program.products] == [6, 6]
    assert program.block.graph.count_fused(program.block.roots) == 7003


def test_innovations_of_the_quadruped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the base read 6 rows of innovations, those of a leg (3) also their own where these
    are not zero: in 12 columns of legs by q, 15 by v.

    𝓜⁻¹ has 6 (6 x 6 + 12 x 6) multiplications for the base, and in rows and columns of legs 6, or 9
    for the same one, of which pairs of legs are computed once.
    """
    patch_policy(monkeypatch, min_rows_innovations=1)
    model = phistar.load("quadruped").model
    program = _program(model, ("vdot_q", "vdot_v", "vdot_tau"))
    by_q, by_v, by_tau = program.products
    assert by_q.count()["mul"] == 18 * 12 * 6 + 12 * 3 * 3
    assert by_v.count()["mul"] == 18 * 15 * 6 + 12 * 6 * 3
    assert by_tau.count()["mul"] == 6 * 18 * 6 + (6 * 9) * 6 + 4 * 9 * 9
    assert [len(p.known) for p in program.products] == [6, 6, 0]
    assert program.block.graph.count_fused(program.block.roots) == 6983


def test_innovations_of_the_humanoid() -> None:
    """Fewer operations in the line than the inverse and derivatives of forces, half in products."""
    model = phistar.load("humanoid").model
    program = _program(model, ("vdot_q", "vdot_v", "vdot_tau"))
    bands = [(min(b.rows), max(b.rows) + 1) for b in program.products[0].bands]
    assert bands == [(0, 6), (6, 12), (12, 15), (15, 22), (22, 29), (29, 35), (35, 41)]
    assert [p.count()["mul"] for p in program.products] == [13571, 15260, 8957]
    assert program.block.graph.count_fused(program.block.roots) == 31967


def test_bands_are_checked() -> None:
    """Bands that leave out a row, read a column that is not there or copy a copy are refused."""
    line = BasicBlock(Graph(), [Store("work", i, "", 1.0) for i in range(3)])
    signature = Signature({"x": 1}, {"y": 4})
    bands = [ProductBand([0], [0], 0), ProductBand([1], [1], 1)]
    good = MatrixProduct("y", 0, 2, [{0: 2}, {1: 2}], bands=bands)
    verify(Unrolled(signature, line, (good,), 3))
    assert run(Unrolled(signature, line, (good,), 3), {"x": np.zeros((1, 1))})["y"].tolist() == [
        [-1.0, 0.0, 0.0, -1.0]
    ]
    for wrong, text in [
        (replace(good, bands=bands[:1]), "all rows"),
        (replace(good, bands=[*bands[:1], ProductBand([1], [2], 1)]), "columns"),
        (replace(good, bands=[*bands[:1], ProductBand([1], [1], 3)]), "slot 3"),
        (replace(good, mirrored={1: 2, 2: 1}), "not multiplied"),
    ]:
        with pytest.raises(VerifyError, match=text):
            verify(Unrolled(signature, line, (wrong,), 3))


@pytest.mark.parametrize("rows", [0, 99])
def test_forces_held_in_the_world_turn_under_the_base(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of q then change them in its axes: all columns are multiplied. -𝓜⁻¹∂τ/∂q, 1e-9."""
    patch_policy(monkeypatch, max_product_rows_unrolled=rows)
    robot = phistar.Robot(_model("binary", True))
    link, absent = robot.link_names[-1], ABSENT - {"f_ext"}
    at = WrenchFrames((link,), "world")
    program = to_fused(lowered_bundle("linearize"), robot.model, absent, wrenches=at)
    rng = np.random.default_rng(8)
    q = robot.random_configuration(rng, 1)
    v, tau = rng.normal(size=(2, 1, robot.nv))
    force = rng.normal(size=(1, 6))
    given = {"q": q, "v": v, "tau": tau, at.inputs[0]: force}
    found = run(program, {name: given[name] for name in program.signature.inputs})
    options = {"forces": {link: force}, "reference": "world"}
    inverse = robot.linearize_inverse(q, v, found["vdot"], **options)
    expected = -np.linalg.solve(inverse.tau_vdot, inverse.tau_q)[0]
    error = np.abs(found["vdot_q"][0].reshape(expected.shape) - expected).max()
    assert error <= 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize(("topology", "floating"), [("binary", True), ("forest", False)])
def test_inverse_by_factors_dense(topology: str, floating: bool) -> None:
    """𝓜⁻¹ multiplied of its factors: of dense operators, 1e-9, and shorter than by walks."""
    model = _model(topology, floating)
    draft = kernel("mass_matrix_inverse", model).draft
    (forms,) = draft.forms.values()
    by_walks = to_unrolled_matrix(forms, model)
    by_factors = to_unrolled_matrix(forms, model, factors=draft.factors)
    verify(by_factors)
    assert count_arithmetic(by_factors.count()) < count_arithmetic(by_walks.count())
    q = phistar.Robot(model).random_configuration(np.random.default_rng(7), 1)
    expected = np.linalg.inv(Dense(model, q[0], "inertial")(mass_matrix))
    (found,) = run(by_factors, {"q": q}).values()
    error = np.abs(found[0].reshape(expected.shape) - expected).max()
    assert error <= 1e-9 * np.abs(expected).max()


def test_inverse_of_a_chain_by_walks() -> None:
    """Factors of a chain have no zeros: walks take fewer operations, and are taken."""
    model = phistar.robots.chain(30).model
    draft = kernel("mass_matrix_inverse", model).draft
    (forms,) = draft.forms.values()
    counts = [
        count_arithmetic(to_unrolled_matrix(forms, model, factors=factors).count())
        for factors in (None, draft.factors)
    ]
    assert counts[0] == counts[1]

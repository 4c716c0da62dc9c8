# SPDX-License-Identifier: BSD-3-Clause
"""Generated NumPy code: readable, the same for every robot, and with its lines in tracebacks."""

import traceback

import numpy as np
import pytest

from phistar.algebra.ir import let, symbol
from phistar.algebra.spaces import JOINT, ONE
from phistar.algebra.symbols import mass_matrix, vector
from phistar.backends.batch_axes import Batch
from phistar.backends.numpy_algebra import crf, crm, symmetric_inverse
from phistar.backends.numpy_links import LinkTables
from phistar.compile import compile_outputs, kernel
from phistar.model.builder import ModelBuilder
from phistar.model.generators import chain
from phistar.model.random import random_model
from phistar.spatial import crf_apply, crm_apply
from phistar.thresholds import POLICY
from tests.helpers import build


def test_forward_dynamics_reads_like_a_textbook() -> None:
    """A loop per pass, a line per statement, names as in the papers."""
    source = build("numpy", kernel("hybrid_dynamics").schedule, chain(2)).source
    assert source.splitlines() == [
        "from phistar.backends.numpy_algebra import block_outer, block_times, times",
        "",
        "",
        "def run(link, tau, a, b):",
        "    H, Ht, M, congruence_in, joint_inertia, shift_in, shift_out = link.H, link.Ht, "
        "link.M, link.congruence_in, link.joint_inertia, link.shift_in, link.shift_out",
        "    G, P_plus, x1, nu, vdot, alpha, = link.streams(6)",
        "    for k in link.inward:",
        "        P = M[k] + congruence_in(k, P_plus)",
        "        U = H(k, P)",
        "        D = joint_inertia(k, U)",
        "        G[k] = D.solve(U)",
        "        P_plus[k] = P - block_outer(G[k], U)",
        "        z = shift_in(k, x1) + times(P, a[k]) + b[k]",
        "        epsilon = tau[k] - H(k, z)",
        "        x1[k] = block_times(G[k], epsilon) + z",
        "        nu[k] = D.solve(epsilon)",
        "    for k in link.outward:",
        "        x2 = shift_out(k, alpha)",
        "        vdot[k] = nu[k] - times(G[k], x2)",
        "        alpha[k] = Ht(k, vdot[k]) + a[k] + x2",
        '    return {"vdot": vdot}',
    ]


def test_source_knows_no_robot() -> None:
    """The text is the same for every robot; the numbers are in tables."""
    scheduled = kernel("inverse_dynamics").schedule
    robots = [chain(1), chain(50), random_model(np.random.default_rng(0), 5)]
    assert len({build("numpy", scheduled, robot).source for robot in robots}) == 1


def test_names_become_identifiers() -> None:
    """Words that Python or the code itself uses, signs and repeats are all given another name."""
    x, start = vector("lambda", JOINT), symbol("H", JOINT, ONE)
    z = let("φ/2", mass_matrix @ x)
    quote = 'a"\n)'
    outputs = (("times", z), (quote, mass_matrix @ z), ("lambda", mass_matrix @ start))
    built = build("numpy", compile_outputs("odd", outputs).schedule, chain(2))
    compile(built.source, "odd", "exec")
    values = {"lambda": np.ones(2), "H": np.ones(2)}
    result = built(np.zeros(2), values)
    assert list(result) == ["times", quote, "lambda"]
    assert np.allclose(result["times"], result["lambda"])


def test_tracebacks_show_the_line() -> None:
    """An error inside generated code points at its statement."""
    built = build("numpy", kernel("mass_matrix_times").schedule, chain(2))
    with pytest.raises(ValueError, match="could not broadcast") as caught:
        built(np.zeros(2), {"vdot": np.zeros(1)})
    text = "".join(traceback.format_exception(caught.value))
    assert "x1[k] = Ht(k, vdot[k]) + shift_out(k, x1)" in text


def test_joint_maps_are_choices_where_they_can_be() -> None:
    """Unit rows select components, in order as a slice; others stay matrices."""
    builder = ModelBuilder("kinds")
    builder.link("base")
    kinds = [
        ("revolute", (0, 0, 1), slice(2, 3)),
        ("prismatic", (1, 0, 0), slice(3, 4)),
        ("revolute", (0, 0, -1), None),
        ("revolute", (0, 0.6, 0.8), None),
        ("cylindrical", (0, 1, 0), [1, 4]),
        ("spherical", None, slice(0, 3)),
        ("free", None, slice(0, 6)),
    ]
    for number, (kind, axis, _) in enumerate(kinds):
        builder.link(f"link{number}", mass=1.0, inertia=np.eye(3))
        builder.joint(f"joint{number}", kind, "base", f"link{number}", axis=axis)
    tables = LinkTables(builder.build(), (), frozenset(), np.dtype(np.float64))
    assert tables.unit_components == [chosen for _, _, chosen in kinds]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
def test_inverse(size: int, batch: tuple[int, ...]) -> None:
    """Sweeping pivots inverts symmetric positive matrices; NumPy agrees to 1e-12."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(*batch, size, size))
    matrix = root @ np.swapaxes(root, -1, -2) + np.eye(size)
    ours = symmetric_inverse(np.moveaxis(matrix, (-2, -1), (0, 1)))
    theirs = np.moveaxis(np.linalg.inv(matrix), (-2, -1), (0, 1))
    assert np.allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("one", "other"), [((), ()), ((4,), (1,)), ((2, 1), (1, 3))])
def test_cross_products(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    """With trailing batch axes they are those of ``spatial``."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(6, *one)), rng.normal(size=(6, *other))
    for ours, theirs in ((crm, crm_apply), (crf, crf_apply)):
        expected = theirs(np.moveaxis(x, 0, -1), np.moveaxis(y, 0, -1))
        assert np.allclose(np.moveaxis(ours(x, y), 0, -1), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("shapes", "inner"),
    [
        ([(), ()], ()),
        ([(1, 1), ()], ()),
        ([(2, 3), (2, 3), ()], (6,)),
        ([(2, 1), (3,)], (2, 3)),
        ([(0,), ()], (0,)),
    ],
)
def test_batch_axes(shapes: list[tuple[int, ...]], inner: tuple[int, ...]) -> None:
    """Axes are merged where all arrays have the same, and arrays find back to their places."""
    batch = Batch(shapes)
    assert batch.inner_shape == inner
    for shape in shapes:
        array = np.random.default_rng(3).normal(size=(*shape, 4))
        entered = batch.to_inner(array, 1)
        assert entered.ndim == 1 + len(inner)
        back = batch.to_outer(np.broadcast_to(entered, (4, *inner)), 1)
        assert (back == np.broadcast_to(array, (*batch.shape, 4))).all()


def test_pieces_cover_a_batch() -> None:
    """Each sample once, none too large."""
    for shapes in (
        [(POLICY.numpy_piece_samples * 2 + 5,)],
        [(3, POLICY.numpy_piece_samples), (POLICY.numpy_piece_samples,)],
        [()],
        [(0,)],
    ):
        batch = Batch(shapes)
        length = batch.inner_shape[0] if batch.inner_shape else 1
        parts = list(batch.pieces())
        covered = [i for part in parts for i in range(part.start, part.stop)]
        assert covered == list(range(length))
        assert max(part.stop - part.start for part in parts) <= POLICY.numpy_piece_samples

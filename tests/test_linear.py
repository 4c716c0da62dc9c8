# SPDX-License-Identifier: BSD-3-Clause
"""Linear operators without a robot: the laws of matrices, SciPy's interface, clear errors."""

import numpy as np
import pytest
import scipy.sparse.linalg

from phistar.errors import ArgumentError, ShapeError
from phistar.linear import LinearOperator

RNG = np.random.default_rng(0)


def _of(matrix: np.ndarray, name: str, inverse: bool = False) -> LinearOperator:
    """An operator that is a matrix (..., m, n)."""
    turned = np.swapaxes(matrix, -1, -2)
    return LinearOperator(
        name,
        matrix.shape[-2:],  # type: ignore[arg-type]
        lambda x: (matrix @ x[..., None])[..., 0],
        lambda x: (turned @ x[..., None])[..., 0],
        (lambda: _of(np.linalg.inv(matrix), "inverse")) if inverse else None,
        batch=matrix.shape[:-2],
        dtype=matrix.dtype,
    )


@pytest.mark.parametrize("shape", [(), (2,), (3, 1)])
def test_laws_of_matrices(shape: tuple[int, ...]) -> None:
    """Products, sums, multiples, transposes and inverses of operators are those of matrices."""
    a, b = RNG.normal(size=(2, *shape, 4, 4)) + 3 * np.eye(4)
    c = RNG.normal(size=(*shape, 3, 4))
    A, B, C = _of(a, "A", True), _of(b, "B", True), _of(c, "C")
    pairs = [
        (C @ A, c @ a),
        (A + B, a + b),
        (A - 2 * B, a - 2 * b),
        (-A, -a),
        ((C @ A @ B).T, np.swapaxes(c @ a @ b, -1, -2)),
        ((A @ B).inv, np.linalg.inv(a @ b)),
        ((2.0 * A).inv, np.linalg.inv(2 * a)),
        (A.T.inv, np.linalg.inv(np.swapaxes(a, -1, -2))),
        (A.inv.inv, a),
        (np.float64(2.0) * A, 2 * a),
    ]
    for operator, matrix in pairs:
        x = RNG.normal(size=(*shape, operator.shape[1]))
        np.testing.assert_allclose(operator.dense(), matrix, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(operator @ x, (matrix @ x[..., None])[..., 0], rtol=1e-9)
    np.testing.assert_allclose(A.solve(A @ [1, 2, 3, 4])[..., 1], 2.0)


def test_scipy_takes_them() -> None:
    """SciPy's iterative solvers and its adjoints work on an operator, real and complex."""
    half = RNG.normal(size=(5, 5))
    matrix = half @ half.T + np.eye(5)
    theirs = scipy.sparse.linalg.aslinearoperator(_of(matrix, "A"))
    right = RNG.normal(size=5)
    solution, failed = scipy.sparse.linalg.cg(theirs, right, rtol=1e-12)
    assert not failed
    np.testing.assert_allclose(matrix @ solution, right, rtol=1e-8)
    wild = RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))
    theirs = scipy.sparse.linalg.aslinearoperator(_of(wild, "W"))
    assert theirs.dtype == np.complex128
    np.testing.assert_allclose(theirs.matmat(np.eye(3)), wild)
    np.testing.assert_allclose(theirs.rmatvec([1.0, 1j]), wild.conj().T @ [1.0, 1j])


def test_errors() -> None:
    """Sizes, batches, kinds of numbers, missing inverses: named with what was expected."""
    A, C = _of(np.eye(4), "A", True), _of(np.ones((3, 4)), "C")
    batch = _of(np.ones((2, 4, 4)), "batch")
    with pytest.raises(ShapeError, match=r"needs \(\.\.\., 4\)"):
        A @ np.zeros(3)
    with pytest.raises(ShapeError, match="C"):
        A @ C
    with pytest.raises(ShapeError, match="sum with A"):
        A + C
    with pytest.raises(ShapeError, match="broadcast"):
        batch @ np.zeros((3, 4))
    with pytest.raises(ShapeError, match="broadcast"):
        batch @ _of(np.ones((3, 4, 4)), "other")
    with pytest.raises(ArgumentError, match="not finite"):
        A @ [0, 0, np.nan, 0]
    with pytest.raises(ArgumentError, match="dtype"):
        A @ ["a", "b", "c", "d"]
    with pytest.raises(ArgumentError, match="C has no inverse"):
        C.solve(np.zeros(3))
    with pytest.raises(ArgumentError, match="has no inverse"):
        (A @ C.T).inv  # noqa: B018
    with pytest.raises(ArgumentError, match="batch"):
        batch.matvec(np.zeros(4))
    with pytest.raises(ArgumentError, match=r"A\.T @ x"):
        np.zeros(4) @ A
    for wrong in (lambda: A + 1.0, lambda: A - 1.0, lambda: A * "x"):
        with pytest.raises(TypeError):
            wrong()

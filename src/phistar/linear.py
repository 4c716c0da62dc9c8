# SPDX-License-Identifier: BSD-3-Clause
"""Linear maps that are applied, not formed: multiply, transpose, invert, compose, add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from phistar.arrays import Array, DType
from phistar.errors import ArgumentError, ShapeError

VectorMap = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class LinearOperator:
    """A linear map for each entry of a batch.

    ``A @ x`` takes vectors (..., n) along the last axis and gives (..., m); ``A @ B``, ``A + B``
    and ``2 * A`` are maps again. One without batch axes serves ``scipy.sparse.linalg`` too: it has
    ``shape``, ``dtype``, ``matvec`` and ``rmatvec``.

    Attributes:
        name: Name in messages.
        shape: (m, n).
        batch: Batch shape of the state it was made at.
        dtype: Type of its entries.
    """

    name: str
    shape: tuple[int, int]
    _apply: VectorMap = field(repr=False)
    _adjoint: VectorMap = field(repr=False)
    _inverse: Callable[[], LinearOperator] | None = field(default=None, repr=False)
    batch: tuple[int, ...] = ()
    dtype: DType = field(default_factory=lambda: np.dtype(float))

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{self.name} is made of functions, which cannot be pickled; pickle what it comes "
            "from, e.g. robot.operators(q, v), or its matrix, .dense()"
        )

    def __copy__(self) -> LinearOperator:
        return self

    def __deepcopy__(self, memo: object) -> LinearOperator:
        return self

    # NumPy leaves ``array @ A`` and ``number * A`` to this class.
    __array_ufunc__ = None

    def __repr__(self) -> str:
        batch = f", batch {self.batch}" if self.batch else ""
        return f"<operator {self.name}: {self.shape[0]} x {self.shape[1]}{batch}, {self.dtype}>"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """The matrix, for ``np.asarray``."""
        if copy is False:
            raise ValueError(f"the matrix of {self.name} is always a copy; copy=False cannot be")
        return self.dense().astype(self.dtype if dtype is None else dtype, copy=False)

    def __matmul__(self, x: ArrayLike | LinearOperator) -> Any:
        if isinstance(x, LinearOperator):
            return self._after(x)
        return self._apply(self._checked(x))

    def __rmatmul__(self, x: ArrayLike) -> NoReturn:
        raise ArgumentError(f"x @ A is not defined; write A.T @ x for {self.name}")

    def __add__(self, other: LinearOperator) -> LinearOperator:
        if not isinstance(other, LinearOperator):
            return NotImplemented
        if other.shape != self.shape:
            raise ShapeError(other.name, other.shape, str(self.shape), f"sum with {self.name}")
        return LinearOperator(
            f"({self.name} + {other.name})",
            self.shape,
            lambda x: self._apply(x) + other._apply(x),
            lambda x: self._adjoint(x) + other._adjoint(x),
            batch=self._common(other),
            dtype=np.result_type(self.dtype, other.dtype),
        )

    def __sub__(self, other: LinearOperator) -> LinearOperator:
        return self + -1.0 * other if isinstance(other, LinearOperator) else NotImplemented

    def __neg__(self) -> LinearOperator:
        return -1.0 * self

    def __mul__(self, factor: complex) -> LinearOperator:
        if not isinstance(factor, Number):
            return NotImplemented
        inverse = self._inverse
        return LinearOperator(
            f"{factor:g} {self.name}",
            self.shape,
            lambda x: factor * self._apply(x),
            lambda x: factor * self._adjoint(x),
            (lambda: 1.0 / factor * inverse()) if inverse and factor else None,
            self.batch,
            np.result_type(self.dtype, type(factor)),
        )

    __rmul__ = __mul__

    @property
    def T(self) -> LinearOperator:
        """The transpose."""
        inverse = self._inverse
        return replace(
            self,
            name=f"{self.name}*",
            shape=(self.shape[1], self.shape[0]),
            _apply=self._adjoint,
            _adjoint=self._apply,
            _inverse=(lambda: inverse().T) if inverse else None,
        )

    @property
    def inv(self) -> LinearOperator:
        """The inverse as an operator."""
        if self._inverse is None:
            raise ArgumentError(f"{self.name} has no inverse")
        return replace(self._inverse(), name=f"{self.name}⁻¹", _inverse=lambda: self)

    def solve(self, x: ArrayLike) -> Array:
        """The inverse applied to vectors (..., m)."""
        return np.asarray(self.inv @ x)

    def dense(self) -> Array:
        """The matrix (..., m, n)."""
        size = self.shape[1]
        units = np.eye(size).reshape(size, *(1,) * len(self.batch), size)
        return np.moveaxis(self._apply(units), 0, -1)

    def matvec(self, x: ArrayLike) -> Array:
        """``A @ x`` for one vector (n,) or column (n, 1), as SciPy expects."""
        return np.asarray(self @ self._single(x))

    def rmatvec(self, x: ArrayLike) -> Array:
        """The conjugate transpose times one vector (m,) or column (m, 1), as SciPy expects."""
        return np.asarray(np.conj(self.T @ np.conj(self._single(x))))

    def _single(self, x: ArrayLike) -> Array:
        if self.batch:
            raise ArgumentError(f"{self.name} is a batch {self.batch} of operators; use A @ x")
        return np.asarray(x).reshape(-1)

    def _after(self, first: LinearOperator) -> LinearOperator:
        if first.shape[0] != self.shape[1]:
            raise ShapeError(first.name, first.shape, f"({self.shape[1]}, n)", self.name)
        left, right = self._inverse, first._inverse
        return LinearOperator(
            f"{self.name} {first.name}",
            (self.shape[0], first.shape[1]),
            lambda x: self._apply(first._apply(x)),
            lambda x: first._adjoint(self._adjoint(x)),
            (lambda: right() @ left()) if left and right else None,
            self._common(first),
            np.result_type(self.dtype, first.dtype),
        )

    def _common(self, other: LinearOperator) -> tuple[int, ...]:
        try:
            return np.broadcast_shapes(self.batch, other.batch)
        except ValueError:
            needs = f"a batch that broadcasts with {self.batch}"
            raise ShapeError(other.name, other.batch, needs, self.name) from None

    def _checked(self, x: ArrayLike) -> Array:
        array, size = np.asarray(x), self.shape[1]
        if array.dtype.kind not in "biufc":
            raise ArgumentError(f"{self.name} acts on numbers, got dtype {array.dtype}")
        if array.ndim == 0 or array.shape[-1] != size:
            raise ShapeError("x", array.shape, f"(..., {size})", self.name)
        if not np.isfinite(array).all():
            raise ArgumentError(f"x for {self.name} is not finite")
        try:
            np.broadcast_shapes(self.batch, array.shape[:-1])
        except ValueError:
            needs = f"leading axes that broadcast with {self.batch}"
            raise ShapeError("x", array.shape, needs, self.name) from None
        return array if array.dtype.kind in "fc" else array.astype(float)

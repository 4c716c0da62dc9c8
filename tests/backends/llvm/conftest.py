# SPDX-License-Identifier: BSD-3-Clause
"""A small scalar program that uses every operation, and a cache of each test's own."""

from pathlib import Path

import pytest

from phistar.scalar.graph import Graph, Scalar, cos, sin, sqrt
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHISTAR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PHISTAR_CACHE_SIZE", raising=False)
    monkeypatch.delenv("PHISTAR_THREADS", raising=False)


@pytest.fixture(scope="session")
def program() -> Unrolled:
    """Inputs q (3), v (2), x (9); outputs tau (6), w (1)."""
    graph = Graph()
    q, v, x = (
        [graph.load(name, i) for i in range(n)] for name, n in (("q", 3), ("v", 2), ("x", 9))
    )
    tau: list[Scalar] = [
        sin(q[0]) * v[0] + 0.3 * x[0],
        cos(q[1]) * v[1] - x[1] * x[2],
        sqrt(x[3] * x[3] + 1.0) / (2.0 + cos(q[2])),
        -x[4] + sin(q[2]) * x[5],
        x[6] / (1.0 + v[0] * v[0]),
        x[7] * 1.7 + x[8],
    ]
    stores = [Store("tau", i, "", value) for i, value in enumerate(tau)]
    stores.append(Store("w", 0, "", tau[0] * tau[1]))
    return Unrolled(
        Signature({"q": 3, "v": 2, "x": 9}, {"tau": 6, "w": 1}), BasicBlock(graph, stores)
    )

# SPDX-License-Identifier: BSD-3-Clause
"""Where tasks run: threads of this process, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from typing import Any

from phistar.errors import ArgumentError
from phistar.scale.packages import Scheduler, distributed, is_client

Task = Callable[[Any], object]
Results = Callable[[Task, Iterable[object]], Iterator[Any]]


@contextmanager
def executor(scheduler: Scheduler, threads: int, progress: bool) -> Iterator[Results]:
    """Something that gives the results of a function for tasks, in the order they are ready."""
    if scheduler is None or scheduler == "threads":
        with ThreadPoolExecutor(threads) as pool:
            yield partial(_by_pool, pool)
    elif is_client(scheduler):
        yield partial(_by_cluster, scheduler, progress)
    elif isinstance(scheduler, str):
        with distributed().Client(scheduler) as client:
            yield partial(_by_cluster, client, progress)
    else:
        raise ArgumentError(
            f"scheduler is {scheduler!r}, expected None, 'threads', a distributed.Client or the "
            "address of one, such as 'tcp://10.0.0.1:8786'"
        )


def _by_pool(pool: ThreadPoolExecutor, function: Task, tasks: Iterable[object]) -> Iterator[Any]:
    futures = [pool.submit(function, task) for task in tasks]
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def _by_cluster(
    client: Scheduler, progress: bool, function: Task, tasks: Iterable[object]
) -> Iterator[Any]:
    if progress and client.dashboard_link:
        print(f"Dask's dashboard: {client.dashboard_link}")
    # A task writes what it computes, so that doing it twice does no harm: workers that die are
    # forgiven. Its key is new each time, as the cluster must not answer from memory.
    futures = client.map(function, list(tasks), pure=False, retries=2)
    try:
        for future in distributed().as_completed(futures):
            yield future.result()
            future.release()
    finally:
        client.cancel(futures)

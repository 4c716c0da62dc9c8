# SPDX-License-Identifier: BSD-3-Clause
"""Where tasks run: threads of this process, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Protocol, TypeVar

from phistar.arguments import require_count
from phistar.errors import ArgumentError, PhistarError
from phistar.scale.packages import Scheduler, distributed, is_client

T = TypeVar("T")
R = TypeVar("R")
Made = TypeVar("Made", covariant=True)


class DaskFuture(Protocol[Made]):
    """A result that workers of Dask make."""

    key: object
    status: str

    def result(self) -> Made:
        """The result, waited for."""

    def release(self) -> None:
        """Nobody here wants it any more."""


LOST = "scheduler-connection-lost"
"""Why Dask cancels results whose scheduler does not answer any more."""
JOINED = 8
"""Neighbours that a worker joins at a time: a tree of few levels, and little that waits for it."""


class SchedulerLostError(PhistarError, ConnectionError):
    """The scheduler of a cluster does not answer any more; what was written is safe."""


class Executor(Protocol):
    """Something that runs a function for each of some tasks."""

    def results(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """The results, in the order they are ready."""

    def joined(
        self,
        function: Callable[[T], R],
        join: Callable[[list[R]], R],
        tasks: Iterable[T],
        advance: Callable[[int], None],
    ) -> R:
        """All results joined, where they are.

        Args:
            function: Of a task.
            join: Of a list of results, or of what it gave before; of neighbours, in any grouping.
            tasks: One at least.
            advance: Told how many tasks are done.
        """


@contextmanager
def executor(scheduler: Scheduler, threads: int, progress: bool) -> Iterator[Executor]:
    """Something that runs tasks, where a user wants them to run."""
    if scheduler is None or scheduler == "threads":
        with ThreadPoolExecutor(require_count("threads", threads)) as pool:
            yield _Pool(pool)
    elif is_client(scheduler):
        yield _Cluster(scheduler, progress)
    elif isinstance(scheduler, str):
        try:
            found = distributed().Client(scheduler)
        except (OSError, ValueError) as error:  # TimeoutError is an OSError
            raise ArgumentError(
                f"no scheduler of Dask answers at {scheduler!r}: {error}; expected an address such "
                "as 'tcp://10.0.0.1:8786'"
            ) from None
        with found as client:
            yield _Cluster(client, progress)
    else:
        raise ArgumentError(
            f"scheduler is {scheduler!r}, expected None, 'threads', a distributed.Client or the "
            "address of one, such as 'tcp://10.0.0.1:8786'"
        )


class _Pool:
    """Threads of this process."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.pool = pool

    def results(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """See ``Executor``."""
        futures = [self.pool.submit(function, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def joined(
        self,
        function: Callable[[T], R],
        join: Callable[[list[R]], R],
        tasks: Iterable[T],
        advance: Callable[[int], None],
    ) -> R:
        """See ``Executor``; results are joined as they come."""
        total: list[R] = []
        for result in self.results(function, tasks):
            total = [join([*total, result])]
            advance(1)
        return total[0]


class _Cluster:
    """Workers of Dask.

    A task gives or writes the same whoever does it, so that doing it twice does no harm: workers
    that die are forgiven. Keys are new each time, as the cluster must not answer from memory.
    """

    def __init__(self, client: Scheduler, progress: bool) -> None:
        self.client = client
        self.progress = progress

    def results(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """See ``Executor``."""
        with self._loss_is_said():
            futures = self._submitted(function, tasks)
            try:
                for future in distributed().as_completed(futures):
                    yield future.result()
                    future.release()
            finally:
                self.client.cancel(futures)

    def joined(
        self,
        function: Callable[[T], R],
        join: Callable[[list[R]], R],
        tasks: Iterable[T],
        advance: Callable[[int], None],
    ) -> R:
        """See ``Executor``; results stay on the workers, which join neighbours before new tasks."""
        with self._loss_is_said():
            return self._joined(function, join, tasks, advance)

    def _joined(
        self,
        function: Callable[[T], R],
        join: Callable[[list[R]], R],
        tasks: Iterable[T],
        advance: Callable[[int], None],
    ) -> R:
        leaves = level = self._submitted(function, tasks)
        # Those that joins wait for are let go one by one, and must not be cancelled after that.
        held, priority = {future.key: future for future in leaves}, 0
        while len(level) > 1:
            priority += 1
            groups = [level[k : k + JOINED] for k in range(0, len(level), JOINED)]
            told = {"pure": False, "retries": 2, "priority": priority}
            level = [self.client.submit(join, group, **told) for group in groups]
            held |= {future.key: future for future in level}
        try:
            for future in distributed().as_completed(leaves):
                if future.status == "error":
                    future.result()
                if len(leaves) > 1:
                    held.pop(future.key).release()
                advance(1)
            return level[0].result()
        finally:
            self.client.cancel(list(held.values()))

    @contextmanager
    def _loss_is_said(self) -> Iterator[None]:
        """Inside, a scheduler that is lost is an error that says what to do."""
        where = getattr(self.client.scheduler, "address", "")
        try:
            yield
        except (distributed().comm.CommClosedError, CancelledError) as error:
            if isinstance(error, CancelledError) and getattr(error, "reason", LOST) != LOST:
                raise
            raise SchedulerLostError(
                f"the scheduler of Dask at {where!r} does not answer any more; start it again, and "
                "go on with resume=True (--resume): results that were written are safe"
            ) from None

    def _submitted(self, function: Callable[[T], R], tasks: Iterable[T]) -> list[DaskFuture[R]]:
        if self.progress and self.client.dashboard_link:
            print(f"Dask's dashboard: {self.client.dashboard_link}")
        return list(self.client.map(function, list(tasks), pure=False, retries=2))

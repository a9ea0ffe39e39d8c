"""Places where workers run, as users write them: processes of this machine, or a Ray cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from situate.errors import SituateError
from situate.evaluators.measurements import Evaluator
from situate.evaluators.workers.workers import DEFAULT_TERMS, Terms
from situate.host.machine import usable_cpus

if TYPE_CHECKING:
    from situate.evaluators.workers.jobs import Jobs
    from situate.evaluators.workers.machine import WorkerMachine
    from situate.evaluators.workers.workers import Workers

MAX_WORKERS = 4096
"""A bound against typing errors."""


@dataclass(frozen=True)
class Place:
    """A place for workers.

    Attributes:
        count: number of workers; None for as many as the cluster has room for.
        ray: on a Ray cluster.
        address: of a running cluster.
    """

    count: int | None
    ray: bool = False
    address: str | None = None

    @classmethod
    def parse(cls, workers: int | str) -> Place:
        """The place of a user's text.

        A number means processes of this machine; `ray`, or `ray:N` with N workers, a Ray cluster
        started on this machine; `ray://HOST:PORT` a running cluster.

        Raises:
            SituateError: any other text.
        """
        text = str(workers)
        if re.fullmatch(r"ray://\S+:\d+", text):
            return cls(None, True, text)
        # `(?(1):)` requires a colon before the number exactly after `ray`.
        match = re.fullmatch(r"(ray)?(?:(?(1):)(\d{1,9}))?", text, re.ASCII)
        count = int(match[2]) if match and match[2] else None
        if not match or not text or not 1 <= (1 if count is None else count) <= MAX_WORKERS:
            raise SituateError(
                f"workers: must be a number from 1 to {MAX_WORKERS:,}, ray, ray:NUMBER or "
                f"ray://HOST:PORT, got {workers!r}"
            )
        return cls(count, bool(match[1]))

    @contextmanager
    def machine(
        self, evaluator: Evaluator, here: Evaluator | None = None, terms: Terms = DEFAULT_TERMS
    ) -> Iterator[WorkerMachine]:
        """An evaluator whose samples are measured there; its workers end with the block.

        Args:
            evaluator: copied to every worker.
            here: see `WorkerMachine`.
            terms: of the workers.

        Raises:
            MissingExtra: Ray is not installed.
            SituateError: no cluster at the address, or one without room for a worker; see
                `WorkerMachine`.
        """
        from situate.evaluators.workers.machine import WorkerMachine
        from situate.evaluators.workers.processes import ProcessWorkers

        with self._workers(terms) as (count, start):
            start_workers = start or ProcessWorkers
            with WorkerMachine(
                evaluator, count, here=here, terms=terms, start=start_workers
            ) as machine:
                yield machine

    @contextmanager
    def jobs(
        self,
        function: Callable[..., Any],
        *,
        shared: tuple[Any, ...] = (),
        limit: float | None = None,
        alike: bool = False,
    ) -> Iterator[Jobs]:
        """Calls of a function that are made there; the workers end with the block.

        This process makes the calls itself if there is one worker of this machine. See `Jobs`.

        Raises:
            MissingExtra: Ray is not installed.
            SituateError: no cluster at the address, or one without room for a worker; see `Jobs`.
        """
        from situate.evaluators.workers.jobs import Jobs

        with (
            self._workers(DEFAULT_TERMS) as (count, start),
            Jobs(function, count, shared=shared, limit=limit, alike=alike, start=start) as jobs,
        ):
            yield jobs

    @contextmanager
    def _workers(self, terms: Terms) -> Iterator[tuple[int, Callable[[bytes], Workers] | None]]:
        """The number of workers and their factory; None for processes."""
        if not self.ray:
            assert self.count is not None
            yield self.count, None
            return
        from situate.evaluators.workers.ray_workers import RayWorkers, ray_cluster, worker_capacity

        cpus = self.count * terms.cpus if self.count else usable_cpus()
        with ray_cluster(self.address, cpus) as ray:
            workers = self.count or worker_capacity(ray, terms.cpus, terms.gpus)
            yield workers, partial(RayWorkers, ray, cpus=terms.cpus, gpus=terms.gpus)

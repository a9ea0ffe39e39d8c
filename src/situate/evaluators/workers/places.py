"""Where workers run, as users say it: a number of processes here, or a Ray cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.evaluators.measurements import Evaluator
from situate.evaluators.workers.terms import USUAL, Terms
from situate.host.machine import usable_cpus

if TYPE_CHECKING:
    from situate.evaluators.workers.machine import WorkerMachine

MOST_WORKERS = 4096
"""More than anybody has."""


@dataclass(frozen=True)
class Place:
    """Where so many workers run.

    Attributes:
        count: of workers; None for as many as find what they need.
        ray: on a Ray cluster.
        address: of a cluster that runs already.
    """

    count: int | None
    ray: bool = False
    address: str | None = None

    @classmethod
    def parse(cls, workers: int | str) -> Place:
        """The place that users mean: a number of processes of this machine; `ray`, a Ray cluster
        started on this machine, or `ray:N`, with so many workers; `ray://HOST:PORT`, a cluster.

        Raises:
            SituateError: anything else.
        """
        said = str(workers)
        if re.fullmatch(r"ray://\S+:\d+", said):
            return cls(None, True, said)
        found = re.fullmatch(r"(ray)?(?:(?(1):)(\d{1,9}))?", said, re.ASCII)
        count = int(found[2]) if found and found[2] else None
        if not found or not said or not 1 <= (1 if count is None else count) <= MOST_WORKERS:
            raise SituateError(
                f"workers: must be a number from 1 to {MOST_WORKERS:,}, ray, ray:NUMBER or "
                f"ray://HOST:PORT, got {workers!r}"
            )
        return cls(count, bool(found[1]))

    @contextmanager
    def machine(
        self, evaluator: Evaluator, here: Evaluator | None = None, terms: Terms = USUAL
    ) -> Iterator[WorkerMachine]:
        """An evaluator whose samples are measured there; in the end its workers are ended.

        Args:
            evaluator: is copied to every worker.
            here: see `WorkerMachine`.
            terms: of the workers.

        Raises:
            MissingExtra: Ray is not installed.
            SituateError: no cluster at the address, or one without room for a worker; see
                `WorkerMachine`.
        """
        from situate.evaluators.workers.machine import WorkerMachine

        if not self.ray:
            assert self.count is not None
            with WorkerMachine(evaluator, self.count, here=here, terms=terms) as machine:
                yield machine
            return
        from situate.evaluators.workers.ray_workers import RayWorkers, connected, room

        cpus = self.count * terms.cpus if self.count else usable_cpus()
        with connected(self.address, cpus) as ray:
            workers = self.count or room(ray, terms.cpus, terms.gpus)
            start = partial(RayWorkers, ray, cpus=terms.cpus, gpus=terms.gpus)
            with WorkerMachine(evaluator, workers, here=here, terms=terms, start=start) as machine:
                yield machine

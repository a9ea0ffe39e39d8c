"""Runs of BRKGA for a policy in training: on threads of this process, or on workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, cast

import numpy as np

from situate.data.arrays import Floats, Ints
from situate.evaluators.workers.jobs import Jobs
from situate.evaluators.workers.places import Place
from situate.solvers.evolutionary.regal.encoding import Encoding
from situate.solvers.evolutionary.regal.training.instances import KEPT_OPS, Instances, reward


class Trials(Protocol):
    """Builds instances and computes rewards of actions in parallel."""

    def encoded(self, among: Instances, numbers: Sequence[int]) -> list[Encoding]:
        """The encodings of instances; also sets the values of plain BRKGA in `among.values`."""
        ...

    def rewards(
        self, among: Instances, numbers: Sequence[int], actions: Sequence[Ints], seed: int
    ) -> Callable[[], Floats]:
        """Start to compute the rewards (samples, graphs) of actions (samples, n, c) for each of
        some instances; the returned function waits for them."""
        ...


class ThreadTrials:
    """Trials on threads."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads)

    def encoded(self, among: Instances, numbers: Sequence[int]) -> list[Encoding]:
        """See `Trials`."""
        return [instance.encoded for instance in self._pool.map(among.__getitem__, numbers)]

    def rewards(
        self, among: Instances, numbers: Sequence[int], actions: Sequence[Ints], seed: int
    ) -> Callable[[], Floats]:
        """See `Trials`."""
        instances = [among[number] for number in numbers]
        running = [
            self._pool.submit(
                reward, instance.simulator, instance.plain, among.settings, of_sample, seed
            )
            for instance, of_instance in zip(instances, actions, strict=True)
            for of_sample in of_instance
        ]

        def collect() -> Floats:
            rewards = np.array([future.result() for future in running])
            return np.ascontiguousarray(rewards.reshape(len(numbers), -1).T)

        return collect

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)


class WorkerTrials:
    """Trials on workers.

    Args:
        sets: all instances of the training.
        jobs: of `_trial`, with these sets as shared data.
    """

    def __init__(self, sets: Sequence[Instances], jobs: Jobs) -> None:
        self._sets, self._jobs = sets, jobs
        # One thread listens to the workers while the policy learns in another.
        self._hears = ThreadPoolExecutor(1)
        self._encodings: dict[tuple[int, int], Encoding] = {}
        self._ops = 0

    def encoded(self, among: Instances, numbers: Sequence[int]) -> list[Encoding]:
        """See `Trials`."""
        which = self._which(among)
        encodings = {number: self._encodings.get((which, number)) for number in numbers}
        new = [number for number, encoded in encodings.items() if encoded is None]
        calls = [(which, number, float(among.values[number])) for number in new]
        results = self._hears.submit(lambda: list(self._jobs.map(calls))).result()
        for number, (encoded, plain) in zip(new, results, strict=True):
            encodings[number], among.values[number] = encoded, plain
            self._keep((which, number), encoded)
        return [cast(Encoding, encodings[number]) for number in numbers]

    def _keep(self, key: tuple[int, int], encoded: Encoding) -> None:
        """Cache an encoding, with the same limit as `Instances`."""
        self._encodings[key] = encoded
        self._ops += len(encoded.nodes)
        while self._ops > KEPT_OPS:
            self._ops -= len(self._encodings.pop(next(iter(self._encodings))).nodes)

    def rewards(
        self, among: Instances, numbers: Sequence[int], actions: Sequence[Ints], seed: int
    ) -> Callable[[], Floats]:
        """See `Trials`."""
        which = self._which(among)
        calls = [
            (which, number, float(among.values[number]), of_instance, seed)
            for number, of_instance in zip(numbers, actions, strict=True)
        ]
        running = self._hears.submit(lambda: list(self._jobs.map(calls)))
        return lambda: np.ascontiguousarray(np.array(running.result()).T)

    def _which(self, among: Instances) -> int:
        return next(number for number, instances in enumerate(self._sets) if instances is among)

    def close(self) -> None:
        """End the thread; the workers stay with their owner."""
        self._hears.shutdown(cancel_futures=True)


def _trial(
    sets: Sequence[Instances],
    which: int,
    number: int,
    plain: float,
    actions: Ints | None = None,
    seed: int = 0,
) -> tuple[Encoding, float] | list[float]:
    """The encoding of an instance and its value of plain BRKGA, which runs if `plain` is NaN.

    With actions (samples, n, c), their rewards instead.
    """
    among = sets[which]
    if actions is not None:
        return among.rewards(number, plain, actions, seed)
    among.values[number] = plain
    instance = among.build(number)
    return instance.encoded, instance.plain


@contextmanager
def trials(
    workers: int | str | None, threads: int, sets: Sequence[Instances]
) -> Iterator[ThreadTrials | WorkerTrials]:
    """Trials on workers, or on threads of this process if `workers` is None; closed at the end.

    Raises:
        SituateError: see `Place.jobs`.
    """
    if workers is None:
        here = ThreadTrials(threads)
        try:
            yield here
        finally:
            here.close()
        return
    with Place.parse(workers).jobs(_trial, shared=(list(sets),)) as jobs:
        there = WorkerTrials(sets, jobs)
        try:
            yield there
        finally:
            there.close()

"""Training instances, graphs with their features and the value of plain BRKGA; and trials of the
policy's actions on them, on threads of this process or on workers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from threading import Lock
from typing import Any, Protocol

import numpy as np

from situate import _core
from situate.data.arrays import Floats, Ints
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.workers.jobs import Jobs
from situate.evaluators.workers.places import Place
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.regal.features import Encoding, encoding, expected
from situate.solvers.evolutionary.regal.proposals import (
    derived,
    for_features,
    plain,
    proposed,
)
from situate.solvers.evolutionary.regal.settings import RegalSettings
from situate.solvers.evolutionary.regal.training.data_set import Machine, copied

KEPT_OPS = 2_000_000
"""Total ops of cached instances, at some kilobytes each; other instances are built again."""

DRAWS = 20
"""Attempts to draw a plannable copy; if all fail, the graph itself replaces it."""


@dataclass(frozen=True, eq=False)
class Instance:
    """A graph with its features.

    Attributes:
        simulator: of the problem.
        encoded: features for the policy.
        plain: the value that plain BRKGA reaches.
    """

    simulator: Simulator
    encoded: Encoding
    plain: float


class Instances:
    """Instances of graphs and of their noisy copies.

    Args:
        graphs: that can be planned for `machine`.
        copies: number per graph; instance `i` is copy `i % (copies + 1)` of its graph, and copy 0
            is the graph itself.
        seed: of noise, features and plain BRKGA.

    Attributes:
        machine, settings: of the problems and of BRKGA.
        values: (instances,) the values of plain BRKGA; NaN before its run.
    """

    def __init__(
        self, graphs: list[Graph], machine: Machine, settings: RegalSettings, copies: int, seed: int
    ) -> None:
        self._graphs, self.machine, self.settings = graphs, machine, settings
        self._copies, self._seed = copies, seed
        self.values: Floats = np.full(len(graphs) * (copies + 1), np.nan)
        self._ready = OrderedDict[int, Instance]()
        self._ops, self._lock = 0, Lock()

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, number: int) -> Instance:
        with self._lock:
            if number in self._ready:
                self._ready.move_to_end(number)
                return self._ready[number]
        instance = self.build(number)
        self._keep(number, instance)
        return instance

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the graphs without the cached instances."""
        return Instances, (
            self._graphs,
            self.machine,
            self.settings,
            self._copies,
            self._seed,
        )

    def simulator(self, number: int) -> Simulator:
        """The simulator of an instance, without its features."""
        which, copy = divmod(number, self._copies + 1)
        graph = self._graphs[which]
        return Simulator(self._copy(graph, number) if copy else self.machine.problem(graph))

    def _copy(self, graph: Graph, number: int) -> Problem:
        """A noisy copy; copies that cannot be planned are drawn again."""
        for draw in range(DRAWS):
            seed = derived(self._seed, 0, number, *[draw] * (draw > 0))
            with suppress(SituateError):
                return self.machine.problem(copied(graph, seed))
        return self.machine.problem(graph)

    def rewards(self, number: int, plain: float, actions: Ints, seed: int) -> list[float]:
        """The `reward` of each sample of actions (samples, n, c) for an instance, without its
        features."""
        simulator = self.simulator(number)
        return [reward(simulator, plain, self.settings, of_sample, seed) for of_sample in actions]

    def _keep(self, number: int, instance: Instance) -> None:
        with self._lock:
            # Another thread may have built the same instance meanwhile; the first one stays.
            if number in self._ready:
                return
            self._ready[number] = instance
            self._ops += instance.simulator.problem.n
            while self._ops > KEPT_OPS:
                _, oldest = self._ready.popitem(last=False)
                self._ops -= oldest.simulator.problem.n

    def build(self, number: int) -> Instance:
        """A new instance, outside the cache."""
        simulator, seed = self.simulator(number), derived(self._seed, 1, number)
        features = for_features(simulator, self.settings, seed)
        features.run(self.settings.feature_evaluations, inf, 1)
        if np.isnan(self.values[number]):
            whole = plain(simulator, self.settings, seed)
            whole.run(self.settings.evaluations, inf, 1)
            self.values[number] = value(whole)
        encoded = encoding(simulator.problem, expected(features), self.settings.places)
        return Instance(simulator, encoded, float(self.values[number]))


def value(population: _core.search.Brkga) -> float:
    """The best value of a population, doubled if nothing fits in memory."""
    excess, best, *_ = population.best()
    return best * 2 if excess else best


def reward(
    simulator: Simulator, plain: float, settings: RegalSettings, actions: Ints, seed: int
) -> float:
    """Minus the value of BRKGA with the proposals of actions (n, c), relative to the `plain` value
    (REGAL, 4.1)."""
    population = proposed(simulator, settings, actions, seed)
    population.run(settings.proposed_evaluations, inf, 1)
    # A plain value of zero leaves nothing to improve.
    return -value(population) / plain if plain else -1.0


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
        distinct = dict.fromkeys(numbers)
        encodings = {
            n: self._encodings[which, n] for n in distinct if (which, n) in self._encodings
        }
        new = [number for number in distinct if number not in encodings]
        # Workers skip plain BRKGA for instances whose value is known.
        calls = [(which, number, float(among.values[number])) for number in new]
        results = self._hears.submit(lambda: list(self._jobs.map(calls))).result()
        for number, (encoded, plain_value) in zip(new, results, strict=True):
            encodings[number], among.values[number] = encoded, plain_value
            self._keep((which, number), encoded)
        return [encodings[number] for number in numbers]

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

"""Training instances: graphs with their features and the value of plain BRKGA."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from threading import Lock
from typing import Any

import numpy as np

from situate import _core
from situate.data.arrays import Floats, Ints
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.regal.encoding import Encoding, encoding, expected
from situate.solvers.evolutionary.regal.populations import (
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
    return -value(population) / plain if plain else -1.0

"""`brkga` and `tuned_brkga`: a biased random-key genetic algorithm over REGAL's chromosomes.

J. F. Gonçalves and M. G. C. Resende, *Biased Random-Key Genetic Algorithms for Combinatorial
Optimization*, J. Heuristics 17, 2011. A chromosome is an array of random keys from 0 to 1, and a
decoder makes a plan of it (Paliwal et al., REGAL, ICLR 2020, A.4). Each generation consists of

- the elites, the best chromosomes of the generation before;
- mutants, new random chromosomes;
- children of an elite and another parent, which take each key from the elite with probability
  `bias`.

The core breeds generations (`_core.search.Brkga`); `_Breeding` fits them into the budget of a
search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from situate import _core
from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.host.machine import usable_memory
from situate.simulation.decoding import decoders_for
from situate.simulation.simulator import Decoder, Simulator
from situate.simulation.transfer_order import by_priority
from situate.solvers.search import Search

FIRST_OFFER = 1000
"""Evaluations before the first offer; the number doubles for each further one."""

SLICE_SECONDS = 0.25
"""Seconds between two progress reports."""

KEY_BYTES = 4
"""Bytes of a random key."""

Name = Literal["paper", "tuned"]


@dataclass(frozen=True)
class BrkgaSettings:
    """The parts of a generation, and the decoder of chromosomes.

    Attributes:
        population: number of chromosomes.
        elites: share of them that pass to the next generation unchanged.
        mutants: share of random new chromosomes in each generation.
        bias: probability that a child has a key of its elite parent.
        populations: number of populations that evolve in parallel, without exchange.
        alpha, beta: of the beta distribution of the keys of ops; keys of transfers are uniform.
        decoder: `serial`, as in REGAL, or `eager`.

    Raises:
        SituateError: a population that is too small; shares or a bias out of range.
    """

    population: int = 100
    elites: float = 0.2
    mutants: float = 0.15
    bias: float = 0.7
    populations: int = 1
    alpha: float = 1.0
    beta: float = 1.0
    decoder: Decoder = "serial"

    def __post_init__(self) -> None:
        if self.population < 2 or self.populations < 1:
            raise SituateError("brkga: a population is of two chromosomes at least")
        if not 0 < self.elites < 1 or not 0 <= self.mutants <= 1 - self.elites:
            raise SituateError("brkga: elites and mutants are shares of the population, one in all")
        if not 0.5 <= self.bias <= 1:
            raise SituateError(f"brkga: the bias is from 0.5 to 1, got {self.bias}")
        if not (0 < self.alpha <= 1e12 and 0 < self.beta <= 1e12):
            raise SituateError("brkga: alpha and beta are positive and at most 1e12")

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(members, elites, mutants) of a generation, with at least one elite and one other."""
        elites = min(max(1, round(self.elites * self.population)), self.population - 1)
        mutants = min(round(self.mutants * self.population), self.population - elites)
        return self.population, elites, mutants


BRKGA: Mapping[Name, BrkgaSettings] = MappingProxyType(
    {"paper": BrkgaSettings(), "tuned": BrkgaSettings(decoder="eager")}
)
"""Settings of the method `brkga`: population, shares and bias within the ranges that Gonçalves and
Resende (2011) recommend."""

TUNED_BRKGA: Mapping[Name, BrkgaSettings] = MappingProxyType(
    {
        "paper": BrkgaSettings(elites=0.1, mutants=0.1, alpha=1, beta=4),
        "tuned": BrkgaSettings(50, elites=0.3, mutants=0.1, alpha=0.5, beta=30, decoder="eager"),
    }
)
"""Settings of the method `tuned_brkga`: the best of 648 with each decoder.
`python -m benchmarks.search.tune_brkga` found them; see benchmarks/results/tune_brkga.json."""


@dataclass(frozen=True, eq=False)
class Linkage:
    """Edges whose ends are bred together.

    Each chromosome draws the edges that join its ops to parts. It draws the affinities of a part
    once, and inherits them from one parent.

    Attributes:
        source, target: (e,) ops at the ends of an edge.
        together: (e,) the probability that an edge joins its ends.
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    together: NDArray[np.float32]

    @staticmethod
    def none() -> Linkage:
        """No edges, so that each op is a part of its own."""
        ops = np.empty(0, np.int32)
        return Linkage(ops, ops, np.empty(0, np.float32))


def brkga(search: Search) -> None:
    """Search until the budget ends, with common settings."""
    _evolve(search, BRKGA[search.options.settings])


def tuned_brkga(search: Search) -> None:
    """Search until the budget ends, with settings from a grid search."""
    _evolve(search, TUNED_BRKGA[search.options.settings])


def _evolve(search: Search, settings: BrkgaSettings) -> None:
    """Breed until the budget ends, and offer the best decisions."""
    check_problem(search.problem)
    goal = search.problem.objective
    population = evolution(search.simulator, settings, goal=goal, seed=search.seed)
    breed(search, population, settings.decoder)


def breed(
    search: Search, population: _core.search.Brkga, decoder: Decoder, evaluations: float = inf
) -> None:
    """Evolve populations until the budget ends or `evaluations` more chromosomes are evaluated, and
    offer the best decisions."""
    breeding = _Breeding(search, population, decoder, evaluations)
    try:
        breeding.run()
    finally:
        breeding.offer()


class _Breeding:
    """Populations that evolve within the budget of a search."""

    def __init__(
        self, search: Search, population: _core.search.Brkga, decoder: Decoder, evaluations: float
    ) -> None:
        self._search, self._population, self._decoder = search, population, decoder
        # A population may have been bred before.
        self._before = search.budget.evaluations - population.evaluations
        limits = (search.budget.evaluation_limit, evaluations + search.budget.evaluations)
        self._limit = min(limit for limit in limits if limit is not None)
        # One chromosome is evaluated whatever the budget, so that there is a plan.
        self._population.run(1, inf, 1)
        self._offered, self._offer_seconds = (inf, inf), 0.0

    @property
    def _evaluations(self) -> int:
        """Evaluations of the search so far, including those of other populations."""
        return self._before + self._population.evaluations

    def run(self) -> None:
        """Breed, and offer the best decision at intervals."""
        target = FIRST_OFFER
        self.offer()
        while not self._finished():
            self._advance(target)
            self.offer()
            if self._evaluations >= target:
                # Each offer decodes once more in Python, and late improvements are rare.
                target *= 2

    def _advance(self, target: int) -> None:
        """Evaluate until there are `target` evaluations or the budget ends; with a time limit, for
        at most `SLICE_SECONDS`."""
        search = self._search
        most = int(min(target, self._limit))
        while self._evaluations < most and not self._finished():
            # Slices pace the reports; without a time limit the loop goes on, whatever the clock
            # says.
            seconds = min(SLICE_SECONDS, self._seconds_left())
            self._population.run(most - self._evaluations, seconds, search.threads)
            search.budget.evaluations = self._evaluations
            search.report()
            if search.budget.time_limit is not None:
                return

    def _finished(self) -> bool:
        spent = self._evaluations >= self._limit
        return spent or self._search.finished() or self._seconds_left() <= 0

    def _seconds_left(self) -> float:
        """Seconds until the latest start of the last offer."""
        search = self._search
        if search.budget.time_limit is None:
            return inf
        limit = search.budget.time_limit * (1 - search.budget.reserve)
        # The next offer is expected to take as long as the one before.
        return search.budget.remaining() * limit - self._offer_seconds

    def offer(self) -> None:
        """Offer the best chromosome if it is better than the last offer."""
        search, begin = self._search, self._search.budget.seconds
        excess, value, placement, of_ops, of_transfers = self._population.best()
        if (excess, value) >= self._offered:
            return
        self._offered = excess, value
        order, transfers = by_priority(search.problem, placement, of_ops, of_transfers)
        # The core has already counted this evaluation; decoding it again adds none.
        search.budget.evaluations = self._evaluations - 1
        search.offer(placement, order, [self._decoder], transfers=transfers)
        search.budget.evaluations = self._evaluations
        self._offer_seconds = search.budget.seconds - begin


def evolution(
    simulator: Simulator,
    settings: BrkgaSettings,
    *,
    goal: str,
    seed: int,
    proposals: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
    biases: NDArray[np.float32] | None = None,
    linkage: Linkage | None = None,
    begin: Iterable[tuple[Placement, Order]] = (),
) -> _core.search.Brkga:
    """New populations, before their first generation.

    A chromosome has `_core.search.key_count` keys: (n, d) affinities of ops to devices, (n,)
    priorities of ops, then (t, d) priorities of transferable tensors.

    Args:
        simulator: of a problem of n ops, t tensors and d devices.
        settings: see `BrkgaSettings`.
        goal: `time` or `memory`.
        seed: of all draws.
        proposals: alpha and beta (keys,) of the distribution of each key; None for the settings'.
        biases: (keys,) the probability that a child has its elite's key; None for the settings'.
        linkage: None for ops that are bred one by one.
        begin: placements (n,) and orders (n,) to include in the first generation.

    Raises:
        SituateError: the chromosomes exceed this machine's memory.
        ValueError: arrays of a wrong length or with values out of range; invalid decisions.
    """
    _check_memory(simulator, settings)
    alpha, beta = proposals or _distribution(simulator, settings)
    members, elites, mutants = settings.sizes
    linkage = linkage or Linkage.none()
    population = _core.search.Brkga(
        problem=simulator.core,
        goal=goal,
        decoder=settings.decoder,
        seed=seed,
        members=members,
        elites=elites,
        mutants=mutants,
        populations=settings.populations,
        elite_bias=np.full(len(alpha), settings.bias, np.float32) if biases is None else biases,
        alpha=alpha,
        beta=beta,
        source=linkage.source,
        target=linkage.target,
        together=linkage.together,
    )
    for placement, order in begin:
        population.begin_with(placement, order)
    return population


def _distribution(
    simulator: Simulator, settings: BrkgaSettings
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Alpha and beta (keys,): the settings' for keys of ops, uniform for transfers."""
    problem = simulator.problem
    # Beta(1, 1) is the uniform distribution.
    alpha, beta = np.ones((2, _core.search.key_count(simulator.core)), np.float32)
    of_ops = problem.n * (problem.d + 1)
    alpha[:of_ops], beta[:of_ops] = settings.alpha, settings.beta
    return alpha, beta


def _check_memory(simulator: Simulator, settings: BrkgaSettings) -> None:
    """
    Raises:
        SituateError: the chromosomes of two generations, elites once, fill half of the memory.
    """
    members, elites, _ = settings.sizes
    count, keys = (
        settings.populations * (2 * members - elites),
        _core.search.key_count(simulator.core),
    )
    memory = usable_memory()
    if memory is not None and count * keys * KEY_BYTES > memory / 2:
        raise SituateError(
            f"BRKGA keeps {count} chromosomes of {keys:,} keys, {count * keys * KEY_BYTES} bytes, "
            f"more than half of this machine's memory: use auto"
        )


def check_problem(problem: Problem) -> None:
    """
    Raises:
        SituateError: BRKGA does not support the objective or the rules.
    """
    if problem.objective == "throughput":
        raise SituateError(
            "BRKGA makes the time or the memory of a step small, not the seconds between steps: "
            "use auto"
        )
    if "calls" in decoders_for(problem, problem.objective):
        raise SituateError(
            f"BRKGA knows no schedules in which devices run all their ops as one call (rules "
            f"{problem.rules.name!r}): use auto, or other rules"
        )

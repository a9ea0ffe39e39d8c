"""Settings of the biased random-key genetic algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from situate.errors import SituateError
from situate.simulation.simulator import Decoder

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

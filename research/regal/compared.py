"""The methods that REGAL's Table 1 compares, each asked for a plan of a graph.

BRKGA's `paper` settings decode serially, as the paper does, and its `tuned` ones eagerly, and so do
policies by the settings they were trained with: the gain of a decoder is not one of learning.
Constants and shuffled features are baselines of learning: a policy has learnt to tell ops apart
only as far as it is better than both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from situate import RULES, Cluster, Learning, Problem, Result, solve
from situate.data.arrays import Ints
from situate.data.problem import Objective
from situate.readers import read
from situate.solvers.budget import Budget
from situate.solvers.evolutionary.regal import weights
from situate.solvers.evolutionary.regal.features import Encoding
from situate.solvers.evolutionary.regal.proposers import (
    ConstantProposer,
    Network,
    NetworkProposer,
    Proposer,
)
from situate.solvers.evolutionary.regal.regal import CONSTANT, breed_with
from situate.solvers.evolutionary.regal.settings import CONSTANTS, Constant, RegalSettings
from situate.solvers.exact import cp_sat
from situate.solvers.learned.learner import Settings
from situate.solvers.registry import WITH_SETTINGS
from situate.solvers.search import Search

DEVICES = 2
"""Devices of the paper's experiments."""

REFERENCE, EAGER = "brkga", "brkga, eager"
"""Labels of BRKGA with the common budget, by decoder; all are compared with the first."""

TUNED, PAPER = "regal, best constant", "regal, best constant of paper settings"
"""Labels of `regal` with the constant of each settings."""

BY_HAND = (8, 1, 16, 1)
"""The constant of `tuned` settings that needs no search: each priority at its rank with the least
variance, and all transfers first."""


class Planned(NamedTuple):
    """The value of a plan, twice of that where it does not fit, as in training, and NaN where the
    method does not take the graph; wall seconds; and what is proved that no plan is below."""

    value: float
    seconds: float
    bound: float


@dataclass(frozen=True)
class Compared:
    """A method with its settings and budget, `label` in the tables.

    Attributes:
        evaluations: None where `seconds` are the budget.
        weights: a file of trained weights, of methods that take one.
        plain: the label of BRKGA with the same decoder.
        constant: proposals in place of those of weights; None for none.
        shuffled: True to hide the graph from the network, see `ShuffledNetwork`.
        best_constant: the label of `regal` with the constant of the same settings.
    """

    label: str
    method: str
    evaluations: int | None
    settings: Settings = "paper"
    weights: str | None = None
    plain: str = REFERENCE
    seconds: float | None = None
    constant: Constant | None = None
    shuffled: bool = False
    best_constant: str = TUNED

    def planned(self, problem: Problem, seed: int) -> Planned:
        """Its plan, made on one thread."""
        if self.method == "cp_sat" and not cp_sat.takes(problem):
            return Planned(nan, nan, 0.0)
        own = self.constant is not None or self.shuffled
        result = self._guided(problem, seed) if own else self._solved(problem, seed)
        value = result.value * (1 if result.feasible else 2)
        return Planned(value, result.seconds, result.lower_bound or 0.0)

    def _solved(self, problem: Problem, seed: int) -> Result:
        learning = Learning(weights=self.weights)
        if self.method in WITH_SETTINGS:
            learning = replace(learning, settings=self.settings)
        return solve(
            problem,
            self.method,
            evaluations=self.evaluations,
            time_limit=self.seconds,
            seed=seed,
            threads=1,
            learning=learning,
        )

    def _guided(self, problem: Problem, seed: int) -> Result:
        """The result of proposals that `solve` does not offer."""
        search = Search(problem, budget=Budget(None, self.evaluations), seed=seed, threads=1)
        breed_with(search, self._proposer(problem))
        return search.result(self.method)

    def _proposer(self, problem: Problem) -> Proposer:
        if self.constant is not None:
            return ConstantProposer(self.constant)
        assert self.weights is not None
        return NetworkProposer(ShuffledNetwork(weights.TrainedPolicy(Path(self.weights), problem)))


class ShuffledNetwork:
    """A network that reads the features of ops in a random order and those of edges as zeros.

    Its choices at an op say nothing of that op, and their frequencies stay nearly the same.
    """

    def __init__(self, network: Network) -> None:
        self.settings, self._network = network.settings, network

    def actions(self, encoded: Encoding, seed: int) -> Ints:
        """See `Network`."""
        order = np.random.default_rng(seed).permutation(len(encoded.nodes))
        shuffled = replace(encoded, nodes=encoded.nodes[order], edges=np.zeros_like(encoded.edges))
        return self._network.actions(shuffled, seed)


BRED = ("brkga", "tuned_brkga", "regal", "gas", "idrs")
"""Methods that decode chromosomes."""


def methods(
    evaluations: int,
    files: Mapping[str, Path],
    objective: Objective,
    exact: float | None = None,
) -> Iterator[Compared]:
    """Those of the table with a common budget, and longer searches for the best known value.

    Args:
        evaluations: of each method but the long ones.
        files: weights by label.
        objective: of the problems.
        exact: seconds of CP-SAT; None to leave it out.
    """
    if exact is not None:
        yield Compared("cp_sat", "cp_sat", None, seconds=exact)
    yield Compared("partition_dfs", "partition_dfs", evaluations)
    yield Compared("local_search", "local_search", evaluations)
    yield from plain(evaluations)
    yield Compared("tuned_brkga", "tuned_brkga", evaluations)
    yield Compared("tuned_brkga, eager", "tuned_brkga", evaluations, "tuned", plain=EAGER)
    yield from guided(evaluations, files)
    yield from shuffled(evaluations, files)
    yield from constants(evaluations, objective)
    yield Compared("auto", "auto", evaluations)
    yield Compared("brkga, ten times as long", "brkga", 10 * evaluations)
    yield Compared("auto, ten times as long", "auto", 10 * evaluations)


def plain(evaluations: int) -> Iterator[Compared]:
    """BRKGA with each decoder."""
    yield Compared(REFERENCE, "brkga", evaluations)
    yield Compared(EAGER, "brkga", evaluations, "tuned", plain=EAGER)


def guided(evaluations: int, files: Mapping[str, Path]) -> Iterator[Compared]:
    """The methods that draw from the proposals of trained networks."""
    for name, path in files.items():
        settings = weights.read(path)[1].settings
        names = ("idrs", "regal") if settings.shape.kind == "graph" else ("gas",)
        for method in names:
            label = f"{method}, {name}"
            yield Compared(
                label,
                method,
                evaluations,
                weights=str(path),
                plain=_plain(settings),
                best_constant=TUNED if settings.proposed.ranked else PAPER,
            )


def shuffled(evaluations: int, files: Mapping[str, Path]) -> Iterator[Compared]:
    """The graph networks, without the graph."""
    for method in guided(evaluations, files):
        if method.method == "regal":
            yield replace(method, label=f"{method.label}, features shuffled", shuffled=True)


def constants(evaluations: int, objective: Objective) -> Iterator[Compared]:
    """`regal` with the best constant of each settings, and with one set by hand."""
    tuned, paper = CONSTANTS["tuned", objective], CONSTANTS["paper", objective]
    best = Compared(TUNED, "regal", evaluations, "tuned", CONSTANT, _plain(tuned))
    yield best
    by_hand = replace(tuned, levels=BY_HAND)
    yield replace(best, label="regal, constant by hand", constant=by_hand)
    yield Compared(
        PAPER, "regal", evaluations, "paper", CONSTANT, _plain(paper), best_constant=PAPER
    )


def _plain(settings: Constant | RegalSettings) -> str:
    return EAGER if settings.breeding.decoder == "eager" else REFERENCE


@dataclass(frozen=True)
class Task:
    """A graph that methods plan."""

    path: Path
    objective: Objective
    seed: int
    compared: Sequence[Compared]

    def run(self) -> dict[str, Planned]:
        """Plans by label."""
        torch.set_num_threads(1)
        graph, cluster = read(self.path), Cluster.identical(DEVICES)
        problem = Problem(graph, cluster, self.objective, RULES["regal"])
        return {method.label: method.planned(problem, self.seed) for method in self.compared}

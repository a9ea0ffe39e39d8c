"""The methods that REGAL's Table 1 compares, each asked for a plan of a graph.

BRKGA's `paper` settings decode serially, as the paper does, and its `tuned` ones eagerly, and so do
policies by the settings they were trained with: what a decoder brings is not what learning does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import NamedTuple

import torch

from situate import RULES, Cluster, Learning, Problem, solve
from situate.data.problem import Objective
from situate.readers import read
from situate.solvers.evolutionary.regal import weights
from situate.solvers.exact import cp_sat
from situate.solvers.learned.learner import Settings
from situate.solvers.registry import WITH_SETTINGS

DEVICES = 2
"""Devices of the paper's experiments."""

REFERENCE, EAGER = "brkga", "brkga, eager"
"""Labels of BRKGA with the common budget, by decoder; all are compared with the first."""


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
    """

    label: str
    method: str
    evaluations: int | None
    settings: Settings = "paper"
    weights: str | None = None
    plain: str = REFERENCE
    seconds: float | None = None

    def planned(self, problem: Problem, seed: int) -> Planned:
        """Its plan, made on one thread."""
        if self.method == "cp_sat" and not cp_sat.takes(problem):
            return Planned(nan, nan, 0.0)
        learning = Learning(weights=self.weights)
        if self.method in WITH_SETTINGS:
            learning = replace(learning, settings=self.settings)
        result = solve(
            problem,
            self.method,
            evaluations=self.evaluations,
            time_limit=self.seconds,
            seed=seed,
            threads=1,
            learning=learning,
        )
        value = result.value * (1 if result.feasible else 2)
        return Planned(value, result.seconds, result.lower_bound or 0.0)


BRED = ("brkga", "tuned_brkga", "regal", "gas", "idrs")
"""Methods that decode chromosomes."""


def methods(
    evaluations: int, files: Mapping[str, Path], exact: float | None = None
) -> Iterator[Compared]:
    """Those of the table with a common budget, and longer searches for the best known value.

    Args:
        evaluations: of each method but the long ones.
        files: weights by what to call them.
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
    yield Compared("auto", "auto", evaluations)
    yield Compared("brkga, ten times as long", "brkga", 10 * evaluations)
    yield Compared("auto, ten times as long", "auto", 10 * evaluations)


def plain(evaluations: int) -> Iterator[Compared]:
    """BRKGA with each decoder."""
    yield Compared(REFERENCE, "brkga", evaluations)
    yield Compared(EAGER, "brkga", evaluations, "tuned", plain=EAGER)


def guided(evaluations: int, files: Mapping[str, Path]) -> Iterator[Compared]:
    """The methods that draw from what trained networks propose."""
    for name, path in files.items():
        settings = weights.read(path)[1].settings
        names = ("idrs", "regal") if settings.shape.kind == "graph" else ("gas",)
        same = EAGER if settings.breeding.decoder == "eager" else REFERENCE
        for method in names:
            label = f"{method}, {name}"
            yield Compared(label, method, evaluations, weights=str(path), plain=same)


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
        return {each.label: each.planned(problem, self.seed) for each in self.compared}

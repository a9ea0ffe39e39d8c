"""The methods that REGAL's Table 1 compares, each asked for a plan of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from situate import Cluster, Learning, Problem, solve
from situate.data.problem import Objective
from situate.readers import read
from situate.solvers.evolutionary.regal import weights

DEVICES = 2
"""Of the paper's experiments."""


@dataclass(frozen=True)
class Compared:
    """A method with its settings and budget, `label` in the tables.

    Attributes:
        weights: a file of trained weights, of methods that take one.
    """

    label: str
    method: str
    evaluations: int
    settings: str = "paper"
    weights: str | None = None

    def planned(self, problem: Problem, seed: int) -> tuple[float, float]:
        """The value of its plan, and wall seconds, on one thread. A plan that does not fit counts
        twice, as in training."""
        learning = None
        if self.method in LEARNING:
            settings = "tuned" if self.settings == "tuned" else "paper"
            learning = Learning(settings=settings, weights=self.weights)
        result = solve(
            problem,
            self.method,
            evaluations=self.evaluations,
            seed=seed,
            threads=1,
            learning=learning,
        )
        return result.value * (1 if result.feasible else 2), result.seconds


LEARNING = ("brkga", "tuned_brkga", "regal", "gas", "idrs")
"""Methods that have settings."""

REFERENCE = "brkga"
"""The label of what all are compared with: BRKGA with the common budget."""


def methods(evaluations: int, files: Mapping[str, Path]) -> Iterator[Compared]:
    """Those of the table with a common budget, and longer searches for the best known value.

    Args:
        evaluations: of each method but the long ones.
        files: weights by what to call them.
    """
    yield Compared("partition_dfs", "partition_dfs", evaluations)
    yield Compared("local_search", "local_search", evaluations)
    yield Compared(REFERENCE, "brkga", evaluations)
    yield Compared("tuned_brkga", "tuned_brkga", evaluations, "tuned")
    yield from guided(evaluations, files)
    yield Compared("auto", "auto", evaluations)
    yield Compared("brkga, ten times as long", "brkga", 10 * evaluations)
    yield Compared("auto, ten times as long", "auto", 10 * evaluations)


def guided(evaluations: int, files: Mapping[str, Path]) -> Iterator[Compared]:
    """The methods that draw from what trained networks propose."""
    for name, path in files.items():
        _, about = weights.read(path)
        kind = about.settings.shape.kind
        names = ("idrs", "regal") if kind == "graph" else ("gas",)
        for method in names:
            yield Compared(f"{method}, {name}", method, evaluations, weights=str(path))


@dataclass(frozen=True)
class Task:
    """A graph that methods plan."""

    path: Path
    objective: Objective
    seed: int
    compared: Sequence[Compared]

    def run(self) -> dict[str, tuple[float, float]]:
        """Value and wall seconds by label."""
        torch.set_num_threads(1)
        problem = Problem(read(self.path), Cluster.identical(DEVICES), self.objective, "regal")
        return {each.label: each.planned(problem, self.seed) for each in self.compared}

"""The scale of a linkage: scores are followed as far as they make plans shorter."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from situate import Problem
from situate.data.rules import RULES
from situate.solvers.evolutionary.regal.linkage import raw_features
from situate.solvers.evolutionary.regal.proposals import anchor
from situate.solvers.evolutionary.regal.training.scale import Lesson, Trial, best_scale
from tests.solvers.families import devices, graph

LENGTH, CHAINS = 12, 6


def chain_of(op: Any) -> Any:
    return op // LENGTH


def lesson() -> Lesson:
    """Chains of equal ops, which two devices share at best."""
    ops = range(CHAINS * LENGTH)
    edges = [(op, op + 1) for op in ops if chain_of(op) == chain_of(op + 1)]
    problem = Problem(graph(len(ops), edges), devices(1, 1), "time", RULES["regal"])
    features = raw_features(problem)
    return Lesson(problem, *features, np.zeros(len(features[2]), np.float32), None)


@dataclass
class Estimates:
    """A network whose estimates are known."""

    together: Any
    beside: Any

    @property
    def origin(self) -> Any:
        return SimpleNamespace(shape=SimpleNamespace(ops=self.beside is not None))

    def estimates(self, *features: Any) -> tuple[Any, Any]:
        return self.together, self.beside


def scale(together: float, beside: Any) -> Any:
    taught = lesson()
    of_edges = np.full(len(taught.source), together, np.float32)
    network: Any = Estimates(of_edges, beside(taught.problem) if beside else None)
    return best_scale(network, [taught], Trial(evaluations=60, seed=0), lambda line: None)


def half_beside(problem: Problem) -> np.ndarray:
    behind = chain_of(np.arange(problem.n)) - chain_of(anchor(problem))
    near = behind % CHAINS < CHAINS // 2
    return np.where(near, 0.95, 0.05).astype(np.float32)


def all_beside(problem: Problem) -> np.ndarray:
    return np.full(problem.n, 0.98, np.float32)


# The plans of BRKGA decide.


def test_true_scores_are_followed() -> None:
    most, _, concentration = scale(0.9, half_beside)
    assert most > 0
    assert concentration > 0


def test_scores_that_put_all_ops_on_one_device_are_not() -> None:
    assert scale(1.0, all_beside)[2] == 0


def test_a_network_of_edges_alone_has_no_concentration() -> None:
    assert scale(0.9, None)[2] == 0

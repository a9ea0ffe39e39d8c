"""Proposers: their share of the budget before they propose."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.solvers.budget import Budget
from situate.solvers.evolutionary.regal import proposers
from situate.solvers.evolutionary.regal.features import Encoding
from situate.solvers.evolutionary.regal.proposals import proposals
from situate.solvers.evolutionary.regal.proposers import (
    ConstantProposer,
    NetworkProposer,
    population_for_features,
)
from situate.solvers.evolutionary.regal.settings import CONSTANTS, SETTINGS, RegalSettings
from situate.solvers.search import Search
from tests.solvers.families import devices, fork


def search(
    evaluations: int | None = None, seconds: float | None = None, bandwidth: float = 1.0
) -> Search:
    problem = Problem(fork(12), devices(1, 1, bandwidth=bandwidth), rules="regal")
    return Search(problem, budget=Budget(seconds, evaluations), threads=1)


class FirstCategory:
    """A network that chooses the first category everywhere, and keeps its inputs."""

    def __init__(self, settings: RegalSettings) -> None:
        self.settings, self.encodings = settings, list[Encoding]()

    def actions(self, encoded: Encoding, seed: int) -> Ints:
        self.encodings.append(encoded)
        choices = self.settings.proposed.choices(2)
        return np.zeros((len(encoded.nodes), len(choices)), np.int64)


# A constant spends nothing where transfers take no time, and proposes the same at every op.


@pytest.mark.parametrize("settings", ["paper", "tuned"])
def test_a_constant_proposes_before_any_evaluation(settings: str) -> None:
    constant = CONSTANTS[settings, "time"]  # type: ignore[index]
    of = search(evaluations=100, bandwidth=np.inf)
    guide = ConstantProposer(constant).propose(of)
    assert of.best is None
    assert of.budget.evaluations == 0
    expected = proposals(
        of.problem,
        np.tile(np.array(constant.levels) - 1, (of.problem.n, 1)),
        constant.proposed,
        len(guide.alpha),
        constant.breeding.bias,
    )
    np.testing.assert_array_equal(guide.alpha, expected.alpha)
    np.testing.assert_array_equal(guide.beta, expected.beta)


# A network reads features that plain BRKGA makes in at most half of the budget.


def test_a_network_reads_the_features_of_every_op() -> None:
    network = FirstCategory(SETTINGS["tuned", "time"])
    of = search(evaluations=1000)
    guide = NetworkProposer(network).propose(of)
    [encoded] = network.encodings
    assert guide is not None
    assert len(encoded.nodes) == of.problem.n
    assert of.budget.evaluations >= network.settings.feature_evaluations


@pytest.mark.parametrize("settings", ["paper", "tuned", "gas"])
def test_a_network_is_not_asked_without_time_for_its_proposals(
    settings: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposers, "encoding", None)
    of = search(seconds=0)
    network = FirstCategory(SETTINGS[settings, "time"])  # type: ignore[index]
    assert NetworkProposer(network).propose(of) is None
    assert of.budget.evaluations == 1
    assert of.best is not None


def test_features_leave_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that goes on by a second at every look."""
    clock = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr("situate.solvers.evolutionary.brkga.SLICE_SECONDS", 0.001)
    endless = replace(SETTINGS["paper", "time"], feature_evaluations=10**9)
    of = search(seconds=400.0)
    population_for_features(of, endless)
    assert 200 <= of.budget.seconds <= 220

"""The random problems cover the execution model."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import OBJECTIVES, Problem
from situate.data.rules import RULES
from tests.oracle.problems import random_decision, random_problem, small_problem


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    return [random_problem(seed) for seed in range(300)]


def test_the_same_seed_gives_the_same_problem(problems: list[Problem]) -> None:
    for seed in range(10):
        assert random_problem(seed).graph.hash == problems[seed].graph.hash
        assert random_problem(seed).cluster == problems[seed].cluster


def test_all_rules_modes_and_sizes_occur(problems: list[Problem]) -> None:
    modes = {(p.transfers, p.rules.contention, p.rules.memory) for p in problems}
    both = [True, False]
    transfers, memory = ("overlapped", "blocking"), ("time", "persistent", "step")
    assert modes == {(t, c, m) for t in transfers for c in both for m in memory}
    assert {p.d for p in problems} == {1, 2, 3, 4, 5}
    assert min(p.n for p in problems) == 1
    assert max(p.n for p in problems) > 30


def test_all_features_occur(problems: list[Problem]) -> None:
    for feature in (
        lambda p: any(op.group for op in p.graph.ops),
        lambda p: any(op.device for op in p.graph.ops),
        lambda p: p.graph.control,
        lambda p: np.isinf(p.seconds).any(),
        lambda p: (p.seconds == 0).any(),
        lambda p: p.resident.any(),
        lambda p: p.output.any(),
        lambda p: (p.transfer_seconds == 0).any(),
        lambda p: (p.size[: len(p.graph.tensors)] == 0).any(),
        lambda p: p.cluster.synchronisation > 0,
        lambda p: np.unique(p.channel).size < p.d * (p.d - 1),
        lambda p: p.workspace.any() and p.persistent.any(),
        lambda p: any(device.memory for device in p.cluster.devices),
    ):
        share = np.mean([bool(feature(problem)) for problem in problems])
        assert share > 0.05


def test_decisions_respect_units_and_what_may_run_where(problems: list[Problem]) -> None:
    for seed, problem in enumerate(problems):
        placement = random_decision(problem, seed).placement
        assert problem.allowed[problem.unit, placement].all()


def test_small_problems_are_of_all_kinds() -> None:
    small = [small_problem(seed) for seed in range(240)]
    kinds = {(problem.objective, problem.rules) for problem in small}
    assert kinds == {(objective, rules) for objective in OBJECTIVES for rules in RULES.values()}
    assert {problem.n for problem in small} == set(range(2, 8))
    assert {problem.d for problem in small} == {1, 2, 3}
    for feature in (
        lambda p: any(op.group for op in p.graph.ops),
        lambda p: any(op.device for op in p.graph.ops),
        lambda p: p.transfers == "blocking",
        lambda p: sum(p.size) + sum(p.persistent) > min(p.capacity),
    ):
        assert np.mean([bool(feature(problem)) for problem in small]) > 0.05
    assert small_problem(7).graph.hash == small[7].graph.hash

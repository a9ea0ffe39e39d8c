"""The optimistic value of a placement: no order and no decoder makes it better."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.simulation.atomic import schedule_calls
from situate.solvers.auto.construct.optimistic import least_scores
from situate.solvers.search import Search
from tests.oracle.problems import random_decision, small_problem
from tests.solvers.families import chain, devices, fork


def _search(problem: Problem) -> Search:
    return Search(problem, threads=1)


def _score(problem: Problem, *placement: int) -> tuple[int, float]:
    [score] = least_scores(_search(problem), np.array([placement], np.int32))
    return score


def test_no_decision_is_better() -> None:
    for seed in range(240):
        problem = small_problem(seed)
        search, decision = _search(problem), random_decision(problem, seed)
        order = np.argsort(-decision.priority, kind="stable").astype(np.int32)
        [least] = least_scores(search, decision.placement[None])
        for decoder in search.decoders:
            result = search.offer(decision.placement, order, [decoder])
            assert least <= result.score, (seed, decoder)


def test_the_longest_path_counts_transfers() -> None:
    assert _score(Problem(chain(3, size=4), devices(1, 1)), 0, 1, 0)[1] == pytest.approx(11)


def test_the_busiest_device_counts() -> None:
    assert _score(Problem(fork(6), devices(1, 1)), *[0] * 6)[1] == pytest.approx(6)


def test_a_period_is_known_but_for_rounding() -> None:
    for seed in range(2, 240, 3):
        problem = small_problem(seed)
        assert problem.objective == "throughput"
        placement = random_decision(problem, seed).placement
        order = np.array(problem.graph.order, np.int32)
        period = _search(problem).offer(placement, order).value
        assert _score(problem, *placement)[1] == pytest.approx(period, rel=1e-11)


def test_the_time_of_calls_is_exact() -> None:
    atomic = Problem(fork(6), devices(1, 2), "time", RULES["dnn-partitioning"])
    placement = np.array([0, 0, 0, 0, 1, 1], np.int32)
    assert _score(atomic, *placement)[1] == schedule_calls(atomic, placement).makespan


def test_what_waits_for_a_later_op_is_live_while_another_runs() -> None:
    """The first op's other tensor waits for the last one while the middle ones run."""
    waiting = Problem(fork(3, size=5, persistent=1), devices(1, 1), "memory")
    assert _score(waiting, 0, 0, 0) == (0, 13)
    assert _score(waiting, 0, 0, 1) == (0, 12)


def test_what_exceeds_the_devices_is_counted() -> None:
    assert _score(Problem(chain(4, persistent=5), devices(1, 1, memory=9)), 0, 0, 0, 1)[0] == 8

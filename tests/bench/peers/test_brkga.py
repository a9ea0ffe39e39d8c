"""Random keys as the core decodes them, and the packages that breed them where installed."""

from __future__ import annotations

import numpy as np
import pytest

from situate.bench.peers.brkga import BudgetExhausted, RandomKeys
from situate.bench.run import solve_with
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.bench.small import instance
from tests.solvers.families import apart, devices, fork, problem


# Random keys as plans.
def keys_of(search: Search, draws: int) -> tuple[RandomKeys, np.ndarray]:
    chromosomes = RandomKeys(search)
    return chromosomes, np.random.default_rng(0).random((draws, chromosomes.count))


def test_a_value_is_that_of_the_plan_that_is_offered():
    search = Search(Problem(fork(6), devices(1, 1)), budget=Budget(time_limit=10))
    chromosomes, keys = keys_of(search, 20)
    values = chromosomes.values(keys)
    assert search.incumbent.value == values.min()
    assert search.budget.evaluations >= 20


def test_affinities_choose_a_device_and_priorities_the_order():
    search = Search(Problem(apart(3), devices(1, 1)), budget=Budget(time_limit=10))
    chromosomes = RandomKeys(search)
    assert chromosomes.count == 3 * 2 + 3
    one = np.array([[0.9, 0.1, 0.9, 0.1, 0.1, 0.9, 0.5, 0.7, 0.6]])
    assert chromosomes.values(one) == [2.0]
    assert search.incumbent.placement.tolist() == [0, 0, 1]
    assert search.incumbent.order.tolist() == [1, 2, 0]


def test_what_does_not_fit_is_above_what_fits():
    tight = Problem(apart(4, persistent=10), devices(1, 1, memory=20))
    chromosomes, keys = keys_of(Search(tight, budget=Budget(time_limit=10)), 60)
    values = chromosomes.values(keys)
    fit = values < tight.serial_seconds + 1
    assert 0 < fit.sum() < 60
    assert values[fit].max() < values[~fit].min()


def test_units_stay_where_they_may():
    pinned = problem("pinned among equals")
    chromosomes, keys = keys_of(Search(pinned, budget=Budget(time_limit=10)), 8)
    chromosomes.values(keys)  # a pin that is broken would raise


def test_the_time_ends_it():
    search = Search(Problem(fork(6), devices(1, 1)), budget=Budget(time_limit=0))
    chromosomes, keys = keys_of(search, 2)
    with pytest.raises(BudgetExhausted):
        chromosomes.values(keys)
    assert search.best is not None


def test_the_seconds_between_steps_are_refused():
    with pytest.raises(SituateError, match="time and memory of a step alone"):
        RandomKeys(Search(Problem(fork(6), devices(1, 1), "throughput")))


# BRKGA-MP-IPR, where it is installed.
def test_brkga_mp_ipr_finds_a_plan_in_its_time():
    pytest.importorskip("brkga_mp_ipr")
    problem = instance().make()
    result = solve_with(problem, "brkga_mp_ipr", 0.3, seed=0, threads=1)
    assert result.feasible
    assert result.value >= result.lower_bound
    result.schedule.verify(problem)


# pymoo's BRKGA, where it is installed.
def test_pymoo_finds_a_plan_in_its_time():
    pytest.importorskip("pymoo")
    problem = instance().make()
    result = solve_with(problem, "pymoo_brkga", 0.3, seed=0, threads=1)
    assert result.feasible
    assert result.value >= result.lower_bound
    result.schedule.verify(problem)

"""Sharding problems in the terms of a bench."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.bench.shardings import sharding_hash, size, solve_sharding_problem
from situate.errors import SituateError
from tests.sharding.problems import least_cost, random_problem
from tests.sharding.stage_problems import random_problem as random_stages


def test_the_outcome_of_a_sharding_is_its_cost():
    problem = random_problem(0)
    outcome = solve_sharding_problem(problem, "auto", 0.1, 0, 1)
    assert outcome.value == least_cost(problem) >= outcome.lower_bound
    assert size(problem) == (7, 0, "cost")


def test_the_outcome_of_stages_is_the_slowest_one(tmp_path):
    problem = random_stages(tmp_path, 1, tight=1.5)
    outcome = solve_sharding_problem(problem, "auto", 5, 0, 1)
    assert outcome.feasible
    assert outcome.lower_bound == pytest.approx(outcome.value)
    assert size(problem) == (4, 4, "throughput")


def test_an_outcome_that_does_not_fit_has_no_bound(tmp_path):
    problem = replace(random_stages(tmp_path, 1), memory=0.5)
    outcome = solve_sharding_problem(problem, "auto", 5, 0, 1)
    assert (outcome.feasible, outcome.lower_bound) == (False, None)


def test_other_methods_are_refused():
    with pytest.raises(SituateError, match="heft places ops on devices"):
        solve_sharding_problem(random_problem(0), "heft", 0.1, 0, 1)


def test_a_hash_depends_on_every_number(tmp_path):
    problem, stages = random_problem(0), random_stages(tmp_path, 1)
    others = [replace(problem, limit=1), replace(stages, bandwidth=7.0), replace(stages, batches=9)]
    hashes = {sharding_hash(each) for each in (problem, stages, *others)}
    assert len(hashes) == 5
    assert sharding_hash(replace(problem, name="other")) == sharding_hash(problem)

"""Names of problems."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.bench.instances import problem_hash
from situate.data.problem import Problem
from situate.data.rules import Rules
from tests.solvers.families import chain, devices

PROBLEM = Problem(chain(3), devices(1, 1))


def test_the_hash_is_of_what_is_planned_and_not_of_what_it_is_called():
    renamed = replace(PROBLEM, graph=replace(PROBLEM.graph, name="other"))
    assert problem_hash(renamed) == problem_hash(PROBLEM)


def test_rules_of_another_name_and_the_same_settings_are_the_same_problem():
    rules = Rules("mine", memory="step")
    assert problem_hash(replace(PROBLEM, rules=rules)) == problem_hash(
        replace(PROBLEM, rules=Rules("other", memory="step"))
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"graph": chain(4)},
        {"cluster": devices(1, 2)},
        {"objective": "memory"},
        {"rules": "regal"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_values_depend_on_changes_the_hash(changed):
    assert problem_hash(replace(PROBLEM, **changed)) != problem_hash(PROBLEM)

"""The papers' cases without learning: the page's sentences about them follow from the results."""

from __future__ import annotations

from typing import Any

import pytest

from research.papers import heuristics, published, rules
from research.papers.cases import Case
from research.papers.pages import heuristics as page_heuristics
from situate.solvers import solve

LEARNT = {"post": 2.0, "ppo": 2.5}
WITHOUT = {"uniform": 2.0, "hill_climbing": 2.0, "auto": 1.0}


def contents(cases: dict[str, float]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Heuristics and a table of these cases: HEFT takes the seconds given, ETF 3 s, the baselines
    2 s, the best learner 2 s, `auto` 1 s."""
    runs = [
        {"case": case, "method": method, "settings": "tuned", "seed": 0, "best": best}
        for case in cases
        for method, best in (LEARNT | WITHOUT).items()
    ]
    lists = {"etf": 3.0, "etf_placed": 3.0, "heft_took": 0.25, "etf_took": 0.5}
    rules = [
        {"machine": "k80", "case": case, "heft": heft, "heft_placed": heft, **lists}
        for case, heft in cases.items()
    ]
    baselines = [{"machine": "k80", **run} for run in runs if run["method"] not in LEARNT]
    learnt = [{"mean": 0.0, **run} for run in runs if run["method"] in LEARNT]
    return (
        {"tables": {"rules": rules, "runs": baselines}},
        {"tables": {"rules": rules, "runs": learnt}},
    )


def test_the_text_names_the_rows_that_list_scheduling_wins_and_loses():
    names = page_heuristics.post(*contents({"rnnlm/2": 3.0, "resnet50/2": 1.5, "nmt2/2": 2.5}))
    assert names["heft"] == "1 of 3 rows (ResNet-50, 2)"
    assert names["learners"] == "2 of 3 rows (all but ResNet-50, 2)"
    assert names["auto"] == "3 of 3 rows"


def test_a_tie_is_no_win():
    names = page_heuristics.post(*contents({"rnnlm/2": 2.0}))
    assert names["heft"] == names["learners"] == names["climbing"] == "0 of 1 rows"


def test_the_least_of_a_row_is_bold_and_the_lists_own_orders_are_not_compared():
    content = contents({"rnnlm/2": 3.0})
    content[0]["tables"]["rules"][0]["heft"] = 0.5
    line = page_heuristics.post(*content)["table"].splitlines()[-1]
    assert (
        line == "| RNNLM, 2 | 0.500 | 3.000 | 3.000 | 3.000 | 2.000 | 2.000 | 2.000 | **1.000** |"
    )


def test_the_longest_time_of_a_list_rule_is_told():
    assert page_heuristics.post(*contents({"rnnlm/2": 3.0}))["took"] == "0.50"


def test_every_published_case_is_measured():
    published_cases = len(published.POST) + len(published.HIERARCHICAL)
    assert len(set(heuristics.CASES)) == published_cases


@pytest.mark.parametrize("method", heuristics.LISTS)
def test_a_placement_takes_no_less_than_the_bound_in_whichever_order(method):
    problem = Case("cifar_cnn", 2, "k80").problem()
    result = solve(problem, method, threads=1)
    placed = rules.seconds(problem, result.placement)
    assert placed is not None
    assert min(placed, result.value) >= result.lower_bound

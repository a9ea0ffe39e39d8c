"""The page's parts from hand-made records."""

from __future__ import annotations

import pytest

from research.papers import page
from research.papers.checks import SOFTMAX
from research.papers.claims import colocrl as claims
from research.papers.pages import colocrl, flops, sliced, statistics, told_costs
from research.papers.tables import Results

RULES = {"cpu": 9.0, "single": 2.0, "expert": 2.0, "scotch": 4.0, "mincut": 3.5, "lower_bound": 1.0}


def table(case: str, **best: float) -> dict[str, object]:
    """One case on which each method, in each settings, has this time: `post_tuned=1.0`."""
    runs = []
    for name, value in best.items():
        method, _, settings = name.rpartition("_")
        runs.append(
            {
                "case": case,
                "method": method,
                "settings": settings,
                "seed": 0,
                "best": value,
                "mean": 1,
            }
        )
    return {"tables": {"rules": [{"case": case, **RULES}], "runs": runs}}


@pytest.mark.parametrize(("post", "near"), [(1.02, "1 of 1 rows"), (1.03, "0 of 1 rows")])
def test_post_that_is_told_no_costs_is_held_against_the_best_learner_in_any_settings(post, near):
    best = {f"{method}_tuned": 1.5 for method in SOFTMAX} | {"ppo_heavy-edge": 1.0}
    names = told_costs.fill({}, table("rnnlm/2", **{**best, "post_tuned": post}))
    assert names["near"].startswith(near)
    assert names["under"].startswith("1 of 1 rows")


def test_the_gain_of_flops_is_the_distance_above_groups_by_structure():
    post = table("rnnlm/2", post_tuned=1.0, post_bytes=1.1)
    planner = table("nmt2/2", hierarchical_tuned=2.0, hierarchical_bytes=1.9, post_bytes=1.0)
    names = flops.fill({}, post, {}, planner)
    assert (names["mean"], names["worse"]) == ("10.0 %", "1 of 1")
    assert "| 1.900 | -5.0 % |" in names["planner"].splitlines()[-1]
    assert "ResNet-50, 2 (Post)" in names["left"]
    assert "RNNLM, 2 (Post)" not in names["left"]


@pytest.mark.parametrize(("seconds", "verdicts"), [(1.0, ["yes", "yes"]), (1.7, ["no", "no"])])
def test_colocrl_is_held_against_the_expert_and_the_better_partitioner(seconds, verdicts):
    content = table("inception_v3/2", colocrl_paper=seconds)
    results = Results(content["tables"]["rules"], content["tables"]["runs"])
    assert [claim.verdict for claim in claims.claims(results)] == verdicts
    assert len(colocrl.fill(content)["table"].splitlines()) == 3


def test_post_on_slices_is_ahead_where_it_is_below_the_whole_batchs_bound():
    rows = [
        {"case": "rnnlm/2", "batch": batch, "method": method, "seed": 0, "seconds": seconds}
        for batch, method, seconds in (("whole", "bound", 1.0), ("sliced", "post", 0.9))
    ]
    names = sliced.fill({"tables": {"steps": rows}})
    assert names["ahead"].startswith("1 of 1 rows")
    assert [line.split("|")[2].strip() for line in names["table"].splitlines()[2:]] == [
        "whole",
        "sliced",
    ]


def test_groups_that_a_paper_does_not_print_are_left_out():
    row = {"source": "s", "network": "rnnlm", "printed_ops": 9021, "ops": 3802}
    names = statistics.fill(
        {"tables": {"statistics": [{**row, "printed_groups": None, "groups": None}]}}
    )
    assert names["table"].splitlines()[-1] == "| s | RNNLM | 9,021 | 3,802 | – | – |"


def test_the_seeds_of_a_record_are_those_of_each_candidate():
    runs = [{"case": "a", "candidate": c, "seed": seed} for c in "xy" for seed in (0, 1)]
    assert page._seeds({"tables": {"runs": runs}, "options": {"seeds": 2}}) == "2 seeds"
